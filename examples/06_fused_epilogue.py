"""A layer of a quantised network in one kernel: gelu(x @ w * scales + bias) of int8 matrices, written as f16.

    python examples/06_fused_epilogue.py [--device cuda]

gemm() applies a function to each element of the product before it is written, together with the matching element of
each operand: one value a row, one a column, or a matrix. The function is traced into the kernel, so the product is
never stored and reloaded. x has one scale per row, w one per column.

New here: gemm() with a custom epilogue, per_row and per_column.
"""

import numpy as np
from arrays import ON_GPU, check, to_device

from ptxdsl.kernels.call.launching.launches import recorded_launch
from ptxdsl.kernels.epilogue import gelu, per_column, per_row
from ptxdsl.kernels.gemm import gemm

ROWS, INPUTS, OUTPUTS = (4096, 4096, 4096) if ON_GPU else (100, 96, 72)


def layer(total, scale_x, scale_w, bias):
    return gelu(total * scale_x * scale_w + bias)


def quantised(rng, shape, axis):
    """Return numbers near N(0,1) as int8, and the scale of each line along `axis`."""
    exact = rng.standard_normal(shape)
    scales = np.abs(exact).max(axis=axis) / 127
    whole = np.round(exact / np.expand_dims(scales, axis)).astype(np.int8)
    return whole, scales.astype(np.float32)


def example_gemm(rng):
    """Return the launch of this call of gemm(), for `ptxdsl check`."""
    x, scale_x = quantised(rng, (100, 96), 1)
    w, scale_w = quantised(rng, (96, 72), 0)
    vectors = per_row(scale_x), per_column(scale_w), per_column(rng.standard_normal(72, np.float32))
    return recorded_launch(lambda: gemm(x, w, out=np.zeros((100, 72), np.float16), epilogue=layer, operands=vectors))


def main():
    rng = np.random.default_rng(0)
    x, scale_x = quantised(rng, (ROWS, INPUTS), 1)
    w, scale_w = quantised(rng, (INPUTS, OUTPUTS), 0)
    bias = rng.standard_normal(OUTPUTS).astype(np.float32)

    x_there, w_there, out = to_device(x), to_device(w), to_device(np.zeros((ROWS, OUTPUTS), np.float16))
    vectors = per_row(to_device(scale_x)), per_column(to_device(scale_w)), per_column(to_device(bias))
    gemm(x_there, w_there, out=out, epilogue=layer, operands=vectors)

    total = (x.astype(np.float32) @ w.astype(np.float32)).astype(np.float64) * scale_x[:, None] * scale_w + bias
    expected = total / (1 + np.exp(-np.clip(1.5957691216057308 * (total + 0.044715 * total**3), -99, 99)))
    size = f"{ROWS} x {OUTPUTS} x {INPUTS}"
    check(f"gelu(x @ w * scales + bias) of int8, {size}", out, expected, 2.0**-11 * abs(expected).max() + 1e-3)


if __name__ == "__main__":
    main()
