"""Groups of rows on the sm_90a path against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import ragged as call
from ptxdsl.kernels.call.paths.select import grouped, trials_of_class
from ptxdsl.kernels.choose.promising import promising
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.grouped import grouped_gemm_masked, grouped_gemm_ragged
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.ragged import KERNELS, warpgroup_ragged_kernel
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import bf16, f16, f32, s8
from tests.kernels.spills import check_no_spill
from tests.kernels.test_grouped_ragged import TINY, check_ragged, ends_of, near, normal, weights
from tests.machines import MACHINES, NAMES, machine

ARCH = "sm_90a"
every_machine = pytest.mark.parametrize("name", MACHINES)
LOW = GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma")
SQUARE = GemmConfig(tile=(128, 128, 64), stages=2, atom="wgmma")
NARROW = GemmConfig(tile=(128, 48, 64), stages=2, atom="wgmma")  # no whole box
TILES = [(128, 256), (128, 192), (128, 128), (64, 256), (64, 128)]
IN_TURNS = GemmConfig(tile=(128, 80, 64), stages=2, atom="wgmma", pingpong=True)
SHARES = GemmConfig(tile=(128, 64, 64), stages=2, atom="wgmma", swap_ab=True)
STAGGERED = replace(SHARES, tile=(64, 128, 64), stagger=1)
WARPS = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=3)
ENDS = [0, 1, 1, 66, 130, 131, 131, 259, 300, 300]  # groups of 0, 1, 65, 64, 1, 0, 128, 41 and 0 rows
ROWS = 312


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has several tiles of several groups."""
    monkeypatch.setenv("PTXDSL_ARCH", ARCH)
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 3)


@every_machine
@pytest.mark.parametrize(
    "config, order",
    [
        *((LOW, "row"), (NARROW, "column"), (SQUARE, "column"), (replace(SQUARE, pingpong=True), "row")),
        *((SHARES, "column"), (STAGGERED, "column")),
    ],
    ids=["one box", "by rows", "two boxes", "in turns", "shares", "staggered"],
)
def test_groups_end_anywhere_and_no_row_is_written_by_two(name, config, order, rng):
    check_ragged(machine(name), rng, ENDS, ROWS, 136, 72, order=order, config=config)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(("inputs", "output"), [("s8", "f16"), ("u8", "s32")])
@pytest.mark.parametrize("config", [SHARES, STAGGERED], ids=["shares", "staggered"])
def test_shares_of_integers(name, inputs, output, config, rng):
    """wgmma takes fewer numbers of rows of them than of floats."""
    where, counts, (n, k) = machine(name), [40, 0, 56, 1, 104, 72, 24], (136, 144)
    ends = np.cumsum(counts).astype(np.int32)
    a, b = (rng.integers(0, 3, shape).astype(NAMES[inputs]) for shape in ((int(ends[-1]), k), (len(counts), n, k)))
    out = where.array(np.zeros((len(a), n), NAMES[output]))
    config = replace(config, tile=(*config.tile[:2], 128))
    given = where.array(a), where.array(b).swapaxes(1, 2), where.array(ends)
    values = where.values(grouped_gemm_ragged(*given, out=out, config=config))
    of_row = np.searchsorted(ends, np.arange(len(a)), side="right")
    assert np.array_equal(values, np.einsum("mk,mnk->mn", a.astype(np.float64), b.astype(np.float64)[of_row]))


@pytest.mark.exhaustive
def test_large_shares_of_integers_that_are_chosen_spill_nothing():
    tiling = WarpgroupTiling((256, 128, 128), 4, swap_ab=True, stagger=3)
    _check_resources(WarpgroupTraits(tiling, Operands(s8, bf16, batches="strided", out_boxes=True), AHEAD))


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [IN_TURNS, SHARES], ids=["in turns", "shares"])
@pytest.mark.parametrize("form", ["ragged", "masked"])
def test_groups_end_at_any_piece_of_a_tile(name, config, form, rng):
    where, counts, (n, k) = machine(name), [64, 0, 200, 1, 250, 128, 400], (136, 72)
    ends = np.cumsum(counts).astype(np.int32)
    if form == "ragged":
        check_ragged(where, rng, [int(end) for end in ends], ends[-1] + 9, n, k, order="column", config=config)
        return
    a, b = normal(rng, (len(counts), 410, k), "bf16"), weights(rng, len(counts), k, n, "column", "bf16")
    out = np.full((len(counts), 410, n), np.nan).astype(NAMES["bf16"])
    given = [where.array(x) for x in (a, b, np.array(counts, np.int32), out)]
    values = where.values(grouped_gemm_masked(*given[:3], out=given[3], config=config))
    for group, count in enumerate(counts):
        assert near(values[group, :count], a[group, :count], b[group], "bf16"), group
        assert np.isnan(values[group, count:]).all()


