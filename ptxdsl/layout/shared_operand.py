"""Shared-memory operands of wgmma and tcgen05: derive the descriptors of a layout, or suggest a layout that has them.

Descriptors express the layouts of the manual ("Shared Memory Matrix Layout"): swizzle atoms of eight rows, of 16 bytes
without a swizzle, otherwise of the 32, 64 or 128 bytes that the swizzle permutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxdsl.errors import public
from ptxdsl.layout.algebra import coalesce, composition
from ptxdsl.layout.descriptors import (
    ADDRESS_MASK,
    ATOM_ROWS,
    CHUNK_BYTES,
    FIELD,
    MODES,
    OPERAND_K_BYTES,
    Fields,
    chunk_offset,
    constant_bits,
    element_swizzle,
    pattern_bytes,
    start_bits,
    swizzle_of,
    swizzled,
)
from ptxdsl.layout.draw import Cell, Drawable, Grid, Picture
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.mma_atom import DIMENSIONS, NAMES, MmaAtom
from ptxdsl.layout.number import Computed, Number
from ptxdsl.layout.recast import in_bytes
from ptxdsl.layout.shape import map_leaves, refusal, show
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout, Start, bank_colour
from ptxdsl.layout.tiled_mma import TiledMma, as_tiled_mma, check_tiles
from ptxdsl.layout.vector import layout_of

TRANSPOSED_BITS = 16
"""The only element width, in bits, that may be MN-major in wgmma."""
TCGEN05_VERSION = 1 << 46  # in descriptors of tcgen05


@dataclass(frozen=True, repr=False)
class SharedOperand(Drawable):
    """Operand "a" or "b" of `atom` in a shared-memory tile, and the fields that its descriptors share.

    `row_starts` and `k_starts` map the index of an instruction's part along M or N, and of a K step, to the increment
    of the first descriptor, in units of 16 bytes.
    """

    atom: MmaAtom
    operand: str
    layout: AnyLayout
    fields: Fields
    transposed: bool
    row_starts: Layout
    k_starts: Layout

    @property
    def alignment_bytes(self) -> int:
        """The alignment in bytes that the tile's address needs."""
        return pattern_bytes(self.fields.swizzle_bytes)

    @property
    def constant(self) -> int:
        """The bits of a descriptor without its start address."""
        bits = constant_bits(self.fields.leading_bytes, self.fields.stride_bytes, self.fields.swizzle_bytes)
        return bits | TCGEN05_VERSION if self.atom.instruction == "tcgen05" else bits

    def descriptor(self, address: Number, row_part: Number = 0, k_step: Number = 0) -> Computed:
        """Return the descriptor of a part of the tile at the shared-memory `address`, an int or a 64-bit value."""
        bits = getattr(getattr(address, "type", None), "bits", 64)
        if bits < 64:
            help = "convert the address first: `tile.address().value.to(u64)`"
            raise refusal(f"a descriptor needs a 64-bit address; found an address of {bits} bits", help)
        return self.advanced(start_bits(address) | self.constant, row_part, k_step)

    def advanced(self, descriptor: Number, row_part: Number = 0, k_step: Number = 0) -> Computed:
        """Return the descriptor of another part, from that of the first."""
        self._check_part("row_part", row_part, self.row_starts)
        self._check_part("k_step", k_step, self.k_starts)
        steps = self.row_starts.index(row_part) + self.k_starts.index(k_step)
        if isinstance(descriptor, int) and steps.value is None and (descriptor & FIELD) + steps.constant > FIELD:
            start = ((descriptor & FIELD) + steps.constant) * CHUNK_BYTES
            help = "advance the descriptor of the tile's first part, whose address is in shared memory"
            raise refusal(
                f"the part starts at {start:#x}; a descriptor holds addresses below {ADDRESS_MASK + 1:#x}", help
            )
        return descriptor if steps.value is None and not steps.constant else descriptor + steps.get()

    def _check_part(self, name: str, number: Number, starts: Layout) -> None:
        """Refuse a number, known while tracing, of a part that the tile does not have."""
        if isinstance(number, int) and not 0 <= number < starts.size:
            parts = "1 part" if starts.size == 1 else f"{starts.size} parts"
            axis = "K" if starts is self.k_starts else NAMES[DIMENSIONS[self.operand][0]]
            help = f"pass {name}=0" if starts.size == 1 else f"pass 0 to {starts.size - 1}, or make the tile larger"
            raise refusal(f"`{name}` is {number}; the tile has {parts} along {axis}", help)

    def __str__(self) -> str:
        fields, major = self.fields, NAMES[DIMENSIONS[self.operand][0]] if self.transposed else "K"
        swizzle = f"{fields.swizzle_bytes}-byte swizzle" if fields.swizzle_bytes else "no swizzle"
        return (
            f"{self.operand.upper()} of {self.atom}: {major}-major, {swizzle}, leading {fields.leading_bytes} bytes, "
            f"stride {fields.stride_bytes} bytes, descriptor {self.constant:#018x} | address / 16"
        )

    __repr__ = __str__

    def picture(self) -> Picture:
        """Draw the byte offset of each 16-byte chunk that the first instruction reads, with a colour for each group of
        four banks.
        """
        rows, chunks = _extents(self.atom, self.operand, self.transposed)
        cells = tuple(tuple(self._cell(row, chunk) for chunk in range(chunks)) for row in range(rows))
        labels = tuple(f"chunk {chunk}" for chunk in range(chunks))
        steps = (
            f"of {NAMES[DIMENSIONS[self.operand][0]]}: {self.row_starts}",
            f"of K: {self.k_starts}",
        )
        line = "k" if self.transposed else "row"
        grid = Grid(f"byte of each chunk, by {line}; starts of the parts {', '.join(steps)}", cells, columns=labels)
        return Picture(str(self), (grid,))

    def _cell(self, row: int, chunk: int) -> Cell:
        offset = swizzled(chunk_offset(self.fields, row, chunk, self.transposed), self.fields.swizzle_bytes)
        return Cell((str(offset),), bank_colour(offset))


