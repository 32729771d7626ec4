"""Memory accesses of neighbouring elements, as wide as the hardware allows, with small elements packed in registers;
and float32 as tensor cores read it: tf32, the upper 19 bits."""

from __future__ import annotations

from collections.abc import Sequence

import ptxdsl as pd
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var
from ptxdsl.types import Type, bf16, f32, u32

WIDEST = 16  # bytes of one access
UPPER_HALF = 0xFFFF0000  # of a register


def pack(values: Sequence[Scalar], type: Type) -> list[Scalar]:
    """Return values packed as in memory: two 16-bit floats a register, one of 32 or 64 bits, or a single 16-bit one;
    four 8-bit floats, or one or two in 16 bits. Conversions to 8 bits saturate."""
    if type.bits == 8:
        return _pack_bytes(values, type)
    if type.bits > 16:
        return [value if value.type is type else value.to(type) for value in values]
    if len(values) == 1:
        return [values[0].to(type)]
    return [pd.ptx(f"cvt.rn.{type}x2.f32", high, low) for low, high in zip(values[::2], values[1::2], strict=True)]


def _pack_bytes(values: Sequence[Scalar], type: Type) -> list[Scalar]:
    even = [*values, pd.cast(0, f32)] if len(values) % 2 else values
    pairs = [
        pd.ptx(f"cvt.rn.satfinite.{type}x2.f32", high, low) for low, high in zip(even[::2], even[1::2], strict=True)
    ]
    if len(pairs) == 1:
        return pairs
    return [pd.pack(low, high) for low, high in zip(pairs[::2], pairs[1::2], strict=True)]


def unpack(words: Sequence[Scalar], type: Type) -> list[Scalar]:
    """Return the values of packed registers."""
    if type.bits > 16 or words[0].type.bits == 16:
        return [*words]
    return [half for word in words for half in pd.unpack(word, type)]


def widened(words: Sequence[Scalar], type: Type) -> list[Scalar]:
    """Return pairs of 16-bit floats as f32: a bf16 is the upper half of an f32."""
    if type is bf16:
        bits = [word.bitcast(u32) for word in words]
        return [half.bitcast(f32) for word in bits for half in (word << 16, word & UPPER_HALF)]
    return [value.to(f32) for value in unpack(words, type)]


def read(pointer: PointerValue, count: int, type: Type, scalar: Type, most: int = WIDEST) -> list[Scalar]:
    """Read `count` neighbouring elements, converted to `scalar`, in accesses of at most `most` bytes."""
    each = max(1, min(count, most // type.bytes))
    words = [unpack(read_words(pointer + i, each, type), type) for i in range(0, count, each)]
    return [value if value.type is scalar else value.to(scalar) for values in words for value in values]


def _access(pointer: PointerValue, count: int) -> tuple[str, str, int, int]:
    """Return (space, type in the mnemonic, registers of an access, accesses) for `count` elements of 4 bytes or more in
    all."""
    type = pointer.element
    kind = type if type.bits > 16 else pd.b32
    words = count * type.bytes // kind.bytes
    each = min(words, WIDEST // kind.bytes)
    return pointer.space, str(kind), each, words // each


def read_words(pointer: PointerValue, count: int, type: Type) -> list[Scalar]:
    """Read `count` neighbouring elements into registers packed as by `pack`."""
    if count * type.bytes < 4:
        return [pointer.load()]
    space, kind, each, accesses = _access(pointer, count)
    step = count // accesses
    if each == 1:
        return [pd.ptx(f"ld.{space}.{kind}", pointer + i * step) for i in range(accesses)]
    return [word for i in range(accesses) for word in pd.ptx(f"ld.{space}.v{each}.{kind}", pointer + i * step)]


def write_words(pointer: PointerValue, words: Sequence[Scalar], elements: int = 1) -> None:
    """Write registers that `pack` or `read_words` returned; `elements` is the number in a register that is half
    full."""
    if words[0].type.bits < 32:
        if pointer.element.bits == 8:
            pd.ptx(f"st.{pointer.space}.b{8 * elements}", pointer, words[0])
        else:
            pointer.store(words[0])
        return
    count = len(words) * words[0].type.bits // pointer.element.bits
    space, kind, each, accesses = _access(pointer, count)
    for i in range(accesses):
        group = words[i * each :][:each]
        vector, value = (f".v{each}", group) if each > 1 else ("", group[0])
        pd.ptx(f"st.{space}{vector}.{kind}", pointer + i * (count // accesses), value)


SIGN_AND_EXPONENT = 0xFF800000  # of an f32
HALF_TF32 = 2.0**-11  # half the distance from 1.0 to the next tf32


def round_to_tf32(register: Scalar, out: Var | None = None) -> Scalar:
    """Return a float32 that tensor cores, which ignore the low bits, read as the nearest tf32, with ties away from
    zero: half of the last significant bit is added.

    cvt.rna.tf32 does the same at a rate that would limit the whole product. Infinities and NaN are preserved.
    """
    power = pd.ptx.and_.b32(register, SIGN_AND_EXPONENT).bitcast(f32)
    rounded: Scalar = pd.ptx.fma.rn.f32(power, HALF_TF32, register.bitcast(f32), out=out)
    return rounded
