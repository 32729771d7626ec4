"""Python's control and data flow around traced code, from its bytecode.

- liveness of local names
- `with` blocks that are left by `return`, `break` or `continue`: Python calls `__exit__` wherever a block can be left,
  and does not say why. After the call at the end of the block it continues where it would also continue if the block
  had swallowed an exception; after the others it continues elsewhere, or the source has a statement that leaves it.
- unused results: an instruction without side effects whose result Python drops and nothing reads. A value stored in an
  object or a closure may stay unread without a warning, since code generators do that.
"""

from __future__ import annotations

import dis
import warnings
from bisect import bisect_left, bisect_right
from dataclasses import replace
from functools import lru_cache
from types import CodeType
from typing import Any

from ptxdsl import ir
from ptxdsl.errors import Location, Site, UnusedResultWarning, bytecode
from ptxdsl.trace.builder import Builder
from ptxdsl.trace.source import leaving_statement

ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE", "JUMP", "JUMP_NO_INTERRUPT")
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_CONDITIONS = ("while_", "elif_")  # evaluated immediately; a loop condition belongs to each iteration
_CLOSES = ("LOAD_CLOSURE", "LOAD_FAST", "BUILD_TUPLE", "PUSH_NULL")
_SAVES = "LOAD_FAST_AND_CLEAR"
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
    restored = _restored(listing)
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
            now = reads | (after[n] - (writes - restored.get(n, frozenset())))
            changed |= now != before[n]
            before[n] = now
    return after


def _restored(listing: list[dis.Instruction]) -> dict[int, frozenset[str]]:
    """Return the names that instructions after inlined comprehensions bind to their values from before.

    From Python 3.12 on, a comprehension is part of its function: LOAD_FAST_AND_CLEAR saves a name that it uses, and a
    store after its loop restores the name, which was neither read nor rebound.
    """
    saved = frozenset(i.argval for i in listing if i.opname == _SAVES)
    restored: dict[int, frozenset[str]] = {}
    for n, instruction in enumerate(listing) if saved else ():
        if instruction.opname != "END_FOR":
            continue
        n, missing = n + 1, saved
        while listing[n].opname in ("POP_ITER", "POP_TOP", "SWAP"):
            n += 1
        while listing[n].opname.startswith("STORE_FAST"):
            restored[n] = names_of(listing[n])[1] & missing
            n, missing = n + 1, missing - restored[n]
    return restored


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
    if name == _SAVES or not any(kind in name for kind in ("_FAST", "_DEREF", "_CLOSURE")):
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


_NOTHING = ("NOP", "POP_TOP", "POP_EXCEPT", "POP_ITER", "EXTENDED_ARG", "NOT_TAKEN", *ALWAYS)
_CALLING = ("LOAD_CONST", "PUSH_NULL", "PRECALL", "SWAP", "EXTENDED_ARG")
_RETURN = 4  # maximum length of a `return` sequence that the compiler duplicates


def leaving(entered: tuple[tuple[CodeType, int], ...], left: Site) -> tuple[str, Location, CodeType] | None:
    """Return the statement that leaves a block: its keyword ("" without source), its location, its function.

    None at the end of the block. `entered` are the calls at its beginning; one block may span several calls, if a
    user-defined context manager enters it.
    """
    chain = left.location.chain()
    for depth, call in enumerate(left.calls):
        statement = _leaving(*call, chain[min(depth, len(chain) - 1)]) if call not in entered else None
        if statement:
            return *statement, call[0]
    return None


def _leaving(code: CodeType, offset: int, location: Location) -> tuple[str, Location] | None:
    elsewhere, line = _exit(code, offset)
    statement = leaving_statement(location, line) if line else None
    if statement is None:
        return ("", replace(location, line=line, columns=(0, 0))) if elsewhere else None
    keyword, columns = statement
    return keyword, replace(location, line=line, columns=columns)


