"""The command `ptxdsl check`: kernels on the emulator with example arguments, and what is wrong with them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from ptxdsl import config
from ptxdsl.check.examples import Checked, Example, Maker, checked, examples_of, name_of_examples
from ptxdsl.check.formats import as_github, as_json, as_sarif, as_text
from ptxdsl.cli.arguments import read_argument
from ptxdsl.cli.numbers import at_most, seed
from ptxdsl.cli.output import STDOUT, write
from ptxdsl.cli.process import FAILURE, UsageError
from ptxdsl.cli.targets import find_kernel, is_ptx, kernel_in, kernels_of, load_module, read_ptx
from ptxdsl.cli.user_code import user_code
from ptxdsl.errors import Error
from ptxdsl.kernel import Kernel, Module, ParsedKernel

DESCRIPTION = "Runs kernels on the emulator and tells what they do wrong."
TARGETS = """\
TARGET is one of
  package.module:kernel, file.py:kernel   a kernel with examples beside it
  package.module, file.py                 all kernels of it that have examples
  file.ptx, file.ptx:kernel, -            PTX, with --grid, --block and --arg

The examples of a kernel `saxpy` come from a function `example_saxpy(rng)` in the same module. It takes a numpy random
generator, and returns (or yields) what pd.emulate() takes behind the kernel: grid, block, arguments, and keywords as a
dict at the end.

an ARGUMENT is
  2.5, 1000, 0x10     a number
  f32[32,8]           an array: floats of N(0,1), integers from 0 to 9
  f32[32,8]=0         all elements the same
  u32[100]=arange     0, 1, 2, …
  data.npy            an array of a file

exit code: 0 nothing was found, 1 something was, 2 the command cannot be meant

examples
  ptxdsl check kernels.py
  ptxdsl check kernels.py:saxpy --sarif findings.sarif
  ptxdsl check saxpy.ptx --grid 8 --block 128 --arg f32[1000] --arg f32[1000] --arg 2.0 --arg 1000
