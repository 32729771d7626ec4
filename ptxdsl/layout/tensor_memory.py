"""Layouts of tensor memory: the cells that tcgen05 instructions access (PTX ISA, "Data Movement Shape", "Data Path
Layout Organization").

Tensor memory has 128 lanes of 512 columns of 32 bits. Bits 16 to 31 of an address are the lane, bits 0 to 15 the
column.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

LANES, COLUMNS = 128, 512
QUARTER_LANES = 32  # of tensor memory, that a warp of a warpgroup reaches
LANE_AT = 16
COLUMN_MASK = (1 << LANE_AT) - 1
WARP_THREADS = 32
ALL_LANES = (1 << LANES) - 1
REGISTERS_OF = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers of a thread for each repetition of a shape of tcgen05.ld and tcgen05.st."""


class TensorRegion(NamedTuple):
    """A set of cells: the lanes of a bit mask, and the columns from `first` up to `end`."""

    lanes: int
    first: int
    end: int

    def meets(self, other: TensorRegion) -> bool:
        """True if the regions have a cell in common."""
        return bool(self.lanes & other.lanes) and self.first < other.end and other.first < self.end

    def covers(self, other: TensorRegion) -> bool:
        """True if the region has all cells of another."""
        return not other.lanes & ~self.lanes and self.first <= other.first and other.end <= self.end


def lane_mask(first: int, count: int) -> int:
    """Return the bit mask of `count` lanes from `first` on."""
    return (1 << count) - 1 << first


def lane_of(address: int) -> int:
    """Return the lane of an address."""
    return address >> LANE_AT


def column_of(address: int) -> int:
    """Return the column of an address."""
    return address & COLUMN_MASK


class TensorFragment(NamedTuple):
    """The cells that a warp accesses by one tcgen05.ld or tcgen05.st, relative to its address.

    `lanes` and `columns`, (registers, 32), give the cell of each register of each thread. With `packed`, a register
    holds the lower halves of two cells, that at the column and the next.
    """

    lanes: np.ndarray
    columns: np.ndarray
    packed: bool

    @property
    def spans(self) -> tuple[TensorRegion, ...]:
        """The regions that the fragment covers, relative to its address."""
        return _spans(self.lanes.tobytes(), self.columns.tobytes(), len(self.lanes), self.packed)


@cache
def _spans(lanes: bytes, columns: bytes, registers: int, packed: bool) -> tuple[TensorRegion, ...]:
    of_lane: dict[int, tuple[int, int]] = {}
    pairs = zip(np.frombuffer(lanes, np.int64).tolist(), np.frombuffer(columns, np.int64).tolist(), strict=True)
    spans: dict[tuple[int, int], int] = {}
    for lane, column in sorted(set(pairs)):
        first, end = of_lane.get(lane, (column, column))
        if column > end:  # the second half of .16x32bx2
            spans[first, end] = spans.get((first, end), 0) | 1 << lane
            first = column
        of_lane[lane] = first, column + 1 + packed
    for lane, span in of_lane.items():
        spans[span] = spans.get(span, 0) | 1 << lane
    return tuple(TensorRegion(mask, first, end) for (first, end), mask in spans.items())


@cache
def fragment(shape: str, repeats: int, packed: bool = False, second_half: int = 0) -> TensorFragment:
    """Return the fragment of a shape such as "16x256b", repeated along the columns.

    The second half of .16x32bx2 begins `second_half` columns after the first.
    """
    thread = np.arange(WARP_THREADS)
    register = np.arange(REGISTERS_OF[shape] * repeats)[:, np.newaxis]
    wide = 1 + packed
    if shape == "32x32b":
        lane, column = thread + 0 * register, wide * (register + 0 * thread)
    elif shape == "16x32bx2":
        lane, column = thread % 16 + 0 * register, wide * register + second_half * (thread // 16)
    elif shape == "16x64b":
        lane = thread // 4 + thread % 2 * 8 + 0 * register
        column = wide * (2 * register + thread // 2 % 2)
    elif shape == "16x128b":
        lane = thread // 4 + register % 2 * 8
        column = wide * (register // 2 * 4 + thread % 4)
    else:
        lane = thread // 4 + register // 2 % 2 * 8
        column = wide * (register // 4 * 8 + thread % 4 * 2 + register % 2)
    return TensorFragment(lane.astype(np.int64), column.astype(np.int64), packed)


class RowPlacement(NamedTuple):
    """The cells of a matrix in tensor memory, relative to its address, in one of the manual's layouts A to G.

    Row i is in lane `lanes[i]`. The columns of the matrix are split into `parts` equal parts; part p is `part_lanes`
    lanes further on for each p, in the same columns.
    """

    lanes: np.ndarray
    parts: int = 1
    part_lanes: int = 0


FULL = RowPlacement(np.arange(LANES))
HALF = RowPlacement(np.arange(64) % 16 + np.arange(64) // 16 * QUARTER_LANES)
TWO_PARTS = RowPlacement(np.arange(64), 2, 64)
FOUR_PARTS = RowPlacement(np.arange(32), 4, 32)
LAYOUTS = {
    "A": FULL, "B": TWO_PARTS, "C": HALF, "D": FULL, "E": TWO_PARTS, "F": HALF, "G": FOUR_PARTS,
}  # fmt: skip
"""The placement in each CTA of the rows of D that it holds, by the manual's name of the layout."""


def layout_of(m: int, ctas: int, sparse: bool, weight_stationary: bool) -> str:
    """Return the manual's name of the layout of D."""
    if ctas == 2:
        return "A" if m == 256 else "C" if sparse else "B"
    if weight_stationary:
        return {32: "G", 64: "E", 128: "D"}[m]
    return "D" if m == 128 else "F"


def matrix_regions(placement: RowPlacement, address: int, columns: int) -> tuple[TensorRegion, ...]:
    """Return the regions of a matrix of `columns` columns of 32 bits at an address."""
    first, width = column_of(address), columns // placement.parts
    lanes = _lanes_of(placement.lanes.tobytes(), placement.parts, placement.part_lanes)
    return (TensorRegion(lanes << lane_of(address), first, first + width),)


@cache
def _lanes_of(lanes: bytes, parts: int, part_lanes: int) -> int:
    """Return the bit mask of the lanes of a placement."""
    mask = 0
    for part in range(parts):
        for lane in (np.frombuffer(lanes, np.int64) + part * part_lanes).tolist():
            mask |= 1 << lane
    return mask
