"""Small and skinny products on the sm_90a path: A and B swapped, and blocks that share the K of a tile."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm90 import MOST_SPLIT_COLUMNS, MOST_SPLIT_INTEGERS
from ptxdsl.kernels.choose.products import choose_product
from ptxdsl.kernels.choose.rates import DEFAULT, known, rates_of
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column, per_row
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.grouped import grouped_gemm_ragged
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.one_tile import OneTile
from ptxdsl.kernels.tiles.persistent import Persistent, Strips
from ptxdsl.kernels.tiles.resolve import tile_schedule
from ptxdsl.schedule import IdentityThreadblockSwizzle, PersistentScheduler, StreamKThreadblockSwizzle
from ptxdsl.types import bf16, f16, f32, s8
from tests.kernels.placed import zeros
from tests.kernels.test_schedules import few_blocks
from tests.kernels.test_warpgroups import hopper, run
from tests.machines import MACHINES, machine

__all__ = ["few_blocks", "hopper"]  # fixtures for all tests here
every_machine = pytest.mark.parametrize("name", MACHINES)
IN_COLUMNS, PERSISTENT = IdentityThreadblockSwizzle(1), PersistentScheduler(max_swizzle=2)
SIZES = [1, 7, 16, 17, 64, 65, 127, 200]
LAYOUTS = [("row", "column", "row"), ("row", "row", "row"), ("column", "column", "row"), ("column", "row", "column")]
WAYS = ["serial", "parallel", "scatter", "cluster"]


def tiles(m, n, swap_ab=True, stages=3, schedule=IN_COLUMNS, **more):
    return GemmConfig(tile=(m, n, 64), stages=stages, atom="wgmma", swap_ab=swap_ab, schedule=schedule, **more)


@every_machine
@pytest.mark.parametrize("orders", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("tile", [(16, 64), (48, 128), (128, 64)], ids=str)
def test_swapped_tiles_at_sizes_around_them(name, tile, orders, rng):
    for _ in range(1 if name == "emulator" else 12):
        m, n, k = (int(size) for size in rng.choice(SIZES, 3))
        m, k = (m, k) if orders[0] == "row" else (m + 1, k + 1)  # a single line is contiguous both ways
        run(name, rng, m, n + (orders[1] == "column"), k, orders, config=tiles(*tile))


@every_machine
@pytest.mark.parametrize("output", ["bf16", "f32"])
@pytest.mark.parametrize("factors", [(1.0, 0.0), (-0.75, 1.5)], ids=["alone", "with c"])
def test_eight_rows(name, output, factors, rng):
    alpha, beta = factors
    run(name, rng, 5, 200, 136, inputs="bf16", output=output, alpha=alpha, beta=beta, config=tiles(8, 128))


@pytest.mark.exhaustive
@every_machine
def test_swapped_tiles_of_persistent_blocks(name, rng):
    run(name, rng, 40, 400, 200, config=tiles(32, 64, schedule=PERSISTENT))


@every_machine
@pytest.mark.parametrize("along", [per_row, per_column])
def test_operands_of_an_epilogue(name, along, rng):
    m, n, where = 20, 136, machine(name)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, 128), (128, n)))
    bias = rng.standard_normal(m if along is per_row else n).astype(np.float16)
    config = tiles(16, 64, split_k=2, reduction="cluster")
    out = gemm(where.array(a), where.array(b), epilogue=add_relu, operands=[along(where.array(bias))], config=config)
    beside = bias[:, None] if along is per_row else bias
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + beside.astype(np.float64), 0)
    assert np.allclose(where.values(out), expected, rtol=2e-3, atol=2e-2)


@every_machine
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tile, swap", [((32, 128), True), ((64, 64), False)], ids=str)
def test_blocks_share_k(name, way, tile, swap, rng):
    run(name, rng, 50, 72, 400, config=tiles(*tile, swap, split_k=3, reduction=way))


@every_machine
@pytest.mark.parametrize("way", WAYS)
def test_slices_of_k_that_would_be_empty(name, way, rng):
    """Five steps of K in four slices are two, two, one and none; one in four leaves three empty."""
    for k in (320, 8):
        run(name, rng, 16, 64, k, beta=0.5, config=tiles(16, 64, split_k=4, reduction=way))


@every_machine
@pytest.mark.parametrize("tile, swap", [((16, 64), True), ((64, 64), False)], ids=str)
@pytest.mark.parametrize("swizzle", [(4, 1), (12, 2, 3)], ids=["stream-K", "reduction blocks"])
def test_stream_k(name, tile, swap, swizzle, rng):
    blocks, *fragments = swizzle
    schedule = StreamKThreadblockSwizzle(blocks, *fragments[:1])
    run(name, rng, 40, 150, 500, config=tiles(*tile, swap, schedule=schedule))


def test_all_ways_add_in_the_order_of_k(rng):
    """To the last bit: but for the cluster, which adds the first slice to 0 as they do."""
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((9, 304), (304, 40)))
    results = [gemm(a, b, config=tiles(16, 64, split_k=3, reduction=way)) for way in WAYS]
    assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(
    "how",
    [
        {"config": tiles(16, 64, split_k=3, reduction="cluster")},
        {"config": tiles(64, 64, False, split_k=3, reduction="scatter")},
        {"config": tiles(64, 64, False, split_k=3, reduction="parallel")},
        {"config": tiles(64, 64, False, schedule=StreamKThreadblockSwizzle(4))},
        {"config": tiles(128, 48, False, schedule=Strips())},
        {},
    ],
    ids=["cluster", "scatter", "parallel", "stream-K", "strips", "chosen"],
)
def test_runs_do_not_differ_by_a_bit(name, how, rng):
    where = machine(name)
    a, b = (where.array(rng.standard_normal(shape).astype(np.float16)) for shape in ((100, 904), (72, 904)))
    first, *others = (where.values(gemm(a, b.T, **how)) for _ in range(2 if name == "emulator" else 50))
    assert all(np.array_equal(first.view(np.uint16), other.view(np.uint16)) for other in others)


@every_machine
def test_groups_of_few_rows(name, rng):
    where, ends = machine(name), np.array([3, 3, 20, 21, 50], np.int32)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((50, 200), (5, 136, 200)))
    config = GemmConfig(tile=(16, 128, 64), stages=3, atom="wgmma", swap_ab=True)
    out = grouped_gemm_ragged(where.array(a), where.array(b.swapaxes(1, 2)), where.array(ends), config=config)
    expected = [
        row.astype(np.float64) @ b[ends.searchsorted(n, "right")].astype(np.float64).T for n, row in enumerate(a)
    ]
    assert np.allclose(where.values(out), expected, rtol=2e-3, atol=2e-2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("types", [(bf16, f32), (s8, f16)], ids=str)
@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize("way, slices", [("cluster", 7), ("scatter", 2)])
def test_the_widest_kernels_that_share_k_spill_nothing(types, swap, way, slices):
    operands = Operands(*types, c="separate")
    widest = MOST_SPLIT_INTEGERS if types[0] is s8 else MOST_SPLIT_COLUMNS
    tile = (widest, 128) if swap else (128, widest)
    config = GemmConfig(
        (*tile, 128 // types[0].bytes), stages=3, atom="wgmma", swap_ab=swap, split_k=slices, reduction=way,
        schedule=IdentityThreadblockSwizzle(1),
    )  # fmt: skip
    resources = warpgroup_gemm_kernel.resources("sm_90a", traits=config.traits(operands, "sm_90a"))
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0


def test_sums_of_a_cluster_have_room_behind_the_ring():
    """Four groups of warps, of 4096 bytes each: two for each of two blocks, and as much for the third of three."""
    for slices, bytes in ((2, 16384), (3, 24576)):
        traits = tiles(64, 64, False, 2, split_k=slices, reduction="cluster").traits(Operands(f16, f16), "sm_90a")
        assert traits.staged_at - traits.exchanged_at == bytes


REFUSED = {
    "rows": (lambda: tiles(24, 64), "GemmConfig: tile is (24, 64, 64); with swapped wgmma its M is 8 or a multiple of 16, 256 at most"),
    "columns": (lambda: tiles(16, 96), "GemmConfig: tile is (16, 96, 64); with swapped wgmma its N is 64, 128 or 192"),
    "no bool": (lambda: tiles(16, 64, 1), "GemmConfig: swap_ab is 1; it takes True or False"),
    "swapped mma.sync": (
        lambda: GemmConfig(swap_ab=True),
        "GemmConfig: swap_ab is True; only wgmma takes the transposes of A and B",
    ),
    "a cluster of mma.sync": (
        lambda: GemmConfig(split_k=2, reduction="cluster"),
        'GemmConfig: reduction is "cluster"; only blocks of "wgmma" add up in the shared memory of a cluster',
    ),
    "a large cluster": (
        lambda: tiles(16, 64, split_k=9, reduction="cluster"),
        'GemmConfig: split_k is 9, and reduction is "cluster", of 8 blocks at most',
    ),
    "eight rows of a column-major a": (
        lambda: gemm(np.zeros((64, 8), np.float16).T, np.zeros((64, 64), np.float16), config=tiles(8, 64)),
        "GemmConfig: tile is (8, 64, 64), and `a` is column-major: TMA would load lines of 16 bytes, and "
        "swizzle 32 or more",
    ),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    call, message = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        call()
    assert caught.value.message == message


class TestChoice:
    def chosen(self, m, n, k, **how):
        a, b = zeros(m, k, np.float16), zeros(n, k, np.float16).T
        return GemmPlanner(problem_of(a, b, None, None, 0.0), GemmOptions(**how)).traits()

    @pytest.mark.parametrize("m", [1, 16, 32])
    def test_few_rows_are_swapped(self, m):
        traits = self.chosen(m, 7168, 16384)
        assert traits.tiling.swap_ab
        assert traits.tile[0] == max(8, m)

    def test_few_tiles_share_k_in_clusters(self):
        traits = self.chosen(16, 2112, 7168)
        assert traits.schedule.cluster == (1, 1, traits.schedule.slices)

    def test_tiles_that_fill_the_gpu(self):
        assert self.chosen(512, 7168, 16384).tile == (128, 224, 64)

    @pytest.mark.parametrize("sizes", [(0, 64, 64), (64, 0, 64), (64, 64, 0)])
    def test_nothing_to_compute(self, sizes):
        facts = ProductFacts(*sizes, 1, Operands())
        assert choose_product(facts, rates_of()).tile[0] <= 64

    def test_batches_do_not_share_k(self):
        a, b = np.zeros((2, 16, 8192), np.float16), np.zeros((2, 512, 8192), np.float16).swapaxes(1, 2)
        traits = GemmPlanner(problem_of(a, b, None, None, 0.0), GemmOptions()).traits()
        assert traits.schedule.cluster is None and not traits.schedule.shares

    def test_a_schedule_of_the_caller_replaces_what_is_chosen(self):
        a = np.zeros((16, 4096), ml_dtypes.float8_e4m3fn)
        traits = GemmPlanner(
            problem_of(a, np.zeros((64, 4096), a.dtype).T, None, None, 0.0), GemmOptions(schedule=PERSISTENT)
        ).traits()
        assert traits.schedule == Persistent(PERSISTENT)

    @pytest.mark.parametrize(
        "how",
        [
            {"split_k": 4},
            {"split_k": 3, "reduction": "cluster"},
            {"split_k": 2, "reduction": "scatter"},
            {"split_k": 2, "reduction": "serial"},
            {"schedule": PersistentScheduler()},
            {"schedule": ROWS_OF_EIGHT},
            {"schedule": StreamKThreadblockSwizzle(132)},
        ],
        ids=str,
    )
    def test_what_the_caller_says_of_blocks_goes_by_wgmma_too(self, how):
        """512 × 4096 × 7168: mma.sync takes twice the time, whoever shares what."""
        traits = self.chosen(512, 4096, 7168, **how)
        assert isinstance(traits, WarpgroupTraits)
        swizzle = how.get("schedule", traits.schedule.order if "split_k" in how else None)
        reduction = how.get("reduction", "parallel")
        assert traits.schedule == tile_schedule(swizzle, how.get("split_k", 1), reduction)

    @pytest.mark.parametrize(
        "how", [{"schedule": StreamKThreadblockSwizzle(132, 4)}, {"schedule": OneTile(ROWS_OF_EIGHT)}]
    )
    def test_what_does_not_fit_goes_by_mma_sync(self, how):
        """Four blocks of stream-K a multiprocessor cannot be resident with the rings of wgmma; a TileSchedule may be
        written for one path."""
        assert isinstance(self.chosen(512, 4096, 7168, **how), WarpTraits)

    def test_wide_tiles_do_not_share_k(self):
        assert self.chosen(2048, 2048, 2048).tile == (128, 256, 64)
        assert self.chosen(2048, 2048, 2048, split_k=2).tile[1] <= MOST_SPLIT_COLUMNS

    @every_machine
    @pytest.mark.parametrize(
        "how", [{"split_k": 2}, {"split_k": 2, "reduction": "cluster"}, {"schedule": ROWS_OF_EIGHT}]
    )
    def test_what_the_caller_says_is_right(self, name, how, rng):
        where = machine(name)
        a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 520), (136, 520)))
        out = gemm(where.array(a), where.array(b).T, **how)
        expected = a.astype(np.float64) @ b.astype(np.float64).T
        assert np.allclose(where.values(out), expected, rtol=2e-3, atol=5e-2)

    @pytest.mark.exhaustive
    @every_machine
    def test_what_is_chosen_is_right(self, name, rng):
        for m, n, k in ((3, 72, 600), (70, 136, 264)):
            run(name, rng, m, n, k)


def test_rates_of_a_faster_gpu():
    rates = known()[DEFAULT].sm90
    faster = rates.on(2.0, 4.0)
    assert (faster.narrow, faster.load) == (rates.narrow / 2, rates.load * 2)
    assert (faster.dram, faster.latency) == (rates.dram * 4, rates.latency)
