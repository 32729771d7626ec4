"""What schedules refuse, and the whole text in which they say so."""

import linecache

import numpy as np
import pytest

from ptxdsl.errors import Error, ScheduleError
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    Conv2dProblem,
    Conv3dProblem,
    GemvBatchedStridedThreadblockSwizzle,
    GroupedProblemVisitor,
    GroupedRowsThreadblockSwizzle,
    GroupScheduler,
    HilbertThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    SplitKIdentityThreadblockSwizzle,
    StreamKThreadblockSwizzle,
    StridedDgradIdentityThreadblockSwizzle,
    TriangularProblemVisitor,
    blocks_per_multiprocessor,
)

IDENTITY = IdentityThreadblockSwizzle(8)
TILE = (128, 128, 32)
PROBLEMS = [(512, 512, 256), (256, 384, 1024)]
PERSISTENT = PersistentScheduler().plan((512, 512, 64), TILE, 3)
STREAM_K = StreamKThreadblockSwizzle(4).plan((4, 4, 8), (1, 1, 1))


def conv(**sizes):
    return Conv2dProblem(**{"N": 1, "H": 8, "W": 8, "C": 8, "K": 8, "R": 3, "S": 3, **sizes})


REFUSALS = {
    "a problem of two sizes": (
        lambda: IDENTITY.tiled_shape((512, 512), TILE),
        "the problem has 2 sizes: (512, 512)\n  help: give it as (M, N, K)",
    ),
    "a negative size": (
        lambda: IDENTITY.tiled_shape((512, -1, 64), TILE),
        "the problem: N must be 0 or more; found -1\n  help: set N to 0 or more",
    ),
    "a size that is no integer": (
        lambda: IDENTITY.tiled_shape((512, 1.5, 64), TILE),
        "the problem: N is 1.5, which is not an integer\n  help: sizes must be integers",
    ),
    "a tile of nothing": (
        lambda: IDENTITY.tiled_shape((512, 512, 64), (128, 0, 32)),
        "the tile: N must be 1 or more; found 0\n  help: set N to 1 or more",
    ),
    "a split of K into nothing": (
        lambda: IDENTITY.tiled_shape((512, 512, 64), TILE, 0),
        "the split of K: split_k must be 1 or more; found 0\n  help: set split_k to 1 or more",
    ),
    "a strip of nothing": (
        lambda: IdentityThreadblockSwizzle(0),
        "IdentityThreadblockSwizzle: n must be 1 or more; found 0\n  help: set n to 1 or more",
    ),
    "more tiles than 32 bits count": (
        lambda: IDENTITY.tiled_shape((2**20, 2**20, 64), (16, 16, 32)),
        "65536 x 65536 x 1 tiles are 4294967296, more than 2**31\n"
        "  help: use larger tiles, or compute the problem in parts",
    ),
    "a grid that is too long": (
        lambda: HorizontalThreadblockSwizzle().grid_shape((70000, 4, 1)),
        "horizontal: the grid has 70000 blocks along y, but the limit is 65535\n"
        "  help: use larger tiles, or a schedule with its blocks along x, such as GroupedRowsThreadblockSwizzle",
    ),
    "too many slices": (
        lambda: SplitKIdentityThreadblockSwizzle(1).grid_shape((4, 4, 65536)),
        "split-k-identity: the grid has 65536 blocks along z, but the limit is 65535\n"
        "  help: split K into fewer slices; for more batches, use BatchedIdentityThreadblockSwizzle",
    ),
    "a tiled shape that would miss tiles": (
        lambda: IDENTITY.tile_offset((0, 0, 0), tiled_shape=(4, 4, 1)),
        "IdentityThreadblockSwizzle(8).tile_offset(tiled_shape=(4, 4, 1)) would miss tiles: it assumes strips of 1, but "
        "the grid of 4 x 4 tiles has strips of 4\n"
        "  help: pass log_tile=swizzle.log_tile(tiled), as for the grid",
    ),
    "a block index alone": (
        lambda: IDENTITY.tile_offset((0, 0, 0)),
        "identity: a block index alone does not determine a tile\n"
        "  help: pass log_tile=swizzle.log_tile(tiled), as for the grid",
    ),
    "an order without its shape": (
        lambda: GroupedRowsThreadblockSwizzle(8).tile_offset(3, log_tile=0),
        "grouped-rows: the order of the tiles depends on the tiled shape\n  help: pass tiled_shape=tiled",
    ),
    "a curve that is too long": (
        lambda: HilbertThreadblockSwizzle(11),
        "HilbertThreadblockSwizzle: order is 11, but the limit is 10\n"
        "  help: a square of order 10 already has 1024 tiles per side",
    ),
    "a gemv without batches": (
        lambda: GemvBatchedStridedThreadblockSwizzle().tiled_shape((1, 64, 64), (1, 32, 32, 1)),
        "the problem has 3 sizes: (1, 64, 64)\n  help: give it as (m, n, k, batch)",
    ),
    "a convolution without its operation": (
        lambda: IDENTITY.tiled_shape(conv(), TILE),
        "the GEMM of a Conv2dProblem depends on the operation\n"
        "  help: pass the operation: op='fprop', 'dgrad', 'deconv', 'wgrad'",
    ),
    "an operation that is none": (
        lambda: conv().implicit_gemm("forward"),
        "a convolution has no operation 'forward'\n  help: use one of fprop, dgrad, deconv, wgrad",
    ),
    "a gradient of groups": (
        lambda: conv(groups=2).implicit_gemm("wgrad"),
        "wgrad with 2 groups is not a single GEMM\n  help: create one problem for each group",
    ),
    "groups that do not divide": (
        lambda: conv(groups=3),
        "Conv2dProblem: 3 groups do not divide C = 8 and K = 8\n"
        "  help: C and K must be multiples of the number of groups",
    ),
    "an output that the input does not give": (
        lambda: conv(P=7),
        "Conv2dProblem: P is 7, but the input allows 0 to 6\n  help: leave P out to use 6",
    ),
    "a stride of one axis": (
        lambda: conv(stride=(2,)),
        "Conv2dProblem: stride has 1 sizes: (2,)\n  help: give it as (H, W)",
    ),
    "a negative pad": (
        lambda: conv(pad=(1, (0, -1))),
        "Conv2dProblem: pad: W after must be 0 or more; found -1\n  help: set W after to 0 or more",
    ),
    "a filter of nothing": (
        lambda: Conv3dProblem(1, 8, 8, 8, 8, 8, 0, 3, 3),
        "Conv3dProblem: T must be 1 or more; found 0\n  help: set T to 1 or more",
    ),
    "a strided dgrad of a GEMM": (
        lambda: StridedDgradIdentityThreadblockSwizzle(1).tiled_shape((64, 64, 64), TILE),
        "strided-dgrad-identity needs a convolution; found (64, 64, 64)\n  help: pass a Conv2dProblem, which has a stride",
    ),
    "a strided dgrad of fprop": (
        lambda: StridedDgradIdentityThreadblockSwizzle(1).tiled_shape(conv(), TILE, op="fprop"),
        "strided-dgrad-identity computes dgrad, not fprop\n  help: use another swizzle for fprop",
    ),
    "an empty cluster": (
        lambda: PersistentScheduler(cluster=(2, 0)),
        "the cluster: N must be 1 or more; found 0\n  help: set N to 1 or more",
    ),
    "a swizzle that is none": (
        lambda: PersistentScheduler(max_swizzle=3),
        "max_swizzle is 3\n  help: take one of 1, 2, 4, 8",
    ),
    "a raster that is none": (
        lambda: PersistentScheduler(raster="k"),
        "raster is 'k'\n  help: take \"m\", \"n\" or \"heuristic\"",
    ),
    "no multiprocessors": (
        lambda: PersistentScheduler().plan((64, 64, 64), TILE, 0),
        "the GPU: multiprocessors must be 1 or more; found 0\n  help: set multiprocessors to 1 or more",
    ),
    "a group without a raster": (
        lambda: GroupScheduler(raster="heuristic").group(PROBLEMS, TILE, 132),
        "a group of problems needs one raster for all problems\n  help: use raster=\"m\" or raster=\"n\"",
    ),
    "a group with a negative size": (
        lambda: GroupedProblemVisitor([*PROBLEMS, (64, 64, -8)], TILE, 6),
        "problem 2: K must be 0 or more; found -8\n  help: set K to 0 or more",
    ),
    "a group with a size missing": (
        lambda: GroupedProblemVisitor([*PROBLEMS, (64, 64)], TILE, 6),
        "problem 2 has 2 sizes: (64, 64)\n  help: give it as (M, N, K)",
    ),
    "a group with a fraction": (
        lambda: GroupedProblemVisitor([*PROBLEMS, (64, 0.5, 64)], TILE, 6),
        "problem 2: N is 0.5, which is not an integer\n  help: sizes must be integers",
    ),
    "an array that holds no problems": (
        lambda: GroupedProblemVisitor(np.zeros((4, 2), np.int64), TILE, 6),
        "problem 0 has 2 sizes: [0 0]\n  help: give it as (M, N, K)",
    ),
    "lists of different length": (
        lambda: GroupedProblemVisitor.of_sizes([64, 64], [64], [64, 64], TILE, 6),
        "lists of different length: 2 sizes M, 1 sizes N, 2 sizes K\n  help: give each list one size for each problem",
    ),
    "a group in no blocks": (
        lambda: GroupedProblemVisitor(PROBLEMS, TILE, 0),
        "a persistent grid: blocks must be 1 or more; found 0\n  help: set blocks to 1 or more",
    ),
    "a group with too many tiles": (
        lambda: GroupedProblemVisitor([(2**17, 2**17, 8)], (1, 1, 1), 6),
        "1 problems have 17179869184 tiles, more than 2**31\n"
        "  help: take larger tiles, or compute the problems in parts",
    ),
    "a block that is not there": (
        lambda: GroupedProblemVisitor(PROBLEMS, TILE, 6).tiles(6),
        "block 6 is out of range for 6 persistent blocks\n  help: blocks are numbered 0 to 5",
    ),
    "a block that is a word": (
        lambda: GroupedProblemVisitor(PROBLEMS, TILE, 6).tiles("a"),
        "'a' is not a block index\n  help: a block index is an integer",
    ),
    "a persistent block below 0": (
        lambda: PERSISTENT.tiles(-1),
        "block -1 is out of range for 3 persistent blocks\n  help: blocks are numbered 0 to 2",
    ),
    "a persistent block past the end": (
        lambda: PERSISTENT.tiles(np.int64(3)),
        "block 3 is out of range for 3 persistent blocks\n  help: blocks are numbered 0 to 2",
    ),
    "a persistent block that is a word": (
        lambda: PERSISTENT.tiles("a"),
        "'a' is not a block index\n  help: a block index is an integer",
    ),
    "a persistent block that is a fraction": (
        lambda: PERSISTENT.tiles(1.0),
        "1.0 is not a block index\n  help: a block index is an integer",
    ),
    "a persistent index past the end": (
        lambda: PERSISTENT.tiles((1, 0)),
        "block (1, 0) is out of range for a grid of 1 x 3 x 1\n  help: pass its linear index, or its (x, y), counted from 0",
    ),
    "a persistent index of one number": (
        lambda: PERSISTENT.tiles((0,)),
        "block (0,) is out of range for a grid of 1 x 3 x 1\n  help: pass its linear index, or its (x, y), counted from 0",
    ),
    "a persistent index of words": (
        lambda: PERSISTENT.tiles(("a", 0)),
        "block ('a', 0) is out of range for a grid of 1 x 3 x 1\n  help: pass its linear index, or its (x, y), counted from 0",
    ),
    "a block of no blocks": (
        lambda: PersistentScheduler().plan((0, 8, 8), TILE, 3).tiles(0),
        "block 0 is out of range for 0 persistent blocks\n  help: a problem without tiles has no blocks",
    ),
    "a block of a group past the end": (
        lambda: GroupScheduler().group(PROBLEMS, TILE, 3).tiles(3),
        "block 3 is out of range for 3 persistent blocks\n  help: blocks are numbered 0 to 2",
    ),
    "a cluster that does not fit": (
        lambda: PersistentScheduler((4, 1)).plan((26, 37, 8), (4, 7, 8), 3),
        "a cluster of 4 x 1 blocks needs 4 multiprocessors, but a cluster can use at most 3 of 3\n"
        "  help: use a smaller cluster, or pass the number of resident clusters: max_active_clusters=…",
    ),
    "a cluster that fits no GPU": (
        lambda: GroupScheduler((20, 1)).group(PROBLEMS, TILE, 132),
        "a cluster of 20 x 1 blocks needs 20 multiprocessors, but a cluster can use at most 18 of 132\n"
        "  help: use a smaller cluster, or pass the number of resident clusters: max_active_clusters=…",
    ),
    "fewer clusters than none": (
        lambda: PersistentScheduler().plan((64, 64, 64), TILE, 132, max_active_clusters=-1),
        "the GPU: max_active_clusters must be 0 or more; found -1\n"
        "  help: set max_active_clusters to 0 or more",
    ),
    "persistent blocks for no batches": (
        lambda: PersistentScheduler().plan((64, 64, 64), TILE, 132, batches=0),
        "the problem: batches must be 1 or more; found 0\n  help: set batches to 1 or more",
    ),
    "stream-K of no batches": (
        lambda: StreamKThreadblockSwizzle(132).plan((64, 64, 64), TILE, batches=0),
        "the problem: batches must be 1 or more; found 0\n  help: set batches to 1 or more",
    ),
    "the work of a block past the end": (
        lambda: STREAM_K.work(100),
        "block 100 is out of range for 16 blocks\n  help: blocks are numbered 0 to 15",
    ),
    "the work of a block below 0": (
        lambda: STREAM_K.work(-1),
        "block -1 is out of range for 16 blocks\n  help: blocks are numbered 0 to 15",
    ),
    "the work of a word": (
        lambda: STREAM_K.work("a"),
        "'a' is not a block index\n  help: a block index is an integer",
    ),
    "the role of a block past the end": (
        lambda: STREAM_K.role(99),
        "block 99 is out of range for 16 blocks\n  help: blocks are numbered 0 to 15",
    ),
    "a mode that is none": (
        lambda: GroupedProblemVisitor(PROBLEMS, TILE, 6, mode="gpu"),
        "mode is 'gpu'\n  help: take \"device\" or \"host\"",
    ),
    "a balance that is none": (
        lambda: GroupedProblemVisitor(PROBLEMS, TILE, 6, mode="host", balance="m"),
        "balance is 'm'\n  help: take \"k\", or leave it out",
    ),
    "a balance that the kernel cannot find": (
        lambda: GroupedProblemVisitor(PROBLEMS, TILE, 6, balance="k"),
        'balance="k" cannot be computed in the kernel: it depends on the load of all blocks\n'
        '  help: use mode="host", which passes a table to the kernel',
    ),
    "a triangle that is none": (
        lambda: TriangularProblemVisitor([(64, 64, 8)], TILE, 6, triangle="left"),
        "triangle is 'left'\n  help: take \"lower\" or \"upper\"",
    ),
    "a triangle of odd tiles": (
        lambda: TriangularProblemVisitor([(64, 64, 8)], (96, 64, 32), 6),
        "the tile is 96 x 64: the longer side must be a multiple of the shorter one\n"
        "  help: use a tile such as 128 x 64",
    ),
    "a triangle of a rectangle": (
        lambda: TriangularProblemVisitor([(64, 64, 8), (64, 32, 8)], TILE, 6),
        "problem 1 is 64 x 32, but a triangle needs a square output\n  help: use equal M and N for a rank-k update",
    ),
    "more blocks than can be resident": (
        lambda: StreamKThreadblockSwizzle(132).plan((4096, 4096, 4096), TILE, 4),
        "stream-k: 4096 blocks would wait for each other's parts, but only 132 can be resident (132 multiprocessors, 1 "
        "blocks on each)\n  help: leave split_k out, split K into fewer than 4 parts, or use SplitKIdentityThreadblockSwizzle, whose "
        "blocks wait only for blocks that started before them",
    ),
    "more multiprocessors than there are": (
        lambda: StreamKThreadblockSwizzle(132, available=133),
        "133 multiprocessors are available, but the GPU has 132\n  help: leave `available` out if all multiprocessors are available",
    ),
    "a stream-K grid without K": (
        lambda: StreamKThreadblockSwizzle(132).grid_shape((4, 4, 1)),
        "stream-k: the grid depends on K, but (4, 4, 1) is only the number of tiles\n"
        "  help: pass the plan: swizzle.grid_shape(swizzle.plan(problem, tile))",
    ),
    "a stream-K tile without its plan": (
        lambda: StreamKThreadblockSwizzle(132).tile_offset(3),
        "stream-k: the order of the tiles is part of the plan\n  help: pass tiled_shape=swizzle.plan(problem, tile)",
    ),
    "the extent of no stream-K block": (
        lambda: StreamKThreadblockSwizzle(4).plan((4, 4, 8), (1, 1, 1)).extent(0),
        "stream-k: there are no stream-K blocks, since all 16 tiles are computed whole\n  help: check plan.sk_blocks first",
    ),
    "an unknown GPU": (
        lambda: blocks_per_multiprocessor(128, 64, arch="sm_42"),
        "the limits of sm_42 are unknown\n"
        "  help: use one of sm_80, sm_86, sm_89, sm_90, sm_100, or query the driver",
    ),
    "a picture of too many tiles": (
        lambda: IDENTITY.map((512, 512, 1), (1, 1, 1)).to_svg(),
        "262144 tiles are too many for a picture; the limit is 65536\n  help: draw a smaller problem",
    ),
    "a picture of too many blocks": (
        lambda: GroupedProblemVisitor(PROBLEMS, TILE, 70000).timeline().to_svg(),
        "70000 blocks are too many for a picture; the limit is 65536\n  help: draw fewer blocks",
    ),
    "a picture of too much work": (
        lambda: GroupedProblemVisitor([(300, 300, 1)], (1, 1, 1), 4).timeline().to_text(),
        "90000 pieces of work are too many for a picture; the limit is 65536\n  help: draw a smaller problem",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_what_and_how_to_mend_it(name):
    make, text = REFUSALS[name]
    with pytest.raises(ScheduleError) as refused:
        make()
    assert f"{refused.value.message}\n  help: {refused.value.help}" == text
    assert isinstance(refused.value, Error)


PLACES = {
    "IDENTITY.tiled_shape((512, 512), TILE)": (
        "the problem has 2 sizes: (512, 512)\n"
        "  made.py:1 | IDENTITY.tiled_shape((512, 512), TILE)\n"
        "              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: give it as (M, N, K)"
    ),
    "IdentityThreadblockSwizzle(0)": (
        "IdentityThreadblockSwizzle: n must be 1 or more; found 0\n"
        "  made.py:1 | IdentityThreadblockSwizzle(0)\n"
        "              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: set n to 1 or more"
    ),
    'PersistentScheduler(raster="x")': (
        "raster is 'x'\n"
        '  made.py:1 | PersistentScheduler(raster="x")\n'
        "              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        '  help: take "m", "n" or "heuristic"'
    ),
}


@pytest.mark.parametrize("line", PLACES)
def test_a_refusal_names_the_line_of_the_caller(line):
    linecache.cache["made.py"] = (len(line), None, [line + "\n"], "made.py")
    with pytest.raises(ScheduleError) as refused:
        exec(compile(line, "made.py", "exec"), {**globals(), "__name__": "made"})
    assert str(refused.value) == PLACES[line]


def test_what_looks_odd_but_is_fine():
    assert IDENTITY.tiled_shape((np.int32(512), 0, 64), [128, 128]) == (4, 0, 1)
    assert IDENTITY.coverage((512, 0, 64), TILE) == ([], [], [], [])
    assert BatchedIdentityThreadblockSwizzle().grid_shape((1, 1, 2**20)) == (32, 1, 32768)
    assert GroupedProblemVisitor([(64, 64, 0)], TILE, 6).tiles(0) == [(0, 0, 0, 0)]
    assert PERSISTENT.tiles(np.int32(2)) == PERSISTENT.tiles((0, 2)) == PERSISTENT.tiles((0, 2, 0))
    assert STREAM_K.work(np.int64(2)) == STREAM_K.work((2,)) == STREAM_K.work((2, 0, 0))
    assert GroupScheduler().group([], TILE, 3).tiles(0) == []


def test_a_cluster_larger_than_the_gpu_takes_the_clusters_that_it_is_said_to_have():
    plan = PersistentScheduler((200, 1)).plan((26, 37, 8), (4, 7, 8), 132, max_active_clusters=1)
    tiles = [tile for block in range(plan.grid[0] * plan.grid[1]) for tile in plan.tiles(block)]
    assert plan.grid == (200, 1, 1)
    assert sorted(tiles) == [(m, n, 0) for m in range(7) for n in range(6)]
