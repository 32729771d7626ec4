"""An MMA atom repeated over warps and registers: who holds which element of A, B and C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ptxdsl.errors import public
from ptxdsl.layout.algebra import L, composition, right_inverse, slice_, through_swizzle
from ptxdsl.layout.atoms import DIMENSIONS, NAMES, MmaAtom, mma_atom, product_picture
from ptxdsl.layout.draw import Drawable
from ptxdsl.layout.grid import Picture
from ptxdsl.layout.index import check_operators
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.number import Computed, Number
from ptxdsl.layout.shape import check_int, int_tuple, kind_of, map_leaves, modes, product, refusal, show
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout
from ptxdsl.layout.tiling import logical_divide, zipped_divide
from ptxdsl.layout.vector import layout_of


@dataclass(frozen=True, repr=False)
class TiledMma(Drawable):
    """`atom` on `atom_layout` (M, N, K) → warp, covering `tile` (M, N, K) elements in all.

    A tile of more than one atom a warp repeats the atom in the registers of each thread.
    """

    atom: MmaAtom
    atom_layout: Layout
    tile: tuple[int, int, int]

    @property
    def threads(self) -> int:
        return self.atom.threads * self.atom_layout.size

    @property
    def warps(self) -> tuple[int, int, int]:
        """How many atoms stand side by side in M, N and K, each on its own warp (or warpgroup)."""
        m, n, k = (product(count) for count in modes(self.atom_layout.shape))
        return m, n, k

    def bits(self, operand: str) -> int:
        check_operand(operand)
        return {"a": self.atom.a_bits, "b": self.atom.b_bits, "c": self.atom.c_bits}[operand]

    def tile_of(self, operand: str) -> tuple[int, int]:
        """The extents of operand "a" (M, K), "b" (N, K) or "c" (M, N) in one tile."""
        check_operand(operand)
        x, y = DIMENSIONS[operand]
        return self.tile[x], self.tile[y]

    def layout_tv(self, operand: str) -> Layout:
        """(thread, (value of the atom, (atoms in the first dimension, in the second))) → position in the tile."""
        threads, values, *rests = self._partitioned(Layout(self.tile_of(operand)), operand)
        return from_modes([threads, from_modes([values, from_modes(rests)])])

    def partition_a(self, layout: L) -> L:
        """(threads, values of one atom, atoms in M, atoms in K) of an (M, K) layout."""
        return self.partition("a", layout)

    def partition_b(self, layout: L) -> L:
        """(threads, values of one atom, atoms in N, atoms in K) of an (N, K) layout."""
        return self.partition("b", layout)

    def partition_c(self, layout: L) -> L:
        """(threads, values of one atom, atoms in M, atoms in N) of an (M, N) layout."""
        return self.partition("c", layout)

    def partition(self, operand: str, layout: L) -> L:
        """(threads, values of one atom, atoms, atoms) of a layout, or tensor, of operand "a", "b" or "c"."""
        check_operand(operand)
        whole: L = layout_of(layout)  # type: ignore[assignment]  # a layout is its own
        check_tiles(f"operand {operand.upper()} of {self}", self.tile_of(operand), whole)
        return through_swizzle(self._partitioned, whole, operand)

    def fragment(self, operand: str, shape: Sequence[int]) -> Layout:
        """Where a thread keeps its part of `shape` in registers: (values, atoms, atoms) → element number."""
        _, *held = modes(self.partition(operand, Layout(int_tuple(shape, "shape", least=1))).shape)
        return Layout(tuple(held))

    def get_slice(self, thread: Number) -> ThreadMma:
        """The part of one thread, which may be traced."""
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
        """Thread → (thread of the atom, M, N, K), counted linearly."""
        warps = [Layout(m.shape, map_leaves(lambda d: d * self.atom.threads, m.stride)) for m in self.atom_layout]
        return right_inverse(from_modes([Layout(self.atom.threads), *warps]))

    def __str__(self) -> str:
        return f"tiled_mma({self.atom}, atoms {self.atom_layout}, tile {show(self.tile)})"

    __repr__ = __str__

    def picture(self) -> Picture:
        """A left of C, B above it, as in the product; thread and value of each element, or its byte if shared."""
        return product_picture(
            self.atom, str(self), self.tile, {operand: self.layout_tv(operand) for operand in DIMENSIONS}
        )


@dataclass(frozen=True)
class ThreadMma:
    """What one thread of a tiled MMA holds; `thread` may be traced."""

    mma: TiledMma
    thread: Computed

    def partition_a(self, layout: AnyLayout) -> ComposedLayout:
        """(values, atoms in M, atoms in K), from this thread's first element on."""
        return take_thread(self.mma.partition_a(layout), self.thread)

    def partition_b(self, layout: AnyLayout) -> ComposedLayout:
        """(values, atoms in N, atoms in K), from this thread's first element on."""
        return take_thread(self.mma.partition_b(layout), self.thread)

    def partition_c(self, layout: AnyLayout) -> ComposedLayout:
        """(values, atoms in M, atoms in N), from this thread's first element on."""
        return take_thread(self.mma.partition_c(layout), self.thread)


