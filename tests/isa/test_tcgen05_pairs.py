"""Products in the tensor memories of a pair of blocks against numpy: shapes, kinds, layouts, and what is refused."""

from dataclasses import dataclass

import numpy as np
import pytest

from ptxdsl.assemble import assemble
from tests.emulate.support import clean

from .pair_products import PairProduct
from .test_tcgen05 import label, refusal
from .test_tcgen05_scales import SCALE_A, SCALE_B, SCALE_COLUMNS, Scaled, put_factors

CASES = [
    *(PairProduct(m, n, issuer=n // 16 % 2) for m in (128, 256) for n in (16, 32, 80, 256)),
    *(PairProduct(256, 32, a="bf16", modes=(mode, mode), transposed=(True, True), issuer=1) for mode in (0, 6, 2)),
    PairProduct(256, 128, transposed=(True, True)),
    PairProduct(128, 128, a="tf32", modes=(1, 1), transposed=(True, True), steps=1),
    PairProduct(256, 64, a="e4m3", b="e5m2", modes=(4, 6)),
    PairProduct(128, 32, a="e2m1", b="e3m2", modes=(2, 4), sums="f16"),
    PairProduct(256, 64, a="s8", b="u8", sums="s32"),
    PairProduct(128, 32, a="u8", b="u8", sums="s32", issuer=1),
    PairProduct(256, 32, from_cells=True),
    PairProduct(128, 32, from_cells=True),
    PairProduct(128, 48, a="e4m3", from_cells=True, issuer=1),
    PairProduct(256, 32, accumulates=False, negated=(True, False)),
    PairProduct(128, 32, scale=3),
]


@pytest.mark.cases(6)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_it_is_the_product_of_numpy(case, rng):
    a, b, c = case.random(rng)
    report, d = case.run(a, b, c)
    clean(report)
    sizes = np.abs(case.numbers(a, 0)) @ np.abs(case.numbers(b, 1)).T + np.abs(c.astype(np.float64))
    bound = {"f32": 2.0**-22, "f16": 2.0**-10, "s32": 0}[case.sums] * sizes
    assert (np.abs(d.astype(np.float64) - case.expected(a, b, c)) <= case.steps * bound).all()


@pytest.mark.parametrize("m", [128, 256])
def test_disabled_lanes_keep_what_they_had(m, rng):
    """The first 128 bits are lanes of the even block."""
    case = PairProduct(m, disabled=0x0000FFFF_00000001_80000000_00000F0F << 128 | 0xFF)
    a, b, c = case.random(rng)
    report, d = case.run(a, b, c)
    clean(report)
    product, rows, width = case.expected(a, b, c), m // 2, case.n // case.parts
    for row in range(m):
        for part in range(case.parts):
            lane = row % rows + part * rows
            columns = slice(part * width, (part + 1) * width)
            wanted = c if case.disabled >> (row // rows * 128 + lane) & 1 else product
            np.testing.assert_allclose(d[row, columns], wanted[row, columns], rtol=1e-5, atol=1e-4)


@pytest.mark.cases(3)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_the_assembler_warns_of_nothing(case):
    for arch in ("sm_100a", "sm_103a"):
        if arch == "sm_103a" and case.sums == "s32":
            continue
        assert assemble(case.text().replace(".target sm_100a", f".target {arch}"), arch).warnings == ()


@dataclass(frozen=True)
class ScaledPair(PairProduct, Scaled):
    """Products of a pair with block scales: a block has the factors of its rows of A, and of all columns of B."""

    @property
    def half(self):
        names = set(Scaled.__dataclass_fields__)
        fields = {name: getattr(self, name) for name in names}
        return Scaled(**{**fields, "m": self.m // 2, "n": self.n // 2})

    def others(self, block=0):
        cells, rows, width = np.zeros((SCALE_COLUMNS, 128), np.uint32), self.m // 2, self.n // self.parts
        of_a, of_b = self.scale_bytes
        for row, line in enumerate(of_a[block * rows : (block + 1) * rows]):
            put_factors(cells, 0, row, line, rows, range(4))
        for column, line in enumerate(of_b[: self.n]):
            part, at = divmod(column, width)  # each part of the columns of D has the factors of its own
            quarters = range(4) if self.parts == 1 else (2 * part, 2 * part + 1)
            put_factors(cells, SCALE_B - SCALE_A, at, line, width, quarters)
        return cells.view(np.uint8).reshape(-1)

    def text(self):
        text = super().text()
        return text.replace("sm_100a", "sm_103a") if self.is_long else text  # which alone has K = 96

    def with_scales(self, rng):
        case = Scaled.with_scales(self, rng)
        low, high = (120, 134) if self.scale_type == "ue8m0" else (0x20, 0x60)
        sizes = self.m, self.n
        object.__setattr__(
            case, "scale_bytes", tuple(rng.integers(low, high, (rows, 4 * self.words), np.uint8) for rows in sizes)
        )
        return case


SCALED = [
    ScaledPair(256, 32, a="e4m3", b="e5m2"),
    ScaledPair(256, 256, a="e4m3", firsts=(1, 3), steps=1, issuer=1),
    ScaledPair(128, 96, a="e2m1", b="e3m2"),
    ScaledPair(128, 256, a="e5m2", steps=1, issuer=1),
    ScaledPair(256, 64, kind="mxf4nvf4", chunks=4, size="block16", scale_type="ue4m3"),
    ScaledPair(128, 160, kind="mxf4", chunks=2, from_cells=True, steps=1),
    ScaledPair(256, 32, kind="mxf4nvf4", chunks=6, size="block16", firsts=(2, 0), is_long=True, steps=1, modes=(0, 0)),
]


@pytest.mark.cases(3)
@pytest.mark.parametrize("case", SCALED, ids=lambda case: f"{case.m}-{case.n}-{case.kind}-{case.a}")
def test_block_scales(case, rng):
    case = case.with_scales(rng)
    a, b, c = case.random(rng)
    report, d = case.run(a, b, c)
    clean(report)
    assert (np.abs(d - case.expected(a, b, c)) <= case.bound(a, b, c)).all()


KIND = "tcgen05.mma.cta_group::2.kind::"
REFUSED = {
    "M": (
        PairProduct(64, steps=1), "f16: M, 16 times bits 24 to 28 of the descriptor, is 64",
        "kind::f16 of cta_group::2 takes M = 128 or 256",
    ),
    "N": (
        PairProduct(256, 24, steps=1), "f16: N, 8 times bits 17 to 22 of the descriptor, is 24",
        "kind::f16 of cta_group::2 takes multiples of 16 up to 256",
    ),
    "N of integers": (
        PairProduct(256, 48, a="s8", sums="s32", steps=1), "i8: N, 8 times bits 17 to 22 of the descriptor, is 48",
        "kind::i8 of cta_group::2 takes multiples of 32 up to 256",
    ),
    "N of bytes that are N-major": (
        PairProduct(256, 48, a="e4m3", transposed=(False, True), modes=(2, 0), steps=1),
        "f8f6f4: N, 8 times bits 17 to 22 of the descriptor, is 48",
        "kind::f8f6f4 of cta_group::2 takes multiples of 32 up to 256 if B is N-major",
    ),
    "M with scales": (
        ScaledPair(256, 32, a="e4m3", steps=1),
        "mxf8f6f4.block_scale: M, 128 times bits 27 and 28 of the descriptor, is 384",
        "kind::mxf8f6f4 of cta_group::2 takes M = 128 or 256",
    ),
    "N with scales": (
        ScaledPair(256, 24, a="e4m3", steps=1),
        "mxf8f6f4.block_scale: N, 8 times bits 17 to 22 of the descriptor, is 24",
        "kind::mxf8f6f4 of cta_group::2 takes multiples of 16 up to 256",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_shapes_that_no_kind_takes(name, rng):
    case, message, help = REFUSED[name]
    edit = {}
    if name == "M with scales":
        case = case.with_scales(rng)
        edit = {f"mov.b32 %r13, {case.idesc};": f"mov.b32 %r13, {case.idesc | 3 << 27};"}
    elif isinstance(case, ScaledPair):
        case = case.with_scales(rng)
    assert refusal(case, rng, edit) == (KIND + message, help)
