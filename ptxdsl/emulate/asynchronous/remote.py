"""Stores and reductions to shared memory of the cluster that complete at an mbarrier (st.async, red.async).

They are carried out, in the order of their issue, once every thread is blocked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..memory.access import Origin


@dataclass(eq=False, slots=True)
class RemoteStore:
    """The stores of one instruction: `slots` are the receiving blocks, `action` carries them out."""

    lanes: np.ndarray
    slots: np.ndarray
    action: Callable[[np.ndarray], None]
    origin: Origin


class RemoteStores:
    """The remote stores in flight."""

    def __init__(self) -> None:
        self.under_way: list[RemoteStore] = []

    def issue(self, lanes: np.ndarray, slots: np.ndarray, action: Callable[[np.ndarray], None], origin: Origin) -> None:
        """Queue stores to the shared memory of slots."""
        self.under_way.append(RemoteStore(lanes, slots, action, origin))

    def flush(self) -> bool:
        """Carry out all stores. Return True if there were any."""
        stores, self.under_way = self.under_way, []
        for store in stores:
            store.action(store.lanes)
        return bool(stores)

    def towards(self, slot: int) -> RemoteStore | None:
        """Return the first store that the block in a slot has yet to receive."""
        return next((store for store in self.under_way if (store.slots == slot).any()), None)
