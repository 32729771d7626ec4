"""Where boxes of the output lie in shared memory before they are stored: behind the ring, and at the end in it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import ptxdsl as pd
from ptxdsl.kernels.product.product import OutputTile
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import ArrayView, PointerValue


class StagedBox(NamedTuple):
    """Where a box lies in shared memory: the one of a number among those of a view."""

    boxes: ArrayView
    number: int

    def address(self, *at: Any) -> PointerValue:
        return self.boxes.address(self.number, *at)


class LastTile:
    """Where the boxes of a block's last tile are staged: in the ring, which nobody fills any more, so that none of them
    waits until one before it has been read. A warpgroup that shares tiles has the rows of A that it alone has read; one
    in turns has all stages, where its tile has been in all of them: then the other one has read what was there."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> None:
        tiling, map = traits.tiling, traits.out_map
        self.of_stage, self.box_bytes, self.stage_bytes = traits.boxes_in_ring, map.bytes, traits.stage_bytes
        self.layout, self.type, self.origin = map.boxes_layout(1), traits.operands.output, (0,) * map.rank
        self.of_piece = traits.tile[1] // map.box[-1]
        self.is_known = traits.reuses_ring
        self.stages = tiling.stages if tiling.pingpong else 0
        rows = 0 if tiling.pingpong else number * (GROUP_ROWS * LINE_BYTES // traits.operands.inputs.bytes)
        self.first = (memory.a + rows).bitcast(self.type)

    def takes(self, part: OutputTile) -> Scalar | Literal[True] | None:
        """Whether these accumulators are staged so; None where that is not known."""
        if self.is_known:
            return True
        if part.is_last is None:
            return None
        is_last = part.is_last()
        return is_last & (part.work.iterations >= self.stages) if self.stages else is_last

    def box(self, takes: Scalar | Literal[True], part: OutputTile, number: int, otherwise: StagedBox) -> StagedBox:
        """A box of a part, or where it is staged if it `takes` not the ring."""
        stage, within = divmod(part.piece * self.of_piece + number, self.of_stage)
        at = self.first + (stage * self.stage_bytes + within * self.box_bytes) // self.type.bytes
        if takes is True:
            return StagedBox(pd.view(at, self.layout), 0)
        address = pd.select(takes, at.value, otherwise.address(*self.origin).value)
        return StagedBox(pd.view(pd.pointer(address, self.type, "shared::cta"), self.layout), 0)
