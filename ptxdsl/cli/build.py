"""Compile a kernel ahead of time: a fat binary for several targets, a C header with a C++ launcher that needs only the
CUDA driver, and a Python module that needs only cuda-python.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ptxdsl import config
from ptxdsl.ahead import cpp, python
from ptxdsl.ahead.program import AheadProgram, program
from ptxdsl.cli.process import UsageError
from ptxdsl.cli.targets import (
    add_constants,
    check_arch,
    is_ptx,
    kernel_in,
    load_module,
    named,
    only_kernel,
    read_constants,
    read_ptx,
    split,
)
from ptxdsl.cli.user_code import user_code
from ptxdsl.errors import Error, VerifyError
from ptxdsl.kernel import AnyKernel, Module
from ptxdsl.linking.link import LinkedProgram, link
from ptxdsl.runtime.variant import DEFAULT_ARCH, Variant

DESCRIPTION = __doc__
EPILOG = """\
TARGET is one of
  package.module:kernel  a kernel of a module
  file.py:kernel         a kernel of a file; the name may be left out if the file has one kernel
  file.py:program        all kernels of a program made by pd.link
  file.ptx, -            PTX, from a file or from stdin

examples
  ptxdsl build mine.py:saxpy --arch sm_80,sm_90a -o out
  g++ -c out/saxpy.cpp
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("target", metavar="TARGET", help="a kernel, a linked program or PTX; see below")
    parser.add_argument("--arch", metavar="LIST", help="sm_80,sm_90a,…; default PTXDSL_ARCH, then sm_80")
    add_constants(parser)
    parser.add_argument("--name", help="name of the files (default: the name of the kernel or PTX file)")
    parser.add_argument("-o", "--output", metavar="DIR", default="build", help="output folder (default build)")


def run(options: argparse.Namespace) -> int:
    targets = _targets(options.arch)
    built = _program(options.target, options.name, targets, options.const)
    files = {
        f"{built.name}.fatbin": built.image,
        f"{built.name}.h": cpp.header(built).encode(),
        f"{built.name}.cpp": cpp.source(built).encode(),
        f"{built.name}.py": python.module(built).encode(),
    }
    folder = Path(options.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as reason:
        raise UsageError(f"{folder} cannot be written: {reason.strerror}") from None
    for arch, cubin in built.cubins.items():
        for name, resources in cubin.kernels.items():
            print(f"{name}, {arch}: {resources}")
    for name, content in files.items():
        print(f"{folder / name}: {len(content)} bytes")
    return 0


def _targets(listed: str | None) -> list[str]:
    asked = config.current().arch or DEFAULT_ARCH if listed is None else listed
    targets = [arch.strip() for arch in asked.split(",")]
    for arch in targets:
        check_arch(arch)
    if len(set(targets)) < len(targets):
        raise UsageError(f"--arch {listed} names a target twice", help="name each target once")
    return targets


def _program(target: str, name: str | None, targets: Sequence[str], constants: Sequence[str]) -> AheadProgram:
    called, subject = _subject(target)
    if constants and not isinstance(subject, AnyKernel):
        raise UsageError(f"--const {constants[0]}: {called} has no constants", help="leave it out")
    values = read_constants(subject, constants) if isinstance(subject, AnyKernel) else {}
    by_target = {}
    for arch in targets:
        with _for_target(target, arch, targets), user_code(f"`{called}` cannot be traced"):
            variants = _variants(subject, arch, values)
            for variant in variants[:1]:
                variant.cubin  # noqa: B018
            by_target[arch] = variants
    if not any(by_target.values()):
        raise UsageError(f"{target} has no kernels", help="add a kernel to the program")
    chosen = name or called
    if not (chosen.isascii() and chosen.isidentifier()):
        help = "write --name NAME, with letters, digits and underscores"
        raise UsageError(f"`{chosen}` cannot be the name of files and functions in C++", help=help)
    return program(chosen, by_target)


def _subject(target: str) -> tuple[str, AnyKernel | LinkedProgram]:
    """Return the name of the files, and the kernel or program to build."""
    if is_ptx(target):
        module = read_ptx(target)
        return (Path(target).stem if target != "-" else "stdin"), link(Module(module))
    source, name = split(target)
    loaded = load_module(source)
    if not name:
        kernel = only_kernel(source, loaded)
        return kernel.name, kernel
    value = named(loaded, source, name)
    if isinstance(value, LinkedProgram):
        return name.rpartition(".")[2], value
    kernel = kernel_in(loaded, source, name)
    return kernel.name, kernel


def _variants(subject: AnyKernel | LinkedProgram, arch: str, values: dict[str, object]) -> list[Variant]:
    if isinstance(subject, AnyKernel):
        return [subject.variant(arch, values)]
    return [subject.kernel(name).variant(arch, {}) for name in subject.kernels]


@contextlib.contextmanager
def _for_target(target: str, arch: str, targets: Sequence[str]) -> Iterator[None]:
    """Add the target to the message of an error in the body of a `with`."""
    try:
        yield
    except Error as why:
        if isinstance(why, UsageError):
            raise
        others = [each for each in targets if each != arch]
        leave = f"leave {arch} out: --arch {','.join(others)}" if others and isinstance(why, VerifyError) else why.help
        raise UsageError(f"{target} cannot be built for {arch}: {why.message}", at=why.at, help=leave) from None
