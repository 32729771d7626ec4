"""Shared-memory wavefronts: how many passes over the banks an access takes, and which lanes each pass serves.

Shared memory has 32 banks of 4 bytes. A warp's access is served in phases of at most 128 bytes: all lanes if each
accesses 4 bytes or less, 16 lanes at 8 bytes, 8 lanes at 16 bytes. The number of wavefronts of a phase is the largest
number of distinct words that it accesses in one bank; lanes that access the same word share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ptxdsl.layout.atoms import WARP, CopyAtom, check_element, copy_atom
from ptxdsl.layout.draw import Cell, Drawable, Grid, Picture
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.shape import modes, product, refusal, show
from ptxdsl.layout.swizzle import LINE_BYTES, AnyLayout
from ptxdsl.layout.tiled_copy import TiledCopy, make_tiled_copy
from ptxdsl.layout.vector import layout_of

BANK_BYTES = 4
MATRIX_ROWS = 8

Wave = dict[int, list[int]]  # column within the 128 bytes → lanes that access it


@dataclass(frozen=True)
class Wavefronts(Drawable):
    """The phases of each warp instruction, and the wavefronts of each phase; a column is `unit_bytes` wide."""

    title: str
    unit_bytes: int
    instructions: tuple[tuple[tuple[Wave, ...], ...], ...]

    @property
    def total(self) -> int:
        """The number of wavefronts of all instructions."""
        return sum(len(phase) for instruction in self.instructions for phase in instruction)

    @property
    def ideal(self) -> int:
        """The number of wavefronts without bank conflicts: one per phase."""
        return sum(map(len, self.instructions))

    @property
    def worst(self) -> int:
        """The largest number of wavefronts of a phase: n for an n-way conflict, 1 without conflicts."""
        return max(len(phase) for instruction in self.instructions for phase in instruction)

    def __str__(self) -> str:
        conflict = "no conflict" if self.worst == 1 else f"{self.worst}-way conflict"
        return f"{self.title}: {self.total} wavefronts of {self.ideal} at best, {conflict}"

    def picture(self) -> Picture:
        """Draw the instruction with the most wavefronts: one row per wavefront, one column per group of banks, lanes in
        the cells.
        """
        phases = max(self.instructions, key=lambda phases: sum(map(len, phases)))
        waves = [(p, w, wave) for p, phase in enumerate(phases) for w, wave in enumerate(phase)]
        banks = self.unit_bytes // BANK_BYTES
        columns = tuple(_bank_names(row * banks, banks) for row in range(LINE_BYTES // self.unit_bytes))
        cells = tuple(tuple(_lanes_cell(wave.get(c), p) for c in range(len(columns))) for p, _, wave in waves)
        rows = tuple(f"{p}.{w}" for p, w, _ in waves)
        grid = Grid("one instruction; rows are phase.wavefront, columns banks", cells, columns=columns, rows=rows)
        return Picture(str(self), (grid,))


def _bank_names(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}-{first + count - 1}"


def _lanes_cell(lanes: list[int] | None, phase: int) -> Cell | None:
    if not lanes:
        return None
    return Cell((f"T{lanes[0]}" + (f"+{len(lanes) - 1}" if len(lanes) > 1 else ""),), phase % 8)


def phases_of(addresses: Sequence[int], width_bytes: int) -> tuple[tuple[Wave, ...], ...]:
    """Return the phases and wavefronts of one warp instruction whose lane i accesses `width_bytes` at byte
    `addresses[i]`.
    """
    if ragged := next((a for a in addresses if a % width_bytes), 0):
        raise refusal(f"an access of {width_bytes} bytes at byte {ragged}, which is not a multiple of {width_bytes}")
    unit = max(BANK_BYTES, width_bytes)
    lanes = LINE_BYTES // unit
    return tuple(
        _waves({lane: addresses[lane] // unit for lane in range(start, min(start + lanes, len(addresses)))}, lanes)
        for start in range(0, len(addresses), lanes)
    )


def _waves(units: dict[int, int], banks: int) -> tuple[Wave, ...]:
    """Group the accesses so that wavefront i serves the i-th distinct unit of each column."""
    asked: dict[int, dict[int, list[int]]] = {}
    for lane, unit in units.items():
        asked.setdefault(unit % banks, {}).setdefault(unit, []).append(lane)
    queues = {row: list(by_unit.values()) for row, by_unit in asked.items()}
    count = max(map(len, queues.values()))
    return tuple({row: q[i] for row, q in queues.items() if i < len(q)} for i in range(count))


def bank_wavefronts(access: TiledCopy | CopyAtom | str, tensor: object, bits: int = 16) -> Wavefronts:
    """Return the wavefronts of `access` to shared memory laid out as `tensor`, with elements of `bits` bits.

    For a tiled copy these are its own instructions, warp by warp. An instruction (or its name) is tiled over the layout
    in its common form. For ldmatrix and stmatrix, one instruction covers 16 rows (8 if the layout or the instruction
    has no more), and its remaining matrices are placed side by side, each 16 bytes wide. For other instructions,
    consecutive lanes access consecutive vectors along the contiguous mode.

    Raises LayoutError if whole instructions do not fill the layout, or if the instruction does not access shared
    memory.
    """
    layout = layout_of(tensor)
    atom = access.atom if isinstance(access, TiledCopy) else copy_atom(access)
    if not {atom.source, atom.target} & {"shared", "memory"}:
        raise refusal(
            f"{atom} does not access shared memory, so it has no bank conflicts", "use ld.shared or st.shared"
        )
    if not isinstance(access, TiledCopy):
        check_element(bits)
        access = _side_by_side(atom, layout, bits)
    unit = max(BANK_BYTES, access.atom.vector_bytes)
    lanes = [[o * access.bits // 8 for o in offsets] for offsets in _instructions(access, layout)]
    phases = tuple(phases_of(addresses, access.atom.vector_bytes) for addresses in lanes)
    return Wavefronts(f"{access.atom} of {layout}", unit, phases)


def _instructions(copy: TiledCopy, layout: AnyLayout) -> Iterator[list[int]]:
    """Yield the offset of each lane's vector, for each instruction of each warp."""
    reads_shared = copy.atom.source in ("shared", "memory")
    partition = copy.partition_s(layout) if reads_shared else copy.partition_d(layout)
    threads, per_instruction = partition[0].size, product(modes(partition[1].shape)[0])
    active = copy.atom.addressing_threads if copy.atom.is_matrix else WARP
    offsets = partition.offsets()
    for first_value in range(0, len(offsets), threads * per_instruction):
        for warp in range(0, threads, WARP):
            yield offsets[first_value + warp : first_value + min(warp + active, threads)]


