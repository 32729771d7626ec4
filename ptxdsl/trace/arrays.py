"""Local arrays of a thread, and tables in constant memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptxdsl import ir
from ptxdsl.arrays import is_masked
from ptxdsl.errors import public
from ptxdsl.trace import literal
from ptxdsl.trace.builder import Builder, current, refuse
from ptxdsl.trace.instruction import Source, shown
from ptxdsl.trace.memory import (
    ArrayView,
    PointerValue,
    alignment_of,
    dynamic_shared,
    element_of,
    layout_of,
    variable_name,
)
from ptxdsl.trace.shared_limits import shared_variables
from ptxdsl.types import Pointer, Type, bits, from_dtype

CONSTANT_BYTES = 64 * 1024  # constant memory of a module
LOCAL_BYTES = 512 * 1024  # local memory of a thread


@public
def local(element: Type, layout: Any, *, align: int | None = None, name: str | None = None) -> ArrayView:
    """Declare an array in the thread's local memory, which traced indices can address.

    `element` is a scalar type. `layout` is a `Layout`, or a shape (int or tuple of ints) for a row-major array; the
    array has room for all offsets of the layout. `align` is in bytes. If all indices are Python numbers, a list of
    `pd.var` is faster, since it stays in registers.

    Raises TraceError beyond 512 KiB of local memory per thread.

        counts = pd.local(u32, 16)
        counts[bin] = counts[bin] + 1
    """
    builder = current("pd.local")
    element, (layout, ranked) = element_of(element, "pd.local"), layout_of(layout)
    called, align = variable_name(builder, name, "local"), alignment_of(element, align)
    variable = ir.Variable(called, "local", bits(element.bits), (layout.cosize,), align)
    builder.variables.append(variable)
    total = sum(v.bytes for v in builder.variables if v.space == "local")
    if total > LOCAL_BYTES:
        refuse(
            f"`{called}` brings local memory to {total} bytes; a thread has {LOCAL_BYTES}",
            "give the kernel an array in global memory, with room for each thread",
        )
    return ArrayView(PointerValue(variable, Pointer(element, "local")), layout, ranked)


def constant(values: ArrayLike, element: Type | None = None, *, name: str | None = None) -> ArrayView:
    """Declare a read-only table in constant memory, which is fast if all lanes of a warp read the same element.

    `values` is a numpy array or nested lists; the table has its shape. `element` is the element type, by default that
    of the numpy array; lists require it.

    Raises TraceError for values that are not known while tracing or do not fit the type, and beyond 64 KiB per module.

        weights = pd.constant([0.25, 0.5, 0.25], f32)
        y[i] = weights[k] * x[i]
    """
    builder = current("pd.constant")
    if is_masked(values):
        refuse("pd.constant takes no masked array: the kernel would not see the mask", "pass `.data` or `.filled(0)`")
    array = _array(values)
    element = _table_element(values, array, element)
    encoded = tuple(_encoded(value, element) for value in array.reshape(-1).tolist())
    key = constant, element, array.shape, encoded
    if key not in builder.memory:
        called = variable_name(builder, name, "table", is_global=True)
        variable = ir.Variable(
            called, "const", bits(element.bits), (len(encoded),), alignment_of(element, None), encoded
        )
        builder.module.globals.append(variable)
        builder.memory[key] = variable
    total = sum(variable.bytes for variable in builder.module.globals if variable.space == "const")
    if total > CONSTANT_BYTES:
        refuse(
            f"`{builder.memory[key]}` brings constant memory to {total} bytes; a module has {CONSTANT_BYTES}",
            "pass the array to the kernel: `table: ptr[f32]`",
        )
    return ArrayView(PointerValue(builder.memory[key], Pointer(element, "const")), *layout_of(array.shape))


def _array(values: ArrayLike) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        refuse("pd.constant takes rows of one length; these differ", "fill the shorter ones up")


def _table_element(values: object, array: np.ndarray, element: Type | None) -> Type:
    if element is not None:
        return element_of(element, "pd.constant")
    known = from_dtype(array.dtype) if isinstance(values, np.ndarray) else None
    if known is None:
        kind = f"an array of {array.dtype}" if isinstance(values, np.ndarray) else f"a {type(values).__name__}"
        refuse(f"pd.constant takes an array of numpy, or the type of its elements; found {kind}", _MEND)
    return known


_MEND = "say the type: `pd.constant([0.5, 0.25], f32)`"


def _encoded(value: object, element: Type) -> int:
    """Return the bits of a number as an unsigned int."""
    if not literal.is_number(value):
        help = "put computed values into a pd.local or a pd.shared" if isinstance(value, Source) else _MEND
        refuse(f"pd.constant of {shown(value)}, which is not known while tracing", help)
    try:
        return literal.encode(literal.plain(value), element).value & (1 << element.bits) - 1
    except ValueError as why:
        refuse(f"pd.constant: {why}", "give the table a type that holds all of its numbers")


def align_dynamic(builder: Builder) -> None:
    """Pad the static arrays so that dynamic memory, which begins after them, has the requested alignment.

    Not every assembler aligns it to more than 16 bytes; a misaligned swizzled ring runs at half its speed.
    """
    least = 16
    dynamic: ir.Variable | None = builder.memory.get(dynamic_shared)
    align = (dynamic.align if dynamic else None) or least
    arrays = shared_variables(builder)
    if align <= least or not arrays:
        return
    for variable in arrays:
        _round_up(variable, least, variable.bytes)
    _round_up(arrays[-1], align, sum(variable.bytes for variable in arrays))


def _round_up(variable: ir.Variable, align: int, end: int) -> None:
    """Lengthen an array until `end` is a multiple of `align`."""
    variable.shape = ((variable.bytes + -end % align) // variable.type.bytes,)
