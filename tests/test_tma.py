"""Boxes that TMA moves: of every rank, type and swizzle, over the edges of arrays, on the emulator and on a GPU."""

import builtins

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, bf16, f16, f32, f64, ptr, s16, s32, u8
from ptxdsl.layout import Layout, make_tiled_copy_c, make_tiled_mma, shared_operand

from .machines import BF16, MACHINES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)


class Corner(pd.Parameters):
    """Where a box begins."""

    at: s32[5]
    to: s32[5]


@pd.kernel(arch="sm_90a", reqntid=32)
def moved(a: "source", b: "target", corner: Corner, *, source: pd.TensorMap, target: pd.TensorMap):  # noqa: F821
    """b = a in one box."""
    tile, full = a.shared(), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        a.prefetch()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), a.bytes, out="_")
        at = corner.at[: a.type.rank]
        a.load(tile, at, full)
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
            pass
        b.store(corner.to[: b.type.rank], tile)
        pd.ptx.cp.async_.bulk.commit_group()
        pd.ptx.cp.async_.bulk.wait_group(0)


BOXES = {
    "one axis": (u8, (100,), (64,), None, "zeros", (48,)),
    "rows": (f16, (40, 72), (16, 64), 128, "zeros", (8, 8)),
    "over the end": (bf16, (20, 40), (16, 32), 64, "zeros", (10, 24)),
    "before the start": (f32, (20, 40), (16, 8), 32, "zeros", (-5, -4)),
    "narrow lines": (f32, (20, 40), (16, 8), 128, "zeros", (10, 8)),
    "narrow lines of three axes": (f16, (3, 9, 40), (2, 8, 16), 64, "zeros", (1, 3, 8)),
    "NaN outside": (f32, (20, 40), (16, 16), None, "nan", (12, 32)),
    "doubles": (f64, (9, 10), (4, 4), None, "zeros", (2, 2)),
    "three axes": (s32, (3, 20, 36), (2, 8, 32), 128, "zeros", (2, 15, 8)),
    "four axes": (s16, (2, 3, 10, 24), (2, 2, 4, 16), 32, "zeros", (1, 1, 7, 16)),
    "five axes": (f16, (2, 3, 2, 9, 16), (1, 2, 2, 8, 8), None, "zeros", (1, 2, 0, 3, 8)),
}
DTYPES = {u8: np.uint8, s16: np.int16, s32: np.int32, f16: np.float16, bf16: BF16, f32: np.float32, f64: np.float64}


