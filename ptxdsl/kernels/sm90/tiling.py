"""The tiling of a product on sm_90a: tiles of consumer warpgroups, and stages of the ring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from math import gcd
from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.product.accumulators import AccumulatorLayout, Fragments
from ptxdsl.kernels.product.operands import Major, Operands, Side, either
from ptxdsl.kernels.sm90.boxes import LEAST_LINE_BYTES, LINE_BYTES, TileBoxes
from ptxdsl.layout import Layout, make_tiled_mma
from ptxdsl.runtime.limits import capability_of
from ptxdsl.types import Type, bf16, e4m3, e5m2, f16, f32, s8, u8

WARP, WARPGROUP = 32, 128
HOLDERS_BARRIER = 15  # of the consumers: the last one, as roles use the first ones
GATHERING_WARPS = 2
MATRIX = 8  # rows and columns of a matrix of stmatrix, which a warp holds
WARP_ROWS = 16  # of the 64 rows of a warpgroup
GROUP_ROWS = 64
IN_TURN, MOST_CONSUMERS = 2, 3  # consumer warpgroups in ping-pong; at most, for registers
MOST_COLUMNS, COLUMNS = 256, 16  # N of wgmma: at most, and in steps of
MOST_OF_THREE = 192  # with three consumers, whose registers ptxas limits to those of the launch
LEAST_COLUMNS = {"wgmma": 16, "swapped wgmma": 8}
# Types, and how the instruction names those of accumulators and of inputs
INPUTS = {
    **{f16: "f32.f16", bf16: "f32.bf16", f32: "f32.tf32"},
    **{s8: "s32.s8", u8: "s32.u8", e4m3: "f32.e4m3", e5m2: "f32.e5m2"},
}
TURNED = (f16, bf16)  # types that wgmma reads MN-major as well; the others are K-major
DEPTH_BYTES = 32  # K of one instruction
ARCH = "sm_90a"
ROLE_REGISTERS, TIGHT_REGISTERS = (40, 232), (24, 240)  # of a producer and of a consumer thread
SHARED_BY_THREE = 32, 160  # with three consumers
FEW_SUMS, MANY_SUMS, MOST_SUMS = 64, 192, 208  # of a thread: for the registers of a launch, for either pair above
OWN_REGISTERS = 24  # addresses and counters, at least
FRAGMENT_REGISTERS = 16  # of products in flight with a first factor in registers
MOST_BESIDE_FRAGMENTS = 176  # accumulators next to these: with more, ptxas serialises wgmma
REGISTER_FILE, MOST_REGISTERS = 65536, 255  # of a multiprocessor, and of a thread


@dataclass(frozen=True)
class WarpgroupTiling:
    """`tile` is the (M, N, K) of a thread block, of which each consumer warpgroup multiplies 64 rows; `stages` is the
    length of the ring in shared memory. One more warpgroup is the producer.

    With `swap_ab`, wgmma computes the transpose of a tile, BᵀAᵀ: each warpgroup has 64 of its columns, and M may be
    small, since wgmma takes as few as 8 columns. With `pingpong`, two consumer warpgroups compute alternate tiles, 64
    rows at a time, or 64 columns if swapped. With `stagger`, warpgroups that share a tile have its last `stagger`
    iterations one after the other. Raises LaunchError for unsupported tiles.
    """

    tile: tuple[int, int, int] = (128, 256, 64)
    stages: int = 4
    swap_ab: bool = False
    pingpong: bool = False
    stagger: int = 0

    def __post_init__(self) -> None:
        for message in warpgroup_misfits(self):
            raise LaunchError(f"WarpgroupTiling: {message}")

    @property
    def consumers(self) -> int:
        """The number of consumer warpgroups."""
        return IN_TURN if self.pingpong else self.multiplied[0] // GROUP_ROWS

    @property
    def row_blocks(self) -> int:
        """The number of 64-row blocks of a tile that a warpgroup multiplies, or 64-column blocks if it is swapped."""
        return self.multiplied[0] // GROUP_ROWS if self.pingpong else 1

    @property
    def stored_tile(self) -> tuple[int, int]:
        """The (rows, columns) of a tile that are stored together."""
        m, n, _ = self.tile
        return (m, n // self.row_blocks) if self.swap_ab else (m // self.row_blocks, n)

    @property
    def rows_apart(self) -> int:
        """The rows between those of one warpgroup in a tile and those of the next; 0 if warpgroups do not divide the
        rows."""
        return 0 if self.swap_ab or self.pingpong else GROUP_ROWS

    @property
    def columns_apart(self) -> int:
        """The columns between those of one warpgroup in a swapped tile and those of the next."""
        return GROUP_ROWS if self.swap_ab and not self.pingpong else 0

    @property
    def multiplied(self) -> tuple[int, int]:
        """The (rows, columns) of the wgmma products: those of a tile, or of its transpose."""
        m, n, _ = self.tile
        return (n, m) if self.swap_ab else (m, n)

    @property
    def threads(self) -> int:
        return WARPGROUP * (self.consumers + 1)

    @property
    def producer(self) -> int:
        """The index of the producer warpgroup: the last, so that the threads with accumulators are the first."""
        return self.consumers

    @property
    def copying_warp(self) -> int:
        return self.producer * WARPGROUP // WARP

    @property
    def gathering_warps(self) -> range:
        """The warps of the producer that gather rows of A by an index."""
        return range(self.copying_warp + 1, self.copying_warp + 1 + GATHERING_WARPS)

    @property
    def role_registers(self) -> tuple[int, int] | tuple[None, None]:
        """The registers of a producer and of a consumer thread; None if those of the launch are enough for few
        accumulators."""
        if self.held_accumulators <= FEW_SUMS:
            return None, None
        if self.consumers > IN_TURN:
            return SHARED_BY_THREE
        return ROLE_REGISTERS if self.held_accumulators <= MANY_SUMS else TIGHT_REGISTERS

    @property
    def held_accumulators(self) -> int:
        """The accumulators of a consumer thread."""
        return self.row_blocks * GROUP_ROWS * self.multiplied[1] // WARPGROUP

    @property
    def holders(self) -> int:
        """The number of threads that hold the accumulators of a tile."""
        return WARPGROUP if self.pingpong else WARPGROUP * self.consumers

    @property
    def multiplying(self) -> int:
        """The number of consumer threads."""
        return WARPGROUP * self.consumers

    def atom(self, inputs: Type) -> str:
        """Return the wgmma atom of a warpgroup."""
        return f"wgmma.m{GROUP_ROWS}n{self.multiplied[1]}k{DEPTH_BYTES // inputs.bytes}.{INPUTS[inputs]}"

    def a(self, operands: Operands) -> TileBoxes:
        return TileBoxes(operands.inputs, self.tile[0], self.tile[2], operands.a_major, operands.is_batched)

    def b(self, operands: Operands) -> TileBoxes:
        return TileBoxes(operands.input_types[1], self.tile[1], self.tile[2], operands.b_major, operands.is_batched)

    def accumulators(self, operands: Operands) -> AccumulatorLayout:
        """Return the layout of the accumulators. Each warp has 16 rows of the full width, in the fragments of
        mma.m16n8k16, and stores column strips of up to 128 bytes a row. Of a transpose it has 16 columns, in groups of
        up to 16 rows. In ping-pong each 64-row block is stored like a tile."""
        if self.swap_ab:
            rows, warp = gcd(self.tile[0], WARP_ROWS), (self.tile[0], WARP_ROWS)
            return AccumulatorLayout(
                operands.sum, self.stored_tile, warp, rows, partial(_of_warps, rows), self.holders, 0, HOLDERS_BARRIER,
                is_transposed=True,
            )  # fmt: skip
        columns = gcd(self.tile[1], LINE_BYTES // operands.staged.bytes)
        warp = WARP_ROWS, self.tile[1]
        threads, barrier = self.holders, HOLDERS_BARRIER
        fragments = partial(_of_warps, columns)
        return AccumulatorLayout(operands.sum, self.stored_tile, warp, WARP_ROWS, fragments, threads, columns, barrier)

    def stage_bytes(self, inputs: Type) -> int:
        """Return the bytes of a stage of the ring: a tile of A and a tile of B."""
        return (self.tile[0] + self.tile[1]) * self.tile[2] * inputs.bytes

    def ring_bytes(self, operands: Operands) -> int:
        return self.stages * self.stage_bytes(operands.inputs)

    def registers(self, operands: Operands) -> int:
        """Return a lower bound on the registers of a consumer thread."""
        fragments = 0 if operands.from_registers is Side.NONE else FRAGMENT_REGISTERS
        return self.held_accumulators + OWN_REGISTERS + fragments

    def misfits(self, inputs: Type) -> Iterator[str]:
        """Yield messages about a tiling that wgmma does not support for inputs of a type."""
        if inputs not in INPUTS:
            yield f"the tiles are those of wgmma, which this path has for {either(INPUTS)} inputs; they are {inputs}"
        elif self.tile[2] * inputs.bytes != LINE_BYTES:
            yield f"tile is {self.tile}; with wgmma its K is {LINE_BYTES // inputs.bytes}, {LINE_BYTES} bytes of a line"

    def shortages(self, operands: Operands, arch: str) -> Iterator[tuple[str, str]]:
        """Yield a message and a remedy for each resource, apart from shared memory, that a GPU lacks."""
        if arch != ARCH and capability_of(arch) // 10 != capability_of(ARCH) // 10:
            yield (
                f"atom is {self.atom(operands.inputs)}, which takes {ARCH}; the kernel is for {arch}",
                f"leave atom out; on the emulator, set PTXDSL_ARCH={ARCH}",
            )
        if operands.from_registers is not Side.NONE and self.held_accumulators > MOST_BESIDE_FRAGMENTS:
            yield (
                f"tile is {self.tile}, pingpong is True, and `{operands.from_registers}` comes from registers, which "
                f"leave one warpgroup {MOST_BESIDE_FRAGMENTS} sums a thread; such a tile has {self.held_accumulators}",
                "take a smaller tile, or leave pingpong out",
            )
        if operands.a_major is Major.MN and self.a(operands).line_bytes < LEAST_LINE_BYTES:
            yield (
                f"tile is {self.tile}, and `a` is column-major: TMA would load lines of "
                f"{self.a(operands).line_bytes} bytes, and swizzle {LEAST_LINE_BYTES} or more",
                f"take a tile of {COLUMNS} rows, or pass a row-major `a`",
            )


@cache
def _of_warps(columns: int) -> Fragments:
    """Return the tiled MMA of a warp in a strip of columns, and the order of its rows and columns."""
    mma = make_tiled_mma("mma.m16n8k16.f32.f16", tile=(WARP_ROWS, columns, None))
    return mma, (Layout(WARP_ROWS), Layout(columns))


def warpgroup_misfits(choice: Any) -> Iterator[str]:
    """Yield messages about an invalid tile or number of stages, independent of the inputs."""
    tile = choice.tile
    if not isinstance(tile, tuple) or len(tile) != 3 or any(type(n) is not int or n < 1 for n in tile):
        yield f"tile is {tile!r}; it takes a tuple of three ints, (M, N, K)"
    elif type(choice.swap_ab) is not bool:
        yield f"swap_ab is {choice.swap_ab!r}; it takes True or False"
    elif type(choice.pingpong) is not bool:
        yield f"pingpong is {choice.pingpong!r}; it takes True or False"
    else:
        name, rows, columns = ("swapped wgmma", "N", "M") if choice.swap_ab else ("wgmma", "M", "N")
        yield from _misfit_extents(tile, name, rows, columns)
        if choice.pingpong:
            yield from _misfit_turns(tile, choice.swap_ab)
    if type(choice.stages) is not int or choice.stages < 2:
        yield f"stages is {choice.stages!r}; the ring takes 2 or more"
    elif type(choice.stagger) is not int or choice.stagger:
        yield from _misfit_stagger(choice)


def _misfit_extents(tile: tuple[int, int, int], name: str, rows: str, columns: str) -> Iterator[str]:
    """Yield messages about the extents of a tile. `rows` and `columns` name those that are M and N of wgmma."""
    extents, least = dict(zip("MNK", tile, strict=True)), LEAST_COLUMNS[name]
    known = [GROUP_ROWS * n for n in range(1, MOST_CONSUMERS + 1)]
    if extents[rows] not in known:
        yield f"tile is {tile}; with {name} its {rows} is {either(known)}"
    elif (extents[columns] % COLUMNS and extents[columns] != least) or extents[columns] > MOST_COLUMNS:
        few = f"{least} or " if least < COLUMNS else ""
        yield f"tile is {tile}; with {name} its {columns} is {few}a multiple of {COLUMNS}, {MOST_COLUMNS} at most"
    elif extents[rows] > GROUP_ROWS * IN_TURN and extents[columns] > MOST_OF_THREE:
        yield f"tile is {tile}; with {name} and {rows} of {extents[rows]} its {columns} is {MOST_OF_THREE} at most"


def _misfit_stagger(choice: Any) -> Iterator[str]:
    """Yield messages about `stagger`: each warpgroup is that many iterations later than the one before."""
    behind = max(1, choice.tile[1 if choice.swap_ab else 0] // GROUP_ROWS - 1)
    most = (choice.stages - 1) // behind
    if type(choice.stagger) is not int or not 0 <= choice.stagger <= most:
        stages = f"{f'{behind} times it ' if behind > 1 else ''}less than the ring has stages"
        yield f"stagger is {choice.stagger!r}; it takes an int from 0 to {most}, {stages}"
    elif choice.pingpong:
        yield f"stagger is {choice.stagger}, and pingpong is True: each warpgroup has tiles of its own"
    elif choice.tile[1 if choice.swap_ab else 0] == GROUP_ROWS:
        shared = either(GROUP_ROWS * n for n in range(2, MOST_CONSUMERS + 1))
        shared = f"{'N' if choice.swap_ab else 'M'} of {shared}"
        yield f"tile is {choice.tile}, and stagger is {choice.stagger}: warpgroups share tiles with {shared}"


def _misfit_turns(tile: tuple[int, int, int], swap_ab: bool) -> Iterator[str]:
    """Yield a message about a ping-pong tile whose accumulators do not fit one warpgroup."""
    most, (m, n, _) = MOST_SUMS * WARPGROUP, tile
    across = f"{n} columns M" if swap_ab else f"{m} rows N"
    if m * n > most:
        yield (
            f"tile is {tile}, and pingpong is True: one warpgroup holds the sums of a tile, of which {most} fit its "
            f"registers; with {across} is {most // (n if swap_ab else m) // COLUMNS * COLUMNS} at most"
        )
