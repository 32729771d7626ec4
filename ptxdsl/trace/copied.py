"""Find copies of containers in bytecode: `list(m)`, `m.copy()`, `m[:]`, `[*m]`, `[v for v in m]`, `copy.copy(m)`,
`dataclasses.replace(m)`, `dict(vars(m))` or `C(**vars(m))`.

Such a copy of variables holds the same variables, not their values.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType

from ptxdsl.errors import bytecode
from ptxdsl.trace.liveness import names_of

_COPIERS = {"list", "tuple", "dict", "copy", "replace"}
_STEPS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD", "PUSH_NULL", "PRECALL")
_NAMED = _STEPS[:-2]
_FILLS = ("LIST_EXTEND", "DICT_UPDATE", "DICT_MERGE")
_LOOP_ENDS = ("END_FOR", "POP_ITER", "POP_TOP", "SWAP", "JUMP_BACKWARD")  # instructions of an inlined comprehension


@lru_cache(maxsize=256)
def copied_names(code: CodeType) -> frozenset[str]:
    """Return the names that are bound to a full copy of another container."""
    listing = _without_views([i for i in bytecode(code) if i.opname not in ("CACHE", "NOP", "RESUME")])
    bound = [names_of(i)[1] for n, i in enumerate(listing) if i.opname.startswith("STORE_") and _copies(listing, n - 1)]
    return frozenset().union(*bound)


def _without_views(listing: list[dis.Instruction]) -> list[dis.Instruction]:
    """Replace calls of `vars` in a listing by their argument: a copy of one copies the other."""
    left: list[dis.Instruction] = []
    for instruction in listing:
        named = [i for i in left[-4:] if i.opname.startswith(_NAMED)]
        if instruction.opname == "CALL" and instruction.arg == 1 and [i.argval for i in named[-2:-1]] == ["vars"]:
            left = [i for i in left if i is not named[-2] and not (i is left[-1] and i.opname == "PRECALL")]
        else:
            left.append(instruction)
    return left


def _copies(listing: Sequence[dis.Instruction], n: int) -> bool:
    """True if the result of an instruction is such a copy."""
    last, before = listing[n], listing[: max(n, 0)]
    if last.opname == "CALL":
        return _calls_copier(before)
    if last.opname in ("LIST_TO_TUPLE", "CALL_INTRINSIC_1"):
        return _copies(listing, n - 1)
    if last.opname == "CALL_FUNCTION_EX":
        return bool(before) and before[-1].opname == "DICT_MERGE" and _copies(listing, n - 1)
    if last.opname in _FILLS:
        first = next((i for i in reversed(before) if not i.opname.startswith(_STEPS)), None)
        return first is not None and first.opname in ("BUILD_LIST", "BUILD_MAP") and first.arg == 0
    if last.opname in ("BINARY_SUBSCR", "BINARY_SLICE") or last.argrepr == "[]":
        bounds = [i for i in before[-3:] if i.opname == "LOAD_CONST"]
        return bool(bounds) and all(i.argval in (None, slice(None, None, None)) for i in bounds)
    if last.opname in _LOOP_ENDS or (n > 0 and last.opname == "STORE_FAST" and before[-1].opname == "SWAP"):
        return _copies(listing, n - 1)
    return last.opname == "LIST_APPEND" and _takes_each(listing, n - 1)


def _calls_copier(before: Sequence[dis.Instruction]) -> bool:
    """True if the call after these instructions is `list`, a method `copy`, or a comprehension that copies."""
    for n in reversed(range(len(before))):
        if not before[n].opname.startswith(_STEPS):
            return before[n].opname == "GET_ITER" and _comprehends(before[:n])
        if before[n].opname.startswith(_NAMED) and before[n].argval in _COPIERS:
            return True
    return False


def _comprehends(before: Sequence[dis.Instruction]) -> bool:
    """True if a comprehension compiled as a function takes each element unchanged."""
    position = next((n for n in reversed(range(len(before))) if before[n].opname == "MAKE_FUNCTION"), 0)
    code = before[position - 1].argval if position else None
    listing = bytecode(code) if isinstance(code, CodeType) else []
    return any(i.opname == "LIST_APPEND" and _takes_each(listing, n - 1) for n, i in enumerate(listing))


def _takes_each(listing: Sequence[dis.Instruction], n: int) -> bool:
    """True if a loop stores its element unchanged, or a copy of it."""
    last, before = listing[n], listing[n - 1]
    if last.opname == "STORE_FAST_LOAD_FAST":
        return len(set(last.argval)) == 1
    kept = last.opname == "LOAD_FAST" and before.opname == "STORE_FAST" and last.argval == before.argval
    return kept or _copies(listing, n)
