"""TMA boxes of an operand tile, and their layout in shared memory as wgmma reads it."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import ptxdsl as pd
from ptxdsl.cached import cached_property
from ptxdsl.kernels.product.operands import Major
from ptxdsl.layout import TmaCopy, make_tiled_copy, tma_atom
from ptxdsl.layout.shared_operand import lines_layout
from ptxdsl.layout.swizzle import AnyLayout, stacked
from ptxdsl.types import Type

LINE_BYTES, LEAST_LINE_BYTES = 128, 32  # of a row of a box, in which the swizzle permutes
PATTERN_BYTES = 8 * LINE_BYTES  # the period of the swizzle
L2_PROMOTION = 256


@dataclass(frozen=True)
class TileBoxes:
    """A tile of `mn` rows of A, or columns of B, by `k` of K. `major` is the contiguous dimension of the matrix.

    A K-major tile is one box. An MN-major tile is a sequence of boxes whose rows are 128 bytes of M or N, or a divisor
    of the tile that is smaller. The matrices of a batch are planes of one tensor. If blocks of a cluster share a tile,
    each loads one of its `parts`.
    """

    type: Type
    mn: int
    k: int
    major: Major
    is_batched: bool = False
    parts: int = 1

    @property
    def line_bytes(self) -> int:
        """The bytes of a row of a box, over which the swizzle permutes 16-byte chunks."""
        across = LINE_BYTES if self.major is Major.K else self.mn * self.type.bytes
        return gcd(across, LINE_BYTES)

    @property
    def line(self) -> int:
        """The elements of a row of a box."""
        return self.line_bytes // self.type.bytes

    @cached_property
    def copy(self) -> TmaCopy:
        """The TMA load of the tile to shared memory, box by box."""
        layout = stacked(self.layout, 1, 0) if self.is_batched else self.layout
        atom = tma_atom("cp.async.bulk.tensor.shared.global" + ".multicast::cluster" * (self.parts > 1))
        return make_tiled_copy(atom, layout, bits=self.type.bits, blocks=self.parts)

    @property
    def bytes(self) -> int:
        return self.mn * self.k * self.type.bytes

    @cached_property
    def map(self) -> pd.TensorMap:
        """The kernel parameter for the matrix."""
        return pd.TensorMap.of(self.type, self.copy, l2_promotion=L2_PROMOTION)

    def map_of(self, rows: int) -> pd.TensorMap:
        """Return the kernel parameter for the matrix if a box has `rows` rows."""
        return pd.TensorMap(
            self.type, (*self.map.box[:-2], rows, self.line), swizzle=LINE_BYTES, l2_promotion=L2_PROMOTION
        )

    @cached_property
    def layout(self) -> AnyLayout:
        """The (mn, k) layout of the tile in shared memory, in elements."""
        return lines_layout(self.mn, self.k, self.type.bits, self.line_bytes, self.major is Major.MN)

    def load(
        self,
        source: Any,
        destination: Any,
        mn: Any,
        k: Any,
        mbarrier: Any,
        *,
        rank: Any = None,
        to: Any = None,
        policy: Any = None,
    ) -> None:
        """Load the tile at (mn, k) to shared memory, by one thread; completes `bytes` at an mbarrier. If it has parts,
        load part `rank` to the blocks of the mask `to`. `policy` is an L2 cache policy."""
        at = (source.batch, mn, k) if self.is_batched else (mn, k)
        self.copy.copy(source.map, at, destination, mbarrier, rank=rank, multicast=to, policy=policy)
