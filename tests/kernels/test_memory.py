"""The memory of calls: how much it remembers, and what decides whether a launch is made again."""

import ctypes
import sys
from collections import OrderedDict
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from ptxdsl import config
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import PublicCall
from ptxdsl.kernels.call.groups import lists as lists_module
from ptxdsl.kernels.call.groups.table import ADDRESSES, ROW
from ptxdsl.kernels.call.launching import upload, workspace
from ptxdsl.kernels.call.launching.memory import CALLS, MOST_LAUNCHES, LaunchCache
from ptxdsl.kernels.candidates.sm80 import SMALL
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d, conv2d_kernel
from ptxdsl.kernels.gemm import gemm, gemm_kernel, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import (
    grouped_gemm,
    grouped_gemm_masked,
    grouped_gemm_ragged,
    grouped_kernel,
    warpgroup_grouped_kernel,
)
from ptxdsl.kernels.ragged import ragged_kernel, warpgroup_ragged_kernel
from tests.fake_driver import FakeCuda, installed
from tests.kernels import tensors
from tests.kernels.tensors import OfInterface, Tensor

KERNELS = (
    gemm_kernel, warpgroup_gemm_kernel, grouped_kernel, warpgroup_grouped_kernel, ragged_kernel,
    warpgroup_ragged_kernel, conv2d_kernel,
)  # fmt: skip


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", tensors.torch())
    CALLS.clear()
    for kernel in KERNELS:
        monkeypatch.setattr(kernel, "handles", {})
        monkeypatch.setattr(kernel, "_variants", {})
        monkeypatch.setattr(kernel, "_asked", {})
    monkeypatch.setattr(workspace, "_KEPT", {})  # the memory of one stand-in is none of the next one's
    monkeypatch.setattr(workspace, "_PASSING", OrderedDict())
    with installed(FakeCuda(gpus=2)) as fake:
        yield fake
    CALLS.clear()


def launch(result):
    """A remembered launch that returns this."""
    return SimpleNamespace(launch=lambda *arguments: result)


class TestCalls:
    def test_the_oldest_calls_are_forgotten_and_may_be_kept_again(self):
        calls = LaunchCache(most=3)
        for number in range(6):
            calls.keep(number, launch(f"out {number}"))
        assert [n for n in range(6) if calls.launch(n, [], ())] == [3, 4, 5]
        calls.keep(4, launch("again"))
        calls.keep(0, launch("out 0"))
        assert [calls.launch(n, [], ()) for n in (0, 3, 4, 5)] == ["out 0", None, "again", "out 5"]

    def test_a_call_has_several_launches_of_which_the_last_ones_are_kept(self):
        calls = LaunchCache()
        for number in range(2 * MOST_LAUNCHES):
            calls.keep("key", launch(number or None))
        assert calls.launch("key", [], ()) == 2 * MOST_LAUNCHES - 1
        assert len(calls) == MOST_LAUNCHES

    def test_the_next_launch_is_tried_where_one_does_not_fit(self):
        calls = LaunchCache()
        for result in ("out", None):
            calls.keep("key", launch(result))
        assert calls.launch("key", [], ()) == "out"

    def test_options_that_are_not_hashable_are_not_remembered(self):
        calls = LaunchCache()
        calls.keep(("kernel", []), launch("out"))
        assert calls.launch(("kernel", []), [], ()) is None
        assert len(calls) == 0

    def test_a_launch_that_fails_is_left_to_the_check_of_the_arguments(self):
        def fail(arrays, numbers):
            raise LaunchError("`alpha` does not fit")

        calls = LaunchCache()
        calls.keep("key", SimpleNamespace(launch=fail))
        assert calls.launch("key", [], ()) is None


def int32(*shape):
    return Tensor(*shape, dtype="torch.int32")


def lists(count=3):
    return [[Tensor(64, 32) for _ in range(count)], [Tensor(32, 96) for _ in range(count)]]


def large_lists():
    """That go by wgmma."""
    return [[Tensor(512, 1024) for _ in range(16)], [Tensor(1024, 512) for _ in range(16)]]


BY_WGMMA = GemmConfig(tile=(64, 64, 64), stages=2, atom="wgmma")
# What each public function is given; `out` is made where it is left out
CASES = {
    "gemm": lambda: (gemm, [Tensor(64, 32), Tensor(32, 96)], Tensor(64, 96)),
    "batched": lambda: (gemm, [Tensor(4, 64, 32), Tensor(4, 32, 96)], Tensor(4, 64, 96)),
    "lists": lambda: (gemm, lists(), [Tensor(64, 96) for _ in range(3)]),
    "large lists": lambda: (gemm, large_lists(), [Tensor(512, 512) for _ in range(16)]),
    "grouped": lambda: (grouped_gemm, lists(), [Tensor(64, 96) for _ in range(3)]),
    "ragged": lambda: (grouped_gemm_ragged, [Tensor(90, 32), Tensor(3, 32, 96), int32(3)], Tensor(90, 96)),
    "masked": lambda: (grouped_gemm_masked, [Tensor(3, 64, 32), Tensor(3, 32, 96), int32(3)], Tensor(3, 64, 96)),
    "conv": lambda: (conv2d, [Tensor(2, 8, 8, 36), Tensor(64, 3, 3, 36)], Tensor(2, 6, 6, 64)),
}
every_function = pytest.mark.parametrize("case", CASES)


