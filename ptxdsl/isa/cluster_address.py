"""Addresses in distributed shared memory as the emulator encodes them.

The manual leaves the bits undefined. Here bits 0-23 are the offset in shared memory, and bits 24-31 are the block's
rank plus one. A 0 in these bits means the thread's own block, so that shared::cta addresses are valid unchanged.
"""

from __future__ import annotations

import numpy as np

from .step import Step

RANK_BITS = 24
OFFSET = (1 << RANK_BITS) - 1
RANKS = 0xFF


def in_block(address: np.ndarray, rank: int | np.ndarray) -> np.ndarray:
    """Return the addresses at the same offsets in the shared memory of the block of a rank, or of a rank for each."""
    return address & np.uint64(OFFSET) | np.asarray(rank, np.uint64) + np.uint64(1) << np.uint64(RANK_BITS)


def ranks_of(m: Step, address: np.ndarray) -> np.ndarray:
    """Return the rank in the cluster, u32, of the block in whose shared memory each address of a lane is."""
    named = (address >> np.uint64(RANK_BITS) & np.uint64(RANKS)).astype(np.uint32)
    return np.where(named == 0, m.special("%cluster_ctarank"), named - np.uint32(1))
