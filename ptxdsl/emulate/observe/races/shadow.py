"""What is remembered of memory: who wrote each word last, and who has read it since.

A word has `grain` bytes: four, until an access of fewer bytes shows that its parts are different things.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ....cached import cached_property
from ...run.residents import WARP
from .clocks import Clocks
from .crowds import Crowds
from .pages import Pages
from .readers import MoreReaders
from .stamps import ASYNC_LANE, LANE_MASK, NEVER, STAMP

_ITEMS: dict[int, np.dtype] = {1: STAMP, 2: np.dtype(np.uint64), 4: np.dtype(np.complex128)}
_SHIFTS = {1: 0, 2: 1, 4: 2}
_WIDEST = 4  # words that are moved as one item
STRONG = "strong writes"  # that others hide from weak accesses
GENERIC = "reads through the generic proxy"  # that the async proxy's hide from its writes
OBSERVED = "observed writes"  # such whose values atomics gave to their threads
_MOST_PENDING = 1 << 26


@dataclass(frozen=True, slots=True)
class Words:
    """The words of some accesses: `first` of each of `width` (1, 2 or 4) words; `repeats` of these for each access."""

    first: np.ndarray
    width: int
    repeats: int

    def each(self, values: np.ndarray) -> np.ndarray:
        """Values of accesses, one for each entry of `first`."""
        return np.repeat(values, self.repeats) if self.repeats > 1 else values

    def plus(self, offset: np.ndarray | int) -> Words:
        """The same words in other planes."""
        return Words(self.first + offset, self.width, self.repeats)

    def only(self, which: np.ndarray | slice) -> Words:
        return Words(self.first[which], self.width, self.repeats)

    @property
    def all(self) -> np.ndarray:
        """Every word, one entry after another."""
        return (self.first[:, np.newaxis] + np.arange(self.width)).reshape(-1)


class Plane:
    """A number for each of `count` words, at first 0; without memory until one is put there."""

    def __init__(self, words: int) -> None:
        self.count = -(-words // _WIDEST) * _WIDEST
        self.is_blank = True

    @cached_property
    def data(self) -> np.ndarray:
        self.is_blank = False
        return np.zeros(self.count, STAMP)

    @cached_property
    def _items(self) -> dict[int, np.ndarray]:
        return {width: self.data.view(item) for width, item in _ITEMS.items()}

    def take(self, words: Words) -> np.ndarray:
        """(entries, width)"""
        if self.is_blank:
            return np.zeros((len(words.first), words.width), STAMP)
        items = self._items[words.width].take(words.first >> _SHIFTS[words.width])
        return items.view(STAMP).reshape(-1, words.width)

    def put(self, words: Words, values: np.ndarray | np.uint32) -> None:
        """One value for all words, one for all those of an entry, or (entries, width)."""
        if isinstance(values, np.uint32):
            self._items[words.width][words.first >> _SHIFTS[words.width]] = _repeated(values, words.width)
            return
        if values.ndim == 1 and words.width > 1:
            values = np.repeat(values, words.width)
        items = np.ascontiguousarray(values).reshape(-1).view(_ITEMS[words.width])
        self._items[words.width][words.first >> _SHIFTS[words.width]] = items


def _repeated(value: np.uint32, width: int) -> np.ndarray:
    """An item of one value, again and again."""
    item: np.ndarray = np.full(width, value).view(_ITEMS[width])[0]
    return item


def each_once(stamps: np.ndarray, warps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Last accesses to words, (entries, words); only those to the first word of each, if the others had the same."""
    return (stamps[:, :1], warps[:, :1]) if _uniform(stamps) and _uniform(warps) else (stamps, warps)


def _uniform(values: np.ndarray) -> bool:
    """Whether the words of each entry are equal."""
    width = values.shape[1]
    if width == _WIDEST and values.flags.c_contiguous:
        pairs = values.view(np.uint64)
        if (pairs[:, 0] != pairs[:, 1]).any():
            return False
        width = 2
    return width == 1 or bool((values[:, 1:width] == values[:, :1]).all())


def refined(plane: Plane, factor: int) -> Plane:
    """The same for words of fewer bytes."""
    new = Plane(plane.count * factor)
    if not plane.is_blank:
        new.data[:] = np.repeat(plane.data, factor)
    return new


