"""Arrays of a kernel: in shared memory, in local memory of a thread, and tables in constant memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ptxdsl import ir
from ptxdsl.arrays import is_masked
from ptxdsl.errors import called_elsewhere, public
from ptxdsl.notes import SharedArray
from ptxdsl.trace import literal
from ptxdsl.trace.builder import Builder, current, is_name, refuse
from ptxdsl.trace.instruction import Source, shown
from ptxdsl.trace.memory import ArrayView, PointerValue, layout_of
from ptxdsl.trace.source import Target, target_of
from ptxdsl.types import Pointer, Type, b8, bits, from_dtype, nearest_type, pred

STATIC_BYTES = 48 * 1024  # shared memory of statically sized arrays
BLOCK_BYTES = 227 * 1024  # shared memory of a block on any GPU
CONSTANT_BYTES = 64 * 1024  # constant memory of a module
LOCAL_BYTES = 512 * 1024  # local memory of a thread


_ARRAYS = {
    "dtype": "it is the first argument: pd.shared(f32, (16, 16))",
    "type": "it is the first argument: pd.shared(f32, (16, 16))",
    "shape": "it is the second argument, a shape or a layout: pd.shared(f32, (16, 16))",
    "size": "it is the second argument, a shape or a layout: pd.shared(f32, 256)",
}


def alignment_of(element: Type, align: int | None) -> int:
    """Return the alignment in bytes, by default at least 16."""
    align = max(16, element.bytes) if align is None else align
    if align < element.bytes or align & (align - 1):
        refuse(
            f"align={align} is not a valid alignment for {element}",
            f"give a power of two, at least the {element.bytes} bytes of an element",
        )
    return align


def element_of(element: object, called: str) -> Type:
    """Return the element type of an array. Raises TraceError if memory cannot hold it."""
    if not isinstance(element, Type):
        near = nearest_type(element)
        help = f"did you mean {near}?" if near else f"for example {called}(f16, (64, 64))"
        refuse(f"{called} takes the type of its elements first; found {element!r}", help)
    if element.bits % 8 or element is pred:
        refuse(f"{called} of {element}: memory has no elements smaller than a byte", "pack them: use b8 or b32")
    return element


@public
@called_elsewhere(**_ARRAYS)
def shared(element: Type, layout: Any, *, align: int | None = None, name: str | None = None) -> ArrayView:
    """Declare an array in shared memory.

    `element` is a scalar type. `layout` is a `Layout`, or a shape (int or tuple of ints) for a row-major array; the
    array has room for all offsets of the layout. `align` is in bytes, by default 16, which suits all vector and matrix
    loads. `name` is the variable's name in PTX, by default the Python name.

    Raises TraceError if the kernel's arrays exceed 48 KiB in total; use `pd.dynamic_shared` then.

        tile = pd.shared(f32, (32, 33))
        tile[row, column] = x[i]
        pd.ptx.bar.sync(0)
    """
    builder = current("pd.shared")
    element, (layout, ranked) = element_of(element, "pd.shared"), layout_of(layout)
    target = _target(builder, name, "shared")
    variable = ir.Variable(
        builder.unique(target.identifier), "shared", bits(element.bits), (layout.cosize,), alignment_of(element, align)
    )
    builder.variables.append(variable)
    called = target.text if variable.name == target.identifier else variable.name
    return _shared_view(builder, SharedArray(called, variable.name, 0, element, layout), variable, ranked)


def _shared_view(builder: Builder, array: SharedArray, variable: ir.Variable, ranked: bool) -> ArrayView:
    """Return a new array, recorded under a unique name; refuse shared memory beyond the limits."""
    _check_shared_bytes(builder, array.name if variable.linkage else variable.name)
    known: dict[str, SharedArray] = builder.memory.setdefault(SharedArray, {})
    called, number = array.name, 0
    while called in known:
        number += 1
        called = f"{array.name}_{number}"
    known[called] = replace(array, name=called)
    return ArrayView(PointerValue(variable, Pointer(array.element, "shared"), array.offset), array.layout, ranked)


def _static_bytes(builder: Builder) -> int:
    return sum(variable.bytes for variable in builder.variables if variable.space == "shared")


def _check_shared_bytes(builder: Builder, name: str) -> None:
    """Refuse an array that brings shared memory beyond the limit of static arrays, or of a block on any GPU."""
    static = _static_bytes(builder)
    total = static + (builder.dynamic_bytes or 0)
    if total > BLOCK_BYTES:
        refuse(
            f"`{name}` brings shared memory to {total} bytes; a block has at most {BLOCK_BYTES} on any GPU",
            "use a smaller tile or fewer stages",
        )
    if static > STATIC_BYTES:
        refuse(
            f"`{name}` brings shared memory to {static} bytes; a kernel can declare {STATIC_BYTES}",
            "use pd.dynamic_shared, whose size is given at launch",
        )


def _target(builder: Builder, name: str | None, otherwise: str) -> Target:
    """Return the given name or the assignment target of a variable, else `otherwise`."""
    target = Target(name, name) if name else target_of(builder.site())
    return target if target and is_name(target.identifier) else Target(otherwise, otherwise)


@public
def dynamic_shared(
    element: Type, layout: Any = None, *, align: int | None = None, name: str | None = None
) -> ArrayView:
    """Allocate an array in dynamic shared memory, whose total size is given at launch.

    Several arrays follow one another in the order of the calls; launches request the sum of their sizes by default.
    `element`, `layout` and `align` are those of `pd.shared`. Without a layout, the array takes the remaining memory,
    and no other can follow it. Messages and debuggers use the Python name, or `name`.

        stages = pd.dynamic_shared(f16, (4, 128, 64), align=128)
    """
    builder = current("pd.dynamic_shared")
    builder.check_kernel(
        "pd.dynamic_shared", 'make the array there, and pass the function a pointer into it: `p: ptr[f32, "shared"]`'
    )
    element, align = element_of(element, "pd.dynamic_shared"), alignment_of(element, align)
    if builder.dynamic_bytes is None:
        refuse("pd.dynamic_shared after one of unknown length, which takes all that remains", "give that one a shape")
    known, ranked = layout_of(layout) if layout is not None else (None, True)
    start = -(-builder.dynamic_bytes // align) * align
    builder.dynamic_bytes = None if known is None else start + known.cosize * element.bytes
    variable = _dynamic_memory(builder, align)
    site = builder.site()
    target = target_of(site) if len(site.names) == 1 or name is None else None
    called = target.text if target else name or variable.name
    return _shared_view(builder, SharedArray(called, variable.name, start, element, known), variable, ranked)


def _dynamic_memory(builder: Builder, align: int) -> ir.Variable:
    """Return the one symbol of all dynamic arrays; all such symbols share one address."""
    variable: ir.Variable | None = builder.memory.get(dynamic_shared)
    if variable is None:
        name = builder.unique_global("dynamic_shared")
        variable = ir.Variable(name, "shared", b8, (None,), align, linkage="extern")
        builder.memory[dynamic_shared] = variable
        builder.module.globals.append(variable)
    variable.align = max(variable.align or 1, align)
    return variable


def align_dynamic(builder: Builder) -> None:
    """Pad the static arrays so that dynamic memory, which begins after them, has the requested alignment.

    Not every assembler aligns it to more than 16 bytes; a misaligned swizzled ring runs at half its speed.
    """
    least = 16
    dynamic: ir.Variable | None = builder.memory.get(dynamic_shared)
    align = (dynamic.align if dynamic else None) or least
    arrays = [variable for variable in builder.variables if variable.space == "shared"]
    if align <= least or not arrays:
        return
    for variable in arrays:
        _round_up(variable, least, variable.bytes)
    _round_up(arrays[-1], align, _static_bytes(builder))


def _round_up(variable: ir.Variable, align: int, end: int) -> None:
    """Lengthen an array until `end` is a multiple of `align`."""
    variable.shape = ((variable.bytes + -end % align) // variable.type.bytes,)


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
    called, align = builder.unique(_target(builder, name, "local").identifier), alignment_of(element, align)
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
    try:
        array = np.asarray(values)
    except ValueError:
        refuse("pd.constant takes rows of one length; these differ", "fill the shorter ones up")
    element = _table_element(values, array, element)
    encoded = tuple(_encoded(value, element) for value in array.reshape(-1).tolist())
    key, align = (constant, element, array.shape, encoded), alignment_of(element, None)
    variable = initialised(builder, key, _target(builder, name, "table"), "const", bits(element.bits), encoded, align)
    total = sum(variable.bytes for variable in builder.module.globals if variable.space == "const")
    if total > CONSTANT_BYTES:
        refuse(
            f"`{variable}` brings constant memory to {total} bytes; a module has {CONSTANT_BYTES}",
            "pass the array to the kernel: `table: ptr[f32]`",
        )
    return ArrayView(PointerValue(variable, Pointer(element, "const")), *layout_of(array.shape))


def initialised(
    builder: Builder, key: object, target: Target, space: str, type: Type, content: tuple[int, ...], align: int
) -> ir.Variable:
    """Return a variable of the module with an initial value; one variable for each key."""
    if key not in builder.memory:
        name = builder.unique_global(target.identifier)
        builder.memory[key] = ir.Variable(name, space, type, (len(content),), align, content)
        builder.module.globals.append(builder.memory[key])
    variable: ir.Variable = builder.memory[key]
    return variable


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
