"""Memory: the one gateway for loads, stores, atomics and asynchronous copies, and the map of generic addresses.

A later check (races, banks) belongs into `Memory.place`, which sees every access: its kind, space, addresses and size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import Type
from .conflicts import one_after_another
from .faults import not_waited_for, not_written, sort_out
from .regions import POISON, Region, Table

WINDOW_BITS = 40
WINDOWS = {"shared": 0x7E, "local": 0x7D, "param": 0x7C}
GLOBAL = 0x7F << WINDOW_BITS
CODE = 0x7B << WINDOW_BITS
FRAME_PARAMETERS = 1 << 32
"""Parameters of device functions lie in the thread's own memory; their .param addresses start here."""

_FEW = 1024  # a store of so many items is worth a look whether it changes any

Place = tuple[Region, np.ndarray, np.ndarray, "np.ndarray | None"]


class Memory:
    """All state spaces.

    `version` counts changes that other lanes can see, `local` those of a lane's own memory, `private` those and the
    times that lanes learned of each other without memory.
    """

    def __init__(self, spaces: dict[str, Region], constants: Table, checks: bool) -> None:
        self.spaces, self.constants, self.checks = spaces, constants, checks
        self.version = self.private = self.local = 0

    @property
    def state(self) -> tuple[int, int]:
        return self.version, self.private

    def load(self, x: Any, space: str, address: np.ndarray, type: Type, count: int) -> np.ndarray:
        size = count * type.bytes
        if size > 16:
            return self._load_wide(x, space, address, type, count)
        if (found := self._mixed(space, address)) is not None:
            return self._load_mixed(x, found, address, type, count)
        region, where, flat, ok = self.place(x, "reads", space, address, size)
        if self.checks:
            _check_contents(x, region, where, flat, size, ok)
        if ok is None:
            items = region.read(flat, size)
        else:
            items = poison(flat.shape, size)
            items[ok] = region.read(flat[ok], size)
        return unpack(items, type, count)

    def store(self, x: Any, space: str, address: np.ndarray, type: Type, values: np.ndarray) -> None:
        extra = values.ndim - address.ndim - (type.bits > 64)
        count = values.shape[0] if extra else 1
        size = count * type.bytes
        if size > 16:
            half = count // 2
            self.store(x, space, address, type, values[:half])
            return self.store(x, space, address + np.uint64(size // 2), type, values[half:])
        if (found := self._mixed(space, address)) is not None:
            return self._store_mixed(x, found, address, type, values)
        region, where, flat, ok = self.place(x, "writes", space, address, size)
        self.check_landing(x, region, where, flat, size, ok)
        items = pack(values, type, count)
        if ok is not None:
            flat, items = flat[ok], items[ok]
        self._write(region, flat, size, items)
        return None

    def atomic(
        self,
        x: Any,
        space: str,
        address: np.ndarray,
        type: Type,
        update: Callable[..., np.ndarray],
        inputs: tuple[np.ndarray, ...],
        scan: np.ufunc | None,
    ) -> np.ndarray:
        if (found := self._mixed(space, address)) is not None:
            return self._atomic_mixed(x, found, address, type, update, inputs, scan)
        region, where, flat, ok = self.place(x, "updates", space, address, type.bytes)
        if self.checks:
            _check_contents(x, region, where, flat, type.bytes, ok)
        if ok is not None:
            flat, inputs = flat[ok], tuple(value[..., ok] for value in inputs)
        places, number = _distinct(flat)
        before = unpack(region.read(places, type.bytes), type, 1)
        seen, after = one_after_another(before, number, update, inputs, scan)
        if after.tobytes() != before.tobytes():
            region.write(places, type.bytes, pack(after, type, 1))
            self.version += 1
        if ok is None:
            return seen
        result = unpack(poison(address.shape, type.bytes), type, 1)
        result[ok] = seen
        return result

    def _write(self, region: Region, flat: np.ndarray, size: int, items: np.ndarray) -> None:
        own = region is self.spaces["local"]
        changed = not (own or flat.size <= _FEW) or region.read(flat, size).tobytes() != items.tobytes()
        self.version += changed and not own
        self.local += changed and own
        self.private += changed and own
        region.write(flat, size, items)

    def place(self, x: Any, access: str, space: str, address: np.ndarray, size: int) -> Place:
        """The region of an access, the addresses and places in it, and which of them are allowed (None: all).

        Reports those that are not.
        """
        region, where = self._region(space, address)
        found = region.table.holder(int(where.min()), int(where.max()) + size)
        aligned = not int(np.bitwise_or.reduce(where, axis=None)) & (size - 1)
        if found is not None and aligned and (access == "reads" or found.writable):
            ok, flat = None, where - found.delta if found.delta else where
            found.written |= access != "reads"
        else:
            ok, flat = sort_out(x, access, space, region.table, where, size)
        if region.base is not None:
            flat = flat + x.of_lanes(region.base, flat.shape)
        return region, where, flat, ok

    def check_landing(
        self, x: Any, region: Region, where: np.ndarray, flat: np.ndarray, size: int, ok: np.ndarray | None
    ) -> None:
        """Reports an access to bytes to which an asynchronous copy is under way."""
        if not self.checks or not region.in_flight:
            return
        if ok is not None:
            where, flat = where[ok], flat[ok]
        if (flying := region.awaited(flat, size)) is not None:
            not_waited_for(x, region, where, size, flying, ok)

    def _region(self, space: str, address: np.ndarray) -> tuple[Region, np.ndarray]:
        """The region of an access and the addresses in it."""
        where = address.view(np.int64)
        if space.startswith("param") and int(where.min()) >= FRAME_PARAMETERS:
            return self.spaces["local"], where - FRAME_PARAMETERS
        return self.spaces[space.partition("::")[0]], where

    def _mixed(self, space: str, address: np.ndarray) -> dict[str, np.ndarray] | None:
        """For generic addresses, which of them lie in which space; None for addresses that are not generic."""
        if space != "generic":
            return None
        low, high = int(address.min()) >> WINDOW_BITS, int(address.max()) >> WINDOW_BITS
        if low == high:
            return {_window(low): np.ones(address.shape, bool)}
        windows = address >> np.uint64(WINDOW_BITS)
        masks = {name: windows == number for name, number in WINDOWS.items()}
        masks["global"] = ~np.logical_or.reduce(list(masks.values()))
        return {name: mask for name, mask in masks.items() if mask.any()}

    def _load_mixed(
        self, x: Any, found: dict[str, np.ndarray], address: np.ndarray, type: Type, count: int
    ) -> np.ndarray:
        if len(found) == 1:
            return self.load(x, *self._only(found, address), type, count)
        shape = (*((count,) if count > 1 else ()), *address.shape, *((2,) if type.bits > 64 else ()))
        result = np.empty(shape, np.uint64 if type.bits > 64 else type.dtype)
        for space, mask in found.items():
            with x.only(mask):
                part = self.load(x, space, self.specific(space, address[mask]), type, count)
            result[(slice(None), mask) if count > 1 else mask] = part
        return result

    def _store_mixed(
        self, x: Any, found: dict[str, np.ndarray], address: np.ndarray, type: Type, values: np.ndarray
    ) -> None:
        if len(found) == 1:
            return self.store(x, *self._only(found, address), type, values)
        several = values.ndim > address.ndim + (type.bits > 64)
        for space, mask in found.items():
            with x.only(mask):
                part = values[(slice(None), mask) if several else mask]
                self.store(x, space, self.specific(space, address[mask]), type, part)
        return None

    def _atomic_mixed(
        self,
        x: Any,
        found: dict[str, np.ndarray],
        address: np.ndarray,
        type: Type,
        update: Callable[..., np.ndarray],
        inputs: tuple[np.ndarray, ...],
        scan: np.ufunc | None,
    ) -> np.ndarray:
        if len(found) == 1:
            return self.atomic(x, *self._only(found, address), type, update, inputs, scan)
        result = np.empty((*address.shape, *((2,) if type.bits > 64 else ())), inputs[0].dtype)
        for space, mask in found.items():
            with x.only(mask):
                own = self.specific(space, address[mask])
                result[mask] = self.atomic(x, space, own, type, update, tuple(i[mask] for i in inputs), scan)
        return result

    def _only(self, found: dict[str, np.ndarray], address: np.ndarray) -> tuple[str, np.ndarray]:
        (space,) = found
        return space, self.specific(space, address)

    def _load_wide(self, x: Any, space: str, address: np.ndarray, type: Type, count: int) -> np.ndarray:
        """An access of more than 16 bytes, as two."""
        half = count // 2
        second = address + np.uint64(half * type.bytes)
        return np.concatenate([self.load(x, space, a, type, half) for a in (address, second)])

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


def _check_contents(
    x: Any, region: Region, where: np.ndarray, flat: np.ndarray, size: int, ok: np.ndarray | None
) -> None:
    """Reports reads of bytes that nobody wrote, or that a copy in flight will write."""
    if region.fresh is None and not region.in_flight:
        return
    if ok is not None:
        where, flat = where[ok], flat[ok]
    flying = region.awaited(flat, size)
    if flying is not None:
        not_waited_for(x, region, where, size, flying, ok)
    unwritten = region.unwritten(flat, size)
    if unwritten is not None and flying is not None:
        unwritten &= ~flying
    if unwritten is not None and unwritten.any():
        not_written(x, region, where, size, unwritten, ok)


def _distinct(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct places, and which of them each access goes to."""
    if not flat.size or flat.min() == flat.max():
        return flat.reshape(-1)[:1], np.zeros(flat.shape, np.int64)
    places, number = np.unique(flat, return_inverse=True)
    return places, number.reshape(flat.shape)


def _window(number: int) -> str:
    return next((name for name, window in WINDOWS.items() if window == number), "global")


def _base(space: str) -> int:
    return WINDOWS.get(space.partition("::")[0], 0) << WINDOW_BITS


def poison(shape: tuple[int, ...], size: int) -> np.ndarray:
    """Items of `size` bytes, all poison."""
    return np.full((*shape, size), POISON, np.uint8).view(_item(size))[..., 0]


def _item(size: int) -> str:
    return "c16" if size == 16 else f"u{size}"


def unpack(items: np.ndarray, type: Type, count: int) -> np.ndarray:
    """Items as elements: the shape of the items for one, (count, …) for more; 128 bits as two words."""
    if type.bits > 64:
        return items[..., np.newaxis].view(np.uint64)
    if count == 1:
        return items.view(type.dtype)
    parts = items[..., np.newaxis].view(type.dtype)
    return parts.transpose(-1, *range(parts.ndim - 1))


def pack(values: np.ndarray, type: Type, count: int) -> np.ndarray:
    """The inverse of `unpack`."""
    if type.bits > 64:
        return np.ascontiguousarray(values).view(_item(16))[..., 0]
    if count == 1:
        return np.ascontiguousarray(values).view(_item(type.bytes))
    last = np.ascontiguousarray(values.transpose(*range(1, values.ndim), 0))
    return last.view(_item(count * type.bytes))[..., 0]
