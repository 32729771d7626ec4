"""The stages of a ring for which shared memory has room next to the staged output, and how many blocks of such a ring a
multiprocessor holds."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import ARCH, REGISTER_FILE, WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.runtime.limits import shared_bytes

MOST_STAGES, SWAPPED_STAGES, LEAST_STAGES = 8, 16, 3
LEAST_SWAPPED_OF_TWO = 5  # stages of swapped tiles of two blocks of a multiprocessor
RESERVED_BYTES = 1024  # of shared memory, in each block that is not alone
RESIDENT, BESIDE_ACCUMULATORS = 2, 13  # blocks of a multiprocessor; registers next to those that a tiling counts
STAGGER = 3  # iterations by which a warpgroup trails the one before at the end of a tile
PERSISTENT = Strips()


@lru_cache(maxsize=4096)
def depths(
    tile: tuple[int, int], swap_ab: bool, operands: Operands, schedule: TileSchedule = PERSISTENT
) -> tuple[tuple[int, int], ...]:
    """Lengths of the ring, and how many blocks of each a multiprocessor holds."""
    extents = *tile, LINE_BYTES // operands.inputs.bytes
    tiling = shortest(extents, swap_ab)
    registers = tiling.threads * (tiling.registers(operands) + BESIDE_ACCUMULATORS)
    most = max(1, min(RESIDENT, REGISTER_FILE // registers))
    known = {stages_of(extents, operands, swap_ab, n, schedule): n for n in range(1, most + 1)}
    least = {1: LEAST_STAGES, 2: LEAST_SWAPPED_OF_TWO if swap_ab else LEAST_STAGES}
    return tuple((stages, resident) for stages, resident in known.items() if stages >= least[resident])


@lru_cache(maxsize=4096)
def stages_of(
    tile: tuple[int, int, int],
    operands: Operands,
    swap_ab: bool = False,
    resident: int = 1,
    schedule: TileSchedule = PERSISTENT,
    pingpong: bool = False,
) -> int:
    """The stages for which shared memory has room next to the staged output, up to MOST_STAGES; 0 for too few."""
    beside = _beside_ring(tile, operands, swap_ab, schedule, pingpong)
    if beside is None:
        return 0
    room = shared_bytes(ARCH) // resident - RESERVED_BYTES * (resident > 1) - beside
    stage_bytes = shortest(tile, swap_ab, pingpong).stage_bytes(operands.inputs)
    return min(SWAPPED_STAGES if swap_ab else MOST_STAGES, room // stage_bytes)


@lru_cache(maxsize=4096)
def _beside_ring(
    tile: tuple[int, int, int], operands: Operands, swap_ab: bool, schedule: TileSchedule, pingpong: bool
) -> int | None:
    """The bytes of shared memory that a block needs next to its ring; None if a ring of two stages does not fit."""
    is_whole = not swap_ab and schedule.has_whole_tiles
    may_be_boxed = is_whole and operands.output.bits == 16 and not any(extra.is_matrix for extra in operands.extras)
    boxed = (False, True) if may_be_boxed else (swap_ab and operands.out_boxes,)
    tiling = shortest(tile, swap_ab, pingpong)
    if any(tiling.misfits(operands.inputs)) or any(tiling.shortages(operands, ARCH)):
        return None
    known = [WarpgroupTraits(tiling, replace(operands, out_boxes=each), schedule) for each in boxed]
    needed = max(traits.shared_bytes + traits.static_bytes for traits in known)
    return None if needed > shared_bytes(ARCH) else needed - tiling.ring_bytes(operands)


@lru_cache(maxsize=1024)
def shortest(tile: tuple[int, int, int], swap_ab: bool = False, pingpong: bool = False) -> WarpgroupTiling:
    """A tiling with a ring of two stages, the fewest."""
    return WarpgroupTiling(tile, 2, swap_ab, pingpong)


def most_stagger(stages: int, warpgroups: int = 2) -> int:
    """The iterations by which each of the warpgroups of a tile trails the one before, with a ring of `stages`."""
    return min(STAGGER, (stages - 1) // (warpgroups - 1))
