"""A sample of the kernels that `python -m tests.shipped` assembles: what calls of any sizes and types choose."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.assemble import Cubin, Resources
from ptxdsl.kernels.gemm import gemm
from tests.shipped import kernels
from tests.shipped.__main__ import kernels_of
from tests.shipped.calls import KINDS
from tests.shipped.kernels import Chosen, recorded

SEED, CALLS, EACH = 17, 120, 10


def fault_of(kernel):
    """What the assembler holds against a kernel. Skips where there is none that heeds setmaxnreg."""
    fault = kernel.fault()
    if "(C7504)" in fault:
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    return fault


@pytest.mark.exhaustive
def test_a_sample_of_what_is_shipped_spills_nothing_and_lets_products_overlap():
    known = sorted(kernels_of(range(SEED, SEED + CALLS)).items(), key=lambda pair: pair[1])
    for kernel, seed in random.Random(SEED).sample(known, EACH):
        assert not fault_of(kernel), f"seed {seed}: {kernel}"


@pytest.mark.exhaustive
def test_draws_are_the_same_for_a_seed_and_reach_every_function():
    known = kernels_of(range(400))
    assert kernels_of(range(40)).keys() <= known.keys()
    names = {kernel.kernel.name for kernel in known}
    assert names == {
        "warpgroup_gemm_kernel", "warpgroup_ragged_kernel", "warpgroup_ragged_k_kernel", "warpgroup_grouped_kernel",
        "warpgroup_conv2d_kernel", "wgrad_kernel",
    }  # fmt: skip
    assert len(KINDS) == 8


def test_a_call_whose_choice_is_refused_is_told(monkeypatch):
    def call(draw):
        raise pd.LaunchError(draw.one_of(["GemmConfig: 9 stages do not fit"]))

    monkeypatch.setattr(kernels, "KINDS", {call: 1})
    with pytest.raises(AssertionError, match="seed 3, call: GemmConfig: 9 stages do not fit"):
        kernels.chosen(3)


def test_no_launch_is_made():
    out = np.full((64, 64), np.nan, np.float16)
    with recorded() as known:
        gemm(np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16), out=out)
    assert len(known) == 1 and np.isnan(out).all()


CUBINS = {
    "": Cubin(b"", "sm_90a", {"k": Resources(registers=168)}),
    "Registers are spilled to local memory": Cubin(
        b"", "sm_90a", {"k": Resources(registers=168)}, ("Registers are spilled to local memory",)
    ),
    "168 registers, 0 bytes of shared memory, 8 bytes spilled, 16 bytes of stack, 0 barriers": Cubin(
        b"", "sm_90a", {"k": Resources(168, spill_store_bytes=8, stack_bytes=16)}
    ),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", CUBINS)
def test_what_spills_is_told(fault):
    kernel = SimpleNamespace(name="k", cubin=lambda arch, **constants: CUBINS[fault])
    assert Chosen(kernel, ()).fault() == fault


def test_products_that_do_not_overlap_are_told():
    def cubin(arch, **constants):
        raise pd.AssembleError(f"(C7510) {arch} {constants}")

    assert Chosen(SimpleNamespace(name="k", cubin=cubin), (("n", 1),)).fault() == "(C7510) sm_90a {'n': 1}"
