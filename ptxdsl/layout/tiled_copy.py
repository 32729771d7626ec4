"""Tiled copies: a copy atom repeated over threads and values, with checks that the instruction can do the copy."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, Literal, TypeAlias, overload

from ptxdsl.cached import cached_property
from ptxdsl.errors import public
from ptxdsl.layout.algebra import coalesce, composition, right_inverse, through_swizzle
from ptxdsl.layout.atoms import CopyAtom, copy_atom
from ptxdsl.layout.draw import Drawable, Picture, thread_value_grid
from ptxdsl.layout.index import check_operators
from ptxdsl.layout.layout import Layout, from_modes
from ptxdsl.layout.mma_atom import DIMENSIONS, NAMES, MmaAtom, held
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

    A tiled copy made for an operand of a tiled MMA has that operand's fragment as its register side.
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
        """The number of elements of the tile that each thread copies."""
        return self.layout_tv[1].size

    @cached_property
    def source_tv(self) -> Layout:
        """(thread, value) → position in the tile, for the source of each thread's instructions."""
        return self._side(self.atom.source_values(self.bits))

    @cached_property
    def target_tv(self) -> Layout:
        """(thread, value) → position in the tile, for the target of each thread's instructions."""
        return self._side(self.atom.target_values(self.bits))

    def _side(self, side: Layout) -> Layout:
        reference = self.atom.reference_values(self.bits)
        inside, outside = zipped_divide(self.layout_tv, (reference[0].size, reference[1].size))
        inside = composition(inside, composition(right_inverse(reference), side))
        threads, values = (from_modes(pair) for pair in zip(inside, outside, strict=True))
        return coalesce(from_modes([threads, values]), (1, (1, 1)))

    def partition_s(self, source: Any, space: Any = None) -> Any:
        """Partition the source into (threads, (values of one instruction, instructions), tiles of mode 0, tiles of mode
        1, …).

        `source` is a layout, or a tensor with a `layout` and a `space`. Raises LayoutError if the instruction cannot
        read it: not contiguous, not aligned, or in another state space.
        """
        return self._partition(source, space, "source")

    def partition_d(self, target: Any, space: Any = None) -> Any:
        """Partition the target into (threads, (values of one instruction, instructions), tiles of mode 0, tiles of mode
        1, …).

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
        """Return the partition of each coordinate of `shape`, for tensors whose pitch is known only at run time."""
        shape = modes(int_tuple(shape, "shape", least=1))  # type: ignore[assignment]
        return tuple(
            self._partitioned(Layout(shape, tuple(int(i == mode) for i in range(len(shape)))), side)
            for mode in range(len(shape))
        )

    def retile(self, fragment: Layout) -> Layout:
        """Regroup a fragment (values, atoms, atoms) of the MMA as (values of an instruction, …) of this copy."""
        if self.mma is None:
            raise refusal(
                f"{self} was not made for a tiled MMA, so it has no fragment to regroup",
                "create it with make_tiled_copy_a, _b or _c",
            )
        values, rests = self.mma.layout_tv(self.operand)[1]
        inside, outside = zipped_divide(fragment, (values.size, *(product(n) for n in modes(rests.shape))))
        inside = composition(inside, Layout(product(inside.shape)))
        instruction = self.atom.reference_values(self.bits)[1].size
        return from_modes([logical_divide(inside, instruction), *list(outside)[1:]])

    def get_slice(self, thread: Number) -> ThreadCopy:
        """Return the part of one thread, which may be traced."""
        check_operators(thread, "a thread")
        return ThreadCopy(self, thread)

    def __str__(self) -> str:
        subject = f" for {self.operand.upper()} of {self.mma}" if self.mma else ""
        return f"tiled_copy({self.atom}, {self.layout_tv} on {show(self.tile)}{subject})"

    __repr__ = __str__

    def picture(self) -> Picture:
        """Draw the thread and value that read and write each element."""
        sides = (("source", self.source_tv), ("target", self.target_tv))
        grids = [
            thread_value_grid(f"{name}: {getattr(self.atom, name)}", self.tile[0], held(tv))._replace(at=(i, 0))
            for i, (name, tv) in enumerate(sides)
        ]
        return Picture(str(self), tuple(grids))


@dataclass(frozen=True)
class ThreadCopy:
    """The part of a tiled copy that one thread moves; `thread` may be traced."""

    copy: TiledCopy
    thread: Computed

    def partition_s(self, source: Any, space: Any = None, *, bytes: bool = False) -> ComposedLayout:
        """Partition the source for this thread into ((values of one instruction, instructions), tiles, …), in elements
        or bytes.
        """
        return self._take(self.copy.partition_s(source, space), bytes)

    def partition_d(self, target: Any, space: Any = None, *, bytes: bool = False) -> ComposedLayout:
        """Partition the target for this thread into ((values of one instruction, instructions), tiles, …), in elements
        or bytes.
        """
        return self._take(self.copy.partition_d(target, space), bytes)

    def _take(self, partition: AnyLayout, bytes: bool) -> ComposedLayout:
        if bytes and self.copy.bits % 8:
            raise refusal(
                f"elements of {self.copy.bits} bits do not start at whole bytes",
                "create the copy for 8-bit elements of recast(layout, bits, 8)",
            )
        return take_thread(in_bytes(partition, self.copy.bits // 8) if bytes else partition, self.thread)

    def coordinates(self, shape: tuple[int, ...], side: str = "source") -> tuple[ComposedLayout, ...]:
        """Return this thread's partition of each coordinate of `shape`."""
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
    """Return a tiled copy with threads laid out as `layout` (coordinates → thread) and values as `val_layout`
    (coordinates → value).

    `bits` is the element width. Raises LayoutError if the threads or values do not fit the instruction.

    A TMA instruction such as cp.async.bulk.tensor.shared.global is issued by one thread and copies boxes. Then `layout`
    is the layout of a tile in shared memory, which determines boxes and swizzle, and the result is a `TmaCopy`. With
    .multicast::cluster, each of `blocks` blocks of a cluster loads a part of the tile for all of them. Raises
    LayoutError if no boxes produce the layout, and suggests one that works.
    """
    if is_tma(atom):
        if val_layout != 1:
            help = "pass the layout of a tile in shared memory, and `bits` as a keyword"
            raise refusal(f"{atom} is issued by one thread: it takes no value layout", help)
        return make_tma_copy(atom, layout, bits, blocks)  # type: ignore[arg-type]  # a CopyAtom is no tma
    atom = copy_atom(atom)  # type: ignore[arg-type]
    if blocks != 1:
        raise refusal(f"{atom} does not copy for several blocks", "leave `blocks` out, or use cp.async.bulk.tensor")
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
    """Return the copy that loads operand A (M, K) into the registers of the MMA's threads, or stores it from there.

    An MMA atom or its name means one warp of it. Raises LayoutError if A is not in registers, if the instruction does
    not access registers, or if a thread's elements are contiguous along neither M nor K. (`TiledCopy` itself makes no
    such check before it partitions; use it for a tile whose permuted modes are contiguous.)
    """
    return _for_operand(atom, tiled_mma, "a", bits)


