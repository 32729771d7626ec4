"""Grouped GEMM over groups of rows whose sizes only the GPU knows, as in a mixture of experts.

The host reads no sizes and waits for nothing. Groups are consecutive rows of one matrix (`grouped_gemm_ragged`), or the
first rows of one matrix per group (`grouped_gemm_masked`). There is one kernel for sm_80 and later and one for sm_90a.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import ptxdsl as pd
from ptxdsl import s64, u32
from ptxdsl.kernels.call.call import flag, launch
from ptxdsl.kernels.call.elsewhere import public_product
from ptxdsl.kernels.call.groups.ragged import RaggedCall
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.config import NO_OPERANDS, GemmConfig
from ptxdsl.kernels.gemm import compute, compute_tiles, load_tile, multiply_tiles
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.operands import Along, Batches, Extra, Major, Operands, Side
from ptxdsl.kernels.product.product import Index, Product, ScatteredView, Tile, View, WorkTile
from ptxdsl.kernels.sm80.copies import Copies, IndexedCopies, MatrixCopies
from ptxdsl.kernels.sm80.ring import SharedMemory
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.sm90.epilogue import group_epilogue
from ptxdsl.kernels.sm90.gathered import ColumnCopies, GatheredRing, GatheredRows, gather_tiles
from ptxdsl.kernels.sm90.loads import GroupRows, TensorView, TmaLoads, group_loads
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.mma import StageMma, warpgroup_mma
from ptxdsl.kernels.sm90.order import consumer_walk
from ptxdsl.kernels.sm90.parameters import tensor_ragged_parameters
from ptxdsl.kernels.sm90.scales import scaled_alpha, scaled_mainloop
from ptxdsl.kernels.sm90.tile_queue import TileQueue, TileQueueWalk, row_words
from ptxdsl.kernels.sm90.tiling import ROLE_REGISTERS
from ptxdsl.kernels.sm90.traits import SHARE_ROWS, WarpgroupTraits
from ptxdsl.kernels.store.epilogue import Epilogue
from ptxdsl.kernels.tiles.group_visitors import VISITORS, check_sizes
from ptxdsl.kernels.tiles.many import AHEAD, VisitorWalk
from ptxdsl.kernels.tiles.schedule import Walk, loaded_elsewhere
from ptxdsl.kernels.tiles.visitor import Succeeding
from ptxdsl.kernels.traits.parameters import extra_values, ragged_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar

USUAL = WarpTraits(schedule=AHEAD)
HOPPER = WarpgroupTraits(operands=Operands(batches=Batches.STRIDED), schedule=AHEAD)
Matrices: TypeAlias = Callable[[Scalar, Scalar], tuple[Any, Any, Any]]
"""Return A, B and out of a group, given its number and the first of its rows among all."""
STRIPS = GroupedRowsThreadblockSwizzle(8)  # the tiles of a group: down the rows first, for what L2 still holds of B
SHARE_STEP, INTEGER_STEP = 8, 16  # rows by which the shares of a group differ; and products of shares, of integers


@pd.kernel
def ragged_kernel(
    p: ragged_parameters(traits, gathers, scatters),
    *,
    traits: WarpTraits = USUAL,
    form: str = "ragged",
    validate: bool = False,
    gathers: bool = False,
    scatters: bool = False,
) -> None:
    """`p.sizes` are the end offsets of the groups, or the numbers of rows of each matrix with form="masked". If the
    kernel `gathers`, `p.index` names the rows of A; if it `scatters`, `p.out_index` names those of out.

    Invalid sizes are clamped; with `validate` the kernel traps instead.
    """
    if validate:
        check_sizes(p.sizes, p.groups, p.rows, form)
    memory = SharedMemory(traits)
    of_a = IndexedCopies(traits, memory) if gathers else MatrixCopies(traits, Side.A, memory)
    copies = Copies(of_a, MatrixCopies(traits, Side.B, memory))

    def matrices(group: Scalar, first: Scalar) -> tuple[View | ScatteredView, View, View | ScatteredView]:
        a = _gathered(p, first) if gathers else _rows(p.a, first, group, traits.operands.a_major is Major.MN)
        return a, View(p.b.pointer + group.to(s64) * p.b.apart, p.b.stride), rows_of_out(p, first, group, scatters)

    compute(traits, memory, copies, groups_walk(p, traits, form, matrices))


@pd.kernel(reqntid=lambda traits: traits.threads, cluster=lambda traits: traits.schedule.cluster)
def warpgroup_ragged_kernel(
    p: tensor_ragged_parameters(traits, scatters),
    *,
    traits: WarpgroupTraits = HOPPER,
    form: str = "ragged",
    validate: bool = False,
    scatters: bool = False,
) -> None:
    """Compute groups of rows with wgmma, as `warpgroup_gemm_kernel`. A tile that extends past the end of its group is
    multiplied with the rows that follow, which are not stored. Rows of A that `p.index` names are gathered by warps of
    their own."""
    memory, tiling, gathers = SharedTiles(traits), traits.tiling, traits.operands.a_gathered
    ring = tile_ring(traits, GatheredRing if gathers else pd.Ring)
    queue = TileQueue(p.counters, tiling.multiplying + gathers * GatheredRing.writers)
    boxes = [p.boxes] if traits.operands.out_boxes and not scatters else []
    await_prerequisites(*([] if gathers else [p.a]), p.b, *boxes)
    if validate:
        check_sizes(p.sizes, p.groups, p.rows, form)
    matrices = rows_of_groups(p, traits, form, scatters)
    scaling = traits.operands.scaling
    alpha = scaled_alpha(p, traits, 1)
    copying, multiplying = ROLE_REGISTERS if scaling else tiling.role_registers
    with pd.warpgroup(tiling.producer, registers=copying):
        with pd.warp(tiling.copying_warp):
            walk = groups_walk(p, traits, form, matrices, queue.taken, traits.shares_rows)
            by_tensors = ColumnCopies(traits, memory) if gathers else group_loads(traits, memory)
            load_queued_tiles(ring, by_tensors, walk, queue)
        if gathers:
            with pd.warp(*tiling.gathering_warps) as gatherer:
                rows = GatheredRows(p, traits, memory, gatherer.index)
                gather_tiles(ring, rows, TileQueueWalk(queue.reader(), work_of_groups(p, traits, matrices)))
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma = warpgroup_mma(traits, memory, consumer.index)
        epilogue = group_epilogue(traits, memory, consumer, scatters)
        plain = multiply_shares if traits.shares_rows else multiply_tiles
        multiply = scaled_mainloop(plain, p, traits, consumer, p.rows, lambda work: (work.item[0], work.item[2]))
        tiles = TileQueueWalk(queue, work_of_groups(p, traits, matrices, alpha))
        compute_tiles(ring, mma, epilogue, consumer_walk(traits, tiles, ring, epilogue, consumer), multiply)


def rows_of_groups(p: Any, traits: WarpgroupTraits, form: str, scatters: bool = False) -> Matrices:
    """Return a function from a group and its first row to A, B and out in their tensors."""

    def matrices(group: Scalar, first: Scalar) -> tuple[TensorView, TensorView, View | ScatteredView | GroupRows]:
        at, out = (0 if form == "ragged" else group, first), rows_of_out(p, first, group, scatters)
        in_boxes = traits.operands.out_boxes and not scatters
        stored = GroupRows(out.pointer, out.stride, TensorView(p.boxes, *at)) if in_boxes else out
        return TensorView(p.a, *at), TensorView(p.b, group), stored

    return matrices


def load_queued_tiles(
    ring: pd.Ring,
    copies: TmaLoads,
    walk: Walk,
    queue: TileQueue,
    words: Callable[[WorkTile], Sequence[Index]] = row_words,
    mapped: Callable[[WorkTile], WorkTile] = lambda work: work,
) -> None:
    """Load tiles as `gemm.load_tiles` does, by a warp: all of its lanes locate the tiles, and the same one always
    issues the loads. `words` are passed to the consumers. `mapped` replaces A and B of a work tile by views with tensor
    maps."""
    for work in walk.tiles(loaded_elsewhere):
        work = mapped(work)
        with pd.elect():
            taken = queue.take()
            queue.announce(*words(work))
            load_tile(ring, copies.of(work))
            queue.broadcast(taken)
        walk.skip(work)
    with pd.elect():
        ring.drain()
        queue.close()


def multiply_shares(ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile) -> TileAccumulators:
    """Multiply a tile with a share of the rows of its group as `gemm.multiply_tiles` does, and only these rows. Each
    number of rows has its own accumulators: wgmmas of different shapes on shared ones would be serialised."""
    accumulators, lower = TileAccumulators(mma.layout), 0
    for rows in heights(work.extents[0], INTEGER_STEP if mma.layout.type.is_integer else SHARE_STEP):
        with pd.if_((work.product.m > lower) & (work.product.m <= rows)):
            share = multiply_tiles(ring, mma.of_rows(rows), epilogue, walk, work)
            for register, value in zip(accumulators.registers, share.registers, strict=False):
                register.set(value)
        lower = rows
    return accumulators


def heights(tile_m: int, step: int) -> list[int]:
    """Return the numbers of rows that have products of their own, for tiles with shares of a group. Fewer rows than
    half of a tile are not distinguished as finely, since such tiles are limited by loads of B."""
    return [*range(SHARE_ROWS, tile_m // 2 + 1, SHARE_ROWS), *range(tile_m // 2 + step, tile_m + 1, step)]


def share_of(count: Scalar, down: Scalar, number: Index) -> tuple[Scalar, Scalar]:
    """Return the first row and the number of rows of a tile in a group of `count` rows that are divided among tiles."""
    steps = ceil_div(count, SHARE_STEP)
    each = steps // down
    more = steps - each * down
    begin = (number * each + pd.min(number, more)) * SHARE_STEP
    rows = (each + pd.select(number < more, pd.cast(1, u32), 0)) * SHARE_STEP
    return begin, pd.min(rows, count - begin)


def groups_walk(
    p: Any, traits: Traits, form: str, matrices: Matrices, succeeding: Succeeding | None = None, shares: bool = False
) -> VisitorWalk:
    """Return the walk over the tiles of all groups. With `shares`, a tile has an even share of the rows of its group,
    as a product of its own."""
    across, work = ceil_div(p.n, traits.tile[1]), work_of_groups(p, traits, matrices)
    visitor = VISITORS[form](p.sizes, p.groups, p.rows, (traits.tile[0], across), succeeding)

    def locate(group: Scalar, tile: Scalar, first: Scalar) -> WorkTile:
        rows = visitor.size(group) - first
        down, _ = visitor.tiles(rows)
        row, column = tile_of_group(tile, down, across)
        if shares:
            begin, rows = share_of(rows, down, row)
            first, row = first + begin, pd.cast(0, u32)
        return work(group, first, rows, row, column)

    return VisitorWalk(visitor, locate, traits.is_ahead)


def work_of_groups(
    p: Any, traits: Traits, matrices: Matrices, alpha: Scalar | int = 1
) -> Callable[[Scalar, Scalar, Scalar, Index, Index], WorkTile]:
    """Return a function that makes a WorkTile of a group, the first of its rows among all, their number, and the row
    and column of the tile."""
    iterations = ceil_div(p.k, traits.tile[2])

    def work(group: Scalar, first: Scalar, rows: Scalar, row: Index, column: Index) -> WorkTile:
        a, b, out = matrices(group, first)
        product = Product(rows, p.n, p.k, a, b, out, out, alpha, 0, beside_group(p, traits, group, first))
        return WorkTile(product, (row, column), 0, iterations, traits.tile, (group, row, first))

    return work


def beside_group(p: Any, traits: Traits, group: Scalar, first: Scalar) -> tuple[View, ...]:
    """Return the operands of the epilogue for a group's rows, from the `first` one on."""

    def of_group(extra: Extra, values: Any) -> View:
        pointer = values.pointer
        if extra.along is Along.M:
            pointer = pointer + first
        if extra.is_batched:
            pointer = pointer + group.to(s64) * values.batch
        return View(pointer, pd.cast(0, s64))

    return tuple(map(of_group, traits.operands.extras, extra_values(p, traits.operands)))


