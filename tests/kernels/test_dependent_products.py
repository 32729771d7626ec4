"""Products on sm_90a one after another: each may begin beside the one before, and waits before it touches memory."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from ptxdsl.kernels import gemm as page
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm_ragged

TILE = GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma")


@pytest.fixture(autouse=True)
def check_once():
    """Check every launch: these tests expect findings at kernels that were launched before."""


@pytest.fixture(autouse=True)
def hopper():
    with config.using(arch="sm_90a", device="emulator"):
        yield


def two_products(a, b):
    first = gemm(a, b, config=TILE)
    return first, gemm(first, b, config=TILE)


@pytest.fixture
def matrices(rng):
    return tuple(rng.integers(-2, 3, shape).astype(np.float16) for shape in ((8, 64), (64, 64)))


@pytest.mark.parametrize("allowed", [True, False])
def test_a_product_reads_what_the_one_before_wrote(matrices, allowed):
    a, b = matrices
    with config.using(dependent_launch=allowed):
        first, second = two_products(a, b)
    np.testing.assert_array_equal(second, (first.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))


@pytest.mark.exhaustive
def test_so_do_products_of_groups(rng):
    a, b = rng.integers(-2, 3, (9, 64)).astype(np.float16), rng.integers(-2, 3, (2, 64, 64)).astype(np.float16)
    ends = np.array([4, 9], np.int32)
    first = grouped_gemm_ragged(a, b, ends, config=TILE)
    second = grouped_gemm_ragged(first, b, ends, config=TILE)
    exact = [
        first[:4].astype(np.float32) @ b[0].astype(np.float32),
        first[4:].astype(np.float32) @ b[1].astype(np.float32),
    ]
    np.testing.assert_array_equal(second, np.concatenate(exact).astype(np.float16))


def test_a_thread_that_does_not_wait_is_found(matrices, monkeypatch):
    def begin(*maps):
        with pd.if_(pd.tid.x == 0):
            pd.ptx.griddepcontrol.wait()
        pd.ptx.griddepcontrol.launch_dependents()

    monkeypatch.setattr(page, "await_prerequisites", begin)
    for kept in ("_variants", "_asked", "handles"):  # of a kernel that was traced with the other
        monkeypatch.setattr(page.warpgroup_gemm_kernel, kept, {})
    with pytest.raises(
        pd.EmulationError, match=r"reads p\.a\[0, 0\], written by `warpgroup_gemm_kernel`, the previous kernel"
    ):
        two_products(*matrices)
    with config.using(dependent_launch=False):  # each begins when the one before has ended
        two_products(*matrices)
