"""The arguments of attention: checked arrays, the configuration, and the launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ptxdsl.arrays import Array, strided
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall, launch
from ptxdsl.kernels.call.launching.memory import CALLS, common_library
from ptxdsl.kernels.call.launching.residency import stream_of
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument, empty
from ptxdsl.kernels.flash.traits import CONFIGS, ROWS, AttentionConfig, AttentionTraits, parameters
from ptxdsl.types import Type, bf16, f16, f32, s32

LOG2_E = math.log2(math.e)
TMA_BYTES = 16  # alignment of a tensor map's address and strides
LARGEST = 2**31 - 1
OFFSETS = ("q_offsets", "k_offsets")
DENSE = "q is (B, H, M, D), k (B, Hkv, N, D) and v (B, Hkv, N, Dv)"
PACKED = "q is (M, H, D), k (N, Hkv, D) and v (N, Hkv, Dv), with the rows of all sequences one after another"


@dataclass(frozen=True)
class AttentionProblem:
    """Checked operands of attention, as four-dimensional arrays (batch, head, row, column)."""

    q: ArrayArgument
    k: ArrayArgument
    v: ArrayArgument
    offsets: tuple[ArrayArgument, ArrayArgument] | None

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return stream_of(self.q.array, self.k.array, self.v.array)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The batches, heads, rows and columns of the output."""
        batch, heads, rows, _ = _dense(self.q.array)
        return batch, heads, rows, _dense(self.v.array)[3]

    @property
    def head(self) -> int:
        """The columns of q and k."""
        return self.q.array.shape[-1]

    @property
    def out_shape(self) -> tuple[int, ...]:
        batch, heads, rows, columns = self.shape
        return (rows, heads, columns) if self.offsets else (batch, heads, rows, columns)

    @property
    def lse_shape(self) -> tuple[int, ...]:
        batch, heads, rows, _ = self.shape
        return (heads, rows) if self.offsets else (batch, heads, rows)


def _dense(array: Array) -> tuple[int, ...]:
    """Return the extents (batch, head, row, column) of a dense or packed array."""
    return array.shape if len(array.shape) == 4 else (1, array.shape[1], array.shape[0], array.shape[2])


def _strides(array: Array) -> tuple[int, ...]:
    return array.strides if len(array.shape) == 4 else (0, array.strides[1], array.strides[0], array.strides[2])


def problem_of(q: object, k: object, v: object, offsets: tuple[object, object] | None) -> AttentionProblem:
    """Check q, k and v. Raises LaunchError for arrays that do not fit each other or the kernel."""
    rank, rule = (4, DENSE) if offsets is None else (3, PACKED)
    of_q, of_k, of_v = (
        array_argument(name, owner, rank, rule, "reshape it, or permute its axes", "float16 or bfloat16")
        for name, owner in (("q", q), ("k", k), ("v", v))
    )
    checked = None
    if offsets is not None:
        checked = _offsets("q_offsets", offsets[0]), _offsets("k_offsets", offsets[1])
        if checked[0].array.shape != checked[1].array.shape:
            raise LaunchError(
                f"`q_offsets` has {checked[0].array.size} elements and `k_offsets` {checked[1].array.size}",
                help="both have one more than there are sequences",
            )
    problem = AttentionProblem(of_q, of_k, of_v, checked)
    _check_types(of_q, of_k, of_v)
    _check_shapes(problem)
    for operand in (of_q, of_k, of_v):
        check_strides(operand)
    return problem


def _offsets(name: str, owner: object) -> ArrayArgument:
    offsets = array_argument(
        name, owner, 1, "it has one axis", "pass the first row of each sequence, and the end", "int32"
    )
    if offsets.type is not s32 or offsets.array.size < 2 or not offsets.array.contiguous:
        raise LaunchError(
            f"`{name}` is {offsets.array}",
            help="pass a contiguous int32 array of the first row of each sequence, and the end",
        )
    return offsets


def _check_types(q: ArrayArgument, k: ArrayArgument, v: ArrayArgument) -> None:
    if q.type not in (f16, bf16) or not q.type is k.type is v.type:
        raise LaunchError(
            f"`q`, `k` and `v` have elements of {q.array.dtype}, {k.array.dtype} and {v.array.dtype}",
            help="convert all three to float16 or bfloat16",
        )


