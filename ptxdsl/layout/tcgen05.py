"""Atoms of tcgen05: products with D in tensor memory, and the cells that loads and stores access."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from ptxdsl.layout.draw import Cell, Drawable, Grid, Picture, thread_value_cell
from ptxdsl.layout.layout import Layout
from ptxdsl.layout.mma_atom import MmaAtom
from ptxdsl.layout.mma_shapes import TCGEN05, TCGEN05_M, TensorMemoryKind
from ptxdsl.layout.shape import refusal
from ptxdsl.layout.tensor_memory import LAYOUTS, REGISTERS_OF, WARP_THREADS, fragment, layout_of

MOST_N = 256
PAIR_M = 256  # of an instruction of two CTAs
MOST_REGISTERS = 128  # of one load or store
SCALE_ROWS, FACTORS = 32, 4  # rows and block scales in a column of 32 lanes: a byte each
SCALE_BLOCK_ROWS = 128
A_CELLS = 4  # bytes of K of a row in a cell of tensor memory
WIDTHS = {"f16": 32, "f32": 32, "s32": 32}  # of a cell, which holds one element of D


class ScaleFormat(NamedTuple):
    """Block scales: one factor of `type` for each `block` elements of K of a row."""

    block: int
    type: str


@dataclass(frozen=True)
class TensorMemoryAtom(MmaAtom):
    """One tcgen05.mma: A and B in shared memory, or A in tensor memory (suffix .ts); D in tensor memory.

    With M = 256 it is one of a CTA pair: each block holds half of the rows of A and of D, and half of the rows of B.
    `types` are those of D, A and B; `scales` the block scales, None without.
    """

    product: TensorMemoryKind = field(compare=False)  # its tables cannot be hashed
    types: tuple[str, str, str]
    scales: ScaleFormat | None
    a_in_tensor_memory: bool

    @property
    def ctas(self) -> int:
        return 2 if self.shape[0] == PAIR_M else 1

    @property
    def kind(self) -> str:
        """The kind in the mnemonic, such as "f16"."""
        return self.product.kind

    @property
    def transposable(self) -> tuple[int, ...]:
        return (8, 16)

    @property
    def factors(self) -> int:
        """The block scales of a row in one instruction; 0 without."""
        return self.shape[2] // self.scales.block if self.scales else 0

    @property
    def a_columns(self) -> int:
        """The columns of A in tensor memory."""
        return self.shape[2] * self.a_bits // 8 // A_CELLS

    def descriptor(self, a_transposed: bool = False, b_transposed: bool = False, k_step: int = 0) -> int:
        """Return the instruction descriptor. `k_step` selects the block scales within their columns."""
        m, n, _ = self.shape
        d, a, b = self.types
        types = self.product.inputs[a] << 7 | self.product.inputs[b] << 10 | n // 8 << 17
        majors = a_transposed << 15 | b_transposed << 16
        if self.scales is None:
            return types | majors | self.product.sums[d] << 4 | m // 16 << 24
        first = k_step * self.factors % FACTORS
        return types | majors | first << 4 | (self.scales.type == "ue8m0") << 23 | m // 128 << 27 | first << 29

    def cell(self, operand: str, row: int, column: int) -> tuple[int, int] | None:
        lanes = LAYOUTS[layout_of(self.shape[0], self.ctas, False, False)].lanes
        if operand == "c":
            return int(lanes[row % len(lanes)]), column % self.shape[1]
        if operand == "a" and self.a_in_tensor_memory:
            return int(lanes[row % len(lanes)]), column % self.shape[2] * self.a_bits // 8 // A_CELLS
        return None

    def picture(self) -> Picture:
        """Draw A left of D and B above it: the bytes of A and B in shared memory, the lanes and columns of D in tensor
        memory, and the cells of the block scales below.
        """
        picture = super().picture()
        if self.scales is None:
            return picture
        grids = [
            self._scale_grid(name, rows, (n, 2)) for n, (name, rows) in enumerate(zip("AB", self.shape, strict=False))
        ]
        return picture._replace(grids=(*picture.grids, *grids))

    def _scale_grid(self, matrix: str, rows: int, at: tuple[int, int]) -> Grid:
        factors = "k0" if self.factors == 1 else f"k0-{self.factors - 1}"
        columns = -(-rows // SCALE_ROWS)
        held = [[lane + column * SCALE_ROWS for column in range(columns)] for lane in range(min(rows, SCALE_ROWS))]
        cells = tuple(
            tuple(Cell((str(row), factors), row % 8, " ") if row < rows else None for row in line) for line in held
        )
        return Grid(f"scales of {matrix} in tensor memory: row and factors, in each quarter of the lanes", cells, at)


_NAME = re.compile(
    r"tcgen05(?:\.mma)?\.m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)\.(?P<d>\w+)\.(?P<a>\w+)(?:\.(?P<b>(?!block|ts$)\w+))?"
    r"(?:\.block(?P<block>\d+)\.(?P<scale>\w+))?(?P<ts>\.ts)?"
)
EXAMPLE = "tcgen05.m128n256k16.f32.bf16"
_ACCESS = re.compile(r"tcgen05\.(?P<op>ld|st)(?:\.sync\.aligned)?\.(?P<shape>\w+)\.x(?P<count>\d+)(?:\.b32)?")


@cache
def tensor_memory_atom(name: str) -> TensorMemoryAtom:
    """Return the atom of a name such as tcgen05.m128n256k16.f32.bf16: the shape, then the types of D and of A and B.

    Block scales follow as .block16.ue4m3; the suffix .ts reads A from tensor memory.
    """
    match = _NAME.fullmatch(name)
    if not match:
        raise refusal(f"there is no MMA atom {name!r}", f"write tcgen05.SHAPE.ACCUMULATOR.INPUT, such as {EXAMPLE}")
    types = match["d"], match["a"], match["b"] or match["a"]
    scales = ScaleFormat(int(match["block"]), match["scale"]) if match["block"] else None
    m, n, k = (int(match[axis]) for axis in "mnk")
    product = _product(name, types, scales, k)
    _check_shape(name, product, m, n)
    bits = product.element_bits
    a, b, c = (Layout((1, extents), (0, (1, extents[0]))) for extents in ((m, k), (n, k), (m, n)))
    label = f"tcgen05.m{m}n{n}k{k}.{match['d']}.{match['a']}" + (f".{types[2]}" if types[1] != types[2] else "")
    label += (f".block{scales.block}.{scales.type}" if scales else "") + (match["ts"] or "")
    in_tensor_memory = match["ts"] is not None
    return TensorMemoryAtom(label, (m, n, k), 1, a, b, c, bits, bits, 32, product, types, scales, in_tensor_memory)


def _product(name: str, types: tuple[str, str, str], scales: ScaleFormat | None, k: int) -> TensorMemoryKind:
    d, a, b = types
    known = [p for p in TCGEN05 if bool(p.scales) == (scales is not None)]
    typed = [p for p in known if d in p.sums and {a, b} <= p.inputs.keys() and not (d == "f16" and "bf16" in (a, b))]
    if not typed:
        with_scales = " with block scales" if scales else ""
        pairs = dict.fromkeys(f"{d}.{a}" for p in known for d in p.sums for a in p.inputs if (d, a) != ("f16", "bf16"))
        mixed = "; of two types of 8, 6 or 4 bits A and B may mix, as in tcgen05.m128n64k32.f32.e4m3.e2m1"
        raise refusal(
            f"there is no MMA atom {name!r}: tcgen05.mma has no {d} accumulators of {a} and {b}{with_scales}"
            if a != b
            else f"there is no MMA atom {name!r}: tcgen05.mma has no {d} accumulators of {a}{with_scales}",
            f"the types are {', '.join(pairs)}{mixed}",
        )
    fitting = [p for p in typed if p.k == k]
    if not fitting:
        raise refusal(
            f"there is no MMA atom {name!r}: K is {k}",
            f"one instruction multiplies K = {' or '.join(str(p.k) for p in typed[:2])} of {a}",
        )
    if scales is None:
        return fitting[0]
    scaled = [p for p in fitting if scales in p.scales]
    if not scaled:
        every = ", ".join(f".block{block}.{type}" for p in fitting for block, type in p.scales)
        raise refusal(
            f"there is no MMA atom {name!r}: K = {k} of {a} has no {scales.type} scales of blocks of {scales.block}",
            f"the scales are {every}",
        )
    return scaled[0]


def _check_shape(name: str, product: TensorMemoryKind, m: int, n: int) -> None:
    rows = TCGEN05_M[product.scales != () :]  # scaled products have no M = 64
    if m not in rows:
        known = f"M is {'128' if product.scales else '64 or 128'}, or 256 for a CTA pair"
        raise refusal(f"there is no MMA atom {name!r}: M is {m}", known)
    pair = m == PAIR_M
    wide = product.kind == "i8" and (pair or n > 32)
    step = 8 << pair << wide
    if n % step or not step <= n <= MOST_N:
        after = " from 32 on" if wide and not pair else ""
        raise refusal(f"there is no MMA atom {name!r}: N is {n}", f"N is a multiple of {step}{after}, up to {MOST_N}")


@dataclass(frozen=True)
class TensorMemoryAccess(Drawable):
    """One tcgen05.ld or tcgen05.st of a warp: `shape` such as "32x32b", repeated `count` times along the columns."""

    name: str
    shape: str
    count: int

    def __str__(self) -> str:
        return self.name

    def picture(self) -> Picture:
        """Draw the thread and register of each cell, relative to the address of the instruction."""
        cells_of = fragment(self.shape, self.count)
        cells: dict[tuple[int, int], Cell] = {}
        for register, (lanes, columns) in enumerate(zip(cells_of.lanes, cells_of.columns, strict=True)):
            for thread in range(WARP_THREADS):
                cells[int(lanes[thread]), int(columns[thread])] = thread_value_cell(thread, register)
        height, width = (max(position[axis] for position in cells) + 1 for axis in (0, 1))
        rows = tuple(tuple(cells.get((lane, column)) for column in range(width)) for lane in range(height))
        title = "lanes of a warp's quarter (rows) and columns of 32 bits: the thread and the register of each cell"
        return Picture(self.name, (Grid(title, rows),))


@cache
def tensor_memory_access(name: str) -> TensorMemoryAccess:
    """Return the access of a name such as tcgen05.ld.32x32b.x8."""
    match = _ACCESS.fullmatch(name)
    shapes = [shape for shape in REGISTERS_OF if shape != "16x32bx2"]
    if not match or match["shape"] not in shapes:
        raise refusal(
            f"there is no atom {name!r}",
            f"write tcgen05.ld.SHAPE.xN or tcgen05.st.SHAPE.xN; the shapes are {', '.join(shapes)}",
        )
    count = int(match["count"])
    most = MOST_REGISTERS // REGISTERS_OF[match["shape"]]
    if count not in (1, 2, 4, 8, 16, 32, 64, 128) or count > most:
        raise refusal(
            f"there is no atom {name!r}: it repeats {count} times",
            f"it is a power of two up to {most} for {match['shape']}",
        )
    return TensorMemoryAccess(f"tcgen05.{match['op']}.{match['shape']}.x{count}", match["shape"], count)


def scale_layout(rows: int, factors: int) -> Layout:
    """Return the layout of block scales that tensor memory takes: (row, factor along K) → byte.

    512 bytes hold four factors of each of 128 rows, in the order in which `tcgen05.cp.32x128b.warpx4` reads them; the
    blocks of one group of 128 rows follow one another along K. Raises LayoutError unless `rows` is a multiple of 128
    and `factors` of 4: fill up with zeros.
    """
    if rows < 1 or rows % SCALE_BLOCK_ROWS or factors < 1 or factors % FACTORS:
        raise refusal(
            f"block scales of {rows} rows and {factors} factors are not whole blocks of {SCALE_BLOCK_ROWS} x {FACTORS}",
            "fill the scales up with zeros",
        )
    groups, parts = rows // SCALE_BLOCK_ROWS, factors // FACTORS
    block = SCALE_BLOCK_ROWS * FACTORS
    return Layout(((SCALE_ROWS, FACTORS, groups), (FACTORS, parts)), ((16, FACTORS, block * parts), (1, block)))
