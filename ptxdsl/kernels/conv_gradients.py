"""Gradients of a 2-D convolution on sm_90a, as implicit GEMMs with im2col tensor maps.

The data gradient is a convolution of the output gradient, by the kernel of `conv2d`: K runs over the filter window,
last tap first, and over the filters; columns are channels. In the weight gradient, rows are filters, columns are the
channels of each filter tap, and K runs over the output pixels. wgmma reads 16-bit operands in either major order, so
nothing is transposed, flipped or padded beforehand.
"""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl.kernels.call.call import launch
from ptxdsl.kernels.call.convolutions.gradients import DgradCall, WgradCall
from ptxdsl.kernels.call.elsewhere import public_convolution
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import CONVOLUTIONS, multiply_windows
from ptxdsl.kernels.gemm import HOPPER
from ptxdsl.kernels.sm90.loads import TensorView
from ptxdsl.kernels.sm90.parameters import tensor_wgrad_parameters
from ptxdsl.kernels.sm90.pixels import FilterGradientCopies
from ptxdsl.kernels.sm90.traits import WarpgroupTraits


@pd.kernel(reqntid=lambda traits: traits.threads, cluster=lambda traits: traits.schedule.cluster)
def wgrad_kernel(p: tensor_wgrad_parameters(traits), *, traits: WarpgroupTraits = HOPPER) -> None:
    """Compute the filter gradient. One thread loads pixels of the output's gradient, and columns of pixels of the
    images."""
    multiply_windows(p, traits, (p.dy, p.x), (TensorView(p.dy), p.x), FilterGradientCopies)


@public_convolution
def conv2d_wgrad(
    dy: Any,
    x: Any,
    window: tuple[int, int],
    *,
    pad: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    out: Any = None,
    config: GemmConfig | None = None,
) -> Any:
    """Compute the weight gradient of `conv2d` and return it.

    Parameters
    ----------
    dy : contiguous array of shape (N, P, Q, K)
        The gradient of the output; K is a multiple of 8.
    x : array of shape (N, H, W, C)
        The images; C is a multiple of 64, with stride 1. `dy`, `x` and `out` are all float16 or all bfloat16;
        accumulators are float32.
    window : (int, int)
        The filter size (R, S).
    pad, stride, dilation
        Those of the convolution.
    out : contiguous array of shape (K, R, S, C), optional
        The gradient of the filters; allocated by default.
    config : GemmConfig, optional
        A configuration with atom="wgmma" and no epilogue; chosen from the shape by default.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or on another GPU than sm_90a; on the emulator, set PTXDSL_ARCH=sm_90a. Nothing is
        written.

    Examples
    --------
    >>> dw = conv2d_wgrad(dy, x, (3, 3), pad=1)  # dy (N, P, Q, K), x (N, H, W, C)
    >>> dw.shape  # (K, 3, 3, C)
    """
    moves = window, pad, stride, dilation
    return launch(WgradCall, wgrad_kernel, (out, dy, x), config, (out is None, repr(moves)), verbatim=moves)


@public_convolution
def conv2d_dgrad(
    dy: Any,
    w: Any,
    size: tuple[int, int],
    *,
    pad: Any = 0,
    dilation: Any = 1,
    out: Any = None,
    config: GemmConfig | None = None,
) -> Any:
    """Compute the data gradient of a stride-1 `conv2d` and return it.

    Parameters
    ----------
    dy : array of shape (N, P, Q, K)
        The gradient of the output; K is a multiple of 16, with stride 1.
    w : contiguous array of shape (K, R, S, C)
        The filters; C is a multiple of 8. `dy`, `w` and `out` are float16 or bfloat16; accumulators are float32.
    size : (int, int)
        The image size (H, W). Outputs past the last row and column of `dy` have gradient 0. For a larger stride, insert
        zeros between the pixels of `dy`.
    pad, dilation
        Those of the convolution.
    out : contiguous array of shape (N, H, W, C), optional
        The gradient of the images; allocated by default.
    config : GemmConfig, optional
        As in `conv2d_wgrad`.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or on another GPU than sm_90a; on the emulator, set PTXDSL_ARCH=sm_90a. Nothing is
        written.

    Examples
    --------
    >>> dx = conv2d_dgrad(dy, w, (224, 224), pad=1)
    >>> dx.shape  # (N, 224, 224, C)
    """
    moves = size, pad, dilation
    options = out is None, "gradient", repr(moves)
    return launch(DgradCall, CONVOLUTIONS, (out, dy, w), config, options, verbatim=moves)
