"""Special registers, each computed as an array over all lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ...errors import EmulationError
from ...isa.special import SPECIAL_REGISTERS
from .residents import Residents


class Chip(Protocol):
    """The properties of the chip that special registers return."""

    clock: int
    multiprocessors: int
    shared_bytes: int
    total_shared_bytes: int
    reserved: int
    workspace: int
    explicit_cluster: bool


RESERVED_BYTES = 1024  # bytes of shared memory reserved by the system, followed by as many that programs may use


CYCLES_PER_STEP = 4
NANOSECONDS_PER_STEP = 2
_CHANGING = {
    "%clock": lambda clock: clock * CYCLES_PER_STEP,
    "%clock_hi": lambda clock: clock * CYCLES_PER_STEP >> 32,
    "%clock64": lambda clock: clock * CYCLES_PER_STEP,
    "%globaltimer": lambda clock: clock * NANOSECONDS_PER_STEP,
    "%globaltimer_lo": lambda clock: clock * NANOSECONDS_PER_STEP,
    "%globaltimer_hi": lambda clock: clock * NANOSECONDS_PER_STEP >> 32,
}
_ONE = np.uint32(1)
Value = int | np.ndarray
_AXES = {"x": 0, "y": 1, "z": 2}

_FIXED: dict[str, Callable[[Chip, Residents], Value]] = {
    "%laneid": lambda machine, r: r.lane,
    "%warpid": lambda machine, r: r.warp,
    "%nwarpid": lambda machine, r: 64,
    "%smid": lambda machine, r: r.blocks[r.slot] % machine.multiprocessors,
    "%nsmid": lambda machine, r: machine.multiprocessors,
    "%gridid": lambda machine, r: 1,
    "%lanemask_eq": lambda machine, r: _ONE << r.lane,
    "%lanemask_lt": lambda machine, r: (_ONE << r.lane) - _ONE,
    "%lanemask_le": lambda machine, r: ((_ONE << r.lane) - _ONE) | (_ONE << r.lane),
    "%lanemask_gt": lambda machine, r: ~(((_ONE << r.lane) - _ONE) | (_ONE << r.lane)),
    "%lanemask_ge": lambda machine, r: ~((_ONE << r.lane) - _ONE),
    "%dynamic_smem_size": lambda machine, r: machine.shared_bytes,
    "%total_smem_size": lambda machine, r: machine.total_shared_bytes,
    "%aggr_smem_size": lambda machine, r: machine.total_shared_bytes,
    "%reserved_smem_offset_begin": lambda machine, r: machine.reserved,
    "%reserved_smem_offset_end": lambda machine, r: machine.reserved + 2 * RESERVED_BYTES,
    "%reserved_smem_offset_cap": lambda machine, r: 2 * RESERVED_BYTES,
    "%reserved_smem_offset_0": lambda machine, r: machine.reserved,
    "%reserved_smem_offset_1": lambda machine, r: machine.reserved + RESERVED_BYTES,
    "%is_explicit_cluster": lambda machine, r: machine.explicit_cluster,
    "%cluster_ctarank": lambda machine, r: r.rank[r.slot],
    "%cluster_nctarank": lambda machine, r: r.cluster_blocks,
    "%current_graph_exec": lambda machine, r: 0,
    "%envreg1": lambda machine, r: machine.workspace >> 32,  # the grid barrier of cooperative groups
    "%envreg2": lambda machine, r: machine.workspace,
}  # fmt: skip
"""Without clusters, a block is a cluster of its own."""

_VECTORS: dict[str, Callable[[Chip, Residents, int], Value]] = {
    "%tid": lambda machine, r, axis: r.thread_index[axis],
    "%ntid": lambda machine, r, axis: r.block[axis],
    "%ctaid": lambda machine, r, axis: r.block_index[axis],
    "%nctaid": lambda machine, r, axis: r.grid[axis],
    "%clusterid": lambda machine, r, axis: r.block_index[axis] // r.cluster[axis],
    "%nclusterid": lambda machine, r, axis: r.grid[axis] // r.cluster[axis],
    "%cluster_ctaid": lambda machine, r, axis: r.block_index[axis] % r.cluster[axis],
    "%cluster_nctaid": lambda machine, r, axis: r.cluster[axis],
}


def changes(name: str) -> bool:
    """True if a register has a different value at every step."""
    return name in _CHANGING


def special_register(machine: Chip, residents: Residents, name: str) -> np.ndarray:
    """Return a special register of all lanes. Raises EmulationError for those that only hardware has."""
    dtype = SPECIAL_REGISTERS[name].type.dtype
    value = _value(machine, residents, name)
    if isinstance(value, np.ndarray):
        return value.astype(dtype)
    wrapped = int(value) % (1 << 8 * dtype.itemsize)
    return np.full(residents.lanes, wrapped, dtype)


def _value(machine: Chip, residents: Residents, name: str) -> Value:
    if name in _CHANGING:
        return _CHANGING[name](machine.clock)
    if name in _FIXED:
        return _FIXED[name](machine, residents)
    vector, _, axis = name.partition(".")
    if vector in _VECTORS and axis in _AXES:
        return _VECTORS[vector](machine, residents, _AXES[axis])
    if axis == "w":
        return 0
    raise EmulationError(f"the emulator has no {name}", help="it reads state that only a GPU has")
