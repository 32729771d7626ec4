"""Calls of functions that stay functions: how values lie in .param space, as C++ compilers pass them, and the call.

Integers of less than 32 bits and predicates take 32, floats of 16 and 8 bits the bytes that they have as structs of
C++, and pointers are generic addresses. Several results are a struct, each at a multiple of its size.
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
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.operators import cast, operate, steps
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Pointer, Type, b8, bits, pred, s32, u32, u64

Passed: TypeAlias = "Type | Pointer | TensorMap"
"""The type of one value that is passed or returned."""
_FORM = {(False, False): 0, (False, True): 1, (True, False): 2, (True, True): 3}  # the form with results, arguments


class PassedMember(NamedTuple):
    """A value in a variable of .param space, so many bytes behind its start."""

    variable: ir.Variable
    offset: int
    type: Passed


def parameter(name: str, type: Passed) -> ir.Variable:
    """The variable that passes a value of a type."""
    held = _held(type)
    if held.bits >= 32 and held.kind != "x":
        return ir.Variable(name, "param", bits(held.bits))
    return ir.Variable(name, "param", b8, (held.bytes,), held.bytes)


def results(name: str, types: Sequence[Passed]) -> list[ir.Variable]:
    """The variable that returns values of these types: none, a number, or a struct."""
    if len(types) < 2:
        return [parameter(name, type) for type in types]
    sizes = [_held(type).bytes for type in types]
    align = max(sizes)
    return [ir.Variable(name, "param", b8, (-(-_ends(sizes)[-1] // align) * align,), align)]


def members(variables: Sequence[ir.Variable], types: Sequence[Passed]) -> Iterator[PassedMember]:
    """Where each of several results lies."""
    sizes = [_held(type).bytes for type in types]
    for type, size, end in zip(types, sizes, _ends(sizes), strict=True):
        yield PassedMember(variables[0], end - size, type)


def _ends(sizes: Sequence[int]) -> list[int]:
    """Where members end that lie behind each other, each at a multiple of its size."""
    ends, end = [], 0
    for size in sizes:
        end = -(-end // size) * size + size
        ends.append(end)
    return ends


def _held(type: Passed) -> Type:
    """The type of the bits that are passed."""
    if not isinstance(type, Type):
        return u64
    if type is pred:
        return u32
    if type.is_integer and type.kind != "b" and type.bits < 32:
        return s32 if type.is_signed else u32
    return type


def store(member: PassedMember, value: Any) -> None:
    """Writes a value of the member's type to where it is passed."""
    held = _held(member.type)
    with steps():
        passed = _generic(value) if not isinstance(member.type, Type) else value
        passed = passed if held is member.type else cast(passed, held)
        emit(f"st.param.{_word(held)}", (ir.Address(member.variable, member.offset), passed))


def load(member: PassedMember) -> Any:
    """The value that is passed, in registers of the function that asks."""
    type, held = member.type, _held(member.type)
    address = ir.Address(member.variable, member.offset)
    text = f"ld.param.{_word(held)}"
    if type is held:
        return operate(text, address, type=held)
    with steps():
        loaded = operate(text, address, type=held)
    if isinstance(type, TensorMap):
        return MappedTensor(PointerValue(loaded, Pointer(b8, "generic")), type)
    if isinstance(type, Pointer):
        return _pointer(loaded, type)
    return loaded != 0 if type is pred else cast(loaded, type)


def _word(held: Type) -> str:
    """The type in the mnemonic: ld and st know f32 and f64, and the bits of other floats."""
    return str(held if held.is_integer or held.name in ("f32", "f64") else bits(held.bits))


def _generic(value: PointerValue | MappedTensor) -> Scalar:
    """The generic address that a pointer, or the map of a tensor, is."""
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
    """What is emitted in here stands in a scope of its own, with the variables of a call."""
    outer, inner = builder.body, ir.Scope()
    builder.body = inner.body
    try:
        yield
    finally:
        builder.body = outer
    builder.append(inner)


def call(builder: Builder, function: ir.Function, types: Sequence[Passed], values: Sequence[Any]) -> list[ir.Variable]:
    """Emits a call, in a scope of the caller; returns the variables that hold its results there."""
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
    opcode = lookup("call")[_FORM[bool(returned), bool(passed)]]
    builder.append(ir.Instruction(opcode, tuple(operands), None, builder.site().location))
    return returned


def declared(builder: Builder, name: str, types: Sequence[Passed], returned: Sequence[Passed]) -> ir.Function:
    """The declaration of a function that another module, or the driver, defines; once a module."""
    known = builder.module.declared
    if name not in known:
        function = ir.Function(name, "func", body=None, linkage="extern")
        function.parameters += [parameter(f"p{n}", type) for n, type in enumerate(types)]
        function.returns += results("result", returned)
        known[name] = function
        builder.module.names.add(name)
    return known[name]


def _alike(builder: Builder, formal: ir.Variable | ir.Register) -> ir.Variable:
    """A variable of the caller for a parameter or result."""
    assert isinstance(formal, ir.Variable)
    return ir.Variable(builder.unique("param"), "param", formal.type, formal.shape, formal.align)
