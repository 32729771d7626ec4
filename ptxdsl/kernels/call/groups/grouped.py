"""Calls of grouped_gemm(): their arrays, the assignment of tiles to blocks, and their launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypedDict

import numpy as np

from ptxdsl import Parameters
from ptxdsl import config as settings
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.groups.group import ProblemGroup, group_of
from ptxdsl.kernels.call.groups.lists import ListPlan, ProblemTable
from ptxdsl.kernels.call.groups.table import ADDRESSES, SHARES, Deal, deal, describe
from ptxdsl.kernels.call.groups.warpgroups import (
    ListValues,
    are_lists_boxed,
    deal_longest_first,
    unmappable_lists,
    widen_single_lines,
)
from ptxdsl.kernels.call.launching.residency import resident_blocks
from ptxdsl.kernels.call.launching.workspace import workspace
from ptxdsl.kernels.call.paths.kernel import by_wgmma
from ptxdsl.kernels.call.paths.path import GroupRequest, Path
from ptxdsl.kernels.call.paths.select import PATHS, grouped, path_of
from ptxdsl.kernels.call.products.options import facts, narrower
from ptxdsl.kernels.call.products.plan import Kernels, check_factors
from ptxdsl.kernels.candidates.facts import ListFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import Epilogue
from ptxdsl.kernels.product.operands import CSource, Operands, takes_wgmma
from ptxdsl.kernels.tiles.many import AHEAD, IN_TURN
from ptxdsl.kernels.traits.parameters import grouped_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target

MOST_FEW_ROWS = 128  # rows of problems on average, of which equal shares gain nothing


class Constants(TypedDict):
    """The compile-time constants of the grouped kernel of the sm_80 path."""

    traits: Traits
    mode: str
    sort: bool


class GroupedCall(TunableCall):
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
        self.paths = paths_of(self.schedule, self.balanced)
        if self.schedule != "device" or self.sort:
            self.class_suffix = f", said {(self.schedule, self.sort, self.balance)}"

    @property
    def balanced(self) -> bool:
        """True if blocks have equal shares of all K."""
        return self.balance is not None

    @property
    def request(self) -> GroupRequest:
        """The request to the paths."""
        return request_of(self.problem, self.balanced)

    def plan(self, config: GemmConfig | None, copied: str = "") -> ListPlan | None:
        """Return the launch; None if there is nothing to write."""
        traits = traits_of(self.problem, config, self.schedule, self.balanced)
        check_factors(self.factors, traits)
        mode = "parts" if self.balance else self.schedule
        return list_plan(self.kernels, self.listed, traits, self.lists, mode, self.sort)


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
    kernel, rows = kernels.of(traits), describe(problems)
    values: Callable[[Any, Any, tuple[float, ...], int | None, int], Parameters]
    constants, dealt, values = _DEALS[traits.path](kernel, problems, traits, rows, mode, sort)
    table = ProblemTable(rows if dealt.order is None else rows[dealt.order], ADDRESSES, dealt.order)
    return ListPlan(
        kernel, dealt.blocks, constants["traits"].threads, constants, listed, lists, table, values, dealt.table
    )


def request_of(group: ProblemGroup, balanced: bool = False, epilogue: Epilogue | None = None) -> GroupRequest:
    """Return the request to the paths, for kernels of row-major problems. With few rows half-empty tiles are as good as
    equal shares: loads take longer than the wgmmas."""
    m, n, k = group.shapes.T
    return GroupRequest(
        "grouped_gemm",
        ListFacts((m, n, k), _facts_of(group)),
        group.device_stream[0],
        obstacles=tuple(unmappable_lists(group)),
        usual=AHEAD if group.c is None and not balanced else IN_TURN,
        epilogue=epilogue,
        boxed=are_lists_boxed(group),
        cut=bool((m * n).sum() > MOST_FEW_ROWS * n.sum()),
    )


def paths_of(schedule: str, balanced: bool) -> list[Path]:
    """Return the paths whose kernels deal tiles so: those of wgmma do it while they run."""
    is_dealt = schedule == "device" and not balanced
    return [path for path in PATHS if is_dealt or not path.uses_tma]


def _facts_of(group: ProblemGroup) -> Operands:
    """Return the operand facts of row-major problems."""
    a, b, c, out = group.a, group.b, group.c, group.out
    widths = a.widest(a.lengths), b.widest(b.lengths), narrower(out, c, out.shapes[:, 1])
    return facts(a, b, c, out, widths, in_place=group.in_place)


def _dealt_by_warps(
    kernel: Kernel, problems: ProblemGroup, traits: Traits, rows: np.ndarray, mode: str, sort: bool
) -> Dealt:
    """Return how tiles are dealt to blocks of warps."""
    constants, dealt = deal_of(kernel, problems, traits, problems.device_stream[0], mode, sort)
    return constants, dealt, partial(_values, constants, dealt, len(problems.shapes))


def _dealt_by_warpgroups(
    kernel: Kernel, problems: ProblemGroup, traits: Any, rows: np.ndarray, mode: str, sort: bool
) -> Dealt:
    """Return how tiles are dealt to blocks of warpgroups, the longest K first, and complete the table of problems."""
    device, _ = problems.device_stream
    resident = resident_blocks(kernel, traits.threads, device, traits=traits)
    dealt = deal_longest_first(problems.shapes, traits, resident)
    widen_single_lines(rows, problems)
    rows[:, SHARES] = dealt.shares
    return {"traits": traits}, dealt, ListValues(traits, problems, dealt.blocks)


Dealt: TypeAlias = tuple[Any, Deal, Callable[[Any, Any, tuple[float, ...], int | None, int], Parameters]]
"""The constants of a kernel, its tiles, and its parameters."""
_DEALS: dict[str, Callable[..., Dealt]] = {"sm80": _dealt_by_warps, "sm90": _dealt_by_warpgroups}


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
    paths = paths_of(schedule, balanced)
    if needs_wgmma(group, config) and not any(path.uses_tma for path in paths):
        cause, otherwise = by_wgmma(group.a.type, group.out.type)
        raise LaunchError(
            f"{cause}, whose blocks find their tiles themselves",
            help=f'take schedule="device", without balance{otherwise}',
        )
    return grouped(config, request_of(group, balanced), paths)


def needs_wgmma(group: ProblemGroup, config: GemmConfig | None) -> bool:
    """Return True if a configuration asks for wgmma, or if without one only its path has such products."""
    return takes_wgmma(group.a.type, group.out.type) if config is None else path_of(config).uses_tma


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
    return ahead if traits.operands.c is CSource.NONE and ahead.fits(arch) else traits
