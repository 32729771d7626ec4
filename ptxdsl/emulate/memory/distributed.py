"""Distributed shared memory: addresses that name a block of the cluster in addition to an offset in its shared
memory.

The lowest 24 bits of an address are the offset; the next eight are 0 for the thread's own block, and otherwise the
rank plus one. An address in shared::cta is therefore one in shared::cluster too, with the same meaning.
"""

from __future__ import annotations

import numpy as np

from ...isa.cluster_address import OFFSET, RANK_BITS, RANKS
from ..run.residents import WARP, Residents


def owners(residents: Residents, lanes: np.ndarray, address: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decode addresses of lanes: offsets (int64), ranks (-1: the own block), and slots (-1: no resident block)."""
    named = address >> RANK_BITS & RANKS
    slot = residents.slot[lanes]
    peers = residents.peers[residents.cluster_of[slot], np.clip(named - 1, 0, residents.cluster_blocks - 1)]
    slots = np.where(named == 0, slot, np.where(named > residents.cluster_blocks, -1, peers))
    return address & OFFSET, named - 1, slots


def ended(residents: Residents, alive: np.ndarray) -> np.ndarray:
    """Return the mask of the slots whose threads have all exited; `alive` is by lane."""
    living = alive.reshape(residents.warps, residents.slots, WARP)
    return np.logical_not(living.any((0, 2)))
