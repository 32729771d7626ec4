"""config="tune": what is timed for products and groups of them, and what stands for it on the emulator."""

import contextlib
import sys

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config as settings
from ptxdsl.assemble import cache
from ptxdsl.kernels.call import gemm as call
from ptxdsl.kernels.call import tuned as tuning
from ptxdsl.kernels.call.groups import grouped as grouped_calls
from ptxdsl.kernels.call.groups import ragged as ragged_calls
from ptxdsl.kernels.call.groups.group import group_of
from ptxdsl.kernels.call.launching import workspace
from ptxdsl.kernels.call.launching.memory import CALLS
from ptxdsl.kernels.call.products.configure import Choice
from ptxdsl.kernels.call.products.plan import traits_of
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.call.products.selection import Selection
from ptxdsl.kernels.choose.candidates import SMALL
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.gemm import gemm, gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm, grouped_kernel
from ptxdsl.kernels.ragged import grouped_gemm_ragged, ragged_kernel
from ptxdsl.runtime import timing
from ptxdsl.tune import records
from tests.fake_driver import TimedCuda, installed
from tests.kernels import tensors
from tests.kernels.tensors import Tensor


def halves(*shape):
    return (np.arange(np.prod(shape)).reshape(shape) % 7 - 3).astype(np.float16)


def candidates(m, n, k, choice=None):
    problem = problem_of(halves(m, k), halves(k, n), None, None, 0.0).row_major
    return Selection(problem, choice or Choice()).candidates()


class TestCandidates:
    def test_of_a_product_they_have_the_choice_of_the_model(self):
        for shape in ((4096, 4096, 4096), (64, 4096, 4096), (300, 200, 100)):
            problem = problem_of(halves(shape[0], 64), halves(64, shape[1]), None, None, 0.0).row_major
            tiles = {config.tile for config in tuning.promising(Selection(problem, Choice()).candidates())}
            chosen = traits_of(problem, Choice()).tiling
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
    found = tuning.tuned(tuning.Trials("gemm", "512 x 512", (0, 0), timed, launched.append, tuning.label_of))
    assert found == configs[2]
    launched.clear()
    assert tuning.tuned(tuning.Trials("gemm", "512 x 512", (0, 0), timed, launched.append, tuning.label_of)) == found
    assert launched == []
    assert tuning.tuned(tuning.Trials("gemm", "512 x 512", (None, 0), timed, launched.append, tuning.label_of)) is None
    assert tuning.tuned(tuning.Trials("gemm", "0 x 512", (0, 0), [], launched.append, tuning.label_of)) is None


class TestThroughTheDriver:
    @pytest.fixture
    def cuda(self, monkeypatch, tmp_path):
        """A GPU of sm_80 on which larger blocks take longer."""
        monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
        monkeypatch.setitem(sys.modules, "torch", tensors.torch())
        for name, value in (("FLUSHED_BYTES", 64), ("REST_SECONDS", 0.0)):
            monkeypatch.setattr(timing, name, value)
        for kernel in (gemm_kernel, grouped_kernel, ragged_kernel):
            for remembered in ("handles", "_variants", "_asked"):
                monkeypatch.setattr(kernel, remembered, {})
        for memory in (workspace._KEPT, workspace._PASSING, tuning.TUNED):
            memory.clear()
        monkeypatch.setattr(tuning, "MOST", 3)
        CALLS.clear()
        with installed(SizedCuda()) as fake:
            yield fake
        for memory in (workspace._KEPT, workspace._PASSING, tuning.TUNED):
            memory.clear()
        CALLS.clear()

    @pytest.mark.parametrize(
        ("call", "kernel"),
        [
            (lambda: gemm(Tensor(64, 64), Tensor(64, 96), out=Tensor(64, 96), config="tune"), "gemm"),
            (lambda: gemm(Tensor(64, 64), Tensor(64, 96), config="tune"), "gemm"),
            (
                lambda: grouped_gemm_ragged(
                    Tensor(90, 32), Tensor(3, 32, 96), Tensor(3, dtype="torch.int32"), out=Tensor(90, 96), config="tune"
                ),
                "grouped_gemm_ragged",
            ),
            (
                lambda: grouped_gemm([Tensor(64, 32)], [Tensor(32, 96)], out=[Tensor(64, 96)], config="tune"),
                "grouped_gemm",
            ),
        ],
    )
    def test_the_first_call_tunes_and_the_next_ones_launch(self, cuda, call, kernel):
        call()
        (chosen,) = tuning.TUNED.values()
        assert chosen is not None
        tuned_launches = len(cuda.launches)
        assert tuned_launches > 3
        call()
        assert len(cuda.launches) == tuned_launches + 1
        ((_, record),) = ((e, r) for e in cache.entries(settings.current().cache_dir)
                          if (r := records.load(settings.current().cache_dir, e.name)) is not None)  # fmt: skip
        assert (record.kernel, record.config) == (kernel, tuning.label_of(chosen))
        tuning.TUNED.clear()  # as in another process
        call()
        assert len(cuda.launches) == tuned_launches + 2

    def test_what_cannot_be_looked_up(self, cuda):
        """A schedule that is none is refused before; functions are known by what they read."""
        with pytest.raises(pd.LaunchError, match=r"schedule is \[1\]; it takes one schedule"):
            gemm(Tensor(64, 64), Tensor(64, 96), schedule=[1], config="tune")
        gemm(Tensor(64, 64), Tensor(64, 96), epilogue=Doubled(), config="tune")
        assert cuda.launches and tuning.TUNED

    def test_what_is_read_and_written_is_not_written_while_tuning(self, cuda, monkeypatch):
        outputs, a, b, out = [], Tensor(64, 64), Tensor(64, 96), Tensor(64, 96)
        monkeypatch.setattr(call, "run", lambda kernels, a, b, c, out, *others: outputs.append(out))
        monkeypatch.setattr(tuning, "tuned", lambda trials: trials.run(SMALL))
        gemm(a, b, out, out=out, beta=1.0, config="tune")
        gemm(a, b, Tensor(64, 96), out=out, beta=1.0, config="tune")
        assert outputs == [None, out]


class Doubled:
    """An epilogue that is not hashable."""

    __hash__ = None

    def __call__(self, x):
        return x + x


class SizedCuda(TimedCuda):
    """A GPU of sm_80 on which blocks of more shared memory take longer; parameters are as wide as the kernel's."""

    def __init__(self):
        super().__init__(widths=(), times={})
        self.attributes = {**self.attributes, "COMPUTE_CAPABILITY_MAJOR": 8}
        self.widths = (8, 8, 8, 8)

    def cuEventElapsedTime(self, start, end):
        return self.result("cuEventElapsedTime", self.launches[-1]["shared_bytes"] / 1e6)


@pytest.mark.gpu
def test_products_are_tuned_on_a_gpu(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    a, b = (torch.randn(256, 256, device="cuda", dtype=torch.float16) for _ in range(2))
    assert torch.allclose(gemm(a, b, config="tune"), a @ b, atol=0.1, rtol=0.01)
    sums = a.clone()
    gemm(a, b, sums, out=sums, beta=1.0, config="tune")
    assert torch.allclose(sums, a @ b + a, atol=0.1, rtol=0.01)
