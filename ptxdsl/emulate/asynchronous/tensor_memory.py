"""Tensor memory: allocation, loads, stores, and products that commits track (tcgen05).

All of them take effect as late as the program allows; see `tensor_transfers` and `tensor_works`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import Location
from ...isa.cluster_address import OFFSET
from ...isa.step import LoadResults, PhaseWait, TensorOperands
from ...isa.tensor_copy import TensorMemoryCopy
from ...isa.tensor_product import TensorProduct
from ...isa.tensor_shift import TensorMemoryShift
from ...layout.tensor_memory import TensorFragment
from ..memory.access import Event, Observer, Requester
from ..memory.spaces import Memory
from ..observe.races.tensor import TensorOrder
from ..run.decode import Decoded
from ..run.executor import Executor
from ..run.frames import Frame
from ..run.residents import WARP, Residents
from ..run.schedules import Lockstep
from .bulk import BulkCopies
from .tensor_allocation import TensorAllocator
from .tensor_cells import TensorCells
from .tensor_transfers import Transfers
from .tensor_works import Works


class TensorMemory(Observer):
    """The tensor memory of the resident blocks. As an observer it notes the mbarriers that threads wait for."""

    def __init__(self, memory: Memory, bulk: BulkCopies, stride: int, order: TensorOrder | None) -> None:
        self.memory, self.races = memory, order
        self.allocator = TensorAllocator(memory, order)
        self.transfers = Transfers(self.allocator, order)
        self.works = Works(memory, bulk, stride, self.allocator, order)

    def settle(self, residents: Residents) -> None:
        self.cells = TensorCells()
        for part in (self.allocator, self.transfers, self.works):
            part.settle(residents, self.cells)

    def order(self, event: Event, by: Requester) -> None:
        if isinstance(event, PhaseWait) and not event.complete.all():
            base = self.memory.spaces["shared"].base
            assert base is not None
            late = ~event.complete
            lanes = by.lanes_of(event.complete.shape)[late]
            self.works.awaited.update(((event.address[late].view(np.int64) & OFFSET) + base[lanes]).tolist())

    # Instructions

    def allocate(self, x: Executor, group: str, space: str, address: np.ndarray, columns: np.ndarray) -> None:
        self.allocator.allocate(x, group, space, address, columns)

    def deallocate(self, x: Executor, group: str, address: np.ndarray, columns: np.ndarray) -> None:
        self.allocator.deallocate(x, group, address, columns)

    def relinquish(self, x: Executor, group: str) -> None:
        self.allocator.relinquish(x, group)

    def load(
        self, x: Executor, fragment: TensorFragment, address: np.ndarray, results: LoadResults | None = None
    ) -> None:
        self.transfers.load(x, fragment, address, results)

    def store(self, x: Executor, fragment: TensorFragment, address: np.ndarray, values: np.ndarray) -> None:
        self.transfers.store(x, fragment, address, values)

    def wait(self, x: Executor, loads: bool) -> None:
        self.transfers.wait(x, loads)

    def fence(self, x: Executor, before: bool) -> None:
        if self.races is not None:
            (self.races.before if before else self.races.after)(x.lanes_now)

    def issue(self, x: Executor, group: str, which: np.ndarray, operands: TensorOperands) -> None:
        assert isinstance(operands, TensorProduct | TensorMemoryCopy | TensorMemoryShift)
        if self.allocator.of_group(x, group):
            self.works.issue(x, which, operands)

    def commit(self, x: Executor, group: str, space: str, mbarrier: np.ndarray) -> None:
        if self.allocator.of_group(x, group):
            self.works.commit(x, space, mbarrier)

    # The machine

    def locations(self) -> list[Location]:
        """Return the locations of the instructions in flight."""
        return self.works.locations()

    def touch(self, x: Executor, step: Decoded) -> None:
        """Let loads in flight write the registers that an instruction uses."""
        self.transfers.touch(x, step)

    def deliver(self, x: Executor, frame: Frame | None = None, slots: Sequence[int] = ()) -> None:
        """Let loads in flight write registers: some slots of a frame, or all."""
        self.transfers.deliver(x, frame, slots)

    def lacking(self, x: Executor, lanes: np.ndarray) -> str:
        """Describe what a warp lacks that waits at tcgen05.alloc or tcgen05.dealloc."""
        return self.allocator.lacking(x, lanes)

    def flush(self, x: Executor, awaited: bool) -> bool:
        """Let commits arrive for which threads wait, or else (without `awaited`) all; return True if there were any."""
        return self.works.flush(x, awaited)

    def land_early(self, x: Executor, schedule: Lockstep) -> None:
        """Let a commit arrive early if a schedule says so."""
        self.works.land_early(x, schedule)

    def end_blocks(self, x: Executor, gone: np.ndarray) -> None:
        """End the blocks in slots `gone` (slots,): report what they left allocated or in flight."""
        self.works.end_blocks(x, gone)
        for slot in np.flatnonzero(gone).tolist():
            self.allocator.end_block(x, slot)
        self.transfers.end_blocks(gone)

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        rows = lanes[::WARP] // WARP
        self.cells.move(slots, residents.slots)
        self.allocator.move(residents, rows, slots)
        self.transfers.move(residents, rows, slots)
        self.works.move(residents, lanes, slots)
