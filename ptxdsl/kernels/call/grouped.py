"""A call of grouped_gemm(): its arrays are checked, who does what is worked out, and the launch made and remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from ptxdsl import Parameters
from ptxdsl import config as settings
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.configure import check_is_bool, check_is_config, configure, facts, narrower, settled
from ptxdsl.kernels.call.group import ProblemGroup, group_of
from ptxdsl.kernels.call.grouped_table import ADDRESSES, Deal, address_table, deal, describe
from ptxdsl.kernels.call.lists import ProblemTable, Send, list_launch, lists_given
from ptxdsl.kernels.call.memory import CALLS, key_of_lists
from ptxdsl.kernels.call.residency import prepared, resident_blocks
from ptxdsl.kernels.call.upload import upload
from ptxdsl.kernels.call.workspace import workspace
from ptxdsl.kernels.choose.grouped import choose_tiles, of_groups
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.parameters import grouped_parameters
from ptxdsl.kernels.store.function import check_factor, factor
from ptxdsl.kernels.tiles.many import AHEAD, IN_TURN
from ptxdsl.kernels.traits import Traits
from ptxdsl.runtime.dispatch import target


class Constants(TypedDict):
    """What a grouped kernel is made for."""

    traits: Traits
    mode: str
    sort: bool


def run(
    kernel: Kernel,
    a: Sequence[object],
    b: Sequence[object],
    c: Sequence[object] | None,
    out: Sequence[object] | None,
    alpha: float,
    beta: float,
    schedule: str,
    config: GemmConfig | None,
    sort: bool,
    balance: str | None,
) -> list[Any]:
    """out[i] = alpha·a[i]@b[i] + beta·c[i] by `kernel`, as `grouped_gemm` says. Returns the list of outputs."""
    _check_schedule(schedule, balance)
    check_is_config(config)
    check_is_bool("sort", sort)
    config = settled(config)
    factors = factor("alpha", alpha), factor("beta", beta)
    listed = lists_given(a, b, c, out)
    key = key_of_lists(kernel, (config, schedule, sort, balance, factors[1] == 0), listed.lengths)
    launched = CALLS.launch(key, listed.out, listed.arrays, factors)
    if launched is not None:
        return list(launched)
    group = group_of(a, b, c, out, factors[1])
    if group is None:
        return []
    problems = group.row_major
    device, stream = problems.place
    _check_on_host(device)
    traits = traits_of(problems, config, balance is not None)
    for name, number in zip(("alpha", "beta"), factors, strict=True):
        check_factor(name, number, traits.scalar)
    if problems.out.shapes.all(axis=1).any():
        constants, deal = deal_of(kernel, problems, traits, device, "parts" if balance else schedule, bool(sort))
        if device is None:
            _emulate(kernel, problems, constants, deal, factors)
            return list(group.out.owners)
        send = _sender(kernel, constants, deal, device)
        rows = describe(problems) if deal.order is None else describe(problems)[deal.order]
        send(rows, factors, stream)
        launch = list_launch(group, listed, ProblemTable(rows, ADDRESSES, deal.order), send)
        if launch:
            CALLS.keep(key, launch)
    return list(group.out.owners)


def _check_schedule(schedule: str, balance: str | None) -> None:
    if schedule not in ("device", "host"):
        raise LaunchError(f"schedule is {schedule!r}", help='take "device" or "host"')
    if balance not in (None, "k"):
        raise LaunchError(f"balance is {balance!r}", help='take "k", or leave it out')
    if balance and schedule == "device":
        raise LaunchError(
            'balance="k" with schedule="device": who does what depends on the load of all blocks',
            help='take schedule="host", which hands the kernel a table',
        )


def traits_of(group: ProblemGroup, config: GemmConfig | None, balanced: bool = False) -> Traits:
    """What the kernel for row-major problems is made for: `config` gives the tiles, else they are chosen."""
    a, b, c, out = group.a, group.b, group.c, group.out
    widths = a.widest(a.lengths), b.widest(b.lengths), narrower(out, c, out.shapes[:, 1])
    operands = facts(a, b, c, out, widths, in_place=group.in_place)
    schedule = AHEAD if c is None and not balanced else IN_TURN
    sizes, (device, _) = (group.shapes[:, 0], group.shapes[:, 1], group.shapes[:, 2]), group.place
    tiles = (
        of_groups(config, schedule)
        if config
        else choose_tiles(sizes, target(device), operands, schedule, model_of(device), balanced=balanced)
    )
    return configure(tiles, operands, device)


def _check_on_host(device: int | None) -> None:
    """Raises LaunchError for numpy arrays that PTXDSL_DEVICE wants on a GPU."""
    if device is None and settings.current().device == "cuda":
        raise LaunchError(
            "grouped_gemm on numpy arrays, and PTXDSL_DEVICE=cuda: arrays that a table names are not copied to a GPU",
            help="pass CUDA arrays, or leave PTXDSL_DEVICE to the emulator",
        )


def _emulate(
    kernel: Kernel, group: ProblemGroup, constants: Constants, deal: Deal, factors: tuple[float, float]
) -> None:
    traits = constants["traits"]
    rows, schedule = describe(group), deal.table.copy()  # blocks count themselves in it
    table = address_table(group, rows, deal.order)
    values = _values(constants, deal, (table, schedule), len(rows), factors, None, 0)
    kernel[deal.blocks, traits.threads](values, **constants)


def _sender(kernel: Kernel, constants: Constants, deal: Deal, device: int) -> Send:
    """What launches such problems on a GPU, wherever their matrices are."""
    traits = constants["traits"]
    handle = prepared(kernel, deal.blocks, traits.threads, device, **constants)

    def send(rows: np.ndarray, factors: tuple[float, ...], stream: int) -> None:
        address = upload(device, stream, rows, deal.table)
        tables = address, address + rows.nbytes
        handle(_values(constants, deal, tables, len(rows), factors, device, stream).flat, stream=stream)

    return send


def _values(
    constants: Constants,
    deal: Deal,
    tables: tuple[Any, Any],
    problems: int,
    factors: tuple[float, ...],
    device: int | None,
    stream: int,
) -> Parameters:
    """The parameters of the kernel: `tables` are that of the problems, and that of who does what."""
    traits, shared = constants["traits"], {}
    if constants["mode"] == "parts":
        elements = deal.slots * traits.tile[0] * traits.tile[1]
        sums, semaphores = workspace(device, stream, traits.sum, elements, deal.slots)
        shared = {"sums": sums, "semaphores": semaphores}
    table, schedule = tables
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
