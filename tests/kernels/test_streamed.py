"""The larger operand of products of few rows is the first to leave the L2 cache."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.paths import tma
from ptxdsl.kernels.call.paths.tma import streaming
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from tests.kernels.test_pingpong import every_machine
from tests.kernels.test_warpgroups import hopper, run

__all__ = ["hopper"]  # a fixture for all tests here
CACHE = rates_of().cache_bytes
TILE = GemmConfig((128, 128, 64), stages=3, atom="wgmma")


def streamed_of(m, n, k, batches=(), config=TILE):
    """The operand that is streamed of a product of bf16."""
    a, b, out = (np.empty((*batches, *shape), ml_dtypes.bfloat16) for shape in ((m, k), (n, k), (m, n)))  # not touched
    problem = problem_of(a, b.swapaxes(-1, -2), None, out, 0.0)
    traits = GemmPlanner(problem, GemmOptions(config)).traits()
    return streaming(problem, traits, CACHE).operands.streamed


@pytest.mark.parametrize(
    ("shape", "operand"),
    [
        ((1, 7168, 16384), "b"),
        ((128, 5120, 5120), "b"),
        ((128, 4096, 4096), "none"),  # it fits the cache, and may be there at the next launch
        ((129, 4096, 4096), "b"),
        ((448, 4096, 4096), "b"),
        ((449, 4096, 4096), "none"),  # tiles below each other read it at times that lie apart
        ((16384, 16, 7168), "a"),
        ((4096, 128, 16384), "a"),
        ((16384, 200, 4096), "none"),  # tiles beside each other read it at times that lie apart
        ((401408, 64, 256), "none"),
        ((200, 2040, 16384), "none"),
        ((200, 4096, 2048), "none"),  # 16 MiB
        ((4096, 4096, 4096), "none"),
    ],
    ids=str,
)
def test_which_operand_is_streamed(shape, operand):
    assert streamed_of(*shape) == operand


def test_batches_stream_none():
    assert streamed_of(200, 4096, 4096, batches=(2,)) == "none"


@pytest.mark.parametrize("operand", ["a", "b"])
def test_copies_of_one_operand_have_a_policy(operand):
    """Those of the operand that is streamed, by the name of its tensor map."""

    def hinted(streamed):
        traits = TILE.traits(Operands(streamed=streamed), "sm_90a")
        text = warpgroup_gemm_kernel.ptx("sm_90a", traits=traits.general)
        assert text.count("createpolicy.fractional.L2::evict_first") == (streamed != "none")
        return [line for line in text.splitlines() if "L2::cache_hint" in line]

    assert hinted("none") == []
    assert len(hinted(operand)) == 1
    assert all(f"[%p_{operand}" in line for line in hinted(operand))


@pytest.fixture
def all_streamed(monkeypatch):
    """Operands of any size are, where few rows or columns are beside them."""
    monkeypatch.setattr(tma, "LEAST_COLUMNS", 1)
    monkeypatch.setattr(tma, "LEAST_BYTES", 0)
    monkeypatch.setattr(tma, "FEW_ROWS", 0)
    asked = []

    def recorded(*arguments):
        traits = streaming(*arguments)
        asked.append(traits.operands.streamed)
        return traits

    monkeypatch.setattr(tma, "streaming", recorded)
    return asked


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("how", [{}, {"swap_ab": True}, {"schedule": ClusterStrips((2, 1))}], ids=str)
def test_products_that_stream(name, how, rng, all_streamed):
    config = GemmConfig((64, 64, 64), stages=3, atom="wgmma", **how)
    run(name, rng, 136, 456, 200, config=config)
    run(name, rng, 460, 56, 72, config=config)
    assert all_streamed == ["b", "a"]


def test_what_is_streamed_is_one_of_the_operands():
    with pytest.raises(LaunchError) as refusal:
        Operands(streamed="c")
    assert refusal.value.message == 'Operands: streamed is \'c\'; it takes "none", "a" or "b"'
