"""The rates of GPUs: one file of data each, scaled for GPUs that were not measured; and the model on them."""

from dataclasses import replace

import numpy as np
import pytest

from ptxdsl import f16, f64, s8, u8
from ptxdsl.kernels.choose import rates as module
from ptxdsl.kernels.choose.candidates import CONVOLUTIONS, GROUPED, OF_HALVES, label
from ptxdsl.kernels.choose.conv import choose as choose_convolution
from ptxdsl.kernels.choose.gemm import choose
from ptxdsl.kernels.choose.grouped import choose_tiles
from ptxdsl.kernels.choose.model import CostModel, candidate, model_of
from ptxdsl.kernels.choose.rates import DEFAULT, Gpu, known, rates_of, read, write
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.tiles.many import AHEAD
from tests.fake_driver import FakeCuda, installed


@pytest.fixture
def gpu_like():
    """rates_of(0) on a machine whose GPU says this of itself."""

    def rates(name=None, **attributes):
        fake = FakeCuda(**attributes)
        if name:
            fake.cuDeviceGetName = lambda length, device: fake.result("name", name.encode().ljust(length, b"\0"))
        module._of_device.cache_clear()
        with installed(fake):
            return rates_of(0)

    yield rates
    module._of_device.cache_clear()


def test_there_are_rates_of_the_gpu_that_the_emulator_stands_for():
    assert rates_of(None) is known()[DEFAULT]
    assert rates_of(None).gpu.multiprocessors == 132


@pytest.mark.parametrize("name", known())
def test_a_file_has_a_rate_for_each_candidate(name):
    rates = known()[name]
    assert set(rates.grouped) == set(map(label, GROUPED))
    assert set(rates.convolution) == {f"{bits} {label(c)}" for bits, known in CONVOLUTIONS.items() for c in known}
    assert set(rates.multiply_adds) == {"f16", "f32", "f64", "s8"}
    assert set(rates.uncounted) == {"f32", "s8"}


def test_rates_are_written_as_they_are_read(tmp_path):
    rates = replace(rates_of(None), wave=3.5)
    write(tmp_path / "gpu.json", rates, {"command": "none"})
    assert read(tmp_path / "gpu.json") == rates


def test_a_gpu_that_was_measured_has_its_rates(gpu_like):
    assert gpu_like(DEFAULT) == rates_of(None)


def test_a_gpu_with_fewer_multiprocessors_does_less_at_once(gpu_like):
    whole, part = rates_of(None), gpu_like(DEFAULT, MULTIPROCESSOR_COUNT=66)
    assert part.gpu.multiprocessors == 66
    assert part.l2_bandwidth == whole.l2_bandwidth / 2 and part.most_rate == whole.most_rate / 2
    assert (part.multiply_adds, part.dram_bandwidth) == (whole.multiply_adds, whole.dram_bandwidth)


def test_a_gpu_that_was_not_measured_has_what_its_driver_says_of_clock_and_memory(gpu_like):
    whole = rates_of(None)
    rates = gpu_like("NVIDIA A100", MULTIPROCESSOR_COUNT=108, CLOCK_RATE=990000, MEMORY_CLOCK_RATE=1600500)
    assert rates.gpu == Gpu("NVIDIA A100", 108, 990000, whole.gpu.bandwidth / 2)
    assert rates.dram_bandwidth == whole.dram_bandwidth / 2
    assert rates.shared_bandwidth == whole.shared_bandwidth / 2
    assert rates.multiply_adds["f16"] == whole.multiply_adds["f16"] / 2
    assert rates.l2_bandwidth == pytest.approx(whole.l2_bandwidth * 108 / 132 / 2)


def test_the_number_of_multiprocessors_changes_what_is_chosen():
    assert choose(1024, 1024, 4096).tile != choose(1024, 1024, 4096, multiprocessors=78).tile
    assert choose(1536, 1536, 1536).tile != choose(1536, 1536, 1536, multiprocessors=78).tile
    few = model_of().on(20)
    assert choose_convolution((1568, 512, 4608), f16, True).split_k > 1
    assert choose_convolution((1568, 512, 4608), f16, True, model=few).split_k == 1
    sizes = tuple(np.array(each) for each in zip(*[(200, 256, 4096)] * 16, strict=True))
    tiles = [choose_tiles(sizes, "sm_90", Operands(), AHEAD, model).tile for model in (model_of(), model_of().on(8))]
    assert tiles[0] != tiles[1]


def test_the_bandwidth_of_memory_changes_what_a_product_takes():
    slow = CostModel(replace(rates_of(None), dram_bandwidth=rates_of(None).dram_bandwidth / 2))
    for shape, least, most in (((16, 4096, 4096), 1.4, 2), ((8192, 8192, 8192), 1, 1.1)):
        option = candidate(choose(*shape), f16)
        assert least < slow.product(option, shape) / model_of().product(option, shape) < most


@pytest.mark.parametrize("config", OF_HALVES[:4], ids=label)
def test_more_work_takes_longer(config):
    model, option = model_of(), candidate(config, f16)
    times = [model.product(option, (size, size, size)) for size in (512, 1024, 2048, 4096, 8192)]
    assert times == sorted(times)
    groups = [model.group(config, f16, (np.array([m]), np.array([m]), np.array([m]))) for m in (512, 2048, 8192)]
    assert groups == sorted(groups)


def test_what_only_other_paths_are_compared_with():
    """8-bit types take as long as each other; of others the rates say all."""
    model, large = model_of(), (4096, 4096, 4096)
    assert model.uncounted(u8, large) == model.uncounted(s8, large) == pytest.approx(4096**3 / 132 / 12e6)
    assert model.uncounted(f16, large) == model.uncounted(f64, large) == 0


def test_narrower_inputs_take_less_time():
    model = model_of()
    large = (8192,) * 3
    half, double, byte = (model.product(candidate(choose(*large, inputs), inputs), large) for inputs in (f16, f64, s8))
    assert byte < half < double
