"""Rows of A that an index names, on the emulator and on a GPU: gathered by warps beside those that multiply, or copied
one behind the other to a workspace before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.groups import ragged as call
from ptxdsl.kernels.call.matrix import array_argument, matrix
from ptxdsl.kernels.call.paths.groups import with_copies
from ptxdsl.kernels.call.products.copies import copied_rows
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import per_row
from ptxdsl.kernels.grouped import grouped_gemm_ragged
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.ragged import warpgroup_ragged_kernel
from ptxdsl.kernels.scaled import scaled_gemm_ragged
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import bf16, f32
from tests.kernels.spills import check_no_spill
from tests.kernels.test_grouped_ragged import near
from tests.machines import MACHINES, NAMES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
LOW = GemmConfig(tile=(64, 64, 64), stages=3, atom="wgmma")
IN_TURNS = GemmConfig(tile=(128, 80, 64), stages=2, atom="wgmma", pingpong=True)
SHARES = GemmConfig(tile=(128, 64, 64), stages=2, atom="wgmma", swap_ab=True)
STAGGERED = replace(SHARES, tile=(64, 128, 64), stagger=1)
CONFIGS = {
    "64 rows": LOW,
    "128 rows": replace(LOW, tile=(128, 128, 64)),
    "in turns": IN_TURNS,
    "shares": SHARES,
    "staggered": STAGGERED,
    "few rows": replace(LOW, tile=(16, 128, 64), swap_ab=True),
    "fewest rows": replace(LOW, tile=(8, 64, 64), swap_ab=True),
}
ENDS = [0, 1, 66, 66, 75]
WHOLE = ("s8", "u8", "f32")  # inputs that are small integers, whose sums are exact
SWAPPED, STAGGERED_SHARES, TURNS = {"swap_ab": True}, {"swap_ab": True, "stagger": 3}, {"pingpong": True}
KERNELS = [
    *(((256, 128), STAGGERED_SHARES, bf16, False), ((256, 128), STAGGERED_SHARES, bf16, True)),
    *(((128, 256), {}, bf16, False), ((128, 256), {}, f32, True), ((64, 256), {}, bf16, False)),
    *(((128, 128), {}, bf16, False), ((128, 192), TURNS, bf16, False), ((16, 128), SWAPPED, bf16, False)),
]
REFUSED = [
    (1, "wgmma", "GemmConfig: copies_rows is 1; it takes True or False"),
    (True, "", "GemmConfig: copies_rows is True; only groups of rows by wgmma take copies, others gather rows always"),
]


def multiply(x, y):
    return x * y


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """With few blocks, each of which has several tiles of several groups."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    monkeypatch.setattr(call, "resident_blocks", lambda *_, **__: 3)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
@pytest.mark.parametrize("rows, length", [(1, 8), (9, 1040), (20, 133), (3, 1)])
def test_rows_are_copied_and_numbers_that_are_none_of_one_are_zeros(dtype, rows, length, rng):
    source = rng.integers(-100, 100, (7, 1200)).astype(dtype)[:, :length]
    index = rng.integers(-1, 8, rows).astype(np.int32)
    copy, launch = copied_rows(matrix("a", source), array_argument("rows", index, 1, "", "", "int32"), (None, 0))
    launch.run()
    assert copy.is_mappable and copy.shape == (rows, length)
    exists = (index >= 0) & (index < 7)
    assert (copy.owner == np.where(exists[:, None], source[index.clip(0, 6)], 0)).all()


def pattern(rng: np.random.Generator, kind: str, rows: int, sources: int) -> np.ndarray:
    """Numbers of rows: of any, some of which are none; of each once; of a few again and again; of none."""
    if kind == "permuted":
        return rng.permutation(max(rows, sources))[:rows].astype(np.int32) % sources
    low, high = {"any": (-2, sources + 2), "repeated": (3, 5), "none": (-3, 0)}[kind]
    return rng.integers(low, high, rows).astype(np.int32)


def check_gathered(where, rng, config, *, kind="any", ends=ENDS, n=72, k=136, inputs="bf16", output=None, pad=0, **how):
    """Rows of an A of 50 rows, whose lines have some elements behind them, against numpy in float64. With `scatters`
    they go to rows of the output in any order."""
    rows, is_whole, scatters = ends[-1] + 7, inputs in WHOLE, how.pop("scatters", False)
    draw = (lambda *shape: rng.integers(-3, 4, shape)) if is_whole else (lambda *shape: rng.standard_normal(shape))
    a = draw(50, k + pad).astype(NAMES[inputs])[:, :k]
    b = draw(len(ends), n, k + pad).astype(NAMES[inputs])[:, :, :k].swapaxes(1, 2)
    index = pattern(rng, kind, rows, 50)
    order = rng.permutation(rows).astype(np.int32) if scatters else np.arange(rows)
    out = np.full((rows, n), 99).astype(NAMES[output or inputs])
    given = [where.array(x) for x in (a, b, np.array(ends, np.int32), index, out)]
    if scatters:
        how["out_rows"] = where.array(order)
    grouped_gemm_ragged(*given[:3], rows=given[3], out=given[4], config=config, **how)
    values, begin = where.values(given[4])[order], 0
    tokens = np.where(((index >= 0) & (index < 50))[:, None], a[index.clip(0, 49)], 0).astype(a.dtype)
    for group, end in enumerate(ends):
        if is_whole:
            assert (values[begin:end] == tokens[begin:end].astype(np.float64) @ b[group]).all(), group
        else:
            assert near(values[begin:end], tokens[begin:end], b[group], output or inputs), group
        begin = end
    assert (values[begin:] == 99).all()
    return values


