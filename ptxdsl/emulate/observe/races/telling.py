"""A race in words: both accesses, why nothing orders them, and what would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....errors import Location
from ....isa.step import WEAK, Ordering
from ...memory.access import READS, UPDATES, WRITES, Access, Origin
from ...run.residents import WARP, Residents
from .stamps import SEVERAL

_PAST = {READS: "read", WRITES: "written", UPDATES: "updated"}


@dataclass(frozen=True, slots=True)
class Told:
    """An earlier access: the instruction, what it did, and whether as the end of an asynchronous copy."""

    origin: Origin
    kind: str
    ordering: Ordering = WEAK
    asynchronous: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """An access of a lane at an address, and an earlier one by a lane of a warp of the grid."""

    access: Access
    address: int
    lane: int
    earlier: Told
    warp: int
    earlier_lane: int
    residents: Residents

    @property
    def same_block(self) -> bool:
        r = self.residents
        return self.warp // r.warps == int(r.blocks[r.slot[self.lane]])

    @property
    def same_warp(self) -> bool:
        return self.same_block and self.warp % self.residents.warps == int(self.residents.warp[self.lane])

    @property
    def same_step(self) -> bool:
        return self.earlier.origin is self.access.by.origin

    @property
    def who(self) -> str:
        """The thread that made the earlier access."""
        block, warp = divmod(self.warp, self.residents.warps)
        if self.earlier_lane == SEVERAL:
            return f"threads of warp {warp} of block {self.residents.numbered(block, 0).block_text}"
        return str(self.residents.numbered(block, warp * WARP + self.earlier_lane))


def tell(conflict: Conflict, which: np.ndarray) -> None:
    """Reports a race of the accesses of a mask."""
    access, earlier = conflict.access, conflict.earlier
    holder = access.region.table.before(conflict.address)
    where = holder.at(conflict.address) if holder else f"address {conflict.address:#x}"
    did = "filled" if earlier.asynchronous else _PAST[earlier.kind]
    both = f"{access.by.name} {access.kind} {where}, {did} by {conflict.who} with {earlier.origin.name}"
    others = [earlier.origin.location] if earlier.origin.location is not None else []
    addresses = access.address[which]
    crowd = access.kind != READS and addresses.size > 1 and bool((addresses == addresses[0]).all())
    access.by.finding("race", f"{both}; {_reason(conflict)}", which, others, _mend(conflict, crowd))


def _reason(conflict: Conflict) -> str:
    narrow = _narrow(conflict)
    if narrow:
        return f"{narrow} orders nothing for threads of other blocks"
    if conflict.same_warp:
        return "nothing orders the two: lanes of a warp run on their own until they meet at a .sync instruction"
    if conflict.same_block:
        return "no barrier lies between the two"
    return "nothing orders the two: blocks run in any order"


def _narrow(conflict: Conflict) -> str:
    """The scope, of two strong accesses, that does not reach the other block."""
    orderings = conflict.access.ordering, conflict.earlier.ordering
    if conflict.same_block or any(ordering.sem == "weak" for ordering in orderings):
        return ""
    return next((f".{o.scope}" for o in orderings if o.scope in ("cta", "cluster")), "")


def _mend(conflict: Conflict, crowd: bool) -> str:
    """What would order the two; in a `crowd` many threads go to one place."""
    access, earlier = conflict.access, conflict.earlier
    first, second = _line(earlier.origin.location), _line(access.by.origin.location)
    if _narrow(conflict):
        return "write .gpu in both"
    if (access.ordering.sem == "weak") != (earlier.ordering.sem == "weak"):
        weak, line = (access.by.origin, second) if access.ordering.sem == "weak" else (earlier.origin, first)
        return f"{weak.name} ({line}) is weak: a flag or a counter takes .relaxed, .acquire or .release, or .volatile"
    if conflict.same_step or crowd:
        return "let one thread do it, give each thread an element of its own, or use an atomic operation (atom, red)"
    between = _between(earlier.origin.location, access.by.origin.location)
    if conflict.same_warp:
        return f"a `bar.warp.sync` {between}"
    if conflict.same_block:
        return f"a `bar.sync` {between}" + (", behind the wait for the copy" if earlier.asynchronous else "")
    return (
        f"behind {first} a release at .gpu scope (st.release, or fence.acq_rel and an atomic), before {second} an "
        "acquire of it (ld.acquire, or an atomic and fence.acq_rel); or two launches"
    )


def _between(first: Location | None, second: Location | None) -> str:
    if first is None or second is None:
        return "between the two"
    if first.file == second.file and first.line == second.line:
        return f"between one round of {_line(first)} and the next"
    if first.file == second.file and first.line > second.line:
        return f"between {_line(first)} and {_line(second)} of the next round"
    return f"between {_line(first)} and {_line(second)}"


def _line(location: Location | None) -> str:
    return f"line {location.line}" if location is not None else "the access"
