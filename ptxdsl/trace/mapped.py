"""A tensor map in a kernel: copies of boxes between an array and shared memory, one instruction each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ptxdsl import ir
from ptxdsl.errors import public
from ptxdsl.isa.operand import Operand
from ptxdsl.trace.foreign import NoNumber
from ptxdsl.trace.instruction import Binding, Source, emit, shown
from ptxdsl.trace.memory import ArrayView, PointerValue, dynamic_shared
from ptxdsl.trace.operators import refuse
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import Type

COMPLETES = "mbarrier::complete_tx::bytes"
Boxes: TypeAlias = Sequence[tuple[tuple[Any, ...], Any]]
"""Of boxes of a tile, where each begins along the axes of the array, and in shared memory, in elements of the tile."""


class MappedTensor(NoNumber, Source):
    """A parameter `a: pd.TensorMap(…)` in its kernel: the generic address of the tensor map, and what its boxes are.

    It stands for `map` in the instructions of pd.ptx. Its own methods emit one instruction each (of a
    `TensorMap.tiled` one for each box), and take coordinates as the array's axes, outermost first; one thread of a
    block calls them, such as that of `with pd.elect():`.
    """

    __slots__ = ("pointer", "type")
    noun = "a tensor map"
    instead = "boxes of its array are copied to shared memory and back: `x.load(…)`, `x.store(…)`"
    type: TensorMap

    def __init__(self, pointer: PointerValue, type: TensorMap) -> None:
        self.pointer, self.type = pointer, type

    @property
    def name(self) -> str:
        return self.pointer.name

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"

    def __getitem__(self, index: object) -> NoReturn:
        refuse(
            f"`{self.name}` is a tensor map: its array is copied by boxes, not read or written by elements",
            "copy a box to shared memory, `x.load(tile, …)`, and index that; or take the array as `ptr[…]` too",
        )

    def __setitem__(self, index: object, value: object) -> None:
        self[index]

    def scalar(self, binding: Binding, operand: Operand) -> ir.Operand:
        return self.pointer.scalar(binding, operand)

    def address(self, binding: Binding, operand: Operand) -> ir.Address:
        return self.pointer.address(binding, operand)

    @property
    def value(self) -> Any:
        """The generic address of the tensor map, as a u64."""
        return self.pointer.value

    @property
    def element(self) -> Type:
        """The type of the array's elements."""
        return self.type.element

    @property
    def box(self) -> tuple[int, ...]:
        """The extents of a box, outermost first."""
        return self.type.box

    @property
    def bytes(self) -> int:
        """The bytes of a box, or tile: what an mbarrier is to expect of one `load`."""
        return self.type.bytes

    @property
    def layout(self) -> Any:
        """Where each element of a box, or tile, lies in shared memory."""
        return self.type.layout

    @property
    def tile(self) -> tuple[int, ...]:
        """The extents of what one `load` brings, outermost first."""
        return self.type.tile

    @public
    def shared(self, boxes: int | None = None) -> ArrayView:
        """Dynamic shared memory for a box (or tile), or for `boxes` of them (then the first coordinate), swizzled."""
        layout, name = self.type.boxes_layout(boxes), f"{self.name}.shared"
        return dynamic_shared(self.element, layout, align=self.type.alignment, name=name)

    @public
    def prefetch(self) -> None:
        """Brings the tensor map itself into the cache, before the first copy needs it."""
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
        """Copies the box that begins at `coordinates` to shared memory; completes `bytes` at an mbarrier.

        What lies outside of the array is filled; coordinates may be negative; the last one is a multiple of 16 bytes,
        which the manual leaves out and GPUs ask for. `multicast` is a mask of 16 bits: in each
        block of the cluster whose bit is set the box comes to the same place, and completes at the mbarrier there.
        `policy` is a u64 of `createpolicy`, for the L2 cache. Of a `TensorMap.im2col` the coordinates are those of the
        filter's corner where the column begins, and of the first channel; `offsets` go from there to an element of the
        filter, one for each axis of an image, ints or u16 (zeros if they are left out). `boxes` are some of a tile:
        where each begins in it, and in shared memory.
        """
        options = [(".multicast::cluster", multicast), (".L2::cache_hint", policy)]
        flags = "".join(flag for flag, value in options if value is not None)
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
        """Where each box of a tile lies in shared memory, and where it begins in the array."""
        self._inner_first(coordinates)
        copy = self.type.copy
        if boxes is None and copy is not None:
            boxes = copy.boxes
        for number, behind in boxes or [((), 0)]:
            pairs = zip(coordinates, number, strict=True) if number else ()
            corner = tuple(at if _is_zero(n) else at + n for at, n in pairs) or coordinates
            yield memory if _is_zero(behind) else memory + behind, corner

    def _offsets(self, offsets: Any) -> tuple[Any, ...]:
        """From a filter's corner to one of its elements, as the instruction takes it."""
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
        """Copies shared memory to the box that begins at `coordinates`; what lies outside of the array is left out.

        Coordinates are 0 or more, the last one a multiple of 16 bytes; GPUs write the whole 16 at the end of a row.
        Writes to the memory before it need `fence.proxy.async` by the threads that wrote, and a barrier. The copy
        belongs to the thread's bulk group: `cp.async.bulk.commit_group`, then `wait_group`.
        """
        self._copy("cp.async.bulk", coordinates, source, "", boxes)

    @public
    def reduce(self, operation: str, coordinates: Any, source: Any, *, boxes: Boxes | None = None) -> None:
        """As `store`, but each element becomes op(it, that in shared memory): "add", "min", "max", "and" and so on."""
        self._copy("cp.reduce.async.bulk", coordinates, source, f".{operation}", boxes)

    def commit(self) -> None:
        """Closes the thread's bulk group behind the stores and reductions before."""
        emit("cp.async.bulk.commit_group", ())

    def _copy(self, name: str, coordinates: Any, source: Any, operation: str, boxes: Boxes | None) -> None:
        mode = "tile" if self.type.pixel_box is None else "im2col_no_offs"
        text = f"{name}.tensor.{self.type.rank}d.global.shared::cta{operation}.{mode}.bulk_group"
        for memory, corner in self._parts(self._at(source), coordinates, boxes):
            emit(text, (self, self._inner_first(corner), memory))

    def _at(self, memory: Any) -> Any:
        """Where a copy is to begin in shared memory. An array of the same extents must lie as boxes do."""
        layout = memory.layout if isinstance(memory, ArrayView) and memory.element.bits == self.element.bits else None
        if layout is not None and layout.shape == self.layout.shape and not _lie_alike(layout, self.layout):
            refuse(
                f"the array lies as {layout} in shared memory, and {'tiles' if self.type.copy else 'boxes'} of "
                f"`{self.name}`, a {self.type}, as {self.layout}",
                f"let both have one swizzle, or take the array from `{self.name}.shared()`",
            )
        return _at(memory)

    def _inner_first(self, coordinates: Any) -> tuple[Any, ...]:
        """Coordinates as the instruction takes them."""
        written = tuple(coordinates) if isinstance(coordinates, tuple | list) else (coordinates,)
        if len(written) != self.type.rank:
            axes = "1 axis" if self.type.rank == 1 else f"{self.type.rank} axes"
            refuse(
                f"`{self.name}` is a {self.type}: its array has {axes}; coordinates for {len(written)} given",
                "give where the box begins along each axis, outermost first",
            )
        return written[::-1]


def _lie_alike(layout: Any, other: Any) -> bool:
    """Whether two layouts of one shape give each element the same place."""
    elements = np.arange(layout.size)
    return layout == other or np.array_equal(layout(elements), other(elements))


def _is_zero(distance: Any) -> bool:
    """Whether a distance, which may be traced, is known to be none."""
    return isinstance(distance, int) and distance == 0


def _at(memory: Any) -> Any:
    """Where an array begins; a pointer as it is."""
    if isinstance(memory, ArrayView):
        return memory.address()
    if not isinstance(memory, Source):
        refuse(
            f"a bulk copy takes an array or a pointer in shared memory; found {shown(memory)}",
            "write x.load(memory, coordinates, mbarrier), and x.store(coordinates, memory)",
        )
    return memory
