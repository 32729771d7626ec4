"""Warp-level exchange: shuffles, votes, matches, reductions, elections.

PTX ISA, "Data Movement and Conversion Instructions" and "Parallel Synchronization and Communication Instructions". The
lanes named by `membermask` execute together; they are `m.active`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import numpy as np

from .. import ir
from ..types import f32
from .form import Form
from .numerics import canonical, maximum, minimum
from .opcode import Op, Opcode, Results
from .operand import OperandList, Problem
from .step import Step

LANES = np.arange(32)
BITS = np.uint32(1) << LANES.astype(np.uint32)
SAME, LANES_SET = {"d": "a"}, {"d": "u32"}
POISON = np.uint32(0xFFFFFFFF)  # the value read from a lane that does not take part: a NaN


def ballot(chosen: np.ndarray) -> np.ndarray:
    """Pack bool (…, 32) into uint32 (…, 1): bit n is lane n."""
    return np.bitwise_or.reduce(np.where(chosen, BITS, np.uint32(0)), axis=-1, keepdims=True)


class Exchange(Op):
    """Base of the operations of the lanes in a member mask."""

    collective = True

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        if isinstance(operands[-1], ir.Immediate) and operands[-1].value == 0:
            yield Problem(
                "membermask", "`membermask` is 0; it must name the participating lanes", "-1 names all 32 lanes"
            )


class Shfl(Exchange):
    """Shuffle a register between lanes: d = a of the source lane, p = source lane in range; if not, d = own a."""

    carries = ("a",)
    exchanges = True
    gives = SAME
    forms = (
        Form(
            "shfl.sync.mode.b32 d=b32{|p=pred}, a:b32, b:u32, c:u32, membermask:b32",
            mode="up down bfly idx",
            ptx="6.0",
            sm=30,
        ),
    )

    def execute(
        self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray, c: np.ndarray, mask: np.ndarray | None
    ) -> Results:
        distance, clamp, segment = (b & 31).astype(int), (c & 31).astype(int), (c >> 8 & 31).astype(int)
        first = LANES & segment
        last = first | (clamp & ~segment)
        source = {
            "up": LANES - distance,
            "down": LANES + distance,
            "bfly": LANES ^ distance,
            "idx": first | (distance & ~segment),
        }[i.mode]
        inside = source >= last if i.mode == "up" else source <= last
        source = np.where(inside, source, LANES)
        heard = np.take_along_axis(m.active, source, axis=-1)
        if not heard[m.active].all():
            _report_unheard(i, m, source, m.active & ~heard, mask)
        return np.where(heard, np.take_along_axis(a, source, axis=-1), POISON), inside


def _report_unheard(i: Opcode, m: Step, source: np.ndarray, deaf: np.ndarray, mask: np.ndarray | None) -> None:
    """Report lanes that read from a lane that does not take part, which is undefined."""
    warp, lane = (int(n[0]) for n in np.nonzero(deaf))
    other = int(source[warp, lane])
    if mask is None:
        message = f"{i.text}: lane {lane} reads from lane {other}, which does not run it together with this lane"
        m.fail("divergent-collective", message, deaf, "move it out of the divergent branch")
        return
    named = int(mask[warp, lane])
    if named >> other & 1:
        why, mend = "names, but it has exited or does not exist", "make that lane execute it too"
    else:
        why, mend = "does not name", "include it in the membermask of all participating lanes"
    m.fail(
        "divergent-collective",
        f"{i.text}: lane {lane} reads from lane {other}, which membermask {named:#010x} {why}",
        deaf,
        f"{mend}, or limit the source lanes with the clamp in `c`",
    )


class Vote(Exchange):
    """Vote across a warp: d = true if a holds in all lanes, in any lane, or in all or no lanes (.uni)."""

    forms = (
        Form(
            "vote.sync.mode.pred d=pred, {!}a:pred, membermask:b32",
            mode="all any uni",
            ptx="6.0",
            sm=30,
        ),
    )

    def execute(self, i: Opcode, m: Step, a: np.ndarray, mask: np.ndarray) -> np.ndarray:
        voted, present = ballot(a & m.active), ballot(m.active)
        outcome = {"all": voted == present, "any": voted != 0, "uni": (voted == present) | (voted == 0)}[i.mode]
        return np.broadcast_to(outcome, m.shape)


class Ballot(Exchange):
    """Collect a predicate from all lanes of a warp: d = a bit mask of the lanes where it holds."""

    gives = LANES_SET
    forms = (Form("vote.sync.ballot.b32 d=b32, {!}a:pred, membermask:b32", ptx="6.0", sm=30),)

    def execute(self, i: Opcode, m: Step, a: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return np.broadcast_to(ballot(a & m.active), m.shape)


class MatchAny(Exchange):
    """Find equal values in a warp: d = a bit mask of the lanes whose a equals this lane's a."""

    gives = LANES_SET
    forms = (Form("match.any.sync.type d=b32, a:type, membermask:b32", type="b32 b64", ptx="6.0", sm=70),)

    def execute(self, i: Opcode, m: Step, a: np.ndarray, mask: np.ndarray) -> np.ndarray:
        same = (a[..., :, np.newaxis] == a[..., np.newaxis, :]) & m.active[..., np.newaxis, :]
        return ballot(same)[..., 0]


