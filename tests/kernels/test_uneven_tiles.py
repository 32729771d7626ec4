"""Tiles of the sm_80 path whose M or N is no power of two: every kind of product, on the emulator and on a GPU."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ptxdsl.config import using
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import per_column, per_row, scale_rows_and_columns
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm_ragged
from ptxdsl.kernels.tiles.persistent import Persistent
from tests.kernels import test_conv, test_gemm, test_grouped, test_grouped_ragged, test_schedules
from tests.kernels import test_types as types
from tests.machines import MACHINES, machine

LOW = GemmConfig(tile=(48, 96, 32), warp=(48, 32), stages=3)  # three warps
FLAT = GemmConfig(tile=(96, 32, 32), warp=(32, 32), stages=2)  # three of them, too
SLICED = GemmConfig(tile=(48, 80, 64), warp=(16, 80, 32), stages=3)  # three, twice
WIDE = GemmConfig(tile=(112, 80, 32), warp=(112, 16), stages=3)  # five
LARGE = GemmConfig(tile=(128, 192, 32), warp=(64, 64), stages=3)
HALVES = (LOW, FLAT, SLICED, WIDE, LARGE)
OF_BYTES = GemmConfig(tile=(48, 112, 64), warp=(48, 16), stages=2)  # seven
OF_WORDS = GemmConfig(tile=(96, 48, 16), warp=(48, 16), stages=3)
DEEP_F64 = GemmConfig(tile=(48, 80, 32), warp=(48, 16), stages=2, atom="mma.m16n8k16.f64.f64")
SIZES = [1, 7, 16, 33, 47, 48, 49, 63, 80, 95, 96, 97, 111, 113, 191, 193]
ORDERS = ["row", "column"]

every_machine = pytest.mark.parametrize("name", MACHINES)
every_config = pytest.mark.parametrize("config", HALVES, ids=lambda c: f"{c.tile}-{c.warp}")


def near(rng):
    return [int(size) for size in rng.choice(SIZES, 3)]


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(
    "config, orders",
    [(c, o) for number, c in enumerate(HALVES) for o in product(ORDERS, repeat=3) if o.count("row") % 2 == number % 2],
    ids=lambda v: "-".join(v) if isinstance(v, tuple) else f"{v.tile}-{v.warp}",
)
def test_all_layouts_at_sizes_around_the_tiles(name, config, orders, rng):
    """Each two of the orders of a configuration, which has half of those that there are of three, are together."""
    test_gemm.check(machine(name), rng, *near(rng), orders=orders, config=config)


@every_machine
@pytest.mark.parametrize("config", [SLICED, WIDE], ids=["sliced", "five warps"])
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("extent", [0, 1])
def test_extents_of_zero_and_one(name, config, which, extent, rng):
    sizes = near(rng)
    sizes[which] = extent
    test_gemm.check(machine(name), rng, *sizes, config=config, beta=0.5)


@every_machine
@every_config
@pytest.mark.parametrize("padding", [(1, 2, 3), (2, 1, 8), (4, 8, 1)])
def test_narrow_copies(name, config, padding, rng):
    orders = ("row", "column", "row") if padding[0] == 1 else ("column", "row", "column")
    test_gemm.check(machine(name), rng, *near(rng), orders=orders, padding=padding, config=config, beta=-1.5)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(("inputs", "output", "config"), [
    ("bf16", "f32", WIDE), ("f16", "bf16", LOW), ("s8", "s32", OF_BYTES), ("u8", "bf16", OF_BYTES), ("s8", "f32", OF_BYTES),
    ("f32", "f32", OF_WORDS), ("f32", "f16", OF_WORDS), ("f64", "f64", OF_WORDS),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("orders", [("row", "column", "row"), ("column", "row", "column")], ids="-".join)
def test_other_types_with_c(name, inputs, output, config, orders, rng):
    check_type(machine(name), rng, inputs, output, config, orders)


@pytest.mark.parametrize("orders", [("row", "column", "row"), ("column", "row", "column")], ids="-".join)
def test_the_deepest_atom_of_f64(orders, rng):
    with using(arch="sm_90"):
        check_type(machine("emulator"), rng, "f64", "f64", DEEP_F64, orders)


def check_type(where, rng, inputs, output, config, orders):
    """A product with C, against exact arithmetic."""
    m, n, k = near(rng)
    case = types.Case((m, n, k), inputs, output, orders, alpha=2, beta=-1)
    a, b = types.matrix(rng, (m, k), orders[0], inputs), types.matrix(rng, (k, n), orders[1], inputs)
    c, out = (types.matrix(rng, (m, n), orders[2], output) for _ in range(2))
    expected, allowed = types.exact(case, a, b, c)
    given = [where.array(values) for values in (a, b, c, out)]
    found = where.values(gemm(*given[:3], out=given[3], alpha=2, beta=-1, config=config))
    assert np.all(np.abs(found - expected) <= allowed)


@pytest.mark.exhaustive
@every_machine
@every_config
def test_an_epilogue_reads_beside_the_output(name, config, rng):
    where, (m, n, k) = machine(name), near(rng)
    a, b = test_gemm.matrix(rng, (m, k), "row", "f16"), test_gemm.matrix(rng, (k, n), "row", "f16")
    of_rows, of_columns = rng.standard_normal(m).astype(np.float32), rng.standard_normal(n).astype(np.float32)
    out = where.array(np.full((m, n), np.nan, np.float32))
    operands = per_row(where.array(of_rows)), per_column(where.array(of_columns))
    gemm(where.array(a), where.array(b), out=out, config=config, epilogue=scale_rows_and_columns, operands=operands)
    scales = np.outer(of_rows, of_columns).astype(np.float64)
    x, y = a.astype(np.float64), b.astype(np.float64)
    allowed = (np.abs(x) @ np.abs(y)) * np.abs(scales) * (k / 16 + 4) * 2.0**-22 + 1e-7
    assert np.all(np.abs(where.values(out) - x @ y * scales) <= allowed)


@every_machine
@pytest.mark.parametrize("config", [LOW, SLICED], ids=["three warps", "sliced"])
@pytest.mark.parametrize("how", test_schedules.SCHEDULES.values(), ids=test_schedules.SCHEDULES)
def test_every_schedule(name, config, how, few_blocks, rng):
    sizes = [int(size) for size in rng.choice([33, 97, 130, 200], 2)]
    test_schedules.check(machine(name), rng, *sizes, 301, {**how, "config": config}, beta=0.5)


@pytest.fixture
def few_blocks(monkeypatch):
    """Persistent blocks have several tiles each."""
    resident = scheduled.resident_blocks

    def some(kernel, traits, device):
        found = resident(kernel, traits, device)
        return test_schedules.BLOCKS if isinstance(traits.schedule, Persistent) else found

    monkeypatch.setattr(scheduled, "resident_blocks", some)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [LOW, WIDE], ids=["three warps", "five warps"])
@pytest.mark.parametrize("reduction", ["serial", "parallel", "scatter"])
def test_split_k_with_other_layouts(name, config, reduction, rng):
    how = {"split_k": 3, "reduction": reduction, "config": config}
    test_schedules.check(machine(name), rng, 130, 97, 333, how, orders=("column", "row", "column"), output="f32")


@pytest.mark.exhaustive
@every_machine
def test_batches(name, rng):
    where = machine(name)
    a, b = rng.standard_normal((3, 50, 40)).astype(np.float16), rng.standard_normal((40, 99)).astype(np.float16)
    found = where.values(gemm(where.array(a), where.array(b), config=LOW))
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert np.all(np.abs(found - x @ y) <= 2.0**-10 * (np.abs(x) @ np.abs(y)) + 1e-7)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [LOW, FLAT], ids=["low", "flat"])
@pytest.mark.parametrize("schedule", test_grouped.SCHEDULES)
def test_lists_of_products(name, config, schedule, rng):
    sizes = [(50, 97, 64), (1, 200, 33), (0, 5, 7), (97, 48, 301), (13, 13, 0)]
    options = test_grouped.SCHEDULES[schedule]
    test_grouped.check(machine(name), rng, sizes, orders=("row", "row", "row"), config=config, beta=0.5, **options)


@every_machine
@pytest.mark.parametrize("config", [LOW, FLAT], ids=["low", "flat"])
def test_groups_of_rows(name, config, rng):
    ends = test_grouped_ragged.EXPERTS
    test_grouped_ragged.check_ragged(machine(name), rng, ends, 310, 100, 72, config=config)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [LOW, FLAT], ids=["low", "flat"])
@pytest.mark.parametrize("k", [72, 35])
def test_gathered_and_scattered_rows(name, config, k, rng):
    where, ends, n = machine(name), [0, 1, 66, 131, 150], 100
    a, b = rng.standard_normal((50, k)).astype(np.float16), rng.standard_normal((5, n, k)).astype(np.float16)
    rows, targets = rng.integers(0, 50, 150).astype(np.int32), rng.permutation(150).astype(np.int32)
    gathered, scattered = np.full((150, n), np.nan, np.float16), np.full((150, n), np.nan, np.float16)
    given = [where.array(x) for x in (a, b.swapaxes(1, 2), np.array(ends, np.int32), rows, targets)]
    first = grouped_gemm_ragged(*given[:3], rows=given[3], out=where.array(gathered), config=config)
    tokens = where.array(a[rows])
    second = grouped_gemm_ragged(tokens, *given[1:3], out_rows=given[4], out=where.array(scattered), config=config)
    found, moved, begin = where.values(first), where.values(second), 0
    for group, end in enumerate(ends):
        assert test_grouped_ragged.near(found[begin:end], a[rows[begin:end]], b[group].T, "f16")
        assert test_grouped_ragged.near(moved[targets[begin:end]], a[rows[begin:end]], b[group].T, "f16")
        begin = end


CONVOLUTIONS = {
    "3x3": ((2, 7, 9, 64), (40, 3, 3), {"pad": 1}),
    "stem": ((1, 21, 19, 3), (24, 7, 7), {"pad": 3, "stride": 2}),
    "split": ((2, 9, 14, 16), (50, 2, 4), {"pad": (1, 2), "stride": (2, 3), "dilation": (3, 2), "split_k": 2}),
}


@every_machine
@pytest.mark.parametrize("config", [LOW, FLAT, WIDE], ids=["low", "flat", "five warps"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(name, config, case, rng):
    image, filters, moves = CONVOLUTIONS[case]
    test_conv.check(machine(name), rng, image, filters, config=config, **moves)
