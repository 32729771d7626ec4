"""Where a launch goes: to the emulator or to a GPU, here a stand-in for the driver."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f32, ptr, u32
from ptxdsl.errors import Error, LaunchError
from tests.fake_driver import FakeCuda, installed

_addresses = itertools.count(1 << 30, 1 << 20)


class OnGpu:
    """Answers as an array on a GPU does, whose number the stand-in for the driver finds in the address."""

    def __init__(self, elements=1000, typestr="<f4", device=0):
        self.address = next(_addresses) + (device << 40)
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
        with pytest.raises(LaunchError, match="needs 32 bytes of dynamic shared memory, but the launch passes only 16"):
            kernel[1, 32, 16](x, y, 2.0, 10, bytes=32)
        kernel[1, 32, 16](x, y, 2.0, 10, bytes=None)
        with pytest.raises(LaunchError, match="does not pass its shared memory size"):
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


def test_a_kernel_that_may_begin_early(gpu):
    for _ in range(2):
        make()[4, 32](OnGpu(), OnGpu(), 2.0, 10, dependent=True)
        assert gpu.launches[-1]["attributes"] == [("PROGRAMMATIC_STREAM_SERIALIZATION", 1)]


def test_no_kernel_begins_early_where_the_setting_says_no(gpu, monkeypatch):
    """Nor is a launch made again that was made while it said yes, or the other way round."""
    kernel, early = make(), [("PROGRAMMATIC_STREAM_SERIALIZATION", 1)]
    for text, attributes in (("", early), ("off", []), ("off", []), ("on", early), ("off", []), ("", early)):
        monkeypatch.setenv("PTXDSL_DEPENDENT_LAUNCH", text)
        kernel[4, 32](OnGpu(), OnGpu(), 2.0, 10, dependent=True)
        assert gpu.launches[-1]["attributes"] == attributes
    with config.using(dependent_launch=False):
        kernel[4, 32](OnGpu(), OnGpu(), 2.0, 10, dependent=True)
    kernel[4, 32](OnGpu(), OnGpu(), 2.0, 10, dependent=True)
    assert [launch["attributes"] for launch in gpu.launches[-2:]] == [[], early]


def test_a_setting_that_is_neither_on_nor_off_launches_nothing(gpu, monkeypatch):
    kernel = make()
    kernel[4, 32](OnGpu(), OnGpu(), 2.0, 10, dependent=True)
    monkeypatch.setenv("PTXDSL_DEPENDENT_LAUNCH", "never")
    with pytest.raises(Error) as refused:
        kernel[4, 32](OnGpu(), OnGpu(), 2.0, 10, dependent=True)
    assert refused.value.message == "PTXDSL_DEPENDENT_LAUNCH is `never`; it must be on or off"
    assert refused.value.help == "use one of these, or leave it unset"
    assert len(gpu.launches) == 1


def test_an_array_of_another_type_is_refused_after_a_launch_too(gpu):
    kernel = make()
    kernel[1, 32](OnGpu(), OnGpu(), 2.0, 10)
    with pytest.raises(LaunchError, match=r"`y` expects ptr\[f32\], got a .* of f64"):
        kernel[1, 32](OnGpu(), OnGpu(typestr="<f8"), 2.0, 10)
    assert len(gpu.launches) == 1


def test_arrays_of_both_memories_are_refused(gpu):
    with pytest.raises(LaunchError, match=r"`y` is a numpy array .* in host memory, but this launch runs on cuda:0"):
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


class Vector(pd.Parameters):
    data: ptr[f32]
    n: u32


class Saxpy(pd.Parameters):
    x: Vector
    y: Vector


def test_groups_of_parameters_are_launched_quickly_too(gpu):
    @pd.kernel
    def k(p: Saxpy):
        p.y.data[0] = p.x.data[p.x.n + p.y.n]

    gpu.widths = (8, 4, 8, 4)
    for n in range(3):
        x, y = OnGpu(), OnGpu()
        k[1, 1](Saxpy(x=Vector(data=x, n=n), y=Vector(data=y, n=5)))
        expected = [
            struct.pack("<Q", x.address),
            struct.pack("<I", n),
            struct.pack("<Q", y.address),
            struct.pack("<I", 5),
        ]
        assert gpu.launches[-1]["parameters"] == expected
    handle = k.compiled("sm_90a")
    group = Saxpy(x=Vector(data=x, n=8), y=Vector(data=y, n=5))
    for arguments in ([group], group.flat):
        handle(1, 1, arguments)
        assert gpu.launches[-1]["parameters"][1] == struct.pack("<I", 8)
    with pytest.raises(LaunchError, match=r"`p\.x\.n` expects u32, got 'many'"):
        k[1, 1](Saxpy(x=Vector(data=x, n="many"), y=Vector(data=y, n=5)))


@pytest.fixture
def two_gpus():
    with installed(FakeCuda(widths=(8, 8, 4, 4), gpus=2, others={1: {"COMPUTE_CAPABILITY_MAJOR": 8}})) as fake:
        yield fake


def test_each_gpu_gets_code_for_itself(two_gpus):
    """An H200 and an A100, in any order, again and again."""
    kernel = make()
    for device in (0, 1, 0, 1, 1, 0):
        x, y = OnGpu(device=device), OnGpu(device=device)
        kernel[1, 32](x, y, 2.0, 10)
        assert two_gpus.launches[-1]["device"] == device
        assert two_gpus.launches[-1]["parameters"] == parameters(x, y, 2.0, 10)
    assert [(device, target_of(image)) for device, image in two_gpus.loaded] == [(0, 90), (1, 80)]


def test_arrays_that_do_not_say_where_they_are_run_on_their_gpu_from_the_first_launch_on(two_gpus):
    kernel = make()
    kernel[1, 32](OnGpu(device=1), OnGpu(device=1), 2.0, 10)
    assert [(device, target_of(image)) for device, image in two_gpus.loaded] == [(1, 80)]


def test_arrays_of_two_gpus_are_refused_before_and_after_a_launch(two_gpus):
    kernel = make()
    for _ in range(2):
        with pytest.raises(
            LaunchError,
            match=r"`y` is a tests array of f32 with shape \(1000,\) on cuda:1, but this launch runs on cuda:0",
        ):
            kernel[1, 32](OnGpu(), OnGpu(device=1), 2.0, 10)
        kernel[1, 32](OnGpu(), OnGpu(), 2.0, 10)


def test_settings_hold_in_every_launch(gpu, monkeypatch):
    kernel = make()
    kernel[1, 32](OnGpu(), OnGpu(), 2.0, 4)
    monkeypatch.setenv("PTXDSL_DEVICE", "emulator")
    with pytest.raises(LaunchError, match="this launch runs on the emulator"):
        kernel[1, 32](OnGpu(), OnGpu(), 2.0, 4)
    monkeypatch.delenv("PTXDSL_DEVICE")
    kernel[1, 32](OnGpu(), OnGpu(), 2.0, 4)
    with config.using(device="emulator"), pytest.raises(LaunchError, match="this launch runs on the emulator"):
        kernel[1, 32](OnGpu(), OnGpu(), 2.0, 4)
    assert len(gpu.launches) == 2


def test_the_target_of_the_settings_holds_in_every_launch(gpu, monkeypatch):
    @pd.kernel
    def k(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
        y[0] = a

    k[1, 1](OnGpu(), OnGpu(), 2.0, 4)
    monkeypatch.setenv("PTXDSL_ARCH", "sm_80")
    k[1, 1](OnGpu(), OnGpu(), 2.0, 4)
    assert [key[0] for key in k._variants] == ["sm_90a", "sm_80"]


def test_what_is_remembered_of_a_kernel_has_a_bound(gpu, monkeypatch):
    monkeypatch.setattr("ptxdsl.runtime.dispatch.MOST_REMEMBERED", 3)
    kernel = make()
    for bytes in range(16, 24):
        kernel[1, 32](OnGpu(), OnGpu(), 2.0, 10, bytes=bytes)
    assert len(kernel.handles) == 3


SCALE = 2.0


def test_a_global_that_changes_is_read_anew_on_a_gpu(gpu, monkeypatch):
    @pd.kernel
    def k(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
        y[0] = a * SCALE

    for value in (2.0, 3.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        for _ in range(2):
            k[1, 1](OnGpu(), OnGpu(), 2.0, 4)
    assert len(gpu.loaded) == len(k._variants) == 2


def test_constants_that_are_equal_but_not_the_same_are_other_kernels_on_a_gpu(gpu):
    @pd.kernel
    def k(x: ptr[f32], y: ptr[f32], a: f32, n: u32, *, value):
        y[0] = a + (value[0] if isinstance(value, tuple) else value)

    for value in (0.0, -0.0, (1.0,), (1.5,), 0.0):
        k[1, 1](OnGpu(), OnGpu(), 2.0, 4, value=value)
    assert len(gpu.loaded) == 4


def test_arrays_that_overlap_in_part_run_where_the_caller_says_so(gpu):
    kernel, x = make(), OnGpu()
    y = OnGpu()
    y.__cuda_array_interface__["data"] = (x.address + 4, False)
    for _ in range(2):
        with pytest.raises(LaunchError, match="`y`, which saxpy writes, shares memory with `x`"):
            kernel[1, 32](x, y, 2.0, 10)
        kernel[1, 32](x, y, 2.0, 10, overlap=True)
        kernel[1, 32](x, x, 2.0, 10)
    assert len(gpu.launches) == 4


def refused(function):
    """Message and help of what is refused."""
    with pytest.raises(LaunchError) as error:
        function()
    return error.value.message, error.value.help


X, Y = np.zeros(4, np.float32), np.zeros(4, np.float32)


@pytest.mark.parametrize("arch, most", [("sm_80", 166912), ("sm_86", 101376), ("sm_90a", 232448), ("sm_120", 101376)])
def test_the_emulator_has_no_more_shared_memory_than_the_target(arch, most):
    kernel = make()
    with config.using(arch=arch):
        kernel[1, 1, most](X, Y, 2.0, 0, bytes=None)
        for run in (
            lambda: kernel[1, 1, most + 16](X, Y, 2.0, 0, bytes=None),
            lambda: pd.emulate(kernel, 1, 1, X, Y, 2.0, 0, bytes=None, shared_bytes=most + 16),
        ):
            assert refused(run) == (
                f"saxpy requests {most + 16} bytes of dynamic shared memory; a block on {arch} can have {most}",
                "use a smaller tile or fewer stages"
                + ", or set PTXDSL_ARCH to emulate another GPU" * (most < 227 << 10),
            )


def test_static_shared_memory_counts():
    @pd.kernel
    def k(x: ptr[f32]):
        s, d = pd.shared(f32, 8), pd.dynamic_shared(f32)
        s[0] = d[0] = x[0]

    assert refused(lambda: k[1, 1, 166912](X))[0] == (
        "k requests 166912 bytes of dynamic shared memory; a block on sm_80 can have 166880 in addition to 32 static bytes"
    )
    text = k.ptx().replace("[8]", "[16384]")
    assert refused(lambda: pd.parse(text)["k"][1, 1, 16](X)) == (
        "`k` declares 65536 bytes of static shared memory; the limit is 49152",
        "declare it `.extern .shared` without a size, and pass `shared_bytes` at launch",
    )


def test_clusters_are_refused_where_the_target_has_none():
    kernel = make()
    assert refused(lambda: kernel[2, 1](X, Y, 2.0, 0, cluster=2)) == (
        "sm_80 does not support clusters",
        "launch without `cluster`, which needs sm_90 or later; PTXDSL_ARCH selects the GPU to emulate",
    )


def test_a_block_has_no_more_registers_than_a_gpu():
    @pd.kernel
    def k(x: ptr[f32]):
        values = [x[n * 1024 + pd.tid.x] for n in range(96)]
        for n in range(96):
            x[n * 1024 + pd.tid.x] = values[n] + values[(n * 37 + 5) % 96] * values[(n * 11 + 3) % 96]

    @pd.kernel(max_threads=1024)
    def fits(x: ptr[f32]):
        values = [x[n * 1024 + pd.tid.x] for n in range(96)]
        for n in range(96):
            x[n * 1024 + pd.tid.x] = values[n] + values[(n * 37 + 5) % 96] * values[(n * 11 + 3) % 96]

    x = np.zeros(96 * 1024, np.float32)
    registers = k.resources().registers
    assert registers > 64
    most = 65536 // (-(-registers // 8) * 8 * 32) // 4 * 4 * 32
    assert refused(lambda: k[1, 1024](x)) == (
        f"a block of (1024, 1, 1) has 1024 threads; k can have at most {most}", "use a smaller block; its registers or its .maxntid allow no more",
    )  # fmt: skip
    k[1, most](x)
    fits[1, 1024](x)


class Run(pd.Parameters):
    n: u32
    x: Vector
    y: Vector


STRUCT = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .align 8 .b8 p[40])
{
    .reg .u64 %x, %y;
    .reg .f32 %v;
    ld.param.u64 %x, [p+8];
    ld.param.u64 %y, [p+24];
    ld.global.f32 %v, [%x];
    st.global.f32 [%y], %v;
    ret;
}
"""


