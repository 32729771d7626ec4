"""Whatever runs next: kernels compute the same, and nothing is found, if warps run one after another or at random."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxdsl import config
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.schedule import StreamKThreadblockSwizzle

EXAMPLES = Path(__file__).parent.parent / "examples"
TINY = GemmConfig(tile=(32, 32, 32), warp=(16, 16), stages=2)
WHOLE = [  # whose sizes are small enough
    "01_saxpy", "02_reduce", "03_transpose", "04_one_mma", "09_tma_copy", "10_mbarrier_ring", "11_one_wgmma",
    "13_cluster", "14_functions",
]  # fmt: skip


@pytest.fixture(params=["skewed", "random:11"], autouse=True)
def schedule(request):
    with config.using(schedule=request.param):
        yield request.param


@pytest.fixture
def example(monkeypatch):
    """Loads an example by name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", ["example"])

    def load(name):
        spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", WHOLE)
def test_examples(name, example, capsys):
    example(name).main()
    assert "ok" in capsys.readouterr().out


def test_a_fused_epilogue(example, capsys):
    example("06_fused_epilogue").main()
    assert "ok" in capsys.readouterr().out


@pytest.mark.cases(1)
@pytest.mark.parametrize("last", [0, -1], ids=["first", "last"])
def test_the_steps_of_a_gemm(last, example):
    steps, sizes = example("05_gemm_steps"), (24, 16, 40)
    a, b, out = steps.matrices(*sizes)
    steps.launch(list(steps.STEPS.values())[last], (a, b, out), sizes)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.T.astype(np.float64), atol=1e-3)


def test_a_warp_specialised_gemm(example):
    module = example("12_warp_specialised_gemm")
    a, b, out = module.operands(40, 72, 72)
    module.matmul(a, b, out, 2)
    np.testing.assert_allclose(out.astype(np.float64), a.astype(np.float64) @ b.T.astype(np.float64), atol=0.15)


def integers(rng, *shape):
    """Small integers, whose sums are exact in whatever order."""
    return rng.integers(-3, 4, shape).astype(np.float16)


@pytest.mark.cases(1)
@pytest.mark.parametrize("how", [
    {"split_k": 3, "reduction": "serial"},
    {"split_k": 3, "reduction": "scatter"},
    {"schedule": StreamKThreadblockSwizzle(5)},
], ids=["serial", "scatter", "stream-K"])  # fmt: skip
def test_products(how, rng):
    a, b, out = integers(rng, 24, 70), integers(rng, 70, 40), np.full((24, 40), np.nan, np.float32)
    gemm(a, b, out=out, config=TINY, **how)
    assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.cases(1)
def test_groups(rng):
    shapes = (20, 16, 33), (0, 8, 8), (33, 8, 40)
    pairs = [(integers(rng, m, k), integers(rng, k, n)) for m, n, k in shapes]
    outs = grouped_gemm([a for a, _ in pairs], [b for _, b in pairs], config=TINY)
    for (a, b), out in zip(pairs, outs, strict=True):
        assert np.array_equal(out.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.cases(1)
def test_convolutions(example, rng):
    layers = example("08_convolution")
    images, filters = integers(rng, 1, 4, 4, 8), [integers(rng, 8, 3, 3, 8) / 16 for _ in range(2)]
    biases = [np.ones(8, np.float32), np.zeros(8, np.float32)]
    out = layers.block(images, filters, biases)
    np.testing.assert_allclose(out.astype(np.float64), layers.plain(images, filters, biases), rtol=1e-2, atol=1e-2)
