"""The command `ptxdsl`: dump what a kernel becomes, run a GEMM, draw layouts and schedules, read the instruction table,
list the cubins that are kept, see the demo.

`process` says how it exits.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence

from ptxdsl import __version__, config, driver, ir
from ptxdsl.cli import build, cached, check, debug, demo, layout, manual, process, profile, schedule
from ptxdsl.cli.numbers import at_most, seed
from ptxdsl.cli.output import write
from ptxdsl.cli.parser import CommandParser
from ptxdsl.cli.process import FAILURE, UsageError
from ptxdsl.cli.targets import find, override
from ptxdsl.cli.trial import Trial, default_device
from ptxdsl.kernels.choose.gemm import choose
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import FP8, INPUTS, outputs
from ptxdsl.lower import lower
from ptxdsl.runtime.variant import Variant
from ptxdsl.types import TYPES
from ptxdsl.verify import least_version

STAGES = ("ir", "ptx", "cubin", "sass")
DUMP_TARGETS = """\
TARGET is one of
  package.module:kernel  a kernel, by the module that it is in
  file.py:kernel         a kernel, by its file; without a name the only kernel of the file
  file.py:program.kernel that of a program which pd.link made
  package.module:gemm    a launcher: the kernel of its default configuration
  file.ptx, -            PTX, from a file or from stdin

