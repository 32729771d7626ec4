"""The same schedules inside of a kernel, on the emulator: the same tiles as on the host."""

from math import prod

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ptr, s32, u32
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    ClusterRaster,
    GroupedProblemVisitor,
    GroupedRowsThreadblockSwizzle,
    HilbertThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityNoPaddingThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    SplitKHorizontalThreadblockSwizzle,
    SplitKIdentityThreadblockSwizzle,
    StreamKNumbers,
    StreamKThreadblockSwizzle,
    ThreadblockSwizzle,
    slice_of_k,
    tile_of,
)
from ptxdsl.schedule.stream_k import StreamKPlan
from tests.schedule.test_swizzle import SOUND, named
from tests.schedule.vectors import load


def number_of_block():
    return (pd.ctaid.z * pd.nctaid.y + pd.ctaid.y) * pd.nctaid.x + pd.ctaid.x


def write(out, values):
    """One row of `out` for each block."""
    row = number_of_block() * len(values)
    for i, value in enumerate(values):
        out[row + i] = value


@pd.kernel
def by_log_tile(out: ptr[u32], log: u32, *, swizzle: ThreadblockSwizzle):
    write(out, swizzle.tile_offset(pd.ctaid, log_tile=log))


@pd.kernel
def by_known_log_tile(out: ptr[u32], *, swizzle: ThreadblockSwizzle, log: int):
    write(out, swizzle.tile_offset(pd.ctaid, log_tile=log))


@pd.kernel
def by_tiled_shape(out: ptr[u32], m: u32, n: u32, k: u32, *, swizzle: ThreadblockSwizzle):
    write(out, swizzle.tile_offset(pd.ctaid, tiled_shape=(m, n, k)))


def rows_of(kernel, grid, *arguments, width=3, **constants):
    out = np.zeros((prod(grid), width), np.uint32)
    kernel[grid, 1](out, *arguments, **constants)
    return out


@pytest.mark.parametrize("row", [row for row in SOUND if row["ctas"] <= 200], ids=lambda row: str(row["problem"]))
def test_a_kernel_finds_the_tiles_of_cutlass(row):
    swizzle, grid = named(row["swizzle"], row["N"]), tuple(row["grid"])
    traced = rows_of(by_log_tile, grid, row["log_tile"], swizzle=swizzle)
    known = rows_of(by_known_log_tile, grid, swizzle=swizzle, log=row["log_tile"])
    by_shape = rows_of(by_tiled_shape, grid, *row["tiled_shape"], swizzle=swizzle)
    expected = swizzle.map(row["problem"], row["tile"], row["split_or_batch"]).offsets
    for found in (traced, known, by_shape):
        assert found.tolist() == expected.tolist()
    numbers = {tuple(map(int, b)): i for i, b in enumerate(np.argwhere(np.ones(grid[::-1]))[:, ::-1])}
    for block, tile in row["block_to_tile"]:
        assert traced[numbers[tuple(block)]].tolist() == tile


@pytest.mark.parametrize(
    "swizzle",
    [
        IdentityThreadblockSwizzle(8),
        IdentityNoPaddingThreadblockSwizzle(8),
        SplitKIdentityThreadblockSwizzle(4),
        HorizontalThreadblockSwizzle(),
        SplitKHorizontalThreadblockSwizzle(),
        BatchedIdentityThreadblockSwizzle(),
        GroupedRowsThreadblockSwizzle(3),
        HilbertThreadblockSwizzle(2),
    ],
    ids=lambda swizzle: swizzle.name,
)
@pytest.mark.parametrize("tiled", [(1, 1, 1), (5, 7, 2), (9, 6, 1), (4, 8, 1)], ids=str)
def test_a_kernel_finds_the_tiles_of_the_host(swizzle, tiled):
    mapped = swizzle.map((tiled[0], tiled[1], 1), (1, 1, 1), tiled[2])
    found = rows_of(by_tiled_shape, mapped.grid, *tiled, swizzle=swizzle)
    assert found.tolist() == mapped.offsets.tolist()


@pd.kernel
def shapes(out: ptr[u32], m: u32, n: u32, k: u32, *, swizzle: ThreadblockSwizzle):
    write(out, swizzle.grid_shape(swizzle.tiled_shape((m, n, k), (128, 64, 32))))


