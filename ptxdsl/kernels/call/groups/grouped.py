"""Calls of grouped_gemm(): their arrays, the assignment of tiles to blocks, and their launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

import numpy as np

from ptxdsl import Parameters
from ptxdsl import config as settings
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.groups.group import ProblemGroup, group_of
from ptxdsl.kernels.call.groups.lists import ListPlan, ProblemTable
from ptxdsl.kernels.call.groups.ragged import in_boxes
from ptxdsl.kernels.call.groups.table import ADDRESSES, SHARES, Deal, deal, describe
from ptxdsl.kernels.call.groups.tiles import in_pairs, in_shares, scheduled, with_shares
from ptxdsl.kernels.call.groups.warpgroups import (
    ListValues,
    are_lists_boxed,
    are_lists_mappable,
    begins_early,
    check_lists_mappable,
    deal_longest_first,
    widen_single_lines,
)
from ptxdsl.kernels.call.launching.residency import resident_blocks
from ptxdsl.kernels.call.launching.workspace import workspace
from ptxdsl.kernels.call.matrix import describe_type
from ptxdsl.kernels.call.products.configure import by_wgmma, configure, facts, narrower
from ptxdsl.kernels.call.products.plan import Kernels, check_factors
from ptxdsl.kernels.candidates.facts import ListFacts, class_of_list
from ptxdsl.kernels.choose.products import Ranked, choose_groups, ranked_groups, ranked_groups_by_warps
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import WGMMA, GemmConfig, specialise
from ptxdsl.kernels.epilogue import Epilogue
from ptxdsl.kernels.product.operands import FP8, Operands, takes_wgmma
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD, IN_TURN
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.parameters import grouped_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target
from ptxdsl.types import f32

MOST_FEW_ROWS = 128  # rows of problems on average, of which equal shares gain nothing


class Constants(TypedDict):
    """The compile-time constants of the grouped kernel of the sm_80 path."""

    traits: Traits
    mode: str
    sort: bool


class GroupedCall(CheckedCall):
    """A call of grouped_gemm()."""

    name = "grouped_gemm"
    problem: ProblemGroup

    def __init__(self, call: PublicCall) -> None:
        out, a, b, c = self.lists = call.arrays
        _, _, self.schedule, self.sort, self.balance = call.options
        _check_schedule(self.schedule, self.balance)
        self.kernels, self.factors = call.kernels, call.factors
        listed = group_of(a, b, c, out, (call.alpha, call.beta))
        self.out, self.is_empty = list(listed.out.owners) if listed else [], listed is None
        if listed:
            self.listed, self.problem = listed, listed.row_major
            _check_on_host(self.device_stream[0])

    @property
    def balanced(self) -> bool:
        """True if blocks have equal shares of all K."""
        return self.balance is not None

    def plan(self, config: GemmConfig | None, copied: str = "") -> ListPlan | None:
        """Return the launch; None if there is nothing to write."""
        traits = traits_of(self.problem, config, self.schedule, self.balanced)
        check_factors(self.factors, traits)
        mode = "parts" if self.balance else self.schedule
        return list_plan(self.kernels, self.listed, traits, self.lists, mode, self.sort)

    @property
    def shape_class(self) -> str:
        """The key under which the best configuration is kept."""
        group = self.problem
        read = f"mapped {are_lists_mappable(group)}, boxed {are_lists_boxed(group)}"
        said = self.schedule, self.sort, self.balance
        return f"{class_of_list(_list_facts(group))}, {_facts_of(group)}, {read}, said {said}"

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class."""
        return candidates_of(self.problem, self.schedule, self.balanced)


