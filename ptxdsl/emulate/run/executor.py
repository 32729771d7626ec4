"""The interface of the running group of lanes, as other parts of the machine use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from ... import ir
from ...errors import Location
from ...isa.step import AsyncReading, Ordering
from ...types import Type
from ..memory.access import Event, Requester
from ..memory.spaces import Memory
from .decode import Decoded
from .frames import Frame, Index, Taint, UninitializedRead
from .residents import Residents
from .scheduler import Group, Scheduler


class Executor(Requester, Protocol):
    """The members of `State`, `Flow` and `Processor` that other parts use; their documentation is there."""

    residents: Residents
    memory: Memory
    scheduler: Scheduler
    frame: Frame
    step: Decoded
    pc: int
    index: Index
    width: int
    shape: tuple[int, ...]
    whole: bool
    partial: bool
    alive: np.ndarray
    active: np.ndarray
    everybody: np.ndarray
    kept: np.ndarray | None
    unwritten: tuple[np.ndarray, UninitializedRead] | None
    departed: list[np.ndarray]
    met: Sequence[tuple[Group, Decoded, np.ndarray]]

    @property
    def numerics(self) -> str:
        """The accumulation of matrix products."""

    def living_warps(self) -> np.ndarray:
        """Return the number of warps of each slot with a lane that has not exited."""

    def elsewhere(self, frame: Frame, index: Index) -> AbstractContextManager[None]:
        """Read and write registers of other lanes or of another frame."""

    def constant(self, bits: int, dtype: np.dtype) -> np.ndarray: ...

    def special(self, name: str) -> np.ndarray: ...

    def own_address(
        self, target: ir.Variable | ir.Function | ir.Symbol, offset: int, dtype: np.dtype
    ) -> np.ndarray: ...

    def generic(self, space: str, address: np.ndarray) -> np.ndarray: ...

    def put(self, slot: int, value: np.ndarray) -> None: ...

    def load(
        self, space: str, address: np.ndarray, type: Type, count: int = ..., ordering: Ordering = ...
    ) -> np.ndarray: ...

    def store(
        self, space: str, address: np.ndarray, type: Type, values: np.ndarray, ordering: Ordering = ...
    ) -> None: ...

    def specific(self, space: str, address: np.ndarray) -> np.ndarray: ...

    def suspend(self, ready: np.ndarray) -> None:
        """Let lanes that are not ready run this instruction again when memory has changed."""

    def resumption(self) -> Callable[[np.ndarray], AbstractContextManager[None]]:
        """Return a context in which lanes later do what the running instruction asks for."""

    def order(self, event: Event) -> None:
        """Report an event that orders accesses."""

    def count(self, step: Decoded, lanes: int) -> None:
        """Count a step that lanes have executed."""

    def finding_elsewhere(
        self, kind: str, message: str, step: Decoded, lanes: np.ndarray, others: Sequence[Location], help: str
    ) -> None:
        """Report what lanes did at another step."""

    def finding_of_lanes(self, kind: str, message: str, lanes: np.ndarray, help: str) -> None: ...

    def finding_of_warps(self, kind: str, message: str, which: np.ndarray, help: str) -> None: ...

    def fail(
        self,
        kind: str,
        message: str,
        where: np.ndarray | None = ...,
        help: str = ...,
        mbarrier: np.ndarray | None = ...,
    ) -> None: ...

    def warpgroups(self) -> np.ndarray: ...

    def begin_reading(
        self, address: np.ndarray, described: Sequence[tuple[str, int, np.ndarray]] = ..., space: str = ...
    ) -> AsyncReading: ...

    def unwritten_chunks(self, reading: AsyncReading) -> np.ndarray: ...

    def end_reading(self, reading: AsyncReading) -> np.ndarray: ...

    def split_reading(self, reading: AsyncReading, warps: np.ndarray) -> tuple[AsyncReading, AsyncReading]: ...

    def tainted(self, slots: Sequence[int]) -> Taint | None: ...

    def taint(self, slots: Sequence[int], tainted: np.ndarray, source: UninitializedRead | None) -> None: ...

    def refuse_undefined(self, slots: Sequence[int], active: np.ndarray | None = None) -> None: ...

    def deliver(self, step: Decoded, result: object) -> None: ...

    def deliver_late(self, frame: Frame, step: Decoded, lanes: np.ndarray, result: np.ndarray) -> None: ...

    def hold(self, lanes: np.ndarray) -> None:
        """Hold lanes at this collective until the others of their warps arrive."""

    def end(self, lanes: np.ndarray) -> None:
        """End lanes."""

    def go_to_function(self, frame: Frame) -> None: ...
