"""A coarse memory of shared memory: for each page, when it was last read and written, and by whom of its block.

What the threads of an access know of all others that a page has seen cannot race with it. So most accesses of a kernel
that passes tiles through mbarriers are settled by a look at a few pages; the rest is looked up word by word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...memory.regions import PAGE
from ...run.residents import WARP
from .clocks import Clocks, thread_number
from .stamps import ASYNC_LANE, LANDED, LANDINGS, LATEST, STAMP

ALL = slice(None)


@dataclass(frozen=True, eq=False, slots=True)
class Doubts:
    """Which accesses must be looked up by words: for writes before them, for reads, and for fences of writes and of
    reads; None for none."""

    writers: np.ndarray | slice | None
    readers: np.ndarray | slice | None
    fences: np.ndarray | slice | None = None
    read_fences: np.ndarray | slice | None = None


class Pages:
    """Stamps for each page: `reads` by each warp of its block, of which `generic_reads` are those through the generic
    proxy, and `async_reads` by the async proxy for each warp, which a commit of tcgen05 makes known; `writes` also by
    the copies that complete at each of its mbarriers and, in the last column, by other blocks.
    """

    def __init__(self, slots: int, stride: int, warps: int) -> None:
        self.warps, self.each = warps, stride // PAGE
        self.columns = warps + LANDINGS + 1
        self.reads = np.zeros((slots * self.each, warps), STAMP)
        self.generic_reads = np.zeros((slots * self.each, warps), STAMP)
        self.async_reads = np.zeros((slots * self.each, warps), STAMP)
        self.writes = np.zeros((slots * self.each, self.columns), STAMP)

    def moved(self, slots: int, source: np.ndarray, destination: np.ndarray) -> Pages:
        """Those of other slots."""
        new = Pages(slots, self.each * PAGE, self.warps)
        reads = (self.reads, new.reads), (self.generic_reads, new.generic_reads), (self.async_reads, new.async_reads)
        kept = *reads, (self.writes, new.writes)
        for old, fresh in kept:
            width = old.shape[1]
            fresh.reshape(slots, -1, width)[destination] = old.reshape(-1, self.each, width)[source]
        return new

    # What was done

    def note_reads(self, flat: np.ndarray, warp_in_block: np.ndarray, stamp: int, is_generic: bool) -> None:
        """Warps (of their blocks) read at places, or the async proxy for them."""
        index = flat // PAGE * self.warps + warp_in_block
        self.reads.reshape(-1)[index] = stamp
        if is_generic:
            self.generic_reads.reshape(-1)[index] = stamp

    def note_async_reads(self, flat: np.ndarray, warp_in_block: np.ndarray, stamp: int) -> None:
        """Note reads at places by the async proxy, for warps of their blocks."""
        self.async_reads.reshape(-1)[flat // PAGE * self.warps + warp_in_block] = stamp

    def note_writes(self, clocks: Clocks, flat: np.ndarray, writers: np.ndarray, stamp: int) -> None:
        """Warps of the grid, or what stands for copies, write at places."""
        numbers = flat // PAGE
        block = clocks.residents.ordinals[numbers // max(1, self.each)]
        landed = writers >= LANDED
        by_landings = (writers - LANDED) - block * LANDINGS
        by_warps = writers - block * self.warps
        column = np.where(landed, by_landings + self.warps, by_warps)
        limit = np.where(landed, self.warps + LANDINGS, self.warps)
        column = np.where((column >= 0) & (column < limit), column, self.columns - 1)
        self.writes[numbers, column] = stamp

    def note_stores(self, flat: np.ndarray, stamp: int) -> None:
        """Note stores at places that complete at mbarriers; later accesses there are looked up by words."""
        self.writes[flat // PAGE, -1] = stamp

    # Questions

    def doubts(self, knowledge: Knowledge, flat: np.ndarray, writes: bool, asynchronous: bool) -> Doubts:
        """Which accesses to places by those who know `knowledge` must be looked up by words."""
        numbers = flat // PAGE
        flags = np.zeros(len(self.reads), bool)
        flags[numbers] = True
        pages, known = np.flatnonzero(flags), knowledge.accesses()
        known = known[pages // self.each]
        fenced = knowledge.fences()[pages // self.each] if asynchronous else known
        return Doubts(
            _doubtful(self.writes, pages, known, numbers),
            self._doubtful_reads(knowledge, pages, known, numbers) if writes else None,
            _doubtful(self.writes, pages, fenced, numbers) if asynchronous else None,
            _doubtful(self.generic_reads, pages, fenced, numbers) if asynchronous and writes else None,
        )

    def _doubtful_reads(
        self, knowledge: Knowledge, pages: np.ndarray, known: np.ndarray, numbers: np.ndarray
    ) -> np.ndarray | None:
        """Return the accesses to pages with reads that are not known, or None."""
        which = _doubtful(self.reads, pages, known, numbers)
        if not self.async_reads[pages].any():
            return which
        of_async = _doubtful(self.async_reads, pages, knowledge.async_reads()[pages // self.each], numbers)
        return which if of_async is None else of_async if which is None else which | of_async


def _doubtful(stamps: np.ndarray, pages: np.ndarray, known: np.ndarray, numbers: np.ndarray) -> np.ndarray | None:
    """Which of the accesses, by the numbers of their pages, are to pages with stamps later than what is known."""
    width = min(stamps.shape[1], known.shape[1])
    late = (stamps[pages, :width] > known[:, :width]).any(1)
    if not late.any():
        return None
    flags = np.zeros(len(stamps), bool)
    flags[pages[late]] = True
    which: np.ndarray = flags[numbers]
    return which


class Knowledge:
    """What all of some lanes know of accesses to the shared memory of their blocks."""

    def __init__(self, clocks: Clocks, lanes: np.ndarray) -> None:
        self.clocks, self.lanes = clocks, lanes
        flags = np.zeros(clocks.rows, bool)
        flags[lanes // WARP] = True
        self.rows = np.flatnonzero(flags)
        self.slots = self.rows % clocks.residents.slots

    def accesses(self) -> np.ndarray:
        """Up to which stamps, (slots, columns of `Pages.writes`)."""
        c, warps = self.clocks, self.clocks.residents.warps
        table = np.zeros((len(self.rows), warps + LANDINGS + 1), STAMP)
        table[:, :warps] = self._seen()
        if c.proxies is not None:
            table[:, warps:-1] = c.proxies[self.rows, :LANDINGS]
        if c.near and len(self.rows) == len(self.lanes):
            self._add_messages(table)
        return self._in_slots(table)

    def _seen(self) -> np.ndarray:
        """Up to which stamps all accesses of the warps of their blocks, (rows, warps)."""
        c = self.clocks
        first = c.column[self.rows] - c.warp_in_block[self.rows]
        columns = first[:, np.newaxis] + np.arange(c.residents.warps)
        seen: np.ndarray = np.take_along_axis(c.seen[self.rows], columns, 1)
        return seen

    def async_reads(self) -> np.ndarray:
        """Return the stamps up to which reads of the async proxy for warps are known, (slots, warps)."""
        c, warps, table = self.clocks, self.clocks.residents.warps, self._seen()
        acts_alone = len(self.rows) == len(self.lanes)
        threads = c.threads(np.sort(self.lanes)) if acts_alone else [None] * len(self.rows)
        for number, (row, thread) in enumerate(zip(self.rows.tolist(), threads, strict=True)):
            first = int(c.block[row]) * warps
            heard = c.far.get(int(c.warp[row])), None if thread is None else c.near.get(thread)
            for message in heard:
                if message is not None:
                    known = [message.threads.get(thread_number(first + warp, ASYNC_LANE), 0) for warp in range(warps)]
                    table[number] = np.maximum(table[number], np.array(known, STAMP))
        return self._in_slots(table)

    def _add_messages(self, table: np.ndarray) -> None:
        """What lanes that act alone have learned."""
        c, warps = self.clocks, self.clocks.residents.warps
        for number, (row, thread) in enumerate(
            zip(np.sort(self.lanes) // WARP, c.threads(np.sort(self.lanes)), strict=True)
        ):
            if (message := c.near.get(thread)) is not None:
                block = int(c.block[row])
                local = message.warps[block * warps : (block + 1) * warps]
                table[number, :warps] = np.maximum(table[number, :warps], local)
                if (landed := message.proxies.get(block)) is not None:
                    table[number, warps:-1] = np.maximum(table[number, warps:-1], landed[:LANDINGS])

    def fences(self) -> np.ndarray:
        """Return the stamps up to which a proxy fence follows accesses, (slots, columns of `Pages.writes`): none for
        those of other blocks, and any for copies, which need no fence."""
        c = self.clocks
        table = np.full((len(self.rows), c.residents.warps + LANDINGS + 1), LATEST, STAMP)
        threads = c.proxy_table()[self.rows, c.fenced_threads("shared")]
        table[:, : c.residents.warps] = threads.reshape(len(self.rows), -1, WARP).min(2)
        table[:, -1] = 0
        return self._in_slots(table)

    def _in_slots(self, table: np.ndarray) -> np.ndarray:
        known = np.full((self.clocks.residents.slots, table.shape[1]), LATEST, STAMP)
        np.minimum.at(known, self.slots, table)
        return known
