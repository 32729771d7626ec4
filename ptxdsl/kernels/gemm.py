"""out = epilogue(alpha·a@b + beta·c) on every GPU since Ampere: cp.async, ldmatrix, mma.sync.

A thread block computes one tile of the output. Its A and B tiles go through a ring of shared-memory stages, several
copies ahead of the tensor cores; fragments are read one k step ahead of their use. One kernel of a configuration serves
every M, N and K.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ptxdsl as pd
from ptxdsl import driver, ptr, s64, u32
from ptxdsl.arrays import strided
from ptxdsl.calls import target
from ptxdsl.errors import LaunchError
from ptxdsl.kernels import scheduled
from ptxdsl.kernels.batched import ListPlans, batch_of, is_list, lists_of
from ptxdsl.kernels.block import Product, ProductBlock
from ptxdsl.kernels.config import GemmConfig, Schedule, usual_atom
from ptxdsl.kernels.epilogue import Target, Vector
from ptxdsl.kernels.function import canonical, check_factor, epilogue_of, factor, sequence_of
from ptxdsl.kernels.given import check_config, check_is_config
from ptxdsl.kernels.heuristic import MULTIPROCESSORS, choose
from ptxdsl.kernels.persistent import compute_persistently
from ptxdsl.kernels.plan import Call, Plans, Sight, look
from ptxdsl.kernels.problem import Problem, problem_of
from ptxdsl.kernels.reduction import compute_share
from ptxdsl.kernels.scheduled import for_batches, specialise
from ptxdsl.kernels.split_k import SplitK
from ptxdsl.kernels.stream_k import compute_stream_k
from ptxdsl.schedule import slice_of_k

USUAL = GemmConfig()
PLANS, LIST_PLANS = Plans(), ListPlans()
ALPHA_BETA = slice(11, 13)  # of the arguments
CHOSEN = "config", "schedule", "split_k", "reduction", "epilogue"
NO_OPERANDS: tuple[Any, ...] = ()


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
    own, extras = rest[: len(config.of_schedule)], rest[len(config.of_schedule) :]
    matrices = Target(a, lda), Target(b, ldb), Target(c, ldc), Target(out, ldo)
    product = Product(m, n, k, *matrices, alpha, beta, extras)
    place = own[len(own) - len(config.of_batches) :]
    compute(ProductBlock(config, product, place), own[: len(own) - len(place)])


def compute(block: ProductBlock, given: tuple[Any, ...]) -> None:
    """The tiles of this block, by the schedule; `given` is what the kernel takes for that."""
    if block.config.is_stream_k:
        compute_stream_k(block, given)
    elif block.config.is_persistent:
        compute_persistently(block, given)
    else:
        compute_tile(block, given)


def compute_tile(block: ProductBlock, memory: tuple[Any, ...]) -> None:
    """The tile of this block, by a threadblock swizzle; z of the grid is the slice of K, or the batch."""
    config = block.config
    tile, z, depth = _work(block)
    with pd.if_(~block.has(tile) | (z >= depth) if block.place else ~block.has(tile)):
        pd.return_()
    product = block.of(z)
    if not config.is_split:
        block.write(product, tile, block.multiply(product, tile))
    elif config.reduction == "scatter":
        compute_share(block, memory, partial(_work, block))
    else:
        accumulators = block.multiply(product, tile, slice_of_k(z, depth, product.k, config.tile[2]))
        meeting = SplitK(config, memory, block.memory, block.number(tile), block.tiles[0] * block.tiles[1])
        with meeting.last(accumulators, z, depth):
            block.write(product, tile, accumulators)


def _work(block: ProductBlock) -> tuple[tuple[Any, Any], Any, Any]:
    """The tile of this block, its slice of K or its batch, and how many of these there are."""
    swizzle: Any = block.config.schedule
    depth = block.batches if block.place else pd.nctaid.z
    i, j, z = swizzle.tile_offset(pd.ctaid, tiled_shape=(*block.tiles, depth))
    return (i, j), z, depth


def configure(
    problem: Problem, config: GemmConfig | None, epilogue: Callable[..., Any] | None = None, **chosen: Any
) -> GemmConfig:
    """The kernel for a row-major problem: `config` gives the tiles, `chosen` is what the call says otherwise; the
    arrays give types, orders and widths. Raises LaunchError for what their GPU has not enough of."""
    a, b, c, out = problem.a, problem.b, problem.c, problem.out
    device, _ = problem.place
    arch = target(device)
    results = out.widest(problem.n) if c is None else min(out.widest(problem.n), c.widest(problem.n))
    found = _scheduled(problem, config, {field: value for field, value in chosen.items() if value is not None}, arch)
    from_arrays: dict[str, Any] = dict(
        inputs=a.type,
        output=out.type,
        a_major="k" if a.major == "row" else "mn",
        b_major="k" if b.major == "column" else "mn",
        a_bytes=a.widest(a.length),
        b_bytes=b.widest(b.length),
        out_bytes=results,
        c="none" if c is None else "in place" if problem.in_place else "separate",
        c_major=c.major if c else "row",
        batches="none" if problem.batches is None else "strided",
        extras=tuple(operand.extra for operand in problem.operands),
    )
    if config is not None:
        check_config(config, from_arrays)
    made = specialise(found, atom=found.atom or usual_atom(a.type, arch), epilogue=epilogue, **from_arrays)
    made.check(arch)
    return made


def _scheduled(problem: Problem, config: GemmConfig | None, chosen: dict[str, Any], arch: str) -> GemmConfig:
    """The tiles and the schedule."""
    batches = problem.batches
    check_is_config(config)
    if config is None:
        a, b = problem.a, problem.b
        along_k = a.major == "row" and b.major == "column"
        width = min(a.widest(a.length), b.widest(b.length))
        scheduled = bool({"schedule", "split_k"} & {*chosen}) or batches is not None
        gpu = problem.place[0]
        multiprocessors = MULTIPROCESSORS if gpu is None else driver.device(gpu).multiprocessors
        m = problem.m * (batches or 1)
        config = choose(m, problem.n, problem.k, a.type, arch, width, along_k, scheduled, multiprocessors)
    found = specialise(config, **chosen) if chosen else config
    if batches is None:
        return found
    if found.split_k > 1:
        raise LaunchError(
            f"split_k is {found.split_k}, and the products are batches: each of them is computed by blocks of its own",
            help="leave split_k out, or call gemm for each of the batches",
        )
    return for_batches(found)


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    config: GemmConfig | None = None,
    schedule: Schedule | None = None,
    split_k: int | None = None,
    reduction: str | None = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """out = epilogue(alpha·a@b + beta·c, *operands). Returns out.

    a (M, K) and b (K, N) are float16, bfloat16, float32 (multiplied as tf32), float64, int8 or uint8. c and out (M, N)
    are of one type: float16, bfloat16 or float32 for these inputs, float64 for float64, int32 or one of the three for
    integers. Sums are float32, float64 or int32. Each matrix may be row- or column-major with any leading dimension;
    M, N and K may be 0. numpy arrays run on the emulator, CUDA arrays on their GPU, on torch's current stream. Without
    `out` a row-major array is made. c may be out itself. With a beta of 0, the default, c is checked and not read.

    `epilogue` is a function of one element, and of one of each of `operands`: matrices (M, N), of which one may be out,
    per_row(…) of (M,), per_column(…) of (N,), of float16, bfloat16, float32, float64 or int32; of int32 only for an
    int32 out. It computes in float32, or in the float64 or int32 of out. A kernel is made for each function, by its
    text and what it reads. `config` gives the tiles, which are chosen otherwise, and the epilogue where the call has
    none; what it says of the arrays must be so.

    Batches: a (batch, M, K) and b (batch, K, N) give out (batch, M, N). A matrix of two dimensions, or a batch stride
    of 0, is one for all; c and operands may be as well. Lists of matrices that lie alike, each anywhere, give a list.

    `schedule`, `split_k` and `reduction` say which block computes what, and replace what `config` says. `schedule` is a
    threadblock swizzle of ptxdsl.schedule, a PersistentScheduler or a StreamKThreadblockSwizzle. With a swizzle,
    split_k blocks share the K of each tile, and add up one after another ("serial"), all in the last ("parallel"), or a
    share of the tile each ("scatter"); stream-K chooses what is shared. Results are the same each time.

    Raises LaunchError for arrays that do not fit and ScheduleError for schedules that do not run, and writes nothing.
    """
    alpha, beta = factor("alpha", alpha), factor("beta", beta)
    operands = sequence_of(operands)
    epilogue = canonical(epilogue_of(config, epilogue), len(operands))
    arrays = a, b, c, out
    what: tuple[Any, ...] = (config, schedule, split_k, reduction, epilogue, beta == 0)
    seen: tuple[Any, ...] = arrays
    if operands is not NO_OPERANDS:
        seen += tuple(operand.array if isinstance(operand, Vector) else operand for operand in operands)
        what += tuple(map(type, operands))
    _check_hashable(schedule)
    sight = None if out is None else look(seen)
    if sight is not None and _is_launched(what, sight, (alpha, beta)):
        return out
    if is_list(a, b):
        return _gemm_of_lists(lists_of(*arrays), (alpha, beta), operands, what)
    given = problem_of(*arrays, beta, epilogue, operands)
    call = _call(given.row_major, (alpha, beta), what)
    if call:
        call.run()
        PLANS.learn(what, sight, seen, call)
    return given.out.owner


def _call(problem: Problem, factors: tuple[Any, Any], what: tuple[Any, ...]) -> Call | None:
    """The launch of a row-major problem; None where there is nothing to write."""
    made = configure(problem, **dict(zip(CHOSEN, what, strict=False)))
    for name, number in zip(("alpha", "beta"), factors, strict=True):
        check_factor(name, number, made.scalar)
    return call_of(problem, made, *factors) if problem.m and problem.n and problem.batches != 0 else None


def _is_launched(what: tuple[Any, ...], sight: Sight, factors: tuple[Any, Any]) -> bool:
    """Whether the launch was planned, and has now been made."""
    try:
        return PLANS.launch(what, sight, factors)
    except (LaunchError, TypeError):  # what does not fit: the careful way says it in the words of the caller
        return False


def _check_hashable(schedule: Any) -> None:
    if schedule.__hash__ is None:
        raise LaunchError(
            f"schedule is {schedule!r}; gemm takes one schedule, a value of ptxdsl.schedule",
            help="such as IdentityThreadblockSwizzle(8), PersistentScheduler() or StreamKThreadblockSwizzle()",
        )


def _gemm_of_lists(
    lists: dict[str, Sequence[Any]],
    factors: tuple[Any, Any],
    operands: Sequence[Any],
    what: tuple[Any, ...],
) -> Sequence[Any]:
    """The same of lists of matrices. Returns the list of outputs."""
    if operands:
        raise LaunchError(
            "operands of the epilogue are given, and the matrices are lists",
            help="pass arrays of three dimensions, whose products all take the same operands",
        )
    if "out" in lists and LIST_PLANS.launch(gemm_kernel, what, lists, factors):
        return lists["out"]
    batch = batch_of(lists, factors[1])
    if batch is None:
        return []
    problem = batch.problem
    config = batch.specialise(configure(problem, **dict(zip(CHOSEN, what, strict=False))))
    for name, number in zip(("alpha", "beta"), factors, strict=True):
        check_factor(name, number, config.scalar)
    if problem.m and problem.n:
        made = scheduled.schedule(problem, config, gemm_kernel)
        batch.run(gemm_kernel, made, *factors)
        LIST_PLANS.learn(what, lists, batch, made)
    return lists.get("out", batch.group.out.owners)


def call_of(problem: Problem, config: GemmConfig, alpha: float, beta: float) -> Call:
    """The launch of a row-major problem."""
    a, b, out = problem.a, problem.b, problem.out
    separate = problem.c if config.c == "separate" and problem.c else None
    c = strided(separate.owner) if separate else 0  # a null address: it is not read
    sizes = problem.m, problem.n, problem.k
    strides = a.stride, b.stride, separate.stride if separate else 0, out.stride
    matrices = strided(a.owner), strided(b.owner), c, strided(out.owner)
    made = scheduled.schedule(problem, config, gemm_kernel)
    beside = [argument for operand in problem.operands for argument in operand.arguments]
    arguments = *matrices, *sizes, *strides, alpha, beta, *made.arguments, *beside
    return Call(
        gemm_kernel[made.grid, made.config.threads], arguments, {"config": made.config}, ALPHA_BETA, made.stream
    )


gemm.kernel = gemm_kernel  # type: ignore[attr-defined]  # what `ptxdsl dump ptxdsl.kernels.gemm:gemm` shows
