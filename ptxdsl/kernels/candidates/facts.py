"""The facts that the selection depends on: sizes, types and layouts of a product, of groups of rows, or of a list.

Sizes fall into shape classes, between which the best tiles hardly differ: one measured configuration serves a class. A
class is named by its largest member. Extents are multiples of 16 (or 8) up to 256, and beyond that of an eighth of the
power of two below; K is counted in rows of 128 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

import numpy as np

from ptxdsl.kernels.product.operands import CSource, Operands, Side
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import TURNED
from ptxdsl.schedule.arithmetic import ceil_div

SIXTEEN, EIGHT = 16, 8
STEPS = 8  # classes between two powers of two


class ProductKind(Enum):
    """The kernel family of a product: matrices, windows of images, 1×1 windows, or the gradient of filters."""

    GEMM = "gemm"
    CONV = "conv"
    CONV_1X1 = "conv 1x1"
    WGRAD = "wgrad"


class ProductFacts(NamedTuple):
    """A product or a batch of products.

    `computes` is True for an epilogue function; `split_lines` tells whether the rows of A and of B are not 32-byte
    aligned. Convolutions set `kind`, and `moved_bytes`, as windows overlap. `in_boxes` is False if TMA cannot store the
    output of a convolution.
    """

    m: int
    n: int
    k: int
    batches: int
    operands: Operands
    computes: bool = False
    split_lines: tuple[bool, bool] = (False, False)
    kind: ProductKind = ProductKind.GEMM
    moved_bytes: int | None = None
    in_boxes: bool = True

    @property
    def longest(self) -> int:
        """The largest K of a tile."""
        return self.k

    @property
    def swapped(self) -> ProductFacts:
        """The facts of BᵀAᵀ, whose tiles are the transposes of those of AB."""
        old, other = self.operands, {Side.A: Side.B, Side.B: Side.A}
        rounded = other.get(old.rounded, Side.NONE)
        operands = replace(old, a_major=old.b_major, b_major=old.a_major, rounded=rounded)
        return self._replace(m=self.n, n=self.m, operands=operands, split_lines=self.split_lines[::-1])

    @property
    def of_class(self) -> ProductFacts:
        """The largest member of the shape class."""
        m, n, k, batches, operands = self[:5]
        k = class_extent(k, depth_of(operands))
        return self._replace(m=class_extent(m), n=class_extent(n), k=k, batches=class_extent(batches, 1))

    @property
    def joined(self) -> ProductFacts:
        """The facts of one product of all rows, for batches that share B."""
        return self._replace(m=self.m * self.batches, batches=1)

    @property
    def plain(self) -> ProductFacts:
        """The facts without an epilogue."""
        return self._replace(computes=False, operands=replace(self.operands, extras=()))

    def tiles(self, tile: tuple[int, ...]) -> float:
        """The number of tiles of all batches."""
        return float(ceil_div(self.m, tile[0]) * ceil_div(self.n, tile[1]) * self.batches)

    @property
    def moved(self) -> float:
        """Bytes read from and written to DRAM."""
        return self.moved_bytes or self.batches * _bytes_of(self.m, self.n, self.k, self.operands)


class GroupFacts(NamedTuple):
    """Groups of rows, `rows` on average, each with a matrix B of its own."""

    rows: float
    n: int
    k: int
    groups: int
    operands: Operands

    @property
    def of_class(self) -> GroupFacts:
        """The largest member of the shape class; the average number of rows is rounded to the nearest."""
        rows, n, k, groups, operands = self
        average = max(round(rows), 1 if rows else 0)
        k = class_extent(k, depth_of(operands))
        return self._replace(rows=class_extent(average), n=class_extent(n), k=k, groups=class_extent(groups, 1))

    @property
    def longest(self) -> int:
        """The largest K of a tile."""
        return self.k

    def tiles(self, tile: tuple[int, ...]) -> float:
        """The number of tiles of all groups: the last tile of a group is half empty on average."""
        return max(1.0, self.rows / tile[0] + 0.5) * ceil_div(self.n, tile[1]) * self.groups

    @property
    def moved(self) -> float:
        """Bytes read from and written to DRAM."""
        return self.groups * _bytes_of(self.rows, self.n, self.k, self.operands)


@dataclass(frozen=True)
class ListFacts:
    """A list of problems: columns of M, N and K."""

    sizes: tuple[np.ndarray, np.ndarray, np.ndarray]
    operands: Operands

    @property
    def of_class(self) -> ListFacts:
        """A representative list of the shape class."""
        return replace(self, sizes=class_of_list(self).sizes)

    @property
    def k(self) -> int:
        """The mean K, weighted by outputs."""
        m, n, k = self.sizes
        return int((m * n * k).sum() // max(1, (m * n).sum()))

    @property
    def longest(self) -> int:
        """The largest K of a tile: a block is busy for at least so long."""
        m, n, k = self.sizes
        return int((k * (m * n > 0)).max(initial=0))

    def tiles(self, tile: tuple[int, ...]) -> float:
        """The number of tiles of all problems."""
        m, n, _ = self.sizes
        return float((-(-m // tile[0]) * -(-n // tile[1])).sum())

    @property
    def moved(self) -> float:
        """Bytes read from and written to DRAM."""
        m, n, k = self.sizes
        return float(((m + n) * k).sum() * self.operands.inputs.bytes + (m * n).sum() * self.operands.output.bytes)


Facts: TypeAlias = ProductFacts | GroupFacts | ListFacts


class ListClass(NamedTuple):
    """The class of a list: the number of problems, and the mean and the largest M, N and K."""

    problems: int
    mean: tuple[int, int, int]
    most: tuple[int, int, int]

    @property
    def sizes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns of M, N and K of a representative list, in which one problem is the largest."""
        m, n, k = np.array([self.most, *[self.mean] * (self.problems - 1)][: self.problems], np.int64).reshape(-1, 3).T
        return m, n, k


