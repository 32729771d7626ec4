"""Detect names that are rebound inside traced branches and loops, where Python and the kernel would disagree.

Python runs the body of a traced loop once, and that of a traced branch unconditionally. A name that is rebound in the
body and read later would therefore refer to the body's result whether or not the kernel executes the body, and each
loop iteration would read the value from before the loop. Anything written in a branch or loop and read after it, or in
the next iteration, must be a `pd.var`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ptxdsl.errors import Names, names_of_calls
from ptxdsl.trace.builder import Builder, ControlRegion, refuse
from ptxdsl.trace.instruction import Scalar, Source
from ptxdsl.trace.keys import plain_key
from ptxdsl.trace.liveness import live_after
from ptxdsl.trace.rounds import Rounds, Suspect, apply_changes, changes_of, refuse_advanced, remedy
from ptxdsl.trace.sentences import assigning
from ptxdsl.trace.state import Record, Snapshot

_UNBOUND = object()


class Bindings:
    """The user's local names and the contents of the objects they reach, when a branch or loop began."""

    def __init__(self, builder: Builder, loops: bool) -> None:
        self.builder, self.changed = builder, list[Record]()
        self.rounds: Rounds = builder.memory[Rounds]
        self.rounds.count += 1
        self.number = self.rounds.count
        self.suspect = self.rounds.again.get(self.number) if self.rounds.again is not None else None
        is_compared = self.rounds.again is None or self.suspect is not None
        self.scopes = _scopes(builder) if is_compared else []
        self.state = Snapshot(self.scopes)
        if self.suspect is not None:
            self.suspect.begin, self.suspect.end = len(builder.body), None
            if loops and not self.rounds.skips:  # begin with the state after the first iteration
                apply_changes(self.suspect.changes, self.state)

    def check(self, region: ControlRegion) -> None:
        """Refuse names that have been rebound in the region and are read later."""
        if self.rounds.again is not None:
            return
        for old, now in zip(self.scopes, _scopes(self.builder), strict=False):
            if old.code is not now.code:
                break
            _check_names(old, now, region)
        self.changed = self.state.changed()
        refuse_advanced(self.changed, region)

    def end(self, region: ControlRegion, surely: bool = False) -> None:
        """Leave the branch or loop; `surely` is True if the kernel always executes it."""
        if self.suspect is not None:
            self.suspect.end = len(self.builder.body)
            if self.rounds.skips and not surely:  # go on as if the block had not run
                self.state.restore()
        elif changes := [change for record in self.changed for change in changes_of(record, self.state)]:
            suspect = Suspect(region.words, region.opened, region.again is not None, changes)
            self.rounds.suspects[self.number] = suspect


def _scopes(builder: Builder) -> list[Names]:
    """Return the local names of the running functions, the kernel's first."""
    return [names for names in reversed(names_of_calls(builder.code, lambda code: True)) if names]


def _check_names(old: Names, now: Names, region: ControlRegion) -> None:
    changed = [n for n, value in old.values.items() if _differs(value, now.values.get(n, _UNBOUND))]
    if changed:
        live = live_after(now.code, now.offset)
        live |= (live_after(now.code, old.offset) if region.again else frozenset()) | region.condition
        for name in changed:
            if name in live:
                _refuse(name, old.values[name], now.values.get(name), region)


def _differs(old: Any, new: Any) -> bool:
    if old is new:
        return False
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        return any(map(_differs, old, new))
    key = plain_key(old)
    return key is None or key != plain_key(new)


def _refuse(name: str, old: Any, new: Any, region: ControlRegion) -> NoReturn:
    loops = region.again is not None
    happens = "each iteration would read the old value" if loops else "all threads would see the new value"
    location = new.site.location if isinstance(new, Scalar) and new.site.location.line else None
    if getattr(new, "writable", False) or not isinstance(new, Source):
        location = assigning(region.opened, name)
    refuse(
        f"`{name}` is rebound in {region.words}, and read later: Python traces the body once, so {happens}",
        remedy(name, old, new, loops),
        at=location,
    )
