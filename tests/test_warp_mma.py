"""pd.WarpMma: products of tiles in shared memory by the mma.sync of one warp."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import bf16, e4m3, f16, f32, ptr, s8, s32, u32
from ptxdsl.layout import Layout, tile_layout
from ptxdsl.trace.warpgroup_mma import Accumulators
from tests.machines import MACHINES, machine
from tests.test_warpgroup_mma import DTYPES


@pd.kernel(arch="sm_89", reqntid=128)
def multiply(a: ptr[inputs], b: ptr[inputs], c: ptr[sums], *, inputs, sums, atom, shape, turned=(False, False)):
    """Multiply A (M, K) by B (N, K), the second of two stages, transposed in shared memory where `turned`; each of four
    warps computes a quarter of C."""
    m, n, k = shape
    tiles = []
    for source, extent, is_turned in zip((a, b), (m, n), turned, strict=True):
        tile = Layout((2, k, extent) if is_turned else (2, extent, k), (extent * k, extent if is_turned else k, 1))
        tiles.append(pd.shared(inputs, tile, align=16))
        for i in pd.range(pd.tid.x, extent * k, 128):
            at = (i % k, i // k) if is_turned else (i // k, i % k)
            tiles[-1][(1, *at)] = source[i]
    pd.ptx.bar.sync(0)
    rows, columns = m // 2, n // 2
    first = {"first_row": pd.warpid // 2 * rows, "first_column": pd.warpid % 2 * columns}
    turns = {"a_transposed": turned[0], "b_transposed": turned[1]}
    mma = pd.WarpMma(atom, *tiles, **turns, rows=rows, columns=columns, **first)
    accumulators = mma.accumulators()
    mma(accumulators, 1, 1)
    mma(accumulators, 1, 1, accumulate=False)
    mma(accumulators, 1, 1)
    for register, (row, column) in zip(accumulators.registers, accumulators.coordinates(), strict=True):
        c[row * n + column] = register


CASES = {
    "f16": (f16, f32, "mma.m16n8k16.f32.f16", (64, 32, 32), {}),
    "bf16, MN-major": (bf16, f32, "mma.m16n8k16.f32.bf16", (32, 64, 16), {"turned": (True, True)}),
    "B MN-major": (f16, f32, "mma.m16n8k16.f32.f16", (32, 32, 48), {"turned": (False, True)}),
    "integers": (s8, s32, "mma.m16n8k32.s32.s8", (32, 32, 64), {}),
    "fp8": (e4m3, f32, "mma.m16n8k32.f32.e4m3", (32, 32, 32), {}),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_products(name, case, rng):
    inputs, sums, atom, shape, options = CASES[case]
    (m, n, k), where = shape, machine(name)
    a, b = (rng.integers(-4, 5, size=size).astype(DTYPES[inputs]) for size in ((m, k), (n, k)))
    c = where.array(np.full((m, n), 99, np.float32 if sums is f32 else np.int32))
    constants = {"inputs": inputs, "sums": sums, "atom": atom, "shape": shape, **options}
    multiply[1, 128](where.array(a), where.array(b), c, **constants)
    np.testing.assert_array_equal(where.values(c), 2 * (a.astype(np.float64) @ b.astype(np.float64).T))


@pd.kernel(reqntid=32)
def attend(q: ptr[bf16], k: ptr[bf16], sums: ptr[f32], out: ptr[f32]):
    """Store the row sums of Q @ Kᵀ, and (Q @ Kᵀ) @ K, whose first product is the A of the second one in registers."""
    tiles = [pd.shared(bf16, tile_layout(rows, 64, 16), align=1024) for rows in (16, 32)]
    for tile, source, rows in zip(tiles, (q, k), (16, 32), strict=True):
        for i in pd.range(pd.tid.x, rows * 64, 32):
            tile[i // 64, i % 64] = source[i]
    pd.ptx.bar.warp.sync(0xFFFFFFFF)
    queries, keys = tiles
    qk = pd.WarpMma("mma.m16n8k16.f32.bf16", queries, keys)
    sk = pd.WarpMma("mma.m16n8k16.f32.bf16", b=keys, b_transposed=True)
    scores, products = qk.accumulators(), sk.accumulators()
    qk(scores)
    sk(products, scores.as_a(bf16))
    for row in scores.rows():
        total = row.reduce(lambda x, y: x + y, sum(row.registers[1:], row.registers[0].value))
        with pd.if_(row.first_column == 0):
            sums[row.index] = total
    for register, (row, column) in zip(products.registers, products.coordinates(), strict=True):
        out[row * 64 + column] = register


@pytest.mark.parametrize("name", MACHINES)
def test_accumulators_become_the_a_of_another_product(name, rng):
    where = machine(name)
    q, k = (rng.integers(-2, 3, size=(rows, 64)).astype(DTYPES[bf16]) for rows in (16, 32))
    sums, out = where.array(np.zeros(16, np.float32)), where.array(np.zeros((16, 64), np.float32))
    attend[1, 32](where.array(q), where.array(k), sums, out)
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    np.testing.assert_array_equal(where.values(sums), scores.sum(1))
    np.testing.assert_array_equal(
        where.values(out), scores.astype(DTYPES[bf16]).astype(np.float64) @ k.astype(np.float64)
    )


def test_one_instruction_for_each_sixteen_columns_and_step():
    constants = {"inputs": f16, "sums": f32, "atom": CASES["f16"][2], "shape": (64, 32, 32)}
    text = multiply.ptx(**constants)  # three calls of two K steps, for 32 x 16 of C: two fragments of A, and one of B
    assert (text.count("ldmatrix"), text.count("mma.sync")) == (3 * 2 * 3, 3 * 2 * 4)


def refused(body):
    """Trace a kernel of one warp that has tiles, and return the error."""

    @pd.kernel(reqntid=32)
    def kernel(y: ptr[u32]):
        a, b = pd.shared(f16, (16, 32), align=16), pd.shared(f16, (32, 32), align=16)
        body(a, b)
        y[0] = 1

    with pytest.raises(pd.Error) as error:
        kernel.ptx()
    return error.value.message, error.value.help


ATOM = "mma.m16n8k16.f32.f16"
REFUSED = {
    "atom": (
        lambda a, b: pd.WarpMma("wgmma.m64n32k16.f32.f16", a, b),
        "pd.WarpMma takes an mma.sync atom of m16n8 with inputs of 8 or 16 bits and accumulators of 32 bits; found "
        "wgmma.m64n32k16.f32.f16",
        "such as mma.m16n8k16.f32.f16",
    ),
    "array": (
        lambda a, b: pd.WarpMma(ATOM, 3, b),
        "operand A is an array in shared memory; found 3",
        "such as `tensor.shared(4)`",
    ),
    "rows": (
        lambda a, b: pd.WarpMma(ATOM, a, b, rows=24),
        "pd.WarpMma takes 24 rows from 0; operand A has 16",
        "take a multiple of 16 rows, from a multiple of 16",
    ),
    "columns": (
        lambda a, b: pd.WarpMma(ATOM, a, b, columns=32, first_column=16),
        "pd.WarpMma takes 32 columns from 16; operand B has 32",
        "take a multiple of 16 columns, from a multiple of 16",
    ),
    "part of a step": (
        lambda a, b: pd.WarpMma(ATOM, b=pd.shared(f16, (16, 24), align=16)),
        "operand B has a K of 24; mma.m16n8k16.f32.f16 takes 16 a step",
        "pad K with zeros",
    ),
    "other k": (
        lambda a, b: pd.WarpMma(ATOM, a, pd.shared(f16, (16, 16), align=16)),
        "A has a K of 32 and B of 16",
        "give both the same K",
    ),
    "transposed bytes": (
        lambda a, b: pd.WarpMma("mma.m16n8k32.s32.s8", b=pd.shared(s8, (32, 16), align=16), b_transposed=True),
        "ldmatrix transposes elements of 16 bits; mma.m16n8k32.s32.s8 has 8",
        "store the operand K-major",
    ),
    "layout": (
        lambda a, b: pd.WarpMma(ATOM, b=pd.shared(f16, Layout((16, 32), (1, 16)), align=16)),
        "elements (0, 0) to (0, 7) of `shared` are not contiguous, or not 16-byte aligned",
        "ldmatrix reads rows of 16 bytes: use a row-major layout, or `tile_layout`",
    ),
    "axes of stages": (
        lambda a, b: pd.WarpMma(ATOM, b=pd.shared(f16, (2, 2, 16, 32), align=16)),
        "`shared` has 2 axes of stages",
        "give it one axis of stages before the last two",
    ),
    "stage": (
        lambda a, b: pd.WarpMma(ATOM, a, b)(pd.WarpMma(ATOM, a, b).accumulators(), 0, 1),
        "stage 1 of an array of 1 stage",
        "pass 0 to 0",
    ),
    "accumulators": (
        lambda a, b: pd.WarpMma(ATOM, a, b)(pd.WarpMma(ATOM, a, b, columns=16).accumulators()),
        "the product has accumulators of 16x32; found 16x16",
        "make them with `mma.accumulators()`",
    ),
    "accumulators of a warpgroup": (
        lambda a, b: pd.WarpMma(ATOM, b=b, rows=64)(Accumulators(f32, (64, 32), 0)),
        "the product has accumulators of 64x32; found 64x32 of another instruction",
        "make them with `mma.accumulators()`",
    ),
    "predicate": (
        lambda a, b: pd.WarpMma(ATOM, a, b)(pd.WarpMma(ATOM, a, b).accumulators(), accumulate=1),
        "`accumulate` is 1",
        "pass True or False; set the accumulators to zero otherwise",
    ),
    "a of more rows": (
        lambda a, b: pd.WarpMma(ATOM, b, a).accumulators().as_a(f16),
        "accumulators of 32x16 f32 as operand A of f16",
        "16 rows of f32 become bf16 or f16, 16 columns a K step, or e4m3 or e5m2, 32 columns a K step",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    body, message, help = REFUSED[case]
    assert refused(body) == (message, help)
