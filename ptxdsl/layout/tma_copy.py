"""Tiled copies by TMA: one thread copies a tile between global and shared memory, one instruction per box.

The layout of the tile in shared memory determines the boxes of the tensor map, their swizzle, and the start of each box
(PTX ISA, "Tensors"; CUDA driver API, "cuTensorMapEncodeTiled").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from itertools import product as coordinates
from math import inf
from typing import Any, NamedTuple, TypeGuard

from ptxdsl.cached import cached_property
from ptxdsl.layout.algebra import coalesce
from ptxdsl.layout.descriptors import CHUNK_BYTES, element_swizzle, pattern_bytes
from ptxdsl.layout.draw import Cell, Drawable, Grid, Picture
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.number import Computed
from ptxdsl.layout.shape import modes, product, refusal, show
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout, Start

MOST_AXES = 5
MOST_IN_BOX = 256  # elements of a box along one axis
MOST_BOXES = 64  # instructions per tile; a layout that needs more does not suit TMA
BOX_ALIGNMENT = 128  # bytes, of a box in shared memory
SPANS = (128, 64, 32)  # swizzle widths in bytes
ELEMENT_BITS = (8, 16, 32, 64)
OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")  # reductions

_NAME = re.compile(r"cp\.(?P<reduce>reduce\.)?async\.bulk\.tensor(\.(?P<rank>[1-5])d)?(?P<words>(\.[\w:]+)+)")
_SPACES = {"shared": "shared", "shared::cta": "shared", "shared::cluster": "shared", "global": "global"}
_MULTICAST = "multicast::cluster"
_IGNORED = ("tile", "mbarrier::complete_tx::bytes", "bulk_group")
_HELP = (
    "write cp.async.bulk.tensor.shared.global (a load; add .multicast::cluster to load for several blocks of a "
    "cluster), cp.async.bulk.tensor.global.shared (a store) or cp.reduce.async.bulk.tensor.global.shared.add"
)


@dataclass(frozen=True, slots=True)
class TmaAtom:
    """A TMA instruction that copies boxes from `source` to `target` memory.

    `operation` is the reduction, or "" for a copy. A `multicast` load writes to several blocks of a cluster. `rank` is
    the number of axes of the array if the name gives it, otherwise None.
    """

    name: str
    source: str
    target: str
    operation: str = ""
    multicast: bool = False
    rank: int | None = None

    def __str__(self) -> str:
        return self.name


def is_tma(name: object) -> bool:
    """True if a name starts like a TMA instruction, even if the rest is invalid."""
    return isinstance(name, TmaAtom) or (
        isinstance(name, str) and re.match(r"cp\.(reduce\.)?async\.bulk", name) is not None
    )


def tma_atom(name: TmaAtom | str) -> TmaAtom:
    """Return the atom of cp.async.bulk.tensor.shared.global (load), ….global.shared (store), cp.reduce….add, or the
    full PTX name.

    With .multicast::cluster a load writes to several blocks. An atom is returned unchanged. Raises LayoutError for
    other names.
    """
    if isinstance(name, TmaAtom):
        return name
    match = _NAME.fullmatch(name)
    words = [word for word in match["words"].split(".")[1:] if word not in _IGNORED] if match else []
    spaces, rest = [_SPACES.get(word, "") for word in words[:2]], words[2:]
    if match is None or spaces not in (["shared", "global"], ["global", "shared"]):
        raise refusal(f"there is no TMA instruction {name!r}", _HELP)
    loads, reduces = spaces[0] == "shared", match["reduce"] is not None
    multicast = loads and rest == [_MULTICAST]
    operation = rest[0] if reduces and not loads and len(rest) == 1 and rest[0] in OPERATIONS else ""
    if not (multicast or operation) and (rest or reduces):
        reason = (
            f"its operation must be one of {', '.join(OPERATIONS)}"
            if reduces
            else (f"{'.'.join(rest)} is not one of its qualifiers")
        )
        raise refusal(f"there is no TMA instruction {name!r}: {reason}", _HELP)
    start = "cp.reduce.async.bulk.tensor" if reduces else "cp.async.bulk.tensor"
    label = ".".join([start, *spaces, *rest])
    return TmaAtom(label, spaces[1], spaces[0], operation, multicast, int(match["rank"]) if match["rank"] else None)


class Box(NamedTuple):
    """One box of a tile: its start along the axes of the array and in shared memory, both in elements."""

    corner: tuple[Computed, ...]
    offset: Computed


class _Axis(NamedTuple):
    """An axis of the array: its mode of the tile, the extent of a box, and the layout of the boxes along it."""

    mode: int
    extent: int
    boxes: Layout


@dataclass(frozen=True, repr=False)
class TmaCopy(Drawable):
    """A TMA copy of a tile of `bits` wide elements whose shared-memory layout is `layout`, with one instruction per
    box.

    The contiguous mode is the last axis of the array, and the other modes follow by increasing stride: an MN-major tile
    of (M, K) belongs to an array (K, M). Coordinates use the modes of the layout. Each of `blocks` blocks of a cluster
    loads a part of the tile for all of them.
    """

    atom: TmaAtom
    layout: AnyLayout
    bits: int
    blocks: int = 1

    @property
    def tile(self) -> tuple[int, ...]:
        """The extents of the tile, by the modes of its layout."""
        return tuple(map(product, modes(self.layout.shape)))

    @property
    def bytes(self) -> int:
        """The bytes of a tile, which its load completes on the mbarrier of each receiving block."""
        return product(self.tile) * self.bits // 8

    @property
    def swizzle(self) -> int:
        """The swizzle width in bytes, 0 for no swizzle."""
        return CHUNK_BYTES << self.layout.swizzle.bits if _is_swizzled(self.layout) else 0

    @property
    def alignment(self) -> int:
        """The alignment in bytes that the tile's address in shared memory needs."""
        return max(BOX_ALIGNMENT, pattern_bytes(self.swizzle))

    @property
    def order(self) -> tuple[int, ...]:
        """The modes of the layout in the order of the array's axes, outermost first."""
        return tuple(axis.mode for axis in self._axes)

    @property
    def box(self) -> tuple[int, ...]:
        """The extents of a box by the axes of the array, outermost first."""
        return tuple(axis.extent for axis in self._axes)

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """The boxes of a tile, with each block's part contiguous; the first axis is fastest."""
        return tuple(self._numbered([range(axis.boxes.size) for axis in self._axes]))

    def part(self, rank: Computed) -> tuple[Box, ...]:
        """Return the boxes that the block of this cluster rank loads; `rank` may be traced."""
        if self.blocks == 1:
            return self.boxes
        shared = self._shared
        axis = self._axes[shared]
        count = axis.boxes.size // self.blocks
        numbers = [range(each.boxes.size) for each in self._axes]
        numbers[shared] = range(count)
        apart, further = axis.boxes(count), count * axis.extent
        return tuple(
            Box((*corner[:shared], corner[shared] + rank * further, *corner[shared + 1 :]), rank * apart + offset)
            for corner, offset in self._numbered(numbers)
        )

    @cached_property
    def _shared(self) -> int:
        """The axis that is split between blocks: the first one longer than 1."""
        return next((n for n, axis in enumerate(self._axes) if axis.extent * axis.boxes.size > 1), 0)

    def copy(
        self,
        tensor: Any,
        at: Sequence[Computed],
        memory: Any,
        mbarrier: Any = None,
        *,
        multicast: Any = None,
        rank: Computed | None = None,
        policy: Any = None,
        commit: bool = False,
    ) -> None:
        """Copy the tile that starts at `at` between a mapped tensor and shared memory at `memory`.

        One thread calls this, for example in `with pd.elect():`. A load takes the mbarrier on which it completes
        `bytes`; with .multicast::cluster it also takes the mask of the receiving blocks, and `rank`, this block's rank
        among the blocks that load parts. A store or reduction joins the bulk group that the thread commits next;
        `commit=True` commits it after the copy. Raises LayoutError if the tensor map has other boxes, or if an argument
        does not fit the instruction.
        """
        self._check_options(mbarrier, multicast, commit)
        self._check_rank(rank)
        self._check_tensor(tensor)
        if len(at) != len(self.tile):
            raise refusal(
                f"{self} needs one start coordinate for each of {len(self.tile)} modes; found {len(at)}",
                f"pass the start of the tile, such as {show((0,) * len(self.tile))}",
            )
        corner, boxes = tuple(at[mode] for mode in self.order), self.boxes if rank is None else self.part(rank)
        if self.atom.target == "shared":
            tensor.load(memory, corner, mbarrier, multicast=multicast, policy=policy, boxes=boxes)
        elif self.atom.operation:
            tensor.reduce(self.atom.operation, corner, memory, boxes=boxes)
        else:
            tensor.store(corner, memory, boxes=boxes)
        if commit:
            tensor.commit()

    def partition_s(self, tensor: Any) -> TmaTiles:
        """Return the tiles of a mapped tensor that is read. Raises LayoutError if it is written, or has other boxes."""
        return self._partition(tensor, "source", "partition_d")

    def partition_d(self, tensor: Any) -> TmaTiles:
        """Return the tiles of a mapped tensor that is written. Raises LayoutError as partition_s does."""
        return self._partition(tensor, "target", "partition_s")

    def _partition(self, tensor: Any, side: str, other: str) -> TmaTiles:
        if getattr(self.atom, side) != "global":
            raise refusal(
                f"the {side} of {self.atom} is shared memory, which is not partitioned",
                f"partition the tensor with {other}, and pass the shared memory to its copy",
            )
        self._check_tensor(tensor)
        return TmaTiles(self, tensor)

    def _check_tensor(self, tensor: Any) -> None:
        """Raise LayoutError unless `tensor` is a tensor map with these boxes."""
        type: Any = getattr(tensor, "type", None)
        if not hasattr(type, "swizzle"):
            raise refusal(
                f"{self.atom} copies boxes of a tensor map parameter; found {tensor!r}",
                "declare it as a: pd.TensorMap.of(type, copy)",
            )
        if (type.element.bits, type.box, type.swizzle or 0) != (self.bits, self.box, self.swizzle):
            raise refusal(
                f"`{tensor.name}` is a {type} with boxes {show(type.box)}; {self} copies boxes of {show(self.box)} "
                f"of {self.bits} bits, {self._swizzled()}",
                f"declare it as {tensor.name}: pd.TensorMap.of(type, copy)",
            )

    def _check_rank(self, rank: Computed | None) -> None:
        """Raise LayoutError if `rank` is given for an unsplit tile, or missing for a split one."""
        if self.blocks == 1 and rank is not None:
            raise refusal(
                f"`rank` is given, but one block loads each whole tile of {self}",
                "leave `rank` out, or create the copy with `blocks`",
            )
        if self.blocks > 1 and rank is None:
            raise refusal(
                f"`rank` is missing: {self.blocks} blocks each load a part of the tiles of {self}",
                "rank=pd.special('%cluster_ctarank')",
            )

    def _check_options(self, mbarrier: Any, multicast: Any, commit: bool) -> None:
        """Raise LayoutError for an argument that the instruction does not take, or a missing one that it needs."""
        loads = self.atom.target == "shared"
        if loads != (mbarrier is not None):
            lacks = "completes on an mbarrier, which is missing" if loads else "does not complete on an mbarrier"
            help = "pass the mbarrier of the stage: copy(tensor, at, memory, slot.full)"
            raise refusal(
                f"{self.atom} {lacks}", help if loads else "leave it out; the thread waits for its bulk group"
            )
        if self.atom.multicast and multicast is None:
            raise refusal(
                f"{self.atom} needs the mask of the receiving blocks",
                "pass multicast=0b11 for blocks 0 and 1 of the cluster",
            )
        if multicast is not None and not self.atom.multicast:
            help = f"leave `multicast` out, or use cp.async.bulk.tensor.shared.global.{_MULTICAST}"
            raise refusal(f"{self.atom} writes to one block only", help)
        if loads and commit:
            raise refusal(
                f"{self.atom} does not use bulk groups", "leave `commit` out: a load completes on its mbarrier"
            )

    def _swizzled(self) -> str:
        return f"{self.swizzle}-byte swizzle" if self.swizzle else "no swizzle"

    @cached_property
    def _axes(self) -> tuple[_Axis, ...]:
        """The axes of the array, outermost first: the extent of a box and the layout of the boxes."""
        plain = self.layout.layout if isinstance(self.layout, ComposedLayout) else self.layout
        runs = [[(n, d) for n, d in coalesce(mode).flat() if n > 1] for mode in plain]
        order, axes, dense = _order(runs), [], 1
        shared = next((n for n, mode in enumerate(order) if runs[mode]), 0)
        for number, mode in enumerate(reversed(order)):
            most = self.swizzle * 8 // self.bits if number == 0 and self.swizzle else MOST_IN_BOX
            extent, others = _split(runs[mode], dense, most, self.blocks if number == len(order) - 1 - shared else 1)
            axes.append(_Axis(mode, extent, others))
            # Rows narrower than the swizzle width are stored one swizzle width apart.
            dense *= max(extent, most) if number == 0 and self.swizzle else extent
        return tuple(axes[::-1])

    def _numbered(self, numbers: Sequence[range]) -> Iterator[Box]:
        """Yield the boxes with these numbers along each axis."""
        for reverse in coordinates(*reversed(numbers)):
            number = reverse[::-1]
            pairs = list(zip(self._axes, number, strict=True))
            yield Box(tuple(n * axis.extent for axis, n in pairs), sum(axis.boxes(n) for axis, n in pairs))

    def __str__(self) -> str:
        shared = f", one part for each of {self.blocks} blocks" if self.blocks > 1 else ""
        return f"tiled_copy({self.atom}, {self.layout}{shared})"

    __repr__ = __str__

    def picture(self) -> Picture:
        """Draw the box and the shared-memory byte of each 16 bytes; a row runs along the array's last axis."""
        chunk, inner = CHUNK_BYTES * 8 // self.bits, self.order[-1]
        lines = [mode for mode in self.order if mode != inner]
        rows = []
        for line in coordinates(*(range(self.tile[mode]) for mode in lines)):
            at = dict(zip(lines, line, strict=True))
            rows.append(tuple(self._cell({**at, inner: first}) for first in range(0, self.tile[inner], chunk)))
        columns = tuple(str(first) for first in range(0, self.tile[inner], chunk))
        box = (
            f"{len(self.boxes)} boxes of {show(self.box)}" if len(self.boxes) > 1 else (f"one box of {show(self.box)}")
        )
        return Picture(f"{self}: {box}, {self._swizzled()}", (Grid("", tuple(rows), columns=columns),))

    def _cell(self, at: dict[int, int]) -> Cell:
        """Return the cell of the 16 bytes at a coordinate: their box, and their first byte in shared memory."""
        coord = tuple(at[mode] for mode in range(len(self.tile)))
        number, weight = 0, 1
        for axis in self._axes:
            number, weight = number + at[axis.mode] // axis.extent * weight, weight * axis.boxes.size
        return Cell((f"box {number}", f"byte {self.layout(*coord) * self.bits // 8}"), number % 8, joint=", ")


