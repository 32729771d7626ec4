"""Products in tensor memory with a sparse A, against numpy, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from ptxdsl.assemble import assemble
from tests.emulate.support import clean

from .pair_products import PairProduct
from .tensor_products import METADATA_AT, Product
from .test_tcgen05 import KIND, refusal
from .test_tcgen05_pairs import ScaledPair
from .test_tcgen05_scales import Scaled

PLAIN = [
    Product(sparse=True),
    Product(n=40, a="bf16", sparse=True, selector=1, modes=(2, 0)),
    Product(64, 24, sparse=True, sums="f16", modes=(6, 4)),
    Product(64, 24, sparse=True, upper=True, from_cells=True, selector=1),
    Product(n=64, sparse=True, transposed=(True, True)),
    Product(a="tf32", sparse=True, selector=1, n=24),
    Product(64, a="tf32", sparse=True, from_cells=True),
    Product(64, 32, a="tf32", sparse=True, modes=(1, 1), transposed=(True, True)),
    Product(a="e4m3", b="e5m2", sparse=True, n=32),
    Product(64, a="e2m1", b="e3m2", sparse=True, modes=(0, 2)),
    Product(a="e3m2", b="e2m3", sparse=True, from_cells=True),
    Product(64, 48, a="u8", b="s8", sums="s32", sparse=True, modes=(4, 4)),
    Product(n=32, a="s8", sums="s32", sparse=True, transposed=(True, True), accumulates=False),
    Product(32, 128, sparse=True, weight_stationary=True),
    Product(32, 64, a="e4m3", sparse=True, weight_stationary=True, from_cells=True),
    Product(64, 64, a="tf32", sparse=True, weight_stationary=True, selector=1),
    Product(128, 64, a="s8", sums="s32", sparse=True, weight_stationary=True),
    Product(negated=(True, False), sparse=True, scale=2),
]
PAIRS = [
    PairProduct(256, 32, sparse=True, selector=1),
    PairProduct(128, 48, sparse=True, issuer=1),
    PairProduct(128, 32, a="tf32", sparse=True, from_cells=True),
    PairProduct(256, 64, a="s8", b="u8", sums="s32", sparse=True),
    PairProduct(128, 32, a="e4m3", sparse=True, selector=0),
]
SCALED = [
    Scaled(a="e4m3", b="e5m2", n=16, sparse=True),
    Scaled(a="e2m1", b="e3m2", n=24, firsts=(2, 1), sparse=True),
    Scaled(kind="mxf4", chunks=2, size="scale_vec::2X", firsts=(2, 0), n=136, steps=1, sparse=True),
    Scaled(kind="mxf4nvf4", chunks=4, size="block16", scale_type="ue4m3", n=16, from_cells=True, sparse=True),
    ScaledPair(256, 32, a="e4m3", b="e5m2", sparse=True),
    ScaledPair(256, 64, kind="mxf4nvf4", chunks=4, size="block16", scale_type="ue4m3", sparse=True),
]


def label(case):
    return f"{getattr(case, 'kind', '')}{case.name}"


@pytest.mark.cases(4)
@pytest.mark.parametrize("case", [*PLAIN, *PAIRS], ids=label)
def test_it_is_the_product_of_numpy(case, rng):
    a, b, c = case.random(rng)
    positions, fours = case.positions(rng)
    report, d = case.run(a, b, c, fours)
    clean(report)
    dense = case.dense(a, positions)
    sizes = np.abs(case.numbers(dense, 0)) @ np.abs(case.numbers(b, 1)).T + np.abs(c.astype(np.float64))
    bound = {"f32": 2.0**-22, "f16": 2.0**-10, "s32": 0}[case.sums] * sizes
    assert (np.abs(d.astype(np.float64) - case.expected(dense, b, c)) <= case.steps * bound).all()


@pytest.mark.cases(2)
@pytest.mark.parametrize("case", SCALED, ids=label)
def test_block_scales(case, rng):
    case = case.with_scales(rng)
    a, b, c = case.random(rng)
    positions, fours = case.positions(rng)
    report, d = case.run(a, b, c, fours)
    clean(report)
    dense = case.dense(a, positions)
    assert (np.abs(d - case.expected(dense, b, c)) <= case.bound(dense, b, c)).all()


def test_omitted_elements_are_not_multiplied(rng):
    """An infinity of B where A stores nothing makes no NaN."""
    case = Product(n=8, steps=1, accumulates=False, sparse=True)
    a, b, c = case.random(rng)
    positions, fours = case.positions(rng)
    b[:, 5] = 0x7C00
    _, d = case.run(a, b, c, fours)
    stored = (positions == 5).any(1)
    assert stored.any() and not stored.all()
    assert np.isfinite(d[~stored]).all() and np.isinf(d[stored]).all()


@pytest.mark.cases(2)
@pytest.mark.parametrize("case", [*PLAIN, *PAIRS], ids=label)
def test_the_assembler_warns_of_nothing(case):
    assert assemble(case.text(), "sm_100a").warnings == ()


SPARSE = KIND.replace("mma.", "mma.sp.")
REFUSED = {
    "a dense descriptor": (
        Product(sparse=True, steps=1), {"clear": 4}, SPARSE + "f16: bit 2 of the descriptor, of sparse products, is 0",
        "set it, or use tcgen05.mma",
    ),
    "a selector of a dense product": (
        Product(steps=1), {"or": 1}, KIND + "f16: bits 0 and 1 of the descriptor, of sparse products, are not 0",
        "clear them, or use tcgen05.mma.sp",
    ),
    "a selector of 16 bits": (
        Product(sparse=True, steps=1), {"or": 2},
        SPARSE + "f16: the sparsity selector, bits 0 and 1 of the descriptor, is 2", "kind::f16 takes 0 or 1",
    ),
    "a selector of 8 bits": (
        Product(a="e4m3", sparse=True, steps=1), {"or": 1},
        SPARSE + "f8f6f4: the sparsity selector, bits 0 and 1 of the descriptor, is 1", "kind::f8f6f4 takes 0",
    ),
    "N of weights": (
        Product(32, 256, sparse=True, weight_stationary=True, steps=1), {},
        "tcgen05.mma.ws.sp.cta_group::1.kind::f16: N, 8 times bits 17 to 22 of the descriptor, is 256",
        "kind::f16 of tcgen05.mma.ws.sp takes N = 64 or 128",
    ),
    "M of a scaled pair": (
        ScaledPair(128, 32, a="e4m3", sparse=True, steps=1), {},
        "tcgen05.mma.sp.cta_group::2.kind::mxf8f6f4.block_scale: M, 128 times bits 27 and 28 of the descriptor, is 128",
        "kind::mxf8f6f4 of cta_group::2 takes M = 256",
    ),
}  # fmt: skip


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", REFUSED)
def test_fields_of_the_instruction_descriptor(name, rng):
    case, change, message, help = REFUSED[name]
    case = case.with_scales(rng) if isinstance(case, Scaled) else replace(case)
    bits = (case.idesc | change.get("or", 0)) & ~change.get("clear", 0)
    edit = {f"mov.b32 %r13, {case.idesc};": f"mov.b32 %r13, {bits};"}
    assert refusal(case, rng, edit) == (message, help)


PLACES = {
    "an odd column": (
        Product(sparse=True, steps=1), METADATA_AT + 1,
        "f16: the metadata begin in column 449; the sparsity selector chooses one of two columns",
        "begin in an even column",
    ),
    "other lanes": (
        Product(64, sparse=True, steps=1), METADATA_AT | 16 << 16,
        "f16: the metadata begin in lane 16 of tensor memory, and D in lane 0", "place both in the same lanes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_places_of_the_metadata(name, rng):
    case, at, message, help = PLACES[name]
    edit = {f"add.u32 %r16, %r11, {METADATA_AT};": f"add.u32 %r16, %r11, {at};"}
    assert refusal(replace(case), rng, edit) == (SPARSE + message, help)


@pytest.mark.parametrize("kind, four, known", [
    ("f16", 0b0101, "0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110"), ("tf32", 0b1000, "0b0100, 0b1110"),
])  # fmt: skip
def test_metadata_without_meaning(kind, four, known, rng):
    case = Product(a=kind, sparse=True, steps=1)
    fours = case.positions(rng)[1]
    fours[7, 3] = four
    finding = case.run(*case.random(rng), fours)[0].findings[0]
    assert (finding.kind, finding.message, finding.help) == (
        "sparse-metadata",
        f"`metadata` has {four:#06b} for a group of neighbours along K; it can be {known}",
        "write the positions of the elements that A stores, the smaller one in the low bits",
    )


def test_metadata_that_were_never_written(rng):
    case = Product(sparse=True, steps=1)
    text = case.text().replace(f"add.u32 %r16, %r11, {METADATA_AT};", "add.u32 %r16, %r11, 480;")
    object.__setattr__(case, "text", lambda: text)
    finding = case.run(*case.random(rng), case.positions(rng)[1])[0].findings[0]
    assert finding.message.startswith(
        "tcgen05.mma.sp.cta_group::1.kind::f16 reads metadata in tensor memory, of which some cells were never written; "
        "st.global.b32 uses it"
    )
