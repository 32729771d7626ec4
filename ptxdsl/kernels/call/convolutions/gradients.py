"""Calls of conv2d_dgrad() and conv2d_wgrad(): their arrays, and their launches."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.convolutions.conv import ConvolutionKernels, by_warpgroups
from ptxdsl.kernels.call.convolutions.problem import (
    FILTERS,
    IMAGES,
    Convolution,
    Pixels,
    Window,
    check_by_wgmma,
    check_channels_last,
    check_extents,
    check_target,
    gradient_of_output,
    rows_of_filters,
    rows_of_pixels,
    sizes_of,
    window,
)
from ptxdsl.kernels.call.convolutions.windows import (
    check_turned,
    check_windows,
    geometry_of,
    images_of,
    window_facts,
    window_misfits,
)
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import (
    WIDEST_ACCESS,
    ArrayArgument,
    Matrix,
    array_argument,
    describe_type,
    describe_types,
    empty,
)
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.configure import Choice, check_copies
from ptxdsl.kernels.call.products.plan import traits_of
from ptxdsl.kernels.call.products.problem import GemmProblem, check_devices, check_written
from ptxdsl.kernels.call.products.selection import facts_of
from ptxdsl.kernels.call.products.values import shared_values
from ptxdsl.kernels.candidates.facts import ProductFacts, ProductKind
from ptxdsl.kernels.choose.products import choose_product
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.parameters import tensor_wgrad_parameters
from ptxdsl.kernels.sm90.pixels import filter_gradient_boxes
from ptxdsl.kernels.sm90.tiling import ARCH, TURNED
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.runtime.dispatch import target
from ptxdsl.types import Type

LINE = LINE_BYTES // 2  # channels of a line of a box


class DgradCall(CheckedCall):
    """A call of conv2d_dgrad()."""

    problem: Convolution
    name, is_tunable = "conv2d_dgrad", False

    def __init__(self, call: PublicCall) -> None:
        out, dy, w = call.arrays
        size, pad, dilation = call.verbatim
        self.kernels = call.kernels
        self.problem = dgrad_problem(dy, w, size, out, window(pad, 1, dilation))
        self.out = self.problem.product.out.owner

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch."""
        return dgrad_plan(self.kernels, self.problem, config)


def dgrad_plan(kernels: ConvolutionKernels, problem: Convolution, config: GemmConfig | None) -> LaunchPlan | None:
    """Return the launch: `config` gives the tiles, else they are chosen."""
    device, _ = problem.product.device_stream
    check_target("conv2d_dgrad", device)
    check_windows(problem)
    check_by_wgmma("conv2d_dgrad", config)
    if config is None:
        config = choose_product(window_facts(problem.sizes, problem.product), rates_of(device))
    return by_warpgroups(kernels, problem, Choice(config))


@lru_cache(maxsize=1024)
def takes_dgrad(
    type: Type | None,
    gradient: tuple[int, ...],
    filters: tuple[int, ...],
    size: tuple[int, int],
    moves: Window,
    device: int | None,
) -> bool:
    """Return True if there is a kernel for contiguous arrays with these types and shapes, on a GPU or on the
    emulator."""
    if type not in TURNED or target(device) != ARCH or not all(gradient) or not all((*filters, *size)):
        return False
    (n, p, q, k), (_, r, s, c), words = gradient, filters, WIDEST_ACCESS // type.bytes
    pads = transposed_pads((p, q), (r, s), size, moves)
    if k % (2 * words) or c % words or min(map(min, pads)) < 0:
        return False
    return not any(window_misfits(sizes_of((n, p, q, k), (c, r, s, k), Window(pads, moves.stride, moves.dilation))))


