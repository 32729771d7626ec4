"""Products of float32 on the sm_90a path whose first factor comes from registers, since it lies along M or N."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.plan import plan_of
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm90 import DATA_PARALLEL, HEURISTIC
from ptxdsl.kernels.choose.products import choose_product
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import KERNELS, gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Extra, Operands
from ptxdsl.kernels.sm90.tiling import FRAGMENT_REGISTERS, WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle
from ptxdsl.types import bf16, f16, f32
from tests.kernels.placed import zeros
from tests.kernels.spills import check_no_spill
from tests.kernels.test_pingpong import blocks, every_machine
from tests.kernels.test_rounded_tf32 import between, cut, hopper, integers, lying
from tests.machines import machine

__all__ = ["blocks", "hopper"]  # fixtures for all tests here
ALONE = IdentityThreadblockSwizzle(1)
SIZES = [(1, 1, 1), (65, 127, 33), (200, 132, 100)]


def tile(m, n, stages=3, schedule=Strips(), **more):  # noqa: B008
    return GemmConfig(tile=(m, n, 32), stages=stages, atom="wgmma", schedule=schedule, **more)


WAYS = {
    "64 rows": tile(64, 48),
    "128 rows": tile(128, 32),
    "192 rows, staggered": tile(192, 16, stagger=1),
    "staggered": tile(128, 64, 4, stagger=2),
    "in turns": tile(128, 48, pingpong=True),
    "one tile a block": tile(128, 32, schedule=ALONE),
    "slices": tile(64, 64, schedule=ALONE, split_k=2),
    "a cluster adds up": tile(128, 32, schedule=ALONE, split_k=2, reduction="cluster"),
    "pairs that share B": tile(64, 64, schedule=ClusterStrips((2, 1))),
    "pairs that share A": tile(64, 32, schedule=ClusterStrips((1, 2))),
    "stream-K": tile(64, 64, schedule=StreamKThreadblockSwizzle(2)),
}
SWAPPED = {
    "8 rows": tile(8, 64, swap_ab=True),
    "48 rows": tile(48, 128, swap_ab=True),
    "swapped and staggered": tile(64, 128, 4, swap_ab=True, stagger=2),
    "swapped, in turns": tile(48, 128, swap_ab=True, pingpong=True),
    "swapped, a cluster adds up": tile(16, 64, schedule=ALONE, swap_ab=True, split_k=2, reduction="cluster"),
}


def operands(rng, m, n, k, layout):
    """Matrices with lines that begin at multiples of 16 bytes, and what is behind them, which is no number."""
    a, b = between(rng, m, k), integers(rng, k, n)
    of_a, of_b = (
        -(shape[0 if order == "F" else 1]) % 4 for shape, order in zip((a.shape, b.shape), layout, strict=True)
    )
    return lying(a, layout[0], of_a), lying(b, layout[1], of_b)


def exact(a, b):
    """Of what wgmma reads."""
    return cut(np.ascontiguousarray(a)).astype(np.float64) @ b.astype(np.float64)


@every_machine
@pytest.mark.parametrize(
    ("way", "first"), [*((way, "F") for way in WAYS), *((way, "C") for way in SWAPPED)], ids=lambda word: word
)
@pytest.mark.parametrize("other", "CF")
@pytest.mark.parametrize("sizes", SIZES)
def test_the_first_factor_along_rows_beside_any_other(name, way, first, other, sizes, rng, blocks):
    """A along M, or B along N; the other one is transposed where it does not lie along K. Blocks have several tiles;
    lines end at elements of no word."""
    where, layout = machine(name), "F" + other if first == "F" else other + "C"
    blocks(2)
    a, b = operands(rng, *sizes, layout)
    out = where.array(np.full(sizes[:2], np.nan, np.float32))
    result = gemm(where.array(a), where.array(b), out=out, config=(WAYS | SWAPPED)[way])
    assert np.array_equal(where.values(result), exact(a, b))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(("layout", "config"), [("FF", WAYS["staggered"]), ("CC", SWAPPED["swapped and staggered"])])
@pytest.mark.parametrize("output", [np.float32, np.float16])
@pytest.mark.parametrize("order", "CF")
def test_with_alpha_beta_c_and_an_epilogue(name, layout, config, output, order, rng):
    """float16 is stored in boxes; a column-major out is that of the transposes."""
    where, (m, n, k) = machine(name), (136, 144, 100)
    a, b = operands(rng, m, n, k, layout)
    if order == "F":
        config = replace(config, swap_ab=not config.swap_ab, tile=(*config.tile[1::-1], 32))
    c, bias = (np.array(integers(rng, *shape), output, order=order) for shape in ((m, n), (n,)))
    out = where.array(np.full((m, n), np.nan, output, order))
    how = {"alpha": 0.5, "beta": -2.0, "epilogue": add_relu, "operands": [per_column(where.array(bias))]}
    result = gemm(*map(where.array, (a, b, c)), out=out, config=config, **how)
    expected = np.maximum(0.5 * exact(a, b) - 2.0 * c.astype(np.float64) + bias.astype(np.float64), 0)
    assert np.array_equal(where.values(result), expected.astype(output).astype(np.float64))


@every_machine
@pytest.mark.parametrize(("layout", "config"), [("FF", WAYS["128 rows"]), ("CC", SWAPPED["48 rows"]), ("FC", None)])
@pytest.mark.parametrize("batches", [((3,), (3,)), ((3,), ()), ((), (3,))], ids=["both", "a", "b"])
def test_batches(name, layout, config, batches, rng):
    """Of matrices of their own, and of one for all. Without a tile one is chosen."""
    where = machine(name)
    a, b = (lying(draw(rng, *batch, *shape), order) for draw, batch, shape, order in
            zip((between, integers), batches, ((132, 40), (40, 72)), layout, strict=True))  # fmt: skip
    config = config or GemmConfig(atom="wgmma")
    assert np.array_equal(where.values(gemm(where.array(a), where.array(b), config=config)), exact(a, b))


@every_machine
@pytest.mark.parametrize("layout", ["CF", "FF", "CC", "FC"])
@pytest.mark.parametrize("how", [{"split_k": 2}, {"schedule": Strips()}], ids=["slices", "schedule"])
def test_the_tile_is_open_and_something_else_is_not(name, layout, how, rng):
    """A is the first factor then, as in the tiles that are usual."""
    where = machine(name)
    a, b = operands(rng, 130, 68, 100, layout)
    result = gemm(where.array(a), where.array(b), config=GemmConfig(atom="wgmma"), **how)
    assert np.array_equal(where.values(result), exact(a, b))


@pytest.mark.parametrize("size", [(512, 512, 512), (4096, 4096, 4096), (16, 4096, 4096), (4096, 48, 1024)], ids=str)
@pytest.mark.parametrize("layout", ["FF", "CC", "FC", "CF"])
def test_who_leaves_the_tile_open_gets_one_whose_first_factor_is_what_lies_so(layout, size):
    """Of both the larger is not copied."""
    m, n, k = size
    a, b = (zeros(*shape, np.float32) if order == "C" else zeros(*shape[::-1], np.float32).T
            for shape, order in zip(((m, k), (k, n)), layout, strict=True))  # fmt: skip
    plan = plan_of(KERNELS, problem_of(a, b, None, None, 0.0), GemmOptions(GemmConfig(atom="wgmma")), (1.0, 0.0))
    first = {"FF": "a", "CC": "b", "FC": "a" if m > n else "b", "CF": "none"}[layout]
    traits = plan.constants["traits"]
    assert traits.operands.from_registers == first and traits.from_registers == (first != "none")
    assert first == "none" or traits.tiling.swap_ab == (first == "b")
    assert len(plan.before) == (layout == "FC")


BESIDE = {"nothing": (), "a row": (Extra(f32, "n"),), "a matrix and a column": (Extra(f32, "m"), Extra(f16, "mn"))}


@pytest.mark.parametrize("facts", [{"a_major": "mn"}, {"rounded": "a"}, {"b_major": "mn"}, {"rounded": "b"}], ids=str)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize(("output", "c"), [(f32, "none"), (f32, "separate"), (f16, "none"), (f16, "separate")], ids=str)
def test_what_is_chosen_has_it_first_and_fits_the_gpu(facts, beside, output, c):
    """Of few rows, few columns and many of both, that blocks share along K or not; stored in boxes or by threads."""
    known = Operands(f32, output, c=c, extras=BESIDE[beside], **facts)
    for sizes, sharing in product([(1, 8192, 512), (300, 60, 8192), (2048, 512, 512)], [HEURISTIC, DATA_PARALLEL]):
        config = choose_product(ProductFacts(*sizes, 1, known, bool(known.extras)), rates_of(), sharing)
        for in_boxes in (False, output is f16 and config.split_k == 1 and beside != "a matrix and a column"):
            traits = config.traits(replace(known, out_boxes=in_boxes), "sm_90a")
            assert traits.from_registers and config.stages >= 3 and traits.fits("sm_90a")


@pytest.mark.parametrize(("way", "layout"), [
    ("64 rows", "FF"), ("192 rows, staggered", "FF"), ("in turns", "FF"),
    ("48 rows", "CC"), ("swapped and staggered", "CC"), ("swapped, in turns", "CC"),
])  # fmt: skip
def test_no_two_lanes_read_from_a_bank(way, layout, rng):
    a, b = operands(rng, 72, 136, 64, layout)
    config = (WAYS | SWAPPED)[way]
    plan = plan_of(KERNELS, problem_of(a, b, None, None, 0.0), GemmOptions(config), (1.0, 0.0))
    report = pd.emulate(plan.kernel, plan.grid, plan.threads, plan.group, traffic=True, **plan.constants)
    counted = {each.name: each for each in report.bank_conflicts if each.name == "ld.shared.b32"}
    assert counted and all(each.taken == each.ideal for each in counted.values())
    assert report.findings == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("rounded", ["none", "a", "b"])
@pytest.mark.parametrize(("config", "majors"), [
    (tile(128, 256, 4, stagger=3), {"a_major": "mn"}), (tile(64, 256, 4), {"a_major": "mn"}),
    (tile(192, 192, 4, stagger=1), {"a_major": "mn"}), (tile(128, 176, 3, pingpong=True), {"a_major": "mn"}),
    (tile(256, 128, 4, swap_ab=True, stagger=3), {"b_major": "mn"}),
    (tile(128, 112, 4, schedule=ALONE, split_k=2, reduction="cluster"), {"a_major": "mn"}),
], ids=str)  # fmt: skip
def test_nothing_is_spilled_and_products_overlap(config, majors, rounded):
    first = "b" if config.swap_ab else "a"
    if rounded not in ("none", first):
        pytest.skip("that is not the first factor")
    for output, in_boxes in ((f32, False), (bf16, True)):
        operands = Operands(f32, output, rounded=rounded, out_boxes=in_boxes, **majors)
        traits = WarpgroupTraits(config.tiling, operands, config.tile_schedule)
        if traits.fits("sm_90a"):
            check_no_spill(warpgroup_gemm_kernel, traits)


def test_registers_of_fragments_are_counted():
    along_k, along_m = Operands(f32, f32), Operands(f32, f32, a_major="mn")
    tiling = WarpgroupTiling((128, 128, 32))
    assert tiling.registers(along_m) == tiling.registers(along_k) + FRAGMENT_REGISTERS


@pytest.mark.parametrize(("layout", "config", "name"), [
    ("FF", tile(64, 48), "a"), ("CC", tile(48, 64, swap_ab=True), "b"), ("FF", GemmConfig(atom="wgmma"), "a"),
])  # fmt: skip
def test_lines_that_no_map_takes_are_refused(layout, config, name):
    """A call that is refused writes nothing."""
    a, b = (np.zeros((44, 37), np.float32)[:, :36] for _ in "ab")
    a, b = (a.T if layout[0] == "F" else a[:36]), (b.T if layout[1] == "F" else b[:36])
    if name == "a":
        b = np.zeros((a.shape[1], 36), np.float32, order="F")
    else:
        a = np.zeros((36, b.shape[0]), np.float32)
    out = np.full((a.shape[0], b.shape[1]), 7, np.float32)
    with pytest.raises(pd.LaunchError) as caught:
        gemm(a, b, out=out, config=config)
    address = (a if name == "a" else b).ctypes.data
    assert caught.value.message == (
        f"`{name}` has a leading dimension of 148 bytes and the address {address:#x}; TMA takes multiples of 16 bytes"
    )
    assert caught.value.help == "pad its leading dimension, or leave atom out: then they are loaded without TMA"
    assert (out == 7).all()


@pytest.mark.parametrize(("layout", "first", "config"), [
    ("FF", "a", tile(128, 192, pingpong=True)), ("CC", "b", tile(192, 128, swap_ab=True, pingpong=True)),
])  # fmt: skip
def test_more_sums_than_registers_are_left_for_are_refused(layout, first, config, rng):
    a, b = operands(rng, 136, 200, 32, layout)
    out = np.full((136, 200), 7, np.float32)
    with pytest.raises(pd.LaunchError) as caught:
        gemm(a, b, out=out, config=config)
    assert caught.value.message == (
        f"GemmConfig: tile is {config.tile}, pingpong is True, and `{first}` comes from registers, which leave one "
        "warpgroup 176 sums a thread; such a tile has 192"
    )
    assert caught.value.help == "take a smaller tile, or leave pingpong out"
    assert (out == 7).all()


def test_what_is_rounded_is_the_first_factor():
    """No call makes such traits."""
    traits = WarpgroupTraits(WarpgroupTiling((64, 48, 32)), Operands(f32, f32, rounded="b"), Strips())
    with pytest.raises(pd.LaunchError, match=r"`b` is rounded, and is not the first factor of wgmma\.m64n48k8"):
        warpgroup_gemm_kernel.resources("sm_90a", traits=traits)