def struct_bytes(n, x, y):
    return struct.pack("<IxxxxQIxxxxQIxxxx", n, x, 4, y, 5)


def test_a_struct_with_arrays_is_launched(gpu):
    gpu.widths = (40,)
    kernel = pd.parse(STRUCT)["twice"]
    for n in range(3):
        x, y = OnGpu(), OnGpu()
        kernel[1, 1](Run(n=n, x=Vector(data=x, n=4), y=Vector(data=y, n=5)))
        assert gpu.launches[-1]["parameters"] == [struct_bytes(n, x.address, y.address)]
    with pytest.raises(LaunchError, match=r"`p\.x\.data` expects ptr\[f32\], got a tests array of f64"):
        kernel[1, 1](Run(n=1, x=Vector(data=OnGpu(typestr="<f8"), n=4), y=Vector(data=y, n=5)))


def test_a_struct_with_numpy_arrays_is_copied_there_and_back(gpu, monkeypatch):
    monkeypatch.setenv("PTXDSL_DEVICE", "cuda")
    gpu.widths = (40,)
    x, y = np.ones(4, np.float32), np.ones(5, np.float32)

    def run(launch):
        n, xs, _, ys, _ = struct.unpack("<IxxxxQIxxxxQIxxxx", launch["parameters"][0])
        assert (n, gpu.memory[xs].raw[:16]) == (7, x.tobytes())
        for address in (xs, ys):
            gpu.memory[address].raw = np.full(4, 3, np.float32).tobytes().ljust(len(gpu.memory[address].raw), b"\0")

    gpu.run = run
    pd.parse(STRUCT)["twice"][1, 1](Run(n=7, x=Vector(data=x, n=4), y=Vector(data=y, n=5)))
    assert (x.tolist(), y.tolist()) == ([1] * 4, [3, 3, 3, 3, 0])  # x is not written
    assert not gpu.memory


def test_groups_go_where_their_arrays_are_whatever_the_last_ones_were(gpu):
    @pd.kernel
    def k(p: Saxpy):
        p.y.data[0] = p.x.data[0] + 1.0

    gpu.widths = (8, 4, 8, 4)
    for _ in range(2):
        k[1, 1](Saxpy(x=Vector(data=OnGpu(), n=1), y=Vector(data=OnGpu(), n=1)))
        x, y = np.ones(1, np.float32), np.zeros(1, np.float32)
        k[1, 1](Saxpy(x=Vector(data=x, n=1), y=Vector(data=y, n=1)))
        assert y[0] == 2
    assert len(gpu.launches) == 2


def test_constants_that_are_computed_for_each_launch_are_known_again(gpu, monkeypatch):
    kernel = make()
    for n in range(5):
        kernel[1, 32](OnGpu(), OnGpu(), 2.0, 10, bytes=int("1000") + 24 * (n > 5))
        monkeypatch.setattr(kernel, "variant", None)  # is not asked again
    assert [launch["shared_bytes"] for launch in gpu.launches] == [1000] * 5
    assert len(kernel.handles) == 2
