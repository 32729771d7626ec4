"""Calls of conv2d(): the choice of their kernel, and their launch."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import NamedTuple

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.convolutions.packed import packing_of
from ptxdsl.kernels.call.convolutions.problem import Convolution, convolution_of, moves_of, window
from ptxdsl.kernels.call.convolutions.windows import check_windows, misfits, window_facts, window_misfits, window_plan
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import array_argument, describe_type
from ptxdsl.kernels.call.paths.kernel import is_read_by_wgmma
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.call.products.configure import Choice, check_is_config
from ptxdsl.kernels.call.products.lines import LineCopies, is_rounded, time_to_copy
from ptxdsl.kernels.call.products.plan import Kernels, traits_of
from ptxdsl.kernels.call.products.plan import plan_of as product_plan
from ptxdsl.kernels.call.products.selection import Selection, facts_of
from ptxdsl.kernels.call.products.values import shared_values
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.choose.products import Ranked, best, choose_product, ranked_convolutions, ranked_products
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import FP8
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.store.function import UNSCALED
from ptxdsl.kernels.traits.parameters import Geometry, conv2d_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target

FEW = 1.7  # the factor by which the sm_80 path is slower with pixels of a word or less
ROUNDED_FILTERS = LineCopies.named("b")  # float32 filters are copied, and pixels rounded in registers


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


class ConvolutionCall(CheckedCall):
    """A call of conv2d()."""

    problem: Convolution
    name = "conv2d"

    def __init__(self, call: PublicCall) -> None:
        out, x, w, *_ = call.arrays
        self.kernels, self.choice = call.kernels, call.choice
        self.problem = convolution_of(x, w, out, window(*call.verbatim), call.epilogue, call.operands)
        self.out = self.problem.product.out.owner

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch; None if there is nothing to write."""
        choice = self.choice._replace(config=config)
        if copied:
            return by_warpgroups(self.kernels, *with_rounded_filters(self.problem), choice)
        return chosen_plan(self.kernels, self.problem, choice)

    @property
    def shape_class(self) -> str:
        """The key under which the best configuration is kept: the sizes themselves, of which a network has few."""
        choice = self.choice
        how = choice.schedule, choice.split_k, choice.reduction, choice.epilogue is not None
        read = not any(misfits(self.problem))
        return f"{self.problem.sizes}, {facts_of(self.problem.product)}, read {read}, said {how}"

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed."""
        return candidates_of(self.problem, self.choice)


def candidates_of(problem: Convolution, choice: Choice) -> list[tuple[float, TuningCandidate]]:
    """Return the configurations of both paths with the expected microseconds."""
    product, (device, _) = problem.product, problem.device_stream
    if not product.m or not product.n or not product.k:
        return []
    timed = [(time, TuningCandidate(config)) for time, config in _ranked_by_warps(problem, _slices(choice))]
    known = _by_windows(problem) if _is_open(problem, choice) else None
    if known is not None:
        before, facts = known
        copied = ROUNDED_FILTERS.names if is_rounded(product.a.type) else ""
        ranked = ranked_products(facts, rates_of(device))
        timed += [(before + time, TuningCandidate(config, copied)) for time, config in ranked]
    return timed


def chosen_plan(kernels: ConvolutionKernels, problem: Convolution, choice: Choice) -> LaunchPlan | None:
    """Return the launch of a convolution; None if there is nothing to write."""
    check_is_config(choice.config)
    product, config = problem.product, choice.config
    has_outputs = bool(product.m and product.n)
    if config is None and has_outputs and _is_open(problem, choice):
        config = config_by_warpgroups(problem, _time_by_warps(problem))
        if config is not None and is_rounded(product.a.type):
            with suppress(LaunchError):  # a GPU has no memory for the copy, which the sm_80 path does without
                rounded = with_rounded_filters(problem)
                return by_warpgroups(kernels, *rounded, choice._replace(config=config))
            config = None
    if config is not None and config.atom == WGMMA:
        return by_warpgroups(kernels, problem, (), choice._replace(config=config)) if has_outputs else None
    if product.a.type in FP8:
        check_windows(problem, *_why_windows(problem))
        device, _ = problem.device_stream
        raise LaunchError(
            f"`x` is {describe_type(product.a.type)}, which conv2d multiplies on {ARCH}; the kernel is for "
            f"{target(device)}",
            help=f"convert it to float16 before; on the emulator, PTXDSL_ARCH={ARCH} says that it is such a GPU",
        )
    traits = traits_of(product, _with_tiles(problem, choice))
    return plan_of(kernels.warps, problem, traits) if has_outputs else None


def by_warpgroups(
    kernels: ConvolutionKernels, problem: Convolution, before: tuple[LaunchPlan, ...], choice: Choice
) -> LaunchPlan | None:
    """Return the launch on the sm_90a path after those that write what it reads: as a product, of packed images, or of
    the images themselves. Raises LaunchError for images that TMA cannot load."""
    product, packing = problem.as_product, packing_of(problem)
    if product is not None:
        plan = product_plan(kernels.products, product, choice, UNSCALED)
        return plan and _after(before, replace(plan, numbers=()))
    if packing is not None:
        problem, packs = packing.carry_out()
        before = (*before, packs)
    check_windows(problem, *_why_windows(problem))
    return _after(before, window_plan(kernels.warpgroups, problem, choice))


def _after(before: tuple[LaunchPlan, ...], plan: LaunchPlan) -> LaunchPlan:
    """Return a launch after others, which write to the workspace of a stream."""
    return replace(plan, before=before, stream=before[-1].stream) if before else plan


def _why_windows(problem: Convolution) -> tuple[str, str]:
    """Return why TMA loads images, and what to do instead."""
    inputs = problem.product.a.type
    if inputs in FP8:
        return f"`x` is {describe_type(inputs)}, which takes wgmma", ""
    return 'atom is "wgmma"', "leave atom out: then images are loaded without TMA"


def _is_open(problem: Convolution, choice: Choice) -> bool:
    """Return True if wgmma may be chosen for a call that does not ask for it: not for float32 if images are packed,
    since packing does not round, nor if the caller splits K among blocks. 8-bit floats have no other path."""
    product = problem.product
    if product.a.type in FP8:
        return target(problem.device_stream[0]) == ARCH
    is_packed = is_rounded(product.a.type) and packing_of(problem) is not None
    is_read = is_read_by_wgmma(product.a, product.b) and not is_packed
    is_known = choice.split_k in (None, 1) and Selection(product, choice).sharing is not None
    return is_read and is_known and target(problem.product.device_stream[0]) == ARCH


def _with_tiles(problem: Convolution, choice: Choice) -> Choice:
    """Return the choice with tiles of the sm_80 path, and with the split of K that is expected to be fastest."""
    if choice.config is not None:
        return choice
    ranked = _ranked_by_warps(problem, _slices(choice))
    return choice._replace(config=best(ranked, window_facts(problem), rates_of(problem.device_stream[0]))[1])


def _slices(choice: Choice) -> int | None:
    """Return the number of blocks that share the K of a tile, if the caller sets it."""
    return 1 if choice.schedule is not None and choice.split_k is None else choice.split_k


def _ranked_by_warps(problem: Convolution, slices: int | None) -> Ranked:
    """Return the configurations of the sm_80 path with the expected microseconds."""
    a = problem.product.a
    if a.type in FP8:
        return []
    facts = window_facts(problem)._replace(k=problem.sizes.implicit_gemm("fprop")[2])
    ranked = ranked_convolutions(facts, rates_of(problem.device_stream[0]), a.widest() == WIDEST, slices)
    slower = FEW if a.array.shape[3] * a.type.bytes <= WIDEST else 1.0
    return [(slower * time, config) for time, config in ranked]


def _time_by_warps(problem: Convolution) -> float:
    """The microseconds that the sm_80 path should take."""
    return next((time for time, _ in _ranked_by_warps(problem, None)), inf)


def config_by_warpgroups(problem: Convolution, other_time: float) -> GemmConfig | None:
    """Return the configuration on the sm_90a path; None if another path is faster, with `other_time` in microseconds,
    or if TMA cannot load the images."""
    known = _by_windows(problem)
    if known is None:
        return None
    before, facts = known
    return choose_product(facts, rates_of(problem.device_stream[0]), other_time - before)


def _by_windows(problem: Convolution) -> tuple[float, ProductFacts] | None:
    """Return the microseconds to pack images or to round filters first, and the facts that the choice of tiles depends
    on; None if TMA cannot load the images."""
    packing, rates, before = packing_of(problem), rates_of(problem.device_stream[0]), 0.0
    if is_rounded(problem.product.a.type):
        before = time_to_copy(problem.product, ROUNDED_FILTERS, rates)
        problem = replace(problem, product=replace(problem.product, rounded=ROUNDED_FILTERS.left))
    if packing is not None:
        problem, before = replace(problem, sizes=packing.sizes), rates.copy_time(1, packing.moved_bytes)
    if any(window_misfits(problem.sizes) if packing else misfits(problem)):
        return None
    return before, window_facts(problem)


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
