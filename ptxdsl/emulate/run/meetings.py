"""Warp collectives: the warps in which all lanes that an instruction waits for are present."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .decode import Decoded
from .executor import Executor
from .frames import Frame, Index
from .residents import WARP, WARPGROUP, Residents
from .scheduler import Group

_LANE = np.arange(WARP, dtype=np.uint32)
_ALL = 0xFFFFFFFF
ALL_LANES = "execute it in all 32 lanes of the warp: branch on a condition that is uniform across the warp"
ALL_THREADS = (
    "execute it in all 128 threads of the warpgroup: branch on a condition that is uniform across the warpgroup"
)


@dataclass(slots=True)
class Meeting:
    """Whole warps that run an instruction together, and their participating lanes.

    `rows` are their numbers (None: all). `kept` marks the lanes whose results count, None for all.
    """

    rows: np.ndarray | None
    warps: int
    index: Index
    active: np.ndarray
    kept: np.ndarray | None
    count: int


def meetings(x: Executor, step: Decoded) -> list[Meeting]:
    """Yield the warps at a collective that may run it; hold the others until the rest of their lanes arrives."""
    if (
        x.whole
        and not x.partial
        and x.residents.warps % step.op.warps == 0
        and (step.members is None or (step.reads[step.members].read(x) == _ALL).all())
    ):
        lanes = x.residents.lanes
        return [Meeting(None, lanes // WARP, None, x.everybody, None, lanes)]
    present = np.zeros(x.residents.lanes, bool)
    present[x.lanes_now] = True
    by_warp = present.reshape(-1, WARP)
    rows = np.flatnonzero(by_warp.any(1))
    complete_warps = _by_warp if step.members is None else _by_mask
    return [_meeting(x, rows[ready], active[ready]) for ready, active in complete_warps(x, step, rows, by_warp[rows])]


def _meeting(x: Executor, rows: np.ndarray, active: np.ndarray) -> Meeting:
    every = len(rows) * WARP == x.residents.lanes
    index = None if every else (rows[:, np.newaxis] * WARP + _LANE).reshape(-1)
    kept = None if active.all() else active.reshape(-1)
    return Meeting(None if every else rows, len(rows), index, active, kept, int(active.sum()))


def _by_warp(
    x: Executor, step: Decoded, rows: np.ndarray, present: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Require all lanes that have not exited."""
    missing = _lacking(x, step, rows, present)[rows]
    if missing.any():
        x.hold(_lanes(rows, present & missing[:, np.newaxis]))
    if not missing.all():
        if step.op.warps > 1:
            _check_warpgroups(x, rows[~missing], present[~missing])
        elif step.op.whole_warp:
            _check_whole(x, rows, present & ~missing[:, np.newaxis])
        yield ~missing, present


