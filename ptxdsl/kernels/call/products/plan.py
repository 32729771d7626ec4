"""From the checked arrays of a product to its launch."""

from __future__ import annotations

from typing import NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.paths.select import path_of
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.configure import Choice
from ptxdsl.kernels.call.products.lines import LineCopies
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.call.products.values import gemm_values
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import takes_wgmma
from ptxdsl.kernels.store.function import check_factor
from ptxdsl.kernels.traits.traits import Traits


class Kernels(NamedTuple):
    """The kernels of a product, by the path that its traits are of."""

    sm80: Kernel
    sm90: Kernel

    def of(self, traits: Traits) -> Kernel:
        kernel: Kernel = getattr(self, traits.path)
        return kernel


def plan_of(
    kernels: Kernels,
    problem: GemmProblem,
    choice: Choice,
    factors: tuple[float, float],
    copies: LineCopies | None = None,
) -> LaunchPlan | None:
    """Return the launch of a row-major problem after `copies`, or after those that are expected to be worth their time;
    None if there is nothing to write."""
    before: tuple[LaunchPlan, ...]
    if copies is not None:
        problem, before = copies.carry_out(problem)
    else:
        problem, before, config = _with_lines(problem, choice)
        choice = choice._replace(config=config)
    traits = Selection(problem, choice).traits()
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
    problem, traits = path_of(traits).adapted(problem, traits)
    if not problem.m or not problem.n or problem.batches == 0:
        return None
    kernel = kernels.of(traits)
    launch = scheduled.schedule(problem, traits, kernel)
    values = gemm_values(problem, launch, factors)
    stream = problem.device_stream[1] if problem.is_in_workspace else launch.stream
    constants = {"traits": launch.traits}
    return LaunchPlan(kernel, launch.grid, traits.threads, values, constants, ("alpha", "beta"), stream, before)


def _with_lines(problem: GemmProblem, choice: Choice) -> tuple[GemmProblem, tuple[LaunchPlan, ...], GemmConfig | None]:
    """Return the problem with copies of operands that wgmma needs or that save time, the launches that make them, and
    the configuration for them. If a GPU has no memory for copies that another path does without, return the problem as
    it is and the configuration of the caller."""
    config, copies = Selection(problem, choice).chosen()
    try:
        return (*copies.carry_out(problem), config)
    except LaunchError:
        if choice.config is not None or takes_wgmma(problem.a.type, problem.out.type):
            raise
    return problem, (), None


def check_factors(factors: tuple[float, float], traits: Traits) -> None:
    """Raise LaunchError for an alpha or beta that the type in which the output is computed does not have."""
    for name, number in zip(("alpha", "beta"), factors, strict=True):
        check_factor(name, number, traits.scalar)
