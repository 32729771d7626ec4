"""Sparse A of tcgen05.mma (PTX ISA, "Sparse Matrices"), and zeroed columns of B ("Zero-Column Mask Descriptor").

The metadata of a row are four bits for each group of neighbours along K, as in mma.sp. With elements of 8 bits and
less, those of row i are in the lane of row i of D, in two columns. With wider elements, 16 lanes of one column hold
those of 16 rows: lane j has rows j % 8 and, in the upper half of the word, j % 8 + 8, for the first half of K if j < 8
and for the second otherwise. The sparsity selector chooses one of two columns. Each part of the columns of D has a
copy. The manual shows the lanes in figures; they are read here as CUTLASS lays the metadata out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..types import Type
from .sparse import ONE_OF_TWO, ORDERED
from .tensor_descriptors import InvalidDescriptor

ROWS, HALF = 16, 8  # rows that share the lanes of their metadata
FOURS = 8  # groups of four bits in a column


class Metadata(NamedTuple):
    """The metadata of products: their addresses, (lanes,), and the number of columns."""

    address: np.ndarray
    columns: int


def metadata_at(address: np.ndarray, type: Type, selector: int) -> Metadata:
    """Return the metadata of A of a type. Raises InvalidDescriptor."""
    if type.bits <= 8:
        return Metadata(address, 2)
    for at in address.tolist():
        if at & 1:
            raise InvalidDescriptor(
                f"the metadata begin in column {at & 0xFFFF}; the sparsity selector chooses one of two columns",
                "begin in an even column",
            )
    return Metadata(address + selector, 1)


def nibbles(words: np.ndarray, type: Type) -> np.ndarray:
    """Return the four bits of each group, (lanes, rows, groups), in words of metadata, (lanes, rows, columns)."""
    row, group = np.arange(words.shape[1])[:, np.newaxis], np.arange(FOURS * words.shape[2])
    if type.bits <= 8:
        word, shift = words[:, row, group // FOURS], 4 * (group % FOURS)
    else:
        lane = row // ROWS * ROWS + row % HALF + group // 4 * HALF
        word, shift = words[:, lane, 0], 4 * (group % 4) + row // HALF % 2 * 16
    fours: np.ndarray = (word >> shift.astype(np.uint32) & np.uint32(15)).astype(np.int64)
    return fours


def undefined(fours: np.ndarray, type: Type) -> np.ndarray:
    """Return which groups of four bits have no meaning."""
    return ~np.isin(fours, _meaningful(type))


def undefined_text(four: int, type: Type) -> str:
    """Describe a group of four bits without meaning."""
    known = ", ".join(f"{n:#06b}" for n in _meaningful(type))
    return f"`metadata` has {four:#06b} for a group of neighbours along K; it can be {known}"


def _meaningful(type: Type) -> tuple[int, ...]:
    return ONE_OF_TWO if type.bits == 32 else ORDERED


def zeroed_columns(descriptor: int, m: int, n: int) -> np.ndarray:
    """Return the columns of B, (n,) bool, that a zero-column mask descriptor zeroes. Raises InvalidDescriptor.

    Runs of columns that are used and of columns that are zeroed alternate in each of the 128 / m sub-masks, after
    `start` columns of its pattern. The examples of the manual decide that "Use Span" is the length of the former less
    one.
    """
    if descriptor >> 36 & 7:
        raise InvalidDescriptor("bits 36 to 38 of `zero_columns` are not 0", "clear them")
    if shift := descriptor >> 56 & 63:
        raise InvalidDescriptor(
            f"`zero_columns` shifts columns by {shift}; the emulator has no shift", "clear bits 56 to 61"
        )
    parts = 128 // m
    mask = np.zeros((parts, n // parts), bool)
    if descriptor >> 39 & 1:
        skipped, used = (descriptor >> 40 & 255) + 1, (descriptor >> 48 & 255) + 1
        for part in range(parts):
            start, first = descriptor >> 8 * part & 255, descriptor >> 32 + part & 1
            at = (np.arange(n // parts) + start) % (skipped + used)
            mask[part] = at < skipped if first else at >= used
    return mask.reshape(-1)
