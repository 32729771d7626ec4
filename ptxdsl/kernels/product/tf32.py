"""Float32 as tensor cores read it: tf32, the upper 19 bits."""

from __future__ import annotations

import ptxdsl as pd
from ptxdsl import f32
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.value import Var

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
