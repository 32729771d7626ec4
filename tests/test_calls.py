"""Where a launch goes: to the emulator or to a GPU, here a stand-in for the driver."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32
from ptxdsl.errors import LaunchError
from tests.fake_driver import FakeCuda, installed

_addresses = itertools.count(1 << 30, 1 << 20)


class OnGpu:
    """Answers as an array on the first GPU does."""

    def __init__(self, elements=1000, typestr="<f4"):
        self.address = next(_addresses)
        self.__cuda_array_interface__ = {
            "shape": (elements,), "typestr": typestr, "data": (self.address, False), "version": 3, "strides": None,
        }  # fmt: skip


@pytest.fixture
def gpu():
    with installed(FakeCuda(widths=(8, 8, 4, 4))) as fake:
        yield fake


def make():
    @pd.kernel
    def saxpy(x: ptr[f32], y: ptr[f32], a: f32, n: u32, *, bytes: int | None = 0):
        s = pd.dynamic_shared(pd.b8, bytes) if bytes != 0 else None
        i = pd.ctaid.x * pd.ntid.x + pd.tid.x
        with pd.if_(i < n):
            y[i] = a * x[i] + y[i]
            if s is not None:
                s[0] = 1

    return saxpy


def parameters(x, y, a, n):
    return [struct.pack("<Q", x.address), struct.pack("<Q", y.address), struct.pack("<f", a), struct.pack("<I", n)]


def target_of(image):
    """The number of the architecture in the header of a cubin."""
    return image[49]


def test_arrays_on_a_gpu_run_there_from_the_first_call_on(gpu):
    kernel = make()
    for call in range(3):
        x, y = OnGpu(), OnGpu()
        kernel[8 + call, (128,)](x, y, 2.0, 1000, stream=5)
        launch = gpu.launches[-1]
        assert (launch["grid"], launch["block"], launch["stream"]) == ((8 + call, 1, 1), (128, 1, 1), 5)
        assert launch["parameters"] == parameters(x, y, 2.0, 1000)
    assert len(gpu.loaded) == 1
    assert len(kernel.handles) == 1


def test_constants_choose_the_kernel(gpu):
    kernel = make()
    x, y = OnGpu(), OnGpu()
    for bytes in (16, 32, 16):
        kernel[1, 32](x, y, 2.0, 10, bytes=bytes)
        assert gpu.launches[-1]["shared_bytes"] == bytes
    assert len(gpu.loaded) == 2


def test_shared_memory_is_checked_in_every_launch(gpu):
    kernel = make()
    x, y = OnGpu(), OnGpu()
    for _ in range(2):
        kernel[1, 32, 64](x, y, 2.0, 10, bytes=32)
        assert gpu.launches[-1]["shared_bytes"] == 64
        with pytest.raises(LaunchError, match="needs 32 bytes of dynamic shared memory; the launch gives 16"):
            kernel[1, 32, 16](x, y, 2.0, 10, bytes=32)
        kernel[1, 32, 16](x, y, 2.0, 10, bytes=None)
        with pytest.raises(LaunchError, match="does not say how many bytes"):
            kernel[1, 32](x, y, 2.0, 10, bytes=None)


@pytest.mark.parametrize("arch", ["", "sm_80"])
def test_a_kernel_for_an_older_target_is_assembled_for_the_gpu(gpu, arch, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", arch)
    make()[1, 32](OnGpu(), OnGpu(), 2.0, 10)
    (_, image), = gpu.loaded  # fmt: skip
    assert target_of(image) == 90


def test_clusters_and_cooperative_launches(gpu):
    make()[4, 32](OnGpu(), OnGpu(), 2.0, 10, cluster=2, cooperative=True)
    assert gpu.launches[-1]["attributes"] == [("CLUSTER_DIMENSION", (2, 1, 1)), ("COOPERATIVE", 1)]


def test_an_array_of_another_type_is_refused_after_a_launch_too(gpu):
    kernel = make()
    kernel[1, 32](OnGpu(), OnGpu(), 2.0, 10)
    with pytest.raises(LaunchError, match=r"`y` takes ptr\[f32\]; it is a .* of f64"):
        kernel[1, 32](OnGpu(), OnGpu(typestr="<f8"), 2.0, 10)
    assert len(gpu.launches) == 1


def test_arrays_of_both_memories_are_refused(gpu):
    with pytest.raises(LaunchError, match=r"`y` is a numpy array .* in host memory; this launch runs on cuda:0"):
        make()[1, 32](OnGpu(), np.ones(4, np.float32), 2.0, 4)


def test_numpy_arrays_run_on_a_gpu_that_is_asked_for(gpu, monkeypatch):
    monkeypatch.setenv("PTXDSL_DEVICE", "cuda")
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)

    def run(launch):
        address = int.from_bytes(launch["parameters"][1], "little")
        gpu.memory[address].raw = np.full(4, 7, np.float32).tobytes().ljust(len(gpu.memory[address].raw), b"\0")

    gpu.run = run
    make()[1, 32](x, y, 2.0, 4)
    assert (x.tolist(), y.tolist()) == ([1] * 4, [7] * 4)
    assert not gpu.memory


def test_arrays_on_a_gpu_do_not_run_on_the_emulator(gpu, monkeypatch):
    monkeypatch.setenv("PTXDSL_DEVICE", "emulator")
    with pytest.raises(LaunchError, match="this launch runs on the emulator"):
        make()[1, 32](OnGpu(), OnGpu(), 2.0, 4)


def test_a_parsed_kernel_runs_on_the_gpu_too(gpu):
    kernel = pd.parse(make().ptx())["saxpy"]
    x, y = OnGpu(), OnGpu()
    for _ in range(2):
        kernel[1, 32](x, y, 2.0, 10)
        assert gpu.launches[-1]["parameters"] == parameters(x, y, 2.0, 10)
