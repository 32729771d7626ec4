"""Products whose last tile along M ends before its last rows: boxes of A behind these are not asked for."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from ptxdsl.kernels.call.paths.tma import ending_early
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle
from tests.kernels.spills import check_no_spill
from tests.kernels.test_pingpong import every_machine
from tests.kernels.test_warpgroups import hopper, run
from tests.machines import machine

__all__ = ["hopper"]  # a fixture for all tests here


PERSISTENT = Strips()


def config(m=128, n=64, stages=3, schedule=PERSISTENT, **how):
    return GemmConfig((m, n, 64), stages=stages, atom="wgmma", schedule=schedule, **how)


WAYS = {
    "one warpgroup": config(m=64),
    "two": config(),
    "staggered": config(stagger=2),
    "in turns": config(pingpong=True),
    "one tile each": config(schedule=IdentityThreadblockSwizzle(1)),
    "clusters along M": config(schedule=ClusterStrips((2, 1))),
    "clusters along N": config(schedule=ClusterStrips((1, 2), streamed=True)),
    "K in a cluster": config(schedule=IdentityThreadblockSwizzle(1), split_k=2, reduction="cluster"),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@every_machine
@every_way
@pytest.mark.parametrize("m", [1, 31, 33, 65, 97, 129, 160, 193, 225, 300])
def test_rows_around_boxes(name, way, m, rng):
    run(name, rng, m, 72, 200, config=way)


@every_machine
@every_way
def test_rows_that_no_box_can_store_and_c_in_place(name, way, rng):
    run(name, rng, 161, 71, 136, config=way)
    run(name, rng, 161, 72, 136, config=way, alpha=0.5, beta=-1.5)


@every_machine
@pytest.mark.parametrize("way", ["two", "staggered", "in turns"])
def test_batches(name, way, rng):
    on = machine(name)
    a, b = (rng.standard_normal((3, *shape)).astype(np.float16) for shape in ((161, 136), (136, 72)))
    out = on.array(np.full((3, 161, 72), np.nan, np.float16))
    gemm(on.array(a), on.array(b), out=out, config=WAYS[way])
    assert np.allclose(on.values(out), a.astype(float) @ b.astype(float), rtol=2e-3, atol=4e-2)


@every_machine
@pytest.mark.parametrize("type", [np.int8, ml_dtypes.float8_e4m3fn], ids=["s8", "e4m3"])
def test_bytes(name, type, rng):
    on = machine(name)
    a, b = (rng.integers(-4, 5, shape).astype(type) for shape in ((161, 272), (72, 272)))
    kind = np.int32 if type is np.int8 else np.float32
    out = on.array(np.full((161, 72), -1, kind))
    gemm(on.array(a), on.array(b.T), out=out, config=replace(WAYS["two"], tile=(128, 64, 128)))
    assert np.array_equal(on.values(out), a.astype(kind) @ b.astype(kind).T)


@every_machine
def test_a_function_of_vectors(name, rng):
    on = machine(name)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((161, 136), (136, 72)))
    bias, out = rng.standard_normal(72).astype(np.float16), on.array(np.full((161, 72), np.nan, np.float16))
    gemm(
        on.array(a), on.array(b), out=out, config=WAYS["two"], epilogue=add_relu, operands=(per_column(on.array(bias)),)
    )
    assert np.allclose(on.values(out), np.maximum(a.astype(float) @ b + bias, 0), rtol=2e-3, atol=4e-2)


@pytest.mark.parametrize(
    "m, tile, rows",
    [(128, 128, 0), (256, 128, 0), (97, 128, 0), (127, 64, 0), (33, 64, 0),
     (96, 128, 32), (160, 128, 32), (129, 128, 32), (1, 128, 32), (192, 128, 64), (40, 128, 64), (160, 64, 32)],
)  # fmt: skip
def test_boxes_hold_as_many_rows_as_divide_what_is_there(m, tile, rows):
    assert ending_early(m, config(m=tile).traits(Operands())).operands.a_rows == rows


@pytest.mark.parametrize(
    "traits",
    [
        config().traits(Operands(a_major="mn")),
        config(m=128, n=128, swap_ab=True).traits(Operands()),
        config(schedule=StreamKThreadblockSwizzle()).traits(Operands()),
        config(schedule=IdentityThreadblockSwizzle(1), split_k=2, reduction="scatter").traits(Operands()),
    ],
    ids=["columns of A", "swapped", "stream-K", "sums in global memory"],
)
def test_other_kernels_stay_as_they_are(traits):
    assert ending_early(160, traits) is traits


@pytest.mark.exhaustive
@pytest.mark.parametrize("c", ["none", "separate"])
@pytest.mark.parametrize(
    "way",
    [config(n=256, stages=4, stagger=2), config(n=208, pingpong=True), config(n=256, schedule=ClusterStrips((2, 1)))],
    ids=["staggered", "in turns", "clusters"],
)
def test_no_spills(way, c):
    """The thread that copies has 24 registers beside tiles of so many sums."""
    check_no_spill(warpgroup_gemm_kernel, ending_early(160, way.traits(Operands(out_boxes=True, c=c))))


def test_a_kernel_of_boxes_asks_before_each():
    whole = config().traits(Operands())
    copies = [
        re.findall("cp.async.bulk.tensor.2d.shared", warpgroup_gemm_kernel.variant("sm_90a", {"traits": traits}).text)
        for traits in (whole, ending_early(160, whole))
    ]
    assert list(map(len, copies)) == [2, 5]