def _lacking(x: Executor, step: Decoded, rows: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return the warps, or those of warpgroups, that lack lanes which have not exited."""
    absent: np.ndarray = x.alive.reshape(-1, WARP).copy()
    absent[rows] &= ~present
    lacking = np.asarray(absent.any(axis=1))
    return by_warpgroup(x.residents, lacking) > 0 if step.op.warps > 1 else lacking


def by_warpgroup(residents: Residents, warps: np.ndarray) -> np.ndarray:
    """Return for each warp the number of flagged warps in its warpgroup."""
    flags = np.zeros((-(-residents.warps // WARPGROUP) * WARPGROUP, residents.slots), np.int64)
    flags[: residents.warps] = warps.reshape(residents.warps, residents.slots)
    groups = flags.reshape(-1, WARPGROUP, residents.slots).sum(1)
    return np.repeat(groups, WARPGROUP, axis=0)[: residents.warps].reshape(-1)


def _check_warpgroups(x: Executor, rows: np.ndarray, present: np.ndarray) -> None:
    """Report warpgroups with threads that have exited."""
    everybody = np.zeros((x.residents.lanes // WARP, WARP), bool)
    everybody[rows] = present
    whole = by_warpgroup(x.residents, np.asarray(everybody.all(1))) == WARPGROUP
    short = ~whole[rows] & present.any(1)
    if short.any():
        ended = bool(x.residents.exists.reshape(-1, WARP)[rows[short]].all()) and x.residents.warps % WARPGROUP == 0
        why = "the others have ended" if ended else f"a block of {x.residents.threads} threads has no others"
        group = by_warpgroup(x.residents, np.isin(np.arange(len(everybody)), rows[short][:1])) > 0
        count = int(everybody[group].sum())
        message = f"{x.name} needs all 128 threads of the warpgroup; {count} arrived and {why}"
        x.finding_of_lanes("divergent-collective", message, _lanes(rows, present & short[:, np.newaxis]), ALL_THREADS)


def _check_whole(x: Executor, rows: np.ndarray, present: np.ndarray) -> None:
    """Report warps with lanes that have exited, at an instruction that needs all 32."""
    count = present.sum(1)
    short = (count > 0) & (count < WARP)
    if short.any():
        first = int(np.argmax(short))
        exists: np.ndarray = x.residents.exists.reshape(-1, WARP)
        ended = exists[rows[first]].all()
        why = "the others have ended" if ended else f"a block of {x.residents.threads} threads has no others"
        message = f"{x.name} needs all 32 lanes of the warp; {lane_list(present[first])} arrived and {why}"
        x.finding_of_lanes("divergent-collective", message, _lanes(rows, present & short[:, np.newaxis]), ALL_LANES)


def report_deserters(x: Executor, ending: np.ndarray) -> None:
    """Report lanes that exit while others of their warps wait for them at an aligned barrier.

    Hardware counts them as arrived. The manual leaves it undefined: all threads must execute an aligned barrier, except
    those that had exited before.
    """
    for group in x.scheduler.held.values():
        step = group.frame.code.steps[group.pc]
        if not step.aligned or step.op.whole_warp:
            continue
        waiting = group.lanes[np.isin(group.lanes // WARP, ending // WARP)]
        if not waiting.size:
            continue
        stayed, gone = (_of_warp(lanes, waiting[0] // WARP) for lanes in (waiting, ending))
        many = len(np.flatnonzero(gone)) > 1
        x.finding_elsewhere(
            "divergent-collective",
            f"{step.opcode.text}: {lane_list(stayed)} of a warp wait for {lane_list(gone)}, "
            f"which end{'s' * (not many)} instead of arriving; all threads must execute an aligned barrier",
            step,
            waiting,
            [x.step.location] if x.step.location is not None else [],
            "execute it in all threads, or use barrier without .aligned, which counts ended threads as arrived",
        )


def _of_warp(lanes: np.ndarray, warp: int) -> np.ndarray:
    """Return the mask of a warp's lanes that are among these."""
    which = np.zeros(WARP, bool)
    which[lanes[lanes // WARP == warp] % WARP] = True
    return which


def _by_mask(
    x: Executor, step: Decoded, rows: np.ndarray, present: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Require all lanes that a membermask names and that have not exited, with the same mask."""
    alive = x.alive.reshape(-1, WARP)[rows]
    masks = _masks(x, step, rows)
    _check_named(x, rows, present, masks)
    stuck = present.copy()
    for ready, active in complete(alive, present, masks):
        stuck[ready] &= ~active[ready]
        yield ready, active
    if stuck.any():
        x.hold(_lanes(rows, stuck))


def complete(alive: np.ndarray, present: np.ndarray, masks: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return the warps (bool) in which all lanes of one mask are present, and these lanes; arrays are (warps, 32)."""
    left = present.copy()
    while left.any():
        mask = masks[np.arange(len(masks)), left.argmax(1)][:, np.newaxis]
        same = left & (masks == mask)
        ready = ~(alive & _named(mask) & ~same).any(1) & same.any(1)
        left &= ~same
        if ready.any():
            yield ready, same


def _masks(x: Executor, step: Decoded, rows: np.ndarray) -> np.ndarray:
    return membermasks(x, x.frame, step, (rows[:, np.newaxis] * WARP + _LANE).reshape(-1)).reshape(-1, WARP)


def needed_lanes(x: Executor, group: Group, step: Decoded, warp: int) -> np.ndarray:
    """Return the lanes of a warp that the first lane of a held group waits for."""
    alive = x.alive.reshape(-1, WARP)[warp]
    if step.members is None:
        return alive
    first = group.lanes[group.lanes // WARP == warp][:1]
    return alive & _named(membermasks(x, group.frame, step, first))


def membermasks(x: Executor, frame: Frame, step: Decoded, lanes: np.ndarray) -> np.ndarray:
    """Return the member masks that lanes pass to an instruction."""
    assert step.members is not None
    with x.elsewhere(frame, lanes):
        masks: np.ndarray = step.reads[step.members].read(x).view(np.uint32)
    return masks


def _named(mask: np.ndarray) -> np.ndarray:
    return (mask >> _LANE) & np.uint32(1) != 0


def _check_named(x: Executor, rows: np.ndarray, present: np.ndarray, masks: np.ndarray) -> None:
    unnamed = present & ~_named(masks)
    if unnamed.any():
        row, lane = (int(i[0]) for i in np.nonzero(unnamed))
        message = f"{x.name}: lane {lane} passes membermask {int(masks[row, lane]):#010x}, which does not include it"
        x.finding_of_lanes(
            "divergent-collective", message, _lanes(rows, unnamed), "include every lane that executes it"
        )


def _lanes(rows: np.ndarray, which: np.ndarray) -> np.ndarray:
    row, lane = np.nonzero(which)
    return rows[row] * WARP + lane


def lane_list(present: np.ndarray) -> str:
    """Describe lanes: 'lanes 0–15', 'lane 3', 'lanes 0, 2, 4, …'."""
    lanes = np.flatnonzero(present)
    if len(lanes) == 1:
        return f"lane {lanes[0]}"
    if lanes[-1] - lanes[0] == len(lanes) - 1:
        return f"lanes {lanes[0]}–{lanes[-1]}"
    shown = ", ".join(map(str, lanes[:8]))
    return f"lanes {shown}" + (", …" if len(lanes) > 8 else "")


def shaped(value: Any, warps: int) -> Any:
    """Reshape an input to whole warps of lanes; 128-bit values have two words per lane."""
    if not isinstance(value, np.ndarray):
        return value
    axis = value.ndim - 1 if value.shape[-1] == warps * WARP else value.ndim - 2
    return value.reshape(*value.shape[:axis], warps, WARP, *value.shape[axis + 1 :])
