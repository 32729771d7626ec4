"""A schedule and a problem make a launch: the grid, the workspace, and what the kernel is told beside its matrices."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from ptxdsl import Parameters
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call import residency
from ptxdsl.kernels.call.problem import GemmProblem
from ptxdsl.kernels.call.workspace import workspace
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig
from ptxdsl.kernels.store.function import canonical
from ptxdsl.kernels.tiles import schedule as tiles
from ptxdsl.kernels.traits import Traits
from ptxdsl.schedule import BatchedIdentityThreadblockSwizzle
from ptxdsl.schedule.problems import GemmShape

NO_WORKSPACE = 0, 0  # null addresses: nothing is shared


class Scheduled(NamedTuple):
    """`traits` are those of the kernel, which serves any plan; `fields` is what it takes for its schedule. A launch
    with a workspace belongs to `stream`."""

    traits: Traits
    grid: tuple[int, int, int]
    fields: Parameters
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


def schedule(problem: GemmProblem, traits: Traits, kernel: Kernel) -> Scheduled:
    """The launch of a kernel for a row-major problem.

    Raises ScheduleError for a grid that cannot be launched, or whose blocks would wait for others that cannot run.
    """
    device, stream = problem.place
    what = tiles.ProblemShape(GemmShape(problem.m, problem.n, problem.k), problem.batches)
    plan = traits.schedule.plan(what, traits.tile, lambda: resident_blocks(kernel, traits.general, device))
    shared: dict[str, Any] = {}
    if traits.schedule.shares:
        memory = workspace(device, stream, traits.sum, plan.sums, plan.semaphores) if plan.sums else NO_WORKSPACE
        shared = {"sums": memory[0], "semaphores": memory[1]}
    fields = traits.general.schedule.parameters(traits.sum)(**shared, **plan.numbers)
    return Scheduled(traits.general, plan.grid, fields, stream if plan.sums else None)


def resident_blocks(kernel: Kernel, traits: Traits, device: int | None) -> int:
    """How many blocks of a kernel run at the same time, says the driver; of an H200, by arithmetic, without a GPU."""
    return residency.resident_blocks(kernel, traits.threads, device, traits=traits)
