"""Arrays that begin where those of a GPU do: what is chosen for a product depends on it."""

from math import prod

import numpy as np

LINE_BYTES = 128  # of the L2 cache, of which torch's memory begins at a multiple


def zeros(rows, columns, type):
    """A row-major matrix; that of np.zeros begins at any 16 bytes."""
    return placed((rows, columns), type)


def placed(shape, type):
    """Zeros in C order, whose memory is taken when they are written."""
    room = np.zeros(prod(shape) + LINE_BYTES, type)
    first = -room.ctypes.data % LINE_BYTES // room.itemsize
    return room[first : first + prod(shape)].reshape(shape)