class MatchAll(Exchange):
    """Test whether all lanes hold the same value: d = the member mask and p = true if so, else 0 and false."""

    gives = LANES_SET
    forms = (Form("match.all.sync.type d=b32{|p=pred}, a:type, membermask:b32", type="b32 b64", ptx="6.0", sm=70),)

    def execute(self, i: Opcode, m: Step, a: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = np.argmax(m.active, axis=-1, keepdims=True)
        same = (a == np.take_along_axis(a, first, axis=-1)) | ~m.active
        agreed = np.broadcast_to(same.all(axis=-1, keepdims=True), m.shape)
        return np.where(agreed, ballot(m.active), np.uint32(0)), agreed


class Redux(Exchange):
    """Reduce a value across a warp: sum, minimum, maximum, AND, OR or XOR; minimum and maximum also of floats."""

    carries = ("a",)
    gives = SAME
    forms = (
        Form(
            "redux.sync.operation.type d=type, a:type, membermask:b32",
            operation="add min max",
            type="u32 s32",
            ptx="7.0",
            sm=80,
        ),
        Form(
            "redux.sync.operation.type d=type, a:type, membermask:b32",
            operation="and or xor",
            type="b32",
            ptx="7.0",
            sm=80,
        ),
        Form(
            "redux.sync.operation{.abs}{.NaN}.type d=type, a:type, membermask:b32",
            operation="min max",
            type="f32",
            ptx="8.6",
            sm="100f",
        ),
    )

    def execute(self, i: Opcode, m: Step, a: np.ndarray, mask: np.ndarray) -> np.ndarray:
        if i.type is f32:
            return np.broadcast_to(least_or_greatest(i, a, m.active), m.shape)
        info = np.iinfo(a.dtype)
        ufunc, neutral = {
            "add": (np.add, 0),
            "min": (np.minimum, info.max),
            "max": (np.maximum, info.min),
            "and": (np.bitwise_and, info.max),
            "or": (np.bitwise_or, 0),
            "xor": (np.bitwise_xor, 0),
        }[i.operation]
        total = ufunc.reduce(np.where(m.active, a, a.dtype.type(neutral)), axis=-1, keepdims=True, dtype=a.dtype)
        return np.broadcast_to(total, m.shape)


def least_or_greatest(i: Opcode, a: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the least or greatest number of active lanes, (…, 1), or NaN: if all are NaN, with .NaN if any is."""
    nan = np.float32(np.nan)
    which = {"min": minimum, "max": maximum}[i.operation]
    result = np.where(active, np.abs(a) if i.values["abs"] else a, nan)
    while result.shape[-1] > 1:
        half = result.shape[-1] // 2
        result = which(result[..., :half], result[..., half:])
    if i.values["NaN"]:
        result = np.where((active & np.isnan(a)).any(-1, keepdims=True), nan, result)
    return canonical(result)


class Unsynchronised(Op):
    """Base of the exchanges without .sync, for targets before sm_70: among the convergent lanes of a warp."""

    like: ClassVar[Exchange]

    def execute(self, i: Opcode, m: Step, *inputs: np.ndarray) -> Results:
        """Run the .sync exchange for the lanes, spread over their warps."""
        lane, mask = m.special("%laneid").astype(int), m.together()
        warp = np.cumsum(lane == _lowest(mask)) - 1
        present = _Present(m, warp, lane)
        results = self.like.execute(i, cast(Step, present), *map(present.spread, inputs), None)
        if isinstance(results, tuple):
            return tuple(result[warp, lane] for result in results)
        assert results is not None
        return results[warp, lane]


def _lowest(mask: np.ndarray) -> np.ndarray:
    """Return the index of the lowest set bit."""
    return np.argmax(mask[:, np.newaxis] & BITS != 0, axis=1)


class _Present:
    """The convergent lanes of some warps, presented as the step of a collective."""

    def __init__(self, m: Step, warp: np.ndarray, lane: np.ndarray) -> None:
        self.m, self.threads = m, (warp, lane)
        self.active = np.zeros((int(warp[-1]) + 1, len(LANES)), bool)
        self.active[self.threads] = True
        self.shape = self.active.shape

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Place the values of lanes at their positions in the warps."""
        rows = np.zeros(self.shape, values.dtype)
        rows[self.threads] = values
        return rows

    def fail(self, kind: str, message: str, where: np.ndarray, help: str = "") -> None:
        """Report a finding for lanes of the warps."""
        self.m.fail(kind, message, where[self.threads], help)


def _old(syntax: str, instead: str, **slots: Any) -> Form:
    """Return a form for targets before sm_70."""
    return Form(syntax, until=70, note=f"write {instead}, with a mask of the participating lanes", **slots)


class OldShfl(Unsynchronised):
    """Exchange a register between lanes of a warp, for targets before sm_70: d = a of the source lane."""

    like = Shfl()
    gives = SAME
    forms = (
        _old(
            "shfl.mode.b32 d=b32{|p=pred}, a:b32, b:u32, c:u32", "shfl.sync", mode="up down bfly idx", ptx="3.0", sm=30
        ),
    )


class OldVote(Unsynchronised):
    """Vote across a warp, for targets before sm_70: true in all lanes, in any lane, or in all or no lanes (.uni)."""

    like = Vote()
    forms = (_old("vote.mode.pred d=pred, {!}a:pred", "vote.sync", mode="all any uni", ptx="1.2", sm=12),)


class OldBallot(Unsynchronised):
    """Collect a predicate from the lanes of a warp as a bit mask, for targets before sm_70."""

    like = Ballot()
    gives = LANES_SET
    forms = (_old("vote.ballot.b32 d=b32, {!}a:pred", "vote.sync.ballot.b32", ptx="2.0", sm=20),)


class Elect(Exchange):
    """Elect one leader lane of a warp: p = true in the lowest lane of membermask; d = its number."""

    gives = LANES_SET
    forms = (Form("elect.sync d=b32|p=pred, membermask:b32", ptx="8.0", sm=90),)

    def execute(self, i: Opcode, m: Step, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        leader = np.argmax(m.active, axis=-1, keepdims=True)
        return np.broadcast_to(leader.astype(np.uint32), m.shape), leader == LANES
