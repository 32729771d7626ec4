"""Float32 as tensor cores read it: tf32, of which they look at the upper bits alone."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl import f32
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.value import Var

SIGN_AND_EXPONENT = 0xFF800000  # of an f32
HALF_TF32 = 2.0**-11  # of 1.0: half the distance to the next tf32


def round_to_tf32(register: Scalar, out: Var | None = None) -> Scalar:
    """What tensor cores, which cut off its low bits, read as the nearest tf32, half-way cases away from zero: adds half
    of the last bit that they look at.

    cvt.rna.tf32 does the same, at a rate that would bound the whole product. Infinities and NaN stay what they are.
    """
    power = pd.ptx.and_.b32(register, SIGN_AND_EXPONENT).bitcast(f32)
    rounded: Scalar = pd.ptx.fma.rn.f32(power, HALF_TF32, register.bitcast(f32), out=out)
    return rounded
