"""A tile of an operand as tensor copies bring it: boxes of a tensor map, and how wgmma finds them in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import ptxdsl as pd
from ptxdsl.cached import cached_property
from ptxdsl.layout import TmaCopy, make_tiled_copy, tma_atom
from ptxdsl.layout.shared_operand import lines_layout
from ptxdsl.layout.swizzle import AnyLayout, stacked
from ptxdsl.types import Type

LINE_BYTES, LEAST_LINE_BYTES = 128, 32  # of a line of a box, which the swizzle permutes
PATTERN_BYTES = 8 * LINE_BYTES  # after which the swizzle repeats
L2_PROMOTION = 256


@dataclass(frozen=True)
class TileBoxes:
    """A tile of `mn` rows of A, or columns of B, and `k` of K, of a matrix that is contiguous along `major`, "k" or
    "mn". Along k one box is the tile; along mn boxes of 128 bytes of mn, or of fewer where mn is no multiple of them,
    lie one behind the other. The matrices of batches are planes of one tensor. Where blocks of a cluster share the tile
    each brings one of so many `parts`."""

    type: Type
    mn: int
    k: int
    major: str
    is_batched: bool = False
    parts: int = 1

    @property
    def line_bytes(self) -> int:
        """Of a line of a box, which the swizzle permutes."""
        across = LINE_BYTES if self.major == "k" else self.mn * self.type.bytes
        return gcd(across, LINE_BYTES)

    @property
    def line(self) -> int:
        """Elements of a line of a box."""
        return self.line_bytes // self.type.bytes

    @cached_property
    def copy(self) -> TmaCopy:
        """Its copy to shared memory, box by box."""
        layout = stacked(self.layout, 1, 0) if self.is_batched else self.layout
        atom = tma_atom("cp.async.bulk.tensor.shared.global" + ".multicast::cluster" * (self.parts > 1))
        return make_tiled_copy(atom, layout, bits=self.type.bits, blocks=self.parts)

    @property
    def bytes(self) -> int:
        return self.mn * self.k * self.type.bytes

    @cached_property
    def map(self) -> pd.TensorMap:
        """What a kernel takes of the matrix."""
        return pd.TensorMap.of(self.type, self.copy, l2_promotion=L2_PROMOTION)

    def map_of(self, rows: int) -> pd.TensorMap:
        """The same for boxes of so many lines along k."""
        return pd.TensorMap(
            self.type, (*self.map.box[:-2], rows, self.line), swizzle=LINE_BYTES, l2_promotion=L2_PROMOTION
        )

    @cached_property
    def layout(self) -> AnyLayout:
        """The (mn, k) of the tile in shared memory, in elements."""
        return lines_layout(self.mn, self.k, self.type.bits, self.line_bytes, self.major == "mn")

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
        """Copies the tile that begins at (mn, k) to shared memory, by one thread; completes `bytes` at an mbarrier. Of
        parts it copies that of a `rank`, to the blocks of the mask `to`. `policy` is for the L2 cache."""
        at = (source.batch, mn, k) if self.is_batched else (mn, k)
        self.copy.copy(source.map, at, destination, mbarrier, rank=rank, multicast=to, policy=policy)
