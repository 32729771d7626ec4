"""config="tune": what is timed for products and groups of them, and what stands for it on the emulator."""

import contextlib

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config as settings
from ptxdsl.kernels.call import gemm as calls
from ptxdsl.kernels.call import grouped as grouped_calls
from ptxdsl.kernels.call import ragged as ragged_calls
from ptxdsl.kernels.call import tuned as tuning
from ptxdsl.kernels.call.configure import Choice
from ptxdsl.kernels.call.group import group_of
from ptxdsl.kernels.call.problem import problem_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm
from ptxdsl.kernels.ragged import grouped_gemm_ragged


def halves(*shape):
    return (np.arange(np.prod(shape)).reshape(shape) % 7 - 3).astype(np.float16)


def candidates(m, n, k, choice=None):
    problem = problem_of(halves(m, k), halves(k, n), None, None, 0.0).row_major
    return calls.candidates_of(problem, choice or Choice())


class TestCandidates:
    def test_of_a_product_they_have_the_choice_of_the_model(self):
        for shape in ((4096, 4096, 4096), (64, 4096, 4096), (300, 200, 100)):
            problem = problem_of(halves(shape[0], 64), halves(64, shape[1]), None, None, 0.0).row_major
            tiles = {config.tile for config in tuning.promising(calls.candidates_of(problem, Choice()))}
            chosen = calls.traits_of(problem, Choice()).tiling
            assert chosen.tile in tiles
            assert 1 < len(tiles) <= tuning.MOST

    def test_wgmma_is_among_them_where_a_gpu_has_it(self):
        assert all(config.atom != WGMMA for _, config in candidates(512, 512, 512))
        with settings.using(arch="sm_90a"):
            assert any(config.atom == WGMMA for _, config in candidates(512, 512, 512))

    def test_none_where_nothing_is_multiplied(self):
        assert candidates(0, 8, 8) == candidates(8, 8, 0) == []

    def test_each_of_them_computes_the_product(self):
        a, b = halves(48, 96), halves(96, 80)
        expected = a.astype(np.float32) @ b.astype(np.float32)
        for config in tuning.promising(candidates(48, 80, 96))[:4]:
            assert np.array_equal(gemm(a, b, config=config).astype(np.float32), expected)

    def test_of_groups(self):
        groups = ragged_calls.groups_of("ragged", halves(64, 32), halves(2, 32, 16), np.array([30, 64], np.int32), None)
        lists = group_of([halves(8, 16)], [halves(16, 8)], None, None, 0.0).row_major
        with settings.using(arch="sm_90a"):
            for known in (
                ragged_calls.candidates_of(groups, "ragged"),
                grouped_calls.candidates_of(lists, "device", False),
            ):
                assert {config.atom for _, config in known} == {"", WGMMA}
                assert {config.schedule for _, config in known} == {GemmConfig().schedule}

    def test_close_ones_alone_are_promising(self):
        known = [GemmConfig(stages=stages) for stages in range(2, 20)]
        assert tuning.promising(zip((9, 4, 5), known[:3], strict=True)) == [known[1], known[2]]
        assert len(tuning.promising((1.0, config) for config in known)) == tuning.MOST
        assert tuning.promising([]) == []

    def test_labels_say_what_is_unusual(self):
        assert tuning.label_of(GemmConfig()) == "usual"
        assert tuning.label_of(GemmConfig(tile=(64, 64, 32), stages=3)) == "tile=(64, 64, 32), stages=3"


class TestOnTheEmulator:
    def test_it_is_the_choice_of_the_model(self):
        a, b = halves(40, 64), halves(64, 24)
        assert np.array_equal(gemm(a, b, config="tune"), gemm(a, b))
        offsets = np.array([10, 40], np.int32)
        rows = grouped_gemm_ragged(a, halves(2, 64, 24), offsets, config="tune")
        assert np.array_equal(rows, grouped_gemm_ragged(a, halves(2, 64, 24), offsets))
        (listed,) = grouped_gemm([a], [b], config="tune")
        assert np.array_equal(listed, gemm(a, b))

    def test_other_words_are_refused(self):
        with pytest.raises(pd.LaunchError) as refused:
            gemm(halves(8, 8), halves(8, 8), config="fast")
        assert refused.value.message == "`config` is 'fast'"


class Clock:
    """A GPU on which the third launch that is timed is the fastest."""

    def __init__(self, stream):
        self.stream, self.runs = stream, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def rest(self, seconds):
        return None

    def microseconds(self, run):
        run()
        self.runs += [run] * (run not in self.runs)
        return abs(self.runs.index(run) - 2) + 1.0


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tuning, "GpuClock", Clock)
    monkeypatch.setattr(tuning.driver, "device", lambda ordinal: type("Device", (), {"name": "NVIDIA H200"}))
    monkeypatch.setattr(tuning.driver, "on", lambda ordinal: contextlib.nullcontext())


def test_the_fastest_is_taken_and_remembered(gpu):
    configs, launched = [GemmConfig(stages=stages) for stages in (2, 3, 4)], []
    timed = [(1.0, config) for config in configs]
    found = tuning.tuned("gemm", "512 x 512", (0, 0), timed, launched.append, tuning.label_of)
    assert found == configs[2]
    launched.clear()
    assert tuning.tuned("gemm", "512 x 512", (0, 0), timed, launched.append, tuning.label_of) == found
    assert launched == []
    assert tuning.tuned("gemm", "512 x 512", (None, 0), timed, launched.append, tuning.label_of) is None
    assert tuning.tuned("gemm", "0 x 512", (0, 0), [], launched.append, tuning.label_of) is None


@pytest.mark.gpu
def test_products_are_tuned_on_a_gpu(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    a, b = (torch.randn(256, 256, device="cuda", dtype=torch.float16) for _ in range(2))
    assert torch.allclose(gemm(a, b, config="tune"), a @ b, atol=0.1, rtol=0.01)
    sums = a.clone()
    gemm(a, b, sums, out=sums, beta=1.0, config="tune")
    assert torch.allclose(sums, a @ b + a, atol=0.1, rtol=0.01)