def test_a_kernel_finds_its_own_grid():
    for swizzle in (IdentityThreadblockSwizzle(8), GroupedRowsThreadblockSwizzle(8), HorizontalThreadblockSwizzle()):
        tiled = swizzle.tiled_shape((1000, 700, 64), (128, 64, 32))
        assert rows_of(shapes, (1, 1, 1), 1000, 700, 64, swizzle=swizzle).tolist() == [list(swizzle.grid_shape(tiled))]


@pd.kernel
def slices_of_k(out: ptr[u32], k: u32):
    write(out, slice_of_k(pd.ctaid.x, pd.nctaid.x, k, 32))


def test_a_kernel_finds_its_slice_of_k():
    for slices, k in ((3, 1000), (7, 65), (4, 0)):
        found = rows_of(slices_of_k, (slices, 1, 1), k, width=2)
        assert found.tolist() == [list(slice_of_k(number, slices, k, 32)) for number in range(slices)]


@pd.kernel
def raster_tiles(out: ptr[u32], log: u32, m: u32, n: u32, *, shape: tuple, along: str):
    raster = ClusterRaster(shape, along, log, (m, n))
    write(out, raster.tile(pd.ctaid.x))


@pytest.mark.parametrize("row", [row for row in load("swizzle_sm90_static") if row.get("linear_to_mnl")], ids=str)
def test_a_kernel_walks_clusters_as_cutlass_does(row):
    along = {"AlongM": "m", "AlongN": "n"}[row["raster_used"]]
    arguments = row["log_swizzle"], *row["padded_clusters"][:2]
    items = row["blocks_per_problem"] // row["problem_mnl"][2]
    found = rows_of(raster_tiles, (items, 1, 1), *arguments, width=2, shape=tuple(row["cluster"]), along=along)
    assert found.tolist() == [tile[:2] for tile in row["linear_to_mnl"][:items]]


@pd.kernel
def persistent_tiles(out: ptr[u32], items: u32, *, scheduler: PersistentScheduler, tiled: tuple):
    """Each block marks the tiles that it computes with its number + 1."""
    raster = scheduler.cluster_raster(*tiled)
    for item in pd.range(pd.ctaid.x, items, pd.nctaid.x):
        m, n = raster.tile(item)
        with pd.if_((m < tiled[0]) & (n < tiled[1])):
            out[m * tiled[1] + n] = out[m * tiled[1] + n] + (pd.ctaid.x + 1)


def test_persistent_blocks_of_a_kernel_do_the_tiles_of_the_host():
    scheduler = PersistentScheduler(max_swizzle=4, raster="m")
    plan = scheduler.plan((5, 7, 1), (1, 1, 1), 6)
    out = np.zeros((5, 7), np.uint32)
    persistent_tiles[plan.grid, 1](out, plan.items, scheduler=scheduler, tiled=(5, 7))
    for block in range(prod(plan.grid)):
        assert {(m, n) for m, n, _ in plan.tiles(block)} == set(map(tuple, np.argwhere(out == block + 1).tolist()))


@pd.kernel
def stream_k_extents(out: ptr[u32], *, plan: StreamKPlan):
    block = plan.mapped(pd.ctaid.x)
    write(out, (block, *plan.extent(block), *plan.tile_offset(block)))


@pytest.mark.parametrize(
    "problem, occupancy, split_k", [((10, 12, 24), 2, 1), ((4, 5, 60), 1, 1), ((4, 4, 9), 2, 2), ((1, 3, 16), 3, 1)]
)
def test_stream_k_blocks_of_a_kernel_do_the_iterations_of_the_host(problem, occupancy, split_k):
    plan = StreamKThreadblockSwizzle(16, occupancy).plan(problem, (1, 1, 1), split_k)
    assert plan.sk_blocks
    found = rows_of(stream_k_extents, (plan.sk_blocks, 1, 1), width=5, plan=plan)
    numbers = map(plan.mapped, range(plan.sk_blocks))
    assert found.tolist() == [[b, *plan.extent(b), *plan.tile_offset(b)] for b in numbers]


PlanNumbers = pd.Parameters.of("PlanNumbers", **dict.fromkeys(StreamKNumbers._fields, u32))


