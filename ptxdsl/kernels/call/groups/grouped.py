"""A call of grouped_gemm(): its arrays are checked, who does what is worked out, and the launch made and remembered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypedDict, cast

import numpy as np

from ptxdsl import Parameters
from ptxdsl import config as settings
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.groups.group import ProblemGroup, group_of
from ptxdsl.kernels.call.groups.lists import ProblemTable, Send, TableSender, keep_lists, list_launch, lists_given
from ptxdsl.kernels.call.groups.ragged import in_boxes
from ptxdsl.kernels.call.groups.table import ADDRESSES, SHARES, Deal, address_table, deal, describe
from ptxdsl.kernels.call.groups.warpgroups import (
    ListValues,
    are_lists_boxed,
    are_lists_mappable,
    begins_early,
    check_lists_mappable,
    deal_longest_first,
    widen_single_lines,
)
from ptxdsl.kernels.call.launching.launches import LaunchPlan, address_of
from ptxdsl.kernels.call.launching.memory import CALLS, key_of
from ptxdsl.kernels.call.launching.residency import prepared, resident_blocks
from ptxdsl.kernels.call.launching.workspace import workspace
from ptxdsl.kernels.call.matrix import ArrayArgument
from ptxdsl.kernels.call.products.configure import check_is_bool, configure, facts, narrower, settled
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.call.tuned import TUNE, Trials, text_of, tuned_once, wants_tuning
from ptxdsl.kernels.choose.grouped import (
    by_shares,
    choose_tiles,
    choose_warpgroup_tiles,
    in_pairs,
    of_groups,
    ranked_of_groups,
    ranked_tiles,
    with_shares,
)
from ptxdsl.kernels.choose.large_products import ROWS
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.warpgroups import ListFacts
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.function import check_factor, factors_of
from ptxdsl.kernels.tiles.many import AHEAD, IN_TURN
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.parameters import grouped_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target
from ptxdsl.types import f32


class Constants(TypedDict):
    """What a grouped kernel is made for."""

    traits: Traits
    mode: str
    sort: bool


def run(
    kernels: Kernels,
    a: Sequence[object],
    b: Sequence[object],
    c: Sequence[object] | None,
    out: Sequence[object] | None,
    alpha: float,
    beta: float,
    schedule: str,
    config: GemmConfig | Literal["tune"] | None,
    sort: bool,
    balance: str | None,
) -> list[Any]:
    """out[i] = alpha·a[i]@b[i] + beta·c[i] by one of `kernels`, as `grouped_gemm` says. Returns the list of outputs."""
    _check_schedule(schedule, balance)
    check_is_bool("sort", sort)
    factors, arrays = factors_of(alpha, beta), (out, a, b, c)
    chosen = None if wants_tuning(config) else settled(cast("GemmConfig | None", config))
    key = key_of(kernels, chosen or config, (out is None, c is None, schedule, sort, balance), a, b)
    launched = CALLS.launch(key, arrays, factors)
    if launched is not None:
        return list(launched)
    if wants_tuning(config):
        chosen = _tuned(kernels, (a, b, c, out), factors, schedule, sort, balance)
    group = group_of(a, b, c, out, factors[1])
    if group is None:
        return []
    problems = group.row_major
    device, _ = problems.device_stream
    _check_on_host(device)
    traits = traits_of(problems, chosen, schedule, balance is not None)
    for name, number in zip(("alpha", "beta"), factors, strict=True):
        check_factor(name, number, traits.scalar)
    if problems.out.shapes.all(axis=1).any():
        launch = launch_of(kernels, problems, traits, "parts" if balance else schedule, bool(sort))
        if device is None:
            _emulate(launch, problems, factors)
        else:
            _send(launch, group, arrays, factors, key)
    return list(group.out.owners)


def _send(
    launch: ListKernel, group: ProblemGroup, arrays: tuple[Any, ...], factors: tuple[float, float], key: Hashable
) -> None:
    """Launches on the GPU of the arrays, and remembers it by the key of the call."""
    (out, a, b, c), problems, order = arrays, group.row_major, launch.deal.order
    device, stream = problems.device_stream
    assert device is not None
    rows = launch.rows(problems) if order is None else launch.rows(problems)[order]
    send = _sender(launch, device, rows)
    send(rows, factors, stream)
    kept = list_launch(group, lists_given(a, b, c, out), ProblemTable(rows, ADDRESSES, order), send)
    if kept:
        keep_lists(kept, key, arrays, factors)


def _tuned(
    kernels: Kernels,
    lists: tuple[Sequence[Any], Sequence[Any], Sequence[Any] | None, Sequence[Any] | None],
    factors: tuple[float, float],
    schedule: str,
    sort: bool,
    balance: str | None,
) -> GemmConfig | None:
    """What config="tune" stands for, for lists a, b, c, out; None for the choice of the model, as on the emulator."""
    a, b, c, out = lists
    group = group_of(a, b, c, out, factors[1])
    if group is None or group.row_major.device_stream[0] is None:
        return None
    problems = group.row_major
    options = schedule, balance, factors[1] == 0, repr(_facts_of(problems))
    call = TUNE, kernels, options, settings.deciding(), problems.device_stream, problems.shapes.tobytes()
    written = None if group.in_place else out  # what is read must not change before the last launch

    def run_with(config: GemmConfig) -> None:
        run(kernels, a, b, c, written, *factors, schedule, config, sort, balance)

    def text(config: GemmConfig) -> str:
        traits = traits_of(problems, config, schedule, balance is not None)
        launch = launch_of(kernels, problems, traits, "parts" if balance else schedule, bool(sort))
        return text_of(launch.kernel, launch.constants, problems.device_stream[0])

    def trials() -> Trials:
        known = candidates_of(problems, schedule, balance is not None)
        described = repr((options, problems.shapes.tolist()))
        return Trials("grouped_gemm", described, problems.device_stream, known, run_with, text)

    return tuned_once(call, trials)


def candidates_of(group: ProblemGroup, schedule: str, balanced: bool) -> list[tuple[float, GemmConfig]]:
    """The configurations of both paths for row-major problems, with the microseconds that each should take."""
    device, _ = group.device_stream
    sizes, model, arch, operands = _sizes(group), model_of(device), target(device), _facts_of(group)
    if not group.out.shapes.all(axis=1).any():
        return []
    usual = AHEAD if group.c is None and not balanced else IN_TURN
    by_warps = ranked_tiles(sizes, arch, operands, usual, model)
    is_open = schedule == "device" and not balanced and arch == ARCH and group.a.type is not f32
    takes_wgmma = is_open and are_lists_mappable(group)
    ranked = ranked_of_groups(by_warps, ListFacts(sizes, operands), model, takes_wgmma)
    return with_shares(ranked, lambda config: _in_shares(group, config))


def _facts_of(group: ProblemGroup) -> Operands:
    """What the arrays of row-major problems say of their kernel."""
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
    """What the kernel for row-major problems is made for: `config` gives the tiles, else they are chosen."""
    a, c, operands = group.a, group.c, _facts_of(group)
    device, _ = group.device_stream
    takes_warpgroups = schedule == "device" and not balanced
    if config is not None and config.atom == WGMMA:
        config = of_groups(config, AHEAD, staggers=config.swap_ab)
        traits = _by_wgmma(group, config, operands, takes_warpgroups)
        check_lists_mappable(group)
        return traits
    usual = AHEAD if c is None and not balanced else IN_TURN
    if config is not None:
        return configure(of_groups(config, usual), operands, device)
    tiles = _chosen(group, operands, usual, device, balanced)
    by_warps = not takes_warpgroups or target(device) != ARCH or a.type is f32  # whose low bits wgmma cuts off
    if not by_warps and are_lists_mappable(group):
        tiles = _by_warpgroups(group, operands, tiles, device) or tiles
    if tiles.atom == WGMMA:
        return _by_wgmma(group, tiles, operands, takes_warpgroups)
    return configure(tiles, operands, device, takes_warpgroups)


def _by_wgmma(group: ProblemGroup, config: GemmConfig, operands: Operands, takes_warpgroups: bool) -> Traits:
    """Of the sm_90a path: with outputs that tensor copies store, where they can."""
    device, _ = group.device_stream
    config = in_pairs(config, operands, *_sizes(group)[:2])
    traits = configure(config, operands, device, takes_warpgroups, shares_copies=True)
    return in_boxes(traits, device, turned=True) if are_lists_boxed(group) else traits


def _by_warpgroups(group: ProblemGroup, operands: Operands, other: GemmConfig, device: int | None) -> GemmConfig | None:
    """The tiles of the sm_90a path; None where the `other` ones should take less time."""
    sizes, model = _sizes(group), model_of(device)
    computing = model.group(other, operands.inputs, sizes)
    config = choose_warpgroup_tiles(ListFacts(sizes, operands), AHEAD, model, computing)
    return config and _in_shares(group, config)


def _in_shares(group: ProblemGroup, config: GemmConfig) -> GemmConfig:
    """The same, in even shares of the rows of large problems. Of few rows, tiles that are half empty are as good:
    reading takes longer than to multiply them."""
    m, n, _ = sizes = _sizes(group)
    if (m * n).sum() <= ROWS * n.sum():
        return config
    operands, (device, _) = replace(_facts_of(group), out_boxes=are_lists_boxed(group)), group.device_stream
    return by_shares(config, ListFacts(sizes, operands), model_of(device).multiprocessors)


def _sizes(group: ProblemGroup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of M, N and K."""
    return group.shapes[:, 0], group.shapes[:, 1], group.shapes[:, 2]


