"""Pack narrow values into one register, and unpack them."""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.trace.builder import current, refuse
from ptxdsl.trace.instruction import Scalar, ScalarLike, emit, shown
from ptxdsl.trace.operators import bitcast, cast, check_operands, operate
from ptxdsl.types import TYPES, Type, b32, u8, u32


def pack(*values: ScalarLike) -> Scalar:
    """Pack values into one register, the first in the lowest bits: two f16 as b32, two f32 as b64.

    The result has the sum of the widths: b32, b64 or b128. Raises TraceError for values without a type.

        pair = pd.pack(low, high)                # two f16: b32
        low, high = pd.unpack(pair, f16)
    """
    check_operands("pd.pack", *values)
    scalars = [v for v in values if isinstance(v, Scalar)]
    width = sum(v.type.bits for v in scalars)
    if width in (32, 64) and len(scalars) == len(values) and all(v.type.bits == 8 for v in scalars):
        return _pack_bytes([bitcast(v, u8) for v in scalars])
    # nvJitLink 13.0 sometimes crashes at a mov of one register in braces.
    packed = values[0] if len(values) == 1 else tuple(values)
    return operate(f"mov.b{width}", packed, type=b32 if width == 32 else TYPES[f"b{width}"])


def _pack_bytes(values: Sequence[Scalar]) -> Scalar:
    """Pack four or eight u8 by shifts: registers have at least 16 bits, so mov cannot pack them."""
    if len(values) > 4:
        return pack(_pack_bytes(values[:4]), _pack_bytes(values[4:]))
    first, *others = [cast(value, u32) for value in values]
    for number, value in enumerate(others, start=1):
        first = operate("or.b32", first, operate("shl.b32", value, 8 * number, type=u32), type=u32)
    return bitcast(first, b32)


def _bytes_of(value: Scalar) -> list[Scalar]:
    """Unpack a register into u8 by shifts, since mov cannot."""
    if value.type.bits > 32:
        return [byte for word in unpack(value, b32) for byte in _bytes_of(word)]
    word = bitcast(value, u32)
    return [cast(operate("shr.u32", word, 8 * number, type=u32) if number else word, u8) for number in range(4)]


def unpack(value: Scalar, type: Type) -> tuple[Scalar, ...]:
    """Split a register of 32, 64 or 128 bits into values of a narrower type, the lowest bits first.

    Raises TraceError if the width is not a multiple of that of `type`. The inverse of `pd.pack`.
    """
    bits = value.type.bits if isinstance(value, Scalar) else 0
    if bits not in (32, 64, 128) or bits <= type.bits or bits % type.bits:
        refuse(
            f"pd.unpack into {type} of {shown(value)}",
            "it takes a register of 32, 64 or 128 bits, and a narrower type",
        )
    if type.bits == 8:
        return tuple(bitcast(byte, type) for byte in _bytes_of(value))
    ((registers, _),) = emit(f"mov.b{bits}", (value,), count=bits // type.bits, type=type)
    return tuple(current("pd.unpack").value(registers, type))
