"""Launches named on the command line: kernels with example functions, or PTX with a grid, a block and arguments."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import numpy as np

from ptxdsl import config
from ptxdsl.check.examples import Example, Maker, examples_of, name_of_examples
from ptxdsl.cli.arguments import read_argument
from ptxdsl.cli.options import number, seed, shape
from ptxdsl.cli.process import UsageError
from ptxdsl.cli.targets import (
    add_constants,
    find_kernel,
    is_ptx,
    kernel_in,
    kernels_of,
    load_module,
    read_constants,
    read_ptx,
    split,
)
from ptxdsl.cli.user_code import user_code
from ptxdsl.emulate.report import counted
from ptxdsl.errors import Error, LaunchError
from ptxdsl.kernel import AnyKernel, Module, ParsedKernel

TARGETS = """\
TARGET is one of
  package.module:kernel, file.py:kernel   a kernel with an example function
  file.py:program.kernel                  a kernel of a program made by pd.link
  package.module, file.py                 all of its kernels that have an example function
  file.ptx, file.ptx:kernel, -            PTX, with --grid, --block and --arg

The example function of a kernel `saxpy` is `example_saxpy(rng)` in the same module. It takes a numpy random generator,
and returns (or yields) the arguments of pd.emulate() after the kernel: grid, block, the kernel's arguments, and a dict
of keyword arguments last.

an ARGUMENT is
  2.5, 1000, 0x10     a number
  f32[32,8]           an array: floats of N(0,1), integers from 0 to 9
  f32[32,8]=0         an array with every element 0
  u32[100]=arange     0, 1, 2, …
  data.npy            an array from a file
"""


def add_launch(parser: argparse.ArgumentParser) -> None:
    """Add the target, and the options that describe a launch of it."""
    parser.add_argument("target", metavar="TARGET", help="kernels or PTX; see below")
    for name in ("grid", "block"):
        parser.add_argument(
            f"--{name}", type=_extents(f"--{name}"), metavar="X[xY[xZ]]", help=f"the {name} of one launch"
        )
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="ARGUMENT",
        help="an argument of the launch; repeat the option in order",
    )
    parser.add_argument("--shared", type=number("--shared"), metavar="BYTES", help="dynamic shared memory")
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="seed of random numbers (default 0)")
    parser.add_argument("--arch", choices=config.ARCHITECTURES, metavar="ARCH", help="sm_80, sm_90a, …")
    add_constants(parser)


def add_example(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that run one launch."""
    parser.add_argument(
        "--example",
        type=number("--example", 1),
        default=1,
        metavar="N",
        help="which example launch (default 1)",
    )


def has_launch(options: argparse.Namespace) -> bool:
    """True if the options describe a launch."""
    return bool(options.arg) or any(part is not None for part in (options.grid, options.block, options.shared))


def launches(options: argparse.Namespace) -> Iterator[tuple[str, AnyKernel, Iterator[Example]]]:
    """Yield each kernel with its name and its launches, with the constants of --const.

    Raises UsageError for an incomplete launch, and for constants that a kernel does not have.
    """
    texts = options.const
    if texts and is_ptx(split(options.target)[0]):
        raise UsageError(f"--const {texts[0]}: PTX has no constants", help="leave it out")

    def with_constants(kernel: AnyKernel, example: Example) -> Example:
        constants = read_constants(kernel, texts, example.keywords) if texts else {}
        return replace(example, keywords={**example.keywords, **constants})

    for name, kernel, examples in _launches(options):
        yield name, kernel, map(partial(with_constants, kernel), examples)


def _launches(options: argparse.Namespace) -> Iterator[tuple[str, AnyKernel, Iterator[Example]]]:
    if has_launch(options) and None in (options.grid, options.block):
        raise UsageError("a launch needs --grid and --block", help="such as --grid 8 --block 128")
    source, name = split(options.target)
    if is_ptx(source):
        if not has_launch(options):
            raise UsageError(
                f"PTX has no example function: {source} needs a launch", help="pass --grid, --block and each --arg"
            )
        kernel = _parsed(source, name)
        yield kernel.name, kernel, iter([_launch(options)])
    elif has_launch(options):
        traced = find_kernel(options.target)
        yield name or traced.name, traced, iter([_launch(options)])
    else:
        yield from _with_examples(source, name, options.seed)


def using_arch(options: argparse.Namespace) -> AbstractContextManager[object]:
    """Run the body of a `with` for the target of --arch."""
    return config.using(arch=options.arch) if options.arch else nullcontext()


@contextmanager
def running(name: str, options: argparse.Namespace) -> Iterator[None]:
    """Run a kernel as user code in the body of a `with`. A LaunchError of a launch from the command line becomes a
    UsageError."""
    try:
        with user_code(f"`{name}` cannot be run"):
            yield
    except LaunchError as error:
        if not has_launch(options):
            raise
        raise UsageError(error.message, at=error.at, help=error.help) from error


