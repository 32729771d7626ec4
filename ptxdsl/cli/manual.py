"""The instruction table as pages to read: `ptxdsl isa`."""

from __future__ import annotations

import importlib
import re

from ptxdsl import isa
from ptxdsl.cli.process import UsageError
from ptxdsl.isa import page as pages
from ptxdsl.isa.opcode import Op
from ptxdsl.isa.page import python_name, wrapped


def contents() -> str:
    """The names of all instructions, by chapter."""
    chapters = {name: sorted(names, key=str.lower) for name, names in _chapters().items()}
    lines = [f"{len(Op.table)} instructions; `ptxdsl isa NAME` shows the forms of one"]
    for title, names in sorted(chapters.items()):
        lines += ["", title, *wrapped(" ".join(names))]
    return "\n".join(lines)


def _chapters() -> dict[str, set[str]]:
    chapters: dict[str, set[str]] = {}
    for name, entries in Op.table.items():
        for op, _ in entries:
            chapters.setdefault(chapter(op), set()).add(name)
    return chapters


def chapter(op: Op) -> str:
    """The subject of the file that an instruction stands in."""
    title = (importlib.import_module(type(op).__module__).__doc__ or "").partition("\n")[0]
    return re.split(r" \(|[.:]( |$)", title)[0]


def page(text: str) -> str:
    """The page of an instruction, of one form of it, or of the forms with some words: see `isa.page`.

    Raises UsageError, with the nearest names, for what the table does not have.
    """
    if shown := pages.page(text):
        return shown
    message, meant = pages.refusal(text)
    help = meant if text.partition(".")[0] in Op.table else meant or "`ptxdsl isa` lists the instructions that it has"
    raise UsageError(message, help=help)


__all__ = ["contents", "isa", "page", "python_name"]
