"""The memory that arrays of a launch leave behind stays with the process, for those of the next step."""

from __future__ import annotations

from functools import cache

import numpy as np

_MOST = (1 << 25) - (1 << 16)  # glibc's greatest threshold is 32 MiB


@cache
def keep_freed_memory() -> None:
    """Has arrays of up to 32 MiB come from the heap.

    glibc asks the system for each block above a threshold, and gives it back when it is freed; each time all of its
    pages are fresh, which takes longer than most instructions do with them. When a larger block is freed, the threshold
    rises to its size. So it does for a block that nobody writes to. Elsewhere this does nothing.
    """
    np.empty(_MOST, np.uint8)
