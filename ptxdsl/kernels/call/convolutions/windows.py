"""Convolutions on the sm_90a path: the checks for TMA, the facts that choose the tile, and the launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.isa.tensor_map import CORNER_BITS, MOST_ELEMENT_STRIDE, OFFSET_BITS
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.convolutions.problem import Convolution, is_pointwise, window_parameters
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, MappedMatrix, describe_type
from ptxdsl.kernels.call.paths.kernel import check_copies
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner, can_store_by_tma, facts_of
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

AXES = 4  # of an image tensor
MIN_CORNER, MAX_CORNER = -(1 << (CORNER_BITS[AXES] - 1)), (1 << (CORNER_BITS[AXES] - 1)) - 1
MAX_OFFSET = (1 << OFFSET_BITS[AXES]) - 1


def _padded_k(sizes: Conv2dProblem, inputs: Type) -> int:
    """Return K with the channels of each window pixel padded to whole K tiles."""
    depth = LINE_BYTES // inputs.bytes
    return sizes.window_size * ceil_div(sizes.C, depth) * depth


def window_facts(problem: Convolution) -> ProductFacts:
    """Return the facts that choose the tile. Overlapping windows read the images once."""
    sizes, operands = problem.sizes, facts_of(problem.product)
    m, n, k = sizes.implicit_gemm("wgrad" if problem.is_wgrad else "fprop")
    read = min(sizes.input_size, sizes.output_size * sizes.window_size) * sizes.C
    read += k * m if problem.is_wgrad else n * k
    moved = read * operands.inputs.bytes + m * n * operands.output.bytes
    if problem.is_wgrad:
        return ProductFacts(m, n, k, 1, operands, kind=ProductKind.WGRAD, moved_bytes=moved)
    kind = ProductKind.CONV_1X1 if is_pointwise(sizes) else ProductKind.CONV
    by_tma, k = can_store_by_tma(problem.product), _padded_k(sizes, operands.inputs)
    return ProductFacts(m, n, k, 1, operands, kind=kind, moved_bytes=moved, in_boxes=by_tma)


def tma_obstacles(problem: Convolution) -> Iterator[tuple[str, str]]:
    """Yield the reasons why TMA cannot load the operands. Each is (message, fix), with "" if there is no fix."""
    x, matrix = problem.images, problem.matrix
    if not x.array.size:
        yield f"`{x.name}` has the shape {x.array.shape}: there is nothing to multiply", ""
        return
    itemsize, channels = x.type.bytes, x.array.shape[3]
    strides = [
        stride * itemsize for extent, stride in zip(x.array.shape[:3], x.array.strides, strict=False) if extent > 1
    ]
    if not x.is_mappable or 0 in strides:
        yield (
            f"`{x.name}` has {channels} channels of {itemsize} bytes, strides of {strides} bytes between images, "
            f"rows and pixels, and the address {x.array.pointer:#x}; TMA takes multiples of {WIDEST_ACCESS} bytes, "
            "not 0",
            "pad the channels of both",
        )
    elif not matrix.is_mappable and problem.is_wgrad:
        yield (
            f"`{matrix.name}` has {matrix.shape[0]} filters of {itemsize} bytes, and a pixel stride of "
            f"{matrix.stride * itemsize} bytes; TMA takes multiples of {WIDEST_ACCESS} bytes",
            "pad the filters",
        )
    elif not matrix.is_mappable:
        yield (
            f"`{matrix.name}` has a filter stride of {matrix.stride * itemsize} bytes and the address "
            f"{matrix.array.pointer:#x}; TMA takes multiples of {WIDEST_ACCESS} bytes",
            "pass a contiguous copy",
        )
    yield from window_obstacles(problem.sizes)


def window_obstacles(sizes: Conv2dProblem) -> Iterator[tuple[str, str]]:
    """Yield the reasons why TMA cannot load the windows of a convolution."""
    if max(sizes.stride) > MOST_ELEMENT_STRIDE:
        yield f"stride is {sizes.stride}; im2col loads take 1 to {MOST_ELEMENT_STRIDE}", ""
    (lower, upper), reach = window_corners(sizes), window_reach(sizes)
    if min(*lower, *upper) < MIN_CORNER or max(*lower, *upper) > MAX_CORNER or max(reach) > MAX_OFFSET:
        yield (
            f"windows reach over {reach} pixels, with corners at {lower} from the first pixel of an image and {upper} "
            f"from the last; im2col loads reach up to {MAX_OFFSET}, with corners from {MIN_CORNER} to {MAX_CORNER}",
            "",
        )


def window_reach(sizes: Conv2dProblem) -> tuple[int, int]:
    """Return the distance from the first pixel of a window to the last, in rows and columns."""
    return (sizes.R - 1) * sizes.dilation[0], (sizes.S - 1) * sizes.dilation[1]


def window_corners(sizes: Conv2dProblem) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the corner of the first window relative to the first pixel of an image, and of the last window relative to
    the last pixel."""
    (top, left), (bottom, right), (down, across) = sizes.before, sizes.after, window_reach(sizes)
    return (-top, -left), (bottom - down, right - across)