def list_plan(
    kernels: Kernels,
    listed: ProblemGroup,
    traits: Traits,
    lists: tuple[Any, Any, Any, Any],
    mode: str = "device",
    sort: bool = False,
) -> ListPlan | None:
    """Return the launch of the kernel with such traits; None if there is nothing to write. The path of sm_90a deals
    tiles of the longest K first."""
    problems = listed.row_major
    if not problems.out.shapes.all(axis=1).any():
        return None
    kernel, (device, _) = kernels.of(traits), problems.device_stream
    rows, early = describe(problems), True
    constants: Mapping[str, Any] = {"traits": traits}
    values: Callable[[Any, Any, tuple[float, ...], int | None, int], Parameters]
    if isinstance(traits, WarpgroupTraits):
        dealt = deal_longest_first(
            problems.shapes, traits, resident_blocks(kernel, traits.threads, device, traits=traits)
        )
        widen_single_lines(rows, problems)
        rows[:, SHARES] = dealt.shares
        values = ListValues(traits, problems, dealt.blocks)
        early = begins_early(problems.shapes, traits, dealt)
    else:
        made_for, dealt = deal_of(kernel, problems, traits, device, mode, sort)
        values, constants = partial(_values, made_for, dealt, len(problems.shapes)), made_for
        traits = made_for["traits"]
    table = ProblemTable(rows if dealt.order is None else rows[dealt.order], ADDRESSES, dealt.order)
    return ListPlan(
        kernel, dealt.blocks, traits.threads, constants, listed, lists, table, values, dealt.table, begins_early=early
    )


def candidates_of(group: ProblemGroup, schedule: str, balanced: bool) -> list[tuple[float, TuningCandidate]]:
    """Return the configurations of both paths for row-major problems of the shape class, with the expected
    microseconds."""
    known = replace(_list_facts(group), sizes=class_of_list(_list_facts(group)).sizes)
    if not group.out.shapes.all(axis=1).any():
        return []
    ranked = [] if takes_wgmma(group.a.type, group.out.type) else _ranked_by_warps(group, known, balanced)
    if schedule == "device" and not balanced and _may_take_wgmma(group):
        ranked += ranked_groups(known, rates_of(group.device_stream[0]))
    shared = with_shares(ranked, lambda config: _in_shares(group, config, known))
    return [(time, TuningCandidate(config)) for time, config in shared]


def _ranked_by_warps(group: ProblemGroup, known: ListFacts, balanced: bool) -> Ranked:
    """Return the configurations of the sm_80 path with the expected microseconds."""
    device, _ = group.device_stream
    return ranked_groups_by_warps(known, target(device), known.operands, _usual(group, balanced), rates_of(device))


def _may_take_wgmma(group: ProblemGroup) -> bool:
    """Return True if TMA can load the matrices, and wgmma truncates none of their bits."""
    is_rounded = group.a.type is f32
    return target(group.device_stream[0]) == ARCH and not is_rounded and are_lists_mappable(group)


def _list_facts(group: ProblemGroup) -> ListFacts:
    """Return the sizes of row-major problems with their operand facts."""
    return ListFacts(_sizes(group), _facts_of(group))


def _facts_of(group: ProblemGroup) -> Operands:
    """Return the operand facts of row-major problems."""
    a, b, c, out = group.a, group.b, group.c, group.out
    widths = a.widest(a.lengths), b.widest(b.lengths), narrower(out, c, out.shapes[:, 1])
    return facts(a, b, c, out, widths, in_place=group.in_place)


def _check_schedule(schedule: str, balance: str | None) -> None:
    if not isinstance(schedule, str) or schedule not in ("device", "host"):
        raise LaunchError(f"schedule is {schedule!r}", help='take "device" or "host"')
    if balance is not None and (not isinstance(balance, str) or balance != "k"):
        raise LaunchError(f"balance is {balance!r}", help='take "k", or leave it out')
    if balance and schedule == "device":
        raise LaunchError(
            'balance="k" with schedule="device": who does what depends on the load of all blocks',
            help='take schedule="host", which hands the kernel a table',
        )


