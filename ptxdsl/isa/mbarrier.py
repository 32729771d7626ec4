"""Barriers in shared memory (PTX ISA, "Parallel Synchronization and Communication Instructions": mbarrier).

The manual leaves the 64 bits of an mbarrier object undefined. Here, from the lowest bit on: 20 bits hold the pending
arrivals of the current phase, 20 bits the expected arrivals of each phase, and 21 bits the signed tx-count, the bytes
still expected in this phase. Bits from 61 on count phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import ir
from ..types import b64
from .form import Form
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import INITIALISATION, Awaited, Ordering, PhaseArrival, PhaseCompletion, PhaseWait, Step, Update

MOST = (1 << 20) - 1
COUNT = np.uint64(MOST)
EACH = np.uint64(20)
BYTES = np.uint64(40)  # first bit of the tx-count
PHASE = np.uint64(61)
ONE = np.uint64(1)
OBJECT = Ordering("relaxed", "gpu", "mbarrier")
_BYTE_BITS = (1 << 21) - 1

WHERE = "{.sem}{.scope}{.space}.b64"
SPACE: dict[str, Any] = {"space": "shared shared::cta"}
CTA = {"shared::cta": ("7.8", 30)}
ORDERED: dict[str, Any] = {
    "scope": "cta cluster",
    "when": lambda i: (i.sem is None) == (i.scope is None),
    "needs": {**CTA, "cta": ("8.0", 80), "cluster": ("8.0", 90), "relaxed": ("8.6", 90)},
    **SPACE,
}
ARRIVALS: dict[str, Any] = {"sem": "release relaxed", **ORDERED}
WAITS: dict[str, Any] = {"sem": "acquire relaxed", **ORDERED}


def settled(word: np.ndarray) -> np.ndarray:
    """Return the object in its next phase if no arrivals and no bytes are pending, else unchanged."""
    following = word + (ONE << PHASE) + (word >> EACH & COUNT)
    result: np.ndarray = np.where((word & COUNT == 0) & (pending_bytes(word) == 0), following, word)
    return result


def pending_bytes(word: np.ndarray) -> np.ndarray:
    """Return the tx-count as int64; negative if more bytes have completed than were expected so far."""
    bits = (word >> BYTES & np.uint64(_BYTE_BITS)).astype(np.int64)
    result: np.ndarray = np.where(bits > MOST, bits - (_BYTE_BITS + 1), bits)
    return result


def expect(word: np.ndarray, bytes: np.ndarray) -> np.ndarray:
    """Return the object with its tx-count increased by `bytes`, int64 (negative to decrease it)."""
    total = (pending_bytes(word) + bytes) & _BYTE_BITS
    others = word & ~np.uint64(_BYTE_BITS << int(BYTES))
    return settled(others | total.astype(np.uint64) << BYTES)


def arrive(word: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the object after `count` arrivals; unchanged if fewer are pending.

    The last pending arrival starts the next phase, unless bytes are still expected.
    """
    result: np.ndarray = np.where(word & COUNT < count, word, settled(word - count))
    return result


class ArrivalScan:
    """Arrivals at one mbarrier, one after another, as a ufunc that `atomic` takes for `arrive`."""

    def accumulate(self, line: np.ndarray, /, *, dtype: Any = None) -> np.ndarray:
        """Return the objects before and after each arrival, from the object and the counts of the arrivals."""
        result, at = line.copy(), 1
        while at < len(line):
            total = np.cumsum(line[at:])
            count = int(np.searchsorted(total, result[at - 1] & COUNT))  # of the arrivals before the last of the phase
            result[at : at + count] = result[at - 1] - total[:count]
            at += count
            if at < len(line):
                result[at : at + 1] = arrive(result[at - 1 : at], line[at : at + 1])
                at += 1
        return result


def object_arrivals(word: int) -> tuple[int, int]:
    """Return (pending arrivals of the current phase, expected arrivals of each phase)."""
    return word & MOST, word >> int(EACH) & MOST


