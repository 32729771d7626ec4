"""Detect two Python names for one variable, where a write through one name changes the other.

`old = m` copies nothing: both names refer to the same variable object. A write is therefore refused if an assignment
has bound another name to the variable, or to a second container of the same variables, and that name is read later. An
operator is refused if it gets one variable that was written twice, through two different paths: with `old = (m, l)`,
`m - old[0]` is 0.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import deque
from dataclasses import is_dataclass
from functools import lru_cache
from itertools import pairwise
from types import CodeType, SimpleNamespace
from typing import Any, NoReturn

from ptxdsl.errors import Names, Site, begins, bytecode, names_of_calls
from ptxdsl.trace.builder import Builder, current, refuse
from ptxdsl.trace.contents import is_library, slots_of
from ptxdsl.trace.flow import live_after, names_of
from ptxdsl.trace.source import operands_at, target_of

_COPYING = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "BINARY_SUBSCR", "COPY", "SWAP")
_MEMBERS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST")
_PLAIN = {int, float, bool, str, type(None)}
_TARGET = re.compile(r"([\w.\[\]'\"]+?)\s*(?:\.set\b|[-+*/%&|^<>]+=)|.*\bout=(\w[\w.\[\]]*)")


def check_aliases(builder: Builder, site: Site, variable: Any) -> None:
    """Refuse the write to `variable` at `site` if another name of it is read later."""
    if variable.repeated:
        declared = variable.site.location
        text = declared.text[slice(*declared.columns)] or f"pd.var({variable.type})"
        refuse(
            f"`[{text}] * …` ({declared}) is one variable several times: writing one element changes all of them",
            f"make a variable for each: `[pd.var({variable.type}, …) for _ in range(…)]`",
        )
    for depth, names in enumerate(names_of_calls(builder.code, lambda code: True)):
        if names is not None:
            written = _written_name(site) if depth == 0 else None
            live = live_after(names.code, names.offset).union(*(region.condition for region in builder.regions))
            _check(names, variable, written, live)
            _check_lists(names, variable, written, live)
            if written:
                _check_members(names, variable, written)


def _written_name(site: Site) -> str | None:
    """Return the source text of the variable written at a site; None if it cannot be determined."""
    location = site.location
    written = _TARGET.match(location.text[location.columns[0] :])
    if written or location.text:
        return written and (written[1] or written[2])
    code, offset = site.calls[0]
    listing = bytecode(code)
    n = bisect_right(listing, offset, key=lambda i: i.offset) - 1
    same = [i for i in listing[:n] if begins(i) == begins(listing[n])]  # the text before `.set` or `+=`
    is_write = listing[n].opname == "BINARY_OP" or any(i.argval == "set" for i in same)
    if not is_write or not same[:1] or not same[0].opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
        return None
    is_name = len(same) == 1 or same[1].argval == "set"
    return str(same[0].argval) if is_name else f"{same[0].argval}…"


def _check(names: Names, variable: Any, written: str | None, live: frozenset[str]) -> None:
    """Refuse a write if another local name of the variable is read later. `written` is the name written through, None
    if unknown."""
    bound = [name for name, value in names.values.items() if _is_variable(value, variable)]
    if not bound or (len(bound) == 1 and written in (None, bound[0])):
        return
    others = [name for name in bound if name in live and name != written]
    both = [written, *others] if written else others
    copies = [name for name in both if _is_copied(names, name)]
    if others and copies and len(both) > 1:
        original = next(name for name in both if name != copies[-1])
        _refuse(copies[-1], original, names.values[others[0]])


def _check_lists(names: Names, variable: Any, written: str | None, live: frozenset[str]) -> None:
    """Refuse a write if a list, tuple, dict or object that holds the variables of an earlier one is read later."""
    root = re.split(r"\W", written)[0] if written else ""
    bound = _first_bound(names.code)
    for copy in sorted(bound.keys() & live - {root}):
        if any(_is_variable(value, variable) for value in _held_in(names.values.get(copy))):
            attributes = getattr(names.values.get(root), "__dict__", {})
            others = {**names.values, **{f"{root}.{name}": value for name, value in attributes.items()}}
            for original, container in others.items():
                name = original.partition(".")[0]
                is_earlier = name in {root, *live} and bound.get(name, -1) < bound[copy]
                if is_earlier and _is_copy(names.values[copy], container):
                    _refuse_copied(copy, original, container)


def _is_copy(copy: Any, container: Any) -> bool:
    """True if two containers hold the same variables; a list of an object's fields is made to be used as a list."""
    is_field = isinstance(copy, list | tuple) and _is_object(container)
    is_other = copy is not container and not is_field
    return is_other and [*map(id, _held_in(container))] == [*map(id, _held_in(copy))]


def _check_members(names: Names, variable: Any, written: str) -> None:
    """Refuse a write if another attribute or dict entry that holds the variable is read later."""
    root, *path = re.findall(r"\w+", written)[:2]
    holder = names.values.get(root) if path else None
    members = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
    others = [name for name, value in members.items() if [name] != path and _is_variable(value, variable)]
    if not others:
        return
    behind = {str(i.argval) for i in bytecode(names.code) if i.offset > names.offset and i.opname in _MEMBERS}
    for name in behind.intersection(map(str, others)):
        copy = f"{root}[{name!r}]" if holder is members else f"{root}.{name}"
        _refuse(copy, written, members[name])


