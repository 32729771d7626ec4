"""A call of gemm(): its arrays are checked, its kernel is chosen, and its launch is made and remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Literal, NamedTuple, cast

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call import scheduled
from ptxdsl.kernels.call.batched import batch_of, is_list, lists_of
from ptxdsl.kernels.call.configure import (
    Choice,
    are_mappable,
    check_mappable,
    configure,
    facts,
    for_batches,
    is_read_by_wgmma,
    narrower,
)
from ptxdsl.kernels.call.interleaved import interleaved, may_interleave
from ptxdsl.kernels.call.launching.launches import LaunchPlan, carry_out
from ptxdsl.kernels.call.launching.memory import CALLS, BriefKey, brief_key, key_of, key_of_lists
from ptxdsl.kernels.call.launching.workspace import is_kept
from ptxdsl.kernels.call.lines import LineCopies, copies_of, takes_lines
from ptxdsl.kernels.call.lists import list_launch, lists_given
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, describe_type
from ptxdsl.kernels.call.problem import GemmProblem, problem_of
from ptxdsl.kernels.call.tuned import TUNE, TUNED, described_arrays, keep, text_of, tuned, wants_tuning
from ptxdsl.kernels.call.values import gemm_values
from ptxdsl.kernels.choose.gemm import choose, ranked
from ptxdsl.kernels.choose.model import candidate, model_of
from ptxdsl.kernels.choose.warpgroup_products import (
    ANY,
    WHOLE,
    Sharing,
    choose_product,
    ranked_products,
    shares_split_lines,
)
from ptxdsl.kernels.choose.warpgroups import ProductFacts
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import FP8, Operands
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.function import array_of, canonical, check_factor, epilogue_of, factors_of, sequence_of
from ptxdsl.kernels.tiles.choice import REDUCTIONS, Schedule
from ptxdsl.kernels.tiles.cluster_split import MOST_BLOCKS
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule import StreamKThreadblockSwizzle
from ptxdsl.types import f32

NO_OPERANDS: tuple[Any, ...] = ()


class Kernels(NamedTuple):
    """The kernels of a product, by the path that its traits are of."""

    warps: Kernel
    warpgroups: Kernel

    def of(self, traits: Traits) -> Kernel:
        return self.warpgroups if isinstance(traits, WarpgroupTraits) else self.warps


def fused(
    arrays: tuple[Any, ...], config: object, epilogue: Callable[..., Any] | None, operands: Sequence[object]
) -> tuple[tuple[Any, ...], Callable[..., Any] | None, Sequence[object]]:
    """The arrays of a call with those of its epilogue; the epilogue, one for all that mean the same; its operands."""
    if operands is not NO_OPERANDS:
        operands = sequence_of(operands)
        arrays += tuple(map(array_of, operands))
    if config is not None or epilogue is not None:
        epilogue = canonical(epilogue_of(config, epilogue), len(operands))
    return arrays, epilogue, operands


def run(
    kernels: Kernels,
    a: object,
    b: object,
    c: object,
    out: object,
    alpha: float,
    beta: float,
    config: GemmConfig | Literal["tune"] | None,
    schedule: Schedule | None,
    split_k: int | None,
    reduction: str | None,
    epilogue: Callable[..., Any] | None,
    operands: Sequence[object],
) -> Any:
    """out = epilogue(alpha·a@b + beta·c, *operands) by one of `kernels`, as `gemm` says. Returns out."""
    factors = factors_of(alpha, beta)
    arrays, epilogue, operands = fused((out, a, b, c), config, epilogue, operands)
    said = type(split_k), *map(type, operands)  # True equals 1, and is none
    options: tuple[Any, ...] = out is None, c is None, schedule, split_k, reduction, epilogue, *said
    brief = brief_key(kernels, config, options, a, b)
    launched = CALLS.launch(brief, (), arrays, factors)
    if launched is not None:
        return launched
    choice = Choice(None, schedule, split_k, reduction, epilogue)
    if wants_tuning(config):
        choice = choice._replace(config=_tuned(kernels, (a, b, c, out), factors, choice, operands))
    else:
        choice = choice._replace(config=cast("GemmConfig | None", config))
    options = choice, factors[1] == 0, *said
    call = key_of(kernels, options, arrays)
    if call:
        launched = CALLS.launch(*call, arrays, factors)
        if launched is not None:
            return launched
    elif is_list(a, b):
        return _run_lists(kernels.warps, lists_of(a, b, c, out), choice, factors, operands)
    problem = problem_of(a, b, c, out, factors[1], epilogue, operands)
    plan = plan_of(kernels, problem.row_major, choice, factors)
    if plan:
        carry_out(plan, call, arrays, problem.out, factors, BriefKey(brief, config, epilogue))
    return problem.out.owner


def _tuned(
    kernels: Kernels,
    matrices: tuple[object, ...],
    factors: tuple[float, float],
    choice: Choice,
    operands: Sequence[object],
) -> GemmConfig | None:
    """What config="tune" stands for, for matrices a, b, c and out; None for the choice of the model: on the emulator,
    for lists, and for arrays of other libraries than torch and CuPy."""
    a, b, c, out = matrices
    options = TUNE, choice, factors[1] == 0, *map(type, operands)
    call = key_of(kernels, options, (out, a, b, c, *map(array_of, operands)))
    if call is None:
        return None
    if call[0] not in TUNED:
        problem = problem_of(a, b, c, out, factors[1], choice.epilogue, operands).row_major
        is_read = any(each is out for each in (c, *map(array_of, operands)))
        written = None if is_read else out  # what is read must not change before the last launch

        def run_with(config: GemmConfig) -> None:
            _, schedule, split_k, reduction, epilogue = choice
            run(kernels, a, b, c, written, *factors, config, schedule, split_k, reduction, epilogue, operands)

        def text(config: GemmConfig) -> str:
            plan = plan_of(kernels, problem, choice._replace(config=config), factors)
            return text_of(plan.kernel, plan.constants, problem.device_stream[0]) if plan else ""

        described = described_arrays([out, a, b, c, *map(array_of, operands)])
        keep(call[0], tuned("gemm", described, problem.device_stream, candidates_of(problem, choice), run_with, text))
    return TUNED[call[0]]


def candidates_of(problem: GemmProblem, choice: Choice) -> list[tuple[float, GemmConfig]]:
    """The configurations of both paths for a row-major problem, with the microseconds that each should take."""
    device, _ = problem.device_stream
    if not problem.m or not problem.n or not problem.k or _is_copied(problem, choice):
        return []
    a, b, model, known = problem.a, problem.b, model_of(device), []
    if a.type not in FP8:
        along_k, width = a.major == "row" and b.major == "column", min(a.widest(a.length), b.widest(b.length))
        is_scheduled, m = choice.is_scheduled or problem.batches is not None, problem.m * (problem.batches or 1)
        known += ranked(m, problem.n, problem.k, a.type, target(device), width, along_k, is_scheduled, model)
    if may_take_warpgroups(problem, choice, device) and are_mappable(problem.k, a, b):
        known += ranked_products(_product_facts(problem, facts_of(problem), choice), model, sharing_of(choice) or WHOLE)
    return known


def _is_copied(problem: GemmProblem, choice: Choice) -> bool:
    """Whether the choice of the model may copy operands first, which no configuration says."""
    is_open = may_take_warpgroups(problem, choice, problem.device_stream[0]) and is_read_by_wgmma(problem.a, problem.b)
    if not is_open or not takes_lines(problem):
        return False
    copies = _copies_of(problem, choice)
    return copies.a or copies.b


def _copies_of(problem: GemmProblem, choice: Choice) -> LineCopies:
    """Copies of operands that tensor copies cannot address, or only slowly where clusters do not bring them."""
    facts, device = _product_facts(problem, facts_of(problem), choice), problem.device_stream[0]
    sharing = sharing_of(choice) or WHOLE
    are_shared = not sharing.is_shared and shares_split_lines(facts, model_of(device))
    return copies_of(problem, only_unmappable=are_shared)


def facts_of(problem: GemmProblem) -> Operands:
    """What the arrays of a row-major problem say of their kernel."""
    a, b, c, out = problem.a, problem.b, problem.c, problem.out
    return facts(
        a, b, c, out, (a.widest(a.length), b.widest(b.length), narrower(out, c, problem.n)),
        in_place=problem.in_place,
        batches="none" if problem.batches is None else "strided",
        extras=tuple(operand.extra for operand in problem.operands),
    )  # fmt: skip


def traits_of(problem: GemmProblem, choice: Choice, takes_warpgroups: bool = False) -> Traits:
    """What the kernel for a row-major problem is made for, on the sm_80 path unless it `takes_warpgroups`.

    Raises LaunchError for what its GPU has not enough of.
    """
    device, _ = problem.device_stream
    operands = facts_of(problem)
    config = config_of(problem, choice, operands, device, takes_warpgroups)
    if config.atom == WGMMA and _is_stored_in_boxes(problem, config):
        operands = replace(operands, out_boxes=True)
    traits = configure(config, operands, device, takes_warpgroups, shares_copies=_may_share_copies(problem, config))
    if isinstance(traits, WarpgroupTraits):
        check_mappable(problem.k, problem.a, problem.b)
    return traits


def _may_share_copies(problem: GemmProblem, config: GemmConfig) -> bool:
    """Whether blocks of a cluster read the same columns of B, whatever their batch."""
    return problem.batches is None or (config.tile_schedule.joins_batches and problem.b.batch_stride == 0)


def _is_stored_in_boxes(problem: GemmProblem, config: GemmConfig) -> bool:
    """Whether tensor copies can store the output: what is staged is what is written."""
    out = problem.out
    is_whole = not config.swap_ab and config.tile_schedule.has_whole_tiles
    c_comes_so = problem.c is None or (problem.c.major == "row" and problem.c.is_mappable)
    beside = all(not operand.extra.is_matrix for operand in problem.operands)
    return is_whole and c_comes_so and beside and out.type.bits == 16 and out.is_mappable


def config_of(
    problem: GemmProblem, choice: Choice, operands: Operands, device: int | None, takes_warpgroups: bool = False
) -> GemmConfig:
    """The tiles and the schedule: those that the caller chooses, else those that should take the least time."""
    config = choice.of(choice.config or _chosen(problem, choice, operands, device, takes_warpgroups))
    if problem.batches is None:
        return config
    if config.split_k > 1:
        raise LaunchError(
            f"split_k is {config.split_k}, and the products are batches: each of them is computed by blocks of its own",
            help="leave split_k out, or call gemm for each of the batches",
        )
    return for_batches(config)


def _chosen(
    problem: GemmProblem, choice: Choice, operands: Operands, device: int | None, takes_warpgroups: bool
) -> GemmConfig:
    if problem.a.type in FP8:
        return _chosen_fp8(problem, choice, operands, device)
    time, config = _time_by_warps(problem, choice, device)
    is_open = takes_warpgroups and may_take_warpgroups(problem, choice, device)
    if not is_open or not are_mappable(problem.k, problem.a, problem.b):
        return config
    sharing = sharing_of(choice) or WHOLE
    return choose_product(_product_facts(problem, operands, choice), model_of(device), time, sharing) or config


def may_take_warpgroups(problem: GemmProblem, choice: Choice, device: int | None) -> bool:
    """Whether wgmma is for a call that does not ask for it: not for schedules of one's own, nor for float32, whose low
    bits it cuts off: mma.sync gets them rounded."""
    return sharing_of(choice) is not None and problem.a.type is not f32 and target(device) == ARCH


def sharing_of(choice: Choice) -> Sharing | None:
    """What a caller says of how blocks share K; None for a TileSchedule, which says it itself and may be written for
    one of the paths, and for what is no such value."""
    schedule, slices = choice.schedule, 1 if choice.split_k is None else choice.split_k
    way = choice.reduction or GemmConfig.reduction
    if isinstance(schedule, TileSchedule) or type(slices) is not int or slices < 1 or way not in REDUCTIONS:
        return None
    if not choice.is_scheduled:
        return ANY
    if isinstance(schedule, StreamKThreadblockSwizzle):
        return Sharing(blocks=schedule.resident_blocks)
    if slices > 1 and way == "cluster" and slices > MOST_BLOCKS:
        return None
    return Sharing(slices, way) if slices > 1 else WHOLE


def _time_by_warps(problem: GemmProblem, choice: Choice, device: int | None) -> tuple[float, GemmConfig]:
    """The best configuration of the sm_80 path, and the microseconds that it should take; it has no clusters."""
    a, b, batches = problem.a, problem.b, problem.batches
    along_k = a.major == "row" and b.major == "column"
    width = min(a.widest(a.length), b.widest(b.length))
    is_scheduled = choice.is_scheduled or batches is not None
    shape, model = (problem.m * (batches or 1), problem.n, problem.k), model_of(device)
    config = choose(*shape, a.type, target(device), width, along_k, is_scheduled, model=model)
    sharing = sharing_of(choice)
    if sharing is None or not sharing.is_shared:
        return model.product(candidate(config, a.type), shape, width), config
    if sharing.way == "cluster":
        return inf, config
    return model.product(candidate(choice._replace(epilogue=None).of(config), a.type), shape, width), config


def _chosen_fp8(problem: GemmProblem, choice: Choice, operands: Operands, device: int | None) -> GemmConfig:
    """The same of types that wgmma alone multiplies. Raises LaunchError on GPUs that have it not."""
    arch = target(device)
    known, model = _product_facts(problem, operands, choice), model_of(device)
    sharing = sharing_of(choice) or WHOLE
    config = choose_product(known, model, inf, sharing) or choose_product(known, model, inf, WHOLE)
    if arch != ARCH or config is None:
        raise LaunchError(
            f"`a` and `b` are {describe_type(problem.a.type)}, which gemm multiplies on {ARCH}; "
            f"the kernel is for {arch}",
            help=f"convert them to float16 before; on the emulator, PTXDSL_ARCH={ARCH} says that it is such a GPU",
        )
    return config


def _product_facts(problem: GemmProblem, operands: Operands, choice: Choice) -> ProductFacts:
    computes = choice.epilogue is not None
    split_lines = not problem.a.is_in_sectors, not problem.b.is_in_sectors
    sizes = problem.m, problem.n, problem.k, problem.batches or 1
    return ProductFacts(*sizes, operands, computes, split_lines, may_interleave(problem))


def plan_of(kernels: Kernels, problem: GemmProblem, choice: Choice, factors: tuple[float, float]) -> LaunchPlan | None:
    """The launch of a row-major problem; None where there is nothing to write."""
    _check_hashable(choice.schedule)
    problem, before, config = _with_lines(problem, choice)
    traits = traits_of(problem, choice._replace(config=config), takes_warpgroups=True)
    _check_factors(factors, traits)
    problem, traits = interleaved(problem, traits)
    if not problem.m or not problem.n or problem.batches == 0:
        return None
    kernel = kernels.of(traits)
    launch = scheduled.schedule(problem, traits, kernel)
    values = gemm_values(problem, launch, factors)
    stream = problem.device_stream[1] if before else launch.stream
    constants = {"traits": launch.traits}
    return LaunchPlan(kernel, launch.grid, traits.threads, values, constants, ("alpha", "beta"), stream, before)


def _with_lines(problem: GemmProblem, choice: Choice) -> tuple[GemmProblem, tuple[LaunchPlan, ...], GemmConfig | None]:
    """The problem with copies of operands that tensor copies cannot address, or only slowly, where wgmma takes less
    time with these than another path without; the launches that make them, and the configuration."""
    a, b, device = problem.a, problem.b, problem.device_stream[0]
    is_open = not choice.config and may_take_warpgroups(problem, choice, device) and is_read_by_wgmma(a, b)
    if not is_open or not takes_lines(problem):
        return problem, (), choice.config
    copies = _copies_of(problem, choice)
    if not copies.a and not copies.b:
        return problem, (), None
    operands = replace(facts_of(problem), a_bytes=WIDEST_ACCESS, b_bytes=WIDEST_ACCESS)
    other = inf if a.type in FP8 else _time_by_warps(problem, choice, device)[0]
    sharing = sharing_of(choice) or WHOLE
    known = _product_facts(problem, operands, choice)
    known = known._replace(split_lines=copies.split(problem), interleaves=known.interleaves and not copies.a)
    config = choose_product(known, model_of(device), other - copies.time, sharing)
    return (problem, (), None) if config is None else (*copies.carry_out(problem), config)


def _check_factors(factors: tuple[float, float], traits: Traits) -> None:
    for name, number in zip(("alpha", "beta"), factors, strict=True):
        check_factor(name, number, traits.scalar)


def _check_hashable(schedule: object) -> None:
    if schedule.__hash__ is None:
        raise LaunchError(
            f"schedule is {schedule!r}; gemm takes one schedule, a value of ptxdsl.schedule",
            help="such as IdentityThreadblockSwizzle(8), PersistentScheduler() or StreamKThreadblockSwizzle()",
        )


def _run_lists(
    kernel: Kernel,
    lists: dict[str, Sequence[object]],
    choice: Choice,
    factors: tuple[float, float],
    operands: Sequence[object],
) -> Sequence[object]:
    """The same of lists of matrices. Returns the list of outputs."""
    if operands:
        raise LaunchError(
            "operands of the epilogue are given, and the matrices are lists",
            help="pass arrays of three dimensions, whose products all take the same operands",
        )
    listed = lists_given(lists["a"], lists["b"], lists.get("c"), lists.get("out"))
    key = key_of_lists(kernel, (choice, factors[1] == 0), listed.lengths)
    launched: Sequence[object] | None = CALLS.launch(key, listed.out, listed.arrays, factors)
    if launched is not None:
        return launched
    batch = batch_of(lists, factors[1])
    if batch is None:
        return []
    problem, (device, _) = batch.problem, batch.group.device_stream
    _check_hashable(choice.schedule)
    traits = configure(config_of(problem, choice, batch.facts, device), batch.facts, device)
    _check_factors(factors, traits)
    if problem.m and problem.n:
        planned = scheduled.schedule(problem, traits, kernel)
        sent = batch.launch(kernel, planned, *factors)
        launch = sent and list_launch(batch.group, listed, *sent, planned.stream)
        if launch and is_kept(device, planned.stream):
            CALLS.keep(key, launch)
    return lists.get("out", batch.group.out.owners)
