"""2-D convolution on every GPU since Ampere, as a GEMM whose first operand is gathered from the images on its way.

Rows of the product are output pixels, columns are filters, k runs over the window and the channels. The loop, the
tensor cores, the epilogue and the schedule are those of `gemm`; only the copies of the images differ: by the threads of
a block, or on Hopper by im2col tensor maps. One kernel of its Traits serves all sizes, strides, paddings and dilations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl.kernels.call.convolutions.conv import ConvolutionKernels, run
from ptxdsl.kernels.call.elsewhere import public_convolution
from ptxdsl.kernels.choose.candidates import DEEP
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import HOPPER, KERNELS, compute, compute_tiles, copy_tile
from ptxdsl.kernels.product.product import Product, Products, View
from ptxdsl.kernels.sm80.copies import Copies, MatrixCopies
from ptxdsl.kernels.sm80.memory import SharedMemory
from ptxdsl.kernels.sm80.pixels import PixelCopies
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.mma import warpgroup_mma
from ptxdsl.kernels.sm90.order import consumer_walk
from ptxdsl.kernels.sm90.parameters import convolution_of_tensors, tensor_conv2d_parameters
from ptxdsl.kernels.sm90.pixels import FilterGradientCopies, WindowCopies
from ptxdsl.kernels.sm90.store import warpgroup_store
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.choice import Schedule
from ptxdsl.kernels.tiles.schedule import Scene, Walk, started_elsewhere
from ptxdsl.kernels.traits.parameters import conv2d_parameters, extra_values

USUAL = DEEP.warp_traits()


@pd.kernel
def conv2d_kernel(p: conv2d_parameters(traits), *, traits: WarpTraits = USUAL) -> None:
    """The first operand is the images, the second the filters, and a row of the output a pixel."""
    g, memory = p.geometry, SharedMemory(traits)
    x, w, out = View(p.x, g.pixel), View(p.w, g.ldw), View(p.out, g.ldo)
    product = Product(g.m, g.n, g.k, x, w, out, out, 1, 0, extra_values(p, traits.operands))
    copies = Copies(PixelCopies(traits, memory, g), MatrixCopies(traits, "b", memory))
    ahead = traits.is_ahead and copies.is_quick
    scene = Scene(Products(product, traits.tile), p.schedule, traits.sums, memory.staging, ahead)
    compute(traits, memory, copies, traits.schedule.walk(scene))


@pd.kernel(reqntid=lambda traits: traits.threads, cluster=lambda traits: traits.schedule.cluster)
def warpgroup_conv2d_kernel(p: tensor_conv2d_parameters(traits), *, traits: WarpgroupTraits = HOPPER) -> None:
    """The same on sm_90a, as `warpgroup_gemm_kernel`: one thread copies columns of pixels, and the filters to them."""
    memory, tiling = SharedTiles(traits), traits.tiling
    ring = tile_ring(traits)
    products = convolution_of_tensors(p, traits)
    scene = Scene(products, p.schedule, traits.sums, memory.staging, ahead=True, exchange=memory.exchange)
    await_prerequisites(p.x, p.w, *([p.out] if traits.operands.out_boxes else []))
    copying, multiplying = tiling.role_registers
    with pd.warpgroup(tiling.producer, registers=copying), pd.warp(tiling.copying_warp), pd.elect():
        copy_windows(ring, WindowCopies(traits, memory, p.geometry), traits.schedule.walk(scene))
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, store = warpgroup_mma(traits, memory, consumer.index), warpgroup_store(traits, memory, consumer)
        compute_tiles(ring, mma, store, consumer_walk(traits, scene, ring, store, consumer))


def copy_windows(ring: pd.Ring, copies: WindowCopies | FilterGradientCopies, walk: Walk) -> None:
    """As `gemm.copy_tiles`; the place of a tile in the images is worked out where its copies begin."""
    for work in walk.tiles(started_elsewhere):
        copies.seek(work)
        copy_tile(ring, copies.of(work))
        walk.skip(work)
    ring.drain()


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
    """out = epilogue(x ∗ w, *operands): images (N, H, W, C), filters (K, R, S, C), output (N, P, Q, K). Returns out.

    As in networks, filters are not turned round. `pad`, `stride` and `dilation` are one number, or one for height and
    one for width; either of `pad` may be a pair (before, after). There are no groups: all C channels meet all filters.

    x and w are of one type, float16, bfloat16, float32 (read as tf32: rounded to 11 bits; a `config` of wgmma cuts it
    off there), float64, int8 or uint8, on sm_90a also float8_e4m3fn or float8_e5m2; out may be of those that gemm
    writes for it. Channels lie side by side; beyond that x may have any strides, and x and out may be some channels of
    a larger array. Copies are as wide as the channels of a pixel allow: C should be a multiple of 16 bytes, and pays
    for less. numpy arrays run on the emulator, CUDA arrays on their GPU, on torch's current stream.

    `epilogue` is a function of one element, and of one of each of `operands`: arrays of the shape of out, or
    per_column(…) of (K,), such as a bias, of the types that gemm() takes there. `config` gives the tiles; with an atom
    of "wgmma" tensor copies bring the images, whose pixels then have multiples of 16 bytes, or fewer; "tune" times
    some, as in gemm(), for images and filters of just these sizes. `schedule` says which tiles a block computes,
    `split_k` how many blocks share the sum of one and `reduction` how they add up, as in gemm(); what is not given is
    chosen for the shape.

    Raises LaunchError for arrays that do not fit; nothing is written then.
    """
    return run(CONVOLUTIONS, x, w, out, pad, stride, dilation, config, schedule, split_k, reduction, epilogue, operands)


conv2d.kernel = conv2d_kernel  # type: ignore[attr-defined]  # what `ptxdsl dump ptxdsl.kernels.conv:conv2d` shows