def traits_of(
    group: ProblemGroup, config: GemmConfig | None, schedule: str = "device", balanced: bool = False
) -> Traits:
    """Return the traits of the kernel for row-major problems: `config` gives the tiles, else they are chosen."""
    operands, (device, _) = _facts_of(group), group.device_stream
    takes_warpgroups = schedule == "device" and not balanced
    if needs_wgmma(group, config):
        return traits_by_wgmma(group, config, takes_warpgroups=takes_warpgroups)
    if config is not None:
        return configure(scheduled(config, _usual(group, balanced)), operands, device)
    tiles = _chosen(group, balanced)
    by_warpgroups = faster_by_wgmma(group) if takes_warpgroups else None
    return by_warpgroups or configure(tiles, operands, device)


def needs_wgmma(group: ProblemGroup, config: GemmConfig | None) -> bool:
    """Return True if a configuration asks for wgmma, or if without one only the sm_90a path has such products."""
    return takes_wgmma(group.a.type, group.out.type) if config is None else config.atom == WGMMA


def traits_by_wgmma(
    group: ProblemGroup, config: GemmConfig | None, epilogue: Epilogue | None = None, takes_warpgroups: bool = True
) -> Traits:
    """Return the traits of the sm_90a kernel, with the tiles of a `config` that asks for it, or the best ones.

    Raises LaunchError for other GPUs, for matrices that wgmma does not read, and for calls without such a kernel (not
    `takes_warpgroups`).
    """
    if config is not None:
        config = scheduled(config, AHEAD, staggers=config.swap_ab)
    else:
        config = _of_no_other_path(group, takes_warpgroups)
    traits = _configured(group, config, epilogue, takes_warpgroups)
    check_lists_mappable(group)
    return traits


def faster_by_wgmma(group: ProblemGroup, epilogue: Epilogue | None = None) -> Traits | None:
    """Return the traits of the sm_90a kernel with the best tiles; None if the sm_80 path is faster, or if TMA cannot
    load the matrices."""
    if not _may_take_wgmma(group):
        return None
    known, rates = _list_facts(group), rates_of(group.device_stream[0])
    by_warps = _ranked_by_warps(group, known, balanced=False)
    config = choose_groups(by_warps + ranked_groups(known, rates), known, rates)
    if config.atom != WGMMA:
        return None
    return _configured(group, _in_shares(group, specialise(config, schedule=AHEAD), known), epilogue)


def _of_no_other_path(group: ProblemGroup, takes_warpgroups: bool) -> GemmConfig:
    """Return the tiles for types that only wgmma multiplies, or to which only its path rounds. Raises LaunchError on
    other GPUs."""
    (device, _), (cause, _) = group.device_stream, by_wgmma(group.a.type, group.out.type)
    if not takes_warpgroups:
        raise LaunchError(
            f"{cause}, whose blocks find their tiles themselves", help='take schedule="device", without balance'
        )
    if target(device) != ARCH:
        described, does, help = (
            describe_type(group.out.type),
            "to which grouped_gemm rounds",
            "convert a float16 `out` afterwards",
        )
        cause = f"`out` is {described}"
        if group.a.type in FP8:
            cause, does = f"`a` and `b` are {describe_type(group.a.type)}", "which is multiplied"
            help = "convert them to float16 before"
        raise LaunchError(
            f"{cause}, {does} on {ARCH}; the kernel is for {target(device)}",
            help=f"{help}; on the emulator, PTXDSL_ARCH={ARCH} says that it is such a GPU",
        )
    known, rates = _list_facts(group), rates_of(device)
    config = choose_groups(ranked_groups(known, rates), known, rates)
    return _in_shares(group, specialise(config, schedule=AHEAD), known)


def _configured(
    group: ProblemGroup, config: GemmConfig, epilogue: Epilogue | None, takes_warpgroups: bool = True
) -> Traits:
    """Return the traits of the sm_90a kernel, with TMA stores if possible, and with an epilogue if there is one in
    addition to that of the configuration."""
    operands, (device, _) = _facts_of(group), group.device_stream
    config = in_pairs(
        config if epilogue is None else specialise(config, epilogue=epilogue), operands, *_sizes(group)[:2]
    )
    traits = configure(config, operands, device, takes_warpgroups, shares_copies=True)
    return in_boxes(traits, device, turned=True) if are_lists_boxed(group) else traits