def _check_shapes(problem: AttentionProblem) -> None:
    q, k, v = (_dense(operand.array) for operand in (problem.q, problem.k, problem.v))
    shown = f"`q` has the shape {problem.q.array.shape}, `k` {problem.k.array.shape} and `v` {problem.v.array.shape}"
    if q[0] != k[0] or k[:3] != v[:3] or q[3] != k[3]:
        raise LaunchError(shown, help=PACKED if problem.offsets else DENSE)
    if not k[1] or q[1] % k[1]:
        raise LaunchError(
            f"{shown}: {q[1]} query heads do not divide among {k[1]} key heads", help="H is a multiple of Hkv"
        )
    if (q[3], v[3]) not in CONFIGS:
        heads = ", ".join(str(d) if d == dv else f"{d} with Dv {dv}" for d, dv in CONFIGS)
        raise LaunchError(
            f"{shown}: a head dimension of {q[3]} with values of {v[3]}", help=f"D is {heads}; pad with zeros"
        )
    if max(q[2], k[2]) > LARGEST:
        raise LaunchError(f"{shown}: rows are counted by 32 bits", help=None)


def check_strides(operand: ArrayArgument) -> None:
    """Refuse strides that TMA does not take: columns are contiguous, other strides positive multiples of 16 bytes."""
    extents, strides = _dense(operand.array), _strides(operand.array)
    if not operand.array.size:
        return
    outer = [stride * operand.type.bytes for stride, extent in zip(strides[:3], extents[:3], strict=True) if extent > 1]
    if strides[3] != 1 or operand.array.pointer % TMA_BYTES or any(s % TMA_BYTES or s <= 0 for s in outer):
        raise LaunchError(
            f"`{operand.name}` has strides of {operand.array.strides} elements and the address "
            f"{operand.array.pointer:#x}; TMA reads columns without gaps, and rows {TMA_BYTES} bytes aligned",
            help="make a contiguous copy of it",
        )


def traits_of(
    problem: AttentionProblem,
    window: tuple[int | None, int | None],
    softcap: float,
    config: AttentionConfig | None,
) -> AttentionTraits:
    """Return the traits of a problem. Raises LaunchError for a configuration that does not fit it."""
    dims = _dense(problem.q.array)[3], problem.shape[3]
    left, right = (side is not None for side in window)
    return AttentionTraits(
        problem.q.type, *dims, _checked(config) if config is not None else CONFIGS[dims],
        (left, right), softcap > 0, problem.offsets is not None,
    )  # fmt: skip


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


def check_number(name: str, value: Any, is_positive: bool) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or value < 0 or (is_positive and not value):
        raise LaunchError(
            f"`{name}` is {value!r}",
            help=f"pass a finite number {'above 0' if is_positive else 'that is not negative'}",
        )
    return float(value)


def window_of(causal: bool, window: Any) -> tuple[int | None, int | None]:
    """Return the (left, right) window of a call; None for a side without a bound."""
    if window is None:
        return (None, 0) if causal else (None, None)
    sides = tuple(window) if isinstance(window, (tuple, list)) else None
    if sides is None or len(sides) != 2 or not all(s is None or (type(s) is int and 0 <= s <= LARGEST) for s in sides):
        raise LaunchError(
            f"`window` is {window!r}",
            help="pass (left, right): the keys before and after the aligned one that a query sees, None for all",
        )
    left, right = sides
    return left, 0 if causal else right


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
) -> Any:
    """Check a call of attention and launch it. Returns out, or (out, lse)."""
    sides = (*map(type, window),) if type(window) is tuple else type(window)  # of the key: True equals 1
    options = out is None, type(causal), type(scale), type(softcap), sides, (causal, window, scale, softcap, config)
    results: tuple[Any, Any] = launch(AttentionCall, kernel, (out, *operands, *(offsets or ())), None, options)
    return results if return_lse else results[0]