def gather(
    plane: Plane, entries: Words, crowded: np.ndarray, crowds: Crowds, reads: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    """Puts stamps of crowds to those words, (entries, width), that are `crowded`, and to the same in other entries.

    `reads` are the stamps and warps of the entries, and the stamps before, (entries, width), 0 where they are known.
    """
    words, (stamps, warps, old) = entries.all.reshape(crowded.shape), reads
    plane.put(Words(words[crowded], 1, 1), NEVER)
    which = plane.take(entries) == NEVER
    stamps, warps = (np.broadcast_to(values[:, np.newaxis], which.shape)[which] for values in (stamps, warps))
    plane.put(Words(words[which], 1, 1), crowds.gathered(words[which], stamps, warps, old[which]))


@dataclass(slots=True)
class Cells:
    """The last access of each word: its stamp, and the warp in the grid that made it."""

    stamp: Plane
    warp: Plane

    @classmethod
    def empty(cls, words: int) -> Cells:
        return cls(Plane(words), Plane(words))

    def take(self, words: Words) -> tuple[np.ndarray, np.ndarray]:
        return self.stamp.take(words), self.warp.take(words)

    def put(self, words: Words, stamps: np.ndarray, warps: np.ndarray) -> None:
        self.stamp.put(words, stamps)
        self.warp.put(words, warps)

    def refined(self, factor: int) -> Cells:
        return Cells(refined(self.stamp, factor), refined(self.warp, factor))


class Shadow:
    """The words of a piece of memory of `bytes` bytes from `origin` on.

    `newest_write` and `newest_read` are the greatest stamps there. `hidden` has, by kind and sort (`Journal.sorts_of`),
    accesses behind others with which later ones may race all the same: reads (of the same warp) and writes that strong
    accesses may race with, `STRONG` and `OBSERVED` writes, of which `others` has one more for each word, and `GENERIC`
    reads.
    """

    def __init__(self, origin: int, bytes: int) -> None:
        self.origin, self.bytes = origin, bytes
        self.grain = 4
        self.newest_write = self.newest_read = 0
        self.writes = Cells.empty(bytes // self.grain + 1)
        self.hidden: dict[tuple[str, int], MoreReaders] = {}
        self.others: Cells | None = None

    def words(self, flat: np.ndarray, size: int) -> Words:
        """The words of accesses of `size` bytes."""
        if size < self.grain:
            self.refine(self.grain // size)
        first, width = (flat - self.origin) >> (self.grain.bit_length() - 1), size // self.grain
        if width <= _WIDEST:
            return Words(first, width, 1)
        parts = np.arange(0, width, _WIDEST)
        return Words((first[:, np.newaxis] + parts).reshape(-1), _WIDEST, len(parts))

    def refine(self, factor: int) -> None:
        self.grain //= factor
        self.writes = self.writes.refined(factor)
        self.others = self.others.refined(factor) if self.others is not None else None
        count = self.writes.stamp.count
        self.hidden = {key: hidden.refined(factor, count) for key, hidden in self.hidden.items()}

    def hide(self, kind: str, words: np.ndarray, stamps: np.ndarray, warps: np.ndarray, sorts: np.ndarray) -> None:
        """Keeps accesses to some words, one entry each, in whose place others will stand or stand already: of each lane
        the last one of each sort."""
        for sort in np.unique(sorts).tolist():
            which = sorts == sort
            if (kind, sort) not in self.hidden:
                self.hidden[kind, sort] = MoreReaders(self.writes.stamp.count)
            self.hidden[kind, sort].add(words[which], stamps[which], warps[which])

    def keep_another(self, words: np.ndarray, stamps: np.ndarray, warps: np.ndarray) -> None:
        """Keeps such writes to many words: of each word one."""
        if self.others is None:
            self.others = Cells.empty(self.writes.stamp.count)
        self.others.put(Words(words, 1, 1), stamps, warps)

    def reveal(self, words: Words) -> None:
        """A weak write comes: who is ordered behind it is ordered behind all that came before."""
        for hidden in self.hidden.values():
            hidden.forget(words.all)
        if self.others is not None:
            self.others.stamp.put(words, NEVER)

    def hidden_of(self, kind: str, words: Words) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Hidden accesses of a kind to words: of which of the entries, their stamps and warps, (entries, 1)."""
        for (each, _), hidden in self.hidden.items():
            if each == kind:
                entry, stamps, warps = hidden.of(words.all)
                if entry.size:
                    yield entry // words.width, stamps[:, np.newaxis], warps[:, np.newaxis]


class SharedShadow(Shadow):
    """Shared memory of resident blocks: of each word, the last read by each warp of its block, and by any of them."""

    def __init__(self, slots: int, stride: int, warps: int) -> None:
        super().__init__(0, slots * stride)
        self.slots, self.stride, self.warps = slots, stride, warps
        self.readers = Plane(self.plane * (warps + 1))
        self.pages: Pages | None = None  # once mbarriers or the async proxy are used
        self.remote: GlobalShadow | None = None  # reads by other blocks of the cluster, once there is one
        self.has_landings = False  # some writes are of copies, which a thread knows only by their mbarriers

    @property
    def plane(self) -> int:
        """Words of a plane of `readers`."""
        return -(-self.bytes // self.grain // _WIDEST) * _WIDEST

    def refine(self, factor: int) -> None:
        super().refine(factor)
        self.readers = refined(self.readers, factor)

    def begin_pages(self, clocks: Clocks) -> None:
        """From now on pages are remembered; the newest read is taken to be of all of them, by all warps."""
        self.pages = Pages(self.slots, self.stride, clocks.width, clocks.residents.cluster_blocks)
        self.pages.reads[:] = self.pages.generic_reads[:] = self.newest_read
        if self.writes.stamp.is_blank:
            return
        written = np.flatnonzero(self.writes.stamp.data)
        self.pages.note_writes(clocks, written * self.grain, self.writes.warp.data[written], self.newest_write)

    def reads_of(self, words: Words, warp: np.ndarray | int) -> Words:
        """Where the reads of warps (of the block) are kept."""
        return words.plus(warp * self.plane)

    def latest_reads_of(self, words: Words) -> Words:
        """Where the last read by any warp is kept."""
        return words.plus(self.warps * self.plane)

    def moved(self, slots: int, source: np.ndarray, destination: np.ndarray) -> SharedShadow:
        """The same of other slots."""
        new = SharedShadow(slots, self.stride, self.warps)
        if self.grain < new.grain:
            new.refine(new.grain // self.grain)
        new.newest_write, new.newest_read = self.newest_write, self.newest_read
        new.has_landings = self.has_landings
        planes = [(self.writes.stamp, new.writes.stamp), (self.writes.warp, new.writes.warp)]
        if self.others is not None:
            new.others = Cells.empty(new.writes.stamp.count)
            planes += [(self.others.stamp, new.others.stamp), (self.others.warp, new.others.warp)]
        for old, fresh in planes:
            if not old.is_blank:
                new._rows(fresh, 0)[destination] = self._rows(old, 0)[source]
        for warp in range(self.warps + 1) if not self.readers.is_blank else ():
            new._rows(new.readers, warp)[destination] = self._rows(self.readers, warp)[source]
        if self.pages is not None:
            new.pages = self.pages.moved(slots, source, destination)
        if self.remote is not None:
            new.remote = self.remote.moved(self.stride, slots, source, destination)
        numbers = np.full(self.slots + 1, -1)
        numbers[source] = destination
        for key, hidden in self.hidden.items():
            new.hidden[key] = hidden.moved(self.stride // self.grain, numbers, new.writes.stamp.count)
        return new

    def read_remotely(self, flat: np.ndarray, size: int, reads: WarpReads, crowds: Crowds) -> None:
        """Remembers reads by warps of other blocks."""
        if self.remote is None:
            self.remote = GlobalShadow(0, self.bytes, crowds)
            self.remote.written = True
        self.remote.read(flat, size, reads)

    def _rows(self, plane: Plane, number: int) -> np.ndarray:
        """A plane with a row for each slot."""
        start, each = number * self.plane, self.stride // self.grain
        return plane.data[start : start + self.slots * each].reshape(self.slots, each)


@dataclass(frozen=True, eq=False, slots=True)
class WarpReads:
    """Reads, (accesses,): their stamps, warps and lanes. `met` (rows,) is when all lanes of each warp met last;
    `clocks` has what lanes know beyond that, as long as nothing has happened since.

    Without `met` they are no reads of lanes, but of the async proxy or of the grid before.
    """

    stamps: np.ndarray
    warps: np.ndarray
    lanes: np.ndarray | None = None
    met: np.ndarray | None = None
    clocks: Clocks | None = None

    def each(self, words: Words) -> WarpReads:
        """One for each entry of words."""
        lanes = None if self.lanes is None else words.each(self.lanes)
        return WarpReads(words.each(self.stamps), words.each(self.warps), lanes, self.met, self.clocks)

    def only(self, which: np.ndarray) -> WarpReads:
        lanes = None if self.lanes is None else self.lanes[which]
        return WarpReads(self.stamps[which], self.warps[which], lanes, self.met, self.clocks)

    @property
    def met_before(self) -> np.ndarray:
        """When all lanes of the warp of each had met last, 0 if that is not known."""
        return np.zeros_like(self.stamps) if self.met is None or self.lanes is None else self.met[self.lanes // WARP]

    def of_other_proxy(self, old: np.ndarray) -> np.ndarray:
        """Which reads before, (entries, width), were by lanes while these are by the async proxy, or the other way."""
        other: np.ndarray = (old & LANE_MASK == ASYNC_LANE) != (self.stamps & LANE_MASK == ASYNC_LANE)[:, np.newaxis]
        return other

    def unknown(self, old: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Which reads before, (entries, width), by other lanes of the same warps, these lanes do not know of."""
        if self.met is None or self.lanes is None:
            return np.zeros(old.shape, bool)
        other = (old ^ self.stamps[:, np.newaxis]) & LANE_MASK != 0
        result = other & (old > self.met[self.lanes // WARP][:, np.newaxis]) & (warps == self.warps[:, np.newaxis])
        result &= old & LANE_MASK != ASYNC_LANE
        if self.clocks is not None and result.any():
            entry, part = np.nonzero(result)
            lanes, warps = self.lanes[entry], self.warps[entry]
            result[entry, part] = self.clocks.unordered(lanes, warps, old[entry, part], True)
        return result


class GlobalShadow(Shadow):  # also of shared memory, for reads by other blocks of the cluster
    """An array in global memory: of each word, the last reader, the one before of another warp, and in `more` others.

    Until somebody writes to the array its reads are only kept in `pending`, up to a limit.
    """

    def __init__(self, origin: int, bytes: int, crowds: Crowds) -> None:
        super().__init__(origin, bytes)
        self.crowds = crowds
        self.readers = (Cells.empty(bytes // self.grain + 1), Cells.empty(bytes // self.grain + 1))
        self.pending: list[tuple[np.ndarray, int, WarpReads]] = []
        self.pending_bytes = 0
        self.written = False
        self.more: MoreReaders | None = None

    def refine(self, factor: int) -> None:
        super().refine(factor)
        self.readers = (self.readers[0].refined(factor), self.readers[1].refined(factor))
        if self.more is not None:
            self.more = self.more.refined(factor, self._word_count)

    @property
    def _word_count(self) -> int:
        return self.readers[0].stamp.count

    def read(self, flat: np.ndarray, size: int, reads: WarpReads) -> None:
        """Remembers reads."""
        if self.written:
            self._read(flat, size, reads)
            return
        self.pending.append((flat, size, replace(reads, clocks=None)))
        self.pending_bytes += flat.nbytes + reads.stamps.nbytes
        if self.pending_bytes > _MOST_PENDING:
            self.settle()

    def moved(self, stride: int, slots: int, source: np.ndarray, destination: np.ndarray) -> GlobalShadow:
        """Where it is shared memory of slots of `stride` bytes: the same of other slots."""
        new = GlobalShadow(self.origin, slots * stride, self.crowds)
        if self.grain < new.grain:
            new.refine(new.grain // self.grain)
        new.written, each = self.written, stride // self.grain
        for old, fresh in zip(self.readers, new.readers, strict=True):
            for before, after in ((old.stamp, fresh.stamp), (old.warp, fresh.warp)):
                rows = before.data[: before.count // each * each].reshape(-1, each)
                after.data[: slots * each].reshape(slots, each)[destination] = rows[source]
        numbers = np.full(self.bytes // stride + 1, -1)
        numbers[source] = destination
        if self.more is not None:
            new.more = self.more.moved(each, numbers, new._word_count)
        for key, hidden in self.hidden.items():
            new.hidden[key] = hidden.moved(each, numbers, new._word_count)
        return new

    def reads_of(self, words: Words) -> Iterator[tuple[np.ndarray | slice, np.ndarray, np.ndarray]]:
        """Reads of words: of which of the entries, their stamps and warps, (entries, words of an entry or 1)."""
        for readers in self.readers:
            yield slice(None), *readers.take(words)
        if self.more is not None:
            entry, stamps, warps = self.more.of(words.all)
            if entry.size:
                yield entry // words.width, stamps[:, np.newaxis], warps[:, np.newaxis]

    def reveal(self, words: Words) -> None:
        super().reveal(words)
        if self.more is not None:
            self.more.forget(words.all)

    def settle(self) -> None:
        """Takes the reads that are pending to the words."""
        pending, self.pending, self.pending_bytes = self.pending, [], 0
        for reads in pending:
            self._read(*reads)

    def _read(self, flat: np.ndarray, size: int, reads: WarpReads) -> None:
        words = self.words(flat, size)
        reads = reads.each(words)
        stamps, warps = reads.stamps, reads.warps
        last, before = self.readers
        old_stamps, old_warps = last.take(words)
        proxy = (old_warps == warps[:, np.newaxis]) & (old_stamps != 0) & reads.of_other_proxy(old_stamps)
        if proxy.any():  # of a warp, the async proxy and the lanes read for themselves
            self._add(words.all.reshape(proxy.shape)[proxy], old_stamps[proxy], old_warps[proxy])
        others = (old_warps != warps[:, np.newaxis]).any(1) & (old_stamps != 0).any(1)
        if others.any():
            self._keep(words.only(others), reads.only(others), old_warps[others])
            before.put(words.only(others), old_stamps[others], old_warps[others])
        last.put(words, stamps, warps)
        new_stamps, new_warps = last.take(words)
        same: np.ndarray = (new_warps == warps[:, np.newaxis]).all(1)
        if not same.all():
            self._crowd(words.only(~same), reads.only(~same))
        unknown = reads.unknown(old_stamps, old_warps)
        crowded = unknown | (new_stamps != stamps[:, np.newaxis])
        if crowded[same].any():
            each = stamps[same], warps[same], np.where(unknown, old_stamps, 0)[same]
            gather(last.stamp, words.only(same), crowded[same], self.crowds, each)

    def _crowd(self, words: Words, reads: WarpReads) -> None:
        """Keeps those who read words at once with lanes of another warp, which stand as the last readers."""
        each, stamps, warps = words.all, np.repeat(reads.stamps, words.width), np.repeat(reads.warps, words.width)
        if reads.lanes is not None:
            readers = each * (int(warps.max()) + 1) + warps
            stamps = self.crowds.gathered(readers, stamps, warps, np.zeros_like(stamps))
        self._add(each, stamps, warps, np.repeat(reads.met_before, words.width))

    def _keep(self, words: Words, reads: WarpReads, last: np.ndarray) -> None:
        """Takes the readers before the `last` ones, (entries, width), elsewhere, in whose place these will stand; but
        for those who read again now, or are known to lanes of their warp that do."""
        stamps, warps = self.readers[1].take(words)
        lost = (stamps != 0) & (warps != last)
        lost &= (warps != reads.warps[:, np.newaxis]) | reads.of_other_proxy(stamps) | reads.unknown(stamps, warps)
        if lost.any():
            self._add(words.all.reshape(lost.shape)[lost], stamps[lost], warps[lost])

    def _add(self, words: np.ndarray, stamps: np.ndarray, warps: np.ndarray, met: np.ndarray | None = None) -> None:
        if self.more is None:
            self.more = MoreReaders(self._word_count)
        self.more.add(words, stamps, warps, met)
