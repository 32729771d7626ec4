"""Allocation of tensor memory (tcgen05.alloc), and the check that accesses are inside of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...layout.tensor_memory import COLUMNS, TensorRegion
from ...types import b32
from ..memory.access import Convergence, Origin
from ..memory.spaces import Memory
from ..observe.races.tensor import TensorOrder, columns_text
from ..run.executor import Executor
from ..run.residents import WARP, Residents
from .tensor_cells import Allocations, TensorCells

SIZES = (32, 64, 128, 256, 512)
_ONE_VALUE = "compute it from values that are uniform across the warp"


class TensorAllocator:
    """The allocations of the resident blocks, in `held`; `wanted` has the columns that waiting warps ask for."""

    def __init__(self, memory: Memory, order: TensorOrder | None) -> None:
        self.memory, self.order = memory, order
        self.group: tuple[str, Origin] | None = None

    def settle(self, residents: Residents, cells: TensorCells) -> None:
        """Start blocks: nothing is allocated."""
        self.residents, self.cells = residents, cells
        self.held: dict[int, Allocations] = {}
        self.wanted: dict[int, int] = {}

    def of(self, slot: int) -> Allocations:
        """Return the allocations of the block in a slot."""
        return self.held.setdefault(slot, Allocations())

    def of_group(self, x: Executor, group: str) -> None:
        """Report instructions of different CTA groups."""
        if self.group is None:
            self.group = group, x.origin
        elif self.group[0] != group:
            other, origin = self.group
            message = (
                f"{x.name} has .{group}, and {origin.name} .{other}; all tcgen05 instructions of a kernel have the "
                "same CTA group"
            )
            x.fail("tensor-memory", message, help=f"write .{other} in both, or .{group}")

    def allocate(self, x: Executor, group: str, space: str, address: np.ndarray, columns: np.ndarray) -> None:
        self.of_group(x, group)
        counts, rows = uniform(x, "columns", columns), x.lanes_now[::WARP] // WARP
        self.cells.grow(self.residents.slots)
        ready, placed = np.ones(x.shape, bool), np.zeros(len(rows), np.int64)
        for n, (row, count) in enumerate(zip(rows.tolist(), counts.tolist(), strict=True)):
            slot = row % self.residents.slots
            held = self.of(slot)
            first = held.fit(count) if self._may_allocate(x, held, n, count) else 0
            if first is None:
                self.wanted[row], ready[n] = count, False
                continue
            if count in SIZES:
                held.columns[first], held.latest = (count, x.origin), count
                self.cells.clear(slot, first, count)
            placed[n] = first
        which = ready & (np.arange(WARP) == 0)
        if which.any():
            with x.only(which):
                x.store(space, address[which], b32, placed[ready[:, 0]].astype(np.uint32))
            x.order(Convergence(rows[ready[:, 0]], x.active[ready[:, 0]]))  # all lanes of the warp have stored it
        x.suspend(ready)

    def _may_allocate(self, x: Executor, held: Allocations, n: int, count: int) -> bool:
        """Report an allocation that is not allowed; return True unless its size is invalid."""
        which = np.zeros(x.shape, bool)
        which[n] = True
        if count not in SIZES:
            message = f"{x.name}: `columns` is {count}; the number of columns is a power of two from 32 to 512"
            x.fail("tensor-memory", message, which, "round it up to a power of two")
            return False
        if held.relinquished is not None:
            message = f"{x.name} after {held.relinquished.name} of the same block"
            x.fail("tensor-memory", message, which, "relinquish the permit after the last allocation")
        elif count > held.latest:
            message = (
                f"{x.name} of {count} columns after one of {held.latest}; the sizes of the allocations of a block must "
                "not increase"
            )
            x.fail("tensor-memory", message, which, "allocate the largest size first")
        return True

    def lacking(self, lanes: np.ndarray) -> str:
        """Describe the columns that a waiting warp lacks."""
        row = int(lanes[0]) // WARP
        held = self.held[row % self.residents.slots]
        return f", for {self.wanted[row]} columns of tensor memory; {held.free} of {COLUMNS} are free in the block"

    def deallocate(self, x: Executor, group: str, address: np.ndarray, columns: np.ndarray) -> None:
        self.of_group(x, group)
        rows = x.lanes_now[::WARP] // WARP
        places, counts = uniform(x, "address", address), uniform(x, "columns", columns)
        for n, (row, at, count) in enumerate(zip(rows.tolist(), places.tolist(), counts.tolist(), strict=True)):
            slot = row % self.residents.slots
            held = self.of(slot)
            size, _ = held.columns.get(at, (0, None))
            if size != count:
                reason = f"{size} columns were allocated there" if size else "no allocation begins there"
                which = np.zeros(x.shape, bool)
                which[n] = True
                message = f"{x.name} of {count} columns at {at:#x}: {reason}"
                x.fail("tensor-memory", message, which, "pass the address and the number of columns of tcgen05.alloc")
                continue
            if self.order is not None:
                self.order.deallocate(x, row * WARP, slot, TensorRegion(-1, at, at + count))
            del held.columns[at]
        self.memory.version += 1  # wake the warps that wait for columns

    def relinquish(self, x: Executor, group: str) -> None:
        self.of_group(x, group)
        for row in (x.lanes_now[::WARP] // WARP).tolist():
            self.of(row % self.residents.slots).relinquished = x.origin

    def allocated(
        self, x: Executor, slots: np.ndarray, regions: Sequence[Sequence[TensorRegion]], reads: bool
    ) -> np.ndarray:
        """Return the accesses whose columns are allocated, and report the others."""
        wrong: TensorRegion | None = None
        valid = np.ones(len(slots), bool)
        for n, (slot, each) in enumerate(zip(slots.tolist(), regions, strict=True)):
            outside = self.of(slot).outside(each)
            if outside is not None:
                valid[n], wrong = False, wrong or outside
        if wrong is not None:
            held = self.held[int(slots[np.argmin(valid)])].columns
            held_columns = ", ".join(columns_text(first, first + size) for first, (size, _) in sorted(held.items()))
            message = (
                f"{x.name} {'reads' if reads else 'writes'} {columns_text(wrong.first, wrong.end)} of tensor memory; "
                f"the block has {f'allocated {held_columns}' if held_columns else 'no allocation'}"
            )
            which = np.repeat(~valid[:, np.newaxis], WARP, 1) if x.collective else ~valid
            x.fail("tensor-memory", message, which, "allocate enough columns with tcgen05.alloc")
        return valid

    # Changes of the resident blocks

    def end_block(self, x: Executor, slot: int) -> None:
        """End a block, and report what it left allocated."""
        held = self.held.pop(slot, None)
        if held is not None and held.columns:
            self._report_leak(x, slot, held)
        if self.order is not None:
            self.order.end_block(int(self.residents.ordinals[slot]))

    def _report_leak(self, x: Executor, slot: int, held: Allocations) -> None:
        (first, (size, origin)), *_ = sorted(held.columns.items())
        block = self.residents.numbered(int(self.residents.ordinals[slot]), 0).block_text
        message = f"block {block} ends and {columns_text(first, first + size)} of tensor memory are still allocated"
        others = [origin.location] if origin.location is not None else []
        which = np.ones(x.lanes_now.shape, bool).reshape(x.shape)
        x.finding("tensor-memory", message, which, others, "execute tcgen05.dealloc in one warp before the block ends")

    def move(self, residents: Residents, rows: np.ndarray, slots: np.ndarray) -> None:
        """Renumber warps and slots; -1 for those that have ended."""
        self.residents = residents
        self.held = {int(slots[slot]): held for slot, held in self.held.items() if slots[slot] >= 0}
        self.wanted = {int(rows[row]): count for row, count in self.wanted.items() if rows[row] >= 0}


def uniform(x: Executor, name: str, values: np.ndarray) -> np.ndarray:
    """Return the value of each warp, and report lanes that disagree."""
    by_warp = np.broadcast_to(values, x.shape)
    first: np.ndarray = by_warp[:, 0]
    if (by_warp != first[:, np.newaxis]).any():
        message = f"`{name}` of {x.name} differs between the lanes of a warp"
        x.fail("divergent-collective", message, by_warp != first[:, np.newaxis], _ONE_VALUE)
    return first
