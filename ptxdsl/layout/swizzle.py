"""XOR swizzles, and layouts whose offsets are swizzled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from ptxdsl.errors import public_class
from ptxdsl.layout.draw import Cell, Drawable, Grid, Picture
from ptxdsl.layout.index import Index, as_index, divide, multiply, sum_bits
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.number import Computed, Coordinate, Number
from ptxdsl.layout.shape import IntTuple, check_int, kind_of, modes, product, refusal

BANK_GROUP_BYTES = 16  # four banks: the width of one thread's 16-byte access
LINE_BYTES = 128  # all 32 banks


@public_class
@dataclass(frozen=True, repr=False)
class Swizzle(Drawable):
    """XOR `bits` bits of an offset, starting `shift` bits above bit `base`, into the bits starting at `base`.

    Blocks of 2**base offsets stay contiguous. A swizzle is its own inverse. A negative shift takes the source bits from
    below.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        check_int(self.bits, "the number of bits of a swizzle", least=0)
        check_int(self.base, "the base of a swizzle", least=0)
        check_int(self.shift, "the shift of a swizzle")
        if abs(self.shift) < self.bits:
            raise refusal(
                f"Swizzle({self.bits}, {self.base}, {self.shift}) reads bits that it also changes: the absolute "
                f"shift must be at least the number of bits, {self.bits}",
                f"write Swizzle({self.bits}, {self.base}, {self.bits if self.shift >= 0 else -self.bits})",
            )

    @property
    def source(self) -> int:
        """The mask of the source bits."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @property
    def target(self) -> int:
        """The mask of the bits that are changed."""
        return ((1 << self.bits) - 1) << (self.base + max(0, -self.shift))

    def __call__(self, offset: Number) -> Computed:
        """Return the swizzled offset of an int or a traced value."""
        return self.index(as_index(offset)).get()

    def index(self, offset: Index) -> Index:
        """Swizzle an offset; a constant that shares no bits with the value is swizzled separately and stays a constant
        if possible.
        """
        if offset.value is None:
            return Index(offset.constant ^ self._moved(offset.constant))
        if offset.bits & offset.constant:
            offset = offset.merged()
        value, bits = offset.value, offset.bits
        if bits & self.source:
            value = value ^ self._moved(value, masked=bool(bits & ~self.source))
            bits |= self._moved(bits & self.source)
        return Index(0, value, bits) ^ Index(offset.constant ^ self._moved(offset.constant))

    def _moved(self, offset: Number, masked: bool = True) -> Computed:
        """Return the source bits, moved to the bits that they are XORed into."""
        read = offset & self.source if masked else offset
        return divide(read, 1 << self.shift) if self.shift >= 0 else multiply(read, 1 << -self.shift)

    def scaled(self, factor: int) -> Swizzle:
        """Return the same swizzle for offsets in elements of 1/`factor` the size; `factor` is a power of two."""
        return replace(self, base=self.base + factor.bit_length() - 1)

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    __repr__ = __str__

    def picture(self, element_bits: int = 16) -> Picture:
        """Draw the destination of each block of 2**base elements, in rows of 2**|shift| blocks."""
        columns, rows = 1 << abs(self.shift), 1 << self.bits
        block_bytes = (element_bits << self.base) // 8
        cells = tuple(
            tuple(self._block_cell(row * columns + column, block_bytes) for column in range(columns))
            for row in range(rows)
        )
        labels = tuple(f"block {column}" for column in range(columns))
        title = f"{self} on {element_bits}-bit elements: where blocks of {block_bytes} bytes are stored"
        return Picture(title, (Grid("", cells, columns=labels),))

    def _block_cell(self, block: int, block_bytes: int) -> Cell:
        stored = self(block << self.base) >> self.base
        first = stored * block_bytes // 4 % 32
        last = first + max(1, block_bytes // 4) - 1
        banks = f"banks {first}-{last}" if last > first else f"bank {first}"
        return Cell((f"at {stored}", banks), bank_colour(stored * block_bytes), joint=", ")


def bank_colour(byte: int) -> int:
    """Return the colour of a shared-memory byte: one for each group of four banks."""
    return byte % LINE_BYTES // BANK_GROUP_BYTES


class Start(NamedTuple):
    """A traced offset that is already swizzled, and the bits that it may have set before swizzling."""

    swizzled: Index
    bits: int


@dataclass(frozen=True, repr=False)
class ComposedLayout(Drawable):
    """swizzle(offset + layout(coord)); the offset is an int, or a Start if it has a traced part."""

    swizzle: Swizzle
    offset: int | Start
    layout: Layout

    def __post_init__(self) -> None:
        for part, value, kinds in (
            ("swizzle", self.swizzle, Swizzle),
            ("offset", self.offset, (int, Start)),
            ("layout", self.layout, Layout),
        ):
            if not isinstance(value, kinds):
                raise refusal(
                    f"the {part} of a composed layout cannot be {kind_of(value)}",
                    "write ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))",
                )

    @property
    def shape(self) -> IntTuple:
        return self.layout.shape

    @property
    def size(self) -> int:
        return self.layout.size

    @property
    def rank(self) -> int:
        return self.layout.rank

    @property
    def depth(self) -> int:
        return self.layout.depth

    @property
    def cosize(self) -> int:
        """The end of the last swizzle block that contains an offset."""
        block = 1 << self.swizzle.target.bit_length()
        return -(-(self.constant_offset() + self.layout.cosize) // block) * block

    def offsets(self) -> list[int]:
        """Return the offsets of all coordinates in order, first mode fastest."""
        start = self.constant_offset()
        return [self.swizzle(start + o) for o in self.layout.offsets()]

    def constant_offset(self) -> int:
        """Return the offset; raise LayoutError if it is traced."""
        if isinstance(self.offset, Start):
            raise refusal(f"{self} starts at a traced offset, which is only known when the kernel runs")
        return self.offset

    def __len__(self) -> int:
        return self.rank

    def __getitem__(self, mode: int) -> ComposedLayout:
        return replace(self, layout=self.layout[mode])

    def __iter__(self) -> Iterator[ComposedLayout]:
        return (self[mode] for mode in range(self.rank))

    def __call__(self, *coord: Coordinate) -> Computed:
        """Return the offset of `coord`: an int if every coordinate is one, otherwise a value of their type."""
        return self.index(*coord).get()

    def index(self, *coord: Coordinate) -> Index:
        """Return the offset of `coord` with its constant part separate, for an address with an immediate."""
        return self.swizzled_index(self.layout.index(*coord))

    def swizzled_index(self, inner: Index) -> Index:
        """Return the swizzled offset of an offset of the inner layout."""
        if not isinstance(self.offset, Start):
            return self.swizzle.index(Index(self.offset) + inner)
        start, bits = self.offset
        if bits & inner.reach:  # the sum may carry: undo the swizzle (its own inverse)
            return self.swizzle.index(self.swizzle.index(start) + inner)
        return start ^ self.swizzle.index(inner)

    def starting_at(self, inner: Index, rest: Layout) -> ComposedLayout:
        """Return the layout of the modes `rest`, starting at offset `inner` of the inner layout."""
        if not isinstance(self.offset, Start) and inner.value is None:
            return replace(self, offset=self.offset + inner.constant, layout=rest)
        bits = self.offset.bits if isinstance(self.offset, Start) else self.offset
        return replace(self, offset=Start(self.swizzled_index(inner), sum_bits(bits, inner.reach)), layout=rest)

    def __str__(self) -> str:
        return f"{self.swizzle} o {'traced' if isinstance(self.offset, Start) else self.offset} o {self.layout}"

    __repr__ = __str__

    def picture(self, element_bits: int = 16) -> Picture:
        """Draw the grid of offsets with a colour for each group of four shared-memory banks."""
        rows = product(modes(self.shape)[0])
        cells = [Cell((str(o),), bank_colour(o * element_bits // 8)) for o in self.offsets()]
        grid = Grid("", tuple(tuple(cells[row::rows]) for row in range(rows)))
        title = f"{self} on {element_bits}-bit elements: one colour is four banks"
        return Picture(title, (grid,))


AnyLayout: TypeAlias = Layout | ComposedLayout


@dataclass(frozen=True, repr=False)
class InverseLayout:
    """layout(swizzle(i) - offset): map an offset in swizzled memory to the linear coordinate stored there."""

    layout: Layout
    offset: int
    swizzle: Swizzle

    @property
    def size(self) -> int:
        """The number of offsets from 0 that form whole blocks of the swizzle and are mapped completely."""
        reach = self.offset + self.layout.size
        block = 1 << self.swizzle.target.bit_length() if self.swizzle.bits else 1
        if reach >= block:
            return reach // block * block
        return reach if all(self.swizzle(i) < reach for i in range(reach)) else 1

    def __call__(self, index: Number) -> Computed:
        """Return the linear coordinate at an offset: an int for an int, otherwise a value of the offset's type."""
        position = self.swizzle(index)
        return self.layout(position - self.offset if self.offset else position)

    def offsets(self) -> list[int]:
        """Return the linear coordinates of all offsets, starting at the layout's own offset."""
        return [self(i) for i in range(self.offset, self.size)]

    def __str__(self) -> str:
        start = f" o -{self.offset}" if self.offset else ""
        return f"{self.layout}{start} o {self.swizzle}"

    __repr__ = __str__


def stacked(layout: AnyLayout, count: int, apart: int) -> AnyLayout:
    """Return `count` copies of a layout, `apart` elements from each other, as a new first mode."""
    if isinstance(layout, ComposedLayout):
        return replace(layout, layout=from_modes([Layout(count, apart), *layout.layout]))
    return from_modes([Layout(count, apart), *layout])
