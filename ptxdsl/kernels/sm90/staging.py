"""The boxes in which a consumer warpgroup stages its output in shared memory, past the end of the ring or in it, and
the TMA loads of C to them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.product.product import OutputTile
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, MATRIX, WARP, WARP_ROWS, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import ArrayView, PointerValue

InRing: TypeAlias = "Scalar | Literal[True] | None"
"""A predicate that is true if a tile is staged in the ring; True if all tiles are, None if none is."""


class StagedBox(NamedTuple):
    """One of the boxes of a view, by its number."""

    boxes: ArrayView
    number: int

    def address(self, *at: Any) -> PointerValue:
        return self.boxes.address(self.number, *at)


class Staging:
    """The boxes of a consumer warpgroup past the end of the ring, which hold up to `count` boxes at a time."""

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, consumer: pd.warpgroup) -> None:
        map, type = traits.out_map, traits.operands.output
        self.consumer, self.count, self.type = consumer, traits.staged_boxes, type
        self.origin = (0,) * (map.rank - 2)
        number = 0 if traits.stages_in_turn else consumer.index * (traits.staged_bytes // type.bytes)
        self.view = pd.view(memory.staging.bitcast(type) + number, map.boxes_layout(self.count))
        lane = pd.laneid
        self.first_row = consumer.index * traits.tiling.rows_apart  # of the tile
        self.warp_row = consumer.thread % WARPGROUP // WARP * WARP_ROWS
        self.row = self.warp_row + lane % WARP_ROWS  # that this lane names to stmatrix, and its first column
        self.column = lane // WARP_ROWS * MATRIX
        self.leads = consumer.thread % WARPGROUP == 0  # the thread that issues TMA stores

    def box(self, number: int) -> StagedBox:
        return StagedBox(self.view, number)

    def await_read(self) -> None:
        """Wait until TMA has read the boxes, so that the warpgroup may overwrite them."""
        with pd.if_(self.leads):
            pd.ptx.cp.async_.bulk.wait_group.read(0)
        self.consumer.warpgroup_barrier()

    def publish(self) -> None:
        """Make the boxes that all threads have written visible to TMA."""
        pd.ptx.fence.proxy.async_.shared__cta()
        self.consumer.warpgroup_barrier()


class RingStaging:
    """The ring as memory for the boxes of a block's last tile. No loads follow, so all boxes fit and none of them waits
    until an earlier one has been read.

    A warpgroup that shares tiles uses the rows of A that it alone has read. In ping-pong it uses all stages, if its own
    tile has passed through all of them: then the other warpgroup has read its operands.
    """

    def __init__(self, traits: WarpgroupTraits, memory: SharedTiles, number: Any) -> None:
        """`number` is the index of the warpgroup."""
        tiling, map = traits.tiling, traits.out_map
        self.boxes_per_stage, self.box_bytes, self.stage_bytes = traits.boxes_in_ring, map.bytes, traits.stage_bytes
        self.layout, self.type, self.origin = map.boxes_layout(1), traits.operands.output, (0,) * map.rank
        self.boxes_per_row_block = traits.tile[1] // map.box[-1]
        self.holds_all = traits.reuses_ring
        self.stages = tiling.stages if tiling.pingpong else 0
        rows = 0 if tiling.pingpong else number * (GROUP_ROWS * LINE_BYTES // traits.operands.inputs.bytes)
        self.first = (memory.a + rows).bitcast(self.type)

    def holds(self, output: OutputTile) -> InRing:
        """Return whether an output tile is staged in the ring."""
        if self.holds_all:
            return True
        if output.is_last is None:
            return None
        is_last = output.is_last()
        return is_last & (output.work.iterations >= self.stages) if self.stages else is_last

    def box(self, in_ring: Scalar | Literal[True], output: OutputTile, number: int, otherwise: StagedBox) -> StagedBox:
        """Return a box of an output tile: one in the ring if it is `in_ring`, `otherwise` if not."""
        stage, within = divmod(output.row_block * self.boxes_per_row_block + number, self.boxes_per_stage)
        at = self.first + (stage * self.stage_bytes + within * self.box_bytes) // self.type.bytes
        if in_ring is True:
            return StagedBox(pd.view(at, self.layout), 0)
        address = pd.select(in_ring, at.value, otherwise.address(*self.origin).value)
        return StagedBox(pd.view(pd.pointer(address, self.type, "shared::cta"), self.layout), 0)


class SourceBoxes:
    """The boxes of C of a consumer warpgroup. TMA loads them to where the output is staged next, since shared memory
    holds only as many boxes as are staged at a time. They complete at an mbarrier."""

    def __init__(self, mbarrier: PointerValue, staging: Staging) -> None:
        self.mbarrier, self.staging = mbarrier, staging
        self.parity = pd.var(u32, 0)

    def load(self, map: Any, boxes: list[tuple[PointerValue, tuple[Any, ...]]]) -> None:
        """Start the loads of boxes, each (address, coordinates), when the stores from these addresses have been
        read."""
        with pd.if_(self.staging.leads):
            pd.ptx.cp.async_.bulk.wait_group.read(0)
            expected = len(boxes) * map.bytes
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(self.mbarrier, expected, out="_")
            for address, at in boxes:
                map.load(address, at, self.mbarrier)

    def wait(self) -> None:
        """Wait for the boxes that were loaded last."""
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(self.mbarrier, self.parity)):
            pass
        self.parity.set(self.parity ^ 1)

    def words(self, address: PointerValue) -> list[Scalar]:
        """Return 16 rows and 16 columns of a warp, in the fragment of the accumulators."""
        return [*pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(address)]
