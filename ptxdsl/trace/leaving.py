"""Whether Python leaves a `with` by `return`, `break` or `continue`, told from the bytecode of the function it is in.

Python calls `__exit__` wherever a block can be left, and does not say why. Behind the call at the end of the block it
goes on where it would also go on if the block had swallowed an exception; behind the others it goes elsewhere, or a
statement of the source says that it leaves the block.
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
_RETURN = 4  # the most instructions of a way to `return` that the compiler copies to where it is needed


@dataclass(frozen=True, slots=True)
class Leaving:
    """The statement that leaves a block: its keyword ("" if the source is not at hand), its place, its function."""

    keyword: str
    location: Location
    code: CodeType


def leaving(entered: Calls, left: Calls, location: Location) -> Leaving | None:
    """The statement by which a block is left, where Python entered it at `entered`; None at the end of the block.

    Both have the innermost call first, as has the chain of `location`. A `with` of several calls may stand for one
    block: a context manager of the user's may hold it.
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
    """Whether Python goes elsewhere than behind the block; the line of what led to it, 0 if that is the block's end."""
    listing = bytecode(code)
    n = bisect_right(listing, offset, key=lambda i: i.offset) - 1
    line = _line(listing[n])
    handlers = [m for m, i in enumerate(listing) if i.opname == "WITH_EXCEPT_START" and _line(i) == line]
    if not handlers:
        return False, 0
    goes_to = _destination(listing, n + 1)
    elsewhere = all(_destination(listing, _swallowed(listing, m)) != goes_to for m in handlers)
    before = n - 1
    while _line(listing[before]) == line and listing[before].opname in _CALLING:
        before -= 1
    marked = listing[before].opname == "NOP"  # all that is left of a `return` of nothing, a `break` or `continue`
    return elsewhere, _line(listing[before]) if elsewhere or marked else 0


def _line(instruction: dis.Instruction) -> int:
    return (instruction.positions and instruction.positions.lineno) or 0


def _swallowed(listing: list[dis.Instruction], n: int) -> int:
    """Where Python goes on if `__exit__`, called at WITH_EXCEPT_START, swallows the exception."""
    jump = next(i for i in listing[n:] if i.opname.startswith("POP_JUMP"))
    return bisect_left(listing, int(jump.argval), key=lambda i: i.offset)


def _destination(listing: list[dis.Instruction], n: int) -> Any:
    """Where Python arrives without doing anything: an offset, or all that it does up to a near `return`."""
    while listing[n].opname in _NOTHING:
        forward = listing[n].opname not in ALWAYS
        n = n + 1 if forward else bisect_left(listing, int(listing[n].argval), key=lambda i: i.offset)
    last = [m for m in range(n, min(n + _RETURN, len(listing))) if listing[m].opname.startswith("RETURN")]
    return [(i.opname[:9], i.argval) for i in listing[n : last[0] + 1]] if last else listing[n].offset
