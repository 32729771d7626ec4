"""The command `ptxdsl layout`: draw a layout, swizzle or atom as text, SVG or LaTeX, and the bank conflicts of an
access.
"""

from __future__ import annotations

import argparse
import re
from typing import Any

from ptxdsl.cli.options import STDOUT, add_format, check_formats, write
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
from ptxdsl.layout.draw import Picture
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import TYPES

DESCRIPTION = "Draw layouts, swizzles and instructions."
BITS = (8, 16, 32, 64, 128)
OPERANDS = ("a", "b")
_TENSOR_MAP = re.compile(
    r"TensorMap(?P<tiled>\.tiled)?\(\s*(?P<type>\w+),\s*\((?P<shape>[\d,\s]+)\)\s*(,\s*swizzle=(?P<swizzle>\d+)\s*)?\)"
)
MOST_CELLS = 1 << 16  # 256 x 256; larger drawings are illegible and slow
EPILOG = """\
SPEC is one of
  ((4,8),(2,2)):((32,1),(16,8))    a layout, shape:stride; a shape alone has compact strides
  Sw<3,3,3>                        a swizzle
  'Sw<3,3,3> o (8,64):(64,1)'      a layout whose offsets are swizzled
  mma.m16n8k16.f32.f16             an instruction: the thread that holds each element of A, B and C
  tcgen05.m128n64k16.f32.f16       an instruction: the lane and column of each element of D in tensor memory
  tcgen05.ld.32x32b.x8             a load or store: the thread and register of each cell of tensor memory
  ldmatrix.x4, cp.async.16, …      a copy instruction: the thread that addresses and the thread that holds each element
  'TensorMap(bf16, (8, 64), swizzle=128)'  a TMA box, or TensorMap.tiled: its layout in shared memory

examples
  ptxdsl layout '((4,8),(2,2)):((32,1),(16,8))' --svg out.svg
  ptxdsl layout mma.m16n8k16 --latex mma.tex
  ptxdsl layout '(64,64):(64,1)' 'Sw<3,3,3> o 0 o (64,64):(64,1)' --banks ldmatrix.x4
  ptxdsl layout 'Sw<3,3,3> o 0 o (128,64):(64,1)' --a wgmma.m64n256k16.f32.bf16
  ptxdsl layout 'TensorMap(bf16, (128, 64), swizzle=128)' --svg box.svg
  ptxdsl layout 'Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))' --boxes cp.async.bulk.tensor.shared.global
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("specs", nargs="*", metavar="SPEC", help="the layout or instruction to draw; see below")
    add_format(parser, "svg", "draw one SPEC as SVG")
    add_format(parser, "latex", "draw one SPEC as LaTeX")
    parser.add_argument(
        "--bits", type=int, choices=BITS, default=16, help="bits of an element, for bank conflicts (default 16)"
    )
    parser.add_argument(
        "--banks", metavar="ATOM", help="show the wavefronts of ldmatrix.x4, ld.shared.16, … on the layout"
    )
    for operand in OPERANDS:
        parser.add_argument(
            f"--{operand}",
            metavar="ATOM",
            help=f"show the wgmma descriptor of the layout as operand {operand.upper()}",
        )
    parser.add_argument("--boxes", metavar="ATOM", help="show the boxes in which TMA copies a tile with this layout")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file instead of stdout")


def run(options: argparse.Namespace) -> int:
    check(options)
    try:
        pictures = [_drawn(spec, options) for spec in options.specs]
    except LayoutError as error:  # the location of a LayoutError would be in the script that starts the command
        raise UsageError(error.message, help=error.help) from None
    if options.svg is None and options.latex is None:
        color = False if options.output not in (None, STDOUT) else None
        write(options.output, "\n".join(to_text(p, color) for p in pictures))
    for file, draw in ((options.svg, to_svg), (options.latex, to_latex)):
        if file is not None:
            write(options.output if file == STDOUT else file, draw(pictures[0]))
    return 0


def _drawn(spec: str, options: argparse.Namespace) -> Picture:
    """Return the picture of a SPEC, of its wavefronts, its wgmma descriptor, or its TMA boxes."""
    asked = [(name, getattr(options, name)) for name in ("banks", *OPERANDS, "boxes") if getattr(options, name)]
    if len(asked) > 1:
        names = " and ".join(f"--{name}" for name, _ in asked)
        raise UsageError(f"{names} cannot be combined", help="draw each with its own command")
    name, atom = asked[0] if asked else ("", "")
    value, bits = parsed(spec), tensor_map(spec).element.bits if _is_map(spec) else options.bits
    if name == "boxes":
        return make_tiled_copy(tma_atom(atom), value, bits=bits).picture()
    if name in OPERANDS:
        return shared_operand(atom, name, value).picture()
    if isinstance(value, (Layout, ComposedLayout, Swizzle)):
        check_size(value)
    if name == "banks":
        return wavefronts(value, atom, bits)
    return value.picture(bits) if isinstance(value, (Swizzle, ComposedLayout)) else value.picture()


def parsed(spec: str) -> Any:
    """Return the layout, swizzle or instruction of `spec`; for a tensor map, the layout of its box or tile."""
    return tensor_map(spec).layout if _is_map(spec) else parse(spec)


def _is_map(spec: str) -> bool:
    return spec.lstrip().startswith("TensorMap")


def tensor_map(spec: str) -> TensorMap:
    """Return the tensor map of `spec`. Raises LayoutError if `spec` is not the repr of a tensor map."""
    words = _TENSOR_MAP.fullmatch(spec.strip())
    if words is None or words["type"] not in TYPES:
        raise LayoutError(
            f"{spec!r} is not a tensor map",
            help="write TensorMap(TYPE, (ROWS, COLUMNS), swizzle=128) or TensorMap.tiled(…), as their repr does",
        )
    shape = tuple(int(n) for n in words["shape"].split(",") if n.strip())
    make = TensorMap.tiled if words["tiled"] else TensorMap
    try:
        return make(TYPES[words["type"]], shape, int(words["swizzle"]) if words["swizzle"] else None)
    except TraceError as error:
        raise LayoutError(error.message, help=error.help) from None


def check(options: argparse.Namespace) -> None:
    """Raise UsageError if a SPEC is missing, or if two drawings would be written to the same place."""
    for form, file in (("--svg", options.svg), ("--latex", options.latex)):
        if file is not None and is_spec(file):
            raise UsageError(
                f"{form} takes {file} as the file to write, but it is a SPEC",
                help=f"write the SPEC first, as in: ptxdsl layout '{file}' {form} FILE, or name the file ./{file}",
            )
    if not options.specs:
        raise UsageError("SPEC is missing", help="give one, as in: ptxdsl layout '(4,8)'")
    files = [file for file in (options.svg, options.latex) if file is not None]
    if not files:
        return
    form = "--latex" if options.svg is None else "--svg"
    if len(options.specs) > 1:
        raise UsageError(
            f"{form} draws one SPEC; {len(options.specs)} are given", help="draw each with its own command"
        )
    check_formats(options, "svg", "latex", stdout=options.output or "stdout")
    if options.output and STDOUT not in files:
        raise UsageError(f"-o {options.output} is not used: {form} names its own file", help="leave out -o")


def is_spec(text: str) -> bool:
    try:
        parsed(text)
    except LayoutError:
        return False
    return True


def check_size(value: Layout | ComposedLayout | Swizzle) -> None:
    bits = value.bits + abs(value.shift) if isinstance(value, Swizzle) else value.size.bit_length() - 1
    if bits >= 64:
        raise UsageError(f"the layout has 2**{bits} cells or more; a drawing has at most {MOST_CELLS}")
    cells = 1 << bits if isinstance(value, Swizzle) else value.size
    if cells > MOST_CELLS:
        raise UsageError(f"{value} has {cells} cells; a drawing has at most {MOST_CELLS}", help="draw one tile of it")


def wavefronts(value: Any, name: str, bits: int) -> Picture:
    if not isinstance(value, (Layout, ComposedLayout)):
        swizzled = f"write '{value} o 0 o SHAPE:STRIDE'" if isinstance(value, Swizzle) else "pass a layout as SPEC"
        raise UsageError(f"--banks {name} needs a layout; {value} is not a layout", help=swizzled)
    return bank_wavefronts(name, value, bits).picture()