def check_windows(problem: Convolution, cause: str = "", otherwise: str = "") -> None:
    """Raise LaunchError for images and filters that TMA cannot load. `cause` is the reason why TMA must load them, and
    `otherwise` the alternative to a fix."""
    for message, fix in tma_obstacles(problem):
        help = ", or ".join(filter(None, (fix, otherwise)))
        raise LaunchError(f"{cause}; {message}" if cause else message, help=help or None)


def _window_traits(problem: Convolution, product: GemmProblem, options: GemmOptions) -> WarpgroupTraits:
    """Return the traits of the kernel."""
    assert options.config is not None
    check_copies(options.of(options.config))
    traits = GemmPlanner(product, options).traits()
    assert isinstance(traits, WarpgroupTraits)
    if traits.tiling.swap_ab and not problem.is_wgrad and can_store_by_tma(product):
        traits = _with_tma_stores(traits)
    _check_swapped(traits, product)
    return traits


def _check_swapped(traits: WarpgroupTraits, product: GemmProblem) -> None:
    """Raise LaunchError for 16-bit outputs of swapped whole tiles that TMA cannot store: with stores by threads, ptxas
    would serialise the wgmmas."""
    out, (rows, *_) = product.out, traits.tile
    can_store = traits.operands.out_boxes or not isinstance(traits.schedule, OneTile | Strips)
    if not traits.tiling.swap_ab or out.type.bits != 16 or can_store:
        return
    if any(operand.extra.is_matrix for operand in product.operands):
        reason = "the epilogue may have no matrix operand"
    elif rows % WARP_ROWS:
        reason = f"the M of the tile must be a multiple of {WARP_ROWS}, and tile is {traits.tile}"
    elif not out.is_storable:
        length, stride = (elements * out.type.bytes for elements in (out.inner_extent, out.stride))
        reason = (
            f"its rows have a length of {length} bytes and a stride of {stride} bytes, and TMA stores multiples of "
            f"{WIDEST_ACCESS} bytes"
        )
    else:
        reason = f"M must have several tiles, and tile is {traits.tile}, with an M of {product.m}"
    raise LaunchError(
        f"`config` has swap_ab=True, and `out` is {describe_type(out.type)}, which needs TMA stores; {reason}",
        help="leave swap_ab out, or give the config schedule=PersistentScheduler()",
    )


def _with_tma_stores(traits: WarpgroupTraits) -> WarpgroupTraits:
    """Return the traits with TMA stores from swapped tiles, if the schedule has whole tiles."""
    if traits.schedule.shares or traits.schedule.cluster or traits.tile[0] % WARP_ROWS:
        return traits
    operands = replace(traits.operands, out_boxes=True)
    return warpgroup_traits_of(traits.tiling, operands, traits.schedule, traits.epilogue)


def window_plan(kernel: Kernel, problem: Convolution, options: GemmOptions) -> LaunchPlan:
    """Return the launch of a kernel that loads images by im2col: of a convolution, dgrad or wgrad."""
    sizes, product = problem.sizes, problem.product
    if not problem.is_wgrad:  # channels are padded to whole K tiles
        a = product.a
        product = replace(product, a=replace(a, shape=(a.shape[0], _padded_k(sizes, a.type))))
    traits = _window_traits(problem, product, options)
    launch = scheduled.schedule(product, traits, kernel)
    out = product.out
    values: dict[str, Any] = {
        "out": out.mapped(traits.out_map)
        if traits.operands.out_boxes
        else view(out.type)(pointer=out, stride=out.stride),
        "geometry": WindowGeometry(
            m=product.m, n=product.n, k=product.k, image=sizes.P * sizes.Q, line=sizes.Q, **window_parameters(sizes)
        ),
        **shared_values(product, launch),
    }
    if problem.is_wgrad:
        group, images = tensor_wgrad_parameters(launch.traits), filter_gradient_boxes(traits)
        values["dy"] = product.a.mapped(traits.a.map)
    else:
        group, (images, filters) = tensor_conv2d_parameters(launch.traits), boxes_of(traits)
        values["w"] = _filters(problem, filters)
    parameters = group(x=_images(problem, images), **values)
    return LaunchPlan(kernel, launch.grid, traits.threads, parameters, {"traits": launch.traits}, stream=launch.stream)


def _images(problem: Convolution, columns: ColumnBoxes) -> MappedMatrix | bytes:
    x, (lower, upper), (down, right) = problem.images, window_corners(problem.sizes), problem.sizes.stride
    promotion = LINE_BYTES if x.array.strides[2] < problem.sizes.C else L2_PROMOTION  # pixels overlap
    kind = columns.map_of(lower, upper, (down, right), promotion)
    return MappedMatrix(x.name, x.owner, x.array, kind, x.array.shape, x.array.strides).argument


def _filters(problem: Convolution, boxes: FilterBoxes) -> MappedMatrix | bytes:
    w, sizes = problem.product.b, problem.sizes
    filters, channels = (sizes.K, sizes.C) if w.major == "column" else (sizes.C, sizes.K)
    shape, strides = (filters, sizes.window_size, channels), (w.stride, channels, 1)
    return MappedMatrix(w.name, w.owner, w.array, boxes.map, shape, strides).argument
