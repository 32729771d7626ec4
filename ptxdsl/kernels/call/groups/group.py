"""The arrays of a grouped GEMM, checked together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ptxdsl import arrays, config
from ptxdsl.driver import gpu_at
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.launching.residency import stream_of
from ptxdsl.kernels.call.matrices import ORDERS, Matrices, device_name, matrices
from ptxdsl.kernels.call.matrix import describe_type, describe_types, empty, matrix
from ptxdsl.kernels.product.operands import FP8, INPUTS, gemm_outputs, outputs
from ptxdsl.runtime.arguments import overlap
from ptxdsl.types import Type


@dataclass(frozen=True)
class ProblemGroup:
    """The checked arrays of a grouped GEMM. In each problem A is m×k, B is k×n, C and out are m×n."""

    a: Matrices
    b: Matrices
    c: Matrices | None
    out: Matrices

    @property
    def shapes(self) -> np.ndarray:
        """(M, N, K) of each problem, as an array."""
        return np.stack((self.a.shapes[:, 0], self.b.shapes[:, 1], self.a.shapes[:, 1]), axis=1)

    @property
    def row_major(self) -> ProblemGroup:
        """The problems with a row-major out: a column-major one is the transpose bᵀ@aᵀ."""
        if self.out.major == "row":
            return self
        c = self.c.transposed if self.c else None
        return ProblemGroup(self.b.transposed, self.a.transposed, c, self.out.transposed)

    @property
    def operands(self) -> list[Matrices]:
        """A, B, C, or out if there is no C, and out."""
        return [self.a, self.b, self.c or self.out, self.out]

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        largest = (int(operand.bytes.argmax()) for operand in (self.a, self.b, self.out))
        operands = zip((self.a, self.b, self.out), largest, strict=True)
        device, stream = stream_of(*(operand.array(number) for operand, number in operands))
        if device is not None:
            for operand in self.operands:
                _check_located(operand, device)
        return device, stream

    @property
    def in_place(self) -> bool:
        """True if each C is its out, element for element."""
        c, out = self.c, self.out
        same = c is not None and (c.pointers == out.pointers) & ((c.strides == out.strides) | (out.outer_extents <= 1))
        return bool(np.all(same))


def problem_group(
    a: Sequence[object],
    b: Sequence[object],
    c: Sequence[object] | None,
    out: Sequence[object] | None,
    factors: tuple[float, float],
) -> ProblemGroup | None:
    """Check the arrays of a call, and return its problems; None if there are none.

    `out` is allocated if it is None. A and B are not read if alpha is 0, and C is not read if beta is 0. Raises
    LaunchError for arrays that do not fit.
    """
    alpha, beta = factors
    optional = {name: owners for name, owners in (("c", c), ("out", out)) if owners is not None}
    _check_lengths({"a": a, "b": b, **optional})
    if c is None and beta != 0:
        raise LaunchError(f"beta is {beta}, and `c` is not given", help="pass the arrays that beta multiplies as c=")
    if not len(a):
        return None
    left, right = matrices("a", a), matrices("b", b)
    check_sizes(left, right)
    right = right.along_column if right.type in FP8 else right  # wgmma reads fp8 operands K-major
    shapes = np.stack((left.shapes[:, 0], right.shapes[:, 1]), axis=1)
    written = matrices("out", _allocate_outputs(left, shapes) if out is None else out)
    check_results(written, shapes, left.type)
    added = matrices("c", c) if c is not None else None
    if added is not None:
        check_results(added, shapes, left.type)
        _check_c_type(added)
    if beta == 0:
        added = None
    if added is not None:
        added, written = with_common_order(added, written)
    check_devices([left, right, written, *([added] if added else [])])
    _check_not_emulated(written)
    _check_writable(written)
    group = ProblemGroup(left, right, added, written)
    check_no_overlap(group)
    if alpha == 0:
        group = replace(group, a=left.without_columns, b=right.transposed.without_columns.transposed)
    return group


def _allocate_outputs(left: Matrices, shapes: np.ndarray) -> list[Any]:
    """Allocate row-major outputs from the library of A."""
    first = matrix("a[0]", left.owners[0])
    return [empty(first, (m, n), outputs(left.type)[0]) for m, n in shapes.tolist()]


def _check_lengths(lists: dict[str, Sequence[object]]) -> None:
    for name, owners in lists.items():
        if not isinstance(owners, list | tuple):
            raise LaunchError(
                f"`{name}` is a {type(owners).__name__}, not a list of matrices",
                help="grouped_gemm takes one matrix for each problem; gemm takes a single matrix, or a batch",
            )
        if owners and isinstance(owners[0], list | tuple | int | float):
            raise LaunchError(
                f"`{name}` is a {type(owners).__name__} of {type(owners[0]).__name__}s, not of matrices",
                help="a list of arrays means many products; for a single product pass np.array(a, np.float16)",
            )
    if len({*map(len, lists.values())}) > 1:
        counts = ", ".join(f"{len(owners)} matrices {name}" for name, owners in lists.items())
        raise LaunchError(f"lists of different length: {counts}", help="give each problem one matrix in each list")


def check_sizes(a: Matrices, b: Matrices) -> None:
    """Raise LaunchError for inputs whose types or shapes do not match."""
    types = (*INPUTS, *FP8)
    if a.type not in types or a.type is not b.type:
        raise LaunchError(
            f"`a` is {describe_type(a.type)} and `b` is {describe_type(b.type)}",
            help=f"grouped_gemm takes two lists of one type, {describe_types(types)}",
        )
    for number in np.flatnonzero(a.shapes[:, 1] != b.shapes[:, 0]):
        left, right = (tuple(operand.shapes[number].tolist()) for operand in (a, b))
        raise LaunchError(
            f"`a[{number}]` has the shape {left} and `b[{number}]` {right}: {left[1]} columns meet {right[0]} rows",
            help="pass a[i] of (M, K) and b[i] of (K, N); a transpose is a[i].T",
        )


def check_results(operand: Matrices, shapes: np.ndarray, inputs: Type) -> None:
    """Raise LaunchError for C or out whose shapes or type do not fit the products."""
    for number in np.flatnonzero((operand.shapes != shapes).any(axis=1)):
        raise LaunchError(
            f"`{operand.name}[{number}]` has the shape {tuple(operand.shapes[number].tolist())}; "
            f"a[{number}]@b[{number}] has {tuple(shapes[number].tolist())}",
            help=f"pass `{operand.name}[{number}]` of that shape",
        )
    if operand.type not in gemm_outputs(inputs):
        raise LaunchError(
            f"`{operand.name}` is {describe_type(operand.type)}; for {describe_type(inputs)} inputs grouped_gemm "
            f"writes {', '.join(map(describe_type, gemm_outputs(inputs)))}",
            help="pass one of these, and convert it afterwards",
        )


def _check_c_type(c: Matrices) -> None:
    if c.type in FP8:
        raise LaunchError(
            f"`c` is {describe_type(c.type)}; C must have 16 bits or more",
            help="leave c out, or write to an `out` of float16",
        )


def _check_writable(out: Matrices) -> None:
    for number in np.flatnonzero(out.readonly):
        raise LaunchError(f"`{out.name}[{number}]` is read-only", help="pass an array that may be written")


def with_common_order(c: Matrices, out: Matrices) -> tuple[Matrices, Matrices]:
    """Return C and out described in one major order. Raises LaunchError if no order fits both."""
    if c.type is not out.type:
        raise LaunchError(
            f"`c` is {describe_type(c.type)} and `out` {describe_type(out.type)}; they must have one type",
            help="convert c before",
        )
    for order in ORDERS:
        if order in c.orders and order in out.orders:
            return replace(c, major=order), replace(out, major=order)
    raise LaunchError(
        f"`c` is {c.major}-major and `out` {out.major}-major; they must have one order",
        help="copy c into the order of out, or write to it: grouped_gemm(a, b, c, out=c, beta=…)",
    )


def _check_located(operand: Matrices, device: int) -> None:
    """Raise LaunchError for a matrix on another GPU whose library does not report its device."""
    pointers: list[int] = operand.pointers.view(np.uint64).tolist() if operand.device is None else []
    for number, pointer in enumerate(pointers):
        actual = gpu_at(pointer)
        if actual not in (None, device):
            raise LaunchError(
                f"`{operand.name}[{number}]` is on {device_name(actual)}; others are on {device_name(device)}",
                help="one launch runs on one GPU: move the arrays there, or call grouped_gemm once per GPU",
            )


def check_devices(operands: Sequence[Matrices]) -> None:
    first = operands[0]
    for other in operands:
        if other.device != first.device:
            raise LaunchError(
                f"`{first.name}` is on {device_name(first.device)} and `{other.name}` on {device_name(other.device)}",
                help="one launch runs on one GPU: move the arrays there",
            )


def _check_not_emulated(out: Matrices) -> None:
    if out.device != arrays.HOST and config.current().device == "emulator":
        raise LaunchError(
            f"the matrices are on {device_name(out.device)}, and PTXDSL_DEVICE asks for the emulator",
            help="pass numpy arrays, or leave PTXDSL_DEVICE unset: kernels run where their arrays are",
        )


def check_no_overlap(group: ProblemGroup) -> None:
    """Raise LaunchError if an output overlaps another array other than its own C in place."""
    operands = [group.a, group.b, group.out, *([group.c] if group.c else [])]
    start = np.concatenate([operand.pointers for operand in operands])
    end = start + np.concatenate([operand.bytes for operand in operands])
    count = len(group.out.pointers)
    written = np.arange(len(start)) // count == 2
    used = np.flatnonzero(end > start)
    order = used[start[used].argsort(kind="stable")]
    for one, other in _overlapping_ranges(start[order], end[order], written[order]):
        _check_pair(operands, count, *sorted((int(order[one]), int(order[other]))))


def _overlapping_ranges(start: np.ndarray, end: np.ndarray, written: np.ndarray) -> Any:
    """Yield pairs of overlapping memory ranges with a written one. The ranges are sorted by start."""
    furthest = np.maximum.accumulate(end)
    heads = np.flatnonzero(np.concatenate(([True], start[1:] >= furthest[:-1])))
    for low, high in zip(heads, [*heads[1:], len(start)], strict=True):
        if high - low > 1 and written[low:high].any():
            for one, other in combinations(range(low, high), 2):
                if start[other] < end[one] and (written[one] or written[other]):
                    yield one, other


def _check_pair(operands: list[Matrices], count: int, first: int, second: int) -> None:
    (one, i), (other, j) = ((operands[n // count], n % count) for n in (first, second))
    in_place = one.name == "out" and other.name == "c" and i == j and one.pointers[i] == other.pointers[j]
    if in_place and (one.strides[i] == other.strides[j] or one.outer_extents[i] <= 1):
        return
    if overlap(one.array(i), other.array(j)):
        written, shared = f"`{one.name}[{i}]`", f"`{other.name}[{j}]`"
        if one.name != "out":
            written, shared = shared, written
        raise LaunchError(
            f"{written} shares memory with {shared}",
            help="give the output memory of its own; only c[i] may be out[i] itself",
        )
