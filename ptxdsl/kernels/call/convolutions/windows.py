"""Convolutions on the sm_90a path: the images that TMA can load, and the launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxdsl.errors import LaunchError
from ptxdsl.isa.tensor_map import CORNER_BITS, MOST_ELEMENT_STRIDE, OFFSET_BITS
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.convolutions.problem import Convolution, Pixels
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, MappedMatrix, Matrix, describe_type
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.configure import Choice, check_copies
from ptxdsl.kernels.call.products.plan import traits_of
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.call.products.selection import facts_of
from ptxdsl.kernels.call.products.values import shared_values
from ptxdsl.kernels.candidates.facts import ProductFacts, ProductKind
from ptxdsl.kernels.product.operands import FP8
from ptxdsl.kernels.sm90.boxes import L2_PROMOTION, LINE_BYTES
from ptxdsl.kernels.sm90.parameters import tensor_conv2d_parameters
from ptxdsl.kernels.sm90.pixels import ColumnBoxes, FilterBoxes, WindowGeometry, boxes_of
from ptxdsl.kernels.sm90.tiling import WARP_ROWS
from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of
from ptxdsl.kernels.tiles.one_tile import OneTile
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.schedule import Conv2dProblem
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Type

AXES = 4  # of images
LOWEST, HIGHEST = -(1 << (CORNER_BITS[AXES] - 1)), (1 << (CORNER_BITS[AXES] - 1)) - 1
FARTHEST = (1 << OFFSET_BITS[AXES]) - 1
OTHERWISE = "leave atom out: then images are loaded without TMA"


def as_product(problem: Convolution) -> GemmProblem | None:
    """Return a convolution with windows of one pixel that visit all pixels in order as a matrix product; None for
    others."""
    sizes, x = problem.sizes, problem.product.a
    apart = x.apart if isinstance(x, Pixels) else None
    if any(move != 1 for move in _moves(sizes)) or apart is None or apart < sizes.C:
        return None
    pixels = Matrix(x.name, x.owner, x.array, x.shape, "row", max(apart, 1))
    return replace(problem.product, a=pixels)


def _moves(sizes: Conv2dProblem) -> tuple[int, ...]:
    """Return the numbers that are all 1 if windows of one pixel visit all pixels in order."""
    return sizes.R, sizes.S, *sizes.stride, *(1 + pad for pad in (*sizes.before, *sizes.after))


def in_whole_lines(problem: Convolution) -> GemmProblem:
    """Return the product with the K of the kernel."""
    a = problem.product.a
    return replace(problem.product, a=replace(a, shape=(a.shape[0], _whole_k(problem.sizes, a.type))))


def _whole_k(sizes: Conv2dProblem, inputs: Type) -> int:
    """Return K with the channels of each window pixel padded to whole K tiles."""
    depth = LINE_BYTES // inputs.bytes
    return sizes.window_size * ceil_div(sizes.C, depth) * depth


def window_facts(sizes: Conv2dProblem, product: GemmProblem) -> ProductFacts:
    """Return the facts that the choice of tiles depends on, for images and filters of these sizes."""
    known, (m, n, k) = facts_of(product), sizes.implicit_gemm("fprop")
    read = min(sizes.input_size, sizes.output_size * sizes.window_size) * sizes.C
    moved = (read + n * k) * known.inputs.bytes + m * n * known.output.bytes
    kind = ProductKind.CONV_1X1 if all(move == 1 for move in _moves(sizes)) else ProductKind.CONV
    whole_k = _whole_k(sizes, known.inputs)
    return ProductFacts(m, n, whole_k, 1, known, kind=kind, moved_bytes=moved, in_boxes=is_boxed(product))


def misfits(problem: Convolution) -> Iterator[tuple[str, str]]:
    """Yield the reasons why TMA cannot load the images or the filters, each with its fix, "" if there is none."""
    sizes, x, w = problem.sizes, problem.product.a, problem.product.b
    if not x.array.size:
        yield f"`x` has the shape {x.array.shape}, and nothing to multiply", ""
        return
    each = x.type.bytes
    steps = [stride * each for extent, stride in zip(x.array.shape[:3], x.array.strides, strict=False) if extent > 1]
    if not x.is_mappable or 0 in steps:
        yield (
            f"`x` has {sizes.C} channels of {each} bytes, and images, lines and pixels that are {steps} bytes apart "
            f"from the address {x.array.pointer:#x} on; TMA takes multiples of {WIDEST_ACCESS} bytes, not 0",
            "pad the channels of both",
        )
    elif not w.is_mappable:
        yield (
            f"`w` has filters {w.stride * each} bytes apart from the address {w.array.pointer:#x} on; TMA takes "
            f"multiples of {WIDEST_ACCESS} bytes",
            "pass a contiguous copy",
        )
    yield from window_misfits(sizes)


def window_misfits(sizes: Conv2dProblem) -> Iterator[tuple[str, str]]:
    """Yield the reasons why TMA cannot load windows that move like these."""
    if max(sizes.stride) > MOST_ELEMENT_STRIDE:
        yield f"stride is {sizes.stride}; im2col copies take 1 to {MOST_ELEMENT_STRIDE}", ""
    (lower, upper), reach = corners_of(sizes), reach_of(sizes)
    if min(*lower, *upper) < LOWEST or max(*lower, *upper) > HIGHEST or max(reach) > FARTHEST:
        yield (
            f"windows reach {reach} pixels far, and begin {lower} pixels from the first one of an image and {upper} "
            f"from the last; im2col copies take {FARTHEST} at most, and {LOWEST} to {HIGHEST}",
            "",
        )


def reach_of(sizes: Conv2dProblem) -> tuple[int, int]:
    """Return the distance from the first pixel of a window to its last, down and to the right."""
    return (sizes.R - 1) * sizes.dilation[0], (sizes.S - 1) * sizes.dilation[1]


def corners_of(sizes: Conv2dProblem) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the first corner of windows relative to the first pixel of an image, and the last one relative to its last
    pixel."""
    (top, left), (bottom, right), (down, across) = sizes.before, sizes.after, reach_of(sizes)
    return (-top, -left), (bottom - down, right - across)


