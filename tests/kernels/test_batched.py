"""Batches of products against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import batched as module
from ptxdsl.kernels.call.launching.memory import CALLS
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import gemm, gemm_kernel
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    GroupedRowsThreadblockSwizzle,
    HilbertThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
)
from tests.kernels.test_schedules import BLOCKS, close, few_blocks
from tests.machines import MACHINES, machine

__all__ = ["few_blocks"]  # a fixture for all tests here
TINY = GemmConfig(tile=(32, 32, 32), warp=(16, 32), stages=2)
SCHEDULES = [
    None,
    BatchedIdentityThreadblockSwizzle(),
    IdentityThreadblockSwizzle(2),
    HorizontalThreadblockSwizzle(),
    GroupedRowsThreadblockSwizzle(2),
    HilbertThreadblockSwizzle(1),
    PersistentScheduler(max_swizzle=2),
    StreamKThreadblockSwizzle(BLOCKS),
]
every_machine = pytest.mark.parametrize("name", MACHINES)
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: getattr(s, "name", type(s).__name__))


def numbers(rng, shape):
    return rng.standard_normal(shape).astype(np.float16)


def integers(rng, shape):
    """Small ones, whose sums are exact in whatever order."""
    return rng.integers(-3, 4, shape).astype(np.float16)


def transposed(array):
    """The same values, each matrix column-major."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


def nans(*shape):
    return np.full(shape, np.nan, np.float16)


def check(where, a, b, c=None, *, beta=0.0, out=None, **how):
    """One batch into NaNs, held against float64."""
    x, y, z = a.astype(np.float64), b.astype(np.float64), 0.0 if c is None else c.astype(np.float64)
    expected = x @ y + beta * z
    target = where.array(nans(*expected.shape) if out is None else out)
    given = [where.array(v) if v is not None else None for v in (a, b, c)]
    result = gemm(*given, out=target, beta=beta, **{"config": TINY, **how})
    assert result is target
    close(where.values(target), expected, np.abs(x) @ np.abs(y) + np.abs(beta * z), a.shape[-1], "f16")


@every_machine
@every_schedule
def test_batches(name, schedule, rng):
    for batches, m, n, k in [(3, 40, 70, 50), (1, 33, 31, 64), (7, 1, 65, 1), (2, 64, 5, 0)]:
        check(machine(name), numbers(rng, (batches, m, k)), numbers(rng, (batches, k, n)), schedule=schedule)


@every_machine
@pytest.mark.parametrize("which", range(4), ids=["a", "b", "c", "out"])
def test_column_major_matrices(name, which, rng):
    given = [numbers(rng, shape) for shape in ((3, 40, 24), (3, 24, 50), (3, 40, 50))] + [nans(3, 40, 50)]
    given[which] = transposed(given[which])
    check(machine(name), *given[:3], out=given[3], beta=-0.5)


@every_machine
def test_batches_that_lie_anywhere(name, rng):
    """Backwards, one for all, a slice of every second one, and the batch between rows and columns."""
    where = machine("emulator") if name == "emulator" else machine(name)
    a, b = numbers(rng, (4, 40, 24)), numbers(rng, (24, 50))
    check(where, a, np.broadcast_to(b, (4, 24, 50)) if name == "emulator" else b)
    check(where, a[::2], b)
    check(where, a[0], numbers(rng, (3, 24, 50)))
    check(where, a[:1], numbers(rng, (3, 24, 50)), beta=2.0, c=numbers(rng, (40, 50)))
    check(where, a, b, out=nans(40, 4, 50).swapaxes(0, 1))
    if name == "emulator":  # torch has no negative strides
        check(where, a[::-1], b)


@every_machine
def test_c_may_be_the_output(name, rng):
    where, (a, b, c) = machine(name), (numbers(rng, shape) for shape in ((3, 40, 24), (3, 24, 50), (3, 40, 50)))
    expected = a.astype(np.float64) @ b.astype(np.float64) - c
    held = where.array(c.copy())
    gemm(where.array(a), where.array(b), held, out=held, beta=-1.0)
    close(where.values(held), expected, np.abs(expected) + 100, 24, "f16")


@every_machine
def test_an_epilogue_with_one_bias_for_all(name, rng):
    where, (a, b, bias) = machine(name), (numbers(rng, shape) for shape in ((3, 40, 24), (3, 24, 50), (50,)))
    out = where.array(nans(3, 40, 50))
    gemm(where.array(a), where.array(b), out=out, epilogue=add_relu, operands=[per_column(where.array(bias))])
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
    close(where.values(out), expected, np.abs(expected) + 100, 24, "f16")


@pytest.mark.exhaustive
@every_machine
def test_more_batches_than_a_grid_is_deep(name, rng):
    count = 65535 + 4
    for schedule in [None] if name == "emulator" else [None, PersistentScheduler()]:
        check(machine(name), numbers(rng, (count, 1, 2)), numbers(rng, (2, 1)), config=LEAST, schedule=schedule)


LEAST = GemmConfig(tile=(16, 16, 32), warp=(16, 16), stages=2)


