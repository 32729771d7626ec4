"""The command `ptxdsl layout`: a layout, swizzle or atom as text, SVG or LaTeX, and the banks that an access meets."""

from __future__ import annotations

import argparse
import re
from typing import Any

from ptxdsl.cli.output import STDOUT, write
from ptxdsl.cli.process import UsageError
from ptxdsl.errors import LayoutError, TraceError
from ptxdsl.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    bank_wavefronts,
    make_tiled_copy,
    parse,
    shared_operand,
    tma_atom,
    to_latex,
    to_svg,
    to_text,
)
from ptxdsl.layout.grid import Picture
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import TYPES

BITS = (8, 16, 32, 64, 128)
OPERANDS = ("a", "b")
_TENSOR_MAP = re.compile(
    r"TensorMap(?P<tiled>\.tiled)?\(\s*(?P<type>\w+),\s*\((?P<shape>[\d,\s]+)\)\s*(,\s*swizzle=(?P<swizzle>\d+)\s*)?\)"
)
MOST_CELLS = 1 << 16  # 256 x 256: more is neither legible nor drawn at once
SPECS = """\
SPEC is one of
  ((4,8),(2,2)):((32,1),(16,8))    a layout, shape:stride; the shape alone is compact
  Sw<3,3,3>                        a swizzle
  'Sw<3,3,3> o (8,64):(64,1)'      a layout whose offsets are swizzled
  mma.m16n8k16.f32.f16             an instruction: who holds which element of A, B and C
  ldmatrix.x4, cp.async.16, …      an instruction that copies: who addresses and who holds what
  'TensorMap(bf16, (8, 64), swizzle=128)'  a box, or TensorMap.tiled, that TMA copies: where it lies in shared memory

examples
  ptxdsl layout '((4,8),(2,2)):((32,1),(16,8))' --svg out.svg
  ptxdsl layout mma.m16n8k16 --latex mma.tex
  ptxdsl layout '(64,64):(64,1)' 'Sw<3,3,3> o 0 o (64,64):(64,1)' --banks ldmatrix.x4
  ptxdsl layout 'Sw<3,3,3> o 0 o (128,64):(64,1)' --a wgmma.m64n256k16.f32.bf16
  ptxdsl layout 'TensorMap(bf16, (128, 64), swizzle=128)' --svg box.svg
  ptxdsl layout 'Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))' --boxes cp.async.bulk.tensor.shared.global
"""


