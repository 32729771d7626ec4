"""A call of attention: the configuration, and the launch, which is kept for later calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ptxdsl.arrays import describe
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall, launch
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument
from ptxdsl.kernels.flash.problem import (
    LOG2_E,
    AttentionProblem,
    MappedView,
    allocated,
    bounds_of,
    check_number,
    output_of,
    problem_of,
    scale_of,
    strides,
    window_of,
)
from ptxdsl.kernels.flash.traits import CONFIGS, ROWS, AttentionConfig, AttentionTraits, band_of, parameters
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import f32


def remembered(check: type[CheckedCall], kernels: Any, arrays: tuple[Any, ...], *options: Any) -> Any:
    """Launch the kernels of a call, and return what it returns; a call like an earlier one is not checked again.

    The arrays are the output, q and k, then all others of the function, None for those that are not given. The types
    of the options belong to the key of the call: True equals 1.
    """
    missing = [array is None for array in arrays]
    return launch(check, kernels, arrays, None, (missing[0], (*missing, *map(type, options)), *options))


def planned(
    kernel: Any,
    grid: tuple[int, ...],
    threads: int,
    definition: Any,
    constants: dict[str, Any],
    fields: dict[str, Any],
    views: dict[str, Any] | None = None,
    before: LaunchPlan | None = None,
) -> LaunchPlan:
    """Return the launch of a kernel with a group of parameters, after the launches of another plan.

    An array for a tensor map is loaded with the axes of its `views`, by default as (batch, head, row, column).
    """
    kinds = {leaf.path: leaf.type for leaf in definition.leaves_}
    arguments = {
        name: _mapped(value, kind, (views or {}).get(name)) if isinstance(kind := kinds.get(name), TensorMap) else value
        for name, value in fields.items()
    }
    earlier = (*before.before, replace(before, before=())) if before else ()
    return LaunchPlan(kernel, grid, threads, definition(**arguments), constants, before=earlier)


def _mapped(argument: ArrayArgument, kind: TensorMap, view: Any) -> MappedView:
    if view is None:
        view = argument.owner if len(argument.array.shape) == 4 else argument.owner.swapaxes(0, 1)[None]
    array = describe(view)
    assert array is not None
    return MappedView(argument.name, argument.owner, argument.array, kind, array.shape, array.strides, view)


def _checked(config: Any) -> AttentionConfig:
    if not isinstance(config, AttentionConfig):
        raise LaunchError(f"`config` is {config!r}", help="pass an AttentionConfig(queries=, keys=, stages=)")
    if (
        config.queries not in (2 * ROWS, 3 * ROWS)
        or not 16 <= config.keys <= 256
        or config.keys % 16
        or config.stages < 2
    ):
        raise LaunchError(
            f"{config} has no kernel", help="queries is 128 or 192, keys a multiple of 16 up to 256, stages 2 or more"
        )
    return config


def run(
    kernel: Any,
    operands: Sequence[Any],
    offsets: tuple[Any, Any] | None,
    *,
    out: Any,
    return_lse: bool,
    causal: bool,
    window: Any,
    scale: float | None,
    softcap: float,
    config: AttentionConfig | None,
    lse: Any = None,
) -> Any:
    """Check a call of attention and launch it. Returns out, or (out, lse).

    `lse` is the log-sum-exp to write, allocated by default.
    """
    arrays = (out, *operands, lse, *(offsets or ()))
    results = remembered(AttentionCall, kernel, arrays, window_of(causal, window), scale, softcap, config)
    return results if return_lse else results[0]


class AttentionCall(CheckedCall):
    """A call of attention() or attention_varlen()."""

    name = "attention"
    problem: AttentionProblem

    def __init__(self, call: PublicCall) -> None:
        out, q, k, v, lse, *offsets = call.arrays
        *_, window, scale, softcap, config = call.options
        self.kernel = call.kernels
        self.problem = problem = problem_of(q, k, v, (offsets[0], offsets[1]) if offsets else None)
        self.scale = scale_of(scale, problem.head)
        self.softcap = check_number("softcap", softcap, is_positive=False)
        bounds, self.window = bounds_of(window)
        dims = problem.head, problem.shape[3]
        chosen = CONFIGS[dims] if config is None else _checked(config)
        is_packed = problem.offsets is not None
        self.traits = AttentionTraits(problem.q.type, *dims, chosen, bounds, self.softcap > 0, is_packed)
        self.returns(output_of((problem.q, problem.k, problem.v), problem.out_shape, out), lse)

    def returns(self, output: ArrayArgument, lse: Any) -> None:
        """Return this output, and a log-sum-exp that is allocated by default."""
        self.output, self.is_empty = output, not output.array.size
        self.lse = allocated("lse", lse, self.problem.q, self.problem.lse_shape, f32)
        self.out = output.owner, self.lse.owner

    def plan(self, config: Any, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        problem = self.problem
        return self.plan_of(*((problem.k, problem.v) if problem.keys[1] else (problem.q, problem.q)))

    def plan_of(self, k: ArrayArgument, v: ArrayArgument, before: LaunchPlan | None = None, **more: Any) -> LaunchPlan:
        """Return the launch with these operands, after the launches of another plan."""
        problem, traits = self.problem, self.traits
        (batch, heads, rows, _), (kv_heads, keys) = problem.shape, problem.keys
        fields: dict[str, Any] = {"cap": self.scale / self.softcap} if self.softcap else {}
        fields |= {offsets.name: offsets for offsets in problem.offsets or ()}
        head_bytes = keys * (traits.head + traits.value_head) * traits.dtype.bytes
        band = band_of(traits, heads, heads // kv_heads, head_bytes)
        fields |= dict(
            q=problem.q, k=k, v=v, out=self.output, lse=self.lse, out_strides=strides(self.output.array)[:3],
            lse_strides=(heads * rows, rows), group=heads // kv_heads, band=band,
            extents=(problem.sequences or rows, keys), window=self.window,
            scale=(self.softcap or self.scale) * LOG2_E, **more,
        )  # fmt: skip
        grid = (-(-rows // traits.config.queries) + problem.sequences) * band, heads // band, batch
        definition, constants = parameters(traits), {"traits": traits}
        return planned(self.kernel, grid, traits.threads, definition, constants, fields, before=before)
