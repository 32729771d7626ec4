"""Integrals by adaptive quadrature: a recursive function, which calls a function that another PTX module defines.

    python examples/14_functions.py                  # on the emulator
    python examples/14_functions.py --device cuda    # on the GPU

Each thread integrates over its own interval. If three points do not approximate the curve well enough, both halves are
integrated recursively, so the function stays a function in the PTX. The integrand is PTX, as nvcc -ptx prints a
`__device__` function; pd.link makes one program of the two, for the emulator and for the GPU.

New here: pd.function, pd.extern and pd.link.
"""

import numpy as np
from arrays import check, to_device

import ptxdsl as pd
from ptxdsl import f32, ptr, u32

THREADS, DEEPEST = 64, 6
WITCH = """
.version 7.0
.target sm_80
.address_size 64
.visible .func (.param .b32 result) curve(.param .b32 x)
{
    .reg .f32 %x, %y;
    ld.param.f32 %x, [x];
    fma.rn.f32 %y, %x, %x, 0f3F800000;    // 1 + x * x
    rcp.rn.f32 %y, %y;
    st.param.f32 [result], %y;
    ret;
}
"""
curve = pd.extern("curve", (f32,), f32)


@pd.function
def simpson(left: f32, right: f32, at_left: f32, at_right: f32, depth: u32) -> f32:
    """Integrate from left to right; the values at both ends are known."""
    middle, width = (left + right) * 0.5, right - left
    at_middle = curve(middle)
    trapezoid, parabola = width * (at_left + at_right) * 0.5, width * (at_left + 4.0 * at_middle + at_right) / 6.0
    pd.return_((depth == 0) | (abs(trapezoid - parabola) < 1e-6), value=parabola)
    below = simpson(left, middle, at_left, at_middle, depth - 1)
    return below + simpson(middle, right, at_middle, at_right, depth - 1)


@pd.kernel
def integral(bounds: ptr[f32], results: ptr[f32], n: u32):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        left, right = bounds[i], bounds[i + 1]
        results[i] = simpson(left, right, curve(left), curve(right), DEEPEST)


PROGRAM = pd.link(integral, WITCH)


def example_integral(rng):
    return 1, THREADS, np.linspace(-5, 5, 21, dtype=np.float32), np.zeros(20, np.float32), 20


def main():
    bounds = np.linspace(-5, 5, 101, dtype=np.float32)
    parts = len(bounds) - 1
    results = to_device(np.zeros(parts, np.float32))
    PROGRAM["integral"][-(-parts // THREADS), THREADS](to_device(bounds), results, parts)
    check("integral", results, np.diff(np.arctan(bounds.astype(np.float64))), 1e-5)


if __name__ == "__main__":
    main()
