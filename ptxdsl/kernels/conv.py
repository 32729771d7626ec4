"""2-D convolution on every GPU since Ampere, as a GEMM whose first operand is gathered from the images on its way.

Rows of the product are output pixels, columns are filters, k runs over the window and the channels. The loop, the
tensor cores, the epilogue and the schedule are those of `gemm`; only the loader of the images differs. One kernel of a
configuration serves all sizes, strides, paddings and dilations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ptxdsl as pd
from ptxdsl import ptr
from ptxdsl.arrays import strided
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv_loader import GEOMETRY, Geometry, PixelLoader, PixelRows
from ptxdsl.kernels.conv_problem import Convolution, convolution_of, window
from ptxdsl.kernels.epilogue import Output, Target, Writer
from ptxdsl.kernels.gemm import divide_up, specialise
from ptxdsl.kernels.mainloop import Mainloop
from ptxdsl.kernels.operand import Loader, Source
from ptxdsl.kernels.plan import Call, Plans, look
from ptxdsl.kernels.problem import Vector
from ptxdsl.kernels.split_k import SplitK, workspace_elements
from ptxdsl.kernels.workspace import workspace
from ptxdsl.schedule import ThreadblockSwizzle, slice_of_k

USUAL = GemmConfig(tile=(128, 128, 32), stages=4)
LARGE = GemmConfig(tile=(128, 256, 64), stages=3)
NARROW = GemmConfig(tile=(128, 64, 32), warp=(64, 32), stages=4)
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=4)
EFFICIENCY = {LARGE: 1.0, USUAL: 0.93, NARROW: 0.7, SMALL: 0.5}
MULTIPROCESSORS = 132
PLANS = Plans()
NO_NUMBERS = slice(0)


@pd.kernel
def conv2d_kernel(
    x: ptr[config.inputs],
    w: ptr[config.inputs],
    out: ptr[config.output],
    *rest: (*GEOMETRY, *config.rest),
    config: GemmConfig = USUAL,
) -> None:
    """`rest` is the Geometry, the workspace and semaphores of split-K, and the operands of the epilogue."""
    geometry, rest = Geometry(*rest[: len(GEOMETRY)]), rest[len(GEOMETRY) :]
    tile_m, tile_n, tile_k = config.tile
    tiles = divide_up(geometry.m, tile_m), divide_up(geometry.n, tile_n), pd.nctaid.z
    i, j, slice = config.schedule.tile_offset(pd.ctaid, tiled_shape=tiles)
    with pd.if_((i >= tiles[0]) | (j >= tiles[1])):
        pd.return_()
    first = i * tile_m, j * tile_n
    iterations = divide_up(geometry.k, tile_k)
    begin, end = slice_of_k(slice, tiles[2], geometry.k, tile_k) if config.is_split else (0, iterations)
    k = begin * tile_k, pd.min(end * tile_k, geometry.k)
    memory = pd.dynamic_shared(config.inputs, config.shared_bytes // config.inputs.bytes, align=1024).address()
    mainloop = Mainloop(config, memory)
    rows = PixelRows(tile_m, x, geometry, first[0], config.threads)
    pixels = PixelLoader(config.a, memory, rows, geometry, k, config.threads)
    filters = Source(w, geometry.ldw, geometry.n)
    loaders = pixels, Loader(config.b, mainloop.memory_b, filters, first[1], k, config.threads)
    accumulators = mainloop.run(loaders, end - begin)
    target = Target(out, geometry.ldo)
    output = Output(target, target, (geometry.m, geometry.n), 1, 0, rest[2 * config.is_split :])
    if config.is_split:
        meeting = SplitK(config, rest[:2], memory, i + j * tiles[0], tiles[0] * tiles[1])
        with meeting.last(accumulators, slice, tiles[2]):
            Writer(config, memory, first, output).write(accumulators)
    else:
        Writer(config, memory, first, output).write(accumulators)


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
    split_k: int | None = None,
) -> Any:
    """out = epilogue(x ∗ w, *operands): images (N, H, W, C), filters (K, R, S, C), output (N, P, Q, K). Returns out.

    As in networks, filters are not turned round. `pad`, `stride` and `dilation` are one number, or one for height and
    one for width; either of `pad` may be a pair (before, after). There are no groups: all C channels meet all K filters.

    x and w are of one type, float16, bfloat16, float32 (multiplied as tf32), float64, int8 or uint8; out may be of
    those that gemm writes for it. Channels lie side by side; beyond that x may have any strides, and x and out may be
    some channels of a larger array. Copies are as wide as the channels of a pixel allow: C should be a multiple of 16
    bytes, and pays for less. numpy arrays run on the emulator, CUDA arrays on their GPU, on torch's current stream.

    `epilogue` is a function of one element, and of one of each of `operands`: arrays of the shape of out, or
    per_column(…) of (K,), such as a bias. `config` gives the tiles, `split_k` how many blocks share the sum of a tile;
    else they are chosen for the shape.

    Raises LaunchError for arrays that do not fit; nothing is written then.
    """
    beside = [operand.array if isinstance(operand, Vector) else operand for operand in operands]
    arrays = (x, w, out, *beside)
    what = config, split_k, repr((pad, stride, dilation)), epilogue, *map(type, operands)
    sight = None if out is None else look(arrays)
    if PLANS.launch(what, sight, ()):
        return out
    problem = convolution_of(x, w, out, window(pad, stride, dilation), epilogue, operands)
    if problem.sizes.output_size and problem.sizes.K:
        call = call_of(problem, configure(problem, config, epilogue, split_k))
        call.run()
        PLANS.learn(what, sight, arrays, call)
    return problem.out.owner


def configure(
    problem: Convolution, config: GemmConfig | None, epilogue: Callable[..., Any] | None, split_k: int | None
) -> GemmConfig:
    """The kernel for a convolution: `config` gives the tiles, the arrays give types and widths."""
    x, w, out, sizes = problem.x, problem.w, problem.out, problem.sizes
    m, n, k = sizes.implicit_gemm("fprop")
    chosen = config or choose(m, n)
    if not isinstance(chosen.schedule, ThreadblockSwizzle):
        raise LaunchError(
            f"the schedule of conv2d is {chosen.schedule!r}",
            help="it takes a threadblock swizzle of ptxdsl.schedule, and split_k=… where tiles are few",
        )
    return specialise(
        chosen,
        inputs=x.type,
        output=out.type,
        a_major="k",
        b_major="k",
        a_bytes=problem.widest,
        b_bytes=w.widest(),
        out_bytes=out.widest(n),
        c="none",
        epilogue=epilogue,
        extras=tuple(operand.extra for operand in problem.operands),
        split_k=chosen.split_k if split_k is None else split_k,
    )


def choose(m: int, n: int) -> GemmConfig:
    def time(config: GemmConfig) -> float:
        tiles_m, tiles_n = config.tiles(m, n)
        waves = -(-tiles_m * tiles_n // MULTIPROCESSORS)
        return waves * config.tile[0] * config.tile[1] / EFFICIENCY[config]

    return min(EFFICIENCY, key=time)


def geometry_of(problem: Convolution, tile_k: int) -> Geometry:
    """The numbers of a convolution for a kernel with tiles of `tile_k`."""
    sizes, strides, each = problem.sizes, problem.x.array.strides, problem.x.type.bytes
    channels = max(sizes.C, 1)  # a divisor: without channels there is no tile of k
    place, step_c = divmod(tile_k, channels)
    step_r, step_s = divmod(place, sizes.S)
    dilation_h, dilation_w = sizes.dilation
    image, line, pixel, _ = strides
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
        ldw=problem.w.stride,
        ldo=problem.out.stride,
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
    tiled = config.schedule.tiled_shape(problem.sizes, config.tile, config.split_k, op="fprop")
    rest = [argument for operand in problem.operands for argument in operand.arguments]
    stream = None
    if config.is_split:
        device, stream = problem.x.place
        tiles = tiled.m * tiled.n
        rest[:0] = workspace(device, stream, config.sum, workspace_elements(config, tiles), tiles)
    launch = conv2d_kernel[config.schedule.grid_shape(tiled), config.threads]
    if config.is_split:
        config = specialise(config, split_k=2)  # one kernel for any number of slices
    arrays = strided(problem.x.owner), strided(problem.w.owner), strided(problem.out.owner)
    arguments = *arrays, *geometry_of(problem, config.tile[2]), *rest
    return Call(launch, arguments, {"config": config}, NO_NUMBERS, stream)


conv2d.kernel = conv2d_kernel  # type: ignore[attr-defined]  # what `ptxdsl dump ptxdsl.kernels.conv:conv2d` shows
