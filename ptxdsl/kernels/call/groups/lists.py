"""Launches of lists of matrices, with the addresses of the matrices in a table.

A kept launch is repeated for lists of the same layout, with other addresses in the table. The array library compares
the layouts of all arrays at once.
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
from ptxdsl.kernels.call.matrix import ArrayArgument, list_allocator
from ptxdsl.runtime.launch import Compiled

SINGLE = -1  # the length that stands for a single matrix
NO_SCHEDULE = np.zeros(0, np.int32)
MAX_ARGUMENTS = 64  # argument lists cached per launch
LaunchTable: TypeAlias = Callable[[np.ndarray, tuple[Any, ...], int], None]
"""A function that launches with the rows of a table, the factors, and a stream."""


@dataclass(frozen=True)
class ProblemTable:
    """The table of problems that a kernel reads, one row per problem, stored column-major if `by_column`. `columns` are
    the columns of the addresses of A, B, C (or out) and out. `order` is the order of the problems in the rows, None for
    the order of the call."""

    rows: np.ndarray
    columns: tuple[int, int, int, int]
    order: np.ndarray | None = None
    by_column: bool = False

    def emulated(self, group: ProblemGroup) -> AddressTable:
        """Return the table for the emulator, which assigns its own addresses."""
        count, width = self.rows.shape
        row_step, column_step = (1, count) if self.by_column else (width, 1)
        table = (self.rows.T if self.by_column else self.rows).view(AddressTable)
        numbers = range(count) if self.order is None else self.order.tolist()
        table.holders = [
            (row * row_step + column * column_step, f"{operand.name}[{number}]", operand.array(number))
            for row, number in enumerate(numbers)
            for column, operand in zip(self.columns, group.operands, strict=True)
        ]
        return table


@dataclass(frozen=True)
class ListPlan:
    """A launch for the problems of `group`. `lists` are the lists of the call: out, a, b and c.

    The kernel reads the matrices from a table. `values` returns its parameters for the addresses of the table and of
    the `schedule`, the factors, the device and the stream. A launch with a workspace is bound to `stream`.
    """

    kernel: Kernel
    grid: int | tuple[int, ...]
    threads: int
    constants: Mapping[str, Any]
    group: ProblemGroup
    lists: tuple[Any, Any, Any, Any]
    table: ProblemTable
    values: Callable[[Any, Any, tuple[float, ...], int | None, int], Parameters]
    schedule: np.ndarray
    stream: int | None = None

    def carry_out(self, key: Hashable, arrays: tuple[Any, ...], out: Any, factors: tuple[float, ...]) -> None:
        """Launch, and keep the launch under the key of the call."""
        problems = self.group.row_major
        device, stream = problems.device_stream
        if device is None:
            schedule = self.schedule.copy()  # blocks may count in it
            values = self.values(self.table.emulated(problems), schedule, factors, None, 0)
            LaunchPlan(self.kernel, self.grid, self.threads, values, self.constants).run()
            return
        launch_table = self._launcher(device)
        launch_table(self.table.rows, factors, stream)
        if is_kept(device, self.stream):
            keep_lists(key, arrays[:4], factors, self.group, self.lists, self.table, launch_table, self.stream)

    def _launcher(self, device: int) -> TableLauncher:
        """Return the launcher of problems of this layout on a GPU, with matrices at any addresses."""
        handle = prepared(self.kernel, self.grid, self.threads, device, **self.constants)
        by_column = self.table.by_column

        def arguments(address: int, factors: tuple[float, ...], stream: int) -> list[Any]:
            values = self.values(address, address + self.table.rows.nbytes, factors, device, stream)
            return [address_of(v) if isinstance(v, ArrayArgument) else v for v in values.flat]

        def parts(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return rows.T if by_column else rows, self.schedule

        counts_blocks = self.constants.get("sort", False)  # with counters in the schedule, which start at 0
        return TableLauncher(handle, device, parts, arguments, counts_blocks)


@dataclass
class ListLaunch:
    """A kept launch of the lists out, a, b and c.

    `columns` are the table columns of their addresses, list by list, out first. `lengths` are the lengths of the lists:
    SINGLE for a matrix shared by all `products`, None for an argument that is not given. `bytes` are the sizes of the
    arrays, and `written` is the mask of the outputs. `repeats` are the positions of arrays that occur earlier.
    `allocate` returns outputs that are not given. `zeros` has True for a factor that is 0. A launch with a workspace is
    bound to its `stream`.
    """

    has_layout: Callable[..., bool]
    repeats: tuple[tuple[int, int], ...]
    addresses: list[int]
    rows: np.ndarray
    order: np.ndarray | None
    columns: Sequence[Sequence[int]]
    bytes: np.ndarray
    written: np.ndarray
    allocate: Callable[[Any], list[Any]]
    launch_table: LaunchTable
    library: Library
    current_stream: Callable[[], int]
    lengths: tuple[int | None, ...]
    products: int
    zeros: tuple[bool, ...]
    stream: int | None = None

    def launch(self, lists: Sequence[Any], numbers: tuple[float, ...]) -> Any:
        """Launch with other lists, and return the outputs. Return None, without a launch, if the layout differs or
        arrays may overlap."""
        arrays, stream = self._flatten(lists), self.current_stream()
        if arrays is None or _are_zero(numbers) != self.zeros:
            return None
        if self.stream not in (None, stream) or not self._matches_layout(arrays):
            return None
        out = lists[0]
        if out is None:
            out = self.allocate(arrays[0])
            arrays = [*out, *arrays]
        addresses = self.library.addresses(arrays)
        rows = self.rows if addresses == self.addresses else self._relocated_rows(addresses)
        if rows is None:
            return None
        self.launch_table(rows, numbers, stream)
        return out

    def _flatten(self, lists: Sequence[Any]) -> list[Any] | None:
        """Return all arrays, list by list, or None if a list has another length."""
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

    def _matches_layout(self, arrays: Sequence[object]) -> bool:
        """Return True if the arrays have the layout of the launch. The test of the library takes each array once."""
        if not self.repeats:
            return self.has_layout(*arrays)
        if any(arrays[n] is not arrays[first] for n, first in self.repeats):
            return False
        repeated = {n for n, _ in self.repeats}
        return self.has_layout(*(array for n, array in enumerate(arrays) if n not in repeated))

    def _relocated_rows(self, addresses: list[int]) -> np.ndarray | None:
        """Return the table with new addresses, or None if the alignment changes or outputs overlap."""
        new = np.array(addresses, np.int64)
        if (new % ALIGNMENT != self._alignments).any() or not self._is_disjoint(new):
            return None
        rows = self.rows.copy("K")  # a CUDA graph may still read the old table
        lists = new.reshape(len(self.columns), -1)
        for columns, pointers in zip(self.columns, lists if self.order is None else lists[:, self.order], strict=True):
            for column in columns:
                rows[:, column] = pointers
        self.rows, self.addresses = rows, addresses
        return rows

    @cached_property
    def _alignments(self) -> np.ndarray:
        """The alignments of the addresses. Relocated arrays must keep them."""
        return np.array(self.addresses, np.int64) % ALIGNMENT

    def _is_disjoint(self, start: np.ndarray) -> bool:
        """Return True if no output overlaps another array."""
        order = start.argsort(kind="stable")
        start, end = start[order], (start + self.bytes)[order]
        if (end[:-1] <= start[1:]).all():  # the usual case: no overlap at all
            return True
        written = self.written[order]
        last_end = np.maximum.accumulate(end)[:-1]
        last_written_end = np.maximum.accumulate(np.where(written, end, 0))[:-1]
        used = end[1:] > start[1:]
        return not (used & (start[1:] < np.where(written[1:], last_end, last_written_end))).any()


def _are_zero(factors: tuple[float, ...]) -> tuple[bool, ...]:
    """Return True for each factor that is 0. The operand that it multiplies is not read."""
    return tuple(factor == 0 for factor in factors)


class TableLauncher:
    """A `LaunchTable` that uploads the table and launches a kernel.

    `parts` returns the arrays to upload for the rows of a table; `is_changed` is True if the kernel writes them.
    `arguments` returns the kernel arguments for the address of the table, the factors and the stream. Arguments are
    cached: they change with the factors, and when the memory of a stream moves.
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
        key = address, stream, factors, *map(type, factors)  # -0.0 and the int 0 are equal, but differ as factors
        arguments = self._checked.get(key)
        if arguments is not None:
            self._unchecked(arguments, stream)
            return
        arguments = self._arguments(address, factors, stream)
        self._handle(arguments, stream=stream)
        if is_kept(self._device, stream):  # otherwise the workspace may be freed
            if len(self._checked) >= MAX_ARGUMENTS:
                self._checked.clear()
            self._checked[key] = arguments


