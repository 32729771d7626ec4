"""A consumer warpgroup of MLA decoding: the scores, the weights and the half of the output that it computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import ptxdsl as pd
from ptxdsl.kernels.flash.decode import DecodeTile
from ptxdsl.kernels.flash.mla import HALF, KEYS, OWNERS, PIECE, PIECE_BYTES, PIECES, ROTARY, VALUE_PIECES
from ptxdsl.kernels.flash.output import stage_words
from ptxdsl.kernels.flash.softmax import Softmax
from ptxdsl.kernels.flash.traits import ROWS, WARP, WARPGROUP
from ptxdsl.layout import tile_layout
from ptxdsl.layout.swizzle import stacked

READY, DONE = 8, 10  # named barriers: of the weights of each owner, and of the last tile
BOTH = OWNERS * WARPGROUP
WARP_ROWS = ROWS * WARP // WARPGROUP
VALUE_STAGES = (OWNERS - 1) * PIECES + VALUE_PIECES + 1  # pieces that may be the first of a half of the values


@dataclass(frozen=True)
class TileRings:
    """The rings of a tile's pieces: the half of the values that the owner multiplies, the half that the other warpgroup
    multiplies, and the rotary columns. All are read by the owner as keys.
    """

    values: pd.Ring
    other_values: pd.Ring
    rotary: pd.Ring

    @classmethod
    def create(cls) -> Self:
        return cls(
            *(
                pd.Ring(count, stage_bytes=PIECE_BYTES, consumers=readers, each="warpgroup")
                for count, readers in ((VALUE_PIECES, WARPGROUP), (VALUE_PIECES, BOTH), (1, WARPGROUP))
            )
        )

    def reader(self) -> TileRings:
        """Return these rings with read positions of their own."""
        return TileRings(self.values.reader(), self.other_values.reader(), self.rotary.reader())

    def pieces(self, owner: int) -> list[tuple[pd.Ring, int]]:
        """Return the pieces of a tile in the order in which they are loaded, each with its ring."""
        first, other = (half * VALUE_PIECES for half in (owner, 1 - owner))
        return [
            *((self.values, first + n) for n in range(VALUE_PIECES)),
            *((self.other_values, other + n) for n in range(VALUE_PIECES)),
            (self.rotary, ROTARY),
        ]


class Consumer:
    """One of the two consumer warpgroups: the owner of every second tile of keys, and of half of the output.

    `queries` is a (piece, row, column) array in shared memory, and `keys` one of the pieces of both tiles.
    `statistics[0, owner]` are the maxima after the last tile of an owner, `statistics[1, owner]` its sums of weights.
    """

    def __init__(self, tile: DecodeTile, role: pd.warpgroup, number: int, scale: Any, arrays: Any, rings: Any) -> None:
        self.queries, self.keys, self.statistics = arrays
        self.tile, self.role, self.number, traits = tile, role, number, tile.traits
        self.owned, self.other = rings[number].reader(), rings[1 - number].reader()
        values = pd.view(self.keys.address(), stacked(tile_layout(KEYS, HALF, 16), VALUE_STAGES, PIECE))
        self.qk = pd.WarpgroupMma(traits.scores_atom, self.queries, self.keys)
        self.pv = pd.WarpgroupMma(f"{traits.output_atom}.rs", b=values, b_transposed=True)
        self.other_pv = pd.WarpgroupMma(traits.output_atom, self.keys, values, b_transposed=True)
        self.softmax = Softmax(self.qk.accumulators(), self.pv.accumulators(), scale, None)

    def begin_scores(self) -> None:
        """Begin to compute the scores of the next owned tile, as its pieces arrive."""
        for number, (ring, piece) in enumerate(self.owned.pieces(self.number)):
            ring.wait()
            self.qk(self.softmax.scores, piece, self.number * PIECES + piece, accumulate=number > 0)

    def weigh(self) -> Any:
        """Compute the weights of the owned tile, and return them as operand A.

        They go to the other warpgroup too, with the maxima: in place of the rotary columns, which are multiplied.
        """
        release(self.owned.other_values, VALUE_PIECES)
        self.softmax.weigh()
        words = self.softmax.scores.as_a(self.tile.traits.dtype)
        self.role.barrier()  # all warps have multiplied the rotary columns
        weights = pd.view(self.keys.address(self.number * PIECES + ROTARY, 0, 0), tile_layout(ROWS, KEYS, 16))
        stage_words(words, weights, pd.warpid % (WARPGROUP // WARP) * WARP_ROWS)
        for row, maximum in zip(self.softmax.rows, self.softmax.maxima, strict=True):
            with pd.if_(row.first_column == 0):
                self.statistics[0, self.number, row.index] = maximum
        pd.ptx.fence.proxy.async_.shared__cta()
        pd.ptx.bar.arrive(READY + self.number, BOTH)
        return words

    def multiply(self, weights: Any) -> None:
        """Add the weights of the owned tile times this warpgroup's half of its values."""
        self.softmax.rescale()
        self.pv(self.softmax.output, weights, self.number * PIECES + self.number * VALUE_PIECES)
        self.pv.wait(0)
        release(self.owned.values, VALUE_PIECES)

    def begin_other(self) -> None:
        """Begin to add the other warpgroup's weights times this warpgroup's half of the values."""
        owner = 1 - self.number
        pd.ptx.bar.sync(READY + owner, BOTH)
        self.softmax.follow([self.statistics[0, owner, row.index] for row in self.softmax.rows])
        self.softmax.rescale()
        first = owner * PIECES
        self.other_pv(self.softmax.output, first + ROTARY, first + self.number * VALUE_PIECES)

    def end_other(self) -> None:
        """Wait for the product of `begin_other`, and release its operands."""
        self.other_pv.wait(0)
        release(self.other.other_values, VALUE_PIECES)
        release(self.other.rotary, 1)

    def add_totals(self) -> None:
        """Add the sums of weights of both warpgroups, which meet here."""
        sums, softmax = self.statistics, self.softmax
        for row, total in zip(softmax.rows, softmax.totals, strict=True):
            total.set(row.reduce(lambda a, b: a + b, total.value))
            with pd.if_(row.first_column == 0):
                sums[1, self.number, row.index] = total
        pd.ptx.bar.sync(DONE, BOTH)
        for row, total in zip(softmax.rows, softmax.totals, strict=True):
            both = total + sums[1, 1 - self.number, row.index]
            total.set(pd.select(row.first_column == 0, both, 0.0))  # `Softmax.finish` adds those of four lanes


def release(ring: pd.Ring, count: int) -> None:
    """Release the next stages of a ring."""
    for _ in range(count):
        ring.release()
