"""Arithmetic in f16 and bf16, single and in pairs (PTX ISA, "Half Precision Floating Point Instructions").

The meaning is that of the f32 instruction; only the forms differ.
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
    """d = a + b."""

    forms = (
        Form("add{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd="rn", type=F16, ptx="4.2", sm=53),
        Form("add{.rnd}.type d=type, a:type, b:type", rnd="rn", type=BF16, ptx="7.8", sm=90),
    )


class SubHalf(SubFloat):
    """d = a - b."""

    forms = (
        Form("sub{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd="rn", type=F16, ptx="4.2", sm=53),
        Form("sub{.rnd}.type d=type, a:type, b:type", rnd="rn", type=BF16, ptx="7.8", sm=90),
    )


class MulHalf(MulFloat):
    """d = a * b."""

    forms = (
        Form("mul{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd="rn", type=F16, ptx="4.2", sm=53),
        Form("mul{.rnd}.type d=type, a:type, b:type", rnd="rn", type=BF16, ptx="7.8", sm=90),
    )


class FmaHalf(Fma):
    """d = a * b + c, rounded once; with .relu at least 0."""

    forms = (
        Form("fma.rnd{.ftz}{.sat}.type d=type, a:type, b:type, c:type", rnd="rn", type=F16, ptx="4.2", sm=53),
        Form("fma.rnd{.ftz}.relu.type d=type, a:type, b:type, c:type", rnd="rn", type=F16, ptx="7.0", sm=80),
        Form("fma.rnd{.relu}.type d=type, a:type, b:type, c:type", rnd="rn", type=BF16, ptx="7.0", sm=80),
    )


class NegHalf(NegFloat):
    """d = -a."""

    forms = (
        Form("neg{.ftz}.type d=type, a:type", type=F16, ptx="6.0", sm=53),
        Form("neg.type d=type, a:type", type=BF16, ptx="7.0", sm=80),
    )


class AbsHalf(AbsFloat):
    """d = |a|."""

    forms = (
        Form("abs{.ftz}.type d=type, a:type", type=F16, ptx="6.5", sm=53),
        Form("abs.type d=type, a:type", type=BF16, ptx="7.0", sm=80),
    )


class MinHalf(MinFloat):
    """d = the lesser of a and b; with .xorsign.abs, of their sizes, negative where their signs differ."""

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
    """d = the greater of a and b; with .xorsign.abs, of their sizes, negative where their signs differ."""

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
    """d = the hyperbolic tangent of a."""

    forms = (
        Form("tanh.approx.type d=type, a:type", type=F16, ptx="7.0", sm=75),
        Form("tanh.approx.type d=type, a:type", type=BF16, ptx="7.8", sm=90),
    )


class Ex2Half(Ex2):
    """d = 2 to the power of a."""

    forms = (
        Form("ex2.approx.type d=type, a:type", type=F16, ptx="7.0", sm=75),
        Form("ex2.approx.ftz.type d=type, a:type", type=BF16, ptx="7.8", sm=90),
    )
