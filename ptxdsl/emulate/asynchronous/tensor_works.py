"""Products in tensor memory and copies to it (tcgen05.mma, tcgen05.cp), and the commits that track them.

They are carried out, and what they read from shared memory is read, when a commit that covers them arrives at an
mbarrier: when a thread waits for that and no thread can run, or when a schedule says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ...errors import Location
from ...isa.mbarrier import COUNT, OBJECT, PHASE, arrive
from ...isa.tensor_copy import SHAPES, TensorMemoryCopy
from ...isa.tensor_product import CellOperands, TensorProduct
from ...isa.tensor_scales import QUARTERS
from ...isa.tensor_shift import COLUMNS as SHIFTED_COLUMNS
from ...isa.tensor_shift import TensorMemoryShift
from ...isa.tensor_sparsity import nibbles, undefined, undefined_text
from ...layout.tensor_memory import ALL_LANES, FULL, LANE_AT, LANES, QUARTER_LANES, TensorRegion, lane_of
from ..memory.access import UPDATES, Origin
from ..memory.distributed import ended
from ..memory.spaces import Memory
from ..observe.races.clocks import Message
from ..observe.races.tensor import Footprint, OperationKind, TensorOrder
from ..run.executor import Executor
from ..run.residents import Residents
from ..run.schedules import Lockstep
from .bulk import MBARRIER_BYTES, BulkCopies, Resumption
from .readings import Reading, moved_addresses
from .tensor_allocation import TensorAllocator
from .tensor_cells import NEVER_WRITTEN, TensorCells

TensorUnitWork: TypeAlias = TensorProduct | TensorMemoryCopy | TensorMemoryShift
Touched: TypeAlias = list[tuple[tuple[TensorRegion, ...], tuple[TensorRegion, ...]]]
"""The regions that the work of a lane reads, and writes, in each CTA."""
_COMMIT = "execute tcgen05.commit after it, and wait for the phase of its mbarrier before the block ends"


@dataclass(eq=False, slots=True)
class TensorWork:
    """Products or copies in flight of one instruction, one for each lane, in the blocks in `slots`, (ctas, lanes).

    `stale` are rows of the result, (lanes, rows), that uninitialised operands make so, and `text` says why.
    """

    issued: int
    lanes: np.ndarray
    slots: np.ndarray
    product: TensorUnitWork
    reading: Reading
    resume: Resumption
    origin: Origin
    stale: np.ndarray | None = None
    text: str = ""

    def parts(self, bulk: BulkCopies, which: np.ndarray) -> tuple[TensorWork, TensorWork]:
        """Split into the products of some lanes and those of the others."""
        readings = bulk.readings.split(self.reading, which)
        return self._part(which, readings[0]), self._part(~which, readings[1])

    def _part(self, which: np.ndarray, reading: Reading) -> TensorWork:
        stale = None if self.stale is None else self.stale[which]
        arrays = self.lanes[which], self.slots[:, which], self.product.part(which)
        return replace(self, lanes=arrays[0], slots=arrays[1], product=arrays[2], reading=reading, stale=stale)

    def stale_in(self, cta: int) -> np.ndarray | None:
        """Return the rows of `stale` in a CTA of the group."""
        return None if self.stale is None else np.split(self.stale, self.product.ctas, axis=1)[cta]

    def follows(self, other: TensorWork) -> bool:
        """True if it can be carried out together with another just before it."""
        if not isinstance(self.product, TensorProduct) or not isinstance(other.product, TensorProduct):
            return False
        return np.array_equal(self.lanes, other.lanes) and self.product.chains(other.product)


@dataclass(eq=False, slots=True)
class TensorCommit:
    """Commits of one instruction in flight: lanes, and the mbarriers where they arrive, offsets in shared memory.

    `issued` numbers works and commits, `stamp` is its time on the clocks of the race detector, and
    `known` what its lanes knew then.
    """

    issued: int
    stamp: int
    known: list[Message]
    lanes: np.ndarray
    mbarriers: np.ndarray
    resume: Resumption
    origin: Origin

    def part(self, which: np.ndarray) -> TensorCommit:
        known = [message for message, chosen in zip(self.known, which, strict=bool(self.known)) if chosen]
        return replace(self, known=known, lanes=self.lanes[which], mbarriers=self.mbarriers[which])


class Works:
    """The products and commits in flight. `awaited` are the mbarriers that threads wait for, `issued` counts both."""

    def __init__(
        self, memory: Memory, bulk: BulkCopies, stride: int, allocator: TensorAllocator, order: TensorOrder | None
    ) -> None:
        self.memory, self.bulk, self.stride = memory, bulk, max(1, stride)
        self.allocator, self.order = allocator, order

    def settle(self, residents: Residents, cells: TensorCells) -> None:
        """Start blocks: nothing is in flight."""
        self.residents, self.cells = residents, cells
        self.works: list[TensorWork] = []
        self.commits: list[TensorCommit] = []
        self.awaited: set[int] = set()
        self.issued = 0

    def locations(self) -> list[Location]:
        """Return the locations of the instructions in flight."""
        return list(dict.fromkeys(work.origin.location for work in self.works if work.origin.location is not None))

    def issue(self, x: Executor, which: np.ndarray, product: TensorUnitWork) -> None:
        """Queue the products or copies of some lanes, if their columns are allocated."""
        with x.only(which):
            slots = self.allocator.rendezvous.slots(self.residents.slot[x.lanes_now], product.ctas)
            touched = _touched(product)
            regions = [(*reads, *writes) for (reads, writes), *_ in touched]
            valid = self._peers_run(x, slots) & self.allocator.allocated(x, slots[0], regions, False)
            if not valid.all():
                if not valid.any():
                    return
                mask = np.zeros(which.shape, bool)
                mask[which] = valid
                product = product.part(valid)
        if not valid.all():
            self.issue(x, mask, product)
            return
        with x.only(which):
            self._queue(x, slots, product, touched)

    def _peers_run(self, x: Executor, slots: np.ndarray) -> np.ndarray:
        """Return the lanes whose group of CTAs, (ctas, lanes), is complete, and report the others."""
        if len(slots) == 1:
            return np.ones(slots.shape[1], bool)
        gone = (slots < 0) | ended(self.residents, x.alive)[slots]
        which, r = gone.any(0), self.residents
        if which.any():
            first = int(np.argmax(which))
            block = r.numbered(int(r.ordinals[r.slot[x.lanes_now[first]]]) ^ 1, 0).block_text
            message = f"{x.name} is executed after the other block of its pair, {block}, has ended"
            help = "end the blocks of a pair together: barrier.cluster.arrive and barrier.cluster.wait in both"
            x.fail("cluster", message, which, help)
        return ~which

    def _queue(self, x: Executor, slots: np.ndarray, product: TensorUnitWork, touched: Sequence[Touched]) -> None:
        lanes, kind, keys, is_narrow = x.lanes_now, OperationKind.COPY, [], False
        if isinstance(product, TensorMemoryCopy):
            is_narrow = product.shape is SHAPES["4x256b"]
        elif isinstance(product, TensorMemoryShift):
            kind = OperationKind.SHIFT
        else:
            form, kind = product.form, OperationKind.MULTIPLY
            keys = [(form.m, form.n, form.weight_stationary, at) for at in product.d.tolist()]
        if self.order is not None:
            footprints = [
                [Footprint(slot, *regions) for slot, regions in zip(group, each, strict=True)]
                for group, each in zip(slots.T.tolist(), touched, strict=True)
            ]
            self.order.issue(x, kind, lanes, footprints, keys, is_narrow)
        x.unwritten = None
        space = "shared" if product.ctas == 1 else "shared::cluster"
        reading = x.begin_reading(product.chunks, product.described, space)
        assert isinstance(reading, Reading)
        work = TensorWork(self.issued, lanes, slots, product, reading, x.resumption(), x.origin)
        if x.unwritten is not None:
            work.text, x.unwritten = x.unwritten[1].text, None
            work.stale = _stale_rows(product, self.bulk.readings.unwritten(reading))
        self.works.append(work)
        self.issued += 1

    def commit(self, x: Executor, space: str, mbarrier: np.ndarray) -> None:
        lanes, address = x.lanes_now, mbarrier
        if space == "generic":
            address, space = x.specific("shared", mbarrier), "shared::cluster"
        counted = self.memory.reach(x, UPDATES, space, address, MBARRIER_BYTES, OBJECT, None, True)
        stamp, known = self.order.commit(lanes) if self.order is not None else (0, [])
        commit = TensorCommit(self.issued, stamp, known, lanes, counted.flat, x.resumption(), x.origin)
        if counted.allowed is not None:
            commit = commit.part(counted.allowed)
        self.issued += 1
        if commit.lanes.size:
            self.commits.append(commit)

    # The arrival of commits

    def flush(self, x: Executor, awaited: bool) -> bool:
        """Let commits arrive for which threads wait, or else (without `awaited`) all; return True if there were any."""
        if not self.commits:
            return False
        due = [np.isin(commit.mbarriers, list(self.awaited)) for commit in self.commits]
        if not any(which.any() for which in due):
            if awaited:
                return False
            due = [np.ones(len(commit.lanes), bool) for commit in self.commits]
        self.awaited.clear()
        self._land(x, due)
        return True

    def land_early(self, x: Executor, schedule: Lockstep) -> None:
        """Let a commit arrive early if a schedule says so."""
        if self.commits and (number := schedule.landing(len(self.commits))) is not None:
            self._land(x, [np.full(len(c.lanes), n == number) for n, c in enumerate(self.commits)])

    def _land(self, x: Executor, due: Sequence[np.ndarray]) -> None:
        """Carry out what some commits cover, and let these arrive, and those before them of the same lanes."""
        limits = np.full(self.residents.lanes, -1)  # of the numbers of what is carried out or arrives
        for commit, which in zip(self.commits, due, strict=True):
            np.maximum.at(limits, commit.lanes[which], commit.issued)
        works: list[TensorWork] = []
        left: list[TensorWork] = []
        for work in self.works:
            which = work.issued < limits[work.lanes]
            if not which.all():
                which |= self._precedes(work, limits)
            if which.all():
                works.append(work)
            elif not which.any():
                left.append(work)
            else:
                ended, rest = work.parts(self.bulk, which)
                works.append(ended)
                left.append(rest)
        self.works = left
        for chain in _chains(works):
            self._carry_out(x, chain)
        commits, self.commits = self.commits, []
        for commit in commits:
            which = commit.issued <= limits[commit.lanes]
            if which.any():
                self._arrive(x, commit.part(which))
            if not which.all():
                self.commits.append(commit.part(~which))
        self.memory.version += 1

    def _precedes(self, work: TensorWork, limits: np.ndarray) -> np.ndarray:
        """Return which products come before those of other threads, up to the `limits` of lanes, on the same cells."""
        which = np.zeros(len(work.lanes), bool)
        for later in self.works:
            due = np.flatnonzero((later.issued < limits[later.lanes]) & (later.issued > work.issued))
            for n in due.tolist():
                for m in np.flatnonzero((work.slots == later.slots[:, n : n + 1]).all(0)).tolist():
                    regions = (*later.product.reads(n), *later.product.writes(n))
                    which[m] |= any(region.meets(other) for region in work.product.writes(m) for other in regions)
        return which

    def _copy(self, work: TensorWork, copy: TensorMemoryCopy) -> None:
        """Carry out copies."""
        everywhere = np.full(len(work.lanes), ALL_LANES, object)
        for cta, chunks in enumerate(np.split(self._read(work), copy.ctas)):
            words, stale = copy.cells(chunks), work.stale_in(cta)
            origins = np.zeros(words.shape[:2], np.uint8)
            if stale is not None:
                origins[stale] = self.cells.origin(work.text)
            for placement in copy.shape.places:
                self.cells.put_matrix(work.slots[cta], copy.address, placement, everywhere, words, origins)

    def _carry_out(self, x: Executor, chain: Sequence[TensorWork]) -> None:
        """Carry out products on the same accumulators, in order, or a copy."""
        first, product = chain[0], chain[0].product
        if isinstance(product, TensorMemoryCopy):
            self._copy(first, product)
            return
        if isinstance(product, TensorMemoryShift):
            self._read(first)
            for slots in first.slots:
                self.cells.shift(slots, product.address, SHIFTED_COLUMNS)
            return
        placement, n = product.placement, product.form.n
        with first.resume(first.lanes):
            totals, origins = [], []
            for slots in first.slots:
                totals.append(product.numbers(self.cells.matrix(slots, product.d, placement, n)))
                origins.append(self.cells.matrix_origins(slots, product.d, placement, n).max(2))
            for work in chain:
                each = work.product
                assert isinstance(each, TensorProduct)
                a, b = each.factors(self._read(work))
                for cta, slots in enumerate(first.slots):
                    origins[cta] = self._origins(work, each, origins[cta], cta)
                    cells = self._operands(slots, each)
                    self._check_metadata(x, each, cells.metadata, origins[cta])
                    totals[cta] = each.multiply_add(x.numerics, totals[cta], a[cta] if a else None, b, cells)
                    if each.shifts and each.a is not None:
                        for quarter in range(0, LANES, QUARTER_LANES):
                            self.cells.shift(slots, each.a + (quarter << LANE_AT), SHIFTED_COLUMNS)
            for cta, slots in enumerate(first.slots):
                words, enabled = product.cells(totals[cta]), product.enabled_in(cta)
                self.cells.put_matrix(slots, product.d, placement, enabled, words, origins[cta])

    def _operands(self, slots: np.ndarray, product: TensorProduct) -> CellOperands:
        """Return the operands of a product in tensor memory."""
        placement = product.placement
        read = {
            name: self.cells.matrix(slots, address, placement, columns * placement.parts)
            for name, address, columns in product.row_operands
        }
        return CellOperands(read.get("A"), self._scales(slots, product), read.get("metadata"))

    def _check_metadata(
        self, x: Executor, product: TensorProduct, words: np.ndarray | None, origins: np.ndarray
    ) -> None:
        """Report metadata without meaning; those that were never written are reported where D is read."""
        if words is None:
            return
        type = product.form.atype
        for each in np.split(words, product.placement.parts, axis=2):
            fours = nibbles(each, type)
            wrong = undefined(fours, type) & (origins == 0)[..., np.newaxis]
            if wrong.any():
                help = "write the positions of the elements that A stores, the smaller one in the low bits"
                x.finding("sparse-metadata", undefined_text(int(fours[wrong][0]), type), wrong.any((1, 2)), help=help)

    def _scales(self, slots: np.ndarray, product: TensorProduct) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the cells of the scale factors of A and of B, in one quarter of the lanes of each part of D."""
        if product.scales is None:
            return None
        parts, ((a, columns_a), (b, columns_b)) = product.placement.parts, product.scale_places
        of_b = self.cells.matrix(slots, b, QUARTERS[parts], columns_b * parts)
        return self.cells.matrix(slots, a, QUARTERS[1], columns_a), of_b

    def _read(self, work: TensorWork) -> np.ndarray:
        """Return what products read from shared memory, (chunks, lanes, 16)."""
        reading = work.reading
        data = self.bulk.readings.take(reading)
        if self.order is not None:
            self.order.read_shared(work.origin, reading.readers.reshape(-1), reading.flat.reshape(-1))
        return data

    def _origins(self, work: TensorWork, product: TensorProduct, old: np.ndarray, cta: int) -> np.ndarray:
        """Return the origins of a CTA's rows of D after a product, (lanes, rows), from those before it."""
        name, slots = work.origin.name, work.slots[cta]
        fresh = product.accumulates[:, np.newaxis] & (old == NEVER_WRITTEN)
        origins = np.where(product.accumulates[:, np.newaxis], old, 0).astype(np.uint8)
        if fresh.any():
            lane, row = (int(i[0]) for i in np.nonzero(fresh))
            at = int(product.d[lane])
            cell = f"lane {int(product.placement.lanes[row]) + lane_of(at)} from column {at & 0xFFFF} on"
            origins[fresh] = self.cells.origin(f"{name} adds to {cell} of tensor memory, which was never written")
        for operand, address, columns in product.row_operands:
            placement = product.placement
            stale = self.cells.matrix_origins(slots, address, placement, columns * placement.parts).max(2)
            if (stale == NEVER_WRITTEN).any():
                text = f"{name} reads {operand} in tensor memory, of which some cells were never written"
                stale = np.where(stale == NEVER_WRITTEN, self.cells.origin(text), stale)
            origins = np.maximum(origins, stale)
        for address, columns in product.scale_places:
            stale = self.cells.matrix_origins(slots, address, FULL, columns).any((1, 2))
            text = f"{name} reads scale factors in tensor memory, of which some cells were never written"
            if stale.any():
                origins[stale] = self.cells.origin(text)
        if (rows_of := work.stale_in(cta)) is not None:
            origins[rows_of] = self.cells.origin(work.text)
        return origins

    def _arrive(self, x: Executor, commit: TensorCommit) -> None:
        """Let commits arrive at their mbarriers."""
        shared = self.memory.spaces["shared"]
        ended: list[np.ndarray] = []
        for which in _one_after_another(commit.mbarriers):
            at = commit.mbarriers[which]
            before = shared.read(at, MBARRIER_BYTES)
            if (crowded := before & COUNT < 1).any():
                with commit.resume(commit.lanes[which][crowded]):
                    message = f"{commit.origin.name} arrives at an mbarrier whose phase waits for no more arrivals"
                    help = "initialize the mbarrier with the number of arrivals per phase, one for each commit"
                    x.finding("mbarrier", message, np.ones(int(crowded.sum()), bool), help=help)
            after = arrive(before, np.ones(len(at), np.uint64))
            shared.write(at, MBARRIER_BYTES, after)
            ended.append(at[after >> PHASE != before >> PHASE])
        phases = np.concatenate(ended) if ended else np.zeros(0, np.int64)
        x.phases.end_at((phases // self.stride).tolist(), (phases % self.stride).tolist())
        if self.order is not None:
            self.order.land(commit.lanes, commit.mbarriers, phases, commit.stamp, commit.known)

    # Changes of the resident blocks

    def end_blocks(self, x: Executor, gone: np.ndarray) -> None:
        """End the blocks in slots `gone` (slots,), and report what they left in flight."""
        left = []
        for work in self.works:
            which = gone[work.slots].any(0)
            if not which.any():
                left.append(work)
                continue
            with work.resume(work.lanes[which]):
                ends = "its block ends" if work.product.ctas == 1 else "a block of its pair ends"
                message = f"{work.origin.name} is still in flight when {ends}"
                x.finding("unwaited-async", message, np.ones(int(which.sum()), bool), help=_COMMIT, strict=True)
            ended, rest = (work, None) if which.all() else work.parts(self.bulk, which)
            self.bulk.readings.take(ended.reading)
            left += [rest] if rest is not None else []
        self.works = left
        stay = []
        for commit in self.commits:
            lost = gone[commit.mbarriers // self.stride]
            there = lost & ~gone[self.residents.slot[commit.lanes]]
            if there.any():
                self._report_lost(x, commit, there)
            stay.append((commit, ~lost & ~gone[self.residents.slot[commit.lanes]]))
        self.commits = [commit.part(stays) for commit, stays in stay if stays.any()]

    def _report_lost(self, x: Executor, commit: TensorCommit, which: np.ndarray) -> None:
        """Report commits in flight to mbarriers of blocks that have ended."""
        slot = int(commit.mbarriers[which][0] // self.stride)
        block = self.residents.numbered(int(self.residents.ordinals[slot]), 0).block_text
        with commit.resume(commit.lanes[which]):
            message = f"{commit.origin.name} arrives at an mbarrier of block {block}, which has ended"
            help = "let each block wait for the commits that arrive there, before it ends"
            x.finding("cluster", message, np.ones(int(which.sum()), bool), help=help)

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        """Renumber lanes and slots; those that have ended left nothing."""
        self.residents = residents
        for work in self.works:
            work.lanes, work.slots = lanes[work.lanes], slots[work.slots]
        for commit in self.commits:
            commit.lanes = lanes[commit.lanes]
            commit.mbarriers = moved_addresses(commit.mbarriers, slots, self.stride)
        stride, awaited = self.stride, [address for address in self.awaited if slots[address // self.stride] >= 0]
        self.awaited = {int(slots[address // stride]) * stride + address % stride for address in awaited}


def _one_after_another(mbarriers: np.ndarray) -> Iterator[np.ndarray]:
    """Yield arrivals by number, those of each step at different mbarriers."""
    left = np.arange(len(mbarriers))
    while left.size:
        _, first = np.unique(mbarriers[left], return_index=True)
        yield left[np.sort(first)]
        left = np.delete(left, first)


def _touched(product: TensorUnitWork) -> list[Touched]:
    """Return the regions that the work of each lane reads and writes in each CTA; blocks often use the same ones."""
    known: dict[tuple[object, ...], Touched] = {}
    keys = list(zip(*(each.tolist() for each in product.placed), strict=True))
    for lane, key in enumerate(keys):
        if key not in known:
            known[key] = [(product.reads(lane, cta), product.writes(lane, cta)) for cta in range(product.ctas)]
    return [known[key] for key in keys]


def _chains(works: Sequence[TensorWork]) -> Iterator[list[TensorWork]]:
    """Yield the works in order, grouped where they can be carried out together."""
    chain: list[TensorWork] = []
    for work in works:
        if chain and not work.follows(chain[-1]):
            yield chain
            chain = []
        chain.append(work)
    if chain:
        yield chain


def _stale_rows(product: TensorUnitWork, unwritten: np.ndarray) -> np.ndarray:
    """Return the rows of the result, (lanes, rows), that uninitialised chunks, (chunks, lanes), make so."""
    assert not isinstance(product, TensorMemoryShift)
    if isinstance(product, TensorMemoryCopy):
        return np.asarray(unwritten.reshape(product.ctas * product.shape.rows, -1, unwritten.shape[1]).any(1).T)
    form, split = product.form, product.split
    rows = np.zeros((unwritten.shape[1], form.m), bool)
    if split and not form.transposed_a:
        rows |= unwritten[:split].reshape(form.m, -1, unwritten.shape[1]).any(1).T
    for part in (unwritten[:split] if form.transposed_a else unwritten[:0], unwritten[split:]):
        rows[np.flatnonzero(part.any(0))] = True
    return rows