@every_machine
def test_a_whose_rows_lie_side_by_side_goes_another_way(name, rng):
    """A tile of them would begin at any element of a line, as a group does."""
    check_ragged(machine(name), rng, [3, 3, 70, 77], 80, 72, 136, order="row", a_order="column")
    with pytest.raises(pd.LaunchError) as caught:
        check_ragged(machine(name), rng, [3, 3, 70, 77], 80, 72, 136, order="row", a_order="column", config=LOW)
    assert caught.value.message == (
        'atom is "wgmma", and `a` is column-major: its groups start at any row, and TMA loads at multiples of 16 bytes'
    )
    assert caught.value.help == "pass a row-major `a`, or leave atom out: then they are loaded without TMA"


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(
    "config, k",
    [
        *((LOW, 136), (SQUARE, 136), (IN_TURNS, 136), (SHARES, 136), (STAGGERED, 136)),
        *((WARPS, 136), (WARPS, 69), (TINY, 34)),
    ],
    ids=["64 rows", "128 rows", "in turns", "shares", "staggered", "16 bytes", "2 bytes", "4 bytes"],
)
def test_rows_of_a_are_gathered(name, config, k, rng):
    """Some tokens are in several groups; numbers that are none of a row stand for zeros."""
    n = 136 if config is STAGGERED else 72  # of which two tiles of 128 columns are in a pair
    where, ends = machine(name), [0, 1, 66, 131, 140]
    a, b = normal(rng, (50, k), "bf16"), weights(rng, 5, k, n, "column", "bf16")
    rows = rng.integers(-1, 51, 150).astype(np.int32)
    out = np.full((150, n), np.nan).astype(NAMES["bf16"])
    given = [where.array(x) for x in (a, b, np.array(ends, np.int32), rows, out)]
    assert grouped_gemm_ragged(*given[:3], rows=given[3], out=given[4], config=config) is given[4]
    values, begin = where.values(given[4]), 0
    tokens = np.where(((rows >= 0) & (rows < 50))[:, None], a[rows.clip(0, 49)], 0).astype(a.dtype)
    for group, end in enumerate(ends):
        assert near(values[begin:end], tokens[begin:end], b[group], "bf16")
        begin = end
    assert np.isnan(values[begin:]).all()


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [LOW, SHARES, STAGGERED, WARPS], ids=["sm_90a", "shares", "staggered", "sm_80"])
@pytest.mark.parametrize("n", [72, 65])
def test_rows_of_the_output_in_any_order(name, config, n, rng):
    """Rows that no number names are not written; numbers that are none of a row are of rows that nobody wants."""
    where, ends, k = machine(name), [0, 1, 66, 131, 140], 64
    a, b = normal(rng, (150, k), "bf16"), weights(rng, 5, k, n, "column", "bf16")
    rows = rng.permutation(170)[:150].astype(np.int32) - 5
    out = np.full((160, n), np.nan).astype(NAMES["bf16"])
    given = [where.array(x) for x in (a, b, np.array(ends, np.int32), rows, out)]
    assert grouped_gemm_ragged(*given[:3], out_rows=given[3], out=given[4], config=config) is given[4]
    values, begin, written = where.values(given[4]), 0, np.zeros(160, bool)
    for group, end in enumerate(ends):
        exists = (rows[begin:end] >= 0) & (rows[begin:end] < 160)
        targets = rows[begin:end][exists]
        assert near(values[targets], a[begin:end][exists], b[group], "bf16")
        begin, written[targets] = end, True
    assert np.isnan(values[~written]).all()


@pytest.mark.exhaustive
@every_machine
def test_launches_of_which_each_reads_what_the_one_before_wrote(name, rng):
    """Blocks of a launch begin while the last ones before it still store. Permutations, so that rows stay exact."""
    where, ends, launches = machine(name), np.array([1, 66, 150], np.int32), 2 if name == "emulator" else 12
    a, orders = normal(rng, (150, 64), "f16"), [rng.permutation(64) for _ in ends]
    b = np.stack([np.eye(64, dtype=np.float16)[:, order] for order in orders])
    read, written, b, offsets = (where.array(x) for x in (a.copy(), np.zeros_like(a), b, ends))
    for _ in range(launches):
        grouped_gemm_ragged(read, b, offsets, out=written, config=LOW)
        read, written = written, read
    for group, begin in enumerate([0, *ends[:-1]]):
        for _ in range(launches):
            a[begin : ends[group]] = a[begin : ends[group], orders[group]]
    assert (where.values(read) == a).all()