@public
def make_tiled_copy_b(atom: CopyAtom | str, tiled_mma: TiledMma | MmaAtom | str, bits: int | None = None) -> TiledCopy:
    """Return the copy that loads operand B (N, K) into the registers of the MMA's threads, or stores it from there.

    Raises LayoutError as make_tiled_copy_a does.
    """
    return _for_operand(atom, tiled_mma, "b", bits)


@public
def make_tiled_copy_c(atom: CopyAtom | str, tiled_mma: TiledMma | MmaAtom | str, bits: int | None = None) -> TiledCopy:
    """Return the copy that stores the accumulators C (M, N), or loads them; `bits` is given if they are converted.

    Raises LayoutError as make_tiled_copy_a does.
    """
    return _for_operand(atom, tiled_mma, "c", bits)


def _for_operand(
    atom: CopyAtom | str, tiled_mma: TiledMma | MmaAtom | str, operand: str, bits: int | None
) -> TiledCopy:
    if is_tma(atom):
        raise refusal(
            f"{atom} copies between global and shared memory: it cannot access the registers of {tiled_mma}",
            "copy the tile with make_tiled_copy, and load it from shared memory with ldmatrix.x4, or let wgmma "
            "read it there",
        )
    atom, mma = copy_atom(atom), as_tiled_mma(tiled_mma)
    _check_registers(atom, mma, operand)
    bits = mma.bits(operand) if bits is None else bits
    copy = TiledCopy(atom, mma.layout_tv(operand), mma.tile_of(operand), bits, operand, mma)
    _check_counts(copy, str(mma), f"operand {operand.upper()}")
    _check_runs(copy)
    return copy


