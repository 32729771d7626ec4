"""Distributed shared memory: addresses that name a block of the cluster in addition to an offset in its shared
memory.

The lowest 24 bits of an address are the offset; the next eight name the block (`isa.cluster_address`). An address in
shared::cta is one in shared::cluster too, with the same meaning.
"""

from __future__ import annotations

import numpy as np

from ...isa.cluster_address import OFFSET, RANK_BITS, decoded
from ..run.residents import WARP, Residents


def owners(residents: Residents, lanes: np.ndarray, address: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decode addresses of lanes: offsets (int64), ranks, and slots (-1: no resident block)."""
    slot = residents.slot[lanes]
    if residents.cluster_blocks == 1 and not (address >> RANK_BITS).any():
        return address & OFFSET, np.zeros_like(slot), slot
    rank = decoded(address, residents.rank[slot], residents.pairs)
    peers = residents.peers[residents.cluster_of[slot], np.minimum(rank, residents.cluster_blocks - 1)]
    return address & OFFSET, rank, np.where(rank < residents.cluster_blocks, peers, -1)


def ended(residents: Residents, alive: np.ndarray) -> np.ndarray:
    """Return the mask of the slots whose threads have all exited; `alive` is by lane."""
    living = alive.reshape(residents.warps, residents.slots, WARP)
    return np.logical_not(living.any((0, 2)))