"""
Launchable = Kernel | ParsedKernel


def add(commands: Any) -> None:
    """Adds the command to those of `ptxdsl`."""
    parser = commands.add_parser(
        "check",
        help="what a kernel does wrong, found on the emulator",
        description=DESCRIPTION,
        epilog=TARGETS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", metavar="TARGET", help="kernels or PTX; see below")
    for name in ("grid", "block"):
        parser.add_argument(
            f"--{name}", type=_shape(f"--{name}"), metavar="X[xY[xZ]]", help=f"of one launch: its {name}"
        )
    parser.add_argument("--arg", action="append", default=[], metavar="ARGUMENT", help="of one launch, in their order")
    parser.add_argument("--shared", type=_bytes, metavar="BYTES", help="of one launch: dynamic shared memory")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of random numbers (default 0)")
    parser.add_argument("--arch", choices=config.ARCHITECTURES, metavar="ARCH", help="sm_80, sm_90a, …")
    for name, title in (("json", "JSON"), ("sarif", "SARIF 2.1.0")):
        parser.add_argument(f"--{name}", nargs="?", const=STDOUT, metavar="FILE", help=f"{title}, to stdout or a file")
    parser.add_argument("--github", action="store_true", help="annotations for a workflow of GitHub, to stdout")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """1 where something was found."""
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
    return FAILURE if any(result.findings for result in results) else 0


def _check_forms(options: argparse.Namespace) -> None:
    """Refuses two forms in one place, and half a launch."""
    files = [file for file in (options.json, options.sarif, STDOUT if options.github else None) if file is not None]
    if len(set(files)) < len(files):
        raise UsageError("two of --json, --sarif and --github write to the same place", help="name a file for one")
    if _has_launch(options) and not (options.grid and options.block):
        raise UsageError("a launch needs --grid and --block", help="such as --grid 8 --block 128")


def _has_launch(options: argparse.Namespace) -> bool:
    return bool(options.grid or options.block or options.arg) or options.shared is not None


def _results(options: argparse.Namespace) -> Iterator[Checked]:
    for name, kernel, examples in _launches(options):
        for example in examples:
            with user_code(f"`{name}` cannot be run"):
                result = checked(kernel, name, example)
            yield result


def _launches(options: argparse.Namespace) -> Iterator[tuple[str, Launchable, Iterator[Example]]]:
    """Kernels by their names, and the launches of each."""
    source, name = _parts(options.target)
    if is_ptx(source):
        if not _has_launch(options):
            raise UsageError(f"PTX has no examples: give {source} a launch", help="say --grid, --block and each --arg")
        kernel = _parsed(source, name)
        yield kernel.name, kernel, iter([_launch(options)])
    elif _has_launch(options):
        traced = find_kernel(options.target)
        yield name or traced.name, traced, iter([_launch(options)])
    else:
        yield from _with_examples(source, name, options.seed)


def _parts(target: str) -> tuple[str, str]:
    """What stands before the last colon and behind it."""
    source, colon, name = target.rpartition(":")
    return (source, name) if colon else (target, "")


def _parsed(source: str, name: str) -> ParsedKernel:
    """The kernel of that name in PTX, or its only one."""
    module = Module(read_ptx(source))
    known = ", ".join(module.kernels)
    if name and name not in module.kernels:
        raise UsageError(f"{source} has no kernel `{name}`", help=f"it has {known or 'none'}")
    if not name and len(module.kernels) != 1:
        help = f"write {source}:{module.kernels[0]}; it has {known}" if known else None
        raise UsageError(f"{source} has {len(module.kernels) or 'no'} kernels{': say which' * bool(known)}", help=help)
    kernel = module[name or module.kernels[0]]
    assert isinstance(kernel, ParsedKernel)
    return kernel


def _launch(options: argparse.Namespace) -> Example:
    rng = np.random.default_rng(options.seed)
    arguments = tuple(read_argument(text, rng) for text in options.arg)
    return Example(
        options.grid, options.block, arguments, {} if options.shared is None else {"shared_bytes": options.shared}
    )


def _with_examples(source: str, name: str, seed: int) -> Iterator[tuple[str, Launchable, Iterator[Example]]]:
    """The kernel of that name in a module, or all of it, with the launches that their functions make."""
    module = load_module(source)
    kernels = {name: kernel_in(module, source, name)} if name else kernels_of(module)
    makers = {name: maker for name in kernels if (maker := _maker(module, name)) is not None}
    if not makers:
        raise _no_examples(source, list(kernels))
    for kernel in kernels.keys() - makers.keys():
        print(f"ptxdsl: {kernel} has no {name_of_examples(kernel)}(rng) and is not checked", file=sys.stderr)
    for kernel, maker in makers.items():
        yield kernel, kernels[kernel], _examples(maker, source, seed)


def _no_examples(source: str, kernels: Sequence[str]) -> UsageError:
    if not kernels:
        return UsageError(f"{source} has no kernel")
    wanted = f"write a function {name_of_examples(kernels[0])}(rng) that returns (grid, block, *arguments)"
    return UsageError(
        f"{source} has no examples of {', '.join(kernels)}", help=f"{wanted}, or say --grid, --block and each --arg"
    )


def _maker(module: ModuleType, kernel: str) -> Maker | None:
    maker = getattr(module, name_of_examples(kernel.rpartition(".")[2]), None)
    return maker if callable(maker) else None


def _examples(maker: Maker, source: str, seed: int) -> Iterator[Example]:
    """The examples of a function, which is somebody's."""
    try:
        with user_code(f"{maker.__name__} of {source} fails"):
            examples = list(examples_of(maker, seed))
    except Error as error:
        raise UsageError(error.message, at=error.at, help=error.help) from error
    yield from examples


def _shape(flag: str) -> Callable[[str], int | tuple[int, ...]]:
    def read(text: str) -> int | tuple[int, ...]:
        parts = text.lower().split("x")
        if len(parts) > 3 or not all(part.isdecimal() for part in parts):
            raise UsageError(f"{flag} {text} is no shape", help="write X, XxY or XxYxZ")
        extents = tuple(at_most(flag, part) for part in parts)
        return extents if len(extents) > 1 else extents[0]

    return read


def _bytes(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"--shared {text} is no number of bytes")
    return at_most("--shared", text)