def _check_registers(atom: CopyAtom, mma: TiledMma, operand: str) -> None:
    """Raise LayoutError if the copy does not access the operand in registers."""
    name = operand.upper()
    if not mma.atom.in_registers(operand):
        raise refusal(
            f"operand {name} of {mma} is not in registers: the instruction reads it from shared memory",
            f"load A into registers for {mma.atom}.rs, or leave it in shared memory"
            if operand == "a"
            else f"leave {name} in shared memory",
        )
    if "registers" not in (atom.source, atom.target):
        raise refusal(
            f"{atom} copies {atom.source} to {atom.target} memory: it cannot access the registers that hold operand "
            f"{name} of {mma}",
            "copy the tile to shared memory with make_tiled_copy, and load it with ldmatrix.x4 or ld.shared",
        )


def _check_runs(copy: TiledCopy) -> None:
    """Raise LayoutError if a thread's elements of one instruction are not contiguous in the tile along either mode."""
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
        f"{copy.atom} {reached} {len(positions)} contiguous elements of {copy.bits} bits, along {x} or {y}: found "
        f"({x}, {y}) = {listed} for the first thread of operand {copy.operand.upper()} of {copy.mma}",
        _narrower(copy, max(runs)),
    )


def _narrower(copy: TiledCopy, run: int) -> str:
    """Suggest an instruction for `run` contiguous elements."""
    way = "st" if copy.atom.source == "registers" else "ld"
    space = copy.atom.target if way == "st" else copy.atom.source
    width = run * copy.bits // 8
    return f"move {width} bytes at a time, for example with {way}{'' if space == 'memory' else f'.{space}'}.{width}"


def _layout(value: Any) -> Layout:
    return value if isinstance(value, Layout) else Layout(value)


def _check_counts(copy: TiledCopy, threads: str, values: str) -> None:
    needed_threads, needed_values = (mode.size for mode in copy.atom.reference_values(copy.bits))
    if copy.threads % needed_threads:
        raise refusal(
            f"{copy.atom} is one instruction of {needed_threads} threads: found {copy.threads} threads in {threads}, "
            f"needed a multiple of {needed_threads}",
            f"use whole warps of {needed_threads} threads, or copy with ld.shared",
        )
    if copy.values % needed_values:
        raise _too_few_values(copy, needed_values, values)


def _too_few_values(copy: TiledCopy, needed: int, where: str) -> Exception:
    if copy.mma is None:
        fewer = copy.values // needed * needed
        wanted = f"{fewer} or {fewer + needed}" if fewer else str(needed)
        return refusal(
            f"{copy.atom} moves {needed} values of {copy.bits} bits per thread: found {copy.values} per thread in "
            f"{where}, needed a multiple of {needed}",
            f"give each thread {wanted} values, or use a narrower instruction",
        )
    extents = show(copy.mma.tile_of(copy.operand))
    x, y = (NAMES[d] for d in DIMENSIONS[copy.operand])
    return refusal(
        f"{copy.atom} moves {needed} values of {copy.bits} bits per thread: found {copy.values} per thread in "
        f"{where} ({x}, {y}) = {extents} of {copy.mma}, needed a multiple of {needed}",
        _more_atoms(copy.mma, copy.operand, needed // gcd(needed, copy.values)),
    )


def _more_atoms(mma: TiledMma, operand: str, factor: int) -> str:
    """Suggest a tile with more atoms per warp, which gives each thread `factor` times the values."""
    dimension = DIMENSIONS[operand][1 if operand == "c" else 0]
    name = NAMES[dimension]
    tile = tuple(n * factor if d == dimension else n for d, n in enumerate(mma.tile))
    atoms = tile[dimension] // (mma.atom.shape[dimension] * mma.warps[dimension])
    return (
        f"let each warp hold {atoms} MMA atoms in {name}: tile={tile} (more warps in {name} alone do not help), "
        "or use a narrower instruction"
    )