@dataclass(frozen=True)
class TmaTiles:
    """A mapped tensor in tiles, each copied by one thread."""

    tiled: TmaCopy
    tensor: Any

    def copy(self, tile: Sequence[Computed], memory: Any, mbarrier: Any = None, **options: Any) -> None:
        """Copy a tile, given by its index along each mode; the other arguments are those of `TmaCopy.copy`."""
        at = tuple(n * extent for n, extent in zip(tile, self.tiled.tile, strict=False))
        self.tiled.copy(self.tensor, at if len(tile) == len(at) else tile, memory, mbarrier, **options)


def make_tma_copy(atom: TmaAtom | str, layout: Any, bits: int, blocks: int = 1) -> TmaCopy:
    """Return the TMA copy of tiles with this layout. Raises LayoutError if no boxes produce it, and suggests a layout
    that works.
    """
    atom = tma_atom(atom)
    if isinstance(layout, (int, tuple, list)):
        layout = Layout(layout)  # type: ignore[arg-type]  # which Layout checks
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise refusal(
            f"{atom} needs the layout of a tile; found {layout}",
            "pass the layout of a tile in shared memory",
        )
    if bits not in ELEMENT_BITS:
        raise refusal(
            f"{atom} cannot copy elements of {bits} bits",
            f"elements must have {', '.join(map(str, ELEMENT_BITS))} bits",
        )
    copy = TmaCopy(
        atom, layout if layout.rank > 1 or isinstance(layout, ComposedLayout) else from_modes([layout[0]]), bits, blocks
    )
    _check_rank(copy)
    _check_swizzle(copy)
    _check_boxes(copy)
    _check_blocks(copy)
    return copy


