"""What XLA hands over for a call on a GPU: a frame of buffers, launched on a driver that only records."""

import ctypes
from ctypes import byref, c_int64, cast, pointer, sizeof

import pytest

jax = pytest.importorskip("jax")

import ptxdsl as pd  # noqa: E402
from ptxdsl import f32, ptr, u32  # noqa: E402
from ptxdsl.jax import ffi  # noqa: E402
from ptxdsl.kernels.gemm import gemm  # noqa: E402
from tests.fake_driver import FakeCuda, installed  # noqa: E402

STREAM = 77
told = []


@ffi._MakeError
def make_error(arguments):
    told.append(arguments.contents.message.decode())
    return 1


@ffi._GetStream
def get_stream(arguments):
    arguments.contents.stream = STREAM


@ffi._GetDevice
def get_device(arguments):
    arguments.contents.ordinal = 1


class Frame:
    """A frame as XLA's, for a call with a number, of inputs and outputs at addresses."""

    def __init__(self, number, inputs, outputs):
        self.kept = []
        api = self.keep(ffi._Api(struct_size=sizeof(ffi._Api), make_error=make_error))
        api.get_stream, api.get_device = get_stream, get_device
        scalar = self.keep(ffi._Scalar(value=pointer(self.keep(c_int64(number)))))
        values = self.keep((ctypes.POINTER(ffi._Scalar) * 1)(pointer(scalar)))
        self.frame = ffi._Frame(struct_size=sizeof(ffi._Frame), api=pointer(api), stage=ffi.EXECUTE)
        self.frame.arguments, self.frame.results = self.buffers(inputs), self.buffers(outputs)
        self.frame.attributes.size, self.frame.attributes.values = 1, values

    def keep(self, value):
        self.kept.append(value)
        return value

    def buffers(self, addresses):
        each = [self.keep(ffi._Buffer(data=address)) for address in addresses]
        pointers = self.keep((ctypes.POINTER(ffi._Buffer) * len(each))(*map(pointer, each)))
        return ffi._Buffers(size=len(each), buffers=cast(pointers, ctypes.POINTER(ctypes.POINTER(ffi._Buffer))))

    def run(self):
        handler = ffi.HANDLERS["CUDA"]
        return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(cast(handler, ctypes.c_void_p).value)(
            cast(byref(self.frame), ctypes.c_void_p)
        )


@pd.kernel
def doubled(x: ptr[f32], y: ptr[f32], n: u32):
    with pd.if_(pd.tid.x < n):
        y[pd.tid.x] = 2 * x[pd.tid.x]


def struct(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


@pytest.mark.parametrize("gpus", [1, 2])
def test_a_kernel_is_launched_on_the_gpu_and_stream_of_xla(gpus):
    number = ffi.numbered(ffi.XlaCall(lambda x, y: doubled[1, 32](x, y, 32), [struct(32)], [struct(32)]))
    with installed(FakeCuda(widths=(8, 8, 4), gpus=gpus)) as fake:
        assert Frame(number, [0x1000], [0x2000]).run() is None
        assert Frame(number, [0x3000], [0x4000]).run() is None
    assert [launch["stream"] for launch in fake.launches] == [STREAM] * 2
    assert {launch["device"] for launch in fake.launches} == {gpus - 1}  # where there is one, nobody is asked
    addresses = [int.from_bytes(launch["parameters"][1], "little") for launch in fake.launches]
    assert addresses == [0x2000, 0x4000]


def test_a_product_is_launched_on_buffers_of_xla(monkeypatch):
    like = struct(128, 128, dtype="bfloat16")
    number = ffi.numbered(ffi.XlaCall(lambda a, b, out: gemm(a, b, out=out), [like, like], [like]))
    launched = []
    monkeypatch.setattr(FakeCuda, "cuLaunchKernelEx", lambda fake, *rest: launched.append(rest) or fake.result(""))
    with installed(FakeCuda()):
        for first in (0x10000, 0x90000):
            assert Frame(number, [first, first + 0x20000], [first + 0x40000]).run() is None, told
    assert len(launched) == 2


def test_what_is_wrong_becomes_an_error_of_xla():
    number = ffi.numbered(ffi.XlaCall(lambda x, y: doubled[1, 32](x, y, 32), [struct(32)], [struct(32, dtype="int32")]))
    with installed(FakeCuda(widths=(8, 8, 4))):
        assert Frame(number, [0x1000], [0x2000]).run() == 1
    assert told[-1].startswith("`y` expects ptr[f32], got a jax array of s32 with shape (32,)")


def test_a_call_of_another_process_is_refused():
    with installed(FakeCuda()):
        assert Frame(len(ffi.CALLS), [], []).run() == 1
    assert told[-1].startswith("the program was compiled in another process, which has the kernel of call ")
