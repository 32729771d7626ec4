"""The command `ptxdsl dump`: print a kernel as PTX, instructions, a cubin or SASS."""

from __future__ import annotations

import argparse
import sys

from ptxdsl import ir
from ptxdsl.cli.options import write
from ptxdsl.cli.process import UsageError
from ptxdsl.cli.targets import add_constants, find
from ptxdsl.lower import lower
from ptxdsl.runtime.variant import Variant
from ptxdsl.verify import least_version

DESCRIPTION = "Print a kernel as PTX, a list of instructions, a cubin or SASS."
STAGES = ("ir", "ptx", "cubin", "sass")
EPILOG = """\
TARGET is one of
  package.module:kernel  a kernel of a module
  file.py:kernel         a kernel of a file; the name may be left out if the file has one kernel
  file.py:program.kernel a kernel of a program made by pd.link
  package.module:gemm    a launcher: its kernel in the default configuration
  file.ptx, -            PTX, from a file or from stdin

examples
  ptxdsl dump ptxdsl.kernels.gemm:gemm --arch sm_80
  ptxdsl dump ptxdsl.kernels.gemm:gemm --const traits.tiling.stages=3 --stage sass
  ptxdsl dump mine.py:saxpy --annotate
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("target", metavar="TARGET", help="a kernel, a launcher or PTX; see below")
    parser.add_argument("--arch", help="sm_80, sm_90a, …; default PTXDSL_ARCH, then sm_80, or the target of the PTX")
    parser.add_argument("--stage", choices=STAGES, default="ptx", help="the form to print (default ptx)")
    add_constants(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file, not to stdout")
    parser.add_argument("--annotate", action="store_true", help="each Python line over its PTX (stage ptx)")


def run(options: argparse.Namespace) -> int:
    if options.annotate and options.stage != "ptx":
        raise UsageError(
            f"--annotate shows Python lines in PTX, not in {options.stage}", help="leave out one of the two"
        )
    if options.stage == "cubin" and options.output is None and sys.stdout.isatty():
        raise UsageError("a cubin is binary", help="write it to a file (-o kernel.cubin), or into a pipe")
    program = find(options.target, options.arch, options.const)
    write(options.output, _stage(program, options))
    return 0


def _stage(program: Variant, options: argparse.Namespace) -> str | bytes:
    if options.stage == "ir":
        return listing(program.module)
    if options.stage == "ptx":
        return lower(program.module, lineinfo=False, annotate=True) if options.annotate else program.text
    cubin = program.cubin
    for name, resources in cubin.kernels.items():
        print(f"{name}: {resources}", file=sys.stderr)
    return cubin.image if options.stage == "cubin" else cubin.sass()


def listing(module: ir.PtxModule) -> str:
    """List the instructions of a module with their Python lines, and the registers and memory of each function."""
    lines = []
    for function in module.functions:
        body = list(ir.items(function.body or []))
        count = sum(isinstance(item, ir.Instruction) for item in body)
        major, minor = module.version or least_version(module)
        lines.append(
            f"{function.kind} {function}: {count} instructions, {len(function.registers)} registers; "
            f"PTX {major}.{minor}, {module.target[0]}"
        )
        lines += [f"  {p.space} {p}: {p.type}" for p in function.parameters if isinstance(p, ir.Variable)]
        locations = [str(getattr(item, "location", None) or "") for item in body]
        widest = max(map(len, locations), default=0)
        lines += [
            f"{location:{widest}}  {_item(item)}".rstrip() for location, item in zip(locations, body, strict=True)
        ]
    return "\n".join(lines) + "\n"


def _item(item: ir.Item) -> str:
    if isinstance(item, ir.Label):
        return f"{item}:"
    if isinstance(item, ir.Variable):
        return f"{item.space} {item}: {item.bytes} bytes, aligned to {item.align or item.type.bytes}"
    return f"  {item}"
