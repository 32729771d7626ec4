"""A copy atom repeated over threads and values: who moves which element of a tile, and what no instruction can move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, Literal, TypeAlias, overload

from ptxdsl.errors import public
from ptxdsl.layout.algebra import coalesce, composition, right_inverse, through_swizzle
from ptxdsl.layout.atoms import DIMENSIONS, NAMES, CopyAtom, MmaAtom, copy_atom, held
from ptxdsl.layout.draw import Drawable
from ptxdsl.layout.grid import Picture, thread_value_grid
from ptxdsl.layout.index import check_operators
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.number import Computed, Number
from ptxdsl.layout.recast import in_bytes
from ptxdsl.layout.shape import int_tuple, modes, product, refusal, show
from ptxdsl.layout.swizzle import AnyLayout, ComposedLayout
from ptxdsl.layout.tiled_mma import TiledMma, as_tiled_mma, check_numbers, check_tiles, take_thread
from ptxdsl.layout.tiling import logical_divide, raked_product, zipped_divide
from ptxdsl.layout.tma_copy import TmaAtom, TmaCopy, is_tma, make_tma_copy
from ptxdsl.layout.vector import VERBS, check_space, check_vectors, layout_of


@dataclass(frozen=True, repr=False)
class TiledCopy(Drawable):
    """`atom` repeated so that `layout_tv`, (thread, value) → position, covers a `tile` of `bits` wide elements.

    Made for an operand of a tiled MMA, its register side is what that MMA holds.
    """

    atom: CopyAtom
    layout_tv: Layout
    tile: tuple[int, ...]
    bits: int
    operand: str = ""
    mma: TiledMma | None = None

    @property
    def threads(self) -> int:
        return self.layout_tv[0].size

    @property
    def values(self) -> int:
        """How many elements of the tile each thread gets."""
        return self.layout_tv[1].size

    @cached_property
    def source_tv(self) -> Layout:
        """(thread, value) → position in the tile, of what each thread's instructions read."""
        return self._side(self.atom.source_values(self.bits))

    @cached_property
    def target_tv(self) -> Layout:
        """(thread, value) → position in the tile, of what each thread's instructions write."""
        return self._side(self.atom.target_values(self.bits))

    def _side(self, side: Layout) -> Layout:
        reference = self.atom.reference_values(self.bits)
        inside, outside = zipped_divide(self.layout_tv, (reference[0].size, reference[1].size))
        inside = composition(inside, composition(right_inverse(reference), side))
        threads, values = (from_modes(pair) for pair in zip(inside, outside, strict=True))
        return coalesce(from_modes([threads, values]), (1, (1, 1)))

    def partition_s(self, source: Any, space: Any = None) -> Any:
        """(threads, (values of one instruction, instructions), tiles of mode 0, of mode 1, …) of what is read.

        `source` is a layout, or a tensor with a `layout` and a `space`. Raises LayoutError where the instruction cannot
        read it: not contiguous, not aligned, in a space it does not reach.
        """
        return self._partition(source, space, "source")

    def partition_d(self, target: Any, space: Any = None) -> Any:
        """(threads, (values of one instruction, instructions), tiles of mode 0, of mode 1, …) of what is written.

        `target` is a layout, or a tensor with a `layout` and a `space`. Raises LayoutError as partition_s does.
        """
        return self._partition(target, space, "target")

    def _partition(self, tensor: Any, space: Any, side: str) -> AnyLayout:
        layout = layout_of(tensor)
        check_tiles(f"this copy by {self.atom}", self.tile, layout)
        partition = through_swizzle(self._partitioned, layout, side)
        if getattr(self.atom, side) != "registers":
            check_space(self.atom, side, tensor, space)
            check_vectors(self.atom, self.bits, layout, partition, VERBS[side], self._mode_names)
        return partition

    @property
    def _mode_names(self) -> tuple[str, ...]:
        if self.mma is None:
            return tuple(f"mode {i}" for i in range(len(self.tile)))
        return tuple(NAMES[d] for d in DIMENSIONS[self.operand])

    def _partitioned(self, layout: Layout, side: str) -> Layout:
        inside, outside = zipped_divide(layout, self.tile)
        inside = composition(inside, self.source_tv if side == "source" else self.target_tv)
        return from_modes([*coalesce(inside, (1, (1, 1))), *outside])

    def coordinates(self, shape: tuple[int, ...], side: str = "source") -> tuple[Layout, ...]:
        """For each mode of `shape`, the partition of that coordinate: where a pitch is known at run time only."""
        shape = modes(int_tuple(shape, "shape", least=1))  # type: ignore[assignment]
        return tuple(
            self._partitioned(Layout(shape, tuple(int(i == mode) for i in range(len(shape)))), side)
            for mode in range(len(shape))
        )

    def retile(self, fragment: Layout) -> Layout:
        """A fragment (values, atoms, atoms) of the MMA regrouped as (values of an instruction, …) of this copy."""
        if self.mma is None:
            raise refusal(
                f"{self} is not made for a tiled MMA: it has no fragment to regroup",
                "make it by make_tiled_copy_a, _b or _c",
            )
        values, rests = self.mma.layout_tv(self.operand)[1]
        inside, outside = zipped_divide(fragment, (values.size, *(product(n) for n in modes(rests.shape))))
        inside = composition(inside, Layout(product(inside.shape)))
        instruction = self.atom.reference_values(self.bits)[1].size
        return from_modes([logical_divide(inside, instruction), *list(outside)[1:]])

    def get_slice(self, thread: Number) -> ThreadCopy:
        """The part of one thread, which may be traced."""
        check_operators(thread, "a thread")
        return ThreadCopy(self, thread)

    def __str__(self) -> str:
        subject = f" for {self.operand.upper()} of {self.mma}" if self.mma else ""
        return f"tiled_copy({self.atom}, {self.layout_tv} on {show(self.tile)}{subject})"

    __repr__ = __str__

    def picture(self) -> Picture:
        """Who reads and who writes each element: thread and value."""
        sides = (("source", self.source_tv), ("target", self.target_tv))
        grids = [
            thread_value_grid(f"{name}: {getattr(self.atom, name)}", self.tile[0], held(tv))._replace(at=(i, 0))
            for i, (name, tv) in enumerate(sides)
        ]
        return Picture(str(self), tuple(grids))


