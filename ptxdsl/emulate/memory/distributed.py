"""Distributed shared memory: addresses that name a block of the cluster beside a place in its shared memory.

The lowest 24 bits of an address are the place, the next eight are 0 in the thread's own block, else the rank and one
more: an address in shared::cta is one in shared::cluster too, and means the same.
"""

from __future__ import annotations

import numpy as np

from ...isa.cluster_address import OFFSET, RANK_BITS, RANKS
from ..run.residents import WARP, Residents


def owners(residents: Residents, lanes: np.ndarray, address: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What addresses of lanes name: places (int64), ranks (-1: the own block), and slots (-1: no resident block)."""
    named = address >> RANK_BITS & RANKS
    slot = residents.slot[lanes]
    peers = residents.peers[residents.cluster_of[slot], np.clip(named - 1, 0, residents.cluster_blocks - 1)]
    slots = np.where(named == 0, slot, np.where(named > residents.cluster_blocks, -1, peers))
    return address & OFFSET, named - 1, slots


def ended(residents: Residents, alive: np.ndarray) -> np.ndarray:
    """The slots whose blocks have no thread any more; `alive` by lane."""
    living = alive.reshape(residents.warps, residents.slots, WARP)
    return np.logical_not(living.any((0, 2)))
