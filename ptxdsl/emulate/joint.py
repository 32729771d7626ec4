"""Collectives whose lanes come together from different places of the program, as they may since sm_70."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from .frames import as_index
from .meetings import complete, membermasks, shaped
from .residents import WARP
from .scheduler import Group

_LANE = np.arange(WARP)


def meet_elsewhere(x: Any) -> bool:
    """Runs what lanes at like instructions in different places wait for together; whether there was any.

    Only instructions with a member mask may be met so; the others must be one and the same for the whole warp.
    """
    held = sorted((g for g in x.scheduler.held.values() if _step(g).members is not None), key=_text)
    alike = (list(groups) for _, groups in groupby(held, _text))
    return any([_meet(x, groups) for groups in alike if len(groups) > 1])


def _step(group: Group) -> Any:
    return group.frame.code.steps[group.pc]


def _text(group: Group) -> str:
    text: str = _step(group).opcode.text
    return text


def _meet(x: Any, groups: Sequence[Group]) -> bool:
    """Runs the warps that are complete if their lanes in all groups are counted; whether there was any."""
    owner, masks = np.full(x.residents.lanes, -1), np.zeros(x.residents.lanes, np.uint32)
    for number, group in enumerate(groups):
        owner[group.lanes] = number
        masks[group.lanes] = membermasks(x, group.frame, _step(group), group.lanes)
    owner, masks = owner.reshape(-1, WARP), masks.reshape(-1, WARP)
    found = [(np.flatnonzero(ready), active[ready]) for ready, active in complete(_alive(x), owner >= 0, masks)]
    for rows, active in found:
        _run(x, groups, owner[rows], rows, active)
    return bool(found)


def _alive(x: Any) -> np.ndarray:
    alive: np.ndarray = x.alive.reshape(-1, WARP)
    return alive


def _run(x: Any, groups: Sequence[Group], owner: np.ndarray, rows: np.ndarray, active: np.ndarray) -> None:
    """Runs whole warps, each lane with the registers of its own instruction."""
    lanes = (rows[:, np.newaxis] * WARP + _LANE).reshape(-1)
    inputs = [np.array(value) for value in _inputs(x, groups[0], lanes)]
    for number, group in enumerate(groups[1:], 1):
        for value, theirs in zip(inputs, _inputs(x, group, lanes), strict=True):
            np.copyto(value, theirs, where=owner == number)
    first = _step(groups[0])
    x.step, x.active = first, active
    with x.elsewhere(groups[0].frame, lanes):
        x.shape = (len(rows), WARP)
        result = first.op.execute(first.opcode, x, *inputs)
    for number, group in enumerate(groups):
        _go_on(x, group, lanes, (active & (owner == number)).reshape(-1), result)


def _inputs(x: Any, group: Group, lanes: np.ndarray) -> list[np.ndarray]:
    with x.elsewhere(group.frame, lanes):
        return [shaped(operand.read(x), len(lanes) // WARP) for operand in _step(group).reads]


def _go_on(x: Any, group: Group, lanes: np.ndarray, mine: np.ndarray, result: Any) -> None:
    """Lanes of a group get their results and stand behind their instruction."""
    if result is not None:
        with x.elsewhere(group.frame, as_index(lanes)):
            x.shape, x.kept = (len(lanes) // WARP, WARP), mine
            x.deliver(_step(group), result)
    x.machine.report.instructions += int(mine.sum())
    x.scheduler.release(group, lanes[mine])
