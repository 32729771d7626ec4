"""Launches of lists of matrices, whose addresses are in a table.

A kept launch is made again for lists of the same layout, with other addresses in the table. The library compares the
layouts of all arrays at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from ptxdsl import Parameters
from ptxdsl.arrays import AddressTable, Library
from ptxdsl.cached import cached_property
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.groups.group import ProblemGroup
from ptxdsl.kernels.call.launching.launches import LaunchPlan, address_of
from ptxdsl.kernels.call.launching.memory import ALIGNMENT, CALLS, LISTS, common_library
from ptxdsl.kernels.call.launching.residency import prepared
from ptxdsl.kernels.call.launching.upload import HostTable, upload
from ptxdsl.kernels.call.launching.workspace import is_kept
from ptxdsl.kernels.call.matrix import ArrayArgument, list_maker
from ptxdsl.runtime.launch import Compiled

SINGLE = -1  # the length that no list has
NO_SCHEDULE = np.zeros(0, np.int32)
MOST_ARGUMENTS = 64  # that are kept of a launch
Send: TypeAlias = Callable[[np.ndarray, tuple[Any, ...], int], None]
"""Launches with a table of addresses, the factors and a stream."""


@dataclass(frozen=True)
class ProblemTable:
    """The table of problems that a kernel reads, one row each, in memory `by_column` or by row. `columns` are those of
    the addresses of A, B, C (or out) and out. `order` is the order of the problems in the rows, None for that of the
    call."""

    rows: np.ndarray
    columns: tuple[int, int, int, int]
    order: np.ndarray | None = None
    by_column: bool = False

    def emulated(self, group: ProblemGroup) -> AddressTable:
        """Return the table for the emulator, which assigns addresses of its own."""
        count, width = self.rows.shape
        apart = (1, count) if self.by_column else (width, 1)
        table = (self.rows.T if self.by_column else self.rows).view(AddressTable)
        numbers = range(count) if self.order is None else self.order.tolist()
        table.holders = [
            (row * apart[0] + column * apart[1], f"{operand.name}[{number}]", operand.array(number))
            for row, number in enumerate(numbers)
            for column, operand in zip(self.columns, group.operands, strict=True)
        ]
        return table


@dataclass(frozen=True)
class ListPlan:
    """A launch for the problems that are `listed`; `lists` are those of the call: out, a, b and c.

    The kernel finds the matrices in a table. `values` returns its parameters, given the addresses of this table and of
    that of its `schedule`, the factors, and where it runs. A launch with a workspace is bound to `stream`.
    """

    kernel: Kernel
    grid: int | tuple[int, ...]
    threads: int
    constants: Mapping[str, Any]
    listed: ProblemGroup
    lists: tuple[Any, Any, Any, Any]
    table: ProblemTable
    values: Callable[[Any, Any, tuple[float, ...], int | None, int], Parameters]
    schedule: np.ndarray
    stream: int | None = None

    def carry_out(self, key: Hashable, arrays: tuple[Any, ...], out: Any, factors: tuple[float, ...]) -> None:
        """Launch, and remember the launch by the key of the call."""
        problems = self.listed.row_major
        device, stream = problems.device_stream
        if device is None:
            schedule = self.schedule.copy()  # in which blocks may count themselves
            values = self.values(self.table.emulated(problems), schedule, factors, None, 0)
            LaunchPlan(self.kernel, self.grid, self.threads, values, self.constants).run()
            return
        send = self._sender(device)
        send(self.table.rows, factors, stream)
        if is_kept(device, self.stream):
            keep_lists(key, arrays[:4], factors, self.listed, self.lists, self.table, send, self.stream)

    def _sender(self, device: int) -> TableSender:
        """Return what launches such problems on a GPU, wherever their matrices are."""
        handle, by_column = (
            prepared(self.kernel, self.grid, self.threads, device, **self.constants),
            self.table.by_column,
        )

        def arguments(address: int, factors: tuple[float, ...], stream: int) -> list[Any]:
            values = self.values(address, address + self.table.rows.nbytes, factors, device, stream)
            return [address_of(v) if isinstance(v, ArrayArgument) else v for v in values.flat]

        def parts(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return rows.T if by_column else rows, self.schedule

        counts_blocks = self.constants.get("sort", False)  # by counters in the schedule, which begin at 0
        return TableSender(handle, device, parts, arguments, counts_blocks)


@dataclass
class ListLaunch:
    """A kept launch of lists: out, a, b and c. `columns` of the table hold their addresses, list by list, out first.

    `lengths` are those of the lists, SINGLE for one matrix that is shared by all `products`, None for an argument that
    is not given. `bytes` are the sizes of the arrays, and `written` marks the outputs; `repeats` are the positions of
    arrays that occur before. `make` allocates outputs that are not given. `zeros` marks which of alpha and beta are 0.
    A launch with a workspace is bound to its `stream`.
    """

    alike: Callable[..., bool]
    repeats: tuple[tuple[int, int], ...]
    addresses: list[int]
    rows: np.ndarray
    order: np.ndarray | None
    columns: Sequence[Sequence[int]]
    bytes: np.ndarray
    written: np.ndarray
    make: Callable[[Any], list[Any]]
    send: Send
    library: Library
    current_stream: Callable[[], int]
    lengths: tuple[int | None, ...]
    products: int
    zeros: tuple[bool, ...]
    stream: int | None = None

    def launch(self, lists: Sequence[Any], numbers: tuple[float, ...]) -> Any:
        """Launch with other lists and return the outputs; return None, having done nothing, if their layout differs or
        arrays may overlap."""
        arrays, stream = self._flat(lists), self.current_stream()
        if arrays is None or _are_zero(numbers) != self.zeros:
            return None
        if self.stream not in (None, stream) or not self._are_alike(arrays):
            return None
        out = lists[0]
        if out is None:
            out = self.make(arrays[0])
            arrays = [*out, *arrays]
        addresses = self.library.addresses(arrays)
        rows = self.rows if addresses == self.addresses else self._moved(addresses)
        if rows is None:
            return None
        self.send(rows, numbers, stream)
        return out

    def _flat(self, lists: Sequence[Any]) -> list[Any] | None:
        """Return all arrays, list by list; None for lists of other lengths."""
        arrays: list[Any] = []
        for owners, length in zip(lists, self.lengths, strict=True):
            if isinstance(owners, LISTS):
                if len(owners) != length:
                    return None
                arrays += owners
            elif owners is not None and length == SINGLE:
                arrays += [owners] * self.products
            elif owners is not None or length is not None:
                return None
        return arrays

    def _are_alike(self, arrays: Sequence[object]) -> bool:
        """Return True if the arrays have the layout of the launch. The library's joint test takes no array twice."""
        if not self.repeats:
            return self.alike(*arrays)
        if any(arrays[n] is not arrays[first] for n, first in self.repeats):
            return False
        repeated = {n for n, _ in self.repeats}
        return self.alike(*(array for n, array in enumerate(arrays) if n not in repeated))

    def _moved(self, addresses: list[int]) -> np.ndarray | None:
        """Return the table with new addresses; None if alignments or overlaps change."""
        new = np.array(addresses, np.int64)
        if (new % ALIGNMENT != self._alignments).any() or not self._are_apart(new):
            return None
        rows = self.rows.copy("K")  # a graph may still read the old ones
        lists = new.reshape(len(self.columns), -1)
        for columns, moved in zip(self.columns, lists if self.order is None else lists[:, self.order], strict=True):
            for column in columns:
                rows[:, column] = moved
        self.rows, self.addresses = rows, addresses
        return rows

    @cached_property
    def _alignments(self) -> np.ndarray:
        """The alignments of the addresses, which moved arrays must keep."""
        return np.array(self.addresses, np.int64) % ALIGNMENT

    def _are_apart(self, start: np.ndarray) -> bool:
        """Return True if no output overlaps another array."""
        order = start.argsort(kind="stable")
        start, end = start[order], (start + self.bytes)[order]
        if (end[:-1] <= start[1:]).all():  # no array meets another, as is usual
            return True
        written = self.written[order]
        until = np.maximum.accumulate(end)[:-1]
        until_written = np.maximum.accumulate(np.where(written, end, 0))[:-1]
        used = end[1:] > start[1:]
        return not (used & (start[1:] < np.where(written[1:], until, until_written))).any()


