"""`pd.printf` and `pd.assert_`: output from a running kernel, through the CUDA driver's functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ptxdsl import ir
from ptxdsl.trace import calls, literal
from ptxdsl.trace.arrays import initialised
from ptxdsl.trace.builder import Builder, current, refuse
from ptxdsl.trace.control import branch, condition
from ptxdsl.trace.instruction import Scalar, ScalarLike, emit, shown
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.operators import cast, constant, operate, steps
from ptxdsl.trace.source import Target
from ptxdsl.types import TYPES, Type, b8, b32, f64, pred, s32, s64, u32, u64

_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(ll|l|h)?([a-zA-Z%]?)")
_VALUE = re.compile(rf"<(?:{'|'.join(TYPES)}|ptr\[[^\]]*\]) [^>]*>")  # a traced value formatted by an f-string
_SIGNED, _UNSIGNED, _FLOATING = "di", "uoxX", "eEfFgGaA"
_HELP = "%d and %u print integers of 32 bits, %lld and %llu of 64, %x in base 16; %f, %g and %e floats; %p pointers"
_EXAMPLES = {"pd.printf": 'pd.printf("%f\\n", x)', "pd.assert_": 'pd.assert_(i < n, "i is too large")'}
_NAMES = {**{code: s32 for code in _SIGNED}, **{code: u32 for code in _UNSIGNED}}
_WIDE = {s32: s64, u32: u64}
MOST_VALUES = 32


def printf(text: str, *values: ScalarLike | PointerValue) -> None:
    """Print formatted values from each thread, like C's printf: `pd.printf("%d: %f", i, x)`.

    %d, %u, %x print integers of up to 32 bits, %lld, %llu, %llx those of 64; %f, %e, %g floats of all types; %c a
    character, %p a pointer, %% a percent sign. A predicate prints as the integer 0 or 1. The emulator writes the text
    to stdout after the launch, and `pd.emulate` returns it as `report.output`. On a GPU the driver prints it when the
    host synchronises with the kernel.

    Raises TraceError if the conversions do not match the values.
    """
    builder = current("pd.printf")
    _check_text("pd.printf", text)
    wanted = [_type_of(match) for match in _CONVERSION.finditer(text) if match[2] != "%"]
    if len(wanted) != len(values):
        plural = "s" * (len(wanted) != 1)
        refuse(f"the text of pd.printf has {len(wanted)} conversion{plural}; {len(values)} given", _HELP)
    if len(values) > MOST_VALUES:
        refuse(f"pd.printf of {len(values)} values; it takes {MOST_VALUES}", "print them by several calls")
    with steps():
        converted = [_converted(*pair) for pair in zip(wanted, values, strict=True)]
        arguments = _stored(builder, converted) if converted else constant(0, u64)
        _call(builder, "vprintf", (_text(builder, text), arguments), result=b32)


def assert_(predicate: Scalar | bool, message: str | None = None) -> None:
    """End the launch with an error if the predicate is false in a thread.

    The error names the Python line, and `message` or the predicate's source text. The emulator reports a finding of
    kind 'assert'; on a GPU the driver prints it and the launch fails with CUDA_ERROR_ASSERT.

        pd.assert_(i < n, "i is out of range")
    """
    builder = current("pd.assert_")
    if isinstance(predicate, bool):
        refuse(f"pd.assert_ of {predicate}, which is known while tracing", "write Python's `assert`")
    if message is not None:
        _check_text("pd.assert_", message)
    holds = condition("pd.assert_", predicate)
    location = builder.site().location
    behind = builder.function.label("$holds")
    branch(behind, when=holds)
    with steps():
        said = _text(builder, holds.name if message is None else message)
        file, function = _text(builder, Path(location.file).name), _text(builder, location.function or builder.name)
        line, size = constant(location.line, u32), constant(1, u64)
        _call(builder, "__assertfail", (said, file, line, function, size))
    builder.append(behind)


def _check_text(called: str, text: object) -> None:
    if not isinstance(text, str):
        refuse(f"{called} takes a text; found {shown(text)}", f"for example `{_EXAMPLES[called]}`")
    if shows := _VALUE.search(text):
        help = 'pass it to printf after the text: `pd.printf("%d\\n", i)`'
        refuse(f"the text of {called} holds `{shows[0]}`: a value that is not known while tracing", help)
    if "\0" in text:
        refuse(f"the text of {called} contains a zero byte, which ends a C string", "leave it out")


def _type_of(conversion: re.Match[str]) -> Type:
    """Return the type that a conversion prints: s32, u32, s64, u64 or f64; u64 for a pointer."""
    length, code = conversion[1], conversion[2]
    if code in _FLOATING and code and not length:
        return f64
    if code == "p" and not length:
        return u64
    if code == "c" and not length:
        return u32
    if code not in _NAMES or length == "h":
        refuse(f"pd.printf has no conversion `{conversion[0]}`", f"{_HELP}; a percent sign is %%")
    return _WIDE[_NAMES[code]] if length else _NAMES[code]


def _converted(wanted: Type, value: object) -> Scalar:
    """Return a value in the 4- or 8-byte type that printf takes."""
    if isinstance(value, PointerValue) and wanted is u64:
        return cast(value.value, u64)
    if literal.is_number(value):
        number = literal.plain(value)
        if isinstance(number, float) and wanted is not f64:
            refuse(f"pd.printf of {number}, where its text has a conversion for integers", _HELP)
        return constant(float(number) if wanted is f64 else number, wanted)
    if not isinstance(value, Scalar):
        refuse(f"pd.printf prints numbers and pointers; found {shown(value)}", _HELP)
    integer = value.type is pred or (value.type.is_integer and value.type.bits <= wanted.bits)
    if not (value.type.is_float if wanted is f64 else integer):
        kind = "floats" if wanted is f64 else f"integers of up to {wanted.bits} bits"
        refuse(f"`{value.name}` is {value.type}, where the text of pd.printf has a conversion for {kind}", _HELP)
    if value.type.is_integer and value.type.bits == wanted.bits:
        return value.bitcast(wanted)
    return cast(value, wanted)


def _stored(builder: Builder, values: Sequence[Scalar]) -> Scalar:
    """Store these values in local memory with the layout of a C struct; return the address."""
    memory: ir.Variable | None = builder.memory.get(printf)
    if memory is None:
        memory = ir.Variable(builder.unique("printed"), "local", b8, (0,), 8)
        builder.memory[printf] = memory
        builder.variables.append(memory)
    end = 0
    for value in values:
        size = value.type.bytes
        end = -(-end // size) * size
        emit(f"st.local.{value.type}", (ir.Address(memory, end), value))
        end += size
    memory.shape = (max(memory.bytes, end),)
    return operate("cvta.local.u64", operate("mov.u64", memory, type=u64), type=u64)


def _text(builder: Builder, text: str) -> Scalar:
    """Return the generic address of a zero-terminated string."""
    content = (*text.encode(errors="replace"), 0)
    variable = initialised(builder, (printf, text), Target("text", "text"), "global", b8, content, 1)
    return operate("cvta.global.u64", operate("mov.u64", variable, type=u64), type=u64)


def _call(builder: Builder, name: str, arguments: Sequence[Scalar], result: Type | None = None) -> None:
    """Call a function of the driver."""
    types = [argument.type for argument in arguments]
    function = calls.declared(builder, name, types, [result] if result else [])
    with calls.scope(builder):
        calls.call(builder, function, types, arguments)
