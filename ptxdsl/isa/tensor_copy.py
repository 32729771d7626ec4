"""Copies from shared to tensor memory (PTX ISA, "tcgen05.cp")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from ..layout.tensor_memory import LANES, RowPlacement, TensorRegion, column_of, lane_of
from .opcode import Opcode
from .step import Step
from .tensor_descriptors import START_MASK, InvalidDescriptor, chunk_addresses, operand
from .tensor_product import ctas_of, of_group, unpacked

_ROWS = np.arange(LANES)
OCTETS = 8  # the elements of a source without decompression
PADDED_BITS = {"b4x16_p64": 4, "b6x16_p32": 6}
"""The bits of elements that are expanded to bytes."""


class CopyShape(NamedTuple):
    """A shape of tcgen05.cp: its rows of `columns` cells, and the lanes of each of the places where they go."""

    rows: int
    columns: int
    places: tuple[RowPlacement, ...]


def _shape(rows: int, columns: int, *lanes: np.ndarray) -> CopyShape:
    return CopyShape(rows, columns, tuple(map(RowPlacement, lanes)))


SHAPES = {
    "128x256b": _shape(128, 8, _ROWS),
    "128x128b": _shape(128, 4, _ROWS),
    "4x256b": _shape(4, 8, _ROWS[::32]),
    "64x128b.warpx2::02_13": _shape(64, 4, _ROWS[:64], _ROWS[64:]),
    "64x128b.warpx2::01_23": _shape(64, 4, *(_ROWS[:64] % 32 + _ROWS[:64] // 32 * 64 + 32 * n for n in (0, 1))),
    "32x128b.warpx4": _shape(32, 4, *(_ROWS[:32] + 32 * n for n in range(4))),
}


@dataclass(frozen=True, eq=False, slots=True)
class TensorMemoryCopy:
    """Copies of one instruction, one for each lane, to `address` (lanes,) from `chunks` (n, lanes) of shared memory.

    Each of the `ctas` CTAs copies from its own shared memory to its own tensor memory; their chunks come one after
    another. Elements of `bits` are expanded to bytes; 8 if they are not.
    """

    shape: CopyShape
    address: np.ndarray
    chunks: np.ndarray
    bits: int
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
        """Return nothing: it reads shared memory alone."""
        return ()

    def writes(self, lane: int, cta: int = 0) -> tuple[TensorRegion, ...]:
        """Return the region that a lane's copy writes in a CTA."""
        at, mask = int(self.address[lane]), 0
        for placement in self.shape.places:
            for row in placement.lanes.tolist():
                mask |= 1 << row + lane_of(at)
        first = column_of(at)
        return (TensorRegion(mask, first, first + self.shape.columns),)

    def cells(self, chunks: np.ndarray) -> np.ndarray:
        """Return the words, (lanes, rows, columns), of the data read in a CTA, (n, lanes, 16) bytes."""
        octets = np.ascontiguousarray(chunks.transpose(1, 0, 2)).reshape(len(self.address), -1)
        if self.bits != OCTETS:
            octets = unpacked(octets, self.bits)
        return np.ascontiguousarray(octets).view(np.uint32).reshape(len(octets), self.shape.rows, -1)


def copies(
    m: Step, i: Opcode, address: np.ndarray, descriptors: np.ndarray
) -> Iterator[tuple[np.ndarray, TensorMemoryCopy]]:
    """Yield the copies of an instruction, grouped by the layouts of their descriptors, with the mask of their lanes.

    Invalid descriptors and addresses are reported, and their copies left out.
    """
    shape = SHAPES[next(name for name in SHAPES if f".{name}" in i.text)]
    bits, sources = PADDED_BITS.get(i.narrow, OCTETS), np.broadcast_to(descriptors, m.shape)
    for layout in np.unique(sources & ~START_MASK).tolist():
        which = (sources & ~START_MASK) == np.uint64(layout)
        at = np.broadcast_to(address, m.shape)[which].astype(np.int64)
        highest = max(int(placement.lanes.max()) for placement in shape.places)
        try:
            if highest + int((at >> 16).max()) >= LANES:
                first = int((at >> 16).max())
                raise InvalidDescriptor(
                    f"its rows begin in lane {first} and need {highest + 1} lanes",
                    "begin in lane 0: an address is lane << 16 | column",
                )
            fields = operand(layout, "source", OCTETS, False)
        except InvalidDescriptor as invalid:
            m.fail("tensor-memory", f"{i.text}: {invalid.message}", which, invalid.help)
            continue
        each = chunk_addresses(sources[which], fields, shape.rows, OCTETS, False, 4 * shape.columns)
        chunks = of_group(m, which, each, ctas_of(i))
        yield which, TensorMemoryCopy(shape, at, chunks, bits, ctas_of(i))
