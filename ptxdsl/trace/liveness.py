"""Liveness of a Python function's local names, computed from its bytecode."""

from __future__ import annotations

import dis
from bisect import bisect_right
from functools import lru_cache
from types import CodeType

from ptxdsl.errors import bytecode

ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE", "JUMP", "JUMP_NO_INTERRUPT")
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_CONDITIONS = ("while_", "elif_")  # evaluated immediately; a loop condition belongs to each iteration
_CLOSES = ("LOAD_CLOSURE", "LOAD_FAST", "BUILD_TUPLE", "PUSH_NULL")
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)


def live_after(code: CodeType, offset: int) -> frozenset[str]:
    """Return the names that may be read after the instruction at `offset` before they are rebound.

    Names shared with inner functions that may run later always count.
    """
    n = bisect_right(bytecode(code), offset, key=lambda i: i.offset) - 1  # a call ends at the caches that follow it
    live = _live(code)[n] if n >= 0 else frozenset()
    return live | _shared_later(code)


@lru_cache(maxsize=256)
def _shared_later(code: CodeType) -> frozenset[str]:
    """Return the names shared with enclosing functions, and with inner functions that may run later."""
    listing = bytecode(code)
    later = [n for n, i in enumerate(listing) if i.opname == "MAKE_FUNCTION" and not _runs_at_once(listing, n)]
    return frozenset(code.co_freevars).union(*(listing[n - 1].argval.co_freevars for n in later))


def _runs_at_once(listing: list[dis.Instruction], n: int) -> bool:
    """True if the function created there runs immediately: a comprehension, a generator that a call consumes, or the
    condition of `pd.while_` or `pd.elif_`."""
    name = listing[n - 1].argval.co_name
    if name in _COMPREHENSIONS:
        return True
    if name == "<genexpr>":
        calls = [i.opname for i in listing[n:] if i.opname.startswith(("CALL", "STORE", "POP", "RETURN"))]
        return calls[1:2] == ["CALL"]
    callee = next((i for i in reversed(listing[: n - 1]) if not i.opname.startswith(_CLOSES)), None)
    return callee is not None and callee.argval in _CONDITIONS


@lru_cache(maxsize=256)
def _live(code: CodeType) -> list[frozenset[str]]:
    """Return the names that are live after each instruction, by backward data flow to a fixed point."""
    listing = bytecode(code)
    following = [_successors(listing, n) for n in range(len(listing))]
    at = {i.offset: n for n, i in enumerate(listing)}
    before: list[frozenset[str]] = [frozenset()] * len(listing)
    after = list(before)
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(listing))):
            after[n] = frozenset().union(*(before[at[o]] for o in following[n]))
            reads, writes = names_of(listing[n])
            now = reads | (after[n] - writes)
            changed |= now != before[n]
            before[n] = now
    return after


def _successors(listing: list[dis.Instruction], n: int) -> list[int]:
    """Return the offsets at which Python may continue, ignoring exceptions."""
    this = listing[n]
    targets = [int(this.argval)] if this.opcode in _JUMPS else []
    if this.opname in ALWAYS or this.opname in _ENDS or n + 1 == len(listing):
        return targets
    return [*targets, listing[n + 1].offset]


def names_of(instruction: dis.Instruction) -> tuple[frozenset[str], frozenset[str]]:
    """Return (names read, names bound); newer Pythons combine two accesses in one instruction."""
    name, value = instruction.opname, instruction.argval
    if not any(kind in name for kind in ("_FAST", "_DEREF", "_CLOSURE")):
        return frozenset(), frozenset()
    parts = list(value) if isinstance(value, tuple) else [value]
    verbs = [word for word in name.split("_") if word in ("LOAD", "STORE", "DELETE")]
    verbs += verbs[-1:] * (len(parts) - len(verbs))
    reads: set[str] = set()
    writes: set[str] = set()
    for verb, part in zip(verbs, parts, strict=False):
        if verb == "LOAD" and part not in writes:
            reads.add(str(part))
        elif verb != "LOAD":
            writes.add(str(part))
    return frozenset(reads), frozenset(writes)