@every_machine
@pytest.mark.parametrize("case", BOXES)
def test_a_box_comes_and_goes_as_numpy_would_copy_it(name, case):
    element, shape, box, swizzle, fill, at = BOXES[case]
    where, dtype = machine(name), np.dtype(DTYPES[element])
    padded = (*shape[:-1], -(-shape[-1] * dtype.itemsize // 16) * 16 // dtype.itemsize)
    a = (np.arange(np.prod(padded)) % 113).reshape(padded).astype(dtype)[..., : shape[-1]]
    wider = (shape[0] + 9, *padded[1:]) if len(shape) > 1 else (shape[0] + 60,)
    b = np.full(wider, 7, dtype)
    expected = np.asarray(b).astype(np.float64)
    to = tuple(max(0, start) for start in at)  # what is written begins at no negative coordinates
    for index in np.ndindex(*box):
        source, target = (tuple(i + start for i, start in zip(index, begin, strict=True)) for begin in (at, to))
        if all(p < n for p, n in zip(target, wider, strict=True)):
            inside = all(0 <= p < n for p, n in zip(source, shape, strict=True))
            expected[target] = a[source] if inside else np.nan if fill == "nan" else 0
    corner = Corner(at=(*at, 0, 0, 0, 0, 0)[:5], to=(*to, 0, 0, 0, 0, 0)[:5])
    out = where.array(b)
    maps = {"source": pd.TensorMap(element, box, swizzle, fill=fill), "target": pd.TensorMap(element, box, swizzle)}
    moved[1, 32](where.array(a), out, corner, **maps)
    assert np.array_equal(where.values(out), expected, equal_nan=True)


def test_boxes_begin_at_multiples_of_16_bytes():
    """As an H200 does, which calls others illegal instructions."""
    a, b = np.zeros((20, 40), np.float32), np.zeros((20, 40), np.float32)
    box = pd.TensorMap(f32, (16, 8))
    report = pd.emulate(moved, 1, 32, a, b, Corner(at=(2, 3, 0, 0, 0), to=(0,) * 5), source=box, target=box)
    assert report.findings[0].kind == "misaligned"
    assert report.findings[0].message.startswith(
        "the box begins at element 3 of its rows, which is not a multiple of 16 bytes"
    )
    assert report.findings[0].help == "start boxes at multiples of 4 elements of f32"


def test_boxes_that_are_written_begin_inside():
    a, b = np.zeros((20, 40), np.float32), np.zeros((20, 40), np.float32)
    box = pd.TensorMap(f32, (16, 8))
    report = pd.emulate(moved, 1, 32, a, b, Corner(at=(0,) * 5, to=(-5, 0, 0, 0, 0)), source=box, target=box)
    assert report.findings[0].kind == "out-of-bounds"
    assert report.findings[0].message.startswith(
        "the box begins at {0, -5}; copies to global memory start at 0 or more along each dimension"
    )
    assert report.findings[0].help == "start it at 0, and copy a smaller box from shared memory"


def test_boxes_that_are_written_end_at_multiples_of_16_bytes():
    """As an H200 does, which writes what is staged behind the line as well; what is read may end anywhere."""
    a, b = np.zeros((20, 40), np.float32), np.zeros((20, 40), np.float32)
    box = pd.TensorMap(f32, (16, 8))
    report = pd.emulate(moved, 1, 32, a[:, :6], b[:, :6], Corner(at=(0,) * 5, to=(0,) * 5), source=box, target=box)
    assert report.findings[0].kind == "out-of-bounds"
    assert report.findings[0].message.startswith(
        "the box reaches the end of rows of 6 elements of f32, not a multiple of 16 bytes: GPUs write whole "
        "16-byte chunks, and so 2 elements past the end of each row"
    )
    assert report.findings[0].help == "store the elements from 4 on with st.global, or pad the rows"


@pd.kernel(arch="sm_90a", reqntid=64)
def written(y: pd.TensorMap(f32, (8, 32), swizzle=128), *, fenced: bool, met: bool):
    """Threads write a box, and one of them asks TMA to add it to y."""
    tile = y.shared()
    for row in range(0, 8, 2):
        tile[row + pd.tid.x // 32, pd.tid.x % 32] = pd.tid.x.to(f32)
    if fenced:
        pd.ptx.fence.proxy.async_.shared__cta()
    if met:
        pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        y.reduce("add", (0, 0), tile)
        pd.ptx.cp.async_.bulk.commit_group()
        pd.ptx.cp.async_.bulk.wait_group(0)


SLICES = {
    "rows of an image": (f16, (3, 4, 12, 8), (2, 1, 8, 8), None, 16, (1, 2, 3)),
    "slices of 32 bytes": (f16, (2, 3, 5, 20, 16), (1, 1, 3, 8, 16), 32, 32, (1, 2, 1, 4)),
    "over the end": (f32, (2, 3, 6, 10, 4), (2, 1, 4, 8, 4), 64, 16, (1, 1, 4, 5)),
    "before the start": (bf16, (2, 2, 6, 10, 8), (1, 1, 4, 8, 8), 128, 16, (1, 1, -1, -3)),
    "volumes": (u8, (2, 2, 3, 4, 20, 32), (1, 1, 2, 3, 16, 32), 32, 32, (1, 1, 1, 0, 2)),
    "no such slice": (f16, (2, 2, 6, 8, 8), (1, 1, 4, 8, 8), None, 16, (0, 2, 0, 0)),
}


@every_machine
@pytest.mark.parametrize("case", SLICES)
def test_boxes_of_images_with_interleaved_channels(name, case):
    element, shape, box, swizzle, interleave, at = SLICES[case]
    where, dtype = machine(name), np.dtype(DTYPES[element])
    a = (np.arange(np.prod(shape)) % 113 + 1).reshape(shape).astype(dtype)
    b = np.full(box, 7, dtype)
    expected = np.zeros(box)
    for index in np.ndindex(*box[:-1]):
        source = tuple(i + start for i, start in zip(index, at, strict=True))
        if all(0 <= p < n for p, n in zip(source, shape, strict=False)):
            expected[index] = a[source]
    kind = pd.TensorMap(element, box, swizzle, interleave=interleave)
    assert (kind.bytes, kind.rank) == (np.prod(box) * dtype.itemsize, len(box) - 1)
    out = where.array(b)
    moved[1, 32](where.array(a), out, Corner(at=(*at, 0, 0, 0, 0)[:5], to=(0,) * 5), source=kind, target=kind)
    assert np.array_equal(where.values(out), expected)


TILES = {
    "boxes along the last axis": (bf16, (24, 200), (16, 192), 128, (8, 64)),
    "boxes along the first axis": (f16, (700, 24), (512, 16), 32, (160, 8)),
    "boxes along both": (f32, (600, 40), (300, 32), 64, (16, 4)),
    "over the end": (f32, (20, 100), (16, 96), 128, (10, 24)),
    "not swizzled": (u8, (6, 608), (4, 512), None, (1, 48)),
    "three axes": (f16, (5, 9, 136), (2, 8, 128), 128, (2, 1, 0)),
}


@every_machine
@pytest.mark.parametrize("case", TILES)
def test_a_tile_of_several_boxes_comes_and_goes_as_one(name, case):
    element, shape, tile, swizzle, at = TILES[case]
    where, dtype = machine(name), np.dtype(DTYPES[element])
    a, b = (np.arange(np.prod(shape)) % 113).reshape(shape).astype(dtype), np.full(shape, 7, dtype)
    kind = pd.TensorMap.tiled(element, tile, swizzle)
    assert kind.tile == tile and kind.bytes == np.prod(tile) * dtype.itemsize
    expected = np.asarray(b).astype(np.float64)
    part = tuple(slice(start, start + extent) for start, extent in zip(at, tile, strict=True))
    expected[part] = a[part]
    out = where.array(b)
    corner = Corner(at=(*at, 0, 0, 0, 0, 0)[:5], to=(*at, 0, 0, 0, 0, 0)[:5])
    moved[1, 32](where.array(a), out, corner, source=kind, target=kind)
    assert np.array_equal(where.values(out), expected)


def test_a_tile_is_a_copy_for_each_box_and_wgmma_finds_it():
    kind = pd.TensorMap.tiled(bf16, (128, 256), swizzle=128)
    text = moved.ptx("sm_90a", source=kind, target=kind)
    assert text.count("cp.async.bulk.tensor.2d.shared::cluster") == text.count("cp.async.bulk.tensor.2d.global") == 4
    operand = shared_operand("wgmma.m64n128k16.f32.bf16", "b", kind.layout)
    starts = [operand.k_starts(step) * 16 for step in range(16)]
    assert starts == [32 * (step % 4) + 128 * 128 * (step // 4) for step in range(16)]


@every_machine
def test_a_swizzled_tile_that_threads_write_is_added_to_an_array(name):
    where = machine(name)
    y = where.array(np.ones((8, 32), np.float32))
    written[1, 64](y, fenced=True, met=True)
    assert np.array_equal(where.values(y), 1 + np.tile(np.arange(64).reshape(2, 32), (4, 1)))


@pytest.mark.parametrize("fenced, met", [(False, True), (True, False), (False, False)])
def test_both_the_fence_and_the_barrier_are_needed(fenced, met):
    y = np.ones((8, 32), np.float32)
    report = pd.emulate(written, 1, 64, y, fenced=fenced, met=met)
    assert {finding.kind for finding in report.findings} == {"race"}
    assert (y == 1).all()


@pd.kernel(arch="sm_90a", reqntid=128)
def convolved(x: "images", w: ptr[f32], y: ptr[f32], *, images: pd.TensorMap, filter: int):  # noqa: F821
    """y = one filter of `filter` by `filter` over images: thread i has the i-th corner of the filter."""
    tile, full = x.shared(), pd.shared(b64, 1)
    elect = pd.tid.x == 0
    with pd.if_(elect):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
    pd.ptx.bar.sync(0)
    total = pd.var(f32, 0)
    for n, (r, s) in enumerate((r, s) for r in range(filter) for s in range(filter)):
        with pd.if_(elect):
            pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), x.bytes, out="_")
            x.load(tile, (0, -1, -1, 0), full, offsets=(r, s))
        with pd.while_(lambda n=n: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), n % 2)):
            pass
        for channel in range(x.box[1]):
            total += tile[pd.tid.x, channel] * w[n * x.box[1] + channel]
        pd.ptx.fence.proxy.async_.shared__cta()
        pd.ptx.bar.sync(0)
    y[pd.tid.x] = total


SUMS = make_tiled_mma("wgmma.m64n128k16.f32.bf16")
STORES = make_tiled_copy_c("stmatrix.x4", SUMS, bits=16)


@pd.kernel(arch="sm_90a", reqntid=128)
def staged(y: pd.TensorMap.tiled(bf16, (64, 128), swizzle=128)):
    """y[r, c] = (128 r + c) % 97, from where a warpgroup has sums, by stmatrix to a tile of two boxes, and TMA."""
    tile = y.shared()
    rows = STORES.get_slice(pd.tid.x).partition_d(tile)  # ((values, copies), tiles in M, in N)
    numbers = SUMS.get_slice(pd.tid.x).partition_c(Layout((64, 128), (128, 1)))  # (values, atoms in M, in N)
    for copy in range(8):
        values = [(numbers(8 * copy + i, 0, 0) % 97).to(f32) for i in range(8)]
        words = [pd.ptx.cvt.rn.bf16x2.f32(values[i + 1], values[i]) for i in range(0, 8, 2)]
        pd.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(tile.address() + rows((0, copy), 0, 0), words)
    pd.ptx.fence.proxy.async_.shared__cta()
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        y.store((0, 0), tile)
        pd.ptx.cp.async_.bulk.commit_group()
        pd.ptx.cp.async_.bulk.wait_group(0)


@every_machine
def test_sums_go_by_stmatrix_to_a_tile_that_tma_stores(name):
    where = machine(name)
    y = where.array(np.zeros((64, 128), BF16))
    staged[1, 128](y)
    assert np.array_equal(where.values(y), np.arange(64 * 128).reshape(64, 128) % 97)


@every_machine
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_by_columns_of_pixels(name, stride):
    """Two images of 9 by 11 with padding 1, and what lies behind them is zeros."""
    where = machine(name)
    x, w = np.arange(2 * 9 * 11 * 8, dtype=np.float32).reshape(2, 9, 11, 8) % 7, np.arange(72, dtype=np.float32) % 5
    y = where.array(np.zeros(128, np.float32))
    images = pd.TensorMap.im2col(f32, 128, 8, (-1, -1), (-1, -1), (stride, stride), swizzle=32)
    convolved[1, 128](where.array(x), where.array(w), y, images=images, filter=3)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), (1, 2))
    expected = np.einsum("npqcrs,rsc->npq", windows[:, ::stride, ::stride], w.reshape(3, 3, 8)).reshape(-1)
    assert np.array_equal(where.values(y), np.concatenate([expected, np.zeros(128)])[:128])


