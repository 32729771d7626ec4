"""The bytes of the state spaces: allocations with red zones between them, and flags for each byte."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

POISON = 0xFF  # NaN in every floating type
_ITEMS: dict[int, np.dtype] = {
    1: np.dtype("u1"),
    2: np.dtype("u2"),
    4: np.dtype("u4"),
    8: np.dtype("u8"),
    16: np.dtype("c16"),
}
_SHIFTS = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}
CHUNK = 16  # bytes that a bulk copy moves, or a matrix product reads, at a time
PAGE = 1024  # the shared memory of a block is a multiple of this
_WORD = 4  # the smallest asynchronous copy: bytes for each flag of `Region.flying`


@dataclass(eq=False, slots=True)
class Allocation:
    """A named piece of memory: `start` is its address in its space, `offset` the offset of its bytes in the region.

    `written` and `read` record accesses; reads are recorded for accesses that are entirely inside. `named` returns the
    Python index of the element at a byte, if Python has arrays there.
    """

    name: str
    start: int
    bytes: int
    offset: int
    element: str = "b8"
    element_bytes: int = 1
    shape: tuple[int, ...] = ()
    writable: bool = True
    written: bool = False
    read: bool = False
    named: Callable[[int], str] | None = None

    @property
    def end(self) -> int:
        return self.start + self.bytes

    @property
    def delta(self) -> int:
        return self.start - self.offset

    @property
    def elements(self) -> str:
        """The extents in elements: '1000 f32', '128 × 32 f16'."""
        shape = self.shape or (self.bytes // self.element_bytes,)
        return " × ".join(map(str, shape)) + f" {self.element}"

    def at(self, address: int) -> str:
        """Describe an address as an index: 'x[3]', 'c[128, 5]', with a byte range if it is not a whole element."""
        if (
            self.named is not None
            and self.start <= address < self.end
            and (element := self.named(address - self.start))
        ):
            return element
        number, extra = divmod(address - self.start, self.element_bytes)
        if number < 0 and (extra or len(self.shape) > 1):
            before = self.start - address
            return f"{before} byte{'s' * (before > 1)} before {self.name}"
        index: list[int] = []
        for extent in reversed(self.shape[1:]):
            number, inner = divmod(number, extent) if extent else (number, 0)
            index.insert(0, inner)
        text = ", ".join(map(str, [number, *index]))
        return f"{self.name}[{text}]" + (f" plus {extra} byte{'s' * (extra > 1)}" if extra else "")


_ONE = np.uint16(1)  # of the type of what it is added to: a hundred times as fast


class Table:
    """The allocations of a space, by address."""

    def __init__(self, allocations: Sequence[Allocation]) -> None:
        self.allocations = sorted((a for a in allocations), key=lambda a: a.start)
        self._start = [a.start for a in self.allocations]
        self.starts = np.array(self._start, np.int64)
        self.ends = np.array([a.end for a in self.allocations], np.int64)
        self.deltas = np.array([a.delta for a in self.allocations], np.int64)

    def holder(self, low: int, high: int) -> Allocation | None:
        """Return the allocation that contains all bytes from low up to high."""
        allocation = self.before(low)
        return allocation if allocation is not None and high <= allocation.end else None

    def before(self, address: int) -> Allocation | None:
        """Return the last allocation that starts at or before an address."""
        index = bisect_right(self._start, address) - 1
        return self.allocations[index] if index >= 0 else None

    def nearest(self, address: int) -> Allocation | None:
        """Return the allocation nearest to an address."""
        return min(self.allocations, key=lambda a: max(a.start - address, address - a.end, 0), default=None)

    def find(self, address: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the allocation before each address, and True if that contains all `size` bytes."""
        if not self.allocations:
            return np.zeros(address.shape, np.int64), np.zeros(address.shape, bool)
        number = np.searchsorted(self.starts, address, "right") - 1
        inside = (number >= 0) & (address <= self.ends[number] - size)
        return np.maximum(number, 0), inside


