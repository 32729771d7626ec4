"""Floating-point arithmetic in f32 and f64 (PTX ISA, "Floating Point Instructions").

The half-precision instructions share these base classes, which decode the bits of any floating type to values, compute,
and round once to the type of d.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..types import Type, f16, f32, f64, lanes
from . import numerics, special_functions
from .form import Form, Values
from .numerics import Array, odd_sum
from .opcode import Op, Opcode

MODES = "rn rz rm rp"
EARLY = {"ftz": ("1.4", 10), "rm": ("2.0", 20), "rp": ("2.0", 20)}
DIRECTED = {"rm": ("1.2", 13), "rp": ("1.2", 13)}
DIRECTED_LATER = {mode: ("2.0", 20) for mode in ("rz", "rm", "rp")}
SIGNS = {"NaN": ("7.0", 80), "xorsign": ("7.2", 86), "ftz": ("1.4", 10)}


def both_or_none(i: Values) -> bool:
    """True if .xorsign and .abs are both present or both absent."""
    return bool(i.xorsign) == bool(i.abs)


def types_of(i: Opcode) -> list[Type]:
    """Return the types of d and of the inputs."""
    return [operand.type for operand in i.operands if operand.type is not None]


class Floating(Op):
    """Base of instructions whose result is rounded once."""

    @abstractmethod
    def compute(self, i: Opcode, *values: Array) -> Array:
        """Return d before rounding; values are f32, or f64 for f64."""

    def run(self, i: Opcode, *inputs: Array) -> Array:
        chosen, (d, *types) = i.values.get, types_of(i)
        values = [numerics.decode(x, t) for x, t in zip(inputs, types, strict=True)]
        if chosen("ftz"):
            values = [numerics.flush(v, t) for v, t in zip(values, types, strict=True)]
        result = self.compute(i, *values)
        rnd = chosen("rnd") or "rn"
        if chosen("ftz"):
            result = numerics.flush(result, d, rnd)
        if chosen("sat"):
            result = numerics.saturate(result)
        if chosen("relu"):
            result = numerics.relu(result)
        return numerics.encode(result, d, rnd)


class Rounded(Floating):
    """Base of instructions that are correctly rounded in every rounding mode.

    `nearest` computes in f32 or f64, rounded to nearest. `wide` computes in f64, so that a narrower type needs one more
    rounding. `exact` is the exact result minus a given one, as a fraction. `addends` returns the addends of a sum.
    """

    nearest: ClassVar[Callable[..., Array]]
    wide: ClassVar[Callable[..., Array]]
    exact: ClassVar[Callable[..., Any]]
    addends: ClassVar[Callable[..., tuple[Array, Array]] | None] = None

    def compute(self, i: Opcode, *values: Array) -> Array:
        element, rnd = lanes(types_of(i)[0])[0], i.values.get("rnd") or "rn"
        result = type(self).nearest(*values) if element is f64 or (element is f32 and rnd == "rn") else None
        if result is None or (i.values.get("ftz") and (np.abs(result) == 2.0**-126).any()):
            values = tuple(v.astype(np.float64) for v in values)
            result = type(self).wide(*values)
        error: Any = 0
        if element is f64 and rnd != "rn":
            error = numerics.residual(type(self).exact, result, *values)
            result = numerics.step(result, error, rnd)
        addends = type(self).addends
        if rnd == "rm" and addends is not None:
            x, y = addends(*values)
            # Rounded down, a sum that is exactly zero is -0 unless both addends are +0.
            result = np.where((result == 0) & (error == 0) & (np.signbit(x) | np.signbit(y)), -0.0, result)
        return result


class AddFloat(Rounded):
    """Add two values: d = a + b."""

    forms = (
        Form("add{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd=MODES, type="f32", needs=EARLY),
        Form("add{.rnd}.type d=type, a:type, b:type", rnd=MODES, type="f64", needs=DIRECTED),
        Form("add{.rnd}{.ftz}.type d=type, a:type, b:type", rnd=MODES, type="f32x2", ptx="8.6", sm=100),
        Form("add{.rnd}{.sat}.f32.type d=f32, a:type, c:f32", rnd=MODES, type="f16 bf16", ptx="8.6", sm=100),
    )
    nearest, wide = np.add, staticmethod(odd_sum)
    exact = staticmethod(lambda r, a, b: a + b - r)
    addends = staticmethod(lambda a, b: (a, b))


class SubFloat(Rounded):
    """Subtract one value from another: d = a - b."""

    forms = (
        Form("sub{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd=MODES, type="f32", needs=EARLY),
        Form("sub{.rnd}.type d=type, a:type, b:type", rnd=MODES, type="f64", needs=DIRECTED),
        Form("sub{.rnd}{.ftz}.type d=type, a:type, b:type", rnd=MODES, type="f32x2", ptx="8.6", sm=100),
        Form("sub{.rnd}{.sat}.f32.type d=f32, a:type, c:f32", rnd=MODES, type="f16 bf16", ptx="8.6", sm=100),
    )
    nearest, wide = np.subtract, staticmethod(lambda a, b: odd_sum(a, -b))
    exact = staticmethod(lambda r, a, b: a - b - r)
    addends = staticmethod(lambda a, b: (a, -b))


class MulFloat(Rounded):
    """Multiply two values: d = a * b."""

    forms = (
        Form("mul{.rnd}{.ftz}{.sat}.type d=type, a:type, b:type", rnd=MODES, type="f32", needs=EARLY),
        Form("mul{.rnd}.type d=type, a:type, b:type", rnd=MODES, type="f64", needs=DIRECTED),
        Form("mul{.rnd}{.ftz}.type d=type, a:type, b:type", rnd=MODES, type="f32x2", ptx="8.6", sm=100),
    )
    nearest = wide = np.multiply
    exact = staticmethod(lambda r, a, b: a * b - r)


class Fma(Rounded):
    """Fused multiply-add: d = a * b + c, rounded once."""

    forms = (
        Form("fma.rnd{.ftz}{.sat}.type d=type, a:type, b:type, c:type", rnd=MODES, type="f32", ptx="2.0", sm=20),
        Form(
            "fma.rnd.type d=type, a:type, b:type, c:type",
            rnd=MODES, type="f64", ptx="1.4", needs={"rm": ("1.4", 13), "rp": ("1.4", 13)},
        ),
        Form("fma.rnd{.ftz}.type d=type, a:type, b:type, c:type", rnd=MODES, type="f32x2", ptx="8.6", sm=100),
        Form("fma.rnd{.sat}.f32.type d=f32, a:type, b:type, c:f32", rnd=MODES, type="f16 bf16", ptx="8.6", sm=100),
    )  # fmt: skip
    nearest, wide = staticmethod(numerics.fma), staticmethod(lambda a, b, c: odd_sum(a * b, c))
    exact = staticmethod(lambda r, a, b, c: a * b + c - r)
    addends = staticmethod(lambda a, b, c: (a * b, c))


class MadFloat(Fma):
    """Multiply-add: d = a * b + c, rounded once; identical to fma."""

    forms = (
        Form("mad.rnd{.ftz}{.sat}.type d=type, a:type, b:type, c:type", rnd=MODES, type="f32", ptx="2.0", sm=20),
        Form(
            "mad{.ftz}{.sat}.type d=type, a:type, b:type, c:type",
            type="f32", needs={"ftz": ("1.4", 10)}, until=20, note="write mad.rn.f32",
        ),
        Form("mad.rnd.type d=type, a:type, b:type, c:type", rnd=MODES, type="f64", needs=DIRECTED),
    )  # fmt: skip


class DivFloat(Rounded):
    """Divide two values: d = a / b."""

    forms = (
        Form("div.rnd{.ftz}.type d=type, a:type, b:type", rnd=MODES, type="f32", ptx="2.0", sm=20),
        Form("div.rnd.type d=type, a:type, b:type", rnd=MODES, type="f64", needs=DIRECTED_LATER),
    )
    nearest = wide = np.divide
    exact = staticmethod(lambda r, a, b: a / b - r)


class Rcp(Rounded):
    """Take the reciprocal: d = 1 / a."""

    forms = (
        Form("rcp.rnd{.ftz}.type d=type, a:type", rnd=MODES, type="f32", ptx="2.0", sm=20),
        Form("rcp.rnd.type d=type, a:type", rnd=MODES, type="f64", ptx="1.4", needs=DIRECTED_LATER),
    )
    nearest = wide = np.reciprocal
    exact = staticmethod(lambda r, a: 1 / a - r)


class Sqrt(Rounded):
    """Take the square root of a."""

    forms = (
        Form("sqrt.rnd{.ftz}.type d=type, a:type", rnd=MODES, type="f32", ptx="2.0", sm=20),
        Form("sqrt.rnd.type d=type, a:type", rnd=MODES, type="f64", needs=DIRECTED_LATER),
    )
    nearest = wide = np.sqrt
    exact = staticmethod(lambda r, a: a - r * r)


class Approximate(Floating):
    """Base of the approximate functions: computed in f64 and rounded to nearest, within every bound of the manual."""

    function: ClassVar[Callable[..., Array]]
    as_on_h200: ClassVar[Callable[[Array, bool], Array] | None] = None

    def compute(self, i: Opcode, *values: Array) -> Array:
        return type(self).function(*(v.astype(np.float64, copy=False) for v in values))

    def run_h200(self, i: Opcode, *inputs: Array) -> Array:
        """Compute in f32 with the special function unit; f16 and bf16 results are truncated."""
        unit, type_ = type(self).as_on_h200, types_of(i)[0]
        if unit is None or type_ is f64:
            return self.run(i, *inputs)
        result = unit(numerics.decode(inputs[0], type_), type_ is not f32 or bool(i.values.get("ftz")))
        if lanes(type_)[0] is f16:
            result = np.where(np.abs(result) >= 2.0**16, np.copysign(np.inf, result), result)
        return numerics.encode(result, type_, "rn" if type_ is f32 else "rz")


class DivApproximate(Approximate):
    """Divide approximately: d = a / b, within 2 ulp; .approx gives 0 for 2^126 < |b| < 2^128."""

    forms = (Form("div.how{.ftz}.f32 d=f32, a:f32, b:f32", how="approx full", ptx="1.4"),)
    function = np.divide

    def compute(self, i: Opcode, *values: Array) -> Array:
        a, b = values
        if i.how == "approx":
            b = np.where(np.abs(b) > 2.0**126, np.copysign(np.float32(np.inf), b), b)
        return super().compute(i, a, b)

    def run_h200(self, i: Opcode, *inputs: Array) -> Array:
        a, b = inputs
        return special_functions.divided(a, b, i.how == "full", bool(i.ftz))


class RcpApproximate(Approximate):
    """Approximate the reciprocal: d = 1 / a, within 1 ulp."""

    forms = (Form("rcp.approx{.ftz}.f32 d=f32, a:f32", ptx="1.4"),)
    function = np.reciprocal
    as_on_h200 = staticmethod(special_functions.rcp)


class SqrtApproximate(Approximate):
    """Approximate the square root of a, with a relative error of 2^-23."""

    forms = (Form("sqrt.approx{.ftz}.f32 d=f32, a:f32", ptx="1.4"),)
    function = np.sqrt
    as_on_h200 = staticmethod(special_functions.sqrt)


class Rsqrt(Approximate):
    """Approximate the reciprocal square root of a, with a relative error of 2^-22.9."""

    forms = (
        Form("rsqrt.approx{.ftz}.f32 d=f32, a:f32", ptx="1.4"),
        Form("rsqrt.approx.f64 d=f64, a:f64", ptx="1.4"),
    )
    function = staticmethod(lambda a: np.reciprocal(np.sqrt(a)))
    as_on_h200 = staticmethod(special_functions.rsqrt)


class Gross(Approximate):
    """Base of the f64 functions that read and write only the upper 32 bits of a value."""

    of_words: ClassVar[Callable[[Array], Array]]

    def run(self, i: Opcode, *inputs: Array) -> Array:
        return _high_word(super().run(i, *map(_high_word, inputs)))

    def run_h200(self, i: Opcode, *inputs: Array) -> Array:
        """Compute with the f32 special function unit on the upper words."""
        high = (inputs[0].view(np.uint64) >> np.uint64(32)).astype(np.uint32)
        return (type(self).of_words(high).astype(np.uint64) << np.uint64(32)).view(np.float64)


def _high_word(x: Array) -> Array:
    return (x.view(np.uint64) & 0xFFFFFFFF00000000).view(np.float64)


class RcpGross(Gross, RcpApproximate):
    """Approximate the reciprocal d = 1 / a; only the upper 32 bits of f64 values are used."""

    forms = (Form("rcp.approx.ftz.f64 d=f64, a:f64", ptx="2.1", sm=20),)
    of_words = staticmethod(special_functions.rcp_gross)


class RsqrtGross(Gross, Rsqrt):
    """Approximate the reciprocal square root of a; only the upper 32 bits of f64 values are used."""

    forms = (Form("rsqrt.approx.ftz.f64 d=f64, a:f64", ptx="4.0", sm=20),)
    of_words = staticmethod(special_functions.rsqrt_gross)


class Sin(Approximate):
    """Approximate the sine of a, in radians."""

    forms = (Form("sin.approx{.ftz}.f32 d=f32, a:f32", ptx="1.4"),)
    function = np.sin
    as_on_h200 = staticmethod(special_functions.sin)


class Cos(Approximate):
    """Approximate the cosine of a, in radians."""

    forms = (Form("cos.approx{.ftz}.f32 d=f32, a:f32", ptx="1.4"),)
    function = np.cos
    as_on_h200 = staticmethod(special_functions.cos)


class Lg2(Approximate):
    """Approximate the base-2 logarithm of a."""

    forms = (Form("lg2.approx{.ftz}.f32 d=f32, a:f32", ptx="1.4"),)
    function = np.log2
    as_on_h200 = staticmethod(special_functions.lg2)


class Ex2(Approximate):
    """Approximate 2 raised to the power a."""

    forms = (Form("ex2.approx{.ftz}.f32 d=f32, a:f32", ptx="1.4"),)
    function = np.exp2
    as_on_h200 = staticmethod(special_functions.ex2)


class Tanh(Approximate):
    """Approximate the hyperbolic tangent of a."""

    forms = (Form("tanh.approx.f32 d=f32, a:f32", ptx="7.0", sm=75),)
    function = np.tanh
    as_on_h200 = staticmethod(special_functions.tanh)


class AbsFloat(Floating):
    """Take the absolute value: d = |a|."""

    forms = (
        Form("abs{.ftz}.f32 d=f32, a:f32", needs={"ftz": ("1.4", 10)}),
        Form("abs.f64 d=f64, a:f64"),
    )

    def compute(self, i: Opcode, *values: Array) -> Array:
        return np.abs(*values)


class NegFloat(Floating):
    """Negate: d = -a."""

    forms = (
        Form("neg{.ftz}.f32 d=f32, a:f32", needs={"ftz": ("1.4", 10)}),
        Form("neg.f64 d=f64, a:f64"),
    )

    def compute(self, i: Opcode, *values: Array) -> Array:
        return np.negative(*values)


class Extreme(Floating):
    """Base of min and max: a NaN operand is ignored unless .NaN is given; -0 is less than +0."""

    @abstractmethod
    def pick(self, a: Array, b: Array) -> Array:
        """Return the elementwise minimum or maximum."""

    def compute(self, i: Opcode, *values: Array) -> Array:
        sizes = [np.abs(v) for v in values] if i.abs else values
        result = self.pick(*sizes[:2])
        if len(sizes) == 3:
            result = self.pick(result, sizes[2])
        if i.xorsign:
            result = np.where(np.signbit(values[0]) ^ np.signbit(values[1]), -result, result)
        if i.NaN:
            result = np.where(np.isnan(values).any(0), np.nan, result).astype(result.dtype)
        return result


class MinFloat(Extreme):
    """Take the minimum of a, b (and c); .xorsign.abs: the minimum of |a|, |b|, with the XOR of their signs."""

    forms = (
        Form(
            "min{.ftz}{.NaN}{.xorsign}{.abs}.type d=type, a:type, b:type",
            type="f32", needs=SIGNS, when=both_or_none,
        ),
        Form("min.type d=type, a:type, b:type", type="f64"),
        Form("min{.ftz}{.NaN}{.abs}.type d=type, a:type, b:type, c:type", type="f32", ptx="8.8", sm=100),
    )  # fmt: skip

    def pick(self, a: Array, b: Array) -> Array:
        return numerics.minimum(a, b)


class MaxFloat(Extreme):
    """Take the maximum of a, b (and c); .xorsign.abs: the maximum of |a|, |b|, with the XOR of their signs."""

    forms = (
        Form(
            "max{.ftz}{.NaN}{.xorsign}{.abs}.type d=type, a:type, b:type",
            type="f32", needs=SIGNS, when=both_or_none,
        ),
        Form("max.type d=type, a:type, b:type", type="f64"),
        Form("max{.ftz}{.NaN}{.abs}.type d=type, a:type, b:type, c:type", type="f32", ptx="8.8", sm=100),
    )  # fmt: skip

    def pick(self, a: Array, b: Array) -> Array:
        return numerics.maximum(a, b)


class Copysign(Op):
    """Copy the sign of a to the magnitude of b."""

    forms = (Form("copysign.type d=type, a:type, b:type", type="f32 f64", ptx="2.0", sm=20),)

    def run(self, i: Opcode, a: Array, b: Array) -> Array:
        return np.copysign(b, a)


def _subnormal(x: Array) -> Array:
    return (x != 0) & (np.abs(x) < np.finfo(x.dtype).smallest_normal)


TESTS: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
    "normal": lambda x: np.isfinite(x) & ~_subnormal(x),
    "subnormal": _subnormal,
}


class Testp(Op):
    """Test a floating-point property: finite, infinite, number, notanumber, normal (or zero), or subnormal."""

    forms = (Form("testp.test.type p=pred, a:type", test=tuple(TESTS), type="f32 f64", ptx="2.0", sm=20),)

    def run(self, i: Opcode, a: Array) -> Array:
        return TESTS[i.test](a)

    def ignores_guard(self, i: Opcode) -> bool:
        return True
