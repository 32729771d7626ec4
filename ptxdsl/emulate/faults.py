"""What is wrong with an access, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from .regions import Allocation, Region, Table

_OTHER_WINDOWS = {0x7F: "global", 0x7E: "shared", 0x7D: "local", 0x7C: "param"}


def sort_out(
    x: Any, access: str, space: str, table: Table, address: np.ndarray, size: int
) -> tuple[np.ndarray | None, np.ndarray]:
    """Which accesses are allowed (None: all), and their places; reports the others."""
    number, inside = table.find(address, size)
    if not inside.all():
        _report_outside(x, access, space, table, address, size, ~inside)
    aligned = address & (size - 1) == 0
    crooked = inside & ~aligned
    if crooked.any():
        _report_misaligned(x, access, table, address, size, crooked)
    ok = inside & aligned
    if access != "reads":
        ok &= _writable(x, access, table, address, number, ok)
    flat = address - table.deltas[number] if table.allocations else address
    return None if ok.all() else ok, flat


def _writable(x: Any, access: str, table: Table, address: np.ndarray, number: np.ndarray, ok: np.ndarray) -> np.ndarray:
    """Which accesses are to memory that may be written; marks it as written."""
    allowed = np.ones(address.shape, bool)
    for each in np.unique(number[ok]):
        allocation = table.allocations[each]
        mine = ok & (number == each)
        if allocation.writable:
            allocation.written = True
            continue
        allowed &= ~mine
        where = allocation.at(int(address[mine].flat[0]))
        x.finding("read-only", f"{x.name} {access} {where}; {allocation.name} is read-only", mine)
    return allowed


def _report_outside(
    x: Any, access: str, space: str, table: Table, address: np.ndarray, size: int, outside: np.ndarray
) -> None:
    first = int(address[outside].flat[0])
    near = table.nearest(first)
    message = f"{x.name} {access} {_bytes(size)} at "
    window = _OTHER_WINDOWS.get(first >> 40)
    if near is not None and _is_near(near, first):
        message += f"{near.at(first)}; {near.name} has {near.elements}"
    elif window and space.partition("::")[0] not in (window, "const"):
        message += f"address {first:#x}, which is a generic address in .{window}, not an address in .{space}"
    elif 0 <= first < 4096 and space == "global":
        message += f"address {first:#x}: a null pointer"
    else:
        message += f"address {first % (1 << 64):#x} in .{space}, where nothing lies"
    x.finding("out-of-bounds", message, outside)


def _is_near(allocation: Allocation, address: int) -> bool:
    """Whether an address was probably meant to lie in an allocation."""
    reach = max(allocation.bytes, 1 << 20) * 4
    return allocation.start - reach <= address <= allocation.end + reach


def _report_misaligned(x: Any, access: str, table: Table, address: np.ndarray, size: int, crooked: np.ndarray) -> None:
    first = int(address[crooked].flat[0])
    holder = table.before(first)
    where = holder.at(first) if holder else f"address {first:#x}"
    off = first % size
    message = f"{x.name} {access} {_bytes(size)} at {where}, {_bytes(off)} past a multiple of {size}"
    x.finding("misaligned", message, crooked)


def not_written(
    x: Any, region: Region, address: np.ndarray, size: int, which: np.ndarray, ok: np.ndarray | None
) -> None:
    """Reports reads of bytes that nobody has written."""
    where = _where(region, address, which)
    message = f"{x.name} reads {_bytes(size)} at {where}, which no thread has written"
    x.finding("uninitialized", message, _spread(which, ok))


def not_waited_for(
    x: Any, region: Region, address: np.ndarray, size: int, which: np.ndarray, ok: np.ndarray | None
) -> None:
    """Reports accesses to bytes that a copy in flight will write."""
    where = _where(region, address, which)
    message = f"{x.name} touches {_bytes(size)} at {where}, to which an asynchronous copy is still under way"
    x.finding("unwaited-async", message, _spread(which, ok), x.copies.places())


def _where(region: Region, address: np.ndarray, which: np.ndarray) -> str:
    first = int(address[which].flat[0])
    holder = region.table.before(first)
    return holder.at(first) if holder else f"address {first:#x}"


def _spread(which: np.ndarray, ok: np.ndarray | None) -> np.ndarray:
    """Flags of the allowed accesses as flags of all."""
    if ok is None:
        return which
    result = np.zeros(ok.shape, bool)
    result[ok] = which
    return result


def _bytes(count: int) -> str:
    return f"{count} byte{'s' * (count != 1)}"
