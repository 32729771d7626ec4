"""The requests of instructions besides control flow: memory, copies, special registers, findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ... import ir
from ...isa.cluster_address import RANK_BITS, decoded
from ...isa.step import RELAXED, WEAK, AsyncReading, Ordering, Pieces, Scan, Step, Update
from ...notes import KernelNotes
from ...types import Type
from ..asynchronous.tensor_memory import TensorMemory
from ..memory.access import Event, RemoteIssue, RemoteLanding
from ..memory.distributed import owners
from ..memory.spaces import WINDOW
from ..observe.mistakes import of_arrivals
from .decode import Decoded
from .residents import WARP, WARPGROUP
from .results import Results


class Requests(Results):
    """The part of the processor that serves instructions."""

    @property
    def tensor(self) -> TensorMemory:
        assert self.tensor_memory is not None
        return self.tensor_memory

    def load(
        self, space: str, address: np.ndarray, type: Type, count: int = 1, ordering: Ordering = WEAK
    ) -> np.ndarray:
        return self.memory.load(self, space, address, type, count, ordering)

    def store(self, space: str, address: np.ndarray, type: Type, values: np.ndarray, ordering: Ordering = WEAK) -> None:
        self.memory.store(self, space, address, type, values, ordering)

    def atomic(
        self,
        space: str,
        address: np.ndarray,
        type: Type,
        update: Callable[..., np.ndarray],
        *inputs: np.ndarray,
        scan: Scan | None = None,
        ordering: Ordering = RELAXED,
    ) -> np.ndarray:
        return self.memory.atomic(self, space, address, type, update, inputs, scan, ordering)

    def order(self, event: Event) -> None:
        self.memory.order(self, event)

    def count(self, step: Decoded, lanes: int) -> None:
        """Count a step that lanes have executed."""
        self.machine.report.instructions += lanes
        if self.machine.traffic is not None:
            self.machine.traffic.count(step.origin, lanes)

    def generic(self, space: str, address: np.ndarray) -> np.ndarray:
        return self.memory.generic(space, address)

    def specific(self, space: str, address: np.ndarray) -> np.ndarray:
        return self.memory.specific(space, address)

    def within(self, space: str, address: np.ndarray) -> np.ndarray:
        within = self.memory.within(space, address)
        if space in ("shared", "shared::cta") and within.any():
            own_rank = self.special("%cluster_ctarank")
            within &= decoded(address.view(np.int64), own_rank, self.pairs) == own_rank
        return within

    def copy_async(self, destination: np.ndarray, source: np.ndarray, bytes: int, source_bytes: np.ndarray) -> None:
        self.copies.issue(self, destination, source, bytes, source_bytes)

    def commit_group(self) -> None:
        self.copies.commit(slice(None) if self.index is None else self.index)

    def wait_group(self, pending: int) -> None:
        self.copies.wait(self, self.lanes_now, pending)

    def wait_all(self) -> None:
        self.copies.wait(self, self.lanes_now, None)

    def warpgroups(self) -> np.ndarray:
        if isinstance(self.index, np.ndarray):
            key: object = self.index.tobytes()
        else:
            key = None if self.index is None else (self.index.start, self.index.stop)
        if key not in self.orders:
            self.orders[key] = self._warpgroups()
        return self.orders[key]

    def _warpgroups(self) -> np.ndarray:
        warps = self.lanes_now[::WARP]
        number = self.residents.warp[warps].astype(np.int64)
        key = (number // WARPGROUP * self.residents.slots + self.residents.slot[warps]) * WARPGROUP + number % WARPGROUP
        order = np.argsort(key)
        if len(order) % WARPGROUP:
            return order[:, np.newaxis]
        order, first = order.reshape(-1, WARPGROUP), key[order[::WARPGROUP]]
        whole = (first % WARPGROUP == 0).all() and (key[order] == first[:, np.newaxis] + np.arange(WARPGROUP)).all()
        return order if whole else order.reshape(-1, 1)

    def after_copies(self, action: Callable[[Step], None]) -> None:
        self.copies.notify(self.lanes_now, self._deferred(action))

    def store_async(self, mbarrier: np.ndarray, action: Callable[[Step], None], releases: bool) -> None:
        offset, _, slots = owners(self.residents, self.lanes_now, mbarrier.view(np.int64) & WINDOW)
        stores = RemoteIssue(offset + np.maximum(slots, 0) * self.memory.spaces["shared"].stride, releases)
        self.memory.order(self, stores)

        def land(m: Step) -> None:
            self.memory.order(self, RemoteLanding(stores))
            action(m)
            self.memory.order(self, RemoteLanding(stores, ends=True))

        self.remote.issue(self.lanes_now, slots, self._deferred(land), self.origin)

    def _deferred(self, action: Callable[[Step], None]) -> Callable[[np.ndarray], None]:
        """Return a function that lets lanes run an action later, for the current instruction."""
        frame, step = self.frame, self.step

        def run(lanes: np.ndarray) -> None:
            self.step = step
            with self.elsewhere(frame, lanes):
                action(self)  # type: ignore[arg-type]

        return run

    def begin_reading(
        self, address: np.ndarray, described: Sequence[tuple[str, int, np.ndarray]] = (), space: str = "shared"
    ) -> AsyncReading:
        reading = self.bulk.readings.begin(self, address, space)
        self.bulk.swizzles.check_operands(self, reading, described)
        return reading

    def split_reading(self, reading: AsyncReading, warps: np.ndarray) -> tuple[AsyncReading, AsyncReading]:
        """Split a reading of a collective into that of some of its warps and that of the others."""
        return self.bulk.readings.split(reading, warps)

    def unwritten_chunks(self, reading: AsyncReading) -> np.ndarray:
        """Return the mask of its uninitialised chunks."""
        return self.bulk.readings.unwritten(reading)

    def end_reading(self, reading: AsyncReading) -> np.ndarray:
        return self.bulk.readings.end(self, reading)

    def load_bulk(self, space: str, destination: np.ndarray, source: Pieces, mbarrier: np.ndarray) -> None:
        self.bulk.load(self, space, destination, source, mbarrier)

    def store_bulk(
        self, source: np.ndarray, destination: Pieces, type: Type | None = None, update: Update | None = None
    ) -> None:
        self.bulk.store(self, source, destination, type, update)

    def cancel_clusters(self) -> np.ndarray:
        return self.machine.cancel_clusters(self, self.lanes_now)

    def commit_bulk_group(self) -> None:
        self.bulk.commit(self.lanes_now)

    def wait_bulk_group(self, pending: int, read: bool) -> None:
        self.bulk.wait(self, self.lanes_now, pending, read)

    def special(self, name: str) -> np.ndarray:
        values = self.machine.special(name)
        return values if self.index is None else values[self.index]

    def constant(self, bits: int, dtype: np.dtype) -> np.ndarray:
        """Return one value for all current lanes, from its bits."""
        key = bits, dtype
        if key not in self.constants:
            one = np.array([bits % (1 << 8 * dtype.itemsize)], np.dtype(f"u{dtype.itemsize}"))
            everyone = np.repeat(one.astype(bool) if dtype.kind == "b" else one.view(dtype), self.residents.lanes)
            everyone.flags.writeable = False
            self.constants[key] = everyone
        values = self.constants[key]
        return values if self.index is None else values[: self.width]

    def address_of(self, target: ir.Variable | ir.Function | ir.Symbol) -> int:
        """Return the address of a variable in its state space; for a function, a code address."""
        if isinstance(target, ir.Variable) and target in self.frame.addresses:
            return self.frame.addresses[target]
        return self.machine.address_of(target)

    def own_address(self, target: ir.Variable | ir.Function | ir.Symbol, offset: int, dtype: np.dtype) -> np.ndarray:
        """Return the address of a variable, plus bytes; in shared memory of an odd block of a CTA pair, with bit 24."""
        bits = self.address_of(target) + offset
        if not (self.pairs and getattr(target, "space", "").startswith("shared")):
            return self.constant(bits, dtype)
        key = bits, dtype
        if key not in self.places:
            odd = self.machine.special("%cluster_ctarank").astype(dtype) & dtype.type(1)
            self.places[key] = (odd << dtype.type(RANK_BITS)) + dtype.type(bits)
            self.places[key].flags.writeable = False
        values = self.places[key]
        return values if self.index is None else values[self.index]

    @property
    def pairs(self) -> bool:
        return self.residents.pairs

    @property
    def target(self) -> str:
        return self.machine.program.module.target[0]

    @property
    def numerics(self) -> str:
        return self.machine.numerics

    @property
    def carry(self) -> np.ndarray:
        return self.carries if self.index is None else self.carries[self.index]

    @carry.setter
    def carry(self, values: np.ndarray) -> None:
        self.carries[slice(None) if self.index is None else self.index] = values

    def together(self) -> np.ndarray:
        present = np.zeros(self.residents.lanes, bool)
        present[self.lanes_now] = True
        words = np.packbits(present.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32)
        return words[self.lanes_now // WARP, 0]

    @property
    def notes(self) -> KernelNotes:
        return self.machine.launch.notes()

    def fail(
        self,
        kind: str,
        message: str,
        where: np.ndarray | None = None,
        help: str = "",
        mbarrier: np.ndarray | None = None,
        strict: bool = False,
    ) -> None:
        which = np.ones(self.shape, bool) if where is None else where
        if mbarrier is not None:
            help = of_arrivals(self, mbarrier, which) or help
        self.finding(kind, message, which, help=help, strict=strict)
