"""The checked arguments of attention: arrays that fit each other and the kernels, numbers, and the window."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl import arrays
from ptxdsl.arrays import Array
from ptxdsl.errors import LaunchError, listed
from ptxdsl.kernels.call.launching.residency import stream_of
from ptxdsl.kernels.call.matrix import ArrayArgument, MappedMatrix, array_argument, describe_types, empty
from ptxdsl.kernels.flash.traits import CONFIGS
from ptxdsl.types import Type, bf16, f16, s32

LOG2_E = math.log2(math.e)
TMA_BYTES = 16  # alignment of a tensor map's address and strides
LARGEST = 2**31 - 1
HALVES = (f16, bf16)
DENSE = "q is (B, H, M, D), k (B, Hkv, N, D) and v (B, Hkv, N, Dv)"
PACKED = "q is (M, H, D), k (N, Hkv, D) and v (N, Hkv, Dv), with the rows of all sequences one after another"


@dataclass(frozen=True)
class AttentionProblem:
    """Checked operands of attention, as four-dimensional arrays (batch, head, row, column)."""

    q: ArrayArgument
    k: ArrayArgument
    v: ArrayArgument
    offsets: tuple[ArrayArgument, ArrayArgument] | None = None

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return stream_of(self.q.array, self.k.array, self.v.array)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The batches, heads, rows and columns of the output."""
        batch, heads, rows, _ = extents(self.q.array)
        return batch, heads, rows, extents(self.v.array)[3]

    @property
    def keys(self) -> tuple[int, int]:
        """The heads and rows of k and v."""
        _, heads, rows, _ = extents(self.k.array)
        return heads, rows

    @property
    def rule(self) -> str:
        """The shapes of q, k and v."""
        return PACKED if self.offsets else DENSE

    @property
    def head(self) -> int:
        """The columns of q and k."""
        return self.q.array.shape[-1]

    @property
    def sequences(self) -> int:
        """The number of packed sequences, 0 for dense arrays."""
        return self.offsets[0].array.size - 1 if self.offsets else 0

    @property
    def out_shape(self) -> tuple[int, ...]:
        batch, heads, rows, columns = self.shape
        return (rows, heads, columns) if self.offsets else (batch, heads, rows, columns)

    @property
    def lse_shape(self) -> tuple[int, ...]:
        batch, heads, rows, _ = self.shape
        return (heads, rows) if self.offsets else (batch, heads, rows)


@dataclass(frozen=True)
class MappedView(MappedMatrix):
    """An array passed by tensor map; `view` has the axes of the map."""

    view: Any

    @property
    def mapped_view(self) -> Any:
        """A view of the array with the axes of the map."""
        return self.view


def allocated(name: str, owner: object, like: ArrayArgument, shape: tuple[int, ...], type: Type) -> ArrayArgument:
    """Return an array of the caller as an argument, or a new one."""
    owner = empty(like, shape, type) if owner is None else owner
    return array_argument(name, owner, len(shape), "", "", str(type))


def extents(array: Array) -> tuple[int, ...]:
    """Return the extents (batch, head, row, column) of a dense or packed array."""
    return array.shape if len(array.shape) == 4 else (1, array.shape[1], array.shape[0], array.shape[2])


def strides(array: Array) -> tuple[int, ...]:
    """Return the strides (batch, head, row, column) of a dense or packed array, in elements."""
    return array.strides if len(array.shape) == 4 else (0, array.strides[1], array.strides[0], array.strides[2])


def problem_of(
    q: object,
    k: object,
    v: object,
    offsets: tuple[object, object] | None = None,
    types: Collection[Type] = HALVES,
    dims: Collection[tuple[int, int]] = CONFIGS,
) -> AttentionProblem:
    """Check q, k and v, of one of `types` and with one of the (D, Dv) of `dims`. Raises LaunchError for arrays that do
    not fit each other or the kernel.
    """
    rank, rule = (4, DENSE) if offsets is None else (3, PACKED)
    operands = of_q, of_k, of_v = [
        array_argument(name, owner, rank, rule, "reshape it, or permute its axes", describe_types(types))
        for name, owner in (("q", q), ("k", k), ("v", v))
    ]
    check_types(operands, types)
    _check_shapes(operands, rule, dims)
    for operand in operands:
        check_strides(operand)
    checked = None
    if offsets is not None:
        checked = _offsets("q_offsets", offsets[0], of_q), _offsets("k_offsets", offsets[1], of_k)
        if checked[0].array.shape != checked[1].array.shape:
            raise LaunchError(
                f"`q_offsets` has {checked[0].array.size} elements and `k_offsets` {checked[1].array.size}",
                help="both have one more than there are sequences",
            )
    return AttentionProblem(of_q, of_k, of_v, checked)


def _offsets(name: str, owner: object, rows: ArrayArgument) -> ArrayArgument:
    """Check the offsets of packed sequences; their values only in host memory."""
    if owner is None:
        raise LaunchError(f"`{name}` is None", help="packed sequences have both `q_offsets` and `k_offsets`")
    offsets = array_argument(
        name, owner, 1, "it has one axis", "pass the first row of each sequence, and the end", "int32"
    )
    if offsets.type is not s32 or offsets.array.size < 2 or not offsets.array.contiguous:
        raise LaunchError(
            f"`{name}` is {offsets.array}",
            help="pass a contiguous int32 array of the first row of each sequence, and the end",
        )
    if offsets.array.device == arrays.HOST:
        values, count = np.asarray(offsets.owner), rows.array.shape[0]
        before = np.concatenate([[0], values[:-1]])
        for number in np.flatnonzero((values < before) | (values > count))[:1]:
            raise LaunchError(
                f"`{name}[{number}]` is {values[number]}, after {before[number]}; `{rows.name}` has {count} rows",
                help=f"pass offsets that never fall, from 0 to {count}",
            )
    return offsets


