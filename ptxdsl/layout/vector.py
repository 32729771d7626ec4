"""Requirements of a vector access: the right state space, contiguous elements, aligned addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxdsl.layout.atoms import CopyAtom
from ptxdsl.layout.layout import Layout
from ptxdsl.layout.shape import kind_of, refusal
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout, Start, Swizzle

VERBS = {"source": "reads", "target": "writes"}


def layout_of(tensor: Any) -> AnyLayout:
    """Return a layout unchanged, and a tensor's layout."""
    layout = tensor if isinstance(tensor, (Layout, ComposedLayout)) else getattr(tensor, "layout", None)
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise refusal(
            f"expected a layout, or a tensor with a layout; found {kind_of(tensor)}",
            "write Layout(SHAPE, STRIDE), or pass the array of pd.shared(TYPE, layout)",
        )
    return layout


def check_space(atom: CopyAtom, side: str, tensor: Any, space: Any) -> None:
    """Raise LayoutError for memory that the instruction cannot access; a plain layout is not checked."""
    space = getattr(tensor, "space", None) if space is None else space
    needed = getattr(atom, side)
    if space is None or needed == "memory":
        return
    name = str(getattr(space, "name", space)).lower().strip(".").split("::")[0]
    if name != needed:
        raise refusal(
            f"{atom} {VERBS[side]} {needed} memory: found a {side} in {name}, needed {needed}",
            "copy the tile to shared memory first (cp.async), or load it with ld.global"
            if needed == "shared" and side == "source"
            else f"use an instruction that {VERBS[side]} {name} memory",
        )


def check_vectors(
    atom: CopyAtom, bits: int, layout: AnyLayout, partition: AnyLayout, verb: str, names: Sequence[str]
) -> None:
    """Raise LayoutError if the vectors of a partition (threads, (values, …), …) are not contiguous and aligned in
    memory.

    `names` are the names of the layout's modes; `verb` says how the instruction accesses the layout.
    """
    access = _Access(atom, bits, layout, verb, names)
    inner = partition.layout if isinstance(partition, ComposedLayout) else partition
    values, *others = inner[1]
    offsets = values.offsets()[: access.length]
    if offsets != list(range(access.length)):
        raise access.not_contiguous(offsets)
    steps = [d for mode in (inner[0], *others, *list(inner)[2:]) for n, d in mode.flat() if n > 1]
    if wrong := next((d for d in steps if d % access.length), None):
        raise access.not_aligned(wrong)
    if isinstance(layout, ComposedLayout):
        access.check_swizzle(layout)


@dataclass(frozen=True, slots=True)
class _Access:
    """One vector instruction on one layout, and its error messages."""

    atom: CopyAtom
    bits: int
    layout: AnyLayout
    verb: str
    names: Sequence[str]

    @property
    def length(self) -> int:
        """The number of elements of one vector."""
        return self.atom.vector_bytes * 8 // self.bits

    @property
    def _vectors(self) -> str:
        return f"{self.atom} {self.verb} {self.length} contiguous values of {self.bits} bits per thread"

    @property
    def _aligned(self) -> str:
        return f"{self.atom} {self.verb} at multiples of {self.atom.vector_bytes} bytes"

    @property
    def _inner(self) -> Layout:
        return self.layout.layout if isinstance(self.layout, ComposedLayout) else self.layout

    def not_contiguous(self, offsets: list[int]) -> Exception:
        shown = ", ".join(map(str, offsets[:4])) + (", …" if len(offsets) > 4 else "")
        major = self._major()
        return refusal(
            f"{self._vectors}: found offsets {shown} in {self.layout}, which is contiguous in {major or 'no mode'}, "
            f"needed 0 to {self.length - 1}",
            self._other_direction(offsets, major),
        )

    def _major(self) -> str:
        """Return the name of the contiguous mode."""
        named = zip(self.names, self._inner, strict=False)
        return next((name for name, mode in named if any(d == 1 < n for n, d in mode.flat())), "")

    def _other_direction(self, offsets: list[int], major: str) -> str:
        if not self.atom.is_matrix:
            run = next((i for i, o in enumerate(offsets) if o != i), self.length)
            width = run * self.bits // 8
            return f"let each thread's values run along the contiguous mode, or move {width} bytes at a time"
        plain = self.atom.name.removesuffix(".trans")
        if major == self.names[0] and not self.atom.transposed:
            return f"the tile is {major}-major: use {plain}.trans"
        if major == self.names[1] and self.atom.transposed:
            return f"the tile is {major}-major: use {plain}"
        return f"store the tile with stride 1 in {self.names[1]} for {plain}, or in {self.names[0]} for {plain}.trans"

    def not_aligned(self, step: int) -> Exception:
        pitch = next((d for n, d in self._inner.flat() if n > 1 and d != 1 and d % self.length), step)
        padded = (-(-pitch // self.length) | 1) * self.length
        return refusal(
            f"{self._aligned}: found a pitch of {pitch} elements ({pitch * self.bits // 8} bytes) in {self.layout}, "
            f"needed a multiple of {self.length} elements",
            f"pad the pitch to {padded} elements, or keep a power of two and swizzle it",
        )

    def check_swizzle(self, layout: ComposedLayout) -> None:
        """Raise LayoutError unless the swizzle blocks and the start of the layout are whole vectors."""
        if layout.swizzle.bits and 1 << layout.swizzle.base < self.length:
            base = self.length.bit_length() - 1
            raise refusal(
                f"{self._vectors}: found blocks of {1 << layout.swizzle.base} in {layout}, needed {self.length}",
                f"use {Swizzle(layout.swizzle.bits, base, layout.swizzle.shift)!r}, whose blocks are whole vectors",
            )
        start = layout.offset
        if not isinstance(start, Start) and start % self.length:
            raise refusal(
                f"{self._aligned}: found a start at element {start} (byte {start * self.bits // 8}) of {layout}, "
                f"needed a multiple of {self.length} elements",
                f"start the tile at a multiple of {self.length} elements",
            )
