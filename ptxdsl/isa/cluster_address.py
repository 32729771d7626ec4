"""Addresses in shared memory of the blocks of a cluster, as the emulator has them.

The manual leaves their bits open. Here the lowest 24 are the place in shared memory, and the next eight the rank of the
block and one more; 0 there means the thread's own block, so that addresses in shared::cta are valid unchanged.
"""

from __future__ import annotations

RANK_BITS = 24
OFFSET = (1 << RANK_BITS) - 1
RANKS = 0xFF
