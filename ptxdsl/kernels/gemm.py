"""GEMM: out = epilogue(alpha·a@b + beta·c), with mma.sync on sm_80 and later and with wgmma on sm_90a.

A thread block computes one or more output tiles, as its schedule assigns them. Tiles of A and B pass through a ring of
shared-memory stages that are loaded ahead of the tensor cores. In `gemm_kernel` every thread loads with cp.async,
multiplies and stores. `warpgroup_gemm_kernel` is warp-specialised: a producer issues TMA loads, and consumer warpgroups
run wgmma and the epilogue. `sm80` and `sm90` hold the loads and the MMAs, `tiles` the schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import ptxdsl as pd
from ptxdsl.kernels.call.call import launch
from ptxdsl.kernels.call.elsewhere import public_product
from ptxdsl.kernels.call.gemm import product
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.config import NO_OPERANDS, GemmConfig
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import Index, WorkTile
from ptxdsl.kernels.sm80.copies import Copies, matrix_copies
from ptxdsl.kernels.sm80.mma import FragmentMma
from ptxdsl.kernels.sm80.ring import CpAsyncRing, SharedMemory
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.sm90.epilogue import warpgroup_epilogue
from ptxdsl.kernels.sm90.loads import TileLoads, TmaLoads
from ptxdsl.kernels.sm90.memory import SharedTiles, await_prerequisites, tile_ring
from ptxdsl.kernels.sm90.mma import StageMma, warpgroup_mma
from ptxdsl.kernels.sm90.order import consumer_walk
from ptxdsl.kernels.sm90.parameters import tensor_parameters, tensor_products_of, tensors_of
from ptxdsl.kernels.sm90.scales import Mainloop, scaled_context, scaled_mainloop
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.epilogue import Epilogue, WarpEpilogue
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.resolve import Schedule
from ptxdsl.kernels.tiles.schedule import Walk, loaded_elsewhere
from ptxdsl.kernels.traits.parameters import parameters, products_of

USUAL, HOPPER = WarpTraits(), WarpgroupTraits(schedule=Strips())


@pd.kernel
def gemm_kernel(p: parameters(traits), *, traits: WarpTraits = USUAL) -> None:
    """Compute a product with mma.sync. A is m×k, B is k×n, C and out are m×n and row-major; see `parameters`."""
    products, memory = products_of(p, traits), SharedMemory(traits)
    copies = matrix_copies(traits, memory)
    compute(traits, memory, copies, traits.schedule.walk(memory.context(products, p.schedule)))


def compute(traits: WarpTraits, memory: SharedMemory, copies: Copies, walk: Walk) -> None:
    """Compute the tiles of a block, one after another, as its schedule assigns them."""
    ring = CpAsyncRing(traits.tiling.stages, traits.stage_bytes)
    mma, epilogue = FragmentMma(traits, memory), WarpEpilogue(traits, memory.staging)
    for work in walk.tiles(partial(start, ring, copies)):
        for output in walk.complete(work, multiply(ring, copies, mma, work.iterations)):
            epilogue(output)
    for output in walk.leftovers():
        epilogue(output)


def start(ring: CpAsyncRing, copies: Copies, work: WorkTile) -> None:
    """Start the loads of a tile into a free ring: all stages but one."""
    copies.seek(work)
    for slot in ring.fill():
        copies.fetch(slot)
        copies.deposit(slot)


def multiply(ring: CpAsyncRing, copies: Copies, mma: FragmentMma, iterations: Index) -> TileAccumulators:
    """Return the accumulators of a tile whose loads have started, after `iterations` steps along K; drain the ring.
    Each k step loads the fragments of the next and multiplies its own. All but the last load to the released slot."""
    accumulators = TileAccumulators(mma.layout)
    *steps, last = range(mma.steps)
    slot = ring.first()
    mma.load(slot, 0)
    for _ in pd.range(iterations, unroll=1):
        for step in steps:
            mma.load(slot, step + 1)
            copies.fetch(ring.acquire(), step, len(steps))
            mma.multiply(accumulators, step)
        copies.deposit(ring.acquire())
        ring.commit()
        ring.release()
        slot = ring.wait()
        mma.load(slot, 0)
        mma.multiply(accumulators, last)
    ring.drain()
    mma.gather(accumulators)
    return accumulators


@pd.kernel(reqntid=lambda traits: traits.threads, cluster=lambda traits: traits.schedule.cluster)
def warpgroup_gemm_kernel(p: tensor_parameters(traits), *, traits: WarpgroupTraits = HOPPER) -> None:
    """Compute a product with wgmma. One thread issues TMA loads. Each consumer warpgroup multiplies 64 rows of a tile,
    or every second tile (ping-pong), and runs the epilogue."""
    memory, tiling = SharedTiles(traits), traits.tiling
    context = memory.context(tensor_products_of(p, traits), p.schedule)
    walk = traits.schedule.walk(context).located_by(pd.warpid == tiling.copying_warp)
    ring = tile_ring(traits)
    await_prerequisites(*tensors_of(p, traits))
    loading, multiplying = traits.role_registers
    with pd.warpgroup(tiling.producer, registers=loading), pd.warp(tiling.copying_warp), pd.elect():
        load_tiles(ring, TmaLoads(traits, memory), walk)
    with pd.warpgroup(*range(tiling.consumers), registers=multiplying) as consumer:
        mma, epilogue = warpgroup_mma(traits, memory, consumer.index), warpgroup_epilogue(traits, memory, consumer)
        walk = consumer_walk(traits, traits.schedule.walk(scaled_context(p, traits, context)), ring, epilogue, consumer)
        compute_tiles(ring, mma, epilogue, walk, scaled_mainloop(multiply_tiles, p, traits, consumer, p.m))


def load_tiles(ring: pd.Ring, loads: TmaLoads, walk: Walk) -> None:
    """Load the tiles of A and B of all work tiles into the ring, and wait until they have been read."""
    for work in walk.tiles(loaded_elsewhere):
        load_tile(ring, loads.of(work))
        walk.skip(work)
    ring.drain()


def load_tile(ring: pd.Ring, tile: TileLoads) -> None:
    """Load the tiles of A and B of a work tile into the ring."""
    for iteration in pd.range(tile.work.begin, tile.work.end, unroll=1):
        tile.fetch(iteration, ring.acquire(tile.bytes))
        ring.commit()


def compute_tiles(ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, multiply: Mainloop) -> None:
    """Compute and store all tiles of a consumer warpgroup, each by the mainloop `multiply`."""
    for work in walk.tiles(loaded_elsewhere):
        accumulators = multiply(ring, mma, epilogue, walk, work)
        for output in walk.complete(work, accumulators):
            epilogue(output)
    for output in walk.leftovers():
        epilogue(output)
    epilogue.finish()


def multiply_tiles(ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile) -> TileAccumulators:
    """Return the accumulators of a tile, of at least one iteration along K. The wgmmas of one slot are in flight while
    those of the next are issued; then the slot is released. `epilogue.prepare` overlaps its reads with the mainloop."""
    accumulators = mma.begin(ring.wait())
    epilogue.prepare(work)
    for _ in walk.along_k(work.iterations - 1):
        mma.multiply(accumulators, ring.wait())
        mma.wait(1)
        ring.release()
    mma.wait(0)
    ring.release()
    return accumulators


KERNELS = Kernels(gemm_kernel, warpgroup_gemm_kernel)


@public_product
def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    config: GemmConfig | Literal["tune"] | None = None,
    schedule: Schedule | None = None,
    split_k: int | None = None,
    reduction: str | None = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[Any] = NO_OPERANDS,
) -> Any:
    """Compute out = epilogue(alpha·(a @ b) + beta·c, *operands) and return out.

    a (M, K), b (K, N): float16, bfloat16, float32 (multiplied as tf32), float64, int8 or uint8, both of one type; on
        sm_90a also float8_e4m3fn and float8_e5m2 in any combination. Row-major or column-major, any leading dimension;
        what wgmma cannot read is copied to a workspace. numpy arrays run on the emulator, CUDA arrays on their GPU.
    c (M, N): added after scaling by `beta`. May be `out`, and has its type. As in BLAS, c is not read if beta is 0, nor
        are a and b if alpha is 0.
    out (M, N): allocated row-major by default. float16, bfloat16 or float32 for floating-point inputs, float64 for
        float64, int32 or one of these for integers; on sm_90a also float8 for 8- and 16-bit floating-point inputs.
    config: a GemmConfig; chosen from the shape by default. "tune" measures candidates at the first call of a shape
        class and keeps the fastest on disk.
    schedule: a threadblock swizzle of ptxdsl.schedule, a PersistentScheduler or a StreamKThreadblockSwizzle.
    split_k, reduction: the number of blocks that share the K of each tile, and how they add their partial tiles:
        "serial", "parallel", "scatter" or "cluster". The order of additions is fixed: results are reproducible.
    epilogue, operands: a function, on traced values, of one output element and one element of each operand: matrices
        (M, N), one of which may be `out`, `per_row(…)` of (M,) or `per_column(…)` of (N,).

    a (batch, M, K) and b (batch, K, N) give out (batch, M, N); a two-dimensional matrix is shared by all batches. Lists
    of equally shaped and strided matrices give a list. Raises LaunchError if the arrays do not fit each other or the
    kernel, ScheduleError if the schedule cannot run on this GPU; nothing is written then.

    >>> out = gemm(a, b, epilogue=add_relu, operands=[per_column(bias)])
    """
    options = out is None, c is None, schedule, split_k, reduction, type(split_k)
    return launch(product, KERNELS, (out, a, b, c), config, options, (alpha, beta), epilogue, operands)


gemm.kernel = gemm_kernel  # type: ignore[attr-defined]  # what `ptxdsl dump ptxdsl.kernels.gemm:gemm` shows