@every_machine
def test_groups_of_few_rows_as_columns_of_wgmma(name, rng):
    config = replace(LOW, tile=(16, 128, 64), swap_ab=True)
    check_ragged(machine(name), rng, [0, 3, 20, 21, 60], 61, 136, 72, config=config)


@pytest.mark.exhaustive
@every_machine
def test_bfloat16_and_rows_of_the_output_at_any_address(name, rng):
    check_ragged(machine(name), rng, [1, 66, 67], 70, 65, 200, dtype="bf16", config=LOW)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(
    "output, config", [("f32", LOW), ("bf16", LOW), ("f32", IN_TURNS)], ids=["f32", "bf16", "in turns"]
)
def test_other_outputs(name, output, config, rng):
    where, ends = machine(name), [10, 75, 80]
    a, b = normal(rng, (80, 64), "f16"), weights(rng, 3, 64, 48, "column", "f16")
    out = np.full((80, 48), np.nan).astype(NAMES[output])
    given = [where.array(x) for x in (a, b, np.array(ends, np.int32), out)]
    values, begin = where.values(grouped_gemm_ragged(*given[:3], out=given[3], config=config)), 0
    for group, end in enumerate(ends):
        assert near(values[begin:end], a[begin:end], b[group], output)
        begin = end


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("inputs, depth, output", [("f32", 32, "f32"), ("s8", 128, "s32"), ("s8", 128, "f16")])
def test_inputs_of_other_types(name, inputs, depth, output, rng):
    """Small integers, whose sums are exact in all types."""
    where, config = machine(name), replace(LOW, tile=(64, 64, depth))
    a, b = (rng.integers(-3, 4, shape).astype(NAMES[inputs]) for shape in ((70, 48), (2, 40, 48)))
    b, out = b.swapaxes(1, 2), np.zeros((70, 40), NAMES[output])
    given = [where.array(x) for x in (a, b, np.array([3, 70], np.int32), out)]
    values = where.values(grouped_gemm_ragged(*given[:3], out=given[3], config=config))
    assert (values == np.concatenate([a[:3].astype(np.float64) @ b[0], a[3:].astype(np.float64) @ b[1]])).all()


@every_machine
@pytest.mark.parametrize("order", ["row", "column"])
def test_masked_rows_are_not_written(name, order, rng):
    where, counts = machine(name), np.array([0, 70, 1, 64, 65, -3, 99], np.int32)
    a, b = normal(rng, (7, 70, 72), "bf16"), weights(rng, 7, 72, 40, order, "bf16")
    out = np.full((7, 70, 40), np.nan).astype(NAMES["bf16"])
    given = [where.array(x) for x in (a, b, counts, out)]
    values = where.values(grouped_gemm_masked(*given[:3], out=given[3], config=SQUARE if order == "row" else LOW))
    for group, count in enumerate(np.clip(counts, 0, 70)):
        assert near(values[group, :count], a[group, :count], b[group], "bf16")
        assert np.isnan(values[group, count:]).all()


@every_machine
def test_offsets_that_decrease_in_more_groups_than_lanes(name, rng):
    where, groups = machine(name), 40
    offsets = rng.integers(-20, 130, groups).astype(np.int32)
    a, b = normal(rng, (100, 40), "f16"), normal(rng, (groups, 40, 24), "f16")
    out = np.full((100, 24), np.nan, np.float16)
    given = [where.array(x) for x in (a, b, offsets, out)]
    values, begin = where.values(grouped_gemm_ragged(*given[:3], out=given[3], config=LOW)), 0
    for group, end in enumerate(ends_of(offsets, 100)):
        assert near(values[begin:end], a[begin:end], b[group], "f16"), (offsets.tolist(), group)
        begin = end
    assert np.isnan(values[begin:]).all()


@every_machine
def test_one_matrix_of_b_for_all_groups(name, rng):
    where, b = machine(name), normal(rng, (64, 40), "f16")
    a, out = normal(rng, (70, 64), "f16"), np.full((70, 40), np.nan, np.float16)
    given = [where.array(x) for x in (a, np.broadcast_to(b, (2, 64, 40)), np.array([3, 70], np.int32), out)]
    assert near(where.values(grouped_gemm_ragged(*given[:3], out=given[3], config=LOW)), a, b, "f16")


