"""The checked arrays of a convolution and of its gradients: images (N, H, W, C), filters (K, R, S, C), and outputs
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

MAX_COUNT = 1 << 31  # pixels, and products per output element, counted in 32 bits
MAX_EXTENT = 1 << 30  # pixels along an axis: the sum of two coordinates has 32 bits
BOX_CHANNELS = LINE_BYTES // 2  # 16-bit channels in a row of a box
IMAGES = "images have four dimensions, (N, H, W, C)"
FILTERS = "filters have four dimensions, (K, R, S, C)"
CHANNELS_LAST = (
    "channels must be contiguous: pass x.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1) of a torch "
    "tensor x, or np.ascontiguousarray(x.transpose(0, 2, 3, 1)) of another array"
)


class Window(NamedTuple):
    """The movement of the filter window along height and width. `pad` has (before, after) for each."""

    pad: tuple[tuple[int, int], tuple[int, int]]
    stride: tuple[int, int]
    dilation: tuple[int, int]


@dataclass(frozen=True)
class Pixels(Matrix):
    """Images as the A of an implicit GEMM: an (N·P·Q, R·S·C) matrix that does not exist in memory."""

    def widest(self, *extents: int, most: int = WIDEST) -> int:
        """Return the widest access in bytes that is aligned and stays within the channels of a pixel."""
        shape, strides, itemsize = self.array.shape, self.array.strides, self.type.bytes
        steps = [stride for extent, stride in zip(shape[:3], strides, strict=False) if extent > 1]
        return gcd(most, self.array.pointer, *(itemsize * n for n in (*steps, shape[3])))

    @property
    def pixel_stride(self) -> int | None:
        """The stride between neighbouring pixels in elements; None if it is not the same everywhere."""
        (n, h, w, c), strides = self.array.shape, self.array.strides
        return _common_stride((w, h, n), strides[2::-1], c)


@dataclass(frozen=True)
class Convolution:
    """A convolution and its implicit GEMM. `a` has the Pixels (N·P·Q, R·S·C), `b` the filters (R·S·C, K), and `out` is
    (N·P·Q, K). In wgrad, `a` is the transposed gradient of the output (K, N·P·Q), and `b` has the Pixels.
    """

    sizes: Conv2dProblem
    product: GemmProblem

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return self.product.device_stream

    @property
    def is_wgrad(self) -> bool:
        """True for wgrad, the gradient of the filters."""
        return isinstance(self.product.b, Pixels)

    @property
    def images(self) -> Matrix:
        """The operand that is loaded window by window."""
        return self.product.b if self.is_wgrad else self.product.a

    @property
    def matrix(self) -> Matrix:
        """The other operand: the filters, or the gradient of the output in wgrad."""
        return self.product.a if self.is_wgrad else self.product.b

    @property
    def as_gemm(self) -> GemmProblem | None:
        """The convolution as a GEMM if it is pointwise and all pixels have one stride; None otherwise."""
        x = self.product.a
        stride = x.pixel_stride if isinstance(x, Pixels) and is_pointwise(self.sizes) else None
        if stride is None or stride < self.sizes.C:
            return None
        pixels = Matrix(x.name, x.owner, x.array, x.shape, "row", max(stride, 1))
        return replace(self.product, a=pixels)


def is_pointwise(sizes: Conv2dProblem) -> bool:
    """Return True if windows have one pixel and visit all pixels in order: R, S and the strides are 1, without
    padding."""
    pads = *sizes.before, *sizes.after
    return all(extent == 1 for extent in (sizes.R, sizes.S, *sizes.stride)) and not any(pads)


def window_parameters(sizes: Conv2dProblem) -> dict[str, int]:
    """Return the number of channels and the movement of windows as kernel parameters. Kernels divide by `channels`,
    which is thus 1 or more."""
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
    """Check the options of a call, and return them. Raises LaunchError for invalid numbers."""
    sides = _pair(pad)
    pads = [_pair(side) for side in sides] if sides else []
    if not all(side and _are_sizes(side, 0) for side in pads) or not pads:
        raise LaunchError(
            f"pad is {pad!r}",
            help="it takes 0 pixels or more: one number, or (for height, for width), each a number or (before, after)",
        )
    return Window((pads[0], pads[1]), _steps("stride", stride), _steps("dilation", dilation))


def _pair(value: object) -> Any:
    """Return a pair: the value twice if it is a number, or the two values of a sequence. Return () for anything
    else."""
    if is_int(value):
        return (int(value), int(value))
    return tuple(value) if isinstance(value, tuple | list) and len(value) == 2 else ()


def _are_sizes(values: Any, least: int) -> bool:
    return all(is_int(v) and least <= v < MAX_COUNT for v in values)


def _steps(name: str, value: object) -> Any:
    pair = _pair(value)
    if not pair or not _are_sizes(pair, 1):
        raise LaunchError(
            f"{name} is {value!r}", help="it takes 1 pixel to 2**31 - 1: one number, or (for height, for width)"
        )
    return pair


def convolution_problem(
    x: object,
    w: object,
    out: object,
    window: Window,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[object] = (),
) -> Convolution:
    """Check the arrays of a call, and return its convolution. `out` is allocated if it is None. Raises LaunchError for
    arrays that do not fit."""
    images, filters = _check_images("x", x), _check_filters(w)
    _check_inputs(images, filters)
    sizes = sizes_of(images.array.shape, filters.array.shape, window)
    shape = sizes.N, sizes.P, sizes.Q, sizes.K
    types = outputs(images.type)
    results = empty(images, shape, types[0]) if out is None else out
    written = pixels_as_matrix("out", results, shape, "this convolution gives", types)
    if written.type not in types:
        raise LaunchError(
            f"`out` is {describe_type(written.type)}; for {describe_type(images.type)} images conv2d writes "
            f"{describe_types(types)}",
            help="pass one of these, and convert it afterwards",
        )
    check_function(epilogue, operands)
    extras = tuple(_operand(f"operands[{n}]", operand, shape, written) for n, operand in enumerate(operands))
    m, _, k = sizes.implicit_gemm("fprop")
    a, b = _implicit_matrix(images, m, k), filters_as_matrix(filters).transposed
    check_devices([images, filters, written, *(operand.argument for operand in extras)])
    separate = [operand.argument for operand in extras if not operand.extra.in_place]
    check_written(written, [images, filters, *separate])
    return Convolution(sizes, GemmProblem(a, b, None, written, extras))


def _check_images(name: str, owner: object) -> ArrayArgument:
    return array_argument(name, owner, 4, IMAGES, "one image of (H, W, C) is x[None]")


def _check_filters(owner: object) -> ArrayArgument:
    return array_argument("w", owner, 4, FILTERS, "one filter of (R, S, C) is w[None]")


def _implicit_matrix(images: ArrayArgument, rows: int, columns: int) -> Pixels:
    return Pixels(images.name, images.owner, images.array, (rows, columns), "row", max(columns, 1))


def _check_inputs(x: ArrayArgument, w: ArrayArgument) -> None:
    (*_, channels), (*_, filter_channels) = x.array.shape, w.array.shape
    supported = f"images and filters of one type, {describe_types(INPUTS)}, on {ARCH} also {describe_types(FP8)}"
    _check_types("conv2d", x, w, (*INPUTS, *FP8), supported)
    if channels != filter_channels:
        raise LaunchError(f"`x` has {channels} channels and `w` takes {filter_channels}", help=_channels_help(x, w))
    _check_channels_last(x)


def _check_types(
    function: str, one: ArrayArgument, other: ArrayArgument, types: Sequence[Type], supported: str = ""
) -> None:
    """Raise LaunchError unless both arrays are of one type in `types`. `supported` names these in the help text."""
    if one.type not in types or one.type is not other.type:
        supported = supported or f"two arrays of one type, {describe_types(types)}"
        raise LaunchError(
            f"`{one.name}` is {describe_type(one.type)} and `{other.name}` is {describe_type(other.type)}",
            help=f"{function} takes {supported}; convert them before",
        )


def _check_channels_last(x: ArrayArgument) -> None:
    """Raise LaunchError for images whose channels are not contiguous."""
    strides = x.array.strides
    if x.array.size and ((x.array.shape[3] > 1 and strides[3] != 1) or min(strides) < 0):
        raise LaunchError(
            f"`x` has the shape {x.array.shape} and strides of {strides} elements: not (N, H, W, C)",
            help="it runs backwards: make a copy of it" if min(strides) < 0 else CHANNELS_LAST,
        )


def _channels_help(x: ArrayArgument, w: ArrayArgument) -> str:
    channels, expected = x.array.shape[3], w.array.shape[3]
    if x.array.shape[1] == expected:
        return f"the second extent of `x` is {expected}, as in (N, C, H, W): {CHANNELS_LAST}"
    if x.array.shape[1] == w.array.shape[1]:
        return (
            f"the second extents are {w.array.shape[1]}, as in images (N, C, H, W) and filters (K, C, R, S): "
            "pass .permute(0, 2, 3, 1).contiguous() of both"
        )
    if expected and channels and channels % expected == 0:
        return (
            f"conv2d has no groups: call it once for each of the {channels // expected} groups, with the channels "
            f"x[..., i : i + {expected}], the filters and the channels of out of the group"
        )
    return "for filters of torch, (K, C, R, S), pass w.permute(0, 2, 3, 1)"


def sizes_of(images: Sequence[int], filters: Sequence[int], window: Window) -> Conv2dProblem:
    """Return the sizes of a convolution. Raises LaunchError if the window exceeds the padded images, or a count exceeds
    32 bits."""
    (n, h, w_in, c), (k, r, s, _) = images, filters
    if not r or not s:
        raise LaunchError(f"`w` has the shape {filters}", help="R and S must be 1 or more")
    padded = tuple(extent + sum(sides) for extent, sides in zip((h, w_in), window.pad, strict=True))
    spans = tuple((extent - 1) * dilation + 1 for extent, dilation in zip((r, s), window.dilation, strict=True))
    if spans[0] > padded[0] or spans[1] > padded[1]:
        raise LaunchError(
            f"the window spans {spans[0]}x{spans[1]} pixels, more than the padded images, which have "
            f"{padded[0]}x{padded[1]}",
            help="pad more, or dilate less; out would have no pixels",
        )
    sizes = Conv2dProblem(n, h, w_in, c, k, r, s, pad=window.pad, stride=window.stride, dilation=window.dilation)
    for noun, count, limit in (
        ("pixels in out", sizes.output_size, MAX_COUNT),
        ("products per output element", sizes.window_size * c, MAX_COUNT),
        ("rows in a padded image", padded[0], MAX_EXTENT),
        ("pixels in a padded row", padded[1], MAX_EXTENT),
    ):
        if count >= limit:
            message = f"there are {count} {noun}; conv2d supports up to {limit - 1}"
            raise LaunchError(message, help="compute it in parts")
    return sizes


def filters_as_matrix(operand: ArrayArgument) -> Matrix:
    """Return filters as contiguous rows of R·S·C elements."""
    (k, r, s, c), strides = operand.array.shape, operand.array.strides
    row_stride = strides[0] if k > 1 else max(r * s * c, 1)
    if operand.array.size and (_common_stride((c, s, r), strides[:0:-1], 1) != 1 or row_stride < r * s * c):
        raise LaunchError(
            f"`{operand.name}` has the shape {(k, r, s, c)} and strides of {strides} elements: not (K, R, S, C)",
            help="each filter must be contiguous, channels last: for a torch filter (K, C, R, S), pass "
            "w.permute(0, 2, 3, 1).contiguous()",
        )
    return Matrix(operand.name, operand.owner, operand.array, (k, r * s * c), "row", row_stride)


def pixels_as_matrix(name: str, owner: object, shape: tuple[int, ...], rule: str, types: Sequence[Type]) -> Matrix:
    """Return an output, or an array with its layout, as a matrix of pixels: one stride, contiguous channels."""
    dimensions, help = "an output has four dimensions, (N, P, Q, K)", f"pass `{name}` of the shape {shape}"
    operand = array_argument(name, owner, 4, dimensions, help, describe_types(types))
    if operand.array.shape != shape:
        raise LaunchError(
            f"`{name}` has the shape {operand.array.shape}; {rule} {shape}", help=f"pass `{name}` of that shape"
        )
    (n, p, q, k), strides = shape, operand.array.strides
    pixel_stride = _common_stride((q, p, n), strides[2::-1], k)
    if pixel_stride is None or (operand.array.size and (pixel_stride < k or (k > 1 and strides[3] != 1))):
        raise LaunchError(
            f"`{name}` has the shape {shape} and strides of {strides} elements: not (N, P, Q, K)",
            help="pass an array with one stride between pixels and contiguous channels: a contiguous array, or a range "
            "of its channels",
        )
    return Matrix(name, owner, operand.array, (n * p * q, k), "row", max(pixel_stride, 1))


def _common_stride(extents: Sequence[int], strides: Sequence[int], otherwise: int) -> int | None:
    """Return the common stride of all elements, given extents and strides from the innermost axis; None if there is no
    common stride, and `otherwise` for fewer than two elements."""
    if not all(extents):
        return otherwise
    count, common = 1, None
    for extent, stride in zip(extents, strides, strict=True):
        if extent > 1:
            common = stride if common is None else common
            if stride != common * count:
                return None
            count *= extent
    return otherwise if common is None else common


def _operand(name: str, operand: object, shape: tuple[int, ...], out: Matrix) -> EpilogueOperand:
    if isinstance(operand, VectorOperand):
        return vector_operand(name, operand, out)
    return matrix_operand(pixels_as_matrix(name, operand, shape, "the output has", types_read(out.type)), out)


def dgrad_problem(dy: object, w: object, size: tuple[int, int], out: object, window: Window) -> Convolution:
    """Check the arrays of a call, and return the convolution of dy that computes the gradient of the images. `out` is
    allocated if it is None. Raises LaunchError for arrays that do not fit."""
    _check_extents("size", size, "(H, W)")
    gradient, filters = _check_output_gradient(dy), _check_filters(w)
    _check_channels_last(gradient)
    rows = filters_as_matrix(filters)
    _check_types("conv2d_dgrad", gradient, filters, TURNED)
    (n, p, q, k), (_, r, s, c) = gradient.array.shape, filters.array.shape
    words = WIDEST // gradient.type.bytes
    if not gradient.array.size or not filters.array.size or filters.array.shape[0] != k or k % (2 * words) or c % words:
        raise LaunchError(
            f"`dy` has the shape {gradient.array.shape} and `w` {filters.array.shape}; conv2d_dgrad takes (N, P, Q, K) "
            f"and (K, R, S, C) that are not empty, with K a multiple of {2 * words} and C of {words}",
            help="pad the filters or the channels",
        )
    axes = zip((p, q), (r, s), size, window.pad, window.dilation, strict=True)
    pads = [
        ((taps - 1) * dilation - before, image + before - extent) for extent, taps, image, (before, _), dilation in axes
    ]
    if min(map(min, pads)) < 0:
        raise LaunchError(
            f"`dy` has {p}x{q} pixels; with windows of {r}x{s}, a pad of {window.pad} and a dilation of "
            f"{window.dilation}, images of {size[0]}x{size[1]} have fewer output pixels",
            help="crop `dy` to the pixels of the output",
        )
    sizes = sizes_of((n, p, q, k), (c, r, s, k), window._replace(pad=(pads[0], pads[1])))
    shape = n, *size, c
    results = empty(gradient, shape, gradient.type) if out is None else out
    written = pixels_as_matrix("out", results, shape, "the gradient has", TURNED)
    if written.type is not gradient.type:
        raise LaunchError(
            f"`out` is {describe_type(written.type)}; the gradient is {describe_type(gradient.type)}",
            help="pass `out` of that type",
        )
    check_devices([gradient, filters, written])
    check_written(written, [gradient, filters])
    m, _, depth = sizes.implicit_gemm("fprop")
    transposed = Matrix("w", w, filters.array, (depth, c), "row", rows.stride)
    return Convolution(sizes, GemmProblem(_implicit_matrix(gradient, m, depth), transposed, None, written))


def wgrad_problem(dy: object, x: object, shape: tuple[int, int], out: object, window: Window) -> Convolution:
    """Check the arrays of a call, and return the implicit GEMM whose K runs over output pixels. `out` is allocated if
    it is None. Raises LaunchError for arrays that do not fit."""
    _check_extents("window", shape, "(R, S)")
    images = _check_images("x", x)
    _check_channels_last(images)
    gradient = _check_output_gradient(dy)
    _check_types("conv2d_wgrad", gradient, images, TURNED)
    filters, channels = gradient.array.shape[3], images.array.shape[3]
    if not gradient.array.size or channels % BOX_CHANNELS:
        raise LaunchError(
            f"`x` has the shape {images.array.shape} and `dy` {gradient.array.shape}; conv2d_wgrad takes images with a "
            f"multiple of {BOX_CHANNELS} channels, and gradients that are not empty",
            help="pad the channels of the images",
        )
    result = filters, *shape, channels
    sizes = sizes_of(images.array.shape, result, window)
    pixels = pixels_as_matrix("dy", dy, (sizes.N, sizes.P, sizes.Q, filters), "the output has", TURNED)
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
    a, b = pixels.transposed, _implicit_matrix(images, k, n)
    return Convolution(sizes, GemmProblem(a, b, None, filters_as_matrix(written)))


def _check_output_gradient(dy: object) -> ArrayArgument:
    """Check the gradient of an output. Raises LaunchError for anything but an array of four dimensions."""
    return array_argument("dy", dy, 4, "a gradient has the dimensions of the output, (N, P, Q, K)", "reshape it")


def _check_extents(name: str, extents: object, letters: str) -> None:
    """Raise LaunchError for anything but a height and a width."""
    if not isinstance(extents, tuple | list) or len(extents) != 2 or not all(is_int(n) and n > 0 for n in extents):
        raise LaunchError(f"{name} is {extents!r}", help=f"it takes {letters}, two ints of 1 or more")
