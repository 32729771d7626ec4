"""Grouped GEMM: many problems of different sizes in one launch of persistent blocks.

Each tile is computed as in `gemm.py`; this module assigns tiles to blocks and finds the matrices of each tile. On
sm_90a a dedicated warp does this (`problems.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl import s64, u32
from ptxdsl.kernels.call.call import flag, launch
from ptxdsl.kernels.call.elsewhere import public_product
from ptxdsl.kernels.call.groups.grouped import GroupedCall
from ptxdsl.kernels.call.groups.table import ENTRY, PART, ROW, STRIP
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import compute
from ptxdsl.kernels.problems import PROBLEM_WORDS, ProblemTiles, load_product
from ptxdsl.kernels.product.product import Index, WorkTile
from ptxdsl.kernels.ragged import grouped_gemm_masked, grouped_gemm_ragged
from ptxdsl.kernels.ragged_k import grouped_gemm_ragged_k
from ptxdsl.kernels.sm80.copies import matrix_copies
from ptxdsl.kernels.sm80.ring import SharedMemory
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.sm90.loads import group_loads
from ptxdsl.kernels.sm90.maps import VERSIONS_AHEAD, ProblemMaps
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.parameters import tensor_grouped_parameters
from ptxdsl.kernels.sm90.tile_queue import TileQueue
from ptxdsl.kernels.sm90.tiling import WARP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD, IN_TURN, PartsWalk, VisitorWalk
from ptxdsl.kernels.tiles.schedule import Walk
from ptxdsl.kernels.tiles.visitor import COUNTERS, DeviceVisitor, TableVisitor, seat
from ptxdsl.kernels.traits.parameters import grouped_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule import tile_of
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

__all__ = ["grouped_gemm", "grouped_gemm_masked", "grouped_gemm_ragged", "grouped_gemm_ragged_k"]

USUAL, HOPPER = WarpTraits(schedule=IN_TURN), WarpgroupTraits(schedule=AHEAD)


@pd.kernel
def grouped_kernel(
    p: grouped_parameters(traits, mode), *, traits: WarpTraits = USUAL, mode: str = "device", sort: bool = False
) -> None:
    """`mode` says what the host has planned: "host" (GroupedProblemVisitor.table), "parts" or "dealt" (`parts_table`),
    or nothing with "device".

    With `sort` the first tiles are the longest, and blocks are numbered by `seat`, whose counters precede the plan.
    """
    block: Scalar
    memory, entries, block = SharedMemory(traits), p.schedule, pd.ctaid.x
    copies = matrix_copies(traits, memory)
    if sort:
        block, entries = seat(entries.bitcast(u32)), entries + COUNTERS
    visitor = VISITORS[mode](p, entries, block, traits)

    locate = locator(p, traits)
    if mode == "parts":
        walk: Walk = PartsWalk(visitor, locate, traits.is_ahead, (p.sums, p.semaphores), memory.staging)
    else:
        walk = VisitorWalk(visitor, locate, traits.is_ahead)
    compute(traits, memory, copies, walk)


@pd.kernel(reqntid=lambda traits: traits.threads, cluster=lambda traits: traits.schedule.cluster)
def warpgroup_grouped_kernel(p: tensor_grouped_parameters(traits), *, traits: WarpgroupTraits = HOPPER) -> None:
    """Compute a list of problems with wgmma, as `warpgroup_ragged_kernel`. Blocks take tiles in turn, in the order of
    the table, and a warp of its own locates them."""
    memory, tiling = SharedTiles(traits), traits.tiling
    ring = tile_ring(traits)
    queue = TileQueue(p.counters, tiling.multiplying + WARP, PROBLEM_WORDS, held=1)
    maps = ProblemMaps(traits, (p.a, p.b, p.boxes) if traits.operands.out_boxes else (p.a, p.b), p.maps, VERSIONS_AHEAD)
    await_prerequisites()
    tiles = ProblemTiles(p, traits, queue, maps)
    copying, multiplying = tiling.role_registers
    with pd.warpgroup(tiling.producer, registers=copying):
        with pd.warp(tiling.copying_warp + 1):
            tiles.find()
            pd.ptx.exit()  # so that what the roles behind begin with takes none of its few registers
        with pd.warp(tiling.copying_warp):
            tiles.load(ring, group_loads(traits, memory))
            pd.ptx.exit()
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        tiles.compute(ring, memory, consumer)


def locator(p: Any, traits: Traits) -> Callable[..., WorkTile]:
    """Return a function from a problem of the table and the number of a tile to a WorkTile."""

    def locate(number: Scalar, tile: Scalar, begin: Index = 0, end: Scalar | None = None, *_: Scalar) -> WorkTile:
        product = load_product(p.table, number, traits.operands, p.alpha, p.beta)
        down, across, iterations = (
            ceil_div(size, extent) for size, extent in zip((product.m, product.n, product.k), traits.tile, strict=True)
        )
        coordinates = tile_of(tile, across, down, STRIP)
        return WorkTile(product, coordinates, begin, iterations if end is None else end, traits.tile)

    return locate


def of_device(p: Any, entries: PointerValue, block: Scalar, traits: Traits) -> DeviceVisitor:
    """Return the visitor that finds problems by their sizes in the table."""

    def tiles_of(number: Scalar) -> tuple[Scalar, Scalar]:
        m, n = pd.ptx.ld.global_.v2.s64(p.table + number.to(s64) * ROW)
        return ceil_div(m.to(u32), traits.tile[0]), ceil_div(n.to(u32), traits.tile[1])

    return DeviceVisitor(p.problems, tiles_of, block)


class RoundsVisitor(TableVisitor):
    """Reads the table of GroupedProblemVisitor: entry i of block b is for tile b + i·blocks."""

    def __init__(self, p: Any, entries: PointerValue, block: Scalar, traits: Traits) -> None:
        self.block, blocks = block, pd.nctaid.x
        rounds, count = ((left + (blocks - 1)) // blocks for left in (p.total, p.total - block))
        super().__init__(entries + (block * rounds).to(s64) * ENTRY, count, ENTRY, traits.threads)

    def work(self) -> Sequence[Scalar]:
        problem, start = super().work()
        return [problem, self.block + self.number * pd.nctaid.x - start]


class PartsVisitor(TableVisitor):
    """Reads the table of `parts_table`: where the entries of each block begin, then all entries."""

    def __init__(self, p: Any, entries: PointerValue, block: Scalar, traits: Traits) -> None:
        begin, end = (entries[block + i].bitcast(u32) for i in (0, 1))
        entries = entries + (pd.nctaid.x + 1).to(s64)
        super().__init__(entries + begin.to(s64) * PART, end - begin, PART, traits.threads)

    def work(self) -> Sequence[Scalar]:
        return super().work()[:-1]


class DealtVisitor(PartsVisitor):
    """Reads the same table, no tile of which is in parts."""

    def work(self) -> Sequence[Scalar]:
        return super().work()[:2]


KERNELS = Kernels(grouped_kernel, warpgroup_grouped_kernel)
VISITORS: dict[str, Any] = {"device": of_device, "host": RoundsVisitor, "parts": PartsVisitor, "dealt": DealtVisitor}


@public_product
def grouped_gemm(
    a: Sequence[Any],
    b: Sequence[Any],
    c: Sequence[Any] | None = None,
    *,
    out: Sequence[Any] | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    schedule: str = "device",
    config: GemmConfig | Literal["tune"] | None = None,
    sort: bool = False,
    balance: str | None = None,
) -> list[Any]:
    """Compute out[i] = alpha·(a[i] @ b[i]) + beta·c[i] for all problems in one launch; return the list of outputs.

    Parameters
    ----------
    a, b : list of arrays of shape (M_i, K_i) and (K_i, N_i)
        Types as in `gemm`. Each problem has its own sizes, any of which may be 0, and its own leading dimensions. All
        matrices of one list have one type and one major order, and all arrays are on one device. numpy arrays run on
        the emulator, CUDA arrays on their GPU, on torch's current stream.
    c : list of arrays of shape (M_i, N_i), optional
        c[i] may be out[i] itself. Of the type and major order of `out`.
    out : list of arrays of shape (M_i, N_i), optional
        The outputs; row-major arrays are allocated by default.
    alpha, beta : float
        Scale factors. As in BLAS, `a` and `b` are not read if alpha is 0, nor `c` if beta is 0.
    schedule : "device" or "host"
        With "device", blocks find their tiles in the kernel, from the problem sizes. With "host", the host computes a
        table of tiles, which is kept for lists of the same sizes. The list of problems reaches the GPU by one
        asynchronous copy.
    config : GemmConfig or "tune", optional
        The kernel configuration; chosen from the sizes by default. "tune" measures candidates as in `gemm`; lists of
        about as many problems with similar average and maximal M, N and K share one result.
    sort : bool
        Start the problems with the longest K first, spread over the multiprocessors.
    balance : "k", optional
        With schedule="host", give each block the same number of K iterations. Tiles longer than this share are split
        along K, and their parts are added in a fixed order.

    Raises
    ------
    LaunchError
        If the arrays do not fit each other or the kernel. Nothing is written.

    Examples
    --------
    >>> out = grouped_gemm([a0, a1], [b0, b1])
    >>> grouped_gemm(a, b, out=out, schedule="host", balance="k")
    """
    options = out is None, c is None, schedule, flag("sort", sort), balance
    return launch(GroupedCall, KERNELS, (out, a, b, c), config, options, (alpha, beta))