def _are_zero(factors: tuple[float, ...]) -> tuple[bool, ...]:
    """Return which factors are 0, so that what they multiply is not read."""
    return tuple(factor == 0 for factor in factors)


class TableSender:
    """Upload a table and launch a kernel with it, as a `Send`.

    `parts` returns the arrays to upload for the rows of a table, `is_changed` means that the kernel writes them, and
    `arguments` returns the kernel's arguments for a table address, the factors and the stream. Arguments are cached;
    they change with the factors, and when the memory of a stream moves.
    """

    def __init__(
        self,
        handle: partial[None],
        device: int,
        parts: Callable[[np.ndarray], Sequence[np.ndarray]],
        arguments: Callable[[int, tuple[float, ...], int], Sequence[Any]],
        is_changed: bool = False,
    ) -> None:
        self._handle, self._device, self._parts, self._arguments = handle, device, parts, arguments
        self._is_changed = is_changed
        self._unchecked = cast(Compiled, handle.func).unchecked(*handle.args, **handle.keywords)
        self._checked: dict[tuple[Any, ...], Sequence[Any]] = {}
        self._last: tuple[np.ndarray | None, HostTable | None] = None, None

    def __call__(self, rows: np.ndarray, factors: tuple[float, ...], stream: int) -> None:
        last, table = self._last
        if rows is not last or table is None:
            table = HostTable.of(*self._parts(rows), is_changed=self._is_changed)
            self._last = rows, table
        address = upload(self._device, stream, table)
        key = address, stream, factors, *map(type, factors)  # a factor of -0.0 is equal to the int 0
        arguments = self._checked.get(key)
        if arguments is not None:
            self._unchecked(arguments, stream)
            return
        arguments = self._arguments(address, factors, stream)
        self._handle(arguments, stream=stream)
        if is_kept(self._device, stream):  # else a workspace in them may be freed
            if len(self._checked) >= MOST_ARGUMENTS:
                self._checked.clear()
            self._checked[key] = arguments


