"""Sparse A operands: two of every four neighbours along k are stored, and metadata give their positions.

The unit is one element of 8 or 16 bits, a pair of 4-bit elements, or half of a 32-bit element (one of two is stored).
Four bits of metadata hold the positions of two units among four (PTX ISA, "Warp-level matrix instructions using
mma.sp").
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..types import Type
from .step import Step

ROWS = 16  # of A that a warp has
ORDERED, ONE_OF_TWO = (4, 8, 9, 12, 13, 14), (4, 14)
"""The valid values of four bits: two positions among four, the smaller first; for one among two, its two halves."""
ANY_ORDER = tuple(low | high << 2 for high in range(4) for low in range(4) if low != high)

Product = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(batch, m, k), (batch, n, k), (batch, m, n) -> (batch, m, n): a * bᵀ + c of dense matrices."""


def nibbles(type: Type, k: int, metadata: np.ndarray, selector: int) -> np.ndarray:
    """Return the metadata of `k` elements in each row of A, four bits per group of neighbours: (warps, 16 rows,
    groups).

    In `metadata` (warps, 32), one, two or all of each four neighbouring threads hold the bits of rows g and g + 8;
    `selector` gives which. For elements of 16 bits and more a register holds parts of both rows, otherwise one row.
    """
    groups = k * type.bits // 64 if type.bits == 32 else k // (8 if type.bits == 4 else 4)
    row = np.arange(ROWS)[:, np.newaxis]
    threads = groups * 4 * ROWS // 256
    if type.bits >= 16:
        part = np.arange(threads)
        lane, first, count = row % 8 * 4 + part + threads * selector, row // 8 * 16, 4
    else:
        part = np.arange(threads // 2)
        lane, first, count = row % 8 * 4 + row // 8 + 2 * part + threads * selector, 0 * row, 8
    shifts = (first[..., np.newaxis] + 4 * np.arange(count)).astype(np.uint32)
    fours: np.ndarray = metadata[:, lane][..., np.newaxis] >> shifts & np.uint32(15)
    return fours.reshape(len(metadata), ROWS, -1).astype(np.int64)


def columns(type: Type, fours: np.ndarray) -> np.ndarray:
    """Return the positions along k of the elements of a sparse A, (warps, 16, k / 2), from its `nibbles`."""
    number = np.arange(fours.shape[2])
    if type.bits == 32:
        return 2 * number + (fours >> 1 & 1)
    units = np.stack([fours & 3, fours >> 2], axis=-1) + 4 * number[:, np.newaxis]
    if type.bits == 4:
        units = np.stack([2 * units, 2 * units + 1], axis=-1)
    return np.asarray(units.reshape(*fours.shape[:2], -1))


def checked_columns(m: Step, type: Type, fours: np.ndarray, ordered: bool) -> np.ndarray:
    """Return `columns`, and report invalid metadata."""
    known = ONE_OF_TWO if type.bits == 32 else ORDERED if ordered else ANY_ORDER
    wrong: np.ndarray = ~np.isin(fours, known)
    if wrong.any():
        numbers = ", ".join(f"{n:#06b}" for n in known)
        help = "write the positions of the elements that A stores" + (
            ", the smaller one in the low bits" if ordered else ""
        )
        m.fail(
            "sparse-metadata",
            f"`metadata` has {int(fours[wrong][0]):#06b} for a group of neighbours along K; it can be {numbers}",
            np.broadcast_to(np.asarray(wrong.any((1, 2)))[:, np.newaxis], m.shape),
            help,
        )
    return columns(type, fours)


def sparse_product(a: np.ndarray, where: np.ndarray, b: np.ndarray, c: np.ndarray, product: Product) -> np.ndarray:
    """Compute `product` of a (batch, m, k / 2), whose elements are at `where` along k, with b (batch, n, k).

    Elements that A omits are not multiplied, so an infinity of B does not produce a NaN there.
    """
    if np.isfinite(b).all():
        whole = np.zeros((*a.shape[:2], b.shape[2]))
        np.put_along_axis(whole, where, a, axis=2)
        return product(whole, b, c)
    rows, n = a.shape[0] * a.shape[1], b.shape[1]
    met = np.take_along_axis(b[:, np.newaxis], where[:, :, np.newaxis, :], axis=3).reshape(rows, n, -1)
    return product(a.reshape(rows, 1, -1), met, c.reshape(rows, 1, n)).reshape(c.shape)