def test_large_lists_go_by_wgmma(gpu):
    gemm(*large_lists())
    assert warpgroup_grouped_kernel._variants and not gemm_kernel._variants


def made_careful(monkeypatch, *modules):
    def refused(*arguments):
        raise AssertionError("the careful way was taken")

    monkeypatch.setattr(PublicCall, "launch", refused)


@every_function
@pytest.mark.parametrize("has_out", [True, False])
def test_the_second_call_is_not_worked_out_again(gpu, monkeypatch, case, has_out):
    function, inputs, out = CASES[case]()
    options = {"out": out} if has_out else {}
    function(*inputs, **options)
    made_careful(monkeypatch)
    _, others, other_out = CASES[case]()
    result = function(*others, **({"out": other_out} if has_out else {}))
    assert len(gpu.launches) == 2
    first, second = ({k: v for k, v in launch.items() if k != "parameters"} for launch in gpu.launches)
    assert first == second
    shape = [x.shape for x in out] if isinstance(out, list) else out.shape
    assert ([x.shape for x in result] if isinstance(out, list) else result.shape) == shape


@every_function
def test_PTXDSL_DEVICE_holds_for_the_second_call_too(gpu, monkeypatch, case):
    function, inputs, out = CASES[case]()
    function(*inputs, out=out)
    monkeypatch.setenv("PTXDSL_DEVICE", "emulator")
    with pytest.raises(LaunchError, match="the emulator"):
        function(*inputs, out=out)
    assert len(gpu.launches) == 1
    monkeypatch.delenv("PTXDSL_DEVICE")
    with config.using(device="emulator"), pytest.raises(LaunchError, match="the emulator"):
        function(*inputs, out=out)
    function(*inputs, out=out)
    assert len(gpu.launches) == 2


@every_function
def test_PTXDSL_ARCH_decides_for_which_target_the_kernel_is_made(gpu, monkeypatch, case):
    function, inputs, out = CASES[case]()
    function(*inputs, out=out)
    monkeypatch.setenv("PTXDSL_ARCH", "sm_80")
    function(*inputs, out=out)
    archs = {key[0] for kernel in KERNELS for key in kernel._variants}
    assert archs == {"sm_90a", "sm_80"}


def test_lists_on_a_gpu_are_refused_where_the_emulator_is_asked_for(gpu, monkeypatch):
    monkeypatch.setenv("PTXDSL_DEVICE", "emulator")
    with pytest.raises(LaunchError) as refused:
        grouped_gemm(*lists())
    assert refused.value.message == "the matrices are on cuda:0, and PTXDSL_DEVICE asks for the emulator"
    assert refused.value.help == "pass numpy arrays, or leave PTXDSL_DEVICE unset: kernels run where their arrays are"


class TestArraysThatDoNotNameTheirGpu:
    @pytest.mark.parametrize("device", [0, 1])
    def test_the_first_launch_is_where_they_are(self, gpu, device):
        a, b, out = (OfInterface(*shape, device=device) for shape in ((64, 32), (32, 96), (64, 96)))
        gemm(a, b, out=out)
        assert [launch["device"] for launch in gpu.launches] == [device]

    @pytest.mark.parametrize("device", [0, 1])
    def test_so_it_is_of_lists(self, gpu, device):
        a, b, out = ([OfInterface(*shape, device=device)] for shape in ((64, 32), (32, 96), (64, 96)))
        grouped_gemm(a, b, out=out)
        assert [launch["device"] for launch in gpu.launches] == [device]

    def test_one_that_is_elsewhere_is_refused(self, gpu):
        a, b, out = (OfInterface(*shape, device=n) for n, shape in enumerate(((64, 32), (32, 96), (64, 96))))
        with pytest.raises(LaunchError) as refused:
            gemm(a, b, out=out)
        assert refused.value.message == "`b` is on cuda:1; other arrays are on cuda:0"
        assert refused.value.help == "move it to that GPU"

    def test_a_matrix_of_a_list_that_is_elsewhere_is_refused(self, gpu):
        a = [OfInterface(64, 32, device=n) for n in (0, 1)]
        b, out = ([OfInterface(*shape) for _ in range(2)] for shape in ((32, 96), (64, 96)))
        with pytest.raises(LaunchError) as refused:
            grouped_gemm(a, b, out=out)
        assert refused.value.message == "`a[1]` is on cuda:1; others are on cuda:0"
        assert not gpu.launches