def keep_lists(
    key: Hashable,
    arguments: Sequence[Any],
    factors: tuple[float, ...],
    group: ProblemGroup,
    lists: tuple[Any, Any, Any, Any],
    table: ProblemTable,
    launch_table: LaunchTable,
    stream: int | None = None,
) -> None:
    """Keep a finished launch on a GPU under the key of its call.

    `arguments` are out, a, b and c of the call, and `lists` the same with shared matrices repeated; out and c may be
    None. Nothing is kept for arrays of several libraries, or if c overlaps out and is not out itself.
    """
    (passed_out, _, _, c), out = lists, group.out
    passed = [array for owners in lists if owners is not None for array in owners]
    arrays = passed if passed_out is not None else [*out.owners, *passed]
    library = common_library(arrays)
    if library is None or (group.in_place and [*map(id, c or ())] != [*map(id, out.owners)]):
        return
    repeats = _repeats(passed)
    has_layout = library.alike([array for n, array in enumerate(passed) if n not in dict(repeats)])
    in_a, in_b, in_c, in_out = table.columns
    unread = np.zeros(len(out.owners), np.int64)
    c_bytes = group.c.bytes if group.c and not group.in_place else unread
    launch = ListLaunch(
        has_layout=has_layout,
        repeats=repeats,
        addresses=library.addresses(arrays),
        rows=table.rows,
        order=table.order,
        columns=[
            [in_out] if group.c else [in_c, in_out],
            *([[in_a], [in_b]] if out.major == "row" else [[in_b], [in_a]]),
            *([[in_c] if group.c else []] if c is not None else []),
        ],
        bytes=np.concatenate([out.bytes, group.a.bytes, group.b.bytes, *([c_bytes] if c is not None else [])]),
        written=np.arange(len(arrays)) < len(out.owners),
        allocate=list_allocator(library.name, out.shapes.tolist(), out.owners[0].dtype),
        launch_table=launch_table,
        library=library,
        current_stream=library.current_stream(int(library.device(arrays[0]))),
        lengths=tuple(map(_length, arguments)),
        products=len(out.owners),
        zeros=_are_zero(factors),
        stream=stream,
    )
    CALLS.keep(key, launch)


def _length(argument: Any) -> int | None:
    """Return the length of a list, SINGLE for a matrix, or None for an argument that is not given."""
    if argument is None:
        return None
    return len(argument) if isinstance(argument, LISTS) else SINGLE


def _repeats(arrays: Sequence[object]) -> tuple[tuple[int, int], ...]:
    """Return the position of each array that occurred earlier, with its first position."""
    first: dict[int, int] = {}
    positions = [(n, first.setdefault(id(array), n)) for n, array in enumerate(arrays)]
    return tuple((n, before) for n, before in positions if n != before)
