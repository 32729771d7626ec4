"""Registers and variables of a running function: one array over all lanes for each register."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ... import ir
from ..memory.access import WRITE_FIRST, Origin
from ..memory.regions import POISON, Table
from .decode import Code

Index: TypeAlias = "np.ndarray | slice | None"
"""Lanes of an array over all lanes; None for all."""


def as_index(lanes: np.ndarray) -> np.ndarray | slice:
    """Return ascending lanes as an index; a slice if they have no gaps."""
    if lanes.size and lanes[-1] - lanes[0] == lanes.size - 1:
        return slice(int(lanes[0]), int(lanes[-1]) + 1)
    return lanes


@dataclass(frozen=True, slots=True)
class UninitializedRead:
    """A read of uninitialised memory or accumulators: the instruction, its message and its fix.

    With `race` it is a read of memory that another thread writes, unordered: the number of that finding. If it is to be
    reported `once`, the first use of one of its registers settles the others.
    """

    origin: Origin
    text: str
    help: str = WRITE_FIRST
    race: int | None = None
    once: bool = False


class Taint(NamedTuple):
    """Lanes with a value that was never written, and the read of memory that it comes from, if it was read."""

    lanes: np.ndarray
    source: UninitializedRead | None


class Frame:
    """The registers of one function, called through one chain of calls.

    An array in `registers` may be in several slots, and is copied before a part of it is written; the slots in `owned`
    have been copied. While the frame is `sharing`, whole arrays move from slot to slot and none is owned. `undefined`
    has, for slots that some lanes have not written, a bool for each lane; `sources` has, for some of them, the read of
    uninitialised memory that their values come from. `addresses` are those of its variables, which end at `end` in the
    memory of each lane; `table` has the allocations of them and of its callers.
    """

    def __init__(self, code: Code, lanes: int, parent: Frame | None = None, site: int = -1) -> None:
        self.code, self.lanes, self.parent, self.site = code, lanes, parent, site
        self.registers: list[np.ndarray | None] = [None] * len(code.slots.registers)
        self.undefined: dict[int, np.ndarray] = {}
        self.sources: dict[int, UninitializedRead] = {}
        self.owned: set[int] = set()
        self.sharing = False
        self.path: tuple[int, ...] = (*parent.path, site) if parent else ()
        self.callees: dict[tuple[int, ir.Function], Frame] = {}
        self.addresses: dict[ir.Variable, int] = {}
        self.end = 0
        self.table = Table([])
        self.results: tuple[ir.Operand, ...] = ()

    def poison(self, slot: int) -> np.ndarray:
        """Return a new array for a register that no lane has written."""
        dtype = self.code.slots.dtypes[slot]
        shape = (self.lanes, 2) if self.code.slots.registers[slot].type.bits > 64 else (self.lanes,)
        array = np.full(shape, True) if dtype.kind == "b" else _poisoned(shape, dtype)
        self.registers[slot] = array
        self.undefined[slot] = np.ones(self.lanes, bool)
        return array

    def put(self, slot: int, value: np.ndarray, index: Index, others_live: bool) -> None:
        """Write a register for some lanes; without `others_live`, the rest of the array need not be kept."""
        if index is None:
            self.registers[slot] = np.ascontiguousarray(value)
            if self.undefined:
                self.undefined.pop(slot, None)
            return
        array = self._writable(slot, value, others_live)
        array[index] = value if value.dtype == array.dtype else value.view(array.dtype)
        if slot in self.undefined:
            self.undefined[slot][index] = False

    def _writable(self, slot: int, value: np.ndarray, others_live: bool) -> np.ndarray:
        array = self.registers[slot]
        if not others_live:
            self.undefined.pop(slot, None)
            array = np.empty((self.lanes, *value.shape[1:]), value.dtype)
        elif array is None:
            array = self.poison(slot)
        elif slot in self.owned:
            return array
        else:
            array = array.copy()
        self.registers[slot] = array
        if not self.sharing:
            self.owned.add(slot)
        return array

    def resize(self, lanes: int, source: np.ndarray, destination: np.ndarray) -> None:
        """Move lanes to their places among more lanes."""
        for slot, array in enumerate(self.registers):
            if array is not None:
                moved = np.zeros((lanes, *array.shape[1:]), array.dtype)
                moved[destination] = array[source]
                self.registers[slot] = moved
        for slot, flags in self.undefined.items():
            self.undefined[slot] = np.ones(lanes, bool)
            self.undefined[slot][destination] = flags[source]
        self.lanes = lanes
        self.owned.clear()
        for callee in self.callees.values():
            callee.resize(lanes, source, destination)


def _poisoned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    array = np.empty(shape, dtype)
    array.view(np.uint8).fill(POISON)
    return array