def numbers_in(p):
    """The numbers of a plan in a kernel that is given them."""
    return StreamKNumbers(*(getattr(p, name) for name in StreamKNumbers._fields))


@pd.kernel
def stream_k_by_numbers(out: ptr[u32], p: PlanNumbers):
    """Everything that a kernel asks of a plan, of which it knows nothing while it is traced."""
    plan = numbers_in(p)
    block = plan.mapped(pd.ctaid.x)
    share = plan.share(block)
    has, is_stream_k = (pd.select(p, pd.cast(1, u32), 0) for p in (plan.has(share, share.tile), share.is_stream_k))
    of_tile = *plan.tile_offset(share.tile), *plan.part(share, share.tile), plan.following(share, share.tile)
    write(out, (block, is_stream_k, share.tile, share.count, has, *of_tile))


@pytest.mark.parametrize("problem", [(3, 7, 20), (2, 2, 60), (16, 8, 12), (5, 4, 0), (1, 1, 12)], ids=str)
@pytest.mark.parametrize("gpu", [(3, 1), (6, 3), (12, 2)], ids=str)
def test_a_kernel_finds_its_share_by_the_numbers_of_a_plan(problem, gpu):
    plan = StreamKThreadblockSwizzle(*gpu, fragments=2).plan(problem, (1, 1, 1))
    found = rows_of(stream_k_by_numbers, plan.grid, PlanNumbers(**plan.numbers._asdict()), width=10).tolist()
    for block, (mapped, is_stream_k, tile, count, has, m, n, begin, end, following) in enumerate(found):
        share = plan.numbers.share(plan.mapped(block))
        assert (mapped, is_stream_k, count) == (plan.mapped(block), share.is_stream_k, share.count)
        if count:
            assert (tile, m, n) == (share.tile, *plan.tile_offset(share.tile))
            assert has == plan.numbers.has(share, share.tile)
            assert (begin, end) == plan.numbers.part(share, share.tile)
            assert following == plan.numbers.following(share, share.tile) % 2**32


@pd.kernel
def stream_k_peers(out: ptr[u32], p: PlanNumbers):
    write(out, numbers_in(p).peers(pd.ctaid.x))


def test_a_kernel_finds_the_peers_of_a_tile_by_the_numbers_of_a_plan():
    for problem, gpu in (((3, 7, 20), (5, 1)), ((2, 2, 60), (6, 3)), ((1, 2, 20), (6, 2))):
        plan = StreamKThreadblockSwizzle(*gpu).plan(problem, (1, 1, 1))
        found = rows_of(stream_k_peers, (plan.sk_tiles, 1, 1), PlanNumbers(**plan.numbers._asdict()), width=2).tolist()
        assert found == [[plan.peers(tile)[0], plan.peers(tile)[-1]] for tile in range(plan.sk_tiles)]


@pd.kernel
def raster_along_either(out: ptr[u32], log: u32, m: u32, n: u32, is_m: u32, *, shape: tuple):
    write(out, ClusterRaster(shape, is_m == 1, log, (m, n)).tile(pd.ctaid.x))


@pytest.mark.parametrize("raster", ["m", "n"])
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2)], ids=str)
def test_the_axis_of_a_raster_may_be_a_number_of_the_kernel(raster, cluster):
    made = PersistentScheduler(cluster, 4, raster).cluster_raster(9, 7)
    numbers = made.log, *made.clusters, int(raster == "m")
    found = rows_of(raster_along_either, (made.items, 1, 1), *numbers, width=2, shape=cluster)
    assert found.tolist() == [list(made.tile(item)) for item in range(made.items)]


def scan(value):
    """The sum of this lane's value and those of all lanes before it."""
    total = pd.var(s32, value)
    for distance in (1, 2, 4, 8, 16):
        before = pd.ptx.shfl.sync.up.b32(total, distance, 0, 0xFFFFFFFF).bitcast(s32)
        total += pd.select(pd.laneid >= distance, before, 0)
    return total


