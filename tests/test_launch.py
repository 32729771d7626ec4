"""Launching, on a stand-in for the driver: the bytes that a kernel gets, streams, contexts, limits and refusals."""

import ctypes
import itertools
import pickle
import struct
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from cuda.bindings.driver import CUresult, CUstream

from ptxdsl import config, driver, types
from ptxdsl.arrays import XLA, DeviceBuffer, strided
from ptxdsl.assemble import Cubin, Resources
from ptxdsl.errors import LaunchError
from ptxdsl.runtime.launch import load
from ptxdsl.runtime.loaded import runs_on
from ptxdsl.runtime.record import reach
from ptxdsl.runtime.streams import stream_handle
from ptxdsl.runtime.values import Bytes
from ptxdsl.types import f32, ptr, s32, u32, u64

from .fake_driver import FakeCuda, installed

PARAMETERS = [("x", ptr[f32]), ("n", u32), ("y", ptr[f32]), ("a", f32)]


@pytest.fixture
def gpu():
    with installed(FakeCuda(widths=(8, 4, 8, 4), gpus=2)) as fake:
        yield fake


def kernel(parameters=PARAMETERS, written=("y",), arch="sm_90a", **needs):
    return load(Cubin(b"image", arch, {"k": Resources(**needs)}), "k", parameters, written)


_addresses = itertools.count(1 << 30, 1 << 20)


class Tensor:
    """Answers as a torch tensor does."""

    __module__ = "torch"

    def __init__(self, size=8, dtype="torch.float32", device=0, address=None, contiguous=True):
        self.dtype, self.shape, self.itemsize, self.nbytes = dtype, (size,), 4, 4 * size
        self.device = SimpleNamespace(type="cuda" if device >= 0 else "cpu")
        self.ordinal, self.address, self.contiguous = device, address or next(_addresses), contiguous

    def data_ptr(self):
        return self.address

    def get_device(self):
        return self.ordinal

    def is_contiguous(self):
        return self.contiguous

    def stride(self):
        return (1,) if self.contiguous else (2,)


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    """torch's current stream is `torch.stream`."""
    state = SimpleNamespace(stream=77, asked=[])

    def raw(device):
        state.asked.append(device)
        return state.stream

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=SimpleNamespace(_cuda_getCurrentRawStream=raw)))
    return state


def words(*arguments):
    return [struct.pack(code, value) for code, value in zip(("<Q", "<I", "<Q", "<f"), arguments, strict=True)]


def both_ways(handle, *call, **options):
    """Launch twice: the first checks everything and learns, the second takes the quick way."""
    handle(*call, **options)
    with only_quickly(handle):
        handle(*call, **options)


@contextmanager
def only_quickly(handle):
    """Launches must take the quick way."""

    def refused(*arguments):
        raise AssertionError("the careful way was taken")

    handle._launch_carefully = refused
    yield
    del handle._launch_carefully


def test_a_launch_hands_over_the_shape_the_stream_and_each_parameter(gpu):
    x, y = Tensor(), Tensor()
    both_ways(kernel(), (8, 2), 128, (x, 8, y, 2.0))
    first, second = gpu.launches
    assert first == second == {
        "device": 0,
        "grid": (8, 2, 1),
        "block": (128, 1, 1),
        "shared_bytes": 0,
        "stream": 77,
        "attributes": [],
        "parameters": words(x.address, 8, y.address, 2.0),
    }  # fmt: skip


def test_buffers_of_xla_go_to_its_stream(gpu, monkeypatch):
    x, y = (DeviceBuffer(next(_addresses), (2, 4), np.dtype(np.float32), 1) for _ in range(2))
    handle = kernel()
    for stream in (55, 66):
        monkeypatch.setattr(XLA.stream, "handle", stream, raising=False)
        both_ways(handle, 1, 32, (x, 8, y, 2.0))
        assert [launch["stream"] for launch in gpu.launches[-2:]] == [stream, stream]
        assert gpu.launches[-1]["parameters"] == words(x.address, 8, y.address, 2.0)
        assert gpu.launches[-1]["device"] == 1
    with pytest.raises(LaunchError, match=r"`y` expects ptr\[f32\], got a jax array of f64 with shape \(2,\)"):
        handle(1, 32, (x, 8, DeviceBuffer(1 << 20, (2,), np.dtype(np.float64), 1), 2.0))


