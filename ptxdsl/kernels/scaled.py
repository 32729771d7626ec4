"""Scaled 8-bit GEMM on sm_90a: one product or a batch, groups of rows, and groups along K.

The kernels are those of unscaled products, with scales as a trait of their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from ptxdsl.kernels.call.call import flag, launch
from ptxdsl.kernels.call.elsewhere import public_product
from ptxdsl.kernels.call.scaled import ScaledCall, ScaledRaggedCall, ScaledRaggedKCall
from ptxdsl.kernels.config import NO_OPERANDS, GemmConfig
from ptxdsl.kernels.gemm import KERNELS
from ptxdsl.kernels.ragged import KERNELS as RAGGED
from ptxdsl.kernels.ragged_k import KERNELS as RAGGED_K


@public_product
def scaled_gemm(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    c: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    config: GemmConfig | Literal["tune"] | None = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """Compute out = epilogue(alpha·((scale_a·a) @ (scale_b·b)) + beta·c, *operands) for 8-bit floats; return out.

    Parameters
    ----------
    a, b : array of shape (M, K) and (K, N)
        float8_e4m3fn or float8_e5m2, in any combination; or batches of them, as in `gemm`. A row-major `a` and a
        column-major `b` whose leading dimensions are multiples of 16 bytes are read in place; other layouts are copied
        to a workspace first. M, N and K may be 0.
    scale_a, scale_b : float32 array
        One scale per tensor, of shape () or (1,); or one per row, (M, 1), and one per column, (1, N), each contiguous
        (row scales are contiguous if `out` is column-major); or one per 128 elements of K, (M, ⌈K/128⌉), and one per
        128×128 block of `b`, (⌈K/128⌉, ⌈N/128⌉). Three-dimensional for batches. With block scales, partial products
        over 128 elements of K are scaled and accumulated in float32.
    c, alpha, beta, epilogue, operands
        As in `gemm`.
    out : array of shape (M, N), optional
        float32 by default; also float16, bfloat16, or an 8-bit type, which saturates. Row-major, or column-major
        without block scales.
    config : GemmConfig or "tune", optional
        A configuration with atom="wgmma"; persistent by default. With block scales, a tile has 64 or 128 rows and up to
        192 columns, or 256, or up to 32 rows with swap_ab, and no ping-pong. "tune" measures candidates as in `gemm`,
        with one result for each kind of scale.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or on another GPU than sm_90a. Nothing is written.

    Examples
    --------
    >>> scale_a, scale_b = np.full(1, 0.5, np.float32), np.full(1, 2.0, np.float32)
    >>> out = scaled_gemm(a, b, scale_a, scale_b)
    """
    arrays, options = (out, a, b, scale_a, scale_b, c), (out is None, c is None)
    return launch(ScaledCall, KERNELS, arrays, config, options, (alpha, beta), epilogue, operands)


@public_product
def scaled_gemm_ragged(
    a: Any,
    b: Any,
    offsets: Any,
    scale_a: Any,
    scale_b: Any,
    *,
    rows: Any = None,
    out_rows: Any = None,
    out: Any = None,
    config: GemmConfig | Literal["tune"] | None = None,
    validate: bool = False,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """Compute out[rows of i] = epilogue((scale_a·a)[rows of i] @ (scale_b[i]·b[i]), *operands) for each group; return
    out.

    Parameters
    ----------
    a : array of shape (rows, K)
    b : array of shape (groups, K, N)
        float8 types and layouts as in `scaled_gemm`; matrices of `b` are not copied and must be column-major.
    offsets, rows, out_rows, validate, epilogue, operands
        As in `grouped_gemm_ragged`.
    scale_a, scale_b : float32 array
        One scale per tensor; or (rows, 1) and (groups, 1, N); or (rows, ⌈K/128⌉) and (groups, ⌈K/128⌉, ⌈N/128⌉). With
        `rows`, row n uses a[rows[n]] and its scales, which are then contiguous and gathered to a workspace first.
    out : array of shape (rows, N), optional
        Types as in `scaled_gemm`.
    config : GemmConfig or "tune", optional
        As in `scaled_gemm`.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or on another GPU than sm_90a. Nothing is written.

    Examples
    --------
    >>> ends = np.array([3, 3, 10], np.int32)  # groups of 3, 0 and 7 rows
    >>> out = scaled_gemm_ragged(tokens, weights, ends, scale_a, scale_b)
    """
    options = out is None, "ragged", flag("validate", validate), rows is None, out_rows is None
    arrays = out, a, b, offsets, rows, out_rows, scale_a, scale_b
    return launch(ScaledRaggedCall, RAGGED, arrays, config, options, (), epilogue, operands)


@public_product
def scaled_gemm_masked(
    a: Any,
    b: Any,
    counts: Any,
    scale_a: Any,
    scale_b: Any,
    *,
    out: Any = None,
    config: GemmConfig | Literal["tune"] | None = None,
    validate: bool = False,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """Compute out[i, :n] = epilogue((scale_a[i]·a[i, :n]) @ (scale_b[i]·b[i]), *operands) with n = counts[i]; return
    out.

    Parameters
    ----------
    a : array of shape (groups, M, K)
    b : array of shape (groups, K, N)
        float8 types and layouts as in `scaled_gemm`.
    counts, validate, epilogue, operands
        As in `grouped_gemm_masked`.
    scale_a, scale_b : float32 array
        One scale per tensor; or (groups, M, 1) and (groups, 1, N); or (groups, M, ⌈K/128⌉) and
        (groups, ⌈K/128⌉, ⌈N/128⌉).
    out : array of shape (groups, M, N), optional
        Types as in `scaled_gemm`.
    config : GemmConfig or "tune", optional
        As in `scaled_gemm`.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or on another GPU than sm_90a. Nothing is written.

    Examples
    --------
    >>> counts = np.array([3, 0, 7], np.int32)
    >>> out = scaled_gemm_masked(tokens, weights, counts, scale_a, scale_b)
    """
    options = out is None, "masked", flag("validate", validate)
    arrays = out, a, b, counts, None, None, scale_a, scale_b
    return launch(ScaledRaggedCall, RAGGED, arrays, config, options, (), epilogue, operands)


@public_product
def scaled_gemm_ragged_k(
    a: Any,
    b: Any,
    offsets: Any,
    scale_a: Any,
    scale_b: Any,
    c: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    config: GemmConfig | Literal["tune"] | None = None,
    validate: bool = False,
) -> Any:
    """Compute out[i] = alpha·((scale_a·a)[:, K of i] @ (scale_b·b)[K of i]) + beta·c[i] for each group i; return out.

    Group i spans offsets[i - 1] to offsets[i] of K, half-open. With transposed output gradients as `a` and activations
    as `b`, these are the weight gradients of a mixture of experts.

    Parameters
    ----------
    a, b : array of shape (M, K) and (K, N)
        float8_e4m3fn or float8_e5m2, in any combination. Layouts as in `scaled_gemm`.
    offsets : int32 array of shape (groups,)
        The end of each group along K, on the same GPU: a multiple of 16, where TMA loads can start, or K itself. Other
        offsets are rounded up to a multiple of 16; otherwise invalid offsets and `validate` are as in
        `grouped_gemm_ragged`. The product of an empty group is 0.
    scale_a, scale_b : float32 array
        One scale per tensor, of shape () or (1,); or one per row and column of each group, (groups, M, 1) and
        (groups, 1, N); or one per 128 elements of K, (M, ⌈K/128⌉) and (⌈K/128⌉, N), by blocks of the whole K wherever
        groups start. Column scales are contiguous. Partial products over 128 elements of K are accumulated in float32.
    c, alpha, beta
        As in `grouped_gemm_ragged_k`. `c` has 16 bits or more if `out` has 8.
    out : array of shape (groups, M, N), optional
        Row-major matrices; types as in `scaled_gemm`.
    config : GemmConfig or "tune", optional
        A configuration with atom="wgmma" and a tile of up to 192 columns. "tune" measures candidates as in
        `scaled_gemm`.

    Raises
    ------
    LaunchError
        If the arrays do not fit, on another GPU than sm_90a, or for invalid offsets in host memory with `validate`.
        Nothing is written.

    Examples
    --------
    >>> ends = np.array([64, 64, 160], np.int32)  # groups of 64, 0 and 96 along K
    >>> grads = scaled_gemm_ragged_k(gradients_t, activations, ends, scale_a, scale_b)
    """
    options = out is None, c is None, flag("validate", validate)
    arrays = out, a, b, scale_a, scale_b, offsets, c
    return launch(ScaledRaggedKCall, RAGGED_K, arrays, config, options, (alpha, beta))
