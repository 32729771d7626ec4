"""Tiles that two warpgroups share and end one after the other: each stores while the other one multiplies."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.choose.products import choose_product, ranked_products
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.epilogue import add_relu, gelu, per_column, per_row, scale, scale_rows_and_columns
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle
from ptxdsl.types import bf16, e4m3, f32, s8, s32
from tests.kernels.test_pingpong import TURN, blocks, every_machine
from tests.kernels.test_warpgroups import hopper, run
from tests.machines import machine
from tests.mutants.subjects import whole

__all__ = ["blocks", "hopper"]  # fixtures for all tests here


def staggered(stagger=2, m=128, n=64, stages=3, schedule=Strips(), **more):  # noqa: B008
    return GemmConfig(tile=(m, n, 64), stages=stages, atom="wgmma", stagger=stagger, schedule=schedule, **more)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("k", [8, 64, 130, 392])
def test_fewer_and_more_iterations_than_are_staggered(name, k, rng, blocks):
    """Blocks have several tiles; with few iterations the first warpgroup could be a tile ahead."""
    blocks(1)
    run(name, rng, 200, 136, k, config=staggered())


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("in_place", [False, True])
def test_c_in_boxes(name, in_place, rng, blocks):
    blocks(1)
    run(name, rng, 200, 72, 200, beta=2.0, in_place=in_place, config=staggered(1))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("columns", [144, 192, 256])
@pytest.mark.parametrize("k", [8, 328])
@pytest.mark.parametrize("inputs", ["f16", "bf16"])
def test_c_of_which_half_is_held_in_registers(name, columns, k, inputs, rng, blocks):
    """A tile is stored in two parts; the second one may be narrower, or behind N."""
    blocks(1)
    tiles = staggered(n=columns)
    run(name, rng, 200, columns + 24, k, inputs=inputs, output=inputs, alpha=0.5, beta=-1.5, config=tiles)


@pytest.mark.exhaustive
@every_machine
def test_c_and_a_function_of_vectors(name, rng, blocks):
    blocks(1)
    on, (m, n, k) = machine(name), (136, 280, 200)
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n), (m, n)))
    bias, out = rng.standard_normal(n).astype(np.float16), on.array(np.full((m, n), np.nan, np.float16))
    inputs, vectors = [on.array(each) for each in (a, b, c)], (per_column(on.array(bias)),)
    gemm(*inputs, out=out, beta=2.0, epilogue=add_relu, operands=vectors, config=staggered(n=256))
    expected = np.maximum(a.astype(float) @ b + 2 * c.astype(float) + bias, 0)
    assert np.allclose(on.values(out), expected, rtol=2e-3, atol=2e-2)


@every_machine
@pytest.mark.parametrize("stages", [3, 4], ids=["", "last tile in the ring"])
@pytest.mark.parametrize("columns", [144, 256])
@pytest.mark.parametrize("k", [8, 136])
def test_second_halves_that_are_stored_beside_the_next_tile(name, k, columns, stages, rng, blocks):
    """Of five tiles each block has two or three."""
    blocks(2)
    run(name, rng, 80, 4 * columns + 8, k, config=staggered(n=columns, stages=stages))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(
    ("operand", "applied", "beta"),
    [("n", add_relu, 0.0), ("n", add_relu, 2.0), ("m", scale, 0.0), ("m n", scale_rows_and_columns, 0.0)],
)
def test_what_is_beside_second_halves(name, operand, applied, beta, rng, blocks):
    """Vectors of two columns of registers are read when they are stored, as before."""
    blocks(1)
    on, (m, n, k) = machine(name), (136, 280, 72)
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n), (m, n)))
    row, column = (rng.standard_normal(size).astype(np.float16) for size in (m, n))
    vectors = {"m": per_row(on.array(row)), "n": per_column(on.array(column))}
    out = on.array(np.full((m, n), np.nan, np.float16))
    gemm(
        *(on.array(each) for each in (a, b, c)), out=out, beta=beta, epilogue=applied,
        operands=[vectors[along] for along in operand.split()], config=staggered(n=256),
    )  # fmt: skip
    product = a.astype(float) @ b + beta * c.astype(float)
    values = {"m": row[:, np.newaxis].astype(float), "n": column.astype(float)}
    expected = np.maximum(product + values["n"], 0) if applied is add_relu else product
    for along in operand.split() if applied is not add_relu else ():
        expected = expected * values[along]
    assert np.allclose(on.values(out), expected, rtol=4e-3, atol=2e-2)


@every_machine
@pytest.mark.parametrize(
    "config",
    [
        staggered(schedule=GroupedRowsThreadblockSwizzle(2)),
        staggered(schedule=GroupedRowsThreadblockSwizzle(2), split_k=2),
        staggered(schedule=GroupedRowsThreadblockSwizzle(2), split_k=2, reduction="cluster"),
        staggered(m=64, n=128, swap_ab=True),
    ],
    ids=["one tile", "split K", "cluster", "swapped"],
)
def test_schedules(name, config, rng):
    run(name, rng, 130, 136, 264, config=config)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("columns", [64, 192])
def test_batches(name, columns, rng, blocks):
    blocks(2)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 150, 136), (3, 136, 72)))
    where, out = machine(name), np.full((3, 150, 72), np.nan, np.float16)
    result = where.values(gemm(where.array(a), where.array(b), out=where.array(out), config=staggered(n=columns)))
    assert np.allclose(result, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-2)


@pytest.mark.exhaustive
@every_machine
def test_convolutions(name, blocks):
    blocks(1)
    x, w = whole(2, 9, 9, 16), whole(24, 3, 3, 16, seed=1)
    where, out = machine(name), np.zeros((2, 9, 9, 24), np.float16)
    result = conv2d(where.array(x), where.array(w), pad=1, out=where.array(out), config=staggered())
    assert np.array_equal(where.values(result), conv2d(x, w, pad=1))


def traits(stagger, **operands):
    return WarpgroupTraits(
        WarpgroupTiling(stagger=stagger), Operands(bf16, bf16, out_boxes=True, **operands), Strips(), gelu
    )


def test_turns_are_those_of_the_end_alone():
    """One wait and one arrival, in front of the last products and behind them."""
    turns = [[bool(TURN.match(line)) for line in text(stagger).splitlines()].count(True) for stagger in (0, 3)]
    assert turns == [0, 2]


def text(stagger, **operands):
    return warpgroup_gemm_kernel.ptx("sm_90a", traits=traits(stagger, **operands))


@pytest.mark.exhaustive
@pytest.mark.parametrize("c", ["none", "separate"])
def test_no_spills(c):
    try:
        resources = warpgroup_gemm_kernel.resources("sm_90a", traits=traits(3, c=c))
    except pd.AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


def test_groups_are_refused():
    a = [np.zeros((64, 64), np.float16)]
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm(a, a, config=staggered(schedule=GemmConfig.schedule))
    assert caught.value.message == ("`config` says that stagger is 2; warpgroups end tiles of groups at the same time")
    assert caught.value.help == "leave stagger out of the GemmConfig"


REFUSED = {
    "another path": (lambda: GemmConfig(stagger=1), "stagger is 1; only warpgroups that multiply share tiles"),
    "no int": (lambda: staggered(True), "stagger is True; it takes an int from 0 to 2, less than the ring has stages"),
    "long": (lambda: staggered(3), "stagger is 3; it takes an int from 0 to 2, less than the ring has stages"),
    "in turns": (
        lambda: staggered(m=64, pingpong=True),
        "stagger is 2, and pingpong is True: each warpgroup has tiles of its own",
    ),
    "one warpgroup": (
        lambda: staggered(m=64),
        "tile is (64, 64, 64), and stagger is 2: warpgroups share tiles with M of 128 or 192",
    ),
    "one warpgroup, swapped": (
        lambda: staggered(swap_ab=True),
        "tile is (128, 64, 64), and stagger is 2: warpgroups share tiles with N of 128 or 192",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    call, message = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        call()
    assert caught.value.message == f"GemmConfig: {message}"


def test_so_do_those_with_c():
    facts = ProductFacts(4096, 4096, 4096, 1, Operands(bf16, bf16, c="separate"))
    known = [config for _, config in ranked_products(facts, rates_of())]
    assert any(config.tile[:2] == (128, 256) and config.stagger for config in known)


@pytest.mark.parametrize(("inputs", "output"), [(e4m3, bf16), (s8, s32), (bf16, f32)])
def test_so_do_those_of_other_types(inputs, output):
    facts = ProductFacts(4096, 4096, 4096, 1, Operands(inputs, output))
    assert choose_product(facts, rates_of()).stagger > 0