def class_extent(extent: float, least: int = SIXTEEN) -> int:
    """Return the extent of the class: a multiple of `least`, and of an eighth of the power of two below `extent`."""
    extent = int(np.ceil(extent))
    if least == SIXTEEN and extent <= EIGHT:
        return EIGHT if extent else 0
    step = max(least, (1 << max(0, extent - 1).bit_length()) // (2 * STEPS))
    return -(-extent // step) * step


def class_of_list(facts: ListFacts) -> ListClass:
    """Return the class of a list of problems."""
    columns, least = facts.sizes, (SIXTEEN, SIXTEEN, depth_of(facts.operands))
    means, mosts = (
        tuple(class_extent(float(reduced(size)), step) for size, step in zip(columns, least, strict=True))
        for reduced in (np.mean, np.max)
    )
    return ListClass(class_extent(len(columns[0]), 1), means, mosts)  # type: ignore[arg-type]


def class_name(facts: Facts, form: str = "") -> str:
    """Return the key of the shape class in tables of measured configurations: "gemm 16 kk 128x4096x7168". Types of 16
    bits share a key, as do batches of any alignment of the output. The number of operands of an epilogue comes first.
    """
    operands = facts.operands
    inputs = "16" if operands.inputs in TURNED else operands.inputs.name
    words = [inputs, operands.a_major[0] + operands.b_major[0]]
    words += ["c"] if operands.c is not CSource.NONE else []
    words += ["blocks"] if operands.has_block_scales else []
    words += [f"{operands.from_registers} in registers"] if operands.from_registers is not Side.NONE else []
    words += [f"out {operands.output.bits}"] if operands.output.bits != 16 else []
    if isinstance(facts, ListFacts):
        sizes = class_of_list(facts)
        return " ".join([form or "list", *words, f"{sizes.problems} of {_by(sizes.mean)} to {_by(sizes.most)}"])
    if isinstance(facts, GroupFacts):
        groups = facts.of_class
        return " ".join([form or "groups", *words, f"{groups.groups} of {_by((int(groups.rows), groups.n, groups.k))}"])
    words += ["unaligned"] if any(facts.split_lines) else []
    largest = facts.of_class
    batches = [f"{largest.batches} of"] if operands.is_batched else []
    fused = [f"fused {len(operands.extras)}"] if facts.computes or operands.extras else []
    return " ".join([*fused, facts.kind.value, *words, *batches, _by((largest.m, largest.n, largest.k))])


def depth_of(operands: Operands) -> int:
    """The elements of K in a row of 128 bytes, which is the K of a tile on the sm_90a path."""
    return LINE_BYTES // operands.inputs.bytes


def _by(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


def _bytes_of(m: float, n: int, k: int, operands: Operands) -> float:
    return (m + n) * k * operands.inputs.bytes + m * n * operands.output.bytes
