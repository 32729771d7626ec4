"""pd.tensor_memory and pd.TensorMemoryMma: products of tiles, loads and stores of tensor memory, against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b32, bf16, e4m3, e5m2, f16, f32, ptr, s8, s32, tf32, u8, u32
from ptxdsl.isa.narrow import scales_of_bytes, values
from ptxdsl.layout import scale_layout
from ptxdsl.layout.shared_operand import lines_layout

DTYPES = {
    bf16: ml_dtypes.bfloat16, f16: np.float16, e4m3: ml_dtypes.float8_e4m3fn, e5m2: ml_dtypes.float8_e5m2,
    s8: np.int8, u8: np.uint8, tf32: np.float32,
}  # fmt: skip


def fill(tile, source, rows, columns):
    for i in pd.range(pd.tid.x, rows * columns, 128):
        tile[i // columns, i % columns] = source[i]


def store(c, accumulators, done, n):
    """Store accumulators to c, all columns, 48 at once."""
    done.wait()
    for first in range(0, n, 48):
        held = accumulators.load(first, min(48, n - first))
        for register, (row, column) in zip(held.registers, held.coordinates(), strict=True):
            c[row * n + column] = register


@pd.kernel(arch="sm_100a", reqntid=128)
def multiply(
    a: ptr[a_type], b: ptr[b_type], c: ptr[sums], *, a_type, b_type, sums, atom, shape, turned=(False, False), span=128
):
    """Multiply A (M, K) by B (N, K) twice, the second product added to the first one."""
    m, n, k = shape
    types = a_type, b_type
    tiles = [
        pd.shared(type, lines_layout(extent, k, type.bits, span, turn), align=1024)
        for type, extent, turn in zip(types, (m, n), turned, strict=True)
    ]
    done = pd.Ring(1, producers=1, consumers=128, tensor_memory=True)
    for tile, source, extent in zip(tiles, (a, b), (m, n), strict=True):
        fill(tile, source, extent, k)
    pd.ptx.fence.proxy.async_.shared__cta()
    with pd.tensor_memory(512) as memory:
        mma = pd.TensorMemoryMma(memory, atom, *tiles)
        accumulators = mma.accumulators()
        with pd.warp(1), pd.elect():
            done.acquire()
            mma(accumulators, accumulate=False)
            mma(accumulators)
            done.commit(after_mma=True)
        store(c, accumulators, done, n)


CASES = {
    "f16": (f16, f16, f32, "tcgen05.m128n64k16.f32.f16", (128, 64, 64), {}),
    "bf16, 64 rows": (bf16, bf16, f32, "tcgen05.m64n40k16.f32.bf16", (64, 40, 64), {}),
    "a swizzle of 32 bytes": (f16, f16, f32, "tcgen05.m128n16k16.f32.f16", (128, 16, 64), {"span": 32}),
    "no swizzle": (f16, f16, f32, "tcgen05.m128n24k16.f32.f16", (128, 24, 32), {"span": 0}),
    "MN-major": (bf16, bf16, f32, "tcgen05.m128n64k16.f32.bf16", (128, 64, 32), {"turned": (True, True)}),
    "MN-major bytes": (e4m3, e4m3, f32, "tcgen05.m128n128k32.f32.e4m3", (128, 128, 32), {"turned": (True, True)}),
    "two types": (e4m3, e5m2, f32, "tcgen05.m128n104k32.f32.e4m3.e5m2", (128, 104, 128), {}),
    "tf32": (tf32, tf32, f32, "tcgen05.m64n8k8.f32.tf32", (64, 8, 32), {}),
    "f16 accumulators": (e4m3, e5m2, f16, "tcgen05.m128n40k32.f16.e4m3.e5m2", (128, 40, 128), {}),
    "f16 accumulators, 64 rows": (f16, f16, f16, "tcgen05.m64n24k16.f16.f16", (64, 24, 64), {}),
    "integers": (s8, u8, s32, "tcgen05.m128n32k32.s32.s8.u8", (128, 32, 128), {}),
}  # fmt: skip


@pytest.mark.cases(3)
@pytest.mark.parametrize("case", CASES)
def test_products(case, rng):
    a_type, b_type, sums, atom, (m, n, k), options = CASES[case]
    low = 0 if u8 in (a_type, b_type) else -4
    a, b = (rng.integers(low, 5, size).astype(DTYPES[t]) for t, size in ((a_type, (m, k)), (b_type, (n, k))))
    c = np.full((m, n), 99, {f32: np.float32, f16: np.float16, s32: np.int32}[sums])
    types = {"a_type": a_type, "b_type": b_type, "sums": sums}
    report = pd.emulate(multiply, 1, 128, a, b, c, **types, atom=atom, shape=(m, n, k), **options)
    assert report.findings == []
    np.testing.assert_array_equal(c, 2 * (a.astype(np.float64) @ b.astype(np.float64).T))


@pd.kernel(arch="sm_100a", reqntid=128)
def scaled(a: ptr[u8], b: ptr[u8], a_factors: ptr[u8], b_factors: ptr[u8], c: ptr[f32], *, atom, shape, columns):
    """Multiply A (M, columns bytes) by B (N, columns bytes) with block scales, in the second of two stages."""
    m, n, factors = shape
    tiles = [pd.dynamic_shared(u8, lines_layout(extent, columns, 8, 128, False), align=1024) for extent in (m, n)]
    scales = [pd.dynamic_shared(u8, (-(-extent // 128) * 128 * factors,), align=128) for extent in (m, n)]
    done = pd.Ring(1, producers=1, consumers=128, tensor_memory=True)
    for tile, source, extent in zip(tiles, (a, b), (m, n), strict=True):
        fill(tile, source, extent, columns)
    for array, source in zip(scales, (a_factors, b_factors), strict=True):
        for i in pd.range(pd.tid.x, array.layout.size, 128):
            array[i] = source[i]
    pd.ptx.fence.proxy.async_.shared__cta()
    with pd.tensor_memory(512) as memory:
        mma = pd.TensorMemoryMma(memory, atom, *tiles, a_scales=scales[0], b_scales=scales[1])
        accumulators = mma.accumulators()
        with pd.warp(0), pd.elect():
            done.acquire()
            mma(accumulators, accumulate=False)
            done.commit(after_mma=True)
        store(c, accumulators, done, n)


@pd.kernel(arch="sm_100a", reqntid=128, cluster=2)
def scaled_pair(a: ptr[u8], b: ptr[u8], a_factors: ptr[u8], b_factors: ptr[u8], c: ptr[f32], *, atom, n, factors, k):
    """Multiply A (256, k bytes) by B (n, k bytes) with block scales, half of the rows of each in a block of a pair."""
    rank = pd.special("%cluster_ctarank")
    tiles = [pd.dynamic_shared(u8, lines_layout(extent, k, 8, 128, False), align=1024) for extent in (128, n // 2)]
    sizes = 128 * factors, -(-n // 128) * 128 * factors
    scales = [pd.dynamic_shared(u8, (size,), align=128) for size in sizes]
    done = pd.Ring(1, producers=1, consumers=128, tensor_memory=True, pair=True)
    for tile, source, extent in zip(tiles, (a, b), (128, n // 2), strict=True):
        fill(tile, source + rank * (extent * k), extent, k)
    for array, source in zip(scales, (a_factors + rank * sizes[0], b_factors), strict=True):
        for i in pd.range(pd.tid.x, array.layout.size, 128):
            array[i] = source[i]
    pd.ptx.fence.proxy.async_.shared__cta()
    with pd.tensor_memory(512, pair=True) as memory:
        mma = pd.TensorMemoryMma(memory, atom, *tiles, a_scales=scales[0], b_scales=scales[1])
        accumulators = mma.accumulators()
        with pd.warp(0), pd.elect(), pd.if_(rank == 0):
            done.acquire()
            mma(accumulators, accumulate=False)
            done.commit(after_mma=True)
        store(c + rank * (128 * n), accumulators, done, n)


SCALED = {
    "nvfp4": ("tcgen05.m128n64k64.f32.e2m1.block16.ue4m3", 64, 128),
    "nvfp4, 256 columns": ("tcgen05.m128n256k64.f32.e2m1.block16.ue4m3", 256, 128),
    "mxfp4": ("tcgen05.m128n136k64.f32.e2m1.block32.ue8m0", 136, 128),
    "mxfp8": ("tcgen05.m128n40k32.f32.e4m3.e5m2.block32.ue8m0", 40, 128),
}


def numbers(octets, name):
    """The numbers of bytes, two of each byte for e2m1."""
    if name != "e2m1":
        return octets.view(DTYPES[{"e4m3": e4m3, "e5m2": e5m2}[name]]).astype(np.float64)
    return values("e2m1")[np.stack([octets & 15, octets >> 4], axis=-1).reshape(len(octets), -1)]


SCALED_PAIRS = {
    "nvfp4 of a pair": ("tcgen05.m256n64k64.f32.e2m1.block16.ue4m3", 64, 128),
    "mxfp8 of a pair": ("tcgen05.m256n160k32.f32.e4m3.block32.ue8m0", 160, 128),
}


@pytest.mark.cases(3)
@pytest.mark.parametrize("case", [*SCALED, *SCALED_PAIRS])
def test_block_scales(case, rng):
    atom, n, columns = (SCALED | SCALED_PAIRS)[case]
    m = 256 if case in SCALED_PAIRS else 128
    names = [word for word in atom.split(".") if word[:2] in ("e2", "e4", "e5")]
    *_, block, scale = atom.split(".")
    packed = 2 if names[0] == "e2m1" else 1
    factors = columns * packed // int(block.removeprefix("block"))
    low, high = (122, 132) if scale == "ue8m0" else (0x20, 0x60)
    octets, scales, placed = [], [], []
    for rows, name in ((m, names[0]), (n, names[-1])):
        fields = rng.integers(0, 256, (rows, columns), np.uint8)
        octets.append(fields if name == "e2m1" else fields & 0xBF)
        layout = scale_layout(-(-rows // 128) * 128, factors)
        scales.append(rng.integers(low, high, (rows, factors), np.uint8))
        placed.append(np.zeros(layout.size, np.uint8))
        row, factor = np.indices((rows, factors))
        placed[-1][layout(row, factor)] = scales[-1]
    c = np.full((m, n), np.nan, np.float32)
    arguments = (*octets, *placed, c)
    if case in SCALED_PAIRS:
        report = pd.emulate(scaled_pair, 2, 128, *arguments, atom=atom, n=n, factors=factors, k=columns)
    else:
        report = pd.emulate(scaled, 1, 128, *arguments, atom=atom, shape=(m, n, factors), columns=columns)
    assert report.findings == []
    a, b = (
        numbers(x, name) * scales_of_bytes(scale)[s].repeat(columns * packed // factors, axis=1)
        for x, s, name in zip(octets, scales, (names[0], names[-1]), strict=True)
    )
    np.testing.assert_allclose(c, a @ b.T, rtol=1e-5, atol=1e-3 * abs(a @ b.T).max())


@pd.kernel(arch="sm_100a", reqntid=128)
def chain(a: ptr[b32], b: ptr[f16], c: ptr[f32]):
    """Multiply A (128, 32) of f16 pairs, stored to tensor memory by its warps, by B (64, 64)."""
    tile = pd.shared(f16, lines_layout(64, 64, 16, 128, False), align=1024)
    ready = pd.Ring(1, producers=128, consumers=1, tensor_memory=True)
    done = pd.Ring(1, producers=1, consumers=128, tensor_memory=True)
    fill(tile, b, 64, 64)
    pd.ptx.fence.proxy.async_.shared__cta()
    with pd.tensor_memory(128) as memory:
        mma = pd.TensorMemoryMma(memory, "tcgen05.m128n64k16.f32.f16.ts", b=tile)
        accumulators, words = mma.accumulators(), mma.a_matrix(stages=2)
        ready.acquire()
        words[1].store([a[pd.tid.x * 32 + i] for i in range(32)])
        ready.commit()
        with pd.warp(0), pd.elect():
            ready.wait()
            done.acquire()
            mma(accumulators, words[1], accumulate=False)
            done.commit(after_mma=True)
        store(c, accumulators, done, 64)


def test_a_is_stored_to_tensor_memory(rng):
    a, b = (rng.integers(-4, 5, (rows, 64)).astype(np.float16) for rows in (128, 64))
    c = np.zeros((128, 64), np.float32)
    assert pd.emulate(chain, 1, 128, a.view(np.uint32), b, c).findings == []
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)


@pd.kernel(arch="sm_100a", reqntid=128)
def doubled(x: ptr[type], *, type, rows, columns, first):
    """Store a matrix to tensor memory, load the columns from `first` on, and double them in global memory."""
    with pd.tensor_memory(32) as memory:
        matrix = memory.matrix(type, rows, columns)
        matrix.store([x[row * columns + column] for row, column in matrix.coordinates()])
        held = matrix.load(first)
        for register, (row, column) in zip(held.registers, held.coordinates(), strict=True):
            x[row * columns + column] = register * 2


@pytest.mark.parametrize("type", [f32, f16], ids=str)
@pytest.mark.parametrize(("rows", "columns", "first"), [(128, 7, 2), (64, 24, 8)])
def test_stores_are_loaded_at_their_coordinates(rows, columns, first, type, rng):
    x = rng.standard_normal((rows, columns)).astype(np.float32 if type is f32 else np.float16)
    expected = np.hstack([x[:, :first], 2 * x[:, first:]])
    assert pd.emulate(doubled, 1, 128, x, type=type, rows=rows, columns=columns, first=first).findings == []
    np.testing.assert_array_equal(x, expected)


A, B = (pd.TensorMap(f16, (rows, 64), swizzle=128) for rows in (128, 64))


@pd.kernel(arch="sm_100a", reqntid=256)
def with_epilogue(a: A, b: B, bias: ptr[f32], y: ptr[bf16], tiles: u32, columns: u32, steps: u32):
    """y = relu(a @ b.T + bias) in bf16, with the epilogue of docs/howto/blackwell.md."""
    a_tiles, b_tiles, n = a.shared(3), b.shared(3), columns * 64
    ring = pd.Ring(3, stage_bytes=a.bytes + b.bytes, consumers=1)
    ready = pd.Ring(2, producers=1, consumers=128, tensor_memory=True)
    with pd.tensor_memory(128) as memory:
        mma = pd.TensorMemoryMma(memory, "tcgen05.m128n64k16.f32.f16", a_tiles, b_tiles)
        accumulators = mma.accumulators(stages=2)
        with pd.warp(0), pd.elect():
            for tile in pd.range(tiles):
                for k in pd.range(steps):
                    slot = ring.acquire()
                    a.load(a_tiles.address(slot.index, 0, 0), (tile // columns * 128, k * 64), slot.full)
                    b.load(b_tiles.address(slot.index, 0, 0), (tile % columns * 64, k * 64), slot.full)
                    ring.commit()
        with pd.warp(1), pd.elect():
            for _ in pd.range(tiles):
                stage = ready.acquire()
                for k in pd.range(steps):
                    slot = ring.wait()
                    mma(accumulators[stage], slot, slot, accumulate=k > 0)
                    ring.release(after_mma=True)
                ready.commit(after_mma=True)
        with pd.warpgroup(1):
            for tile in pd.range(tiles):
                stage = ready.wait()
                for first in range(0, 64, 32):
                    for row in accumulators[stage].load(first, 32).rows():
                        i, column = tile // columns * 128 + row.index, tile % columns * 64 + row.first_column
                        values = [
                            pd.max(x + bias[column + k], 0.0) for x, k in zip(row.registers, row.offsets, strict=True)
                        ]
                        words = [
                            pd.pack(low.to(bf16), high.to(bf16))
                            for low, high in zip(values[::2], values[1::2], strict=True)
                        ]
                        for w in range(0, 16, 4):
                            pd.ptx.st.global_.v4.b32(y + (i * n + column + 2 * w), words[w : w + 4])
                ready.release()


def test_an_epilogue_that_converts(rng):
    a, b = (rng.integers(-3, 4, (rows, 192)).astype(np.float16) for rows in (256, 128))
    bias, y = rng.integers(-9, 9, 128).astype(np.float32), np.zeros((256, 128), ml_dtypes.bfloat16)
    assert pd.emulate(with_epilogue, 1, 256, a, b, bias, y, 4, 2, 3).findings == []
    expected = np.maximum(a.astype(np.float32) @ b.astype(np.float32).T + bias, 0)
    np.testing.assert_array_equal(y, expected.astype(ml_dtypes.bfloat16))
