"""A sparse A of matrix products: of every four neighbours along k it holds two, and metadata say which.

The unit of this is one element of 8 or 16 bits; two neighbours of 4 bits, which go together; and half an element of 32
bits, of which one of two is held. Four bits of metadata are the places of two units among four (PTX ISA, "Warp-level
matrix instructions using mma.sp").
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..types import Type
from .step import Step

ROWS = 16  # of A that a warp has
ORDERED, ONE_OF_TWO = (4, 8, 9, 12, 13, 14), (4, 14)
"""What four bits can be: two places among four, the lesser one first; one among two, as two halves."""
ANY_ORDER = tuple(low | high << 2 for high in range(4) for low in range(4) if low != high)

Product = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(batch, m, k), (batch, n, k), (batch, m, n) -> (batch, m, n): a * bᵀ + c of dense matrices."""


def nibbles(type: Type, k: int, metadata: np.ndarray, selector: int) -> np.ndarray:
    """The metadata of `k` elements in each row of A, four bits a group of neighbours: (warps, 16 rows, groups).

    Of `metadata` (warps, 32) one, two or all of each four neighbouring threads have those of rows g and g + 8, as many
    as it takes; `selector` says which. Elements of 16 bits and more come as parts of both rows, others by row.
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
    """Where along k the numbers of a sparse A stand, (warps, 16, k / 2), by its `nibbles`."""
    number = np.arange(fours.shape[2])
    if type.bits == 32:
        return 2 * number + (fours >> 1 & 1)
    units = np.stack([fours & 3, fours >> 2], axis=-1) + 4 * number[:, np.newaxis]
    if type.bits == 4:
        units = np.stack([2 * units, 2 * units + 1], axis=-1)
    return np.asarray(units.reshape(*fours.shape[:2], -1))


def checked_columns(m: Step, type: Type, fours: np.ndarray, ordered: bool) -> np.ndarray:
    """`columns`; reports metadata that say nothing."""
    known = ONE_OF_TWO if type.bits == 32 else ORDERED if ordered else ANY_ORDER
    wrong: np.ndarray = ~np.isin(fours, known)
    if wrong.any():
        numbers = ", ".join(f"{n:#06b}" for n in known)
        help = "write the places of the numbers that A holds" + (", the lesser one in the low bits" if ordered else "")
        m.fail(
            "sparse-metadata",
            f"`metadata` has {int(fours[wrong][0]):#06b} for a group of neighbours along K; it can be {numbers}",
            np.broadcast_to(np.asarray(wrong.any((1, 2)))[:, np.newaxis], m.shape),
            help,
        )
    return columns(type, fours)


def sparse_product(a: np.ndarray, where: np.ndarray, b: np.ndarray, c: np.ndarray, product: Product) -> np.ndarray:
    """`product` of a (batch, m, k / 2), whose numbers stand at `where` along k, with b (batch, n, k).

    What A leaves out meets no number of B, not even an infinite one.
    """
    if np.isfinite(b).all():
        whole = np.zeros((*a.shape[:2], b.shape[2]))
        np.put_along_axis(whole, where, a, axis=2)
        return product(whole, b, c)
    rows, n = a.shape[0] * a.shape[1], b.shape[1]
    met = np.take_along_axis(b[:, np.newaxis], where[:, :, np.newaxis, :], axis=3).reshape(rows, n, -1)
    return product(a.reshape(rows, 1, -1), met, c.reshape(rows, 1, n)).reshape(c.shape)
