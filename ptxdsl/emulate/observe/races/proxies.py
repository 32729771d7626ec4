"""Knowledge of the async proxy: the bulk copies that have landed, and the accesses that a proxy fence follows.

A copy that lands in shared memory is no access of a thread: those who waited for its mbarrier know of it. An access
through the generic proxy precedes one through the async proxy if a `fence.proxy.async` lies on the path of
synchronization between them (PTX ISA, "Causality order"): executed by any thread that knows of the first, known to the
thread that issues the second, and for the state space of the bytes. Knowledge of fences spreads as other knowledge
does, by barriers, releases and acquires; it is kept by thread within a block, by warp within a cluster, and in
messages beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...run.residents import WARP
from .clocks import FENCED_LANDINGS, SPACES, Clocks, Message, thread_number
from .stamps import ASYNC_LANE, LANDED, LANDINGS, LANE_MASK, SEVERAL, STAMP


class Proxies:
    """The numbers of mbarriers, and the fences; `heard` has the last message that a warp or a thread fenced.

    With `has_stores`, some that complete at mbarriers went through the generic proxy.
    """

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.numbers: dict[int, int] = {}
        self.heard: dict[tuple[int, str], int] = {}
        self.has_stores = False

    def landing(self, slots: np.ndarray, mbarriers: np.ndarray) -> np.ndarray:
        """Return the numbers that stand, in place of warps, for copies that complete at mbarriers in slots."""
        numbers = [
            self.numbers.setdefault(address, min(len(self.numbers), LANDINGS - 1)) for address in mbarriers.tolist()
        ]
        return LANDED | (self.clocks.block[slots] * LANDINGS + np.array(numbers)).astype(STAMP)

    def message(self, landing: int, now: int, readers: Sequence[int] = ()) -> Message:
        """Return the knowledge of a wait for an mbarrier: the copies that landed, and what `tcgen05` read for warps."""
        c = self.clocks
        block, number = divmod(landing - int(LANDED), LANDINGS)
        row = np.zeros(c.proxy_table().shape[1], STAMP)
        row[number] = now | SEVERAL
        threads = {thread_number(warp, ASYNC_LANE): now | ASYNC_LANE for warp in readers}
        return Message(c.blank().warps, threads, proxies={block: row})

    def fence(self, lanes: np.ndarray, now: int, space: str) -> None:
        """Let lanes order what they know of generic accesses before the async proxy, in a space ("" for all)."""
        c, table = self.clocks, self.clocks.proxy_table()
        rows = lanes // WARP
        several = np.unique(rows)
        first = c.column[several] - c.warp_in_block[several]
        seen = np.take_along_axis(c.seen[several], first[:, np.newaxis] + np.arange(c.residents.warps), axis=1)
        spaces = (space.partition("::")[0],) if space else SPACES
        for each in spaces:
            threads, warps = c.fenced_threads(each), c.fenced_warps(each)
            table[several, threads] = np.maximum(table[several, threads], np.repeat(seen, WARP, axis=1))
            table[rows, threads.start + c.warp_in_block[rows] * WARP + lanes % WARP] = now
            if c.width > c.residents.warps:
                table[several, warps] = np.maximum(table[several, warps], c.seen[several])
        if "shared" in spaces:
            table[several, FENCED_LANDINGS] = np.maximum(table[several, FENCED_LANDINGS], table[several, :LANDINGS])
        for row, warp in zip(several.tolist(), c.warp[several].tolist(), strict=True) if c.far else ():
            if (message := c.far.get(warp)) is not None:
                c.far[warp] = self._fence_message(row, -1 - warp, message, spaces)
        for row, thread in zip(rows.tolist(), c.threads(lanes), strict=True) if c.near else ():
            if (message := c.near.get(thread)) is not None:
                c.near[thread] = self._fence_message(row, thread, message, spaces)

    def _fence_message(self, row: int, who: int, message: Message, spaces: Sequence[str]) -> Message:
        """Fence what a warp or a thread learned by a message, and return the message with that."""
        new = [space for space in spaces if self.heard.get((who, space)) != message.serial]
        if not new:
            return message
        c, warps = self.clocks, self.clocks.residents.warps
        if "shared" in new and (landed := message.proxies.get(int(c.block[row]))) is not None:
            fenced = c.proxy_table()[row, FENCED_LANDINGS]
            np.maximum(fenced, landed[:LANDINGS], out=fenced)
        first = int(c.block[row]) * warps
        known = np.repeat(message.warps[first : first + warps], WARP)
        for thread, stamp in message.threads.items():
            if first <= thread // WARP < first + warps:
                index = thread - first * WARP
                known[index] = max(int(known[index]), stamp)
        for space in new:
            fenced = c.proxy_table()[row, c.fenced_threads(space)]
            np.maximum(fenced, known, out=fenced)
        fencing = message if self._is_local(message, first, warps) else message.fencing(new)
        self.heard |= {(who, space): fencing.serial for space in spaces}
        return fencing

    def _is_local(self, message: Message, first: int, warps: int) -> bool:
        """Return True if a message makes known only accesses by warps of one block."""
        low, high = first * WARP, (first + warps) * WARP
        others = message.warps[:first].any() or message.warps[first + warps :].any()
        return not others and all(low <= thread < high for thread in message.threads)

    def unfenced(self, lanes: np.ndarray, stamps: np.ndarray, warps: np.ndarray, space: str) -> np.ndarray:
        """Return the earlier generic accesses, (entries, words), that no proxy fence known to the lanes follows."""
        late = self._unfenced_accesses(lanes, stamps, warps, space)
        return late | self._unfenced_stores(lanes, stamps, warps) if self.has_stores and space == "shared" else late

    def _unfenced_stores(self, lanes: np.ndarray, stamps: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Return the stores that completed at mbarriers, and that no proxy fence known to the lanes follows."""
        c, late = self.clocks, warps >= LANDED
        entry, word = np.nonzero(late)
        block, number = np.divmod(warps[entry, word] - LANDED, STAMP.type(LANDINGS))
        rows, column = lanes[entry] // WARP, FENCED_LANDINGS.start + number
        fenced = np.where(block == c.block[rows], c.proxy_table()[rows, column], STAMP.type(0))
        for listeners, message in c.messages(lanes[entry]):
            for each, row in message.proxies.items():
                here = listeners & (block == each)
                fenced[here] = np.maximum(fenced[here], row[column[here]])
        late[entry, word] = fenced < stamps[entry, word]
        return late

    def _unfenced_accesses(self, lanes: np.ndarray, stamps: np.ndarray, warps: np.ndarray, space: str) -> np.ndarray:
        """Return the earlier accesses by threads that no proxy fence known to the lanes follows."""
        c, rows = self.clocks, lanes // WARP
        table = c.proxy_table()[:, c.fenced_threads(space)]
        late: np.ndarray = (stamps > 0) & (warps < c.grid_before)
        if c.width == c.residents.warps and space == "shared":  # by threads of the own block
            late &= stamps > table.min(1)[rows][:, np.newaxis]
        if not late.any():
            return late
        entry, word = np.nonzero(late)
        stamp, warp, lane = stamps[entry, word], warps[entry, word], lanes[entry]
        unfenced, local = np.zeros(len(entry), bool), warp // c.residents.warps == c.block[lane // WARP]
        if local.any():
            fences = table[lane[local] // WARP].reshape(-1, c.residents.warps, WARP)
            fences = fences[np.arange(len(fences)), warp[local] % c.residents.warps]
            unfenced[local] = ~self._cover(fences, stamp[local], warp[local])
        if not local.all():
            unfenced[~local] = ~self._fenced_elsewhere(lane[~local], stamp[~local], warp[~local], space)
        late[entry, word] = unfenced
        return late

    def _cover(self, fences: np.ndarray, stamps: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """True where accesses by lanes of warps come before the fences of each lane, (entries, WARP)."""
        lane = stamps & LANE_MASK
        covered = stamps <= fences[np.arange(len(fences)), lane % WARP]
        if (several := lane >= WARP).any():
            covered[several] = self.clocks.crowds.are_known(warps[several], stamps[several], fences[several])
        return covered

    def _fenced_elsewhere(self, lanes: np.ndarray, stamps: np.ndarray, warps: np.ndarray, space: str) -> np.ndarray:
        """True where lanes know of a fence after accesses by threads of other blocks."""
        c, rows = self.clocks, lanes // WARP
        columns = c.fenced_warps(space).start + warps % c.width
        fenced = (warps // c.width == c.cluster[rows]) & (c.proxy_table()[rows, columns] >= stamps)
        for listeners, message in c.messages(lanes):
            which = np.flatnonzero(listeners & ~fenced)
            fenced[which] = self._fenced_by(message, stamps[which], warps[which], space)
        return fenced

    def _fenced_by(self, message: Message, stamps: np.ndarray, warps: np.ndarray, space: str) -> np.ndarray:
        """True where a message makes a fence after accesses known: in any block that it comes from."""
        c, each = self.clocks, self.clocks.residents.warps
        fenced = np.zeros(len(stamps), bool)
        if space in message.fenced:
            fenced |= message.fenced[space].knows(warps, stamps, crowds=c.crowds)
        for block, row in message.proxies.items():
            here = np.flatnonzero(warps // each == block)
            if here.size:
                fences = row[c.fenced_threads(space)].reshape(each, WARP)[warps[here] % each]
                fenced[here] |= self._cover(fences, stamps[here], warps[here])
            cluster = warps // c.width == block * each // c.width
            fenced |= cluster & (row[c.fenced_warps(space)][warps % c.width] >= stamps)
        return fenced
