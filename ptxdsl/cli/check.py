"""The command `ptxdsl check`: run kernels on the emulator with example arguments and report the findings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ptxdsl.check.examples import Checked, checked
from ptxdsl.check.formats import as_github, as_json, as_sarif, as_text
from ptxdsl.cli.launches import TARGETS, add_launch, has_launch, launches, running, using_arch
from ptxdsl.cli.options import STDOUT, add_format, check_formats, write
from ptxdsl.cli.process import FAILURE
from ptxdsl.cli.progress import LaunchProgress

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
    add_format(parser, "json", "JSON")
    add_format(parser, "sarif", "SARIF 2.1.0")
    parser.add_argument(
        "--github", action="store_const", const=STDOUT, help="annotations for a GitHub workflow, to stdout"
    )


def run(options: argparse.Namespace) -> int:
    """Check the launches; return 1 if one has an error."""
    check_formats(options, "json", "sarif", "github")
    with using_arch(options):
        results = list(_results(options))
    formats = {options.json: as_json, options.sarif: as_sarif, options.github: as_github}
    for file, form in ({STDOUT: as_text} | formats).items():
        if file is not None:
            write(file, form(results))
    return FAILURE if any(result.failed for result in results) else 0


def _results(options: argparse.Namespace) -> Iterator[Checked]:
    progress = LaunchProgress("checking")
    for name, kernel, examples in launches(options):
        for example in examples:
            with progress.launch(f"{name}{example}"), running(name, options):
                result = checked(kernel, name, example, asked=has_launch(options))
            yield result
