"""Collectives whose lanes arrive at different instructions of the program, which sm_70 and later permit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..memory.access import Convergence
from .decode import Decoded
from .executor import Executor
from .frames import as_index
from .meetings import complete, membermasks, shaped
from .residents import WARP
from .scheduler import Group

_LANE = np.arange(WARP)
_EVERYONE = 0xFFFFFFFF


def meet_elsewhere(x: Executor) -> bool:
    """Run the collectives at which lanes wait for each other at different instructions; return True if there was any.

    Aligned instructions are excluded: they must be the same instruction for the whole warp.
    """
    held = sorted((g for g in x.scheduler.held.values() if not _step(g).aligned), key=_kind)
    alike = [list(groups) for _, groups in groupby(held, _kind)]
    return any(_meet(x, groups) for groups in alike if len(groups) > 1)


def _step(group: Group) -> Decoded:
    return group.frame.code.steps[group.pc]


def _kind(group: Group) -> tuple[str, int]:
    """Return the key by which instructions can be combined: the text, and the number of operands."""
    step = _step(group)
    return step.opcode.text, len(step.instruction.operands)


def _meet(x: Executor, groups: Sequence[Group]) -> bool:
    """Run the warps that are complete if their lanes in all groups are counted; return True if there was any."""
    owner, masks = np.full(x.residents.lanes, -1), np.full(x.residents.lanes, _EVERYONE, np.uint32)
    for number, group in enumerate(groups):
        owner[group.lanes] = number
        if _step(group).members is not None:
            masks[group.lanes] = membermasks(x, group.frame, _step(group), group.lanes)
    by_warp = owner.reshape(-1, WARP)
    ready_warps = complete(_alive(x), by_warp >= 0, masks.reshape(-1, WARP))
    due = [(np.flatnonzero(ready), active[ready]) for ready, active in ready_warps]
    # Withdraw all before resuming any, which may run to the point where others were held.
    met = [_withdrawn(x, groups, by_warp[rows], rows, active) for rows, active in due]
    for (rows, active), parts in zip(due, met, strict=True):
        _run(x, parts, rows, active)
    return bool(due)


def _withdrawn(
    x: Executor, groups: Sequence[Group], owner: np.ndarray, rows: np.ndarray, active: np.ndarray
) -> list[tuple[Group, Decoded, np.ndarray]]:
    """Return, for each instruction at which lanes of these warps are held: its lanes after it, the instruction, and
    their mask.
    """
    lanes = rows[:, np.newaxis] * WARP + _LANE
    which = [(group, active & (owner == number)) for number, group in enumerate(groups)]
    return [
        (x.scheduler.withdraw(group, lanes[members]), _step(group), members)
        for group, members in which
        if members.any()
    ]


def _alive(x: Executor) -> np.ndarray:
    alive: np.ndarray = x.alive.reshape(-1, WARP)
    return alive


def _run(x: Executor, parts: Sequence[tuple[Group, Decoded, np.ndarray]], rows: np.ndarray, active: np.ndarray) -> None:
    """Run whole warps, each lane with the registers of its own instruction."""
    lanes = (rows[:, np.newaxis] * WARP + _LANE).reshape(-1)
    first, step, _ = parts[0]
    inputs = [None if value is None else np.array(value) for value in _inputs(x, first, step, lanes)]
    for behind, other, members in parts[1:]:
        for value, others in zip(inputs, _inputs(x, behind, other, lanes), strict=True):
            if value is not None:
                np.copyto(value, others, where=members)
    x.step, x.active, x.whole, x.met, x.departed, x.carried = step, active, False, parts, [], None
    with x.elsewhere(first.frame, lanes):
        x.shape = (len(rows), WARP)
        if step.op.orders_lanes:
            x.order(Convergence(rows, active))
        result = step.op.execute(step.opcode, x, *inputs)
    stays = np.zeros(x.residents.lanes, bool)
    for departed in x.departed:
        stays[departed] = True
    x.met, x.departed = (), []
    for behind, other, members in parts:
        _go_on(x, behind, other, lanes, members.reshape(-1), result, stays)


def _inputs(x: Executor, behind: Group, step: Decoded, lanes: np.ndarray) -> list[Any]:
    with x.elsewhere(behind.frame, lanes):
        return [shaped(operand.read(x), len(lanes) // WARP) for operand in step.reads]


def _go_on(
    x: Executor, behind: Group, step: Decoded, lanes: np.ndarray, members: np.ndarray, result: Any, stays: np.ndarray
) -> None:
    """Deliver the results to the lanes of an instruction and make them ready, except those that stay at a barrier."""
    if result is not None:
        with x.elsewhere(behind.frame, as_index(lanes)):
            x.shape, x.kept = (len(lanes) // WARP, WARP), members
            x.deliver(step, result)
    x.count(step, int(members.sum()))
    behind.lanes = behind.lanes[~stays[behind.lanes]]
    if behind.lanes.size:
        x.scheduler.add(behind)
