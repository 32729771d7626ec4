"""Plan the grid, the workspace and the parameters of a tile schedule for a problem."""

from __future__ import annotations

from typing import Any, NamedTuple

from ptxdsl import Parameters
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.launching import residency
from ptxdsl.kernels.call.launching.workspace import workspace
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.tiles.schedule import ProblemShape
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule.problems import GemmShape

NO_WORKSPACE = 0, 0  # null addresses: nothing is shared


class Scheduled(NamedTuple):
    """A planned schedule: the `traits` of the kernel, which serves any plan, and `fields`, the parameters of the
    schedule. A launch with a workspace is bound to `stream`."""

    traits: Traits
    grid: tuple[int, int, int]
    fields: Parameters
    stream: int | None = None


def schedule(problem: GemmProblem, traits: Traits, kernel: Kernel, **constants: Any) -> Scheduled:
    """Plan the launch of a kernel for a row-major problem; `constants` are its compile-time constants but the traits.

    Raises ScheduleError for a grid that cannot be launched, or whose blocks would wait for blocks that are not
    resident.
    """
    device, stream = problem.device_stream
    shape = ProblemShape(GemmShape(problem.m, problem.n, problem.k), problem.batches)
    plan = traits.schedule.plan(
        shape, traits.tile, lambda: resident_blocks(kernel, traits.general, device, **constants)
    )
    shared: dict[str, object] = {}
    if traits.schedule.shares:
        memory = workspace(device, stream, traits.sum, plan.sums, plan.semaphores) if plan.sums else NO_WORKSPACE
        shared = {"sums": memory[0], "semaphores": memory[1]}
    fields = traits.general.schedule.parameters(traits.sum)(**shared, **plan.numbers)
    return Scheduled(traits.general, plan.grid, fields, stream if plan.sums else None)


def resident_blocks(kernel: Kernel, traits: Traits, device: int | None, **constants: Any) -> int:
    """Return the number of resident blocks of a kernel, computed for an H200 if there is no GPU."""
    return residency.resident_blocks(kernel, traits.threads, device, traits=traits, **constants)
