"""Memory that the arrays of one step free stays with the process, for the arrays of the next."""

from __future__ import annotations

from functools import cache

import numpy as np

_MOST = (1 << 25) - (1 << 16)  # the largest threshold of glibc is 32 MiB


@cache
def keep_freed_memory() -> None:
    """Let arrays of up to 32 MiB come from the heap.

    glibc maps each block above a threshold from the system and returns it when it is freed; its pages are then fresh
    every time, which takes longer than most instructions on them. Freeing a larger block raises the threshold to its
    size, even if nothing was written to it. On other systems this has no effect.
    """
    np.empty(_MOST, np.uint8)
