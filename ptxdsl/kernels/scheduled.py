"""What a schedule makes of a GEMM: the grid, and what the kernel must be told beside its matrices."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from ptxdsl.errors import ScheduleError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels import residency
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig
from ptxdsl.kernels.function import canonical
from ptxdsl.kernels.persistent import blocks_of, raster_numbers
from ptxdsl.kernels.problem import Problem
from ptxdsl.kernels.split_k import workspace_elements
from ptxdsl.kernels.stream_k import semaphores_of, slots_of
from ptxdsl.kernels.workspace import workspace
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    PersistentScheduler,
    StreamKPlan,
    StreamKThreadblockSwizzle,
    ThreadblockSwizzle,
)

ANY_STREAM_K = StreamKThreadblockSwizzle()
ANY_SPLIT = 2
MOST_ITEMS = 1 << 31
NO_WORKSPACE = 0, 0  # null addresses: nothing is shared


class Scheduled(NamedTuple):
    """`config` is that of the kernel, one for any plan. A launch with a workspace belongs to `stream`."""

    config: GemmConfig
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...] = ()
    stream: int | None = None


def specialise(config: GemmConfig, **fields: Any) -> GemmConfig:
    """A configuration with other fields."""
    try:
        return _specialised(config, **fields)
    except TypeError:  # a value that is not hashable is none that a field takes
        return replace(config, **fields)


@lru_cache(maxsize=4096, typed=True)  # True is none of the numbers that a field takes, and equals 1
def _specialised(config: GemmConfig, **fields: Any) -> GemmConfig:
    return replace(config, **fields)


def settled(config: GemmConfig | None) -> GemmConfig | None:
    """A configuration of a call whose function is known by all that it reads now."""
    epilogue = getattr(config, "epilogue", None)
    return config if config is None or epilogue is None else specialise(config, epilogue=canonical(epilogue))


def for_batches(config: GemmConfig) -> GemmConfig:
    """A configuration of batches: z of the grid counts them past 65535 too, where no other schedule is asked for."""
    if config.schedule != ROWS_OF_EIGHT:
        return config
    return specialise(config, schedule=BatchedIdentityThreadblockSwizzle())


def schedule(problem: Problem, config: GemmConfig, kernel: Kernel) -> Scheduled:
    """The grid and the kernel's first arguments of `rest` for a row-major problem.

    Raises ScheduleError for a grid that cannot be launched, or whose blocks would wait for others that cannot run.
    """
    found = config.schedule
    if isinstance(found, StreamKThreadblockSwizzle):
        made = _stream_k(problem, config, found, kernel)
    elif isinstance(found, PersistentScheduler):
        made = _persistent(problem, config, found, kernel)
    else:
        made = _by_swizzle(problem, config, found)
    return made._replace(arguments=(*made.arguments, *_place(problem, config)))


def _sizes(problem: Problem) -> tuple[int, int, int]:
    return problem.m, problem.n, problem.k


def _by_swizzle(problem: Problem, config: GemmConfig, swizzle: ThreadblockSwizzle) -> Scheduled:
    depth = config.split_k if problem.batches is None else problem.batches
    tiled = swizzle.tiled_shape(_sizes(problem), config.tile, depth)
    grid = swizzle.grid_shape(tiled)
    if not config.is_split:
        return Scheduled(config, grid)
    device, stream = problem.place
    tiles = tiled.m * tiled.n
    memory = workspace(device, stream, config.sum, workspace_elements(config, tiles), 2 * tiles)
    return Scheduled(specialise(config, split_k=ANY_SPLIT), grid, memory, stream)


def _persistent(problem: Problem, config: GemmConfig, scheduler: PersistentScheduler, kernel: Kernel) -> Scheduled:
    blocks = resident_blocks(kernel, config, problem.place[0])
    clusters = max(1, blocks // (scheduler.cluster[0] * scheduler.cluster[1]))
    batches = 1 if problem.batches is None else problem.batches
    plan = scheduler.plan(_sizes(problem), config.tile, blocks, batches=batches, max_active_clusters=clusters)
    if plan.items > MOST_ITEMS:
        raise ScheduleError(
            f"{plan.items} work items, with those that clusters and strips add, are more than 2**31",
            help="take larger tiles, or compute the problem in parts",
        )
    return Scheduled(config, (blocks_of(plan), 1, 1), raster_numbers(plan))


def _stream_k(problem: Problem, config: GemmConfig, swizzle: StreamKThreadblockSwizzle, kernel: Kernel) -> Scheduled:
    batches = 1 if problem.batches is None else problem.batches
    plan = swizzle.plan(_sizes(problem), config.tile, config.split_k, batches=batches)
    made = specialise(config, schedule=ANY_STREAM_K, split_k=1)
    if not plan.sk_blocks:
        return Scheduled(made, plan.grid, (*NO_WORKSPACE, *plan.numbers))
    device, stream = problem.place
    _check_resident(plan, resident_blocks(kernel, made, device))
    elements = slots_of(plan) * config.tile[0] * config.tile[1]
    memory = workspace(device, stream, config.sum, elements, semaphores_of(plan))
    return Scheduled(made, plan.grid, (*memory, *plan.numbers), stream)


def _check_resident(plan: StreamKPlan, resident: int) -> None:
    """Blocks wait for parts that others leave: all that share tiles must be able to run at the same time."""
    if plan.sk_blocks > resident:
        raise ScheduleError(
            f"{plan.swizzle.name}: {plan.sk_blocks} blocks would wait for each other's parts, and {resident} of this "
            "kernel can be resident on the GPU",
            help="make it for this GPU: StreamKThreadblockSwizzle(multiprocessors=…, occupancy=…); fewer registers or "
            "less shared memory a block let more of them run at the same time",
        )


def resident_blocks(kernel: Kernel, config: GemmConfig, device: int | None) -> int:
    """How many blocks of a kernel run at the same time, says the driver; of an H200, by arithmetic, without a GPU."""
    return residency.resident_blocks(kernel, config.threads, device, config=config)


def _place(problem: Problem, config: GemmConfig) -> tuple[Any, ...]:
    """Where batches in one array lie."""
    if config.batches != "strided":
        return ()
    c = problem.c.batch_stride if problem.c and config.c == "separate" else 0
    return problem.batches, problem.a.batch_stride, problem.b.batch_stride, c, problem.out.batch_stride
