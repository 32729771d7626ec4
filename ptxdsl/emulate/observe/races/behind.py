"""Accesses behind others of the same words, which later ones may race with all the same.

Who is ordered behind the last write of a word is ordered behind what its writer was ordered behind. That of a strong
write need not be all: atomics of other threads race neither with it nor with each other, but with a weak access that
comes later. Only those whose value an `atom` gave to its thread come before what that thread does next (PTX ISA,
"Observation order", "Causality order"), as in a block that counts itself, is the last, and clears the counter. That
holds until its warp runs another `atom`: what it does then it decides by that one, and the order of the first was luck.
`red` observes as well, but tells its thread nothing by which it could decide. And a strong access races with a weaker
one before it, though not with a stronger one in between.
"""

from __future__ import annotations

import numpy as np

from ...memory.access import READS, WRITES, Access
from ...memory.regions import PAGE
from .accesses import Accessors
from .checks import Checks
from .clocks import Clocks
from .journal import DEVICE, Journal, strength, unit_of
from .shadow import GENERIC, OBSERVED, STRONG, GlobalShadow, Shadow, SharedShadow, Words
from .stamps import TICK

_FEW = 256  # words of an event, of which all writers are remembered; of more words one of them


class Behind:
    """Remembers such accesses in shadows, and holds later ones against them."""

    def __init__(self, journal: Journal, clocks: Clocks, checks: Checks) -> None:
        self.journal, self.clocks, self.checks = journal, clocks, checks
        self.latest = np.zeros(1, np.int64)  # by warps, when each ran its last `atom`

    # What was done

    def write(self, access: Access | None, shadow: Shadow, who: Accessors) -> None:
        """Writes come now, before the shadow has them; None stands for weak ones."""
        if access is None or not strength(access.ordering):
            shadow.reveal(who.words)
            return
        stamps, warps = shadow.writes.take(who.words)
        self._hide(WRITES, access, shadow, who.words, stamps, warps)
        unknown = self.checks.unknown(who, stamps, warps)
        if unknown is not None:
            strong = self.journal.strengths_of(stamps) > 0
            self._keep_by_kind(access, shadow, who, unknown & strong, stamps, warps)
        if access.tells_what_was_there:
            self._note_latest(self.clocks.warp[who.rows])

    def lose(
        self, access: Access, shadow: Shadow, who: Accessors, lost: np.ndarray, stamps: np.ndarray, warps: np.ndarray
    ) -> None:
        """Of strong writes that were made, (entries,), others of the step replaced some, (entries, words of each)."""
        observed = self._observed(access, who, *shadow.writes.take(who.words))
        each = [np.broadcast_to(values[:, np.newaxis], lost.shape) for values in (stamps, warps)]
        self._keep(STRONG, shadow, who.words, lost & ~observed, *each)
        self._keep(OBSERVED, shadow, who.words, lost & observed, *each)

    def _keep_by_kind(
        self, access: Access, shadow: Shadow, who: Accessors, which: np.ndarray, stamps: np.ndarray, warps: np.ndarray
    ) -> None:
        observed = self._observed(access, who, stamps, warps)
        self._keep(STRONG, shadow, who.words, which & ~observed, stamps, warps)
        self._keep(OBSERVED, shadow, who.words, which & observed, stamps, warps)

    def _note_latest(self, warps: np.ndarray) -> None:
        """Warps run an `atom` now."""
        most = int(warps.max()) + 1
        if most > len(self.latest):
            self.latest = np.concatenate([self.latest, np.zeros(most, np.int64)])
        self.latest[warps] = self.journal.now // TICK

    def _is_latest(self, stamps: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Which writes are the last `atom` of their warps."""
        known = warps < len(self.latest)
        latest: np.ndarray = known & (self.latest[np.where(known, warps, 0)] == stamps // TICK)
        return latest

    def _observed(self, access: Access, who: Accessors, stamps: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Which writes, (entries, words of each), an access gives to its threads, or is given to theirs."""
        if not access.tells_what_was_there:
            return np.zeros(stamps.shape, bool)
        return self.checks.both_strong(access, who.rows[:, np.newaxis], stamps, warps)

    def reads_in_shared(self, access: Access, shadow: SharedShadow, who: Accessors) -> None:
        """Strong reads come: keeps weaker ones by the same warps, in shared memory."""
        stamps = shadow.readers.take(shadow.reads_of(who.words, self.clocks.warp_in_block[who.rows]))
        warps = np.broadcast_to(self.clocks.warp[who.rows][:, np.newaxis], stamps.shape)
        self._hide(READS, access, shadow, who.words, stamps, warps)

    def reads_in_global(self, access: Access, shadow: GlobalShadow, who: Accessors) -> None:
        """The same in global memory."""
        for stamps, warps in (readers.take(who.words) for readers in shadow.readers):
            of_warp = np.where(warps == self.clocks.warp[who.rows][:, np.newaxis], stamps, 0)
            self._hide(READS, access, shadow, who.words, of_warp, warps)

    def generic_reads(self, shadow: SharedShadow, who: Accessors) -> None:
        """The async proxy reads shared memory for threads, before the shadow has it: their own reads need a fence."""
        index = who.words.first * shadow.grain // PAGE, self.clocks.warp_in_block[who.rows]
        if shadow.pages is None or not shadow.pages.generic_reads[index].any():
            return
        stamps = shadow.readers.take(shadow.reads_of(who.words, index[1]))
        which = stamps != 0
        which[which] = self.journal.are_generic(stamps[which])
        if which.any():
            warps = np.broadcast_to(self.clocks.warp[who.rows][:, np.newaxis], stamps.shape)[which]
            shadow.hide(GENERIC, who.words.all.reshape(which.shape)[which], stamps[which], warps, np.zeros_like(warps))

    def _hide(
        self, kind: str, access: Access, shadow: Shadow, words: Words, stamps: np.ndarray, warps: np.ndarray
    ) -> None:
        """Remember those of the last accesses to words that reach less far than this one, or are of another size."""
        weaker = self.journal.strengths_of(stamps) < strength(access.ordering)
        weaker |= self.journal.units[stamps // TICK] != unit_of(access.ordering, access.unit)
        weaker &= stamps != 0
        if weaker.any():
            sorts = self.journal.sorts_of(stamps[weaker])
            shadow.hide(kind, words.all.reshape(weaker.shape)[weaker], stamps[weaker], warps[weaker], sorts)

    def _keep(
        self, kind: str, shadow: Shadow, words: Words, which: np.ndarray, stamps: np.ndarray, warps: np.ndarray
    ) -> None:
        """Remembers strong writes that others replace."""
        each = words.all.reshape(which.shape)[which]
        if not each.size:
            return
        stamps, warps = stamps[which], warps[which]
        if each.size > _FEW and kind == OBSERVED:
            each, first = np.unique(each, return_index=True)
            stamps, warps = stamps[first], warps[first]
        elif each.size > _FEW:
            shadow.keep_another(each, stamps, warps)
            return
        shadow.hide(kind, each, stamps, warps, self.journal.sorts_of(stamps))

    # What comes later

    def check(self, access: Access, who: Accessors, shadow: Shadow, kind: str = WRITES) -> None:
        """Check a strong access against hidden ones of another sort, and a weak one against hidden strong writes."""
        strong = strength(access.ordering)
        if kind == READS and not strong:
            return
        unit = unit_of(access.ordering, access.unit)
        harmless = unit * (DEVICE + 1) + DEVICE if strong == DEVICE else None  # morally strong with any other
        kinds = (kind,) * (strong > 0) + (STRONG, OBSERVED) * (kind == WRITES)
        for (behind, sort), hidden in shadow.hidden.items():
            if behind not in kinds or sort == harmless:
                continue
            entry, stamps, warps = hidden.of(who.words.all)
            if behind == OBSERVED and entry.size:
                racy = self._is_unobserved(who, shadow, entry)
                entry, stamps, warps = entry[racy], stamps[racy], warps[racy]
            if entry.size:
                accessors = who.only(entry // who.words.width)
                self.checks.earlier(access, accessors, stamps[:, np.newaxis], warps[:, np.newaxis], kind)
        if shadow.others is not None and strong < DEVICE and kind == WRITES:
            self.checks.earlier(access, who, *shadow.others.take(who.words), kind)

    def _is_unobserved(self, who: Accessors, shadow: Shadow, entry: np.ndarray) -> np.ndarray:
        """Return which accesses, by words, race with writes that an `atom` observed: unless that is the last one of its
        warp and precedes the access."""
        last, writers = (plane.reshape(-1)[entry] for plane in shadow.writes.take(who.words))
        accessors = who.only(entry // who.words.width)
        return ~self._is_latest(last, writers) | self._are_unordered(accessors, last, writers)

    def _are_unordered(self, who: Accessors, stamps: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Return which earlier writes, (entries,), nothing orders before the accesses of `who`."""
        unknown = self.checks.unknown(who, stamps[:, np.newaxis], warps[:, np.newaxis])
        if unknown is None:
            return np.zeros(stamps.shape, bool)
        unordered: np.ndarray = unknown[:, 0]
        which = np.flatnonzero(unordered)
        unordered[which] = self.clocks.unordered(who.lanes[which], warps[which], stamps[which], False)
        return unordered
