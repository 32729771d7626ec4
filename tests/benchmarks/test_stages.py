"""Kernels with stages left out, as `benchmarks/stages.py` times them."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from ptxdsl import config
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.copies import TensorCopies
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.types import bf16

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PRODUCTS, COPIES = "wgmma.mma_async", "cp.async.bulk.tensor.2d.shared"
CONFIGS = {
    "swapped": GemmConfig((80, 64, 64), stages=5, atom="wgmma", swap_ab=True, schedule=Strips()),
    "in turns": GemmConfig((128, 192, 64), stages=5, atom="wgmma", pingpong=True, schedule=Strips()),
    "in pieces": GemmConfig((128, 128, 64), stages=4, atom="wgmma", schedule=Strips()),
}


@pytest.fixture
def stages(monkeypatch):
    """The benchmark, and a kernel that has not been traced."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("_variants", "_asked"):
        monkeypatch.setattr(warpgroup_gemm_kernel, name, {})
    return importlib.import_module("stages")


def text(kind):
    """What is written, which the assembler takes as it is."""
    operands = Operands(bf16, bf16, out_boxes=True, a_rows=32 if kind == "in pieces" else 0)
    with config.using(cache_dir="off"):
        traits = CONFIGS[kind].traits(operands)
        assert warpgroup_gemm_kernel.cubin(arch="sm_90a", traits=traits)
        return warpgroup_gemm_kernel.ptx(arch="sm_90a", traits=traits)


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize(("way", "has"), [
    ("whole", (True, True)), ("copies", (False, True)), ("products", (True, False)), ("neither", (False, False)),
])  # fmt: skip
def test_a_way_has_the_stages_of_its_name(stages, way, has, kind):
    with stages.leaving_out(way):
        found = text(kind)
    assert (PRODUCTS in found, COPIES in found) == has
    assert "cp.async.bulk.tensor.2d.global" in found  # what is stored


def test_nothing_is_left_out_behind_it(stages):
    before = TensorCopies.of
    with stages.leaving_out("neither"):
        assert TensorCopies.of is not before
    assert TensorCopies.of is before
