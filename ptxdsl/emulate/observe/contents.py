"""Checks of contents: uninitialised bytes, and bytes that an asynchronous copy in flight reads or writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import Location
from ...isa.step import BULK_REDUCTION
from ..asynchronous.bulk import BulkCopies
from ..asynchronous.copies import CopyQueue
from ..memory.access import READS, UPDATES, WRITE_FIRST, WRITES, Access, Observer, bytes_text
from .mistakes import WAIT, of_overwritten_operand, of_unwaited_copy


class Contents(Observer):
    """Records reads of uninitialised bytes, and reports accesses to bytes that an asynchronous copy will write.

    `in_flight` returns the lines of all copies in flight, and `copies` the queue of those by cp.async.
    """

    def __init__(
        self, in_flight: Callable[[], Sequence[Location]], copies: Callable[[], CopyQueue], bulk: BulkCopies
    ) -> None:
        self.in_flight, self.copies, self.bulk = in_flight, copies, bulk

    def access(self, access: Access) -> None:
        region = access.region
        if access.kind == WRITES and access.by.carried is not None and not access.asynchronous:
            _carry(access, access.by.carried)
        if region.fresh is None and not (
            region.in_flight or region.bulk_in_flight or region.reductions or region.readings
        ):
            return
        flat = access.flat if access.allowed is None else access.flat[access.allowed]
        flying = region.awaited(flat, access.size)
        if access.ordering != BULK_REDUCTION and (reduced := region.being_reduced(flat, access.size)) is not None:
            flying = reduced if flying is None else flying | reduced
        if flying is not None:
            self._report_flying(access, flying, int(flat[flying].flat[0]))
        if access.kind != READS and (read := region.being_read(flat)) is not None:
            self._report_read(access, read, int(flat[read].flat[0]))
        if access.kind == WRITES or (access.asynchronous and access.ordering.proxy != "async"):
            return
        unwritten = region.unwritten(flat, access.size)
        if unwritten is not None and flying is not None:
            unwritten &= ~flying
        if unwritten is not None and unwritten.any():
            _report_unwritten(access, unwritten)

    def _report_flying(self, access: Access, which: np.ndarray, position: int) -> None:
        message = (
            f"{access.by.name} accesses {bytes_text(access.size)} at {_where(access, which)} "
            "while an asynchronous copy to it is in flight"
        )
        spread, help, others = _spread(which, access.allowed), WAIT, self.in_flight()
        is_shared = access.region.base is not None
        if is_shared and (lines := self.copies().locations_at(position, access.size)):
            others = lines
        elif is_shared and (copy := self.bulk.load_into(position)) is not None:
            load, column = copy
            slot, mbarrier = divmod(int(load.mbarrier[column]), access.region.stride)
            help = of_unwaited_copy(access, int(access.lanes[spread].flat[0]), slot, mbarrier)
            others = [load.origin.location] if load.origin.location is not None else []
        access.by.finding("unwaited-async", message, spread, others, help)

    def _report_read(self, access: Access, which: np.ndarray, position: int) -> None:
        message = (
            f"{access.by.name} {access.kind} {bytes_text(access.size)} at {_where(access, which)}, "
            "which an asynchronous operation still reads"
        )
        readers = self.bulk.readers_of(access.region, position)
        help = of_overwritten_operand(access, [reader.name for reader in readers])
        others = list(dict.fromkeys(reader.location for reader in readers if reader.location is not None))
        access.by.finding("unwaited-async", message, _spread(which, access.allowed), others, help)


def _carry(access: Access, carried: np.ndarray) -> None:
    """Store uninitialised values: an error in global memory, which is output; only recorded elsewhere."""
    if access.by.collective:
        carried = access.by.whole_warps(carried)
    which = np.broadcast_to(access.by.of_lanes(carried, access.address.shape), access.address.shape)
    if access.region.tracked:
        access.unwritten = which
    elif which.any():
        access.by.refuse_carried(which)


def _report_unwritten(access: Access, which: np.ndarray) -> None:
    """Record the read of uninitialised bytes. It is reported when they are used; for atomic operations at once."""
    address, spread = _where(access, which), _spread(which, access.allowed)
    message = f"{access.by.name} reads {bytes_text(access.size)} at {address}, which no thread has written"
    if access.kind == UPDATES:
        access.by.finding("uninitialized", message, spread, help=WRITE_FIRST)
    else:
        access.by.note_unwritten(spread, message)


def _where(access: Access, which: np.ndarray) -> str:
    address = access.address if access.allowed is None else access.address[access.allowed]
    first = int(address[which].flat[0])
    holder = access.region.table.before(first)
    return holder.at(first) if holder else f"address {first:#x}"


def _spread(which: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """Expand flags of the allowed accesses to flags of all."""
    if allowed is None:
        return which
    result = np.zeros(allowed.shape, bool)
    result[allowed] = which
    return result
