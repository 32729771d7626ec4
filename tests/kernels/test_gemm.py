"""gemm() against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.kernels.candidates.sm80 import LARGE, MEDIUM, SMALL
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm, gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from tests.machines import MACHINES, NAMES, machine

ROUNDING = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 0.0}
BOUNDARIES = [0, 1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129]
ORDERS = ["row", "column"]


def matrix(rng, shape, order, dtype, padding=0):
    """N(0,1) in row- or column-major order, `padding` elements between its rows or columns."""
    rows, columns = shape if order == "row" else shape[::-1]
    whole = np.full((rows, columns + padding), np.nan).astype(NAMES[dtype])
    whole[:, :columns] = rng.standard_normal((rows, columns)).astype(np.float32).astype(NAMES[dtype])
    view = whole[:, :columns]
    return view if order == "row" else view.T


def poisoned(shape, order, dtype, padding=0):
    """An output that is NaN everywhere."""
    rows, columns = shape if order == "row" else shape[::-1]
    view = np.full((rows, columns + padding), np.nan).astype(NAMES[dtype])[:, :columns]
    return view if order == "row" else view.T


def check(where, rng, m, n, k, *, orders=("row", "column", "row"), inputs="f16", output=None, alpha=1.0, beta=0.0,
          padding=(0, 0, 0), in_place=False, config=None):  # fmt: skip
    """Runs one product and holds it against float64: every element within the rounding of its sum."""
    output = output or inputs
    a, b = matrix(rng, (m, k), orders[0], inputs, padding[0]), matrix(rng, (k, n), orders[1], inputs, padding[1])
    c = matrix(rng, (m, n), orders[2], output, padding[2]) if beta else None
    out = c if in_place else poisoned((m, n), orders[2], output, padding[2])
    x, y, z = a.astype(np.float64), b.astype(np.float64), c.astype(np.float64) if beta else 0.0
    expected = alpha * (x @ y) + beta * z
    scale = abs(alpha) * (np.abs(x) @ np.abs(y)) + abs(beta) * np.abs(z)
    given = [where.array(v) if v is not None else None for v in (a, b, c, out)]
    if in_place:
        given[3] = given[2]
    result = gemm(*given[:3], out=given[3], alpha=alpha, beta=beta, config=config)
    assert result is given[3]
    found = where.values(result)
    allowed = (k / 16 + 2) * 2.0**-22 * scale + ROUNDING[output] * np.abs(expected) + 1e-7
    assert found.shape == (m, n)
    assert np.all(np.abs(found - expected) <= allowed), np.nanmax(np.abs(found - expected) - allowed)


def near(rng, count):
    return [tuple(int(v) for v in rng.choice(BOUNDARIES, 3)) for _ in range(count)]


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("config", [MEDIUM, LARGE, SMALL], ids=["medium", "large", "small"])
@pytest.mark.parametrize("orders", [(a, b, c) for a in ORDERS for b in ORDERS for c in ORDERS], ids="-".join)
def test_all_layouts_at_sizes_around_the_tiles(name, config, orders, rng):
    for m, n, k in near(rng, 2 if name == "emulator" else 12):
        check(machine(name), rng, m, n, k, orders=orders, config=config)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("inputs", ["f16", "bf16"])
@pytest.mark.parametrize("output", ["f16", "bf16", "f32"])
def test_all_types_with_alpha_beta_and_c(name, inputs, output, rng):
    for m, n, k in near(rng, 2):
        check(machine(name), rng, m, n, k, inputs=inputs, output=output, alpha=-0.75, beta=1.5)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("extent", [0, 1])
@pytest.mark.parametrize("which", range(3))
def test_extents_of_zero_and_one(name, extent, which, rng):
    sizes = [33, 20, 40]
    sizes[which] = extent
    check(machine(name), rng, *sizes, beta=0.5)
    check(machine(name), rng, *sizes)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("sizes", [(3, 0, 5, 4), (3, 5, 0, 4), (0, 5, 4, 3), (3, 0, 0, 0), (3, 5, 2, 0)])
def test_batches_without_elements(name, sizes):
    where, (batches, m, n, k) = machine(name), sizes
    a, b = where.array(np.ones((batches, m, k), np.float16)), where.array(np.ones((batches, k, n), np.float16))
    expected = np.zeros((batches, m, n))
    assert np.array_equal(where.values(gemm(a, b)), expected)
    for order in ORDERS:
        shape = (batches, m, n) if order == "row" else (batches, n, m)
        whole = np.full(shape, np.nan, np.float16)
        out = where.array(whole if order == "row" else whole.transpose(0, 2, 1))
        assert np.array_equal(where.values(gemm(a, b, out=out)), expected)
        c = where.array(np.ones((batches, m, n), np.float16))
        assert np.array_equal(where.values(gemm(a, b, c, beta=2.0, out=out)), expected + 2)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("padding", [(1, 2, 3), (8, 4, 2), (2, 1, 8)])
@pytest.mark.parametrize("orders", [("row", "column", "row"), ("column", "row", "column")], ids="-".join)
def test_submatrices_whose_rows_begin_at_any_element(name, padding, orders, rng):
    check(machine(name), rng, 70, 66, 72, orders=orders, padding=padding)
    check(machine(name), rng, 70, 66, 72, orders=orders, padding=padding, beta=2.0, output="f32")


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("order", ORDERS)
def test_c_may_be_the_output(name, order, rng):
    check(machine(name), rng, 65, 130, 24, orders=("row", "row", order), beta=-1.0, in_place=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_sizes_past_a_whole_wave(name, rng):
    sizes = (
        [(4097, 17, 33)]
        if name == "emulator"
        else [(4097, 4097, 4097), (4096, 1000, 8), (1, 4097, 4100), (5000, 3, 777)]
    )
    for m, n, k in sizes:
        check(machine(name), rng, m, n, k)


def test_c_is_not_read_when_beta_is_zero(rng):
    a, b = matrix(rng, (9, 10), "row", "f16"), matrix(rng, (10, 11), "row", "f16")
    c = poisoned((9, 11), "row", "f16")
    assert np.isfinite(gemm(a, b, c, beta=0.0).astype(np.float32)).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("config", [LARGE, MEDIUM, SMALL], ids=["large", "medium", "small"])
def test_shipped_kernels_use_the_tensor_cores_and_spill_nothing(config):
    text = gemm_kernel.ptx(traits=config.traits())
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in text
    assert "cp.async.cg.shared.global" in text
    for orders in ({}, {"a_major": "mn"}, {"b_major": "mn"}, {"a_major": "mn", "b_major": "mn"}):
        resources = gemm_kernel.resources(arch="sm_90", traits=config.traits(Operands(**orders)))
        assert resources.spill_store_bytes == resources.spill_load_bytes == 0


def test_one_kernel_serves_all_sizes(rng):
    before = gemm_kernel.ptx(traits=SMALL.traits())
    check(machine("emulator"), rng, 16, 24, 40, config=SMALL)
    assert gemm_kernel.ptx(traits=SMALL.traits()) == before


def test_a_configuration_keeps_its_tiles(rng):
    check(machine("emulator"), rng, 40, 40, 40, config=GemmConfig(tile=(64, 128, 32), warp=(32, 64), stages=3))
