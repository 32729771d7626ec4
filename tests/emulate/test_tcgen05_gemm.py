"""The GEMMs of examples 22 and 24 without one of their fences, waits and commits at a time: what they need."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("22_tcgen05_gemm", "24_nvfp4_gemm")
BOXES = {"22_tcgen05_gemm": ((128, 64), 128, 4 << 15), "24_nvfp4_gemm": ((128, 128), 128, 3 * (36 << 10))}
"""The boxes of the operands, their swizzle, and the bytes of shared memory."""


@pytest.fixture(scope="module")
def examples():
    return {name: loaded(f"{name}.py") for name in NAMES}


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


def findings(name, example, text):
    """The kinds of findings of a launch, and whether its numbers are right."""
    grid, block, a, b, *rest = example.example_gemm(np.random.default_rng(0))
    box, swizzle, shared_bytes = BOXES[name]
    maps = [pd.tensor_map(x, box, swizzle=swizzle) for x in (a, b)]
    if name == "24_nvfp4_gemm":
        maps += [pd.tensor_map(x, (1, 4, 128)) for x in rest[:2]]
        c, *sizes = rest[2:]
        expected = example.problem(*c.shape, 2 * a.shape[1], np.random.default_rng(0))[1]
    else:
        c, *sizes = rest
        expected = a.astype(np.float64) @ b.astype(np.float64).T
    kernel = pd.parse(text)["gemm"]
    report = pd.emulate(kernel, grid, block, *maps, c, *sizes, shared_bytes=shared_bytes, max_seconds=60)
    return {finding.kind for finding in report.findings}, np.allclose(c, expected, atol=1e-3)


# Without a commit, lane 0 of the role waits for ever, and the other lanes of its warp at the last barrier, or with it.
NEEDED = {
    "22_tcgen05_gemm": {
        "the accumulators may be overwritten": (r"tcgen05\.fence::after_thread_sync", 0, "race"),
        "the products are complete": (r"tcgen05\.fence::after_thread_sync", 1, "race"),
        "the accumulators have been loaded": (r"tcgen05\.fence::before_thread_sync", 0, "race"),
        "the registers are loaded": (r"tcgen05\.wait::ld", 3, "race"),
        "a stage is released": (r"tcgen05\.commit", 0, "divergent-collective"),
        "accumulators are handed over": (r"tcgen05\.commit", 1, "divergent-collective"),
        "tensor memory is freed": (r"tcgen05\.dealloc", 0, "tensor-memory"),
        "it is allocated before it is used": (r"bar\.sync", 2, "race"),
        "it is freed after its last use": (r"bar\.sync", 3, "tensor-memory"),
    },
    "24_nvfp4_gemm": {
        "the scales may be overwritten": (r"tcgen05\.fence::after_thread_sync", 1, "race"),
        "the products are complete": (r"tcgen05\.fence::after_thread_sync", 2, "race"),
        "the registers are loaded": (r"tcgen05\.wait::ld", 3, "race"),
        "the scales of a are copied": (r"tcgen05\.cp", 0, "uninitialized"),
        "the scales of b are copied": (r"tcgen05\.cp", 7, "uninitialized"),
        "a stage is released": (r"tcgen05\.commit", 0, "deadlock"),
        "accumulators are handed over": (r"tcgen05\.commit", 1, "deadlock"),
        "tensor memory is freed": (r"tcgen05\.dealloc", 0, "tensor-memory"),
        "it is allocated before it is used": (r"bar\.sync", 2, "race"),
        "it is freed after its last use": (r"bar\.sync", 3, "race"),
    },
}
CASES = [pytest.param(name, case, id=f"{name}: {case}") for name, cases in NEEDED.items() for case in cases]


@pytest.mark.cases(6)
@pytest.mark.parametrize("name, case", CASES)
def test_each_is_needed(name, case, examples):
    pattern, number, kind = NEEDED[name][case]
    kinds, _ = findings(name, examples[name], without(examples[name].gemm.ptx(), pattern, number))
    assert kind in kinds


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_is_clean_also_if_it_may_allocate_again(name, examples):
    text = examples[name].gemm.ptx()
    assert findings(name, examples[name], text) == (set(), True)
    assert findings(name, examples[name], without(text, r"tcgen05\.relinquish_alloc_permit", 0)) == (set(), True)


def test_an_operand_that_was_loaded_without_its_swizzle(examples):
    """Two maps have different swizzles, and the descriptors say that both operands have one."""
    grid, block, a, b, *rest = examples["22_tcgen05_gemm"].example_gemm(np.random.default_rng(0))
    kernel = pd.parse(examples["22_tcgen05_gemm"].gemm.ptx())["gemm"]
    maps = pd.tensor_map(a, (128, 64), swizzle=128), pd.tensor_map(b, (128, 64))
    report = pd.emulate(kernel, grid, block, *maps, *rest, shared_bytes=4 << 15)
    finding = report.findings[0]
    assert (finding.kind, finding.message) == (
        "swizzle",
        "tcgen05.mma.cta_group::1.kind::f16 reads B swizzled by 128 bytes, which "
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes loaded without a swizzle",
    )
