"""out = alpha·a@b + beta·c on every GPU since Ampere: cp.async, ldmatrix, mma.sync.

A thread block computes one tile of the output. Its A and B tiles go through a ring of shared-memory stages, several
copies ahead of the tensor cores; fragments are read one k step ahead of their use. One kernel of a configuration serves
every M, N and K.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ptxdsl as pd
from ptxdsl import bf16, f16, f32, ptr, s32, s64, u32
from ptxdsl.arguments import THREADS_PER_BLOCK
from ptxdsl.arrays import strided
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.matrix import Matrix, describe_type, empty, matrix
from ptxdsl.kernels.plan import Call, Plans, look
from ptxdsl.kernels.tile import MATRICES, Fragments, Loader, Tile
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle
from ptxdsl.types import Type

MMA_N = 8
WARP = 32
PAD = 8  # elements between the rows of the staged output: rows begin in different banks


@dataclass(frozen=True)
class GemmConfig:
    """What a GEMM kernel is made for.

    `tile` is the (M, N, K) of a thread block, `warp` the (M, N) of a warp, `stages` the length of the ring, `raster`
    how many tiles of M are computed next to each other, so that they share columns of B in the L2 cache. `a_major` and
    `b_major` say along what the operands are contiguous ("k" or "mn"); `*_bytes` is the width of a copy; `c` is
    "none", "separate", or "in place" where out holds it.
    """

    inputs: Type = f16
    output: Type = f16
    a_major: str = "k"
    b_major: str = "k"
    tile: tuple[int, int, int] = (128, 128, 32)
    warp: tuple[int, int] = (64, 64)
    stages: int = 4
    raster: int = 8
    a_bytes: int = 16
    b_bytes: int = 16
    out_bytes: int = 16
    c: str = "none"

    def __post_init__(self) -> None:
        """Raises LaunchError for what the kernel is not written for."""
        for message in _misfits(self):
            raise LaunchError(f"GemmConfig: {message}")

    @property
    def warps(self) -> tuple[int, int]:
        return self.tile[0] // self.warp[0], self.tile[1] // self.warp[1]

    @property
    def threads(self) -> int:
        return WARP * self.warps[0] * self.warps[1]

    @property
    def a(self) -> Tile:
        return Tile(self.inputs, self.tile[0], self.tile[2], self.a_major, self.a_bytes)

    @property
    def b(self) -> Tile:
        return Tile(self.inputs, self.tile[1], self.tile[2], self.b_major, self.b_bytes)

    @property
    def stage_bytes(self) -> int:
        """Shared memory of one stage: a tile of A, and a tile of B behind it."""
        return self.a.bytes + self.b.bytes

    @property
    def shared_bytes(self) -> int:
        return self.stages * self.stage_bytes

    @property
    def staged(self) -> Type:
        """The type in which the output passes through shared memory."""
        return self.output if self.c == "none" else f32

    def grid(self, m: int, n: int) -> int:
        """The number of output tiles."""
        return -(-m // self.tile[0]) * -(-n // self.tile[1])


def _misfits(config: GemmConfig) -> Iterator[str]:
    """Fragments are loaded in pairs along k, one k step ahead, and swizzles exchange chunks of a power of two."""
    if not _are_powers_of_two(config.tile, 3) or config.tile[2] < 2 * MATRICES:
        yield f"tile is {config.tile}; it takes powers of two, (M, N, K), with K of {2 * MATRICES} or more"
    elif not _are_powers_of_two(config.warp, 2) or min(config.warp) < MATRICES:
        yield f"warp is {config.warp}; it takes powers of two, (M, N), of {MATRICES} or more"
    elif config.warp[0] > config.tile[0] or config.warp[1] > config.tile[1]:
        yield f"warp is {config.warp}, which is larger than the tile {config.tile}"
    elif config.threads > THREADS_PER_BLOCK:
        whole = f"tile {config.tile} in warps of {config.warp}"
        yield f"{whole} is {config.threads} threads; {THREADS_PER_BLOCK} is the most"
    if not isinstance(config.stages, int) or config.stages < 2:
        yield f"stages is {config.stages!r}; the ring takes 2 or more"
    if config.inputs not in (f16, bf16):
        yield f"inputs is {config.inputs}; it takes f16 or bf16"
    if config.output not in (f16, bf16, f32):
        yield f"output is {config.output}; it takes f16, bf16 or f32"


def _are_powers_of_two(extents: Any, count: int) -> bool:
    known = isinstance(extents, tuple) and len(extents) == count and all(isinstance(n, int) for n in extents)
    return known and all(n > 0 and n & (n - 1) == 0 for n in extents)


class Accumulators:
    """A warp's part of the output tile: for each 16x8 piece the four f32 that mma.m16n8k16 gives a thread."""

    def __init__(self, config: GemmConfig) -> None:
        self.rows, self.columns = config.warp[0] // MATRICES, config.warp[1] // MMA_N
        self.registers = [[[pd.var(f32, 0.0) for _ in range(4)] for _ in range(self.columns)] for _ in range(self.rows)]
        self.mma = f"mma.sync.aligned.m16n8k16.row.col.f32.{config.inputs}.{config.inputs}.f32"

    def multiply(self, a: list[list[Any]], b: list[list[Any]]) -> None:
        """Adds the product of one k step; neighbours in the order share a fragment."""
        for i, row in enumerate(self.registers):
            columns = list(enumerate(row))
            for j, piece in columns if i % 2 == 0 else reversed(columns):
                pd.ptx(self.mma, a[i], b[j // 2][j % 2 * 2 :][:2], piece, out=piece)


def divide_up(value: Any, divisor: int) -> Any:
    return (value + (divisor - 1)) // divisor


@pd.kernel
def gemm_kernel(
    a: ptr[config.inputs],
    b: ptr[config.inputs],
    c: ptr[config.output],
    out: ptr[config.output],
    m: u32,
    n: u32,
    k: u32,
    lda: s64,
    ldb: s64,
    ldc: s64,
    ldo: s64,
    alpha: f32,
    beta: f32,
    *,
    config: GemmConfig = GemmConfig(),
) -> None:
    """A is m×k, B is k×n, C and out are m×n and row-major; ld* are the elements between rows or columns."""
    tiles = divide_up(m, config.tile[0]), divide_up(n, config.tile[1]), 1
    tile_m, tile_n, _ = GroupedRowsThreadblockSwizzle(config.raster).tile_offset(pd.ctaid, tiled_shape=tiles)
    first_m, first_n = tile_m * config.tile[0], tile_n * config.tile[1]
    warp_m, warp_n = pd.warpid % config.warps[0], pd.warpid // config.warps[0]
    memory = pd.dynamic_shared(config.inputs, config.shared_bytes // config.inputs.bytes, align=1024).address()
    memory_b = memory + config.a.elements
    load_a = Loader(config.a, memory, a, lda, first_m, m, k, config.threads)
    load_b = Loader(config.b, memory_b, b, ldb, first_n, n, k, config.threads)
    fragments_a = Fragments(config.a, memory, "mn", config.warp[0], warp_m)
    fragments_b = Fragments(config.b, memory_b, "k", config.warp[1], warp_n)
    accumulators = Accumulators(config)
    main_loop(config, k, (load_a, load_b), (fragments_a, fragments_b), accumulators)
    pd.ptx.cp.async_.wait_all()
    pd.ptx.bar.sync(0)
    first = first_m + warp_m * config.warp[0], first_n + warp_n * config.warp[1]
    Writer(config, memory, first, (m, n), (c, ldc), (out, ldo)).write(accumulators, alpha, beta)


def main_loop(
    config: GemmConfig,
    k: Any,
    loaders: tuple[Loader, ...],
    fragments: tuple[Fragments, ...],
    accumulators: Accumulators,
) -> None:
    """Tiles are copied `stages - 1` ahead, fragments read one k step ahead of the tensor cores."""
    ring = Ring(config.stage_bytes, config.stages)
    for stage in range(config.stages - 1):
        load_tiles(loaders, stage * config.stage_bytes)
    buffers = [[operand.variables() for operand in fragments] for _ in range(2)]
    steps = config.tile[2] // MATRICES
    wait_for_stage(config.stages)
    load_fragments(fragments, buffers[0], 0, 0)
    for _ in pd.range(divide_up(k, config.tile[2]), unroll=1):
        for step in range(steps):
            following = (step + 1) % steps
            if following == 0:
                ring.advance(ring.read)
                wait_for_stage(config.stages)
            load_fragments(fragments, buffers[(step + 1) % 2], ring.read, following)
            if step == 0:
                load_tiles(loaders, ring.write)
                ring.advance(ring.write)
            accumulators.multiply(*buffers[step % 2])


def load_tiles(loaders: tuple[Loader, ...], stage: Any) -> None:
    """Begins to copy the next tile of each operand; the copies are one group."""
    for loader in loaders:
        loader.load(stage)
    pd.ptx.cp.async_.commit_group()


def load_fragments(fragments: tuple[Fragments, ...], into: list[Any], stage: Any, k_step: int) -> None:
    for operand, registers in zip(fragments, into, strict=True):
        operand.load(registers, stage, k_step)


def wait_for_stage(stages: int) -> None:
    """Until the oldest stage has arrived for all threads; all of them have then also done with the one before it."""
    pd.ptx.cp.async_.wait_group(stages - 2)
    pd.ptx.bar.sync(0)


class Ring:
    """Where in the ring of stages, in bytes, the tensor cores read and the copies write."""

    def __init__(self, stage_bytes: int, stages: int) -> None:
        self.stage_bytes, self.all = stage_bytes, stage_bytes * stages
        self.read, self.write = pd.var(u32, 0), pd.var(u32, stage_bytes * (stages - 1))

    def advance(self, place: Any) -> None:
        """Goes on to the next stage, from the last to the first."""
        place += self.stage_bytes
        place.set(pd.select(place == self.all, 0, place))


class Writer:
    """Sends a warp's accumulators to global memory through shared memory, 16 rows at a time, in rows of whole chunks.

    `first` is the (row, column) of the warp's first element, `extent` the (m, n) of the output; C and out are given by
    a pointer to their first element and the elements between their rows.
    """

    def __init__(
        self,
        config: GemmConfig,
        memory: Any,
        first: tuple[Any, Any],
        extent: tuple[Any, Any],
        c: tuple[Any, Any],
        out: tuple[Any, Any],
    ) -> None:
        self.config, self.chunk = config, config.out_bytes // config.output.bytes
        per_row = config.warp[1] // self.chunk
        lanes = min(per_row, WARP)  # side by side on a row
        self.rows, self.columns = WARP // lanes, range(0, config.warp[1], lanes * self.chunk)
        row, column = pd.laneid // lanes, pd.laneid % lanes * self.chunk
        pitch = config.warp[1] + PAD
        rows = memory.bitcast(config.staged) + pd.warpid * (MATRICES * pitch)
        staging = pd.view(rows, (MATRICES, pitch))
        self.pitch, self.corner = pitch, staging.address(pd.laneid // 4, pd.laneid % 4 * 2)
        self.chunks = staging.address(row, column)
        at = first[0] + row, first[1] + column
        self.rows_left = (extent[0] - at[0]).to(s32)
        self.columns_left = (extent[1] - at[1]).to(s32)
        self.out, self.out_step = running(out, at), out[1] * self.rows
        self.c: Any = running(c, at) if config.c == "separate" else self.out
        self.c_step = c[1] * self.rows if config.c == "separate" else 0

    def write(self, accumulators: Accumulators, alpha: Any, beta: Any) -> None:
        for i, pieces in enumerate(accumulators.registers):
            for j, piece in enumerate(pieces):
                self._stage(j * MMA_N, [value * alpha for value in piece])
            pd.ptx.bar.warp.sync(0xFFFFFFFF)
            for row in range(0, MATRICES, self.rows):
                self._send(i * MATRICES, row, beta)
            pd.ptx.bar.warp.sync(0xFFFFFFFF)

    def _stage(self, column: int, piece: list[Any]) -> None:
        """A thread holds two neighbours of row lane/4 of a 16x8 piece, and two of the row 8 below."""
        for half in range(2):
            place = self.corner + (8 * half * self.pitch + column)
            write_words(place, pack(piece[2 * half :][:2], self.config.staged))

    def _send(self, first: int, row: int, beta: Any) -> None:
        """One chunk a lane, of rows `first + row` and the following."""
        for column in self.columns:
            with pd.if_((self.rows_left > first + row) & (self.columns_left > column)):
                values = read_words(self.chunks + (row * self.pitch + column), self.chunk, self.config.staged)
                if self.config.c != "none":
                    values = self._add(values, beta, self.c + column)
                write_words(self.out + column, values)
        self.out += self.out_step
        if self.config.c == "separate":
            self.c += self.c_step

    def _add(self, values: list[Any], beta: Any, c: Any) -> list[Any]:
        before = unpack(read_words(c, self.chunk, self.config.output), self.config.output)
        return pack([v + beta * w for v, w in zip(values, before, strict=True)], self.config.output)


def running(matrix: tuple[Any, Any], at: tuple[Any, Any]) -> Any:
    """A pointer variable that begins at (row, column) of a (pointer, elements between rows)."""
    return pd.var(matrix[0].type, matrix[0] + (at[0].to(s64) * matrix[1] + at[1].to(s64)))


def pack(values: list[Any], type: Type) -> list[Any]:
    """f32 values as registers hold them in memory: one f32, two 16-bit floats, or a single one alone."""
    if type is f32:
        return values
    if len(values) == 1:
        return [values[0].to(type)]
    return [pd.ptx(f"cvt.rn.{type}x2.f32", high, low) for low, high in zip(values[::2], values[1::2], strict=True)]


def unpack(words: list[Any], type: Type) -> list[Any]:
    """The opposite of `pack`."""
    if type is f32:
        return words
    if len(words) == 1 and words[0].type.bits == 16:
        return [words[0].to(f32)]
    return [half.to(f32) for word in words for half in pd.unpack(word, type)]


def read_words(place: Any, count: int, type: Type) -> list[Any]:
    """`count` neighbouring elements, as registers of 32 bits, or one of 16."""
    if count * type.bytes < 4:
        return [place.load()]
    words = count * type.bytes // 4
    kind = "f32" if type is f32 else "b32"
    space, vector = place.space, min(4, words)
    if vector == 1:
        return [pd.ptx(f"ld.{space}.{kind}", place)]
    step = 4 * vector // type.bytes
    return [w for i in range(words // vector) for w in pd.ptx(f"ld.{space}.v{vector}.{kind}", place + i * step)]


def write_words(place: Any, words: list[Any]) -> None:
    """Stores what `read_words` reads."""
    if words[0].type.bits < 32:
        place.store(words[0])
        return
    kind = "f32" if place.element is f32 else "b32"
    space, vector = place.space, min(4, len(words))
    step = 4 * vector // place.element.bytes
    for i in range(len(words) // vector):
        group = words[i * vector :][:vector]
        pd.ptx(
            f"st.{space}{f'.v{vector}' if vector > 1 else ''}.{kind}",
            place + i * step,
            group if vector > 1 else group[0],
        )


@dataclass(frozen=True)
class Problem:
    """The matrices of one GEMM, checked: A is m×k, B is k×n, C and out are m×n; out is row-major."""

    a: Matrix
    b: Matrix
    c: Matrix | None
    out: Matrix

    @property
    def m(self) -> int:
        return self.a.shape[0]

    @property
    def n(self) -> int:
        return self.b.shape[1]

    @property
    def k(self) -> int:
        return self.a.shape[1]

    @property
    def row_major(self) -> Problem:
        """The same product with a row-major out: the transpose of a column-major one, which is bᵀ@aᵀ."""
        if self.out.major == "row":
            return self
        c = self.c.transposed if self.c else None
        return Problem(self.b.transposed, self.a.transposed, c, self.out.transposed)

    @property
    def in_place(self) -> bool:
        """Whether C is the memory of out, element for element."""
        c, out = self.c, self.out
        return c is not None and (c.array.pointer, c.major, c.stride) == (out.array.pointer, out.major, out.stride)


def problem_of(a: Any, b: Any, c: Any, out: Any, beta: float) -> Problem:
    """The matrices of a call; out is made where it is not given. Raises LaunchError for what does not fit."""
    left, right = matrix("a", a), matrix("b", b)
    if left.type not in (f16, bf16) or left.type is not right.type:
        raise LaunchError(
            f"`a` is {describe_type(left.type)} and `b` is {describe_type(right.type)}",
            help="gemm takes two matrices of one type, float16 or bfloat16; convert them before",
        )
    if left.shape[1] != right.shape[0]:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {left.shape[1]} columns meet {right.shape[0]} rows",
            help="pass a of (M, K) and b of (K, N); a transpose is a.T",
        )
    if c is None and beta != 0:
        raise LaunchError(f"beta is {beta}, and `c` is not given", help="pass the array that beta multiplies as c=")
    shape = (left.shape[0], right.shape[1])
    written = matrix("out", empty(left, shape) if out is None else out)
    added = matrix("c", c) if c is not None and beta != 0 else None
    for found in filter(None, (written, added)):
        _check_result(found, shape, written.type)
    if added is not None and added.major != written.major:
        raise LaunchError(
            f"`c` is {added.major}-major and `out` {written.major}-major; they lie alike",
            help="copy c into the order of out, or pass it as out too: gemm(a, b, c, out=c, beta=…)",
        )
    return Problem(left, right, added, written)


def _check_result(found: Matrix, shape: tuple[int, int], type: Type) -> None:
    """C and out: their shape, and types that the accumulators are rounded to."""
    if found.shape != shape:
        raise LaunchError(
            f"`{found.name}` has the shape {found.shape}; a@b has {shape}", help=f"pass `{found.name}` of that shape"
        )
    if found.type not in (f16, bf16, f32):
        raise LaunchError(
            f"`{found.name}` is {describe_type(found.type)}; gemm writes float16, bfloat16 or float32",
            help="convert it before or after",
        )
    if found.type is not type:
        raise LaunchError(
            f"`c` is {describe_type(found.type)} and `out` {describe_type(type)}; they are of one type",
            help="convert c before",
        )


LARGE = GemmConfig(tile=(128, 256, 64), stages=3)
MEDIUM = GemmConfig(tile=(128, 128, 32), stages=4)
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=4)
EFFICIENCY = {LARGE: 1.0, MEDIUM: 0.93, SMALL: 0.5}  # of the tensor cores, when all multiprocessors are busy
MULTIPROCESSORS = 132
PLANS = Plans()


def choose(m: int, n: int) -> GemmConfig:
    """The configuration that should take the least time: whole waves of tiles, by how fast each is computed."""

    def time(config: GemmConfig) -> float:
        waves = -(-config.grid(m, n) // MULTIPROCESSORS)
        return waves * config.tile[0] * config.tile[1] / EFFICIENCY[config]

    return min(EFFICIENCY, key=time)


@cache
def specialise(config: GemmConfig, **of_arrays: Any) -> GemmConfig:
    """A configuration with what follows from the arrays."""
    return replace(config, **of_arrays)


def configure(problem: Problem, config: GemmConfig | None) -> GemmConfig:
    """The kernel for a row-major problem: `config` gives the tiles, the arrays give types, orders and widths."""
    a, b, c, out = problem.a, problem.b, problem.c, problem.out
    results = out.widest(problem.n) if c is None else min(out.widest(problem.n), c.widest(problem.n))
    return specialise(
        config or choose(problem.m, problem.n),
        inputs=a.type,
        output=out.type,
        a_major="k" if a.major == "row" else "mn",
        b_major="k" if b.major == "column" else "mn",
        a_bytes=a.widest(),
        b_bytes=b.widest(),
        out_bytes=results,
        c="none" if c is None else "in place" if problem.in_place else "separate",
    )


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    config: GemmConfig | None = None,
) -> Any:
    """out = alpha·a@b + beta·c, accumulated in f32. Returns out.

    a (M, K) and b (K, N) are float16 or bfloat16; c and out (M, N) are float16, bfloat16 or float32 and of one type,
    and lie alike; each may be row- or column-major with any leading dimension, and any of M, N, K may be 0. numpy
    arrays run on the emulator, CUDA arrays on their GPU, on torch's current stream. Without `out` a row-major array of
    a's type is made. c is not read when beta is 0, and may be out itself. `config` gives the tiles, else they are
    chosen for the shape.

    Raises LaunchError for arrays that do not fit; nothing is written then.
    """
    arrays, what = (a, b, None if beta == 0 else c, out), (config, beta == 0)
    sight = None if out is None else look(arrays)
    if PLANS.launch(what, sight, (alpha, beta)):
        return out
    given = problem_of(a, b, c, out, beta)
    problem = given.row_major
    if problem.m and problem.n:
        call = call_of(problem, configure(problem, config), alpha, beta)
        call.run()
        PLANS.learn(what, sight, arrays, call)
    return given.out.owner


def call_of(problem: Problem, config: GemmConfig, alpha: float, beta: float) -> Call:
    """The launch of a row-major problem."""
    a, b, out = problem.a, problem.b, problem.out
    separate = problem.c if config.c == "separate" and problem.c else None
    c = strided(separate.owner) if separate else 0  # a null address: it is not read
    sizes = problem.m, problem.n, problem.k
    strides = a.stride, b.stride, separate.stride if separate else 0, out.stride
    arguments = strided(a.owner), strided(b.owner), c, strided(out.owner)
    launch = gemm_kernel[config.grid(problem.m, problem.n), config.threads]
    return Call(launch, (*arguments, *sizes, *strides), (alpha, beta), {"config": config})


gemm.kernel = gemm_kernel  # type: ignore[attr-defined]  # what `ptxdsl dump ptxdsl.kernels.gemm:gemm` shows
