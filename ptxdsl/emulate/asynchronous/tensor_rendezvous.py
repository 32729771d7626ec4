"""Rendezvous of warps that execute a tcgen05 instruction together: one warp of each CTA of a pair, or one warp alone.

The first warp waits for the other (PTX ISA, "Issue Granularity"): it may block there, so a kernel must not rely on
either warp going on before.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from ..memory.access import Origin
from ..memory.distributed import ended
from ..run.executor import Executor
from ..run.residents import WARP, Residents
from .bulk import Resumption

PAIR = "cta_group::2"


@dataclass(eq=False, slots=True)
class Participant:
    """A warp that has arrived, and the operands that it passes."""

    row: int
    slot: int
    values: tuple[int, ...]
    origin: Origin
    resume: Resumption

    def acting(self) -> AbstractContextManager[None]:
        """Return a context in which the warp acts for its instruction."""
        return self.resume(self.row * WARP + np.arange(WARP))


@dataclass(eq=False, slots=True)
class Rendezvous:
    """An instruction that warps of the CTAs in `slots` execute together, even CTA first, and its result."""

    instruction: str
    slots: tuple[int, ...]
    participants: list[Participant] = field(default_factory=list)
    is_done: bool = False
    result: int = 0

    @property
    def is_complete(self) -> bool:
        """True if a warp of each CTA has arrived."""
        return len(self.participants) == len(self.slots)


class RendezvousTable:
    """The rendezvous that have begun and that some warp has not left."""

    def __init__(self, residents: Residents) -> None:
        self.residents = residents
        self.begun: list[Rendezvous] = []

    def of_warp(self, row: int) -> Rendezvous | None:
        """Return the rendezvous where a warp waits, or None."""
        return next((each for each in self.begun if any(warp.row == row for warp in each.participants)), None)

    def join(self, x: Executor, group: str, *values: np.ndarray) -> list[Rendezvous]:
        """Let warps arrive that have not yet, with operands (warps,), and return the rendezvous of each."""
        rows = (x.lanes_now[::WARP] // WARP).tolist()
        operands = zip(*(value.tolist() for value in values), strict=True) if values else [()] * len(rows)
        return [self._join(x, group, row, each) for row, each in zip(rows, operands, strict=True)]

    def _join(self, x: Executor, group: str, row: int, values: tuple[int, ...]) -> Rendezvous:
        if (waiting := self.of_warp(row)) is not None:
            return waiting
        slot = row % self.residents.slots
        slots = tuple(self.slots(np.array([slot]), 2 if group == PAIR else 1)[:, 0].tolist())
        instruction = x.name.partition(".cta_group")[0]
        joins = (
            each
            for each in self.begun
            if not (each.is_complete or each.is_done)
            and each.slots == slots
            and each.instruction == instruction
            and each.participants[0].slot != slot
        )
        rendezvous = next(joins, None)
        if rendezvous is None:
            rendezvous = Rendezvous(instruction, slots)
            self.begun.append(rendezvous)
        rendezvous.participants.append(Participant(row, slot, values, x.origin, x.resumption()))
        rendezvous.participants.sort(key=lambda warp: rendezvous.slots.index(warp.slot))
        return rendezvous

    def leave(self, x: Executor, rows: np.ndarray) -> None:
        """Let warps go on; a rendezvous ends when all have."""
        gone = set(rows.tolist())
        for rendezvous in self.begun:
            if rendezvous.is_done:
                rendezvous.participants = [warp for warp in rendezvous.participants if warp.row not in gone]
        self.begun = [rendezvous for rendezvous in self.begun if rendezvous.participants]

    def slots(self, slots: np.ndarray, ctas: int) -> np.ndarray:
        """Return the slots, (ctas, n), of the CTAs of the groups of some blocks; -1 for those that have ended."""
        if ctas == 1:
            return slots[np.newaxis]
        r = self.residents
        even = r.rank[slots] & ~1
        return np.stack([r.peers[r.cluster_of[slots], even + cta] for cta in range(ctas)])

    def lacking(self, x: Executor, rendezvous: Rendezvous) -> str:
        """Describe the warp that a warp of a pair waits for."""
        r, here = self.residents, rendezvous.participants[0].slot
        block = r.numbered(int(r.ordinals[here]) ^ 1, 0).block_text
        there = next(slot for slot in rendezvous.slots if slot != here)
        has_ended = there < 0 or bool(ended(r, x.alive)[there])
        return f", for a warp of block {block}, which {'has ended' if has_ended else 'has not executed it'}"

    def move(self, residents: Residents, rows: np.ndarray, slots: np.ndarray) -> None:
        """Renumber warps and slots; -1 for those that have ended."""
        self.residents = residents
        for rendezvous in self.begun:
            rendezvous.slots = tuple(int(slots[slot]) if slot >= 0 else -1 for slot in rendezvous.slots)
            for warp in rendezvous.participants:
                warp.row, warp.slot = int(rows[warp.row]), int(slots[warp.slot])