def _check_rank(copy: TmaCopy) -> None:
    count = len(copy.tile)
    if count > MOST_AXES or copy.atom.rank not in (None, count):
        most = f"of {copy.atom.rank} modes" if copy.atom.rank else f"of 1 to {MOST_AXES} modes"
        raise refusal(
            f"{copy.atom} copies tiles {most}: {copy.layout} has {count}",
            "pass the layout of one tile, with one mode for each axis of the array",
        )


def _check_swizzle(copy: TmaCopy) -> None:
    """Raise LayoutError for a swizzle that TMA does not have."""
    if not isinstance(copy.layout, ComposedLayout):
        return
    if isinstance(copy.layout.offset, Start) or copy.layout.offset:
        raise refusal(f"{copy.layout} starts at an offset", "pass the layout of a whole tile, which starts at 0")
    known = {span: element_swizzle(span, copy.bits) for span in SPANS}
    if _is_swizzled(copy.layout) and copy.layout.swizzle not in known.values():
        names = ", ".join(f"{swizzle} for {span} bytes" for span, swizzle in known.items())
        raise refusal(
            f"TMA swizzles 16-byte chunks by the index of their 128-byte line; {copy.layout.swizzle} on elements of "
            f"{copy.bits} bits does not",
            f"the swizzles are {names}; {_would_do(copy)}",
        )


