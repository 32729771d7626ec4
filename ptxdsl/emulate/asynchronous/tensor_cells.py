"""The cells of tensor memory and their allocation, for each resident block.

A block has the tensor memory of a multiprocessor to itself. Cells that were never written are poison, and their
`origins` tell whence an uninitialised value comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...layout.tensor_memory import (
    COLUMNS,
    LANES,
    QUARTER_LANES,
    RowPlacement,
    TensorFragment,
    TensorRegion,
    column_of,
    lane_of,
)
from ..memory.access import Origin
from ..memory.regions import POISON

UNIT_COLUMNS = 32
WRITTEN, NEVER_WRITTEN = 0, 1
_MOST_ORIGINS = 255
POISON_WORD = np.uint32(POISON * 0x01010101)


@dataclass(slots=True)
class Allocations:
    """The allocations of a block: the number of columns and the instruction, by first column.

    `latest` is the size of the last allocation, `relinquished` the instruction that gave up the right to allocate.
    """

    columns: dict[int, tuple[int, Origin]] = field(default_factory=dict)
    latest: int = COLUMNS
    relinquished: Origin | None = None

    @property
    def free(self) -> int:
        """The number of columns that are not allocated."""
        return COLUMNS - sum(count for count, _ in self.columns.values())

    def fit(self, count: int) -> int | None:
        """Return the first column where `count` columns are free, or None."""
        taken = sorted((first, first + size) for first, (size, _) in self.columns.items())
        first = 0
        for start, end in taken:
            if first + count <= start:
                return first
            first = -(-end // UNIT_COLUMNS) * UNIT_COLUMNS
        return first if first + count <= COLUMNS else None

    def outside(self, regions: Sequence[TensorRegion]) -> TensorRegion | None:
        """Return the first region that is not inside one allocation."""
        for region in regions:
            if not any(first <= region.first and region.end <= first + n for first, (n, _) in self.columns.items()):
                return region
        return None


class TensorCells:
    """The contents: `words`, (slots, 128, 512), and `origins`, of the same shape: indices of `texts` + 1, 0 for
    initialised cells. Both exist once a block has allocated."""

    def __init__(self) -> None:
        self.words = np.zeros((0, LANES, COLUMNS), np.uint32)
        self.origins = np.zeros((0, LANES, COLUMNS), np.uint8)
        self.texts: list[str] = [""]

    def grow(self, slots: int) -> None:
        """Create the cells of `slots` blocks, if there are none."""
        if len(self.words) < slots:
            self.words = np.full((slots, LANES, COLUMNS), POISON_WORD, np.uint32)
            self.origins = np.full((slots, LANES, COLUMNS), NEVER_WRITTEN, np.uint8)

    def clear(self, slot: int, first: int, count: int) -> None:
        """Poison columns."""
        self.words[slot, :, first : first + count] = POISON_WORD
        self.origins[slot, :, first : first + count] = NEVER_WRITTEN

    def origin(self, text: str) -> int:
        """Return the index of the origin of an uninitialised value; texts beyond the first 255 count as never
        written."""
        if text not in self.texts:
            if len(self.texts) >= _MOST_ORIGINS:
                return NEVER_WRITTEN
            self.texts.append(text)
        return self.texts.index(text) + 1

    # Fragments of warps

    def load(self, slots: np.ndarray, address: np.ndarray, cells: TensorFragment) -> tuple[np.ndarray, np.ndarray]:
        """Return registers, (registers, warps, 32), and the origins of their cells."""
        index = _index(slots, address, cells)
        words, origins = self.words[index], self.origins[index]
        if cells.packed:
            beside = index[0], index[1], index[2] + 1
            words = words & np.uint32(0xFFFF) | self.words[beside] << np.uint32(16)
            origins = np.maximum(origins, self.origins[beside])
        return words, origins

    def store(
        self, slots: np.ndarray, address: np.ndarray, cells: TensorFragment, values: np.ndarray, origins: np.ndarray
    ) -> None:
        """Write registers; `origins`, (warps, 32), are those of the threads' values."""
        index = _index(slots, address, cells)
        if cells.packed:
            beside = index[0], index[1], index[2] + 1
            self.words[beside] = values >> np.uint32(16)
            self.origins[beside] = origins
            values = values & np.uint32(0xFFFF)
        self.words[index] = values
        self.origins[index] = origins

    # Matrices

    def matrix(self, slots: np.ndarray, address: np.ndarray, placement: RowPlacement, columns: int) -> np.ndarray:
        """Return matrices, (lanes, rows, columns)."""
        return self._matrix(self.words, slots, address, placement, columns)

    def matrix_origins(
        self, slots: np.ndarray, address: np.ndarray, placement: RowPlacement, columns: int
    ) -> np.ndarray:
        """Return the origins of the cells of matrices."""
        return self._matrix(self.origins, slots, address, placement, columns)

    def _matrix(
        self, cells: np.ndarray, slots: np.ndarray, address: np.ndarray, placement: RowPlacement, columns: int
    ) -> np.ndarray:
        width = columns // placement.parts
        result = np.empty((len(slots), len(placement.lanes), columns), cells.dtype)
        for at in np.unique(address).tolist():
            here, first = address == at, column_of(at)
            for part in range(placement.parts):
                rows = placement.lanes + lane_of(at) + part * placement.part_lanes
                result[here, :, part * width : (part + 1) * width] = cells[_cells(slots[here], rows, first, width)]
        return result

    def put_matrix(
        self,
        slots: np.ndarray,
        address: np.ndarray,
        placement: RowPlacement,
        enabled: np.ndarray,
        words: np.ndarray,
        origins: np.ndarray,
    ) -> None:
        """Write matrices, (lanes, rows, columns), to the enabled lanes of tensor memory, with the origins of rows."""
        width = words.shape[2] // placement.parts
        pairs = list(zip(address.tolist(), enabled.tolist(), strict=True))
        for at, mask in dict.fromkeys(pairs):
            here, first = np.array([pair == (at, mask) for pair in pairs]), column_of(at)
            for part in range(placement.parts):
                lanes = placement.lanes + lane_of(at) + part * placement.part_lanes
                rows = np.array([mask >> lane & 1 for lane in lanes.tolist()], bool)
                index = _cells(slots[here], lanes[rows], first, width)
                self.words[index] = words[here][:, rows, part * width : (part + 1) * width]
                self.origins[index] = origins[here][:, rows, np.newaxis]

    def shift(self, slots: np.ndarray, address: np.ndarray, columns: int) -> None:
        """Copy to each row but the last of the 32 lanes at each address the next row."""
        for slot, at in zip(slots.tolist(), address.tolist(), strict=True):
            first, lane = column_of(at), lane_of(at)
            for cells in self.words, self.origins:
                rows = cells[slot, lane : lane + QUARTER_LANES, first : first + columns]
                rows[:-1] = rows[1:].copy()

    def move(self, slots: np.ndarray, count: int) -> None:
        """Renumber slots; -1 for those that have ended."""
        old, origins = self.words, self.origins
        if not len(old):
            return
        self.words, self.origins = np.zeros((0, 0, 0), np.uint32), np.zeros((0, 0, 0), np.uint8)
        self.grow(count)
        remain = np.flatnonzero(slots >= 0)
        self.words[slots[remain]], self.origins[slots[remain]] = old[remain], origins[remain]


def _index(slots: np.ndarray, address: np.ndarray, cells: TensorFragment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the index of the cells of registers, (registers, warps, 32)."""
    at = address.astype(np.int64)[np.newaxis, :, np.newaxis]
    lanes, columns = cells.lanes[:, np.newaxis], cells.columns[:, np.newaxis]
    return slots[np.newaxis, :, np.newaxis], (at >> 16) + lanes, (at & 0xFFFF) + columns


def _cells(slots: np.ndarray, lanes: np.ndarray, first: int, width: int) -> tuple[np.ndarray | slice, ...]:
    """Return the index of columns of some lanes, (slots, lanes, width)."""
    columns = slice(first, first + width)
    if lanes.size and lanes[-1] - lanes[0] == lanes.size - 1:
        return slots, slice(int(lanes[0]), int(lanes[-1]) + 1), columns
    return slots[:, np.newaxis], lanes, columns
