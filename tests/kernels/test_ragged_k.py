"""Products along groups of rows against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import ragged_k as call
from ptxdsl.kernels.call.paths.select import grouped
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.grouped import grouped_gemm_ragged_k
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.ragged_k import KERNELS, warpgroup_ragged_k_kernel
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import bf16, f32
from tests.kernels.spills import check_no_spill
from tests.kernels.test_grouped_ragged import ends_of, near, normal
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=3)
LOW = GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma")
SQUARE = GemmConfig(tile=(128, 128, 64), stages=2, atom="wgmma")
OFFSETS = [0, 1, 1, 66, 130, 200, 200]  # groups of 0, 1, 0, 65, 64, 70 and 0 rows
ROWS = 210


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has tiles of several groups."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 3)


def reference(a, b, offsets):
    """What `grouped_gemm_ragged_k` computes."""
    ends = ends_of(np.array(offsets), len(a))
    parts = zip(np.append(0, ends[:-1]), ends, strict=True)
    return [(a[begin:end], b[begin:end]) for begin, end in parts]


def check(where, rng, offsets, rows, m, n, *, orders=("row", "row"), dtype="f16", output=None, **options):
    a, b = (
        normal(rng, (rows, extent), dtype) if order == "row" else normal(rng, (extent, rows), dtype).T
        for extent, order in zip((m, n), orders, strict=True)
    )
    a[offsets[-1] :] = np.nan  # rows of no group are not read
    out = np.full((len(offsets), m, n), np.nan).astype(NAMES[output or dtype])
    given = [where.array(x) for x in (a, b, np.array(offsets, np.int32), out)]
    assert grouped_gemm_ragged_k(*given[:3], out=given[3], **options) is given[3]
    values = where.values(given[3])
    for group, (x, y) in enumerate(reference(a, b, offsets)):
        assert near(values[group], x.T, y, output or dtype), group


@every_machine
@pytest.mark.parametrize("orders", [("row", "row"), ("column", "row"), ("row", "column")], ids="-".join)
def test_groups_of_any_number_of_rows(name, orders, rng):
    check(machine(name), rng, OFFSETS, ROWS, 72, 40, orders=orders, config=SMALL)


@every_machine
@pytest.mark.parametrize(
    "config, dtype, output",
    [(LOW, "f16", "f16"), (SQUARE, "bf16", "f32"), (replace(SQUARE, stages=4, stagger=3), "f16", "f16")],
)
def test_groups_by_warpgroups(name, config, dtype, output, rng):
    """Rows of the next group are not added up, whatever they are."""
    check(machine(name), rng, OFFSETS, ROWS, 72, 40, dtype=dtype, output=output, config=config)


WAYS = {
    "warps": (SMALL, "f16", "f16"),
    "warps, f64": (GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=2), "f64", "f64"),
    "warps, s8 to s32": (None, "s8", "s32"),
    "boxes": (LOW, "bf16", "bf16"),
    "staggered boxes": (replace(SQUARE, stages=4, stagger=3), "f16", "f16"),
    "C in registers": (replace(SQUARE, tile=(128, 256, 64), stages=3, stagger=2), "f16", "f16"),
    "f32": (SQUARE, "bf16", "f32"),
}


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("lies", ["in place", "separate", "a line apart", "anywhere"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_added(name, way, lies, rng):
    """C is the output, or lies as it does, or with lines of its own, which tensor copies take or not."""
    (config, dtype, output), where, (m, n) = WAYS[way], machine(name), (72, 264)
    a, b = (rng.integers(-2, 3, (ROWS, extent)).astype(NAMES[dtype]) for extent in (m, n))
    wide = rng.integers(-3, 4, (len(OFFSETS), m, n + {"a line apart": 8, "anywhere": 1}.get(lies, 0)))
    c, offsets = where.array(wide.astype(NAMES[output]))[:, :, :n], np.array(OFFSETS, np.int32)
    before = where.values(c).astype(np.float64)
    out = c if lies == "in place" else where.array(np.full((len(OFFSETS), m, n), 77).astype(NAMES[output]))
    given = [where.array(x) for x in (a, b, offsets)]
    assert grouped_gemm_ragged_k(*given, c, out=out, alpha=2, beta=-3, config=config) is out
    for group, (x, y) in enumerate(reference(a.astype(np.float64), b.astype(np.float64), offsets)):
        exact = (2 * (x.T @ y) - 3 * before[group]).astype(NAMES[output])
        assert np.array_equal(where.values(out)[group], where.values(where.array(exact))), group


@every_machine
@pytest.mark.parametrize("config", [SMALL, LOW], ids=["warps", "warpgroups"])
def test_gradients_that_add_up_call_after_call(name, config, rng):
    """As those of parts of a batch do; a beta of 0 does not read C, whatever is in it."""
    where, parts = machine(name), [rng.integers(-2, 3, (2, 50, 24)).astype(np.float16) for _ in range(3)]
    out, ends = where.array(np.full((2, 24, 24), np.nan, np.float16)), where.array(np.array([20, 50], np.int32))
    for number, (a, b) in enumerate(parts):
        grouped_gemm_ragged_k(where.array(a), where.array(b), ends, out, out=out, beta=min(number, 1), config=config)
    exact = sum(np.stack([a[rows].T @ b[rows] for rows in (slice(20), slice(20, 50))]) for a, b in parts)
    assert np.array_equal(where.values(out), exact)


@every_machine
@pytest.mark.parametrize("config, groups", [(SMALL, 34), (LOW, 14)], ids=["lanes", "versions of maps"])
def test_more_groups_than(config, groups, name, rng):
    check(machine(name), rng, [*range(groups)], 40, 8, 8, config=config)


@every_machine
@pytest.mark.parametrize("inputs", ["f32", "s8"])
def test_other_types_go_another_way(name, inputs, rng):
    where, (a, b) = machine(name), (rng.integers(-3, 4, (50, n)).astype(NAMES[inputs]) for n in (24, 16))
    given = [where.array(x) for x in (a, b, np.array([20, 50], np.int32))]
    values = where.values(grouped_gemm_ragged_k(*given))
    exact = a.astype(np.float64), b.astype(np.float64)
    assert (values[0] == exact[0][:20].T @ exact[1][:20]).all() and (values[1] == exact[0][20:].T @ exact[1][20:]).all()


@every_machine
@pytest.mark.parametrize("config", [SMALL, LOW], ids=["warps", "warpgroups"])
def test_offsets_that_decrease_or_run_past_the_rows(name, config, rng):
    where, offsets = machine(name), np.array([-4, 30, 20, 99], np.int32)
    a, b = normal(rng, (50, 16), "f16"), normal(rng, (50, 8), "f16")
    values = where.values(grouped_gemm_ragged_k(*[where.array(x) for x in (a, b, offsets)], config=config))
    assert all(near(values[g], x.T, y, "f16") for g, (x, y) in enumerate(reference(a, b, offsets)))


@every_machine
@pytest.mark.parametrize("m, n", [(41, 9), (16, 3)])
def test_a_single_row_of_any_length_by_warpgroups(name, m, n, rng):
    """It has no next one, so that tensor copies take it whatever the distance to that would be."""
    check(machine(name), rng, [0, 1], 1, m, n, config=LOW)


@every_machine
def test_no_rows_at_all_are_zeros(name):
    where = machine(name)
    given = np.zeros((0, 8), np.float16), np.zeros((0, 16), np.float16), np.zeros(2, np.int32)
    assert not where.values(grouped_gemm_ragged_k(*[where.array(x) for x in given])).any()


def ones(*shape):
    return np.ones(shape, np.float16)


class TestChoice:
    def chosen(self, rows, m, n, dtype=np.float16):
        groups = call.ragged_k_groups(
            np.ones((rows, m), dtype), np.ones((rows, n), dtype), np.zeros(4, np.int32), None, None, 0.0
        )
        return grouped(None, call.request_of(groups))

    def test_large_outputs_go_by_warpgroups_that_end_tiles_one_after_the_other(self):
        traits = self.chosen(4096, 1024, 2048)
        assert isinstance(traits, WarpgroupTraits) and traits.operands.out_boxes and traits.tiling.stagger == 3

    @pytest.mark.parametrize("sizes, dtype", [((4096, 1024, 2047), np.float16), ((4096, 1024, 2048), np.int8)])
    def test_what_wgmma_cannot_read_goes_another_way(self, sizes, dtype):
        assert not isinstance(self.chosen(*sizes, dtype), WarpgroupTraits)


ENDS = np.array([4], np.int32)
REFUSED = {
    "rows": (
        lambda: grouped_gemm_ragged_k(ones(4, 8), ones(5, 8), ENDS),
        "`a` has the shape (4, 8) and `b` (5, 8): 4 rows meet 5",
        "pass a of (rows, M) and b of (rows, N): the rows of a group are the K of its product",
    ),
    "types": (
        lambda: grouped_gemm_ragged_k(ones(4, 8), ones(4, 8).astype(np.float32), ENDS),
        "`a` is float16 and `b` is float32",
        "pass two arrays of one type, one of float16, bfloat16, float32, float64, int8, uint8",
    ),
    "8-bit floats": (
        lambda: grouped_gemm_ragged_k(ones(4, 8).astype(NAMES["e4m3"]), ones(4, 8).astype(NAMES["e5m2"]), ENDS),
        "`a` is float8_e4m3fn and `b` is float8_e5m2",
        "call scaled_gemm_ragged_k of a.T and b, with scales of 1 if the matrices have none",
    ),
    "column-major a": (
        lambda: grouped_gemm_ragged_k(ones(8, 8).T, ones(8, 8), ENDS, config=LOW),
        'atom is "wgmma", and `a` is column-major: its groups start at any row, and TMA loads at multiples of 16 bytes',
        "pass a row-major `a`, or leave atom out: then they are loaded without TMA",
    ),
    "int8": (
        lambda: grouped_gemm_ragged_k(
            np.ones((8, 16), np.int8), np.ones((8, 16), np.int8), ENDS, config=replace(LOW, tile=(64, 64, 128))
        ),
        'atom is "wgmma", and `a` and `b` are int8, which wgmma multiplies K-major only; the rows of `a` and `b` run along M and N',
        "leave atom out, or convert them to float16 or bfloat16",
    ),
    "C of another shape": (
        lambda: grouped_gemm_ragged_k(ones(4, 8), ones(4, 16), ENDS, ones(1, 8, 8), beta=1),
        "`c` has the shape (1, 8, 8); the output has (1, 8, 16)",
        "pass `c` of that shape",
    ),
    "C of another type": (
        lambda: grouped_gemm_ragged_k(ones(4, 8), ones(4, 8), ENDS, ones(1, 8, 8).astype(np.float32), beta=1),
        "`c` is float32 and `out` float16; they must have one type",
        "pass an `out` of the type of c, or convert c before",
    ),
    "nothing that beta multiplies": (
        lambda: grouped_gemm_ragged_k(ones(4, 8), ones(4, 8), ENDS, out=ones(1, 8, 8), beta=1),
        "beta is 1, and `c` is not given",
        "pass the array that beta multiplies as c=",
    ),
    "column-major C": (
        lambda: grouped_gemm_ragged_k(ones(4, 8), ones(4, 8), ENDS, ones(1, 8, 8).transpose(0, 2, 1), beta=1),
        "`c` has strides of (64, 1, 8) elements; its rows must be contiguous",
        "make a row-major copy",
    ),
    "beta": (
        lambda: grouped_gemm_ragged_k(ones(4, 8), ones(4, 8), ENDS, ones(1, 8, 8), beta=1e39),
        "`beta` is 1e+39; the output is computed in float32, which ends at 3.4e38",
        "scale the matrices before, or multiply float64 ones",
    ),
    "an offset past the rows": (
        lambda: grouped_gemm_ragged_k(ones(4, 8), ones(4, 8), np.array([5], np.int32), validate=True),
        "`offsets[0]` is 5; group 0 takes a number from 0 to the 4 rows of `a`",
        "pass the end of each group; an empty group ends where the previous one does",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    run, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        run()
    assert (caught.value.message, caught.value.help) == (message, help)


def test_accumulate_is_c_and_beta_here():
    with pytest.raises(pd.CallError) as caught:
        grouped_gemm_ragged_k(ones(4, 8), ones(4, 8), ENDS, accumulate=True)
    assert caught.value.help == "pass the accumulated array as both `c=` and `out=`, with beta=1"


def test_a_call_that_is_refused_writes_nothing():
    room = np.full((2, 8, 8), 7, np.float16)
    out, c = room[:1], room.reshape(-1)[32:96].reshape(1, 8, 8)
    with pytest.raises(pd.LaunchError) as caught:
        grouped_gemm_ragged_k(ones(4, 8), ones(4, 8), ENDS, c, out=out, beta=1)
    assert caught.value.message == "`out` is written and shares memory with `c`"
    assert (room == 7).all()


@pytest.mark.parametrize("config", [SMALL, LOW], ids=["warps", "warpgroups"])
def test_a_kernel_that_validates_stops_at_offsets_that_make_no_sense(config):
    out = np.zeros((2, 8, 8), np.float16)
    groups = call.ragged_k_groups(ones(10, 8), ones(10, 8), np.array([6, 5], np.int32), out)
    plan = call.plan_of(KERNELS, groups, grouped(config, call.request_of(groups)), validate=True)
    with pytest.raises(pd.EmulationError, match="the kernel executed a trap, by thread"):
        plan.run()
    assert not out.any()


@pytest.mark.exhaustive
@pytest.mark.parametrize("output", [bf16, f32])
@pytest.mark.parametrize("tile, stagger", [((128, 256), 2), ((64, 128), 0)])
@pytest.mark.parametrize("c", ["none", "separate", "in place"])
def test_kernels_spill_nothing(output, tile, stagger, c):
    operands = Operands(bf16, output, a_major="mn", b_major="mn", batches="strided", out_boxes=output is bf16, c=c)
    traits = WarpgroupTraits(WarpgroupTiling((*tile, 64), 3, stagger=stagger), operands, AHEAD)
    check_no_spill(warpgroup_ragged_k_kernel, traits)
