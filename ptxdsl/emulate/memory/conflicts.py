"""Atomic operations of many lanes, some of them at the same address."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...isa.step import Scan

Update = Callable[..., np.ndarray]


def one_after_another(
    before: np.ndarray, index: np.ndarray, update: Update, inputs: tuple[np.ndarray, ...], scan: Scan | None
) -> tuple[np.ndarray, np.ndarray]:
    """Update `before[place]` lane after lane; return the value that each lane saw, and the final values.

    `scan`, if given, is an associative ufunc with the same effect as `update`.
    """
    after = before.copy()
    if index.size == len(before):
        seen = before[index]
        after[index] = update(seen, *inputs)
        return seen, after
    if len(before) == 1 and index.ndim == 1:
        return _chain(after, update, inputs, scan), after
    order = np.argsort(index.reshape(-1), kind="stable")
    counts = np.bincount(index.reshape(-1), minlength=len(before))
    columns = [
        np.broadcast_to(i, index.shape + i.shape[index.ndim :])[np.unravel_index(order, index.shape)] for i in inputs
    ]
    if scan is not None and len(before) < counts.max():
        seen = _scanned(after, counts, scan, columns[0])
    else:
        seen = _rounds(after, counts, update, columns)
    result = np.empty(index.shape + before.shape[1:], before.dtype)
    result.reshape(-1, *before.shape[1:])[order] = seen
    return result, after


def _chain(after: np.ndarray, update: Update, inputs: tuple[np.ndarray, ...], scan: Scan | None) -> np.ndarray:
    """Update one address for all lanes."""
    counts = np.array([len(inputs[0])])
    return (
        _scanned(after, counts, scan, inputs[0]) if scan is not None else _rounds(after, counts, update, list(inputs))
    )


def _scanned(after: np.ndarray, counts: np.ndarray, scan: Scan, values: np.ndarray) -> np.ndarray:
    """Update one address at a time, for all its lanes in one call."""
    seen = np.empty_like(values)
    start = 0
    for index, count in enumerate(counts):
        line = np.concatenate([after[index : index + 1], values[start : start + count]])
        total = scan.accumulate(line, dtype=line.dtype)
        seen[start : start + count], after[index] = total[:-1], total[-1]
        start += count
    return seen


def _rounds(after: np.ndarray, counts: np.ndarray, update: Update, columns: list[np.ndarray]) -> np.ndarray:
    """Update all addresses, for one lane of each at a time.

    If an update changes nothing, the following lanes with the same inputs change nothing either and complete in the
    same round: thousands of lanes that fail to take a lock take one round.
    """
    ends = np.cumsum(counts)
    position = ends - counts
    run_end = _runs(position, columns)
    seen = np.empty((len(columns[0]), *after.shape[1:]), after.dtype)
    running = np.arange(len(counts))
    while running.size:
        at = position[running]
        old = after[running]
        new = np.asarray(update(old, *(column[at] for column in columns)), after.dtype)
        after[running] = new
        following = np.where(_same(old, new), run_end[at], at + 1)
        seen[_ranges(at, following - at)] = np.repeat(old, following - at, axis=0)
        position[running] = following
        running = running[following < ends[running]]
    return seen


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    equal = one == other
    return equal.all(-1) if equal.ndim > 1 else equal


def _runs(starts: np.ndarray, columns: list[np.ndarray]) -> np.ndarray:
    """Return for each lane the end of the run of lanes from it on with the same address and inputs."""
    count = len(columns[0])
    begins = np.zeros(count, bool)
    begins[starts] = True
    for column in columns:
        begins[1:] |= ~_same(column[1:], column[:-1])
    borders = np.append(np.flatnonzero(begins), count)
    return borders[np.cumsum(begins)]


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenate start, start + 1, … of each range."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
