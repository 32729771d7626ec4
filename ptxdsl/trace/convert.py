"""Conversions between types: the instruction sequence and its rounding."""

from __future__ import annotations

from dataclasses import dataclass

from ptxdsl.types import Type, b16, b32, bf16, f16, f32, f64, pred, tf32, u32

FLOATS = (f16, bf16, f32, f64, tf32)


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion instruction: its mnemonic, result type, and constant second operands."""

    mnemonic: str
    type: Type
    constants: tuple[int, ...] = ()


def conversions(source: Type, target: Type, sm: int) -> list[Conversion]:
    """Return the instructions that convert `source` to `target`; empty if the bits stay the same.

    Integers are truncated or extended by the source's sign; floats convert to integers toward zero, everything else
    rounds to nearest. Raises ValueError with the reason if no conversion exists.
    """
    if target is pred:
        raise ValueError("predicates are made by comparisons: `x != 0`")
    if target.kind not in "usf" or target.bits < 8:
        raise ValueError(f"values of type {target} are made by .bitcast, or by pd.pack of their elements")
    if source is pred:
        raise ValueError("predicates become integers and floats of 16 bits and more")
    if source.kind not in "usf":
        raise ValueError("bits have no numeric value; interpret them by .bitcast first")
    if source.is_integer and target.is_integer:
        return [] if source.bits == target.bits else [_cvt(target, source)]
    if source is bf16 and target is not bf16:
        return [*_from_bf16(sm), *(conversions(f32, target, sm) if target is not f32 else [])]
    if target is bf16 and source not in (f32, f64):
        return [*conversions(source, f32, sm), _cvt(bf16, f32, ".rn")]
    return [_direct(source, target)]


def _cvt(target: Type, source: Type, rounding: str = "") -> Conversion:
    return Conversion(f"cvt{rounding}.{target}.{source}", target)


def _direct(source: Type, target: Type) -> Conversion:
    if (source not in FLOATS and source.is_float) or (target not in FLOATS and target.is_float):
        raise ValueError("8-bit floats are converted in pairs: write pd.ptx.cvt with the x2 type")
    if tf32 in (source, target):
        if source is f32:
            return _cvt(tf32, f32, ".rna")
        if target is f32:
            return Conversion("mov.b32", f32)
        raise ValueError("tf32 is converted from and to f32 alone")
    if source is f64 and target is bf16:
        raise ValueError("it would round twice; write .to(f32).to(bf16) to have that")
    if source.is_float and target.is_integer:
        return _cvt(target, source, ".rzi")
    widening = source.is_float and source.bits < target.bits
    return _cvt(target, source, "" if widening else ".rn")


def _from_bf16(sm: int) -> list[Conversion]:
    """Convert bf16, the upper half of an f32: cvt.f32.bf16 requires sm_90."""
    if sm >= 90:
        return [_cvt(f32, bf16)]
    return [
        Conversion("mov.b16", b16),
        Conversion("cvt.u32.u16", u32),
        Conversion("shl.b32", b32, (16,)),
        Conversion("mov.b32", f32),
    ]
