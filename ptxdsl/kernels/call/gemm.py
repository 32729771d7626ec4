"""A call of gemm(): its arrays are checked, its kernel is chosen, and its launch is made and remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast

from ptxdsl.kernels.call.groups.batched import (
    ListedBatch,
    batch_of,
    candidates_by_wgmma,
    class_of_lists,
    general_text,
    is_list,
    lists_of,
    run_lists,
)
from ptxdsl.kernels.call.launching.launches import carry_out
from ptxdsl.kernels.call.launching.memory import CALLS, key_of, placement_of
from ptxdsl.kernels.call.products.candidates import candidates_of, class_traits, describe_class
from ptxdsl.kernels.call.products.configure import Choice, fused
from ptxdsl.kernels.call.products.lines import LineCopies, with_k
from ptxdsl.kernels.call.products.plan import Kernels, plan_of, plan_with_copies
from ptxdsl.kernels.call.products.problem import GemmProblem, problem_of
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.call.tuned import Trials, TuningSubject, text_of, timed_output, tuned_once, wants_tuning, with_best
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import NO_OPERANDS, WGMMA, GemmConfig
from ptxdsl.kernels.store.function import factors_of
from ptxdsl.kernels.tiles.choice import Schedule


def run(
    kernels: Kernels,
    a: object,
    b: object,
    c: object,
    out: object,
    alpha: float,
    beta: float,
    config: GemmConfig | Literal["tune"] | None,
    schedule: Schedule | None,
    split_k: int | None,
    reduction: str | None,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[object],
) -> Any:
    """out = epilogue(alpha·a@b + beta·c, *operands) by one of `kernels`, as `gemm` says. Returns out."""
    factors = factors_of(alpha, beta)
    arrays: tuple[Any, ...] = out, a, b, c
    said: tuple[type, ...] = (type(split_k),)  # True equals 1, and is none
    if config is not None or epilogue is not None or operands is not NO_OPERANDS:
        arrays, config, epilogue, operands = fused(arrays, config, epilogue, operands)
        said += tuple(map(type, operands))
    options: tuple[Any, ...] = out is None, c is None, schedule, split_k, reduction, epilogue, said
    key = key_of(kernels, config, options, a, b)
    launched = CALLS.launch(key, arrays, factors)
    if launched is not None:
        return launched
    is_tuned = wants_tuning(config)
    choice = Choice(None if is_tuned else cast("GemmConfig | None", config), schedule, split_k, reduction, epilogue)
    choice._replace(config=None).check()
    call = ProductCall(kernels, arrays, choice, factors, operands, options)
    return with_best(call.best() if is_tuned else None, lambda candidate: call.launch(candidate, key))


@dataclass(frozen=True)
class ProductCall:
    """What a call says: `arrays` are out, a, b, c and those of the operands of its epilogue; `options` are what it is
    remembered by beside the configuration."""

    kernels: Kernels
    arrays: tuple[Any, ...]
    choice: Choice
    factors: tuple[float, float]
    operands: Sequence[object]
    options: tuple[Any, ...]

    def launch(self, candidate: TuningCandidate | None, key: Hashable) -> Any:
        """Works the call out, with the configuration of a candidate or, without one, with its own, and launches it. It
        is remembered by a key. Returns out."""
        out, a, b, c, *_ = self.arrays
        choice = self.choice if candidate is None else self.choice._replace(config=candidate.config)
        if is_list(a) or is_list(b):
            return run_lists(self.kernels.warps, (a, b, c, out), choice, self.factors, self.operands, key)
        problem = self._problem()
        if candidate is not None and candidate.copied:
            copies = LineCopies.named(candidate.copied)
            plan = plan_with_copies(self.kernels, problem.row_major, choice, self.factors, copies)
        else:
            plan = plan_of(self.kernels, problem.row_major, choice, self.factors)
        return carry_out(plan, key, self.arrays, problem.out.owner, self.factors)

    def best(self) -> TuningCandidate | None:
        """What config="tune" stands for; None for the choice of the model: on the emulator, for arrays of other
        libraries than torch and CuPy, and where alpha is 0, so that nothing is multiplied."""
        out, a, b, c, *_ = self.arrays
        if self.factors[0] == 0:
            return None
        if is_list(a) or is_list(b):
            batch = batch_of(lists_of(a, b, c, out), self.factors)
            return self._best_of_lists(batch) if batch else None
        if placement_of(self.arrays) is None:
            return None
        selection = Selection(self._problem().row_major, self.choice)

        def trials() -> Trials:
            return Trials(candidates_of(selection), self._to_be_timed()._again, partial(self._text, selection))

        return self._best_of(selection, describe_class(selection), trials)

    def _problem(self) -> GemmProblem:
        (out, a, b, c, *_), config = self.arrays, self.choice.config
        alpha, beta = self.factors
        problem = problem_of(a, b, c, out, beta, self.choice.epilogue, self.operands).scaled(alpha)
        return with_k(problem, isinstance(config, GemmConfig) and config.atom == WGMMA)

    def _best_of_lists(self, batch: ListedBatch) -> TuningCandidate | None:
        """The same of lists: on the sm_80 path by the kernels of products, else by those of groups."""
        selection = Selection(batch.problem, self.choice, takes_warpgroups=False, all_operands=batch.facts)

        def text(candidate: TuningCandidate) -> str:
            by_wgmma = candidate.config.atom == WGMMA
            return general_text(batch, candidate.config) if by_wgmma else self._text(selection, candidate)

        def trials() -> Trials:
            timed = candidates_of(selection) + candidates_by_wgmma(batch, self.choice)
            return Trials(timed, self._to_be_timed()._again, text)

        return self._best_of(selection, f"{describe_class(selection)}, {class_of_lists(batch)}", trials)

    def _best_of(self, selection: Selection, shape_class: str, trials: Callable[[], Trials]) -> TuningCandidate | None:
        """The best of the trials of a class."""
        return tuned_once(TuningSubject("gemm", shape_class, selection.problem.device_stream), self.kernels, trials)

    def _text(self, selection: Selection, candidate: TuningCandidate) -> str:
        """PTX of the kernel of a candidate that is the same for all of the class."""
        traits = class_traits(selection, candidate)
        return text_of(self.kernels.of(traits), {"traits": traits.general}, selection.device)

    def _to_be_timed(self) -> ProductCall:
        """The same call; with another output where `out` is read, which must not change before the last launch: lists
        are new where there is a C."""
        out, a, b, c, *_ = self.arrays
        if not (is_list(a) or is_list(b)):
            return replace(self, arrays=(timed_output(self.arrays), *self.arrays[1:]))
        if out is None or c is None:
            return self
        return replace(self, arrays=(None, *self.arrays[1:]), options=(True, *self.options[1:]))

    def _again(self, candidate: TuningCandidate) -> Any:
        """A launch by a candidate, which is worked out once."""
        key = key_of(self.kernels, candidate, self.options, *self.arrays[1:3])
        launched = CALLS.launch(key, self.arrays, self.factors)
        return self.launch(candidate, key) if launched is None else launched