def drop(word: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the object after `count` arrivals of threads that do not take part in later phases."""
    return arrive(word - (count << EACH), count)


def change_object(
    m: Step, space: str, address: np.ndarray, change: Update, amount: np.ndarray, ordering: Ordering | None
) -> np.ndarray:
    """Update mbarrier objects and return their old values. With an `ordering`, the update counts as an arrival."""
    if ordering is not None:
        m.order(PhaseArrival(space, address, ordering))
    scan = ArrivalScan() if change is arrive else None
    state = m.atomic(space, address, b64, change, amount, scan=scan, ordering=OBJECT)
    complete = change(state, amount) >> PHASE != state >> PHASE
    if complete.any():
        m.order(PhaseCompletion(space, address, complete))
    return state


def count_down(
    m: Step, space: str, address: np.ndarray, change: Update, arrivals: np.ndarray, ordering: Ordering
) -> np.ndarray:
    """Arrive at mbarrier objects and return their old values."""
    state = change_object(m, space, address, change, arrivals, ordering)
    crowded = state & COUNT < arrivals
    if crowded.any():
        which = int(np.argmax(crowded))
        count, (left, each) = int(arrivals[which]), object_arrivals(int(state[which]))
        message = f"{count} arrival{'s' * (count > 1)} where the phase of the mbarrier waits for {left} more of {each}"
        help = "initialize the mbarrier with the number of arrivals per phase"
        m.fail("mbarrier", message, crowded, help, _shown(space, address))
    return state


def _shown(space: str, address: np.ndarray) -> np.ndarray | None:
    """Return addresses that identify an array of the block, else None."""
    return address if space in ("shared", "shared::cta") else None


class Mbarrier(Op):
    """Base of the operations on mbarrier objects."""

    async_proxy = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name == "count" and isinstance(value, ir.Immediate) and not 1 <= value.value <= MOST:
                yield Problem("count", f"`count` is {value.value}; an mbarrier counts from 1 to {MOST} arrivals")
            if declared.name == "parity" and isinstance(value, ir.Immediate) and value.value not in (0, 1):
                yield Problem("parity", f"`parity` is {value.value}; phases are even or odd, 0 or 1")


class MbarrierInit(Mbarrier):
    """Initialise an mbarrier object whose phases each expect `count` arrivals."""

    forms = (Form("mbarrier.init{.space}.b64 [address:space], count:u32", ptx="7.0", sm=80, needs=CTA, **SPACE),)

    def execute(self, i: Opcode, m: Step, address: np.ndarray, count: np.ndarray) -> None:
        wide = count.astype(np.uint64)
        m.store(i.space or "generic", address, b64, wide | wide << EACH, ordering=INITIALISATION)


class MbarrierInval(Mbarrier):
    """Invalidate an mbarrier object, so that its memory can be reused."""

    forms = (Form("mbarrier.inval{.space}.b64 [address:space]", ptx="7.0", sm=80, needs=CTA, **SPACE),)

    def execute(self, i: Opcode, m: Step, address: np.ndarray) -> None:
        m.load(i.space or "generic", address, b64, ordering=INITIALISATION)


def _arrivals(name: str) -> tuple[Form, ...]:
    operands = "state=b64, [address:space]"
    return (
        Form(f"{name}{WHERE} {operands}", ptx="7.0", sm=80, **ARRIVALS),
        Form(f"{name}{WHERE} {operands}, count:u32", ptx="7.8", sm=90, **ARRIVALS),
        Form(
            f"{name}.noComplete{WHERE} {operands}, count:u32",
            ptx="7.0",
            sm=80,
            **{**ARRIVALS, "sem": "release", "scope": "cta"},
        ),
    )


class Arrival(Mbarrier):
    """Base of the arrivals; `change` is their effect on the object."""

    change = staticmethod(arrive)

    def execute(self, i: Opcode, m: Step, address: np.ndarray, count: np.ndarray | None = None) -> np.ndarray:
        arrivals = np.ones(m.shape, np.uint64) if count is None else count.astype(np.uint64)
        ordering = Ordering(i.sem or "release", i.scope or "cta")
        return count_down(m, i.space or "generic", address, self.change, arrivals, ordering)


class OwnArrival(Arrival):
    """Base of arrivals at an mbarrier of the thread's own block; .noComplete promises not to complete the phase."""

    def execute(self, i: Opcode, m: Step, address: np.ndarray, count: np.ndarray | None = None) -> np.ndarray:
        state = super().execute(i, m, address, count)
        if i.noComplete and count is not None:
            last = self.change(state, count.astype(np.uint64)) >> PHASE != state >> PHASE
            if last.any():
                message = "this arrival completes the phase, which .noComplete must not do"
                help = "drop .noComplete from the last arrival of the phase"
                m.fail("mbarrier", message, last, help, _shown(i.space or "generic", address))
        return state


class MbarrierArrive(OwnArrival):
    """Arrive at an mbarrier, `count` times or once; state = the phase of the arrival."""

    forms = _arrivals("mbarrier.arrive")


class MbarrierArriveDrop(OwnArrival):
    """Arrive at an mbarrier, and decrease the expected arrivals of all later phases by the same count."""

    change = staticmethod(drop)
    forms = _arrivals("mbarrier.arrive_drop")


class MbarrierTestWait(Mbarrier):
    """Test without blocking whether the phase of a state, or the preceding phase of a parity, has completed."""

    awaits = Awaited.PHASE
    computes = True  # it may return before the phase completes; only the result is significant
    forms = (
        Form(
            "mbarrier.test_wait{.sem}{.scope}{.space}.b64 p=pred, [address:space], state:b64", ptx="7.0", sm=80, **WAITS
        ),
        Form(
            "mbarrier.test_wait.parity{.sem}{.scope}{.space}.b64 p=pred, [address:space], parity:u32",
            ptx="7.1",
            sm=80,
            **WAITS,
        ),
    )

    def execute(
        self, i: Opcode, m: Step, address: np.ndarray, phase: np.ndarray, hint: np.ndarray | None = None
    ) -> np.ndarray:
        space = i.space or "generic"
        now = m.load(space, address, b64, ordering=OBJECT) >> PHASE
        if not m.reads_result():
            message = f"nothing reads the result of {i.text}, so the phase may not be complete after it"
            m.fail("mbarrier", message, help="repeat it in a loop until its result is true")
        complete: np.ndarray = (now & ONE) != phase & ONE if i.parity else now != phase >> PHASE
        m.order(PhaseWait(space, address, complete, Ordering(i.sem or "acquire", i.scope or "cta")))
        return complete


class MbarrierTryWait(MbarrierTestWait):
    """Wait for a limited time for the phase of a state, or of a parity, and test whether it has completed."""

    computes = True
    forms = (
        Form(f"mbarrier.try_wait{WHERE} p=pred, [address:space], state:b64{{, hint:u32}}", ptx="7.8", sm=90, **WAITS),
        Form(
            f"mbarrier.try_wait.parity{WHERE} p=pred, [address:space], parity:u32{{, hint:u32}}",
            ptx="7.8",
            sm=90,
            **WAITS,
        ),
    )

    def execute(
        self, i: Opcode, m: Step, address: np.ndarray, phase: np.ndarray, hint: np.ndarray | None = None
    ) -> np.ndarray:
        complete = super().execute(i, m, address, phase)
        m.suspend(complete)
        return complete


class MbarrierPendingCount(Op):
    """Query the pending arrivals of an mbarrier from a state."""

    async_proxy = True
    forms = (Form("mbarrier.pending_count.b64 count=b32, state:b64", ptx="7.0", sm=80),)

    def run(self, i: Opcode, state: np.ndarray) -> np.ndarray:
        return (state & COUNT).astype(np.uint32)