@lru_cache(maxsize=1024)
def _exit(code: CodeType, offset: int) -> tuple[bool, int]:
    """Return (True if Python continues elsewhere than after the block, the line that caused it or 0 for the block's
    end)."""
    listing = bytecode(code)
    n = bisect_right(listing, offset, key=lambda i: i.offset) - 1
    line = _line(listing[n])
    handlers = [m for m, i in enumerate(listing) if i.opname == "WITH_EXCEPT_START" and _line(i) == line]
    if not handlers:
        return False, 0
    goes_to = _destination(listing, n + 1)
    # Python jumps after WITH_EXCEPT_START if `__exit__` swallows the exception.
    swallowed = [next(i for i in listing[m:] if i.opname.startswith("POP_JUMP")).argval for m in handlers]
    jumps = [bisect_left(listing, int(offset), key=lambda i: i.offset) for offset in swallowed]
    elsewhere = all(_destination(listing, jump) != goes_to for jump in jumps)
    before = n - 1
    while _line(listing[before]) == line and listing[before].opname in _CALLING:
        before -= 1
    marked = listing[before].opname == "NOP"  # the remainder of a bare `return`, a `break` or a `continue`
    return elsewhere, _line(listing[before]) if elsewhere or marked else 0


def _line(instruction: dis.Instruction) -> int:
    return (instruction.positions and instruction.positions.lineno) or 0


def _destination(listing: list[dis.Instruction], n: int) -> Any:
    """Return where Python arrives without doing anything: an offset, or the instructions up to a near `return`."""
    while listing[n].opname in _NOTHING:
        forward = listing[n].opname not in ALWAYS
        n = n + 1 if forward else bisect_left(listing, int(listing[n].argval), key=lambda i: i.offset)
    last = [m for m in range(n, min(n + _RETURN, len(listing))) if listing[m].opname.startswith("RETURN")]
    return [(i.opname[:9], i.argval) for i in listing[n : last[0] + 1]] if last else listing[n].offset


_registries: dict[str, dict[Any, Any]] = {}  # warnings that Python has shown already, by file


def warn_unread(builder: Builder) -> bool:
    """Warn at the user's line of each instruction whose results are unused. Returns True if there was one."""
    warned = False
    for registers, instruction, site in builder.computed:
        if builder.used.isdisjoint(map(id, registers)) and _is_dropped(site):
            location = site.location
            registry = _registries.setdefault(location.file, {})
            text = _message(instruction, location.text[slice(*location.columns)])
            warnings.warn_explicit(text, UnusedResultWarning, location.file, location.line, registry=registry)
            warned = True
    return warned


def _is_dropped(site: Site) -> bool:
    """True if Python drops the result of a call: an expression statement, or a name that is never read."""
    if not site.calls:
        return False
    code, offset = site.calls[0]
    listing = bytecode(code)
    n = bisect_right(listing, offset, key=lambda i: i.offset)
    if listing[n - 1].opname == "FOR_ITER":  # a loop counter
        return False
    if n == len(listing) or not listing[n].opname.startswith("STORE_FAST"):
        return n < len(listing) and listing[n].opname == "POP_TOP"
    (name,) = list(names_of(listing[n])[1])[:1] or ("_",)
    return not name.startswith("_") and name not in live_after(code, listing[n].offset)


def _message(instruction: ir.Instruction, text: str) -> str:
    opcode = instruction.opcode.text
    called = f"`{text.strip()}` ({opcode})" if text.strip() else f"`{opcode}`"
    name = opcode.partition(".")[0]
    hint = "use it, or leave it out"
    if name in ("setp", "set"):
        hint = "a comparison alone does nothing: did you mean `=`, or `with pd.if_(…):`?"
    elif name == "mbarrier":
        hint = "it may end before the phase is complete: wait by `with pd.while_(lambda: ~…): pass`"
    elif name == "mma":
        hint = "mma returns new registers: write into variables by `out=`"
    return f"nothing reads the result of {called}; {hint}"
