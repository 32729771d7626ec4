"""gemm() of lists on the sm_90a path against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import batched, grouped
from ptxdsl.kernels.call.launching.memory import CALLS
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, gelu, per_column, relu
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, warpgroup_grouped_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.function import canonical
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.schedule import GroupedRowsThreadblockSwizzle, PersistentScheduler
from ptxdsl.types import TYPES, e4m3, f32, s8, s32
from tests.kernels.spills import check_no_spill
from tests.kernels.test_gemm import ORDERS, ROUNDING, matrix, poisoned
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
every_type = pytest.mark.parametrize("inputs", ["f16", "bf16", "s8", "e4m3"])
ALONG_K = "row", "column", "row"
LENGTHS = {1: (65, 72, 136), 3: (65, 8, 72), 17: (9, 24, 8)}  # with the sizes of each product
WHOLE = ROUNDING | {"s32": 0.0, "e4m3": 2.0**-4, "e5m2": 2.0**-3}


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has tiles of several matrices."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(grouped, "resident_blocks", lambda *_, **__: 2)


@pytest.fixture
def launched(monkeypatch):
    """What grouped kernels were made for, launch by launch; no call is remembered."""
    CALLS.clear()
    made, list_plan = [], batched.list_plan
    monkeypatch.setattr(batched, "list_plan", lambda *given: made.append(given[2]) or list_plan(*given))
    return made


def tiles(inputs="f16", m=64, n=64, **more):
    return GemmConfig(tile=(m, n, 128 // TYPES[inputs].bytes), stages=2, atom="wgmma", **more)


def numbers(rng, shape, type, order, padding=0):
    """Small integers or N(0,1), in lines that begin at multiples of 16 bytes where `padding` does not say otherwise."""
    length = shape[1] if order == "row" else shape[0]
    unit = 16 // NAMES[type].itemsize
    view = matrix(rng, shape, order, type, -length % unit + padding) if type in ROUNDING else None
    if view is None:
        lines = shape[0] if order == "row" else shape[1]
        bounds = (-128, 128) if type == "s8" else (-1000, 1000) if type == "s32" else (-3, 4)
        whole = rng.integers(*bounds, (lines, length + -length % unit + padding)).astype(NAMES[type])[:, :length]
        view = whole if order == "row" else whole.T
    return view


def nothing(shape, type, order):
    """An output that is poisoned."""
    if type == "s32":
        whole = np.full(shape if order == "row" else shape[::-1], -(2**31), np.int32)
        return whole if order == "row" else whole.T
    return poisoned(shape, order, type)


def check(where, rng, sizes, count=3, *, orders=ALONG_K, inputs="f16", output=None, alpha=1, beta=0, in_place=False,
          function=lambda x: x, has_out=True, padding=0, **how):  # fmt: skip
    """One call with lists of so many, held against float64: every element within the rounding of its sum."""
    (m, n, k), output = sizes, output or {"s8": "s32", "e4m3": "f32", "e5m2": "f32"}.get(inputs, inputs)
    a = [numbers(rng, (m, k), inputs, orders[0], padding) for _ in range(count)]
    b = [numbers(rng, (k, n), inputs, orders[1], padding) for _ in range(count)]
    c = [numbers(rng, (m, n), output, orders[2]) for _ in range(count)] if beta else None
    exact = [x.astype(np.float64) @ y.astype(np.float64) for x, y in zip(a, b, strict=True)]
    scale = [np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64) for x, y in zip(a, b, strict=True)]
    added = [z.astype(np.float64) for z in c] if c else [0.0] * count
    given = [None if v is None else [*map(where.array, v)] for v in (a, b, c)]
    out = given[2] if in_place else [where.array(nothing((m, n), output, orders[2])) for _ in range(count)]
    results = gemm(*given, out=out if has_out else None, alpha=alpha, beta=beta, **how)
    assert len(results) == count and (not has_out or results is out)
    for found, x, s, z in zip(map(where.values, results), exact, scale, added, strict=True):
        total = function(alpha * x + beta * z)
        relative = 0.0 if inputs == "s8" else (k / 16 + 2) * 2.0**-21
        allowed = relative * (abs(alpha) * s + abs(beta) * np.abs(z)) + WHOLE[output] * np.abs(total)
        assert found.shape == (m, n)
        assert np.all(np.abs(found - total) <= allowed + (1e-7 if relative else 0)), np.nanmax(np.abs(found - total))


@pytest.mark.exhaustive
@every_machine
@every_type
@pytest.mark.parametrize("count", LENGTHS)
def test_lists_of_any_length(name, inputs, count, launched, rng):
    check(machine(name), rng, LENGTHS[count], count, inputs=inputs, config=tiles(inputs))
    assert len(launched) == 1


@every_machine
@every_type
def test_no_lists(name, inputs, launched):
    assert gemm([], []) == gemm([], [], out=[], config=tiles(inputs)) == []
    assert not launched


@pytest.mark.exhaustive
@every_machine
@every_type
def test_sizes_that_do_not_fit_the_tiles(name, inputs, launched, rng):
    where, sizes = machine(name), [(1, 8, 8), (3, 136, 72), (63, 65, 129), (1, 2, 1)]
    for each in sizes:
        check(where, rng, each, 2, inputs=inputs, config=tiles(inputs))
    assert len(launched) == len(sizes)


@every_machine
@pytest.mark.parametrize("sizes", [(0, 8, 8), (8, 0, 8), (0, 0, 0)])
def test_nothing_to_write(name, sizes, rng):
    check(machine(name), rng, sizes, config=tiles())
    check(machine(name), rng, sizes, inputs="e4m3")


@every_machine
@pytest.mark.parametrize("orders", [(a, b, c) for a in ORDERS for b in ORDERS for c in ORDERS], ids="-".join)
def test_all_layouts(name, orders, launched, rng):
    check(machine(name), rng, (72, 80, 80), 2, orders=orders, config=tiles())
    check(machine(name), rng, (72, 80, 80), 2, orders=orders, inputs="bf16", beta=0.5, padding=8, config=tiles(n=128))
    assert len(launched) == 2


@every_machine
@pytest.mark.parametrize("inputs, output", [
    ("f16", "f32"), ("bf16", "f16"), ("s8", "s32"), ("s8", "bf16"), ("e4m3", "f16"), ("e4m3", "f32"), ("e5m2", "bf16"),
])  # fmt: skip
@pytest.mark.parametrize("in_place, order", [(False, "column"), (True, "row")], ids=["c", "in place"])
def test_alpha_beta_and_c(name, inputs, output, in_place, order, rng):
    how = {"inputs": inputs, "output": output, "in_place": in_place, "orders": (*ALONG_K[:2], order)}
    check(machine(name), rng, (65, 40, 136), alpha=2, beta=-3, config=tiles(inputs), **how)


@every_machine
@pytest.mark.parametrize("inputs, output", [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "f16")])
def test_outputs_of_few_bits(name, inputs, output, rng):
    check(machine(name), rng, (65, 40, 48), inputs=inputs, output=output, alpha=0.25, config=tiles(inputs))


@pytest.mark.exhaustive
@every_machine
@every_type
def test_outputs_are_made(name, inputs, rng):
    check(machine(name), rng, (65, 72, 48), inputs=inputs, config=tiles(inputs), has_out=False)
    if inputs != "s8":
        check(machine(name), rng, (65, 72, 48), inputs=inputs, beta=0.5, config=tiles(inputs), has_out=False)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("inputs", ["e4m3", "e5m2"])
def test_fp8_needs_no_configuration(name, inputs, launched, rng):
    where = machine(name)
    for sizes, orders in [((1, 2, 16), ALONG_K), ((70, 136, 144), (*ALONG_K[:2], "column"))]:
        check(where, rng, sizes, inputs=inputs, orders=orders)
    assert len(launched) == 2


@pytest.mark.exhaustive
@every_machine
def test_a_column_of_fp8_lies_along_k(name, rng):
    where = machine(name)
    a, b = ([rng.integers(-3, 4, shape).astype(NAMES["e4m3"]) for _ in range(2)] for shape in ((70, 64), (64, 1)))
    for x, y, z in zip(a, b, gemm(*([*map(where.array, each)] for each in (a, b))), strict=True):
        assert np.array_equal(where.values(z), x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.exhaustive
@every_machine
def test_one_matrix_for_all(name, launched, rng):
    where = machine(name)
    a, b, c = ([matrix(rng, shape, "row", "f16") for _ in range(3)] for shape in ((70, 64), (64, 72), (70, 72)))
    for x, y in ((a, b[0]), (a[0], b)):
        given = [[*map(where.array, each)] if isinstance(each, list) else where.array(each) for each in (x, y, c[0])]
        out = [where.array(poisoned((70, 72), "row", "f16")) for _ in range(3)]
        gemm(*given, out=out, beta=2.0, config=tiles())
        for n, found in enumerate(map(where.values, out)):
            left, right = (each[n] if isinstance(each, list) else each for each in (x, y))
            exact = left.astype(np.float64) @ right.astype(np.float64) + 2.0 * c[0].astype(np.float64)
            assert np.allclose(found, exact, rtol=2e-3, atol=2e-2)
    assert len(launched) == 2


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("beside", [True, False], ids=["argument", "config"])
def test_an_epilogue(name, beside, launched, rng):
    how = {"config": tiles(), "epilogue": relu} if beside else {"config": tiles(epilogue=relu)}
    positive = {"function": lambda x: np.maximum(x, 0)}
    check(machine(name), rng, (70, 72, 64), beta=0.5, **positive, **how)
    check(machine(name), rng, (70, 72, 64), inputs="e4m3", epilogue=relu, **positive)
    assert [made.epilogue for made in launched] == [canonical(relu)] * 2


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("how", [
    {"config": tiles(n=32, swap_ab=False)},
    {"config": GemmConfig((64, 64, 64), stages=2, atom="wgmma", swap_ab=True)},
    {"config": GemmConfig((64, 128, 64), stages=3, atom="wgmma", swap_ab=True, stagger=2)},
    {"config": tiles(), "split_k": 1, "reduction": "serial"},
    {"config": tiles(reduction="serial"), "schedule": GroupedRowsThreadblockSwizzle(8)},
], ids=["narrow", "shares", "staggered", "whole", "usual"])  # fmt: skip
def test_configurations(name, how, launched, rng):
    check(machine(name), rng, (200, 136, 136), 2, **how)
    check(machine(name), rng, (200, 136, 136), 2, output="f32", beta=1.0, **how)
    assert len(launched) == 2


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("inputs, order", [("f16", "column"), *((each, "row") for each in ("bf16", "s8", "e4m3"))])
def test_results_are_those_of_single_products(name, inputs, order, rng):
    """Bit by bit, by the same tiles."""
    where, (m, n, k), how = machine(name), (65, 40, 136), {"alpha": 2, "beta": -3, "config": tiles(inputs)}
    output = {"s8": "s32", "e4m3": "f32", "e5m2": "f32"}.get(inputs, inputs)
    a, b, c = ([where.array(numbers(rng, shape, type, lies)) for _ in range(3)] for shape, type, lies in (
        ((m, k), inputs, "row"), ((k, n), inputs, "column"), ((m, n), output, order),
    ))  # fmt: skip
    out, alone = ([where.array(nothing((m, n), output, order)) for _ in range(3)] for _ in range(2))
    gemm(a, b, c, out=out, **how)
    for x, y, z, found, single in zip(a, b, c, out, alone, strict=True):
        gemm(x, y, z, out=single, **how)
        assert np.array_equal(where.values(found), where.values(single))


def apart(rng, shape, type, step):
    """Matrices in one array, each `step` elements behind a multiple of 16 bytes."""
    rows, columns = shape
    whole = rng.integers(-3, 4, (3, rows, columns + 16)).astype(NAMES[type])
    return [each[:, step : step + columns] for each in whole]


@every_machine
def test_addresses_that_no_tensor_copy_takes(name, launched, rng):
    """One matrix alone is enough. Large lists go another way, and what asks for wgmma is refused."""
    where, exact = machine(name), lambda x, y: x.astype(np.float64) @ y.astype(np.float64)
    a, b = apart(rng, (40, 48), "f16", 0), [each.T for each in apart(rng, (24, 48), "f16", 0)]
    a[1] = apart(rng, (40, 48), "f16", 3)[1]
    given = [[*map(where.array, each)] for each in (a, b)]
    for x, y, z in zip(a, b, gemm(*given), strict=True):
        assert np.array_equal(where.values(z), exact(x, y))
    out = [where.array(poisoned((40, 24), "row", "f16")) for _ in range(3)]
    with pytest.raises(pd.LaunchError, match=r"`a\[1\]` has a leading dimension of 128 bytes and the address 0x"):
        gemm(*given, out=out, config=tiles())
    assert not launched and all(np.isnan(where.values(each)).all() for each in out)


@every_machine
def test_fp8_at_such_addresses_is_refused(name, launched, rng):
    where = machine(name)
    a, b = apart(rng, (40, 48), "e4m3", 0), [each.T for each in apart(rng, (24, 48), "e4m3", 0)]
    b[2] = apart(rng, (24, 48), "e4m3", 1)[2].T
    out = [where.array(poisoned((40, 24), "row", "f32")) for _ in range(3)]
    with pytest.raises(pd.LaunchError) as caught:
        gemm(*([*map(where.array, each)] for each in (a, b)), out=out)
    assert caught.value.message.startswith("`b[2]` has a leading dimension of 64 bytes and the address 0x")
    assert caught.value.message.endswith("; TMA takes multiples of 16 bytes")
    assert caught.value.help == "pad its leading dimension"
    assert not launched and all(np.isnan(where.values(each)).all() for each in out)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("inputs", ["e4m3", "e5m2"])
def test_groups_of_fp8(name, inputs, rng):
    where, sizes = machine(name), [(1, 8, 16), (65, 72, 136), (0, 8, 8), (64, 0, 8), (130, 40, 48)]
    a, b = ([numbers(rng, (m, k), inputs, "row") for m, _, k in sizes],
            [numbers(rng, (k, n), inputs, "column") for _, n, k in sizes])  # fmt: skip
    out = [where.array(poisoned((m, n), "row", "f32")) for m, n, _ in sizes]
    for how in ({}, {"config": tiles(inputs)}):
        results = grouped_gemm(*([*map(where.array, each)] for each in (a, b)), out=out, alpha=2.0, **how)
        for x, y, z in zip(a, b, results, strict=True):
            assert np.array_equal(where.values(z), 2 * (x.astype(np.float64) @ y.astype(np.float64)))


def ones(type, *shape):
    return np.ones(shape, NAMES[type])


class TestChoice:
    """Which way lists go, and what is said of it does not change which way that is."""

    def by_wgmma(self, monkeypatch, a, b, **how):
        """Whether they go by wgmma; nothing is multiplied."""
        ways = []
        monkeypatch.setattr(batched, "list_plan", lambda *given: ways.append(True))
        monkeypatch.setattr(batched, "ListPlan", lambda *given, **named: ways.append(False))
        gemm(a, b, **how)
        (way,) = ways
        return way

    def test_large_ones_go_by_wgmma(self, monkeypatch):
        for type in ("f16", "bf16", "s8"):
            a, b = [ones(type, 1024, 1024)] * 4, [ones(type, 1024, 1024).T] * 4
            assert self.by_wgmma(monkeypatch, a, b)
            assert self.by_wgmma(monkeypatch, a, b[0], epilogue=relu, split_k=1)
            assert not self.by_wgmma(monkeypatch, a, b, schedule=PersistentScheduler())
            assert not self.by_wgmma(monkeypatch, a, b, config=GemmConfig(tile=(128, 128, 64)))
            monkeypatch.setenv("PTXDSL_ARCH", "sm_90")
            assert not self.by_wgmma(monkeypatch, a, b)
            monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")

    @pytest.mark.parametrize("a, b", [
        (ones("f16", 64, 64), ones("f16", 64, 64)), (ones("f16", 1024, 1023), ones("f16", 1023, 1024)),
        (ones("f32", 1024, 1024), ones("f32", 1024, 1024).T), (ones("f64", 512, 512), ones("f64", 512, 512)),
        (ones("s8", 1024, 1024), ones("s8", 1024, 1024)), (ones("f16", 1024, 0), ones("f16", 0, 1024)),
    ], ids=["small", "lines", "f32", "f64", "not along K", "no K"])  # fmt: skip
    def test_others_go_another_way(self, a, b, monkeypatch):
        assert not self.by_wgmma(monkeypatch, [a] * 4, [b] * 4)

    def test_it_is_as_of_groups(self):
        a, b = [ones("f16", 1024, 512)] * 6, [ones("f16", 512, 4096)] * 6
        group = batched.batched_group({"a": a, "b": b}, (1.0, 0.0)).row_major
        chosen = batched.grouped_traits(group, GemmOptions())
        assert chosen == grouped.traits_of(group, None) and chosen.tiling.stagger


A, B = ([ones("f16", 64, 64)] for _ in range(2))
E4M3 = [ones("e4m3", 64, 64)], [ones("e4m3", 64, 64).T]
PERSISTENT = PersistentScheduler()
DEALT = "tiles of lists are assigned dynamically"
SPLIT = "split_k is 2, and the products are batches: each of them is computed by blocks of its own"
REFUSED = {
    "a schedule": (
        lambda out: gemm(A, B, out=out, config=tiles(), schedule=PERSISTENT),
        f'atom is "wgmma", and schedule is {PERSISTENT!r}; {DEALT}',
        "leave schedule out, or leave atom out",
    ),
    "a schedule in the configuration": (
        lambda out: gemm(A, B, out=out, config=tiles(schedule=PERSISTENT)),
        f'atom is "wgmma", and schedule is {PERSISTENT!r}; {DEALT}',
        "leave schedule out, or leave atom out",
    ),
    "a schedule of fp8": (
        lambda out: gemm(*E4M3, out=out, schedule=PERSISTENT),
        f"`a` and `b` are float8_e4m3fn, which takes wgmma, and schedule is {PERSISTENT!r}; {DEALT}",
        "leave schedule out",
    ),
    "split K": (
        lambda out: gemm(A, B, out=out, config=tiles(), split_k=2),
        SPLIT,
        "leave split_k out, or call gemm for each of the batches",
    ),
    "split K of fp8": (
        lambda out: gemm(*E4M3, out=out, split_k=2, reduction="cluster"),
        SPLIT,
        "leave split_k out, or call gemm for each of the batches",
    ),
    "turns": (
        lambda out: gemm(A, B, out=out, config=tiles(pingpong=True)),
        "`config` says that pingpong is True; tiles of groups are dealt while a kernel runs, to all warpgroups",
        "leave pingpong out of the GemmConfig",
    ),
    "no K": (
        lambda out: gemm([A[0][:, :0]], [B[0][:0]], out=out, config=tiles()),
        'atom is "wgmma", and problem 0 has nothing to multiply: its K or alpha is 0',
        "leave atom out",
    ),
    "no K of fp8": (
        lambda out: gemm([E4M3[0][0][:, :0]], [E4M3[1][0][:0]], out=out),
        "`a` and `b` are float8_e4m3fn, which takes wgmma, and problem 0 has nothing to multiply: its K or alpha is 0",
        "leave these problems out, and scale their c by beta",
    ),
    "int8 along N": (
        lambda out: gemm([ones("s8", 64, 64)], [ones("s8", 64, 64)], out=out, config=tiles("s8")),
        "matrices of `b` are not K-major, as wgmma needs int8 operands to be",
        "pass row-major `a` and column-major `b`, or leave atom out",
    ),
    "fp8 along N": (
        lambda out: gemm(E4M3[0], E4M3[0], out=out),
        "matrices of `b` are not K-major, as wgmma needs float8_e4m3fn operands to be",
        "pass row-major `a` and column-major `b`",
    ),
    "fp8 by tiles of warps": (
        lambda out: gemm(*E4M3, out=out, config=GemmConfig()),
        'GemmConfig: the tiles are those of mma.sync, which does not multiply e4m3; with atom="wgmma" sm_90a does',
        None,
    ),
    "float64": (
        lambda out: gemm([ones("f64", 64, 64)], [ones("f64", 64, 64)], config=tiles()),
        "GemmConfig: the tiles are those of wgmma, which this path has for f16, bf16, f32, s8, u8, e4m3 or e5m2 "
        "inputs; they are f64",
        None,
    ),
    "operands of the epilogue": (
        lambda out: gemm(*E4M3, out=out, epilogue=add_relu, operands=[per_column(ones("f16", 64))]),
        "operands of the epilogue are given, and the matrices are lists",
        "pass arrays of three dimensions: all their products take the same operands",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    call, message, help = REFUSED[which]
    out = [poisoned((64, 64), "row", "f32")]
    with pytest.raises(pd.LaunchError) as caught:
        call(out)
    assert (caught.value.message, caught.value.help) == (message, help)
    assert np.isnan(out[0]).all()


ROUNDED = [np.zeros((64, 64), NAMES["e4m3"])]


@pytest.mark.parametrize(("call", "message", "help"), [
    (
        lambda: grouped_gemm(A, B, out=ROUNDED * len(A), schedule="host"),
        "`out` is float8_e4m3fn, which takes wgmma, whose tiles are assigned dynamically",
        'pass schedule="device", without balance',
    ),
    (
        lambda: gemm(A, B, out=ROUNDED * len(A), schedule=PERSISTENT),
        f"`out` is float8_e4m3fn, which takes wgmma, and schedule is {PERSISTENT!r}; {DEALT}",
        "leave schedule out",
    ),
    (
        lambda: grouped_gemm(A, B, ROUNDED * len(A), out=ROUNDED * len(A), beta=1.0),
        "`c` is float8_e4m3fn; C must have 16 bits or more",
        "leave c out, or write to an `out` of float16",
    ),
    (
        lambda: grouped_gemm(A, B, out=ROUNDED * len(A), config=GemmConfig()),
        'GemmConfig: the tiles are those of mma.sync, whose path does not round to e4m3; with atom="wgmma" sm_90a does',
        None,
    ),
], ids=["host", "schedule", "c", "tiles of warps"])  # fmt: skip
def test_refusals_of_rounded_outputs(call, message, help):
    with pytest.raises(pd.LaunchError) as caught:
        call()
    assert (caught.value.message, caught.value.help) == (message, help)
    assert not ROUNDED[0].astype(np.float32).any()


def test_rounded_outputs_on_other_gpus(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_89")
    for function in (gemm, grouped_gemm):
        with pytest.raises(pd.LaunchError) as caught:
            function(A, B, out=ROUNDED * len(A))
        assert caught.value.message == (
            "`out` is float8_e4m3fn, to which grouped_gemm rounds on sm_90a; the kernel is for sm_89"
        )
        assert caught.value.help == ("convert a float16 `out` afterwards; on the emulator, set PTXDSL_ARCH=sm_90a")


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("inputs, output", [("f16", "e4m3"), ("bf16", "e5m2")])
@pytest.mark.parametrize("function", [gemm, grouped_gemm])
@pytest.mark.parametrize("config", [None, GemmConfig((64, 64, 64), stages=2, atom="wgmma", swap_ab=True)])
def test_outputs_rounded_to_8_bits(name, inputs, output, function, config, rng):
    """They saturate; the matrices are row-major, which wgmma reads of 16 bits."""
    where = machine(name)
    shapes = [(70, 48, 72)] * 2 if function is gemm else [(70, 48, 72), (3, 16, 40), (65, 17, 8)]
    a = [(rng.integers(-2, 3, (m, -(-k // 8) * 8)) * 2.0**9).astype(NAMES[inputs])[:, :k] for m, _, k in shapes]
    b = [rng.integers(-2, 3, (k, -(-n // 8) * 8)).astype(NAMES[inputs])[:, :n] for _, n, k in shapes]
    out = [where.array(np.zeros((m, n), NAMES[output])) for m, n, _ in shapes]
    results = function([*map(where.array, a)], [*map(where.array, b)], out=out, alpha=0.125, config=config)
    most = float(ml_dtypes.finfo(NAMES[output]).max)
    for left, right, result in zip(a, b, results, strict=True):
        exact = (0.125 * (left.astype(np.float64) @ right.astype(np.float64))).clip(-most, most)
        rounded = exact.astype(np.float32).astype(NAMES[output]).astype(np.float64)
        assert (where.values(result) == rounded).all()


def test_fp8_on_other_gpus(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_89")
    for function in (gemm, grouped_gemm):
        with pytest.raises(pd.LaunchError) as caught:
            function(*E4M3)
        assert caught.value.message == (
            "`a` and `b` are float8_e4m3fn, which grouped_gemm multiplies on sm_90a; the kernel is for sm_89"
        )
        assert caught.value.help == ("convert them to float16 before; on the emulator, set PTXDSL_ARCH=sm_90a")


@pytest.mark.exhaustive
@pytest.mark.parametrize("facts, epilogue", [
    ({"out_boxes": True}, gelu), ({"c": "separate"}, gelu), ({"inputs": e4m3, "output": f32}, None),
    ({"inputs": e4m3, "output": e4m3}, None), ({"inputs": s8, "output": s32}, None),
], ids=["boxes", "c", "fp8", "fp8 out", "s8"])  # fmt: skip
@pytest.mark.parametrize("tile", [(128, 256), (64, 128)])
def test_kernels_spill_nothing(facts, epilogue, tile):
    operands = Operands(**facts)
    tiling = WarpgroupTiling((*tile, 128 // operands.inputs.bytes), 3)
    check_no_spill(warpgroup_grouped_kernel, WarpgroupTraits(tiling, operands, AHEAD, epilogue))


@pytest.mark.exhaustive
def test_kernels_of_shares_with_an_epilogue_spill_nothing():
    tiling = WarpgroupTiling((256, 128, 64), 4, swap_ab=True, stagger=3)
    check_no_spill(warpgroup_grouped_kernel, WarpgroupTraits(tiling, Operands(out_boxes=True), AHEAD, gelu))
