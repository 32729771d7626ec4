"""Warpgroup products (wgmma): queued when issued, carried out in order at the wait for their group.

Until then their registers are in use. Accumulators stay matrices from product to product, and go to registers when
another instruction uses one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ...isa.step import AsyncReading, LateInputs
from ..memory.access import ProductsEnd
from ..run.decode import Decoded
from ..run.executor import Executor
from ..run.frames import Frame, UninitializedRead, as_index
from ..run.meetings import shaped
from ..run.residents import WARP

BEGIN = "pass a false `scale_d` to the first wgmma of a tile, or zero the accumulators first"

_LANES = np.arange(WARP)
_WAIT = "wait first: wgmma.wait_group.sync.aligned 0 after wgmma.commit_group"
_FENCE = "write wgmma.fence.sync.aligned between the last use of these registers and the first wgmma.mma_async"


@dataclass(eq=False, slots=True)
class LateProduct:
    """A product in flight of one instruction, for the warps `rows` (their numbers among the lanes)."""

    frame: Frame
    step: Decoded
    rows: np.ndarray
    group: np.ndarray
    inputs: LateInputs
    reading: AsyncReading
    unwritten: tuple[np.ndarray, UninitializedRead] | None

    def parts(self, x: Executor, which: np.ndarray) -> Iterator[LateProduct]:
        """Split into the product of some of the warps and that of the others."""
        readings = x.split_reading(self.reading, which)
        for part, reading in zip((which, ~which), readings, strict=True):
            rows, group, inputs = self.rows[part], self.group[part], self.inputs.part(part)
            yield LateProduct(self.frame, self.step, rows, group, inputs, reading, self.unwritten)

    def like(self, other: LateProduct) -> bool:
        """True if both have the same opcode, accumulators and warps."""
        same = self.frame is other.frame and self.step.opcode is other.step.opcode
        return same and self.step.outputs == other.step.outputs and np.array_equal(self.rows, other.rows)


@dataclass(eq=False, slots=True)
class HeldSums:
    """Accumulators that are not in registers yet; `tainted` lanes hold values computed from uninitialised memory."""

    step: Decoded
    rows: np.ndarray
    matrix: np.ndarray | None
    tainted: np.ndarray | None = None
    source: UninitializedRead | None = None


class ProductQueue:
    """The queue. `closed` counts the groups that each warp has committed, `fenced` the warps that executed a fence."""

    def __init__(self, warps: int) -> None:
        self.closed = np.zeros(warps, np.int64)
        self.fenced = np.zeros(warps, bool)
        self.queue: list[LateProduct] = []
        self.sums: dict[tuple[Frame, tuple[int, ...]], HeldSums] = {}
        self.used: dict[tuple[Frame, int], np.ndarray] = {}  # warps that accessed a register since their last fence

    # Called for the threads' instructions

    def issue(self, x: Executor, inputs: LateInputs) -> None:
        """Queue the product of the current instruction."""
        rows, step = _rows(x), x.step
        self._check_fence(x, rows)
        self._check_free(x, rows)
        reading = x.begin_reading(inputs.chunks, inputs.described)
        unwritten, x.unwritten = x.unwritten, None
        if unwritten is not None:
            unwritten = _taking(x, rows, inputs, reading), unwritten[1]
        self.queue.append(LateProduct(x.frame, step, rows, self.closed[rows], inputs, reading, unwritten))

    def fence(self, x: Executor) -> None:
        rows = _rows(x)
        self.fenced[rows] = True
        for key, warps in list(self.used.items()):
            warps[rows] = False
            if not warps.any():
                del self.used[key]

    def commit(self, x: Executor) -> None:
        self.closed[_rows(x)] += 1

    def wait(self, x: Executor, pending: int) -> None:
        """Carry out all but the newest `pending` groups of the current warps."""
        if not self.queue:
            return
        limit = np.full(len(self.closed), -1)
        rows = _rows(x)
        limit[rows] = self.closed[rows] - pending
        due, left = [], []
        for product in self.queue:
            which = product.group < limit[product.rows]
            if which.all():
                due.append(product)
            elif not which.any():
                left.append(product)
            else:
                ends, stays = product.parts(x, which)
                due.append(ends)
                left.append(stays)
        self.queue = left
        for chain in _chains(due):
            self._carry_out(x, chain)
        x.memory.private += bool(due)  # a loop that waits for products makes progress

    def touch(self, x: Executor, step: Decoded) -> None:
        """Handle an access of another instruction to registers of products."""
        rows = np.unique(x.lanes_now // WARP)
        self._check_idle(x, step, rows)
        for slot in step.touched:
            warps = self.used.setdefault((x.frame, slot), np.zeros(len(self.closed), bool))
            warps[rows] = True
        self.settle(x, x.frame, step.touched)

    def in_flight(self, frame: Frame, slot: int, warp: int) -> Decoded | None:
        """Return the wgmma in flight that will write a register of a warp, or None."""
        products = (p for p in self.queue if p.frame is frame and slot in p.step.outputs)
        return next((product.step for product in products if warp in product.rows), None)

    def settle(self, x: Executor, frame: Frame | None = None, slots: Sequence[int] = ()) -> None:
        """Write accumulators to their registers: those of some slots of a frame, or all."""
        for key, sums in list(self.sums.items()):
            if frame is None or (key[0] is frame and not set(slots).isdisjoint(key[1])):
                del self.sums[key]
                _write(x, key[0], sums)

    # Checks

    def _check_fence(self, x: Executor, rows: np.ndarray) -> None:
        step = x.step
        if not self.fenced[rows].all():
            message = f"{x.name} is the first wgmma of its warps, and no wgmma.fence precedes it"
            x.finding("unfenced-wgmma", message, _mask(x, rows, ~self.fenced), (), _FENCE)
        if not self.used:
            return
        for slot in (*step.outputs, *step.fragment):
            warps = self.used.get((x.frame, slot))
            if warps is not None and warps[rows].any():
                register = x.frame.code.slots.registers[slot]
                message = f"{x.name} uses register {register}, which was accessed since the last wgmma.fence"
                x.finding("unfenced-wgmma", message, _mask(x, rows, warps), (), _FENCE)
                return

    def _check_free(self, x: Executor, rows: np.ndarray) -> None:
        """Report accumulators of products in flight, unless this product uses the same ones in the same shape."""
        step, busy = x.step, False
        for product in self.queue:
            if product.frame is not x.frame:
                continue
            other = product.step
            if other.outputs == step.outputs and other.opcode.shape == step.opcode.shape:
                busy = True
            elif taken := {*step.outputs, *step.fragment}.intersection(other.outputs):
                self._report(x, "uses", product, taken, rows)
        if not busy and (x.frame, step.outputs) not in self.sums:
            self.settle(x, x.frame, (*step.outputs, *step.fragment))

    def _check_idle(self, x: Executor, step: Decoded, rows: np.ndarray) -> None:
        for product in self.queue:
            sums = set(product.step.outputs)
            if product.frame is not x.frame or sums.union(product.step.fragment).isdisjoint(step.touched):
                continue
            if written := sums.union(product.step.fragment).intersection(step.outputs):
                self._report(x, "writes", product, written, rows)
            elif read := sums.intersection(step.inputs):
                self._report(x, "reads", product, read, rows)

    def _report(self, x: Executor, verb: str, product: LateProduct, slots: set[int], rows: np.ndarray) -> None:
        if set(product.rows.tolist()).isdisjoint(rows.tolist()):  # for few warps, numpy would take 20 times as long
            return
        register = x.frame.code.slots.registers[min(slots)]
        role = "an accumulator" if slots & set(product.step.outputs) else "a fragment of A"
        message = (
            f"{x.name} {verb} register {register}, {role} of {product.step.opcode.text}, before wgmma.wait_group: "
            "it is still in flight"
        )
        others = [product.step.location] if product.step.location is not None else []
        busy = np.zeros(len(self.closed), bool)
        busy[product.rows] = True
        lanes = x.lanes_now[busy[x.lanes_now // WARP]]
        x.finding_elsewhere("unwaited-wgmma", message, x.step, lanes, others, _WAIT)

    # Carrying out

    def _carry_out(self, x: Executor, chain: Sequence[LateProduct]) -> None:
        """Carry out the products of one opcode on the same accumulators, in order."""
        first = chain[0]
        key = first.frame, first.step.outputs
        with standing(x, first.frame, first.step, first.rows):
            order, sums = x.warpgroups(), self.sums.pop(key, None)
            if sums is None or not np.array_equal(sums.rows, first.rows):
                if sums is not None:
                    _write(x, first.frame, sums)
                sums = _read(x, first, order)
            held = _fragments(x, chain)
            inputs = [product.inputs for product in chain]
            opcode = first.step.opcode
            chunks = [x.end_reading(product.reading) for product in chain]
            x.order(ProductsEnd(first.rows[order]))
            sums.matrix = first.step.op.carry_out(opcode, x, order, sums.matrix, inputs, held, chunks)
            for product in chain:
                if product.unwritten is not None:
                    _note_unwritten(sums, *product.unwritten)
            self.sums[key] = sums

    # Changes of the resident blocks

    def move(self, x: Executor, lanes: np.ndarray, warps: int) -> None:
        """Renumber lanes; the products of lanes that have ended are dropped."""
        rows = lanes[::WARP] // WARP
        for name in ("closed", "fenced"):
            setattr(self, name, _moved(getattr(self, name), rows, warps))
        self.used = {key: _moved(flags, rows, warps) for key, flags in self.used.items()}
        left = []
        for product in self.queue:
            stays = rows[product.rows] >= 0
            if not stays.all():
                product, ended = product.parts(x, stays)
                x.end_reading(ended.reading)
            product.rows = rows[product.rows]
            left += [product] if product.rows.size else []
        self.queue = left


def _moved(values: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    moved = np.zeros(count, values.dtype)
    moved[rows[rows >= 0]] = values[rows >= 0]
    return moved


def _rows(x: Executor) -> np.ndarray:
    """Return the numbers of the current warps."""
    return x.lanes_now[::WARP] // WARP


def _mask(x: Executor, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
    """Return the current lanes of flagged warps, in the shape of the instruction."""
    mask: np.ndarray = warps[x.lanes_now // WARP].reshape(x.shape)
    return mask


def _chains(products: Sequence[LateProduct]) -> Iterator[list[LateProduct]]:
    """Yield the products in order, grouped where they can be carried out together."""
    chain: list[LateProduct] = []
    for product in products:
        if chain and not chain[0].like(product):
            yield chain
            chain = []
        chain.append(product)
    if chain:
        yield chain


@contextmanager
def standing(x: Executor, frame: Frame, step: Decoded, rows: np.ndarray) -> Iterator[None]:
    """Move the processor to an instruction of these warps other than the current one."""
    now = x.step, x.active, x.partial
    with x.elsewhere(frame, as_index((rows[:, np.newaxis] * WARP + _LANES).reshape(-1))):
        x.step, x.partial, x.shape = step, True, (len(rows), WARP)
        x.active = np.ones(x.shape, bool)
        try:
            yield
        finally:
            x.step, x.active, x.partial = now


def _read(x: Executor, product: LateProduct, order: np.ndarray) -> HeldSums:
    """Return the accumulators of a product from registers, or zeros for a product that does not add to them."""
    step, adds = product.step, product.inputs.accumulates
    if not adds.any():
        return HeldSums(step, product.rows, None)
    held = shaped(step.late[0].read(x), len(product.rows))
    sums = HeldSums(step, product.rows, step.op.matrix(step.opcode, held, order))
    tainted = x.tainted(step.outputs)
    if tainted is not None:
        sums.tainted, sums.source = (
            tainted.lanes & np.isin(x.residents.all // WARP, product.rows[adds]),
            tainted.source or _unwritten_sums(x, step),
        )
    return sums


def _unwritten_sums(x: Executor, step: Decoded) -> UninitializedRead:
    """Report a product that adds to uninitialised registers."""
    slot = next(slot for slot in step.outputs if slot in x.frame.undefined)
    text = f"{step.origin.name} adds to register {x.frame.code.slots.registers[slot]}, which was never written"
    return UninitializedRead(step.origin, text, BEGIN)


def _write(x: Executor, frame: Frame, sums: HeldSums) -> None:
    with standing(x, frame, sums.step, sums.rows):
        x.deliver(sums.step, sums.step.op.registers(sums.step.opcode, sums.matrix, x.warpgroups()))
        if sums.tainted is not None:
            x.taint(sums.step.outputs, sums.tainted, sums.source)


def _fragments(x: Executor, chain: Sequence[LateProduct]) -> list[np.ndarray]:
    """Return the A fragments of equal products if A is in registers."""
    if not chain[0].step.fragment:
        return []
    held = [shaped(product.step.late[1].read(x), len(product.rows)) for product in chain]
    for product in chain:
        x.refuse_undefined(product.step.fragment)
    return held


def _taking(x: Executor, rows: np.ndarray, inputs: LateInputs, reading: AsyncReading) -> np.ndarray:
    """Return the lanes whose accumulators become tainted: a warp that reads uninitialised rows of its own part of A, or
    a warpgroup that reads them elsewhere.
    """
    unwritten, order = x.unwritten_chunks(reading)[..., 0], x.warpgroups()
    count = inputs.warp_chunks
    warps, shared = (np.asarray(part.any(0)) for part in (unwritten[:count], unwritten[count:]))
    warps[order[shared[order].any(1)]] = True
    flags = np.zeros((x.residents.lanes // WARP, WARP), bool)
    flags[rows[warps]] = True
    return flags.reshape(-1)


def _note_unwritten(sums: HeldSums, flags: np.ndarray, source: UninitializedRead) -> None:
    """Mark the accumulators of some warps as tainted."""
    sums.tainted = flags if sums.tainted is None else flags | sums.tainted
    sums.source = source
