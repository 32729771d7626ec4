"""The gradient of q by atomic additions: what blocks that own keys add, and the kernel that converts it."""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.flash.backward import ADDING_TILE, BackwardTraits, KeyTile, backward_parameters
from ptxdsl.kernels.flash.output import STEP, offset, stage_words
from ptxdsl.kernels.flash.statistics import statistic
from ptxdsl.kernels.flash.tile import AttentionTile
from ptxdsl.kernels.flash.traits import ROWS, WARP, WARPGROUP
from ptxdsl.layout import tile_layout
from ptxdsl.layout.swizzle import stacked
from ptxdsl.types import s32, s64

BOX = 64  # columns of a swizzled box
BUFFERS = 2  # of gradients of scores: one barrier orders the writes of each
VECTOR = 4  # neighbouring accumulators in one atomic addition
MEETING = 8  # the named barrier of the consumers
DEFAULT = BackwardTraits(config=ADDING_TILE, adds_dq=True)


class QueryGradient:
    """The gradient of q that a consumer warpgroup adds to memory, for one tile of keys after another.

    Each warpgroup computes 64 of the 128 columns, from the gradients of the scores of both. `p.sums` are float32, as
    many rows as the statistics have, each tile of 64 rows and 64 columns in the order of the accumulators: registers 4j
    to 4j + 3 of a thread are neighbours.
    """

    def __init__(self, p: Any, tile: KeyTile, keys: Any, shifted: Any, index: Any) -> None:
        self.p, self.tile, self.shifted, self.buffer = p, tile, shifted, pd.var(u32, 0)
        self.row = index * ROWS
        columns = pd.view(keys.address() + index * (ADDING_TILE.keys * BOX), tile_layout(ADDING_TILE.keys, BOX, 16))
        self.mma = pd.WarpgroupMma(tile.traits.wgmma(BOX), shifted, columns, a_transposed=True, b_transposed=True)
        self.accumulators = self.mma.accumulators()
        first = pd.warpid % (WARPGROUP // WARP) * STEP + pd.laneid // 4 + self.row  # row of this thread, and 8 on
        self.is_key = [(first + i * 8).to(s32) + tile.first < tile.n for i in range(2)]

    @staticmethod
    def shared(traits: BackwardTraits) -> Any:
        """Return shared memory for the gradients of the scores of a tile, (buffer, key, query)."""
        layout = stacked(tile_layout(ADDING_TILE.keys, BOX, 16), BUFFERS, ADDING_TILE.keys * BOX)
        return pd.dynamic_shared(traits.dtype, layout, align=1024, name="shifted")

    def begin(self, words: Any) -> None:
        """Begin to multiply the gradients of the scores, which are `words` in registers, by the keys.

        Rows past the last key have arbitrary gradients, which are replaced by 0.
        """
        rows = pd.view(self.shifted.address(self.buffer, 0, 0), tile_layout(ADDING_TILE.keys, BOX, 16))
        kept = [[pd.select(self.is_key[i % 2], word, 0) for i, word in enumerate(step)] for step in words]
        stage_words(kept, rows, self.row + pd.warpid % (WARPGROUP // WARP) * STEP)
        pd.ptx.fence.proxy.async_.shared__cta()
        self.meet()
        self.mma(self.accumulators, self.buffer, 0, accumulate=False)

    def add(self, head: Any, number: Any) -> None:
        """Wait for the product, and add it to the rows of a tile of queries."""
        self.buffer.set(self.buffer ^ 1)
        self.mma.wait(0)
        row = statistic(self.p, self.tile, head, (number * ADDING_TILE.queries).to(u32)).to(s64)
        offset_ = (self.row * BOX + pd.tid.x % WARPGROUP * VECTOR).to(s64)
        target = self.p.sums + (row * self.tile.traits.head + offset_)
        for first in range(0, len(self.accumulators.registers), VECTOR):
            values = self.accumulators.registers[first : first + VECTOR]
            pd.ptx.red.global_.add.v4.f32(target + first * WARPGROUP, values)

    def meet(self) -> None:
        """Wait for the other warpgroup."""
        pd.ptx.bar.sync(MEETING, 2 * WARPGROUP)


@pd.kernel(arch="sm_90a", reqntid=WARPGROUP)
def convert_kernel(p: backward_parameters(traits), *, traits: BackwardTraits = DEFAULT) -> None:
    """Write dq = scale · sums of 64 queries of one head; the grid is (tiles of queries, heads, batches)."""
    tile = AttentionTile(p, traits)
    with pd.if_(tile.first < tile.m):
        row = statistic(p, tile, tile.head, tile.first.to(u32)).to(s64)
        sums = p.sums + (row * traits.head + (pd.tid.x * VECTOR).to(s64))
        convert = getattr(pd.ptx.cvt.rn, f"{traits.dtype}x2").f32
        for step in range(ROWS * traits.head // WARPGROUP // VECTOR):
            values = pd.ptx.ld.global_.v4.f32(sums + step * (VECTOR * WARPGROUP))
            column = (pd.laneid % 4 * 2 + step * 8).to(s64)
            for i in range(2):  # the rows of a thread
                query = (pd.warpid * 16 + pd.laneid // 4 + i * 8).to(s32) + tile.first
                with pd.if_(query < tile.m):
                    at = offset(p.strides, tile.batch, tile.head) + (tile.q_start + query).to(s64) * p.strides[2]
                    low, high = (value * p.factor for value in values[2 * i : 2 * i + 2])
                    pd.ptx.st.global_.b32(p.outputs[0] + (at + column), convert(high, low))
