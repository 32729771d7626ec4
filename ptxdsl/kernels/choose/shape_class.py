"""Shape classes: sizes between which the best tiles hardly differ, so that one of a class is tuned for all of it.

A size of a class is its largest member: a multiple of 16, or 8, up to 256, and beyond that of an eighth of the power of
two below it, so that members differ by an eighth at most. K is counted in whole lines of 128 bytes, as tiles along K
are. What else tiles depend on is kept as it is: types, how arrays lie and how wide they are
copied, whether lines begin at sectors, and whether an epilogue computes something.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import numpy as np

from ptxdsl.kernels.choose.warpgroups import GroupFacts, ListFacts, ProductFacts
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES

SIXTEEN, EIGHT = 16, 8  # rows or columns of a tile come in these
STEPS = 8  # of a power of two
VERSION = "shape class 1"  # begins each key on disk: what was kept by other classes is not read


class ListClass(NamedTuple):
    """The class of a list of problems: how many there are, and the M, N and K of all together and of the largest."""

    problems: int
    mean: tuple[int, int, int]
    most: tuple[int, int, int]

    @property
    def sizes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns of M, N and K that stand for those of all lists of the class: one problem is the largest."""
        m, n, k = np.array([self.most, *[self.mean] * (self.problems - 1)][: self.problems], np.int64).reshape(-1, 3).T
        return m, n, k


def class_extent(extent: int, least: int = SIXTEEN) -> int:
    """The extent of the class: a multiple of `least`, and of an eighth of the greatest power of two below `extent`. Of
    rows and columns that are 8 at most, 8; of none, 0."""
    if least == SIXTEEN and extent <= EIGHT:
        return EIGHT if extent else 0
    step = max(least, (1 << max(0, extent - 1).bit_length()) // (2 * STEPS))
    return -(-extent // step) * step


def class_of(facts: ProductFacts) -> ProductFacts:
    """A product, or a batch of them, by its class: with the sizes of the largest member."""
    m, n, k, batches, operands = facts[:5]
    lines = _line(operands)
    return facts._replace(
        m=class_extent(m), n=class_extent(n), k=class_extent(k, lines), batches=class_extent(batches, 1)
    )


def class_of_groups(facts: GroupFacts) -> GroupFacts:
    """The same of groups of rows, by the rows of one on average, to the nearest: some rows that one of many groups has
    more do not make another class."""
    rows, n, k, groups, operands = facts
    average = max(round(rows), 1 if rows else 0)
    sizes = class_extent(average), class_extent(n), class_extent(k, _line(operands)), class_extent(groups, 1)
    return GroupFacts(*sizes, operands)


def class_of_list(facts: ListFacts) -> ListClass:
    """The same of a list of problems."""
    columns, least = facts.sizes, (SIXTEEN, SIXTEEN, _line(facts.operands))

    def each(reduced: Callable[[np.ndarray], float]) -> tuple[int, int, int]:
        m, n, k = (class_extent(ceil(reduced(sizes)), step) for sizes, step in zip(columns, least, strict=True))
        return m, n, k

    return ListClass(class_extent(len(columns[0]), 1), each(np.mean), each(np.max))


def _line(operands: Operands) -> int:
    """Elements of K in a line of shared memory."""
    return LINE_BYTES // operands.inputs.bytes
