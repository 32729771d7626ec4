"""Tiled MMAs: an MMA atom repeated over warps and registers, and the thread that holds each element of A, B and C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxdsl.cached import cached_property
from ptxdsl.errors import public
from ptxdsl.layout.algebra import L, composition, right_inverse, slice_, through_swizzle
from ptxdsl.layout.atoms import mma_atom
from ptxdsl.layout.draw import Drawable, Picture
from ptxdsl.layout.index import check_operators
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.mma_atom import DIMENSIONS, NAMES, MmaAtom, product_picture
from ptxdsl.layout.number import Computed, Number
from ptxdsl.layout.shape import check_int, int_tuple, kind_of, map_leaves, modes, product, refusal, show
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout
from ptxdsl.layout.tiling import logical_divide, zipped_divide
from ptxdsl.layout.vector import layout_of


@dataclass(frozen=True, repr=False)
class TiledMma(Drawable):
    """`atom` on `atom_layout` (M, N, K) → warp, covering `tile` (M, N, K) elements in total.

    If the tile has more than one atom per warp, the atom is repeated in the registers of each thread.
    """

    atom: MmaAtom
    atom_layout: Layout
    tile: tuple[int, int, int]

    @property
    def threads(self) -> int:
        return self.atom.threads * self.atom_layout.size

    @property
    def warps(self) -> tuple[int, int, int]:
        """The number of atoms along M, N and K, each on its own warp (or warpgroup)."""
        m, n, k = (product(count) for count in modes(self.atom_layout.shape))
        return m, n, k

    def bits(self, operand: str) -> int:
        check_operand(operand)
        return {"a": self.atom.a_bits, "b": self.atom.b_bits, "c": self.atom.c_bits}[operand]

    def tile_of(self, operand: str) -> tuple[int, int]:
        """Return the extents of operand "a" (M, K), "b" (N, K) or "c" (M, N) in one tile."""
        check_operand(operand)
        x, y = DIMENSIONS[operand]
        return self.tile[x], self.tile[y]

    def layout_tv(self, operand: str) -> Layout:
        """Return (thread, (value of the atom, (atoms in the first, second dimension))) → position in the tile."""
        threads, values, *rests = self._partitioned(Layout(self.tile_of(operand)), operand)
        return from_modes([threads, from_modes([values, from_modes(rests)])])

    def partition_a(self, layout: L) -> L:
        """Partition an (M, K) layout into (threads, values of one atom, atoms in M, atoms in K)."""
        return self.partition("a", layout)

    def partition_b(self, layout: L) -> L:
        """Partition an (N, K) layout into (threads, values of one atom, atoms in N, atoms in K)."""
        return self.partition("b", layout)

    def partition_c(self, layout: L) -> L:
        """Partition an (M, N) layout into (threads, values of one atom, atoms in M, atoms in N)."""
        return self.partition("c", layout)

    def partition(self, operand: str, layout: L) -> L:
        """Partition a layout or tensor of operand "a", "b" or "c" into (threads, values of one atom, atoms, atoms)."""
        check_operand(operand)
        whole: L = layout_of(layout)  # type: ignore[assignment]  # a layout is its own
        check_tiles(f"operand {operand.upper()} of {self}", self.tile_of(operand), whole)
        return through_swizzle(self._partitioned, whole, operand)

    def fragment(self, operand: str, shape: Sequence[int]) -> Layout:
        """Return the register layout of a thread's fragment of `shape`: (values, atoms, atoms) → element number."""
        _, *held = modes(self.partition(operand, Layout(int_tuple(shape, "shape", least=1))).shape)
        return Layout(tuple(held))

    def get_slice(self, thread: Number) -> ThreadMma:
        """Return the part of one thread, which may be traced."""
        check_operators(thread, "a thread")
        return ThreadMma(self, thread)

    def _partitioned(self, layout: Layout, operand: str) -> Layout:
        dimensions = DIMENSIONS[operand]
        inside, outside = zipped_divide(layout, tuple(self.atom.shape[d] for d in dimensions))
        threads, values = composition(inside, getattr(self.atom, operand))
        outside = logical_divide(outside, tuple(self.warps[d] for d in dimensions))
        by_warp = {d: mode[0] for d, mode in zip(dimensions, outside, strict=False)}
        warps = [by_warp.get(d, Layout(self.warps[d], 0)) for d in range(3)]
        numbered = composition(from_modes([threads, *warps]), self._thread_numbers)
        rests = [mode[1] for mode in list(outside)[:2]] + list(outside)[2:]
        return from_modes([numbered, values, *rests])

    @cached_property
    def _thread_numbers(self) -> Layout:
        """Return thread → (thread of the atom, M, N, K), as a linear index."""
        warps = [Layout(m.shape, map_leaves(lambda d: d * self.atom.threads, m.stride)) for m in self.atom_layout]
        return right_inverse(from_modes([Layout(self.atom.threads), *warps]))

    def __str__(self) -> str:
        return f"tiled_mma({self.atom}, atoms {self.atom_layout}, tile {show(self.tile)})"

    __repr__ = __str__

    def picture(self) -> Picture:
        """Draw A left of C and B above it, with the thread and value of each element, or its byte if it is in shared
        memory.
        """
        return product_picture(
            self.atom, str(self), self.tile, {operand: self.layout_tv(operand) for operand in DIMENSIONS}
        )