@pd.kernel(arch="sm_90a", reqntid=128)
def pixels_of(x: "images", y: ptr[f32], *, images: pd.TensorMap, slice: int, offsets: tuple):  # noqa: F821
    """y = a column of one slice of channels, (pixels, channels)."""
    tile, full = x.shared(), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), x.bytes, out="_")
        x.load(tile, (0, slice, -1, -1), full, offsets=offsets)
    pd.ptx.bar.sync(0)
    with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
        pass
    for channel in range(x.box[1]):
        y[pd.tid.x * x.box[1] + channel] = tile[pd.tid.x, channel]


@every_machine
@pytest.mark.parametrize(("interleave", "swizzle", "slice"), [(16, None, 1), (16, 64, 0), (32, 32, 2)])
@pytest.mark.parametrize("offsets", [(0, 0), (2, 1)])
def test_columns_of_pixels_of_one_slice_of_channels(name, interleave, swizzle, slice, offsets):
    """The corner of a filter of 3 by 3 goes through two images of 7 by 9 with padding 1."""
    where, channels = machine(name), interleave // 4
    x = np.arange(2 * 3 * 7 * 9 * channels, dtype=np.float32).reshape(2, 3, 7, 9, channels)
    y = where.array(np.zeros(128 * channels, np.float32))
    images = pd.TensorMap.im2col(f32, 128, channels, (-1, -1), (-1, -1), swizzle=swizzle, interleave=interleave)
    pixels_of[1, 128](where.array(x), y, images=images, slice=slice, offsets=offsets)
    padded = np.pad(x[:, slice], ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = (builtins.slice(offset, offset + extent) for offset, extent in zip(offsets, (7, 9), strict=True))
    expected = padded[:, rows, columns].reshape(-1, channels)
    whole = np.concatenate([expected, np.zeros((128, channels))])[:128]
    assert np.array_equal(where.values(y), whole.reshape(-1))


@pytest.mark.parametrize("swizzles", [(128, None), (None, 64), (128, 64)])
def test_a_box_that_lies_otherwise_than_its_array_is_refused(swizzles):
    """Threads would find its elements elsewhere; where only bytes count, `tile.address()` is taken as it is."""

    @pd.kernel(arch="sm_90a", reqntid=32)
    def mixed(a: "source", b: "target", *, source: pd.TensorMap, target: pd.TensorMap, by_address: bool):
        tile = a.shared()
        b.store((0, 0), tile.address() if by_address else tile)

    source, target = (pd.TensorMap(f32, (8, 16), swizzle) for swizzle in swizzles)
    mixed.ptx(source=source, target=source, by_address=False)
    mixed.ptx(source=source, target=target, by_address=True)
    with pytest.raises(pd.TraceError) as refused:
        mixed.ptx(source=source, target=target, by_address=False)
    assert refused.value.message == (
        f"the array in shared memory has layout {source.layout}, and boxes of `b`, a {target}, layout {target.layout}"
    )
    assert refused.value.help == "let both have one swizzle, or take the array from `b.shared()`"
