"""Convolutions on the sm_90a path: the images that TMA can load, the facts for the choice of tiles, and the launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.isa.tensor_map import CORNER_BITS, MOST_ELEMENT_STRIDE, OFFSET_BITS
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.convolutions.problem import Convolution, moves_of, visits_all_in_order
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, MappedMatrix, describe_type
from ptxdsl.kernels.call.paths.kernel import check_copies
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner, facts_of
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.call.products.values import shared_values
from ptxdsl.kernels.candidates.facts import ProductFacts, ProductKind
from ptxdsl.kernels.sm90.boxes import L2_PROMOTION, LINE_BYTES
from ptxdsl.kernels.sm90.parameters import tensor_conv2d_parameters, tensor_wgrad_parameters
from ptxdsl.kernels.sm90.pixels import ColumnBoxes, FilterBoxes, WindowGeometry, boxes_of, filter_gradient_boxes
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


def _whole_k(sizes: Conv2dProblem, inputs: Type) -> int:
    """Return K with the channels of each window pixel padded to whole K tiles."""
    depth = LINE_BYTES // inputs.bytes
    return sizes.window_size * ceil_div(sizes.C, depth) * depth


def window_facts(problem: Convolution) -> ProductFacts:
    """Return the facts that the choice of tiles depends on. Windows overlap: images are read once."""
    sizes, known = problem.sizes, facts_of(problem.product)
    m, n, k = sizes.implicit_gemm("wgrad" if problem.is_of_filters else "fprop")
    read = min(sizes.input_size, sizes.output_size * sizes.window_size) * sizes.C
    read += k * m if problem.is_of_filters else n * k
    moved = read * known.inputs.bytes + m * n * known.output.bytes
    if problem.is_of_filters:
        return ProductFacts(m, n, k, 1, known, kind=ProductKind.WGRAD, moved_bytes=moved)
    kind = ProductKind.CONV_1X1 if visits_all_in_order(sizes) else ProductKind.CONV
    in_boxes, k = is_boxed(problem.product), _whole_k(sizes, known.inputs)
    return ProductFacts(m, n, k, 1, known, kind=kind, moved_bytes=moved, in_boxes=in_boxes)


def misfits(problem: Convolution) -> Iterator[tuple[str, str]]:
    """Yield the reasons why TMA cannot load the operands, each with its fix, "" if there is none."""
    x, rows = problem.images, problem.rows
    if not x.array.size:
        yield f"`{x.name}` has the shape {x.array.shape}, and nothing to multiply", ""
        return
    each, channels = x.type.bytes, x.array.shape[3]
    steps = [stride * each for extent, stride in zip(x.array.shape[:3], x.array.strides, strict=False) if extent > 1]
    if not x.is_mappable or 0 in steps:
        yield (
            f"`{x.name}` has {channels} channels of {each} bytes, and images, lines and pixels that are {steps} bytes "
            f"apart from the address {x.array.pointer:#x} on; TMA takes multiples of {WIDEST_ACCESS} bytes, not 0",
            "pad the channels of both",
        )
    elif not rows.is_mappable and problem.is_of_filters:
        yield (
            f"`{rows.name}` has {rows.shape[0]} filters of {each} bytes, {rows.stride * each} bytes from pixel to "
            f"pixel; TMA takes multiples of {WIDEST_ACCESS} bytes",
            "pad the filters",
        )
    elif not rows.is_mappable:
        yield (
            f"`{rows.name}` has filters {rows.stride * each} bytes apart from the address {rows.array.pointer:#x} on; "
            f"TMA takes multiples of {WIDEST_ACCESS} bytes",
            "pass a contiguous copy",
        )
    yield from window_misfits(problem.sizes)


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


def check_windows(problem: Convolution, cause: str = "", otherwise: str = "") -> None:
    """Raise LaunchError for images and filters that TMA cannot load. `cause` says why TMA must, and `otherwise` what to
    do instead of a fix."""
    for message, remedy in misfits(problem):
        help = ", or ".join(filter(None, (remedy, otherwise)))
        raise LaunchError(f"{cause}; {message}" if cause else message, help=help or None)


def _window_traits(problem: Convolution, product: GemmProblem, options: GemmOptions) -> WarpgroupTraits:
    """Return the traits of the kernel."""
    assert options.config is not None
    check_copies(options.of(options.config))
    traits = GemmPlanner(product, options).traits()
    assert isinstance(traits, WarpgroupTraits)
    if traits.tiling.swap_ab and not problem.is_of_filters and is_boxed(product):
        traits = _in_turned_boxes(traits)
    _check_turned(traits, product)
    return traits


def _check_turned(traits: WarpgroupTraits, product: GemmProblem) -> None:
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


def _in_turned_boxes(traits: WarpgroupTraits) -> WarpgroupTraits:
    """Return the traits with TMA stores from swapped tiles, if these are whole."""
    if traits.schedule.shares or traits.schedule.cluster or traits.tile[0] % WARP_ROWS:
        return traits
    operands = replace(traits.operands, out_boxes=True)
    return warpgroup_traits_of(traits.tiling, operands, traits.schedule, traits.epilogue)


def window_plan(kernel: Kernel, problem: Convolution, options: GemmOptions) -> LaunchPlan:
    """Return the launch of a kernel that loads the images of a convolution, or of its gradient, window by window."""
    sizes, product = problem.sizes, problem.product
    if not problem.is_of_filters:  # whose K has whole tiles of channels
        a = product.a
        product = replace(product, a=replace(a, shape=(a.shape[0], _whole_k(sizes, a.type))))
    traits = _window_traits(problem, product, options)
    launch = scheduled.schedule(product, traits, kernel)
    out, in_boxes = product.out, traits.operands.out_boxes
    values: dict[str, Any] = {
        "out": out.mapped(traits.out_map) if in_boxes else view(out.type)(pointer=out, stride=out.stride),
        "geometry": WindowGeometry(
            m=product.m, n=product.n, k=product.k, image=sizes.P * sizes.Q, line=sizes.Q, **moves_of(sizes)
        ),
        **shared_values(product, launch),
    }
    if problem.is_of_filters:
        group, images = tensor_wgrad_parameters(launch.traits), filter_gradient_boxes(traits)
        values["dy"] = product.a.mapped(traits.a.map)
    else:
        group, (images, filters) = tensor_conv2d_parameters(launch.traits), boxes_of(traits)
        values["w"] = _filters(problem, filters)
    parameters = group(x=_images(problem, images), **values)
    return LaunchPlan(kernel, launch.grid, traits.threads, parameters, {"traits": launch.traits}, stream=launch.stream)


def _images(problem: Convolution, columns: ColumnBoxes) -> MappedMatrix | bytes:
    x, (lower, upper), (down, right) = problem.images, corners_of(problem.sizes), problem.sizes.stride
    promotion = LINE_BYTES if x.array.strides[2] < problem.sizes.C else L2_PROMOTION  # where pixels overlap
    kind = columns.map_of(lower, upper, (down, right), promotion)
    return MappedMatrix(x.name, x.owner, x.array, kind, x.array.shape, x.array.strides).argument


def _filters(problem: Convolution, boxes: FilterBoxes) -> MappedMatrix | bytes:
    w, sizes = problem.product.b, problem.sizes
    filters, channels = (sizes.K, sizes.C) if w.major == "column" else (sizes.C, sizes.K)
    shape, strides = (filters, sizes.window_size, channels), (w.stride, channels, 1)
    return MappedMatrix(w.name, w.owner, w.array, boxes.map, shape, strides).argument
