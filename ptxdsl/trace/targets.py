"""Find the assignment target of an array's creation: one of several targets, an attribute, a list item, or `:=`.

The line is parsed only if the bytecode does not determine it, as it does for `tile = pd.shared(…)`.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

from ptxdsl.errors import Location, Site
from ptxdsl.trace.sentences import ends_at, syntax_tree


class Target(NamedTuple):
    """A target as written in Python, such as `self.tiles[0]`, and its PTX name: `tiles_0`."""

    text: str
    identifier: str


def target_of(site: Site) -> Target | None:
    """Return the assignment target of a call's result; None if it has no name."""
    if len(site.names) == 1:
        return Target(site.names[0], site.names[0])
    tree = syntax_tree(site.location.file)
    for target, value in _bindings(tree) if tree else ():
        if value.lineno <= site.location.line <= (value.end_lineno or 0):
            indices = _indices(value, site.location)
            if indices is not None:
                return _part(target, indices)
    return None


@lru_cache(maxsize=64)
def _bindings(tree: ast.Module) -> list[tuple[ast.expr, ast.expr]]:
    """Return the (target, value) of all bindings in a file, also through a context manager such as `nullcontext`."""
    pairs: list[tuple[ast.expr | None, ast.expr | None]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target, *_], value=value):
                pairs.append((target, value))
            case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                pairs.append((target, value))
            case ast.withitem(optional_vars=target, context_expr=value):
                inner = value.args[:1] if isinstance(value, ast.Call) else []
                pairs += [(target, each) for each in (value, *inner)]
    return [(target, value) for target, value in pairs if target and value]


def _indices(value: ast.expr, location: Location) -> list[int] | None:
    """Return the position of the call at a location in the nested tuples of a value; None if it is no item of these."""
    match value:
        case ast.Call() if (value.lineno, value.col_offset) == (location.line, location.columns[0]):
            return [] if ends_at(location, value) else None
        case ast.Tuple(elts=elements) | ast.List(elts=elements) if not _is_starred(elements, len(elements) - 1):
            parts = ((n, _indices(element, location)) for n, element in enumerate(elements))
            return next(([n, *inner] for n, inner in parts if inner is not None), None)
        case ast.ListComp(elt=element):
            return _indices(element, location)
        case ast.IfExp(body=first, orelse=second):
            indices = _indices(first, location)
            return _indices(second, location) if indices is None else indices
    return None


def _part(target: ast.expr | None, indices: list[int]) -> Target | None:
    """Return the target of one item of a tuple assignment, by its indices in nested tuples."""
    while indices and isinstance(target, ast.Tuple | ast.List):
        number, *indices = indices
        if _is_starred(target.elts, number):
            return None
        target = target.elts[number]
    identifier = _identifier(target)
    if identifier is None or target is None:
        return None
    text = ast.unparse(target) + "".join(f"[{number}]" for number in indices)
    return Target(text, "_".join([identifier, *map(str, indices)]))


def _is_starred(elements: list[ast.expr], number: int) -> bool:
    """True if a starred target makes the position of an item unknown."""
    return number >= len(elements) or any(isinstance(each, ast.Starred) for each in elements[: number + 1])


def _identifier(target: ast.expr | None) -> str | None:
    match target:
        case ast.Name(id=called) | ast.Attribute(attr=called):
            return called
        case ast.Subscript(value=whole, slice=index):
            known = isinstance(index, ast.Constant) and isinstance(index.value, int | str)
            suffix = f"_{ast.literal_eval(index)}" if known else ""
            return f"{name}{suffix}" if (name := _identifier(whole)) else None
    return None
