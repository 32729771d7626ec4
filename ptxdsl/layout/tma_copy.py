"""Tiled copies by TMA: a tile between an array and shared memory, box by box, an instruction each, of one thread.

The layout of the tile in shared memory says all: what the boxes of the tensor map are, their swizzle, and where each of
them begins (PTX ISA, "Tensors"; CUDA driver API, "cuTensorMapEncodeTiled").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from itertools import product as coordinates
from math import inf
from typing import Any, NamedTuple, TypeGuard

from ptxdsl.layout.algebra import coalesce
from ptxdsl.layout.descriptors import CHUNK_BYTES, pattern_bytes, swizzle_of
from ptxdsl.layout.draw import Drawable
from ptxdsl.layout.grid import Cell, Grid, Picture
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.number import Computed
from ptxdsl.layout.shape import modes, product, refusal, show
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout, Start, Swizzle

MOST_AXES = 5
MOST_IN_BOX = 256  # elements of a box along an axis
MOST_BOXES = 64  # instructions for a tile, beyond which the layout is not one for TMA
BOX_ALIGNMENT = 128  # bytes, of a box in shared memory
SPANS = (128, 64, 32)  # bytes of a swizzle
ELEMENT_BITS = (8, 16, 32, 64)
OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")  # of a reduction

_NAME = re.compile(r"cp\.(?P<reduce>reduce\.)?async\.bulk\.tensor(\.(?P<rank>[1-5])d)?(?P<words>(\.[\w:]+)+)")
_SPACES = {"shared": "shared", "shared::cta": "shared", "shared::cluster": "shared", "global": "global"}
_MULTICAST = "multicast::cluster"
_IGNORED = ("tile", "mbarrier::complete_tx::bytes", "bulk_group")
_HELP = (
    "write cp.async.bulk.tensor.shared.global (a load; with .multicast::cluster to the blocks of a cluster), "
    "cp.async.bulk.tensor.global.shared (a store) or cp.reduce.async.bulk.tensor.global.shared.add"
)


@dataclass(frozen=True, slots=True)
class TmaAtom:
    """An instruction that copies boxes from `source` to `target` memory.

    `operation` is that of a reduction, "" for a copy; `multicast` copies come to several blocks of a cluster; `rank` is
    the axes of the array, where the name says it.
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
    """Whether a name is that of an instruction that copies boxes, well written or not."""
    return isinstance(name, TmaAtom) or (
        isinstance(name, str) and re.match(r"cp\.(reduce\.)?async\.bulk", name) is not None
    )


def tma_atom(name: TmaAtom | str) -> TmaAtom:
    """cp.async.bulk.tensor.shared.global, a load; ….global.shared, a store; cp.reduce….add; or PTX's own whole name.

    With .multicast::cluster a load comes to several blocks. An atom stays as it is. Raises LayoutError for other names.
    """
    if isinstance(name, TmaAtom):
        return name
    match = _NAME.fullmatch(name)
    words = [word for word in match["words"].split(".")[1:] if word not in _IGNORED] if match else []
    spaces, rest = [_SPACES.get(word, "") for word in words[:2]], words[2:]
    if match is None or spaces not in (["shared", "global"], ["global", "shared"]):
        raise refusal(f"there is no copy of boxes {name!r}", _HELP)
    loads, reduces = spaces[0] == "shared", match["reduce"] is not None
    multicast = loads and rest == [_MULTICAST]
    operation = rest[0] if reduces and not loads and len(rest) == 1 and rest[0] in OPERATIONS else ""
    if not (multicast or operation) and (rest or reduces):
        reason = (
            f"its operation is one of {', '.join(OPERATIONS)}" if reduces else f"{'.'.join(rest)} is not part of it"
        )
        raise refusal(f"there is no copy of boxes {name!r}: {reason}", _HELP)
    start = "cp.reduce.async.bulk.tensor" if reduces else "cp.async.bulk.tensor"
    label = ".".join([start, *spaces, *rest])
    return TmaAtom(label, spaces[1], spaces[0], operation, multicast, int(match["rank"]) if match["rank"] else None)


