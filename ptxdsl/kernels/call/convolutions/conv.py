"""Calls of conv2d(): the choice of their kernel, and their launch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.convolutions.packed import Packing, packing_of
from ptxdsl.kernels.call.convolutions.problem import Convolution, convolution_of, moves_of, window
from ptxdsl.kernels.call.convolutions.windows import check_windows, misfits, window_facts, window_misfits, window_plan
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import array_argument, describe_type
from ptxdsl.kernels.call.paths.kernel import is_read_by_wgmma
from ptxdsl.kernels.call.paths.path import ConvolutionRequest, InputLayout, Refusal
from ptxdsl.kernels.call.paths.select import select, trials
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.copies import CopiedOperands, is_rounded, time_to_copy
from ptxdsl.kernels.call.products.options import GemmOptions, check_is_config
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.call.products.plan import plan_of as product_plan
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.values import shared_values
from ptxdsl.kernels.candidates.sm90 import HEURISTIC
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.rates import Rates, rates_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import FP8
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.store.function import UNSCALED
from ptxdsl.kernels.traits.parameters import Geometry, conv2d_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target

FEW = 1.7  # the factor by which the sm_80 path is slower with pixels of a word or less
ROUNDED_FILTERS = CopiedOperands.named("b")  # float32 filters are copied, and pixels rounded in registers


class ConvolutionKernels(NamedTuple):
    """The kernels of a convolution, by the path, and those of a product, which a window of one pixel makes of it."""

    warps: Kernel
    warpgroups: Kernel
    products: Kernels


def hashable(moves: tuple[object, object, object]) -> tuple[object, ...]:
    """Return the options of a window for a key: ints, or their repr, since True and 1.0 equal 1."""
    pad, stride, dilation = moves
    if type(pad) is type(stride) is type(dilation) is int:
        return moves
    return tuple([each if type(each) is int else repr(each) for each in moves])


class ConvolutionCall(TunableCall):
    """A call of conv2d()."""

    problem: Convolution
    name = "conv2d"

    def __init__(self, call: PublicCall) -> None:
        out, x, w, *_ = call.arrays
        self.kernels, self.options = call.kernels, call.gemm_options
        self.problem = convolution_of(x, w, out, window(*call.verbatim), call.epilogue, call.operands)
        self.out, self.class_suffix = self.problem.product.out.owner, call.gemm_options.class_suffix

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch; None if there is nothing to write."""
        options = self.options._replace(config=config)
        if copied:
            return by_warpgroups(self.kernels, *with_rounded_filters(self.problem), options)
        return chosen_plan(self.kernels, self.problem, options)

    @property
    def request(self) -> ConvolutionRequest:
        """The request to the paths."""
        return request_of(self.problem, self.options)

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed, for this convolution: those of a class differ in their windows."""
        product = self.problem.product
        return trials(self.request) if product.m and product.n and product.k else []


def chosen_plan(kernels: ConvolutionKernels, problem: Convolution, options: GemmOptions) -> LaunchPlan | None:
    """Return the launch of a convolution; None if there is nothing to write."""
    check_is_config(options.config)
    product = problem.product
    if options.config is None and (product.a.type not in FP8 or target(problem.device_stream[0]) == ARCH):
        request = request_of(problem, options)
        config, copied = select(request)
        if copied:
            with suppress(LaunchError):  # a GPU has no memory for the copy, which the sm_80 path does without
                rounded = with_rounded_filters(problem)
                return by_warpgroups(kernels, *rounded, options._replace(config=config))
            config, _ = select(replace(request, copies=()))
        options = options._replace(config=config)
    has_outputs = bool(product.m and product.n)
    if options.config is not None and options.config.atom == WGMMA:
        return by_warpgroups(kernels, problem, (), options) if has_outputs else None
    if product.a.type in FP8:
        check_windows(problem, *_why_windows(problem))
        raise LaunchError(
            f"`x` is {describe_type(product.a.type)}, which conv2d multiplies on {ARCH}; the kernel is for "
            f"{target(problem.device_stream[0])}",
            help=f"convert it to float16 before; on the emulator, PTXDSL_ARCH={ARCH} says that it is such a GPU",
        )
    traits = GemmPlanner(product, options).traits()
    return plan_of(kernels.warps, problem, traits) if has_outputs else None


def request_of(problem: Convolution, options: GemmOptions) -> ConvolutionRequest:
    """Return what the paths are asked for. TMA loads images of few channels after they are packed, and float32 filters
    are rounded in a copy; packing does not round. 8-bit floats have no other path."""
    product, packing, facts = problem.product, packing_of(problem), window_facts(problem)
    device, inputs = problem.device_stream[0], product.a.type
    obstacles: list[Refusal] = [] if packing else list(misfits(problem))
    if not is_read_by_wgmma(product.a, product.b):
        obstacles.append((f"`x` is {describe_type(inputs)}, which wgmma does not multiply", ""))
    if options.split_k not in (None, 1) and inputs not in FP8:
        obstacles.append(("blocks share the K of a convolution", "leave split_k out"))
    copies = [] if obstacles else list(_copies_of(problem, packing, rates_of(device)))
    if packing:
        obstacles.append(("TMA loads pixels of 16 bytes or more", ""))
    return ConvolutionRequest(
        "conv2d",
        facts,
        device,
        obstacles=obstacles,
        copies=copies,
        decomposition=GemmPlanner(product, options).decomposition and HEURISTIC,
        depth=problem.sizes.implicit_gemm("fprop")[2],
        slices=1 if options.schedule is not None and options.split_k is None else options.split_k,
        slowness=FEW if product.a.array.shape[3] * inputs.bytes <= WIDEST else 1.0,
    )


def _copies_of(problem: Convolution, packing: Packing | None, rates: Rates) -> Iterator[InputLayout]:
    """Yield the facts of packed images, or of rounded filters, with the microseconds that these copies take."""
    product, is_float32 = problem.product, is_rounded(problem.product.a.type)
    if packing is not None and not is_float32 and not any(window_misfits(packing.sizes)):
        yield InputLayout(
            window_facts(replace(problem, sizes=packing.sizes)), time=rates.copy_time(1, packing.moved_bytes)
        )
    elif packing is None and is_float32:
        rounding = replace(problem, product=replace(product, rounded=ROUNDED_FILTERS.left))
        time = time_to_copy(product, ROUNDED_FILTERS, rates)
        yield InputLayout(window_facts(rounding), ROUNDED_FILTERS.names, time, measured=True)


def by_warpgroups(
    kernels: ConvolutionKernels, problem: Convolution, before: tuple[LaunchPlan, ...], options: GemmOptions
) -> LaunchPlan | None:
    """Return the launch on the sm_90a path after those that write what it reads: as a product, of packed images, or of
    the images themselves. Raises LaunchError for images that TMA cannot load."""
    product, packing = problem.as_product, packing_of(problem)
    if product is not None:
        plan = product_plan(kernels.products, product, options, UNSCALED)
        return plan and _after(before, replace(plan, numbers=()))
    if packing is not None:
        problem, packs = packing.carry_out()
        before = (*before, packs)
    check_windows(problem, *_why_windows(problem))
    return _after(before, window_plan(kernels.warpgroups, problem, options))


def _after(before: tuple[LaunchPlan, ...], plan: LaunchPlan) -> LaunchPlan:
    """Return a launch after others, which write to the workspace of a stream."""
    return replace(plan, before=before, stream=before[-1].stream) if before else plan


def _why_windows(problem: Convolution) -> tuple[str, str]:
    """Return why TMA loads images, and what to do instead."""
    inputs = problem.product.a.type
    if inputs in FP8:
        return f"`x` is {describe_type(inputs)}, which takes wgmma", ""
    return 'atom is "wgmma"', "leave atom out: then images are loaded without TMA"


def with_rounded_filters(problem: Convolution) -> tuple[Convolution, tuple[LaunchPlan, ...]]:
    """Return the convolution for a kernel that rounds its pixels, with a rounded copy of the filters, and the launch
    that makes the copy."""
    sizes, (product, before) = problem.sizes, ROUNDED_FILTERS.carry_out(problem.product)
    if product.b.owner is not None:  # in host memory a tensor map is of the array, whose shape says what it has
        filters = product.b.owner.T.reshape(sizes.K, sizes.R, sizes.S, sizes.C)
        seen = array_argument("w", filters, filters.ndim, "", "")
        product = replace(product, b=replace(product.b, owner=seen.owner, array=seen.array))
    return replace(problem, product=product), before


def geometry_of(problem: Convolution, tile_k: int) -> Geometry:
    """Return the extents of a convolution for a kernel with tiles of `tile_k`."""
    sizes, a = problem.sizes, problem.product.a
    each, moves = a.type.bytes, moves_of(problem.sizes)
    position, step_c = divmod(tile_k, moves["channels"])
    step_r, step_s = divmod(position, sizes.S)
    image, line, pixel, _ = a.array.strides
    m, n, k = sizes.implicit_gemm("fprop")
    down, right = moves["dilation_h"] * line, moves["dilation_w"] * pixel
    return Geometry(
        m=m,
        n=n,
        k=k,
        height=sizes.H,
        width=sizes.W,
        out_height=sizes.P,
        out_width=sizes.Q,
        window_width=sizes.S,
        image=image,
        line=line,
        pixel=pixel,
        ldw=problem.product.b.stride,
        ldo=problem.product.out.stride,
        step_c=step_c,
        step_w=step_s * moves["dilation_w"],
        step_h=step_r * moves["dilation_h"],
        step=each * (step_r * down + step_s * right + step_c),
        carry_w=each * (right - moves["channels"]),
        carry_h=each * (down - sizes.S * right),
        **moves,
    )


def plan_of(kernel: Kernel, problem: Convolution, traits: Traits) -> LaunchPlan:
    """Return the launch of a convolution on the sm_80 path."""
    product = problem.product
    launch = scheduled.schedule(product, traits, kernel)
    values = conv2d_parameters(launch.traits)(
        x=product.a,
        w=product.b,
        out=product.out,
        geometry=geometry_of(problem, traits.tile[2]),
        **shared_values(product, launch),
    )
    return LaunchPlan(kernel, launch.grid, traits.threads, values, {"traits": launch.traits}, stream=launch.stream)