def check_windows(problem: Convolution) -> None:
    """Raise LaunchError for images and filters that TMA cannot load."""
    inputs = problem.product.a.type
    cause = f"`x` is {describe_type(inputs)}, which takes wgmma" if inputs in FP8 else 'atom is "wgmma"'
    for message, remedy in misfits(problem):
        ways = [remedy] if inputs in FP8 else [remedy, OTHERWISE]
        raise LaunchError(f"{cause}; {message}", help=", or ".join(filter(None, ways)) or None)


def window_traits(problem: Convolution, choice: Choice) -> WarpgroupTraits:
    """Return the traits of the kernel. Raises LaunchError for images that TMA cannot load."""
    check_windows(problem)
    product = in_whole_lines(problem)
    traits = traits_of(product, choice, takes_warpgroups=True)
    if choice.config is not None:
        check_copies(choice.of(choice.config))
    assert isinstance(traits, WarpgroupTraits)
    if traits.tiling.swap_ab and is_boxed(product):
        traits = in_turned_boxes(traits)
    check_turned(traits, product)
    return traits


def check_turned(traits: WarpgroupTraits, product: GemmProblem) -> None:
    """Raise LaunchError for 16-bit outputs of swapped whole tiles that TMA cannot store: with stores by threads, ptxas
    would serialise the wgmmas."""
    out, (rows, *_) = product.out, traits.tile
    in_boxes = traits.operands.out_boxes or not isinstance(traits.schedule, OneTile | Strips)
    if not traits.tiling.swap_ab or out.type.bits != 16 or in_boxes:
        return
    if any(operand.extra.is_matrix for operand in product.operands):
        reason = "where an operand of the epilogue has an element beside each of `out` it does not"
    elif rows % WARP_ROWS:
        reason = f"it does from multiples of {WARP_ROWS} rows, and tile is {traits.tile}"
    elif not out.is_storable:
        length, stride = (words * out.type.bytes for words in (out.length, out.stride))
        reason = f"it takes {WIDEST_ACCESS} bytes at a time, and its lines have {length} and begin {stride} bytes apart"
    else:
        reason = f"it does from several tiles along M, and tile is {traits.tile}, with an M of {product.m}"
    raise LaunchError(
        f"`config` has swap_ab=True, and `out` is {describe_type(out.type)}, which only TMA stores from such "
        f"tiles; {reason}",
        help="leave swap_ab out, or give the config schedule=PersistentScheduler()",
    )


