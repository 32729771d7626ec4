"""Calls of gemm(): their arrays, the choice of their kernel, and their launch."""

from __future__ import annotations

from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.groups.batched import BatchCall, is_list
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.paths.path import Request
from ptxdsl.kernels.call.paths.select import path_of
from ptxdsl.kernels.call.products.lines import LineCopies, with_k
from ptxdsl.kernels.call.products.plan import plan_of
from ptxdsl.kernels.call.products.problem import GemmProblem, problem_of
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import GemmConfig


def product(call: PublicCall) -> CheckedCall:
    """Return a call of gemm(), checked: with lists of matrices, or with arrays."""
    _, a, b, *_ = call.arrays
    return BatchCall(call) if is_list(a) or is_list(b) else GemmCall(call)


class GemmCall(CheckedCall):
    """A call of gemm() with arrays: one product, or batches of them."""

    name = "gemm"
    problem: GemmProblem

    def __init__(self, call: PublicCall) -> None:
        (out, a, b, c, *_), choice = call.arrays, call.choice
        self.kernels, self.choice, self.factors = call.kernels, choice, call.factors
        problem = problem_of(a, b, c, out, call.beta, choice.epilogue, call.operands).scaled(call.alpha)
        asks_tma = isinstance(choice.config, GemmConfig) and path_of(choice.config).uses_tma
        problem = with_k(problem, asks_tma)
        self.out, self.problem = problem.out.owner, problem.row_major
        self.selection, self.said = Selection(self.problem, choice), choice.said

    @property
    def request(self) -> Request:
        """The request to the paths."""
        return self.selection.request

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch; None if there is nothing to write."""
        problem, choice = self.problem, self.choice._replace(config=config)
        copies = LineCopies.named(copied) if copied else None
        return plan_of(self.kernels, problem, choice, self.factors, copies)

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class."""
        return self.selection.candidates()