@public
def shared_operand(mma: TiledMma | MmaAtom | str, operand: str, tile: Any) -> SharedOperand:
    """Return how wgmma or tcgen05.mma reads operand "a" (M, K) or "b" (N, K) from `tile`, a layout of elements or an
    array with a layout.

    For a tiled MMA its atom is used. Raises LayoutError if no descriptor expresses the tile's layout; the help suggests
    one that works.
    """
    atom = as_tiled_mma(mma).atom
    _check_atom(atom, operand)
    layout = layout_of(tile)
    if layout.rank != 2:
        raise refusal(
            f"operand {operand.upper()} of {atom} needs a tile of two modes; found {layout}, of {layout.rank}",
            f"use a tile of ({', '.join(NAMES[d] for d in DIMENSIONS[operand])})",
        )
    shared = _shared_operand(atom, operand, layout)
    _check_array(shared, tile)
    return shared


def _check_array(shared: SharedOperand, tile: Any) -> None:
    """Raise LayoutError for an array of another element width, or one not aligned to its swizzle pattern."""
    bits, alignment = getattr(getattr(tile, "element", None), "bits", None), getattr(tile, "alignment", None)
    atom, least = shared.atom, shared.alignment_bytes
    if bits not in (None, atom.element_bits):
        raise refusal(
            f"operand {shared.operand.upper()} of {atom} has elements of {atom.element_bits} bits; the elements of "
            f"`{tile.name}` have {bits}",
            "use an instruction of this type, or convert the elements",
        )
    if alignment is not None and alignment % least:
        raise refusal(
            f"{atom.instruction} reads this layout at multiples of {least} bytes, where its swizzle pattern starts; "
            f"`{tile.name}` is aligned to {alignment}",
            f"align it: pd.shared(TYPE, layout, align={least})",
        )