@pytest.mark.parametrize("function", ["conv", "gemm", "grouped", "ragged"])
def test_a_configuration_that_is_not_hashable_is_refused_by_name(gpu, function):
    call, inputs, out = CASES[function]()
    with pytest.raises(LaunchError) as refused:
        call(*inputs, out=out, config={"tile": (64, 64, 32)})
    assert refused.value.message == "`config` is {'tile': (64, 64, 32)}"
    assert refused.value.help == "pass a GemmConfig, such as GemmConfig(tile=(64, 64, 32))"


def test_a_schedule_that_is_not_hashable_is_refused_by_conv2d(gpu):
    _, inputs, out = CASES["conv"]()
    with pytest.raises(LaunchError, match=r"schedule is \['rows'\]; it takes one schedule, a value of ptxdsl.schedule"):
        conv2d(*inputs, out=out, config=SMALL, schedule=["rows"])


def test_c_in_the_place_of_out_is_remembered_in_lists(gpu, monkeypatch):
    a, b = lists()
    out = [Tensor(64, 96) for _ in range(3)]
    grouped_gemm(a, b, out, out=out, beta=1.0)
    made_careful(monkeypatch)
    grouped_gemm(a, b, out, out=out, beta=1.0)
    assert len(gpu.launches) == 2


@pytest.mark.parametrize(
    "function", [gemm, partial(gemm, config=BY_WGMMA), grouped_gemm], ids=["gemm", "wgmma", "grouped"]
)
def test_lists_of_the_same_arguments_are_not_even_gathered(gpu, monkeypatch, function):
    def outs(count=3):
        return [Tensor(64, 96) for _ in range(count)]

    function(*lists(), outs(), beta=1.0)
    function(*lists(), outs(), out=outs())
    gathered, gather = [], lists_module.keep_lists
    monkeypatch.setattr(lists_module, "keep_lists", lambda *all: gathered.append(1) or gather(*all))
    assert len(function(*lists(), outs(), beta=2.0)) == 3
    assert len(function(*lists(), tuple(outs()), out=outs(), alpha=2.0)) == 3
    assert (len(gpu.launches), gathered) == (4, [])
    function(*lists(), outs(), out=outs(), beta=1.0)  # reads c
    function(*lists(), out=outs())  # there is no c
    assert (len(gpu.launches), gathered) == (6, [1, 1])
    with pytest.raises(LaunchError):
        function(*lists(), outs(), out=outs(2))
    with pytest.raises(LaunchError):
        function(*lists(), outs()[0], beta="1")
    assert len(gpu.launches) == 6


def test_one_matrix_for_all_is_remembered_in_lists(gpu, monkeypatch):
    (a, listed), b = lists(), Tensor(32, 96)
    gemm(a, b, out=[Tensor(64, 96) for _ in range(3)])
    with monkeypatch.context() as patch:
        made_careful(patch)
        gemm(a, b, out=[Tensor(64, 96) for _ in range(3)])
        with pytest.raises(AssertionError, match="careful"):
            gemm(a, listed, out=[Tensor(64, 96) for _ in range(3)])
    assert len(gpu.launches) == 2


@pytest.mark.parametrize("strides", [(96, 1), (1, 64)], ids=["row", "column"])
@pytest.mark.parametrize("config", [None, BY_WGMMA], ids=["warps", "wgmma"])
def test_other_lists_take_the_places_of_those_before(gpu, monkeypatch, config, strides):
    """Of column-major outputs the kernel computes the transposes, from B and A."""
    tables = []

    def uploaded(device, stream, table):
        if config is None:
            tables.append(table.content.view(np.int64).reshape(4, -1).tolist())
        else:  # a row of each product, of which these columns are addresses
            rows = table.content[: 3 * ROW * 8].view(np.int64).reshape(3, ROW)
            tables.append(rows[:, ADDRESSES].T.tolist())
        return upload.upload(device, stream, table)

    monkeypatch.setattr("ptxdsl.kernels.call.groups.lists.upload", uploaded)
    for _ in range(3):
        (a, b), out = lists(), [Tensor(64, 96, strides=strides) for _ in range(3)]
        gemm(a, b, out=out, config=config)
        left, right, written = ([each.address for each in arrays] for arrays in (a, b, out))
        assert tables.pop() == [*([left, right] if strides[1] == 1 else [right, left]), written, written]
        made_careful(monkeypatch)