@dataclass(frozen=True)
class ThreadCopy:
    """What one thread of a tiled copy moves; `thread` may be traced."""

    copy: TiledCopy
    thread: Computed

    def partition_s(self, source: Any, space: Any = None, *, bytes: bool = False) -> ComposedLayout:
        """((values of one instruction, instructions), tiles, …) of what this thread reads: elements, or bytes."""
        return self._take(self.copy.partition_s(source, space), bytes)

    def partition_d(self, target: Any, space: Any = None, *, bytes: bool = False) -> ComposedLayout:
        """((values of one instruction, instructions), tiles, …) of what this thread writes: elements, or bytes."""
        return self._take(self.copy.partition_d(target, space), bytes)

    def _take(self, partition: AnyLayout, bytes: bool) -> ComposedLayout:
        if bytes and self.copy.bits % 8:
            raise refusal(
                f"elements of {self.copy.bits} bits do not start at whole bytes",
                "make the copy for 8-bit elements of recast(layout, bits, 8)",
            )
        return take_thread(in_bytes(partition, self.copy.bits // 8) if bytes else partition, self.thread)

    def coordinates(self, shape: tuple[int, ...], side: str = "source") -> tuple[ComposedLayout, ...]:
        """For each mode of `shape`, that coordinate of what this thread moves."""
        return tuple(take_thread(p, self.thread) for p in self.copy.coordinates(shape, side))


_TmaName: TypeAlias = Literal[
    "cp.async.bulk.tensor.shared.global",
    "cp.async.bulk.tensor.shared.global.multicast::cluster",
    "cp.async.bulk.tensor.global.shared",
    "cp.reduce.async.bulk.tensor.global.shared.add",
]


@overload
def make_tiled_copy(atom: TmaAtom | _TmaName, layout: Any, *, bits: int = 16, blocks: int = 1) -> TmaCopy: ...
@overload
def make_tiled_copy(atom: CopyAtom | str, layout: Any, val_layout: Any = 1, bits: int = 16) -> TiledCopy: ...
@public
def make_tiled_copy(
    atom: CopyAtom | TmaAtom | str, layout: Any, val_layout: Any = 1, bits: int = 16, *, blocks: int = 1
) -> TiledCopy | TmaCopy:
    """Threads laid out as `layout` (coordinates → thread), each with a block `val_layout` (coordinates → value).

    `bits` is the width of an element. Raises LayoutError where the threads or values do not suit the instruction.

    An instruction of TMA, such as cp.async.bulk.tensor.shared.global, is one thread's, and copies boxes: then `layout`
    is that of a tile in shared memory, from which boxes and swizzle follow, and the copy is a `TmaCopy`. `blocks` of a
    cluster may bring a part of each tile to all of them, by .multicast::cluster. Raises LayoutError where no boxes lie
    so, and says which layout would do.
    """
    if is_tma(atom):
        if val_layout != 1:
            help = "give the layout of a tile in shared memory, and `bits` by its name"
            raise refusal(f"{atom} is one thread's: it has no values of threads", help)
        return make_tma_copy(atom, layout, bits, blocks)  # type: ignore[arg-type]  # a CopyAtom is no tma
    atom = copy_atom(atom)  # type: ignore[arg-type]
    if blocks != 1:
        raise refusal(f"{atom} copies for its own block", "leave `blocks` out, or copy by cp.async.bulk.tensor")
    threads, values = _layout(layout), _layout(val_layout)
    check_numbers(threads, "threads")
    check_numbers(values, "values")
    together = raked_product(threads, values)
    layout_tv = composition(right_inverse(together), Layout((threads.size, values.size)))
    copy = TiledCopy(atom, layout_tv, tuple(map(product, modes(together.shape))), bits)
    _check_counts(copy, f"thr_layout {threads}", f"val_layout {values}")
    return copy


@public
def make_tiled_copy_a(atom: CopyAtom | str, tiled_mma: TiledMma | MmaAtom | str, bits: int | None = None) -> TiledCopy:
    """The copy that brings operand A (M, K) to the threads that multiply it, or takes it from there.

    An MMA atom, or its name, stands for one warp of it. Raises LayoutError where no thread holds A, the instruction
    does not reach registers, or the elements that it moves for a thread run along neither M nor K. (For a tile whose
    modes are permuted so that they do run on, `TiledCopy` itself asks nothing before it partitions.)
    """
    return _for_operand(atom, tiled_mma, "a", bits)


@public
def make_tiled_copy_b(atom: CopyAtom | str, tiled_mma: TiledMma | MmaAtom | str, bits: int | None = None) -> TiledCopy:
    """The copy that brings operand B (N, K) to the threads that multiply it, or takes it from there.

    Raises LayoutError as make_tiled_copy_a does.
    """
    return _for_operand(atom, tiled_mma, "b", bits)


@public
def make_tiled_copy_c(atom: CopyAtom | str, tiled_mma: TiledMma | MmaAtom | str, bits: int | None = None) -> TiledCopy:
    """The copy that takes C (M, N) from the threads that accumulate it, or brings it; `bits` where it is converted.

    Raises LayoutError as make_tiled_copy_a does.
    """
    return _for_operand(atom, tiled_mma, "c", bits)


def _for_operand(
    atom: CopyAtom | str, tiled_mma: TiledMma | MmaAtom | str, operand: str, bits: int | None
) -> TiledCopy:
    if is_tma(atom):
        raise refusal(
            f"{atom} copies between global and shared memory: it does not reach the registers of {tiled_mma}",
            "copy the tile by make_tiled_copy, and from shared memory by ldmatrix.x4, or let wgmma read it there",
        )
    atom, mma = copy_atom(atom), as_tiled_mma(tiled_mma)
    _check_registers(atom, mma, operand)
    bits = mma.bits(operand) if bits is None else bits
    copy = TiledCopy(atom, mma.layout_tv(operand), mma.tile_of(operand), bits, operand, mma)
    _check_counts(copy, str(mma), f"operand {operand.upper()}")
    _check_runs(copy)
    return copy


def _check_registers(atom: CopyAtom, mma: TiledMma, operand: str) -> None:
    """Refuse a copy that does not meet the operand in registers."""
    name = operand.upper()
    if not mma.atom.in_registers(operand):
        raise refusal(
            f"no thread holds operand {name} of {mma}: the instruction reads it from shared memory by itself",
            f"bring A to registers for {mma.atom}.rs, or leave it in shared memory"
            if operand == "a"
            else f"leave {name} in shared memory",
        )
    if "registers" not in (atom.source, atom.target):
        raise refusal(
            f"{atom} copies {atom.source} to {atom.target} memory: it does not reach the registers that hold operand "
            f"{name} of {mma}",
            "copy the tile to shared memory with make_tiled_copy, and from there by ldmatrix.x4 or ld.shared",
        )


def _check_runs(copy: TiledCopy) -> None:
    """Refuse an instruction whose elements of one thread are no neighbours in the tile, along either mode."""
    memory, length = copy.target_tv if copy.atom.source == "registers" else copy.source_tv, copy.atom.vector_bytes * 8
    positions = memory[1].offsets()[: length // copy.bits]
    pitch = copy.tile[0]
    runs = [next((i for i, p in enumerate(positions) if p != i * d), len(positions)) for d in (1, pitch)]
    if max(runs) == len(positions):
        return
    x, y = (NAMES[d] for d in DIMENSIONS[copy.operand])
    listed = ", ".join(f"({p % pitch},{p // pitch})" for p in positions[:4]) + (", …" if len(positions) > 4 else "")
    reached = VERBS["target" if copy.atom.source == "registers" else "source"]
    raise refusal(
        f"{copy.atom} {reached} {len(positions)} neighbours of {copy.bits} bits, along {x} or {y}: found ({x}, {y}) = "
        f"{listed} for the first thread of operand {copy.operand.upper()} of {copy.mma}",
        _narrower(copy, max(runs)),
    )


def _narrower(copy: TiledCopy, run: int) -> str:
    """What moves the `run` elements that are neighbours."""
    way = "st" if copy.atom.source == "registers" else "ld"
    space = copy.atom.target if way == "st" else copy.atom.source
    width = run * copy.bits // 8
    return f"move {width} bytes at a time, as by {way}{'' if space == 'memory' else f'.{space}'}.{width}"


def _layout(value: Any) -> Layout:
    return value if isinstance(value, Layout) else Layout(value)


def _check_counts(copy: TiledCopy, threads: str, values: str) -> None:
    needed_threads, needed_values = (mode.size for mode in copy.atom.reference_values(copy.bits))
    if copy.threads % needed_threads:
        raise refusal(
            f"{copy.atom} is one instruction of {needed_threads} threads: found {copy.threads} threads in {threads}, "
            f"needed a multiple of {needed_threads}",
            f"let whole warps of {needed_threads} threads take part, or copy with ld.shared",
        )
    if copy.values % needed_values:
        raise _too_few_values(copy, needed_values, values)


def _too_few_values(copy: TiledCopy, needed: int, where: str) -> Exception:
    if copy.mma is None:
        fewer = copy.values // needed * needed
        wanted = f"{fewer} or {fewer + needed}" if fewer else str(needed)
        return refusal(
            f"{copy.atom} moves {needed} values of {copy.bits} bits a thread: found {copy.values} a thread in {where}, "
            f"needed a multiple of {needed}",
            f"give each thread {wanted} values, or use a narrower instruction",
        )
    extents = show(copy.mma.tile_of(copy.operand))
    x, y = (NAMES[d] for d in DIMENSIONS[copy.operand])
    return refusal(
        f"{copy.atom} moves {needed} values of {copy.bits} bits a thread: found {copy.values} a thread in {where} "
        f"({x}, {y}) = {extents} of {copy.mma}, needed a multiple of {needed}",
        _more_atoms(copy.mma, copy.operand, needed // gcd(needed, copy.values)),
    )


def _more_atoms(mma: TiledMma, operand: str, factor: int) -> str:
    """How to give each thread `factor` times the values: more atoms of one warp, by the tile."""
    dimension = DIMENSIONS[operand][1 if operand == "c" else 0]
    name = NAMES[dimension]
    tile = tuple(n * factor if d == dimension else n for d, n in enumerate(mma.tile))
    atoms = tile[dimension] // (mma.atom.shape[dimension] * mma.warps[dimension])
    return (
        f"let each warp hold {atoms} MMA atoms in {name}: tile={tile} (more warps in {name} alone do not help), "
        "or use a narrower instruction"
    )