@every_machine
def test_an_epilogue(name, rng):
    where, config = (
        machine(name),
        GemmConfig(tile=(64, 64, 64), stages=2, atom="wgmma", epilogue=lambda x: pd.max(x, 0)),
    )
    a, b = normal(rng, (10, 64), "f16"), normal(rng, (1, 64, 16), "f16")
    given = [where.array(x) for x in (a, b, np.array([10], np.int32))]
    expected = np.maximum(a.astype(np.float64) @ b[0].astype(np.float64), 0)
    assert np.allclose(where.values(grouped_gemm_ragged(*given, config=config)), expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("form, sizes", [("ragged", [6, 5]), ("masked", [6, 11])])
def test_a_kernel_that_validates_stops_at_sizes_that_make_no_sense(form, sizes):
    shape = (10, 8) if form == "ragged" else (2, 10, 8)
    a, b, out = np.ones(shape, np.float16), np.ones((2, 8, 8), np.float16), np.zeros(shape, np.float16)
    groups = call.ragged_groups(form, a, b, np.array(sizes, np.int32), out)
    plan = call.plan_of(KERNELS, form, groups, grouped(LOW, call.request_of(groups, form)), validate=True)
    with pytest.raises(pd.EmulationError, match="warpgroup_ragged_kernel: the kernel executed a trap, by thread"):
        plan.run()
    assert not out.any()


@pytest.mark.exhaustive
def test_warps_whose_warpgroup_lets_a_deep_tile_pass_miss_no_stage_that_is_filled_again():
    rng = np.random.default_rng(1)
    a, b = rng.integers(-2, 3, (40, 520)).astype(np.float16), rng.integers(-2, 3, (3, 8, 520)).astype(np.float16)
    ends = np.array([10, 30, 40], np.int32)
    with pd.config.using(schedule="random:1"):
        out = grouped_gemm_ragged(a, b.swapaxes(1, 2), ends, config=GemmConfig((128, 16, 64), stages=4, atom="wgmma"))
    groups = [a[first:end].astype(float) @ b[n].T for n, (first, end) in enumerate(pairwise([0, *ends]))]
    assert (np.array(out) == np.concatenate(groups)).all()


def test_blocks_take_tiles_in_turn_and_leave_the_counters_as_they_were(rng):
    """Each of 3 blocks takes one number behind the last tile."""
    a, b, out = ones(300, 64), ones(2, 64, 128), np.zeros((300, 128), np.float16)
    groups = call.ragged_groups("ragged", a, b, np.array([170, 300], np.int32), out)
    plan = call.plan_of(KERNELS, "ragged", groups, grouped(LOW, call.request_of(groups, "ragged")), validate=False)
    for _ in range(2):
        plan.run()
        assert plan.parameters.counters.tolist() == [0, 0] and (out == 64).all()
        out[:] = 0


class TestChoice:
    def chosen(self, rows, n, k, groups, form="ragged"):
        shape = (rows, k) if form == "ragged" else (groups, rows, k)
        a, b, sizes = np.zeros(shape, np.float16), np.zeros((groups, k, n), np.float16), np.zeros(groups, np.int32)
        return grouped(None, call.request_of(call.ragged_groups(form, a, b, sizes, None), form))

    @pytest.mark.parametrize("form", ["ragged", "masked"])
    def test_large_groups_go_by_warpgroups(self, form):
        traits = self.chosen(8192, 4096, 512, 4, form)
        assert isinstance(traits, WarpgroupTraits) and traits.operands.out_boxes
        assert traits.shares_rows

    @pytest.mark.parametrize("which", ["index", "out_index"])
    def test_rows_that_are_gathered_or_scattered_have_shares(self, which):
        """Of tiles so high rows are copied before."""
        a, b, sizes = np.zeros((8192, 512), np.float16), np.zeros((4, 512, 4096), np.float16), np.zeros(4, np.int32)
        groups = call.ragged_groups(
            "ragged", a, b, sizes, np.zeros((8192, 4096), np.float16), **{which: np.zeros(8192, np.int32)}
        )
        traits = grouped(None, call.request_of(groups, "ragged"))
        assert traits.shares_rows and traits.operands.out_boxes and not traits.operands.a_gathered

    def test_small_groups_go_another_way(self):
        assert not isinstance(self.chosen(64, 64, 64, 4), WarpgroupTraits)

    def test_lines_that_tensor_copies_cannot_address_go_another_way(self):
        assert not isinstance(self.chosen(2048, 1024, 513, 4), WarpgroupTraits)

    def test_other_gpus(self, monkeypatch):
        monkeypatch.setenv("PTXDSL_ARCH", "sm_90")
        assert not isinstance(self.chosen(2048, 1024, 512, 4), WarpgroupTraits)


def ones(*shape):
    return np.ones(shape, np.float16)


LEFT_OUT = "pad its leading dimension, or leave atom out: then they are loaded without TMA"
REFUSED = {
    "lines of a": (ones(64, 65), ones(1, 65, 64), "`a` has a leading dimension of 130 bytes", LEFT_OUT),
    "lines of b": (ones(64, 64), ones(1, 64, 65), "`b` has a leading dimension of 130 bytes", LEFT_OUT),
    "groups that run backwards": (
        ones(64, 64),
        ones(2, 64, 64)[::-1],
        "`b` has a leading dimension of 128 bytes, a batch stride of -8192 bytes",
        LEFT_OUT,
    ),
    "no K": (
        ones(64, 0),
        ones(1, 0, 64),
        'atom is "wgmma", and K is 0: there is nothing to multiply',
        "leave atom out",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    a, b, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(a, b, np.zeros(len(b), np.int32), config=LOW)
    assert caught.value.message.startswith(message)
    assert caught.value.help == help


def test_what_cannot_scatter():
    a, b, ends = ones(64, 64), ones(1, 64, 64), np.array([64], np.int32)
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(a, b, ends, out_rows=np.zeros(64, np.int32))
    assert caught.value.message == "`out_rows` says which rows of `out` are written, and `out` is not given"
    assert caught.value.help == "pass `out`"
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(a, b, ends, out_rows=np.zeros(63, np.int32), out=ones(64, 64))
    assert caught.value.message == "`out_rows` has 63 numbers; the product has 64 rows"
    assert caught.value.help == "pass one for each row"


def test_what_cannot_gather():
    a, b, ends = ones(64, 64), ones(1, 64, 64), np.array([64], np.int32)
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(a, b, ends, rows=np.zeros(64, np.int64))
    assert caught.value.message == "`rows` is int64 with strides of (1,) elements; it takes contiguous int32"
    assert caught.value.help == "convert it before, or make a contiguous copy"
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged(np.asfortranarray(a), b, ends, rows=np.zeros(64, np.int32))
    assert caught.value.message == "`rows` gathers rows of `a`, which is column-major: its rows are not contiguous"
    assert caught.value.help == "pass a row-major `a`, or a[rows], which copies them"


@pytest.mark.exhaustive
@pytest.mark.parametrize("output", [f16, f32])
@pytest.mark.parametrize(
    "tile, pingpong",
    [
        *((tile, False) for tile in TILES),
        ((128, 128), True),
        ((128, 192), True),
        ((64, 256), True),
        ((256, 128), False),
    ],
)
def test_kernels_that_are_chosen_spill_nothing(output, tile, pingpong):
    operands = Operands(output=output, batches="strided", out_boxes=output is f16)
    tiling = WarpgroupTiling((*tile, 64), 3, swap_ab=tile[0] > 128, pingpong=pingpong)
    _check_resources(WarpgroupTraits(tiling, operands, AHEAD))


@pytest.mark.exhaustive
def test_kernels_that_scatter_spill_nothing():
    tiling = WarpgroupTiling((256, 128, 64), 4, swap_ab=True, stagger=3)
    operands = Operands(bf16, bf16, batches="strided", out_boxes=True)
    _check_resources(WarpgroupTraits(tiling, operands, AHEAD), scatters=True)


def _check_resources(traits, **constants):
    check_no_spill(warpgroup_ragged_kernel, traits, **constants)


@pytest.mark.parametrize(
    "groups, rows, n, k, height",
    [
        *((256, 4112, 512, 7168, 16), (128, 2056, 512, 7168, 16), (64, 1028, 512, 7168, 16)),
        *((512, 8224, 512, 7168, 16), (256, 2048, 512, 7168, 16), (8, 128, 4096, 7168, 16)),
        *((256, 8192, 512, 7168, 64), (128, 2048, 1408, 2048, 64), (32, 512, 4096, 4096, 64)),
        *((64, 8192, 1408, 2048, 256), (8, 4096, 14336, 4096, 256)),
    ],
)
def test_groups_of_few_rows_stream_their_weights_by_low_tiles_where_k_is_long(groups, rows, n, k, height):
    """As was faster on an H200; arrays take no memory, as nobody writes to them."""
    a, b, out = (np.empty(shape, NAMES["bf16"]) for shape in ((rows, k), (groups, n, k), (rows, n)))
    arrays = call.ragged_groups("ragged", a, b.transpose(0, 2, 1), np.empty(groups, np.int32), out)
    assert grouped(None, call.request_of(arrays, "ragged")).tile[0] == height
    assert height in {each.config.tile[0] for each in promising(trials_of_class(call.request_of(arrays, "ragged")))}
