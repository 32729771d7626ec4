"""Calls of conv2d(): the choice of the kernel, and the launch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.convolutions.packed import Packing, choose_packing
from ptxdsl.kernels.call.convolutions.problem import Convolution, convolution_problem, window, window_parameters
from ptxdsl.kernels.call.convolutions.windows import (
    check_windows,
    tma_obstacles,
    window_facts,
    window_obstacles,
    window_plan,
)
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

NARROW_PIXEL_SLOWDOWN = 1.7  # of the sm_80 path, for pixels of up to 16 bytes
ROUNDED_FILTERS = CopiedOperands.named("b")  # filters are rounded in a copy, pixels in registers


class ConvolutionKernels(NamedTuple):
    """The convolution kernels of the sm_80 and sm_90a paths, and the gemm kernels for 1x1 convolutions."""

    warps: Kernel
    warpgroups: Kernel
    products: Kernels


def window_key(options: tuple[object, object, object]) -> tuple[object, ...]:
    """Return (pad, stride, dilation) for a cache key: ints, or the repr of other values, since True and 1.0 equal 1."""
    pad, stride, dilation = options
    if type(pad) is type(stride) is type(dilation) is int:
        return options
    return tuple([option if type(option) is int else repr(option) for option in options])


class ConvolutionCall(TunableCall):
    """A call of conv2d()."""

    problem: Convolution
    name = "conv2d"

    def __init__(self, call: PublicCall) -> None:
        out, x, w, *_ = call.arrays
        self.kernels, self.options = call.kernels, call.gemm_options
        self.problem = convolution_problem(x, w, out, window(*call.verbatim), call.epilogue, call.operands)
        self.out, self.class_suffix = self.problem.product.out.owner, call.gemm_options.class_suffix

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch, or None if the output is empty."""
        options = self.options._replace(config=config)
        if copied:
            return warpgroup_plan(self.kernels, *round_filters(self.problem), options)
        return convolution_plan(self.kernels, self.problem, options)

    @property
    def request(self) -> ConvolutionRequest:
        """The request to the paths."""
        return request_of(self.problem, self.options)

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return the tuning candidates of this convolution. A shape class contains convolutions with other windows."""
        product = self.problem.product
        return trials(self.request) if product.m and product.n and product.k else []


def convolution_plan(kernels: ConvolutionKernels, problem: Convolution, options: GemmOptions) -> LaunchPlan | None:
    """Return the launch of a convolution, or None if the output is empty."""
    check_is_config(options.config)
    product = problem.product
    if options.config is None and (product.a.type not in FP8 or target(problem.device_stream[0]) == ARCH):
        request = request_of(problem, options)
        config, copied = select(request)
        if copied:
            with suppress(LaunchError):  # without memory for the copy, the sm_80 path runs
                rounded = round_filters(problem)
                return warpgroup_plan(kernels, *rounded, options._replace(config=config))
            config, _ = select(replace(request, copies=()))
        options = options._replace(config=config)
    has_outputs = bool(product.m and product.n)
    if options.config is not None and options.config.atom == WGMMA:
        return warpgroup_plan(kernels, problem, (), options) if has_outputs else None
    if product.a.type in FP8:
        check_windows(problem, *_tma_reason(problem))
        raise LaunchError(
            f"`x` is {describe_type(product.a.type)}, which conv2d multiplies on {ARCH}; the kernel is for "
            f"{target(problem.device_stream[0])}",
            help=f"convert it to float16 before; on the emulator, set PTXDSL_ARCH={ARCH}",
        )
    traits = GemmPlanner(product, options).traits()
    return plan_of(kernels.warps, problem, traits) if has_outputs else None


def request_of(problem: Convolution, options: GemmOptions) -> ConvolutionRequest:
    """Return the request to the paths.

    Images with few channels are packed for TMA, and float32 filters are rounded in a copy. Packing does not round, and
    8-bit floats run on the sm_90a path only.
    """
    product, packing, facts = problem.product, choose_packing(problem), window_facts(problem)
    device, inputs = problem.device_stream[0], product.a.type
    obstacles: list[Refusal] = [] if packing else list(tma_obstacles(problem))
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
        slowness=NARROW_PIXEL_SLOWDOWN if product.a.array.shape[3] * inputs.bytes <= WIDEST else 1.0,
    )


def _copies_of(problem: Convolution, packing: Packing | None, rates: Rates) -> Iterator[InputLayout]:
    """Yield the input layouts with packed images or rounded filters, and the time of the copies in microseconds."""
    product, is_float32 = problem.product, is_rounded(problem.product.a.type)
    if packing is not None and not is_float32 and not any(window_obstacles(packing.sizes)):
        yield InputLayout(
            window_facts(replace(problem, sizes=packing.sizes)), time=rates.copy_time(1, packing.moved_bytes)
        )
    elif packing is None and is_float32:
        rounding = replace(problem, product=replace(product, rounded=ROUNDED_FILTERS.left))
        time = time_to_copy(product, ROUNDED_FILTERS, rates)
        yield InputLayout(window_facts(rounding), ROUNDED_FILTERS.names, time, measured=True)


def warpgroup_plan(
    kernels: ConvolutionKernels, problem: Convolution, before: tuple[LaunchPlan, ...], options: GemmOptions
) -> LaunchPlan | None:
    """Return the launch on the sm_90a path after the launches in `before`, which write its operands. It runs as a GEMM,
    on packed images, or on the images themselves. Raises LaunchError for images that TMA cannot load."""
    product, packing = problem.as_gemm, choose_packing(problem)
    if product is not None:
        plan = product_plan(kernels.products, product, options, UNSCALED)
        return plan and _run_after(before, replace(plan, numbers=()))
    if packing is not None:
        problem, pack_launch = packing.pack()
        before = (*before, pack_launch)
    check_windows(problem, *_tma_reason(problem))
    return _run_after(before, window_plan(kernels.warpgroups, problem, options))


def _run_after(before: tuple[LaunchPlan, ...], plan: LaunchPlan) -> LaunchPlan:
    """Return the launch with other launches before it. These write to the workspace of a stream."""
    return replace(plan, before=before, stream=before[-1].stream) if before else plan


def _tma_reason(problem: Convolution) -> tuple[str, str]:
    """Return the reason why TMA must load the images, and the alternative for the help text."""
    inputs = problem.product.a.type
    if inputs in FP8:
        return f"`x` is {describe_type(inputs)}, which takes wgmma", ""
    return 'atom is "wgmma"', "leave atom out: then images are loaded without TMA"


def round_filters(problem: Convolution) -> tuple[Convolution, tuple[LaunchPlan, ...]]:
    """Return the convolution with a copy of the filters rounded to tf32, and the launch of the copy. The kernel rounds
    the pixels."""
    sizes, (product, before) = problem.sizes, ROUNDED_FILTERS.carry_out(problem.product)
    if product.b.owner is not None:  # in host memory, the tensor map takes the shape of the array
        filters = product.b.owner.T.reshape(sizes.K, sizes.R, sizes.S, sizes.C)
        argument = array_argument("w", filters, filters.ndim, "", "")
        product = replace(product, b=replace(product.b, owner=argument.owner, array=argument.array))
    return replace(problem, product=product), before


def geometry_of(problem: Convolution, tile_k: int) -> Geometry:
    """Return the geometry parameter of a convolution for a kernel with K tiles of `tile_k`."""
    sizes, a = problem.sizes, problem.product.a
    itemsize, movement = a.type.bytes, window_parameters(problem.sizes)
    position, step_c = divmod(tile_k, movement["channels"])
    step_r, step_s = divmod(position, sizes.S)
    image, line, pixel, _ = a.array.strides
    m, n, k = sizes.implicit_gemm("fprop")
    down, right = movement["dilation_h"] * line, movement["dilation_w"] * pixel
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
        step_w=step_s * movement["dilation_w"],
        step_h=step_r * movement["dilation_h"],
        step=itemsize * (step_r * down + step_s * right + step_c),
        carry_w=itemsize * (right - movement["channels"]),
        carry_h=itemsize * (down - sizes.S * right),
        **movement,
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
