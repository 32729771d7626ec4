"""A of one 8-bit float and B of the other, as gradients and weights are: of all public functions that take them, against
numpy in float64, on the emulator and on a GPU. Values are small integers, and scales powers of 2: sums are exact."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_masked, scaled_gemm_ragged, scaled_gemm_ragged_k
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.types import TYPES, f32
from tests.kernels import test_scaled_ragged_k
from tests.kernels.test_scaled import SCALINGS, reference, scales_of, values
from tests.machines import MACHINES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
every_order = pytest.mark.parametrize("types", [("e4m3", "e5m2"), ("e5m2", "e4m3")], ids="-".join)
every_scaling = pytest.mark.parametrize("scaling", SCALINGS)
LOW = GemmConfig((64, 64, 128), stages=2, atom="wgmma")
SWAPPED = GemmConfig((32, 64, 128), stages=2, atom="wgmma", swap_ab=True)
M, N, K = 70, 200, 272


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")


def operands(rng, types, m=M, n=N, k=K):
    return values(rng, m, k, dtype=types[0]), values(rng, n, k, dtype=types[1]).T


def other_way(matrix):
    """The same values, columns where rows were."""
    return np.ascontiguousarray(matrix) if not matrix.flags["C_CONTIGUOUS"] else np.asfortranarray(matrix)


@every_machine
@every_order
@pytest.mark.parametrize("config", [None, LOW, SWAPPED], ids=["chosen", "low", "swapped"])
@pytest.mark.parametrize("is_transposed", [False, True], ids=["rows", "columns"])
def test_products(name, types, config, is_transposed, rng):
    where, (a, b) = machine(name), operands(rng, types)
    out = np.full((N, M), np.nan, np.float32).T if is_transposed else np.full((M, N), np.nan, np.float32)
    result = where.values(gemm(where.array(a), where.array(b), out=where.array(out), config=config))
    assert (result == a.astype(np.float64) @ b.astype(np.float64)).all()


@every_machine
@every_order
def test_products_of_operands_that_are_copied(name, types, rng):
    where, (a, b) = machine(name), operands(rng, types, k=269)
    for x, y in ((a, b), (other_way(a), other_way(b))):
        result = where.values(gemm(where.array(x), where.array(y)))
        assert (result == a.astype(np.float64) @ b.astype(np.float64)).all()


@every_machine
@every_order
@every_scaling
def test_scaled_products(name, types, scaling, rng):
    where, (a, b) = machine(name), operands(rng, types)
    scales = scales_of(rng, scaling, M, N, K)
    result = where.values(scaled_gemm(*[where.array(x) for x in (a, b, *scales)]))
    assert (result == reference(a, b, *scales)).all()


@every_machine
@every_order
@every_scaling
def test_groups_of_rows(name, types, scaling, rng):
    where, ends = machine(name), np.array([0, 30, 33, 70], np.int32)
    a, b = values(rng, M, K, dtype=types[0]), values(rng, 4, N, K, dtype=types[1]).swapaxes(1, 2)
    scales = scales_of(rng, scaling, M, N, K, (4,))
    of_rows = scales[0] if scales[0].size > 1 else np.broadcast_to(scales[0], (M, 1))
    of_b = np.broadcast_to(scales[1], (4, *scales[1].shape[-2:])) if scales[1].ndim else np.full((4, 1, 1), scales[1])
    result = where.values(scaled_gemm_ragged(*[where.array(x) for x in (a, b, ends, *scales)]))
    for group, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        exact = reference(a[begin:end], b[group], of_rows[begin:end], of_b[group])
        assert (result[begin:end] == exact).all(), group


@every_machine
@every_order
def test_groups_of_room(name, types, rng):
    where, counts = machine(name), np.array([3, 0, 20], np.int32)
    a, b = values(rng, 3, 20, K, dtype=types[0]), values(rng, 3, N, K, dtype=types[1]).swapaxes(1, 2)
    one = np.ones(1, np.float32)
    result = where.values(scaled_gemm_masked(*[where.array(x) for x in (a, b, counts, one, one)]))
    for group, count in enumerate(counts):
        assert (result[group, :count] == a[group, :count].astype(np.float64) @ b[group].astype(np.float64)).all()


@pytest.mark.exhaustive
@every_machine
@every_order
@every_scaling
def test_groups_along_k(name, types, scaling, rng):
    where, ends = machine(name), np.array([16, 144, 272], np.int32)
    a, b = operands(rng, types, 72, 40)
    scales = test_scaled_ragged_k.scales_of(rng, scaling, ends, 72, 40, K)
    result = where.values(scaled_gemm_ragged_k(*[where.array(x) for x in (a, b, ends, *scales)]))
    for actual, exact in zip(result, test_scaled_ragged_k.reference(a, b, ends, *scales, scaling), strict=True):
        assert (actual == exact).all()


@every_order
def test_the_instruction_names_both(types, rng):
    """In the order of its operands, which is the other one where tiles are swapped."""
    first, second = (TYPES[name] for name in types)
    for swap_ab, order in ((False, types), (True, types[::-1])):
        tiling = WarpgroupTiling((64, 64, 128), stages=2, swap_ab=swap_ab)
        traits = WarpgroupTraits(tiling, Operands(first, f32, b_type=second))
        assert f".f32.{'.'.join(order)} " in warpgroup_gemm_kernel.ptx(arch="sm_90a", traits=traits)
