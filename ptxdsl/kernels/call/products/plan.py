"""Plan the launch of a product from its checked arrays."""

from __future__ import annotations

from typing import NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.paths.select import path_of
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.copies import CopiedOperands
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.call.products.values import gemm_values
from ptxdsl.kernels.product.operands import takes_wgmma
from ptxdsl.kernels.store.function import check_factor
from ptxdsl.kernels.traits.traits import Traits


class Kernels(NamedTuple):
    """The kernels of a product, one for each path."""

    sm80: Kernel
    sm90: Kernel

    def of(self, traits: Traits) -> Kernel:
        """Return the kernel of the path of these traits."""
        kernel: Kernel = getattr(self, traits.path)
        return kernel


def plan_of(
    kernels: Kernels,
    problem: GemmProblem,
    options: GemmOptions,
    factors: tuple[float, float],
    copies: CopiedOperands | None = None,
) -> LaunchPlan | None:
    """Return the launch of a row-major problem after `copies`, or after those that are needed or expected to save time.
    None if there is nothing to write. If a GPU has no memory for copies that another path does without, that path is
    used."""
    planned = options
    before: tuple[LaunchPlan, ...] = ()
    if copies is None:
        config, copies = GemmPlanner(problem, options).select()
        planned = options._replace(config=config)
    try:
        problem, before = copies.carry_out(problem)
    except LaunchError:
        if options.config is not None or takes_wgmma(problem.a.type, problem.out.type):
            raise
        planned = options
    traits = GemmPlanner(problem, planned).traits()
    check_factors(factors, traits)
    return planned_with(kernels, problem, traits, factors, before)


def planned_with(
    kernels: Kernels,
    problem: GemmProblem,
    traits: Traits,
    factors: tuple[float, float],
    before: tuple[LaunchPlan, ...],
) -> LaunchPlan | None:
    """Return the launch of a row-major problem with these traits, after the launches that write what it reads. None if
    there is nothing to write."""
    traits = path_of(traits).adapted(problem, traits)
    if not problem.m or not problem.n or problem.batches == 0:
        return None
    kernel = kernels.of(traits)
    launch = scheduled.schedule(problem, traits, kernel)
    values = gemm_values(problem, launch, factors)
    stream = problem.device_stream[1] if problem.is_in_workspace else launch.stream
    constants = {"traits": launch.traits}
    return LaunchPlan(kernel, launch.grid, traits.threads, values, constants, ("alpha", "beta"), stream, before)


def check_factors(factors: tuple[float, float], traits: Traits) -> None:
    """Raise LaunchError for an alpha or beta that is not representable in the type of the epilogue."""
    for name, number in zip(("alpha", "beta"), factors, strict=True):
        check_factor(name, number, traits.scalar)
