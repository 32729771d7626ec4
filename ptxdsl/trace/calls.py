"""Calls of device functions: the C++ calling convention in .param space, and the call sequence.

Integers narrower than 32 bits and predicates are passed as 32 bits, 8- and 16-bit floats as the bytes of a C++ struct,
and pointers as generic addresses. Several results form a struct, each member aligned to its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from ptxdsl import ir
from ptxdsl.isa.lookup import lookup
from ptxdsl.trace.builder import Builder
from ptxdsl.trace.instruction import Scalar, emit
from ptxdsl.trace.mapped import MappedTensor
from ptxdsl.trace.memory import PointerValue, stored_type
from ptxdsl.trace.operators import cast, operate, steps
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Pointer, Type, b8, bits, pred, s32, u32, u64

Passed: TypeAlias = "Type | Pointer | TensorMap"
"""The type of one value that is passed or returned."""


class PassedMember(NamedTuple):
    """A value at a byte offset of a .param variable."""

    variable: ir.Variable
    offset: int
    type: Passed


def parameter(name: str, type: Passed) -> ir.Variable:
    """Return the .param variable that passes a value of a type."""
    held = _held(type)
    if held.bits >= 32 and held.kind != "x":
        return ir.Variable(name, "param", bits(held.bits))
    return ir.Variable(name, "param", b8, (held.bytes,), held.bytes)


def results(name: str, types: Sequence[Passed]) -> list[ir.Variable]:
    """Return the .param variables of the results: none, one scalar, or one struct."""
    if len(types) < 2:
        return [parameter(name, type) for type in types]
    sizes = [_held(type).bytes for type in types]
    align = max(sizes)
    return [ir.Variable(name, "param", b8, (-(-_ends(sizes)[-1] // align) * align,), align)]


def members(variables: Sequence[ir.Variable], types: Sequence[Passed]) -> Iterator[PassedMember]:
    """Yield the location of each result."""
    sizes = [_held(type).bytes for type in types]
    for type, size, end in zip(types, sizes, _ends(sizes), strict=True):
        yield PassedMember(variables[0], end - size, type)


def _ends(sizes: Sequence[int]) -> list[int]:
    """Return the end offsets of consecutive members, each aligned to its size."""
    ends, end = [], 0
    for size in sizes:
        end = -(-end // size) * size + size
        ends.append(end)
    return ends


def _held(type: Passed) -> Type:
    """Return the type of the bits that are passed."""
    if not isinstance(type, Type):
        return u64
    if type is pred:
        return u32
    if type.is_integer and type.kind != "b" and type.bits < 32:
        return s32 if type.is_signed else u32
    return type


def store(member: PassedMember, value: Any) -> None:
    """Store a value to its .param member."""
    held = _held(member.type)
    with steps():
        passed = _generic(value) if not isinstance(member.type, Type) else value
        passed = passed if held is member.type else cast(passed, held)
        emit(f"st.param.{stored_type(held)}", (ir.Address(member.variable, member.offset), passed))


def load(member: PassedMember) -> Any:
    """Load a passed value into registers of the current function."""
    type, held = member.type, _held(member.type)
    address = ir.Address(member.variable, member.offset)
    text = f"ld.param.{stored_type(held)}"
    if type is held:
        return operate(text, address, type=held)
    with steps():
        loaded = operate(text, address, type=held)
    if isinstance(type, TensorMap):
        return MappedTensor(PointerValue(loaded, Pointer(b8, "generic")), type)
    if isinstance(type, Pointer):
        return _pointer(loaded, type)
    return loaded != 0 if type is pred else cast(loaded, type)


def _generic(value: PointerValue | MappedTensor) -> Scalar:
    """Return the generic address of a pointer or tensor map."""
    if isinstance(value, MappedTensor):
        return value.value  # type: ignore[no-any-return]
    address = value.value
    if value.space == "generic":
        return address
    wide = cast(address, u64)
    return operate(f"cvta.{value.space}.u64", wide, type=u64)


def _pointer(address: Scalar, type: Pointer) -> PointerValue:
    if type.space == "generic":
        return PointerValue(address, type)
    if type.register is u64:
        return PointerValue(operate(f"cvta.to.{type.space}.u64", address, type=u64), type)
    with steps():
        within = operate(f"cvta.to.{type.space}.u64", address, type=u64)
    return PointerValue(cast(within, u32), type)


@contextmanager
def scope(builder: Builder) -> Iterator[None]:
    """Emit the instructions of this context in a PTX scope that declares the call's variables."""
    outer, inner = builder.body, ir.Scope()
    builder.body = inner.body
    try:
        yield
    finally:
        builder.body = outer
    builder.append(inner)


def call(builder: Builder, function: ir.Function, types: Sequence[Passed], values: Sequence[Any]) -> list[ir.Variable]:
    """Emit a call in a scope of the caller; return the variables that hold its results."""
    passed = [_alike(builder, formal) for formal in function.parameters]
    for variable, type, value in zip(passed, types, values, strict=True):
        builder.append(variable)
        store(PassedMember(variable, 0, type), value)
    returned = [_alike(builder, formal) for formal in function.returns]
    builder.body += returned
    operands: list[ir.Operand] = [function]
    if returned:
        operands.insert(0, ir.Arguments(tuple(returned)))
    if passed:
        operands.append(ir.Arguments(tuple(passed)))
    opcode = lookup("call")[2 * bool(returned) + bool(passed)]  # the forms are in this order
    builder.append(ir.Instruction(opcode, tuple(operands), None, builder.site().location))
    return returned


def declared(builder: Builder, name: str, types: Sequence[Passed], returned: Sequence[Passed]) -> ir.Function:
    """Declare, once per module, a function that another module or the driver defines."""
    known = builder.module.declared
    if name not in known:
        function = ir.Function(name, "func", body=None, linkage="extern")
        function.parameters += [parameter(f"p{n}", type) for n, type in enumerate(types)]
        function.returns += results("result", returned)
        known[name] = function
        builder.module.names.add(name)
    return known[name]


def _alike(builder: Builder, formal: ir.Variable | ir.Register) -> ir.Variable:
    """Create a caller variable for a parameter or result."""
    assert isinstance(formal, ir.Variable)
    return ir.Variable(builder.unique("param"), "param", formal.type, formal.shape, formal.align)
