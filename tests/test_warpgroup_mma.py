"""pd.WarpgroupMma: products of tiles in shared memory, and the coordinates of accumulators."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import bf16, e4m3, f16, f32, ptr, s8, s32, u32
from ptxdsl.layout import tile_layout
from ptxdsl.trace.warpgroup_mma import Accumulators
from tests.machines import MACHINES, machine

DTYPES = {bf16: ml_dtypes.bfloat16, f16: np.float16, e4m3: ml_dtypes.float8_e4m3fn, s8: np.int8}


@pd.kernel(arch="sm_90a", reqntid=256)
def multiply(
    a: ptr[inputs], b: ptr[inputs], c: ptr[sums], *, inputs, sums, atom, shape, turned=(False, False), rows=64
):
    """Multiply A (M, K) by B (N, K), transposed in shared memory where `turned`, in two stages of which one is used."""
    m, n, k = shape
    layouts = tile_layout(m, k, inputs.bits, transposed=turned[0]), tile_layout(n, k, inputs.bits, transposed=turned[1])
    tiles = [pd.shared(inputs, layout, align=1024) for layout in layouts]
    for tile, source, extent in zip(tiles, (a, b), (m, n), strict=True):
        for i in pd.range(pd.tid.x, extent * k, 256):
            tile[i // k, i % k] = source[i]
    pd.ptx.fence.proxy.async_.shared__cta()
    pd.ptx.bar.sync(0)
    with pd.warpgroup(0, 1) as role:
        mma = pd.WarpgroupMma(atom, *tiles, rows=rows, first_row=role.index * rows)
        accumulators = mma.accumulators()
        mma(accumulators, accumulate=False)
        mma.wait(0)
        for register, (row, column) in zip(accumulators.registers, accumulators.coordinates(), strict=True):
            c[row * n + column] = register


CASES = {
    "bf16": (bf16, f32, "wgmma.m64n32k16.f32.bf16", (128, 32, 64), {}),
    "parts of N, two blocks of rows": (f16, f32, "wgmma.m64n64k16.f32.f16", (256, 128, 64), {"rows": 128}),
    "MN-major": (bf16, f32, "wgmma.m64n64k16.f32.bf16", (128, 64, 32), {"turned": (True, True)}),
    "fp8": (e4m3, f32, "wgmma.m64n8k32.f32.e4m3", (128, 8, 128), {}),
    "integers": (s8, s32, "wgmma.m64n16k32.s32.s8", (128, 16, 128), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_products(name, case, rng):
    inputs, sums, atom, shape, options = CASES[case]
    (m, n, k), where = shape, machine(name)
    a, b = (rng.integers(-4, 5, size=size).astype(DTYPES[inputs]) for size in ((m, k), (n, k)))
    c = where.array(np.full((m, n), 99, np.float32 if sums is f32 else np.int32))
    constants = {"inputs": inputs, "sums": sums, "atom": atom, "shape": shape, **options}
    multiply[1, 256](where.array(a), where.array(b), c, **constants)
    np.testing.assert_array_equal(where.values(c), a.astype(np.float64) @ b.astype(np.float64).T)


@pd.kernel(arch="sm_90a", reqntid=128)
def chain(a: pd.TensorMap(bf16, (64, 64), swizzle=128), b: pd.TensorMap(bf16, (64, 64), swizzle=128), out: ptr[f32]):
    """Store the row sums of (A @ Bᵀ) @ B, whose first product is the A of the second one in registers."""
    a_tile, b_tiles = a.shared(), b.shared(2)
    ring = pd.Ring(1, stage_bytes=a.bytes + b.bytes, consumers=128, each="warpgroup")
    with pd.warp(0), pd.elect():
        slot = ring.acquire()
        a.load(a_tile, (0, 0), slot.full)
        b.load(b_tiles.address(1, 0, 0), (0, 0), slot.full)
        ring.commit()
    with pd.warpgroup(0):
        first = pd.WarpgroupMma("wgmma.m64n64k16.f32.bf16", a_tile, b_tiles)
        second = pd.WarpgroupMma("wgmma.m64n64k16.f32.bf16.rs", b=b_tiles, b_transposed=True)
        scores, sums = first.accumulators(), second.accumulators()
        ring.wait()
        first(scores, 0, 1)
        first.wait(0)
        second(sums, scores.as_a(bf16), 1)
        second.wait(0)
        for row in sums.rows():
            total = row.reduce(lambda x, y: x + y, sum(row.registers[1:], row.registers[0].value))
            with pd.if_(row.first_column == 0):
                out[row.index] = total


@pytest.mark.parametrize("name", MACHINES)
def test_accumulators_become_the_a_of_another_product(name, rng):
    where = machine(name)
    a, b = (rng.integers(-2, 3, size=(64, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = where.array(np.zeros(64, np.float32))
    chain[1, 128](where.array(a), where.array(b), out)
    a, b = a.astype(np.float64), b.astype(np.float64)
    products = (a @ b.T).astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_array_equal(where.values(out), (products @ b).sum(1))


@pd.kernel(arch="sm_90a", reqntid=128)
def multiply_converted(a: ptr[f32], b: ptr[e4m3], c: ptr[f32], *, k, in_order):
    """Multiply A (64, k), which becomes 8-bit in registers, by B (16, k)."""
    tile = pd.shared(e4m3, tile_layout(16, k, 8, 64), align=1024)
    for i in pd.range(pd.tid.x, 16 * k, 128):
        tile[i // k, i % k] = b[i]
    pd.ptx.fence.proxy.async_.shared__cta()
    pd.ptx.bar.sync(0)
    with pd.warpgroup(0):
        mma = pd.WarpgroupMma("wgmma.m64n16k32.f32.e4m3.rs", b=tile)
        of_a = Accumulators(f32, (64, k), 0)
        for register, (row, column) in zip(of_a.registers, of_a.coordinates(), strict=True):
            register.set(a[row * k + column])
        accumulators = mma.accumulators()
        mma(accumulators, of_a.as_a(e4m3, mma.a_registers(), in_order))
        mma.wait(0)
        for register, (row, column) in zip(accumulators.registers, accumulators.coordinates(), strict=True):
            c[row * 16 + column] = register


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("in_order", [True, False])
def test_accumulators_become_an_a_of_8_bits(name, in_order, rng):
    where, k = machine(name), 64
    a, b = rng.integers(-16, 17, (64, k)).astype(np.float32), rng.integers(-4, 5, (16, k)).astype(DTYPES[e4m3])
    c = where.array(np.full((64, 16), 99, np.float32))
    order = np.arange(k) if in_order else np.arange(k).reshape(-1, 2, 4, 2).swapaxes(1, 2).ravel()
    multiply_converted[1, 128](
        where.array(a), where.array(np.ascontiguousarray(b[:, order])), c, k=k, in_order=in_order
    )
    np.testing.assert_array_equal(where.values(c), a @ b.astype(np.float64).T)


def refused(body):
    """Trace a kernel of one warpgroup that has tiles, and return the error."""

    @pd.kernel(arch="sm_90a", reqntid=128)
    def kernel(y: ptr[u32]):
        a = pd.shared(bf16, tile_layout(64, 64, 16), align=1024)
        b = pd.shared(bf16, tile_layout(32, 64, 16), align=1024)
        with pd.warpgroup(0):
            body(a, b)
        y[0] = 1

    with pytest.raises(pd.Error) as error:
        kernel.ptx()
    return error.value.message


ATOM = "wgmma.m64n32k16.f32.bf16"
REFUSED = {
    "atom": (
        lambda a, b: pd.WarpgroupMma("mma.m16n8k16.f32.bf16", a, b),
        "pd.WarpgroupMma takes a wgmma atom with accumulators of 32 bits; found mma.m16n8k16.f32.bf16",
    ),
    "no a": (lambda a, b: pd.WarpgroupMma(ATOM, b=b), f"{ATOM} reads A from shared memory; `a` is missing"),
    "a in registers": (
        lambda a, b: pd.WarpgroupMma(f"{ATOM}.rs", a, b), f"{ATOM}.rs reads A from registers; `a` is given",
    ),
    "rows": (lambda a, b: pd.WarpgroupMma(ATOM, a, b, rows=96), "pd.WarpgroupMma takes 96 rows from 0"),
    "stage": (
        lambda a, b: pd.WarpgroupMma(ATOM, a, b)(pd.WarpgroupMma(ATOM, a, b).accumulators(), 0, 1),
        "stage 1 of an array of 1 stage",
    ),
    "accumulators": (
        lambda a, b: pd.WarpgroupMma(ATOM, a, b)(pd.WarpgroupMma("wgmma.m64n16k16.f32.bf16", a, pd.shared(bf16, tile_layout(16, 64, 16), align=1024)).accumulators()),
        "the product has accumulators of 64x32; found 64x16",
    ),
    "columns of an operand of 8 bits": (
        lambda a, b: pd.WarpgroupMma("wgmma.m64n16k16.f32.bf16", a, pd.shared(bf16, tile_layout(16, 64, 16), align=1024)).accumulators().as_a(e4m3),
        "accumulators of 64x16 f32 as operand A of e4m3",
    ),
    "array": (
        lambda a, b: pd.WarpgroupMma(ATOM, 3, b), "operand A is an array in shared memory; found 3",
    ),
    "other k": (
        lambda a, b: pd.WarpgroupMma(ATOM, a, pd.shared(bf16, tile_layout(32, 128, 16), align=1024)),
        "A has a K of 64 and B of 128",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    body, message = REFUSED[case]
    assert refused(body) == message
