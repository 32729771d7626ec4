"""Scaled products in all ways of plain ones: swapped tiles, blocks that share K, warpgroups in turns; against numpy."""

from __future__ import annotations

import pytest

from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.schedule import IdentityThreadblockSwizzle, PersistentScheduler, StreamKThreadblockSwizzle
from tests.kernels.scales import check
from tests.machines import MACHINES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
ROWS = "tensors", "rows"


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


@every_machine
@pytest.mark.parametrize("scaling", ROWS)
@pytest.mark.parametrize("which", SWAPPED)
def test_swapped_tiles(name, scaling, which, rng):
    shape, config = SWAPPED[which]
    check(machine(name), rng, scaling, *shape, output="bf16", config=config)


SHARED = {
    "cluster, swapped": ((3, 200, 656), swapped(8, 64, **cluster(3))),
    "cluster, swapped, two warpgroups": ((16, 264, 528), swapped(16, 128, **cluster(2))),
    "cluster of 8, swapped": ((64, 72, 1152), swapped(64, 64, **cluster(8))),
    "cluster": ((33, 200, 656), tiles(64, 64, **cluster(4))),
    "cluster of more than K has": ((1, 72, 272), tiles(64, 64, **cluster(5))),
    "cluster, two warpgroups": ((130, 136, 528), tiles(128, 128, **cluster(2))),
    "cluster, sums in the ring": ((70, 136, 656), tiles(128, 128, 7, **cluster(2))),
    "serial": ((33, 136, 528), tiles(64, 64, split_k=3, reduction="serial")),
    "parallel": ((70, 136, 528), tiles(128, 64, split_k=2, reduction="parallel")),
    "scatter": ((100, 72, 528), tiles(64, 64, split_k=3, reduction="scatter")),
    "stream-K": ((130, 136, 528), tiles(64, 64, schedule=StreamKThreadblockSwizzle(3))),
}
OF_SWAPPED = {
    "scatter, swapped": ((16, 136, 528), swapped(16, 64, split_k=2, reduction="scatter")),
    "stream-K, swapped": ((33, 136, 528), swapped(48, 64, schedule=StreamKThreadblockSwizzle(3))),
}


@every_machine
@pytest.mark.parametrize("which", [*SHARED, *OF_SWAPPED])
def test_rows_and_columns_where_blocks_share_k(name, which, rng):
    shape, config = (SHARED | OF_SWAPPED)[which]
    check(machine(name), rng, "rows", *shape, config=config)


@every_machine
@pytest.mark.parametrize("which", ["cluster, swapped", "cluster", "parallel", "stream-K, swapped"])
def test_tensors_where_blocks_share_k(name, which, rng):
    shape, config = (SHARED | OF_SWAPPED)[which]
    check(machine(name), rng, "tensors", *shape, output="f16", config=config)


@every_machine
@pytest.mark.parametrize("which", [which for which in SHARED if "swapped" not in which])
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
