"""Block scales of tcgen05.mma (PTX ISA, "Block Scaling for tcgen05.mma.sync"): instruction descriptors and factors.

The factors of row i of A (column i of B) are bytes of the cell in lane i % 32, i // 32 columns after the address. They
are repeated in each quarter of the lanes. With K = 96, factors past the fourth byte are in the next block of columns, 4
columns further on, 8 if B has more than 128 columns.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from ..layout.tensor_memory import ALL_LANES, RowPlacement, TensorRegion, column_of
from ..types import Type, f32
from .narrow import scales_of_bytes
from .numerics import E2M1_PAIR
from .tensor_descriptors import (
    F8_INPUTS,
    K_BYTES,
    LONG_K_BYTES,
    InstructionFields,
    InvalidDescriptor,
    check_majors,
    check_sparsity,
    coded,
)

QUARTERS = {1: RowPlacement(np.arange(32)), 2: RowPlacement(np.arange(32), 2, 64)}
"""The lanes of scale factors of B, by the number of parts of the columns of D; those of A are as for one part."""
ROWS_OF_COLUMN, WORD_FACTORS = 32, 4
PAIRS: dict[int, Type] = {1: E2M1_PAIR}
IDS = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,), 3: (0, 1, 2, 3), 6: (0, 2)}
"""The first byte of the factors of an instruction, by their number."""
CHUNKS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}
LONG_CHUNKS = {"block16": 6, "block32": 3}
"""The factors of a row with K = 96."""
SCALED_M = {(1, False): (128,), (2, False): (128, 256), (1, True): (128,), (2, True): (256,)}
"""The rows of D, by the number of CTAs, and if A is sparse."""


class ScaleFields(NamedTuple):
    """The scale factors of an instruction: their type, their number for a row, and the first byte for A and for B."""

    type: str
    chunks: int
    first_a: int
    first_b: int


@cache
def scaled_instruction(
    kind: str, size: str | None, ctas: int, bits: int, sparse: bool = False
) -> tuple[InstructionFields, ScaleFields]:
    """Decode and check the instruction descriptor of a product with block scales. Raises InvalidDescriptor."""
    wide = kind == "kind::mxf8f6f4"
    chunks = CHUNKS.get(size or "", 1 if wide else 2)
    reserved = 0b1011 | 1 << 6 | 7 << 24 | (1 << 31 if wide else 1 << 12 | 3 << 15)
    check_sparsity(bits, sparse)
    is_long = not wide and bool(bits >> 31)
    if is_long:
        if sparse or size not in LONG_CHUNKS:
            of_what = "a sparse product" if sparse else f".{size}" if size else "no block size"
            raise InvalidDescriptor(
                f"bit 31 of the descriptor, K = 96, is 1 with {of_what}", "clear it, or use .block16 or .block32"
            )
        chunks = LONG_CHUNKS[size]
    if bits & reserved:
        raise InvalidDescriptor(
            "a reserved bit of the descriptor is not 0", "clear it: see the tables of the PTX manual"
        )
    types = F8_INPUTS if wide else PAIRS
    atype = coded(types, bits >> 7 & 7, "A", "bits 7 to 9", kind)
    btype = coded(types, bits >> 10 & (7 if wide else 3), "B", "bits 10 to 12" if wide else "bits 10 and 11", kind)
    transposed = bool(bits >> 15 & 1), bool(bits >> 16 & 1)
    check_majors(atype, btype, transposed)
    m, n, is_ue8m0 = (bits >> 27 & 3) << 7, (bits >> 17 & 63) << 3, bool(bits >> 23 & 1)
    where, step = f"{kind} of cta_group::{ctas}", (16 if transposed[1] else 8) * ctas
    rows = (128 * ctas,) if is_long else SCALED_M[ctas, sparse]
    if m not in rows:
        takes = " or ".join(map(str, rows))
        raise InvalidDescriptor(f"M, 128 times bits 27 and 28 of the descriptor, is {m}", f"{where} takes M = {takes}")
    if n % step or not step <= n <= 256:
        raise InvalidDescriptor(
            f"N, 8 times bits 17 to 22 of the descriptor, is {n}", f"{where} takes multiples of {step} up to 256"
        )
    if not is_ue8m0 and (kind != "kind::mxf4nvf4" or chunks not in (4, 6)):
        raise InvalidDescriptor("the scale factors, bit 23 of the descriptor, are ue4m3", "set it, for ue8m0")
    firsts = bits >> 29 & 3, bits >> 4 & 3
    for matrix, first in zip("AB", firsts, strict=True):
        if first not in IDS[chunks]:
            known = ", ".join(map(str, IDS[chunks]))
            raise InvalidDescriptor(
                f"the scale factor ID of {matrix} is {first}", f"with {chunks} factors a row it can be {known}"
            )
    negated = bool((bits >> 13 ^ bits >> 14) & 1)
    form = InstructionFields(kind, ctas, f32, atype, btype, negated, *transposed, m, n, False, sparse=sparse)
    form = form._replace(k_bytes=LONG_K_BYTES if is_long else K_BYTES)
    return form, ScaleFields("ue8m0" if is_ue8m0 else "ue4m3", chunks, *firsts)


def scale_columns(rows: int, end: int = WORD_FACTORS) -> int:
    """Return the number of columns that hold the factors up to number `end` of rows of A, or columns of B."""
    return (end - 1) // WORD_FACTORS * _group_columns(rows) + -(-rows // ROWS_OF_COLUMN)


def _group_columns(rows: int) -> int:
    """Return the columns from four factors of rows to the next four: those of whole blocks of 128 rows."""
    return -(-rows // 128) * 4


def scale_region(address: int, columns: int) -> TensorRegion:
    """Return the cells of factors, in all quarters."""
    first = column_of(address)
    return TensorRegion(ALL_LANES, first, first + columns)


def factors(words: np.ndarray, rows: int, type: str, chunks: int, first: int) -> np.ndarray:
    """Return the factors, (lanes, rows, chunks), in the cells of a quarter, (lanes, 32, columns)."""
    by_row = words.transpose(0, 2, 1).reshape(len(words), -1)
    word, byte = np.divmod(first + np.arange(chunks), WORD_FACTORS)
    each = by_row[:, np.arange(rows)[:, np.newaxis] + word * _group_columns(rows) * ROWS_OF_COLUMN]
    result: np.ndarray = scales_of_bytes(type)[each >> (8 * byte).astype(np.uint32) & np.uint32(255)]
    return result
