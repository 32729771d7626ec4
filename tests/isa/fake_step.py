"""A machine of one instruction: the part of `isa.step.Step` that memory and warp instructions use, on plain arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxdsl.isa import lookup
from ptxdsl.types import Type

WINDOWS = {"shared": 1 << 24, "local": 2 << 24, "const": 3 << 24}


class FakeStep:
    """Lanes and one byte array a space; generic addresses below 1 << 24 are global."""

    def __init__(self, shape: tuple[int, ...], active: np.ndarray | None = None, **memory: np.ndarray) -> None:
        self.shape = shape
        self.active = np.ones(shape, bool) if active is None else active
        self.memory = memory
        self.calls: list[tuple[Any, ...]] = []
        self.events: list[Any] = []

    def _bytes(self, space: str, address: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The array of a space, and the places in it of `count` bytes at each address, as the last axis."""
        return self.memory[space.partition("::")[0]], address[..., np.newaxis].astype(int) + np.arange(count)

    def load(self, space: str, address: np.ndarray, type: Type, count: int = 1, ordering: Any = None) -> np.ndarray:
        memory, places = self._bytes(space, address, count * type.bytes)
        words = memory[places].view(np.uint64 if type.bits == 128 else type.dtype)
        if type.bits == 128:
            return words
        return words[..., 0] if count == 1 else np.moveaxis(words, -1, 0)

    def store(self, space: str, address: np.ndarray, type: Type, values: np.ndarray, ordering: Any = None) -> None:
        if type.bits < 128:
            values = values[..., np.newaxis] if values.ndim == address.ndim else np.moveaxis(values, 0, -1)
        raw = np.ascontiguousarray(values).view(np.uint8)
        memory, places = self._bytes(space, address, raw.shape[-1])
        memory[places] = raw

    def atomic(
        self,
        space: str,
        address: np.ndarray,
        type: Type,
        update: Callable[..., np.ndarray],
        *inputs: Any,
        scan: Any = None,
        ordering: Any = None,
    ) -> np.ndarray:
        found = []
        for lane in range(len(address)):
            place = address[lane : lane + 1]
            old = self.load(space, place, type)
            self.store(space, place, type, update(old, *(x[lane : lane + 1] for x in inputs)).astype(old.dtype))
            found.append(old)
        return np.concatenate(found)

    def order(self, event: Any) -> None:
        self.events.append(event)

    def generic(self, space: str, address: np.ndarray) -> np.ndarray:
        return address + np.uint64(WINDOWS.get(space.partition("::")[0], 0))

    def specific(self, space: str, address: np.ndarray) -> np.ndarray:
        return address - np.uint64(WINDOWS.get(space.partition("::")[0], 0))

    def within(self, space: str, address: np.ndarray) -> np.ndarray:
        return address >> np.uint64(24) == WINDOWS.get(space.partition("::")[0], 0) >> 24

    def reads_result(self) -> bool:
        """Every result is read."""
        return True

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Any other service is only noted."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments: self.calls.append((name, *arguments))


def execute(text: str, m: FakeStep, *inputs: Any, form: int = 0) -> Any:
    """What the instruction spelled `text` gives for these inputs."""
    opcode = lookup(text)[form]
    with np.errstate(all="ignore"):
        return opcode.op.execute(opcode, m, *inputs)