def _held_in(container: Any) -> list[Any]:
    """Return the values in a list, tuple, dict or object, including nested lists."""
    if type(container) in _PLAIN or hasattr(type(container), "traced"):
        return []
    if _is_object(container):
        names = getattr(container, "__dict__", ()) or slots_of(type(container))
        container = [getattr(container, name) for name in names if hasattr(container, name)]
    if not isinstance(container, list | tuple | dict | deque):
        return []
    values = list(container.values()) if isinstance(container, dict) else list(container)
    return [part for value in values for part in (_held_in(value) if isinstance(value, list | tuple) else [value])]


def _is_object(value: Any) -> bool:
    """True for an instance of a user class, a dataclass or a SimpleNamespace."""
    kind = type(value)
    return kind is SimpleNamespace or is_dataclass(kind) or (hasattr(value, "__dict__") and not is_library(kind))


def _refuse_copied(copy: str, original: str, container: Any) -> NoReturn:
    kinds = [each.__name__ for each in (list, tuple, dict) if isinstance(container, each)]
    refuse(
        f"`{copy}` has the variables of the {(*kinds, type(container).__name__)[0]} `{original}`, not what these held: "
        "this write changes both",
        f"to keep what they held before, let `{copy}` hold the `.value` of each, as in `[v.value for v in variables]`",
    )


def _is_variable(value: Any, variable: Any) -> bool:
    """True if `value` is the variable, or the pointer variable that holds it."""
    return value is variable or (getattr(type(value), "_moves", False) and value.base is variable)


def _refuse(copy: str, original: str, value: Any) -> NoReturn:
    snapshot = f"{original} + 0" if getattr(type(value), "_moves", False) else f"{original}.value"
    named = f"the variable `{original}`" if not original.endswith("…") else "the variable that is written here"
    help = f"write `{copy} = {snapshot}`" if not original.endswith("…") else f"bind `{copy}` to its `.value`"
    refuse(
        f"`{copy}` is a second name for {named}, not a copy of it: this write changes both",
        f"to keep what it held before, {help}",
    )


def _is_copied(names: Names, name: str) -> bool:
    """True if an assignment that may have run already, also in an earlier iteration, bound `name` to a copy."""
    backward = [i for i in bytecode(names.code) if i.opname.startswith("JUMP_BACKWARD") and i.argval <= names.offset]
    latest = max([names.offset, *(i.offset for i in backward)])
    return any(at < latest for at in _copied(names.code).get(name, ()))


@lru_cache(maxsize=256)
def _copied(code: CodeType) -> dict[str, list[int]]:
    """Return the offsets at which each name is bound to another name, an attribute, an element, or several of these."""
    copied: dict[str, list[int]] = {}
    copies = False
    for instruction in bytecode(code):
        if instruction.opname.startswith("STORE_"):
            for name in names_of(instruction)[1] if copies else ():
                copied.setdefault(name, []).append(instruction.offset)
            copies = copies or "LOAD" in instruction.opname
        elif instruction.opname != "UNPACK_SEQUENCE":  # which gives names to what a copy has
            is_element = instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"  # as Python 3.14 spells it
            copies = instruction.opname.startswith(_COPYING) or is_element
    return copied


def check_two_ways(variable: Any) -> None:
    """Refuse an operator whose operands are one rewritten variable, reached through two paths."""
    builder = current("a value")
    location = builder.site().location
    texts = operands_at(location)
    if texts is None:
        return
    (names, *_) = names_of_calls(builder.code, lambda code: True)
    if names is not None and _are_two_ways(names, variable, *texts):
        left, right = map(ast.unparse, texts)
        refuse(
            f"`{left}` and `{right}` are one variable: both have its current value",
            "to keep an earlier value, take `.value` of the variable at that point",
        )


def _are_two_ways(names: Names, variable: Any, left: ast.expr, right: ast.expr) -> bool:
    """True if both paths reach the variable through different objects.

    Elements with different computed indices are excepted, as in loops over all pairs of a list. One side may be the
    name with which the variable was made, unlike that of a loop over variables.
    """
    roots = [_root(left), _root(right)]
    if None in roots or roots[0] == roots[1]:
        return False
    values = [names.values.get(str(root)) for root in roots]
    if values[0] is values[1]:
        return False
    paths = [each for each in (left, right) if not isinstance(each, ast.Name)]
    if len(paths) == 2:
        indices = [each.slice for each in paths if isinstance(each, ast.Subscript)]
        is_fixed = all(isinstance(each, ast.Constant) for each in indices)
        return len(indices) < 2 or is_fixed or ast.unparse(indices[0]) == ast.unparse(indices[1])
    plain = next((each.id for each in (left, right) if isinstance(each, ast.Name)), None)
    target = target_of(variable.site) if len(paths) == 1 else None
    return target is not None and target.text == plain


def _root(path: ast.expr) -> str | None:
    """Return the name that a path of attributes and elements begins with; None for other expressions."""
    while isinstance(path, ast.Attribute | ast.Subscript):
        path = path.value
    return path.id if isinstance(path, ast.Name) else None


@lru_cache(maxsize=256)
def _first_bound(code: CodeType) -> dict[str, int]:
    """Return where each name is bound first, other than by a loop."""
    listing = [i for i in bytecode(code) if i.opname not in ("CACHE", "NOP")]
    bound: dict[str, int] = {}
    for before, instruction in pairwise(listing):
        if instruction.opname.startswith("STORE_") and before.opname not in ("FOR_ITER", "UNPACK_SEQUENCE"):
            for name in names_of(instruction)[1]:
                bound.setdefault(name, instruction.offset)
    return bound