def tile_of_group(number: Scalar, down: Index, across: Index) -> Tile:
    """Return the (row, column) of a tile in its group."""
    return STRIPS.tile_offset((number, 0, 0), tiled_shape=(down, across, 1))[:2]


def _rows(matrix: Any, first: Scalar, group: Scalar, by_column: bool = False) -> View:
    """Return a group's part of a matrix: its rows from the `first` one on."""
    line = first.to(s64)
    row = line if by_column else line * matrix.stride
    return View(matrix.pointer + (row + group.to(s64) * matrix.apart), matrix.stride)


def _gathered(p: Any, first: Scalar) -> ScatteredView:
    """Return a group's part of the rows that an index names, from the `first` one on."""
    return ScatteredView(p.a.pointer, p.a.stride, p.index + first, p.rows - 1 - first, p.a_rows)


def rows_of_out(p: Any, first: Scalar, group: Scalar, scatters: bool) -> View | ScatteredView:
    """Return a group's part of the output: its rows from the `first` one on, or those that an index names."""
    if not scatters:
        return _rows(p.out, first, group)
    numbers = p.out_index + first
    return ScatteredView(p.out.pointer, p.out.stride, numbers, p.rows - 1 - first, p.out_rows)


KERNELS = Kernels(ragged_kernel, warpgroup_ragged_kernel)


