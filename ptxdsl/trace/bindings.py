"""Names that are bound anew inside of traced branches and loops, where Python and the kernel would disagree.

Python runs the body of a traced loop once and that of a traced branch always. So a name that is bound anew there, and
read later, would mean what the body computed, whether the kernel runs it or not; and a loop would read the old value in
each round. What is written in a branch or loop and read after it, or in the next round, must be a `pd.var`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from ptxdsl.errors import Names, names_here
from ptxdsl.trace.builder import Region
from ptxdsl.trace.instruction import Scalar, Source
from ptxdsl.trace.literal import encode
from ptxdsl.trace.liveness import live_after
from ptxdsl.trace.operators import is_floating, refuse
from ptxdsl.types import Pointer, Type, f32, pred, s32, u32

_PLAIN = (int, float, str, bytes, bool, type(None))
_UNBOUND = object()


@dataclass(slots=True)
class Bindings:
    """What the names of the user's function meant when a branch or loop began."""

    names: Names | None
    held: dict[str, Any]  # traced values in lists, dictionaries and attributes, by how they are reached

    @classmethod
    def now(cls) -> Bindings:
        names = names_here()
        return cls(names, dict(_held(names.values)) if names else {})

    def check(self, region: Region) -> None:
        """Refuses what was bound anew since then and is read later."""
        now = names_here()
        if self.names is None or now is None or now.code is not self.names.code:
            return
        changed = [n for n, old in self.names.values.items() if _differs(old, now.values.get(n, _UNBOUND))]
        if changed:
            live = live_after(now.code, now.offset)
            live |= live_after(now.code, self.names.offset) if region.again else frozenset()
            for name in changed:
                if name in live:
                    _refuse(name, self.names.values[name], now.values.get(name), region)
        for path, new in _held(now.values):
            old = self.held.get(path, new)
            if old is not new and id(old) in region.reads:
                _refuse(path, old, new, region)


def _held(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Traced values one step inside of what names are bound to."""
    for name, value in names.items():
        if isinstance(value, Source):
            continue
        if isinstance(value, list):
            inner = [(f"{name}[{n}]", v) for n, v in enumerate(value)]
        elif isinstance(value, dict):
            inner = [(f"{name}[{k!r}]", v) for k, v in value.items()]
        else:
            inner = [(f"{name}.{k}", v) for k, v in getattr(value, "__dict__", {}).items()]
        yield from ((path, v) for path, v in inner if isinstance(v, Source))


def _differs(old: Any, new: Any) -> bool:
    if old is new:
        return False
    if isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        return any(map(_differs, old, new))
    return not (isinstance(old, _PLAIN) and type(old) is type(new) and old == new)


def _refuse(name: str, old: Any, new: Any, region: Region) -> NoReturn:
    given, written = f"{name} = {_variable(name, old, new)}", f"`{name}.set(…)` or `{name} += …`"
    if isinstance(old, tuple) and old:
        type = _type(old[0], new[0] if isinstance(new, tuple) and new else None)
        given, written = f"{name} = [pd.var({type}, …), …]", f"`{name}[0].set(…)`"
    happens = "each round would read what it was before" if region.again else "it would be the new one for all threads"
    place = new.site.location if isinstance(new, Scalar) and new.site.location.line else None
    refuse(
        f"`{name}` is bound anew in {region.words}, and read later: Python traces that once, so {happens}",
        f"make it a variable before (`{given}`), and write to that: {written}",
        at=place,
    )


def _variable(name: str, old: Any, new: Any) -> str:
    """The variable that would hold both."""
    type = _type(old, new)
    if isinstance(old, Source):
        return f"pd.var({type}, {name})"
    if not isinstance(old, int | float) or not isinstance(type, Type):
        return f"pd.var({type})"
    if type is pred:  # which has no constants: the help of `set` says how it becomes a u32
        type = u32
    number = float(old) if is_floating(type) else int(old) if isinstance(old, bool) else old
    try:
        encode(number, type)
    except ValueError:
        return f"pd.var({type}, …)"
    return f"pd.var({type}, {number})"


def _type(old: Any, new: Any) -> Type | Pointer:
    """That of the one which has a type; Python's numbers have it of the kernel's loops."""
    typed = next((value.type for value in (old, new) if isinstance(value, Source)), None)
    if typed is not None:
        return typed
    numbers = [value for value in (old, new) if isinstance(value, int | float)]
    if any(isinstance(value, float) for value in numbers):
        return f32
    return s32 if any(value < 0 for value in numbers) else u32
