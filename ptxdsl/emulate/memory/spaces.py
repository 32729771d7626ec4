"""Memory: the gateway for loads, stores, atomics and asynchronous copies, and the map of generic addresses.

`Memory.reach` shows every access to the observers, `Memory.order` every event that orders accesses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...isa.step import RELAXED, WEAK, Ordering, Scan
from ...types import Type, lanes
from ..run.residents import Residents
from .access import READS, UPDATES, WRITES, Access, Event, Observer, Requester
from .conflicts import one_after_another
from .regions import POISON, Region, Table

WINDOW_BITS = 40
WINDOWS = {"shared": 0x7E, "local": 0x7D, "param": 0x7C}
WINDOW = (1 << WINDOW_BITS) - 1
GLOBAL = 0x7F << WINDOW_BITS
CODE = 0x7B << WINDOW_BITS
FRAME_PARAMETERS = 1 << 32
"""Parameters of device functions lie in the thread's own memory; their .param addresses start here."""

_REACHED = {"shared": "shared::cluster"} | {name: name for name in ("local", "param", "global")}
"""What generic addresses in a window reach."""
_FEW = 1024  # stores of up to this many items are compared with memory, since they may change nothing
Update = Callable[..., np.ndarray]


class Memory:
    """All state spaces.

    `version` counts changes that other lanes can see, `local` those of a lane's own memory, `private` these and the
    times that lanes learn of each other without memory.
    """

    def __init__(self, spaces: dict[str, Region], constants: Table) -> None:
        self.spaces, self.constants = spaces, constants
        self.observers: list[Observer] = []
        self.version = self.private = self.local = 0

    @property
    def state(self) -> tuple[int, int]:
        return self.version, self.private

    def subscribe(self, observer: Observer) -> None:
        """Add an observer, after those that were added before; the first one checks bounds."""
        self.observers.append(observer)

    def reach(
        self,
        x: Requester,
        kind: str,
        space: str,
        address: np.ndarray,
        size: int,
        ordering: Ordering = WEAK,
        items: np.ndarray | None = None,
        asynchronous: bool = False,
        elements: int = 1,
        mbarrier: np.ndarray | None = None,
    ) -> Access:
        """Show the observers an access that lanes are about to make; return it with its places and what is allowed."""
        region, where = self._region(space, address)
        access = Access(
            kind, space, where, size, ordering, region, x, items, asynchronous, elements=elements, mbarrier=mbarrier
        )
        for observer in self.observers:
            observer.access(access)
        return access

    def order(self, x: Requester, event: Event) -> None:
        """Show the observers an event that orders accesses."""
        for observer in self.observers:
            observer.order(event, x)

    def settle(self, residents: Residents) -> None:
        """Start blocks; all that ran before have ended."""
        for observer in self.observers:
            observer.settle(residents)

    def move(self, residents: Residents, lanes: np.ndarray, slots: np.ndarray) -> None:
        """Start blocks in addition to others, whose lanes and slots get other numbers."""
        for observer in self.observers:
            observer.move(residents, lanes, slots)

    def peek(self, x: Requester, space: str, address: np.ndarray, type: Type) -> np.ndarray:
        """Return the contents of memory for a message, checking only the bounds."""
        observers, self.observers = self.observers, self.observers[:1]
        try:
            return self.load(x, space, address, type)
        finally:
            self.observers = observers

    def load(
        self, x: Requester, space: str, address: np.ndarray, type: Type, count: int = 1, ordering: Ordering = WEAK
    ) -> np.ndarray:
        size = count * type.bytes
        if size > 16:
            return self._load_wide(x, space, address, type, count, ordering)
        if (parts := self._mixed(space, address)) is not None:
            return self._load_mixed(x, parts, address, type, count, ordering)
        access = self.reach(x, READS, space, address, size, ordering, elements=count)
        region, flat, allowed = access.region, access.flat, access.allowed
        if allowed is None:
            items = region.read(flat, size)
        else:
            items = poison(flat.shape, size)
            items[allowed] = region.read(flat[allowed], size)
        return unpack(items, type, count)

    def store(
        self,
        x: Requester,
        space: str,
        address: np.ndarray,
        type: Type,
        values: np.ndarray,
        ordering: Ordering = WEAK,
    ) -> None:
        extra = values.ndim - address.ndim - (type.bits > 64)
        count = values.shape[0] if extra else 1
        size = count * type.bytes
        if size > 16:
            half = count // 2
            self.store(x, space, address, type, values[:half], ordering)
            return self.store(x, space, address + np.uint64(size // 2), type, values[half:], ordering)
        if (parts := self._mixed(space, address)) is not None:
            return self._store_mixed(x, parts, address, type, values, ordering)
        items = pack(values, type, count)
        access = self.reach(x, WRITES, space, address, size, ordering, items, elements=count)
        flat = access.flat
        if access.allowed is not None:
            flat, items = flat[access.allowed], items[access.allowed]
        self._write(access.region, flat, size, items)
        if access.unwritten is not None:
            marks = access.unwritten if access.allowed is None else access.unwritten[access.allowed]
            access.region.forget(flat[marks], size)
        return None

    def atomic(
        self,
        x: Requester,
        space: str,
        address: np.ndarray,
        type: Type,
        update: Update,
        inputs: tuple[np.ndarray, ...],
        scan: Scan | None,
        ordering: Ordering = RELAXED,
    ) -> np.ndarray:
        if (parts := self._mixed(space, address)) is not None:
            return self._atomic_mixed(x, parts, address, type, update, inputs, scan, ordering)
        access = self.reach(x, UPDATES, space, address, type.bytes, ordering, elements=lanes(type)[1])
        region, flat, allowed = access.region, access.flat, access.allowed
        if allowed is not None:
            flat, inputs = flat[allowed], tuple(value[..., allowed] for value in inputs)
        distinct, number = _distinct(flat)
        before = unpack(region.read(distinct, type.bytes), type, 1)
        seen, after = one_after_another(before, number, update, inputs, scan)
        if after.tobytes() != before.tobytes():
            region.write(distinct, type.bytes, pack(after, type, 1))
            self.version += 1
        if allowed is None:
            return seen
        result = unpack(poison(address.shape, type.bytes), type, 1)
        result[allowed] = seen
        return result

    def _write(self, region: Region, flat: np.ndarray, size: int, items: np.ndarray) -> None:
        is_local = region is self.spaces["local"]
        changed = not (is_local or flat.size <= _FEW) or region.read(flat, size).tobytes() != items.tobytes()
        self.version += changed and not is_local
        self.local += changed and is_local
        self.private += changed and is_local
        region.write(flat, size, items)

    def _region(self, space: str, address: np.ndarray) -> tuple[Region, np.ndarray]:
        """Return the region of an access and the addresses in it."""
        where = address.view(np.int64)
        if space.startswith("param") and int(where.min()) >= FRAME_PARAMETERS:
            return self.spaces["local"], where - FRAME_PARAMETERS
        return self.spaces[space.partition("::")[0]], where

    def _mixed(self, space: str, address: np.ndarray) -> dict[str, np.ndarray] | None:
        """Return the masks of generic addresses by space; None for addresses that are not generic."""
        if space != "generic":
            return None
        low, high = int(address.min()) >> WINDOW_BITS, int(address.max()) >> WINDOW_BITS
        if low == high:
            return {_REACHED[_window(low)]: np.ones(address.shape, bool)}
        windows = address >> np.uint64(WINDOW_BITS)
        masks = {name: windows == number for name, number in WINDOWS.items()}
        masks["global"] = ~np.logical_or.reduce(list(masks.values()))
        return {_REACHED[name]: mask for name, mask in masks.items() if mask.any()}

    def _load_mixed(
        self,
        x: Requester,
        parts: dict[str, np.ndarray],
        address: np.ndarray,
        type: Type,
        count: int,
        ordering: Ordering,
    ) -> np.ndarray:
        if len(parts) == 1:
            return self.load(x, *self._only(parts, address), type, count, ordering)
        shape = (*((count,) if count > 1 else ()), *address.shape, *((2,) if type.bits > 64 else ()))
        result = np.empty(shape, np.uint64 if type.bits > 64 else type.dtype)
        for space, mask in parts.items():
            with x.only(mask):
                part = self.load(x, space, self.specific(space, address[mask]), type, count, ordering)
            result[(slice(None), mask) if count > 1 else mask] = part
        return result

    def _store_mixed(
        self,
        x: Requester,
        parts: dict[str, np.ndarray],
        address: np.ndarray,
        type: Type,
        values: np.ndarray,
        ordering: Ordering,
    ) -> None:
        if len(parts) == 1:
            return self.store(x, *self._only(parts, address), type, values, ordering)
        several = values.ndim > address.ndim + (type.bits > 64)
        for space, mask in parts.items():
            with x.only(mask):
                part = values[(slice(None), mask) if several else mask]
                self.store(x, space, self.specific(space, address[mask]), type, part, ordering)
        return None

    def _atomic_mixed(
        self,
        x: Requester,
        parts: dict[str, np.ndarray],
        address: np.ndarray,
        type: Type,
        update: Update,
        inputs: tuple[np.ndarray, ...],
        scan: Scan | None,
        ordering: Ordering,
    ) -> np.ndarray:
        if len(parts) == 1:
            return self.atomic(x, *self._only(parts, address), type, update, inputs, scan, ordering)
        result = np.empty((*address.shape, *((2,) if type.bits > 64 else ())), inputs[0].dtype)
        for space, mask in parts.items():
            with x.only(mask):
                specific = self.specific(space, address[mask])
                result[mask] = self.atomic(
                    x, space, specific, type, update, tuple(i[mask] for i in inputs), scan, ordering
                )
        return result

    def _only(self, parts: dict[str, np.ndarray], address: np.ndarray) -> tuple[str, np.ndarray]:
        (space,) = parts
        return space, self.specific(space, address)

    def _load_wide(
        self, x: Requester, space: str, address: np.ndarray, type: Type, count: int, ordering: Ordering
    ) -> np.ndarray:
        """Load more than 16 bytes as two accesses."""
        half = count // 2
        second = address + np.uint64(half * type.bytes)
        return np.concatenate([self.load(x, space, a, type, half, ordering) for a in (address, second)])

    def generic(self, space: str, address: np.ndarray) -> np.ndarray:
        return address + np.uint64(_base(space))

    def specific(self, space: str, address: np.ndarray) -> np.ndarray:
        return address - np.uint64(_base(space))

    def within(self, space: str, address: np.ndarray) -> np.ndarray:
        name = space.partition("::")[0]
        window = address >> np.uint64(WINDOW_BITS)
        if name in WINDOWS:
            return window == WINDOWS[name]
        in_constant = self.constants.find(address.view(np.int64), 1)[1]
        return in_constant if name == "const" else (window == GLOBAL >> WINDOW_BITS) & ~in_constant


def _distinct(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct addresses, and the index of the one that each access uses."""
    if not flat.size or flat.min() == flat.max():
        return flat.reshape(-1)[:1], np.zeros(flat.shape, np.int64)
    distinct, number = np.unique(flat, return_inverse=True)
    return distinct, number.reshape(flat.shape)


def _window(number: int) -> str:
    return next((name for name, window in WINDOWS.items() if window == number), "global")


def _base(space: str) -> int:
    return WINDOWS.get(space.partition("::")[0], 0) << WINDOW_BITS


def poison(shape: tuple[int, ...], size: int) -> np.ndarray:
    """Return items of `size` bytes, all poison."""
    return np.full((*shape, size), POISON, np.uint8).view(_item(size))[..., 0]


def _item(size: int) -> str:
    return "c16" if size == 16 else f"u{size}"


def unpack(items: np.ndarray, type: Type, count: int) -> np.ndarray:
    """Return items as elements, in the shape of the items, or (count, …) for several each; 128 bits as two words."""
    if type.bits > 64:
        return items[..., np.newaxis].view(np.uint64)
    if count == 1:
        return items.view(type.dtype)
    parts = items[..., np.newaxis].view(type.dtype)
    return parts.transpose(-1, *range(parts.ndim - 1))


def pack(values: np.ndarray, type: Type, count: int) -> np.ndarray:
    """Invert `unpack`."""
    if type.bits > 64:
        return np.ascontiguousarray(values).view(_item(16))[..., 0]
    if count == 1:
        return np.ascontiguousarray(values).view(_item(type.bytes))
    last = np.ascontiguousarray(values.transpose(*range(1, values.ndim), 0))
    return last.view(_item(count * type.bytes))[..., 0]
