"""Detect names and Python state that change in traced branches and loops, where Python and the kernel would disagree.

Python runs the body of a traced loop once, and that of a traced branch unconditionally. A name that is rebound in the
body and read later would refer to the body's result whether or not the kernel executes it, and each iteration would
read the value from before the loop: such a name must be a `pd.var`.

If a body changes a list, dictionary, array or object, the kernel is traced again: once with loops that start from the
state after their first iteration, and once with the old state restored after every block that may not execute. If such
a trace yields a different program, the kernel is refused at the first differing line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NoReturn

import numpy as np

from ptxdsl import ir
from ptxdsl.errors import Error, Location, Names, TraceError, names_of_calls, raised_at
from ptxdsl.trace import literal
from ptxdsl.trace.builder import Builder, ControlRegion, refuse
from ptxdsl.trace.contents import plain_key
from ptxdsl.trace.flow import live_after
from ptxdsl.trace.instruction import Scalar, Source
from ptxdsl.trace.memory import ArrayView, PointerValue
from ptxdsl.trace.source import advancing, assigning
from ptxdsl.trace.state import ADVANCING, Path, Record, Snapshot
from ptxdsl.types import Type, f32, pred, s32, u32

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
                _refuse_rebound(name, old.values[name], now.values.get(name), region)


def _differs(old: Any, new: Any) -> bool:
    if old is new:
        return False
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        return any(map(_differs, old, new))
    key = plain_key(old)
    return key is None or key != plain_key(new)


def _refuse_rebound(name: str, old: Any, new: Any, region: ControlRegion) -> NoReturn:
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


_PLAIN = (int, float, complex, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class Reference:
    """The object at an access path when the block began."""

    path: Path


@dataclass(slots=True)
class Change:
    """A holder that a block changed, and its contents after the block; `name`, `old` and `new` are for messages."""

    path: Path
    after: Any
    name: str
    old: Any
    new: Any


@dataclass(slots=True)
class Suspect:
    """A block that changed Python state."""

    words: str
    location: Location
    loops: bool
    changes: list[Change]
    begin: int = 0  # positions in the body of the later trace
    end: int | None = None


@dataclass(slots=True)
class Rounds:
    """The state changes of a kernel's blocks, by block number, and their effect on later traces.

    A later trace starts loops with their second iteration, or `skips` blocks: it restores the state from before them.
    """

    again: dict[int, Suspect] | None = None
    skips: bool = False
    suspects: dict[int, Suspect] = field(default_factory=dict)
    count: int = 0


def refuse_advanced(changed: list[Record], region: ControlRegion) -> None:
    """Refuse iterators and random generators that advance in a loop: they would give the same in each iteration."""
    for record in changed if region.again else ():
        if record.kind in ADVANCING:
            name = f"{record.name}.random" if record.holder is np else record.name
            refuse(
                f"`{name}` advances in {region.words}, which Python traces once: every iteration would use "
                f"the first value",
                f"take its values before the loop, and keep an index in a `pd.var`; {_UNROLL}",
                at=advancing(region.opened, name),
            )


def changes_of(record: Record, state: Snapshot) -> list[Change]:
    """Return the changed items of a holder; empty for what cannot be set back."""
    if record.kind in ADVANCING:
        return []
    stood = {id(value): path for path, value in state.paths()}

    def encoded(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(encoded, value))
        is_plain = isinstance(value, _PLAIN) or id(value) not in stood
        return value if is_plain else Reference(stood[id(value)])

    now = record.kind.read(record.holder)
    after = now if record.kind.is_opaque else {key: encoded(value) for key, value in now.items()}
    return [Change(record.path, after, *record.differences()[0])]


def apply_changes(changes: list[Change], state: Snapshot) -> None:
    """Restore the holders to their contents after the first iteration."""
    stood = dict(state.paths())
    records = {record.path: record for record in state.records}

    def decoded(value: Any) -> Any:
        if isinstance(value, Reference):
            return stood.get(value.path)
        return tuple(map(decoded, value)) if type(value) is tuple else value

    for change in changes:
        record = records.get(change.path)
        if record is not None:
            record.restore({key: decoded(value) for key, value in change.after.items()})


def check_rounds(first: Builder, trace: Callable[[Rounds], Builder]) -> None:
    """Trace a kernel again if its blocks changed Python state. Raises TraceError if the program differs."""
    suspects = first.memory[Rounds].suspects
    loops = any(suspect.loops for suspect in suspects.values())
    for skips in (False, True) if loops else (True,):
        at, location = _compared(first, trace, Rounds(suspects, skips))
        if at is not None and _difference(first.body, trace(Rounds()).body) is None:
            _refuse(suspects, at, location, skips)  # otherwise a hidden state changes it


def _compared(
    first: Builder, trace: Callable[[Rounds], Builder], rounds: Rounds
) -> tuple[float | None, Location | None]:
    """Return where a later trace differs, in the body (None if it did not reach the end) and in the source."""
    try:
        body = trace(rounds).body
    except Exception as error:
        return math.inf, error.at if isinstance(error, Error) else raised_at(error)
    at = _difference(first.body, body)
    return at, None if at is None else _first_location(first, body, at)


def _difference(first: list[ir.Item], second: list[ir.Item]) -> int | None:
    """Return the index of the first difference between two programs, which name registers alike."""
    pairs = enumerate(zip_longest(first, second))
    return next((n for n, (a, b) in pairs if str(a) != str(b)), None)


def _first_location(first: Builder, body: list[ir.Item], at: int) -> Location | None:
    """Return the source line of the first differing instruction."""
    for item in (*body[at:], *first.body[at:]):
        if isinstance(item, ir.Instruction) and item.location and item.location != first.where:
            return item.location
    return None


def _refuse(suspects: dict[int, Suspect], at: float, location: Location | None, skips: bool) -> NoReturn:
    around = [s for s in suspects.values() if s.loops and s.begin <= at and (s.end is None or at < s.end)]
    before = [s for s in suspects.values() if s.end is not None and s.end <= at]
    inside = bool(around) and not skips
    suspect = max((around if inside else before) or suspects.values(), key=lambda s: s.begin if inside else s.end or 0)
    text = location.text if location else ""
    named = (c for c in suspect.changes if c.name in text or c.name.partition("[")[0] in text)
    change = next(named, suspect.changes[0])
    happens = f"`{change.name}` was changed in {suspect.words}, and this line depends on it: "
    if inside:
        happens = f"`{change.name}` has another value in the next iteration of {suspect.words}: "
        happens += "Python traces the body once, so every iteration would use the first value"
    elif suspect.loops:
        happens += "Python changed it once while tracing, however often the kernel executes it"
    else:
        happens += "Python changed it while tracing, whether or not the kernel executes it"
    help = remedy(change.name, change.old, change.new, suspect.loops)
    raise TraceError(happens, at=location or suspect.location, help=help) from None


_BY_NUMBER = "use one array with an extra dimension, and keep its index in a `pd.var`"
_UNROLL = "or unroll by Python's `range`, when the trip count is known while tracing"


def remedy(name: str, old: Any, new: Any, loops: bool) -> str:
    """Return the help line for Python state that changes in a branch or loop."""
    if is_memory(new) and not isinstance(new, Source):
        help = _BY_NUMBER
    elif getattr(old, "writable", False):
        help = f"`=` binds the name to another value; write to the variable: `{name}.set(…)`"
    elif isinstance(old, Source | int | float) or isinstance(new, Source):
        help = f"keep it in a variable: `{name} = {_variable(name, old, new)}` before, and `{name}.set(…)` here"
    else:
        before = "loop" if loops else "branch"
        help = f"keep each result in a `pd.var` or in memory; make other changes before the {before}"
    return f"{help}; {_UNROLL}" if loops and not isinstance(new, Source) else help


def _variable(name: str, old: Any, new: Any) -> str:
    """Return the `pd.var(…)` call that can hold both values; Python numbers get the types that pd.range gives them."""
    typed = [value.type for value in (old, new) if isinstance(value, Source)]
    numbers = [value for value in (old, new) if isinstance(value, int | float)]
    is_float = any(isinstance(value, float) for value in numbers)
    type = typed[0] if typed else f32 if is_float else s32 if min(numbers) < 0 else u32
    if type is pred and not isinstance(old, Source):  # predicates have no constants
        type = u32
    first = "…"
    if isinstance(old, Source):
        first = "…" if isinstance(old, Scalar) and not old.region.open else name
    elif isinstance(old, int | float) and isinstance(type, Type):
        first = repr(+old) if type.is_float or old >= literal.limits(type)[0] else "…"
    return f"pd.var({type}, {first})"


def is_memory(value: Any) -> bool:
    """True for an array or pointer of the kernel, or a list of these."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(is_memory, value))
    return isinstance(value, ArrayView | PointerValue)