def dgrad_problem(dy: object, w: object, size: tuple[int, int], out: object, moves: Window) -> Convolution:
    """Check the arrays of a call, and return the convolution of dy that computes the gradient; out is allocated if it
    is None. Raises LaunchError for arrays that do not fit."""
    check_extents("size", size, "(H, W)")
    gradient = gradient_of_output(dy)
    filters = array_argument("w", w, 4, FILTERS, "one filter of (R, S, C) is w[None]")
    check_channels_last(gradient)
    rows = rows_of_filters(filters)
    _check_dgrad_types(gradient, filters)
    (n, p, q, k), (_, r, s, c) = gradient.array.shape, filters.array.shape
    pads = transposed_pads((p, q), (r, s), size, moves)
    if min(map(min, pads)) < 0:
        raise LaunchError(
            f"`dy` has {p}x{q} pixels; with windows of {r}x{s}, a pad of {moves.pad} and a dilation of "
            f"{moves.dilation}, images of {size[0]}x{size[1]} take a part of them",
            help="cut the others off before",
        )
    sizes = sizes_of((n, p, q, k), (c, r, s, k), Window(pads, moves.stride, moves.dilation))
    shape = n, *size, c
    results = empty(gradient, shape, gradient.type) if out is None else out
    written = rows_of_pixels("out", results, shape, "the gradient has", TURNED)
    if written.type is not gradient.type:
        raise LaunchError(
            f"`out` is {describe_type(written.type)}; the gradient is {describe_type(gradient.type)}",
            help="pass `out` of that type",
        )
    check_devices([gradient, filters, written])
    check_written(written, [gradient, filters])
    m, _, depth = sizes.implicit_gemm("fprop")
    pixels = Pixels("dy", dy, gradient.array, (m, depth), "row", max(depth, 1))
    turned = Matrix("w", w, filters.array, (depth, c), "row", rows.stride)
    return Convolution(sizes, GemmProblem(pixels, turned, None, written))


