"""The phase of an mbarrier that threads wait for, and the likely mistake if the wait never ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from ...notes import RingNote
from ...types import b64
from ..memory.access import bytes_text
from ..memory.phase_counts import ArrivalCount, PhaseCounts
from ..report import counted
from ..run.residents import WARP, WARPGROUP

NO_ARRIVALS = ArrivalCount()


@dataclass(frozen=True, slots=True)
class AwaitedPhase:
    """The phase of an mbarrier that lacks `lacking` of `each` arrivals, and `bytes`.

    `name` is the mbarrier as Python indexes it. In a `ring`, `full` is True for the full mbarrier of a stage, False for
    the empty one; `came` counts all arrivals there, and `others` those at the other mbarrier of the stage. Outside of
    rings, `complete` phases of it are complete, and `waits` of a waiting thread have returned.
    """

    name: str
    lacking: int
    each: int
    bytes: int
    ring: RingNote | None = None
    stage: int = 0
    full: bool = False
    came: ArrivalCount = NO_ARRIVALS
    others: ArrivalCount = NO_ARRIVALS
    complete: int = 0
    waits: int = 0

    @property
    def object(self) -> str:
        """The object of the wait: 'for slot 1 of `ring` to be full', 'for the mbarrier bar[0]'."""
        if self.ring is not None:
            return f"for slot {self.stage} of {self.ring.words} to be {'full' if self.full else 'empty'}"
        return f"for the mbarrier {self.name}" if self.name else "for an mbarrier"

    @property
    def state(self) -> str:
        """The arrivals received, and the bytes pending."""
        late = f", {bytes_text(self.bytes)} still pending" if self.bytes > 0 else ""
        return f"{self.arrived} of {self.each} arrivals received{late}"

    @property
    def arrived(self) -> int:
        return self.each - self.lacking


def ring_phase(
    phases: PhaseCounts, slot: int, address: int, ring: RingNote, stage: int, full: bool,
    name: str = "", lacking: int = 0, late: int = 0,
) -> AwaitedPhase:  # fmt: skip
    """Return the phase of an mbarrier of a ring, at an address in the shared memory of the block in a slot."""
    other = address + b64.bytes * (ring.stages if full else -ring.stages)
    came, others = (phases.arrivals(slot, offset) for offset in (address, other))
    each = ring.fillers if full else ring.readers
    return AwaitedPhase(name, lacking, each, late, ring, stage, full, came, others)


def fix_of_deadlock(phases: Sequence[AwaitedPhase], of_barriers: str) -> str:
    """Return the help for threads that wait for these phases forever, or an empty string.

    Arrivals beyond those that phases count are the cause whatever lacks. Otherwise phases with some arrivals come
    first, then barriers of the block, on which the other threads wait.
    """
    ordered = sorted(phases, key=lambda phase: not phase.arrived)
    causes = (_late_bytes, _held_stages, _empty_stages, _arrivals)
    overrun = (text for phase in ordered for cause in (released_too_often, _overrun_full) if (text := cause(phase)))
    texts = (text for phase in ordered if phase.arrived for cause in causes if (text := cause(phase)))
    others = (text for cause in causes for phase in ordered if (text := cause(phase)))
    parities = filter(None, [_missed_phase(ordered), _first_waits(ordered)])
    return next(chain(overrun, parities, texts, filter(None, [of_barriers]), others), "")


def filled_by_copies(ring: RingNote) -> str:
    """Return the help for bulk copies into a ring that was made for threads which write."""
    return f"pass `stage_bytes=` instead of `producers=` for {ring.made_at}, whose stages are filled by copies"


def _missed_phase(phases: Sequence[AwaitedPhase]) -> str:
    """A wait for a parity of which the phase is already complete and the next of that parity never completes."""
    missed = next((phase for phase in phases if phase.ring is None and phase.complete > phase.waits), None)
    if missed is None:
        return ""
    return (
        f"{counted(missed.complete, 'phase')} of {missed.name} {'is' if missed.complete == 1 else 'are'} complete, and "
        f"these threads have waited for {missed.waits}: wait for parity {missed.waits % 2}, and flip the parity after "
        "each phase"
    )


def _first_waits(phases: Sequence[AwaitedPhase]) -> str:
    """Several mbarriers at which no thread has ever arrived: each role waits for the other to arrive first."""
    names = [phase.name for phase in phases if phase.ring is None and phase.name]
    if len(names) < 2 or any(phase.arrived or phase.complete or phase.bytes > 0 for phase in phases):
        return ""
    return (
        f"no thread has arrived at {' or '.join(dict.fromkeys(names))} yet, so one of these waits must pass at first: "
        "the producer's first wait for an empty stage takes parity 1"
    )


def _late_bytes(phase: AwaitedPhase) -> str:
    """Bytes that were announced and that no copy transfers: every copy ends."""
    if phase.lacking or phase.bytes <= 0:
        return ""
    bytes, ring = bytes_text(phase.bytes), phase.ring
    if ring is None:
        return f"expect_tx announced {bytes} more{_at(phase)} than the copies that complete there transfer"
    return f"the copies into slot {phase.stage} transfer {bytes} less than {ring.made_at} announces for a stage"


def released_too_often(phase: AwaitedPhase) -> str:
    """A stage that was released more often than it was filled."""
    ring, came, filled = phase.ring, phase.came, phase.others.total
    if ring is None or phase.full or came.total <= filled // ring.fillers * ring.readers:
        return ""
    rounds, release = filled // ring.fillers, f"`{ring.called}.release()`"
    story = (
        f"slot {phase.stage} of {ring.made_at} was filled {_times(rounds)} and released {_times(came.total)}, by "
        f"{counted(came.threads, 'thread')}; {_counts(ring)}"
    )
    if not rounds:
        return f"{story}; call {release} after `{ring.called}.wait()`, once per phase"
    if came.most > rounds:
        return f"{story}; call {release} once per phase, after the last read of the stage"
    threads = -(-came.total // rounds) // ring.cluster * ring.each
    return f"{story}; pass `consumers={threads}`, or call {release} in fewer threads"


def _overrun_full(phase: AwaitedPhase) -> str:
    """A stage that was committed more often than it was empty."""
    ring, came = phase.ring, phase.came
    if ring is None or not phase.full or ring.stage_bytes is not None:
        return ""
    rounds, commit = phase.others.total // ring.readers + 1, f"`{ring.called}.commit()`"
    if came.total <= rounds * ring.fillers:
        return ""
    story = (
        f"slot {phase.stage} of {ring.made_at} was empty {_times(rounds)} and committed {_times(came.total)}, by "
        f"{counted(came.threads, 'thread')}; `producers=` counts {ring.fillers} per phase"
    )
    if came.most > rounds:
        return f"{story}; call {commit} once per phase, after `{ring.called}.acquire()`"
    return f"{story}; pass `producers={-(-came.total // rounds)}`, or call {commit} in fewer threads"


def _counts(ring: RingNote) -> str:
    """The number of arrivals that empty a stage, in the words of the call."""
    if ring.each == 1 and ring.cluster == 1:
        return f"`consumers=` counts {ring.readers} per phase"
    consumers = ring.readers // ring.cluster * ring.each
    who = {WARP: "one of each warp", WARPGROUP * WARP: "one of each warpgroup"}.get(ring.each, "one of each thread")
    blocks = f" in {ring.cluster} blocks" * (ring.cluster > 1)
    return f"`consumers={consumers}` counts {ring.readers} per phase, {who}{blocks}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _held_stages(phase: AwaitedPhase) -> str:
    if phase.ring is None or phase.full or not phase.lacking:
        return ""
    who = f"only {phase.arrived} of {phase.each} {_unit(phase)} release" if phase.arrived else "no thread releases"
    release = f"call `{phase.ring.called}.release()` after the last read of each stage, {_all(phase, 'consumers')}"
    if phase.arrived and phase.ring.cluster == 1:
        release = f"pass `consumers={phase.arrived * phase.ring.each}`, or {release}"
    return f"{who} slot {phase.stage} of {phase.ring.made_at}; {release}"


def _empty_stages(phase: AwaitedPhase) -> str:
    if phase.ring is None or not phase.full or not phase.lacking:
        return ""
    ring, called = phase.ring, phase.ring.called
    if ring.stage_bytes is not None:
        rounds = f"`{called}.commit()` after the copies of each stage, as often as `{called}.wait()`"
        return f"no thread fills slot {phase.stage} of {ring.made_at}; call {rounds}"
    who = f"only {phase.arrived} of {phase.each} threads commit" if phase.arrived else "no thread commits"
    commit = f"`{called}.commit()` after the writes of each stage"
    return f"{who} slot {phase.stage} of {ring.made_at}; call {commit}, {_all(phase, 'producers')}"


def _all(phase: AwaitedPhase, who: str) -> str:
    if who == "consumers" and _unit(phase) == "arrivals":
        return f"for all {phase.each} arrivals that `{who}=` counts"
    return f"in all {phase.each} threads that `{who}=` counts"


def _unit(phase: AwaitedPhase) -> str:
    """The unit in which the arrivals that empty a stage are counted: threads, if each arrives for itself."""
    return "threads" if phase.ring is not None and phase.ring.each == phase.ring.cluster == 1 else "arrivals"


def _arrivals(phase: AwaitedPhase) -> str:
    if phase.ring is not None or not phase.lacking:
        return ""
    return (
        f"execute {phase.each} mbarrier.arrive{_at(phase)}, the count of its mbarrier.init; if they arrived in the "
        "previous phase, wait for the other parity"
    )


def _at(phase: AwaitedPhase) -> str:
    return f" at {phase.name}" if phase.name else ""
