"""Launches of grouped problems that were worked out before: for lists that lie as those did, only addresses are new.

As `plan.py` for one product; but a list has many arrays, which are asked all at once for types, shapes and strides.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl.arrays import Library, library_of
from ptxdsl.kernels.group import Group
from ptxdsl.kernels.plan import ALIGNMENT

MOST_PLANS = 8  # of one key
A, B, C, OUT = 4, 6, 8, 10  # where the addresses stand in a row of the table: see `grouped.load_product`
Send = Callable[[np.ndarray, tuple[Any, ...], int], None]
"""Launches with a table of problems, the factors and a stream."""


@dataclass
class GroupPlan:
    """A launch: `rows` is the table of the problems, in which `columns` hold the addresses of the arrays, list by list.

    `ends` are the bytes of each array, `written` says which are outputs.
    """

    alike: Callable[..., bool]
    addresses: list[int]
    rows: np.ndarray
    order: np.ndarray | None
    columns: list[list[int]]
    bytes: np.ndarray
    written: np.ndarray
    send: Send
    current_stream: Callable[[], int]

    def launch(self, arrays: Sequence[Any], factors: tuple[Any, ...], library: Library) -> bool:
        """Launches with other arrays; False, with nothing done, where they lie otherwise, or may share memory."""
        if not self.alike(*arrays):
            return False
        addresses = [library.address(array) for array in arrays]
        if addresses != self.addresses and not self._move(addresses):
            return False
        self.send(self.rows, factors, self.current_stream())
        return True

    def _move(self, addresses: list[int]) -> bool:
        """Puts new addresses into the table, where that changes neither alignments nor what shares memory."""
        new, old = np.array(addresses, np.int64), np.array(self.addresses, np.int64)
        if ((new ^ old) % ALIGNMENT).any() or not self._are_apart(new):
            return False
        rows = self.rows.copy()  # a graph may still read the old ones
        lists = new.reshape(len(self.columns), -1)
        for columns, found in zip(self.columns, lists if self.order is None else lists[:, self.order], strict=True):
            rows[:, columns] = found[:, None]
        self.rows, self.addresses = rows, addresses
        return True

    def _are_apart(self, start: np.ndarray) -> bool:
        """Whether no output meets another array between its ends."""
        order = start.argsort(kind="stable")
        start, end, written = start[order], (start + self.bytes)[order], self.written[order]
        until = np.maximum.accumulate(end)[:-1]
        until_written = np.maximum.accumulate(np.where(written, end, 0))[:-1]
        used = end[1:] > start[1:]
        return not (used & (start[1:] < np.where(written[1:], until, until_written))).any()


class GroupPlans:
    """The last plans for what their user knows of a launch beside the arrays."""

    def __init__(self) -> None:
        self._plans: defaultdict[Any, deque[GroupPlan]] = defaultdict(lambda: deque(maxlen=MOST_PLANS))

    def launch(self, key: Any, lists: Sequence[Sequence[Any]], factors: tuple[Any, ...]) -> bool:
        """Whether a launch of such lists was planned, and has now been made with these factors."""
        plans = self._plans.get(key)
        if not plans:
            return False
        arrays = [array for owners in lists for array in owners]
        library = library_of(type(arrays[0]))
        return library is not None and any(plan.launch(arrays, factors, library) for plan in plans)

    def learn(
        self,
        key: Any,
        lists: Sequence[Sequence[Any]],
        group: Group,
        rows: np.ndarray,
        order: np.ndarray | None,
        send: Send,
    ) -> None:
        """Plans a launch that has just been made on a GPU, for A, B, C where it is read, and out."""
        arrays = [array for owners in lists for array in owners]
        library = library_of(type(arrays[0]))
        alike = library.alike(arrays) if library and len({*map(type, arrays)}) == 1 else None
        if library is None or alike is None or group.in_place:
            return
        operands = [group.a, group.b, *([group.c] if group.c else []), group.out]
        inputs = [[A], [B]] if group.out.major == "row" else [[B], [A]]
        columns = [*inputs, *([[C], [OUT]] if group.c else [[C, OUT]])]
        self._plans[key].appendleft(
            GroupPlan(
                alike=alike,
                addresses=[library.address(array) for array in arrays],
                rows=rows,
                order=order,
                columns=columns,
                bytes=np.concatenate([operand.bytes for operand in operands]),
                written=np.arange(len(arrays)) >= len(arrays) - len(group.out.owners),
                send=send,
                current_stream=library.current_stream(int(library.device(arrays[0]))),
            )
        )
