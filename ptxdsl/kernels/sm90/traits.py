"""The traits of a kernel on sm_90a, with what TMA, wgmma and the epilogue need, and the configurations that they follow
from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import gcd
from typing import Any

import ptxdsl as pd
from ptxdsl.cached import cached_property
from ptxdsl.kernels.product.operands import CSource, Major, Operands, Scaling, Side
from ptxdsl.kernels.sm90.boxes import LINE_BYTES, PATTERN_BYTES, TileBoxes
from ptxdsl.kernels.sm90.tiling import (
    ARCH,
    GROUP_ROWS,
    IN_TURN,
    ROLE_REGISTERS,
    WARP,
    WARPGROUP,
    WarpgroupTiling,
    warpgroup_misfits,
)
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.traits import ConfigReader, Traits
from ptxdsl.runtime.limits import shared_bytes
from ptxdsl.schedule import HorizontalThreadblockSwizzle, IdentityThreadblockSwizzle, StreamKThreadblockSwizzle

MOST_STAGED_BYTES, STAGED_BY_THREE = 16384, 8192  # of a warpgroup; with three consumers, less
SHARE_ROWS = 32  # of a box of A if the rows of a group are divided evenly among its tiles


@dataclass(frozen=True)
class WarpgroupTraits(Traits):
    """Traits whose tiling is a WarpgroupTiling."""

    path = "sm90"
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
        """True if a warpgroup skips tiles in which it has no rows: the last ones of groups."""
        return self.schedule.has_groups and self.tiling.rows_apart > 0 and self.tiling.consumers > 1

    @property
    def shares_rows(self) -> bool:
        """True if the rows of a group are divided evenly among its tiles: wgmma takes any multiple of 16 rows as the
        columns of its products. Not with scales, which are applied to whole tiles."""
        is_plain = self.operands.a_major is Major.K and self.operands.scaling is None
        return self.tiling.swap_ab and is_plain and self.tile[0] % GROUP_ROWS == 0

    @property
    def streamed(self) -> Side:
        """The operand that is loaded with evict_first."""
        return Side.A if self.schedule.streamed else self.operands.streamed

    @property
    def map_of_rows(self) -> pd.TensorMap:
        """The kernel parameter for the rows of all groups."""
        return self.a.map_of(SHARE_ROWS) if self.shares_rows else self.a.map

    @property
    def from_registers(self) -> bool:
        """True if the first factor of wgmma, which is B if A and B are swapped, comes from registers."""
        return self.operands.from_registers is (Side.B if self.tiling.swap_ab else Side.A)

    @property
    def atom(self) -> str:
        return self.tiling.atom(self.operands.inputs)

    @cached_property
    def out_map(self) -> pd.TensorMap:
        """The kernel parameter for an output that is stored in boxes. A box has the 64 rows of a warpgroup, and rows as
        long as the tile allows; of a swapped tile it has the 64 columns of a warpgroup, and up to 64 rows."""
        output, (rows, line_bytes) = self.operands.output, self._out_box
        box = rows, line_bytes // output.bytes
        return pd.TensorMap(output, (1, *box) if self.operands.is_batched else box, swizzle=line_bytes)

    @property
    def _out_box(self) -> tuple[int, int]:
        """The rows of a box of the output, and the bytes of each."""
        swap_ab = self.tiling.swap_ab
        line_bytes = gcd((GROUP_ROWS if swap_ab else self.tile[1]) * self.operands.output.bytes, LINE_BYTES)
        return gcd(GROUP_ROWS, self.tile[0]) if swap_ab else GROUP_ROWS, line_bytes

    @property
    def c_boxes(self) -> bool:
        """True if C is loaded in boxes as well."""
        return self.operands.out_boxes and self.operands.c is not CSource.NONE

    @property
    def staged_boxes(self) -> int:
        """The boxes that a warpgroup stages at a time, at most."""
        m, n, _ = self.tile
        rows, line_bytes = self._out_box
        boxes = m // rows if self.tiling.swap_ab else n * self.operands.output.bytes // line_bytes
        most = MOST_STAGED_BYTES if self.tiling.consumers <= IN_TURN else STAGED_BY_THREE
        return min(most // (rows * line_bytes), boxes)

    @property
    def boxes_in_ring(self) -> int:
        """The boxes that a stage of the ring holds if the last tile of a block is staged there, since no loads follow:
        in the rows of A that this warpgroup alone has read or, in ping-pong, in all of the stage. 0 if tiles are only
        staged past the end of the ring."""
        tiling, (rows, line_bytes) = self.tiling, self._out_box
        is_known = self.operands.out_boxes and not self.c_boxes and not tiling.swap_ab
        if not is_known or not (tiling.pingpong or tiling.stagger):
            return 0
        each = (self.stage_bytes if tiling.pingpong else GROUP_ROWS * LINE_BYTES) // (rows * line_bytes)
        count = tiling.row_blocks * self.tile[1] * self.operands.output.bytes // line_bytes
        return each if each * tiling.stages >= count else 0

    @property
    def staged_bytes(self) -> int:
        """The bytes in which a warpgroup stages boxes."""
        rows, line_bytes = self._out_box
        return self.staged_boxes * rows * line_bytes

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory: the ring, and the staged output."""
        return max(self.tiling.ring_bytes(self.operands), self.staged_at + self._staged_by_all)

    @property
    def _staged_by_all(self) -> int:
        """The bytes that all warpgroups stage at a time."""
        if not self.operands.out_boxes:
            return self.tiling.consumers * WARPGROUP // WARP * self.warp_staged_bytes
        return (1 if self.stages_in_turn else self.tiling.consumers) * self.staged_bytes

    @property
    def stages_in_turn(self) -> bool:
        """True if warpgroups alternate in the memory for staged boxes. If C is loaded there during the mainloop, each
        has its own."""
        return self.tiling.pingpong and self.operands.out_boxes and not self.c_boxes

    @property
    def static_bytes(self) -> int:
        """The bytes of the mbarriers, rounded up to the alignment of the tiles that follow."""
        return PATTERN_BYTES

    @property
    def reuses_ring(self) -> bool:
        """True if the output is staged in the ring, because a block has one tile. C is loaded while the ring is filled,
        so that it needs memory of its own."""
        return self.schedule.has_one_tile and not self.tiling.pingpong and not self.c_boxes

    @property
    def meets_before_staging(self) -> bool:
        """True if warpgroups synchronise after their products, since one stages where the other reads. Staggered
        warpgroups stage in the rows of A that they alone have read."""
        return self.reuses_ring and self.tiling.consumers > 1 and not self.boxes_in_ring

    @property
    def staged_at(self) -> int:
        """The offset of the staged output: past the end of the ring, which the next tile fills meanwhile, or 0."""
        return self.exchanged_at + self.schedule.exchanged(self.accumulators)

    @property
    def exchanged_at(self) -> int:
        """The offset at which blocks of a cluster exchange accumulators: past the end of the ring, which may be in use,
        or in it."""
        return 0 if self.reuses_ring or self.exchanges_in_ring else self.tiling.ring_bytes(self.operands)

    @property
    def exchanges_in_ring(self) -> bool:
        """True if blocks of a cluster exchange accumulators in the ring, after all of them have read it: if it leaves
        no room."""
        exchanged = self.schedule.exchanged(self.accumulators)
        behind = self.tiling.ring_bytes(self.operands) + exchanged + self._staged_by_all
        return exchanged > 0 and behind > shared_bytes(ARCH) - self.static_bytes


