"""mma of 4-, 6- and 8-bit floats, with and without block scales and sparse A, against matrices in float64."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b32, f32, ptr
from ptxdsl.errors import VerifyError
from ptxdsl.isa import narrow

M, N, WARP = 16, 8, 32
NUMPY = {
    "e2m1": ml_dtypes.float4_e2m1fn, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "ue8m0": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
BITS = {"e2m1": 4, "e2m3": 6, "e3m2": 6, "e4m3": 8, "e5m2": 8}
CHUNKS = {"1X": 1, "2X": 2, "4X": 4}
PLACES = {4: (0, 1), 8: (0, 2), 9: (1, 2), 12: (0, 3), 13: (1, 3), 14: (2, 3)}


@pytest.mark.parametrize("name", ["e2m1", "e2m3", "e3m2", "e4m3", "ue8m0"])
def test_every_value_of_a_format(name):
    values = narrow.values(name)
    np.testing.assert_array_equal(values, np.arange(len(values), dtype=np.uint8).view(NUMPY[name]).astype(np.float64))


def test_an_unsigned_scale_factor_ignores_its_high_bit():
    scales, signed = narrow.scales_of_bytes("ue4m3"), np.arange(128, dtype=np.uint8).view(NUMPY["e4m3"])
    np.testing.assert_array_equal(scales, np.tile(signed.astype(np.float64), 2))


@pd.kernel(arch="sm_120a")
def product(registers: ptr[b32], c: ptr[f32], d: ptr[f32], *, text: str, counts, selectors):
    words = [registers[32 * n + pd.tid.x] for n in range(sum(counts) + 3)]
    a, b, (metadata, scale_a, scale_b) = words[: counts[0]], words[counts[0] : -3], words[-3:]
    sums = [pd.var(f32, c[32 * n + pd.tid.x]) for n in range(4)]
    sparse = (metadata, 0) if text.startswith("mma.sp") else ()
    scales = (scale_a, selectors[:2], scale_b, selectors[2:]) if selectors else ()
    pd.ptx(text, a, b, sums, *sparse, *scales, out=sums)
    for n in range(4):
        d[32 * n + pd.tid.x] = sums[n]


def fragment(matrix, per_register):
    """The registers of a matrix of bit patterns (rows, k), (registers, 32), by the formulas of the manual: bytes hold one
    element for 4 elements a register, two for 8.
    """
    rows, k = matrix.shape
    lane = np.arange(WARP)
    words = []
    for step, half in itertools.product(range(k // (4 * per_register)), range(rows // 8)):
        column = step * 4 * per_register + (lane % 4)[:, np.newaxis] * per_register + np.arange(per_register)
        elements = matrix[(half * 8 + lane // 4)[:, np.newaxis], column].astype(np.uint32)
        words.append(
            (elements << (32 // per_register * np.arange(per_register)).astype(np.uint32)).sum(1, dtype=np.uint32)
        )
    return words


def container(patterns, name, rng):
    """Put patterns into bytes of their own, with noise in the padding."""
    if name == "e2m1":
        return (
            patterns << 2
            | rng.integers(0, 4, patterns.shape, np.uint8) << 6
            | rng.integers(0, 4, patterns.shape, np.uint8)
        )
    return patterns | rng.integers(0, 4, patterns.shape, np.uint8) << 6 if BITS[name] == 6 else patterns


def finite_patterns(rng, name, shape):
    patterns = rng.integers(0, 1 << BITS[name], shape, np.uint8)
    return np.where(np.isfinite(patterns.view(NUMPY[name]).astype(np.float64)), patterns, 0).astype(np.uint8)


def numbers(patterns, name):
    return patterns.view(NUMPY[name]).astype(np.float64)


def spread(held, places, k):
    """The dense rows of a sparse A: `places` (rows, groups) are metadata of each four units."""
    rows, unit = len(held), k // places.shape[1] // 4
    dense = np.zeros((rows, places.shape[1], 4, unit))
    for row, group in np.ndindex(places.shape):
        for n, at in enumerate(PLACES[places[row, group]]):
            dense[row, group, at] = held[row].reshape(-1, 2, unit)[group, n]
    return dense.reshape(rows, k)


def metadata_words(places):
    """The metadata registers (32,): by the manual, lanes 4g + 2j hold row g, 4g + 2j + 1 row g + 8, eight groups each."""
    words = np.zeros(WARP, np.uint32)
    for lane in range(WARP):
        row, part = lane // 4 + 8 * (lane % 2), lane % 4 // 2
        groups = places[row].reshape(2, 8)[part].astype(np.uint32)
        words[lane] = (groups << (4 * np.arange(8)).astype(np.uint32)).sum(dtype=np.uint32)
    return words


CASES = [
    *((32, "f8f6f4", a, b, "", "", ()) for a, b in itertools.product(BITS, BITS)),
    *((32, "mxf8f6f4", a, b, "1X", "ue8m0", s) for (a, b), s in zip(
        itertools.product(BITS, BITS), itertools.cycle(itertools.product(range(4), range(2), range(4), range(4))))),
    *((64, "mxf4", "e2m1", "e2m1", "2X", "ue8m0", s) for s in itertools.product((0, 2), (0, 1), (0, 2), range(4))),
    *((64, "mxf4nvf4", "e2m1", "e2m1", "4X", "ue4m3", (0, t, 0, u)) for t, u in itertools.product(range(2), range(4))),
    (64, "mxf4nvf4", "e2m1", "e2m1", "2X", "ue8m0", (2, 1, 0, 3)),
]  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case[1:5])) + "".join(map(str, case[6])))
def test_products(case, sparse, rng):
    k, kind, a, b, size, scale, selectors = case
    depth = 2 * k if sparse else k
    per_register = 8 if k == 64 else 4
    held = [finite_patterns(rng, name, (rows, n)) for name, rows, n in ((a, M, k), (b, N, depth))]
    stored = held if k == 64 else [container(x, name, rng) for x, name in zip(held, (a, b), strict=True)]
    places = rng.choice(list(PLACES), (M, 16))
    words = [*fragment(stored[0], per_register), *fragment(stored[1], per_register), metadata_words(places)]
    scales = rng.integers(*((120, 135) if scale == "ue8m0" else (0, 127)), (2, 4, WARP), np.uint8)
    words += [scales[n].T.copy().view(np.uint32)[:, 0] for n in range(2)]
    left, right = numbers(held[0], a), numbers(held[1], b)
    if sparse:
        left = spread(left, places, depth)
    if size:
        (byte_a, thread_a, byte_b, thread_b), count = selectors, CHUNKS[size]
        table = narrow.scales_of_bytes(scale)
        for row in range(M):
            lane = row % 8 * 4 + 2 * thread_a + row // 8
            left[row] *= np.repeat(table[scales[0, byte_a : byte_a + count, lane]], depth // count)
        for column in range(N):
            factors = table[scales[1, byte_b : byte_b + count, 4 * column + thread_b]]
            right[column] *= np.repeat(factors, depth // count)
    c = rng.normal(size=(M, N)).astype(np.float32)
    of_lane = [np.array([c[lane // 4 + 8 * (n // 2), lane % 4 * 2 + n % 2] for lane in range(WARP)]) for n in range(4)]
    shown = f".kind::{kind}" + (f".block_scale.scale_vec::{size}" if size else "")
    text = (
        f"{'mma.sp::ordered_metadata' if sparse else 'mma'}.sync.aligned.m16n8k{depth}.row.col{shown}.f32.{a}.{b}.f32"
    )
    d = np.full((4, WARP), np.nan, np.float32)
    counts = len(words) - 3 - (b_count := depth // (4 * per_register)), b_count
    product[1, WARP](
        np.array(words), np.array(of_lane, np.float32), d,
        text=text + (f".{scale}" if size else ""), counts=counts, selectors=selectors,
    )  # fmt: skip
    expected = (left @ right.T + c).astype(np.float32)
    got = np.empty((M, N), np.float32)
    for n, lane in itertools.product(range(4), range(WARP)):
        got[lane // 4 + 8 * (n // 2), lane % 4 * 2 + n % 2] = d[n, lane]
    np.testing.assert_array_equal(got, expected)


def test_a_nan_scale_factor_gives_nan_in_its_row_only():
    ones = np.full((M, 32), 0x38, np.uint8)  # 1.0 in e4m3
    words = [*fragment(ones, 4), *fragment(ones[:N], 4), np.zeros(WARP), np.full(WARP, 127), np.full(WARP, 127)]
    words[-2][4 * 3] = 0xFF  # row 3
    d = np.zeros((4, WARP), np.float32)
    text = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    product[1, WARP](
        np.array(words, np.uint32), np.zeros((4, WARP), np.float32), d, text=text, counts=(4, 2), selectors=(0, 0, 0, 0)
    )  # fmt: skip
    assert np.isnan(d[:2, 12:16]).all() and (d[2:] == 32).all() and (np.delete(d[:2], range(12, 16), 1) == 32).all()


@pytest.mark.parametrize("size, scale, selectors, message", [
    ("4X", "ue4m3", (2, 0, 0, 0), "the byte selector in `part_a` is 2; with 4 scale factors a row it can be 0"),
    ("2X", "ue8m0", (0, 0, 1, 0), "the byte selector in `part_b` is 1; with 2 scale factors a row it can be 0, 2"),
    ("2X", "ue8m0", (0, 2, 0, 0), "the thread selector in `part_a` is 2; with 2 scale factors a row it can be 0, 1"),
    ("2X", "ue8m0", (0, 1, 0, 4), "the thread selector in `part_b` is 4; with 2 scale factors a row it can be 0, 1, 2, 3"),
])  # fmt: skip
def test_selectors_that_there_are_not(size, scale, selectors, message):
    text = f"mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::{size}.f32.e2m1.e2m1.f32.{scale}"
    with pytest.raises(VerifyError) as refusal:
        product.ptx(text=text, counts=(4, 2), selectors=selectors)
    assert str(refusal.value).splitlines()[0] == f"mma: {message}"


@pd.kernel(arch="sm_120a")
def selected(selector: pd.u16, d: ptr[f32]):
    zero = [pd.var(b32, 0) for _ in range(4)]
    sums = [pd.var(f32, 0.0) for _ in range(4)]
    text = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    pd.ptx(text, zero, zero[:2], sums, 0, (selector, 0), 0, (0, 0), out=sums)
    d[pd.tid.x] = sums[0]


def test_a_selector_in_a_register_is_checked_when_it_runs():
    finding = pd.emulate(selected, 1, WARP, 1, np.zeros(WARP, np.float32)).findings[0]
    assert (finding.kind, finding.message) == (
        "block-scale",
        "the byte selector in `part_a` is 1; with 2 scale factors a row it can be 0, 2",
    )
    assert pd.emulate(selected, 1, WARP, 2, np.zeros(WARP, np.float32)).findings == []


@pd.kernel(arch="sm_120a")
def loaded(matrix: ptr[pd.u8], d: ptr[b32], *, text: str, rows: int, count: int):
    tile = pd.shared(pd.u8, rows * 16)
    for n in range(0, rows * 16, WARP):
        tile[n + pd.tid.x] = matrix[n + pd.tid.x]
    pd.ptx.bar.warp.sync(0xFFFFFFFF)
    for n, word in enumerate(pd.ptx(text, tile.address(pd.tid.x % rows * 16))):
        d[32 * n + pd.tid.x] = word


@pd.kernel(arch="sm_100a")
def stored(words: ptr[b32], d: ptr[b32], *, num: int):
    tile = pd.shared(b32, num * 8 * 4)
    held = [words[32 * n + pd.tid.x] for n in range(num)]
    pd.ptx(f"stmatrix.sync.aligned.m16n8.x{num}.trans.shared.b8", tile.address(pd.tid.x % (num * 8) * 4), held)
    pd.ptx.bar.warp.sync(0xFFFFFFFF)
    for n in range(num):
        d[32 * n + pd.tid.x] = tile[32 * n + pd.tid.x]


@pytest.mark.parametrize("num", [1, 2, 4])
def test_stored_matrices_of_bytes(num, rng):
    """Element (row, column) of a 16 x 8 matrix is byte `row` at address `column`; a lane has four of them."""
    matrix = rng.integers(0, 256, (num, 16, 8), np.uint8)
    words = np.zeros((num, WARP, 4), np.uint8)
    for lane in range(WARP):
        g, t = divmod(lane, 4)
        for e in range(4):
            words[:, lane, e] = matrix[:, g + 8 * (e // 2), 2 * t + e % 2]
    d = np.zeros((num, WARP), np.uint32)
    stored[1, WARP](words.view(np.uint32)[..., 0].copy(), d, num=num)
    np.testing.assert_array_equal(d.view(np.uint8).reshape(num, 8, 16), matrix.swapaxes(1, 2))


LOADS = [("m8n16", x, "", kind) for x in (2, 4) for kind in ("b4x16_p64", "b6x16_p32")]
LOADS += [("m16n16", x, ".trans", kind) for x in (1, 2) for kind in ("", "b4x16_p64", "b6x16_p32")]


@pytest.mark.parametrize("shape, num, trans, kind", LOADS)
def test_matrices_of_bytes(shape, num, trans, kind, rng):
    height = 8 if shape == "m8n16" else 16
    width = {"b4x16_p64": 4, "b6x16_p32": 6}.get(kind, 8)
    elements = rng.integers(0, 1 << width, (num, height, 16), np.uint8)
    bits = np.unpackbits(elements[..., np.newaxis], axis=-1, bitorder="little")[..., :width]
    packed = np.packbits(bits.reshape(num * height, -1), axis=1, bitorder="little")
    matrix = np.hstack([packed, rng.integers(0, 256, (num * height, 16 - packed.shape[1]), np.uint8)])
    count = num * height // 8
    d = np.zeros((count, WARP), np.uint32)
    text = f"ldmatrix.sync.aligned.{shape}.x{num}{trans}.shared.b8" + (f"x16.{kind}" if kind else "")
    loaded[1, WARP](matrix, d, text=text, rows=num * height, count=count)
    got = d.view(np.uint8).reshape(count, 8, 4, 4)  # register, g, t, element
    expected = elements.swapaxes(1, 2) if trans else elements  # g and g + 8 are columns, or rows
    np.testing.assert_array_equal(got.reshape(num, -1, 16), expected)
