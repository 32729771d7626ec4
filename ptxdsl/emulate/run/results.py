"""Results of instructions in registers, and the taint of uninitialised values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .decode import Decoded
from .frames import Frame, Taint, UninitializedRead, as_index
from .state import State


class Results(State):
    """The part of the processor that writes registers."""

    def deliver(self, step: Decoded, result: Any) -> None:
        """Write the results of an instruction."""
        if len(step.writes) == 1:
            result = (result,)
        elif not step.writes:
            return
        for writer, value in zip(step.writes, result, strict=True):
            if writer is not None:
                writer.put(self, value)

    def deliver_late(self, frame: Frame, step: Decoded, lanes: np.ndarray, result: np.ndarray) -> None:
        """Write the result of an instruction at which lanes have waited."""
        with self.elsewhere(frame, lanes):
            self.deliver(step, result)

    def put(self, slot: int, value: np.ndarray) -> None:
        """Write a register for the current lanes."""
        if value.shape != self.shape or len(self.shape) > 1:
            value = self._one_axis(value)
        index = self.index
        if self.kept is not None:
            value, index = value[self.kept], as_index(self.lanes_now[self.kept])
        self.frame.put(slot, value, index, not self.dense or self.partial or self.kept is not None)

    def _one_axis(self, value: np.ndarray) -> np.ndarray:
        """Flatten a result to one axis of lanes; a value common to all lanes is repeated."""
        if len(self.shape) > 1:
            return value.reshape(-1, *value.shape[len(self.shape) :])
        return value if value.ndim and len(value) == self.width else np.broadcast_to(value, self.shape)

    def tainted(self, slots: Sequence[int]) -> Taint | None:
        """Return the lanes in which one of the registers was never written, and the read that its value comes from.

        None if no current lane is among them.
        """
        undefined, sources = self.frame.undefined, self.frame.sources
        suspect = [slot for slot in slots if slot in undefined]
        if not suspect:
            return None
        lanes = self.lanes_now
        if not any(undefined[slot][lanes].any() for slot in suspect):
            return None
        either: np.ndarray = np.logical_or.reduce([undefined[slot] for slot in suspect])
        return Taint(either, next((sources[slot] for slot in suspect if slot in sources), None))

    def taint(self, slots: Sequence[int], tainted: np.ndarray, source: UninitializedRead | None) -> None:
        """Mark registers of the current lanes as uninitialised where `tainted` holds, and as initialised elsewhere."""
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

    def hand_on(self, step: Decoded, carried: Taint | None) -> None:
        """Taint the results of an instruction that read uninitialised memory, or that hands on `carried`."""
        if self.unwritten is not None:
            self.taint(step.outputs, *self.unwritten)
            self.unwritten = None
        if carried is not None and step.outputs:
            taken = np.zeros_like(carried.lanes)
            taken[self.lanes_now] = carried.lanes[self.lanes_now]
            if len(self.shape) > 1:  # a warp's lanes together; those outside the member mask contribute nothing
                taken[self.lanes_now] &= self.active.reshape(-1)
            self.taint(step.outputs, self.whole_warps(taken), carried.source)

    def carried_by(self, step: Decoded) -> Taint | None:
        """Return the taint that an instruction hands on; None if there is none.

        A racy value that is stored has reached an output.
        """
        carried = self.tainted(step.carried) if self.frame.undefined else None
        if carried is not None and not step.outputs and self._reaches(carried.source):
            return None
        return carried

    def _reaches(self, source: UninitializedRead | None) -> bool:
        """Note that a value reaches an output; True if it comes from a racy read."""
        if source is None or source.race is None:
            return False
        self.machine.reached.add(source.race)
        return True

    def exchanged(self, step: Decoded, inputs: Sequence[Any], carried: Taint) -> None:
        """Taint the results of an exchange between lanes, which is repeated with the flags of the lanes."""
        flags = [np.broadcast_to(self.of_lanes(carried.lanes, self.shape), self.shape).astype(np.uint32), *inputs[1:]]
        result, _ = step.op.execute(step.opcode, self, *flags)
        everybody = np.zeros(self.residents.lanes, bool)
        everybody[self.lanes_now] = np.broadcast_to(result != 0, self.shape).reshape(-1)
        self.taint(step.outputs[:1], everybody, carried.source)

    def selected(self, step: Decoded, inputs: Sequence[Any], tainted: Taint) -> Taint | None:
        """Return the taint of a selection: of lanes that take a tainted value, or select by one."""
        undefined, slots = self.frame.undefined, [getattr(reader, "slot", -1) for reader in step.reads]
        none = np.zeros(self.residents.lanes, bool)
        first, second, decides = (undefined.get(slot, none) for slot in slots)
        chosen = none.copy()
        chosen[self.lanes_now] = inputs[2]
        flags = decides | np.where(chosen, first, second)
        return Taint(flags, tainted.source) if flags[self.lanes_now].any() else None

    def refuse_carried(self, which: np.ndarray) -> None:
        """Report lanes (a mask of an access) that store uninitialised values to memory that is a result."""
        self.refuse_undefined(self.step.carried, which if which.ndim > 1 else None)

    def refuse_undefined(self, slots: Sequence[int], active: np.ndarray | None = None) -> None:
        """Report uninitialised registers that decide something in the (active) lanes."""
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
            if self._reaches(source):
                self.frame.undefined.pop(slot)
                continue
            text, others = f"{self.name} uses register {register}, which was never written", []
            help = "assign it a value first"
            if source is not None:
                text = f"{source.text}; {self.name} uses it (register {register})"
                others = [source.origin.location] if source.origin.location is not None else []
                help = source.help
            self.finding("uninitialized", text, bad, others, help)
            alike = [other for other, read in self.frame.sources.items() if read is source and read.once]
            for other in (slot, *alike):
                self.frame.undefined.pop(other, None)