def test_other_values_of_the_same_types_arrive_on_the_quick_way(gpu):
    handle = kernel()
    for n in range(4):
        x, y = Tensor(), Tensor(dtype="torch.float32")
        handle(n + 1, 32, (x, n, y, n / 2))
        assert gpu.launches[-1]["parameters"] == words(x.address, n, y.address, n / 2)
        assert gpu.launches[-1]["grid"] == (n + 1, 1, 1)


def test_a_cubin_is_loaded_once_a_gpu_at_its_first_launch(gpu):
    handle = kernel()
    assert gpu.loaded == []
    for device in (0, 1, 0, 1):
        handle(1, 1, (Tensor(device=device), 8, Tensor(device=device), 2.0))
    assert gpu.loaded == [(0, b"image"), (1, b"image")]
    assert [launch["device"] for launch in gpu.launches] == [0, 1, 0, 1]


def test_the_context_that_a_thread_had_is_put_back(gpu):
    with driver.on(1):
        both_ways(kernel(), 1, 1, (Tensor(), 8, Tensor(), 2.0))
        assert gpu.current == 1
    assert [launch["device"] for launch in gpu.launches] == [0, 0]


def test_torchs_current_stream_is_asked_at_each_launch(gpu, torch):
    handle, arguments = kernel(), (Tensor(device=1), 8, Tensor(device=1), 2.0)
    for torch.stream in (5, 6, 7):
        handle(1, 1, arguments)
    assert [launch["stream"] for launch in gpu.launches] == [5, 6, 7]
    assert torch.asked == [1, 1, 1]


class OnGpu:
    """An array that is known by its CUDA array interface alone."""

    def __init__(self, pointer, stream=None):
        self.__cuda_array_interface__ = {
            "version": 3, "shape": (8,), "typestr": "<f4", "data": (pointer, False), "stream": stream,
        }  # fmt: skip


def test_an_array_interface_gives_the_stream_and_the_driver_the_gpu(gpu):
    on_second_gpu = 1 << 40
    kernel()(1, 1, (OnGpu(on_second_gpu, stream=9), 8, OnGpu(on_second_gpu + 64), 2.0))
    (launch,) = gpu.launches
    assert (launch["device"], launch["stream"]) == (1, 9)


@pytest.mark.parametrize(
    "stream",
    [
        9,
        CUstream(9),
        SimpleNamespace(__cuda_stream__=lambda: (0, 9)),
        SimpleNamespace(cuda_stream=9),
        SimpleNamespace(ptr=9),
    ],
)
def test_a_named_stream_is_used(gpu, stream):
    both_ways(kernel(), 1, 1, (Tensor(), 8, Tensor(), 2.0), stream=stream)
    assert [launch["stream"] for launch in gpu.launches] == [9, 9]


def test_what_is_no_stream():
    with pytest.raises(LaunchError) as refused:
        stream_handle("default")
    assert refused.value.message == "stream is 'default', which is not a stream"
    assert refused.value.help == "pass a torch or CuPy stream, a `__cuda_stream__` object, or a handle as an int"


def test_addresses_launch_on_the_named_gpu_and_stream_0(gpu):
    both_ways(kernel(), 1, 1, (1 << 20, 8, 1 << 21, 2.0), device=1)
    for launch in gpu.launches:
        assert (launch["device"], launch["stream"]) == (1, 0)
        assert launch["parameters"] == words(1 << 20, 8, 1 << 21, 2.0)


def test_clusters_and_cooperative_launches_are_attributes(gpu):
    both_ways(kernel(), (4, 2), 32, (Tensor(), 8, Tensor(), 2.0), cluster=(2, 2), cooperative=True)
    for launch in gpu.launches:
        assert launch["grid"] == (4, 2, 1)
        assert launch["attributes"] == [("CLUSTER_DIMENSION", (2, 2, 1)), ("COOPERATIVE", 1)]
    assert gpu.function_attributes == []


