"""Arrays on GPUs that are not there, for tests on a stand-in for the driver."""

import itertools
import math
from types import SimpleNamespace

from ptxdsl.arrays import HOST

_addresses = itertools.count(1 << 30, 1 << 20)
ITEMSIZES = {"torch.float32": 4, "torch.int32": 4, "torch.float8_e4m3fn": 1}
NAMES = "float16", "bfloat16", "float32", "int32", "float8_e4m3fn"


class Tensor:
    """Answers as an array of torch does; strides count elements."""

    __module__ = "torch"
    requires_grad = False

    def __init__(self, *shape, strides=None, dtype="torch.float16", device=0, address=None):
        self.shape, self.strides, self.dtype = shape, strides or row_major(shape), dtype
        self.itemsize = ITEMSIZES.get(dtype, 2)
        self.device = SimpleNamespace(type="cpu" if device == HOST else "cuda")
        self.is_cuda = device != HOST
        self.ordinal, self.address = device, address or next(_addresses)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def nbytes(self):
        return math.prod(self.shape) * self.itemsize

    def data_ptr(self):
        return self.address

    def get_device(self):
        return self.ordinal

    def stride(self):
        return self.strides

    def is_contiguous(self):
        return self.strides == row_major(self.shape)

    def swapaxes(self, one, other):
        axes = [*range(self.ndim)]
        axes[one], axes[other] = other, one
        shape, strides = (tuple(extents[axis] for axis in axes) for extents in (self.shape, self.strides))
        return Tensor(*shape, strides=strides, dtype=self.dtype, device=self.ordinal, address=self.address)

    def __getitem__(self, index):
        assert index is None
        shape, strides = (1, *self.shape), (0, *self.strides)
        return Tensor(*shape, strides=strides, dtype=self.dtype, device=self.ordinal, address=self.address)

    def reshape(self, *shape):
        assert self.is_contiguous()
        return Tensor(*shape, dtype=self.dtype, device=self.ordinal, address=self.address)

    def new_empty(self, shape, dtype):
        return Tensor(*shape, dtype=dtype, device=self.ordinal)


class OfInterface:
    """What the CUDA array interface says of an array; the driver says that it is on the GPU `address >> 40`."""

    def __init__(self, *shape, device=0, kind="<f2"):
        self.address = (device << 40) + next(_addresses)
        self.__cuda_array_interface__ = {
            "version": 3, "data": (self.address, False), "shape": shape, "strides": None, "typestr": kind,
        }  # fmt: skip


def row_major(shape):
    return tuple(math.prod(shape[n + 1 :]) for n in range(len(shape)))


class Guards:
    """Answers as torch's guards of tensors do: True for as many others that lie as these, no two of them the same."""

    def __init__(self, *tensors, dynamic_dims_sizes, dynamic_dims_strides):
        self.layouts = [layout(tensor) for tensor in tensors]

    def check(self, *tensors):
        return [layout(tensor) for tensor in tensors] == self.layouts and len({*map(id, tensors)}) == len(tensors)


def layout(tensor):
    return tensor.dtype, tensor.ordinal, tensor.shape, tensor.strides, tensor.requires_grad


def torch():
    """A module that stands in for torch: its current stream on each GPU is `_C.stream` and the GPU's number."""
    guards = SimpleNamespace(TensorGuards=Guards)
    inside = SimpleNamespace(stream=70, _dynamo=SimpleNamespace(guards=guards))
    inside._cuda_getCurrentRawStream = lambda device: inside.stream + device
    return SimpleNamespace(_C=inside, **{name: f"torch.{name}" for name in NAMES})