@dataclass(frozen=True)
class AttentionPlan:
    """A launch for all arrays of a library with the same types, shapes and strides: out, q, k, v and offsets.

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
            layouts = tuple(None if array is None else library.look(array)[0] for array in arrays)
            CALLS.keep(key, replace(self, library=library, layouts=layouts))

    def launch(self, arrays: Sequence[Any], numbers: tuple[float, ...]) -> Any:
        """Launch with other arrays and return the output and the log-sum-exp; return None, having done nothing, if
        they do not fit."""
        looks = [(None, 0) if array is None else self.library.look(array) for array in arrays]
        if tuple([layout for layout, _ in looks]) != self.layouts or not self._takes([at for _, at in looks]):
            return None
        (out, q, *_), (make_out, make_lse) = arrays, self.makers
        results = make_out(q) if out is None else out, make_lse(q)
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
        _, q, k, v, *offsets = arrays
        if self.grid is None:
            return
        operands = [x.swapaxes(0, 1)[None] if offsets else x for x in (q, *((k, v) if self.reads_keys else (q, q)))]
        named = dict(zip(("q", "k", "v"), operands, strict=True)) | dict(zip(OFFSETS, offsets, strict=False))
        launched = parameters(self.traits)(**named, out=strided(out), lse=lse, **self.fields)
        self.kernel[self.grid, self.traits.threads](launched, traits=self.traits)


class AttentionCall(CheckedCall):
    """A call of attention() or attention_varlen()."""

    name, is_tunable = "attention", False
    problem: AttentionProblem

    def __init__(self, call: PublicCall) -> None:
        out, q, k, v, *offsets = call.arrays
        *_, self.options = call.options
        causal, window, scale, softcap, config = self.options
        self.kernel = call.kernels
        self.problem = problem = problem_of(q, k, v, (offsets[0], offsets[1]) if offsets else None)
        self.scale = 1 / math.sqrt(problem.head) if scale is None else check_number("scale", scale, is_positive=True)
        self.softcap = check_number("softcap", softcap, is_positive=False)
        self.window = window_of(causal, window)
        self.traits = traits_of(problem, self.window, self.softcap, config)
        self.output = _output(problem, out)
        self.makers = partial(_empty, problem.q.type, problem.out_shape), partial(_empty, f32, problem.lse_shape)
        self.out = self.output.owner, self.makers[1](q)

    def plan(self, config: Any, copied: str = "") -> AttentionPlan:
        """Return the launch."""
        problem, output = self.problem, self.output
        batch, heads, rows, _ = problem.shape
        _, kv_heads, keys, _ = _dense(problem.k.array)
        sequences = problem.offsets[0].array.size - 1 if problem.offsets else 0
        tiles = -(-rows // self.traits.config.queries) + sequences
        fields: dict[str, Any] = {"cap": self.scale / self.softcap} if self.softcap else {}
        fields |= {
            "out_strides": _strides(output.array)[:3], "lse_strides": (heads * rows, rows), "group": heads // kv_heads,
            "extents": (sequences or rows, keys), "window": tuple(side or 0 for side in self.window),
            "scale": (self.softcap or self.scale) * LOG2_E,
        }  # fmt: skip
        spans = [(x.array.span, x.array.pointer) for x in (output, problem.q, problem.k, problem.v)]
        reach = tuple((low - at, high - at) for (low, high), at in spans)
        grid = (tiles, heads, batch) if output.array.size else None
        return AttentionPlan(self.kernel, self.traits, grid, fields, self.makers, reach, keys > 0)


def _empty(type: Type, shape: tuple[int, ...], like: Any) -> Any:
    """Return a new array of the library and device of another."""
    return empty(array_argument("q", like, len(like.shape), "", ""), shape, type)


def _output(problem: AttentionProblem, out: Any) -> ArrayArgument:
    """Return the output, allocated unless the caller passed one. Raises LaunchError for one that does not fit."""
    owner = empty(problem.q, problem.out_shape, problem.q.type) if out is None else out
    rule = f"the output has the shape {problem.out_shape}"
    output = array_argument("out", owner, len(problem.out_shape), rule, "pass an array of that shape")
    if output.array.shape != problem.out_shape or output.type is not problem.q.type:
        raise LaunchError(
            f"`out` is {output.array}; {rule} and elements of {problem.q.array.dtype}", help="pass an array like this"
        )
    check_rows(output)
    for operand in (problem.k, problem.v, problem.q):
        check_apart(operand, output)
    return output


def check_rows(output: ArrayArgument) -> None:
    """Refuse an output whose rows cannot be written in units of 16 bytes."""
    *outer, columns = output.array.strides
    aligned = not any(stride * output.type.bytes % TMA_BYTES for stride in outer) and columns == 1
    if output.array.size and not (aligned and output.array.pointer % TMA_BYTES == 0):
        raise LaunchError(
            f"`out` has strides of {output.array.strides} elements; rows are written in {TMA_BYTES}-byte units",
            help="pass an array whose columns have no gaps and whose rows are aligned to 16 bytes",
        )


def check_apart(operand: ArrayArgument, output: ArrayArgument) -> None:
    """Refuse an output that shares memory with an operand, except for q itself."""
    (begin, end), (first, last) = operand.array.span, output.array.span
    same = operand.name == "q" and (begin, operand.array.strides) == (first, output.array.strides)
    if begin < last and first < end and not same:
        raise LaunchError(
            f"`out` shares memory with `{operand.name}`, which is still read", help="pass an array of its own"
        )
