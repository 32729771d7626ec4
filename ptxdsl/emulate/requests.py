"""What an instruction may ask of the running group besides control: memory, copies, special registers, findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ir
from ..errors import Location
from ..types import Type
from .residents import WARP


class Requests:
    """The part of the processor that serves instructions."""

    def load(self: Any, space: str, address: np.ndarray, type: Type, count: int = 1) -> np.ndarray:
        return self.memory.load(self, space, address, type, count)

    def store(self: Any, space: str, address: np.ndarray, type: Type, values: np.ndarray) -> None:
        self.memory.store(self, space, address, type, values)

    def atomic(
        self: Any,
        space: str,
        address: np.ndarray,
        type: Type,
        update: Callable[..., np.ndarray],
        *inputs: np.ndarray,
        scan: np.ufunc | None = None,
    ) -> np.ndarray:
        return self.memory.atomic(self, space, address, type, update, inputs, scan)

    def generic(self: Any, space: str, address: np.ndarray) -> np.ndarray:
        return self.memory.generic(space, address)

    def specific(self: Any, space: str, address: np.ndarray) -> np.ndarray:
        return self.memory.specific(space, address)

    def within(self: Any, space: str, address: np.ndarray) -> np.ndarray:
        return self.memory.within(space, address)

    def copy_async(
        self: Any, destination: np.ndarray, source: np.ndarray, bytes: int, source_bytes: np.ndarray
    ) -> None:
        self.copies.issue(self, destination, source, bytes, source_bytes)

    def commit_group(self: Any) -> None:
        self.copies.commit(self.index)

    def wait_group(self: Any, pending: int) -> None:
        self.copies.wait(self.lanes_now, pending)

    def wait_all(self: Any) -> None:
        self.copies.wait(self.lanes_now, None)

    def after_copies(self: Any, action: Callable[[Any], None]) -> None:
        frame, step, lanes = self.frame, self.step, self.lanes_now

        def run() -> None:
            self.frame, self.step, self.index, self.shape = frame, step, lanes, (len(lanes),)
            action(self)

        self.copies.notify(lanes, run)

    def special(self: Any, name: str) -> np.ndarray:
        values = self.machine.special(name)
        return values if self.index is None else values[self.index]

    def constant(self: Any, bits: int, dtype: np.dtype) -> np.ndarray:
        """One value for all current lanes, from its bits."""
        key = bits, dtype
        if key not in self.constants:
            one = np.array([bits % (1 << 8 * dtype.itemsize)], np.dtype(f"u{dtype.itemsize}"))
            everyone = np.repeat(one.astype(bool) if dtype.kind == "b" else one.view(dtype), self.residents.lanes)
            everyone.flags.writeable = False
            self.constants[key] = everyone
        return self.constants[key][: self.width]

    def address_of(self: Any, what: ir.Variable | ir.Function | ir.Symbol) -> int:
        """Where a variable begins in its state space; for a function, a code address."""
        if isinstance(what, ir.Variable) and what in self.frame.places:
            return self.frame.places[what]
        return self.machine.address_of(what)

    @property
    def carry(self: Any) -> np.ndarray:
        return self.carries if self.index is None else self.carries[self.index]

    @carry.setter
    def carry(self: Any, values: np.ndarray) -> None:
        self.carries[slice(None) if self.index is None else self.index] = values

    def together(self: Any) -> np.ndarray:
        present = np.zeros(self.residents.lanes, bool)
        present[self.lanes_now] = True
        words = np.packbits(present.reshape(-1, WARP), axis=1, bitorder="little").view(np.uint32)
        return words[self.lanes_now // WARP, 0]

    # Findings

    @property
    def name(self: Any) -> str:
        """The running instruction, as findings call it."""
        return self.step.opcode.text

    def fail(self: Any, kind: str, message: str, where: np.ndarray | None = None) -> None:
        self.finding(kind, message, np.ones(self.shape, bool) if where is None else where)

    def finding(self: Any, kind: str, message: str, which: np.ndarray, others: Sequence[Location] = ()) -> None:
        """Reports what the lanes of a mask did; `others` are the places of other instructions that take part."""
        lanes = np.broadcast_to(self.of_lanes(self.residents.all, which.shape), which.shape)[which]
        step = self.step
        if self.batch is not None and which.ndim == len(self.shape):
            step = self.batch.steps[int(np.argmax(which.reshape(len(which), -1).any(1)))]
        self.machine.find(kind, message, step, lanes, others)

    def finding_of_lanes(self: Any, kind: str, message: str, lanes: np.ndarray) -> None:
        self.machine.find(kind, message, self.step, lanes)

    def finding_of_warps(self: Any, kind: str, message: str, which: np.ndarray) -> None:
        """Reports what the warps of a mask over the warps of this instruction did."""
        self.finding(kind, message, self.active & which[:, np.newaxis])
