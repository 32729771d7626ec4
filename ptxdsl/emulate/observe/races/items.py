"""The values that stores write, compared with memory and with those of other lanes in the step."""

from __future__ import annotations

import numpy as np

from ...memory.access import Access


def _items(access: Access) -> np.ndarray:
    """Return the bytes that a store writes, (accesses, bytes)."""
    assert access.items is not None
    return np.ascontiguousarray(access.items).reshape(-1, 1).view(np.uint8)


def leaves_the_same(access: Access) -> np.ndarray:
    """Return which accesses of a store leave memory unchanged."""
    flat = access.flat.reshape(-1) if access.allowed is None else np.where(access.allowed, access.flat, 0).reshape(-1)
    old = access.region.read(flat, access.size).reshape(-1, 1).view(np.uint8)
    return (old == _items(access)).all(1)


def stores_the_same(access: Access) -> np.ndarray:
    """Return which accesses of a store write bytes to which all others of the step write the same."""
    flat, items = access.flat.reshape(-1), _items(access)
    order = np.argsort(flat, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(flat[order]) != 0))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(flat))))
    first = items[order][starts]
    differs = (items[order] != first[group]).any(1)
    uniform = np.ones(len(starts), bool)
    uniform[group[differs]] = False
    result = np.zeros(len(flat), bool)
    result[order] = uniform[group]
    return result