def _in_shares(group: ProblemGroup, config: GemmConfig, known: ListFacts) -> GemmConfig:
    """Return the configuration with even shares of the rows of large problems. With few rows, half-empty tiles are as
    good: loads take longer than the wgmmas."""
    m, n, _ = known.sizes
    if (m * n).sum() <= MOST_FEW_ROWS * n.sum():
        return config
    boxed = replace(known, operands=replace(known.operands, out_boxes=are_lists_boxed(group)))
    return in_shares(config, boxed, rates_of(group.device_stream[0]).multiprocessors)


def _sizes(group: ProblemGroup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the columns M, N and K of the problems."""
    return group.shapes[:, 0], group.shapes[:, 1], group.shapes[:, 2]


def _usual(group: ProblemGroup, balanced: bool) -> TileSchedule:
    """Return the schedule of the sm_80 path."""
    return AHEAD if group.c is None and not balanced else IN_TURN


def _chosen(group: ProblemGroup, balanced: bool = False) -> GemmConfig:
    """Return the tiles of the sm_80 path that are expected to be fastest."""
    known, rates = _list_facts(group), rates_of(group.device_stream[0])
    config = choose_groups(_ranked_by_warps(group, known, balanced), known, rates)
    return specialise(config, schedule=_usual(group, balanced))


def _check_on_host(device: int | None) -> None:
    """Raise LaunchError for numpy arrays if PTXDSL_DEVICE asks for a GPU."""
    if device is None and settings.current().device == "cuda":
        raise LaunchError(
            "grouped_gemm on numpy arrays, and PTXDSL_DEVICE=cuda: arrays that a table names are not copied to a GPU",
            help="pass CUDA arrays, or leave PTXDSL_DEVICE to the emulator",
        )


def _values(
    constants: Constants,
    deal: Deal,
    problems: int,
    table: Any,
    schedule: Any,
    factors: tuple[float, ...],
    device: int | None,
    stream: int,
) -> Parameters:
    """Return the parameters of the kernel of the sm_80 path: the table of the problems, and that of the tiles of each
    block."""
    traits, shared = constants["traits"], {}
    if constants["mode"] == "parts":
        elements = deal.slots * traits.tile[0] * traits.tile[1]
        sums, semaphores = workspace(device, stream, traits.sum, elements, deal.slots)
        shared = {"sums": sums, "semaphores": semaphores}
    alpha, beta = factors
    kind = grouped_parameters(traits, constants["mode"])
    return kind(table=table, schedule=schedule, problems=problems, total=deal.total, alpha=alpha, beta=beta, **shared)


def deal_of(
    kernel: Kernel, group: ProblemGroup, traits: Traits, device: int | None, mode: str, sort: bool
) -> tuple[Constants, Deal]:
    """Return the constants of the kernel, and the assignment of tiles to blocks."""
    constants: Constants = {"traits": traits, "mode": mode, "sort": sort and mode != "parts"}
    resident = resident_blocks(kernel, traits.threads, device, **constants)
    dealt = deal(group.shapes.tobytes(), traits.tile, resident, mode, constants["sort"])
    if mode == "parts" and not dealt.slots:
        whole: Constants = {**constants, "traits": _of_whole_tiles(traits, target(device)), "mode": "dealt"}
        if resident_blocks(kernel, traits.threads, device, **whole) >= dealt.blocks:
            return whole, dealt
    return constants, dealt


def _of_whole_tiles(traits: Traits, arch: str) -> Traits:
    """Return the traits for a table of whole tiles: with prefetching, if there is memory for it."""
    ahead = replace(traits, schedule=AHEAD)
    return ahead if traits.operands.c == "none" and ahead.fits(arch) else traits
