"""Stamps: the time of an access and the lane that made it, in one integer.

Time counts accesses and events of order. The stamp of an access is 64 * time + its lane; `SEVERAL` stands for all lanes
of a warp, `ASYNC_LANE` for the async proxy, and numbers between the lanes and it for the crowds of `Crowds`. What a
thread knows of a warp is the stamp of a time with lane 63: it covers all accesses up to that time.
"""

from __future__ import annotations

import numpy as np

from ...run.residents import WARP

TICK = 64
SEVERAL = TICK - 1
LANE_MASK = np.uint32(TICK - 1)
STAMP = np.dtype(np.uint32)
LATEST = (1 << 32) - 4 * TICK  # the clock begins anew when it comes here
NEVER = np.uint32(0)
ASYNC_LANE = 62  # of reads that the async proxy made for a warp, which only the mbarrier of a commit makes known
LANDED = np.uint32(1 << 31)  # numbers of warps from here on stand for the bulk copies that complete at an mbarrier
LANDINGS = 32  # mbarriers of a block that are told apart; those beyond share the last number


def stamps_of(collective: bool, now: int, lanes: np.ndarray) -> np.ndarray:
    """Return the stamps of accesses; a collective makes them for all lanes of a warp."""
    if collective:
        return np.full(len(lanes), now | SEVERAL, STAMP)
    return (now + lanes % WARP).astype(STAMP)


def are_several(stamps: np.ndarray) -> np.ndarray:
    """Return which stamps stand for more than one lane."""
    lanes = stamps & LANE_MASK
    return (lanes >= WARP) & (lanes != ASYNC_LANE)


def are_async(stamps: np.ndarray) -> np.ndarray:
    """Return which stamps are those of reads that the async proxy made for a warp."""
    result: np.ndarray = stamps & LANE_MASK == ASYNC_LANE
    return result


def are_crowds(stamps: np.ndarray) -> np.ndarray:
    """Return which stamps stand for several lanes that read a word, with the last read of each: see `Crowds`."""
    lanes = stamps & LANE_MASK
    return (lanes >= WARP) & (lanes < ASYNC_LANE)
