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
from ptxdsl.trace.literal import encode
from ptxdsl.trace.liveness import live_after
from ptxdsl.trace.operators import is_floating
from ptxdsl.trace.rounds import (
    BY_NUMBER,
    UNROLL,
    Rounds,
    Suspect,
    apply_changes,
    changes_of,
    instead_of,
    is_memory,
    refuse_advanced,
)
from ptxdsl.trace.sentences import assigning
from ptxdsl.trace.state import Record, Snapshot
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Pointer, Type, f32, pred, s32, u32

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
        for record in self.changed:
            for path, before, after in record.differences():
                if isinstance(before, Source) and id(before) in region.reads and isinstance(after, Source):
                    _refuse(path, before, after, region)
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
    if is_memory(old) and is_memory(new) and not isinstance(old, Source):
        refuse(
            f"`{name}` is bound to another array in {region.words}, and read later: Python does that once while "
            f"tracing, however often the kernel executes it",
            f"{BY_NUMBER}; {UNROLL}" if region.again else BY_NUMBER,
            at=assigning(region.opened, name),
        )
    happens = "each iteration would read the old value" if region.again else "all threads would see the new value"
    location = new.site.location if isinstance(new, Scalar) and new.site.location.line else None
    if getattr(old, "writable", False) and getattr(new, "writable", False):
        location = assigning(region.opened, name)
    refuse(
        f"`{name}` is rebound in {region.words}, and read later: Python traces the body once, so {happens}",
        _mend(name, old, new, region.again is not None),
        at=location,
    )


def _mend(name: str, old: Any, new: Any, loops: bool) -> str:
    """Return the help line for a rebound name."""
    written = f"`{name}.set(…)` or `{name} += …`"
    if getattr(old, "writable", False):
        if getattr(new, "writable", False):
            return f"write to the variable: `{name}.set(…)`; to exchange two, keep what one of them holds by `.value`"
        return f"`{name}` is a variable: write to it by {written}; `=` makes another value of the name"
    if isinstance(old, tuple | list) and old and isinstance(old[0], Source | int | float):
        type = _type(old[0], new[0] if isinstance(new, tuple | list) and new else None)
        return f"make it a variable first (`{name} = [pd.var({type}, …), …]`), and write to that: `{name}[0].set(…)`"
    if not isinstance(old, Source | int | float | None) and not isinstance(new, Source):
        return instead_of(old, loops)
    return f"make it a variable first (`{name} = {_variable(name, old, new)}`), and write to that: {written}"


def _variable(name: str, old: Any, new: Any) -> str:
    """Return the `pd.var(…)` call that can hold both values."""
    type = _type(old, new)
    if isinstance(old, Source) and not (isinstance(old, Scalar) and not old.region.open):
        return f"pd.var({type}, {name})"
    if not isinstance(old, int | float) or not isinstance(type, Type):
        return f"pd.var({type})"
    if type is pred:  # no predicate constants exist; the help line of `set` shows the conversion to u32
        type = u32
    number = float(old) if is_floating(type) else int(old) if isinstance(old, bool) else old
    try:
        encode(number, type)
    except ValueError:
        return f"pd.var({type}, …)"
    return f"pd.var({type}, {number})"


def _type(old: Any, new: Any) -> Type | Pointer | TensorMap:
    """Return the type of the traced value among the two, or the type pd.range and pd.var would give Python numbers."""
    typed = next((value.type for value in (old, new) if isinstance(value, Source)), None)
    if typed is not None:
        return typed
    numbers = [value for value in (old, new) if isinstance(value, int | float)]
    if any(isinstance(value, float) for value in numbers):
        return f32
    return s32 if any(value < 0 for value in numbers) else u32