def one_launch(options: argparse.Namespace) -> tuple[str, AnyKernel, Example]:
    """Return the kernel and the launch of a command that runs one. Raises UsageError if there are several kernels."""
    (name, kernel, examples), *others = launches(options)
    if others:
        names = ", ".join([name, *(other for other, _, _ in others)])
        raise UsageError(
            f"{options.target} has several kernels with examples: {names}", help=f"say which: {options.target}:{name}"
        )
    known = list(examples)
    if options.example > len(known):
        raise UsageError(f"--example {options.example}: {name} has {counted(len(known), 'example')}")
    return name, kernel, known[options.example - 1]


def _parsed(source: str, name: str) -> ParsedKernel:
    """Return the kernel with that name in PTX, or its only kernel."""
    module = Module(read_ptx(source))
    known = ", ".join(module.kernels)
    if name and name not in module.kernels:
        raise UsageError(f"{source} has no kernel `{name}`", help=f"it has {known or 'none'}")
    if not name and len(module.kernels) != 1:
        help = f"write {source}:{module.kernels[0]}; it has {known}" if known else None
        raise UsageError(f"{source} has {len(module.kernels) or 'no'} kernels{': name one' * bool(known)}", help=help)
    kernel = module[name or module.kernels[0]]
    assert isinstance(kernel, ParsedKernel)
    return kernel


def _launch(options: argparse.Namespace) -> Example:
    rng = np.random.default_rng(options.seed)
    arguments = tuple(read_argument(text, rng) for text in options.arg)
    return Example(
        options.grid, options.block, arguments, {} if options.shared is None else {"shared_bytes": options.shared}
    )


def _with_examples(source: str, name: str, seed: int) -> Iterator[tuple[str, AnyKernel, Iterator[Example]]]:
    """Yield one kernel of a module, or all, with the launches of their example functions."""
    module = load_module(source)
    kernels = kernels_of(module)
    if name:
        kernel = kernel_in(module, source, name)
        paths = [name, *(path for path, each in kernels.items() if each is kernel)]  # `program` is `program.kernel`
        kernels = {next((path for path in paths if _maker(module, path)), name): kernel}
    makers = {name: maker for name in kernels if (maker := _maker(module, name)) is not None}
    if not makers:
        raise _no_examples(source, list(kernels))
    covered = [kernels[path] for path in makers]
    for path in [path for path, kernel in kernels.items() if kernel not in covered]:
        print(f"ptxdsl: {path} has no {_examples_name(path)}(rng) and is not checked", file=sys.stderr)
    for path, maker in makers.items():
        yield path, kernels[path], _examples(maker, source, seed)


def _no_examples(source: str, kernels: Sequence[str]) -> UsageError:
    if not kernels:
        return UsageError(f"{source} has no kernel")
    wanted = f"write a function {_examples_name(kernels[0])}(rng) that returns (grid, block, *arguments)"
    return UsageError(
        f"{source} has no example function for {', '.join(kernels)}",
        help=f"{wanted}, or pass --grid, --block and each --arg",
    )


def _maker(module: ModuleType, kernel: str) -> Maker | None:
    """Return the example function of a kernel: from its module or, for a library module, from `MODULE_examples`."""
    name = _examples_name(kernel)
    maker = getattr(module, name, None)
    if maker is None and module.__name__.startswith("ptxdsl.") and find_spec(f"{module.__name__}_examples"):
        maker = getattr(import_module(f"{module.__name__}_examples"), name, None)
    return maker if callable(maker) else None


def _examples_name(kernel: str) -> str:
    """Return the name of the example function of a kernel, which may belong to a class or a program."""
    return name_of_examples(kernel.rpartition(".")[2])


def _examples(maker: Maker, source: str, seed: int) -> Iterator[Example]:
    """Yield the launches of a user's example function."""
    try:
        inspect.signature(maker).bind(None)
    except TypeError:
        help = f"write `def {maker.__name__}(rng):`; rng is a numpy.random.Generator"
        raise UsageError(f"{maker.__name__} of {source} does not take one argument", help=help) from None
    try:
        with user_code(f"{maker.__name__} of {source} fails"):
            examples = list(examples_of(maker, seed))
    except Error as error:
        raise UsageError(error.message, at=error.at, help=error.help) from error
    yield from examples


def _extents(flag: str) -> Callable[[str], int | tuple[int, ...]]:
    read = shape(flag, 1, "X, XxY or XxYxZ")

    def extents(text: str) -> int | tuple[int, ...]:
        return known if len(known := read(text)) > 1 else known[0]

    return extents
