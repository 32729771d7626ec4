"""Shifts of rows in tensor memory (PTX ISA, "tcgen05.shift")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..layout.tensor_memory import QUARTER_LANES, TensorRegion, column_of, lane_mask, lane_of
from .opcode import Opcode
from .step import Step
from .tensor_product import ctas_of

COLUMNS = 8  # 32 bytes of each row


@dataclass(frozen=True, eq=False, slots=True)
class TensorMemoryShift:
    """Shifts of one instruction, one for each lane, of the 32 lanes at `address` (lanes,) in `ctas` CTAs.

    Each row but the last takes the data of the next. The manual says "down"; CUTLASS observed this direction on a B200,
    with `.ashift` (its example `1cta_mma_a_from_tmem.py`).
    """

    address: np.ndarray
    chunks: np.ndarray
    ctas: int
    described: tuple[tuple[str, int, np.ndarray], ...] = ()

    @property
    def placed(self) -> tuple[np.ndarray, ...]:
        """The arrays, (lanes,), that decide which cells a lane's work reads and writes."""
        return (self.address,)

    def part(self, which: np.ndarray) -> Self:
        """Select some of the lanes."""
        return replace(self, address=self.address[which], chunks=self.chunks[:, which])

    def reads(self, lane: int, cta: int = 0) -> tuple[TensorRegion, ...]:
        """Return the region that a lane's shift reads: all rows but the first."""
        return self._rows(lane, 1)

    def writes(self, lane: int, cta: int = 0) -> tuple[TensorRegion, ...]:
        """Return the region that a lane's shift writes: all rows but the last."""
        return self._rows(lane, 0)

    def _rows(self, lane: int, first: int) -> tuple[TensorRegion, ...]:
        at = int(self.address[lane])
        column = column_of(at)
        return (TensorRegion(lane_mask(lane_of(at) + first, QUARTER_LANES - 1), column, column + COLUMNS),)


def shifts(m: Step, i: Opcode, address: np.ndarray) -> Iterator[tuple[np.ndarray, TensorMemoryShift]]:
    """Yield the shifts of an instruction, with the mask of their lanes; report addresses that are not aligned."""
    at = np.broadcast_to(address, m.shape).astype(np.int64)
    crooked = (at >> 16) % QUARTER_LANES != 0
    if crooked.any():
        message = f"{i.text}: its rows begin in lane {lane_of(int(at[crooked][0]))}"
        help = "begin in a multiple of 32: an address is lane << 16 | column"
        m.fail("tensor-memory", message, crooked, help)
    if not crooked.all():
        nothing = np.zeros((0, int((~crooked).sum())), np.uint64)
        yield ~crooked, TensorMemoryShift(at[~crooked], nothing, ctas_of(i))
