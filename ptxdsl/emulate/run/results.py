"""What instructions leave in registers: their results, and what is known of those that nobody wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .decode import Decoded
from .frames import Frame, UninitializedRead, as_index
from .state import State


class Results(State):
    """The part of the processor that writes registers."""

    def deliver(self, step: Decoded, result: Any) -> None:
        """Writes an instruction's results."""
        if len(step.writes) == 1:
            result = (result,)
        elif not step.writes:
            return
        for writer, value in zip(step.writes, result, strict=True):
            if writer is not None:
                writer.put(self, value)

    def deliver_late(self, frame: Frame, step: Decoded, lanes: np.ndarray, result: np.ndarray) -> None:
        """Writes the result of an instruction at which lanes have waited."""
        with self.elsewhere(frame, lanes):
            self.deliver(step, result)

    def put(self, slot: int, value: np.ndarray) -> None:
        """Writes a register for the current lanes."""
        if value.shape != self.shape or len(self.shape) > 1:
            value = self._one_axis(value)
        index = self.index
        if self.kept is not None:
            value, index = value[self.kept], as_index(self.lanes_now[self.kept])
        self.frame.put(slot, value, index, not self.dense or self.partial or self.kept is not None)

    def _one_axis(self, value: np.ndarray) -> np.ndarray:
        """A result with its lanes along one axis; what is the same for all is repeated."""
        if len(self.shape) > 1:
            return value.reshape(-1, *value.shape[len(self.shape) :])
        return value if value.ndim and len(value) == self.width else np.broadcast_to(value, self.shape)

    def tainted(self, slots: Sequence[int]) -> np.ndarray | None:
        """The lanes in which one of the registers was never written; None if there are none."""
        flags = [self.frame.undefined[slot] for slot in slots if slot in self.frame.undefined]
        if not flags:
            return None
        either = flags[0] if len(flags) == 1 else np.logical_or.reduce(flags)
        return either if either[self.lanes_now].any() else None

    def taint(self, slots: Sequence[int], tainted: np.ndarray, source: UninitializedRead | None) -> None:
        """What is computed from values that were never written counts as never written."""
        lanes = self.lanes_now
        for slot in slots:
            flags = self.frame.undefined.get(slot)
            flags = np.zeros(self.residents.lanes, bool) if flags is None else flags.copy()
            flags[lanes] = tainted[lanes]
            self.frame.undefined[slot] = flags
            if source is not None:
                self.frame.sources[slot] = source
            else:
                self.frame.sources.pop(slot, None)

    def source_of(self, slots: Sequence[int]) -> UninitializedRead | None:
        """The memory from which one of the registers has a value that was never written."""
        sources = self.frame.sources
        return next((sources[slot] for slot in slots if slot in sources and slot in self.frame.undefined), None)

    def hand_on(self, step: Decoded) -> None:
        """Results of an instruction have what nobody wrote, read from memory or carried from other registers."""
        if self.unwritten is not None:
            self.taint(step.outputs, *self.unwritten)
            self.unwritten = None
        if self.frame.undefined and step.carried and step.outputs:
            tainted = self.tainted(step.carried)
            if tainted is not None:
                taken = np.zeros_like(tainted)
                taken[self.lanes_now] = tainted[self.lanes_now]
                if len(self.shape) > 1:  # a warp's lanes together; those outside the member mask contribute nothing
                    taken[self.lanes_now] &= self.active.reshape(-1)
                self.taint(step.outputs, self.whole_warps(taken), self.source_of(step.carried))

    def exchanged(self, step: Decoded, inputs: Sequence[Any], carried: np.ndarray) -> None:
        """Of values that lanes exchange, those go where they go: the exchange is made with flags."""
        flags = [np.broadcast_to(self.of_lanes(carried, self.shape), self.shape).astype(np.uint32), *inputs[1:]]
        result, _ = step.op.execute(step.opcode, self, *flags)
        everybody = np.zeros(self.residents.lanes, bool)
        everybody[self.lanes_now] = np.broadcast_to(result != 0, self.shape).reshape(-1)
        self.taint(step.outputs[:1], everybody, self.source_of(step.carried))

    def selected(self, step: Decoded, inputs: Sequence[Any]) -> np.ndarray | None:
        """Lanes in which a selection takes what was never written, or by what was never written."""
        undefined, slots = self.frame.undefined, [getattr(reader, "slot", -1) for reader in step.reads]
        none = np.zeros(self.residents.lanes, bool)
        first, second, decides = (undefined.get(slot, none) for slot in slots)
        chosen = none.copy()
        chosen[self.lanes_now] = inputs[2]
        flags = decides | np.where(chosen, first, second)
        return flags if flags[self.lanes_now].any() else None

    def refuse_carried(self, which: np.ndarray) -> None:
        """Reports lanes (a mask of an access) that write what nobody wrote to where it is a result."""
        self.refuse_undefined(self.step.carried, which if which.ndim > 1 else None)

    def refuse_undefined(self, slots: Sequence[int], active: np.ndarray | None = None) -> None:
        """Reports registers that were never written and now decide something in the (active) lanes."""
        if not self.frame.undefined or not self.checks:
            return
        for slot in slots:
            flags = self.frame.undefined.get(slot)
            if flags is None:
                continue
            bad = flags[self.lanes_now]
            if active is not None:
                bad = bad.reshape(active.shape) & active
            if not bad.any():
                continue
            register, source = self.frame.code.slots.registers[slot], self.frame.sources.get(slot)
            text, others = f"{self.name} uses register {register}, which was never written", []
            help = "assign it a value first"
            if source is not None:
                text = f"{source.text}; {self.name} uses it (register {register})"
                others = [source.origin.location] if source.origin.location is not None else []
                help = source.help
            self.finding("uninitialized", text, bad, others, help)
            self.frame.undefined.pop(slot)