@public
def make_tiled_mma(
    atom: MmaAtom | str, atom_layout: Any = (1, 1, 1), tile: Sequence[int | None] | None = None
) -> TiledMma:
    """`atom`, or the atom of that PTX name, on each warp of `atom_layout` (M, N, K).

    `tile` is how much all warps cover together, by default one atom each; twice of it in N, say, gives every thread two
    atoms in N. Raises LayoutError where the tile is no multiple of that.
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
                f"the atom is {show(atom.shape)}, and the warps side by side make it {show(least)}",
            )
    m, n, k = wanted
    return TiledMma(atom, warps, (m, n, k))


def check_operand(operand: Any) -> None:
    if operand not in tuple(DIMENSIONS):
        raise refusal(f"there is no operand {operand!r}", 'the operands are "a", "b" and "c"')


def as_tiled_mma(value: TiledMma | MmaAtom | str) -> TiledMma:
    """A tiled MMA as it is; an atom or its name on one warp."""
    return value if isinstance(value, TiledMma) else make_tiled_mma(value)


def _extents(tile: Any) -> Sequence[int | None]:
    if tile is None:
        return (None,) * 3
    if not isinstance(tile, (tuple, list)) or len(tile) != 3:
        shown = tile if isinstance(tile, (tuple, list)) else kind_of(tile)
        raise refusal(f"the tile of a tiled MMA is (M, N, K); found {shown}", "None stands for the least there is")
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
            f"the warps of a tiled MMA stand in M, N and K; found {layout}, of {layout.rank} modes",
            "give one number for each of M, N and K, as (2, 2, 1)",
        )
    return layout


def check_numbers(layout: Layout, noun: str) -> None:
    """Refuse a layout that does not give each of its coordinates one of the numbers from 0 on."""
    if sorted(layout.offsets()) != list(range(layout.size)):
        raise refusal(
            f"{layout} does not number {layout.size} {noun} from 0 to {layout.size - 1}: its cosize is {layout.cosize}",
            f"the compact layout of this shape is {Layout(layout.shape)}",
        )


def check_tiles(noun: str, tile: Sequence[int], layout: AnyLayout) -> None:
    """Refuse a layout that whole tiles do not fill."""
    shape = tuple(map(product, modes(layout.shape)))
    if len(shape) < len(tile) or any(n % t for n, t in zip(shape, tile, strict=False)):
        raise refusal(
            f"{noun} comes in tiles of {show(tuple(tile))}, which do not fill {show(layout.shape)} evenly",
            "choose a tile that divides the layout, and guard the remainder in the kernel",
        )


def take_thread(partition: AnyLayout, thread: Number) -> ComposedLayout:
    """The modes behind the first, at the offset of `thread`."""
    return slice_(partition, thread, *[None] * (partition.rank - 1))
