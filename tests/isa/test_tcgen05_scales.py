"""Products in tensor memory with block scales, against numpy, and what is refused."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from ptxdsl import config
from ptxdsl.assemble import assemble
from ptxdsl.isa.narrow import scales_of_bytes, values
from tests.emulate.support import clean
from tests.emulate.tensor_kernels import global_words, registers

from .tensor_products import B_AT, CODES, Product

A_AT, SCALE_A, SCALE_B, SCALE_COLUMNS = 256, 400, 408, 32  # columns


def put_factors(cells, first, row, line, rows, quarters):
    """Put the bytes of a row, one of `rows`, into cells: four more bytes are in the next blocks of 128 rows."""
    for n, word in enumerate(line.view(np.uint32)):
        column = first + row // 32 + n * 4 * -(-rows // 128)
        cells[column, [32 * quarter + row % 32 for quarter in quarters]] = word


def remade(case):
    """The case, with its scale factors in cells."""
    cells = np.zeros((SCALE_COLUMNS, 128), np.uint32)
    for first, rows in zip((0, SCALE_B - SCALE_A), case.scale_bytes, strict=True):
        for row, line in enumerate(rows):
            put_factors(cells, first, row, line, len(rows), range(4))
    object.__setattr__(case, "scale_cells", cells)
    return case


@dataclass(frozen=True)
class Scaled(Product):
    """A chain of products with `chunks` scale factors of a type for each row, which begin at the bytes `firsts`."""

    kind: str = "mxf8f6f4"
    size: str = ""
    scale_type: str = "ue8m0"
    chunks: int = 1
    firsts: tuple[int, int] = (0, 0)

    @property
    def words(self):
        """Words of factors of a row: with K = 96 they may begin in one and end in the next."""
        return 2 if self.is_long else 1

    @property
    def pairs(self):
        return self.kind != "mxf8f6f4"

    @property
    def names(self):
        return ("pair", "pair") if self.pairs else (self.a, self.b or self.a)

    @property
    def idesc(self):
        codes = (1, 1) if self.pairs else (CODES[self.a], CODES[self.b or self.a])
        flags = self.negated[0] << 13 | self.negated[1] << 14 | self.transposed[0] << 15 | self.transposed[1] << 16
        shape = self.n // 8 << 17 | (self.scale_type == "ue8m0") << 23 | self.m // 128 << 27
        shape |= self.is_long << 31
        return (
            self.sparse << 2
            | codes[0] << 7
            | codes[1] << 10
            | flags
            | shape
            | self.firsts[0] << 29
            | self.firsts[1] << 4
        )

    def suffix(self):
        size = f".{self.size}" if self.size else ""
        return f"kind::{self.kind}.block_scale{size}", ", [%r14], [%r15]"

    def prepare(self):
        """Store the scale factors to all quarters: columns of 32 rows of A, then those of B."""
        at = 2 * B_AT + self.steps * 4096
        body = f"add.u64 %rd4, %rd1, {at};\n" + global_words("ld", SCALE_COLUMNS, "%rd4")
        body += f"add.u32 %r9, %r8, {SCALE_A};\n"
        body += f"tcgen05.st.sync.aligned.32x32b.x{SCALE_COLUMNS}.b32 [%r9], {registers(SCALE_COLUMNS)};\n"
        return body + f"add.u32 %r14, %r7, {SCALE_A}; add.u32 %r15, %r7, {SCALE_B};\n"

    def others(self):
        return np.ascontiguousarray(self.scale_cells).view(np.uint8).reshape(-1)

    def with_scales(self, rng):
        """A copy with random scale factors: bytes of the rows of A and of B, (rows, 4)."""
        low, high = (120, 134) if self.scale_type == "ue8m0" else (0x20, 0x60)
        case = replace(self)
        both = tuple(rng.integers(low, high, (rows, 4 * self.words), np.uint8) for rows in (128, max(self.n, 32)))
        object.__setattr__(case, "scale_bytes", both)
        return remade(case)

    def numbers(self, bits, side):
        if not self.pairs:
            return super().numbers(bits, side)
        both = np.stack([bits & 15, bits >> 4], axis=-1).reshape(len(bits), -1)
        return values("e2m1")[both]

    def scaled(self, bits, side):
        """The numbers of a step times their factors."""
        numbers, rows = self.numbers(bits, side), len(bits)
        first = self.firsts[side]
        factors = scales_of_bytes(self.scale_type)[self.scale_bytes[side][:rows, first : first + self.chunks]]
        return numbers * factors.repeat(numbers.shape[1] // self.chunks, axis=1)

    def part(self, step):
        """The bytes of K of a step."""
        return np.s_[:, step * self.depth(1) : (step + 1) * self.depth(1)]

    def bound(self, a, b, c):
        """The errors of the sums of its steps."""
        total = np.abs(c.astype(np.float64))
        for step in range(self.steps):
            part = self.part(step)
            total = total + np.abs(self.scaled(a[part], 0)) @ np.abs(self.scaled(b[part], 1)).T
        return self.steps * 2.0**-22 * total

    def expected(self, a, b, c):
        sign = -1 if self.negated[0] != self.negated[1] else 1
        total = c.astype(np.float64) if self.accumulates else np.zeros(c.shape)
        for step in range(self.steps):
            part = self.part(step)
            total = total + sign * (self.scaled(a[part], 0) @ self.scaled(b[part], 1).T)
        return total


CASES = [
    Scaled(a="e4m3", b="e5m2", n=16),
    Scaled(a="e4m3", n=40, firsts=(1, 3), size="scale_vec::1X"),
    Scaled(a="e5m2", n=256, steps=1, size="block32"),
    Scaled(a="e2m1", b="e3m2", n=24, firsts=(2, 0)),
    Scaled(a="e4m3", n=32, transposed=(True, True)),
    Scaled(a="e4m3", from_cells=True, negated=(True, False)),
    Scaled(kind="mxf4", chunks=2, n=16),
    Scaled(kind="mxf4", chunks=2, size="scale_vec::2X", firsts=(2, 0), n=136, steps=1),
    Scaled(kind="mxf4nvf4", chunks=4, size="scale_vec::4X", scale_type="ue4m3", n=64),
    Scaled(kind="mxf4nvf4", chunks=4, size="block16", n=16, from_cells=True),
    Scaled(kind="mxf4nvf4", chunks=2, size="block32", n=16, accumulates=False),
]


@dataclass(frozen=True)
class Long(Scaled):
    """Products of K = 96, of sm_103a: 48 bytes of each row, one after the other in 128 swizzled bytes.

    A row that reaches the end of 128 bytes goes on in the next tile of rows, whose address the descriptor has.
    """

    is_long: bool = True
    target: str = "sm_103a"
    kind: str = "mxf4nvf4"
    size: str = "block32"
    chunks: int = 3
    n: int = 16

    def start(self, side, step):
        return self.at(side, step, 0, 0)

    def at(self, side, step, row, k):
        tile, at = divmod(48 * step + k, 128)
        return tile * (self.m, self.n)[side] * 128 + row % 8 * 128 + row // 8 * 1024 + at

    def descriptor(self, side, step):
        rows, place = (self.m, self.n)[side], side * B_AT
        following = ((48 * step // 128 + 1) * rows * 128 + place) >> 4
        start = (self.start(side, step) + place) >> 4
        return start | following << 16 | 1024 // 16 << 32 | 1 << 46 | 1 << 52 | 2 << 61

    def text(self):
        return super().text().replace("sm_100a", self.target)


LONG = [
    *(Long(firsts=(first, 3 - first), steps=3) for first in range(4)),
    Long(n=200, firsts=(2, 3), scale_type="ue8m0", steps=1),
    *(Long(size="block16", chunks=6, firsts=(first, 2 - first), scale_type="ue4m3", steps=3) for first in (0, 2)),
    Long(size="block16", chunks=6, firsts=(2, 2), n=256, steps=1),
    Long(kind="mxf4", n=24, firsts=(1, 2)),
]


def label(case):
    return f"{case.kind}-{case.size}-{case.scale_type}-{case.a}-{case.n}-{case.firsts}"


@pytest.mark.cases(6)
@pytest.mark.parametrize("case", [*CASES, *LONG], ids=label)
def test_it_is_the_product_of_numpy(case, rng):
    case = case.with_scales(rng)
    a, b, c = case.random(rng)
    report, d = case.run(a, b, c)
    clean(report)
    assert (np.abs(d - case.expected(a, b, c)) <= case.bound(a, b, c)).all()


@pytest.mark.cases(2)
@pytest.mark.parametrize("case", [CASES[1], CASES[2], CASES[6], CASES[8], LONG[0]], ids=label)
def test_the_assembler_warns_of_nothing(case, rng):
    text = case.with_scales(rng).text()
    arch = "sm_103a" if case.is_long else "sm_100a"
    assert assemble(text, arch).warnings == ()


def exponent(x, least):
    """The exponent of a number, as that of its type's least normal number if it is subnormal; of zero, far below."""
    return max(math.frexp(x)[1] - 1, least) if x else -1000


