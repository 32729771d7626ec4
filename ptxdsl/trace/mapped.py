"""Tensor maps in a kernel: one TMA instruction for each box copied between an array and shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ptxdsl import ir
from ptxdsl.errors import public
from ptxdsl.isa.operand import Operand
from ptxdsl.trace.arrays import dynamic_shared
from ptxdsl.trace.builder import refuse
from ptxdsl.trace.foreign import NoNumber
from ptxdsl.trace.instruction import Binding, Source, emit, shown
from ptxdsl.trace.memory import ArrayView, PointerValue
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Type

COMPLETES = "mbarrier::complete_tx::bytes"
Boxes: TypeAlias = Sequence[tuple[tuple[Any, ...], Any]]
"""Of boxes of a tile, where each begins along the axes of the array, and in shared memory, in elements of the tile."""


_COPY_FIRST = "copy a box to shared memory, `x.load(tile, …)`, and index that; or take the array as `ptr[…]` too"


class MappedTensor(NoNumber, Source, refuses={"indexed": _COPY_FIRST}):
    """A kernel parameter `a: pd.TensorMap(…)` inside the kernel: the tensor map's address and its box.

    It can be passed as the `map` operand of `pd.ptx` instructions. Its methods emit one instruction each (one per box
    for `TensorMap.tiled`) and take coordinates in the order of the array's axes, outermost first. One thread of the
    block calls them, for example inside `with pd.elect():`.

        tile = a.shared()
        with pd.warp(0), pd.elect():
            a.load(tile, (row, column), barrier)
    """

    __slots__ = ("pointer", "type")
    _noun = "a tensor map"
    _instead = "boxes of its array are copied to shared memory and back: `x.load(…)`, `x.store(…)`"
    type: TensorMap

    def __init__(self, pointer: PointerValue, type: TensorMap) -> None:
        self.pointer, self.type = pointer, type

    @property
    def name(self) -> str:
        return self.pointer.name

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"

    def scalar(self, binding: Binding, operand: Operand) -> ir.Operand:
        return self.pointer.scalar(binding, operand)

    def address(self, binding: Binding, operand: Operand) -> ir.Address:
        return self.pointer.address(binding, operand)

    @property
    def value(self) -> Any:
        """The generic address of the tensor map, a u64."""
        return self.pointer.value

    @property
    def element(self) -> Type:
        """The element type of the array."""
        return self.type.element

    @property
    def box(self) -> tuple[int, ...]:
        """The extents of a box, outermost first."""
        return self.type.box

    @property
    def bytes(self) -> int:
        """The bytes of a box or tile: the transaction count of one `load`."""
        return self.type.bytes

    @property
    def layout(self) -> Any:
        """The layout of a box or tile in shared memory, in elements."""
        return self.type.layout

    @property
    def tile(self) -> tuple[int, ...]:
        """The extents that one `load` copies, outermost first."""
        return self.type.tile

    @public
    def shared(self, boxes: int | None = None) -> ArrayView:
        """Allocate dynamic shared memory for one box or tile in its swizzled layout.

        With `boxes`, allocate that many; the first coordinate of the array then selects the box.
        """
        layout, name = self.type.boxes_layout(boxes), f"{self.name}.shared"
        return dynamic_shared(self.element, layout, align=self.type.alignment, name=name)

    @public
    def prefetch(self) -> None:
        """Prefetch the tensor map itself, before the first copy needs it."""
        emit("prefetch.tensormap", (self,))

    @public
    def load(
        self,
        destination: Any,
        coordinates: Any,
        mbarrier: Any,
        *,
        offsets: Any = None,
        multicast: Any = None,
        policy: Any = None,
        boxes: Boxes | None = None,
    ) -> None:
        """Copy the box at `coordinates` to shared memory; complete `bytes` at an mbarrier.

        `destination` is an array or pointer in shared memory. Coordinates may be negative; elements outside of the
        array are filled with `fill`. The last coordinate must be a multiple of 16 bytes, which GPUs require although
        the manual does not say so.

        `multicast` is a 16-bit mask of the cluster's blocks: the box is written to the same offset in each of them, and
        completes at its mbarrier there. An mbarrier of the other block of a CTA pair, such as `slot.full` of a
        `pd.Ring(…, pair=True)`, completes there (.cta_group::2). `policy` is a u64 from `createpolicy`, for the L2
        cache. For `TensorMap.im2col`, the coordinates are those of the filter's corner at the first pixel, and of the
        first channel; `offsets` select the filter element, one int or u16 for each image axis (default 0). `boxes`
        selects boxes of a tile by their offsets in the tile and in shared memory.

        Raises TraceError for the wrong number of coordinates, and for a shared memory layout that differs from that of
        the map.

            a.load(tile, (row, column), barrier, multicast=0b11)
        """
        options = [(".multicast::cluster", multicast), (".L2::cache_hint", policy)]
        in_pair = ".cta_group::2" if getattr(mbarrier, "space", "") == "shared::cluster" else ""
        flags = "".join(flag for flag, value in options[:1] if value is not None) + in_pair
        flags += "".join(flag for flag, value in options[1:] if value is not None)
        mode, pixels = ("tile", ()) if self.type.pixel_box is None else ("im2col", (self._offsets(offsets),))
        if offsets is not None and not pixels:
            refuse(
                f"`{self.name}` is a {self.type}, whose boxes have no offsets", "leave `offsets` out, or use .im2col"
            )
        text = f"cp.async.bulk.tensor.{self.type.rank}d.shared::cluster.global.{mode}.{COMPLETES}{flags}"
        more = [value for _, value in options if value is not None]
        for memory, corner in self._parts(self._at(destination), coordinates, boxes):
            emit(text, (memory, self, self._inner_first(corner), _at(mbarrier), *pixels, *more))

    def _parts(self, memory: Any, coordinates: Any, boxes: Boxes | None) -> Iterator[tuple[Any, Any]]:
        """Yield (address in shared memory, coordinates in the array) for each box of a tile."""
        self._inner_first(coordinates)
        copy = self.type.copy
        if boxes is None and copy is not None:
            boxes = copy.boxes
        for number, behind in boxes or [((), 0)]:
            pairs = zip(coordinates, number, strict=True) if number else ()
            corner = tuple(at if _is_zero(n) else at + n for at, n in pairs) or coordinates
            yield memory if _is_zero(behind) else memory + behind, corner

    def _offsets(self, offsets: Any) -> tuple[Any, ...]:
        """Return the filter offsets in the instruction's order."""
        axes = self.type.rank - 2
        written = (0,) * axes if offsets is None else offsets
        if not isinstance(written, tuple | list) or len(written) != axes:
            refuse(
                f"`{self.name}` is a {self.type}: `offsets` has one number for each of {axes} axes of an image",
                "give the element of the filter times the dilation, outermost axis first",
            )
        return tuple(written[::-1])

    @public
    def store(self, coordinates: Any, source: Any, *, boxes: Boxes | None = None) -> None:
        """Copy shared memory to the box at `coordinates`; elements outside of the array are not written.

        Coordinates are non-negative, and the last one is a multiple of 16 bytes: at the end of a row, GPUs write the
        full 16 bytes. Threads that wrote the shared memory must execute `fence.proxy.async` and then meet at a barrier
        before the store. The copy belongs to the thread's bulk group: `commit()`, then
        `pd.ptx.cp.async_.bulk.wait_group`.

            pd.ptx.fence.proxy.async_.shared__cta()
            pd.ptx.bar.sync(0)
            with pd.warp(0), pd.elect():
                c.store((row, column), tile)
                c.commit()
                pd.ptx.cp.async_.bulk.wait_group(0)
        """
        self._copy("cp.async.bulk", coordinates, source, "", boxes)

    @public
    def reduce(self, operation: str, coordinates: Any, source: Any, *, boxes: Boxes | None = None) -> None:
        """Like `store`, but combine each element of the array with shared memory: "add", "min", "max", "and", and so
        on."""
        self._copy("cp.reduce.async.bulk", coordinates, source, f".{operation}", boxes)

    def commit(self) -> None:
        """Commit the stores and reductions so far to a bulk group of this thread."""
        emit("cp.async.bulk.commit_group", ())

    def _copy(self, name: str, coordinates: Any, source: Any, operation: str, boxes: Boxes | None) -> None:
        mode = "tile" if self.type.pixel_box is None else "im2col_no_offs"
        text = f"{name}.tensor.{self.type.rank}d.global.shared::cta{operation}.{mode}.bulk_group"
        for memory, corner in self._parts(self._at(source), coordinates, boxes):
            emit(text, (self, self._inner_first(corner), memory))

    def _at(self, memory: Any) -> Any:
        """Return the shared memory address of a copy. Refuse an array of the box's shape with another layout."""
        layout: Any = (
            memory.layout if isinstance(memory, ArrayView) and memory.element.bits == self.element.bits else None
        )
        is_of_box = layout is not None and layout.shape == self.layout.shape and layout != self.layout
        elements = np.arange(layout.size if is_of_box else 0)
        if is_of_box and not np.array_equal(layout(elements), self.layout(elements)):
            refuse(
                f"the array in shared memory has layout {layout}, and {'tiles' if self.type.copy else 'boxes'} of "
                f"`{self.name}`, a {self.type}, layout {self.layout}",
                f"let both have one swizzle, or take the array from `{self.name}.shared()`",
            )
        return _at(memory)

    def _inner_first(self, coordinates: Any) -> tuple[Any, ...]:
        """Return coordinates in the instruction's order, innermost first."""
        written = tuple(coordinates) if isinstance(coordinates, tuple | list) else (coordinates,)
        if len(written) != self.type.rank:
            axes = "1 axis" if self.type.rank == 1 else f"{self.type.rank} axes"
            refuse(
                f"`{self.name}` is a {self.type}: its array has {axes}; coordinates for {len(written)} given",
                "give the start of the box along each axis, outermost first",
            )
        return written[::-1]


def _is_zero(distance: Any) -> bool:
    """True if a distance is the constant 0."""
    return isinstance(distance, int) and distance == 0


def _at(memory: Any) -> Any:
    """Return the address of an array's first element, or a pointer unchanged."""
    if isinstance(memory, ArrayView):
        return memory.address()
    if not isinstance(memory, Source):
        refuse(
            f"a bulk copy takes an array or a pointer in shared memory; found {shown(memory)}",
            "write x.load(memory, coordinates, mbarrier), and x.store(coordinates, memory)",
        )
    return memory
