"""An alpha of 0, as in BLAS: A and B are not read, so that infinities and NaN in them do not reach the output."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.kernels.ragged_k import grouped_gemm_ragged_k
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_ragged_k
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
M, N, K = 24, 16, 32
FACTORS = {"alpha": 0.0, "beta": 2.0}


def operands(dtype, m=M, k=K, n=N, value=np.nan):
    """Return A (m, k), row-major, and B (k, n), column-major, as wgmma reads both."""
    return np.full((m, k), value, NAMES[dtype]), np.full((n, k), value, NAMES[dtype]).T


def added(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape)) % 13).reshape(shape).astype(dtype)


@pytest.fixture(params=["sm_80", "sm_90a"])
def arch(request, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", request.param)
    return request.param


@every_machine
@pytest.mark.parametrize("dtype", ["f32", "f16", "f64"])
@pytest.mark.parametrize("options", [{}, {"split_k": 2}], ids=["whole", "split"])
def test_gemm(name, arch, dtype, options):
    where, kind = machine(name), np.float64 if dtype == "f64" else np.float32
    (a, b), c = map(where.array, operands(dtype)), added(M, N, dtype=kind)
    out = gemm(a, b, where.array(c), out=where.array(np.zeros_like(c)), **FACTORS, **options)
    assert (where.values(out) == 2 * c).all()
    assert not where.values(gemm(a, b, alpha=0.0)).any()


@every_machine
def test_gemm_of_types_that_wgmma_alone_takes(name, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    where, c = machine(name), added(M, N)
    a, b = map(where.array, operands("e4m3"))
    out = gemm(a, b, where.array(c), out=where.array(np.zeros_like(c)), **FACTORS)
    assert (where.values(out) == 2 * c).all()


@every_machine
def test_the_epilogue_still_runs(name, arch):
    where = machine(name)
    out = gemm(*map(where.array, operands("f16")), alpha=0, epilogue=lambda x: x + 3)
    assert (where.values(out) == 3).all()


@every_machine
def test_an_alpha_of_one_afterwards_reads_them(name, arch):
    """A remembered launch of an alpha of 0 is not one of an alpha of 1, nor the other way round."""
    where = machine(name)
    a, b = map(where.array, operands("f16", value=1))
    for alpha in (0.0, 1.0, 0.0, 0.5, 1.0):
        assert (where.values(gemm(a, b, alpha=alpha)) == alpha * K).all()


@every_machine
def test_batches_and_lists(name, arch):
    where, c = machine(name), added(2, M, N, dtype=np.float16)
    a, b = operands("f16")
    a, b = np.stack([a, a]), np.stack([b, b])
    out = gemm(*map(where.array, (a, b, c)), **FACTORS)
    assert (where.values(out) == 2 * c).all()
    for function in (gemm, grouped_gemm):
        listed = function(*([where.array(x) for x in each] for each in (a, b, c)), **FACTORS)
        assert all((where.values(each) == 2 * x).all() for each, x in zip(listed, c, strict=True))


def test_lists_of_types_that_wgmma_alone_takes_are_refused(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    a, b = operands("e4m3")
    with pytest.raises(pd.LaunchError) as refused:
        grouped_gemm([a], [b], alpha=0)
    assert refused.value.message == (
        "`a` and `b` are float8_e4m3fn, which takes wgmma, and problem 0 has nothing to multiply: its K or alpha is 0"
    )
    assert refused.value.help == "leave these problems out, and scale their c by beta"


@every_machine
def test_groups_of_k(name, arch):
    where, c = machine(name), added(3, M, N, dtype=np.float16)
    a, b = (np.full((64, x), np.inf, np.float16) for x in (M, N))
    ends = np.array([16, 16, 64], np.int32)
    out = grouped_gemm_ragged_k(*map(where.array, (a, b, ends, c)), **FACTORS)
    assert (where.values(out) == 2 * c).all()


def scaled_operands(where, *shapes):
    """Return A and B, and scales of two shapes, all NaN."""
    scales = [np.full(shape, np.nan, np.float32) for shape in shapes]
    return [where.array(x) for x in (*operands("e4m3", k=128), *scales)]


@every_machine
@pytest.mark.parametrize(
    "shapes", [((1,), (1,)), ((M, 1), (1, N)), ((M, 1), (1, 1))], ids=["tensors", "rows", "blocks"]
)
def test_scaled(name, shapes, monkeypatch):
    """The scales are not read either."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    where, c = machine(name), added(M, N)
    out = scaled_gemm(*scaled_operands(where, *shapes), where.array(c), **FACTORS)
    assert (where.values(out) == 2 * c).all()


@every_machine
@pytest.mark.parametrize(
    "shapes", [((1,), (1,)), ((1, M, 1), (1, 1, N)), ((M, 1), (1, N))], ids=["tensors", "rows", "blocks"]
)
def test_scaled_groups_of_k(name, shapes, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    where, c = machine(name), added(1, M, N)
    a, b, *scales = scaled_operands(where, *shapes)
    ends = where.array(np.array([128], np.int32))
    out = scaled_gemm_ragged_k(a, b, ends, *scales, where.array(c), **FACTORS)
    assert (where.values(out) == 2 * c).all()