@every_machine
def test_no_batches(name, rng):
    where = machine(name)
    out = gemm(where.array(numbers(rng, (0, 4, 5))), where.array(numbers(rng, (0, 5, 6))))
    assert tuple(out.shape) == (0, 4, 6)
    assert gemm([], []) == []


@every_machine
def test_an_output_is_made(name, rng):
    where, a, b = machine(name), numbers(rng, (2, 4, 5)), numbers(rng, (5, 6))
    found = where.values(gemm(where.array(a), where.array(b)))
    close(found, a.astype(np.float64) @ b, np.full((2, 4, 6), 10.0), 5, "f16")


@every_machine
@every_schedule
def test_lists(name, schedule, rng):
    where = machine(name)
    a, b = ([numbers(rng, shape) for _ in range(5)] for shape in ((40, 50), (50, 70)))
    c, out = [numbers(rng, (40, 70)) for _ in range(5)], [where.array(nans(40, 70)) for _ in range(5)]
    given = [[where.array(matrix) for matrix in matrices] for matrices in (a, b, c)]
    assert gemm(*given, out=out, beta=0.5, config=TINY, schedule=schedule) == out
    for x, y, z, found in zip(a, b, c, out, strict=True):
        x, y = x.astype(np.float64), y.astype(np.float64)
        close(where.values(found), x @ y + 0.5 * z, np.abs(x) @ np.abs(y) + np.abs(z), 50, "f16")


@pytest.mark.exhaustive
@every_machine
def test_lists_in_any_order_and_one_matrix_for_all(name, rng):
    where = machine(name)
    a, b = [transposed(numbers(rng, (40, 24))) for _ in range(3)], numbers(rng, (24, 50))
    out = [where.array(transposed(nans(40, 50))) for _ in range(3)]
    gemm([where.array(matrix) for matrix in a], where.array(b), out=out)
    made = gemm([where.array(matrix) for matrix in a], where.array(b))
    for x, *found in zip(a, out, made, strict=True):
        expected = x.astype(np.float64) @ b.astype(np.float64)
        for values in map(where.values, found):
            close(values, expected, np.full((40, 50), 30.0), 24, "f16")


@pytest.mark.exhaustive
@every_machine
def test_lists_whose_c_is_the_output(name, rng):
    where = machine(name)
    a, b, c = ([where.array(numbers(rng, shape)) for _ in range(3)] for shape in ((40, 24), (24, 50), (40, 50)))
    expected = [where.values(x) @ where.values(y) + where.values(z) for x, y, z in zip(a, b, c, strict=True)]
    gemm(a, b, c, out=c, beta=1.0)
    for found, wanted in zip(c, expected, strict=True):
        close(where.values(found), wanted, np.full((40, 50), 30.0), 24, "f16")


def test_one_kernel_serves_all_counts(rng):
    def texts():
        return {variant.text for variant in gemm_kernel._variants.values()}

    where = machine("emulator")
    check(where, numbers(rng, (3, 40, 64)), numbers(rng, (3, 64, 72)))
    before = texts()
    for batches, m, n, k in [(1, 64, 72, 72), (70, 8, 8, 8), (5, 100, 80, 40)]:
        check(where, numbers(rng, (batches, m, k)), numbers(rng, (batches, k, n)))
    assert texts() == before


