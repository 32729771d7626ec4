"""Bounds and alignment: which accesses may be made, and what is wrong with the others."""

from __future__ import annotations

import numpy as np

from ..memory.access import READS, Access, Observer, bytes_text
from ..memory.regions import Allocation, Table

_OTHER_WINDOWS = {0x7F: "global", 0x7E: "shared", 0x7D: "local", 0x7C: "param"}


class Bounds(Observer):
    """Finds the places of accesses; reports those that are not allowed, which are not made."""

    def access(self, access: Access) -> None:
        region, address, size = access.region, access.address, access.size
        holder = region.table.holder(int(address.min()), int(address.max()) + size)
        aligned = not int(np.bitwise_or.reduce(address, axis=None)) & (size - 1)
        if holder is not None and aligned and (access.kind == READS or holder.writable):
            flat = address - holder.delta if holder.delta else address
            holder.written |= access.kind != READS
        else:
            flat = _sort_out(access, region.table)
        if region.base is not None:
            flat = flat + access.by.of_lanes(region.base, flat.shape)
        access.flat = flat


def _sort_out(access: Access, table: Table) -> np.ndarray:
    """Marks which accesses are allowed, and reports the others; their places."""
    address, size = access.address, access.size
    number, inside = table.find(address, size)
    if not inside.all():
        _report_outside(access, table, ~inside)
    aligned = address & (size - 1) == 0
    crooked = inside & ~aligned
    if crooked.any():
        _report_misaligned(access, table, crooked)
    allowed = inside & aligned
    if access.kind != READS:
        allowed &= _writable(access, table, number, allowed)
    access.allowed = None if allowed.all() else allowed
    flat: np.ndarray = address - table.deltas[number] if table.allocations else address
    return flat


def _writable(access: Access, table: Table, number: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Which accesses are to memory that may be written; marks it as written."""
    allowed = np.ones(access.address.shape, bool)
    for each in np.unique(number[inside]):
        allocation = table.allocations[each]
        within = inside & (number == each)
        if allocation.writable:
            allocation.written = True
            continue
        allowed &= ~within
        where = allocation.at(int(access.address[within].flat[0]))
        message = f"{access.by.name} {access.kind} {where}; {allocation.name} is read-only"
        access.by.finding("read-only", message, within)
    return allowed


def _report_outside(access: Access, table: Table, outside: np.ndarray) -> None:
    first = int(access.address[outside].flat[0])
    space = access.space
    near = table.nearest(first)
    message = f"{access.by.name} {access.kind} {bytes_text(access.size)} at "
    window = _OTHER_WINDOWS.get(first >> 40)
    help = ""
    if near is not None and _is_near(near, first):
        message += f"{near.at(first)}; {near.name} has {near.elements}"
        help = "" if near.bytes else "its size is given at the launch, in bytes: `k[grid, block, bytes]`"
    elif window and space.partition("::")[0] not in (window, "const"):
        message += f"address {first:#x}, which is a generic address in .{window}, not an address in .{space}"
    elif 0 <= first < 4096 and space == "global":
        message += f"address {first:#x}: a null pointer"
    else:
        message += f"address {first % (1 << 64):#x} in .{space}, where nothing lies"
    access.by.finding("out-of-bounds", message, outside, help=help)


def _is_near(allocation: Allocation, address: int) -> bool:
    """Whether an address was probably meant to lie in an allocation."""
    reach = max(allocation.bytes, 1 << 20) * 4
    return allocation.start - reach <= address <= allocation.end + reach


def _report_misaligned(access: Access, table: Table, crooked: np.ndarray) -> None:
    first, size = int(access.address[crooked].flat[0]), access.size
    holder = table.before(first)
    where = holder.at(first) if holder else f"address {first:#x}"
    off = first % size
    message = (
        f"{access.by.name} {access.kind} {bytes_text(size)} at {where}, {bytes_text(off)} past a multiple of {size}"
    )
    access.by.finding("misaligned", message, crooked)
