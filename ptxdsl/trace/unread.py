"""Warn about unused results: an instruction without side effects whose result Python drops and nothing reads.

A value stored in an object or a closure may stay unread without a warning, since code generators do that.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from typing import Any

from ptxdsl import ir
from ptxdsl.errors import Site, UnusedResultWarning, bytecode
from ptxdsl.trace.builder import Builder
from ptxdsl.trace.liveness import live_after, names_of

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
    if not site.codes:
        return False
    code = site.codes[0]
    listing = bytecode(code)
    n = bisect_right(listing, site.offset, key=lambda i: i.offset)
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
