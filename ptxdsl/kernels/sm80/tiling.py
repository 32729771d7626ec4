"""The tiling of a product on sm_80: blocks, warps, stages of the ring, the tensor core instruction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import Any

from ptxdsl.errors import LaunchError, LayoutError
from ptxdsl.kernels.product.accumulators import AccumulatorLayout, Fragments
from ptxdsl.kernels.product.operands import FP8, SUMS, Operands, either
from ptxdsl.kernels.sm80.tile import WARP_TILE, OperandTile
from ptxdsl.layout import Layout, TiledMma, make_tiled_mma, mma_atom
from ptxdsl.layout.mma_shapes import MMA, mma_names
from ptxdsl.runtime.limits import capability_of
from ptxdsl.runtime.shape import THREADS_PER_BLOCK
from ptxdsl.types import Type, f32, f64

WARP = 32
LEAST_ASYNCHRONOUS = 4  # bytes of a cp.async, which zero-fills out of bounds
OWN_REGISTERS = 24  # addresses and counters, at least
MOST_REGISTERS = 255  # of a thread
REGISTERS_OF_BLOCK = 65536
CAPABILITY = 80  # the lowest compute capability of the path
MORE_ATOMS_FROM = 90  # the first compute capability that has more atoms of f64
MORE_ATOMS = tuple(reversed([n for n in mma_names("f64", MORE_ATOMS_FROM) if n not in mma_names("f64", CAPABILITY)]))
WIDE_F64 = MORE_ATOMS[0]  # the smallest has twice the rate of the portable one


@dataclass(frozen=True)
class WarpTiling:
    """`tile` is the (M, N, K) of a thread block; `warp` the (M, N) of a warp, or (M, N, K) if several share the K of a
    tile; `stages` the length of the ring in shared memory; `atom` the tensor core instruction, "" for the default of
    the inputs. Raises LaunchError for unsupported tiles."""

    tile: tuple[int, int, int] = (128, 128, 32)
    warp: tuple[int, ...] = (64, 64)
    stages: int = 4
    atom: str = ""

    def __post_init__(self) -> None:
        for message in misfits(self):
            raise LaunchError(f"Tiling: {message}")

    @property
    def warps(self) -> tuple[int, int]:
        """The warps along M and N."""
        return self.tile[0] // self.warp[0], self.tile[1] // self.warp[1]

    @property
    def slices(self) -> int:
        """The number of warps that share the K of a tile, each with its own steps (sliced-K)."""
        return self.tile[2] // self.warp[2] if len(self.warp) == 3 else 1

    @property
    def holders(self) -> int:
        """The number of threads that hold the complete accumulators."""
        return WARP * self.warps[0] * self.warps[1]

    @property
    def threads(self) -> int:
        return self.holders * self.slices

    def mma(self, inputs: Type) -> TiledMma:
        """Return the tiled MMA of all warps, with two atoms each along N, so that ldmatrix.x4 loads 16 rows of either
        operand."""
        m, n = self.warps
        return _tiled(self.atom or atom_of(inputs), (m, n, self.slices), (m * WARP_TILE, n * WARP_TILE))

    def a(self, operands: Operands) -> OperandTile:
        return OperandTile(
            operands.inputs, self.tile[0], self.tile[2], operands.a_major, copied(operands.a_bytes, operands.inputs)
        )

    def b(self, operands: Operands) -> OperandTile:
        return OperandTile(
            operands.inputs, self.tile[1], self.tile[2], operands.b_major, copied(operands.b_bytes, operands.inputs)
        )

    def accumulators(self, operands: Operands) -> AccumulatorLayout:
        """Return the layout of the accumulators, in groups of 16 rows. Neighbours are those of the atom, unless
        fragments come in pairs."""
        m, n = self.warp[:2]
        atom, pairs = self.atom or atom_of(operands.inputs), (self.a(operands).by_pairs, self.b(operands).by_pairs)
        fragments = partial(_fragments, atom, n, *pairs)
        return AccumulatorLayout(operands.sum, self.tile[:2], (m, n), WARP_TILE, fragments, self.threads)

    def stage_bytes(self, inputs: Type) -> int:
        """Return the bytes of a stage of the ring: a tile of A and a tile of B."""
        return (self.tile[0] + self.tile[1]) * self.tile[2] * inputs.bytes

    def ring_bytes(self, operands: Operands) -> int:
        """Return the bytes of the stages, in which slices of K meet at the end."""
        gathered = (self.slices - 1) * self.tile[0] * self.tile[1] * operands.sum.bytes
        return max(self.stages * self.stage_bytes(operands.inputs), gathered)

    def registers(self, operands: Operands) -> int:
        """Return a lower bound on the registers of a thread."""
        held = self.warp[0] * self.warp[1] // WARP * operands.sum.bits // 32
        depth = mma_atom(self.atom or atom_of(operands.inputs)).shape[2]
        fragments = (self.warp[0] + self.warp[1]) * depth * operands.inputs.bits // 32 // WARP
        return held + 2 * fragments + OWN_REGISTERS

    def misfits(self, inputs: Type) -> Iterator[str]:
        """Yield messages about a tiling that the path does not support for inputs of a type.

        Operands are read by ldmatrix.x4, and accumulators have the type that the output is computed from. Fragments are
        loaded in pairs along k, one k step ahead, and K is a power of two, whose rows the swizzle spreads over all
        banks.
        """
        if inputs in FP8:
            yield f'the tiles are those of mma.sync, which does not multiply {inputs}; with atom="wgmma" sm_90a does'
            return
        usual = atom_of(inputs)
        known = (usual, *MORE_ATOMS) if inputs is f64 else (usual,)
        label = _label(self.atom or usual)
        if label not in known:
            yield f"atom is {self.atom!r}; of {inputs} inputs it takes {either(known)}"
            return
        least = 2 * mma_atom(label).shape[2]
        cause = f"with {label}" if self.atom else f"of {inputs} inputs"
        for field, extents in (("tile", self.tile), ("warp", self.warp)):
            if min(extents[2:], default=least) < least:
                yield f"{field} is {extents}; {cause} its K is {least} or more"

    def shortages(self, operands: Operands, arch: str) -> Iterator[tuple[str, str]]:
        """Yield a message and a remedy for each resource, apart from shared memory, that a GPU lacks."""
        atom, registers = mma_atom(self.atom or atom_of(operands.inputs)).name, self.registers(operands)
        if atom in MORE_ATOMS and capability_of(arch) < MORE_ATOMS_FROM:
            message = f"atom is {atom}, which takes sm_{MORE_ATOMS_FROM} or later; the kernel is for {arch}"
            yield (
                message,
                f"leave atom out; on the emulator, set PTXDSL_ARCH=sm_{MORE_ATOMS_FROM}",
            )
        if registers > MOST_REGISTERS:
            whole = f"warps of {self.warp} with {operands.sum} sums"
            message = f"{whole} hold {registers} registers a thread or more; there are {MOST_REGISTERS}"
            yield message, "take a smaller warp, and so more warps for the same tile"
        elif registers * self.threads > REGISTERS_OF_BLOCK:
            whole = f"{self.threads} threads in warps of {self.warp}"
            message = f"{whole} hold {registers} registers each or more; a block has {REGISTERS_OF_BLOCK}"
            yield message, "take a smaller tile, or a larger warp, and so fewer warps for the same tile"
        yield from self._long_lines(operands)

    def _long_lines(self, operands: Operands) -> Iterator[tuple[str, str]]:
        """Yield a message for a tile whose rows take more loads than there are threads: a thread loads one chunk of
        some rows."""
        for name, tile in (("a", self.a(operands)), ("b", self.b(operands))):
            copies = tile.row // tile.chunk
            if copies > self.threads:
                yield (
                    f"tile is {self.tile}, and `{name}` is copied by {tile.copy_bytes} bytes: a line of it takes "
                    f"{copies} copies, of a thread each, and a block has {self.threads} threads",
                    "take a smaller tile, or pass arrays whose lines begin and end at multiples of 16 bytes",
                )


@cache
def _tiled(atom: str, warps: tuple[int, int, int], tile: tuple[int, int]) -> TiledMma:
    """Return the tiled MMA of warps that cover a tile, one atom deep."""
    return make_tiled_mma(atom, warps, (*tile, None))


def _fragments(atom: str, columns: int, rows_in_pairs: bool, columns_in_pairs: bool) -> Fragments:
    """Return the MMA of a warp for a group, and the order of its rows and columns."""
    rows = Layout((8, 2), (2, 1)) if rows_in_pairs else Layout(WARP_TILE)
    by_pairs = Layout((2, 4, 2, columns // WARP_TILE), (2, 4, 1, WARP_TILE))
    return _tiled(atom, (1, 1, 1), (WARP_TILE, columns)), (rows, by_pairs if columns_in_pairs else Layout(columns))


@cache
def atom_of(inputs: Type) -> str:
    """Return the largest tensor core instruction for such inputs on all GPUs of the path."""
    name, accumulators = "tf32" if inputs is f32 else inputs.name, SUMS.get(inputs, f32).name
    known = [mma for mma in MMA if name in mma.inputs and accumulators in mma.sums and mma.sm <= CAPABILITY]
    return f"mma.{max(known, key=lambda mma: prod(mma.shape)).name}.{accumulators}.{name}"


def copied(width: int, type: Type) -> int:
    """Return the width of loads: less than 4 bytes cannot end within an operand, so that they are single elements."""
    return width if width >= LEAST_ASYNCHRONOUS else type.bytes


def usual_atom(inputs: Type, arch: str) -> str:
    """Return the tensor core instruction for such inputs on a GPU; "" for that of all GPUs."""
    return WIDE_F64 if inputs is f64 and capability_of(arch) >= MORE_ATOMS_FROM else ""


def misfits(choice: Any) -> Iterator[str]:
    """Yield messages about an invalid tile, warp, number of stages or atom, independent of the inputs; the atom comes
    first."""
    if choice.atom and not _label(choice.atom):
        takes = 'it takes the name of a tensor core instruction, "wgmma", or "" for the usual one'
        yield f"atom is {choice.atom!r}; {takes}"
    tile = choice.tile
    if not _are_ints(tile) or len(tile) != 3:
        yield f"tile is {tile!r}; it takes a tuple of three ints, (M, N, K)"
    elif not _are_whole(tile):
        yield f"tile is {tile}; M and N are multiples of {WARP_TILE}, and K is a power of two"
    else:
        yield from _misfit_warp(choice)
    yield from misfit_count("stages", choice.stages, 2, "the ring takes 2 or more")


def _misfit_warp(choice: Any) -> Iterator[str]:
    warp, tile = choice.warp, choice.tile
    if not _are_ints(warp) or len(warp) not in (2, 3):
        yield f"warp is {warp!r}; it takes a tuple of ints, (M, N) or (M, N, K)"
    elif not _are_whole(warp):
        yield f"warp is {warp}; M and N are multiples of {WARP_TILE}, and K is a power of two"
    elif any(part > whole for part, whole in zip(warp, tile, strict=False)):
        yield f"warp is {warp}, which is larger than the tile {tile}"
    elif any(whole % part for part, whole in zip(warp, tile, strict=False)):
        yield f"warp is {warp}, which does not divide the tile {tile}"
    else:
        warps = [whole // part for part, whole in zip(warp, tile, strict=False)]
        threads = WARP * warps[0] * warps[1] * (warps[2] if len(warps) == 3 else 1)
        if threads > THREADS_PER_BLOCK:
            yield f"tile {tile} in warps of {warp} is {threads} threads; {THREADS_PER_BLOCK} is the most"


def misfit_count(field: str, value: Any, least: int, takes: str) -> Iterator[str]:
    if type(value) is not int:
        yield f"{field} is {value!r}; it takes an int"
    elif value < least:
        yield f"{field} is {value}; {takes}"


def _label(atom: Any) -> str:
    """Return the name of an atom; "" if it is not one."""
    try:
        return mma_atom(atom).name
    except (LayoutError, TypeError):
        return ""


def _are_ints(extents: Any) -> bool:
    return isinstance(extents, tuple) and all(type(n) is int for n in extents)


def _are_whole(extents: tuple[int, ...]) -> bool:
    """Return whether M and N are multiples of the extent of fragments, and K, if given, is a power of two."""
    (m, n), depth = extents[:2], extents[2:]
    return m > 0 < n and m % WARP_TILE == n % WARP_TILE == 0 and all(k > 0 and k & (k - 1) == 0 for k in depth)


def nearest_warp(warp: tuple[int, ...], tile: tuple[int, ...]) -> str | None:
    """Return the remedy for a warp that does not divide a tile; None if something else is wrong with it."""
    if len(warp) < 2 or not _are_whole(warp) or any(part > whole for part, whole in zip(warp, tile, strict=False)):
        return None
    extents = zip(warp[:2], tile, strict=False)
    m, n = (next(n for n in range(part, 0, -WARP_TILE) if whole % n == 0) for part, whole in extents)
    return f"take one of which the tile is a multiple, such as warp={(m, n, *warp[2:])}" if (m, n) != warp[:2] else None