class Region:
    """`owners` copies of `stride` bytes: one for all (global), one per block (shared) or one per lane (local).

    `base` is the offset of each lane's copy, None if there is one copy. With `tracked`, reads of uninitialised bytes,
    and of bytes that an asynchronous copy will write, are found.
    """

    def __init__(self, table: Table, stride: int, owners: int, base: np.ndarray | None, tracked: bool) -> None:
        self.table, self.stride, self.owners, self.base, self.tracked = table, stride, owners, base, tracked
        if base is None:  # one copy, of which no byte is read that was not filled: pages that nobody uses cost nothing
            self.data = np.zeros(stride * owners, np.uint8)
        else:
            self.data = np.full(stride * owners, POISON, np.uint8)
        self.fresh: np.ndarray | None = np.ones(len(self.data), np.uint8) if tracked else None
        self.flying = np.zeros(len(self.data) // _WORD, np.uint8)
        self.in_flight = 0
        self.bulk_in_flight = 0
        self.reductions = 0  # words that bulk reductions in flight will update; there are none of shared memory
        self.reducing: np.ndarray | None = None
        self.readings = 0
        self.reading: np.ndarray | None = None
        self.boxes: np.ndarray | None = None
        self._scans = 16
        self._reads = 0
        self._see()

    def _see(self) -> None:
        self._items = _views(self.data)
        self._fresh = _views(self.fresh) if self.fresh is not None else None
        self._flying = {4 * size: self.flying.view(_ITEMS[size]) for size in (1, 2, 4)}

    def free(self) -> None:
        """Release the memory for later regions; this one is not used again, even if references remain."""
        del self.data, self.flying, self.fresh, self._items, self._fresh, self._flying

    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the data, the flags of copies and the flags of unwritten bytes, with one row for each owner."""
        fresh = np.zeros(len(self.data), np.uint8) if self.fresh is None else self.fresh
        return tuple(a.reshape(self.owners, -1) for a in (self.data, self.flying, fresh))  # type: ignore[return-value]

    def clear(self, offset: int, bytes: int) -> None:
        """Fill the copy of every owner with zeros, which count as written."""
        for rows in self.rows():
            rows[:, offset : offset + bytes] = 0

    def adopt(self, old: Region, source: np.ndarray, destination: np.ndarray) -> None:
        """Take over the contents of some owners of another region, whose stride is the same or smaller."""
        for target, contents in zip(self.rows(), old.rows(), strict=True):
            target[destination, : contents.shape[1]] = contents[source]
        self.in_flight, self.bulk_in_flight, self.readings = old.in_flight, old.bulk_in_flight, old.readings
        if old.reading is not None:
            self.reading = np.zeros(len(self.data) // CHUNK, np.uint16)
            contents = old.reading.reshape(old.owners, -1)
            self.reading.reshape(self.owners, -1)[destination, : contents.shape[1]] = contents[source]
        if old.boxes is not None:
            self.boxes = np.zeros(len(self.data) // CHUNK, np.uint8)
            contents = old.boxes.reshape(old.owners, -1)
            self.boxes.reshape(self.owners, -1)[destination, : contents.shape[1]] = contents[source]

    def like(self, owners: int, numbers: np.ndarray) -> Region:
        """Return an empty region of the same kind for other owners."""
        return Region(self.table, self.stride, owners, numbers * self.stride, self.tracked)

    def widened(self, stride: int, numbers: np.ndarray) -> Region:
        """Return the same contents with more bytes for each owner."""
        new = Region(self.table, stride, self.owners, numbers * stride, self.tracked)
        new.adopt(self, numbers, numbers)
        return new

    def read(self, flat: np.ndarray, size: int) -> np.ndarray:
        """Read items of `size` bytes at aligned offsets."""
        return self._items[size].take(flat >> _SHIFTS[size])

    def write(self, flat: np.ndarray, size: int, items: np.ndarray) -> None:
        self._items[size][flat >> _SHIFTS[size]] = items
        if self._fresh is not None:
            self._fresh[size][flat >> _SHIFTS[size]] = 0
        if self.boxes is not None:
            self.boxes[flat >> _SHIFTS[CHUNK]] = 0

    def lay_boxes(self, flat: np.ndarray, number: int) -> None:
        """Mark chunks as loaded by the boxes with this number, until something else is written there."""
        if self.boxes is None:
            self.boxes = np.zeros(len(self.data) // CHUNK, np.uint8)
        self.boxes[flat >> _SHIFTS[CHUNK]] = number

    def forget(self, flat: np.ndarray, size: int) -> None:
        """Mark the bytes at these offsets as uninitialised."""
        if self._fresh is None:
            self.fresh = np.zeros(len(self.data), np.uint8)
            self._see()
        assert self._fresh is not None
        self._fresh[size][flat >> _SHIFTS[size]] = np.ones(size, np.uint8).view(_ITEMS[size])[0]

    def unwritten(self, flat: np.ndarray, size: int) -> np.ndarray | None:
        """Return True for each item with an uninitialised byte; None if no item has one."""
        if self._fresh is None:
            return None
        self._reads += 1
        if self._reads >= self._scans and self._all_written():
            return None
        flags = self._fresh[size].take(flat >> _SHIFTS[size])
        return flags != 0 if np.count_nonzero(flags) else None

    def _all_written(self) -> bool:
        """Search for uninitialised bytes, less and less often; stop tracking when all are written."""
        assert self.fresh is not None
        self._scans *= 2
        if self.fresh.any():
            return False
        self.fresh = self._fresh = None
        return True

    def awaited(self, flat: np.ndarray, size: int) -> np.ndarray | None:
        """Return True for each item with a byte that a copy in flight will write; None if no item has one."""
        if not (self.in_flight or self.bulk_in_flight):
            return None
        size = max(size, _WORD)
        flags = self._flying[size].take(flat >> _SHIFTS[size])
        return flags != 0 if np.count_nonzero(flags) else None

    def launch(self, flat: np.ndarray, size: int) -> None:
        """Begin an asynchronous copy to these offsets."""
        self.in_flight += 1
        if self.tracked:
            self._flying[size][flat >> _SHIFTS[size]] = {4: 1, 8: 0x0101, 16: 0x01010101}[size]

    def land(self, flat: np.ndarray, size: int, items: np.ndarray | None) -> None:
        """End an asynchronous copy to these offsets, and write items, or zeros."""
        self.in_flight -= 1
        index = flat >> _SHIFTS[size]
        self._items[size][index] = 0 if items is None else items
        if self._fresh is not None:
            self._fresh[size][index] = 0
        if self.tracked:
            self._flying[size][index] = 0
        if self.boxes is not None:
            self.boxes[flat >> _SHIFTS[CHUNK]] = 0

    def launch_bulk(self, flat: np.ndarray, size: int) -> None:
        """Begin a bulk copy to these offsets; parts of words are not recorded."""
        self.bulk_in_flight += 1
        if size >= _WORD:
            self._flying[size][flat >> _SHIFTS[size]] = {4: 1, 8: 0x0101, 16: 0x01010101}[size]

    def land_bulk(self, flat: np.ndarray, size: int, last: bool) -> None:
        """End a bulk copy to these offsets, or the `last` part of it."""
        self.bulk_in_flight -= last
        if size >= _WORD:
            self._flying[size][flat >> _SHIFTS[size]] = 0

    def begin_reductions(self, flat: np.ndarray, size: int) -> None:
        """Begin bulk reductions of items at these offsets: others may be under way there. Parts of words are not
        recorded."""
        if self.reducing is None:
            self.reducing = np.zeros(len(self.data) // _WORD, np.uint16)
        words = _words(flat, size)
        self.reductions += words.size
        np.add.at(self.reducing, words, _ONE)

    def end_reductions(self, flat: np.ndarray, size: int) -> None:
        """End bulk reductions."""
        assert self.reducing is not None
        words = _words(flat, size)
        self.reductions -= words.size
        np.subtract.at(self.reducing, words, _ONE)

    def being_reduced(self, flat: np.ndarray, size: int) -> np.ndarray | None:
        """Return True for each item with a byte that a bulk reduction in flight will update; None if there is none."""
        if not self.reductions or self.reducing is None:
            return None
        flags = self.reducing[_words(flat, max(size, _WORD))].any(-1)
        return flags if flags.any() else None

    def begin_reading(self, flat: np.ndarray) -> None:
        """Begin to read chunks through the async proxy."""
        if self.reading is None:
            self.reading = np.zeros(len(self.data) // CHUNK, np.uint16)
        self.readings += 1
        np.add.at(self.reading, flat.reshape(-1) // CHUNK, _ONE)

    def end_reading(self, flat: np.ndarray, last: bool) -> None:
        """End the async proxy's read of chunks, or the `last` of those that began together."""
        assert self.reading is not None
        self.readings -= last
        np.subtract.at(self.reading, flat.reshape(-1) // CHUNK, _ONE)

    def being_read(self, flat: np.ndarray) -> np.ndarray | None:
        """Return True for each item that the async proxy reads; None if it reads none of them."""
        if not self.readings or self.reading is None:
            return None
        flags = self.reading.take(flat // CHUNK)
        return flags != 0 if np.count_nonzero(flags) else None


def _words(flat: np.ndarray, size: int) -> np.ndarray:
    """The words of items of `size` bytes, in a further dimension; none of items smaller than a word."""
    words: np.ndarray = flat[..., np.newaxis] // _WORD + np.arange(size // _WORD)
    return words


def _views(data: np.ndarray) -> dict[int, np.ndarray]:
    return {size: data.view(item) for size, item in _ITEMS.items()}


def spread(sizes: Sequence[tuple[int, int]], zone: int, first: int = 0) -> tuple[list[int], int]:
    """Return offsets for pieces of (bytes, alignment) with at least `zone` unused bytes after each, and the end."""
    offsets, end = [], first
    for size, alignment in sizes:
        offset = -(-end // alignment) * alignment
        offsets.append(offset)
        end = offset + size + zone
    return offsets, -(-end // 16) * 16


def elements(shape: Sequence[int | None]) -> int:
    return prod(extent or 0 for extent in shape)
