"""What a GEMM kernel is made for: tiles, warps, stages, types, and what follows from how the arrays lie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ptxdsl.arguments import THREADS_PER_BLOCK
from ptxdsl.errors import LaunchError, LayoutError
from ptxdsl.kernels.tile import CHUNK_BYTES, WARP_TILE, OperandTile
from ptxdsl.layout import TiledMma, make_tiled_mma, mma_atom
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    DepthwiseThreadblockSwizzle,
    GemvBatchedStridedThreadblockSwizzle,
    GroupedRowsThreadblockSwizzle,
    GroupScheduler,
    PersistentScheduler,
    StreamKNumbers,
    StreamKThreadblockSwizzle,
    StridedDgradHorizontalThreadblockSwizzle,
    StridedDgradIdentityThreadblockSwizzle,
    ThreadblockSwizzle,
)
from ptxdsl.types import Pointer, Type, bf16, f16, f32, f64, s8, s32, s64, u8, u32, u64

WARP = 32
PAD = 8  # elements between the rows of the staged output: rows begin in different banks
SHARED_BYTES = {80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 120: 99}  # KiB of a block, by compute capability
REGISTERS = 255  # of a thread
REGISTERS_OF_BLOCK = 65536
LEAST_ASYNCHRONOUS = 4  # bytes of a cp.async, which fills up with zeros where an operand ends
OWN_REGISTERS = 24  # addresses and counters, at least

# Of each input type: the atom, the types of accumulators, and those of outputs
ATOMS = {
    f16: "mma.m16n8k16.f32.f16",
    bf16: "mma.m16n8k16.f32.bf16",
    f32: "mma.m16n8k8.f32.tf32",
    f64: "mma.m8n8k4.f64.f64",
    s8: "mma.m16n8k32.s32.s8",
    u8: "mma.m16n8k32.s32.u8",
}
WIDE_F64 = "mma.m16n8k4.f64.f64"  # twice the rate of m8n8k4
MORE_ATOMS = (WIDE_F64, "mma.m16n8k8.f64.f64", "mma.m16n8k16.f64.f64")  # of f64
MORE_ATOMS_FROM = 90  # the first compute capability that has them
SUMS = {f64: f64, s8: s32, u8: s32}
OUTPUTS = {f64: (f64,), s8: (s32, f32, f16, bf16), u8: (s32, f32, f16, bf16)}
FLOATS = (f16, bf16, f32)
WIDTHS = (1, 2, 4, 8, 16)  # bytes of a copy
# How blocks that share the K of a tile add up: one after another; the last one all; each of them a share of the tile
REDUCTIONS = ("serial", "parallel", "scatter")
OF_ARRAYS = {
    "a_major": ("k", "mn"),
    "b_major": ("k", "mn"),
    "c": ("none", "separate", "in place"),
    "c_major": ("row", "column"),
    "batches": ("none", "strided", "listed"),
}

ROWS_OF_EIGHT = GroupedRowsThreadblockSwizzle(8)
Schedule = ThreadblockSwizzle | PersistentScheduler | StreamKThreadblockSwizzle
# What their tiles are made of has no place in a GEMM of two matrices, or of batches
OF_OTHER_PROBLEMS = (
    GemvBatchedStridedThreadblockSwizzle,
    StridedDgradIdentityThreadblockSwizzle,
    StridedDgradHorizontalThreadblockSwizzle,
    DepthwiseThreadblockSwizzle,
    GroupScheduler,
)
RASTER_PARAMETERS = (u32, u32, u32, u32)


@dataclass(frozen=True)
class Extra:
    """An operand of the epilogue: `along` is "m" for one value a row, "n" for one a column, "mn" for a matrix that lies
    as the output does, "nm" for one that lies the other way.

    `bytes` is the width at which it may be read; `in_place` says that it is the output itself, as it was before;
    `is_batched` that each batch has a matrix of its own.
    """

    type: Type
    along: str
    bytes: int = 16
    in_place: bool = False
    is_batched: bool = False

    @property
    def is_matrix(self) -> bool:
        return len(self.along) > 1

    @property
    def parameters(self) -> tuple[Any, ...]:
        """What the kernel takes: the array, and the elements between rows, or columns, of a matrix, and batches."""
        if self.in_place:
            return ()
        return (Pointer(self.type, "global"), *[s64] * (self.is_matrix + self.is_batched))


@dataclass(frozen=True)
class GemmConfig:
    """What a GEMM kernel is made for.

    To choose: `tile`, the (M, N, K) of a thread block; `warp`, the (M, N) of a warp, or (M, N, K) where several share
    the K of a tile; `stages`, the length of the ring in shared memory; `schedule`, which tile a block computes: a
    threadblock swizzle, a PersistentScheduler or a StreamKThreadblockSwizzle; `split_k`, how many blocks share the K of
    a tile, and `reduction`, how they add up ("serial", "parallel" or "scatter"); `atom`, the tensor core instruction
    ("" takes that of the inputs).

    From the arrays: `a_major` and `b_major` say along what the operands are contiguous ("k" or "mn"); `*_bytes` is the
    width of a copy; `c` is "none", "separate", or "in place" where out holds it, and `c_major` is "row" where it lies
    as out does, else "column"; `batches` is "none", "strided" or "listed". `epilogue` is a function on each element of
    alpha·a@b + beta·c and those of `extras`.
    """

    inputs: Type = f16
    output: Type = f16
    a_major: str = "k"
    b_major: str = "k"
    tile: tuple[int, int, int] = (128, 128, 32)
    warp: tuple[int, ...] = (64, 64)
    stages: int = 4
    schedule: Schedule = ROWS_OF_EIGHT
    split_k: int = 1
    reduction: str = "parallel"
    a_bytes: int = 16
    b_bytes: int = 16
    out_bytes: int = 16
    c: str = "none"
    c_major: str = "row"
    batches: str = "none"
    atom: str = ""
    epilogue: Callable[..., Any] | None = None
    extras: tuple[Extra, ...] = ()

    def __post_init__(self) -> None:
        for message in _misfits(self):
            raise LaunchError(f"GemmConfig: {message}")

    def check(self, arch: str = "sm_80") -> None:
        """Raises LaunchError for an atom that a GPU has not, and for more registers or shared memory than it has."""
        for message, help in _shortages(self, arch):
            raise LaunchError(f"GemmConfig: {message}", help=help)

    def fits(self, arch: str) -> bool:
        """Whether a GPU has the atom, and enough registers and shared memory."""
        return next(_shortages(self, arch), None) is None

    @property
    def warps(self) -> tuple[int, int]:
        return self.tile[0] // self.warp[0], self.tile[1] // self.warp[1]

    @property
    def slices(self) -> int:
        """How many warps share the K of a tile, each with steps of its own (sliced K)."""
        return self.tile[2] // self.warp[2] if len(self.warp) == 3 else 1

    @property
    def holders(self) -> int:
        """The threads that hold sums in the end."""
        return WARP * self.warps[0] * self.warps[1]

    @property
    def threads(self) -> int:
        return self.holders * self.slices

    @cached_property
    def mma(self) -> TiledMma:
        """All warps with two atoms each along N, so that ldmatrix.x4 brings 16 rows of either operand."""
        m, n = self.warps
        return make_tiled_mma(
            self.atom or ATOMS[self.inputs], (m, n, self.slices), (m * WARP_TILE, n * WARP_TILE, None)
        )

    @property
    def k_step(self) -> int:
        """The K of one tensor core instruction of each slice."""
        return self.mma.tile[2]

    @cached_property
    def a(self) -> OperandTile:
        return OperandTile(self.inputs, self.tile[0], self.tile[2], self.a_major, self._copy_bytes(self.a_bytes))

    def _copy_bytes(self, width: int) -> int:
        """Copies of less than 4 bytes cannot end within an operand, so that they are single elements."""
        return width if width >= LEAST_ASYNCHRONOUS else self.inputs.bytes

    @cached_property
    def b(self) -> OperandTile:
        return OperandTile(self.inputs, self.tile[1], self.tile[2], self.b_major, self._copy_bytes(self.b_bytes))

    @property
    def sum(self) -> Type:
        """The type of the accumulators."""
        return SUMS.get(self.inputs, f32)

    @property
    def scalar(self) -> Type:
        """The type of alpha and beta, in which the output is computed."""
        return self.sum if self.output is self.sum else f32

    @property
    def staged(self) -> Type:
        """The type in which the output passes through shared memory: rounded, where nothing is added to it there."""
        return self.output if self.c == "none" and not self.extras else self.scalar

    @property
    def stage_bytes(self) -> int:
        """Shared memory of one stage: a tile of A, and a tile of B behind it."""
        return self.a.bytes + self.b.bytes

    @property
    def shared_bytes(self) -> int:
        """The ring, in which slices meet and the output is staged at the end, or behind it where blocks go on."""
        staged = self.warps[0] * self.warps[1] * WARP_TILE * (self.warp[1] + PAD) * self.staged.bytes
        return self.staged_at + staged if self.goes_on else max(self.ring_bytes, staged)

    @property
    def ring_bytes(self) -> int:
        tile_m, tile_n, _ = self.tile
        return max(self.stages * self.stage_bytes, (self.slices - 1) * tile_m * tile_n * self.sum.bytes)

    @property
    def goes_on(self) -> bool:
        """Whether blocks start the copies of their next tile before they write one.

        Narrow copies are many, and leave stream-K no registers for that.
        """
        return self.is_persistent or (self.is_stream_k and min(self.a_bytes, self.b_bytes) == CHUNK_BYTES)

    @property
    def staged_at(self) -> int:
        """Where in shared memory the output is staged, in bytes."""
        return self.ring_bytes if self.goes_on else 0

    @property
    def registers(self) -> int:
        """Of a thread: at least so many are held at the same time."""
        held = self.warp[0] * self.warp[1] // WARP * self.sum.bits // 32
        fragments = (self.warp[0] + self.warp[1]) * self.mma.atom.shape[2] * self.inputs.bits // 32 // WARP
        return held + 2 * fragments + OWN_REGISTERS

    @property
    def is_split(self) -> bool:
        """Whether the K of every tile is cut into as many slices: z of the grid."""
        return self.split_k > 1 and not self.is_stream_k

    @property
    def is_persistent(self) -> bool:
        return isinstance(self.schedule, PersistentScheduler)

    @property
    def is_stream_k(self) -> bool:
        return isinstance(self.schedule, StreamKThreadblockSwizzle)

    @property
    def of_schedule(self) -> tuple[Any, ...]:
        """What the kernel takes for its schedule: workspace and semaphores, numbers of the plan, where batches lie."""
        shared = (Pointer(self.sum, "global"), Pointer(u32, "global")) if self.is_split or self.is_stream_k else ()
        numbers = RASTER_PARAMETERS if self.is_persistent else (u32,) * len(StreamKNumbers._fields) * self.is_stream_k
        return (*shared, *numbers, *self.of_batches)

    @property
    def of_batches(self) -> tuple[Any, ...]:
        """How many there are, and the elements between those of A, B, C and out, or the table of their addresses."""
        return {"none": (), "strided": (u32, *[s64] * 4), "listed": (u32, Pointer(u64, "global"))}[self.batches]

    @property
    def rest(self) -> tuple[Any, ...]:
        """The kernel's last parameters: those of the schedule, and the operands of the epilogue."""
        return (*self.of_schedule, *(parameter for extra in self.extras for parameter in extra.parameters))

    def tiles(self, m: int, n: int) -> tuple[int, int]:
        """How many tiles an m×n output has along M and N."""
        return -(-m // self.tile[0]), -(-n // self.tile[1])


def _misfits(config: GemmConfig) -> Iterator[str]:
    yield from _misfit_types(config)
    yield from _misfit_atom(config)
    yield from _misfit_tile(config)
    yield from _misfit_count("stages", config.stages, 2, "the ring takes 2 or more")
    yield from _misfit_count("split_k", config.split_k, 1, "it takes 1 or more blocks a tile")
    if config.reduction not in REDUCTIONS:
        yield f"reduction is {config.reduction!r}; it takes {_either(map(json.dumps, REDUCTIONS))}"
    yield from _misfit_schedule(config)
    yield from _misfit_arrays(config)


def _misfit_tile(config: GemmConfig) -> Iterator[str]:
    """Fragments are loaded in pairs along k, one k step ahead, and swizzles exchange chunks of a power of two."""
    tile, least = config.tile, 2 * mma_atom(config.atom or ATOMS[config.inputs]).shape[2]
    if not _are_ints(tile) or len(tile) != 3:
        yield f"tile is {tile!r}; it takes a tuple of three ints, (M, N, K)"
    elif not _are_powers_of_two(tile):
        yield f"tile is {tile}; it takes powers of two, (M, N, K)"
    elif tile[2] < least:
        yield f"tile is {tile}; {_for_what(config)} its K is {least} or more"
    else:
        yield from _misfit_warp(config, least)


def _misfit_warp(config: GemmConfig, least: int) -> Iterator[str]:
    warp, tile = config.warp, config.tile
    if not _are_ints(warp) or len(warp) not in (2, 3):
        yield f"warp is {warp!r}; it takes a tuple of ints, (M, N) or (M, N, K)"
    elif not _are_powers_of_two(warp) or min(warp[:2]) < WARP_TILE:
        yield f"warp is {warp}; it takes powers of two, M and N of {WARP_TILE} or more"
    elif min(warp[2:], default=least) < least:
        yield f"warp is {warp}; {_for_what(config)} its K is {least} or more"
    elif any(part > whole for part, whole in zip(warp, tile, strict=False)):
        yield f"warp is {warp}, which is larger than the tile {tile}"
    elif config.threads > THREADS_PER_BLOCK:
        yield f"tile {tile} in warps of {warp} is {config.threads} threads; {THREADS_PER_BLOCK} is the most"


def _for_what(config: GemmConfig) -> str:
    """What the least K follows from, which a caller may not have said."""
    usual = " (the default)" if config.inputs is f16 else ""
    return f"with {mma_atom(config.atom).name}" if config.atom else f"of {config.inputs} inputs{usual}"


def _misfit_count(field: str, value: Any, least: int, takes: str) -> Iterator[str]:
    if type(value) is not int:
        yield f"{field} is {value!r}; it takes an int"
    elif value < least:
        yield f"{field} is {value}; {takes}"


def _misfit_schedule(config: GemmConfig) -> Iterator[str]:
    schedule = config.schedule
    is_known = isinstance(schedule, Schedule) and type(schedule) is not ThreadblockSwizzle
    if not is_known or isinstance(schedule, OF_OTHER_PROBLEMS):
        found = "the base of all swizzles" if type(schedule) is ThreadblockSwizzle else repr(schedule)
        yield (
            f"schedule is {found}; it takes a threadblock swizzle of GEMM, a PersistentScheduler or a "
            "StreamKThreadblockSwizzle of ptxdsl.schedule"
        )
    elif config.split_k == 1:
        return
    elif config.is_persistent:
        yield (
            f"split_k is {config.split_k}, and persistent blocks compute whole tiles; "
            "take StreamKThreadblockSwizzle, whose blocks share them"
        )
    elif isinstance(schedule, BatchedIdentityThreadblockSwizzle):
        yield (
            f"split_k is {config.split_k}, and z of the {schedule.name} grid is the batch; "
            "take SplitKIdentityThreadblockSwizzle, whose z is the slice of K"
        )


def _misfit_arrays(config: GemmConfig) -> Iterator[str]:
    """What follows from the arrays of a call."""
    for field, known in OF_ARRAYS.items():
        if getattr(config, field) not in known:
            yield f"{field} is {getattr(config, field)!r}; it takes {_either(map(json.dumps, known))}"
    of_bytes = ("a_bytes", config.inputs), ("b_bytes", config.inputs), ("out_bytes", config.output)
    for field, element in of_bytes:
        given, widths = getattr(config, field), [width for width in WIDTHS if width >= element.bytes]
        if type(given) is not int or given not in widths:
            yield f"{field} is {given!r}; of {element} elements it takes {_either(widths)}"
    epilogue: Any = config.epilogue
    if epilogue is not None and not callable(epilogue):
        yield f"epilogue is {epilogue!r}; it takes a function of one element, such as relu"
    if not isinstance(config.extras, tuple) or not all(isinstance(extra, Extra) for extra in config.extras):
        yield f"extras is {config.extras!r}; it takes a tuple of Extra, which gemm makes of `operands`"


def _misfit_types(config: GemmConfig) -> Iterator[str]:
    if config.inputs not in tuple(ATOMS):  # of a tuple: what is given may not be hashable
        yield f"inputs is {config.inputs!r}; it takes {_either(ATOMS)}"
    elif config.output not in OUTPUTS.get(config.inputs, FLOATS):
        yield f"output is {config.output!r}; of {config.inputs} inputs it takes {_either(outputs(config.inputs))}"


def _misfit_atom(config: GemmConfig) -> Iterator[str]:
    """Operands are read by ldmatrix.x4, and sums are of the type that the output is computed from."""
    usual = ATOMS[config.inputs]
    known = (usual, *MORE_ATOMS) if config.inputs is f64 else (usual,)
    try:
        label = mma_atom(config.atom or usual).name
    except (LayoutError, TypeError):
        label = ""
    if label not in known:
        yield f"atom is {config.atom!r}; of {config.inputs} inputs it takes {_either(known)}"


def outputs(inputs: Type) -> tuple[Type, ...]:
    """The types to which products of such inputs are rounded; the first is the usual one."""
    found = OUTPUTS.get(inputs, FLOATS)
    return (inputs, *(t for t in found if t is not inputs)) if inputs in found else found


def _either(types: Any) -> str:
    *first, last = map(str, types)
    return f"{', '.join(first)} or {last}" if first else last


def _are_ints(extents: Any) -> bool:
    return isinstance(extents, tuple) and all(type(n) is int for n in extents)


def _are_powers_of_two(extents: tuple[int, ...]) -> bool:
    return all(n > 0 and n & (n - 1) == 0 for n in extents)


def capability_of(arch: str) -> int:
    """80 of sm_80, 90 of sm_90a."""
    return int("".join(filter(str.isdigit, arch)))


def usual_atom(inputs: Type, arch: str) -> str:
    """The tensor core instruction for such inputs on a GPU; "" for that of all GPUs."""
    return WIDE_F64 if inputs is f64 and capability_of(arch) >= MORE_ATOMS_FROM else ""


def _shortages(config: GemmConfig, arch: str) -> Iterator[tuple[str, str]]:
    """What is wrong, and how to mend it."""
    capability = capability_of(arch)
    atom = config.mma.atom.name
    if atom in MORE_ATOMS and capability < MORE_ATOMS_FROM:
        message = f"atom is {atom}, which takes sm_{MORE_ATOMS_FROM} or later; the kernel is for {arch}"
        yield message, f"leave atom out; on the emulator, PTXDSL_ARCH=sm_{MORE_ATOMS_FROM} says that it is such a GPU"
    if config.registers > REGISTERS:
        whole = f"warps of {config.warp} with {config.sum} sums"
        message = f"{whole} hold {config.registers} registers a thread or more; there are {REGISTERS}"
        yield message, "take a smaller warp, and so more warps for the same tile"
    elif config.registers * config.threads > REGISTERS_OF_BLOCK:
        whole = f"{config.threads} threads in warps of {config.warp}"
        message = f"{whole} hold {config.registers} registers each or more; a block has {REGISTERS_OF_BLOCK}"
        yield message, "take a smaller tile, or a larger warp, and so fewer warps for the same tile"
    most = SHARED_BYTES[max((known for known in SHARED_BYTES if known <= capability), default=80)] * 1024
    if config.shared_bytes > most:
        ring = f"{config.stages} stages of {config.stage_bytes} bytes"
        message = f"{ring} take {config.shared_bytes} bytes of shared memory; a block of {arch} has {most}"
        yield message, "take a smaller tile or fewer stages; on the emulator, PTXDSL_ARCH says of which GPU"
