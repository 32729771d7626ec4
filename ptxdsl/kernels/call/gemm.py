"""Calls of gemm(): check the arrays, and plan the launch."""

from __future__ import annotations

from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.groups.batched import BatchCall, is_list
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.paths.path import Request
from ptxdsl.kernels.call.paths.select import path_of
from ptxdsl.kernels.call.products.copies import CopiedOperands, with_k
from ptxdsl.kernels.call.products.plan import plan_of
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import GemmProblem, problem_of
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import GemmConfig


def product(call: PublicCall) -> TunableCall:
    """Return a checked call of gemm(), with lists of matrices or with arrays."""
    _, a, b, *_ = call.arrays
    return BatchCall(call) if is_list(a) or is_list(b) else GemmCall(call)


class GemmCall(TunableCall):
    """A call of gemm() with arrays: one product, or batches of them."""

    name = "gemm"
    problem: GemmProblem

    def __init__(self, call: PublicCall) -> None:
        (out, a, b, c, *_), options = call.arrays, call.gemm_options
        self.kernels, self.options, self.factors = call.kernels, options, call.factors
        problem = problem_of(a, b, c, out, call.beta, options.epilogue, call.operands).scaled(call.alpha)
        asks_tma = isinstance(options.config, GemmConfig) and path_of(options.config).uses_tma
        problem = with_k(problem, asks_tma)
        self.out, self.problem = problem.out.owner, problem.row_major
        self.planner, self.class_suffix = GemmPlanner(self.problem, options), options.class_suffix

    @property
    def request(self) -> Request:
        """The request to the paths."""
        return self.planner.request

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch; None if there is nothing to write."""
        problem, options = self.problem, self.options._replace(config=config)
        copies = CopiedOperands.named(copied) if copied else None
        return plan_of(self.kernels, problem, options, self.factors, copies)

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return the tuning candidates of the shape class."""
        return self.planner.candidates()
