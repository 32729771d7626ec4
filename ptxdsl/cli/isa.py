"""The command `ptxdsl isa`: print the instruction table."""

from __future__ import annotations

import argparse

from ptxdsl.cli import manual

DESCRIPTION = "List the instructions, or show the forms of one."


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "name", nargs="?", help="an instruction (ldmatrix), a form (add.rn.f32) or a word (e4m3); default: list all"
    )


def run(options: argparse.Namespace) -> int:
    print(manual.page(options.name) if options.name else manual.contents())
    return 0
