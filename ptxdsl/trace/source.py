"""Python's source text, for messages and names: the argument that is meant, the target of an assignment.

A file is parsed only where a message needs it, or where bytecode does not determine the name of an array.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ptxdsl.errors import Location, Site


def syntax_tree(file: str) -> ast.Module | None:
    """Return the syntax tree of a Python file; None if Python cannot parse it."""
    return _tree(file, "".join(linecache.getlines(file)))


@lru_cache(maxsize=64)
def _tree(file: str, text: str) -> ast.Module | None:
    try:
        return ast.parse(text, file)
    except SyntaxError:
        return None


def _nodes(location: Location) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield (parent, node) for each expression at exactly this location."""
    tree = syntax_tree(location.file)
    for parent in ast.walk(tree) if tree else ():
        for node in ast.iter_child_nodes(parent):
            if getattr(node, "lineno", 0) == location.line and node.col_offset == location.columns[0]:  # type: ignore[attr-defined]
                yield parent, node


def ends_at(location: Location, node: ast.AST) -> bool:
    """True if a node that begins at a location also ends there; the end is unknown on another line."""
    end = (getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None))
    return end == (location.line, location.columns[1]) or end[0] != location.line


def argument(location: Location, index: int | None) -> Location:
    """Return the location of a positional argument of the call at `location`, else `location` itself."""
    if index is None:
        return location
    for _, node in _nodes(location):
        if isinstance(node, ast.Call) and ends_at(location, node):
            is_text = node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
            arguments = node.args[1:] if is_text else node.args  # in `pd.ptx("add.u32", a, b)`
            if index < len(arguments) and not any(isinstance(a, ast.Starred) for a in arguments[: index + 1]):
                return _at(location, arguments[index])
    return location


def operands_at(location: Location) -> tuple[ast.expr, ast.expr] | None:
    """Return the two operands of the operator or call at a location; None for other expressions."""
    for _, node in _nodes(location):
        match node:
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                pair = left, right
            case ast.Call(args=[left, right], keywords=[]):
                pair = left, right
            case _:
                continue
        if ends_at(location, node):
            return pair
    return None


def _at(location: Location, node: ast.expr | ast.stmt) -> Location:
    end = node.end_col_offset if node.end_lineno == node.lineno else node.col_offset + 1
    return replace(location, line=node.lineno, columns=(node.col_offset, end or 0))


def known_integer(location: Location) -> str:
    """Return the help line for a traced value used as a Python integer."""
    if any(isinstance(node, ast.Subscript) and ends_at(location, node) for _, node in _nodes(location)):
        return "memory takes traced indices: pass the elements as a parameter, `ptr[f32]`, or store them to pd.shared"
    return "count by `pd.range`; what decides shapes and list indices must be a keyword-only argument of the kernel"


def leaving_statement(block: Location, line: int) -> tuple[str, tuple[int, int]] | None:
    """Return (keyword, columns) of the `return`, `break` or `continue` on a line that leaves a `with` block."""
    for node in _blocks_at(block):
        for inner in _leaving(node) if isinstance(node, ast.With) else ():
            if inner.lineno <= line <= (inner.end_lineno or 0):
                return type(inner).__name__.lower(), _at(block, inner).columns
    return None


def advancing(block: Location, name: str) -> Location:
    """Return the location of the call in a block that names an iterator, else the block."""
    for node in _within(block):
        if isinstance(node, ast.Call) and re.search(rf"\b{re.escape(name)}\b", ast.unparse(node)):
            return _at(block, node)
    return block


def assigning(block: Location, name: str) -> Location:
    """Return the location of the assignment in a block that binds a name, else the block."""
    for node in _within(block):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            for bound in ast.walk(target):
                if isinstance(bound, ast.Name) and bound.id == name and isinstance(bound.ctx, ast.Store):
                    return _at(block, bound)
    return block


def _within(block: Location) -> Iterator[ast.AST]:
    """Yield the syntax nodes inside of the `for` or `with` at a location."""
    for node in _blocks_at(block):
        yield from (inner for statement in node.body for inner in ast.walk(statement))


def _blocks_at(location: Location) -> list[ast.For | ast.With]:
    """Return the `for` and `with` at the line of a location."""
    tree = syntax_tree(location.file)
    return [node for node in _blocks(tree) if node.lineno == location.line] if tree else []


@lru_cache(maxsize=64)
def _blocks(tree: ast.Module) -> list[ast.For | ast.With]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.With)]


def _leaving(node: ast.AST, in_loop: bool = False) -> Iterator[ast.stmt]:
    """Yield the statements below a node that leave it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return) or (isinstance(child, ast.Break | ast.Continue) and not in_loop):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _leaving(child, in_loop or isinstance(child, ast.For | ast.While))


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
