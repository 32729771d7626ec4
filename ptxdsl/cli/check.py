"""The command `ptxdsl check`: run kernels on the emulator with example arguments and report the findings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ptxdsl import config
from ptxdsl.check.examples import Checked, checked
from ptxdsl.check.formats import as_github, as_json, as_sarif, as_text
from ptxdsl.cli.launches import TARGETS, add_launch, as_asked, has_launch, launches
from ptxdsl.cli.output import STDOUT, write
from ptxdsl.cli.process import FAILURE, UsageError
from ptxdsl.cli.progress import LaunchProgress
from ptxdsl.cli.user_code import user_code

DESCRIPTION = "Run kernels on the emulator and report races, deadlocks, uninitialised reads and other errors."
EPILOG = f"""{TARGETS}
exit code: 0 no errors (strict findings of parsed PTX are none), 1 errors, 2 the command line is wrong

examples
  ptxdsl check kernels.py
  ptxdsl check kernels.py:saxpy --sarif findings.sarif
  ptxdsl check saxpy.ptx --grid 8 --block 128 --arg f32[1000] --arg f32[1000] --arg 2.0 --arg 1000
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_launch(parser)
    for name, title in (("json", "JSON"), ("sarif", "SARIF 2.1.0")):
        parser.add_argument(f"--{name}", nargs="?", const=STDOUT, metavar="FILE", help=f"{title}, to stdout or a file")
    parser.add_argument("--github", action="store_true", help="annotations for a GitHub workflow, to stdout")


def run(options: argparse.Namespace) -> int:
    """Check the launches; return 1 if one has an error."""
    _check_forms(options)
    with config.using(**({"arch": options.arch} if options.arch else {})):
        results = list(_results(options))
    for file, form in ((options.json, as_json), (options.sarif, as_sarif)):
        if file is not None:
            write(file, form(results).encode(errors="surrogateescape"))
    if options.github:
        write(None, as_github(results).encode(errors="surrogateescape"))
    if STDOUT not in (options.json, options.sarif) and not options.github:
        write(None, as_text(results).encode(errors="surrogateescape"))
    return FAILURE if any(result.failed for result in results) else 0


def _check_forms(options: argparse.Namespace) -> None:
    """Raise UsageError if two formats would be written to the same place."""
    files = [file for file in (options.json, options.sarif, STDOUT if options.github else None) if file is not None]
    if len(set(files)) < len(files):
        raise UsageError("two of --json, --sarif and --github write to the same place", help="name a file for one")


def _results(options: argparse.Namespace) -> Iterator[Checked]:
    progress = LaunchProgress("checking")
    for name, kernel, examples in launches(options):
        for example in examples:
            shown = progress.launch(f"{name}{example}")
            with shown, as_asked(options), user_code(f"`{name}` cannot be run"):
                result = checked(kernel, name, example, asked=has_launch(options))
            yield result
