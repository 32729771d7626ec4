"""Base of the MMA atoms: thread-value layouts of A, B and C, and their picture."""

from __future__ import annotations

from dataclasses import dataclass

from ptxdsl.layout.descriptors import usual_byte
from ptxdsl.layout.draw import Cell, Drawable, Grid, Picture, thread_value_grid
from ptxdsl.layout.layout import Layout
from ptxdsl.layout.swizzle import bank_colour

DIMENSIONS = {"a": (0, 2), "b": (1, 2), "c": (0, 1)}  # indices into (M, N, K)
NAMES = ("M", "N", "K")
LEAST_BITS = 8  # narrowest element of a layout, in bits


@dataclass(frozen=True)
class MmaAtom(Drawable):
    """One matrix product of `threads` threads: `a`, `b`, `c` are thread-value layouts, `*_bits` element widths."""

    name: str
    shape: tuple[int, int, int]
    threads: int
    a: Layout
    b: Layout
    c: Layout
    a_bits: int
    b_bits: int
    c_bits: int

    def in_registers(self, operand: str) -> bool:
        """True if threads hold operand "a", "b" or "c" in registers; wgmma reads B, and A without .rs, from shared
        memory.
        """
        layout_tv: Layout = getattr(self, operand)
        return any(d for _, d in layout_tv[0].flat())

    def extents(self, operand: str) -> tuple[int, int]:
        """Return the rows of M or N and the K of operand "a" or "b" in a block, in elements as shared memory holds
        them.
        """
        rows, k = (self.shape[d] for d in DIMENSIONS[operand])
        return rows // self.ctas, k * self.a_bits // self.element_bits

    @property
    def ctas(self) -> int:
        """The number of blocks that multiply together, each with an equal part of the rows of A and of B."""
        return 1

    @property
    def element_bits(self) -> int:
        """The width in bits of an element of A and B in shared memory; narrower ones share a byte."""
        return max(self.a_bits, LEAST_BITS)

    def input_type(self, operand: str) -> str:
        """Return the type of operand "a" or "b", such as "bf16"."""
        _, _, _, a, *others = self.name.split(".")
        mixed = others and operand == "b" and others[0] not in ("rs", "ts") and not others[0].startswith("block")
        return others[0] if mixed else a

    @property
    def transposable(self) -> tuple[int, ...]:
        """The element widths, in bits, of operands in shared memory that may be MN-major."""
        return (16,)

    def cell(self, operand: str, row: int, column: int) -> tuple[int, int] | None:
        """Return the lane and the column of an element in tensor memory; None for operands that are not there."""
        return None

    @property
    def instruction(self) -> str:
        """The first word of the name: "mma", "wgmma" or "tcgen05"."""
        return self.name.partition(".")[0]

    def __str__(self) -> str:
        return self.name

    def picture(self) -> Picture:
        """Draw A left of C and B above it, with the thread and value of each element, or its byte if it is in shared
        memory.
        """
        return product_picture(self, self.name, self.shape, {"a": self.a, "b": self.b, "c": self.c})


def held(layout_tv: Layout) -> list[tuple[int, int, int]]:
    """Return (thread, value, position) for all threads and values."""
    threads = layout_tv[0].size
    return [(i % threads, i // threads, position) for i, position in enumerate(layout_tv.offsets())]


def product_picture(atom: MmaAtom, title: str, shape: tuple[int, int, int], layouts: dict[str, Layout]) -> Picture:
    """Draw the thread-value layouts of A, B and C with A left of C and B above it."""
    positions = {"a": (0, 1), "b": (1, 0), "c": (1, 1)}
    grids = []
    for name, at in positions.items():
        if atom.in_registers(name):
            grids.append(_operand_grid(name, shape, layouts[name], at))
        elif atom.cell(name, 0, 0):
            grids.append(_tensor_memory_grid(atom, name, shape, at))
        else:
            grids.append(_shared_grid(atom, name, shape, at))
    return Picture(title, tuple(grids))


def _tensor_memory_grid(atom: MmaAtom, operand: str, shape: tuple[int, int, int], at: tuple[int, int]) -> Grid:
    """Draw the lane and the column of each element; one colour is one lane modulo 8."""
    rows, columns = shape[0] // atom.ctas, shape[DIMENSIONS[operand][1]]
    places = [[atom.cell(operand, row, column) or (0, 0) for column in range(columns)] for row in range(rows)]
    cells = tuple(tuple(Cell((f"L{lane}", f"C{column}"), lane % 8) for lane, column in line) for line in places)
    names = " x ".join(NAMES[d] for d in DIMENSIONS[operand])
    title = f"{'D' if operand == 'c' else 'A'} ({names}) in tensor memory: lane and column of each element"
    return Grid(title, cells, at)


def _shared_grid(atom: MmaAtom, operand: str, shape: tuple[int, int, int], at: tuple[int, int]) -> Grid:
    """Draw an operand in shared memory in its most common layout; one colour is four banks."""
    rows, k, bits = shape[DIMENSIONS[operand][0]] // atom.ctas, shape[2], atom.a_bits
    names = [NAMES[d] for d in DIMENSIONS[operand]]
    bytes_of = [[usual_byte(row, column, rows, bits) for column in range(k)] for row in range(rows)]
    if operand == "b":  # K downwards, to align with C
        bytes_of = [list(column) for column in zip(*bytes_of, strict=True)]
        names.reverse()
    cells = tuple(tuple(Cell((str(byte),), bank_colour(byte)) for byte in line) for line in bytes_of)
    title = f"{operand.upper()} ({names[0]} x {names[1]}) in shared memory: bytes of a K-major tile, 128-byte swizzle"
    return Grid(title, cells, at)


def _operand_grid(operand: str, shape: tuple[int, int, int], layout_tv: Layout, at: tuple[int, int]) -> Grid:
    rows, columns = (shape[d] for d in DIMENSIONS[operand])
    names = [NAMES[d] for d in DIMENSIONS[operand]]
    values = held(layout_tv)
    if operand == "b":  # K downwards, to align with C
        values = [(t, v, p // rows + p % rows * columns) for t, v, p in values]
        rows = columns
        names.reverse()
    return thread_value_grid(f"{operand.upper()} ({names[0]} x {names[1]})", rows, values)._replace(at=at)
