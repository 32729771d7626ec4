"""The gradients of a convolution on Hopper, as GEMMs of which one operand is gathered by im2col tensor maps.

That of the images is a convolution of the gradient of the output, by the kernel of `conv2d`: k runs over the window
from its last place to the first, and over the filters, whose channels are the columns. That of the filters has filters
as its rows, the channels of each place of the window as its columns, and k runs over the output pixels. wgmma reads
16-bit types that lie along rows and columns, so nothing is transposed, turned round or padded before.
"""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl.kernels.call.convolutions import dgrad, wgrad
from ptxdsl.kernels.call.elsewhere import public_gradient
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import CONVOLUTIONS, copy_windows
from ptxdsl.kernels.gemm import HOPPER, compute_tiles
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.mma import warpgroup_mma
from ptxdsl.kernels.sm90.order import consumer_walk
from ptxdsl.kernels.sm90.parameters import tensor_wgrad_parameters, wgrad_of_tensors
from ptxdsl.kernels.sm90.pixels import FilterGradientCopies
from ptxdsl.kernels.sm90.store import warpgroup_store
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import Scene


@pd.kernel(reqntid=lambda traits: traits.threads, cluster=lambda traits: traits.schedule.cluster)
def wgrad_kernel(p: tensor_wgrad_parameters(traits), *, traits: WarpgroupTraits = HOPPER) -> None:
    """One thread copies pixels of the gradient and columns of those of the images; warpgroups multiply and store."""
    memory, tiling = SharedTiles(traits), traits.tiling
    ring = tile_ring(traits)
    products = wgrad_of_tensors(p, traits)
    scene = Scene(products, p.schedule, traits.sums, memory.staging, ahead=True, exchange=memory.exchange)
    await_prerequisites(p.dy, p.x, *([p.out] if traits.operands.out_boxes else []))
    copying, multiplying = tiling.role_registers
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp), pd.elect():
        copy_windows(ring, FilterGradientCopies(traits, memory, p.geometry), traits.schedule.walk(scene))
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, store = warpgroup_mma(traits, memory, consumer.index), warpgroup_store(traits, memory, consumer)
        compute_tiles(ring, mma, store, consumer_walk(traits, scene, ring, store, consumer))


@public_gradient
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
    """The gradient (K, R, S, C) of the filters of `conv2d`, by that of its output, dy (N, P, Q, K), and its images x
    (N, H, W, C). Returns out.

    dy, x and out are float16 or bfloat16, all of one type; sums are float32. `window` is (R, S), `pad`, `stride` and
    `dilation` are those of the convolution. C is a multiple of 64, K of 8; channels lie side by side, dy and out are
    contiguous. On sm_90a alone, by tensor copies; on the emulator PTXDSL_ARCH=sm_90a says that it is such a GPU. The
    pixels that blocks share, and their tiles, are chosen for the shape, or said by `config`, with atom="wgmma" and no
    epilogue.

    Raises LaunchError for arrays that do not fit; nothing is written then.
    """
    return wgrad.run(wgrad_kernel, dy, x, window, out, pad, stride, dilation, config)


@public_gradient
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
    """The gradient (N, H, W, C) of the images of `conv2d`, whose windows move by single pixels, by that of its output,
    dy (N, P, Q, K), and its filters w (K, R, S, C). Returns out.

    dy, w and out are float16 or bfloat16; sums are float32. `size` is (H, W), `pad` and `dilation` are those of the
    convolution; outputs behind the last line and column of dy have gradients of 0, so that those of a larger stride may
    stand in zeros. C is a multiple of 8, K of 16; dy has its channels side by side, w and out are contiguous. On sm_90a
    alone, by tensor copies; on the emulator PTXDSL_ARCH=sm_90a says that it is such a GPU.
    `config` is as in `conv2d_wgrad`.

    Raises LaunchError for arrays that do not fit; nothing is written then.
    """
    return dgrad.run(CONVOLUTIONS, dy, w, size, out, pad, dilation, config)