def truncated(terms, bits):
    """The sum of (exponent, value), truncated `bits` bits below the largest exponent and then to f32."""
    unit = Fraction(2) ** (max(e for e, _ in terms) - bits)
    total = sum(math.trunc(Fraction(x) / unit) for _, x in terms) * unit
    least = math.frexp(total)[1] - 24 if total else 0
    return np.float32(math.trunc(total / Fraction(2) ** least) * Fraction(2) ** least)


def sum_of_a_b200(case, a, b, scales_a, scales_b, c):
    """One accumulator: numbers of a row of A and of B, their factors, and the addend."""
    terms, each = [(exponent(c, -126), c)], len(a) // case.chunks
    if case.pairs:
        least = {"ue8m0": -127, "ue4m3": -6}[case.scale_type]
        for first in range(0, len(a), 16):
            x, y = scales_a[first // each], scales_b[first // each]
            dot = sum(p * q for p, q in zip(a[first : first + 16], b[first : first + 16], strict=True))
            terms.append((max(exponent(x, least), least) + max(exponent(y, least), least), dot * x * y))
        return truncated(terms, 35)
    least = {"e4m3": -6, "e5m2": -14, "e3m2": -2, "e2m3": 0, "e2m1": 0}
    for p, q in zip(a, b, strict=True):
        of = exponent(p, least[case.a]) + exponent(q, least[case.b or case.a])
        terms.append(
            (of + exponent(scales_a[0], -127) + exponent(scales_b[0], -127), p * q * scales_a[0] * scales_b[0])
        )
    return truncated(terms, 25)


NUMERICS = [
    Scaled(a="e4m3", b="e5m2", n=8, steps=1), Scaled(a="e2m1", b="e3m2", n=8, steps=1),
    Scaled(kind="mxf4", chunks=2, n=8, steps=1),
    Scaled(kind="mxf4nvf4", chunks=4, size="block16", scale_type="ue4m3", n=8, steps=1),
]  # fmt: skip


@pytest.mark.cases(2)
@pytest.mark.parametrize("case", NUMERICS, ids=label)
def test_numerics_of_a_b200(case, rng):
    """Factors from the whole range, subnormals and zeros, and addends that cancel most of the sum."""
    case = case.with_scales(rng)
    a, b, c = case.random(rng)
    if case.scale_type == "ue4m3":
        case.scale_bytes[0][::3, :2] %= 8
    with config.using(numerics="b200"):
        case = remade(case)
        near = case.expected(a, b, np.zeros_like(c))
        c[:64] = -near[:64].astype(np.float32) * (1 + 2.0**-20)
        report, d = case.run(a, b, c)
    clean(report)
    numbers = [case.numbers(x, side) for side, x in enumerate((a, b))]
    scales = [
        scales_of_bytes(case.scale_type)[x[:, first : first + case.chunks]]
        for x, first in zip(case.scale_bytes, case.firsts, strict=True)
    ]
    for row in rng.choice(128, 24, replace=False):
        for column in range(case.n):
            each = numbers[0][row], numbers[1][column], scales[0][row], scales[1][column], c[row, column]
            assert d[row, column] == sum_of_a_b200(case, *(x.tolist() for x in each))


REFUSED = {
    "M": (
        Scaled(a="e4m3", m=64, steps=1), "mxf8f6f4.block_scale: M, 128 times bits 27 and 28 of the descriptor, is 0",
        "kind::mxf8f6f4 of cta_group::1 takes M = 128",
    ),
    "an ID of two factors": (
        Scaled(kind="mxf4", chunks=2, steps=1, firsts=(1, 0)),
        "mxf4.block_scale: the scale factor ID of A is 1", "with 2 factors a row it can be 0, 2",
    ),
    "ue4m3 of blocks of 32": (
        Scaled(kind="mxf4nvf4", chunks=2, size="block32", steps=1, scale_type="ue4m3"),
        "mxf4nvf4.block_scale.block32: the scale factors, bit 23 of the descriptor, are ue4m3", "set it, for ue8m0",
    ),
    "K = 96 without a block size": (
        Long(kind="mxf4", size="", steps=1),
        "mxf4.block_scale: bit 31 of the descriptor, K = 96, is 1 with no block size",
        "clear it, or use .block16 or .block32",
    ),
    "K = 96 of scale vectors": (
        Long(size="scale_vec::4X", steps=1),
        "mxf4nvf4.block_scale.scale_vec::4X: bit 31 of the descriptor, K = 96, is 1 with .scale_vec::4X",
        "clear it, or use .block16 or .block32",
    ),
    "K = 96, sparse": (
        Long(steps=1, sparse=True),
        "mxf4nvf4.block_scale.block32: bit 31 of the descriptor, K = 96, is 1 with a sparse product",
        "clear it, or use .block16 or .block32",
    ),
    "K = 96 of another target": (
        Long(steps=1, target="sm_100a"),
        "mxf4nvf4.block_scale.block32: bit 31 of the descriptor, K = 96, is 1 and the target is sm_100a",
        "clear it, or compile for sm_103a",
    ),
    "an ID of six factors": (
        Long(size="block16", chunks=6, firsts=(0, 1), steps=1),
        "mxf4nvf4.block_scale.block16: the scale factor ID of B is 1", "with 6 factors a row it can be 0, 2",
    ),
    "M-major pairs": (
        Scaled(kind="mxf4", chunks=2, steps=1, transposed=(True, False)),
        "mxf4.block_scale: a reserved bit of the descriptor is not 0", "clear it: see the tables of the PTX manual",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_fields_of_the_instruction_descriptor(name, rng):
    case, message, help = REFUSED[name]
    case = case.with_scales(rng)
    finding = case.run(*case.random(rng))[0].findings[0]
    assert (finding.kind, finding.message, finding.help) == (
        "tensor-memory", f"tcgen05.mma{'.sp' * case.sparse}.cta_group::1.kind::" + message, help,
    )  # fmt: skip


def test_an_absolute_leading_dimension_needs_the_whole_swizzle(rng):
    case = Long(steps=1).with_scales(rng)
    bits, text = case.descriptor(0, 0), case.text()
    object.__setattr__(case, "text", lambda: text.replace(f"{bits};", f"{bits ^ 6 << 61};"))
    finding = case.run(*case.random(rng))[0].findings[0]
    assert (finding.message, finding.help) == (
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32: `a_desc` has an absolute leading dimension with "
        "swizzle mode 4 and base offset 0",
        "use swizzle mode 2, 128 bytes, and base offset 0",
    )


def test_scale_factors_are_not_overwritten_in_flight(rng):
    """A copy follows a product that reads them; the pair is not pipelined."""
    case = CASES[0].with_scales(rng)
    commit = "tcgen05.commit.cta_group::1."
    copy = "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r14], %rd6;\n"
    text = case.text()
    assert text.count(commit) == 1
    object.__setattr__(case, "text", lambda: text.replace(commit, copy + commit))
    finding = case.run(*case.random(rng))[0].findings[0]
    assert (finding.kind, finding.message) == (
        "race",
        "tcgen05.cp.cta_group::1.32x128b.warpx4 writes columns 400 to 403 of tensor memory, which "
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale of the same warp may still read; no tcgen05.commit that "
        "covers it has arrived",
    )


def test_scale_factors_that_were_never_written(rng):
    case = CASES[0].with_scales(rng)
    text = case.text().replace(f"add.u32 %r15, %r7, {SCALE_B};", "add.u32 %r15, %r7, 480;")
    object.__setattr__(case, "text", lambda: text)
    assert (
        case.run(*case.random(rng))[0]
        .findings[0]
        .message.startswith(
            "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale reads scale factors in tensor memory, of which some cells "
            "were never written; st.global.b32 uses it"
        )
    )
