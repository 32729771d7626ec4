"""Calls of conv2d_dgrad(): their arrays, and their launch."""

from __future__ import annotations

from functools import lru_cache

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.convolutions.conv import ConvolutionKernels, by_warpgroups
from ptxdsl.kernels.call.convolutions.problem import (
    FILTERS,
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
from ptxdsl.kernels.call.convolutions.windows import check_windows, window_facts, window_misfits
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
from ptxdsl.kernels.call.products.configure import Choice
from ptxdsl.kernels.call.products.problem import GemmProblem, check_devices, check_written
from ptxdsl.kernels.choose.conv_windows import choose_windows
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.sm90.tiling import ARCH, TURNED
from ptxdsl.runtime.dispatch import target
from ptxdsl.types import Type


class DgradCall(CheckedCall):
    """A call of conv2d_dgrad()."""

    name, is_tunable = "conv2d_dgrad", False

    def __init__(self, call: PublicCall) -> None:
        out, dy, w = call.arrays
        size, pad, dilation = call.verbatim
        self.kernels = call.kernels
        self.problem = problem_of(dy, w, size, out, window(pad, 1, dilation))
        self.out = self.problem.product.out.owner

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch."""
        return plan_of(self.kernels, self.problem, config)


def plan_of(kernels: ConvolutionKernels, problem: Convolution, config: GemmConfig | None) -> LaunchPlan | None:
    """Return the launch: `config` gives the tiles, else they are chosen."""
    device, _ = problem.product.device_stream
    check_target("conv2d_dgrad", device)
    check_windows(problem)
    check_by_wgmma("conv2d_dgrad", config)
    if config is None:
        _, config = choose_windows(window_facts(problem.sizes, problem.product), model_of(device))
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


def problem_of(dy: object, w: object, size: tuple[int, int], out: object, moves: Window) -> Convolution:
    """Check the arrays of a call, and return the convolution of dy that computes the gradient; out is allocated if it
    is None. Raises LaunchError for arrays that do not fit."""
    check_extents("size", size, "(H, W)")
    gradient = gradient_of_output(dy)
    filters = array_argument("w", w, 4, FILTERS, "one filter of (R, S, C) is w[None]")
    check_channels_last(gradient)
    rows = rows_of_filters(filters)
    _check_inputs(gradient, filters)
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


def _check_inputs(dy: ArrayArgument, w: ArrayArgument) -> None:
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
