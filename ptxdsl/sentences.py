"""What a message says of a line of Python: which argument is meant, which construct asked a traced value for its truth.

The source is parsed only when there is something to refuse.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from .errors import Location


@lru_cache(maxsize=64)
def _tree(file: str, text: str) -> ast.Module | None:
    try:
        return ast.parse(text, file)
    except SyntaxError:
        return None


def _nodes(place: Location) -> Iterator[tuple[ast.AST, ast.AST]]:
    """(parent, node) for each expression that stands exactly at a place."""
    tree = _tree(place.file, "".join(linecache.getlines(place.file)))
    for parent in ast.walk(tree) if tree else ():
        for node in ast.iter_child_nodes(parent):
            if getattr(node, "lineno", 0) == place.line and node.col_offset == place.columns[0]:  # type: ignore[attr-defined]
                yield parent, node


def _here(place: Location, node: ast.AST) -> bool:
    end = (getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None))
    return end == (place.line, place.columns[1]) or end[0] != place.line


def argument(place: Location, index: int | None) -> Location:
    """The place of one positional argument of the call that stands at `place`; `place` itself if it cannot be told."""
    if index is None:
        return place
    for _, node in _nodes(place):
        if isinstance(node, ast.Call) and _here(place, node):
            arguments = node.args if not _is_string_call(node) else node.args[1:]
            if index < len(arguments) and not any(isinstance(a, ast.Starred) for a in arguments[: index + 1]):
                return _at(place, arguments[index])
    return place


def _is_string_call(node: ast.Call) -> bool:
    """`pd.ptx("add.u32", a, b)`: the mnemonic comes first."""
    return bool(node.args) and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)


def _at(place: Location, node: ast.expr) -> Location:
    end = node.end_col_offset if node.end_lineno == node.lineno else node.col_offset + 1
    return replace(place, line=node.lineno, columns=(node.col_offset, end or 0))


_IN_WORDS = {
    ast.If: ("`if`", "write `with pd.if_({0}):`; a Python `if` is decided while tracing"),
    ast.IfExp: ("a conditional expression", "write `pd.select({0}, a, b)`"),
    ast.While: ("`while`", "write `with pd.while_(lambda: …):`, with the condition after the lambda"),
    ast.Assert: ("`assert`", "trap where it fails: `with pd.if_(~({0})): pd.ptx.trap()`"),
    ast.And: ("`and`", "write `a & b` with each comparison in parentheses"),
    ast.Or: ("`or`", "write `a | b` with each comparison in parentheses"),
    ast.Not: ("`not`", "write `~({0})`"),
    ast.Compare: ("a chain of comparisons", "write `(a < b) & (b < c)`"),
    ast.In: ("`in`", "compare with each: `(x == a) | (x == b)`"),
    ast.comprehension: ("a filter of a comprehension", "filter by Python values; select traced ones by `pd.select`"),
}


def truth(place: Location, name: str) -> tuple[str, str]:
    """(message, help) for a traced value that is asked whether it is true."""
    kind = _asker(place)
    what, help = _IN_WORDS.get(kind, ("Python", "compare and choose with pd.min, pd.max, pd.select or `with pd.if_`"))
    return f"{what} asks whether `{name}` is true, which is not known while tracing", help.format(name)


def _asker(place: Location) -> type[ast.AST]:
    found: list[type[ast.AST]] = []
    for parent, node in _nodes(place):
        if not _here(place, node):
            continue
        if isinstance(node, ast.Compare) and (len(node.ops) > 1 or isinstance(node.ops[0], (ast.In, ast.NotIn))):
            found.append(ast.In if len(node.ops) == 1 else ast.Compare)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found.append(ast.Not)
        elif isinstance(parent, ast.BoolOp):
            found.append(type(parent.op))
        elif getattr(parent, "test", None) is node or isinstance(parent, ast.comprehension):
            found.append(type(parent))
    return found[-1] if found else ast.AST
