"""2-D convolution as an implicit GEMM, with mma.sync on sm_80 and later and with wgmma on sm_90a.

Rows of the GEMM are output pixels, columns are filters, and K runs over the filter window and the channels. Mainloop,
MMA, epilogue and schedule are those of `gemm`; only the loads of the images differ: cp.async by the threads of a block,
or im2col tensor maps on sm_90a. One kernel of given traits serves all sizes, strides, paddings and dilations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl.kernels.call.call import launch
from ptxdsl.kernels.call.convolutions.conv import ConvolutionCall, ConvolutionKernels, window_key
from ptxdsl.kernels.call.elsewhere import public_convolution
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import HOPPER, KERNELS, compute, compute_tiles, load_tiles, multiply_tiles
from ptxdsl.kernels.product.operands import Side
from ptxdsl.kernels.product.product import Product, Products, View
from ptxdsl.kernels.sm80.copies import Copies, MatrixCopies
from ptxdsl.kernels.sm80.pixels import PixelCopies
from ptxdsl.kernels.sm80.ring import SharedMemory
from ptxdsl.kernels.sm80.tiling import WarpTiling
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.sm90.epilogue import warpgroup_epilogue
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.mma import warpgroup_mma
from ptxdsl.kernels.sm90.order import consumer_walk
from ptxdsl.kernels.sm90.parameters import tensor_conv2d_parameters, window_products
from ptxdsl.kernels.sm90.pixels import FilterGradientCopies, WindowCopies
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.resolve import Schedule
from ptxdsl.kernels.traits.parameters import conv2d_parameters, extra_values

USUAL = WarpTraits(WarpTiling((128, 128, 64), (64, 64), 3))


@pd.kernel
def conv2d_kernel(p: conv2d_parameters(traits), *, traits: WarpTraits = USUAL) -> None:
    """Compute a convolution with mma.sync. A is the images, B the filters, and a row of the output a pixel."""
    g, memory = p.geometry, SharedMemory(traits)
    x, w, out = View(p.x, g.pixel), View(p.w, g.ldw), View(p.out, g.ldo)
    product = Product(g.m, g.n, g.k, x, w, out, out, 1, 0, extra_values(p, traits.operands))
    copies = Copies(PixelCopies(traits, memory, g), MatrixCopies(traits, Side.B, memory))
    ahead = traits.is_ahead and copies.is_quick
    context = memory.context(Products(product, traits.tile), p.schedule, ahead)
    compute(traits, memory, copies, traits.schedule.walk(context))


@pd.kernel(reqntid=lambda traits: traits.threads, cluster=lambda traits: traits.schedule.cluster)
def warpgroup_conv2d_kernel(p: tensor_conv2d_parameters(traits), *, traits: WarpgroupTraits = HOPPER) -> None:
    """Compute a convolution with wgmma. One thread loads columns of pixels, and the filters."""
    multiply_windows(p, traits, (p.x, p.w), (p.x, p.w), WindowCopies)


def multiply_windows(
    p: Any,
    traits: WarpgroupTraits,
    maps: tuple[Any, Any],
    operands: tuple[Any, Any],
    copies: type[WindowCopies | FilterGradientCopies],
) -> None:
    """Multiply as `warpgroup_gemm_kernel`. `maps` are the tensor maps of A and B, `operands` the views that tiles of
    `copies` are loaded from."""
    memory, tiling = SharedTiles(traits), traits.tiling
    ring = tile_ring(traits)
    products = window_products(p, traits, *operands)
    context = memory.context(products, p.schedule)
    await_prerequisites(*maps, *([p.out] if traits.operands.out_boxes else []))
    copying, multiplying = tiling.role_registers
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp), pd.elect():
        load_tiles(ring, copies(traits, memory, p.geometry), traits.schedule.walk(context))
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, epilogue = warpgroup_mma(traits, memory, consumer.index), warpgroup_epilogue(traits, memory, consumer)
        walk = consumer_walk(traits, traits.schedule.walk(context), ring, epilogue, consumer)
        compute_tiles(ring, mma, epilogue, walk, multiply_tiles)


CONVOLUTIONS = ConvolutionKernels(conv2d_kernel, warpgroup_conv2d_kernel, KERNELS)


@public_convolution
def conv2d(
    x: Any,
    w: Any,
    *,
    pad: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    out: Any = None,
    config: GemmConfig | Literal["tune"] | None = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = (),
    schedule: Schedule | None = None,
    split_k: int | None = None,
    reduction: str | None = None,
) -> Any:
    """Compute out = epilogue(x ∗ w, *operands), a 2-D convolution, and return out.

    Parameters
    ----------
    x : array of shape (N, H, W, C)
    w : array of shape (K, R, S, C)
        Images and filters of one type: float16, bfloat16, float32 (rounded to tf32; truncated by a `config` with
        atom="wgmma"), float64, int8 or uint8; on sm_90a also float8_e4m3fn or float8_e5m2. Filters are not flipped
        (cross-correlation, as in neural networks), and there are no groups. Channels have stride 1; the other strides
        of `x` are arbitrary, so `x` and `out` may be channel slices of larger arrays. A C that is a multiple of 16
        bytes is fastest. numpy arrays run on the emulator, CUDA arrays on their GPU, on torch's current stream.
    pad, stride, dilation : int or pair of int
        In pixels: one number, or (height, width). Either entry of `pad` may be a pair (before, after).
    out : array of shape (N, P, Q, K), optional
        The output; types as in `gemm`. Allocated by default.
    config : GemmConfig or "tune", optional
        The kernel configuration; chosen from the shape by default. With atom="wgmma", the images are loaded by TMA,
        which needs pixels of a multiple of 16 bytes, or of fewer than 16 bytes. "tune" measures candidates for this
        exact shape.
    epilogue : function, optional
        As in `gemm`.
    operands : sequence of arrays
        Arrays of the shape of `out`, or `per_column(…)` of (K,), such as a bias; types as in `gemm`.
    schedule, split_k, reduction
        As in `gemm`.

    Raises
    ------
    LaunchError
        If the arrays do not fit each other or the kernel. Nothing is written.

    Examples
    --------
    >>> out = conv2d(x, w, pad=1)
    >>> out = conv2d(x, w, stride=2, epilogue=add_relu, operands=[per_column(bias)])
    """
    moves = pad, stride, dilation
    options = out is None, window_key(moves), schedule, split_k, reduction, type(split_k)
    return launch(ConvolutionCall, CONVOLUTIONS, (out, x, w), config, options, (), epilogue, operands, moves)


conv2d.kernel = conv2d_kernel  # type: ignore[attr-defined]  # what `ptxdsl dump ptxdsl.kernels.conv:conv2d` shows