@every_machine
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_rows_are_gathered(name, config, rng):
    """Groups of 0, 1, 65 and 9 rows; K and N that fit no tile."""
    check_gathered(machine(name), rng, config)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("kind", ["permuted", "repeated", "none"])
@pytest.mark.parametrize("config", [LOW, SHARES], ids=["rows", "shares"])
def test_numbers_of_rows(name, config, kind, rng):
    check_gathered(machine(name), rng, config, kind=kind)


@every_machine
@pytest.mark.parametrize("k, pad", [(64, 0), (8, 0), (69, 3), (137, 7), (1, 7)])
def test_k_ends_anywhere_in_a_chunk(name, k, pad, rng):
    check_gathered(machine(name), rng, LOW, k=k, pad=pad)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize(
    "inputs, depth, output",
    [("f16", 64, "f16"), ("bf16", 64, "f32"), ("f32", 32, "f32"), ("s8", 128, "s32"), ("u8", 128, "f32")],
)
def test_types(name, inputs, depth, output, rng):
    config = replace(SHARES if inputs == "s8" else LOW, tile=(128 if inputs == "s8" else 64, 64, depth))
    k, pad = (150, 10) if depth == 128 else (68, 4)
    check_gathered(machine(name), rng, config, inputs=inputs, output=output, k=k, pad=pad)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [LOW, IN_TURNS, STAGGERED], ids=["rows", "in turns", "staggered"])
def test_gathered_and_scattered(name, config, rng):
    check_gathered(machine(name), rng, config, n=136, scatters=True)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [LOW, STAGGERED], ids=["rows", "staggered"])
def test_an_epilogue_has_the_values_of_rows_of_the_product(name, config, rng):
    where, ends = machine(name), [1, 1, 66]
    a, b = rng.integers(-3, 4, (20, 64)).astype(np.float16), rng.integers(-3, 4, (3, 136, 64)).astype(np.float16)
    index, weights = pattern(rng, "any", 66, 20), rng.integers(-2, 3, 66).astype(np.float32)
    given = [where.array(x) for x in (a, b.swapaxes(1, 2), np.array(ends, np.int32), index, weights)]
    how = {"epilogue": multiply, "operands": [per_row(given[4])], "config": config}
    values = where.values(grouped_gemm_ragged(*given[:3], rows=given[3], **how))
    tokens = np.where(((index >= 0) & (index < 20))[:, None], a[index.clip(0, 19)], 0).astype(np.float64)
    expected = np.concatenate([tokens[:1] @ b[0].T, tokens[1:] @ b[2].T.astype(np.float64)]) * weights[:, None]
    assert (values == expected).all()


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [LOW, STAGGERED], ids=["rows", "staggered"])
def test_copies_of_rows_before_give_the_same_bits(name, config, rng):
    """Here shares that are copied go by clusters, of two tiles along N."""
    seed, both = rng.integers(1 << 30), []
    for copies_rows in (False, True):
        how = replace(config, copies_rows=copies_rows)
        both.append(check_gathered(machine(name), np.random.default_rng(seed), how, n=136))
    assert (both[0].view(np.uint16) == both[1].view(np.uint16)).all()


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("copies_rows", [False, True])
def test_scaled_rows_end_anywhere_in_a_chunk(name, copies_rows, rng):
    """Of 8-bit floats, which are small integers, with scales of rows and columns that are powers of 2."""
    where, ends, (tokens, n, k) = machine(name), [1, 1, 66], (20, 72, 133)
    a, b = (rng.integers(-3, 4, shape).astype(NAMES["e4m3"])[..., :k] for shape in ((tokens, 144), (3, n, 144)))
    of_a, of_b = (np.exp2(rng.integers(-2, 3, shape)).astype(np.float32) for shape in ((tokens, 1), (3, 1, n)))
    index = pattern(rng, "any", 66, tokens)
    config = GemmConfig(tile=(64, 64, 128), stages=3, atom="wgmma", copies_rows=copies_rows)
    sides = where.array(a), where.array(b).swapaxes(1, 2), where.array(np.array(ends, np.int32))
    scales = where.array(of_a), where.array(of_b)
    values = where.values(scaled_gemm_ragged(*sides, *scales, rows=where.array(index), config=config))
    exists = ((index >= 0) & (index < tokens))[:, None]
    x = np.where(exists, (a.astype(np.float64) * of_a)[index.clip(0, tokens - 1)], 0)
    y = b.astype(np.float64).swapaxes(1, 2) * of_b
    assert (values == np.concatenate([x[:1] @ y[0], x[1:] @ y[2]])).all()


def test_which_way_is_chosen():
    """Warps bring too few rows for high tiles, as was measured."""
    assert with_copies(SHARES).copies_rows and not with_copies(LOW).copies_rows


@pytest.mark.parametrize("value, atom, message", REFUSED)
def test_what_copies_no_rows(value, atom, message):
    with pytest.raises(pd.LaunchError) as caught:
        GemmConfig(copies_rows=value, atom=atom)
    assert caught.value.message == message


@pytest.mark.exhaustive
@pytest.mark.parametrize("tile, how, output, scatters", KERNELS, ids=str)
def test_kernels_that_gather_spill_nothing(tile, how, output, scatters):
    tiling = WarpgroupTiling((*tile, 64), 4 if output is bf16 else 3, **how)
    operands = Operands(bf16, output, batches="strided", out_boxes=output is bf16, a_gathered=True)
    check_no_spill(warpgroup_ragged_kernel, WarpgroupTraits(tiling, operands, AHEAD), scatters=scatters)
