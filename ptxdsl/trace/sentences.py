"""Source-based parts of messages, such as the argument that is meant. The source is parsed only for a message."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ptxdsl.errors import Location


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


def _at(location: Location, node: ast.expr) -> Location:
    end = node.end_col_offset if node.end_lineno == node.lineno else node.col_offset + 1
    return replace(location, line=node.lineno, columns=(node.col_offset, end or 0))


def known_integer(location: Location) -> str:
    """Return the help line for a traced value used as a Python integer."""
    if any(isinstance(node, ast.Subscript) and ends_at(location, node) for _, node in _nodes(location)):
        return "memory takes traced indices: pass the elements as a parameter, `ptr[f32]`, or store them to pd.shared"
    return "count by `pd.range`; what decides shapes and list indices must be a keyword-only argument of the kernel"


def leaving_statement(block: Location, line: int) -> tuple[str, tuple[int, int]] | None:
    """Return (keyword, columns) of the `return`, `break` or `continue` on a line that leaves a `with` block."""
    tree = syntax_tree(block.file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.With) and node.lineno == block.line:
            for inner in _leaving(node):
                if inner.lineno <= line <= (inner.end_lineno or 0):
                    end = inner.end_col_offset if inner.end_lineno == inner.lineno else inner.col_offset + 1
                    return type(inner).__name__.lower(), (inner.col_offset, end or 0)
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
    tree = syntax_tree(block.file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.For | ast.With) and node.lineno == block.line:
            yield from (inner for statement in node.body for inner in ast.walk(statement))


def _leaving(node: ast.AST, in_loop: bool = False) -> Iterator[ast.stmt]:
    """Yield the statements below a node that leave it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return) or (isinstance(child, ast.Break | ast.Continue) and not in_loop):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _leaving(child, in_loop or isinstance(child, ast.For | ast.While))