@lru_cache(maxsize=4096)
def warpgroup_traits_of(
    tiling: WarpgroupTiling, operands: Operands, schedule: TileSchedule, epilogue: Callable[..., Any] | None
) -> WarpgroupTraits:
    """Return the same object for the same kernel, so that its properties are computed once."""
    return WarpgroupTraits(tiling, operands, schedule, epilogue)


WGMMA = "wgmma"
ONE_TILE = IdentityThreadblockSwizzle(1), HorizontalThreadblockSwizzle()


class WarpgroupConfigs(ConfigReader):
    """Reads configurations whose atom is "wgmma"."""

    path, chooses_tiles = "sm90", True

    def reads(self, atom: object) -> bool:
        return isinstance(atom, str) and atom == WGMMA

    def misfits(self, config: Any) -> Iterator[str]:
        yield from warpgroup_misfits(config)
        if type(config.copies_rows) is not bool:
            yield f"copies_rows is {config.copies_rows!r}; it takes True or False"

    def tiling(self, config: Any) -> WarpgroupTiling:
        m, n, k = config.tile
        return WarpgroupTiling((m, n, k), config.stages, config.swap_ab, config.pingpong, config.stagger)

    def traits(self, config: Any, operands: Operands, arch: str) -> WarpgroupTraits:
        return warpgroup_traits_of(config.tiling, operands, config.tile_schedule, config.epilogue)

    def label(self, config: Any) -> str:
        """Return such as "swap 16x64/10 cluster 2"."""
        (m, n, _), schedule = config.tile, config.schedule
        name = f"{'swap ' * config.swap_ab}{'pingpong ' * config.pingpong}{m}x{n}/{config.stages}"
        if isinstance(schedule, ClusterStrips):
            name += f" clusters {'x'.join(map(str, schedule.blocks))}"
        elif config.split_k > 1:
            name += f" {config.reduction} {config.split_k}"
        elif isinstance(schedule, StreamKThreadblockSwizzle):
            name += " stream-k"
        elif schedule in ONE_TILE:
            name += " one tile"
        return name + f" staggered {config.stagger}" * (config.stagger > 0)
