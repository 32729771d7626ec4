"""Scaled products in all ways of plain ones: swapped tiles, blocks that share K, warpgroups in turns; against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import per_column, per_row
from ptxdsl.kernels.scaled import scaled_gemm
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    StreamKThreadblockSwizzle,
)
from tests.kernels.scales import SCALINGS, check, powers, reference, scales_of, values
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)


def tiles(m, n, stages=2, **how):
    return GemmConfig((m, n, 128), stages=stages, atom="wgmma", **how)


def swapped(m, n, stages=2, **how):
    return tiles(m, n, stages, swap_ab=True, **how)


def cluster(slices):
    return {"split_k": slices, "reduction": "cluster"}


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has several tiles."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(scheduled, "resident_blocks", lambda *_, **__: 3)


SWAPPED = {
    "8 rows": ((1, 200, 272), swapped(8, 64)),
    "two warpgroups": ((3, 200, 272), swapped(16, 128)),
    "48 rows": ((33, 136, 144), swapped(48, 64, 3)),
    "several tiles": ((100, 136, 144), swapped(64, 64)),
    "as many as are read later": ((130, 136, 144), swapped(256, 128)),
    "one tile each": ((16, 200, 272), swapped(16, 64, schedule=IdentityThreadblockSwizzle(1))),
    "in turns": ((100, 264, 272), swapped(64, 128, pingpong=True)),
    "copies of B are shared": ((33, 136, 272), swapped(32, 64, schedule=ClusterStrips((2, 1)))),
}


def takes_blocks(config):
    """Whether scales of blocks leave registers for it, and time."""
    return config is None or not (config.pingpong or (config.swap_ab and config.tile[0] > 32))


OF_SWAPPED = [
    (scaling, n) for scaling in SCALINGS for n in SWAPPED if scaling != "blocks" or takes_blocks(SWAPPED[n][1])
]


@every_machine
@pytest.mark.parametrize("scaling, which", OF_SWAPPED)
def test_swapped_tiles(name, scaling, which, rng):
    shape, config = SWAPPED[which]
    check(machine(name), rng, scaling, *shape, output="bf16", config=config)


SHARED = {
    "cluster, swapped": ((3, 200, 656), swapped(8, 64, **cluster(3))),
    "cluster, swapped, two warpgroups": ((16, 264, 528), swapped(16, 128, **cluster(2))),
    "cluster of 8, swapped": ((64, 72, 1152), swapped(64, 64, **cluster(8))),
    "cluster": ((33, 200, 656), tiles(64, 64, **cluster(4))),
    "cluster of more than K has": ((1, 72, 272), tiles(64, 64, **cluster(5))),
    "cluster, two warpgroups": ((130, 72, 272), tiles(128, 128, **cluster(2))),
    "cluster, sums in the ring": ((70, 136, 400), tiles(128, 128, 7, **cluster(2))),
    "serial": ((33, 136, 528), tiles(64, 64, split_k=3, reduction="serial")),
    "parallel": ((70, 136, 528), tiles(128, 64, split_k=2, reduction="parallel")),
    "scatter": ((100, 72, 528), tiles(64, 64, split_k=3, reduction="scatter")),
    "stream-K": ((130, 136, 528), tiles(64, 64, schedule=StreamKThreadblockSwizzle(3))),
    "scatter, swapped": ((16, 136, 528), swapped(16, 64, split_k=2, reduction="scatter")),
    "stream-K, swapped": ((33, 136, 528), swapped(48, 64, schedule=StreamKThreadblockSwizzle(3))),
}


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("which", SHARED)
def test_rows_and_columns_where_blocks_share_k(name, which, rng):
    shape, config = SHARED[which]
    check(machine(name), rng, "rows", *shape, config=config)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("which", ["cluster, swapped", "cluster", "parallel", "stream-K, swapped"])
def test_tensors_where_blocks_share_k(name, which, rng):
    shape, config = SHARED[which]
    check(machine(name), rng, "tensors", *shape, output="f16", config=config)


@every_machine
@pytest.mark.parametrize("which", [which for which in SHARED if takes_blocks(SHARED[which][1])])
def test_blocks_where_blocks_share_k(name, which, rng):
    """Each begins with the scales of its part of K."""
    shape, config = SHARED[which]
    check(machine(name), rng, "blocks", *shape, config=config)


WHOLE = {
    "in turns": ((200, 136, 144), tiles(128, 128, pingpong=True)),
    "one after the other": ((150, 200, 272), tiles(128, 96, 3, stagger=2)),
    "one after the other, a tile each": (
        (150, 200, 272), tiles(128, 96, 3, stagger=2, schedule=IdentityThreadblockSwizzle(1)),
    ),
    "three warpgroups": ((200, 136, 144), tiles(192, 64)),
    "copies of B are shared": ((200, 136, 272), tiles(128, 64, schedule=ClusterStrips((2, 1)))),
    "a scheduler": ((150, 200, 144), tiles(64, 64, schedule=PersistentScheduler())),
}  # fmt: skip


@every_machine
@pytest.mark.parametrize("which", WHOLE)
def test_ways_of_warpgroups(name, which, rng):
    shape, config = WHOLE[which]
    check(machine(name), rng, "rows", *shape, output="bf16", config=config)


FEW = {1: (136, 272), 3: (137, 656), 16: (136, 1040), 33: (264, 144), 64: (72, 1040), 100: (129, 528), 130: (200, 400)}


@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("m", FEW)
def test_tiles_that_are_chosen(name, scaling, m, rng):
    check(machine(name), rng, scaling, m, *FEW[m], output="bf16")


@every_machine
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("m, n, k", [(1, 71, 133), (16, 136, 777)])
def test_lines_that_are_copied_before(name, scaling, m, n, k, rng):
    where = machine(name)
    a, b = values(rng, m, k), values(rng, n, k)
    scales = scales_of(rng, scaling, m, n, k)
    given = [where.array(x) for x in (np.ascontiguousarray(a), np.ascontiguousarray(b).T, *scales)]
    assert (where.values(scaled_gemm(*given)) == reference(a, b.T, *scales)).all()


WAYS = {
    "swapped": swapped(16, 64),
    "swapped, cluster": swapped(32, 128, **cluster(2)),
    "cluster": tiles(64, 64, **cluster(3)),
    "serial": tiles(64, 64, split_k=2, reduction="serial"),
    "scatter": swapped(16, 64, split_k=3, reduction="scatter"),
    "in turns": swapped(16, 128, pingpong=True),
}
ADDED = [("rows", "bf16", n) for n in WAYS]
ADDED += [("blocks", "f32", n) for n in ("swapped", "swapped, cluster", "cluster", "scatter")]
ADDED += [("tensors", "e4m3", n) for n in ("swapped, cluster", "serial")] + [("rows", "e4m3", "cluster")]


def beside(value, of_row, of_column):
    return value * of_column + of_row


@every_machine
@pytest.mark.parametrize("scaling, output, which", ADDED)
def test_what_is_added_is_added_once(name, scaling, output, which, rng):
    """alpha, beta and C, and a function of vectors, where blocks have parts of a sum."""
    where, (m, n, k) = machine(name), (19, 72, 400)
    a, b, scales = values(rng, m, k), values(rng, n, k).T, scales_of(rng, scaling, m, n, k)
    of_row, of_column = rng.integers(-3, 4, m).astype(np.float32), powers(rng, n)
    c = rng.integers(-9, 10, (m, n)).astype(NAMES["f16" if output == "e4m3" else output])
    exact = (2.0**-7 * reference(a, b, *scales) + 0.5 * c.astype(np.float64)) * of_column + of_row[:, None]
    most = 448 if output == "e4m3" else np.inf
    expected = exact.clip(-most, most).astype(np.float32).astype(NAMES[output]).astype(np.float64)
    given = [where.array(x) for x in (a, b, *scales, c)]
    operands = per_row(where.array(of_row)), per_column(where.array(of_column))
    how = {"alpha": 2.0**-7, "beta": 0.5, "epilogue": beside, "operands": operands, "config": WAYS[which]}
    out = where.array(np.full((m, n), np.nan).astype(NAMES[output]))
    assert (where.values(scaled_gemm(*given, out=out, **how)) == expected).all()


@every_machine
@pytest.mark.parametrize("which", ["cluster", "scatter", "swapped, cluster"])
def test_sums_that_are_rounded_are_the_same_from_run_to_run(name, which, rng):
    """Of scales and values of all sizes, to what float32 rounds."""
    where, (m, n, k) = machine(name), (19, 72, 528)
    a, b = (rng.standard_normal((lines, k)).astype(np.float32).astype(NAMES["e4m3"]) for lines in (m, n))
    scales = [rng.random(shape, np.float32) + 0.5 for shape in ((m, 1), (1, n))]
    given = [where.array(x) for x in (a, b.T, *scales)]
    first, second = (where.values(scaled_gemm(*given, config=WAYS[which])) for _ in range(2))
    exact = reference(a, b.T, *scales)
    assert (first == second).all()
    assert np.abs(first - exact).max() < 2e-3 * np.abs(exact).max()


BATCHED = {
    "swapped": swapped(16, 64),
    "in turns": swapped(16, 64, pingpong=True),
    "low": tiles(64, 64),
    "stream-K": tiles(64, 64, schedule=StreamKThreadblockSwizzle(3)),
    "one tile each": tiles(64, 64, schedule=BatchedIdentityThreadblockSwizzle()),
    "chosen": None,
}


EACH_BATCHED = [
    (scaling, n) for scaling in SCALINGS for n in BATCHED if scaling != "blocks" or takes_blocks(BATCHED[n])
]


@every_machine
@pytest.mark.parametrize("scaling, which", EACH_BATCHED)
def test_batches(name, scaling, which, rng):
    """Each with scales of its own, or B and those of all."""
    config = BATCHED[which]
    where, (m, n, k) = machine(name), (17, 136, 272)
    a, b = values(rng, 3, m, k), values(rng, n, k).T
    scale_a, scale_b = scales_of(rng, scaling, m, n, k)
    if scaling != "tensors":
        scale_a = powers(rng, 3, *scale_a.shape)
    out = where.array(np.full((3, m, n), np.nan).astype(NAMES["bf16"]))
    results = where.values(scaled_gemm(*(where.array(x) for x in (a, b, scale_a, scale_b)), out=out, config=config))
    for batch in range(3):
        exact = reference(a[batch], b, scale_a if scaling == "tensors" else scale_a[batch], scale_b)
        assert (results[batch] == exact.astype(NAMES["bf16"]).astype(np.float64)).all(), batch
