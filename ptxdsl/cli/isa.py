"""The command `ptxdsl isa`: print the instruction table."""

from __future__ import annotations

import argparse
from typing import Any

from ptxdsl.cli import manual


def add(commands: Any) -> None:
    """Add the command to the commands of `ptxdsl`."""
    parser = commands.add_parser("isa", description="List the instructions, or show the forms of one.")
    parser.add_argument(
        "name", nargs="?", help="an instruction (ldmatrix), a form (add.rn.f32) or a word (e4m3); default: list all"
    )
    parser.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    print(manual.page(options.name) if options.name else manual.contents())
    return 0
