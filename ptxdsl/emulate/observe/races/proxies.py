"""What warps know of the async proxy: which bulk copies have landed, and what was fenced for it.

A copy that lands in shared memory is no thread's access: it is known to those who waited for its mbarrier. What a
thread wrote through the generic proxy is seen by the async proxy once a `fence.proxy.async` stands behind it on the way
to the instruction. Both are kept in one table, and spread as other knowledge does: by barriers, releases and acquires.
"""

from __future__ import annotations

import numpy as np

from ...run.residents import WARP
from .clocks import Clocks, Message, thread_number
from .stamps import ASYNC_LANE, LANDED, LANDINGS, LANE_MASK, SEVERAL, STAMP


class Proxies:
    """The numbers of mbarriers, and what lanes fence; `heard` has the message that a warp or a thread fenced last."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.numbers: dict[int, int] = {}
        self.heard: dict[tuple[str, int], int] = {}

    def landing(self, slots: np.ndarray, mbarriers: np.ndarray) -> np.ndarray:
        """The numbers under which the landings at mbarriers, by slots and addresses there, stand for warps."""
        numbers = [
            self.numbers.setdefault(address, min(len(self.numbers), LANDINGS - 1)) for address in mbarriers.tolist()
        ]
        return LANDED | (self.clocks.block[slots] * LANDINGS + np.array(numbers)).astype(STAMP)

    def message(self, landing: int, now: int, readers: np.ndarray) -> Message:
        """What those learn who wait for an mbarrier: that copies landed, and that they have read for warps."""
        c = self.clocks
        block, number = divmod(landing - int(LANDED), LANDINGS)
        row = np.zeros(c.proxy_table().shape[1], STAMP)
        row[number] = now | SEVERAL
        threads = {thread_number(warp, ASYNC_LANE): now | ASYNC_LANE for warp in set(readers.tolist())}
        return Message(c.blank().warps, threads, proxies={block: row})

    def fence(self, lanes: np.ndarray, now: int) -> None:
        """Lanes order what they know of the generic proxy before the async proxy."""
        c, table = self.clocks, self.clocks.proxy_table()
        rows = lanes // WARP
        several = np.unique(rows)
        first = c.column[several] - c.warp_in_block[several]
        seen = np.take_along_axis(c.seen[several], first[:, np.newaxis] + np.arange(c.residents.warps), axis=1)
        table[several, LANDINGS:] = np.maximum(table[several, LANDINGS:], np.repeat(seen, WARP, axis=1))
        table[rows, LANDINGS + c.warp_in_block[rows] * WARP + lanes % WARP] = now
        for row in several.tolist() if c.far else ():
            self._fence_message(row, "warp", int(c.warp[row]), c.far.get(int(c.warp[row])))
        for row, thread in zip(rows.tolist(), c.threads(lanes), strict=True) if c.near else ():
            self._fence_message(row, "thread", thread, c.near.get(thread))

    def _fence_message(self, row: int, of: str, number: int, message: Message | None) -> None:
        """A warp, or one thread of it, fences what it learned by a message of accesses by threads of its block."""
        if message is None or self.heard.get((of, number)) == message.serial:
            return
        self.heard[of, number] = message.serial
        warps = self.clocks.residents.warps
        first = int(self.clocks.block[row]) * warps
        known = np.repeat(message.warps[first : first + warps], WARP)
        for thread, stamp in message.threads.items():
            if first <= thread // WARP < first + warps:
                index = thread - first * WARP
                known[index] = max(int(known[index]), stamp)
        fenced = self.clocks.proxy_table()[row, LANDINGS:]
        np.maximum(fenced, known, out=fenced)

    def unfenced(self, rows: np.ndarray, stamps: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Which earlier accesses through the generic proxy, (entries, words), by threads of the same blocks were not
        fenced for the async proxy."""
        c, table = self.clocks, self.clocks.proxy_table()[:, LANDINGS:]
        late = (stamps > table.min(1)[rows][:, np.newaxis]) & (warps < LANDED)
        if not late.any():
            return late
        block, warp = np.divmod(warps, STAMP.type(c.residents.warps))
        late &= block == c.block[rows][:, np.newaxis]
        if not late.any():
            return late
        entry, word = np.nonzero(late)
        stamp, warp, row = stamps[entry, word], warp[entry, word], rows[entry]
        fenced = table.reshape(c.rows, -1, WARP)
        lane = stamp & LANE_MASK
        unfenced = stamp > fenced[row, warp, lane % WARP]
        if (several := lane >= WARP).any():
            of_lanes = fenced[row[several], warp[several]]
            unfenced[several] = ~c.crowds.are_known(warps[entry, word][several], stamp[several], of_lanes)
        late[entry, word] = unfenced
        return late
