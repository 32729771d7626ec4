"""The command `ptxdsl`. Each verb is a module of this package, imported when the command line names it.

Such a module has a DESCRIPTION, often an EPILOG, `add(parser)` for its options, and `run(options)`.

`process` handles exit codes, closed streams and Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Sequence

from ptxdsl import __version__
from ptxdsl.cli import process
from ptxdsl.cli.parser import CommandParser

VERBS = {
    "dump": "print a kernel as PTX, instructions, cubin or SASS",
    "run": "run a kernel that ships with ptxdsl and compare the result with numpy",
    "build": "compile a kernel for several targets, with launchers in C++ and Python",
    "check": "run kernels on the emulator and report their errors",
    "debug": "stop, step and inspect a launch on the emulator",
    "profile": "count the cost of a launch by Python line and bound its time on a GPU",
    "layout": "draw a layout, a swizzle, the fragments of an instruction, or bank conflicts",
    "schedule": "draw which block computes which tile, and when",
    "cache": "list or clear the cubins, traces and tuning results on disk",
    "isa": "list the instructions, or show the forms of one",
    "info": "print versions, GPUs, the assembler, the cache and the settings",
    "completion": "print a completion script for bash, zsh or fish",
    "demo": "trace, assemble, run and check a GEMM",
}
_MODULES = {"cache": "cached"}  # modules that are not named after their verb


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return process.run(lambda: _run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> int:
    verb = next((word for word in arguments if not word.startswith("-")), None)
    options = parser_of(*filter(VERBS.__contains__, filter(None, [verb]))).parse_args(_joined(arguments))
    command: Callable[[argparse.Namespace], int] = options.command
    return command(options)


def _joined(arguments: Sequence[str]) -> list[str]:
    """Join a value that begins with a sign and a digit to its option: `--problem -4x4` becomes `--problem=-4x4`."""
    joined: list[str] = []
    for argument in arguments:
        before = joined[-1] if joined else ""
        if re.match(r"-\d", argument) and re.fullmatch(r"--[^=]+", before):
            joined[-1] = f"{before}={argument}"
        else:
            joined.append(argument)
    return joined


def parser_of(*verbs: str) -> argparse.ArgumentParser:
    """Return the parser of the command. Only the modules of the named verbs are imported and add their options."""
    parser: argparse.ArgumentParser = CommandParser(prog="ptxdsl", description="Write PTX kernels in Python.")
    parser.add_argument("--version", action="version", version=f"ptxdsl {__version__}", help="print the version")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for verb, help in VERBS.items():
        if verb in verbs:
            module = importlib.import_module(f"{__name__}.{_MODULES.get(verb, verb)}")
            epilog: str | None = getattr(module, "EPILOG", None)
            layout = argparse.RawDescriptionHelpFormatter if epilog else argparse.HelpFormatter
            added = commands.add_parser(verb, description=module.DESCRIPTION, epilog=epilog, formatter_class=layout)
            added.set_defaults(command=module.run)
            module.add(added)
        else:
            commands.add_parser(verb, help=help)
    return parser
