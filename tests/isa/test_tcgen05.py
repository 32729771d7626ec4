"""Products in tensor memory against numpy: kinds, types, shapes, layouts of A, B and D, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from ptxdsl import config
from ptxdsl.assemble import assemble
from tests.emulate.support import clean

from .pair_products import PairProduct
from .tensor_products import Product

MAJORS = ((False, False), (False, True), (True, False), (True, True))
LAYOUTS = [Product(n=64, a="bf16", modes=(mode, mode), transposed=majors) for mode in (0, 6, 4, 2) for majors in MAJORS]
SHAPES = [Product(m, n) for m in (64, 128) for n in (8, 24, 72, 136, 256)]
TYPES = [
    Product(sums="f16"),
    Product(a="bf16", b="f16"),
    Product(a="tf32", modes=(6, 0)),
    Product(64, 32, a="tf32", modes=(1, 1), transposed=(True, True)),
    Product(n=64, a="tf32", modes=(1, 2), transposed=(True, False)),
]
BYTES = [
    Product(a="e4m3", b="e5m2", modes=(4, 6)),
    Product(n=32, a="e5m2", sums="f16", modes=(0, 2)),
    Product(64, 32, a="e4m3", transposed=(True, True), modes=(2, 6)),
    Product(a="e2m1", b="e3m2", modes=(2, 4)),
    Product(64, a="e2m3", b="e2m1", modes=(0, 6)),
    Product(a="e3m2", b="e4m3", negated=(True, False)),
    Product(a="s8", b="u8", sums="s32"),
    Product(64, 48, a="u8", b="u8", sums="s32", modes=(0, 4), transposed=(True, False)),
    Product(n=32, a="s8", sums="s32", transposed=(False, True), modes=(2, 2)),
    Product(a="e2m1", from_cells=True),
    Product(a="e3m2", b="e2m3", from_cells=True),
    Product(64, a="s8", sums="s32", from_cells=True),
]
WEIGHT_STATIONARY = [
    Product(32, 64, weight_stationary=True),
    Product(32, 256, a="e4m3", weight_stationary=True),
    Product(64, 64, a="tf32", weight_stationary=True),
    Product(64, 128, sums="f16", weight_stationary=True),
    Product(128, 64, a="s8", sums="s32", weight_stationary=True),
    *(Product(m, 64, weight_stationary=True, from_cells=True) for m in (32, 64, 128)),
    Product(32, 128, a="e2m1", b="e5m2", weight_stationary=True, from_cells=True),
]
CELLS = [
    Product(from_cells=True),
    Product(64, 24, from_cells=True),
    Product(64, 24, from_cells=True, upper=True),
    Product(a="tf32", from_cells=True, n=32),
    Product(a="bf16", from_cells=True, n=64, transposed=(False, True)),
]
FIELDS = [
    Product(negated=(True, False)),
    Product(negated=(True, True)),
    Product(a="tf32", negated=(False, True)),
    Product(64, upper=True),
    Product(accumulates=False),
    Product(scale=3),
    Product(scale=15, a="tf32", steps=1),
    Product(modes=(2, 0)),
    Product(steps=8, modes=(2, 6)),
]
CASES = LAYOUTS + SHAPES + TYPES + BYTES + CELLS + FIELDS + WEIGHT_STATIONARY


def label(case):
    return case.name + f"{case.scale or ''}{'' if case.accumulates else '-new'}-{case.steps}"


def check(case, rng, **options):
    a, b, c = case.random(rng)
    report, d = case.run(a, b, c, **options)
    clean(report)
    sizes = np.abs(case.numbers(a, 0)) @ np.abs(case.numbers(b, 1)).T + np.abs(c.astype(np.float64))
    bound = {"f32": 2.0**-22, "f16": 2.0**-10, "s32": 0}[case.sums] * sizes
    assert (np.abs(d.astype(np.float64) - case.expected(a, b, c)) <= case.steps * bound).all()


@pytest.mark.cases(10)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_it_is_the_product_of_numpy(case, rng):
    check(case, rng)


@pytest.mark.parametrize("m", [64, 128])
def test_disabled_lanes_keep_what_they_had(m, rng):
    case = Product(m, disabled=0x0000FFFF_00000001_80000000_00000F0F)
    a, b, c = case.random(rng)
    report, d = case.run(a, b, c)
    clean(report)
    disabled = np.array([case.disabled >> int(lane) & 1 for lane in case.lanes()], bool)
    np.testing.assert_array_equal(d[disabled], c[disabled])
    np.testing.assert_allclose(d[~disabled], case.expected(a, b, c)[~disabled], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "case", [Product(from_cells=True, ashift=True), PairProduct(256, from_cells=True, ashift=True)]
)
def test_rows_of_a_are_shifted_after_a_product(case, rng):
    """The second product takes the same A, of which each row but the last of 32 is now the next."""
    a, b, c = case.random(rng)
    text, depth = case.text(), case.k
    second = text.replace("add.u32 %r12, %r11, 264;", "add.u32 %r12, %r11, 256;")
    assert second != text
    object.__setattr__(case, "text", lambda: second)
    report, d = case.run(a, b, c)
    clean(report)
    next_rows = np.where(np.arange(case.m) % 32 < 31, np.arange(case.m) + 1, np.arange(case.m))
    a[:, depth:] = a[next_rows, :depth]
    np.testing.assert_allclose(d, case.expected(a, b, c), rtol=1e-5, atol=1e-4)


def test_a_shift_of_64_rows_is_refused(rng):
    case = Product(64, from_cells=True, ashift=True, steps=1)
    assert refusal(case, rng, {}) == (KIND + "f16.ashift: .ashift of M = 64", "it takes M = 128 or 256")


def mask_of(m, n, skip, use, starts, firsts):
    """The zero-column mask, bit by bit: runs of `use` zeros and `skip` ones, the first of them skipped up to start."""
    bits = []
    for start, first in zip(starts, firsts, strict=True):
        pattern = ([1] * skip + [0] * use) if first else ([0] * use + [1] * skip)
        bits += (pattern * n)[start : start + n * m // 128]
    return np.array(bits, bool)


EXAMPLES = {
    "1": (128, 5, 4, (0,), (0,), 0), "2": (128, 3, 4, (0,), (0,), 1), "3": (64, 3, 4, (0, 0), (1, 0), 1),
    "4": (32, 3, 4, (0, 1, 2, 1), (1, 1, 0, 0), 1), "wide": (128, 256, 1, (7,), (1,), 1),
}  # fmt: skip
"""M, columns skipped and used, starts, first values, and if there is a mask: 1 to 4 are the examples of the manual."""


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", EXAMPLES)
def test_columns_of_b_that_are_zeroed(name, rng):
    m, skip, use, starts, firsts, is_mask = EXAMPLES[name]
    fields = skip - 1 << 40 | use - 1 << 48 | is_mask << 39
    for n, (start, first) in enumerate(zip(starts, firsts, strict=True)):
        fields |= start << 8 * n | first << 32 + n
    case = Product(m, 64, weight_stationary=True, zero_columns=fields)
    a, b, c = case.random(rng)
    report, d = case.run(a, b, c)
    clean(report)
    b[mask_of(m, 64, skip, use, starts, firsts) & bool(is_mask)] = 0
    np.testing.assert_allclose(d, case.expected(a, b, c), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("bits, message, help", [
    (1 << 37, "bits 36 to 38 of `zero_columns` are not 0", "clear them"),
    (2 << 56, "`zero_columns` shifts columns by 2; the emulator has no shift", "clear bits 56 to 61"),
])  # fmt: skip
def test_fields_of_the_zero_column_mask(bits, message, help, rng):
    case = Product(64, 64, weight_stationary=True, zero_columns=bits, steps=1)
    assert refusal(case, rng, {}) == (KIND.replace("mma.", "mma.ws.") + "f16: " + message, help)


def test_numbers_that_are_not_finite(rng):
    case = Product(n=8, steps=1, accumulates=False)
    a, b, c = case.random(rng)
    b &= 0x7FFF
    a[0, 0], a[1, 0], a[2, 0], a[2, 1] = 0x7C00, 0x7E00, 0x7C00, 0xFC00  # inf, NaN, inf - inf
    _, d = case.run(a, b, c)
    assert np.isposinf(d[0]).all() and np.isnan(d[1]).all() and np.isnan(d[2]).all() and np.isfinite(d[3:]).all()
    assert (d[1].view(np.uint32) == 0x7FFFFFFF).all()


def test_numerics_of_a_b200_truncate_25_bits_below_the_largest(rng):
    """The sum of 1 and 15 times 2^-26: each of these is cut off, where a sum rounded once keeps most of them."""
    case = Product(n=8, steps=1, accumulates=False)
    one, small = 0x3C00, 0x0800  # 1, 2^-13
    a, b = np.full((128, 16), small, np.uint16), np.full((8, 16), small, np.uint16)
    a[:, 0] = b[:, 0] = one
    c = np.zeros((128, 8), np.float32)
    _, rounded = case.run(a, b, c)
    with config.using(numerics="b200"):
        _, cut = case.run(a, b, c)
    assert (rounded == np.float32(1 + 15 * 2.0**-26)).all() and (cut == 1).all()


@pytest.mark.cases(3)
@pytest.mark.parametrize("case", [*TYPES, *BYTES[:6], *CELLS], ids=label)
def test_the_assembler_warns_of_nothing(case):
    for arch in ("sm_100a", "sm_103a"):
        assert assemble(case.text().replace(".target sm_100a", f".target {arch}"), arch).warnings == ()


KIND = "tcgen05.mma.cta_group::1.kind::"
REFUSED = {
    "M": (
        {"field": 6 << 24},
        "f16: M, 16 times bits 24 to 28 of the descriptor, is 96",
        "kind::f16 of cta_group::1 takes M = 64 or 128",
    ),
    "N": (
        {"n": 0},
        "f16: N, 8 times bits 17 to 22 of the descriptor, is 0",
        "kind::f16 of cta_group::1 takes multiples of 8 up to 256",
    ),
    "the type of D": (
        {"or": 2 << 4},
        "f16: the type of D, bits 4 and 5 of the descriptor, is 3",
        "kind::f16 of cta_group::1 takes 0 (f16) or 1 (f32)",
    ),
    "the type of A": (
        {"or": 7 << 7},
        "f16: the type of A, bits 7 to 9 of the descriptor, is 7",
        "kind::f16 of cta_group::1 takes 0 (f16) or 1 (bf16)",
    ),
    "the type of B": (
        {"or": 5 << 10},
        "f16: the type of B, bits 10 to 12 of the descriptor, is 5",
        "kind::f16 of cta_group::1 takes 0 (f16) or 1 (bf16)",
    ),
    "bf16 in f16": (
        {"or": 1 << 7, "clear": 1 << 4},
        "f16: D is f16 and A or B is bf16; D of bf16 factors is f32",
        "write 1 to bits 4 and 5",
    ),
    "a shift": (
        {"or": 1 << 30},
        "f16: bits 30 and 31 of the descriptor are not 0",
        "clear them, or use tcgen05.mma.ws",
    ),
    "sparsity": (
        {"or": 4},
        "f16: bit 2 of the descriptor, of sparse products, is 1",
        "clear it, or use tcgen05.mma.sp",
    ),
    "saturation": ({"or": 8}, "f16: the descriptor saturates; kind::f16 does not", "clear bit 3"),
    "a reserved bit": (
        {"or": 1 << 29},
        "f16: a reserved bit of the descriptor (6, 23 or 29) is not 0",
        "clear bits 6, 23 and 29",
    ),
}


def refusal(case, rng, edit):
    a, b, c = case.random(rng)
    text = case.text()
    for old, new in edit.items():
        assert old in text
        text = text.replace(old, new)
    object.__setattr__(case, "text", lambda: text)
    finding = case.run(a, b, c)[0].findings[0]
    assert finding.kind == "tensor-memory"
    return finding.message, finding.help


@pytest.mark.parametrize("name", REFUSED)
def test_fields_of_the_instruction_descriptor(name, rng):
    change, message, help = REFUSED[name]
    case = Product(steps=1)
    bits = case.idesc | change.get("or", 0)
    bits &= ~change.get("clear", 0)
    if "field" in change:
        bits = bits & ~(31 << 24) | change["field"]
    if "n" in change:
        bits = bits & ~(63 << 17) | change["n"] << 17
    edit = {f"mov.b32 %r13, {case.idesc};": f"mov.b32 %r13, {bits};"}
    assert refusal(case, rng, edit) == (KIND + message, help)


def test_integers_wrap_or_saturate():
    wraps = Product(n=8, a="u8", sums="s32", steps=1)
    a, b = np.full((128, 32), 255, np.uint8), np.full((8, 32), 255, np.uint8)
    c = np.full((128, 8), 2**31 - 1, np.int32)
    assert (wraps.run(a, b, c)[1] == 2**31 - 1 + 32 * 255**2 - 2**32).all()
    assert (replace(wraps, saturates=True).run(a, b, c)[1] == 2**31 - 1).all()


OTHERS_REFUSED = {
    "negated integers": (
        Product(a="s8", sums="s32", steps=1, negated=(True, False)),
        "i8: A or B is negated; integers cannot be", "clear bits 13 and 14",
    ),
    "N of integers": (
        Product(n=40, a="s8", sums="s32", steps=1),
        "i8: N, 8 times bits 17 to 22 of the descriptor, is 40",
        "kind::i8 of cta_group::1 takes multiples of 16 up to 256",
    ),
    "N of bytes that are N-major": (
        Product(n=24, a="e4m3", steps=1, transposed=(False, True), modes=(2, 0)),
        "f8f6f4: N, 8 times bits 17 to 22 of the descriptor, is 24",
        "kind::f8f6f4 of cta_group::1 takes multiples of 16 up to 256 if B is N-major",
    ),
    "N-major elements of 4 bits": (
        Product(n=32, a="e4m3", b="e2m1", steps=1, transposed=(False, True)),
        "f8f6f4: B of e2m1 is N-major; elements of 4 and 6 bits are K-major", "clear bit 16",
    ),
    "M of weights": (
        Product(32, 96, steps=1, weight_stationary=True),
        "f16: N, 8 times bits 17 to 22 of the descriptor, is 96", "kind::f16 of tcgen05.mma.ws takes N = 64, 128 or 256",
    ),
    "the sums of integers": (
        Product(a="s8", sums="f32", steps=1),
        "i8: the type of D, bits 4 and 5 of the descriptor, is 1", "kind::i8 of cta_group::1 takes 2 (s32)",
    ),
    "A in cells, transposed": (
        Product(steps=1, from_cells=True, transposed=(True, False)),
        "f16: A is in tensor memory and M-major; it is K-major there", "clear bit 15",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS_REFUSED)
def test_combinations_that_no_kind_has(name, rng):
    case, message, help = OTHERS_REFUSED[name]
    name = KIND.replace("mma.", "mma.ws.") if case.weight_stationary else KIND
    assert refusal(replace(case), rng, {}) == (name + message, help)


LAYOUTS_REFUSED = {
    "no version": (
        Product(steps=1), {"clear": 1 << 46},
        "f16: bits 46 to 48 of `a_desc` are 0; they must be 0b001",
        "descriptors of tcgen05 have 1 << 46 in addition to the fields of those of wgmma",
    ),
    "no such mode": (
        Product(steps=1), {"or": 1 << 61},
        "f16: the swizzle mode of `a_desc`, bits 61 to 63, is 3",
        "use 0 (none), 2 (128 bytes), 4 (64), 6 (32), or 1 (128 bytes in atoms of 32)",
    ),
    "an absolute address": (
        Product(steps=1), {"or": 1 << 52},
        "f16: bit 52 of `a_desc`, an absolute leading dimension, is 1; only products with K = 96 take it",
        "clear it",
    ),
    "bits that are zero": (
        Product(steps=1), {"or": 1 << 55}, "f16: bits 53 to 60 of `a_desc` are not 0", "clear them",
    ),
    "atoms of 32 bytes, K-major": (
        Product(steps=1), {"or": 1 << 61, "clear": 2 << 61},
        "f16: A, of 16 bits and K-major, has swizzle mode 1", "use another swizzle mode than 1",
    ),
    "transposed tf32": (
        Product(steps=1, a="tf32", n=32, transposed=(True, False)), {},
        "tf32: A, of 32 bits and M-major, has swizzle mode 2", "use swizzle mode 1, 128 bytes in atoms of 32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS_REFUSED)
def test_fields_of_the_shared_memory_descriptor(name, rng):
    case, change, message, help = LAYOUTS_REFUSED[name]
    case = replace(case)
    bits = case.descriptor(0, 0) | change.get("or", 0)
    bits &= ~change.get("clear", 0)
    edit = {f"mov.b64 %rd5, {case.descriptor(0, 0)};": f"mov.b64 %rd5, {bits};"}
    assert refusal(case, rng, edit) == (KIND + message, help)


PLACES = {
    "D in lane 16": (
        Product(steps=1), "0x100000", "f16: D, of M = 128, begins in lane 16",
        "its first lane is 0: an address is lane << 16 | column",
    ),
    "D in lane 32": (
        Product(64, steps=1), "0x200000", "f16: D, of M = 64, begins in lane 32",
        "its first lane is 0 or 16: an address is lane << 16 | column",
    ),
    "columns": (
        Product(steps=1), "500", "f16 writes columns 500 to 515 of tensor memory; the block has allocated columns "
        "0 to 511", "allocate enough columns with tcgen05.alloc",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_places_of_d(name, rng):
    case, offset, message, help = PLACES[name]
    edit = {"add.u32 %r11, %r7, 0;": f"add.u32 %r11, %r7, {offset};"}
    assert refusal(replace(case), rng, edit) == (KIND + message, help)


def test_places_of_a(rng):
    case = Product(64, steps=1, from_cells=True)
    edit = {"add.u32 %r12, %r11, 256;": "add.u32 %r12, %r11, 0x100100;"}
    assert refusal(case, rng, edit) == (
        KIND + "f16: A begins in lane 16 of tensor memory, and D in lane 0",
        "place both in the same lanes",
    )
