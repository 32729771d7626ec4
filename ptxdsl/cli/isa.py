"""The command `ptxdsl isa`: print the instruction table."""

from __future__ import annotations

import argparse
import importlib
import re

from ptxdsl.cli.process import UsageError
from ptxdsl.isa import page as pages
from ptxdsl.isa.opcode import Op
from ptxdsl.isa.page import wrapped

DESCRIPTION = "List the instructions, or show the forms of one."


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "name", nargs="?", help="an instruction (ldmatrix), a form (add.rn.f32) or a word (e4m3); default: list all"
    )


def run(options: argparse.Namespace) -> int:
    print(page(options.name) if options.name else contents())
    return 0


def contents() -> str:
    """Return the names of all instructions, by chapter."""
    chapters: dict[str, set[str]] = {}
    for name, entries in Op.table.items():
        for op, _ in entries:
            chapters.setdefault(chapter(op), set()).add(name)
    lines = [f"{len(Op.table)} instructions; `ptxdsl isa NAME` shows the forms of one"]
    for title, names in sorted(chapters.items()):
        lines += ["", title, *wrapped(" ".join(sorted(names, key=str.lower)))]
    return "\n".join(lines)


def chapter(op: Op) -> str:
    """Return the title of the chapter that defines an instruction."""
    title = (importlib.import_module(type(op).__module__).__doc__ or "").partition("\n")[0]
    return re.split(r" \(|[.:]( |$)", title)[0]


def page(text: str) -> str:
    """Return the page of an instruction, of one form of it, or of the forms that contain some words; see `isa.page`.

    Raises UsageError, with the nearest names, if the table has no match.
    """
    if shown := pages.page(text):
        return shown
    message, meant = pages.refusal(text)
    help = meant if text.partition(".")[0] in Op.table else meant or "`ptxdsl isa` lists all instructions"
    raise UsageError(message, help=help)