def add(commands: Any) -> None:
    """Adds the command to those of `ptxdsl`."""
    parser = commands.add_parser(
        "layout",
        description="Draws layouts, swizzles and instructions.",
        epilog=SPECS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("specs", nargs="*", metavar="SPEC", help="what to draw; see below")
    for name, title in (("svg", "SVG"), ("latex", "LaTeX")):
        parser.add_argument(
            f"--{name}", nargs="?", const=STDOUT, metavar="FILE", help=f"{title} of one SPEC, to stdout or a file"
        )
    parser.add_argument(
        "--bits", type=int, choices=BITS, default=16, help="of an element, where banks are shown (default 16)"
    )
    parser.add_argument("--banks", metavar="ATOM", help="the wavefronts of ldmatrix.x4, ld.shared.16, … on the layout")
    for operand in OPERANDS:
        parser.add_argument(
            f"--{operand}",
            metavar="ATOM",
            help=f"the descriptor by which wgmma reads the layout as operand {operand.upper()}",
        )
    parser.add_argument(
        "--boxes", metavar="ATOM", help="the boxes in which TMA copies a tile that lies as the layout says"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file, not to stdout")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    check(options)
    try:
        pictures = [_drawn(spec, options) for spec in options.specs]
    except LayoutError as error:  # its place would be a line of the script that starts the command
        raise UsageError(error.message, help=error.help) from None
    if options.svg is None and options.latex is None:
        color = False if options.output not in (None, STDOUT) else None
        write(options.output, "\n".join(to_text(p, color) for p in pictures).encode())
    for file, draw in ((options.svg, to_svg), (options.latex, to_latex)):
        if file is not None:
            write(options.output if file == STDOUT else file, draw(pictures[0]).encode())
    return 0


def _drawn(spec: str, options: argparse.Namespace) -> Picture:
    """A picture of a SPEC, or of the descriptor by which wgmma reads it, or of the boxes of TMA, as the options ask."""
    asked = [(name, getattr(options, name)) for name in ("banks", *OPERANDS, "boxes") if getattr(options, name)]
    if len(asked) > 1:
        names = " and ".join(f"--{name}" for name, _ in asked)
        raise UsageError(f"{names} draw different pictures", help="draw each with its own command")
    name, atom = asked[0] if asked else ("", "")
    if name == "boxes":
        bits = tensor_map(spec).element.bits if _is_map(spec) else options.bits
        return make_tiled_copy(tma_atom(atom), parsed(spec), bits=bits).picture()
    if name in OPERANDS:
        return shared_operand(atom, name, parsed(spec)).picture()
    return picture(spec, options.banks, options.bits)


def parsed(spec: str) -> Any:
    """What `spec` stands for: a layout, a swizzle, an instruction; of a tensor map the layout of a box or tile."""
    return tensor_map(spec).layout if _is_map(spec) else parse(spec)


def _is_map(spec: str) -> bool:
    return spec.lstrip().startswith("TensorMap")


def tensor_map(spec: str) -> TensorMap:
    """A tensor map, as it prints itself. Raises LayoutError for what is none."""
    words = _TENSOR_MAP.fullmatch(spec.strip())
    if words is None or words["type"] not in TYPES:
        raise LayoutError(
            f"{spec!r} is no tensor map",
            help="write TensorMap(TYPE, (ROWS, COLUMNS), swizzle=128), or TensorMap.tiled(…), as they print themselves",
        )
    shape = tuple(int(n) for n in words["shape"].split(",") if n.strip())
    make = TensorMap.tiled if words["tiled"] else TensorMap
    try:
        return make(TYPES[words["type"]], shape, int(words["swizzle"]) if words["swizzle"] else None)
    except TraceError as error:
        raise LayoutError(error.message, help=error.help) from None


def check(options: argparse.Namespace) -> None:
    """Refuses a SPEC that is missing, and forms that have nowhere to go, or one place together."""
    for form, file in (("--svg", options.svg), ("--latex", options.latex)):
        if file is not None and is_spec(file):
            raise UsageError(
                f"{form} took {file}, which reads as a SPEC, for the file to write",
                help=f"write the SPEC first, as in: ptxdsl layout '{file}' {form} FILE; for such a file, ./{file}",
            )
    if not options.specs:
        raise UsageError("SPEC is missing: there is nothing to draw", help="give one, as in: ptxdsl layout '(4,8)'")
    files = [file for file in (options.svg, options.latex) if file is not None]
    if not files:
        return
    form = "--latex" if options.svg is None else "--svg"
    if len(options.specs) > 1:
        raise UsageError(
            f"{form} draws one SPEC; {len(options.specs)} are given", help="draw each with its own command"
        )
    if len(files) > len(set(files)):
        where = (options.output or "stdout") if files[0] == STDOUT else files[0]
        raise UsageError(f"--svg and --latex both write to {where}", help="name a file for each")
    if options.output and STDOUT not in files:
        raise UsageError(
            f"-o {options.output} is left without a drawing: {form} names its own file", help="leave out -o"
        )


def is_spec(text: str) -> bool:
    try:
        parsed(text)
    except LayoutError:
        return False
    return True


def picture(spec: str, banks: str | None, bits: int) -> Picture:
    """What `spec` stands for, or how the instruction `banks` meets the banks there; elements have `bits` bits."""
    value = parsed(spec)
    if _is_map(spec):
        bits = tensor_map(spec).element.bits
    if isinstance(value, (Layout, ComposedLayout, Swizzle)):
        check_size(value)
    if banks is not None:
        return wavefronts(value, banks, bits)
    return value.picture(bits) if isinstance(value, (Swizzle, ComposedLayout)) else value.picture()


def check_size(value: Layout | ComposedLayout | Swizzle) -> None:
    bits = value.bits + abs(value.shift) if isinstance(value, Swizzle) else value.size.bit_length() - 1
    if bits >= 64:
        raise UsageError(f"that is 2**{bits} cells or more; a drawing has at most {MOST_CELLS}")
    cells = 1 << bits if isinstance(value, Swizzle) else value.size
    if cells > MOST_CELLS:
        raise UsageError(f"{value} has {cells} cells; a drawing has at most {MOST_CELLS}", help="draw one tile of it")


def wavefronts(value: Any, name: str, bits: int) -> Picture:
    if not isinstance(value, (Layout, ComposedLayout)):
        swizzled = f"write '{value} o 0 o SHAPE:STRIDE'" if isinstance(value, Swizzle) else "give it a layout as SPEC"
        raise UsageError(f"--banks {name} is an access to a layout; {value} is none", help=swizzled)
    return bank_wavefronts(name, value, bits).picture()