examples
  ptxdsl dump ptxdsl.kernels.gemm:gemm --arch sm_80
  ptxdsl dump ptxdsl.kernels.gemm:gemm --const traits.tiling.stages=3 --stage sass
  ptxdsl dump mine.py:saxpy --annotate
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    return process.run(lambda: _run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(_joined(arguments))
    command: Callable[[argparse.Namespace], int] = options.command
    return command(options)


def _joined(arguments: Sequence[str]) -> list[str]:
    """`--problem -4x4` as `--problem=-4x4`: what begins with a sign and a digit is a value, and no option."""
    joined: list[str] = []
    for argument in arguments:
        before = joined[-1] if joined else ""
        if re.match(r"-\d", argument) and re.fullmatch(r"--[^=]+", before):
            joined[-1] = f"{before}={argument}"
        else:
            joined.append(argument)
    return joined


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = CommandParser(prog="ptxdsl", description="Write PTX kernels in Python.")
    parser.add_argument("--version", action="version", version=f"ptxdsl {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_dump(commands)
    _add_run(commands)
    build.add(commands)
    check.add(commands)
    debug.add(commands)
    profile.add(commands)
    layout.add(commands)
    schedule.add(commands)
    cached.add(commands)
    isa = commands.add_parser("isa", help="what the table knows of an instruction", description=manual.__doc__)
    isa.add_argument("name", nargs="?", help="ldmatrix, or one form such as add.rn.f32; without it, the list of all")
    isa.set_defaults(command=_isa)
    shown = commands.add_parser("demo", help="a GEMM: traced, assembled, run, compared", description=demo.__doc__)
    shown.set_defaults(command=lambda options: demo.run())
    return parser


Commands = argparse._SubParsersAction  # what argparse calls it


def _add_dump(commands: Commands[argparse.ArgumentParser]) -> None:
    dump = commands.add_parser(
        "dump",
        help="the PTX, machine code or instructions of a kernel",
        description="Prints what a kernel becomes.",
        epilog=DUMP_TARGETS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    dump.add_argument("target", metavar="TARGET", help="a kernel, a launcher or PTX; see below")
    dump.add_argument("--arch", help="sm_80, sm_90a, …; default PTXDSL_ARCH, then sm_80, or what the PTX says")
    dump.add_argument("--stage", choices=STAGES, default="ptx", help="how far to take it (default ptx)")
    dump.add_argument(
        "--const", action="append", default=[], metavar="NAME=VALUE", help="a constant of the kernel, or a field of one"
    )
    dump.add_argument("-o", "--output", metavar="FILE", help="write to a file, not to stdout")
    dump.add_argument("--annotate", action="store_true", help="each Python line over its PTX (stage ptx)")
    dump.set_defaults(command=_dump)


def _add_run(commands: Commands[argparse.ArgumentParser]) -> None:
    run = commands.add_parser("run", help="run a kernel that ships with ptxdsl, and compare its result with numpy")
    kernels = run.add_subparsers(required=True, metavar="KERNEL")
    gemm = kernels.add_parser(
        "gemm",
        help="out = a @ b",
        description="out = a @ b on random matrices, on the GPU or the emulator, compared with numpy in float64.",
    )
    for name, meaning in (("m", "rows of A"), ("n", "columns of B"), ("k", "columns of A, rows of B")):
        gemm.add_argument(f"--{name}", type=_size(f"--{name}"), default=256, help=f"{meaning} (default 256)")
    types = tuple(map(str, (*INPUTS, *FP8)))
    gemm.add_argument("--dtype", choices=types, default="f16", help="type of A and B (default f16); e4m3, e5m2: sm_90a")
    gemm.add_argument("--out", help="type of the result (default: that of A, s32 for integers)")
    gemm.add_argument(
        "--layout",
        choices=("tn", "nn", "nt", "tt"),
        default="tn",
        help="BLAS letters of A and B: t is row-major, n column-major (default tn)",
    )
    gemm.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="of GemmConfig: tile=128,128,32, stages=3, …",
    )
    gemm.add_argument("--device", choices=config.DEVICES, help="default PTXDSL_DEVICE, then the GPU where there is one")
    gemm.add_argument("--seed", type=seed, default=0, help="of the random matrices (default 0)")
    gemm.set_defaults(command=_run_gemm)


def _size(flag: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal():
            raise argparse.ArgumentTypeError(f"{text} is no size: it must be 0 or more")
        return at_most(flag, text)

    return read


def _dump(options: argparse.Namespace) -> int:
    if options.annotate and options.stage != "ptx":
        raise UsageError(f"--annotate shows Python lines in PTX, not in {options.stage}", help="leave one of them out")
    if options.stage == "cubin" and options.output is None and sys.stdout.isatty():
        raise UsageError("a cubin is binary", help="write it to a file (-o kernel.cubin), or into a pipe")
    program = find(options.target, options.arch, options.const)
    write(options.output, _stage(program, options))
    return 0


def _stage(program: Variant, options: argparse.Namespace) -> bytes:
    if options.stage == "ir":
        return _bytes(listing(program.module))
    if options.stage == "ptx":
        text = lower(program.module, lineinfo=False, annotate=True) if options.annotate else program.text
        return _bytes(text)
    cubin = program.cubin
    for name, resources in cubin.kernels.items():
        print(f"{name}: {resources}", file=sys.stderr)
    return cubin.image if options.stage == "cubin" else cubin.sass().encode()


def _bytes(text: str) -> bytes:
    """UTF-8, but for names of files that are none, which stay as they are."""
    return text.encode(errors="surrogateescape")


def listing(module: ir.PtxModule) -> str:
    """The instructions of a module, each behind its place in Python, and what they need."""
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


def _run_gemm(options: argparse.Namespace) -> int:
    device = options.device or default_device()
    if device == "cuda":
        driver.require_gpu()
    chosen = override("--config", _usual(options), options.config) if options.config else None
    known = [str(type) for type in outputs(TYPES[options.dtype])]
    out = options.out or known[0]
    if out not in known:
        raise UsageError(f"--out {out} of --dtype {options.dtype}", help=f"it is one of {', '.join(known)}")
    trial = Trial(options.m, options.n, options.k, options.dtype, out, options.layout, chosen, options.seed)
    with config.using(**_target(options.dtype, device)):
        outcome = trial.run(device)
    print(f"gemm {trial.m} x {trial.n} x {trial.k}, {trial.dtype} to {out}, {trial.layout}, on {outcome.where}")
    print(f"{outcome.speed}; {outcome.comparison}")
    print("ok" if outcome.ok else "FAILED")
    return 0 if outcome.ok else FAILURE


def _target(dtype: str, device: str) -> dict[str, str]:
    """What the emulator is to be, where nobody says: products of 8-bit floats take sm_90a."""
    is_asked = config.current().arch is not None
    return {} if is_asked or device == "cuda" or TYPES[dtype] not in FP8 else {"arch": "sm_90a"}


def _usual(options: argparse.Namespace) -> GemmConfig:
    """The configuration whose fields --config replaces."""
    if TYPES[options.dtype] in FP8:
        return GemmConfig(tile=(128, 128, 128), atom=WGMMA)
    return choose(options.m, options.n, options.k, TYPES[options.dtype], scheduled=True)


def _isa(options: argparse.Namespace) -> int:
    print(manual.page(options.name) if options.name else manual.contents())
    return 0