def _chosen(
    group: ProblemGroup, operands: Operands, schedule: TileSchedule, device: int | None, balanced: bool
) -> GemmConfig:
    """The tiles of the sm_80 path that should cost least."""
    return choose_tiles(_sizes(group), target(device), operands, schedule, model_of(device), balanced=balanced)


def _check_on_host(device: int | None) -> None:
    """Raises LaunchError for numpy arrays that PTXDSL_DEVICE wants on a GPU."""
    if device is None and settings.current().device == "cuda":
        raise LaunchError(
            "grouped_gemm on numpy arrays, and PTXDSL_DEVICE=cuda: arrays that a table names are not copied to a GPU",
            help="pass CUDA arrays, or leave PTXDSL_DEVICE to the emulator",
        )


@dataclass(frozen=True)
class ListKernel:
    """A kernel for a list of problems, and who does what in it. `values` are its parameters, given the addresses of the
    two tables, the factors and where it runs. If it waits for the kernels before it, it may begin while they run where
    it `begins_early`."""

    kernel: Kernel
    constants: Mapping[str, Any]
    traits: Traits
    deal: Deal
    values: Callable[[Any, Any, tuple[float, ...], int | None, int], Parameters]
    begins_early: bool = True

    def rows(self, group: ProblemGroup) -> np.ndarray:
        """What the table of the problems says, a row for each."""
        rows = describe(group)
        if isinstance(self.traits, WarpgroupTraits):
            widen_single_lines(rows, group)
            rows[:, SHARES] = self.deal.shares
        return rows


