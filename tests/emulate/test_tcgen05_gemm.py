"""The GEMM of example 22 without one of its fences, waits and commits at a time: what it needs, and what it does not."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def example():
    return loaded("22_tcgen05_gemm.py")


def loaded(name):
    """The module of an example."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec = importlib.util.spec_from_file_location(name.removesuffix(".py"), EXAMPLES / name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXAMPLES))
    return module


def without(text, pattern, number):
    """The PTX without the instruction that matches a pattern, counted from 0."""
    match = list(re.finditer(rf"^\s*{pattern}.*;$", text, re.MULTILINE))[number]
    return text[: match.start()] + text[match.end() :]


def findings(example, text):
    """The kinds of findings of a launch, and whether its numbers are right."""
    grid, block, a, b, c, *sizes = example.example_gemm(np.random.default_rng(0))
    maps = [pd.tensor_map(x, (128, 64), swizzle=128) for x in (a, b)]
    report = pd.emulate(pd.parse(text)["gemm"], grid, block, *maps, c, *sizes, shared_bytes=4 << 15, max_seconds=60)
    right = np.allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), atol=1e-3)
    return {finding.kind for finding in report.findings}, right


# Without a commit, lane 0 of the role waits for ever, and the other lanes of its warp at the last barrier.
NEEDED = {
    "the accumulators may be overwritten": (r"tcgen05\.fence::after_thread_sync", 0, "race"),
    "the products are complete": (r"tcgen05\.fence::after_thread_sync", 1, "race"),
    "the accumulators have been loaded": (r"tcgen05\.fence::before_thread_sync", 0, "race"),
    "the registers are loaded": (r"tcgen05\.wait::ld", 3, "race"),
    "a stage is released": (r"tcgen05\.commit", 0, "divergent-collective"),
    "accumulators are handed over": (r"tcgen05\.commit", 1, "divergent-collective"),
    "tensor memory is freed": (r"tcgen05\.dealloc", 0, "tensor-memory"),
    "it is allocated before it is used": (r"bar\.sync", 2, "race"),
    "it is freed after its last use": (r"bar\.sync", 3, "tensor-memory"),
}


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", NEEDED)
def test_each_is_needed(name, example):
    pattern, number, kind = NEEDED[name]
    kinds, _ = findings(example, without(example.gemm.ptx(), pattern, number))
    assert kind in kinds


def test_the_kernel_is_clean_also_if_it_may_allocate_again(example):
    text = example.gemm.ptx()
    assert findings(example, text) == (set(), True)
    assert findings(example, without(text, r"tcgen05\.relinquish_alloc_permit", 0)) == (set(), True)