def test_clusters_of_more_than_eight_blocks_are_asked_for(gpu):
    kernel()(16, 32, (Tensor(), 8, Tensor(), 2.0), cluster=16)
    assert gpu.function_attributes == [("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)]


def test_shared_memory_past_48_kib_is_asked_for_once(gpu):
    handle, arguments = kernel(shared_bytes=1024), (Tensor(), 8, Tensor(), 2.0)
    for shared_bytes in (47 * 1024, 47 * 1024 + 1, 100_000, 60_000, 231_424):
        handle(1, 32, arguments, shared_bytes=shared_bytes)
        assert gpu.launches[-1]["shared_bytes"] == shared_bytes
    asked = [("MAX_DYNAMIC_SHARED_SIZE_BYTES", size) for size in (47 * 1024 + 1, 100_000, 231_424)]
    assert gpu.function_attributes == asked


def test_more_shared_memory_than_the_gpu_has(gpu):
    with pytest.raises(LaunchError) as refused:
        kernel(shared_bytes=1024)(1, 32, (Tensor(), 8, Tensor(), 2.0), shared_bytes=231_425)
    assert refused.value.message == (
        "k requests 231425 bytes of dynamic shared memory; "
        "a block on cuda:0 (Fake 0, sm_90a) can have 231424 in addition to 1024 static bytes"
    )
    assert refused.value.help == "use a smaller tile or fewer stages"
    assert gpu.launches == []


def test_more_threads_than_the_registers_allow(gpu):
    gpu.max_threads = 640
    with pytest.raises(LaunchError) as refused:
        kernel()(1, (32, 32), (Tensor(), 8, Tensor(), 2.0))
    assert refused.value.message == "a block of (32, 32, 1) has 1024 threads; k can have at most 640"
    assert refused.value.help == "use a smaller block; its registers or its .maxntid allow no more"


def test_clusters_on_a_gpu_that_has_none():
    with installed(FakeCuda(widths=(8, 4, 8, 4), COMPUTE_CAPABILITY_MAJOR=8)), pytest.raises(LaunchError) as refused:
        kernel(arch="sm_80")(2, 32, (Tensor(), 8, Tensor(), 2.0), cluster=2)
    assert refused.value.message == "cuda:0 (Fake 0, sm_80) does not support clusters"
    assert refused.value.help == "launch without `cluster`, which needs sm_90 or later"


def test_a_dependent_launch_is_an_attribute(gpu):
    both_ways(kernel(), 4, 32, (Tensor(), 8, Tensor(), 2.0), dependent=True)
    assert [launch["attributes"] for launch in gpu.launches] == [[("PROGRAMMATIC_STREAM_SERIALIZATION", 1)]] * 2


def test_a_dependent_launch_is_none_where_the_setting_says_no(gpu):
    known, arguments = kernel(), (Tensor(), 8, Tensor(), 2.0)
    for allowed in (True, False, False, True):
        with config.using(dependent_launch=allowed):
            known(4, 32, arguments, dependent=True)
        assert gpu.launches[-1]["attributes"] == [("PROGRAMMATIC_STREAM_SERIALIZATION", 1)] * allowed


def test_a_dependent_launch_on_a_gpu_that_waits_for_each_kernel():
    with installed(FakeCuda(widths=(8, 4, 8, 4), COMPUTE_CAPABILITY_MAJOR=8)), pytest.raises(LaunchError) as refused:
        kernel(arch="sm_80")(2, 32, (Tensor(), 8, Tensor(), 2.0), dependent=True)
    assert refused.value.message == "cuda:0 (Fake 0, sm_80) does not support dependent launches"
    assert refused.value.help == "launch without `dependent`, which needs sm_90 or later"


def test_a_cubin_for_another_gpu(gpu):
    with pytest.raises(LaunchError) as refused:
        kernel(arch="sm_80")(1, 32, (Tensor(), 8, Tensor(), 2.0))
    assert refused.value.message == "`k` is assembled for sm_80, which cuda:0 (Fake 0, sm_90a) cannot run"
    assert refused.value.help == "assemble it for sm_90a"


@pytest.mark.parametrize(
    "arch, runs",
    [
        ("sm_80", {(8, 0), (8, 6), (8, 9)}),
        ("sm_86", {(8, 6), (8, 9)}),
        ("sm_90", {(9, 0)}),
        ("sm_90a", {(9, 0)}),
        ("sm_100a", {(10, 0)}),
        ("sm_100f", {(10, 0), (10, 3)}),
        ("sm_120", {(12, 0), (12, 1)}),
        ("sm_121a", {(12, 1)}),
    ],
)
def test_the_gpus_that_machine_code_runs_on(arch, runs):
    gpus = [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)]
    assert {gpu for gpu in gpus if runs_on(arch, gpu)} == runs


def test_a_kernel_that_the_cubin_does_not_have():
    with pytest.raises(LaunchError) as refused:
        load(Cubin(b"", "sm_80", {"gemm": Resources(), "copy": Resources()}), "gem", [])
    assert (refused.value.message, refused.value.help) == (
        "the cubin has no kernel `gem`",
        "its kernels are gemm, copy",
    )


SHARES = "`y`, which k writes, shares memory with `x`"
BAD = {
    "another type": (
        lambda x, y: (x, 8, Tensor(dtype="torch.float16"), 2.0),
        "`y` expects ptr[f32], got a torch array of f16 with shape (8,)",
    ),
    "another GPU": (
        lambda x, y: (x, 8, Tensor(device=1), 2.0),
        "`y` is a torch array of f32 with shape (8,) on cuda:1, but this launch runs on cuda:0",
    ),
    "host": (
        lambda x, y: (x, 8, Tensor(device=-1), 2.0),
        "`y` is a torch array of f32 with shape (8,) in host memory, but this launch runs on cuda:0",
    ),
    "numpy": (
        lambda x, y: (x, 8, np.zeros(8, np.float32), 2.0),
        "`y` is a numpy array of f32 with shape (8,) in host memory, but this launch runs on cuda:0",
    ),
    "gaps": (
        lambda x, y: (x, 8, Tensor(contiguous=False), 2.0),
        "`y` has shape (8,) and strides (2,), but a kernel pointer needs row-major, contiguous memory",
    ),
    "unaligned": (
        lambda x, y: (x, 8, Tensor(address=0x1002), 2.0),
        "`y` expects ptr[f32], aligned to 4 bytes, but it starts at 0x1002",
    ),
    "overlap below": (lambda x, y: (x, 8, Tensor(address=x.address - 28), 2.0), SHARES),
    "overlap above": (lambda x, y: (x, 8, Tensor(address=x.address + 28), 2.0), SHARES),
    "negative": (lambda x, y: (x, -1, y, 2.0), "`n` expects u32; -1 is out of range (0 to 4294967295)"),
    "too large": (lambda x, y: (x, 8, y, 1e39), "`a` expects f32; 1e+39 is out of range"),
    "an int that is no float": (
        lambda x, y: (x, 8, y, 16777217),
        "`a` expects f32, which cannot represent 16777217 exactly",
    ),
    "a float": (lambda x, y: (x, 8.0, y, 2.0), "`n` expects an integer (u32), got 8.0"),
    "an array": (lambda x, y: (x, y, y, 2.0), "`n` expects u32, got a torch array of f32 with shape (8,)"),
    "too few": (lambda x, y: (x, 8, y), "k takes 4 arguments, got 3"),
}


@pytest.mark.parametrize("known", [False, True], ids=["first launch", "after a good launch"])
@pytest.mark.parametrize("make, message", BAD.values(), ids=BAD.keys())
def test_an_argument_that_does_not_fit_launches_nothing(gpu, known, make, message):
    handle, x, y = kernel(), Tensor(), Tensor()
    if known:
        handle(1, 1, (x, 8, y, 2.0))
    before = len(gpu.launches)
    with pytest.raises(LaunchError) as refused:
        handle(1, 1, make(x, y))
    assert refused.value.message == message
    assert len(gpu.launches) == before
    handle(1, 1, (x, 8, y, 2.0))
    assert len(gpu.launches) == before + 1


@pytest.mark.parametrize("known", [False, True], ids=["first launch", "after a good launch"])
@pytest.mark.parametrize("shape", [(0, 1), (1, 0), ([1], 1), (1, 2048), (1.5, 1)])
def test_a_shape_that_cannot_be_launches_nothing(gpu, known, shape):
    handle, arguments = kernel(), (Tensor(), 8, Tensor(), 2.0)
    if known:
        handle(1, 1, arguments)
    with pytest.raises(LaunchError, match=r"^(grid|block) is "):
        handle(*shape, arguments)
    assert len(gpu.launches) == known


def test_neighbours_are_launched_on_the_quick_way(gpu):
    handle, x = kernel(), Tensor()
    handle(1, 1, (x, 8, Tensor(), 2.0))
    with only_quickly(handle):
        for distance in (32, -32):
            handle(1, 1, (x, 8, Tensor(address=x.address + distance), 2.0))
    assert len(gpu.launches) == 3


def test_types_and_gpus_that_take_turns_are_launched_quickly_once_known(gpu):
    handle = kernel([("x", ptr[types.b32]), ("n", u32), ("y", ptr[f32]), ("a", f32)])
    turns = [
        (Tensor(dtype=dtype, device=device), 8, Tensor(device=device), number)
        for dtype in ("torch.float32", "torch.int32") for device in (0, 1) for number in (2.0, 2)
    ]  # fmt: skip
    turns.append((None, 8, Tensor(), 2.0))
    for arguments in turns:
        handle(1, 1, arguments)
    with only_quickly(handle):
        for arguments in reversed(turns):
            handle(1, 1, arguments)
    first, second = gpu.launches[: len(turns)], gpu.launches[len(turns) :]
    assert first == second[::-1]
    assert [launch["device"] for launch in first] == [0, 0, 1, 1] * 2 + [0]


class TensorGuards:
    """Answers as torch's guards do."""

    def __init__(self, *tensors, dynamic_dims_sizes, dynamic_dims_strides):
        self.expected = [*map(self.facts, tensors)]
        assert [(list(t.shape), list(t.stride())) for t in tensors] == [
            *zip(dynamic_dims_sizes, dynamic_dims_strides, strict=True)
        ]

    def facts(self, tensor):
        return tensor.dtype, tensor.ordinal, tensor.shape, tensor.stride()

    def check(self, *tensors):
        return [*map(self.facts, tensors)] == self.expected


def test_tensors_are_asked_at_once_where_torch_can(gpu, torch, monkeypatch):
    monkeypatch.setattr(
        sys.modules["torch"]._C,
        "_dynamo",
        SimpleNamespace(guards=SimpleNamespace(TensorGuards=TensorGuards)),
        raising=False,
    )
    handle, x = kernel(), Tensor()
    handle(1, 1, (x, 8, Tensor(), 2.0))
    with only_quickly(handle), monkeypatch.context() as patch:
        patch.setattr(Tensor, "get_device", None)
        handle(1, 1, (x, 8, Tensor(), 2.0))
    with only_quickly(handle):
        handle(1, 1, (Tensor(size=9), 8, Tensor(), 2.0))
    for make, message in BAD.values():
        with pytest.raises(LaunchError) as refused:
            handle(1, 1, make(x, Tensor()))
        assert refused.value.message == message
    assert len(gpu.launches) == 3


def test_ints_for_float_parameters_are_exact_on_the_quick_way_too(gpu):
    handle, x, y = kernel(), Tensor(), Tensor()
    handle(1, 1, (x, 8, y, 2))
    with only_quickly(handle):
        handle(1, 1, (x, 8, y, 1 << 24))
    with pytest.raises(LaunchError, match="`a` expects f32, which cannot represent 16777217 exactly"):
        handle(1, 1, (x, 8, y, (1 << 24) + 1))
    handle(1, 1, (x, 8, y, 1 << 25))
    assert [launch["parameters"][3] for launch in gpu.launches] == [struct.pack("<f", n) for n in (2, 1 << 24, 1 << 25)]


def test_an_array_that_is_given_twice_is_launched_quickly(gpu):
    handle, x = kernel(), Tensor()
    handle(1, 1, (x, 8, x, 2.0))
    with only_quickly(handle):
        handle(1, 1, (x, 8, x, 2.0))
        handle(1, 1, (x, 8, Tensor(), 2.0))
    assert len(gpu.launches) == 3


def test_strided_arrays_are_launched_quickly_with_the_same_checks(gpu):
    handle, x = kernel(), Tensor(contiguous=False)
    behind = [Tensor(address=x.address + distance, contiguous=False) for distance in (60, 64, 68)]
    handle(1, 1, (strided(x), 8, strided(behind[1]), 2.0))
    with only_quickly(handle):
        handle(1, 1, (strided(x), 8, strided(behind[1]), 2.0))
        handle(1, 1, (strided(x), 8, strided(behind[0]), 2.0))
    handle(1, 1, (strided(x), 8, strided(Tensor(address=x.address + 4, contiguous=False)), 2.0))  # interleaved
    with pytest.raises(LaunchError) as refused:
        handle(1, 1, (strided(x), 8, strided(Tensor(address=x.address + 56, contiguous=False)), 2.0))
    assert refused.value.message == SHARES
    with pytest.raises(LaunchError, match="has shape"):
        handle(1, 1, (strided(x), 8, behind[1], 2.0))
    assert len(gpu.launches) == 4


def test_how_far_the_elements_of_an_array_reach():
    assert reach((3, 4), (4, 1), 2, 2) == (0, 24)
    assert reach((3, 4), (-16, 4), 1, 4) == (-32, 16)
    assert reach((3, 0), (1, 1), 4, 4) == (0, 0)
    with pytest.raises(ValueError):
        reach((3,), (6,), 1, 4)


def test_an_address_that_is_not_aligned_is_refused_also_after_a_good_launch(gpu):
    handle = kernel()
    both_ways(handle, 1, 1, (1 << 20, 8, 1 << 21, 2.0))
    with pytest.raises(
        LaunchError, match="the number 2097154 is not a valid address of f32, which must be a multiple of 4"
    ):
        handle(1, 1, (1 << 20, 8, (1 << 21) + 2, 2.0))


def test_a_tensor_without_memory_is_refused_also_after_a_good_launch(gpu):
    handle, x, y = kernel(), Tensor(), Tensor()
    handle(1, 1, (x, 8, y, 2.0))

    def no_pointer():
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    y.data_ptr = no_pointer
    with pytest.raises(LaunchError) as refused:
        handle(1, 1, (x, 8, y, 2.0))
    assert refused.value.message == (
        "`y` cannot be used: it has no memory (Cannot access data pointer of Tensor that doesn't have storage)"
    )


def test_strided_arrays_and_null_pointers_launch(gpu):
    view = Tensor(contiguous=False)
    kernel()(1, 1, (strided(view), 8, None, 2.0))
    assert gpu.launches[0]["parameters"] == words(view.address, 8, 0, 2.0)


def test_structs_and_bf16_are_converted_at_every_launch(gpu):
    gpu.widths = (12, 2, 8)
    handle = kernel([("s", Bytes(12, 4)), ("b", types.bf16), ("x", u64)], written=())
    tensor = Tensor()
    for n in range(2):
        handle(1, 1, (bytes(range(12)), n, tensor))
    assert [launch["parameters"] for launch in gpu.launches] == [
        [bytes(range(12)), b"\x00\x00", struct.pack("<Q", tensor.address)],
        [bytes(range(12)), b"\x80\x3f", struct.pack("<Q", tensor.address)],
    ]


def test_a_kernel_without_parameters(gpu):
    gpu.widths = ()
    handle = kernel([], written=())
    handle(3, 1, ())
    handle(3, 1, ())
    assert [launch["grid"] for launch in gpu.launches] == [(3, 1, 1)] * 2


def test_threads_do_not_share_the_memory_of_parameters(gpu):
    gpu.widths = (4,)
    handle = kernel([("n", s32)], written=())
    handle(1, 1, (0,))
    barrier = threading.Barrier(2)
    seen = []

    def run(launch):
        # Both threads are inside the driver now, each with its own number.
        barrier.wait(timeout=10)
        seen.append(launch["parameters"][0])

    gpu.run = run
    gpu.contexts = [driver.primary_context(0)]
    threads = [threading.Thread(target=handle, args=(1, 1, (n,))) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [struct.pack("<i", n) for n in (1, 2)]


def test_a_failing_launch_says_which_kernel_and_where(gpu):
    gpu.failing["cuLaunchKernelEx"] = CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
    with pytest.raises(LaunchError) as failed:
        kernel()(1000, 1024, (Tensor(), 8, Tensor(), 2.0), cooperative=True)
    assert failed.value.message == (
        "launching k on cuda:0 (Fake 0, sm_90a): CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: explanation of 720"
    )
    assert (
        failed.value.help == "all blocks of a cooperative grid must be resident at the same time: launch fewer blocks"
    )


def test_a_cubin_that_does_not_load_says_so(gpu):
    gpu.failing["cuModuleLoadData"] = CUresult.CUDA_ERROR_INVALID_IMAGE
    with pytest.raises(LaunchError) as failed:
        kernel()(1, 1, (Tensor(), 8, Tensor(), 2.0))
    assert failed.value.message == (
        "loading k on cuda:0 (Fake 0, sm_90a): CUDA_ERROR_INVALID_IMAGE: explanation of 200"
    )


def test_occupancy(gpu):
    assert kernel().occupancy((16, 16), shared_bytes=100_000) == 8
    assert gpu.function_attributes == [("MAX_DYNAMIC_SHARED_SIZE_BYTES", 100_000)]


def test_a_handle_can_be_pickled_and_launched_again(gpu):
    handle = kernel()
    handle(1, 1, (Tensor(), 8, Tensor(), 2.0))
    copy = pickle.loads(pickle.dumps(handle))
    assert (copy.cubin, copy.signature.parameters) == (handle.cubin, tuple(PARAMETERS))
    both_ways(copy, 1, 1, (Tensor(), 8, Tensor(), 2.0))
    assert len(gpu.launches) == 3


def doubling(gpu):
    """A kernel that writes 2·x to y, for x and y of 3 elements in memory of the stand-in."""

    def run(launch):
        x, y = (int.from_bytes(launch["parameters"][n], "little") for n in (0, 2))
        values = (ctypes.c_float * 3).from_address(x)
        result = (ctypes.c_float * 3).from_address(y)
        result[:] = [2 * value for value in values]

    gpu.run = run
    return kernel()


def test_numpy_arrays_are_copied_to_the_gpu_and_what_is_written_back(gpu):
    x, y = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
    doubling(gpu).launch_on_copies(1, 3, (x, 3, y, 0.0))
    assert y.tolist() == [2, 4, 6]
    assert x.tolist() == [1, 2, 3]
    assert gpu.memory == {} and gpu.contexts == []


def test_only_the_elements_of_a_strided_output_are_written_back(gpu):
    x, y = np.array([1, 2, 3], np.float32), np.zeros((3, 4), np.float32)

    def run(launch):
        address = int.from_bytes(launch["parameters"][2], "little")
        written = (ctypes.c_float * 9).from_address(address)
        written[:] = range(1, 10)

    gpu.run = run
    kernel().launch_on_copies(1, 3, (x, 3, strided(y[:, 1]), 0.0))
    assert y.tolist() == [[0, 1, 0, 0], [0, 5, 0, 0], [0, 9, 0, 0]]


def test_an_output_that_runs_backwards_is_written_back_in_its_order(gpu):
    y = np.zeros(3, np.float32)

    def run(launch):
        address = int.from_bytes(launch["parameters"][2], "little")
        (ctypes.c_float * 3).from_address(address - 8)[:] = [7, 8, 9]

    gpu.run = run
    kernel().launch_on_copies(1, 3, (None, 3, strided(y[::-1]), 0.0))
    assert y.tolist() == [7, 8, 9]
    assert gpu.memory == {}


def test_a_kernel_that_fails_leaves_numpy_arrays_as_they_were(gpu):
    x, y = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
    gpu.failing["cuCtxSynchronize"] = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(LaunchError) as failed:
        doubling(gpu).launch_on_copies(1, 3, (x, 3, y, 0.0))
    assert failed.value.message == "running k: CUDA_ERROR_ILLEGAL_ADDRESS: explanation of 700"
    assert y.tolist() == [0, 0, 0]
    assert gpu.memory == {} and gpu.contexts == []


def test_without_the_written_arrays_nothing_could_come_back(gpu):
    with pytest.raises(LaunchError) as refused:
        kernel(written=None).launch_on_copies(1, 3, (np.zeros(3, np.float32), 3, np.zeros(3, np.float32), 0.0))
    assert refused.value.message == "cannot copy back the results of k: the arrays that it writes are unknown"
    assert refused.value.help == "name them when loading the kernel: load(cubin, name, parameters, written={'y'})"


def test_a_kernel_that_writes_no_array_is_launched_on_copies(gpu):
    x, y = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
    kernel(written=()).launch_on_copies(1, 3, (x, 3, y, 0.0))
    assert len(gpu.launches) == 1
    assert y.tolist() == [0, 0, 0]
