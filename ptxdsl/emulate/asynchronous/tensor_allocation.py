"""Allocation of tensor memory (tcgen05.alloc), and the check that accesses are inside of it.

The CTAs of a pair allocate and deallocate together, so they have the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...layout.tensor_memory import COLUMNS, TensorRegion
from ...types import b32
from ..memory.access import Convergence, Origin
from ..memory.spaces import Memory
from ..observe.races.tensor import TensorOrder, columns_text
from ..run.executor import Executor
from ..run.residents import WARP, Residents
from .tensor_cells import Allocations, TensorCells
from .tensor_rendezvous import PAIR, Rendezvous, RendezvousTable

SIZES = (32, 64, 128, 256, 512)
_ONE_VALUE = "compute it from values that are uniform across the warp"


class TensorAllocator:
    """The allocations of the resident blocks, in `held`; the blocks of a pair share one object.

    `joined` are the warps that execute tcgen05.alloc, dealloc or relinquish_alloc_permit.
    """

    def __init__(self, memory: Memory, order: TensorOrder | None) -> None:
        self.memory, self.order = memory, order
        self.group: tuple[str, Origin] | None = None

    def settle(self, residents: Residents, cells: TensorCells) -> None:
        """Start blocks: nothing is allocated."""
        self.residents, self.cells = residents, cells
        self.held: dict[int, Allocations] = {}
        self.rendezvous = RendezvousTable(residents)

    def of(self, slot: int) -> Allocations:
        """Return the allocations of the block in a slot."""
        return self.held.setdefault(slot, Allocations())

    def of_group(self, x: Executor, group: str) -> bool:
        """Report instructions of different CTA groups, and pairs where there are none; return False then."""
        if self.group is None:
            self.group = group, x.origin
        elif self.group[0] != group:
            other, origin = self.group
            message = (
                f"{x.name} has .{group}, and {origin.name} .{other}; all tcgen05 instructions of a kernel have the "
                "same CTA group"
            )
            x.fail("tensor-memory", message, help=f"write .{other} in both, or .{group}")
        count = self.residents.cluster_blocks
        if group == PAIR and count % 2:
            have = f"clusters of {count} blocks" if count > 1 else "no clusters"
            message = f"{x.name} is for two blocks of a cluster; the launch has {have}"
            x.fail("tensor-memory", message, help="launch clusters of an even number of blocks: @pd.kernel(cluster=2)")
            return False
        return True

    def allocate(self, x: Executor, group: str, space: str, address: np.ndarray, columns: np.ndarray) -> None:
        if not self.of_group(x, group):
            return
        counts = uniform(x, "columns", columns)
        self.cells.grow(self.residents.slots)
        joined = self.rendezvous.join(x, group, counts)
        for rendezvous in dict.fromkeys(joined):
            if rendezvous.is_complete and not rendezvous.is_done:
                self._allocate(x, rendezvous)
        rows, done = x.lanes_now[::WARP] // WARP, np.array([rendezvous.is_done for rendezvous in joined])
        ready = np.repeat(done[:, np.newaxis], WARP, axis=1)
        which = ready & (np.arange(WARP) == 0)
        if which.any():
            placed = np.array([rendezvous.result for rendezvous in joined if rendezvous.is_done], np.uint32)
            with x.only(which):
                x.store(space, address[which], b32, placed)
            x.order(Convergence(rows[done], x.active[done]))  # all lanes of the warp have stored it
        self.rendezvous.leave(x, rows[done])
        x.suspend(ready)

    def _allocate(self, x: Executor, rendezvous: Rendezvous) -> None:
        """Allocate columns in the CTAs of a group, if enough of them are free."""
        held = self.of(rendezvous.slots[0])
        for slot in rendezvous.slots:
            self.held[slot] = held
        count = max(warp.values[0] for warp in rendezvous.participants)
        if self._may_allocate(x, held, rendezvous, count):
            if (first := held.fit(count)) is None:
                return
            held.columns[first], held.latest = (count, rendezvous.participants[0].origin), count
            for slot in rendezvous.slots:
                self.cells.clear(slot, first, count)
            rendezvous.result = first
        rendezvous.is_done = True
        self.memory.version += len(rendezvous.slots) > 1  # wake the warp of the other CTA

    def _may_allocate(self, x: Executor, held: Allocations, rendezvous: Rendezvous, count: int) -> bool:
        """Report an allocation that is not allowed; return True unless its size is invalid."""
        with rendezvous.participants[0].acting():
            if count not in SIZES:
                message = f"{x.name}: `columns` is {count}; the number of columns is a power of two from 32 to 512"
                x.fail("tensor-memory", message, help="round it up to a power of two")
                return False
            if len({warp.values for warp in rendezvous.participants}) > 1:
                both = " and ".join(str(warp.values[0]) for warp in rendezvous.participants)
                message = (
                    f"{x.name} of {both} columns in the blocks of a pair, which allocate the same columns together"
                )
                x.fail("tensor-memory", message, help="pass the same `columns` in both blocks")
            if held.relinquished is not None:
                message = f"{x.name} after {held.relinquished.name} of the same block"
                x.fail("tensor-memory", message, help="relinquish the permit after the last allocation")
            elif count > held.latest:
                message = (
                    f"{x.name} of {count} columns after one of {held.latest}; the sizes of the allocations of a block "
                    "must not increase"
                )
                x.fail("tensor-memory", message, help="allocate the largest size first")
        return True

    def lacking(self, x: Executor, lanes: np.ndarray) -> str:
        """Describe what a waiting warp lacks: columns, or the warp of the other block of its pair."""
        rendezvous = self.rendezvous.of_warp(int(lanes[0]) // WARP)
        assert rendezvous is not None
        if not rendezvous.is_complete:
            return self.rendezvous.lacking(x, rendezvous)
        held, count = self.held[rendezvous.slots[0]], max(warp.values[0] for warp in rendezvous.participants)
        return f", for {count} columns of tensor memory; {held.free} of {COLUMNS} are free in the block"

    def deallocate(self, x: Executor, group: str, address: np.ndarray, columns: np.ndarray) -> None:
        if not self.of_group(x, group):
            return
        places, counts = uniform(x, "address", address), uniform(x, "columns", columns)
        self._together(x, group, self._deallocate, places, counts)

    def _together(
        self, x: Executor, group: str, action: Callable[[Executor, Rendezvous], None], *values: np.ndarray
    ) -> None:
        """Carry out an instruction once a warp of each CTA of the group has arrived; the others wait."""
        joined = self.rendezvous.join(x, group, *values)
        for rendezvous in dict.fromkeys(joined):
            if rendezvous.is_complete and not rendezvous.is_done:
                action(x, rendezvous)
                rendezvous.is_done = True
                self.memory.version += 1  # wake the warps that wait for columns, or for each other
        done = np.array([rendezvous.is_done for rendezvous in joined])
        self.rendezvous.leave(x, (x.lanes_now[::WARP] // WARP)[done])
        x.suspend(np.repeat(done[:, np.newaxis], WARP, axis=1))

    def _deallocate(self, x: Executor, rendezvous: Rendezvous) -> None:
        held, (at, count) = self.of(rendezvous.slots[0]), rendezvous.participants[0].values
        region, is_valid = TensorRegion(-1, at, at + count), True
        for warp in rendezvous.participants:
            size, _ = held.columns.get(warp.values[0], (0, None))
            with warp.acting():
                if warp.values != (at, size):
                    first, wanted = warp.values
                    reason = f"{size} columns were allocated there" if size else "no allocation begins there"
                    reason = reason if size != wanted else "the other block of the pair deallocates others"
                    message = f"{x.name} of {wanted} columns at {first:#x}: {reason}"
                    help = "pass the address and the number of columns of tcgen05.alloc"
                    x.fail("tensor-memory", message, help=help)
                    is_valid = False
                elif self.order is not None:
                    for slot in rendezvous.slots:
                        self.order.deallocate(x, warp.row * WARP, slot, region)
        if is_valid:
            del held.columns[at]
        if is_valid and self.order is not None:
            for slot in rendezvous.slots:
                self.order.forget(slot, region)

    def relinquish(self, x: Executor, group: str) -> None:
        if self.of_group(x, group):
            self._together(x, group, self._relinquish)

    def _relinquish(self, x: Executor, rendezvous: Rendezvous) -> None:
        for warp in rendezvous.participants:
            self.of(warp.slot).relinquished = warp.origin

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
            held.columns.clear()  # in a pair, report it once
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
        self.rendezvous.move(residents, rows, slots)


def uniform(x: Executor, name: str, values: np.ndarray) -> np.ndarray:
    """Return the value of each warp, and report lanes that disagree."""
    by_warp = np.broadcast_to(values, x.shape)
    first: np.ndarray = by_warp[:, 0]
    if (by_warp != first[:, np.newaxis]).any():
        message = f"`{name}` of {x.name} differs between the lanes of a warp"
        x.fail("divergent-collective", message, by_warp != first[:, np.newaxis], _ONE_VALUE)
    return first
