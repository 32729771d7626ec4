"""Loads and stores between tensor memory and registers (tcgen05.ld, tcgen05.st).

A load reads when its warp waits, or uses a register that it writes; a store writes when its warp waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...isa.step import LoadResults
from ...layout.tensor_memory import LANE_AT, QUARTER_LANES, TensorFragment, TensorRegion, lane_of
from ..observe.races.tensor import Footprint, Operation, OperationKind, TensorOrder
from ..run.decode import Decoded
from ..run.executor import Executor
from ..run.frames import Frame, UninitializedRead
from ..run.residents import WARP, Residents
from .products import standing
from .tensor_allocation import TensorAllocator, uniform
from .tensor_cells import NEVER_WRITTEN, POISON_WORD, TensorCells

QUARTERS, QUARTER_AT = 4, LANE_AT + 5  # the bits of an address that name a quarter of the lanes
WRITE = "write it first: tcgen05.st, or tcgen05.mma with a false `enable_input_d`"


@dataclass(eq=False, slots=True)
class Transfer:
    """A load into, or a store from, the registers of the warps `rows`. Loads of `invalid` warps give poison.

    `values` and `origins` are what a store writes. `results` returns the results of a load from its words, None if they
    are the words.
    """

    frame: Frame
    step: Decoded
    rows: np.ndarray
    slots: np.ndarray
    address: np.ndarray
    cells: TensorFragment
    operations: list[Operation]
    values: np.ndarray | None = None
    origins: np.ndarray | None = None
    results: LoadResults | None = None

    def part(self, which: np.ndarray) -> Transfer:
        operations = [op for op, chosen in zip(self.operations, which, strict=bool(self.operations)) if chosen]
        values = None if self.values is None else self.values[:, which]
        origins = None if self.origins is None else self.origins[which]
        arrays = self.rows[which], self.slots[which], self.address[which]
        return Transfer(self.frame, self.step, *arrays, self.cells, operations, values, origins, self.results)

    def result(self, words: np.ndarray) -> object:
        """Return the results of a load of some words."""
        return words if self.results is None else self.results(words)


class Transfers:
    """The loads and stores in flight. `unwaited` has, by warp, those that no wait has completed: loads if True."""

    def __init__(self, allocator: TensorAllocator, order: TensorOrder | None) -> None:
        self.allocator, self.order = allocator, order

    def settle(self, residents: Residents, cells: TensorCells) -> None:
        """Start blocks: nothing is in flight."""
        self.residents, self.cells = residents, cells
        self.loads: list[Transfer] = []
        self.stores: list[Transfer] = []
        self.unwaited: dict[tuple[int, bool], list[Operation]] = {}

    def load(self, x: Executor, cells: TensorFragment, address: np.ndarray, results: LoadResults | None) -> None:
        transfer = self._transfer(x, cells, address, OperationKind.LOAD)
        transfer.results = results
        if transfer.rows.size < len(x.active):  # refused loads give poison
            x.deliver(x.step, transfer.result(np.full((len(cells.lanes), *x.shape), POISON_WORD)))
        if transfer.rows.size:
            self.loads.append(transfer)

    def store(self, x: Executor, cells: TensorFragment, address: np.ndarray, values: np.ndarray) -> None:
        transfer = self._transfer(x, cells, address, OperationKind.STORE)
        which = np.isin(x.lanes_now[::WARP] // WARP, transfer.rows)
        transfer.values = np.array(values[:, which])
        transfer.origins = np.zeros((len(transfer.rows), WARP), np.uint8)
        if x.carried is not None and (lanes := x.carried[x.lanes_now].reshape(-1, WARP)[which]).any():
            text = f"{x.name} stored a register in tensor memory that was never written"
            transfer.origins[lanes] = self.cells.origin(text)
        if transfer.rows.size:
            self.stores.append(transfer)

    def _transfer(self, x: Executor, cells: TensorFragment, address: np.ndarray, kind: OperationKind) -> Transfer:
        """Check an access of warps, and return it for those that may make it."""
        rows, places = x.lanes_now[::WARP] // WARP, uniform(x, "address", address).astype(np.int64)
        slots, warps = rows % self.residents.slots, self.residents.warp[rows * WARP] % QUARTERS
        reached = places & ~(QUARTERS - 1 << QUARTER_AT) | warps << QUARTER_AT
        regions = [[_moved(span, at) for span in cells.spans] for at in reached.tolist()]
        valid = self._in_quarter(x, rows, warps, places, regions)
        valid &= self.allocator.allocated(x, slots, regions, kind is OperationKind.LOAD)
        places = reached
        rows, slots, places = rows[valid], slots[valid], places[valid]
        operations: list[Operation] = []
        if self.order is not None and rows.size:
            spans = zip(slots.tolist(), (each for each, good in zip(regions, valid, strict=True) if good), strict=True)
            is_load = kind is OperationKind.LOAD
            footprints = [[Footprint(slot, *((each, ()) if is_load else ((), each)))] for slot, each in spans]
            operations = self.order.issue(x, kind, rows * WARP, footprints)
            for row, operation in zip(rows.tolist(), operations, strict=True):
                self.unwaited.setdefault((row, kind is OperationKind.LOAD), []).append(operation)
        return Transfer(x.frame, x.step, rows, slots, places, cells, operations)

    def _in_quarter(
        self,
        x: Executor,
        rows: np.ndarray,
        warps: np.ndarray,
        places: np.ndarray,
        regions: Sequence[Sequence[TensorRegion]],
    ) -> np.ndarray:
        """Return the warps whose regions are in their quarter of the lanes, and report the others.

        Tensor cores ignore which quarter an address names, so a wrong one is a strict finding.
        """
        quarters = (((1 << QUARTER_LANES) - 1) << warp * QUARTER_LANES for warp in warps.tolist())
        pairs = zip(regions, quarters, strict=True)
        valid = np.array([not any(region.lanes & ~quarter for region in each) for each, quarter in pairs], bool)
        elsewhere = places >> QUARTER_AT & (QUARTERS - 1) != warps
        for which, strict in ((~valid, False), (valid & elsewhere, True)):
            if not which.any():
                continue
            n = int(np.argmax(which))
            first = int(warps[n]) * QUARTER_LANES
            message = (
                f"{x.name} of warp {int(self.residents.warp[rows[n] * WARP])} begins in lane {lane_of(int(places[n]))} "
                f"of tensor memory; the warp reaches lanes {first} to {first + QUARTER_LANES - 1}"
            )
            help = "add 32 * (warp % 4) << 16 to the address: its upper half is the lane"
            lanes = np.repeat(which[:, np.newaxis], WARP, 1)
            if strict:
                x.finding("tensor-memory", message, lanes, help=help, strict=True)
            else:
                x.fail("tensor-memory", message, lanes, help)
        return valid

    def touch(self, x: Executor, step: Decoded) -> None:
        """Let loads in flight write the registers that an instruction uses."""
        if self.loads:
            rows = np.unique(x.lanes_now // WARP)
            self._deliver(x, lambda load: _shares(load, x.frame, step.touched) & np.isin(load.rows, rows))

    def deliver(self, x: Executor, frame: Frame | None = None, slots: Sequence[int] = ()) -> None:
        """Let loads in flight write registers: some slots of a frame, or all."""
        if self.loads:
            self._deliver(x, lambda load: np.full(len(load.rows), frame is None or _shares(load, frame, slots)))

    def wait(self, x: Executor, loads: bool) -> None:
        rows = x.lanes_now[::WARP] // WARP
        if loads:
            self._deliver(x, lambda load: np.isin(load.rows, rows))
        else:
            due, self.stores = _divided(self.stores, lambda store: np.isin(store.rows, rows))
            for store in due:
                assert store.values is not None and store.origins is not None
                self.cells.store(store.slots, store.address, store.cells, store.values, store.origins)
        ended = [op for row in rows.tolist() for op in self.unwaited.pop((row, loads), ())]
        if self.order is not None and ended:
            self.order.complete(ended)
        x.memory.private += 1  # a loop that waits for them makes progress

    def _deliver(self, x: Executor, which: Callable[[Transfer], np.ndarray]) -> None:
        due, self.loads = _divided(self.loads, which)
        for load in due:
            words, origins = self.cells.load(load.slots, load.address, load.cells)
            with standing(x, load.frame, load.step, load.rows):
                x.deliver(load.step, load.result(words))
                for warp, operation in enumerate(load.operations):
                    if operation.is_racy:  # reported already
                        origins[:, warp] = 0
                if origins.any():
                    self._taint(x, load, origins)

    def _taint(self, x: Executor, load: Transfer, origins: np.ndarray) -> None:
        """Mark registers that were loaded from uninitialised cells."""
        by_lane = origins.max(0)
        register, warp, lane = (int(i) for i in np.unravel_index(int(np.argmax(origins)), origins.shape))
        text, help = self._told(int(origins[register, warp, lane])), WRITE
        if not text:
            at = int(load.address[warp])
            cell = f"lane {(at >> 16) + load.cells.lanes[register, lane]}, column "
            cell += str((at & 0xFFFF) + load.cells.columns[register, lane])
            text = f"{load.step.opcode.text} reads {cell} of tensor memory, which was never written"
        flags = np.zeros(self.residents.lanes, bool)
        flags[(load.rows[:, np.newaxis] * WARP + np.arange(WARP))[by_lane > 0]] = True
        x.taint(load.step.outputs, flags, UninitializedRead(load.step.origin, text, help, once=True))

    def _told(self, origin: int) -> str:
        """Return what is known of an uninitialised cell besides that."""
        return "" if origin <= NEVER_WRITTEN else self.cells.texts[origin - 1]

    # Changes of the resident blocks

    def end_blocks(self, gone: np.ndarray) -> None:
        """Drop what blocks in slots `gone` (slots,) left in flight."""
        slots = self.residents.slots
        self.loads = [load for load in self.loads if not gone[load.rows % slots].any()]
        self.stores = [store for store in self.stores if not gone[store.rows % slots].any()]
        self.unwaited = {key: ops for key, ops in self.unwaited.items() if not gone[key[0] % slots]}

    def move(self, residents: Residents, rows: np.ndarray, slots: np.ndarray) -> None:
        """Renumber warps and slots; all loads have been delivered."""
        self.residents = residents
        self.unwaited = {(int(rows[row]), loads): ops for (row, loads), ops in self.unwaited.items() if rows[row] >= 0}
        for store in self.stores:
            store.rows, store.slots = rows[store.rows], slots[store.slots]


def _moved(span: TensorRegion, address: int) -> TensorRegion:
    """Return a region relative to an address as one of tensor memory."""
    first = address & 0xFFFF
    return TensorRegion(span.lanes << lane_of(address), span.first + first, span.end + first)


def _shares(load: Transfer, frame: Frame, slots: Sequence[int]) -> bool:
    return load.frame is frame and not set(load.step.outputs).isdisjoint(slots)


def _divided(transfers: Sequence[Transfer], which: Callable[[Transfer], Any]) -> tuple[list[Transfer], list[Transfer]]:
    """Divide transfers by their warps: those selected by `which`, and the rest."""
    due, left = [], []
    for transfer in transfers:
        chosen = which(transfer)
        if np.all(chosen):
            due.append(transfer)
        elif not np.any(chosen):
            left.append(transfer)
        else:
            due.append(transfer.part(chosen))
            left.append(transfer.part(~chosen))
    return due, left
