"""Arithmetic in f16 and bf16, scalar and packed (PTX ISA, "Half Precision Floating Point Instructions").

Semantics are inherited from the f32 instruction; only the forms differ.
"""

from __future__ import annotations

from .floating import (
    AbsFloat,
    AddFloat,
    Ex2,
    Fma,
    MaxFloat,
    MinFloat,
    MulFloat,
    NegFloat,
    SubFloat,
    Tanh,
    both_or_none,
)
from .form import Form

F16, BF16 = "f16 f16x2", "bf16 bf16x2"
XORSIGN = {"xorsign": ("7.2", 86)}


class AddHalf(AddFloat):
    """Add two half-precision values: d = a + b."""

    forms = (
        Form("add{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd="rn", type=F16, ptx="4.2", sm=53),
        Form("add{.rnd}.type d=type, a:type, b:type", rnd="rn", type=BF16, ptx="7.8", sm=90),
    )


class SubHalf(SubFloat):
    """Subtract one half-precision value from another: d = a - b."""

    forms = (
        Form("sub{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd="rn", type=F16, ptx="4.2", sm=53),
        Form("sub{.rnd}.type d=type, a:type, b:type", rnd="rn", type=BF16, ptx="7.8", sm=90),
    )


class MulHalf(MulFloat):
    """Multiply two half-precision values: d = a * b."""

    forms = (
        Form("mul{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd="rn", type=F16, ptx="4.2", sm=53),
        Form("mul{.rnd}.type d=type, a:type, b:type", rnd="rn", type=BF16, ptx="7.8", sm=90),
    )


class FmaHalf(Fma):
    """Fused multiply-add in half precision: d = a * b + c, rounded once; .relu clamps to at least 0."""

    forms = (
        Form("fma.rnd{.ftz}{.sat}.type d=type, a:type, b:type, c:type", rnd="rn", type=F16, ptx="4.2", sm=53),
        Form("fma.rnd{.ftz}.relu.type d=type, a:type, b:type, c:type", rnd="rn", type=F16, ptx="7.0", sm=80),
        Form("fma.rnd{.relu}.type d=type, a:type, b:type, c:type", rnd="rn", type=BF16, ptx="7.0", sm=80),
    )


class NegHalf(NegFloat):
    """Negate a half-precision value: d = -a."""

    forms = (
        Form("neg{.ftz}.type d=type, a:type", type=F16, ptx="6.0", sm=53),
        Form("neg.type d=type, a:type", type=BF16, ptx="7.0", sm=80),
    )


class AbsHalf(AbsFloat):
    """Take the absolute value of a half-precision value: d = |a|."""

    forms = (
        Form("abs{.ftz}.type d=type, a:type", type=F16, ptx="6.5", sm=53),
        Form("abs.type d=type, a:type", type=BF16, ptx="7.0", sm=80),
    )


class MinHalf(MinFloat):
    """Take the minimum of a and b; .xorsign.abs: the minimum of |a|, |b|, with the XOR of their signs."""

    forms = (
        Form(
            "min{.ftz}{.NaN}{.xorsign}{.abs}.type d=type, a:type, b:type",
            type=F16, ptx="7.0", sm=80, needs=XORSIGN, when=both_or_none,
        ),
        Form(
            "min{.NaN}{.xorsign}{.abs}.type d=type, a:type, b:type",
            type=BF16, ptx="7.0", sm=80, needs=XORSIGN, when=both_or_none,
        ),
    )  # fmt: skip


class MaxHalf(MaxFloat):
    """Take the maximum of a and b; .xorsign.abs: the maximum of |a|, |b|, with the XOR of their signs."""

    forms = (
        Form(
            "max{.ftz}{.NaN}{.xorsign}{.abs}.type d=type, a:type, b:type",
            type=F16, ptx="7.0", sm=80, needs=XORSIGN, when=both_or_none,
        ),
        Form(
            "max{.NaN}{.xorsign}{.abs}.type d=type, a:type, b:type",
            type=BF16, ptx="7.0", sm=80, needs=XORSIGN, when=both_or_none,
        ),
    )  # fmt: skip


class TanhHalf(Tanh):
    """Approximate the hyperbolic tangent of a half-precision value."""

    forms = (
        Form("tanh.approx.type d=type, a:type", type=F16, ptx="7.0", sm=75),
        Form("tanh.approx.type d=type, a:type", type=BF16, ptx="7.8", sm=90),
    )


class Ex2Half(Ex2):
    """Approximate 2 raised to the power of a half-precision value."""

    forms = (
        Form("ex2.approx.type d=type, a:type", type=F16, ptx="7.0", sm=75),
        Form("ex2.approx.ftz.type d=type, a:type", type=BF16, ptx="7.8", sm=90),
    )
