"""What an instruction's meaning may ask of the machine that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import ir
from ..types import Type


class Step(Protocol):
    """What an instruction's meaning may ask of the machine while it runs for some lanes.

    `shape` is (lanes,), or (warps, 32) for a collective; arrays in and out have it as their last axes. Addresses are
    uint64 arrays of byte addresses in their space. Every access goes through `load`, `store` and `atomic`, so that
    bounds, alignment, initialisation (and later races and banks) are checked there and nowhere else.
    """

    shape: tuple[int, ...]
    carry: np.ndarray  # the condition code CC.CF of each lane, uint8; may be assigned
    active: np.ndarray  # bool; lanes of a collective that take part

    def load(self, space: str, address: np.ndarray, type: Type, count: int = 1) -> np.ndarray:
        """`count` consecutive elements at each address: `shape` for one, (count, *shape) for more."""

    def store(self, space: str, address: np.ndarray, type: Type, values: np.ndarray) -> None:
        """Elements to each address; `values` as `load` returns them."""

    def atomic(
        self,
        space: str,
        address: np.ndarray,
        type: Type,
        update: Callable[..., np.ndarray],
        *inputs: np.ndarray,
    ) -> np.ndarray:
        """memory = update(memory, *inputs) one lane after another; returns what each lane found."""

    def special(self, name: str) -> np.ndarray:
        """A special register, such as "%tid.x"."""

    def copy_async(self, destination: np.ndarray, source: np.ndarray, bytes: int, source_bytes: np.ndarray) -> None:
        """Queues a copy from global to shared; bytes past `source_bytes` become zero. Takes effect at its wait."""

    def commit_group(self) -> None:
        """Closes the lanes' group of queued copies."""

    def wait_group(self, pending: int) -> None:
        """Completes all but the newest `pending` groups of each lane; 0 also completes copies in no group for wait_all."""

    def suspend(self, ready: np.ndarray) -> None:
        """Lanes where `ready` is false run this instruction again when memory or a barrier has changed."""

    def barrier(self, index: np.ndarray, threads: np.ndarray | None, arrive: bool = False) -> None:
        """CTA barrier `index`, for `threads` threads (None: all of the CTA); `arrive` does not wait."""

    def barrier_reduce(
        self, index: np.ndarray, threads: np.ndarray | None, values: np.ndarray, how: str
    ) -> np.ndarray | None:
        """As `barrier`; "popc", "and" or "or" of all values, None until all have come."""

    def jump(self, target: ir.Label) -> None:
        """The lanes go on at a label."""

    def jump_each(self, index: np.ndarray, targets: Sequence[ir.Label]) -> None:
        """Each lane goes on at targets[index]."""

    def call(self, function: Any, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        """The lanes go on in a device function."""

    def leave(self) -> None:
        """The lanes return from their function; from a kernel, they end."""

    def exit(self) -> None:
        """The lanes end."""

    def fail(self, kind: str, message: str) -> None:
        """Reports a finding at this instruction for the active lanes."""