class Box(NamedTuple):
    """One box of a tile: where it begins along the axes of the array, and in shared memory, both in elements."""

    corner: tuple[Computed, ...]
    offset: Computed


class _Axis(NamedTuple):
    """An axis of the array: the mode of the tile that it is, the extent of a box, and how many boxes lie where."""

    mode: int
    extent: int
    boxes: Layout


@dataclass(frozen=True, repr=False)
class TmaCopy(Drawable):
    """`atom` as often as it takes for a tile that lies in shared memory as `layout` says, in elements of `bits` bits.

    The mode whose elements lie side by side is the last axis of the array, the others follow outwards: an MN-major tile
    of (M, K) is of an array (K, M). Coordinates are those of the layout's modes. `blocks` of a cluster bring a part of
    the tile each, to all of them.
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
        """The bytes of a tile, which a load of it completes at the mbarrier of each block that it comes to."""
        return product(self.tile) * self.bits // 8

    @property
    def swizzle(self) -> int:
        """The bytes in which 16-byte chunks change places, 0 for none."""
        return CHUNK_BYTES << self.layout.swizzle.bits if _is_swizzled(self.layout) else 0

    @property
    def alignment(self) -> int:
        """What the address of a tile in shared memory is to be a multiple of, in bytes."""
        return max(BOX_ALIGNMENT, pattern_bytes(self.swizzle))

    @property
    def order(self) -> tuple[int, ...]:
        """The modes of the layout as the axes of the array, outermost first."""
        return tuple(axis.mode for axis in self._axes)

    @property
    def box(self) -> tuple[int, ...]:
        """The extents of a box, by the axes of the array, outermost first."""
        return tuple(axis.extent for axis in self._axes)

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """The boxes of a tile, those of a block's part side by side; the first axis is fastest."""
        return tuple(self._numbered([range(axis.boxes.size) for axis in self._axes]))

    def part(self, rank: Computed) -> tuple[Box, ...]:
        """The boxes that the block of this rank in its cluster brings; `rank` may be traced."""
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
        """The axis of which blocks bring a part each: the first that is longer than 1."""
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
        """Copies the tile whose first element is at `at`, between a mapped tensor and shared memory at `memory`.

        One thread calls this, as of `with pd.elect():`. A load takes the mbarrier at which it completes `bytes`, with
        .multicast::cluster also the mask of the blocks that receive it, and this block's `rank` among those that bring
        parts. A store or reduction belongs to the bulk group that the thread closes next: with `commit`, behind it.
        Raises LayoutError for a tensor of other boxes, and for what the instruction does not take.
        """
        self._check_options(mbarrier, multicast, commit)
        self._check_rank(rank)
        self._check_tensor(tensor)
        if len(at) != len(self.tile):
            raise refusal(
                f"{self} begins at one coordinate for each of {len(self.tile)} modes; found {len(at)}",
                f"give where the tile begins, as {show((0,) * len(self.tile))}",
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
        """The tiles of a mapped tensor that is read. Raises LayoutError where it is written, or has other boxes."""
        return self._partition(tensor, "source", "partition_d")

    def partition_d(self, tensor: Any) -> TmaTiles:
        """The tiles of a mapped tensor that is written. Raises LayoutError as partition_s does."""
        return self._partition(tensor, "target", "partition_s")

    def _partition(self, tensor: Any, side: str, other: str) -> TmaTiles:
        if getattr(self.atom, side) != "global":
            raise refusal(
                f"the {side} of {self.atom} is shared memory, which a tile takes as it is",
                f"partition the tensor by {other}, and hand the shared memory to its copy",
            )
        self._check_tensor(tensor)
        return TmaTiles(self, tensor)

    def _check_tensor(self, tensor: Any) -> None:
        """Refuse what is no tensor map of these boxes."""
        type: Any = getattr(tensor, "type", None)
        if not hasattr(type, "swizzle"):
            raise refusal(
                f"{self.atom} copies boxes of a parameter that is a tensor map; found {tensor!r}",
                "declare it as a: pd.TensorMap.of(type, copy)",
            )
        if (type.element.bits, type.box, type.swizzle or 0) != (self.bits, self.box, self.swizzle):
            raise refusal(
                f"`{tensor.name}` is a {type}, of boxes {show(type.box)}; {self} copies boxes of {show(self.box)} of "
                f"{self.bits} bits, {self._swizzled()}",
                f"declare it as {tensor.name}: pd.TensorMap.of(type, copy)",
            )

    def _check_rank(self, rank: Computed | None) -> None:
        """Refuse a part of a tile that is not brought by parts, and the lack of one where it is."""
        if self.blocks == 1 and rank is not None:
            raise refusal(
                f"of the tiles of {self} one block brings all: `rank` is given",
                "leave `rank` out, or make it for `blocks`",
            )
        if self.blocks > 1 and rank is None:
            raise refusal(
                f"of the tiles of {self} {self.blocks} blocks bring a part each: `rank` is left out",
                "rank=pd.special('%cluster_ctarank')",
            )

    def _check_options(self, mbarrier: Any, multicast: Any, commit: bool) -> None:
        """Refuse what the instruction does not take, and a lack of what it does."""
        loads = self.atom.target == "shared"
        if loads != (mbarrier is not None):
            lacks = "completes at an mbarrier, which is left out" if loads else "completes at no mbarrier"
            help = "hand over the mbarrier of the slot: copy(tensor, at, memory, slot.full)"
            raise refusal(
                f"{self.atom} {lacks}", help if loads else "leave it out; the thread waits for its bulk group"
            )
        if self.atom.multicast and multicast is None:
            raise refusal(
                f"{self.atom} takes the mask of the blocks that receive the tile",
                "multicast=0b11 for the blocks 0 and 1 of the cluster",
            )
        if multicast is not None and not self.atom.multicast:
            help = f"leave `multicast` out, or copy by cp.async.bulk.tensor.shared.global.{_MULTICAST}"
            raise refusal(f"{self.atom} comes to one block", help)
        if loads and commit:
            raise refusal(
                f"{self.atom} belongs to no bulk group", "leave `commit` out: a load completes at its mbarrier"
            )

    def _swizzled(self) -> str:
        return f"swizzled in {self.swizzle} bytes" if self.swizzle else "not swizzled"

    @cached_property
    def _axes(self) -> tuple[_Axis, ...]:
        """The axes of the array, outermost first: how much of each is one box, and where further boxes lie."""
        plain = self.layout.layout if isinstance(self.layout, ComposedLayout) else self.layout
        runs = [[(n, d) for n, d in coalesce(mode).flat() if n > 1] for mode in plain]
        order, axes, dense = _order(runs), [], 1
        shared = next((n for n, mode in enumerate(order) if runs[mode]), 0)
        for number, mode in enumerate(reversed(order)):
            most = self.swizzle * 8 // self.bits if number == 0 and self.swizzle else MOST_IN_BOX
            extent, others = _split(runs[mode], dense, most, self.blocks if number == len(order) - 1 - shared else 1)
            axes.append(_Axis(mode, extent, others))
            # Lines that are narrower than the span of their swizzle lie one span apart.
            dense *= max(extent, most) if number == 0 and self.swizzle else extent
        return tuple(axes[::-1])

    def _numbered(self, numbers: Sequence[range]) -> Iterator[Box]:
        """The boxes of these numbers along each axis."""
        for reverse in coordinates(*reversed(numbers)):
            number = reverse[::-1]
            pairs = list(zip(self._axes, number, strict=True))
            yield Box(tuple(n * axis.extent for axis, n in pairs), sum(axis.boxes(n) for axis, n in pairs))

    def __str__(self) -> str:
        shared = f", a part by each of {self.blocks} blocks" if self.blocks > 1 else ""
        return f"tiled_copy({self.atom}, {self.layout}{shared})"

    __repr__ = __str__

    def picture(self) -> Picture:
        """Which box brings each 16 bytes of the tile, and where they lie in shared memory; a line along the array's
        last axis is a row."""
        chunk, inner = CHUNK_BYTES * 8 // self.bits, self.order[-1]
        lines = [mode for mode in self.order if mode != inner]
        rows = []
        for line in coordinates(*(range(self.tile[mode]) for mode in lines)):
            at = dict(zip(lines, line, strict=True))
            rows.append(tuple(self._cell({**at, inner: first}) for first in range(0, self.tile[inner], chunk)))
        columns = tuple(str(first) for first in range(0, self.tile[inner], chunk))
        box = f"{len(self.boxes)} boxes of {show(self.box)}" if len(self.boxes) > 1 else f"a box of {show(self.box)}"
        return Picture(f"{self}: {box}, {self._swizzled()}", (Grid("", tuple(rows), columns=columns),))

    def _cell(self, at: dict[int, int]) -> Cell:
        """The 16 bytes at a coordinate: their box, and their first byte in shared memory."""
        coord = tuple(at[mode] for mode in range(len(self.tile)))
        number, weight = 0, 1
        for axis in self._axes:
            number, weight = number + at[axis.mode] // axis.extent * weight, weight * axis.boxes.size
        return Cell((f"box {number}", f"byte {self.layout(*coord) * self.bits // 8}"), number % 8, joint=", ")


@dataclass(frozen=True)
class TmaTiles:
    """A mapped tensor in tiles, each of which one thread copies."""

    tiled: TmaCopy
    tensor: Any

    def copy(self, tile: Sequence[Computed], memory: Any, mbarrier: Any = None, **options: Any) -> None:
        """Copies a tile by its number along each mode; the rest, `options` too, is as `TmaCopy.copy` takes it."""
        at = tuple(n * extent for n, extent in zip(tile, self.tiled.tile, strict=False))
        self.tiled.copy(self.tensor, at if len(tile) == len(at) else tile, memory, mbarrier, **options)


def make_tma_copy(atom: TmaAtom | str, layout: Any, bits: int, blocks: int = 1) -> TmaCopy:
    """The copy of tiles that lie as `layout` says. Raises LayoutError where no boxes lie so, and says which would."""
    atom = tma_atom(atom)
    if isinstance(layout, (int, tuple, list)):
        layout = Layout(layout)  # type: ignore[arg-type]  # which Layout checks
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise refusal(
            f"{atom} copies tiles that lie as a layout says; found {layout}",
            "give it the layout of a tile in shared memory",
        )
    if bits not in ELEMENT_BITS:
        raise refusal(
            f"{atom} copies elements of {bits} bits", f"elements have {', '.join(map(str, ELEMENT_BITS))} bits"
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
            "give the layout of one tile, a mode for each axis of the array",
        )


def _check_swizzle(copy: TmaCopy) -> None:
    """Refuse a swizzle that TMA does not have."""
    if not isinstance(copy.layout, ComposedLayout):
        return
    if isinstance(copy.layout.offset, Start) or copy.layout.offset:
        raise refusal(f"{copy.layout} begins at an offset", "give the layout of a whole tile, which begins at 0")
    known = {span: _swizzle(span, copy.bits) for span in SPANS}
    if _is_swizzled(copy.layout) and copy.layout.swizzle not in known.values():
        names = ", ".join(f"{swizzle} for {span} bytes" for span, swizzle in known.items())
        raise refusal(
            f"TMA swizzles chunks of 16 bytes by the number of their 128-byte line: {copy.layout.swizzle} does not, on "
            f"elements of {copy.bits} bits",
            f"there are {names}; {_would_do(copy)}",
        )


def _check_boxes(copy: TmaCopy) -> None:
    """Refuse a layout that no boxes fill."""
    plain = copy.layout.layout if isinstance(copy.layout, ComposedLayout) else copy.layout
    if any(d <= 0 for n, d in plain.flat() if n > 1):
        raise refusal(f"{copy.layout} has elements that share an address, or go backwards", _would_do(copy))
    inner_bytes = copy.box[-1] * copy.bits // 8
    if inner_bytes % CHUNK_BYTES:
        raise refusal(
            f"a line of a box has a multiple of {CHUNK_BYTES} bytes: {copy.layout} has {inner_bytes} side by side",
            _would_do(copy),
        )
    if len(copy.boxes) > MOST_BOXES:
        raise refusal(
            f"{copy.layout} would take {len(copy.boxes)} boxes of {show(copy.box)}; {MOST_BOXES} are the most",
            _would_do(copy),
        )
    size, starts = product(copy.box), sorted(box.offset for box in copy.boxes)
    if any(after - before < size for before, after in pairwise(starts)):
        raise refusal(f"{copy.layout} has elements that share an address", _would_do(copy))
    if beside := next((start for start in starts if start * copy.bits // 8 % BOX_ALIGNMENT), None):
        raise refusal(
            f"a box begins at a multiple of {BOX_ALIGNMENT} bytes of shared memory: {copy.layout} has one at byte "
            f"{beside * copy.bits // 8}",
            _would_do(copy),
        )


def _check_blocks(copy: TmaCopy) -> None:
    """Refuse parts for blocks that do not share a load, or whose parts are not alike."""
    if copy.blocks == 1:
        return
    if not copy.atom.multicast:
        raise refusal(
            f"{copy.atom} comes to one block: {copy.blocks} cannot bring a part of a tile each",
            f"copy by cp.async.bulk.tensor.shared.global.{_MULTICAST}",
        )
    boxes, mode = copy._axes[copy._shared].boxes, copy.order[copy._shared]
    if boxes.size % copy.blocks or len([n for n in coalesce(boxes).flat() if n[0] > 1]) > 1:
        raise refusal(
            f"{copy.layout} has no {copy.blocks} like parts along its first axis of the array, mode {mode}",
            f"make its {copy.tile[mode]} a multiple of {copy.blocks}, at one distance",
        )


def _is_swizzled(layout: AnyLayout) -> TypeGuard[ComposedLayout]:
    return isinstance(layout, ComposedLayout) and layout.swizzle.bits > 0


def _order(runs: Sequence[Sequence[tuple[int, int]]]) -> tuple[int, ...]:
    """Modes as the axes of an array, outermost first; those of one element stay in their places."""
    inwards = iter(sorted((m for m, run in enumerate(runs) if run), key=lambda m: -(max(runs[m][0][1], 0) or inf)))
    return tuple(next(inwards) if run else m for m, run in enumerate(runs))


def _split(run: Sequence[tuple[int, int]], dense: int, most: int, blocks: int) -> tuple[int, Layout]:
    """How many elements of an axis a box has, where `dense` are side by side so far, and where its boxes lie.

    So many that several blocks can share the boxes.
    """
    if not run:
        return 1, Layout(1, 0)
    n, d = run[0]
    if d != dense:
        return 1, from_modes([Layout(n, d) for n, d in run])
    shared = n // blocks if n % blocks == 0 else n
    extent = next(part for part in range(min(shared, most), 0, -1) if shared % part == 0)
    return extent, from_modes([Layout(n // extent, d * extent), *(Layout(n, d) for n, d in run[1:])])


def _swizzle(span: int, bits: int) -> Swizzle:
    """The swizzle of a span on elements."""
    swizzle = swizzle_of(span)
    return Swizzle(swizzle.bits, swizzle.base - (bits // 8).bit_length() + 1, swizzle.shift)


def _would_do(copy: TmaCopy) -> str:
    """A layout of the same extents and order that boxes fill, swizzled as widely as it can be."""
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
    return f"this one would do: {ComposedLayout(_swizzle(span, copy.bits), 0, plain) if span else plain}"
