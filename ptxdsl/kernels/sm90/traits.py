"""What a kernel of the sm_90a path is made for: beside the traits of all paths, those of tensor copies and wgmma."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import gcd
from typing import Any

import ptxdsl as pd
from ptxdsl.cached import cached_property
from ptxdsl.kernels.product.operands import Operands, Scaling
from ptxdsl.kernels.sm90.boxes import LINE_BYTES, PATTERN_BYTES, TileBoxes
from ptxdsl.kernels.sm90.tiling import ARCH, GROUP_ROWS, IN_TURN, ROLE_REGISTERS, WARP, WARPGROUP, WarpgroupTiling
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.limits import shared_bytes
from ptxdsl.types import b32

MOST_STAGED_BYTES, STAGED_BY_THREE = 16384, 8192  # of a warpgroup; where three multiply, to leave room for the ring
EPILOGUES = "ptxdsl.kernels.epilogue"  # whose functions were tried in the registers that deferred boxes leave
DEFERRED_BESIDE = 16  # bits of a column or row, or of both, that are read beside accumulators that are stored late
SHARE_ROWS = 32  # of a box of A where tiles have even shares of the rows of a group


@dataclass(frozen=True)
class WarpgroupTraits(Traits):
    """Traits whose tiling is one of warpgroups."""

    tiling: WarpgroupTiling = field(default_factory=WarpgroupTiling)

    @cached_property
    def a(self) -> TileBoxes:
        return replace(self.tiling.a(self.operands), parts=self.schedule.multicast[1])

    @cached_property
    def b(self) -> TileBoxes:
        return replace(self.tiling.b(self.operands), parts=self.schedule.multicast[0])

    @property
    def role_registers(self) -> tuple[int, int] | tuple[None, None]:
        """Registers of a thread of the producer and of the consumers. With block scales, each of two consumers holds
        the products of a stage next to its accumulators."""
        if self.operands.scaling is not Scaling.BLOCKS:
            return self.tiling.role_registers
        return ROLE_REGISTERS if self.tiling.consumers > 1 and not self.tiling.swap_ab else (None, None)

    @property
    def skips_rows(self) -> bool:
        """True if a warpgroup skips tiles in which it has no rows: with block scales, unless it meets other warpgroups
        in every tile, those of its block or of a cluster."""
        schedule = self.schedule
        meets = schedule.has_one_tile or not schedule.has_whole_tiles or schedule.multicast != (1, 1)
        return self.operands.scaling is Scaling.BLOCKS and not meets

    @property
    def shares_rows(self) -> bool:
        """True if the rows of a group are divided evenly among its tiles: wgmma takes any multiple of 16 rows as the
        columns of its products. Not with scales, which are applied to whole tiles."""
        is_plain = self.operands.a_major == "k" and self.operands.scaling is None
        return self.tiling.swap_ab and is_plain and self.tile[0] % GROUP_ROWS == 0

    @property
    def piece(self) -> int:
        """Of groups of rows, the rows of a box of A: a tile comes in as many as the group has there; 0 where a tile
        comes as a whole."""
        if self.shares_rows:
            return SHARE_ROWS
        return GROUP_ROWS if self.tiling.pingpong and self.operands.a_major == "k" else 0

    @property
    def streamed(self) -> str:
        """The operand whose lines are the first to leave the L2 cache: "a" or "b", or "none"."""
        return "a" if self.schedule.streams_a else self.operands.streamed

    @property
    def map_of_a(self) -> pd.TensorMap:
        """What a kernel takes of the A of a product."""
        return self.a.map_of(self.operands.a_rows) if self.operands.a_rows else self.a.map

    @property
    def map_of_rows(self) -> pd.TensorMap:
        """What a kernel takes of the rows of all groups."""
        return self.a.map_of(self.piece) if self.piece else self.a.map

    @property
    def from_registers(self) -> bool:
        """Whether the first factor of wgmma, which is B where they are swapped, comes from registers."""
        return self.operands.from_registers == ("b" if self.tiling.swap_ab else "a")

    @property
    def atom(self) -> str:
        return self.tiling.atom(self.operands.inputs)

    @cached_property
    def out_map(self) -> pd.TensorMap:
        """What a kernel takes of an output that is stored in boxes: those of a warpgroup, whose lines are as long as
        the rows of a tile allow, or its 64 columns where tiles are swapped, whose rows may be fewer than 64."""
        output, (rows, line_bytes) = self.operands.output, self._out_box
        box = rows, line_bytes // output.bytes
        return pd.TensorMap(output, (1, *box) if self.operands.batches != "none" else box, swizzle=line_bytes)

    @property
    def _out_box(self) -> tuple[int, int]:
        """The lines of these boxes, and the bytes of each."""
        swap_ab = self.tiling.swap_ab
        line_bytes = gcd((GROUP_ROWS if swap_ab else self.tile[1]) * self.operands.output.bytes, LINE_BYTES)
        return gcd(GROUP_ROWS, self.tile[0]) if swap_ab else GROUP_ROWS, line_bytes

    @property
    def c_boxes(self) -> bool:
        """Whether C comes in such boxes too."""
        return self.operands.out_boxes and self.operands.c != "none"

    @property
    def computes_late(self) -> bool:
        """Whether accumulators that are stored in boxes are not only scaled, by warpgroups that have no tiles of their
        own."""
        computes = self.operands.c != "none" or self.epilogue is not None
        return self.operands.out_boxes and computes and not self.tiling.pingpong

    @property
    def staged_boxes(self) -> int:
        """How many of them each warpgroup stages at a time, at most."""
        m, n, _ = self.tile
        rows, line_bytes = self._out_box
        boxes = m // rows if self.tiling.swap_ab else n * self.operands.output.bytes // line_bytes
        most = MOST_STAGED_BYTES if self.tiling.consumers <= IN_TURN else STAGED_BY_THREE
        return min(most // (rows * line_bytes), boxes)

    @property
    def boxes_in_ring(self) -> int:
        """How many boxes a stage of the ring takes where the last tile of a block is staged there, since nobody fills
        it any more: in the rows of A that this warpgroup alone has read or, in turns, in all of it. 0 where tiles are
        staged behind the ring alone."""
        tiling, (rows, line_bytes) = self.tiling, self._out_box
        is_known = self.operands.out_boxes and not self.c_boxes and not tiling.swap_ab
        if not is_known or not (tiling.pingpong or tiling.stagger):
            return 0
        each = (self.stage_bytes if tiling.pingpong else GROUP_ROWS * LINE_BYTES) // (rows * line_bytes)
        count = tiling.pieces * self.tile[1] * self.operands.output.bytes // line_bytes
        return each if each * tiling.stages >= count else 0

    @property
    def held_words(self) -> int:
        """Registers of a thread for the boxes of C that are beside those that are stored first, where warpgroups end a
        tile one after the other, and others follow."""
        rows, line_bytes = self._out_box
        staged = self.staged_boxes * line_bytes
        if not (self.c_boxes and self.tiling.stagger) or staged >= self.tile[1] * self.operands.output.bytes:
            return 0
        return rows * staged // (WARPGROUP * b32.bytes)

    @property
    def deferred_columns(self) -> int:
        """The last columns of a tile that are stored beside the first products of the next one, where warpgroups end it
        one after the other: those that are staged last. 0 where all of a tile is stored before, as where operands of
        the epilogue are more than registers are left for, or it is a caller's, which may take any number of them."""
        operands, columns = self.operands, self.tile[1]
        if not (operands.out_boxes and self.tiling.stagger and self.schedule.knows_last) or self.tiling.swap_ab:
            return 0
        if getattr(self.epilogue, "__module__", EPILOGUES) != EPILOGUES:
            return 0
        staged = self.staged_boxes * self._out_box[1] // operands.output.bytes
        beside = sum(extra.type.bits for extra in operands.extras)
        if beside > DEFERRED_BESIDE or (beside and operands.batches != "none") or staged >= columns:
            return 0
        return 0 if self.c_boxes and columns > 2 * staged else columns % staged or staged

    @property
    def deferred_sums(self) -> int:
        """Registers of a thread for these."""
        return self.deferred_columns * GROUP_ROWS // WARPGROUP

    @property
    def staged_bytes(self) -> int:
        """What a warpgroup has to stage boxes, or what its warps do where a group of rows ends in a tile."""
        rows, line_bytes = self._out_box
        return max(self.staged_boxes * rows * line_bytes, WARPGROUP // WARP * self.warp_staged_bytes)

    @property
    def shared_bytes(self) -> int:
        """The ring, and where the output is staged."""
        return max(self.tiling.ring_bytes(self.operands), self.staged_at + self._staged_by_all)

    @property
    def _staged_by_all(self) -> int:
        """Bytes that all warpgroups stage at a time."""
        if not self.operands.out_boxes:
            return self.tiling.consumers * WARPGROUP // WARP * self.warp_staged_bytes
        return (1 if self.stages_in_turn else self.tiling.consumers) * self.staged_bytes

    @property
    def stages_in_turn(self) -> bool:
        """Whether warpgroups take turns at the memory in which they stage boxes. Where boxes of C come there while
        the products run, each has its own."""
        return self.tiling.pingpong and self.operands.out_boxes and not self.c_boxes

    @property
    def static_bytes(self) -> int:
        """The mbarriers of the ring, rounded up to where the tiles behind them may begin."""
        return PATTERN_BYTES

    @property
    def reuses_ring(self) -> bool:
        """Whether the output is staged in the ring, which nobody fills any more where a block has one tile. Boxes of C
        come while it is filled, to memory behind it."""
        return self.schedule.has_one_tile and not self.tiling.pingpong and not self.c_boxes

    @property
    def meets_before_staging(self) -> bool:
        """Whether warpgroups meet behind their products, since one stages where the other one reads. Of those that end
        one after the other each has rows of A for its boxes."""
        return self.reuses_ring and self.tiling.consumers > 1 and not self.boxes_in_ring

    @property
    def staged_at(self) -> int:
        """Behind the ring, through which the tiles of the next product go while one is stored; or in it."""
        return self.exchanged_at + self.schedule.exchanged(self.accumulators)

    @property
    def exchanged_at(self) -> int:
        """Where blocks of a cluster bring each other accumulators: behind the ring, which they may be filling yet; or
        in it."""
        return 0 if self.reuses_ring or self.exchanges_in_ring else self.tiling.ring_bytes(self.operands)

    @property
    def exchanges_in_ring(self) -> bool:
        """Whether blocks of a cluster bring each other accumulators in the ring, when all of them have read theirs to
        the end: where the ring leaves no room behind it."""
        exchanged = self.schedule.exchanged(self.accumulators)
        behind = self.tiling.ring_bytes(self.operands) + exchanged + self._staged_by_all
        return exchanged > 0 and behind > shared_bytes(ARCH) - self.static_bytes


@lru_cache(maxsize=4096)
def warpgroup_traits_of(
    tiling: WarpgroupTiling, operands: Operands, schedule: TileSchedule, epilogue: Callable[..., Any] | None
) -> WarpgroupTraits:
    """The same object for the same kernel, so that what follows from it is worked out once."""
    return WarpgroupTraits(tiling, operands, schedule, epilogue)