@pd.kernel
def device_visitor(sizes: ptr[s32], count: s32, out: ptr[s32], lengths: ptr[s32], entries: s32, *, tile: tuple):
    """As a grouped kernel with mode="device": a warp finds its problem among 32 at a time."""
    lane, index = pd.laneid.to(s32), pd.var(s32, pd.ctaid.x.to(s32))
    first, base, done = pd.var(s32, 0), pd.var(s32, 0), pd.var(s32, 0)
    with pd.while_(lambda: first < count):
        problem = first + lane
        tiles, width = pd.var(s32, 0), pd.var(s32, 1)
        with pd.if_(problem < count):
            width.set((sizes[problem * 3 + 1] + (tile[1] - 1)) // tile[1])
            tiles.set((sizes[problem * 3] + (tile[0] - 1)) // tile[0] * width)
        end = base + scan(tiles)
        last = pd.ptx.shfl.sync.idx.b32(end, 31, 31, 0xFFFFFFFF).bitcast(s32)
        with pd.while_(lambda: index < last):
            before = pd.ptx.popc.b32(pd.ptx.vote.sync.ballot.b32(end <= index, 0xFFFFFFFF))
            start = pd.ptx.shfl.sync.idx.b32(end - tiles, before, 31, 0xFFFFFFFF).bitcast(s32)
            across = pd.ptx.shfl.sync.idx.b32(width, before, 31, 0xFFFFFFFF).bitcast(s32)
            m, n = tile_of(index - start, across)
            row = (pd.ctaid.x.to(s32) * entries + done) * 4
            with pd.if_(lane == 0):
                for i, value in enumerate((first + before.to(s32), index - start, m, n)):
                    out[row + i] = value
            done += 1
            index += pd.nctaid.x.to(s32)
        base.set(last)
        first += 32
    lengths[pd.ctaid.x] = done


@pytest.mark.parametrize(
    "row", [row for row in load("grouped_visitor") if row["kind"] == "gemm"], ids=lambda r: r["label"]
)
def test_a_warp_finds_the_tiles_of_the_host(row):
    visitor = GroupedProblemVisitor(row["problems"], row["threadblock"], row["blocks"])
    entries = -(-visitor.total // row["blocks"])
    out, lengths = np.full((row["blocks"], entries, 4), -1, np.int32), np.zeros(row["blocks"], np.int32)
    sizes = visitor.problems.astype(np.int32)
    device_visitor[row["blocks"], 32](sizes, len(sizes), out, lengths, entries, tile=tuple(row["threadblock"]))
    for block in range(row["blocks"]):
        assert list(map(tuple, out[block, : lengths[block]].tolist())) == visitor.tiles(block)


@pd.kernel
def host_visitor(table: ptr[s32], sizes: ptr[s32], out: ptr[s32], total: s32, entries: s32, *, tile: tuple):
    """As a grouped kernel with mode="host": the i-th entry of a block is for tile `block + i * blocks`."""
    for i in pd.range(entries):
        index = pd.ctaid.x.to(s32) + i * pd.nctaid.x.to(s32)
        with pd.if_(index < total):
            entry = (pd.ctaid.x.to(s32) * entries + i) * 2
            problem = table[entry]
            number = index - table[entry + 1]
            m, n = tile_of(number, (sizes[problem * 3 + 1] + (tile[1] - 1)) // tile[1])
            for j, value in enumerate((problem, number, m, n)):
                out[entry * 2 + j] = value


@pytest.mark.parametrize("sort", [False, True])
def test_a_kernel_reads_the_tiles_of_the_host_from_the_table(sort):
    row = load("grouped_visitor")[2]
    visitor = GroupedProblemVisitor(row["problems"], row["threadblock"], row["blocks"], mode="host", sort=sort)
    entries = visitor.table.shape[1]
    out = np.full((row["blocks"], entries, 4), -1, np.int32)
    sizes = visitor.problems.astype(np.int32)
    arguments = visitor.table, sizes, out, visitor.total, entries
    host_visitor[row["blocks"], 1](*arguments, tile=tuple(row["threadblock"]))
    for block in range(row["blocks"]):
        tiles = visitor.tiles(block)
        assert list(map(tuple, out[block, : len(tiles)].tolist())) == tiles
        assert (out[block, len(tiles) :] == -1).all()


def test_a_known_log_tile_costs_no_more_than_shifts_and_a_mask():
    text = by_known_log_tile.ptx(arch="sm_80", swizzle=IdentityThreadblockSwizzle(4), log=2)
    assert "selp" not in text and "div" not in text and "rem" not in text
