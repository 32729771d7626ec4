"""Find the assignment target of an array's creation: one of several targets, an attribute, a list item, or `:=`.

The line is parsed only if the bytecode does not determine it, as it does for `tile = pd.shared(…)`.
"""

from __future__ import annotations

import ast
from itertools import pairwise
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
    return _assigned(_around(tree, site.location)) if tree else None


def _around(node: ast.AST, location: Location) -> list[ast.AST]:
    """Return the call at a location and its enclosing nodes, innermost first; empty if no call is there."""
    for child in ast.iter_child_nodes(node):
        first, last = getattr(child, "lineno", 0), getattr(child, "end_lineno", location.line) or 0
        if not first <= location.line <= last:
            continue
        starts = (first, getattr(child, "col_offset", -1)) == (location.line, location.columns[0])
        if starts and isinstance(child, ast.Call) and ends_at(location, child):
            return [child, node]
        if chain := _around(child, location):
            return [*chain, node]
    return []


def _assigned(chain: list[ast.AST]) -> Target | None:
    """Return the target of the innermost node; the others enclose it."""
    indices: list[int] = []
    is_handed_on = False
    for node, parent in pairwise(chain):
        match parent:
            case ast.withitem(optional_vars=target):
                return _part(target, indices)
            case ast.Call(args=[argument]) if argument is node:  # through a context manager, such as `nullcontext`
                is_handed_on = True
            case _ if is_handed_on:
                return None
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                indices.insert(0, elements.index(node))  # type: ignore[arg-type]
                if _is_starred(elements, indices[0]):
                    return None
            case ast.NamedExpr(target=target) | ast.AnnAssign(target=target):
                return _part(target, indices)
            case ast.Assign(targets=[target, *_]):
                return _part(target, indices)
            case ast.ListComp() | ast.IfExp():
                pass
            case _:
                return None
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