@public_product
def grouped_gemm_ragged(
    a: Any,
    b: Any,
    offsets: Any,
    *,
    rows: Any = None,
    out_rows: Any = None,
    out: Any = None,
    config: GemmConfig | Literal["tune"] | None = None,
    validate: bool = False,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """Compute out[rows of i] = epilogue(a[rows of i] @ b[i], *operands) for each group i of rows; return out.

    The rows of group i are offsets[i - 1] to offsets[i], half-open. The host does not read the offsets: the call does
    not synchronise, and a CUDA graph can capture it.

    Parameters
    ----------
    a : array of shape (rows, K)
    b : array of shape (groups, K, N)
        Types as in `gemm`, both of one type.
    offsets : int32 array of shape (groups,)
        The end row of each group, on the device of `a`. Groups may be empty. An offset below 0 or below its predecessor
        is raised to the larger of these; an offset past the last row is lowered to the number of rows.
    rows : int32 array, optional
        Gather: row n of the product uses a[rows[n]]; `a` is row-major. An index out of range gives a row of zeros. Rows
        are gathered on their way to shared memory, or into a workspace first if tiles are tall or `config` has
        copies_rows=True.
    out_rows : int32 array, optional
        Scatter: row n of the product is written to out[out_rows[n]]. `out` is then required and may have any number of
        rows. Indices are unique; an index out of range drops its row.
    out : row-major array of shape (rows, N), optional
        Rows past the last offset are not written; without `out` they are uninitialised.
    config : GemmConfig or "tune", optional
        The kernel configuration; chosen for the average group size by default. "tune" measures candidates as in `gemm`,
        with one result per class of average group size.
    validate : bool
        Treat invalid offsets as errors. Offsets in host memory raise LaunchError. Offsets on a GPU trap the kernel
        before it writes anything; the next synchronising call reports the error, as after a failed assertion.
    epilogue : function, optional
        As in `gemm`.
    operands : sequence
        `per_row(…)` with one value for each row of the product, such as router weights, or `per_column(…)` of (N,) or
        (groups, N), such as the biases of experts. Row n of the product uses value n wherever `out_rows` sends it.

    Raises
    ------
    LaunchError
        If the arrays do not fit, or for invalid offsets in host memory with `validate`. Nothing is written.

    Examples
    --------
    >>> ends = np.array([3, 3, 10], np.int32)  # groups of 3, 0 and 7 rows
    >>> out = grouped_gemm_ragged(tokens, weights, ends)
    """
    options = out is None, "ragged", flag("validate", validate), rows is None, out_rows is None
    arrays = out, a, b, offsets, rows, out_rows
    return launch(RaggedCall, KERNELS, arrays, config, options, (), epilogue, operands)


@public_product
def grouped_gemm_masked(
    a: Any,
    b: Any,
    counts: Any,
    *,
    out: Any = None,
    config: GemmConfig | Literal["tune"] | None = None,
    validate: bool = False,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """Compute out[i, :counts[i]] = epilogue(a[i, :counts[i]] @ b[i], *operands) for each group i; return out.

    Parameters
    ----------
    a : array of shape (groups, M, K)
    b : array of shape (groups, K, N)
        Types as in `gemm`, both of one type.
    counts : int32 array of shape (groups,)
        The number of valid rows of each matrix, on the device of `a`. Values are clamped to 0 … M.
    out : array of shape (groups, M, N), optional
        Row-major matrices. Rows past the count are not written.
    config, validate
        As in `grouped_gemm_ragged`; `validate` treats counts outside 0 … M as errors.
    epilogue : function, optional
        As in `gemm`.
    operands : sequence
        `per_row(…)` of (groups, M), contiguous within each group, or `per_column(…)` of (N,) or (groups, N).

    Raises
    ------
    LaunchError
        If the arrays do not fit, or for invalid counts in host memory with `validate`. Nothing is written.

    Examples
    --------
    >>> counts = np.array([3, 0, 7], np.int32)
    >>> out = grouped_gemm_masked(tokens, weights, counts)
    """
    options = out is None, "masked", flag("validate", validate)
    return launch(RaggedCall, KERNELS, (out, a, b, counts, None, None), config, options, (), epilogue, operands)
