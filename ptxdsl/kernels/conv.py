"""2-D convolution on every GPU since Ampere, as a GEMM whose first operand is gathered from the images on its way.

Rows of the product are output pixels, columns are filters, k runs over the window and the channels. The loop, the
tensor cores, the epilogue and the schedule are those of `gemm`; only the loader of the images differs. One kernel of a
configuration serves all sizes, strides, paddings and dilations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import ptxdsl as pd
from ptxdsl import ptr
from ptxdsl.arrays import strided
from ptxdsl.errors import LaunchError
from ptxdsl.kernels import scheduled
from ptxdsl.kernels.block import Product
from ptxdsl.kernels.config import GemmConfig, Schedule
from ptxdsl.kernels.conv_choice import DEEP, choose
from ptxdsl.kernels.conv_loader import GEOMETRY, Geometry, PixelBlock
from ptxdsl.kernels.conv_problem import Convolution, convolution_of, window
from ptxdsl.kernels.epilogue import Target, Vector
from ptxdsl.kernels.function import canonical, epilogue_of, sequence_of
from ptxdsl.kernels.gemm import compute, configure
from ptxdsl.kernels.plan import Call, Plans, look
from ptxdsl.kernels.words import WIDEST

PLANS = Plans()
NO_NUMBERS = slice(0)


@pd.kernel
def conv2d_kernel(
    x: ptr[config.inputs],
    w: ptr[config.inputs],
    out: ptr[config.output],
    *rest: GEOMETRY + config.rest,
    config: GemmConfig = DEEP,
) -> None:
    """`rest` is the Geometry, what the schedule takes, and the operands of the epilogue."""
    geometry, beside = Geometry(*rest[: len(GEOMETRY)]), rest[len(GEOMETRY) :]
    own, extras = beside[: len(config.of_schedule)], beside[len(config.of_schedule) :]
    images, filters, target = Target(x, geometry.pixel), Target(w, geometry.ldw), Target(out, geometry.ldo)
    product = Product(geometry.m, geometry.n, geometry.k, images, filters, target, target, 1, 0, extras)
    compute(PixelBlock(config, product, geometry), own)


def conv2d(
    x: Any,
    w: Any,
    *,
    pad: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    out: Any = None,
    config: GemmConfig | None = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = (),
    schedule: Schedule | None = None,
    split_k: int | None = None,
    reduction: str | None = None,
) -> Any:
    """out = epilogue(x ∗ w, *operands): images (N, H, W, C), filters (K, R, S, C), output (N, P, Q, K). Returns out.

    As in networks, filters are not turned round. `pad`, `stride` and `dilation` are one number, or one for height and
    one for width; either of `pad` may be a pair (before, after). There are no groups: all C channels meet all filters.

    x and w are of one type, float16, bfloat16, float32 (multiplied as tf32), float64, int8 or uint8; out may be of
    those that gemm writes for it. Channels lie side by side; beyond that x may have any strides, and x and out may be
    some channels of a larger array. Copies are as wide as the channels of a pixel allow: C should be a multiple of 16
    bytes, and pays for less. numpy arrays run on the emulator, CUDA arrays on their GPU, on torch's current stream.

    `epilogue` is a function of one element, and of one of each of `operands`: arrays of the shape of out, or
    per_column(…) of (K,), such as a bias, of the types that gemm() takes there. `config` gives the tiles, `schedule`
    which of them a block computes, `split_k` how many blocks share the sum of one and `reduction` how they add up, as
    in gemm(); what is not given is chosen for the shape.

    Raises LaunchError for arrays that do not fit; nothing is written then.
    """
    operands = sequence_of(operands)
    epilogue = canonical(epilogue_of(config, epilogue), len(operands))
    beside = [operand.array if isinstance(operand, Vector) else operand for operand in operands]
    arrays = (x, w, out, *beside)
    what = config, schedule, split_k, reduction, repr((pad, stride, dilation)), epilogue, *map(type, operands)
    sight = None if out is None else look(arrays)
    with suppress(LaunchError):  # the careful way says it in the words of the caller
        if PLANS.launch(what, sight, ()):
            return out
    problem = convolution_of(x, w, out, window(pad, stride, dilation), epilogue, operands)
    made = _configure(problem, config, epilogue, schedule=schedule, split_k=split_k, reduction=reduction)
    if problem.product.m and problem.product.n:
        call = call_of(problem, made)
        call.run()
        PLANS.learn(what, sight, arrays, call)
    return problem.product.out.owner


def _configure(
    problem: Convolution,
    config: GemmConfig | None,
    epilogue: Callable[..., Any] | None,
    **chosen: Any,
) -> GemmConfig:
    """The kernel for a convolution: `config` gives the tiles, `chosen` the schedule and how K is split, the arrays give
    types and widths."""
    a = problem.product.a
    if config is None:
        slices = 1 if chosen["schedule"] is not None and chosen["split_k"] is None else chosen["split_k"]
        config = choose(problem.sizes.implicit_gemm("fprop"), a.type, a.widest() == WIDEST, slices)
    return configure(problem.product, config, epilogue, **chosen)


def geometry_of(problem: Convolution, tile_k: int) -> Geometry:
    """The numbers of a convolution for a kernel with tiles of `tile_k`."""
    sizes, a = problem.sizes, problem.product.a
    each = a.type.bytes
    channels = max(sizes.C, 1)  # a divisor: without channels there is no tile of k
    place, step_c = divmod(tile_k, channels)
    step_r, step_s = divmod(place, sizes.S)
    dilation_h, dilation_w = sizes.dilation
    image, line, pixel, _ = a.array.strides
    down, right = dilation_h * line, dilation_w * pixel
    return Geometry(
        *sizes.implicit_gemm("fprop"),
        height=sizes.H,
        width=sizes.W,
        channels=channels,
        out_height=sizes.P,
        out_width=sizes.Q,
        window_width=sizes.S,
        pad_top=sizes.pad[0][0],
        pad_left=sizes.pad[1][0],
        stride_h=sizes.stride[0],
        stride_w=sizes.stride[1],
        dilation_h=dilation_h,
        dilation_w=dilation_w,
        image=image,
        line=line,
        pixel=pixel,
        ldw=problem.product.b.stride,
        ldo=problem.product.out.stride,
        step_c=step_c,
        step_w=step_s * dilation_w,
        step_h=step_r * dilation_h,
        turn=sizes.S * dilation_w,
        step=each * (step_r * down + step_s * right + step_c),
        carry_w=each * (right - channels),
        carry_h=each * (down - sizes.S * right),
    )


def call_of(problem: Convolution, config: GemmConfig) -> Call:
    """The launch of a convolution."""
    product = problem.product
    made = scheduled.schedule(product, config, conv2d_kernel)
    arrays = [strided(found.owner) for found in (product.a, product.b, product.out)]
    beside = [argument for operand in product.operands for argument in operand.arguments]
    arguments = *arrays, *geometry_of(problem, made.config.tile[2]), *made.arguments, *beside
    launch = conv2d_kernel[made.grid, made.config.threads]
    return Call(launch, arguments, {"config": made.config}, NO_NUMBERS, made.stream)


conv2d.kernel = conv2d_kernel  # type: ignore[attr-defined]  # what `ptxdsl dump ptxdsl.kernels.conv:conv2d` shows
