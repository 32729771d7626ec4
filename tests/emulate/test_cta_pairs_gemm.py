"""The GEMM of example 23 without one of its fences, waits and commits at a time: all of them are needed."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from ptxdsl.assemble import assemble
from tests.emulate.test_tcgen05_gemm import loaded, without


@pytest.fixture(scope="module")
def example():
    return loaded("23_cta_pairs.py")


def findings(example, text):
    """The kinds of findings of a launch of three clusters, one of which computes all tiles, and whether its numbers are
    right."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 72)).astype(np.float16) for rows in (600, 100))
    grid, block, *_, c, m, n, columns, steps = example.arguments(a, b, np.zeros((600, 100), np.float32))
    maps = [pd.tensor_map(x, box, swizzle=128) for x, box in ((a, (128, 64)), (b, (64, 64)))]
    kernel, bytes = pd.parse(text)["gemm"], example.STAGES * (example.A.bytes + example.B.bytes)
    report = pd.emulate(kernel, grid, block, *maps, c, m, n, columns, steps, shared_bytes=bytes, max_seconds=60)
    right = np.allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), atol=1e-3)
    return {finding.kind for finding in report.findings}, right


# Without an arrival, lane 0 of a role waits for ever, and the other lanes of its warp at the last barrier.
NEEDED = {
    "the accumulators may be overwritten": (r"tcgen05\.fence::after_thread_sync", 0, "race"),
    "the products are complete": (r"tcgen05\.fence::after_thread_sync", 1, "race"),
    "the accumulators have been loaded": (r"tcgen05\.fence::before_thread_sync", 0, "race"),
    "the registers are loaded": (r"tcgen05\.wait::ld", 3, "race"),
    "a stage is released in both blocks": (r"tcgen05\.commit", 0, "divergent-collective"),
    "accumulators are handed over to both": (r"tcgen05\.commit", 1, "divergent-collective"),
    "accumulators are handed back": (r"mbarrier\.arrive\.release\.cluster", 6, "divergent-collective"),
    "an answer has been read": (r"mbarrier\.arrive\.release\.cluster", 0, "divergent-collective"),
    "and in the other block": (r"mbarrier\.arrive\.release\.cluster", 1, "divergent-collective"),
    "an answer has been read before the next": (r"fence\.proxy\.async", 0, "race"),
    "bytes of both blocks are expected": (r"@\S+ mbarrier\.arrive\.expect_tx", 0, "mbarrier"),
    "an answer is expected": (r"mbarrier\.arrive\.expect_tx", 0, "mbarrier"),
    "mbarriers are initialised": (r"fence\.mbarrier_init", 2, "race"),
    "the blocks have started": (r"barrier\.cluster\.wait", 3, "race"),
    "tensor memory is in use in neither block": (r"barrier\.cluster\.wait", 4, "race"),
    "tensor memory is freed": (r"tcgen05\.dealloc", 0, "tensor-memory"),
}


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", NEEDED)
def test_each_is_needed(name, example):
    pattern, number, kind = NEEDED[name]
    kinds, _ = findings(example, without(example.gemm.ptx(), pattern, number))
    assert kind in kinds


@pytest.mark.parametrize("schedule", ["lockstep", "random:1"])
def test_the_kernel_is_clean(schedule, example):
    with config.using(schedule=schedule):
        assert findings(example, example.gemm.ptx()) == (set(), True)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_the_assembler_warns_of_nothing(arch, example):
    assert assemble(example.gemm.ptx(arch), arch).warnings == ()
