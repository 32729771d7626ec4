"""A call of attention: the configuration, and the launch, which is kept for later calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ptxdsl.arrays import strided
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall, launch
from ptxdsl.kernels.call.launching.memory import CALLS, common_library
from ptxdsl.kernels.call.matrix import array_argument, empty
from ptxdsl.kernels.flash.problem import (
    LOG2_E,
    TMA_BYTES,
    AttentionProblem,
    bounds_of,
    check_number,
    output_of,
    problem_of,
    scale_of,
    strides,
    window_of,
)
from ptxdsl.kernels.flash.traits import CONFIGS, ROWS, AttentionConfig, AttentionTraits, parameters
from ptxdsl.types import Type, f32

OFFSETS = ("q_offsets", "k_offsets")


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
    sides = (*map(type, window),) if type(window) is tuple else type(window)  # of the key: True equals 1
    options = out is None, type(causal), type(scale), type(softcap), sides, (causal, window, scale, softcap, config)
    results: tuple[Any, Any] = launch(AttentionCall, kernel, (out, *operands, lse, *(offsets or ())), None, options)
    return results if return_lse else results[0]


@dataclass(frozen=True)
class AttentionPlan:
    """A launch for all arrays of a library with the same types, shapes and strides: out, q, k, v, lse and offsets.

    `reach` are the bytes before and after the address of out, q, k and v that these arrays cover, and `makers` allocate
    the output and the log-sum-exp like q.
    """

    kernel: Any
    traits: AttentionTraits
    grid: tuple[int, int, int] | None
    fields: dict[str, Any]
    makers: tuple[Callable[[Any], Any], Callable[[Any], Any]]
    reach: tuple[tuple[int, int], ...]
    reads_keys: bool
    library: Any = None
    layouts: tuple[Any, ...] = ()

    def carry_out(self, key: Hashable, arrays: tuple[Any, ...], out: Any, factors: tuple[float, ...]) -> None:
        """Launch, and remember the launch by the key of the call if the library of the arrays reports their layout."""
        self._start(arrays, *out)
        library = common_library(arrays)
        if library:
            layouts = tuple(None if array is None else library.layout(array) for array in arrays)
            CALLS.keep(key, replace(self, library=library, layouts=layouts))

    def launch(self, arrays: Sequence[Any], numbers: tuple[float, ...]) -> Any:
        """Launch with other arrays and return the output and the log-sum-exp; return None, having done nothing, if
        they do not fit."""
        layouts = tuple([None if array is None else self.library.layout(array) for array in arrays])
        if layouts != self.layouts:
            return None
        if not self._takes([0 if array is None else self.library.address(array) for array in arrays]):
            return None
        (out, q, _, _, lse, *_), (make_out, make_lse) = arrays, self.makers
        results = make_out(q) if out is None else out, make_lse(q) if lse is None else lse
        self._start(arrays, *results)
        return results

    def _takes(self, pointers: Sequence[int]) -> bool:
        """Return True if arrays at these addresses are aligned, and the output does not overlap an operand."""
        if any(pointer % TMA_BYTES for pointer in pointers):
            return False
        out, (before, after) = pointers[0], self.reach[0]
        spans = [(at + low, at + high) for at, (low, high) in zip(pointers[1:4], self.reach[1:], strict=True)]
        return not out or not any(low < out + after and out + before < high for low, high in spans)

    def _start(self, arrays: Sequence[Any], out: Any, lse: Any) -> None:
        _, q, k, v, _, *offsets = arrays
        if self.grid is None:
            return
        operands = [x.swapaxes(0, 1)[None] if offsets else x for x in (q, *((k, v) if self.reads_keys else (q, q)))]
        named = dict(zip(("q", "k", "v"), operands, strict=True)) | dict(zip(OFFSETS, offsets, strict=False))
        launched = parameters(self.traits)(**named, out=strided(out), lse=lse, **self.fields)
        self.kernel[self.grid, self.traits.threads](launched, traits=self.traits)


class AttentionCall(CheckedCall):
    """A call of attention() or attention_varlen()."""

    name = "attention"
    problem: AttentionProblem

    def __init__(self, call: PublicCall) -> None:
        out, q, k, v, lse, *offsets = call.arrays
        *_, self.options = call.options
        causal, window, scale, softcap, config = self.options
        self.kernel = call.kernels
        self.problem = problem = problem_of(q, k, v, (offsets[0], offsets[1]) if offsets else None)
        self.scale = scale_of(scale, problem.head)
        self.softcap = check_number("softcap", softcap, is_positive=False)
        bounds, self.window = bounds_of(window_of(causal, window))
        dims = problem.head, problem.shape[3]
        chosen = CONFIGS[dims] if config is None else _checked(config)
        self.traits = AttentionTraits(
            problem.q.type, *dims, chosen, bounds, self.softcap > 0, problem.offsets is not None
        )
        self.output = output_of((problem.q, problem.k, problem.v), problem.out_shape, out)
        self.makers = partial(_empty, problem.q.type, problem.out_shape), partial(_empty, f32, problem.lse_shape)
        self.out = self.output.owner, self.makers[1](q) if lse is None else lse

    def plan(self, config: Any, copied: str = "") -> AttentionPlan:
        """Return the launch."""
        problem, output = self.problem, self.output
        batch, heads, rows, _ = problem.shape
        kv_heads, keys = problem.keys
        tiles = -(-rows // self.traits.config.queries) + problem.sequences
        fields: dict[str, Any] = {"cap": self.scale / self.softcap} if self.softcap else {}
        fields |= {
            "out_strides": strides(output.array)[:3], "lse_strides": (heads * rows, rows), "group": heads // kv_heads,
            "extents": (problem.sequences or rows, keys), "window": self.window,
            "scale": (self.softcap or self.scale) * LOG2_E,
        }  # fmt: skip
        spans = [(x.array.span, x.array.pointer) for x in (output, problem.q, problem.k, problem.v)]
        reach = tuple((low - at, high - at) for (low, high), at in spans)
        grid = (tiles, heads, batch) if output.array.size else None
        return AttentionPlan(self.kernel, self.traits, grid, fields, self.makers, reach, keys > 0)


def _empty(type: Type, shape: tuple[int, ...], like: Any) -> Any:
    """Return a new array of the library and device of another."""
    return empty(array_argument("q", like, len(like.shape), "", ""), shape, type)
