"""Bulk copies: queued when issued, carried out as late as the program allows.

A copy to shared memory lands when a thread waits for its mbarrier and no thread can run, or when a schedule says so;
its source is read at that time. A copy to global memory reads shared memory, and writes, when its thread waits for
that. Copies that remain at the end of a block were not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from ...errors import Location
from ...isa.cluster_address import OFFSET
from ...isa.mbarrier import PHASE, expect, pending_bytes
from ...isa.step import ASYNC, BULK_REDUCTION, Ordering, PhaseWait, Pieces, Update
from ...isa.tensor_map import MAP_BYTES
from ...notes import RingNote
from ...types import Type
from ...types import lanes as lanes_of
from ..memory.access import (
    READS,
    UPDATES,
    WRITE_FIRST,
    WRITES,
    BulkLanding,
    CopyStart,
    Event,
    Observer,
    Origin,
    Requester,
    bytes_text,
)
from ..memory.regions import CHUNK, Region, Table
from ..memory.spaces import Memory
from ..observe.pipelines import filled_by_copies
from ..run.residents import Residents
from .readings import Reading, Readings, moved_addresses
from .swizzles import BoxSwizzles

ARRIVAL = Ordering("relaxed", "cluster", "async")
MBARRIER_BYTES = 8
_MOST_NOTES = 64
_WAIT = "wait for the phase of its mbarrier (mbarrier.try_wait) before the block ends"
_WAIT_READ = "execute cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 in the thread that issued it"


Resumption: TypeAlias = Callable[[np.ndarray], AbstractContextManager[None]]
"""A function that makes lanes act for an instruction that they ran earlier."""


class BulkRequester(Requester, Protocol):
    """Lanes that issue bulk copies or wait for them."""

    def resumption(self) -> Resumption:
        """Return a function that makes lanes act for the current instruction later."""


@dataclass(eq=False, slots=True)
class BulkLoad:
    """Copies to shared memory by one instruction, one per lane.

    `chunks` (chunks, lanes) of shared memory; `sources` (items, lanes) of `unit` bytes, which are `fill` where `inside`
    is false; `mbarrier` (lanes,) counts the bytes.
    """

    serial: int
    lanes: np.ndarray
    chunks: np.ndarray
    sources: np.ndarray
    inside: np.ndarray | None
    mbarrier: np.ndarray
    pieces: Pieces
    resume: Resumption
    origin: Origin

    @property
    def bytes(self) -> int:
        """The bytes that each lane copies."""
        return len(self.chunks) * CHUNK

    def part(self, which: np.ndarray) -> BulkLoad:
        inside = None if self.inside is None else self.inside[:, which]
        arrays = self.lanes[which], self.chunks[:, which], self.sources[:, which], inside, self.mbarrier[which]
        return BulkLoad(self.serial, *arrays, _of_lanes(self.pieces, which), self.resume, self.origin)


@dataclass(eq=False, slots=True)
class BulkStore:
    """Copies from shared memory by one instruction, one per lane, in the bulk groups `group` (lanes,).

    `targets` (items, lanes) of `unit` bytes of global memory. `data` (items, lanes) is set once the source has been
    read; with `update`, elements of `type` are combined with those in memory.
    """

    lanes: np.ndarray
    reading: Reading
    pieces: Pieces
    targets: np.ndarray
    group: np.ndarray
    type: Type | None
    update: Update | None
    resume: Resumption
    origin: Origin
    data: np.ndarray | None = None

    def part(self, which: np.ndarray, reading: Reading) -> BulkStore:
        """Return the copies of some lanes, whose reading is `reading`."""
        data = None if self.data is None else self.data[:, which]
        targets, pieces = self.targets[:, which], _of_lanes(self.pieces, which)
        arrays = self.lanes[which], reading, pieces, targets, self.group[which]
        return BulkStore(*arrays, self.type, self.update, self.resume, self.origin, data)


class BulkCopies(Observer):
    """The copies in flight. `closed` counts the bulk groups that each lane has committed.

    As an observer it records the mbarriers that threads wait for, in `awaited`.
    """

    def __init__(self, memory: Memory, stride: int) -> None:
        self.memory, self.stride = memory, max(1, stride)
        self.readings, self.swizzles = Readings(memory), BoxSwizzles(memory)
        self.closed = np.zeros(0, np.int64)
        self.loads: list[BulkLoad] = []
        self.issued = 0
        self.stores: list[BulkStore] = []
        self.awaited: list[np.ndarray] = []

    @property
    def idle(self) -> bool:
        return not (self.loads or self.stores)

    def locations(self) -> list[Location]:
        """Return the locations of the instructions of the copies in flight."""
        origins = [*(load.origin for load in self.loads), *(store.origin for store in self.stores)]
        return list(dict.fromkeys(origin.location for origin in origins if origin.location is not None))

    def readers_of(self, region: Region, position: int) -> list[Origin]:
        """Return the instructions in flight that read a byte: sources, operands of wgmma, tensor maps."""
        if region is self.memory.spaces["shared"]:
            return self.readings.origins(position)
        chunk = position // CHUNK * CHUNK
        return [load.origin for load in self.loads if any(chunk in maps for maps in self._maps(load.pieces))]

    def load_into(self, position: int) -> tuple[BulkLoad, int] | None:
        """Return the copy in flight to a byte of shared memory, and the column of its lane, or None."""
        for load in self.loads:
            column = np.flatnonzero((load.chunks == position // CHUNK * CHUNK).any(0))
            if column.size:
                return load, int(column[0])
        return None

    def order(self, event: Event, by: Requester) -> None:
        if isinstance(event, PhaseWait) and not event.complete.all():
            base = self.memory.spaces["shared"].base
            assert base is not None
            late = ~event.complete
            lanes = by.lanes_of(event.complete.shape)[late]
            self.awaited.append(np.unique((event.address[late].view(np.int64) & OFFSET) + base[lanes]))
            if len(self.awaited) > _MOST_NOTES:
                self.awaited = [np.unique(np.concatenate(self.awaited))]

    # Loads

    def load(self, x: BulkRequester, space: str, destination: np.ndarray, source: Pieces, mbarrier: np.ndarray) -> None:
        """Queue copies to shared memory."""
        write = self.memory.reach(x, WRITES, space, destination, CHUNK, ASYNC, None, True, mbarrier=mbarrier)
        counted = self.memory.reach(x, UPDATES, space, mbarrier, MBARRIER_BYTES, ARRIVAL, None, True)
        sources, allowed = self._reach(x, READS, source, ASYNC)
        for access in (write, counted):
            if access.allowed is not None:
                allowed &= access.allowed if access.allowed.ndim == 1 else access.allowed.all(0)
        places = x.lanes_now, write.flat, sources, source.inside, counted.flat
        load = BulkLoad(self.issued, *places, source, x.resumption(), x.origin)
        if not allowed.all():
            load = load.part(allowed)
        if load.lanes.size:
            self.memory.spaces["shared"].launch_bulk(load.chunks, CHUNK)
            for maps in self._maps(load.pieces):
                self.memory.spaces["global"].begin_reading(maps)
            self.loads.append(load)
            self.memory.order(x, CopyStart(load.serial, self.loads[0].serial, is_bulk=True))
            self.issued += 1

    def _reach(
        self, x: Requester, kind: str, pieces: Pieces, ordering: Ordering, elements: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the global addresses, and a flag per lane: True if all of its accesses are allowed."""
        lanes, address = pieces.address.shape[-1], pieces.address
        if pieces.inside is None:
            access = self.memory.reach(x, kind, pieces.space, address, pieces.unit, ordering, None, True, elements)
            each = np.ones((1, lanes), bool) if access.allowed is None else access.allowed
            return access.flat, np.logical_and.reduce(each)
        flat, allowed = np.zeros(pieces.address.shape, np.int64), np.ones(lanes, bool)
        if pieces.inside.any():
            with x.only(pieces.inside):
                address = pieces.address[pieces.inside]
                access = self.memory.reach(x, kind, pieces.space, address, pieces.unit, ordering, None, True, elements)
            flat[pieces.inside] = access.flat
            if access.allowed is not None:
                allowed[np.nonzero(pieces.inside)[1][~access.allowed]] = False
        return flat, allowed

    def flush(self, x: BulkRequester, patient: bool = False) -> bool:
        """Land the loads that threads wait for, or everything if they wait for nothing, when no thread can run.

        With `patient`, land no stores, and only loads whose bytes are expected by now. Return True if anything landed.
        """
        if self.idle:
            return False
        due = self._due(True)
        if patient and not due:
            return False
        due = due or self._due(False)
        if not due and self.loads:
            due = [np.ones(len(load.lanes), bool) for load in self.loads]
        self.awaited.clear()
        if due:
            self._land(x, due)
        else:
            self._store(x, self.stores, False)
        return True

    def land(self, x: BulkRequester, number: int) -> None:
        """Land one load early if its mbarriers already expect the bytes."""
        load = self.loads[number]
        mbarriers, inverse, counts = np.unique(load.mbarrier, return_inverse=True, return_counts=True)
        expected = pending_bytes(self.memory.spaces["shared"].read(mbarriers, MBARRIER_BYTES)) >= counts * load.bytes
        if expected.any():
            none = (np.zeros(len(other.lanes), bool) for other in self.loads)
            self._land(
                x,
                [expected[inverse] if other is load else which for other, which in zip(self.loads, none, strict=True)],
            )

    def _due(self, expected: bool) -> list[np.ndarray]:
        """Return the lanes of each load that complete an awaited mbarrier, the first such mbarrier of each block.

        With `expected`, only mbarriers that expect the bytes already.
        """
        if not self.awaited:
            return []
        shared, awaited = self.memory.spaces["shared"], np.unique(np.concatenate(self.awaited))
        first = np.full(shared.owners, -1)
        due = []
        for load in self.loads:
            which = np.isin(load.mbarrier, awaited)
            if expected:
                which &= pending_bytes(shared.read(load.mbarrier, MBARRIER_BYTES)) >= load.bytes
            slot = load.mbarrier // self.stride
            fresh = which & (first[slot] < 0)
            first[slot[fresh]] = load.mbarrier[fresh]
            due.append(which & (first[slot] == load.mbarrier))
        return due if any(which.any() for which in due) else []

    def _land(self, x: BulkRequester, due: Sequence[np.ndarray]) -> None:
        """Carry out the loads of some lanes."""
        left, landed = [], []
        for load, which in zip(self.loads, due, strict=True):
            if which.all():
                landed.append((load, True))
                continue
            if which.any():
                landed.append((load.part(which), False))
            left.append(load.part(~which))
        self.loads = left
        for load, last in landed:
            self._carry_out(x, load, last)
        self.memory.version += 1

    def _carry_out(self, x: BulkRequester, load: BulkLoad, last: bool) -> None:
        self._leave_maps(load.pieces)
        shared, pieces, inside = self.memory.spaces["shared"], load.pieces, load.inside
        region = self.memory.spaces[pieces.space.partition("::")[0]]
        if inside is None:
            items = region.read(load.sources, pieces.unit)
        else:
            items = np.broadcast_to(np.frombuffer(pieces.fill, np.uint8), (*inside.shape, pieces.unit))
            items = np.array(items, order="C").view(_item(pieces.unit))[..., 0]
            items[inside] = region.read(load.sources[inside], pieces.unit)
        rows = np.ascontiguousarray(items.T).view(_item(CHUNK))
        shared.write(load.chunks, CHUNK, rows.T)
        shared.land_bulk(load.chunks, CHUNK, last)
        self.swizzles.note(load.chunks, pieces.swizzle, load.origin)
        each = np.arange(len(load.lanes))
        sources, readers = load.sources.reshape(-1), np.broadcast_to(each, load.sources.shape).reshape(-1)
        if inside is not None:
            sources, readers = sources[inside.reshape(-1)], readers[inside.reshape(-1)]
        phases = self._complete(x, load)
        landing = BulkLanding(
            load.serial, load.lanes, load.chunks, load.mbarrier, phases, pieces.space, sources, readers, pieces.unit,
            load.origin,
        )  # fmt: skip
        with load.resume(load.lanes):
            self.memory.order(x, landing)

    def _complete(self, x: BulkRequester, load: BulkLoad) -> np.ndarray:
        """Complete the bytes of a load at its mbarriers, and return the mbarriers whose phase completes."""
        shared = self.memory.spaces["shared"]
        mbarriers, counts = np.unique(load.mbarrier, return_counts=True)
        before = shared.read(mbarriers, MBARRIER_BYTES)
        total = counts.astype(np.int64) * load.bytes
        beyond = pending_bytes(before) < total
        if beyond.any():
            self._report_beyond(
                x, load, np.isin(load.mbarrier, mbarriers[beyond]), int(pending_bytes(before)[beyond][0])
            )
        after = expect(before, -total)
        shared.write(mbarriers, MBARRIER_BYTES, after)
        phases: np.ndarray = mbarriers[after >> PHASE != before >> PHASE]
        return phases

    def _report_beyond(self, x: BulkRequester, load: BulkLoad, which: np.ndarray, expected: int) -> None:
        lanes = load.lanes[which]
        mbarrier, copies = int(load.mbarrier[which][0]), int((load.mbarrier == load.mbarrier[which][0]).sum())
        each = f", {copies} copies of {load.bytes}," * (copies > 1)
        message = (
            f"{load.origin.name} completes {bytes_text(copies * load.bytes)}{each} at {self._name(mbarrier)}, "
            f"whose phase expects {max(0, expected)}"
        )
        help = "execute mbarrier.arrive.expect_tx once per phase, with the bytes of all copies that complete there"
        if copies > 1 and (load.chunks[:, which] == load.chunks[:, which][:, :1]).all():
            help = f"{copies} threads execute the same copy; one thread executes it under `with pd.elect():`"
        elif (ring := _ring_of(x, self.memory.spaces["shared"].table, mbarrier % self.stride)) is not None:
            help = _too_few_bytes(ring, expected, copies * load.bytes)
        with load.resume(lanes):
            x.finding("mbarrier", message, np.ones(len(lanes), bool), help=help)

    def _name(self, flat: int) -> str:
        """Describe an address in shared memory."""
        address = int(flat) % self.stride
        holder = self.memory.spaces["shared"].table.before(address)
        return holder.at(address) if holder else f"address {address:#x}"

    # Stores

    def store(
        self,
        x: BulkRequester,
        source: np.ndarray,
        destination: Pieces,
        type: Type | None,
        update: Update | None,
    ) -> None:
        """Queue copies from shared memory."""
        if type is None or update is None:
            targets, allowed = self._reach(x, WRITES, destination, ASYNC)
        else:
            elements = destination.unit // type.bytes * lanes_of(type)[1]
            targets, allowed = self._reach(x, UPDATES, destination, BULK_REDUCTION, elements)
        reading, lanes = self.readings.begin(x, source), x.lanes_now
        self.swizzles.check_boxes(x, reading, destination.swizzle)
        if reading.allowed is not None:
            allowed &= reading.allowed.all(0)
        if not allowed.all():
            reading, refused = self.readings.split(reading, allowed)
            self.readings.end(x, refused)
            destination, targets, lanes = _of_lanes(destination, allowed), targets[:, allowed], lanes[allowed]
        if not lanes.size:
            self.readings.end(x, reading)
            return
        for maps in self._maps(destination):
            self.memory.spaces["global"].begin_reading(maps)
        group = self.closed[lanes]
        self.stores.append(
            BulkStore(lanes, reading, destination, targets, group, type, update, x.resumption(), x.origin)
        )
        region = self.memory.spaces["global"]
        begin = region.launch_bulk if update is None else region.begin_reductions
        begin(_inside(targets, destination.inside), destination.unit)

    def commit(self, lanes: np.ndarray) -> None:
        self.closed[lanes] += 1

    def wait(self, x: BulkRequester, lanes: np.ndarray, pending: int, read: bool) -> None:
        """Complete the stores of lanes except for their newest `pending` groups; with `read`, only their reads."""
        limit = np.full(len(self.closed), np.iinfo(np.int64).min)
        limit[lanes] = self.closed[lanes] - pending
        due = self._take(lambda store: store.group < limit[store.lanes])
        if due:
            self._store(x, due, read)

    def _take(self, which: Callable[[BulkStore], np.ndarray]) -> list[BulkStore]:
        """Return the stores selected by `which`, split off from the stores of other lanes; all of them stay queued."""
        due, stores = [], []
        for store in self.stores:
            chosen = which(store)
            if chosen.any() and not chosen.all():
                store, other = self._split(store, chosen)
                stores.append(other)
                chosen = chosen[chosen]
            stores.append(store)
            due += [store] if chosen.all() else []
        self.stores = stores
        return due

    def _split(self, store: BulkStore, which: np.ndarray) -> tuple[BulkStore, BulkStore]:
        """Split a store into the part of some lanes and the rest."""
        if store.data is None:
            readings = self.readings.split(store.reading, which)
        else:
            readings = store.reading.part(which), store.reading.part(~which)
        self.memory.spaces["global"].bulk_in_flight += store.update is None  # each of them lands once
        return store.part(which, readings[0]), store.part(~which, readings[1])

    def _store(self, x: BulkRequester, due: Sequence[BulkStore], read: bool) -> None:
        """Read the sources of stores and, without `read`, write them."""
        for store in due:
            with store.resume(store.lanes):
                if store.data is None:
                    self._read(x, store)
                if not read:
                    self._write(x, store)
        if not read:
            done = {id(store) for store in due}
            self.stores = [store for store in self.stores if id(store) not in done]

    def _read(self, x: BulkRequester, store: BulkStore) -> None:
        self._leave_maps(store.pieces)
        data, unit = self.readings.end(x, store.reading), store.pieces.unit  # (chunks, lanes, 16)
        by_lane = np.ascontiguousarray(data.transpose(1, 0, 2)).reshape(len(store.lanes), -1)
        store.data = by_lane.view(_item(unit)).T
        unwritten = self.memory.spaces["shared"].unwritten(store.reading.flat, CHUNK)
        if unwritten is None:
            return
        items = np.repeat(unwritten, CHUNK // unit, axis=0)
        if store.pieces.inside is not None:
            items = items & store.pieces.inside
        if items.any():
            late = np.logical_or.reduce(items)
            lane = int(np.argmax(late))
            where = self._name(store.reading.chunks[int(np.argmax(items[:, lane])) * unit // CHUNK, lane])
            message = f"{store.origin.name} copies {where} to global memory, which no thread has written"
            x.finding("uninitialized", message, late, help=WRITE_FIRST)

    def _write(self, x: BulkRequester, store: BulkStore) -> None:
        """Write the data of a store to global memory."""
        pieces, region, items = store.pieces, self.memory.spaces["global"], store.data
        assert items is not None
        inside = np.ones(items.shape, bool) if pieces.inside is None else pieces.inside
        address, lanes = pieces.address[inside], np.broadcast_to(store.lanes, items.shape)[inside]
        items = items[inside]
        if store.update is None:
            region.land_bulk(store.targets[inside], pieces.unit, True)
        else:
            region.end_reductions(store.targets[inside], pieces.unit)
        if not items.size:
            return
        if store.update is None:
            with store.resume(lanes):
                access = self.memory.reach(x, WRITES, pieces.space, address, pieces.unit, ASYNC, items)
            region.write(access.flat, pieces.unit, items)
            self.memory.version += 1
            return
        assert store.type is not None
        each = pieces.unit // store.type.bytes
        parts = np.arange(each, dtype=np.uint64) * np.uint64(store.type.bytes)
        address = (address[:, np.newaxis] + parts).reshape(-1)
        values = np.ascontiguousarray(items).view(store.type.dtype)
        with store.resume(np.repeat(lanes, each)):
            self.memory.atomic(x, pieces.space, address, store.type, store.update, (values,), None, BULK_REDUCTION)

    # Tensor maps in global memory, which a kernel may change only when no copy reads them

    def _maps(self, pieces: Pieces) -> Iterator[np.ndarray]:
        """Yield the chunks of each tensor map that copies use."""
        table = self.memory.spaces["global"].table
        for address in () if pieces.maps is None else pieces.maps.tolist():
            holder = table.holder(address, address + MAP_BYTES)
            if holder is not None:
                yield address - holder.delta + np.arange(0, MAP_BYTES, CHUNK)

    def _leave_maps(self, pieces: Pieces) -> None:
        """Mark the tensor maps of copies as no longer read."""
        for maps in self._maps(pieces):
            self.memory.spaces["global"].end_reading(maps, True)

    # Ends

    def end_blocks(self, x: BulkRequester, gone: np.ndarray) -> None:
        """End the blocks in slots `gone` (slots,): report their missing waits and complete the rest."""
        left = []
        for load in self.loads:
            late = gone[load.chunks[0] // self.stride] | gone[load.mbarrier // self.stride]
            if late.any():
                self._report_late(x, load, late)
                self._leave_maps(_of_lanes(load.pieces, late))
                self.memory.spaces["shared"].land_bulk(load.chunks[:, late], CHUNK, bool(late.all()))
            if not late.all():
                left.append(load.part(~late))
        self.loads = left
        slots = x.residents.slot
        due = self._take(lambda store: gone[slots[store.lanes]])
        for store in due:
            if store.data is None:
                message = (
                    f"{store.origin.name} still reads {self._name(store.reading.chunks.flat[0])} when its block ends"
                )
                with store.resume(store.lanes):
                    x.finding("unwaited-async", message, np.ones(len(store.lanes), bool), help=_WAIT_READ, strict=True)
        self._store(x, due, False)

    def _report_late(self, x: BulkRequester, load: BulkLoad, late: np.ndarray) -> None:
        lanes = load.lanes[late]
        message = f"{load.origin.name} still copies to {self._name(load.chunks[0, late][0])} when its block ends"
        with load.resume(lanes):
            x.finding("unwaited-async", message, np.ones(len(lanes), bool), help=_WAIT)

    def settle(self, residents: Residents) -> None:
        """Start blocks with no copies in flight."""
        self.closed = np.zeros(residents.lanes, np.int64)
        self.awaited.clear()

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        """Renumber lanes and slots; those that have ended have no copies in flight."""
        closed, remain = np.zeros(residents.lanes, np.int64), lanes >= 0
        closed[lanes[remain]] = self.closed[remain]
        self.closed = closed
        self.readings.move(lanes, slots, self.stride)
        for load in self.loads:
            load.lanes = lanes[load.lanes]
            load.chunks = moved_addresses(load.chunks, slots, self.stride)
            load.mbarrier = moved_addresses(load.mbarrier, slots, self.stride)
        for store in self.stores:
            store.lanes = lanes[store.lanes]
        kept = [mbarriers[slots[mbarriers // self.stride] >= 0] for mbarriers in self.awaited]
        self.awaited = [moved_addresses(mbarriers, slots, self.stride) for mbarriers in kept]


def _ring_of(x: Requester, table: Table, offset: int) -> RingNote | None:
    """Return the ring that has an mbarrier at an offset of shared memory, or None."""
    holder = table.before(offset)
    stage = x.notes.stage(holder.name, offset - holder.start) if holder else None
    return None if stage is None else stage[0]


def _too_few_bytes(ring: RingNote, expected: int, bytes: int) -> str:
    """Return the help for copies of `bytes` into a stage of which `expected` are left."""
    if ring.stage_bytes is None:
        return filled_by_copies(ring)
    least = ring.stage_bytes - max(0, expected) + bytes
    small = f"`stage_bytes={ring.stage_bytes}` of {ring.made_at} is too small"
    return f"{small}: the copies into a stage transfer at least {bytes_text(least)}"


def _of_lanes(pieces: Pieces, which: np.ndarray) -> Pieces:
    """Return the global side of the copies of some lanes."""
    inside = None if pieces.inside is None else pieces.inside[:, which]
    maps = None if pieces.maps is None else pieces.maps[which]
    return replace(pieces, address=pieces.address[:, which], inside=inside, maps=maps)


def _inside(values: np.ndarray, inside: np.ndarray | None) -> np.ndarray:
    return values if inside is None else values[inside]


def _item(size: int) -> np.dtype:
    return np.dtype("c16") if size == 16 else np.dtype(f"u{size}")