def keep_lists(
    key: Hashable,
    called: Sequence[Any],
    factors: tuple[float, ...],
    group: ProblemGroup,
    lists: tuple[Any, Any, Any, Any],
    table: ProblemTable,
    send: Send,
    stream: int | None = None,
) -> None:
    """Keep a launch that has just been made on a GPU under the key of its call.

    `called` and `lists` are out, a, b and c, of which out and c may be None: as in the call, and with a shared matrix
    repeated. Nothing is kept for arrays of several libraries, or if c overlaps out and is not out itself.
    """
    (passed_out, _, _, c), out = lists, group.out
    passed = [array for owners in lists if owners is not None for array in owners]
    arrays = passed if passed_out is not None else [*out.owners, *passed]
    library = common_library(arrays)
    if library is None or (group.in_place and [*map(id, c or ())] != [*map(id, out.owners)]):
        return
    repeats = _repeats(passed)
    alike = library.alike([array for n, array in enumerate(passed) if n not in dict(repeats)])
    in_a, in_b, in_c, in_out = table.columns
    unread = np.zeros(len(out.owners), np.int64)
    of_c = group.c.bytes if group.c and not group.in_place else unread
    launch = ListLaunch(
        alike=alike,
        repeats=repeats,
        addresses=library.addresses(arrays),
        rows=table.rows,
        order=table.order,
        columns=[
            [in_out] if group.c else [in_c, in_out],
            *([[in_a], [in_b]] if out.major == "row" else [[in_b], [in_a]]),
            *([[in_c] if group.c else []] if c is not None else []),
        ],
        bytes=np.concatenate([out.bytes, group.a.bytes, group.b.bytes, *([of_c] if c is not None else [])]),
        written=np.arange(len(arrays)) < len(out.owners),
        make=list_maker(library.name, out.shapes.tolist(), out.owners[0].dtype),
        send=send,
        library=library,
        current_stream=library.current_stream(int(library.device(arrays[0]))),
        lengths=tuple([None if each is None else len(each) if isinstance(each, LISTS) else SINGLE for each in called]),
        products=len(out.owners),
        zeros=_are_zero(factors),
        stream=stream,
    )
    CALLS.keep(key, launch)


def _repeats(arrays: Sequence[object]) -> tuple[tuple[int, int], ...]:
    """Return the position of each array that occurred before, with its first position."""
    first: dict[int, int] = {}
    positions = [(n, first.setdefault(id(array), n)) for n, array in enumerate(arrays)]
    return tuple((n, before) for n, before in positions if n != before)
