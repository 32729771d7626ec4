"""As much of torch as the benchmarks take, on numpy: ptxdsl then runs on its emulator."""

import contextlib
import time
from types import SimpleNamespace

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn

__all__ = ["bfloat16", "float8_e4m3fn"]
dtype = type
float16, float32, float64, int8, int32, uint8 = np.float16, np.float32, np.float64, np.int8, np.int32, np.uint8
RNG = np.random.default_rng(0)


class Tensor(np.ndarray):
    """An array with torch's names. By its module ptxdsl sees one of numpy."""

    __module__ = "numpy"

    def to(self, dtype):
        return self.astype(dtype)

    def half(self):
        return self.astype(float16)

    def float(self):
        return self.astype(float32)

    def transpose(self, one, other):
        return self.swapaxes(one, other)

    def permute(self, *axes):
        return np.transpose(self, axes)

    def contiguous(self):
        return np.ascontiguousarray(self).view(Tensor)

    def numel(self):
        return self.size

    def stride(self):
        return tuple(step // self.itemsize for step in self.strides)

    def as_strided(self, shape, strides):
        steps = [step * self.itemsize for step in strides]
        return np.lib.stride_tricks.as_strided(self, shape, steps, subok=True)

    def fill_(self, value):
        self[...] = value

    def zero_(self):
        self[...] = 0

    def abs(self):
        return np.abs(self)

    def amax(self):
        return self.max()


def _tensor(array, dtype=None):
    return np.asarray(array).astype(dtype or array.dtype).view(Tensor)


def randn(*shape, device, dtype):
    return _tensor(RNG.standard_normal(shape), dtype)


def randn_like(tensor):
    return _tensor(RNG.standard_normal(tensor.shape), tensor.dtype)


def randint(low, high, shape, device, dtype=np.int64):
    return _tensor(RNG.integers(low, high, shape), dtype)


def empty(*shape, device, dtype):
    if dtype is uint8:  # what flushes the cache
        shape = (16,)
    return _tensor(np.zeros(shape[0] if isinstance(shape[0], tuple) else shape), dtype)


zeros = empty


def full(shape, value, device, dtype):
    return _tensor(np.full(shape, value), dtype)


def tensor(values, device, dtype):
    return _tensor(np.array(values), dtype)


def matmul(a, b, out):
    out[...] = a.astype(float64) @ b.astype(float64)


mm = bmm = _int_mm = matmul


def ones(shape, device):
    return _tensor(np.ones(shape), float32)


def _scaled_mm(a, b, scale_a, scale_b, out_dtype, out, use_fast_accum):
    matmul(a, b, out)


def addmm(bias, a, b, out=None):
    result = _tensor(a.astype(float64) @ b.astype(float64) + bias.astype(float64), a.dtype)
    if out is None:
        return result
    out[...] = result


def relu(x):
    return np.maximum(x, 0)


def _grouped_mm(a, b, offsets):
    ends = [0, *map(int, offsets)]
    rows = [a[i:j].astype(float64) @ m.astype(float64) for i, j, m in zip(ends, ends[1:], b, strict=False)]
    return _tensor(np.concatenate(rows), a.dtype)


def cudnn_convolution_relu(x, w, bias, stride, pad, dilation, groups):
    from torch.nn.functional import conv2d

    return relu(conv2d(x, w, bias, stride, pad))


class _Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.seconds = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 1000 * (end.seconds - self.seconds)


class _Stream:
    def wait_stream(self, other):
        assert isinstance(other, _Stream)


cuda = SimpleNamespace(
    Event=_Event,
    Stream=_Stream,
    synchronize=lambda: None,
    get_device_capability=lambda: (8, 0),
    current_stream=_Stream,
    stream=lambda stream: contextlib.nullcontext(stream),
    _sleep=lambda cycles: None,
)
backends = SimpleNamespace(
    cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False)),
    cudnn=SimpleNamespace(benchmark=False, allow_tf32=False),
)
testing = SimpleNamespace(assert_close=lambda a, b, rtol, atol: np.testing.assert_allclose(a, b, rtol, atol))