def is_boxed(product: GemmProblem) -> bool:
    """Return True if TMA can store the output."""
    beside = all(not operand.extra.is_matrix for operand in product.operands)
    return beside and product.out.type.bits == 16 and product.out.is_storable


def in_turned_boxes(traits: WarpgroupTraits) -> WarpgroupTraits:
    """Return the traits with TMA stores from swapped tiles, if these are whole."""
    if traits.schedule.shares or traits.schedule.cluster or traits.tile[0] % WARP_ROWS:
        return traits
    operands = replace(traits.operands, out_boxes=True)
    return warpgroup_traits_of(traits.tiling, operands, traits.schedule, traits.epilogue)


def window_plan(kernel: Kernel, problem: Convolution, traits: WarpgroupTraits) -> LaunchPlan:
    """Return the launch of a convolution."""
    product = in_whole_lines(problem)
    launch = scheduled.schedule(product, traits, kernel)
    boxes, out, in_boxes = boxes_of(traits), product.out, traits.operands.out_boxes
    written = out.mapped(traits.out_map) if in_boxes else view(out.type)(pointer=out, stride=out.stride)
    values = tensor_conv2d_parameters(launch.traits)(
        x=images_of(problem, boxes[0]),
        w=_filters(problem, boxes[1]),
        out=written,
        geometry=geometry_of(problem.sizes, product),
        **shared_values(product, launch),
    )
    return LaunchPlan(kernel, launch.grid, traits.threads, values, {"traits": launch.traits}, stream=launch.stream)


def images_of(problem: Convolution, columns: ColumnBoxes) -> MappedMatrix | bytes:
    """Return the kernel's argument for the images."""
    x, (lower, upper), (down, right) = problem.product.a, corners_of(problem.sizes), problem.sizes.stride
    promotion = LINE_BYTES if x.array.strides[2] < problem.sizes.C else L2_PROMOTION  # where pixels overlap
    kind = columns.map_of(lower, upper, (down, right), promotion)
    return MappedMatrix(x.name, x.owner, x.array, kind, x.array.shape, x.array.strides).argument


def _filters(problem: Convolution, boxes: FilterBoxes) -> MappedMatrix | bytes:
    w, sizes = problem.product.b, problem.sizes
    filters, channels = (sizes.K, sizes.C) if w.major == "column" else (sizes.C, sizes.K)
    shape, strides = (filters, sizes.window_size, channels), (w.stride, channels, 1)
    return MappedMatrix(w.name, w.owner, w.array, boxes.map, shape, strides).argument


def geometry_of(sizes: Conv2dProblem, product: GemmProblem) -> WindowGeometry:
    """Return the extents of the windows and of the product."""
    pad_top, pad_left = sizes.before
    return WindowGeometry(
        m=product.m,
        n=product.n,
        k=product.k,
        channels=sizes.C,
        image=sizes.P * sizes.Q,
        line=sizes.Q,
        pad_top=pad_top,
        pad_left=pad_left,
        stride_h=sizes.stride[0],
        stride_w=sizes.stride[1],
        dilation_h=sizes.dilation[0],
        dilation_w=sizes.dilation[1],
        turn=sizes.S * sizes.dilation[1],
    )
