"""Addresses in distributed shared memory as the emulator encodes them.

The manual leaves the bits undefined. Here bits 0-23 are the offset in shared memory, and bits 24-31 are the block's
rank plus two. A 0 in these bits means the thread's own block, so that shared::cta addresses are valid unchanged.

In kernels for CTA pairs 0 and 1 stand for the even and the odd block of the thread's pair, and the addresses of
variables have that bit: as CUTLASS relies on, clearing bit 24 of any address gives that in the even block.
"""

from __future__ import annotations

import numpy as np

from .step import Step

RANK_BITS = 24
OFFSET = (1 << RANK_BITS) - 1
RANKS = 0xFF
FIRST_RANK = 2


def in_block(address: np.ndarray, rank: int | np.ndarray) -> np.ndarray:
    """Return the addresses at the same offsets in the shared memory of the block of a rank, or of a rank for each."""
    return address & np.uint64(OFFSET) | np.asarray(rank, np.uint64) + np.uint64(FIRST_RANK) << np.uint64(RANK_BITS)


def ranks_of(m: Step, address: np.ndarray) -> np.ndarray:
    """Return the rank in the cluster, u32, of the block in whose shared memory each address of a lane is."""
    return decoded(address.view(np.int64), m.special("%cluster_ctarank"), m.pairs).astype(np.uint32)


def decoded(address: np.ndarray, own_rank: np.ndarray, pairs: bool) -> np.ndarray:
    """Return the ranks in int64 addresses of threads in blocks of rank `own_rank`, of CTA pairs or not."""
    named = address >> RANK_BITS & RANKS
    here = own_rank.astype(np.int64) & ~np.int64(pairs) | named
    return np.where(named < FIRST_RANK, here, named - FIRST_RANK)
