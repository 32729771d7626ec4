"""grouped_gemm() against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import bf16, f16, f32, f64, ptr, s8, s32, u32, u64
from ptxdsl.arrays import AddressTable, describe
from ptxdsl.kernels.call.groups.group import problem_group
from ptxdsl.kernels.call.groups.grouped import assign_to_resident_blocks, traits_of
from ptxdsl.kernels.call.groups.table import STRIP, assign_tiles
from ptxdsl.kernels.candidates.facts import ListFacts
from ptxdsl.kernels.candidates.sm80 import GROUPED
from ptxdsl.kernels.choose.products import ranked_groups_by_warps
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.grouped import VISITORS, grouped_gemm, grouped_kernel
from ptxdsl.kernels.product.operands import Operands, outputs
from ptxdsl.kernels.sm80.tiling import usual_atom
from ptxdsl.kernels.tiles.many import AHEAD, IN_TURN
from ptxdsl.kernels.tiles.visitor import COUNTERS, TableVisitor, from_lane, prefix_sum, seat
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule import GroupedProblemVisitor, tile_of
from tests.kernels.test_gemm import BOUNDARIES, ORDERS, ROUNDING, matrix, poisoned
from tests.machines import MACHINES, machine
from tests.schedule.vectors import load

SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=3)
EXAMPLE_24 = GemmConfig(tile=(128, 128, 32), warp=(64, 64), stages=4)  # of CUTLASS
SCHEDULES = {
    "device": {},
    "device sorted": {"sort": True},
    "host": {"schedule": "host"},
    "host sorted": {"schedule": "host", "sort": True},
    "balanced": {"schedule": "host", "balance": "k"},
}


def check(where, rng, sizes, *, orders=("row", "column", "row"), inputs="f16", output=None, alpha=1.0, beta=0.0,
          padding=(0, 0, 0), in_place=False, **options):  # fmt: skip
    """Runs the products and holds them against float64: every element within the rounding of its sum."""
    output = output or inputs
    a = [matrix(rng, (m, k), orders[0], inputs, padding[0]) for m, _, k in sizes]
    b = [matrix(rng, (k, n), orders[1], inputs, padding[1]) for _, n, k in sizes]
    c = [matrix(rng, (m, n), orders[2], output, padding[2]) for m, n, _ in sizes] if beta else None
    out = c if in_place else [poisoned((m, n), orders[2], output, padding[2]) for m, n, _ in sizes]
    expected = [x.astype(np.float64) @ y.astype(np.float64) for x, y in zip(a, b, strict=True)]
    scale = [np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64) for x, y in zip(a, b, strict=True)]
    added = [z.astype(np.float64) for z in c] if c else [0.0] * len(sizes)
    given = [None if v is None else [where.array(x) for x in v] for v in (a, b, c, out)]
    if in_place:
        given[3] = given[2]
    results = grouped_gemm(*given[:3], out=given[3], alpha=alpha, beta=beta, **options)
    assert [*map(id, results)] == [*map(id, given[3])]
    for (m, n, k), found, x, s, z in zip(sizes, map(where.values, results), expected, scale, added, strict=True):
        total = alpha * x + beta * z
        allowed = (k / 16 + 2) * 2.0**-22 * (abs(alpha) * s + abs(beta) * np.abs(z)) + 1e-7
        allowed = allowed + ROUNDING[output] * np.abs(total)
        assert found.shape == (m, n)
        assert np.all(np.abs(found - total) <= allowed), ((m, n, k), np.nanmax(np.abs(found - total) - allowed))


def near(rng, count):
    return [tuple(int(v) for v in rng.choice(BOUNDARIES, 3)) for _ in range(count)]


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("config", [SMALL, EXAMPLE_24], ids=["small", "example 24"])
def test_problems_of_sizes_around_the_tiles(name, schedule, config, rng):
    sizes = [*near(rng, 6 if name == "emulator" else 70), (130, 70, 200), (0, 5, 7), (1, 1, 1), (64, 65, 0)]
    check(machine(name), rng, sizes, config=config, **SCHEDULES[schedule])


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("orders", [(a, b, c) for a in ORDERS for b in ORDERS for c in ORDERS], ids="-".join)
def test_all_layouts_and_leading_dimensions(name, orders, rng):
    sizes = [*near(rng, 3), (72, 40, 88)]
    check(machine(name), rng, sizes, orders=orders, config=SMALL)
    check(machine(name), rng, sizes, orders=orders, config=SMALL, padding=(1, 2, 3), alpha=-0.5, beta=2.0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_configuration_of_example_24_with_all_matrices_column_major(name, schedule, rng):
    sizes = [(128, 256, 64), (136, 120, 256), (256, 128, 32), (8, 16, 512)]
    check(machine(name), rng, sizes, orders=("column",) * 3, config=EXAMPLE_24, **SCHEDULES[schedule])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("inputs", ["f16", "bf16"])
def test_types(name, inputs, rng):
    check(machine(name), rng, near(rng, 4), inputs=inputs, output="f32", alpha=-0.75, beta=1.5)
    check(machine(name), rng, near(rng, 4), inputs=inputs)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("inputs", [np.float32, np.float64, np.int8, np.uint8])
def test_small_integers_are_exact_in_all_other_types(name, inputs, rng):
    """float32 is multiplied as tf32."""
    sizes, where = [(33, 20, 48), (5, 70, 16), (0, 3, 4), (64, 64, 64)], machine(name)
    a = [rng.integers(0, 9, (m, k)).astype(inputs) for m, _, k in sizes]
    b = [rng.integers(0, 9, (k, n)).astype(inputs) for _, n, k in sizes]
    found = grouped_gemm([where.array(x) for x in a], [where.array(x) for x in b], alpha=2)
    exact = [2 * (x.astype(np.int64) @ y.astype(np.int64)) for x, y in zip(a, b, strict=True)]
    assert all((where.values(f) == e).all() for f, e in zip(found, exact, strict=True))


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("schedule", ["device", "balanced"])
def test_c_may_be_the_output(name, schedule, rng):
    sizes = [(65, 130, 24), (9, 8, 300), (0, 4, 4)]
    options = SCHEDULES[schedule]
    check(machine(name), rng, sizes, orders=("row", "row", "column"), beta=-1.0, in_place=True, config=SMALL, **options)


@pytest.mark.parametrize("name", MACHINES)
def test_a_long_k_is_shared_by_many_blocks(name, rng):
    sizes = [(70, 66, 4096), (20, 30, 64), (64, 64, 96)]
    check(machine(name), rng, sizes, config=SMALL, schedule="host", balance="k", beta=0.5)
    shapes = np.array(sizes, np.int64).tobytes()
    assert assign_tiles(shapes, SMALL.tile, 132, "parts", False).slots > 64


@pytest.mark.parametrize("beta, schedule", [(0.0, AHEAD), (1.0, IN_TURN)])
def test_what_is_not_cut_is_computed_in_whole_tiles(beta, schedule):
    def kernel(k):
        a, b, c = ([np.ones(shape, np.float16)] * 3 for shape in ((64, k), (k, 64), (64, 64)))
        group = problem_group(a, b, c, [np.ones((64, 64), np.float16) for _ in a], (1.0, beta))
        made = traits_of(group, SMALL, balanced=True)
        return assign_to_resident_blocks(grouped_kernel, group, made, None, "parts", False)[0]

    assert kernel(64)["mode"] == "dealt" and kernel(64)["traits"].schedule == schedule
    assert kernel(4096)["mode"] == "parts" and kernel(4096)["traits"].schedule == IN_TURN


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_more_problems_than_a_warp_looks_at(name, rng):
    sizes = [(int(m), 8, 16) for m in rng.integers(0, 20, 100)]
    for options in SCHEDULES.values():
        check(machine(name), rng, sizes, config=SMALL, **options)


@pd.kernel(reqntid=64)
def sums_of_entries(table: ptr[s32], y: ptr[u32], count: u32):
    visitor, total = TableVisitor(table, count, 2, 64), pd.var(u32, 0)
    with pd.while_(visitor.next_tile):
        first, second = visitor.work()
        total += first * second
        visitor.advance()
    y[pd.tid.x] = total


@pytest.mark.parametrize("schedule", ["lockstep", "skewed"])
def test_more_entries_of_a_block_than_it_has_threads(schedule):
    """The block loads the second 64 entries when both of its warps have read the first ones."""
    table, y = np.arange(260, dtype=np.int32), np.zeros(64, np.uint32)
    with pd.config.using(schedule=schedule):
        assert pd.emulate(sums_of_entries, 1, 64, table, y, 130, shared_bytes=512).findings == []
    assert (y == (table[::2] * table[1::2]).sum()).all()


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_to_do(name, rng):
    where = machine(name)
    assert grouped_gemm([], []) == []
    check(where, rng, [(0, 8, 8), (8, 0, 8), (0, 0, 0)])
    check(where, rng, [(8, 8, 0), (70, 3, 0)], beta=0.5, config=SMALL)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_results_do_not_change_from_run_to_run(name, rng):
    where = machine(name)
    a, b = where.array(matrix(rng, (70, 3000), "row", "f16")), where.array(matrix(rng, (3000, 66), "row", "f16"))
    first, *others = (
        where.values(grouped_gemm([a], [b], schedule="host", balance="k", config=SMALL)[0]) for _ in range(3)
    )
    assert all((first == other).all() for other in others)


def test_outputs_that_are_not_given_are_made(rng):
    made = grouped_gemm([np.ones((3, 4), np.float16)], [np.ones((4, 5), np.float16)])
    assert made[0].tolist() == [[4.0] * 5] * 3 and made[0].dtype == np.float16


def test_outputs_may_be_columns_of_one_matrix(rng):
    whole = np.full((40, 96), np.nan, np.float16)
    a = [matrix(rng, (40, 24), "row", "f16") for _ in range(4)]
    b = [matrix(rng, (24, 24), "row", "f16") for _ in range(4)]
    grouped_gemm(a, b, out=[whole[:, 24 * i :][:, :24] for i in range(4)], config=SMALL)
    assert np.allclose(
        whole, np.hstack([x.astype(np.float32) @ y.astype(np.float32) for x, y in zip(a, b, strict=True)]), atol=0.02
    )


def resources_of(config, mode, ways=(0, 1, 2)):
    """Of the kernels of a configuration that find their tiles so."""
    usual = IN_TURN if mode == "parts" else AHEAD
    every = ({}, usual), ({"b_major": "mn"}, usual), ({"a_major": "mn", "c": "separate"}, IN_TURN)
    for fields, schedule in (every[way] for way in ways):
        sort = not fields and mode != "parts"
        traits = replace(config.traits(Operands(**fields)), schedule=schedule)
        yield grouped_kernel.resources(arch="sm_90", traits=traits, mode=mode, sort=sort)


LARGE_WARPS = [config for config in (EXAMPLE_24, *GROUPED) if config.warp[:2] == (64, 64)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", VISITORS)
@pytest.mark.parametrize("config", LARGE_WARPS, ids=lambda config: str(config.tile))
def test_kernels_spill_nothing(config, mode):
    """Of configurations, modes and ways, each two are together."""
    way = (LARGE_WARPS.index(config) + list(VISITORS).index(mode)) % 3
    for resources in resources_of(config, mode, [way]):
        assert resources.spill_store_bytes == resources.spill_load_bytes == 0


@pytest.mark.parametrize(
    "config", [each for each in GROUPED if each not in LARGE_WARPS], ids=lambda config: str(config.tile)
)
def test_kernels_of_small_warps_have_twice_the_registers_that_they_need(config):
    """How tiles are found takes some 25 of them more or less, and makes none of these kernels spill."""
    for resources in resources_of(config, "device"):
        assert resources.registers < 128 and resources.spill_store_bytes == resources.spill_load_bytes == 0


@pd.kernel
def visited(table: ptr[pd.s64], schedule: ptr[s32], problems: u32, total: u32, out: ptr[u32], lengths: ptr[u32],
            rounds: u32, *, traits: Traits, mode: str, strip: int):  # fmt: skip
    """Writes down what the visitors of the kernel say, and where the tile is."""
    done = pd.var(u32, 0)
    visitor = VISITORS[mode](SimpleNamespace(table=table, problems=problems, total=total), schedule, pd.ctaid.x, traits)
    with pd.while_(visitor.next_tile):
        number, tile, *_ = visitor.work()
        m, n = (table[number.to(pd.s64) * 12 + i].to(u32) for i in (0, 1))
        tiles_m, tiles_n = (
            (size + (extent - 1)) // extent for size, extent in zip((m, n), traits.tile[:2], strict=True)
        )
        place = tile_of(tile, tiles_n, tiles_m, strip)
        with pd.if_(pd.tid.x == 0):
            for i, value in enumerate((number, tile, *place)):
                out[((pd.ctaid.x * rounds) + done) * 4 + i] = value
        done += 1
        visitor.advance()
    lengths[pd.ctaid.x] = done


GEMM = [row for row in load("grouped_visitor") if row["kind"] == "gemm"]


@pytest.mark.parametrize("strip", [1, STRIP])
@pytest.mark.parametrize("mode", ["device", "host"])
@pytest.mark.parametrize("row", GEMM, ids=lambda row: row["label"].replace(" ", "-")[:30])
def test_blocks_of_the_kernel_compute_the_tiles_of_the_host(row, mode, strip):
    tile, blocks = tuple(row["threadblock"]), row["blocks"]
    traits = GemmConfig(tile=tile, warp=(min(64, tile[0]), min(64, tile[1]))).traits()
    visitor = GroupedProblemVisitor(row["problems"], tile, blocks, mode=mode, strip=strip)
    table = np.zeros((len(visitor.problems), 12), np.int64)
    table[:, :3] = visitor.problems
    rounds = -(-visitor.total // blocks)
    out, lengths = np.full((blocks, rounds, 4), -1, np.int32).view(np.uint32), np.zeros(blocks, np.uint32)
    schedule = visitor.table if mode == "host" else np.zeros(1, np.int32)
    arguments = table, schedule, len(table), visitor.total, out, lengths, rounds
    visited[blocks, traits.threads](*arguments, traits=traits, mode=mode, strip=strip)
    for block in range(blocks):
        assert list(map(tuple, out[block, : lengths[block]].tolist())) == visitor.tiles(block)


def ranked(sizes, width=16, inputs=f16, arch="sm_90"):
    output = outputs(inputs)[0]
    operands = Operands(inputs, output, a_bytes=width, b_bytes=width)
    facts = ListFacts(tuple(np.array(sizes).T), operands)
    return [config for _, config in ranked_groups_by_warps(facts, arch, operands, AHEAD, rates_of())]


def chosen(*args, **options):
    return ranked(*args, **options)[0].tile


LARGE = [(m, 4096, 7168) for m in (512, 640, 896, 1024, 1152, 1280, 1536, 1664)]  # "8 large" of BENCHMARKS.md


def test_tiles_follow_the_sizes():
    assert chosen(LARGE) == (128, 256, 64)
    assert chosen([(16384, n, 7168) for n in (640, 896, 1152)]) == (256, 128, 64)  # 256 does not divide them
    assert chosen([(8, 512, 4096)] * 64) == (16, 64, 128)
    assert chosen([(512, 8, 4096)] * 64) == (64, 16, 128)


def test_tiles_fit_the_gpu():
    assert chosen(LARGE, arch="sm_80") == (128, 256, 64)
    assert chosen(LARGE, arch="sm_86") == (64, 64, 64)  # 99 KiB of shared memory


def test_tensor_cores_take_float64_as_gemm_does():
    for arch in ("sm_80", "sm_90"):
        operands = Operands(f64, f64)
        config = ranked([(512, 512, 512)], inputs=f64, arch=arch)[0]
        assert config.traits(operands, arch).tiling.atom == usual_atom(f64, arch)


@pytest.mark.parametrize("inputs", [f16, bf16, f32, f64, s8], ids=str)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_there_are_tiles_for_every_type_and_width(inputs, width):
    assert len(chosen([(100, 100, 100)], max(width, inputs.bytes), inputs)) == 3


@pd.kernel
def scanned(x: ptr[u32], sums: ptr[u32], rotated: ptr[u32]):
    sums[pd.laneid] = prefix_sum(x[pd.laneid])
    rotated[pd.laneid] = from_lane(x[pd.laneid], (pd.laneid + 1) % 32)


def test_sums_over_lanes(rng):
    x = rng.integers(0, 1000, 32).astype(np.uint32)
    sums, rotated = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    scanned[1, 32](x, sums, rotated)
    assert (sums == x.cumsum()).all() and (rotated == np.roll(x, -1)).all()


@pd.kernel
def seated(counters: ptr[u32], multiprocessors: ptr[u32]):
    number = seat(counters)
    multiprocessors[number] = pd.special("%smid") + 1


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("blocks", [1, 100, 400])
def test_the_lowest_seats_are_each_on_a_multiprocessor_of_its_own(name, blocks):
    where = machine(name)
    counters, multiprocessors = (where.array(np.zeros(count, np.uint32)) for count in (COUNTERS, blocks))
    seated[blocks, 64](counters, multiprocessors)
    found = where.values(multiprocessors)
    assert found.all()  # each number was given
    different = len(set(found.tolist()))
    assert len(set(found[:different].tolist())) == different


@pd.kernel
def first_of_each(table: ptr[u64], out: ptr[f32], past: u32):
    x = pd.pointer(table[pd.tid.x], f32)
    out[pd.tid.x] = x[past]


def address_table(*arrays):
    table = np.zeros(len(arrays), np.uint64).view(AddressTable)
    table.holders = [(i, f"x[{i}]", describe(array)) for i, array in enumerate(arrays)]
    return table


def test_the_emulator_finds_arrays_by_their_addresses_in_a_table():
    x = [np.full(3, value, np.float32) for value in (1, 2, 3)]
    out = np.zeros(4, np.float32)
    first_of_each[1, 4](address_table(*x, x[1]), out, 2)
    assert out.tolist() == [1, 2, 3, 2]
    report = pd.emulate(first_of_each, 1, 2, address_table(x[0], x[1][:2]), out, 2)
    assert [finding.message for finding in report.findings] == [
        "ld.global.f32 reads 4 bytes at x[1][2]; x[1] has 2 f32"
    ]