def _check_boxes(copy: TmaCopy) -> None:
    """Raise LayoutError if no boxes fill the layout."""
    plain = copy.layout.layout if isinstance(copy.layout, ComposedLayout) else copy.layout
    if any(d <= 0 for n, d in plain.flat() if n > 1):
        raise refusal(f"{copy.layout} has elements that share an address, or negative strides", _would_do(copy))
    inner_bytes = copy.box[-1] * copy.bits // 8
    if inner_bytes % CHUNK_BYTES:
        raise refusal(
            f"the rows of a box must be a multiple of {CHUNK_BYTES} bytes: {copy.layout} has {inner_bytes} "
            "contiguous bytes",
            _would_do(copy),
        )
    if len(copy.boxes) > MOST_BOXES:
        raise refusal(
            f"{copy.layout} needs {len(copy.boxes)} boxes of {show(copy.box)}; the limit is {MOST_BOXES}",
            _would_do(copy),
        )
    size, starts = product(copy.box), sorted(box.offset for box in copy.boxes)
    if any(after - before < size for before, after in pairwise(starts)):
        raise refusal(f"{copy.layout} has elements that share an address", _would_do(copy))
    if beside := next((start for start in starts if start * copy.bits // 8 % BOX_ALIGNMENT), None):
        raise refusal(
            f"a box must start at a multiple of {BOX_ALIGNMENT} bytes of shared memory: {copy.layout} has one at "
            f"byte {beside * copy.bits // 8}",
            _would_do(copy),
        )


def _check_blocks(copy: TmaCopy) -> None:
    """Raise LayoutError if the instruction does not multicast, or the tile does not split into equal parts."""
    if copy.blocks == 1:
        return
    if not copy.atom.multicast:
        raise refusal(
            f"{copy.atom} writes to one block only: {copy.blocks} blocks cannot each load a part of a tile",
            f"use cp.async.bulk.tensor.shared.global.{_MULTICAST}",
        )
    boxes, mode = copy._axes[copy._shared].boxes, copy.order[copy._shared]
    if boxes.size % copy.blocks or len([n for n in coalesce(boxes).flat() if n[0] > 1]) > 1:
        raise refusal(
            f"{copy.layout} does not split into {copy.blocks} equal parts along the first axis of the array, mode "
            f"{mode}",
            f"make its extent {copy.tile[mode]} a multiple of {copy.blocks}, with one stride",
        )


def _is_swizzled(layout: AnyLayout) -> TypeGuard[ComposedLayout]:
    return isinstance(layout, ComposedLayout) and layout.swizzle.bits > 0


def _order(runs: Sequence[Sequence[tuple[int, int]]]) -> tuple[int, ...]:
    """Return the modes in the order of the array's axes, outermost first; modes of size 1 keep their position."""
    inwards = iter(sorted((m for m, run in enumerate(runs) if run), key=lambda m: -(max(runs[m][0][1], 0) or inf)))
    return tuple(next(inwards) if run else m for m, run in enumerate(runs))


def _split(run: Sequence[tuple[int, int]], dense: int, most: int, blocks: int) -> tuple[int, Layout]:
    """Return the extent of a box along an axis, and the layout of the boxes; `dense` elements are contiguous so far.

    The extent is chosen so that `blocks` blocks can share the boxes.
    """
    if not run:
        return 1, Layout(1, 0)
    n, d = run[0]
    if d != dense:
        return 1, from_modes([Layout(n, d) for n, d in run])
    shared = n // blocks if n % blocks == 0 else n
    extent = next(part for part in range(min(shared, most), 0, -1) if shared % part == 0)
    return extent, from_modes([Layout(n // extent, d * extent), *(Layout(n, d) for n, d in run[1:])])


def _would_do(copy: TmaCopy) -> str:
    """Suggest a layout of the same extents and order that boxes fill, with the widest possible swizzle."""
    order, extents = copy.order, [copy.tile[mode] for mode in copy.order]
    line = extents[-1] * copy.bits // 8
    if line % CHUNK_BYTES:
        return f"make mode {order[-1]} a multiple of {CHUNK_BYTES * 8 // copy.bits} elements, and its stride 1"
    span = next((span for span in SPANS if line % span == 0), 0)
    width = span * 8 // copy.bits if span else extents[-1]
    strides: dict[int, Layout] = {}
    dense = width
    for mode, extent in zip(order[-2::-1], extents[-2::-1], strict=True):
        strides[mode] = Layout(extent, dense)
        dense *= extent
    strides[order[-1]] = coalesce(Layout((width, extents[-1] // width), (1, dense)))
    plain = from_modes(strides[mode] for mode in range(len(order)))
    return f"use this layout instead: {ComposedLayout(element_swizzle(span, copy.bits), 0, plain) if span else plain}"
