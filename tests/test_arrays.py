"""What a kernel sees of an array, for each kind of array: the same facts, without a copy."""

import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import types
from ptxdsl.arrays import HOST, describe, library_of


class OnlyDlpack:
    """An array of which only the DLPack protocol is known; `versions` are the arguments that its producer takes."""

    def __init__(self, array, takes_versions=True, device=(1, 0)):
        self.array, self.takes_versions, self.device, self.streams = array, takes_versions, device, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, **version):
        if version and not self.takes_versions:
            raise TypeError("unexpected keyword argument")
        self.streams.append(stream)
        return self.array.__dlpack__(stream=None, **version)


class OnlyInterface:
    """An array of which only the CUDA array interface is known."""

    def __init__(self, **facts):
        self.__cuda_array_interface__ = {"version": 3, "shape": (2, 3), "typestr": "<f4", "data": (4096, False)} | facts


@pytest.mark.parametrize(
    "dtype, expected",
    [
        (np.float16, types.f16),
        (np.float32, types.f32),
        (np.float64, types.f64),
        (np.int8, types.s8),
        (np.uint64, types.u64),
        (np.bool_, types.u8),
        (ml_dtypes.bfloat16, types.bf16),
        (ml_dtypes.float8_e4m3fn, types.e4m3),
        (ml_dtypes.float8_e5m2, types.e5m2),
        (np.complex64, None),
        (np.dtype([("a", "<f4")]), None),
        (np.dtype(">f4"), None),
    ],
    ids=str,
)
def test_the_type_of_numpy_elements(dtype, expected):
    array = describe(np.zeros(3, dtype))
    assert array.type is expected
    assert array.itemsize == np.dtype(dtype).itemsize


BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
VIEWS = {
    "whole": BASE,
    "transposed": BASE.T,
    "every other column": BASE[:, ::2],
    "rows backwards": BASE[::-1],
    "all backwards": BASE[::-1, ::-1],
    "one row": BASE[1:2],
    "one column": BASE[:, 1:2],
    "no rows": BASE[:0],
    "scalar": BASE[0, 0, ...],
    "repeated": np.broadcast_to(BASE[0], (3, 6)),
}
every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())


