"""Convolutions of float32 by wgmma that is not asked for: their kernel rounds pixels to tf32 in registers, as mma.sync
gets them, and reads filters from a copy that is rounded already."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.kernels.call.convolutions.problem import Convolution
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import array_argument
from ptxdsl.kernels.call.products.lines import LineCopies, time_to_copy
from ptxdsl.kernels.choose.model import CostModel

FILTERS = LineCopies.named("b")  # what is copied of the product


def rounding_pixels(problem: Convolution) -> Convolution:
    """The same, by a kernel that rounds them."""
    return replace(problem, product=replace(problem.product, rounded=FILTERS.left))


def with_rounded_filters(problem: Convolution) -> tuple[Convolution, LaunchPlan]:
    """The same by such a kernel, of a copy of the filters, and the launch that makes it."""
    sizes, (product, (before,)) = problem.sizes, FILTERS.carry_out(problem.product)
    if product.b.owner is not None:  # in host memory a tensor map is of the array, whose shape says what it has
        filters = product.b.owner.T.reshape(sizes.K, sizes.R, sizes.S, sizes.C)
        seen = array_argument("w", filters, filters.ndim, "", "")
        product = replace(product, b=replace(product.b, owner=seen.owner, array=seen.array))
    return replace(problem, product=product), before


def time_to_round_filters(problem: Convolution, model: CostModel) -> float:
    """The microseconds that this launch should take."""
    return time_to_copy(problem.product, FILTERS, model)