def test_a_table_that_a_graph_reads_is_its_own_and_freed_with_it(gpu):
    gpu.graph = []
    table = np.arange(1000, dtype=np.int64)
    address = upload.upload(0, 7, upload.HostTable.of(table[:400], table[400:]))
    ((source, free),) = gpu.graph
    kept = table.copy()
    table[:] = 0
    assert ctypes.string_at(source, kept.nbytes) == ctypes.string_at(address, kept.nbytes) == kept.tobytes()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(free)(source)  # as a thread of the driver does
    gpu.graph = None
    upload.upload(0, 7, upload.HostTable.of(table))
    assert ctypes.string_at(address, table.nbytes) == table.tobytes()


def test_a_table_that_is_on_the_gpu_is_not_copied_again_unless_a_graph_may_have_written_there(gpu, monkeypatch):
    copies, copy = [], gpu.cuMemcpyHtoDAsync
    monkeypatch.setattr(gpu, "cuMemcpyHtoDAsync", lambda *arguments: (copies.append(arguments[0]), copy(*arguments))[1])
    one, other = (upload.HostTable.of(np.arange(100) + n) for n in range(2))

    def copied(table, stream=7):
        copies.clear()
        address = upload.upload(0, stream, table)
        assert ctypes.string_at(address, table.bytes) == table.content.tobytes()
        return len(copies)

    assert [copied(table) for table in (one, one, other, one, one)] == [1, 0, 1, 1, 0]
    assert [copied(one, stream) for stream in (8, 7, 8)] == [1, 0, 0]
    large = upload.HostTable.of(np.zeros(1 << 16))
    assert [copied(table) for table in (large, one, one)] == [1, 1, 0]
    gpu.failing["cuMemcpyHtoD"] = gpu.CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(LaunchError):
        copied(other)
    gpu.failing.clear()
    assert [copied(one), copied(other)] == [1, 1]
    gpu.graph = []
    assert [copied(one, 8) for _ in range(2)] == [1, 1]
    gpu.graph = None
    assert [copied(table, 8) for table in (one, one, other, other)] == [1] * 4


def test_a_table_in_which_blocks_are_counted_is_copied_for_each_launch(gpu, monkeypatch):
    copies, copy = [], gpu.cuMemcpyHtoDAsync
    monkeypatch.setattr(gpu, "cuMemcpyHtoDAsync", lambda *arguments: (copies.append(arguments[0]), copy(*arguments))[1])
    monkeypatch.setenv("PTXDSL_ARCH", "sm_80")
    (a, b), out = lists(), [Tensor(64, 96) for _ in range(3)]
    for sort, count in ((True, 3), (False, 1)):
        copies.clear()
        for _ in range(3):
            grouped_gemm(a, b, out=out, sort=sort)
        assert len(copies) == count


def test_of_many_streams_the_first_ones_keep_their_workspaces_and_the_others_the_last_ones(gpu, monkeypatch):
    monkeypatch.setattr(workspace, "MOST_STREAMS", 2)
    first = [workspace.memory(0, stream, "sums", 100) for stream in range(4)]
    assert [workspace.is_kept(0, stream) for stream in range(4)] == [True, True, False, False]
    workspace.memory(0, 2, "sums", 100)  # now the third one is the last that was asked for
    workspace.memory(0, 4, "sums", 100)
    assert len(gpu.memory) == 4 and [workspace.memory(0, stream, "sums", 100) for stream in range(3)] == first[:3]
    gpu.graph = []
    assert workspace.memory(0, 2, "sums", 100) == first[2] and workspace.is_kept(0, 2)
    gpu.graph = None
    for stream in range(5, 9):
        workspace.memory(0, stream, "sums", 100)
    assert len(gpu.memory) == 5 and workspace.memory(0, 2, "sums", 100) == first[2]


def test_a_workspace_is_cleared_by_its_stream_and_while_that_is_captured_by_another(gpu, monkeypatch):
    work = []
    for name in ("cuMemsetD8Async", "cuStreamSynchronize", "cuStreamDestroy"):
        done = partial(lambda name, *arguments: work.append((name, arguments[-1])) or gpu.result(name), name)
        monkeypatch.setattr(gpu, name, done)
    workspace.memory(0, 7, "sums", 100)
    assert work == [("cuMemsetD8Async", 7)]
    gpu.graph = []
    workspace.memory(0, 7, "semaphores", 100)
    assert work[1:] == [("cuMemsetD8Async", 5), ("cuStreamSynchronize", 5), ("cuStreamDestroy", 5)]


def test_arrays_of_host_memory_take_the_path_of_the_gpu_that_they_go_to(gpu):
    a, b = np.ones((1000, 504), np.float16), np.ones((504, 999), np.float16)
    with config.using(device="cuda"):
        gemm(a, b, out=np.empty((1000, 999), np.float16))
    assert {variant.arch for variant in warpgroup_gemm_kernel._variants.values()} == {"sm_90a"}
    assert gpu.launches