@every_view
def test_numpy_views_are_described_as_numpy_sees_them(view):
    array = describe(view)
    assert (array.device, array.library, array.shape) == (HOST, "numpy", view.shape)
    assert array.strides == tuple(stride // 4 for stride in view.strides)
    assert array.contiguous == view.flags.c_contiguous
    assert array.readonly == (not view.flags.writeable)
    assert array.span == (np.lib.array_utils.byte_bounds(view) if view.size else (array.pointer, array.pointer))


@every_view
def test_the_bytes_of_an_array_are_its_elements_in_place(view):
    array = describe(view)
    assert np.array_equal(array.view().view(np.float32), view)
    if not array.readonly and view.size:
        array.view()[...] = array.view()
        assert np.shares_memory(array.view(), view)


@every_view
@pytest.mark.parametrize("takes_versions", [False, True])
def test_dlpack_gives_the_same_facts_as_numpy(view, takes_versions):
    if not takes_versions and not view.flags.writeable:
        with pytest.raises(BufferError):  # only DLPack 1.0 can say that an array is read-only
            describe(OnlyDlpack(view, takes_versions))
        return
    ours, numpys = describe(OnlyDlpack(view, takes_versions)), describe(view)
    if view.size:
        assert (ours.pointer, ours.contiguous) == (numpys.pointer, numpys.contiguous)
        assert np.array_equal(ours.view(), numpys.view())
    assert (ours.shape, ours.type, ours.device, ours.readonly) == (view.shape, types.f32, HOST, numpys.readonly)


@pytest.mark.parametrize("stream, told", [(0, 1), (1234, 1234)])
def test_a_dlpack_producer_on_a_gpu_is_told_the_stream(stream, told):
    producer = OnlyDlpack(BASE, device=(2, 3))
    assert describe(producer, stream).device == 3
    assert producer.streams == [told]


def test_a_dlpack_producer_on_the_host_is_told_no_stream():
    producer = OnlyDlpack(BASE)
    describe(producer, 1234)
    assert producer.streams == [None]


def test_jax_arrays_are_read_only_also_where_dlpack_cannot_say_so():
    class ArrayImpl(OnlyDlpack):
        __module__ = "jaxlib._jax"

    array = describe(ArrayImpl(BASE, takes_versions=False))
    assert (array.library, array.readonly) == ("jax", True)


def test_a_device_that_is_no_gpu_is_refused():
    with pytest.raises(BufferError, match="it is on a device of DLPack type 8"):
        describe(OnlyDlpack(BASE, device=(8, 0)))


def test_the_cuda_array_interface_names_no_gpu():
    array = describe(OnlyInterface())
    assert (array.pointer, array.shape, array.strides, array.type) == (4096, (2, 3), (3, 1), types.f32)
    assert (array.device, array.readonly, array.stream) == (None, False, None)


def test_the_cuda_array_interface_has_strides_in_bytes_a_stream_and_a_read_only_flag():
    array = describe(OnlyInterface(strides=(4, 8), stream=7, data=(4096, True)))
    assert (array.strides, array.contiguous, array.readonly, array.stream) == ((1, 2), False, True, 7)


@pytest.mark.parametrize(
    "facts, reason",
    [
        ({"mask": object()}, "it has a mask"),
        ({"strides": (12, 3)}, r"its strides of \(12, 3\) bytes are not multiples of its 4-byte elements"),
    ],
)
def test_what_a_kernel_cannot_address_is_refused(facts, reason):
    with pytest.raises(BufferError, match=reason):
        describe(OnlyInterface(**facts))


def test_fields_of_a_struct_array_are_refused():
    points = np.zeros(4, [("x", "<f4"), ("flag", "u1")])
    with pytest.raises(BufferError, match="its strides of \\(5,\\) bytes are not multiples of its 4-byte elements"):
        describe(points["x"])


@pytest.mark.parametrize("value", [None, 3, 2.5, "text", [1, 2], np.float32(1)])
def test_what_is_no_array_is_none(value):
    assert describe(value) is None


def torch_tensor(kind, **facts):
    """An object that answers as a torch tensor does; its class is found by module and name."""
    answers = {
        "dtype": "torch.bfloat16", "shape": (4, 2), "itemsize": 2, "device": SimpleNamespace(type=kind),
        "data_ptr": lambda: 4096, "get_device": lambda: 1, "stride": lambda: (1, 4),
    }  # fmt: skip
    tensor = type("Tensor", (), {"__module__": "torch"})
    parameter = type("Parameter", (tensor,), {"__module__": "torch.nn.parameter"})
    made = parameter()
    vars(made).update(answers | facts)
    return made


@pytest.fixture
def no_torch(monkeypatch):
    """As where torch is not loaded: it would be asked about objects that only answer like its tensors."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)


@pytest.mark.usefixtures("no_torch")
def test_a_torch_tensor_is_asked_itself():
    array = describe(torch_tensor("cuda"))
    assert (array.pointer, array.shape, array.strides) == (4096, (4, 2), (1, 4))
    assert (array.type, array.device, array.library) == (types.bf16, 1, "torch")
    assert describe(torch_tensor("cpu")).device == HOST


@pytest.mark.usefixtures("no_torch")
def test_a_tensor_without_memory_is_refused():
    with pytest.raises(BufferError, match="it is on the device `meta`"):
        describe(torch_tensor("meta"))

    def no_pointer():
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage\nmore")

    with pytest.raises(
        BufferError, match=r"has no memory .Cannot access data pointer of Tensor that doesn't have storage.$"
    ):
        describe(torch_tensor("cuda", data_ptr=no_pointer))


def test_the_current_stream_is_asked_for_each_time(monkeypatch):
    streams = iter([11, 22])
    raw = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: (device, next(streams)))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=raw))
    current = library_of(type(torch_tensor("cuda"))).current_stream(1)
    assert [current(), current()] == [(1, 11), (1, 22)]


def test_who_asks_for_the_stream_while_torch_records_is_told(monkeypatch):
    modes = []
    inside = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 7, _len_torch_dispatch_stack=lambda: len(modes))
    recorder = SimpleNamespace(get_proxy_mode=lambda: "record" in modes)
    torch = SimpleNamespace(_C=inside, jit=SimpleNamespace(is_tracing=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.fx.experimental.proxy_tensor", recorder)
    current = library_of(type(torch_tensor("cuda"))).current_stream(1)
    assert current() == 7
    modes.append("count operations")
    assert current() == 7
    modes.append("record")
    with pytest.raises(TypeError, match=r"^torch records what is done$"):
        current()