def _side_by_side(atom: CopyAtom, layout: AnyLayout, bits: int) -> TiledCopy:
    """Return a tiled copy of one warp in the common form of the instruction, with one address per lane."""
    if layout.rank != 2:
        raise refusal(
            f"the wavefronts of one {atom} need a layout of two modes; {layout} has {layout.rank}",
            "leave two modes open: slice_(layout, None, None, 0)"
            if layout.rank > 2
            else "use a layout of rows and columns",
        )
    along = next((i for i in (0, 1) if layout[i].size > 1 and layout[i](1) - layout[i](0) == 1), 1)
    length = atom.vector_bytes * 8 // bits
    if not 0 < length <= layout[along].size:
        raise refusal(
            f"{atom} moves {atom.vector_bytes * 8} contiguous bits; mode {along} of {layout} has {layout[along].size} "
            f"elements of {bits} bits",
            "use an instruction that moves " + ("more" if bits > atom.vector_bytes * 8 else "fewer") + " bytes",
        )
    if atom.is_matrix:
        rows = 8 if layout[1 - along].size == 8 else min(16, atom.addressing_threads)
        lanes = [Layout(rows), Layout(atom.addressing_threads // rows, rows)]
    else:
        chunks = min(WARP, layout[along].size // length)
        lanes = [Layout(WARP // chunks, chunks), Layout(chunks)]
    block = lanes[0].size, lanes[1].size * length
    _check_filled(atom, layout, block if along else block[::-1])
    vector = [Layout(1), Layout(length)]
    threads, values = (from_modes(m if along else reversed(m)) for m in (lanes, vector))
    return make_tiled_copy(replace(copy_atom(f"ld.shared.{atom.vector_bytes}"), name=atom.name), threads, values, bits)


def _check_filled(atom: CopyAtom, layout: AnyLayout, block: tuple[int, ...]) -> None:
    """Raise LayoutError if repeated instructions do not fill the layout."""
    sizes = [product(mode) for mode in modes(layout.shape)]
    if not any(n % b for n, b in zip(sizes, block, strict=True)):
        return
    whole = show(tuple(-(-n // b) * b for n, b in zip(sizes, block, strict=True)))
    matrices = atom.addressing_threads // MATRIX_ROWS if atom.is_matrix else 1
    fewer = f", or an instruction of fewer than {matrices} matrices" if matrices > 1 else ""
    raise refusal(
        f"one {atom} of a warp accesses {show(block)} elements here, which do not divide {show(layout.shape)}",
        f"use a layout of {whole}{fewer}",
    )
