"""The launcher in Python of a program: a module beside the machine code, which needs cuda-python alone."""

from __future__ import annotations

from ptxdsl.ahead.cpp import struct_bytes
from ptxdsl.ahead.program import AheadKernel, AheadParameter, AheadProgram
from ptxdsl.types import Pointer, Type

_FLOATS = {"f32": "f", "f64": "d", "f16": "e"}
_INTEGERS = {8: "b", 16: "h", 32: "i", 64: "q"}
_MODULE = '''\
"""{title}, for {targets}: written by `ptxdsl build`. Needs cuda-python and {name}.fatbin, which lies beside it."""

import ctypes
import struct
from pathlib import Path

from cuda.bindings import driver

IMAGE = Path(__file__).with_name("{name}.fatbin").read_bytes()
_USUAL_DYNAMIC_BYTES = 48 * 1024
_modules = {{}}


def _call(function, *arguments):
    status, *results = function(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{{function.__name__}}: {{status.name}}")
    return results[0] if results else None


def _function(name):
    """The kernel in the current context; torch and CuPy have one, cuDevicePrimaryCtxRetain makes one."""
    context = int(_call(driver.cuCtxGetCurrent))
    if not context:
        raise RuntimeError("there is no CUDA context: create one, or use a library that does")
    if context not in _modules:
        _modules[context] = _call(driver.cuModuleLoadData, IMAGE)
    return _call(driver.cuModuleGetFunction, _modules[context], name)


def _address(array):
    """The address of an array on the GPU, or an address as it is."""
    if isinstance(array, int):
        return array
    if hasattr(array, "data_ptr"):
        return array.data_ptr()
    return array.__cuda_array_interface__["data"][0]


def _extents(shape):
    return (*((shape,) if isinstance(shape, int) else shape), 1, 1)[:3]


def _launch(name, grid, block, parameters, shared_bytes, stream):
    function = _function(name)
    if shared_bytes > _USUAL_DYNAMIC_BYTES:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _call(driver.cuFuncSetAttribute, function, attribute, shared_bytes)
    buffers = [ctypes.create_string_buffer(content, len(content)) for content in parameters]
    pointers = (ctypes.c_void_p * max(1, len(buffers)))(*map(ctypes.addressof, buffers))
    shape = *_extents(grid), *_extents(block)
    _call(driver.cuLaunchKernel, function, *shape, shared_bytes, int(stream), ctypes.addressof(pointers), 0)
{functions}'''
_FUNCTION = '''

def {kernel}(grid, block{parameters}, *, stream=0, shared_bytes={shared}):
    """Launches {kernel}: {about}.

    `grid` counts blocks and `block` threads, ints or tuples of up to three. Arrays are torch's or CuPy's, or addresses;
    `stream` is a CUstream or its handle. Nothing is checked, and nothing is waited for.
    """
    parameters = [
{packed}
    ]
    _launch(b"{kernel}", grid, block, parameters, shared_bytes, stream)
'''


def module(program: AheadProgram) -> str:
    """The text of the module."""
    return _MODULE.format(
        title=", ".join(kernel.name for kernel in program.kernels),
        targets=program.targets,
        name=program.name,
        functions="".join(map(_function, program.kernels)),
    )


def _function(kernel: AheadKernel) -> str:
    return _FUNCTION.format(
        kernel=kernel.name,
        parameters="".join(f", {p.name}" for p in kernel.parameters),
        shared=kernel.shared_bytes or 0,
        about=", ".join(f"{p.name} is {p.kind}" for p in kernel.parameters) or "it takes nothing",
        packed="\n".join(f"        {_packed(p)}," for p in kernel.parameters),
    )


def _packed(parameter: AheadParameter) -> str:
    """The bytes of a parameter."""
    name, kind = parameter.name, parameter.kind
    if isinstance(kind, Pointer):
        return f'struct.pack("<Q", _address({name}))'
    if not isinstance(kind, Type):
        return f"bytes({name})[:{struct_bytes(parameter)}]"
    if kind.name in _FLOATS:
        return f'struct.pack("<{_FLOATS[kind.name]}", {name})'
    letter = _INTEGERS[kind.bits] if kind.is_integer and kind.is_signed else _INTEGERS[kind.bits].upper()
    return f'struct.pack("<{letter}", {name})'
