"""mma.sp: every form against numpy, on the emulator and on a GPU; what metadata cannot be."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from ptxdsl.errors import EmulationError
from ptxdsl.isa.mma_sparse import SPARSE
from ptxdsl.isa.tensor_core import WIDE, accumulate
from ptxdsl.types import TYPES

from ..machines import MACHINES, machine
from .sparse_kernels import M, N, SparseProduct, wild

FLOATS = [
    SparseProduct(row.k, element, element, sums, selector, ordered=bool((selector + n) % 2))
    for row in SPARSE
    for n, element in enumerate(row.inputs.split())
    for sums in row.sums.split()
    for selector in range(row.selector + 1)
    if sums != "s32"
]
INTEGERS = [
    SparseProduct(row.k, element, row.inputs.split()[1 - n], "s32", selector, ordered=not selector)
    for row in SPARSE
    for n, element in enumerate(row.inputs.split())
    for selector in range(row.selector + 1)
    if row.sums == "s32"
]
MIXED = SparseProduct(64, "e4m3", "e5m2", "f32", ordered=True)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("case", [*FLOATS, MIXED], ids=str)
def test_products_of_floats(case, on, rng):
    a, b = wild(rng, case.a, (2, M, case.k // 2), 2), wild(rng, case.b, (2, N, case.k), 2)
    c = rng.integers(-4, 5, (2, M, N)).astype(np.float16 if case.sums == "f16" else np.float32)
    fours = case.places(rng, 2)
    d = case.run(machine(on), case.memory(a, b, c, fours)).astype(np.float64)
    whole = case.expected(a, b, c, fours)
    sizes = np.abs(case.numbers(b, case.b)).sum(2).max() * np.abs(case.numbers(a, case.a)).max() + 4
    assert np.abs(d - whole).max() <= sizes * (2.0**-9 if case.sums == "f16" else 2.0**-20)
    assert np.abs(whole).max() > 1


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("case", INTEGERS, ids=str)
def test_products_of_integers(case, on, rng):
    most = 16 if case.bits == 4 else 256
    a, b = rng.integers(0, most, (2, M, case.k // 2), np.uint8), rng.integers(0, most, (2, N, case.k), np.uint8)
    c = rng.integers(-(1 << 20), 1 << 20, (2, M, N)).astype(np.int32)
    fours = case.places(rng, 2)
    d = case.run(machine(on), case.memory(a, b, c, fours))
    np.testing.assert_array_equal(d, case.expected(a, b, c, fours))


@pytest.mark.parametrize("flag", ["", ".satfinite"])
def test_integers_wrap_or_are_clamped(flag, rng):
    case = SparseProduct(64, "s8", "s8", "s32", flag=flag)
    a, b = np.full((1, M, 32), 127, np.uint8), np.full((1, N, 64), 127, np.uint8)
    c, fours = np.full((1, M, N), 2**31 - 1, np.int32), case.places(rng, 1)
    d = case.run(machine("emulator"), case.memory(a, b, c, fours))
    assert (d == (2**31 - 1 if flag else 2**31 - 1 + 32 * 127 * 127 - 2**32)).all()


WIDE_SPREAD = [case for case in FLOATS if case.selector == 0]


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("case", WIDE_SPREAD, ids=str)
def test_a_sparse_product_adds_up_as_the_dense_one_with_its_zeros(case, on, rng):
    """Bit for bit as on an H200; of 8-bit floats, groups of four take turns in two products of f16."""
    a, b = wild(rng, case.a, (2, M, case.k // 2), 9), wild(rng, case.b, (2, N, case.k), 9)
    c = (rng.standard_normal((2, M, N)) * 64).astype(np.float16 if case.sums == "f16" else np.float32)
    fours = case.places(rng, 2)
    whole = np.zeros((2, M, case.k))
    np.put_along_axis(whole, case.columns(fours), case.numbers(a, case.a), axis=2)
    numbers, element = case.numbers(b, case.b), TYPES[case.a]
    if case.bits == 8:
        parts = np.arange(case.k) // 4 % 2
        sums = np.zeros_like(c)
        for part in (0, 1):
            sums = accumulate(whole[..., parts == part], numbers[..., parts == part], sums, (element, element), WIDE)
        expected = sums + c
    else:
        with np.errstate(over="ignore"):
            expected = accumulate(whole, numbers, c, (element, element), WIDE)
    with config.using(numerics="h200"):
        d = case.run(machine(on), case.memory(a, b, c, fours))
    bits = f"u{c.itemsize}"
    np.testing.assert_array_equal(np.ascontiguousarray(d).view(bits), expected.view(bits))


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("numerics", ["rounded", "h200"])
def test_numbers_of_b_that_meet_no_number_of_a_do_not_count(numerics, on, rng):
    """Where A has nothing, an infinity of B is not multiplied by zero."""
    case = SparseProduct(32, "f16", "f16", "f32", 1)
    a, c = wild(rng, "f16", (1, M, 16), 1), np.zeros((1, M, N), np.float32)
    b, fours = np.full((1, N, 32), 0x7C00, np.uint16), np.full((1, M, 8), 4)
    b[..., np.arange(32) % 4 < 2] = wild(rng, "f16", (1, N, 16), 1)
    with config.using(numerics=numerics):
        d = case.run(machine(on), case.memory(a, b, c, fours))
    assert np.isfinite(d).all()
    fours[:, 3, 2] = 12
    with config.using(numerics=numerics):
        d = case.run(machine(on), case.memory(a, b, c, fours))
    assert np.isfinite(np.delete(d, 3, axis=1)).all()
    assert not np.isfinite(d[:, 3]).any()


@pytest.mark.parametrize(("ordered", "bits", "known"), [
    (True, 1, "0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110"),
    (False, 5, "0b0001, 0b0010, 0b0011, 0b0100, 0b0110, 0b0111, 0b1000, 0b1001, 0b1011, 0b1100, 0b1101, 0b1110"),
])  # fmt: skip
def test_metadata_that_say_nothing_are_found(ordered, bits, known, rng):
    case = SparseProduct(16, "f16", "f16", "f32", 2, ordered)
    fours = np.full((1, M, 4), 14)
    fours[0, 5, 1] = bits
    memory = case.memory(
        wild(rng, "f16", (1, M, 8), 1), wild(rng, "f16", (1, N, 16), 1), np.zeros((1, M, N), "f4"), fours
    )
    with pytest.raises(EmulationError) as refusal:
        case.run(machine("emulator"), memory)
    assert refusal.value.message == (
        f"k: `metadata` has {bits:#06b} for a group of neighbours along K; it can be {known}, "
        "by thread (0, 0, 0) of block (0, 0, 0) and 31 more threads"
    )
    order = ", the smaller one in the low bits" if ordered else ""
    assert refusal.value.help == f"write the positions of the elements that A stores{order}"


def test_a_selector_names_threads_of_four():
    text = SparseProduct(16, "f16", "f16", "f32", 4).text()
    with pytest.raises(pd.Error) as refusal:
        pd.parse(text)["k"].ptx()
    assert "`selector` is 4; this form takes from 0 to 3" in str(refusal.value)