@cache
def _shared_operand(atom: MmaAtom, operand: str, layout: AnyLayout) -> SharedOperand:
    rows, k = atom.extents(operand)
    check_tiles(f"operand {operand.upper()} of {atom}", (rows, k), layout)
    in_memory = in_bytes(layout, _bytes(atom))
    span = _span(atom, layout, in_memory)
    inner = in_memory.layout if isinstance(in_memory, ComposedLayout) else in_memory
    start = in_memory.constant_offset() if isinstance(in_memory, ComposedLayout) else 0
    for transposed in (False, True) if atom.a_bits in atom.transposable else (False,):
        fields = _fields(inner, span, transposed, start)
        if fields is not None and _is_canonical(inner, atom, operand, fields, transposed):
            parts = (composition(mode, Layout(mode.size // n, n)) for mode, n in zip(inner, (rows, k), strict=True))
            row_starts, k_starts = (_in_chunks(coalesce(part)) for part in parts)
            return SharedOperand(atom, operand, layout, fields, transposed, row_starts, k_starts)
    raise _not_canonical(atom, operand, layout, span)


def _bytes(atom: MmaAtom) -> int:
    return atom.element_bits // 8


def _in_chunks(layout: Layout) -> Layout:
    return Layout(layout.shape, map_leaves(lambda stride: stride // CHUNK_BYTES, layout.stride))


def _extents(atom: MmaAtom, operand: str, transposed: bool) -> tuple[int, int]:
    """Return the rows and chunks of one instruction's operand, as `chunk_offset` counts them."""
    rows, k = atom.extents(operand)
    return (k, rows * _bytes(atom) // CHUNK_BYTES) if transposed else (rows, OPERAND_K_BYTES // CHUNK_BYTES)


def _check_atom(atom: MmaAtom, operand: str) -> None:
    name = operand.upper() if operand in ("a", "b") else repr(operand)
    if operand not in ("a", "b"):
        raise refusal(f"there is no operand {name} in shared memory", 'the operands in shared memory are "a" and "b"')
    if atom.in_registers(operand):
        wgmma = atom.name.startswith("wgmma")
        raise refusal(
            f"{atom} takes operand {name} from registers, so it has no descriptor",
            f"leave out .rs: {atom.name.removesuffix('.rs')}" if wgmma else "only wgmma and tcgen05 use descriptors",
        )
    if atom.cell(operand, 0, 0):
        raise refusal(
            f"{atom} takes operand {name} from tensor memory, so it has no descriptor",
            f"leave out .ts: {atom.name.removesuffix('.ts')}",
        )


def _span(atom: MmaAtom, layout: AnyLayout, in_memory: AnyLayout) -> int:
    """Return the swizzle width of the tile in bytes; raise LayoutError if wgmma has no such swizzle."""
    if not isinstance(in_memory, ComposedLayout):
        return 0
    if isinstance(in_memory.offset, Start):
        raise refusal(
            f"{layout} starts at a traced offset, so the start of its swizzle pattern is unknown",
            "derive the descriptor of the whole tile, and select a part with descriptor(address, row_part, k_step)",
        )
    span = next((s for s in MODES if swizzle_of(s) == in_memory.swizzle), None)
    if not in_memory.swizzle.bits:
        span = 0
    if span is None:
        raise refusal(
            f"{atom.instruction} swizzles 16-byte chunks by the index of their 128-byte line: found "
            f"{in_memory.swizzle} on the bytes of {layout}, needed one of "
            f"{', '.join(str(swizzle_of(s)) for s in MODES if s)}",
            _would_do(atom, layout, 128),
        )
    if in_memory.offset % pattern_bytes(span):
        raise refusal(
            f"{layout} starts {in_memory.offset} bytes after the start of its swizzle pattern",
            f"start it at a multiple of {pattern_bytes(span)} bytes",
        )
    return span


def _fields(inner: Layout, span: int, transposed: bool, start: int) -> Fields | None:
    """Return the descriptor fields for this layout of bytes, or None if an offset does not fit in its field.

    An offset that no instruction uses is set to one chunk.
    """
    along, across = inner if transposed else reversed(list(inner))
    unit = next((d for n, d in along.flat() if n > 1), 1)
    row, rows = (span or CHUNK_BYTES) // unit, ATOM_ROWS
    next_row = along(row) if 0 < row < along.size else CHUNK_BYTES
    next_rows = across(rows) if rows < across.size else CHUNK_BYTES
    if transposed:
        leading, stride = (next_row, next_rows) if span else (next_rows, next_row)
    else:
        leading, stride = (CHUNK_BYTES if span else next_row), next_rows
    fits = all(0 <= n <= ADDRESS_MASK and n % CHUNK_BYTES == 0 for n in (leading, stride))
    return Fields(start, leading, stride, span) if fits else None


def _is_canonical(inner: Layout, atom: MmaAtom, operand: str, fields: Fields, transposed: bool) -> bool:
    """True if every instruction's part of the tile has the layout of the descriptor and starts at a whole chunk."""
    rows, k = atom.extents(operand)
    expected = [_element(fields, row, depth, _bytes(atom), transposed) for depth in range(k) for row in range(rows)]
    return all(start % CHUNK_BYTES == 0 and part == expected for start, part in _parts(inner, rows, k))


def _parts(inner: Layout, rows: int, k: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the start of each instruction's part of a tile, and its elements' byte offsets from there, rows first."""
    offsets, height = inner.offsets(), inner[0].size
    for first in range(0, len(offsets), k * height):
        for row in range(0, height, rows):
            start = offsets[first + row]
            columns = range(first + row, first + row + k * height, height)
            yield start, [offset - start for at in columns for offset in offsets[at : at + rows]]


def _element(fields: Fields, row: int, k: int, element_bytes: int, transposed: bool) -> int:
    line, along = (k, row) if transposed else (row, k)
    chunk, inside = divmod(along * element_bytes, CHUNK_BYTES)
    offset: int = chunk_offset(fields, line, chunk, transposed) + inside
    return offset


@public
def tile_layout(rows: int, k: int, bits: int, swizzle_bytes: int = 128, transposed: bool = False) -> AnyLayout:
    """Return a layout of (rows of M or N, K) elements of `bits` bits that wgmma can read; MN-major if `transposed`.

    Raises LayoutError if the tile is not a whole number of swizzle atoms.
    """
    if transposed and bits != TRANSPOSED_BITS:
        raise refusal(
            f"wgmma reads elements of {bits} bits K-major only",
            "only 16-bit elements may be MN-major: transpose the tile",
        )
    return lines_layout(rows, k, bits, swizzle_bytes, transposed)


def lines_layout(rows: int, k: int, bits: int, swizzle_bytes: int, transposed: bool) -> AnyLayout:
    """Return the layout of `tile_layout` without its check of the element width, for tiles that threads read."""
    span = swizzle_bytes or CHUNK_BYTES
    if swizzle_bytes not in MODES:
        raise refusal(f"there is no swizzle of {swizzle_bytes} bytes", f"use one of {', '.join(map(str, MODES))}")
    width, (along, across) = span * 8 // bits, ((rows, k) if transposed else (k, rows))
    if along % width or across % ATOM_ROWS:
        mismatch = (
            f"({rows}, {k}) elements of {bits} bits are not a whole number of swizzle atoms of {ATOM_ROWS} rows of "
            f"{span} bytes"
        )
        names = ("rows", "k") if transposed else ("k", "rows")
        needed = [f"{name} a multiple of {n}" for name, n in zip(names, (width, ATOM_ROWS), strict=True)]
        lacking = [text for text, rest in zip(needed, (along % width, across % ATOM_ROWS), strict=True) if rest]
        narrower = along % width and not along % (CHUNK_BYTES * 8 // bits) and not across % ATOM_ROWS
        hint = ", or use a narrower swizzle" if narrower else ""
        raise refusal(mismatch, f"make {' and '.join(lacking)}{hint}")
    lines = [coalesce(Layout((width, along // width), (1, across * width))), Layout(across, width)]
    plain = from_modes(lines if transposed else lines[::-1])
    return ComposedLayout(element_swizzle(span, bits), 0, plain) if swizzle_bytes else plain


def _would_do(atom: MmaAtom, layout: AnyLayout, span: int) -> str:
    """Suggest a layout of the same extents and major that has a descriptor, with this or the widest fitting swizzle."""
    rows, k = (mode.size for mode in layout)
    contiguous = any(d == 1 < n for n, d in (layout.layout if isinstance(layout, ComposedLayout) else layout)[0].flat())
    transposed = atom.a_bits in atom.transposable and contiguous
    row_bytes = (rows if transposed else k) * _bytes(atom)
    widest = next((s for s in (span, *MODES) if s and row_bytes % s == 0), 0)
    return f"use this layout instead: {lines_layout(rows, k, atom.element_bits, widest, transposed)}"


def _not_canonical(atom: MmaAtom, operand: str, layout: AnyLayout, span: int) -> Exception:
    rows = NAMES[DIMENSIONS[operand][0]]
    swizzle = f"the {span}-byte swizzle" if span else "no swizzle"
    majors = f"along K or {rows}" if atom.a_bits in atom.transposable else "along K"
    shape = show(atom.extents(operand))
    return refusal(
        f"{atom.instruction} reads operand {operand.upper()} of {atom} as swizzle atoms of {ATOM_ROWS} rows of "
        f"{span or CHUNK_BYTES} bytes {majors}, at one stride in each direction, with {swizzle}: {layout} does not "
        f"have these atoms in each {shape}",
        _would_do(atom, layout, span),
    )
