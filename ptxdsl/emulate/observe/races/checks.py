"""The check of accesses against earlier ones, by knowledge, strength and stored values, and the finding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from ....isa.step import ASYNC, BULK_REDUCTION
from ...memory.access import READS, WRITES, Access
from ...run.residents import WARP
from .accesses import Accessors
from .clocks import SPACES, Clocks
from .initialised import Initialisation
from .journal import BLOCK, CLUSTER, DEVICE, Journal, strength, unit_of
from .proxies import Proxies
from .shadow import GENERIC, Shadow, SharedShadow, each_once
from .stamps import LANE_MASK, LATEST, STAMP, TICK, are_async, are_crowds
from .telling import Conflict, Told, tell, tell_of_fence

COPIES = (ASYNC, BULK_REDUCTION)  # the data of copies; mbarriers count their bytes with another ordering

# Of some accessors, the entries that conflict, and the stamps and warps of what each conflicts with
Conflicts: TypeAlias = tuple[Accessors, np.ndarray, np.ndarray, np.ndarray]


class Checks:
    """Collects the conflicts of an access, in `conflicts` and `unfenced`, until they are reported.

    With `is_strict` those in `unfenced` make a strict finding. With `has_async_reads`, the async proxy read shared
    memory for warps, of which the clocks of these say nothing. `issued` is the stamp of the issue of stores that are
    carried out now: later accesses, also by their own threads, do not precede them.
    """

    def __init__(self, journal: Journal, clocks: Clocks, proxies: Proxies) -> None:
        self.journal, self.clocks, self.proxies = journal, clocks, proxies
        self.conflicts: list[Conflicts] = []
        self.unfenced: list[Conflicts] = []
        self.is_strict = self.has_async_reads = False
        self.issued = STAMP.type(LATEST)

    def fences(self, access: Access, who: Accessors, shadow: Shadow) -> None:
        """Check what the async proxy will do against earlier writes through the generic proxy and, in global memory,
        through the async proxy by other blocks, unless both are reductions."""
        if access.ordering not in COPIES or self.conflicts:
            return
        space = _space(shadow)
        stamps, warps = each_once(*shadow.writes.take(who.words))
        entry, word = np.nonzero(self.proxies.unfenced(who.lanes, stamps, warps, space))
        if entry.size:
            stamps, warps, rows = stamps[entry, word], warps[entry, word], who.rows[entry]
            which = self.journal.are_generic(stamps)
            if space == "global":
                other_block = warps // self.clocks.residents.warps != self.clocks.block[rows]
                which |= other_block & ~self.both_strong(access, rows, stamps, warps)
            if which.any():
                self.unfenced.append((who, entry[which], stamps[which], warps[which]))

    def read_fences(self, access: Access, who: Accessors, shadow: SharedShadow) -> None:
        """Check what the async proxy will write against what threads of the block that owns the bytes read through the
        generic proxy.

        A read that a barrier separates from the write is an error; one that an mbarrier or a flag separates is strict,
        and is kept only if there is no error.
        """
        if access.ordering not in COPIES or access.kind == READS or self.conflicts or self.unfenced:
            return
        strict: list[Conflicts] = []
        for readers, stamps, warps in self._reads(who, shadow):
            entry, word = np.nonzero(self.proxies.unfenced(readers.lanes, stamps, warps, "shared"))
            if entry.size:
                generic = self.journal.are_generic(stamps[entry, word])
                entry, word = entry[generic], word[generic]
            errors = self.clocks.barriers[readers.rows[entry]] > stamps[entry, word]
            for which, conflicts in ((errors, self.unfenced), (~errors, strict)):
                if which.any():
                    at = entry[which], word[which]
                    conflicts.append((readers, at[0], stamps[at], warps[at]))
        if not self.unfenced:
            self.unfenced, self.is_strict = strict, bool(strict)

    def _reads(self, who: Accessors, shadow: SharedShadow) -> Iterator[tuple[Accessors, np.ndarray, np.ndarray]]:
        """Yield accessors with the last reads of their words by a warp of the block, and with those behind them."""
        slot = who.words.first * shadow.grain // shadow.stride
        first = self.clocks.residents.ordinals[slot] * self.clocks.residents.warps
        for warp in range(self.clocks.residents.warps):
            stamps = shadow.readers.take(shadow.reads_of(who.words, warp))
            warps = np.broadcast_to((first + warp).astype(STAMP)[:, np.newaxis], stamps.shape)
            yield who, *each_once(stamps, warps)
        for entry, stamps, warps in shadow.hidden_of(GENERIC, who.words):
            yield who.only(entry), stamps, warps

    def initialised(self, who: Accessors, unfenced: list[tuple[int, Initialisation]]) -> None:
        """Record copies that complete at mbarriers whose initialisation the async proxy may not see."""
        for n, known in unfenced:
            self.unfenced.append((who.only(np.array([n])), *np.array([[0], [known.stamp], [known.warp]])))
            self.is_strict = True

    def earlier(self, access: Access, who: Accessors, stamps: np.ndarray, warps: np.ndarray, kind: str) -> None:
        """Check accesses against earlier ones, (entries, words of an entry)."""
        if not stamps.any():
            return
        stamps, warps = each_once(stamps, warps)
        unknown = self.unknown(who, stamps, warps)
        if unknown is not None:
            entry, part = np.nonzero(unknown)
            stamps, warps = stamps[entry, part], warps[entry, part]
            if kind == READS and strength(access.ordering):
                entry, stamps, warps = self._apart(who, entry, stamps, warps)
            self._sift(access, who, entry, stamps, warps, kind)

    def _apart(
        self, who: Accessors, entry: np.ndarray, stamps: np.ndarray, warps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Replace crowds by the last reads of their lanes, of which some may be strong and others weak."""
        crowds = np.flatnonzero(are_crowds(stamps))
        if not crowds.size:
            return entry, stamps, warps
        readers = self.clocks.crowds.readers(warps[crowds], stamps[crowds])
        each, lane = np.nonzero(readers)
        index = np.append(np.flatnonzero(~are_crowds(stamps)), crowds[each])
        stamps = np.append(np.delete(stamps, crowds), readers[each, lane])
        entry, warps = entry[index], warps[index]
        unknown = self.unknown(who.only(entry), stamps[:, np.newaxis], warps[:, np.newaxis])
        which = np.zeros(len(entry), bool) if unknown is None else unknown[:, 0]
        return entry[which], stamps[which], warps[which]

    def unknown(self, who: Accessors, stamps: np.ndarray, warps: np.ndarray) -> np.ndarray | None:
        """Return which earlier accesses, (entries, words of an entry), the clocks of the warps do not cover."""
        rows = who.rows[:, np.newaxis]
        if stamps.shape[1] > 1:
            rows = np.broadcast_to(rows, stamps.shape)
        late: np.ndarray = stamps > np.minimum(self.clocks.limits(rows, warps), self.issued)
        if self.has_async_reads:
            late |= are_async(stamps)
        if not late.any():
            return None
        same_lane = (warps == self.clocks.warp[rows]) & (stamps & LANE_MASK == (who.lanes % WARP)[:, np.newaxis])
        late &= ~same_lane | (stamps > self.issued)
        return late if late.any() else None

    def _sift(
        self,
        access: Access,
        who: Accessors,
        entry: np.ndarray,
        stamps: np.ndarray,
        warps: np.ndarray,
        kind: str,
    ) -> None:
        """Drop pairs that do not race (morally strong, equal values, known by messages), and keep the rest."""
        racy = ~self.both_strong(access, who.rows[entry], stamps, warps)
        if access.kind == WRITES and kind == WRITES and access.items is not None:
            racy &= self.journal.are_updates(stamps) | ~leaves_the_same(access)[who.number[entry]]
        if racy.any():
            entry, stamps, warps = entry[racy], stamps[racy], warps[racy]
            racy = self.clocks.unordered(who.lanes[entry], warps, stamps, kind == READS) | (stamps > self.issued)
        if racy.any():
            self.conflicts.append((who, entry[racy], stamps[racy], warps[racy]))

    def both_strong(self, access: Access, rows: np.ndarray, stamps: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """True where accesses and earlier ones are morally strong: of one size and through one proxy, with scopes
        that include each other."""
        reach = strength(access.ordering)
        if not reach:
            return np.zeros(len(rows), bool)
        common = np.minimum(self.journal.strengths_of(stamps), reach)
        same_block = warps // self.clocks.residents.warps == self.clocks.block[rows]
        same_cluster = self.clocks.clusters_of(warps) == self.clocks.cluster[rows]
        alike = self.journal.units[stamps // TICK] == unit_of(access.ordering, access.unit)
        return alike & (common >= np.where(same_block, BLOCK, np.where(same_cluster, CLUSTER, DEVICE)))

    def same_step(
        self, access: Access, who: Accessors, entry: np.ndarray, stamps: np.ndarray, warps: np.ndarray
    ) -> None:
        """Check accesses whose words another lane wrote in the same step, (entries, words of each)."""
        stamps, warps = stamps[entry, 0], warps[entry, 0]
        racy = ~self.both_strong(access, who.rows[entry], stamps, warps)
        if access.items is not None:
            racy &= ~stores_the_same(access)[who.number[entry]]
        if racy.any():
            self.conflicts.append((who, entry[racy], stamps[racy], warps[racy]))

    def report(self, access: Access) -> None:
        """Report the first conflict of an access, for all lanes that have any."""
        if not (self.conflicts or self.unfenced):
            return
        fence, strict = not self.conflicts, self.is_strict
        conflicts = self.conflicts or self.unfenced
        self.conflicts, self.unfenced, self.is_strict = [], [], False
        which = np.zeros(access.address.shape, bool)
        for who, entry, _, _ in conflicts:
            which.reshape(-1)[who.number[entry]] = True
        who, entry, stamps, warps = min(conflicts, key=lambda c: int(c[0].number[c[1]].min()))
        first = int(np.argmin(who.number[entry]))
        earlier = self.journal.told[int(stamps[first]) // TICK]
        assert earlier is not None
        lane = int(who.lanes[entry[first]])
        conflict = Conflict(
            access, int(access.address.reshape(-1)[who.number[entry[first]]]), lane, earlier, int(warps[first]),
            int(stamps[first]) % TICK, self.clocks.residents, self._leaves_warps(conflicts, earlier),
        )  # fmt: skip
        if fence:
            tell_of_fence(conflict, which, strict, self._fenced_space(access, lane, stamps[first], warps[first]))
        else:
            tell(conflict, which)

    def _fenced_space(self, access: Access, lane: int, stamp: np.uint32, warp: np.uint32) -> str:
        """Return the space of a proxy fence after an earlier access, which orders other memory; "" if there is none."""
        space = SPACES[access.space.startswith("shared")]
        unfenced = self.proxies.unfenced(np.array([lane]), np.array([[stamp]], STAMP), np.array([[warp]], STAMP), space)
        return "" if unfenced.any() else space

    def _leaves_warps(self, conflicts: list[Conflicts], earlier: Told) -> bool:
        """True if accesses conflict with those of the earlier instruction by another warp of their block."""
        for who, entry, stamps, warps in conflicts:
            rows = who.rows[entry]
            others = (warps != self.clocks.warp[rows]) & (
                warps // self.clocks.residents.warps == self.clocks.block[rows]
            )
            tolds = [self.journal.told[tick] for tick in np.unique(stamps[others] // TICK).tolist()]
            if any(told is not None and told.origin is earlier.origin for told in tolds):
                return True
        return False


def _space(shadow: Shadow) -> str:
    return "shared" if isinstance(shadow, SharedShadow) else "global"


def _items(access: Access) -> np.ndarray:
    """Return the bytes that a store writes, (accesses, bytes)."""
    assert access.items is not None
    return np.ascontiguousarray(access.items).reshape(-1, 1).view(np.uint8)


def leaves_the_same(access: Access) -> np.ndarray:
    """Return which accesses of a store leave memory unchanged."""
    flat = access.flat.reshape(-1) if access.allowed is None else np.where(access.allowed, access.flat, 0).reshape(-1)
    old = access.region.read(flat, access.size).reshape(-1, 1).view(np.uint8)
    return (old == _items(access)).all(1)


def stores_the_same(access: Access) -> np.ndarray:
    """Return which accesses of a store write bytes to which all others of the step write the same."""
    flat, items = access.flat.reshape(-1), _items(access)
    order = np.argsort(flat, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(flat[order]) != 0))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(flat))))
    first = items[order][starts]
    differs = (items[order] != first[group]).any(1)
    uniform = np.ones(len(starts), bool)
    uniform[group[differs]] = False
    result = np.zeros(len(flat), bool)
    result[order] = uniform[group]
    return result
