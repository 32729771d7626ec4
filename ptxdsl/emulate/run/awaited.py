"""The mbarrier phases that threads wait for, as a deadlock reports them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...isa.cluster_address import OFFSET
from ...isa.mbarrier import object_arrivals, pending_bytes
from ...isa.step import Awaited
from ...types import b64
from ..observe.pipelines import AwaitedPhase, ring_phase
from .core import Core
from .decode import Decoded
from .executor import Executor
from .scheduler import Group

LOOP = 32  # instructions of a loop that are searched for a wait


def awaited(machine: Core, x: Executor, group: Group) -> Iterator[tuple[np.ndarray, AwaitedPhase]]:
    """Yield the phases that the lanes of a group wait for, at an mbarrier or in a loop that tests one."""
    looked_at = group.frame.code.steps[group.pc :][: LOOP if group.circles else 1]
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
