"""A call of gemm(): its arrays are checked, its kernel is chosen, and its launch is made and remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, cast

from ptxdsl.kernels.call.groups.batched import is_list, run_lists
from ptxdsl.kernels.call.launching.launches import carry_out
from ptxdsl.kernels.call.launching.memory import CALLS, key_of
from ptxdsl.kernels.call.products.configure import Choice, fused
from ptxdsl.kernels.call.products.plan import Kernels, plan_of
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.call.tuned import Trials, described_arrays, text_of, tuned_call, wants_tuning
from ptxdsl.kernels.config import NO_OPERANDS, GemmConfig
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
    how, chosen = (schedule, split_k, reduction, epilogue), config
    Choice(None, *how).check()
    if wants_tuning(config):
        trials = partial(_trials, kernels, arrays, factors, Choice(None, *how), operands)
        chosen = tuned_call(kernels, (options, factors[1] == 0), arrays, trials)
    choice = Choice(cast("GemmConfig | None", chosen), *how)
    if is_list(a) or is_list(b):
        return run_lists(kernels.warps, (a, b, c, out), choice, factors, operands, key)
    problem = problem_of(a, b, c, out, factors[1], epilogue, operands)
    plan = plan_of(kernels, problem.row_major, choice, factors)
    return carry_out(plan, key, arrays, problem.out.owner, factors)


def _trials(
    kernels: Kernels,
    arrays: tuple[Any, ...],
    factors: tuple[float, float],
    choice: Choice,
    operands: Sequence[object],
) -> Trials:
    """The configurations that may be timed for the arrays of a call."""
    out, a, b, c, *others = arrays
    problem = problem_of(a, b, c, out, factors[1], choice.epilogue, operands).row_major
    is_read = any(each is out for each in (c, *others))
    written = None if is_read else out  # what is read must not change before the last launch

    def run_with(config: GemmConfig) -> None:
        _, schedule, split_k, reduction, epilogue = choice
        run(kernels, a, b, c, written, *factors, config, schedule, split_k, reduction, epilogue, operands)

    def text(config: GemmConfig) -> str:
        plan = plan_of(kernels, problem, choice._replace(config=config), factors)
        return text_of(plan.kernel, plan.constants, problem.device_stream[0]) if plan else ""

    candidates = Selection(problem, choice).candidates()
    return Trials("gemm", described_arrays(arrays), problem.device_stream, candidates, run_with, text)
