"""What the documentation takes from the code: the chapters of the instruction table, and pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from itertools import takewhile

from ptxdsl import isa
from ptxdsl.cli.manual import chapter
from ptxdsl.isa.form import Form, Modifier
from ptxdsl.isa.opcode import Op
from ptxdsl.isa.page import by_op, family
from ptxdsl.layout import (
    Layout,
    Swizzle,
    atom,
    bank_wavefronts,
    composition,
    make_tiled_copy,
    shared_operand,
    tile_layout,
    to_svg,
)
from ptxdsl.schedule import GroupedProblemVisitor, IdentityThreadblockSwizzle, StreamKThreadblockSwizzle

ROWS = Layout((16, 32), (32, 1))
SWIZZLED = composition(Swizzle(2, 3, 3), ROWS)
GROUP = [(100, 40, 64), (7, 300, 5), (64, 64, 4000)]
PROBLEM, TILE = (1024, 768, 512), (128, 128, 32)

PICTURES: dict[str, Callable[[], str]] = {
    "rows": lambda: to_svg(ROWS),
    "swizzle": lambda: to_svg(SWIZZLED),
    "banks-rows": lambda: to_svg(bank_wavefronts("ldmatrix.x4", ROWS)),
    "banks-swizzled": lambda: to_svg(bank_wavefronts("ldmatrix.x4", SWIZZLED)),
    "mma": lambda: to_svg(atom("mma.m16n8k16.f32.f16")),
    "descriptor": lambda: to_svg(shared_operand("wgmma.m64n64k16.f32.f16", "a", tile_layout(64, 64, 16))),
    "boxes": lambda: to_svg(make_tiled_copy("cp.async.bulk.tensor.shared.global", tile_layout(16, 128, 16))),
    "raster": lambda: IdentityThreadblockSwizzle(4).map(PROBLEM, TILE).to_svg(),
    "stream-k": lambda: StreamKThreadblockSwizzle(16).plan(PROBLEM, TILE).timeline().to_svg(),
    "grouped": lambda: GroupedProblemVisitor(GROUP, (64, 64, 32), 4, mode="host", balance="k").timeline().to_svg(),
}

Rows = list[tuple[str, Op, list[Form]]]


def chapters() -> Iterator[tuple[str, str, Rows]]:
    """(file, title, instructions) of each chapter of the table, in the order of the manual."""
    rows = by_op((name, op, form) for name, entries in sorted(isa.Op.table.items()) for op, form in entries)
    for module in isa.CHAPTERS:
        members = [row for row in rows if type(row[1]).__module__ == module.__name__]
        if members:
            yield module.__name__.rpartition(".")[2].replace("_", "-"), chapter(members[0][1]), members


def page(title: str, rows: Rows) -> str:
    """A chapter in Markdown."""
    return f"# {title}\n\n" + "\n".join(map(_section, rows))


def _section(row: tuple[str, Op, list[Form]]) -> str:
    name, op, forms = row
    text = textwrap.dedent(family(name, op, forms).partition("\n\n")[2])
    return f"## {_stem(name, forms)}\n\n{op.meaning}\n\n``` {{.text .wide}}\n{text}\n```\n"


def _stem(name: str, forms: list[Form]) -> str:
    """The words with which all forms begin: cp.async, mbarrier.arrive."""
    words = [[str(m.choices[0]) for m in takewhile(_is_fixed, form.modifiers)] for form in forms]
    common = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return ".".join([name, *(column[0] for column in common)])


def _is_fixed(modifier: Modifier) -> bool:
    return modifier.literal and not modifier.optional


def contents(listed: list[tuple[str, str, Rows]]) -> str:
    """The list of all chapters."""
    lines = [
        "# Instructions",
        "",
        f"The table has {len(Op.table)} instructions. Printing, parsing, checking and emulation follow from it, and so "
        "do these pages, which `ptxdsl isa NAME` prints in a terminal. `pd.ptx` spells a mnemonic with dots: "
        "`pd.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(address)`.",
        "",
        "| chapter | instructions |",
        "|---|---|",
    ]
    for address, title, rows in listed:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(_stem(name, forms) for name, _, forms in rows))
        lines.append(f"| [{title}]({address}.md) | {names} |")
    return "\n".join([*lines, ""])
