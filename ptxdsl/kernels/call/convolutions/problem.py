"""The arrays of a convolution and of its gradients, checked: images (N, H, W, C), filters (K, R, S, C), outputs
(N, P, Q, K)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import ArrayArgument, Matrix, array_argument, describe_type, describe_types, empty
from ptxdsl.kernels.call.products.problem import (
    EpilogueOperand,
    GemmProblem,
    check_devices,
    check_written,
    matrix_operand,
    types_read,
    vector_operand,
)
from ptxdsl.kernels.epilogue import VectorOperand
from ptxdsl.kernels.product.operands import FP8, INPUTS, outputs
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import ARCH, TURNED
from ptxdsl.kernels.store.function import check_function
from ptxdsl.schedule import Conv2dProblem
from ptxdsl.schedule.arithmetic import is_int
from ptxdsl.types import Type

MOST = 1 << 31  # pixels, and products of a sum, that 32 bits count
MOST_ALONG = 1 << 30  # pixels along a side: two of them are added
LINE = LINE_BYTES // 2  # channels of a row of a box
IMAGES = "images have four dimensions, (N, H, W, C)"
FILTERS = "filters have four dimensions, (K, R, S, C)"
CHANNELS_LAST = (
    "channels lie side by side: of a torch tensor take x.contiguous(memory_format=torch.channels_last)"
    ".permute(0, 2, 3, 1), of another np.ascontiguousarray(x.transpose(0, 2, 3, 1))"
)


class Window(NamedTuple):
    """The movement of the filter window, for height and width; `pad` is (before, after)."""

    pad: tuple[tuple[int, int], tuple[int, int]]
    stride: tuple[int, int]
    dilation: tuple[int, int]


@dataclass(frozen=True)
class Pixels(Matrix):
    """Images as the A of an implicit GEMM, (N·P·Q, R·S·C): a matrix that is not in memory."""

    def widest(self, *extents: int, most: int = WIDEST) -> int:
        """Return the widest access in bytes that is aligned and stays within the channels of a pixel."""
        shape, strides, each = self.array.shape, self.array.strides, self.type.bytes
        steps = [stride for extent, stride in zip(shape[:3], strides, strict=False) if extent > 1]
        return gcd(most, self.array.pointer, *(each * n for n in (*steps, shape[3])))

    @property
    def apart(self) -> int | None:
        """The elements between neighbouring pixels of all images; None if they differ."""
        (n, h, w, c), strides = self.array.shape, self.array.strides
        return _common_stride((w, h, n), strides[2::-1], c)


@dataclass(frozen=True)
class Convolution:
    """A convolution and its implicit GEMM. `a` are the Pixels (N·P·Q, R·S·C), `b` the filters (R·S·C, K), and `out` is
    (N·P·Q, K). In the gradient of filters, `a` is the transposed gradient of the output (K, N·P·Q), and `b` the Pixels.
    """

    sizes: Conv2dProblem
    product: GemmProblem

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return self.product.device_stream

    @property
    def is_of_filters(self) -> bool:
        """True for the gradient of filters."""
        return isinstance(self.product.b, Pixels)

    @property
    def images(self) -> Matrix:
        """The operand whose columns of pixels are loaded window by window."""
        return self.product.b if self.is_of_filters else self.product.a

    @property
    def rows(self) -> Matrix:
        """The other operand."""
        return self.product.a if self.is_of_filters else self.product.b

    @property
    def as_product(self) -> GemmProblem | None:
        """The matrix product of windows of one pixel that visit all pixels in order; None for others."""
        x = self.product.a
        apart = x.apart if isinstance(x, Pixels) and visits_all_in_order(self.sizes) else None
        if apart is None or apart < self.sizes.C:
            return None
        pixels = Matrix(x.name, x.owner, x.array, x.shape, "row", max(apart, 1))
        return replace(self.product, a=pixels)


def visits_all_in_order(sizes: Conv2dProblem) -> bool:
    """Return True if windows of one pixel visit all pixels in order."""
    pads = *sizes.before, *sizes.after
    return all(move == 1 for move in (sizes.R, sizes.S, *sizes.stride)) and not any(pads)


def moves_of(sizes: Conv2dProblem) -> dict[str, int]:
    """Return the channels and the movement of windows as kernels of both paths take them. Channels are a divisor."""
    (pad_top, pad_left), (stride_h, stride_w), (dilation_h, dilation_w) = sizes.before, sizes.stride, sizes.dilation
    return {
        "channels": max(sizes.C, 1),
        "pad_top": pad_top,
        "pad_left": pad_left,
        "stride_h": stride_h,
        "stride_w": stride_w,
        "dilation_h": dilation_h,
        "dilation_w": dilation_w,
        "turn": sizes.S * dilation_w,
    }


def window(pad: object, stride: object, dilation: object) -> Window:
    """Check the options of a call. Raises LaunchError for invalid numbers."""
    sides = _pair(pad)
    pads = [_pair(side) for side in sides] if sides else []
    if not all(side and _are_sizes(side, 0) for side in pads) or not pads:
        raise LaunchError(
            f"pad is {pad!r}",
            help="it takes 0 pixels or more: one number, or (for height, for width), each a number or (before, after)",
        )
    return Window((pads[0], pads[1]), _steps("stride", stride), _steps("dilation", dilation))


def _pair(value: object) -> Any:
    """Return a number for both sides, or the two of a pair; () for anything else."""
    if is_int(value):
        return (int(value), int(value))
    return tuple(value) if isinstance(value, tuple | list) and len(value) == 2 else ()


def _are_sizes(values: Any, least: int) -> bool:
    return all(is_int(v) and least <= v < MOST for v in values)


def _steps(name: str, value: object) -> Any:
    pair = _pair(value)
    if not pair or not _are_sizes(pair, 1):
        raise LaunchError(
            f"{name} is {value!r}", help="it takes 1 pixel to 2**31 - 1: one number, or (for height, for width)"
        )
    return pair


def convolution_of(
    x: object,
    w: object,
    out: object,
    moves: Window,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[object] = (),
) -> Convolution:
    """Check the arrays of a call; out is allocated if it is None. Raises LaunchError for arrays that do not fit."""
    images, filters = _images_of("x", x), _filters_of(w)
    _check_inputs(images, filters)
    sizes = sizes_of(images.array.shape, filters.array.shape, moves)
    shape = sizes.N, sizes.P, sizes.Q, sizes.K
    known = outputs(images.type)
    results = empty(images, shape, known[0]) if out is None else out
    written = rows_of_pixels("out", results, shape, "this convolution gives", known)
    if written.type not in known:
        raise LaunchError(
            f"`out` is {describe_type(written.type)}; of {describe_type(images.type)} images conv2d writes "
            f"{describe_types(known)}",
            help="pass one of these, and convert it afterwards",
        )
    check_function(epilogue, operands)
    beside = tuple(_operand(f"operands[{n}]", extra, shape, written) for n, extra in enumerate(operands))
    m, _, k = sizes.implicit_gemm("fprop")
    packed = rows_of_filters(filters)
    check_devices([images, filters, written, *(operand.argument for operand in beside)])
    apart = [operand.argument for operand in beside if not operand.extra.in_place]
    check_written(written, [images, filters, *apart])
    return Convolution(sizes, GemmProblem(_pixels(images, m, k), packed.transposed, None, written, beside))


def _images_of(name: str, owner: object) -> ArrayArgument:
    return array_argument(name, owner, 4, IMAGES, "one image of (H, W, C) is x[None]")


def _filters_of(owner: object) -> ArrayArgument:
    return array_argument("w", owner, 4, FILTERS, "one filter of (R, S, C) is w[None]")


def _pixels(images: ArrayArgument, rows: int, columns: int) -> Pixels:
    return Pixels(images.name, images.owner, images.array, (rows, columns), "row", max(columns, 1))


def _check_inputs(x: ArrayArgument, w: ArrayArgument) -> None:
    known, (*_, channels), (*_, taken) = (*INPUTS, *FP8), x.array.shape, w.array.shape
    taken_types = f"images and filters of one type, {describe_types(INPUTS)}, on {ARCH} also {describe_types(FP8)}"
    _check_types("conv2d", x, w, known, taken_types)
    if channels != taken:
        raise LaunchError(f"`x` has {channels} channels and `w` takes {taken}", help=_of_channels(x, w))
    _check_channels_last(x)


def _check_types(
    function: str, one: ArrayArgument, other: ArrayArgument, known: Sequence[Type], taken: str = ""
) -> None:
    """Raise LaunchError for two arrays that are not of one type of those known."""
    if one.type not in known or one.type is not other.type:
        taken = taken or f"two arrays of one type, {describe_types(known)}"
        raise LaunchError(
            f"`{one.name}` is {describe_type(one.type)} and `{other.name}` is {describe_type(other.type)}",
            help=f"{function} takes {taken}; convert them before",
        )


def _check_channels_last(x: ArrayArgument) -> None:
    """Raise LaunchError for images whose channels are not contiguous."""
    strides = x.array.strides
    if x.array.size and ((x.array.shape[3] > 1 and strides[3] != 1) or min(strides) < 0):
        raise LaunchError(
            f"`x` has the shape {x.array.shape} and strides of {strides} elements: not (N, H, W, C)",
            help="it runs backwards: make a copy of it" if min(strides) < 0 else CHANNELS_LAST,
        )


def _of_channels(x: ArrayArgument, w: ArrayArgument) -> str:
    channels, taken = x.array.shape[3], w.array.shape[3]
    if x.array.shape[1] == taken:
        return f"of `x` the second extent is {taken}, as in (N, C, H, W): {CHANNELS_LAST}"
    if x.array.shape[1] == w.array.shape[1]:
        return (
            f"the second extents are {w.array.shape[1]}, as in images (N, C, H, W) and filters (K, C, R, S): "
            "take .permute(0, 2, 3, 1).contiguous() of both"
        )
    if taken and channels and channels % taken == 0:
        return (
            f"conv2d has no groups: call it for each of the {channels // taken}, with the channels of one, "
            f"x[..., i : i + {taken}], its filters, and its channels of out"
        )
    return "filters of torch, (K, C, R, S), are w.permute(0, 2, 3, 1) here"


def sizes_of(images: Sequence[int], filters: Sequence[int], moves: Window) -> Conv2dProblem:
    """Return the problem of these shapes. Raises LaunchError if the window exceeds the padded images, or if a count
    exceeds 32 bits."""
    (n, h, w_in, c), (k, r, s, _) = images, filters
    if not r or not s:
        raise LaunchError(f"`w` has the shape {filters}", help="a window has a pixel or more: R and S of 1 at least")
    padded = tuple(extent + sum(sides) for extent, sides in zip((h, w_in), moves.pad, strict=True))
    spans = tuple((extent - 1) * apart + 1 for extent, apart in zip((r, s), moves.dilation, strict=True))
    if spans[0] > padded[0] or spans[1] > padded[1]:
        raise LaunchError(
            f"the window spans {spans[0]}x{spans[1]} pixels, more than the padded images, which have "
            f"{padded[0]}x{padded[1]}",
            help="pad more, or dilate less; out would have no pixels",
        )
    sizes = Conv2dProblem(n, h, w_in, c, k, r, s, pad=moves.pad, stride=moves.stride, dilation=moves.dilation)
    for counted, count, most in (
        ("pixels in out", sizes.output_size, MOST),
        ("products in a sum", sizes.window_size * c, MOST),
        ("lines in a padded image", padded[0], MOST_ALONG),
        ("pixels in a padded line", padded[1], MOST_ALONG),
    ):
        if count >= most:
            help = "compute it in parts"
            raise LaunchError(f"there are {count} {counted}; conv2d counts to {most - 1}", help=help)
    return sizes


def rows_of_filters(operand: ArrayArgument) -> Matrix:
    """Return filters as contiguous rows of R·S·C elements."""
    (k, r, s, c), strides = operand.array.shape, operand.array.strides
    apart = strides[0] if k > 1 else max(r * s * c, 1)
    if operand.array.size and (_common_stride((c, s, r), strides[:0:-1], 1) != 1 or apart < r * s * c):
        raise LaunchError(
            f"`{operand.name}` has the shape {(k, r, s, c)} and strides of {strides} elements: not (K, R, S, C)",
            help="each filter is without gaps, channels side by side: of a torch filter (K, C, R, S) take "
            "w.permute(0, 2, 3, 1).contiguous()",
        )
    return Matrix(
        operand.name, operand.owner, operand.array, (k, r * s * c), "row", strides[0] if k > 1 else max(r * s * c, 1)
    )


def rows_of_pixels(name: str, owner: object, shape: tuple[int, ...], wanted: str, types: Sequence[Type]) -> Matrix:
    """Return an output, or an array with its layout: pixels at one stride, contiguous channels."""
    dimensions, help = "an output has four dimensions, (N, P, Q, K)", f"pass `{name}` of the shape {shape}"
    operand = array_argument(name, owner, 4, dimensions, help, describe_types(types))
    if operand.array.shape != shape:
        raise LaunchError(
            f"`{name}` has the shape {operand.array.shape}; {wanted} {shape}", help=f"pass `{name}` of that shape"
        )
    (n, p, q, k), strides = shape, operand.array.strides
    apart = _common_stride((q, p, n), strides[2::-1], k)
    if apart is None or (operand.array.size and (apart < k or (k > 1 and strides[3] != 1))):
        raise LaunchError(
            f"`{name}` has the shape {shape} and strides of {strides} elements: not (N, P, Q, K)",
            help="pixels follow each other at one distance, channels lie side by side: a contiguous array, or some "
            "channels of one",
        )
    return Matrix(name, owner, operand.array, (n * p * q, k), "row", max(apart, 1))


def _common_stride(extents: Sequence[int], strides: Sequence[int], otherwise: int) -> int | None:
    """Return the stride between all elements, innermost dimension first: None if they have no common stride,
    `otherwise` if there are fewer than two."""
    if not all(extents):
        return otherwise
    count, apart = 1, None
    for extent, stride in zip(extents, strides, strict=True):
        if extent > 1:
            apart = stride if apart is None else apart
            if stride != apart * count:
                return None
            count *= extent
    return otherwise if apart is None else apart


def _operand(name: str, operand: object, shape: tuple[int, ...], out: Matrix) -> EpilogueOperand:
    if isinstance(operand, VectorOperand):
        return vector_operand(name, operand, out)
    return matrix_operand(rows_of_pixels(name, operand, shape, "the output has", types_read(out.type)), out)


def dgrad_problem(dy: object, w: object, size: tuple[int, int], out: object, moves: Window) -> Convolution:
    """Check the arrays of a call, and return the convolution of dy that computes the gradient of images; out is
    allocated if it is None. Raises LaunchError for arrays that do not fit."""
    _check_extents("size", size, "(H, W)")
    gradient, filters = _gradient_of_output(dy), _filters_of(w)
    _check_channels_last(gradient)
    rows = rows_of_filters(filters)
    _check_types("conv2d_dgrad", gradient, filters, TURNED)
    (n, p, q, k), (_, r, s, c) = gradient.array.shape, filters.array.shape
    words = WIDEST // gradient.type.bytes
    if not gradient.array.size or not filters.array.size or filters.array.shape[0] != k or k % (2 * words) or c % words:
        raise LaunchError(
            f"`dy` has the shape {gradient.array.shape} and `w` {filters.array.shape}; conv2d_dgrad takes (N, P, Q, K) "
            f"and (K, R, S, C) that are not empty, with K a multiple of {2 * words} and C of {words}",
            help="pad the filters or the channels",
        )
    each = zip((p, q), (r, s), size, moves.pad, moves.dilation, strict=True)
    pads = [((taps - 1) * apart - before, whole + before - extent) for extent, taps, whole, (before, _), apart in each]
    if min(map(min, pads)) < 0:
        raise LaunchError(
            f"`dy` has {p}x{q} pixels; with windows of {r}x{s}, a pad of {moves.pad} and a dilation of "
            f"{moves.dilation}, images of {size[0]}x{size[1]} take a part of them",
            help="cut the others off before",
        )
    sizes = sizes_of((n, p, q, k), (c, r, s, k), moves._replace(pad=(pads[0], pads[1])))
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
    turned = Matrix("w", w, filters.array, (depth, c), "row", rows.stride)
    return Convolution(sizes, GemmProblem(_pixels(gradient, m, depth), turned, None, written))


def wgrad_problem(dy: object, x: object, shape: tuple[int, int], out: object, moves: Window) -> Convolution:
    """Check the arrays of a call, and return a product whose K runs over output pixels; out is allocated if it is None.
    Raises LaunchError for arrays that do not fit."""
    _check_extents("window", shape, "(R, S)")
    images = _images_of("x", x)
    _check_channels_last(images)
    gradient = _gradient_of_output(dy)
    _check_types("conv2d_wgrad", gradient, images, TURNED)
    filters, channels = gradient.array.shape[3], images.array.shape[3]
    if not gradient.array.size or channels % LINE:
        raise LaunchError(
            f"`x` has the shape {images.array.shape} and `dy` {gradient.array.shape}; conv2d_wgrad takes images with a "
            f"multiple of {LINE} channels, and gradients that are not empty",
            help="pad the channels of the images",
        )
    result = filters, *shape, channels
    sizes = sizes_of(images.array.shape, result, moves)
    pixels = rows_of_pixels("dy", dy, (sizes.N, sizes.P, sizes.Q, filters), "the output has", TURNED)
    results = empty(images, result, images.type) if out is None else out
    written = array_argument("out", results, 4, FILTERS, "reshape it")
    if written.array.shape != result or written.type is not images.type:
        raise LaunchError(
            f"`out` is {describe_type(written.type)} of the shape {written.array.shape}; the gradient is "
            f"{describe_type(images.type)} of {result}",
            help="pass `out` of that type and shape",
        )
    check_devices([gradient, images, written])
    check_written(written, [gradient, images])
    _, n, k = sizes.implicit_gemm("wgrad")
    return Convolution(sizes, GemmProblem(pixels.transposed, _pixels(images, k, n), None, rows_of_filters(written)))


def _gradient_of_output(dy: object) -> ArrayArgument:
    """Check the gradient of an output. Raises LaunchError for anything but an array of four dimensions."""
    return array_argument("dy", dy, 4, "a gradient has the dimensions of the output, (N, P, Q, K)", "reshape it")


def _check_extents(name: str, extents: object, letters: str) -> None:
    """Raise LaunchError for anything but a height and a width."""
    if not isinstance(extents, tuple | list) or len(extents) != 2 or not all(is_int(n) and n > 0 for n in extents):
        raise LaunchError(f"{name} is {extents!r}", help=f"it takes {letters}, two ints of 1 or more")
