"""out = epilogue(alpha·a@b + beta·c) on every GPU since Ampere: cp.async, ldmatrix, mma.sync.

A thread block computes one tile of the output. Its A and B tiles go through a ring of shared-memory stages, several
copies ahead of the tensor cores; fragments are read one k step ahead of their use. One kernel of a configuration serves
every M, N and K.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import ptxdsl as pd
from ptxdsl import ptr, s64, u32
from ptxdsl.arrays import strided
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import Output, Target, Writer
from ptxdsl.kernels.heuristic import choose
from ptxdsl.kernels.mainloop import Mainloop
from ptxdsl.kernels.operand import Source
from ptxdsl.kernels.plan import Call, Plans, look
from ptxdsl.kernels.problem import Problem, Vector, problem_of
from ptxdsl.kernels.split_k import SplitK, workspace_elements
from ptxdsl.kernels.workspace import workspace
from ptxdsl.schedule import slice_of_k

USUAL = GemmConfig()
PLANS = Plans()
ALPHA_BETA = slice(11, 13)  # of the arguments
MOST_WHOLE = 1 << 24  # up to there, f32 holds all integers


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
    alpha: config.scalar,
    beta: config.scalar,
    *rest: config.rest,
    config: GemmConfig = USUAL,
) -> None:
    """A is m×k, B is k×n, C and out are m×n and row-major; ld* are the elements between rows or columns."""
    tile_m, tile_n, tile_k = config.tile
    tiles = divide_up(m, tile_m), divide_up(n, tile_n), pd.nctaid.z
    i, j, slice = config.schedule.tile_offset(pd.ctaid, tiled_shape=tiles)
    with pd.if_((i >= tiles[0]) | (j >= tiles[1])):
        pd.return_()
    first = i * tile_m, j * tile_n
    begin, end = slice_of_k(slice, tiles[2], k, tile_k) if config.is_split else (0, divide_up(k, tile_k))
    memory = pd.dynamic_shared(config.inputs, config.shared_bytes // config.inputs.bytes, align=1024).address()
    mainloop = Mainloop(config, memory)
    sources = Source(a, lda, m), Source(b, ldb, n)
    loaders = mainloop.loaders(*sources, first, (begin * tile_k, pd.min(end * tile_k, k)))
    accumulators = mainloop.run(loaders, end - begin)
    output = Output(Target(out, ldo), Target(c, ldc), (m, n), alpha, beta, rest[2 * config.is_split :])
    if config.is_split:
        meeting = SplitK(config, rest[:2], memory, i + j * tiles[0], tiles[0] * tiles[1])
        with meeting.last(accumulators, slice, tiles[2]):
            Writer(config, memory, first, output).write(accumulators)
    else:
        Writer(config, memory, first, output).write(accumulators)


def divide_up(value: Any, divisor: int) -> Any:
    return (value + (divisor - 1)) // divisor


@cache
def specialise(config: GemmConfig, **of_arrays: Any) -> GemmConfig:
    """A configuration with what follows from the arrays."""
    return replace(config, **of_arrays)


def configure(problem: Problem, config: GemmConfig | None, epilogue: Callable[..., Any] | None = None) -> GemmConfig:
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
        epilogue=epilogue,
        extras=tuple(operand.extra for operand in problem.operands),
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
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = (),
) -> Any:
    """out = epilogue(alpha·a@b + beta·c, *operands). Returns out.

    a (M, K) and b (K, N) are float16, bfloat16, float32 (multiplied as tf32), float64, int8 or uint8. c and out (M, N)
    are of one type, and lie alike: float16, bfloat16 or float32 for these inputs, float64 for float64, int32 or one of
    the three for integers. Sums are float32, float64 or int32. Each may be row- or column-major with any leading
    dimension, and any of M, N, K may be 0. numpy arrays run on the emulator, CUDA arrays on their GPU, on torch's
    current stream. Without `out` a row-major array is made. c is not read when beta is 0, and may be out itself.

    `epilogue` is a function of one element, and of one of each of `operands`: matrices (M, N), per_row(…) of (M,),
    per_column(…) of (N,). Define it once: a kernel is made for each function. `config` gives the tiles, else they are
    chosen for the shape.

    Raises LaunchError for arrays that do not fit; nothing is written then.
    """
    alpha, beta = _whole(alpha), _whole(beta)
    beside = [operand.array if isinstance(operand, Vector) else operand for operand in operands]
    arrays, what = (a, b, None if beta == 0 else c, out, *beside), (config, beta == 0, epilogue, *map(type, operands))
    sight = None if out is None else look(arrays)
    if PLANS.launch(what, sight, (alpha, beta)):
        return out
    given = problem_of(a, b, c, out, beta, epilogue, operands)
    problem = given.row_major
    if problem.m and problem.n:
        call = call_of(problem, configure(problem, config, epilogue), alpha, beta)
        call.run()
        PLANS.learn(what, sight, arrays, call)
    return given.out.owner


def _whole(factor: float) -> float:
    """alpha or beta as an int where it is one: of int32 matrices it must be."""
    return int(factor) if type(factor) is float and abs(factor) < MOST_WHOLE and factor.is_integer() else factor


def call_of(problem: Problem, config: GemmConfig, alpha: float, beta: float) -> Call:
    """The launch of a row-major problem."""
    a, b, out = problem.a, problem.b, problem.out
    separate = problem.c if config.c == "separate" and problem.c else None
    c = strided(separate.owner) if separate else 0  # a null address: it is not read
    sizes = problem.m, problem.n, problem.k
    strides = a.stride, b.stride, separate.stride if separate else 0, out.stride
    matrices = strided(a.owner), strided(b.owner), c, strided(out.owner)
    tiled = config.schedule.tiled_shape(sizes, config.tile, config.split_k)
    rest = [argument for operand in problem.operands for argument in operand.arguments]
    stream = None
    if config.is_split:
        device, stream = problem.place
        tiles = tiled.m * tiled.n
        rest[:0] = workspace(device, stream, config.sum, workspace_elements(config, tiles), tiles)
        config = specialise(config, split_k=2)  # one kernel for any number of slices
    launch = gemm_kernel[config.schedule.grid_shape(tiled), config.threads]
    arguments = *matrices, *sizes, *strides, alpha, beta, *rest
    return Call(launch, arguments, {"config": config}, ALPHA_BETA, stream)


gemm.kernel = gemm_kernel  # type: ignore[attr-defined]  # what `ptxdsl dump ptxdsl.kernels.gemm:gemm` shows
