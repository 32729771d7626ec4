"""Many products in one launch: persistent blocks take tile after tile of problems of any sizes.

What a block does with a tile is that of `gemm.py`; here is which tile, and where its matrices are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import ptxdsl as pd
from ptxdsl import config as settings
from ptxdsl import ptr, s32, s64, u32, u64
from ptxdsl.arrays import AddressTable
from ptxdsl.calls import target
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.block import Product
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import Target
from ptxdsl.kernels.function import check_factor, factor
from ptxdsl.kernels.given import USUAL, check_is_bool, check_is_config
from ptxdsl.kernels.group import Group, group_of
from ptxdsl.kernels.group_plan import GroupPlans, Send
from ptxdsl.kernels.grouped_choice import configured
from ptxdsl.kernels.ragged import grouped_gemm_masked, grouped_gemm_ragged
from ptxdsl.kernels.residency import place_of, prepared, resident_blocks
from ptxdsl.kernels.scheduled import settled, specialise
from ptxdsl.kernels.tiles import AHEAD, IN_TURN, Part, Tiles, Work
from ptxdsl.kernels.upload import upload
from ptxdsl.kernels.visitor import COUNTERS, DeviceVisitor, TableVisitor, seat
from ptxdsl.kernels.workspace import workspace
from ptxdsl.schedule import GroupedProblemVisitor, tile_of
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.types import Pointer

__all__ = ["grouped_gemm", "grouped_gemm_masked", "grouped_gemm_ragged"]

PLANS = GroupPlans()
STRIP = 8  # rows of tiles that blocks go down first, for what L2 still holds
ROW = 12  # numbers that describe a problem
NO_TABLE = np.zeros(1, np.int32)
ENTRY, PART = 2, 8  # s32 of an entry of the host's table: of a tile, of a part of a tile


def load_product(table: Any, number: Any, config: GemmConfig, alpha: Any, beta: Any) -> Product:
    """A row of the table: M, N, K, 0, and of A, B, C and out the address and the elements between lines."""
    place = table + number.to(s64) * ROW
    m, n, k, _, *rest = [word for i in range(0, ROW, 2) for word in pd.ptx.ld.global_.v2.s64(place + i)]
    types = config.inputs, config.inputs, config.output, config.output
    a, b, c, out = (
        Target(pd.pointer(address.to(u64), type), stride)
        for type, address, stride in zip(types, rest[::2], rest[1::2], strict=True)
    )
    return Product(m.to(u32), n.to(u32), k.to(u32), a, b, c, out, alpha, beta)


def shared_parameters(config: GemmConfig, mode: str) -> tuple[Any, ...]:
    """Workspace and semaphores, where parts of a tile meet."""
    return (Pointer(config.sum, "global"), Pointer(u32, "global")) if mode == "parts" else ()


@pd.kernel
def grouped_kernel(
    table: ptr[s64],
    schedule: ptr[s32],
    problems: u32,
    total: u32,
    alpha: config.scalar,
    beta: config.scalar,
    *workspace: shared_parameters(config, mode),
    config: GemmConfig = USUAL,
    mode: str = "device",
    sort: bool = False,
) -> None:
    """`table` describes `problems` problems of `total` tiles; `schedule` is what the host has worked out, in its mode:
    "host" (GroupedProblemVisitor.table), "parts" or "dealt" (`parts_table`); it is not read with "device".

    With `sort` the first tiles are the longest, and blocks are numbered by `seat`, whose counters precede that.
    """
    tiles = Tiles(config, workspace)
    entries: Any = schedule
    block: Any = pd.ctaid.x
    if sort:
        block, entries = seat(entries.bitcast(u32)), entries + COUNTERS
    visitor = VISITORS[mode](config, table, entries, problems, total, block)

    def locate(number: Any, tile: Any, *part: Any) -> Work:
        product = load_product(table, number, config, alpha, beta)
        across, down = ceil_div(product.n, config.tile[1]), ceil_div(product.m, config.tile[0])
        return Work(product, tile_of(tile, across, down, STRIP), Part(*part) if part else None)

    tiles.visit(visitor, locate)


def of_device(config: GemmConfig, table: Any, schedule: Any, problems: Any, total: Any, block: Any) -> DeviceVisitor:
    """Finds problems by their sizes in the table."""

    def tiles_of(number: Any) -> tuple[Any, Any]:
        m, n = pd.ptx.ld.global_.v2.s64(table + number.to(s64) * ROW)
        return ceil_div(m.to(u32), config.tile[0]), ceil_div(n.to(u32), config.tile[1])

    return DeviceVisitor(problems, tiles_of, block)


class RoundsVisitor(TableVisitor):
    """Reads the table of GroupedProblemVisitor: entry i of block b is for tile b + i·blocks."""

    def __init__(self, config: GemmConfig, table: Any, schedule: Any, problems: Any, total: Any, block: Any) -> None:
        self.block, blocks = block, pd.nctaid.x
        rounds, mine = ((left + (blocks - 1)) // blocks for left in (total, total - block))
        super().__init__(schedule + (block * rounds).to(s64) * ENTRY, mine, ENTRY, config.threads)

    def work(self) -> list[Any]:
        problem, start = super().work()
        return [problem, self.block + self.number * pd.nctaid.x - start]


class PartsVisitor(TableVisitor):
    """Reads the table of `parts_table`: where the entries of each block begin, then all entries."""

    def __init__(self, config: GemmConfig, table: Any, schedule: Any, problems: Any, total: Any, block: Any) -> None:
        begin, end = (schedule[block + i].bitcast(u32) for i in (0, 1))
        entries = schedule + (pd.nctaid.x + 1).to(s64)
        super().__init__(entries + begin.to(s64) * PART, end - begin, PART, config.threads)

    def work(self) -> list[Any]:
        return super().work()[:-1]


class DealtVisitor(PartsVisitor):
    """Reads the same table, no tile of which is in parts."""

    def work(self) -> list[Any]:
        return super().work()[:2]


VISITORS: dict[str, Any] = {"device": of_device, "host": RoundsVisitor, "parts": PartsVisitor, "dealt": DealtVisitor}


def grouped_gemm(
    a: Sequence[Any],
    b: Sequence[Any],
    c: Sequence[Any] | None = None,
    *,
    out: Sequence[Any] | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    schedule: str = "device",
    config: GemmConfig | None = None,
    sort: bool = False,
    balance: str | None = None,
) -> list[Any]:
    """out[i] = alpha·a[i]@b[i] + beta·c[i] for each problem, in one launch. Returns the list of outputs.

    Each problem has its own M, N, K (any of them may be 0) and leading dimensions. Types are those of `gemm`; the
    matrices of a list are of one type, on one device, and all row-major or all column-major; those of c and out lie
    alike. Without `out`, row-major arrays are made. c is not read when beta is 0, and c[i] may be out[i] itself.

    schedule="device": blocks find their tiles in the kernel, by the sizes alone. schedule="host": a table is worked out
    before (and kept for lists of the same sizes). Either takes the longest K first with `sort`, spread over the
    multiprocessors. With "host" also balance="k": each block gets as many iterations along K, tiles that are too long
    for that in parts, whose sums are added up in an order that does not change.

    numpy arrays run on the emulator, CUDA arrays on their GPU, on torch's current stream; a table of the problems goes
    there by one asynchronous copy. `config` gives the tiles, else they are chosen for the sizes.

    Raises LaunchError for arrays that do not fit; nothing is written then.
    """
    _check_schedule(schedule, balance)
    check_is_config(config)
    check_is_bool("sort", sort)
    config = settled(config)
    factors = alpha, beta = factor("alpha", alpha), factor("beta", beta)
    lists = [owners for owners in (a, b, None if beta == 0 else c, out) if owners is not None]
    key = config, schedule, sort, balance, beta == 0, *map(_length, lists)
    if out is not None and _is_launched(key, lists, factors):
        return list(out)
    group = group_of(a, b, c, out, beta)
    if group is None:
        return []
    problems = group.row_major
    place = place_of(problems.a.owners[0], problems.a.array(0))
    found = configure(problems, config, target(place[0]), balance is not None)
    for name, number in zip(("alpha", "beta"), factors, strict=True):
        check_factor(name, number, found.scalar)
    if problems.out.shapes.all(axis=1).any():
        mode = "parts" if balance else schedule
        planned = _launch(problems, found, place, factors, mode, bool(sort) and not balance)
        if out is not None and planned:
            PLANS.learn(key, lists, group, *planned)
    return list(group.out.owners)


def _length(owners: Any) -> int | None:
    return len(owners) if isinstance(owners, list | tuple) else None


def _is_launched(key: tuple[Any, ...], lists: Sequence[Any], factors: tuple[Any, Any]) -> bool:
    """Whether the launch was planned, and has now been made."""
    try:
        return PLANS.launch(key, lists, factors)
    except (LaunchError, TypeError, AttributeError):  # the careful way says what does not fit
        return False


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


def configure(group: Group, config: GemmConfig | None, arch: str, balanced: bool = False) -> GemmConfig:
    """The kernel for row-major problems: `config` gives the tiles, else they are chosen; the arrays give types, orders
    and widths."""
    a, b, c, out = group.a, group.b, group.c, group.out
    extents = out.shapes[:, 1]
    from_arrays = dict(
        inputs=a.type,
        output=out.type,
        a_major="k" if a.major == "row" else "mn",
        b_major="k" if b.major == "column" else "mn",
        a_bytes=a.widest(a.lengths),
        b_bytes=b.widest(b.lengths),
        out_bytes=out.widest(extents) if c is None else min(out.widest(extents), c.widest(extents)),
        c="none" if c is None else "in place" if group.in_place else "separate",
        batches="none",
        extras=(),
    )
    schedule = AHEAD if c is None and not balanced else IN_TURN
    return configured(config, tuple(group.shapes.T), arch, from_arrays, schedule, balanced=balanced)


def _launch(
    group: Group, config: GemmConfig, place: tuple[int | None, int], factors: tuple[Any, Any], mode: str, sort: bool
) -> tuple[np.ndarray, np.ndarray | None, Send] | None:
    """Works out who does what, and launches the kernel; on a GPU, gives what can be planned of that."""
    device, stream = place
    if device is None and settings.current().device == "cuda":
        raise LaunchError(
            "grouped_gemm on numpy arrays, and PTXDSL_DEVICE=cuda: arrays that a table names are not copied to a GPU",
            help="pass CUDA arrays, or leave PTXDSL_DEVICE to the emulator",
        )
    constants, plan = plan_of(group, config, device, mode, sort)
    mode, rows = constants["mode"], describe(group)
    elements = plan.slots * config.tile[0] * config.tile[1]
    if device is None:
        shared = workspace(None, 0, config.sum, elements, plan.slots) if mode == "parts" else ()
        table = plan.table.copy()  # blocks count themselves in it
        arguments = address_table(group, rows, plan.order), table, len(rows), plan.total, *factors, *shared
        grouped_kernel[plan.blocks, config.threads](*arguments, **constants)
        return None

    handle = prepared(grouped_kernel, plan.blocks, config.threads, device, **constants)

    def send(rows: np.ndarray, factors: tuple[Any, ...], stream: int) -> None:
        shared = workspace(device, stream, config.sum, elements, plan.slots) if mode == "parts" else ()
        address = upload(device, stream, rows, plan.table)
        handle((address, address + rows.nbytes, len(rows), plan.total, *factors, *shared), stream=stream)

    rows = rows if plan.order is None else rows[plan.order]
    send(rows, factors, stream)
    return rows, plan.order, send


class Deal(NamedTuple):
    """Who does what: `order` is that of the problems in their table, None for as they are given; `table` is what the
    kernel takes as `schedule`, with `slots` parts of tiles that have more than one."""

    blocks: int
    total: int
    order: np.ndarray | None
    table: np.ndarray
    slots: int


def plan_of(group: Group, config: GemmConfig, device: int | None, mode: str, sort: bool) -> tuple[dict[str, Any], Deal]:
    """The constants of the kernel, and who does what."""
    constants = {"config": config, "mode": mode, "sort": sort}
    resident = resident_blocks(grouped_kernel, config.threads, device, **constants)
    plan = deal(group.shapes.tobytes(), config.tile, resident, mode, sort)
    if mode == "parts" and not plan.slots:
        whole = {**constants, "config": _of_whole_tiles(config, target(device)), "mode": "dealt"}
        if resident_blocks(grouped_kernel, config.threads, device, **whole) >= plan.blocks:
            return whole, plan
    return constants, plan


def _of_whole_tiles(config: GemmConfig, arch: str) -> GemmConfig:
    """The same for a table without parts: with copies ahead, where there is memory for that."""
    ahead = specialise(config, schedule=AHEAD)
    return ahead if config.c == "none" and ahead.fits(arch) else config


@lru_cache(maxsize=256)
def deal(shapes: bytes, tile: tuple[int, int, int], resident: int, mode: str, sort: bool) -> Deal:
    """The schedule of problems, int64 (M, N, K) each, on so many blocks at most."""
    problems = np.frombuffer(shapes, np.int64).reshape(-1, 3)
    if mode == "parts":
        visitor = GroupedProblemVisitor(problems, tile, resident, "host", balance="k", strip=STRIP)
        return Deal(resident, visitor.total, None, *parts_table(visitor))
    tiles = (-(-problems[:, 0] // tile[0]) * -(-problems[:, 1] // tile[1])).sum()
    visitor = GroupedProblemVisitor(problems, tile, min(resident, int(tiles)), mode, sort, strip=STRIP)
    counters = np.zeros(COUNTERS if sort else 0, np.int32)
    if mode == "host":
        return Deal(visitor.blocks, visitor.total, None, np.append(counters, visitor.table), 0)
    return Deal(visitor.blocks, visitor.total, visitor.order, np.append(counters, NO_TABLE), 0)


def describe(group: Group) -> np.ndarray:
    """The table of the problems, a row for each; see `load_product`."""
    rows = np.zeros((len(group.shapes), ROW), np.int64)
    rows[:, :3] = group.shapes
    for column, operand in zip(range(4, ROW, 2), group.operands, strict=True):
        rows[:, column], rows[:, column + 1] = operand.pointers, operand.strides
    return rows


def address_table(group: Group, rows: np.ndarray, order: np.ndarray | None) -> AddressTable:
    """The table for the emulator, which gives arrays addresses of its own."""
    order = np.arange(len(rows)) if order is None else order
    table = rows[order].view(AddressTable)
    table.holders = [
        (place * ROW + column, f"{operand.name}[{number}]", operand.array(number))
        for place, number in enumerate(order.tolist())
        for column, operand in zip(range(4, ROW, 2), group.operands, strict=True)
    ]
    return table


def parts_table(visitor: GroupedProblemVisitor) -> tuple[np.ndarray, int]:
    """What `PartsVisitor` reads, int32; and how many parts there are of tiles with more than one.

    An entry is (problem, tile, first and last iteration, first slot of the tile's parts, number of the part, count, 0).
    """
    block, problem, tile, begin, end = visitor.work
    by_tile = np.lexsort((begin, tile, problem))
    starts = np.flatnonzero(begin[by_tile] == 0)
    count = np.diff(np.append(starts, len(begin)))
    slots = np.where(count > 1, count, 0)
    columns = np.empty((len(begin), 3), np.int64)  # slot, number, count
    columns[by_tile, 0] = (slots.cumsum() - slots).repeat(count)
    columns[by_tile, 1] = np.arange(len(begin)) - starts.repeat(count)
    columns[by_tile, 2] = count.repeat(count)
    entries = np.zeros((len(begin), PART), np.int32)
    entries[:, :7] = np.column_stack((problem, tile, begin, end, columns))
    firsts = np.searchsorted(block, np.arange(visitor.blocks + 1)).astype(np.int32)
    return np.concatenate((firsts, entries.reshape(-1))), int(slots.sum())
