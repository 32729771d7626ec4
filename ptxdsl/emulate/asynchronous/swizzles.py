"""The swizzle with which each TMA box was loaded to shared memory, compared with the swizzle of wgmma operands and of
TMA stores that read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...isa.warpgroup import base_text, mode_text, say_swizzle, swizzles_of
from ..memory.access import Origin, Requester
from ..memory.regions import CHUNK
from ..memory.spaces import Memory
from .readings import Reading

_LINE = 128  # bytes of a row; the row number permutes its chunks
_MOST = 255  # distinct pairs of instruction and swizzle


class _Box(NamedTuple):
    """An instruction that loads boxes, and the span of their swizzle in bytes, 0 for none."""

    span: int
    origin: Origin


class BoxSwizzles:
    """The box that each chunk of shared memory came with, as the number in `Region.boxes`.

    Chunks that were written otherwise are not checked.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.boxes: dict[_Box, int] = {}
        self.spans: set[int] = set()

    def note(self, chunks: np.ndarray, span: int | None, origin: Origin) -> None:
        """Record boxes that landed at chunks; the span is None for bytes that may have been swizzled before."""
        shared = self.memory.spaces["shared"]
        if span is None or not shared.tracked:
            return
        number = self.boxes.setdefault(_Box(span, origin), len(self.boxes) + 1)
        if number <= _MOST:
            self.spans.add(span)
            shared.lay_boxes(chunks, number)

    def check_operands(self, x: Requester, reading: Reading, described: Sequence[tuple[str, int, np.ndarray]]) -> None:
        """Check the operands of a product: descriptors of a number of chunks each, for each warp or thread."""
        if not self.spans or reading.allowed is not None:
            return
        first = 0
        for name, count, descriptors in described:
            if len(self.spans) > 1 or not say_swizzle(descriptors, min(self.spans)):
                for (span, base), warps in swizzles_of(descriptors).items():
                    chunks = reading.chunks[first : first + count, warps].reshape(count, -1)
                    box, _ = self._other(chunks, span, base)
                    if box is not None:
                        which = warps.reshape(-1, *[1] * (reading.chunks.ndim - 2))
                        self._report_operand(x, name, box, (span, base), which)
            first += count

    def check_boxes(self, x: Requester, reading: Reading, span: int | None) -> None:
        """Check boxes that lanes store with a swizzle span; None if swizzled bytes may go to global memory."""
        if span is None or not self.spans or self.spans == {span} or reading.allowed is not None:
            return
        box, lanes = self._other(reading.chunks, span)
        if box is not None:
            message = f"{x.name} stores a box {_words(span)}, which {box.origin.name} loaded {_words(box.span)}"
            self._report(
                x,
                box,
                message,
                lanes,
                "use the same `swizzle` in both tensor maps, or rearrange the elements in between",
            )

    def _other(self, chunks: np.ndarray, span: int, base: int = 0) -> tuple[_Box | None, np.ndarray]:
        """Return a box with another swizzle than this, whose chunks (n, columns) are read, and the columns that contain
        it.

        Return None without such a box, or if some chunks have this swizzle: the others may be from an earlier tile.
        """
        shared, bits = self.memory.spaces["shared"], _bits(span)
        base = base if 2 * base & bits else 0  # half a pattern moves all rows alike: the order along K, of A and B
        numbers = np.zeros(chunks.shape, np.uint8) if shared.boxes is None else shared.boxes.take(chunks // CHUNK)
        spans = np.array([span, *(box.span for box in self.boxes)])[numbers]
        lines = chunks // _LINE
        wrong = (numbers > 0) & (lines & _bits(spans) != lines - base & bits)
        if not wrong.any() or (not base and ((numbers > 0) & (spans == span)).any()):
            return None, wrong.any(0)
        number = int(numbers[wrong][0])
        return next(box for box, each in self.boxes.items() if each == number), wrong.any(0)

    def _report_operand(self, x: Requester, name: str, box: _Box, says: tuple[int, int], which: np.ndarray) -> None:
        span, base = says
        if span == box.span:
            message = f"{x.name} reads {name} with a base offset of {base}, which {box.origin.name} loaded without one"
            help = f"TMA swizzles by address in shared memory: write 0 in {base_text()}"
        else:
            message = f"{x.name} reads {name} {_words(span)}, which {box.origin.name} loaded {_words(box.span)}"
            help = (
                f"{mode_text(box.span)} for a tile {_words(box.span)}: take it from "
                f"`layout.shared_operand(…, {name.lower()!r}, x.shared())`, where `x` is the tensor map; or write "
                f"`swizzle={span or None}` in the map"
            )
        self._report(x, box, message, which, help)

    def _report(self, x: Requester, box: _Box, message: str, which: np.ndarray, help: str) -> None:
        others = [box.origin.location] if box.origin.location is not None else []
        x.finding("swizzle", message, which, others, help)


def _bits(span: int | np.ndarray) -> int | np.ndarray:
    """Return the bits of the row number that permute the chunks."""
    return span // CHUNK - (np.minimum(span, 1) if isinstance(span, np.ndarray) else min(span, 1))


def _words(span: int) -> str:
    return f"swizzled by {span} bytes" if span else "without a swizzle"
