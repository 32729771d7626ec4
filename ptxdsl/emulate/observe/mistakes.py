"""The likely cause of a finding about copies and mbarriers, for its help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...errors import Location
from ...isa.cluster_address import OFFSET
from ...isa.mbarrier import object_arrivals
from ...notes import RingNote
from ...types import b64
from ..memory.access import Access, Requester
from ..memory.phase_counts import ArrivalCount
from ..memory.regions import Table
from ..report import counted
from ..run.residents import WARP
from .pipelines import filled_by_copies, released_too_often, ring_phase

STAY = "keep every block alive until a barrier.cluster.arrive and .wait after the last access to its shared memory"
WAIT = "wait for the copy first, through its group or its mbarrier"


def line_of(location: Location | None) -> str:
    return f"line {location.line}" if location is not None else "the access"


def of_unwaited_copy(access: Access, lane: int, slot: int, mbarrier: int) -> str:
    """Return the help for an access by a lane to bytes that a copy in flight will write.

    The copy completes at the mbarrier at an offset of the shared memory of the block in a slot.
    """
    by, phases = access.by, access.by.phases
    name, stage = _mbarrier(by, access.region.table, mbarrier)
    if access.asynchronous and access.ordering.proxy == "async" and not by.collective:
        return _of_refill(by, lane, stage)
    complete = phases.completed(slot, mbarrier)
    is_own = slot == int(by.residents.slot[lane])
    if stage is None:
        if is_own and phases.waits(lane, mbarrier) > complete:
            at = phases.waited_at.get(mbarrier)
            return (
                f"the wait for {name} at {line_of(at)} returns before the copy completes, since its parity is that of "
                f"the previous phase; wait for parity {complete % 2}"
            )
        return f"wait for {name} first, with mbarrier.try_wait and parity {complete % 2}"
    ring, number, _ = stage
    if ring.stage_bytes is None:
        return filled_by_copies(ring)
    held = [s for s in _held(by, access.region.table, ring, lane) if s != number]
    if held and is_own:
        descriptor = ", or where the descriptor starts and how far it reaches" * by.name.startswith("wgmma")
        return (
            f"these threads hold slot {held[0]} of {ring.made_at}, and the access is in slot {number}: check the stage "
            f"index{descriptor}"
        )
    return f"call `{ring.called}.wait()` before reading slot {number} of {ring.made_at}"


def _of_refill(by: Requester, lane: int, stage: tuple[RingNote, int, bool] | None) -> str:
    """A copy into bytes that the previous copy has not filled yet."""
    if stage is not None:
        ring = stage[0]
        return f"call `{ring.called}.acquire()` before each refill of a slot of {ring.made_at}"
    if (early := of_early_wait(by, lane)) is not None:
        return early
    return "wait, on an mbarrier, until the previous copy has completed and its bytes have been read"


def of_early_wait(by: Requester, lane: int) -> str | None:
    """Return the help if a lane has passed two waits at an mbarrier without a phase of it in between."""
    table, slot = by.shared_table, int(by.residents.slot[lane])
    for offset in by.phases.ahead(lane, 2):
        name, at = _mbarrier(by, table, offset)[0], by.phases.waited_at.get(offset)
        complete = by.phases.completed(slot, offset)
        return (
            f"the wait for {name} at {line_of(at)} returns at once, since its parity is that of the previous phase; "
            f"wait for parity {complete % 2}, and flip the parity after each phase"
        )
    return None


def of_overwritten_operand(access: Access, readers: list[str]) -> str:
    """Return the help for an access that overwrites bytes which these asynchronous instructions still read."""
    line = line_of(access.by.origin.location)
    if access.space.startswith("global"):
        return f"wait on the mbarrier of the copy that uses this tensor map, before {line}"
    if any(name.startswith("wgmma") for name in readers):
        text = "wgmma reads its operands in shared memory until its group is complete: execute wgmma.wait_group"
        rings = access.by.notes.rings
        if rings and access.asynchronous:
            return f"{text} before `{rings[0].called}.release()`"
        return f"{text} before {line}" + (", and a barrier if other threads write" if access.by.collective else "")
    if any(name.startswith("cp.async.bulk") for name in readers):
        return f"execute cp.async.bulk.wait_group.read before {line}, in the thread that issued the copy"
    return "wait until it has finished reading, through its group or its mbarrier"


def of_arrivals(by: Requester, address: np.ndarray, which: np.ndarray) -> str:
    """Return the help for arrivals, in the lanes of a mask, beyond those that a phase expects; empty if unknown.

    `address` are the mbarriers, in shared memory, at which the lanes of the instruction arrive.
    """
    lanes, first = by.lanes_of(which.shape), int(address[which].flat[0])
    lane = int(lanes[which].flat[0])
    slot = int(by.residents.slot[lane])
    threads = int(((address == address[which].flat[0]) & (by.residents.slot[lanes] == slot)).sum())
    beyond = int((which & (by.residents.slot[lanes] == slot)).sum())
    name, stage = _mbarrier(by, by.shared_table, first)
    if stage is not None:
        return stage[0].too_many(stage[2], beyond)
    if (early := of_early_wait(by, lane)) is not None:
        return early
    each = object_arrivals(by.shared_word(slot, first))[1]
    if threads <= each:
        return ""
    fewer = "one thread, under `with pd.elect():`" if each == 1 else f"{each} threads"
    return (
        f"{threads} threads execute it, and {name} expects {counted(each, 'arrival')} per phase; execute it in "
        f"{fewer}, or initialise the mbarrier with {threads}"
    )


def of_refilled_stage(access: Access, lane: int, reader: tuple[int, int], line: Location | None) -> str:
    """Return the help for a copy by a lane that overwrites a stage of a ring, unordered after a read of it at a line.

    The reader is a lane of a warp of the grid; a lane beyond the warp stands for any of it. Empty if the copy is into
    no stage of a ring.
    """
    by, r, table = access.by, access.by.residents, access.region.table
    ordinal, warp = divmod(reader[0], r.warps)
    slots = np.flatnonzero(r.ordinals == ordinal)
    if access.mbarrier is None or not slots.size:
        return ""
    mbarrier = int(access.mbarrier[by.lanes_now == lane][0]) & OFFSET
    _, stage = _mbarrier(by, table, mbarrier)
    if stage is None:
        return ""
    ring, number, _ = stage
    slot = int(slots[0])
    empty = mbarrier + b64.bytes * ring.stages
    filled = ArrivalCount(by.phases.completed(slot, mbarrier) * ring.fillers)  # without the copy that is being issued
    phase = replace(ring_phase(by.phases, slot, empty, ring, number, False), others=filled)
    if text := released_too_often(phase):
        return text
    if number in _held(by, table, ring, (warp * r.slots + slot) * WARP + min(reader[1], WARP - 1)):
        return (
            f"slot {number} of {ring.made_at} is refilled before every thread that reads it has released it: "
            "`consumers=` must count all of them"
        )
    return f"{line_of(line)} reads a slot after `{ring.called}.release()`; release it after its last read"


def of_ended_block(by: Requester, table: Table, offset: int) -> str:
    """Return the help for a block that ends before other blocks of its cluster access its shared memory."""
    _, stage = _mbarrier(by, table, offset)
    if stage is None or stage[0].cluster == 1:
        return STAY
    ring = stage[0]
    return (
        f"call `{ring.called}.drain()` in the producer, after its last `commit()`: other blocks still release slots of "
        f"{ring.made_at}"
    )


def of_other_blocks(access: Access, otherwise: str) -> str:
    """Return the help for an access to shared memory of a block that has not initialised it yet.

    A multicast into the stages of a ring of one block names that ring.
    """
    blocks = access.by.residents.cluster_blocks
    ring = next((ring for ring in access.by.notes.rings if ring.cluster == 1), None)
    if ring is None or not access.by.name.endswith("multicast::cluster"):
        return otherwise
    return (
        f"pass `cluster={blocks}` to pd.Ring for {ring.made_at}: its copies go to other blocks of the cluster, whose "
        "stages must be empty and whose mbarriers initialised"
    )


def _mbarrier(by: Requester, table: Table, offset: int) -> tuple[str, tuple[RingNote, int, bool] | None]:
    """Return the name of an mbarrier, and its ring, stage and side if it is one of a ring."""
    holder = table.holder(offset, offset + b64.bytes)
    if holder is None:
        return "its mbarrier", None
    return holder.at(offset), by.notes.stage(holder.name, offset - holder.start)


def _held(by: Requester, table: Table, ring: RingNote, lane: int) -> list[int]:
    """Return the stages that a lane has waited for and that the lanes which release for it have not released."""
    r = by.residents
    slot, thread = int(r.slot[lane]), int(r.thread[lane])
    first = int(r.rank[slot]) * r.threads + thread // ring.each * ring.each
    start = next((a.start for a in table.allocations if a.name == ring.variable), 0)
    full = [start + b64.bytes * stage for stage in range(ring.stages)]
    waits = [by.phases.waits(lane, offset) for offset in full]
    releases = [
        by.phases.arrivals(slot, offset + b64.bytes * ring.stages, range(first, first + ring.each)).total
        for offset in full
    ]
    return [stage for stage in range(ring.stages) if waits[stage] > releases[stage]]