def check_types(operands: Sequence[ArrayArgument], types: Collection[Type] = HALVES) -> None:
    """Refuse operands of several types, or of one that is not in `types`."""
    if operands[0].type not in types or len({operand.type for operand in operands}) > 1:
        raise LaunchError(
            f"{listed(f'`{operand.name}`' for operand in operands)} have elements of "
            f"{listed(str(operand.array.dtype) for operand in operands)}",
            help=f"convert {'both' if len(operands) == 2 else 'all three'} to {describe_types(types)}",
        )


def check_heads(shown: str, heads: int, kv_heads: int) -> None:
    """Refuse query heads that do not divide among the key heads."""
    if not kv_heads or heads % kv_heads:
        raise LaunchError(
            f"{shown}: {heads} query heads do not divide among {kv_heads} key heads", help="H is a multiple of Hkv"
        )


def check_dims(shown: str, dims: tuple[int, int], supported: Collection[tuple[int, int]]) -> None:
    """Refuse (D, Dv) that no kernel has."""
    if dims not in supported:
        heads = listed((str(d) if d == dv else f"{d} with Dv {dv}" for d, dv in supported), "or")
        raise LaunchError(
            f"{shown}: a head dimension of {dims[0]} with values of {dims[1]}", help=f"D is {heads}; pad with zeros"
        )


def shapes_of(operands: Sequence[ArrayArgument]) -> str:
    """Return a text of the shapes of operands."""
    first, *others = operands
    rest = [f"`{operand.name}` {operand.array.shape}" for operand in others]
    return listed([f"`{first.name}` has the shape {first.array.shape}", *rest])


def _check_shapes(operands: Sequence[ArrayArgument], rule: str, dims: Collection[tuple[int, int]]) -> None:
    q, k, v = (extents(operand.array) for operand in operands)
    shown = shapes_of(operands)
    if q[0] != k[0] or k[:3] != v[:3] or q[3] != k[3]:
        raise LaunchError(shown, help=rule)
    check_heads(shown, q[1], k[1])
    check_dims(shown, (q[3], v[3]), dims)
    if max(q[2], k[2]) > LARGEST:
        raise LaunchError(f"{shown}: rows are counted by 32 bits", help=None)


def check_strides(operand: ArrayArgument) -> None:
    """Refuse strides that TMA does not take: columns are contiguous, other strides positive multiples of 16 bytes."""
    if not operand.array.size:
        return
    *steps, column = strides(operand.array)
    outer = [
        stride * operand.type.bytes for stride, extent in zip(steps, extents(operand.array), strict=False) if extent > 1
    ]
    if column != 1 or operand.array.pointer % TMA_BYTES or any(s % TMA_BYTES or s <= 0 for s in outer):
        raise LaunchError(
            f"`{operand.name}` has strides of {operand.array.strides} elements and the address "
            f"{operand.array.pointer:#x}; TMA reads columns without gaps, and rows {TMA_BYTES} bytes aligned",
            help="make a contiguous copy of it",
        )


def output_of(
    operands: Sequence[ArrayArgument], shape: tuple[int, ...], out: object, types: Sequence[Type] = ()
) -> ArrayArgument:
    """Return the output, allocated unless the caller passed one. Raises LaunchError for one that does not fit.

    It has one of `types`, by default that of the first of `operands`, and may be that operand itself.
    """
    types = types or (operands[0].type,)
    owner = empty(operands[0], shape, types[0]) if out is None else out
    rule = f"the output has the shape {shape}"
    output = array_argument("out", owner, len(shape), rule, "pass an array of that shape", describe_types(types))
    if output.array.shape != shape or output.type not in types:
        raise LaunchError(
            f"`out` is {output.array}; {rule} and elements of {describe_types(types)}", help="pass an array like this"
        )
    *outer, columns = output.array.strides
    aligned = not any(stride * output.type.bytes % TMA_BYTES for stride in outer) and columns == 1
    if output.array.size and not (aligned and output.array.pointer % TMA_BYTES == 0):
        raise LaunchError(
            f"`out` has strides of {output.array.strides} elements; rows are written in {TMA_BYTES}-byte units",
            help="pass an array whose columns have no gaps and whose rows are aligned to 16 bytes",
        )
    for operand in (*operands[1:], operands[0]):
        (begin, end), (first, last) = operand.array.span, output.array.span
        same = operand is operands[0] and (begin, operand.array.strides) == (first, output.array.strides)
        if begin < last and first < end and not same:
            raise LaunchError(
                f"`out` shares memory with `{operand.name}`, which is still read", help="pass an array of its own"
            )
    return output


def check_number(name: str, value: Any, is_positive: bool) -> float:
    """Return an argument as a finite number. Raises LaunchError for any other, and for a negative one."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or value < 0 or (is_positive and not value):
        raise LaunchError(
            f"`{name}` is {value!r}",
            help=f"pass a finite number {'above 0' if is_positive else 'that is not negative'}",
        )
    return float(value)


def scale_of(scale: Any, head: int) -> float:
    """Return the scale of the scores, by default 1/√D."""
    return 1 / math.sqrt(head) if scale is None else check_number("scale", scale, is_positive=True)


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


def bounds_of(window: tuple[int | None, int | None]) -> tuple[tuple[bool, bool], tuple[int, int]]:
    """Return which sides of a window are bounded, and its sides with 0 for those that are not."""
    left, right = window
    return (left is not None, right is not None), (left or 0, right or 0)
