"""The phases of mbarriers that threads wait for: whose they are, what they lack, and what would complete them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ...isa.mbarrier import object_arrivals, pending_bytes
from ...isa.step import Awaited
from ...notes import RingNote
from ...types import b64
from ..memory.access import bytes_text
from ..observe.arrivals import ArrivalCount
from ..report import counted
from .core import Core
from .decode import Decoded
from .executor import Executor
from .residents import WARP, WARPGROUP
from .scheduler import Group

NOBODY = ArrivalCount()
LOOP = 32  # so many instructions of a loop are looked at for what it waits for


@dataclass(frozen=True, slots=True)
class AwaitedPhase:
    """The phase of an mbarrier that waits for `lacking` of `each` arrivals, and for bytes.

    `name` is the mbarrier as Python indexes it. That of a ring says whether a `stage` is full, or is empty; `came` has
    all arrivals there, and `others` those at the mbarrier of the other side of the stage.
    """

    name: str
    lacking: int
    each: int
    bytes: int
    ring: RingNote | None = None
    stage: int = 0
    full: bool = False
    came: ArrivalCount = NOBODY
    others: ArrivalCount = NOBODY

    @property
    def object(self) -> str:
        """What is waited for: 'for slot 1 of `ring` to be full', 'for the mbarrier bar[0]'."""
        if self.ring is not None:
            return f"for slot {self.stage} of {self.ring.words} to be {'full' if self.full else 'empty'}"
        return f"for the mbarrier {self.name}" if self.name else "for an mbarrier"

    @property
    def state(self) -> str:
        """What has come, and what has not."""
        late = f", {bytes_text(self.bytes)} still pending" if self.bytes > 0 else ""
        return f"{self.arrived} of {self.each} arrivals received{late}"

    @property
    def arrived(self) -> int:
        return self.each - self.lacking


def awaited(machine: Core, x: Executor, group: Group) -> Iterator[tuple[np.ndarray, AwaitedPhase]]:
    """The phases that the lanes of a group wait for, where they are at an mbarrier or look at one in a loop."""
    looked_at = group.frame.code.steps[group.pc :][: LOOP if group.circles else 1]
    step = next((step for step in looked_at if step.op.awaits is Awaited.PHASE), None)
    if step is None:
        return
    with x.elsewhere(group.frame, group.lanes):
        addresses = np.broadcast_to(step.reads[0].read(x), group.lanes.shape)
        words = np.broadcast_to(machine.memory.peek(x, step.opcode.space or "generic", addresses, b64), addresses.shape)
    for address in np.unique(addresses):
        alike = addresses == address
        lanes = group.lanes[alike]
        yield lanes, _phase(machine, step, int(machine.residents.slot[lanes[0]]), int(address), int(words[alike][0]))


def _phase(machine: Core, step: Decoded, slot: int, address: int, word: int) -> AwaitedPhase:
    lacking, each = object_arrivals(word)
    late = int(pending_bytes(np.array([word], np.uint64))[0])
    holder = machine.memory.spaces["shared"].table.holder(address, address + 8)
    if holder is None or step.opcode.space not in ("shared", "shared::cta"):
        return AwaitedPhase("", lacking, each, late)
    stage = machine.launch.notes().stage(holder.name, address - holder.start)
    if stage is None:
        return AwaitedPhase(holder.at(address), lacking, each, late)
    ring, _, full = stage
    other = address + b64.bytes * (ring.stages if full else -ring.stages)
    came, others = (machine.arrivals.at(slot, offset) for offset in (address, other))
    return AwaitedPhase(holder.at(address), lacking, each, late, *stage, came, others)


def mend(phases: Sequence[AwaitedPhase], of_barriers: str) -> str:
    """What would let threads go on that wait for such phases; empty where there is none.

    Arrivals that no phase counts are the cause whatever lacks. Else those at which some have arrived come first, then
    barriers of the block: the others wait for these.
    """
    ordered = sorted(phases, key=lambda phase: not phase.arrived)
    causes = (_late_bytes, _held_stages, _empty_stages, _arrivals)
    overrun = (text for phase in ordered for cause in (_overrun_empty, _overrun_full) if (text := cause(phase)))
    texts = (text for phase in ordered if phase.arrived for cause in causes if (text := cause(phase)))
    others = (text for cause in causes for phase in ordered if (text := cause(phase)))
    return next(chain(overrun, texts, filter(None, [of_barriers]), others), "")


def _late_bytes(phase: AwaitedPhase) -> str:
    """Copies always end: bytes that are still to come were announced in vain."""
    if phase.lacking or phase.bytes <= 0:
        return ""
    bytes, ring = bytes_text(phase.bytes), phase.ring
    if ring is None:
        return f"expect_tx announced {bytes} more{_at(phase)} than the copies that complete there transfer"
    return f"the copies into slot {phase.stage} transfer {bytes} less than {ring.made_at} announces for a stage"


def _overrun_empty(phase: AwaitedPhase) -> str:
    """A stage was released more often than it was filled: phases too many are complete, and the next is not."""
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
    """A stage was committed more often than it was empty."""
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
    """How many arrivals empty a stage, in the words of the call."""
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
    release = f"`{phase.ring.called}.release()` after the last read of each stage"
    return f"{who} slot {phase.stage} of {phase.ring.made_at}; call {release}, {_all(phase, 'consumers')}"


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
