"""Detect names that seem to keep a variable's earlier value, but refer to the variable itself.

`old = (m, l)` is a tuple of variables, which is legal in general. It is refused if its name suggests an earlier value
(`old`, `prev`), it holds a variable that is written, and it is read later; and if an operator gets one variable twice
through two different paths: `m - old[0]` is 0.
"""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

from ptxdsl.errors import Location, Names, Site, TraceError, bytecode, names_of_calls
from ptxdsl.trace.aliases import held_in, holds_of_any, is_variable, live_names, written_name
from ptxdsl.trace.builder import Builder, current
from ptxdsl.trace.liveness import names_of
from ptxdsl.trace.sentences import operands_at

_PAST = re.compile(r"(?:^|_)(?:old|prev|previous|before|saved|snapshot)(?:_|\d*$)", re.IGNORECASE)
_ENDS = ("STORE_", "POP_TOP", "POP_JUMP", "JUMP_", "FOR_ITER", "END_FOR", "RESUME", "DELETE_")


def check_earlier(builder: Builder, site: Site, variable: Any) -> None:
    """Refuse the write to `variable` at `site` if a name that suggests an earlier value holds it and is read later."""
    if not _may_keep(site.codes):
        return
    for depth, names in enumerate(names_of_calls(builder.code, lambda code: bool(past_names(code)))):
        if names is not None:
            _check(names, builder, written_name(site) if depth == 0 else None, variable)


def _check(names: Names, builder: Builder, written: str | None, variable: Any) -> None:
    for past, sources in past_names(names.code).items():
        source = _source(names, past, sources, variable)
        if source is not None and past in live_names(names, builder) and not _leads(past, written):
            _refuse(builder, past, written or source)


def _source(names: Names, past: str, sources: frozenset[str], variable: Any) -> str | None:
    """Return another name for the container that `past` was built from; None if it does not hold the variable."""
    if not _has(names.values.get(past), variable):
        return None
    return next((name for name in sorted(sources - {past}) if _has(names.values.get(name), variable)), None)


def _has(value: object, variable: Any) -> bool:
    return is_variable(value, variable) or any(is_variable(each, variable) for each in held_in(value))


def _leads(name: str, path: str | None) -> bool:
    """True if a path such as `old[0]` begins with a name."""
    return path is not None and re.split(r"\W", path)[0] == name


def _refuse(builder: Builder, past: str, written: str) -> None:
    raise TraceError(
        f"`{past}` has the variable `{written}`, not what it held before: this write changes both",
        at=builder.site().location,
        help=f"to keep what it held, put `{written}.value` into `{past}`",
    )


@lru_cache(maxsize=256)
def past_names(code: CodeType) -> dict[str, frozenset[str]]:
    """Return names that suggest an earlier value, with the names they are built from, unless those use `.value`."""
    listing = bytecode(code)
    sources: dict[str, frozenset[str]] = {}
    for n, instruction in enumerate(listing):
        past = [name for name in names_of(instruction)[1] if _PAST.search(name)]
        loaded = _loaded(listing[:n]) if past and instruction.opname.startswith("STORE_") else None
        if loaded:
            sources.update({name: sources.get(name, frozenset()) | loaded for name in past})
    return sources


def _loaded(before: Sequence[dis.Instruction]) -> frozenset[str]:
    """Return the local names of the expression that ends here; empty if it reads `.value` of variables."""
    names: set[str] = set()
    for instruction in reversed(before):
        if instruction.opname.startswith(_ENDS):
            break
        if instruction.opname == "LOAD_ATTR" and instruction.argval == "value":
            return frozenset()
        names |= names_of(instruction)[0]
    return frozenset(names)


_may_keep = holds_of_any(past_names)


def check_two_ways() -> None:
    """Refuse an operator whose operands are one rewritten variable, reached through two paths."""
    builder = current("a value")
    location = builder.site().location
    texts = operands_at(location)
    if texts is None:
        return
    (names, *_) = names_of_calls(builder.code, lambda code: True)
    if names is not None and _are_two_ways(names, *texts):
        _refuse_operands(location, *texts)


def _are_two_ways(names: Names, left: ast.expr, right: ast.expr) -> bool:
    """True if both paths reach the variable through different objects.

    Elements with different indices are excepted, as in loops over all pairs of a list. One side may be a plain name
    that a call has bound.
    """
    roots = [_root(left), _root(right)]
    if None in roots or roots[0] == roots[1]:
        return False
    values = [names.values.get(str(root)) for root in roots]
    if values[0] is values[1]:
        return False
    paths = [each for each in (left, right) if not isinstance(each, ast.Name)]
    if len(paths) == 2:
        indices = [ast.unparse(each.slice) for each in paths if isinstance(each, ast.Subscript)]
        return len(indices) < 2 or indices[0] == indices[1]
    plain = next((each.id for each in (left, right) if isinstance(each, ast.Name)), None)
    return len(paths) == 1 and plain is not None and _is_bound_by_calls(names.code, plain)


def _root(path: ast.expr) -> str | None:
    """Return the name that a path of attributes and elements begins with; None for other expressions."""
    while isinstance(path, ast.Attribute | ast.Subscript):
        path = path.value
    return path.id if isinstance(path, ast.Name) else None


@lru_cache(maxsize=256)
def _is_bound_by_calls(code: CodeType, name: str) -> bool:
    """True if every binding of a name is the result of a call."""
    listing = [i for i in bytecode(code) if i.opname not in ("CACHE", "NOP")]
    stores = [n for n, i in enumerate(listing) if name in names_of(i)[1] and i.opname.startswith("STORE_")]
    return bool(stores) and all(_binds_call(listing, n) for n in stores)


def _binds_call(listing: Sequence[dis.Instruction], n: int) -> bool:
    """True if a name is bound to the result of a call, or to a part of it."""
    while listing[n].opname.startswith(("STORE_FAST", "STORE_DEREF", "UNPACK_SEQUENCE")):
        n -= 1
    return listing[n].opname.startswith("CALL") or (listing[n].opname == "BINARY_OP" and "=" in listing[n].argrepr)


def _refuse_operands(location: Location, left: ast.expr, right: ast.expr) -> None:
    raise TraceError(
        f"`{ast.unparse(left)}` and `{ast.unparse(right)}` are one variable: both have its current value",
        at=location,
        help="to keep an earlier value, take `.value` of the variable at that point",
    )
