"""Pending reads of shared memory by the async proxy: sources of bulk stores, operands of wgmma."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...isa.step import ASYNC, AsyncReading
from ..memory.access import READS, Origin, ReadingEnd, Requester
from ..memory.regions import CHUNK
from ..memory.spaces import Memory


@dataclass(eq=False, slots=True)
class Reading:
    """Chunks of 16 bytes of shared memory, (chunks, …), that are being read for lanes; for a collective, for whole
    warps.
    """

    lanes: np.ndarray
    chunks: np.ndarray
    allowed: np.ndarray | None
    whole_warps: bool
    origin: Origin

    @property
    def flat(self) -> np.ndarray:
        """The addresses that are allowed, flattened."""
        return self.chunks if self.allowed is None else self.chunks[self.allowed]

    @property
    def readers(self) -> np.ndarray:
        """The lane that reads each of them."""
        lanes = np.broadcast_to(self.lanes, self.chunks.shape)
        return lanes if self.allowed is None else lanes[self.allowed]

    def part(self, warps: np.ndarray) -> Reading:
        """Return the reading of some of the warps."""
        allowed = None if self.allowed is None else self.allowed[:, warps]
        return Reading(self.lanes[:, warps], self.chunks[:, warps], allowed, self.whole_warps, self.origin)


class Readings:
    """The readings that have begun and not ended."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.pending: list[Reading] = []

    def begin(self, x: Requester, address: np.ndarray, space: str = "shared") -> Reading:
        """Begin to read 16 bytes at each address, (chunks, …); there may be none."""
        if not address.size:
            reading = Reading(x.lanes_now, address.astype(np.int64), None, x.collective, x.origin)
            self.memory.spaces["shared"].begin_reading(reading.chunks)
            self.pending.append(reading)
            return reading
        access = self.memory.reach(x, READS, space, address, CHUNK, ASYNC, None, True)
        reading = Reading(access.lanes, access.flat, access.allowed, x.collective, x.origin)
        access.region.begin_reading(reading.flat)
        self.pending.append(reading)
        return reading

    def end(self, x: Requester, reading: AsyncReading) -> np.ndarray:
        """End a reading and return the present bytes (chunks, …, 16)."""
        assert isinstance(reading, Reading)
        result = self.take(reading)
        readers, flat = reading.readers.reshape(-1), reading.flat.reshape(-1)
        self.memory.order(x, ReadingEnd(readers, flat, reading.whole_warps, reading.origin))
        return result

    def take(self, reading: Reading) -> np.ndarray:
        """End a reading that no thread waits for by itself, and return the bytes."""
        self.pending.remove(reading)
        region, flat = self.memory.spaces["shared"], reading.flat
        region.end_reading(flat, True)
        result = np.full((*reading.chunks.shape, CHUNK), 0xFF, np.uint8)
        items = region.read(flat, CHUNK)[..., np.newaxis].view(np.uint8)
        result[... if reading.allowed is None else reading.allowed] = items
        return result

    def unwritten(self, reading: AsyncReading) -> np.ndarray:
        """Return True for each uninitialised chunk."""
        assert isinstance(reading, Reading)
        which = np.zeros(reading.chunks.shape, bool)
        flags = self.memory.spaces["shared"].unwritten(reading.flat, CHUNK)
        if flags is not None:
            which[... if reading.allowed is None else reading.allowed] = flags
        return which

    def split(self, reading: AsyncReading, warps: np.ndarray) -> tuple[Reading, Reading]:
        """Split a reading of a collective, (chunks, warps, 1), into that of some of the warps and the rest."""
        assert isinstance(reading, Reading)
        self.pending.remove(reading)
        first, second = (reading.part(which) for which in (warps, ~warps))
        self.memory.spaces["shared"].readings += 1  # each of them ends once
        self.pending += first, second
        return first, second

    def origins(self, position: int) -> list[Origin]:
        """Return the instructions that read the byte at a position of shared memory."""
        chunk = position // CHUNK * CHUNK
        return list(dict.fromkeys(r.origin for r in self.pending if (r.flat == chunk).any()))

    def move(self, lanes: np.ndarray, slots: np.ndarray, stride: int) -> None:
        """Renumber lanes and slots; -1 marks those that have ended."""
        for reading in self.pending:
            reading.chunks = moved_addresses(reading.chunks, slots, stride)
            reading.lanes = lanes[reading.lanes]
        self.pending = [reading for reading in self.pending if (reading.lanes >= 0).all()]


def moved_addresses(addresses: np.ndarray, slots: np.ndarray, stride: int) -> np.ndarray:
    """Return addresses in shared memory after its slots were renumbered."""
    result: np.ndarray = slots[addresses // stride] * stride + addresses % stride
    return result