@dataclass(frozen=True)
class ThreadMma:
    """The part of a tiled MMA that one thread holds; `thread` may be traced."""

    mma: TiledMma
    thread: Computed

    def partition_a(self, layout: AnyLayout) -> ComposedLayout:
        """Return (values, atoms in M, atoms in K), starting at this thread's first element."""
        return take_thread(self.mma.partition_a(layout), self.thread)

    def partition_b(self, layout: AnyLayout) -> ComposedLayout:
        """Return (values, atoms in N, atoms in K), starting at this thread's first element."""
        return take_thread(self.mma.partition_b(layout), self.thread)

    def partition_c(self, layout: AnyLayout) -> ComposedLayout:
        """Return (values, atoms in M, atoms in N), starting at this thread's first element."""
        return take_thread(self.mma.partition_c(layout), self.thread)


@public
def make_tiled_mma(
    atom: MmaAtom | str, atom_layout: Any = (1, 1, 1), tile: Sequence[int | None] | None = None
) -> TiledMma:
    """Return a tiled MMA with `atom`, or the atom of that PTX name, on each warp of `atom_layout` (M, N, K).

    `tile` is the extent that all warps cover together; the default is one atom per warp. Twice that extent in N gives
    every thread two atoms in N. Raises LayoutError if the tile is not a multiple of the default.
    """
    atom = mma_atom(atom)
    warps = _warp_layout(atom_layout)
    least = tuple(a * product(w) for a, w in zip(atom.shape, modes(warps.shape), strict=True))
    wanted = [step if n is None else n for n, step in zip(_extents(tile), least, strict=True)]
    for name, extent, step in zip(NAMES, wanted, least, strict=True):
        if extent < 1 or extent % step:
            raise refusal(
                f"the tile {show(tuple(wanted))} of {atom} on {warps} warps: found {extent} in {name}, "
                f"needed a multiple of {step}",
                f"the atom is {show(atom.shape)}, and all warps together cover {show(least)}",
            )
    m, n, k = wanted
    return TiledMma(atom, warps, (m, n, k))


def check_operand(operand: Any) -> None:
    if operand not in tuple(DIMENSIONS):
        raise refusal(f"there is no operand {operand!r}", 'the operands are "a", "b" and "c"')


def as_tiled_mma(value: TiledMma | MmaAtom | str) -> TiledMma:
    """Return a tiled MMA unchanged, and an atom or its name as a tiled MMA of one warp."""
    return value if isinstance(value, TiledMma) else make_tiled_mma(value)


def _extents(tile: Any) -> Sequence[int | None]:
    if tile is None:
        return (None,) * 3
    if not isinstance(tile, (tuple, list)) or len(tile) != 3:
        shown = tile if isinstance(tile, (tuple, list)) else kind_of(tile)
        raise refusal(f"the tile of a tiled MMA must be (M, N, K); found {shown}", "None means the smallest extent")
    for name, extent in zip(NAMES, tile, strict=True):
        if extent is not None:
            check_int(extent, f"{name} of the tile of a tiled MMA")
    return tile


def _warp_layout(value: Any) -> Layout:
    layout = value if isinstance(value, Layout) else Layout(value)
    layout = from_modes([*layout, *[Layout(1, 0)] * (3 - layout.rank)])
    check_numbers(layout, "warps")
    if layout.rank != 3:
        raise refusal(
            f"the warps of a tiled MMA need a layout of M, N and K; found {layout}, of {layout.rank} modes",
            "give one number for each of M, N and K, such as (2, 2, 1)",
        )
    return layout


def check_numbers(layout: Layout, noun: str) -> None:
    """Raise LayoutError unless the layout maps its coordinates one-to-one to the numbers from 0."""
    if sorted(layout.offsets()) != list(range(layout.size)):
        raise refusal(
            f"{layout} does not number {layout.size} {noun} from 0 to {layout.size - 1}: its cosize is {layout.cosize}",
            f"the compact layout of this shape is {Layout(layout.shape)}",
        )


def check_tiles(noun: str, tile: Sequence[int], layout: AnyLayout) -> None:
    """Raise LayoutError if the layout is not a whole number of tiles."""
    shape = tuple(map(product, modes(layout.shape)))
    if len(shape) < len(tile) or any(n % t for n, t in zip(shape, tile, strict=False)):
        raise refusal(
            f"{noun} has tiles of {show(tuple(tile))}, which do not divide {show(layout.shape)}",
            "choose a tile that divides the layout, and handle the remainder in the kernel",
        )


def take_thread(partition: AnyLayout, thread: Number) -> ComposedLayout:
    """Return the modes after the first, at the offset of `thread`."""
    return slice_(partition, thread, *[None] * (partition.rank - 1))
