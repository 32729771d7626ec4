"""Rates of GPUs: the file of one that was measured, and what the driver says of another one."""

from dataclasses import replace

import pytest

from ptxdsl.kernels.choose import rates as module
from ptxdsl.kernels.choose.rates import DEFAULT, FOLDER, Gpu, known, rates_of, read, write
from ptxdsl.types import f16
from tests.fake_driver import FakeCuda, installed

SCALED = ("multiply_adds", "load", "narrow", "store", "dram")


@pytest.fixture
def gpu_like():
    """rates_of(0) on a machine whose GPU reports such a name and such attributes."""

    def rates(name, **attributes):
        fake = FakeCuda(**attributes)
        fake.cuDeviceGetName = lambda length, device: fake.result("name", name.encode().ljust(length, b"\0"))
        module._of_device.cache_clear()
        with installed(fake):
            return rates_of(0)

    yield rates
    module._of_device.cache_clear()


def test_a_file_is_read_as_it_was_written(tmp_path):
    changed = replace(rates_of(), winners={"gemm 16 kk 64x64x64": "64x64/8"})
    write(tmp_path / "gpu.json", changed, {"command": "none"})
    assert read(tmp_path / "gpu.json") == changed


def test_every_file_is_of_one_gpu():
    assert DEFAULT in known() and len([*FOLDER.glob("*.json")]) == len(known())


def test_a_gpu_that_was_measured_has_its_rates(gpu_like):
    assert gpu_like(DEFAULT) == rates_of()


def test_a_part_of_it_has_fewer_multiprocessors_and_no_winners(gpu_like):
    part = gpu_like(DEFAULT, MULTIPROCESSOR_COUNT=66)
    assert part.multiprocessors == 66 and not part.winners
    assert part.sm90 == rates_of().sm90


def test_another_gpu_has_the_default_rates_scaled_by_clock_and_memory(gpu_like):
    whole = rates_of()
    other = gpu_like("NVIDIA A100", MULTIPROCESSOR_COUNT=108, CLOCK_RATE=990000, MEMORY_CLOCK_RATE=1600500)
    assert other.gpu == Gpu("NVIDIA A100", 108, 990000, whole.gpu.bandwidth / 2)
    for path in ("sm80", "sm90"):
        measured, scaled = getattr(whole, path), getattr(other, path)
        assert (scaled.dram, scaled.load, scaled.store) == (measured.dram / 2, measured.load / 2, measured.store * 2)
        assert scaled.of(f16) == measured.of(f16) / 2
        assert replace(scaled, **{name: getattr(measured, name) for name in SCALED}) == measured
