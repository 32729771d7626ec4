"""The call of a public function: launched at once if it is remembered, else checked, planned, launched, remembered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.launching.memory import CALLS, LISTS, common_library, key_of
from ptxdsl.kernels.call.paths.path import Path, Request
from ptxdsl.kernels.call.paths.select import PATHS, trials_of_class
from ptxdsl.kernels.call.products.options import GemmOptions, check_is_config, fused
from ptxdsl.kernels.call.tuned import Trials, TuningSubject, timed_output, tuned, wants_tuning, with_best
from ptxdsl.kernels.candidates.facts import class_name
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import NO_OPERANDS, GemmConfig, specialise
from ptxdsl.kernels.store.function import factors_of

Candidates: TypeAlias = Sequence[tuple[float, TuningCandidate]]
"""Tuning candidates, with their estimates in microseconds."""


class CallPlan(Protocol):
    """One or more launches with all their arguments."""

    def carry_out(self, key: Hashable, arrays: tuple[Any, ...], out: Any, factors: tuple[float, ...]) -> None:
        """Launch, and remember the launch by the key of the call."""


class CallProblem(Protocol):
    """The checked arrays of a call."""

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""


class CheckedCall(ABC):
    """A call whose arrays are checked: they are its `problem`.

    A subclass is a public function: it checks the arrays of a `PublicCall` when it is made, and raises LaunchError for
    those that do not fit. `out` is the output in the form that the caller gets.
    """

    name: str
    is_empty = False  # there is nothing to write
    problem: CallProblem
    out: Any
    kernels: Any

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return self.problem.device_stream

    @abstractmethod
    def plan(self, config: GemmConfig | None, copied: str = "") -> CallPlan | None:
        """Return the launch with a configuration, by default the selected one, after copies of the operands that are
        named. None if there is nothing to write."""


class TunableCall(CheckedCall):
    """A call with a configuration that the paths select, and that config="tune" measures.

    `class_suffix` are the options of the caller that tables of measured winners do not know.
    """

    paths: Sequence[Path] = PATHS
    class_suffix = ""

    @property
    @abstractmethod
    def request(self) -> Request:
        """The request to the paths."""

    @property
    def shape_class(self) -> str:
        """The name of the shape class in tables of measured winners."""
        return class_name(self.request.facts, self.request.form) + self.class_suffix

    def candidates(self) -> Candidates:
        """Return the tuning candidates of the shape class, none if there is nothing to multiply."""
        return trials_of_class(self.request, self.paths)


def launch(
    check: Callable[[PublicCall], CheckedCall],
    kernels: Any,
    arrays: tuple[Any, ...],
    config: GemmConfig | Literal["tune"] | None,
    options: tuple[Any, ...],
    factors: tuple[Any, ...] = (),
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[object] = NO_OPERANDS,
    verbatim: tuple[Any, ...] = (),
) -> Any:
    """Launch one of `kernels`, and return the output. The parameters are the fields of `PublicCall`."""
    factors = factors_of(*factors) if factors else factors
    types: tuple[type, ...] = ()
    if config is not None or epilogue is not None or operands is not NO_OPERANDS:
        arrays, config, epilogue, operands = fused(arrays, config, epilogue, operands)
        types = tuple(map(type, operands))
    key = key_of(check, config, (options, epilogue, types), arrays[1], arrays[2])
    launched = CALLS.launch(key, arrays, factors)
    if launched is not None:
        return launched
    return PublicCall(check, kernels, arrays, config, options, factors, epilogue, operands, verbatim).launch(key)


def flag(name: str, value: object) -> bool:
    """Return a boolean argument. Raises LaunchError for other values."""
    if value is True or value is False:
        return value
    if not isinstance(value, np.bool_):
        raise LaunchError(f"`{name}` is {value!r}", help="pass True or False")
    return bool(value)


@dataclass(frozen=True)
class PublicCall:
    """A call of a public function that is not remembered yet.

    `check` makes the CheckedCall of the function. `arrays` are the output, A and B, all other arrays of the function,
    then the epilogue operands; None for one that is not given. `options` are the other arguments that the launch
    depends on; the first is True if the output is not given. `factors` are alpha and beta. `verbatim` are the arguments
    of the caller for which `options` has a hashable substitute."""

    check: Callable[[PublicCall], CheckedCall]
    kernels: Any
    arrays: tuple[Any, ...]
    config: GemmConfig | Literal["tune"] | None
    options: tuple[Any, ...]
    factors: tuple[Any, ...]
    epilogue: Callable[..., Any] | None
    operands: Sequence[object]
    verbatim: tuple[Any, ...] = ()

    @property
    def alpha(self) -> Any:
        """The factor of the product."""
        return self.factors[0] if self.factors else 1

    @property
    def beta(self) -> Any:
        """The factor of C."""
        return self.factors[1] if self.factors else 0

    @property
    def written(self) -> Any:
        """The configuration as the caller wrote it, with its epilogue."""
        config: Any = self.config
        if self.epilogue is None or not isinstance(config, GemmConfig):
            return config
        return specialise(config, epilogue=self.epilogue)

    @property
    def gemm_options(self) -> GemmOptions:
        """The GEMM options, for a function whose `options` end with a schedule, split_k, a reduction and the type of
        split_k. Raises LaunchError for values of the wrong type."""
        *_, schedule, split_k, reduction, _ = self.options
        config: Any = None if wants_tuning(self.config) else self.config
        options = GemmOptions(config, schedule, split_k, reduction, self.epilogue)
        options.check()
        return options

    def launch(self, key: Hashable) -> Any:
        """Check the arrays, plan the launch, carry it out and remember it by a key. Return the output."""
        checked = self.check(self)
        tunable = checked if wants_tuning(self.config) and isinstance(checked, TunableCall) else None
        config = None if tunable else self.written
        check_is_config(config)
        if checked.is_empty:
            return checked.out
        best = self._best(tunable) if tunable else None
        plan = with_best(
            best,
            lambda candidate: checked.plan(candidate.config, candidate.copied) if candidate else checked.plan(config),
        )
        if plan is not None:
            plan.carry_out(key, self.arrays, checked.out, self.factors)
        return checked.out

    def _best(self, checked: TunableCall) -> TuningCandidate | None:
        """Return the fastest candidate, measured at the first call of a shape class. None selects by estimate: on the
        emulator, for arrays of libraries other than torch and CuPy, and if nothing is multiplied."""
        has_lists = any(isinstance(array, LISTS) for array in self.arrays)
        if self.alpha == 0 or (not has_lists and common_library(self.arrays) is None):
            return None
        subject = TuningSubject(checked.name, checked.shape_class, checked.device_stream)
        timed = self._timed(has_lists)
        return tuned(subject, lambda: Trials(checked.candidates(), timed.again))

    def _timed(self, has_lists: bool) -> PublicCall:
        """Return the call to time: with an output of its own if `out` is also read, and must not change."""
        out, *rest = self.arrays
        if not has_lists:
            out = timed_output(self.arrays)
        elif self.beta:
            out = None
        return replace(self, arrays=(out, *rest), options=(out is None, *self.options[1:]))

    def again(self, candidate: TuningCandidate) -> Any:
        """Launch with a candidate, which is planned at its first launch."""
        key = key_of(self.check, candidate, (self.options, self.epilogue), *self.arrays[1:3])
        launched = CALLS.launch(key, self.arrays, self.factors)
        if launched is not None:
            return launched
        checked = self.check(self)
        plan = checked.plan(candidate.config, candidate.copied)
        assert plan is not None
        plan.carry_out(key, self.arrays, checked.out, self.factors)
        return checked.out
