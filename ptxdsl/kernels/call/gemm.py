"""Calls of gemm(): their arrays, the choice of their kernel, and their launch."""

from __future__ import annotations

from typing import Any

from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.groups.batched import BatchCall, is_list
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.products.candidates import candidates_of, class_traits, describe_class
from ptxdsl.kernels.call.products.lines import LineCopies, with_k
from ptxdsl.kernels.call.products.plan import plan_of, plan_with_copies
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.call.tuned import TuningSubject
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import WGMMA, GemmConfig


def product(call: PublicCall) -> TunableCall:
    """Return the problem of a call of gemm(): of lists of matrices, or of arrays."""
    _, a, b, *_ = call.arrays
    return BatchCall(call) if is_list(a) or is_list(b) else GemmCall(call)


class GemmCall:
    """A call of gemm() with arrays: one product, or batches of them."""

    is_empty = False

    def __init__(self, call: PublicCall) -> None:
        (out, a, b, c, *_), choice = call.arrays, call.choice
        self.kernels, self.choice, self.factors = call.kernels, choice, call.factors
        problem = problem_of(a, b, c, out, call.beta, choice.epilogue, call.operands).scaled(call.alpha)
        asks_wgmma = isinstance(choice.config, GemmConfig) and choice.config.atom == WGMMA
        self.problem = with_k(problem, asks_wgmma)
        self.selection = Selection(self.problem.row_major, choice)

    @property
    def out(self) -> Any:
        """The output as the caller gets it."""
        return self.problem.out.owner

    def plan(self, candidate: TuningCandidate | None) -> LaunchPlan | None:
        """Return the launch; None if there is nothing to write."""
        choice = self.choice if candidate is None else self.choice._replace(config=candidate.config)
        if candidate is not None and candidate.copied:
            copies = LineCopies.named(candidate.copied)
            return plan_with_copies(self.kernels, self.problem.row_major, choice, self.factors, copies)
        return plan_of(self.kernels, self.problem.row_major, choice, self.factors)

    @property
    def subject(self) -> TuningSubject:
        """What the best configuration is kept under."""
        return TuningSubject("gemm", describe_class(self.selection), self.problem.device_stream)

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class."""
        return candidates_of(self.selection)

    def traced(self, candidate: TuningCandidate) -> tuple[Kernel, dict[str, object]]:
        """Return the kernel of a candidate, and its constants."""
        traits = class_traits(self.selection, candidate)
        return self.kernels.of(traits), {"traits": traits.general}
