"""Parts of the documentation that are generated from the code: the chapters of the instruction table, and pictures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import takewhile

from ptxdsl import isa
from ptxdsl.cli.isa import chapter
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

MANUAL = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
_MOVE, _SYNC = "data-movement-and-conversion-instructions", "parallel-synchronization-and-communication-instructions"
SECTIONS = {  # of the manual, by chapter
    "integer": "integer-arithmetic-instructions", "extended": "extended-precision-arithmetic-instructions",
    "floating": "floating-point-instructions", "half": "half-precision-floating-point-instructions",
    "compare": "comparison-and-selection-instructions", "logic": "logic-and-shift-instructions",
    "memory": _MOVE, "convert": _MOVE, "copy": f"{_MOVE}-asynchronous-copy", "bulk": f"{_MOVE}-cp-async-bulk",
    "tensor": f"{_MOVE}-cp-async-bulk-tensor", "multimem": f"{_MOVE}-multimem-ld-reduce-multimem-st-multimem-red",
    "control": "control-flow-instructions", "sync": _SYNC, "mbarrier": f"{_SYNC}-mbarrier",
    "transactions": f"{_SYNC}-mbarrier", "cluster": f"{_MOVE}-mapa", "atomic": f"{_SYNC}-atom", "warp": _SYNC,
    "matrix": "warp-level-matrix-instructions", "mma-sparse": "warp-level-matrix-instructions",
    "mma-narrow": "warp-level-matrix-instructions",
    "wmma": "warp-level-matrix-instructions", "wgmma": "asynchronous-warpgroup-level-matrix-instructions",
    "tcgen05": "tensorcore-5th-generation-instructions", "tcgen05-mma": "tensorcore-5th-generation-instructions",
    "video": "scalar-video-instructions",
}  # fmt: skip
EXAMPLES = {  # a picture with its caption, and the pages with kernels, by chapter
    "matrix": ("mma", "The fragments of `mma.m16n8k16`: thread `T`, value `V`.",
               "[ldmatrix and mma](../../tutorial/06-ldmatrix-and-mma.md)"),
    "wgmma": ("descriptor", "Operand A in shared memory, with the fields of its descriptor.",
              "[A role kernel with wgmma](../../tutorial/10-role-kernel.md)"),
    "tensor": ("boxes", "A tile of 16 x 128 bf16 that TMA copies as two boxes.",
               "[TMA and mbarriers](../../tutorial/09-tma-and-mbarriers.md)"),
    "mbarrier": ("", "", "[TMA and mbarriers](../../tutorial/09-tma-and-mbarriers.md)"),
    "copy": ("", "", "[A pipelined copy](../../tutorial/07-pipelined-copy.md)"),
    "warp": ("", "", "[Shared memory](../../tutorial/03-shared-memory.md)"),
}  # fmt: skip

Rows = list[tuple[str, Op, list[Form]]]


def chapters() -> Iterator[tuple[str, str, Rows]]:
    """Yield (file, title, instructions) of each chapter of the table, in the order of the manual."""
    rows = by_op((name, op, form) for name, entries in sorted(isa.Op.table.items()) for op, form in entries)
    for module in isa.CHAPTERS:
        members = [row for row in rows if type(row[1]).__module__ == module.__name__]
        if members:
            yield module.__name__.rpartition(".")[2].replace("_", "-"), chapter(members[0][1]), members


def page(address: str, title: str, rows: Rows) -> str:
    """Return a chapter in Markdown."""
    section = SECTIONS.get(address, "")
    lines = [f"In the manual: [PTX ISA]({MANUAL}{f'#{section}' if section else ''})."]
    picture, caption, kernels = EXAMPLES.get(address, ("", "", ""))
    if kernels:
        lines[0] += f" In kernels: {kernels}."
    if picture:
        lines += [caption, f"![{caption}](../../pictures/{picture}.svg)"]
    return f"# {title}\n\n" + "\n\n".join(lines) + "\n\n" + "\n".join(map(_section, rows))


def _section(row: tuple[str, Op, list[Form]]) -> str:
    name, op, forms = row
    text = textwrap.dedent(family(name, op, forms).partition("\n\n")[2])
    return f"## {_stem(name, forms)}\n\n{op.meaning}\n\n``` {{.text .wide}}\n{text}\n```\n"


def _stem(name: str, forms: list[Form]) -> str:
    """Return the words that all forms begin with: cp.async, mbarrier.arrive."""
    words = [[str(m.choices[0]) for m in takewhile(_is_fixed, form.modifiers)] for form in forms]
    common = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return ".".join([name, *(column[0] for column in common)])


def _is_fixed(modifier: Modifier) -> bool:
    return modifier.literal and not modifier.optional


def _anchor(heading: str) -> str:
    """Return the anchor that MkDocs gives to a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def contents(listed: list[tuple[str, str, Rows]]) -> str:
    """Return the list of all chapters; each instruction links to its section."""
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
        stems = dict.fromkeys(_stem(name, forms) for name, _, forms in rows)
        names = ", ".join(f"[`{name}`]({address}.md#{_anchor(name)})" for name in stems)
        lines.append(f"| [{title}]({address}.md) | {names} |")
    return "\n".join([*lines, ""])