def launch_of(kernels: Kernels, group: ProblemGroup, traits: Traits, mode: str, sort: bool) -> ListKernel:
    """What is launched for row-major problems."""
    device, _ = group.device_stream
    if isinstance(traits, WarpgroupTraits):
        return _warpgroup_launch_of(kernels.warpgroups, group, traits, device)
    constants, dealt = deal_of(kernels.warps, group, traits, device, mode, sort)
    values = partial(_values, constants, dealt, len(group.shapes))
    return ListKernel(kernels.warps, constants, constants["traits"], dealt, values)


def _warpgroup_launch_of(
    kernel: Kernel, group: ProblemGroup, traits: WarpgroupTraits, device: int | None
) -> ListKernel:
    """The same on the sm_90a path, which deals tiles of the longest K first."""
    resident = resident_blocks(kernel, traits.threads, device, traits=traits)
    dealt = deal_longest_first(group.shapes, traits, resident)
    values, early = ListValues(traits, group, dealt.blocks), begins_early(group.shapes, traits, dealt)
    return ListKernel(kernel, {"traits": traits}, traits, dealt, values, early)


def _emulate(launch: ListKernel, group: ProblemGroup, factors: tuple[float, float]) -> None:
    rows, schedule = launch.rows(group), launch.deal.table.copy()  # blocks count themselves in it
    table = address_table(group, rows, launch.deal.order)
    values = launch.values(table, schedule, factors, None, 0)
    LaunchPlan(launch.kernel, launch.deal.blocks, launch.traits.threads, values, launch.constants).run()


def _sender(launch: ListKernel, device: int, rows: np.ndarray) -> Send:
    """What launches such problems on a GPU, wherever their matrices are."""
    deal, early = launch.deal, launch.begins_early
    handle = prepared(launch.kernel, deal.blocks, launch.traits.threads, device, begins_early=early, **launch.constants)

    def arguments(address: int, factors: tuple[float, ...], stream: int) -> list[Any]:
        values = launch.values(address, address + rows.nbytes, factors, device, stream)
        return [address_of(v) if isinstance(v, ArrayArgument) else v for v in values.flat]

    counts_blocks = launch.constants.get("sort", False)  # by counters in the table, which begin at 0
    return TableSender(handle, device, lambda rows: (rows, deal.table), arguments, counts_blocks)


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
    """The parameters of the kernel of the sm_80 path: tables of the problems, and of who does what."""
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
    """The constants of the kernel, and who does what."""
    constants: Constants = {"traits": traits, "mode": mode, "sort": sort and mode != "parts"}
    resident = resident_blocks(kernel, traits.threads, device, **constants)
    dealt = deal(group.shapes.tobytes(), traits.tile, resident, mode, constants["sort"])
    if mode == "parts" and not dealt.slots:
        whole: Constants = {**constants, "traits": _of_whole_tiles(traits, target(device)), "mode": "dealt"}
        if resident_blocks(kernel, traits.threads, device, **whole) >= dealt.blocks:
            return whole, dealt
    return constants, dealt


def _of_whole_tiles(traits: Traits, arch: str) -> Traits:
    """The same for a table without parts: with copies ahead, where there is memory for that."""
    ahead = replace(traits, schedule=AHEAD)
    return ahead if traits.operands.c == "none" and ahead.fits(arch) else traits