def transposed_pads(
    extents: tuple[int, int], shape: tuple[int, int], size: tuple[int, int], moves: Window
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the padding of a gradient with these extents for which windows of a shape give images of a size; negative
    if rows or columns would have to be cut off."""
    each = zip(extents, shape, size, moves.pad, moves.dilation, strict=True)
    down, right = (
        ((across - 1) * apart - before, whole + before - extent) for extent, across, whole, (before, _), apart in each
    )
    return down, right


def _check_dgrad_types(dy: ArrayArgument, w: ArrayArgument) -> None:
    if dy.type not in TURNED or w.type is not dy.type:
        raise LaunchError(
            f"`dy` is {describe_type(dy.type)} and `w` is {describe_type(w.type)}",
            help=f"conv2d_dgrad takes two arrays of one type, {describe_types(TURNED)}; convert them before",
        )
    (*_, k), (filters, _, _, c), words = dy.array.shape, w.array.shape, WIDEST_ACCESS // dy.type.bytes
    if not dy.array.size or not w.array.size or filters != k or k % (2 * words) or c % words:
        raise LaunchError(
            f"`dy` has the shape {dy.array.shape} and `w` {w.array.shape}; conv2d_dgrad takes (N, P, Q, K) and "
            f"(K, R, S, C) that are not empty, with K a multiple of {2 * words} and C of {words}",
            help="pad the filters or the channels",
        )


class WgradCall(CheckedCall):
    """A call of conv2d_wgrad()."""

    problem: Convolution
    name, is_tunable = "conv2d_wgrad", False

    def __init__(self, call: PublicCall) -> None:
        out, dy, x = call.arrays
        shape, *moves = call.verbatim
        self.kernel = call.kernels
        self.problem = wgrad_problem(dy, x, shape, out, window(*moves))
        self.out = self.problem.product.out.owner

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch."""
        return wgrad_plan(self.kernel, self.problem, config)


@lru_cache(maxsize=1024)
def takes_wgrad(
    type: Type | None, images: tuple[int, ...], filters: tuple[int, ...], moves: Window, device: int | None
) -> bool:
    """Return True if there is a kernel for contiguous arrays with these types and shapes, on a GPU or on the
    emulator."""
    if type not in TURNED or target(device) != ARCH or not all(images):
        return False
    is_whole = not images[3] % LINE and not filters[0] % (WIDEST_ACCESS // type.bytes)
    return is_whole and not any(window_misfits(sizes_of(images, filters, moves)))


def wgrad_problem(dy: object, x: object, shape: tuple[int, int], out: object, moves: Window) -> Convolution:
    """Check the arrays of a call, and return a product whose K runs over output pixels; out is allocated if it is None.
    Raises LaunchError for arrays that do not fit."""
    check_extents("window", shape, "(R, S)")
    images = array_argument("x", x, 4, IMAGES, "one image of (H, W, C) is x[None]")
    check_channels_last(images)
    gradient = gradient_of_output(dy)
    _check_wgrad_types(gradient, images)
    filters, channels = gradient.array.shape[3], images.array.shape[3]
    sizes = sizes_of(images.array.shape, (filters, *shape, channels), moves)
    pixels = rows_of_pixels("dy", dy, (sizes.N, sizes.P, sizes.Q, filters), "the output has", TURNED)
    results = empty(images, (filters, *shape, channels), images.type) if out is None else out
    written = array_argument("out", results, 4, "filters have four dimensions, (K, R, S, C)", "reshape it")
    _check_gradient(written, (filters, *shape, channels), images)
    check_devices([gradient, images, written])
    check_written(written, [gradient, images])
    _, n, k = sizes.implicit_gemm("wgrad")
    columns = Pixels("x", x, images.array, (k, n), "row", max(n, 1))
    return Convolution(sizes, GemmProblem(pixels.transposed, columns, None, rows_of_filters(written)))


def _check_wgrad_types(dy: ArrayArgument, x: ArrayArgument) -> None:
    if x.type not in TURNED or dy.type is not x.type:
        raise LaunchError(
            f"`dy` is {describe_type(dy.type)} and `x` is {describe_type(x.type)}",
            help=f"conv2d_wgrad takes two arrays of one type, {describe_types(TURNED)}; convert them before",
        )
    if not dy.array.size or x.array.shape[3] % LINE:
        raise LaunchError(
            f"`x` has the shape {x.array.shape} and `dy` {dy.array.shape}; conv2d_wgrad takes images with a multiple "
            f"of {LINE} channels, and gradients that are not empty",
            help="pad the channels of the images",
        )


def _check_lines(dy: Matrix) -> None:
    if not dy.is_mappable:
        each = dy.type.bytes
        raise LaunchError(
            f"`dy` has {dy.shape[0]} filters of {each} bytes, {dy.stride * each} bytes from pixel to pixel; TMA "
            f"takes multiples of {WIDEST_ACCESS} bytes",
            help="pad the filters",
        )


def _check_gradient(out: ArrayArgument, shape: tuple[int, ...], x: ArrayArgument) -> None:
    if out.array.shape != shape or out.type is not x.type:
        raise LaunchError(
            f"`out` is {describe_type(out.type)} of the shape {out.array.shape}; the gradient is "
            f"{describe_type(x.type)} of {shape}",
            help="pass `out` of that type and shape",
        )


def gradient_facts(problem: Convolution) -> ProductFacts:
    """Return the facts that the choice of tiles depends on. Windows overlap: images are read once."""
    product, sizes = problem.product, problem.sizes
    known = facts_of(product)
    read = (product.k * product.m + min(sizes.input_size, product.k * sizes.window_size) * sizes.C) * known.inputs.bytes
    moved = read + product.m * product.n * known.output.bytes
    return ProductFacts(product.m, product.n, product.k, 1, known, kind=ProductKind.WGRAD, moved_bytes=moved)


def wgrad_plan(kernel: Kernel, problem: Convolution, config: GemmConfig | None) -> LaunchPlan:
    """Return the launch. Raises LaunchError for arrays that TMA cannot load, and for another GPU."""
    product = problem.product
    device, _ = product.device_stream
    check_by_wgmma("conv2d_wgrad", config)
    check_target("conv2d_wgrad", device)
    _check_lines(product.a)
    check_windows(replace(problem, product=replace(product, a=product.b)))
    if config is None:
        config = choose_product(gradient_facts(problem), rates_of(device))
        assert config is not None  # there is no other path
    check_copies(config)
    traits = traits_of(product, Choice(config), takes_warpgroups=True)
    assert isinstance(traits, WarpgroupTraits)
    check_turned(traits, product)
    launch = scheduled.schedule(product, traits, kernel)
    out, in_boxes = product.out, traits.operands.out_boxes
    values = tensor_wgrad_parameters(launch.traits)(
        dy=product.a.mapped(traits.a.map),
        x=images_of(replace(problem, product=replace(product, a=product.b)), filter_gradient_boxes(traits)),
        out=out.mapped(traits.out_map) if in_boxes else view(out.type)(pointer=out, stride=out.stride),
        geometry=geometry_of(problem.sizes, product),
        **shared_values(product, launch),
    )
    return LaunchPlan(kernel, launch.grid, traits.threads, values, {"traits": launch.traits}, stream=launch.stream)