A, B = np.ones((3, 4, 6), np.float16), np.ones((3, 6, 8), np.float16)
READ_ONLY = np.zeros((4, 8), np.float16)
READ_ONLY.flags.writeable = False
OVERLAPPING = np.lib.stride_tricks.as_strided(np.zeros(64, np.float16), (3, 4, 8), (2, 16, 2))
REFUSED = {
    "other counts": (
        lambda: gemm(A, B[:2]),
        "`a` has the shape (3, 4, 6) and `b` (2, 6, 8): 3 batches meet 2",
        "pass as many matrices of each, or a single one, of two dimensions, for all",
    ),
    "a single output": (
        lambda: gemm(A, B, out=np.ones((4, 8), np.float16)),
        "`out` has the shape (4, 8); a@b has (3, 4, 8)",
        "pass `out` of that shape",
    ),
    "four dimensions": (
        lambda: gemm(A[None], B),
        "`a` has the shape (1, 3, 4, 6); a matrix has two dimensions, a batch of them three",
        "reshape it",
    ),
    "outputs that overlap": (
        lambda: gemm(A, B, out=OVERLAPPING),
        "`out` has the shape (3, 4, 8) and batches 1 elements apart, which overlap",
        "give each product memory of its own",
    ),
    "split K": (
        lambda: gemm(A, B, split_k=2),
        "split_k is 2, and the products are batches: each of them is computed by blocks of its own",
        "leave split_k out, or call gemm for each of the batches",
    ),
    "batches of single matrices": (
        lambda: gemm(A[0], B[0], schedule=BatchedIdentityThreadblockSwizzle(), split_k=2),
        "GemmConfig: split_k is 2, and z of the batched-identity grid is the batch; "
        "take SplitKIdentityThreadblockSwizzle, whose z is the slice of K",
        None,
    ),
    "a list of other sizes": (
        lambda: gemm([A[0], A[0][:2]], [B[0], B[0]]),
        "`a[1]` has the shape (2, 6) and a leading dimension of 6, and `a[0]` (4, 6) and 6; "
        "the matrices of a list must have one layout",
        "call grouped_gemm of ptxdsl.kernels.grouped, which takes problems of any sizes",
    ),
    "b of three dimensions beside a list": (
        lambda: gemm(list(A), B),
        "`b` has the shape (3, 6, 8), and `a` is a list of matrices",
        "pass `b` as a list too, such as list(b); a single matrix is shared by all products",
    ),
    "a of three dimensions beside a list": (
        lambda: gemm(A, list(B)),
        "`a` has the shape (3, 4, 6), and `b` is a list of matrices",
        "pass `a` as a list too, such as list(a); a single matrix is shared by all products",
    ),
    "c of three dimensions beside lists": (
        lambda: gemm(list(A), list(B), np.ones((3, 4, 8), np.float16), beta=1),
        "`c` has the shape (3, 4, 8), and `a` is a list of matrices",
        "pass `c` as a list too, such as list(c); a single matrix is shared by all products",
    ),
    "an output of three dimensions beside lists": (
        lambda: gemm(list(A), list(B), out=np.ones((3, 4, 8), np.float16)),
        "`out` has the shape (3, 4, 8), and `a` is a list of matrices",
        "pass `out` as a list too, such as list(out)",
    ),
    "one output of lists": (
        lambda: gemm(list(A), list(B), out=np.ones((4, 8), np.float16)),
        "`out` has the shape (4, 8), and `a` is a list of matrices",
        "pass `out` as a list too",
    ),
    "a vector beside a list": (
        lambda: gemm(list(A), B[0, 0]),
        "`b` has the shape (8,); a matrix has two dimensions",
        "reshape it",
    ),
    "no array beside a list": (
        lambda: gemm(list(A), None),
        "`b` is of type NoneType, not an array",
        "pass numpy arrays, or CUDA arrays of torch, CuPy or JAX",
    ),
    "a list with an output that is read-only": (
        lambda: gemm([A[0]], [B[0]], out=[READ_ONLY]),
        "`out[0]` is read-only",
        "pass an array that may be written",
    ),
    "operands of lists": (
        lambda: gemm([A[0]], [B[0]], epilogue=add_relu, operands=[per_column(np.ones(8, np.float16))]),
        "operands of the epilogue are given, and the matrices are lists",
        "pass arrays of three dimensions: all their products take the same operands",
    ),
    "a deep grid": (
        lambda: gemm(np.ones((65536, 1, 1), np.float16), B[0, :1, :1], schedule=HorizontalThreadblockSwizzle()),
        "horizontal: the grid has 65536 blocks along z, but the limit is 65535",
        "split K into fewer slices; for more batches, use BatchedIdentityThreadblockSwizzle",
    ),
}


@pytest.mark.parametrize("call, message, help", REFUSED.values(), ids=REFUSED)
def test_refused(call, message, help):
    with pytest.raises(pd.Error) as refused:
        call()
    assert (refused.value.message, refused.value.help) == (message, help)


@pytest.mark.gpu
def test_planned_lists_are_those_of_the_careful_way(rng, monkeypatch):
    where = machine("gpu")
    a, b, c = (
        [[where.array(integers(rng, shape)) for _ in range(4)] for _ in range(3)]
        for shape in ((40, 50), (50, 70), (40, 70))
    )
    CALLS.clear()
    for left, right, held in zip(a, b, c, strict=True):
        for how in ({}, {"schedule": PersistentScheduler()}):
            out = [where.array(nans(40, 70)) for _ in range(4)]
            with monkeypatch.context() as patch:
                if len(CALLS) == 2:
                    patch.setattr(module, "batched_group", None)  # it must not be asked
                assert gemm(left, right, held, out=out, beta=1.0, **how) is out
            for x, y, z, found in zip(left, right, held, out, strict=True):
                assert np.array_equal(where.values(found), where.values(x) @ where.values(y) + where.values(z))
    assert len(CALLS) == 2


@pytest.mark.gpu
def test_lists_that_lie_otherwise_are_worked_out_anew(rng):
    where = machine("gpu")
    wide = [where.array(integers(rng, (40, 56))) for _ in range(3)]
    b = [where.array(integers(rng, (50, 70))) for _ in range(3)]
    for first in (0, 1, 3, 0):  # at other alignments
        a = [matrix[:, first : first + 50] for matrix in wide]
        out = gemm(a, b, out=[where.array(nans(40, 70)) for _ in range(3)])
        for x, y, found in zip(a, b, out, strict=True):
            assert np.array_equal(where.values(found), where.values(x) @ where.values(y))
    with pytest.raises(pd.LaunchError, match=r"`out\[0\]` shares memory with `b\[1\]`"):
        gemm(a, b, out=[b[1][:40], *out[1:]])
    out[0] = out[1]
    with pytest.raises(pd.LaunchError, match=r"`out\[.\]` shares memory with `out\[.\]`"):
        gemm(a, b, out=out)
