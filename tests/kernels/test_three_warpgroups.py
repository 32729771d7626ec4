"""Tiles of 192 rows, or columns where A and B are swapped, that three warpgroups share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.choose.products import choose_product
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import gelu
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm_ragged
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.types import bf16
from tests.kernels.test_pingpong import blocks, every_machine
from tests.kernels.test_warpgroups import hopper, run
from tests.machines import machine
from tests.mutants.subjects import E4M3, whole

__all__ = ["blocks", "hopper"]  # fixtures for all tests here


def high(n=48, m=192, stages=3, schedule=Strips(), **more):  # noqa: B008
    return GemmConfig(tile=(m, n, 64), stages=stages, atom="wgmma", schedule=schedule, **more)


WAYS = {
    "together": high(),
    "staggered": high(stagger=1),
    "staggered by two": high(stages=5, stagger=2),
    "192 columns": high(192, stages=4, stagger=1),
    "one tile a block": high(schedule=IdentityThreadblockSwizzle(1), stagger=1),
    "pairs that share B": high(schedule=ClusterStrips((2, 1))),
    "pairs that share A": high(schedule=ClusterStrips((1, 2))),
    "swapped": high(192, 48, swap_ab=True),
    "in turns": high(pingpong=True),
    "slices": high(schedule=IdentityThreadblockSwizzle(1), split_k=2),
    "cluster": high(schedule=IdentityThreadblockSwizzle(1), split_k=2, reduction="cluster"),
}


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("k", [8, 264])
def test_ways(name, way, k, rng, blocks):
    """The last rows of tiles are those of no warpgroup, of one, or of two; blocks have several tiles."""
    blocks(2)
    run(name, rng, 200, 248, k, config=WAYS[way])


@every_machine
@pytest.mark.parametrize("rows", [1, 64, 65, 191, 193, 321])
def test_rows(name, rows, rng, blocks):
    blocks(1)
    run(name, rng, rows, 104, 200, config=high(stagger=1))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("a_order", ["row", "column"])
@pytest.mark.parametrize("b_order", ["row", "column"])
def test_layouts(name, a_order, b_order, rng, blocks):
    blocks(1)
    run(name, rng, 200, 136, 200, (a_order, b_order, "row"), config=high(64, stagger=1))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(("inputs", "output"), [("bf16", "bf16"), ("f16", "f32")])
def test_types(name, inputs, output, rng, blocks):
    blocks(1)
    run(name, rng, 200, 104, 272, inputs=inputs, output=output, config=high(stagger=1))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(("inputs", "output"), [(np.int8, np.int32), (E4M3, np.float32)], ids=["s8", "e4m3"])
def test_bytes(name, inputs, output, blocks):
    """Of small whole numbers: of 8-bit floats a GPU keeps few bits of sums."""
    blocks(1)
    on, a, b = machine(name), whole(200, 272, dtype=inputs), whole(104, 272, seed=1, dtype=inputs).T
    out = on.array(np.zeros((200, 104), output))
    gemm(on.array(a), on.array(b), out=out, config=replace(high(stagger=1), tile=(192, 48, 128)))
    assert np.array_equal(on.values(out), a.astype(float) @ b.astype(float))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("columns", [48, 192])
@pytest.mark.parametrize("stagger", [0, 1])
def test_c(name, columns, stagger, rng, blocks):
    blocks(1)
    run(name, rng, 200, columns + 24, 200, alpha=0.5, beta=-1.5, config=high(columns, stagger=stagger))


@every_machine
def test_groups_of_rows(name, blocks):
    blocks(2)
    on, ends = machine(name), np.array([0, 1, 201, 201], np.int32)
    a, b = whole(201, 136), whole(4, 136, 72, seed=1)
    out = on.values(grouped_gemm_ragged(*map(on.array, (a, b, ends)), config=high(64, schedule=GemmConfig.schedule)))
    groups = [
        a[start:end].astype(float) @ b[i] for i, (start, end) in enumerate([(0, 0), (0, 1), (1, 201), (201, 201)])
    ]
    assert np.array_equal(out, np.concatenate(groups))


@every_machine
def test_convolution(name, blocks):
    blocks(1)
    on, x, w = machine(name), whole(2, 11, 11, 72), whole(40, 1, 1, 72, seed=1)
    out = on.values(conv2d(on.array(x), on.array(w), config=high(stagger=1)))
    assert np.array_equal(out, x.astype(float) @ w[:, 0, 0].astype(float).T)


@pytest.mark.exhaustive
@pytest.mark.parametrize("columns", [144, 160, 176, 192])
@pytest.mark.parametrize("way", ["staggered", "pairs that share B", "pairs that share A"])
@pytest.mark.parametrize("function", [None, gelu])
def test_nothing_is_spilled(columns, way, function):
    operands = Operands(bf16, bf16, out_boxes=True)
    tiles = replace(WAYS[way], tile=(192, columns, 64), stages=4, epilogue=function)
    try:
        resources = warpgroup_gemm_kernel.resources("sm_90a", traits=tiles.traits(operands, "sm_90a"))
    except pd.AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


@pytest.mark.parametrize(("size", "columns"), [(3000, 192), (3608, 192), (4104, 176)])
def test_lines_in_the_midst_of_sectors_come_to_pairs_of_high_tiles(size, columns):
    facts = ProductFacts(size, size, size, 1, Operands(bf16, bf16), False, (True, True))
    config = choose_product(facts, rates_of())
    assert config.tile[:2] == (192, columns) and config.schedule.size == 2


REFUSED = {
    "columns": (
        lambda: high(208),
        "tile is (192, 208, 64); with wgmma and M of 192 its N is 192 at most",
    ),
    "columns, swapped": (
        lambda: high(192, 208, swap_ab=True),
        "tile is (208, 192, 64); with swapped wgmma and N of 192 its M is 192 at most",
    ),
    "stagger": (
        lambda: high(stagger=2),
        "stagger is 2; it takes an int from 0 to 1, 2 times it less than the ring has stages",
    ),
    "four warpgroups": (lambda: high(m=256), "tile is (256, 48, 64); with wgmma its M is 64, 128 or 192"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    call, message = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        call()
    assert caught.value.message == f"GemmConfig: {message}"
