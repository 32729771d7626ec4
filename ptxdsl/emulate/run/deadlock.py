"""Reports of deadlocks: the threads, and the instructions that they wait at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ...errors import Location
from ...isa.cluster_address import OFFSET
from ...isa.mbarrier import object_arrivals, pending_bytes
from ...isa.step import Awaited
from ...types import b64
from ..observe.pipelines import AwaitedPhase, fix_of_deadlock, ring_phase
from .core import Core
from .decode import Decoded
from .executor import Executor
from .meetings import ALL_LANES, ALL_THREADS, by_warpgroup, lane_list, membermasks, needed_lanes
from .residents import WARP, Residents
from .scheduler import Group

_LOOP = 32  # instructions of a loop that are searched for a wait


@dataclass(slots=True)
class Wait:
    """Waiting lanes, what they wait for, the instruction, and the phase if they wait for an mbarrier."""

    lanes: np.ndarray
    standing: str
    step: Decoded
    phase: AwaitedPhase | None = None


def report_deadlock(machine: Core, x: Executor, late: int) -> None:
    """Add a finding for the first collective that will never have all its lanes, or else for the deadlock.

    `late` blocks have not started.
    """
    scheduler = machine.scheduler
    waits = all_waits(machine, x, (*scheduler.parked.values(), *scheduler.ready.values()))
    held = machine.scheduler.held.values()
    if held:
        _report_collective(machine, x, min(held, key=lambda group: group.order), waits)
        return
    lines = ["every thread is blocked", *(_line(machine, wait) for wait in waits)]
    if late:
        blocks = f"{late} block{'s' * (late > 1)}"
        lines.append(f"  {blocks} cannot start until one of the {len(machine.residents.blocks)} resident blocks ends")
    lanes = np.concatenate([wait.lanes for wait in waits])
    locations = [wait.step.location for wait in waits if wait.step.location is not None]
    help = fix_of_deadlock([wait.phase for wait in waits if wait.phase is not None], machine.barriers.mend(x))
    machine.find("deadlock", "\n".join(lines), None, lanes, locations, help)


def standing_lines(machine: Core, x: Executor, running: np.ndarray | None) -> list[str]:
    """Describe where threads run, are ready or wait, one line for each group; `running` are the lanes that run."""
    lines = [] if running is None else [_standing(machine, running, "running", x.step)]
    for group in machine.scheduler.ready.values():
        lines.append(_standing(machine, group.lanes, "ready", group.frame.code.steps[group.pc]))
    waits = all_waits(machine, x, machine.scheduler.parked.values())
    return lines + [f"waiting  {_named(machine, wait.lanes)}, {wait.standing}" for wait in waits]


def _standing(machine: Core, lanes: np.ndarray, does: str, step: Decoded) -> str:
    return f"{does:<8} {_named(machine, lanes)}, at {step.opcode.text}{_at(step.location)}"


def _named(machine: Core, lanes: np.ndarray) -> str:
    """Describe lanes: 'threads 0–31 of block (0, 0, 0)', or their number if they are of several blocks."""
    r = machine.residents
    if len(np.unique(r.slot[lanes])) > 1:
        return f"{len(lanes)} threads of {_blocks(machine, lanes)}"
    return f"{threads_text(r, lanes)} of {_blocks(machine, lanes)}"


def _line(machine: Core, wait: Wait) -> str:
    return f"  {_named(machine, wait.lanes)} wait{'s' * (len(wait.lanes) == 1)} {wait.standing}"


def all_waits(machine: Core, x: Executor, groups: Iterable[Group]) -> list[Wait]:
    """Return the lanes that wait at barriers, for other lanes of their warps, or in one of these groups."""
    scheduler, barriers = machine.scheduler, machine.barriers
    waits = [
        Wait(entry.group.lanes, f"{barriers.describe(entry, x)}{_at(entry.step.location)}", entry.step)
        for entry in barriers.waiting
    ]
    clusters = machine.cluster_barriers
    waits += [
        Wait(entry.group.lanes, f"{clusters.describe(entry, x)}{_at(entry.step.location)}", entry.step)
        for entry in clusters.waiting
    ]
    for group in scheduler.held.values():
        step = group.frame.code.steps[group.pc]
        waits.append(Wait(group.lanes, f"at {step.opcode.text}{_at(step.location)}", step))
    for group in groups:
        waits += _waits_of(machine, x, group)
    return waits


def _waits_of(machine: Core, x: Executor, group: Group) -> Iterator[Wait]:
    """Yield the lanes of a group that waits, by the object of the wait."""
    step = group.frame.code.steps[group.pc]
    at = _at(step.location)
    standing = "in a loop that makes no progress" if group.circles else f"at {step.opcode.text}"
    if step.op.awaits is Awaited.REGISTERS:
        yield Wait(group.lanes, standing + at + machine.pool.lacking(x, group.lanes, step.reads[0].value), step)
        return
    if step.op.awaits is Awaited.TENSOR_MEMORY and machine.tensor is not None:
        yield Wait(group.lanes, standing + at + machine.tensor.lacking(x, group.lanes), step)
        return
    phases = list(_awaited(machine, x, group))
    for lanes, phase in phases:
        where = f"{phase.object}{at}" if phase.ring is not None else f"{standing}{at} {phase.object}"
        yield Wait(lanes, f"{where}: {phase.state}", step, phase)
    if not phases:
        yield Wait(group.lanes, standing + at, step)


def _at(location: Location | None) -> str:
    return f" ({location})" if location else ""


def _blocks(machine: Core, lanes: np.ndarray) -> str:
    blocks = np.unique(machine.residents.blocks[machine.residents.slot[lanes]])
    if len(blocks) > 1:
        return f"{len(blocks)} blocks"
    return "block " + str(machine.residents.name(int(lanes[0])).block)


def _report_collective(machine: Core, x: Executor, group: Group, waits: list[Wait]) -> None:
    step = group.frame.code.steps[group.pc]
    if step.op.warps > 1:
        _report_warpgroup(machine, group, step, waits)
        return
    warp = int(group.lanes[0]) // WARP
    waiting = np.zeros(machine.residents.lanes, bool)
    waiting[group.lanes] = True
    present = waiting.reshape(-1, WARP)[warp]
    missing = needed_lanes(x, group, step, warp) & ~present
    if not missing.any():
        _report_masks(machine, x, group, step, warp, present)
        return
    elsewhere = [_elsewhere(wait, warp, missing) for wait in waits if wait.step is not step]
    others = [wait.step.location for wait in waits if wait.step is not step and _elsewhere(wait, warp, missing)]
    message = f"{step.opcode.text}: {lane_list(present)} of a warp wait for {lane_list(missing)}; " + " and ".join(
        filter(None, elsewhere)
    )
    lanes = warp * WARP + np.flatnonzero(present)
    help = (
        ALL_LANES
        if step.members is None
        else "execute it in every lane of the membermask, or remove the missing lanes from the mask"
    )
    locations = [location for location in others if location is not None]
    machine.find("divergent-collective", message, step, lanes, locations, help)


def _report_warpgroup(machine: Core, group: Group, step: Decoded, waits: list[Wait]) -> None:
    """Report threads of a warpgroup that wait for its other threads, which wait elsewhere."""
    r = machine.residents
    rows = np.arange(r.lanes // WARP)
    members = by_warpgroup(r, rows == group.lanes[0] // WARP)[r.all // WARP] > 0
    present = group.lanes[members[group.lanes]]
    away = [(wait, wait.lanes[members[wait.lanes]]) for wait in waits if wait.step is not step]
    others = [f"{threads_text(r, lanes)} wait {wait.standing}" for wait, lanes in away if lanes.size]
    message = (
        f"{step.opcode.text}: {threads_text(r, present)} of a warpgroup wait for its other threads; "
        + " and ".join(others)
    )
    locations = [wait.step.location for wait, lanes in away if lanes.size and wait.step.location is not None]
    machine.find("divergent-collective", message, step, present, locations, ALL_THREADS)


def threads_text(residents: Residents, lanes: np.ndarray) -> str:
    """Describe lanes by their thread numbers in the block: 'threads 0–63'."""
    return lane_list(np.bincount(residents.thread[lanes])).replace("lane", "thread")


def _report_masks(machine: Core, x: Executor, group: Group, step: Decoded, warp: int, present: np.ndarray) -> None:
    """Report lanes that are all present and pass different membermasks."""
    lanes = warp * WARP + np.flatnonzero(present)
    masks = membermasks(x, group.frame, step, lanes)
    first, other = 0, int(np.argmax(masks != masks[0]))
    message = (
        f"{step.opcode.text}: lane {lanes[first] % WARP} passes membermask {int(masks[first]):#010x}, "
        f"lane {lanes[other] % WARP} passes {int(masks[other]):#010x}; all lanes of a mask must pass that mask"
    )
    machine.find("divergent-collective", message, step, lanes, help="compute the same membermask in all lanes")


def _elsewhere(wait: Wait, warp: int, missing: np.ndarray) -> str:
    """Describe where some of the missing lanes wait."""
    waiting = np.zeros(WARP, bool)
    waiting[wait.lanes[wait.lanes // WARP == warp] % WARP] = True
    absent = waiting & missing
    if not absent.any():
        return ""
    plural = "" if absent.sum() > 1 else "s"
    return f"{lane_list(absent)} wait{plural} {wait.standing}"


# Phases of mbarriers


def _awaited(machine: Core, x: Executor, group: Group) -> Iterator[tuple[np.ndarray, AwaitedPhase]]:
    """Yield the phases that the lanes of a group wait for, at an mbarrier or in a loop that tests one."""
    looked_at = group.frame.code.steps[group.pc :][: _LOOP if group.circles else 1]
    step = next((step for step in looked_at if step.op.awaits is Awaited.PHASE), None)
    if step is None:
        return
    with x.elsewhere(group.frame, group.lanes):
        addresses = np.broadcast_to(step.reads[0].read(x), group.lanes.shape)
        words = np.broadcast_to(machine.memory.peek(x, step.opcode.space or "generic", addresses, b64), addresses.shape)
    for address in np.unique(addresses):
        alike = addresses == address
        lanes = group.lanes[alike]
        yield lanes, _phase(machine, step, lanes, int(address), int(words[alike][0]))


def _phase(machine: Core, step: Decoded, lanes: np.ndarray, address: int, word: int) -> AwaitedPhase:
    if step.opcode.space in ("shared", "shared::cta"):
        address &= OFFSET
    lacking, each = object_arrivals(word)
    late = int(pending_bytes(np.array([word], np.uint64))[0])
    holder = machine.memory.spaces["shared"].table.holder(address, address + 8)
    if holder is None or step.opcode.space not in ("shared", "shared::cta"):
        return AwaitedPhase("", lacking, each, late)
    name, slot, phases = holder.at(address), int(machine.residents.slot[lanes[0]]), machine.phases
    stage = machine.launch.notes().stage(holder.name, address - holder.start)
    if stage is None:
        waits = max(phases.waits(lane, address) for lane in lanes.tolist())
        return AwaitedPhase(name, lacking, each, late, complete=phases.completed(slot, address), waits=waits)
    return ring_phase(phases, slot, address, *stage, name, lacking, late)
