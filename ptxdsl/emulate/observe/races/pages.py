"""A coarse memory of shared memory: for each page, when it was last read and written, and by whom of its block.

What the threads of an access know of all others that a page has seen cannot race with it. So most accesses of a kernel
that passes tiles through mbarriers are settled by a look at a few pages; the rest is looked up word by word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...memory.regions import PAGE
from ...run.residents import WARP
from .clocks import Clocks, Message, thread_number
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


NO_DOUBTS = Doubts(None, None)


class Pages:
    """Stamps for each page, by the warps of its cluster: `reads`, of which `generic_reads` are those of the threads of
    its block through the generic proxy, and `async_reads` by the async proxy for each warp, which a commit of tcgen05
    makes known; `writes` also by the copies that complete at each mbarrier of the cluster and, in the last column, by
    others.
    """

    def __init__(self, slots: int, stride: int, width: int, blocks: int) -> None:
        self.width, self.blocks, self.each = width, blocks, stride // PAGE
        self.columns = width + blocks * LANDINGS + 1
        self.reads, self.generic_reads, self.async_reads = np.zeros((3, slots * self.each, width), STAMP)
        self.writes = np.zeros((slots * self.each, self.columns), STAMP)

    def moved(self, slots: int, source: np.ndarray, destination: np.ndarray) -> Pages:
        """Those of other slots."""
        new = Pages(slots, self.each * PAGE, self.width, self.blocks)
        for name in ("reads", "generic_reads", "async_reads", "writes"):
            old, fresh = getattr(self, name), getattr(new, name)
            width = old.shape[1]
            fresh.reshape(slots, -1, width)[destination] = old.reshape(-1, self.each, width)[source]
        return new

    # What was done

    def note_reads(self, flat: np.ndarray, column: np.ndarray, stamp: int, is_generic: bool) -> None:
        """Note reads at places by warps of the cluster, or by the async proxy for them."""
        index = flat // PAGE * self.width + column
        self.reads.reshape(-1)[index] = stamp
        if is_generic:
            self.generic_reads.reshape(-1)[index] = stamp

    def note_async_reads(self, flat: np.ndarray, column: np.ndarray, stamp: int) -> None:
        """Note reads at places by the async proxy, for warps of the cluster."""
        self.async_reads.reshape(-1)[flat // PAGE * self.width + column] = stamp

    def note_writes(self, clocks: Clocks, flat: np.ndarray, writers: np.ndarray, stamp: int) -> None:
        """Note writes at places by warps of the grid, or by what stands for copies."""
        numbers = flat // PAGE
        cluster = clocks.residents.ordinals[numbers // max(1, self.each)] // self.blocks
        landed = writers >= LANDED
        first = np.where(landed, self.width, 0)
        column = first + np.where(
            landed, (writers - LANDED) - cluster * (self.blocks * LANDINGS), writers - cluster * self.width
        )
        limit = np.where(landed, self.columns - 1, self.width)
        column = np.where((column >= first) & (column < limit), column, self.columns - 1)
        self.writes[numbers, column] = stamp

    def note_stores(self, flat: np.ndarray, stamp: int) -> None:
        """Note stores at places that complete at mbarriers; later accesses there are looked up by words."""
        self.writes[flat // PAGE, -1] = stamp

    # Questions

    def doubts(self, knowledge: Knowledge, flat: np.ndarray, writes: bool, asynchronous: bool) -> Doubts:
        """Return the accesses to places, by those who know `knowledge`, that must be looked up by words."""
        numbers = flat // PAGE
        flags = np.zeros(len(self.reads), bool)
        flags[numbers] = True
        pages = np.flatnonzero(flags)
        slots = pages // self.each
        known = knowledge.accesses()[slots]
        fenced = knowledge.fences()[slots] if asynchronous else known
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
    """What all of some lanes know of accesses to the shared memory of some slots: by default their own blocks'.

    `reached` are the slots and lanes of accesses that may be to other blocks of the cluster.
    """

    def __init__(self, clocks: Clocks, lanes: np.ndarray, reached: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        self.clocks, self.lanes = clocks, lanes
        flags = np.zeros(clocks.rows, bool)
        flags[lanes // WARP] = True
        self.rows = np.flatnonzero(flags)
        self.slots, self.index = self.rows % clocks.residents.slots, np.arange(len(self.rows))
        if reached is not None:
            pairs = np.zeros((clocks.residents.slots, clocks.rows), bool)
            pairs[reached[0], reached[1] // WARP] = True
            self.slots, rows = np.nonzero(pairs)
            self.index = np.searchsorted(self.rows, rows)

    @property
    def _messages(self) -> list[tuple[int, int, Message]]:
        """What lanes that act alone, and warps, have learned beyond the clocks: by number and row."""
        c, rows = self.clocks, self.rows.tolist()
        messages = []
        if c.near and len(self.rows) == len(self.lanes):
            heard = [c.near.get(thread) for thread in c.threads(np.sort(self.lanes))]
            messages = [
                (n, row, known) for n, (row, known) in enumerate(zip(rows, heard, strict=True)) if known is not None
            ]
        if c.far:
            heard = [c.far.get(warp) for warp in c.warp[self.rows].tolist()]
            messages += [
                (n, row, known) for n, (row, known) in enumerate(zip(rows, heard, strict=True)) if known is not None
            ]
        return messages

    def accesses(self) -> np.ndarray:
        """Return the stamps up to which accesses are known, (slots, columns of `Pages.writes`)."""
        c, blocks = self.clocks, self.clocks.residents.cluster_blocks
        table = np.zeros((len(self.rows), c.width + blocks * LANDINGS + 1), STAMP)
        table[:, : c.width] = c.seen[self.rows]
        landings = table[:, c.width : -1].reshape(len(self.rows), blocks, LANDINGS)
        if c.proxies is not None:
            landings[np.arange(len(self.rows)), c.block[self.rows] % blocks] = c.proxies[self.rows, :LANDINGS]
        table[:, c.width : -1] = landings.reshape(len(self.rows), -1)
        if c.near or blocks > 1:
            for number, row, message in self._messages:
                cluster = int(c.cluster[row])
                np.maximum(
                    table[number, : c.width],
                    message.warps[cluster * c.width : (cluster + 1) * c.width],
                    out=table[number, : c.width],
                )
                for block, landed in message.proxies.items():
                    if block // blocks == cluster:
                        here = table[number, c.width + block % blocks * LANDINGS :][:LANDINGS]
                        np.maximum(here, landed[:LANDINGS], out=here)
        return self._in_slots(table)

    def async_reads(self) -> np.ndarray:
        """Return the stamps up to which reads of the async proxy for warps are known, (slots, warps of a cluster)."""
        c = self.clocks
        table = np.zeros((len(self.rows), c.width), STAMP)
        for number, row, message in self._messages:
            first = int(c.cluster[row]) * c.width
            known = [message.threads.get(thread_number(first + warp, ASYNC_LANE), 0) for warp in range(c.width)]
            table[number] = np.maximum(table[number], np.array(known, STAMP))
        return self._in_slots(table)

    def fences(self) -> np.ndarray:
        """Return the stamps up to which a proxy fence follows accesses, (slots, columns of `Pages.writes`): any for
        copies, which need no fence, and none for those of others."""
        c, r = self.clocks, self.clocks.residents
        table = np.full((len(self.rows), c.width + r.cluster_blocks * LANDINGS + 1), LATEST, STAMP)
        proxies = c.proxy_table()[self.rows]
        table[:, : c.width] = proxies[:, c.fenced_warps("shared")]
        columns = (c.column - c.warp_in_block)[self.rows, np.newaxis] + np.arange(r.warps)
        threads = proxies[:, c.fenced_threads("shared")].reshape(len(self.rows), -1, WARP).min(2)
        np.put_along_axis(table, columns, threads, 1)
        table[:, -1] = 0
        return self._in_slots(table)

    def _in_slots(self, table: np.ndarray) -> np.ndarray:
        known = np.full((self.clocks.residents.slots, table.shape[1]), LATEST, STAMP)
        np.minimum.at(known, self.slots, table[self.index])
        return known
