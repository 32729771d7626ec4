"""Detect, from bytecode, that Python leaves a `with` block by `return`, `break` or `continue`.

Python calls `__exit__` wherever a block can be left, and does not say why. After the call at the end of the block it
continues where it would also continue if the block had swallowed an exception; after the others it continues elsewhere,
or the source has a statement that leaves the block.
"""

from __future__ import annotations

import dis
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType
from typing import Any

from ptxdsl.errors import Location, bytecode
from ptxdsl.trace.liveness import ALWAYS
from ptxdsl.trace.sentences import leaving_statement

Calls = tuple[tuple[CodeType, int], ...]
_NOTHING = ("NOP", "POP_TOP", "POP_EXCEPT", "POP_ITER", "EXTENDED_ARG", "NOT_TAKEN", *ALWAYS)
_CALLING = ("LOAD_CONST", "PUSH_NULL", "PRECALL", "SWAP", "EXTENDED_ARG")
_RETURN = 4  # maximum length of a `return` sequence that the compiler duplicates


@dataclass(frozen=True, slots=True)
class Leaving:
    """The statement that leaves a block: its keyword ("" without source), its location, its function."""

    keyword: str
    location: Location
    code: CodeType


def leaving(entered: Calls, left: Calls, location: Location) -> Leaving | None:
    """Return the statement that leaves a block entered at `entered`; None at the end of the block.

    Both call lists and the chain of `location` have the innermost call first. One block may span several calls, if a
    user-defined context manager enters it.
    """
    chain = location.chain()
    moved = [depth for depth, call in enumerate(left) if call not in entered]
    for depth in moved:
        statement = _leaving(*left[depth], chain[min(depth, len(chain) - 1)])
        if statement:
            return Leaving(*statement, left[depth][0])
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
