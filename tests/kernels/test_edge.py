"""Products whose last tile along M has out-of-bounds rows."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle
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
