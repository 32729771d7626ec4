"""Bounds and alignment checks of accesses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...isa.cluster_address import OFFSET, RANK_BITS, RANKS
from ..memory.access import READS, Access, Observer, bytes_text
from ..memory.distributed import ended, owners
from ..memory.regions import Allocation, Table
from .mistakes import of_ended_block

_LITTLE = 1 << 16
_OTHER_WINDOWS = {0x7F: "global", 0x7E: "shared", 0x7D: "local", 0x7C: "param"}


class Bounds(Observer):
    """The addresses of accesses. Accesses that are not allowed are reported and not carried out."""

    def access(self, access: Access) -> None:
        region, address, size = access.region, access.address, access.size
        holder = region.table.holder(int(address.min()), int(address.max()) + size)
        reached = None
        pairs = access.by.residents.pairs and access.space.startswith("shared")
        if pairs and access.space != "shared::cluster":
            address = access.address = _without_pair_bit(access)
            holder = region.table.holder(int(address.min()), int(address.max()) + size)
        elif access.space == "shared::cluster" and (pairs or (holder is None and (address >> RANK_BITS).any())):
            reached = _reach(access)
            address = access.address
            holder = region.table.holder(int(address.min()), int(address.max()) + size)
        aligned = not int(np.bitwise_or.reduce(address, axis=None)) & (size - 1)
        if holder is not None and aligned and (access.kind == READS or holder.writable):
            flat = address - holder.delta if holder.delta else address
            if access.kind == READS:
                holder.read = True
            else:
                holder.written = True
            access.holder = holder
        else:
            flat = _sort_out(access, region.table)
        if access.slots is not None:
            flat = flat + access.slots * region.stride
        elif region.base is not None:
            flat = flat + access.by.of_lanes(region.base, flat.shape)
        access.flat = flat
        if reached is not None:
            access.allowed = reached if access.allowed is None else reached & access.allowed


def _without_pair_bit(access: Access) -> np.ndarray:
    """Return addresses in .shared::cta without the bit that names the thread's own block of its pair."""
    r, address = access.by.residents, access.address
    parity = r.rank[r.slot[access.lanes]] & 1
    return np.where(address >> RANK_BITS == parity, address & OFFSET, address)


def _reach(access: Access) -> np.ndarray | None:
    """Split the block off addresses in distributed shared memory; return flags of existing blocks, or None for all."""
    r, lanes = access.by.residents, access.lanes
    address = access.address
    access.address, rank, slots = owners(r, lanes, address)
    beyond = rank >= r.cluster_blocks
    gone = ~beyond & ((slots < 0) | ended(r, access.by.alive)[slots])
    if beyond.any():
        _report_rank(access, int(rank[beyond].flat[0]), beyond)
    if gone.any():
        _report_exited(access, int(rank[gone].flat[0]), gone)
    access.slots = np.maximum(slots, 0)
    lost = beyond | gone
    return ~lost if lost.any() else None


def _report_rank(access: Access, rank: int, beyond: np.ndarray) -> None:
    count = access.by.residents.cluster_blocks
    have = f"clusters of {count} blocks, whose ranks are 0 to {count - 1}" if count > 1 else "no clusters"
    message = f"{access.by.name} {access.kind} shared memory of the block of rank {rank}; the launch has {have}"
    access.by.finding("cluster", message, beyond, help="pass mapa a rank less than %cluster_nctarank")


def _report_exited(access: Access, rank: int, gone: np.ndarray) -> None:
    holder = access.region.table.before(int(access.address[gone].flat[0]))
    where = holder.at(int(access.address[gone].flat[0])) if holder else "shared memory"
    message = f"{access.by.name} {access.kind} {where} of the block of rank {rank} in the cluster, which has ended"
    help = of_ended_block(access.by, access.region.table, int(access.address[gone].flat[0]))
    access.by.finding("cluster", message, gone, help=help)


def _sort_out(access: Access, table: Table) -> np.ndarray:
    """Mark the allowed accesses, report the others, and return the addresses."""
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
    """Return flags of the accesses to writable memory, and mark it as written."""
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
        access.by.finding("read-only", message, within, help="write to writable memory instead")
    return allowed


def _report_outside(access: Access, table: Table, outside: np.ndarray) -> None:
    first = int(access.address[outside].flat[0])
    space = access.space
    near = table.nearest(first)
    message = f"{access.by.name} {access.kind} {bytes_text(access.size)} at "
    window = _OTHER_WINDOWS.get(first >> 40)
    help = ""
    if near is not None and _is_near(near, first):
        near = _as_python_has_it(access, near)
        message += f"{near.at(first)}; {near.name} has {near.elements}"
        help = "" if near.bytes else "pass its size in bytes at the launch: `k[grid, block, bytes]`"
    elif space in ("shared", "shared::cta") and 0 < first >> RANK_BITS <= RANKS:
        lane = access.lanes[outside][:1]
        rank = int(owners(access.by.residents, lane, access.address[outside][:1])[1][0])
        message += f"an address in shared memory of the block of rank {rank} in the cluster, not in .{space}"
        help = "write .shared::cluster"
    elif window and space.partition("::")[0] not in (window, "const"):
        message += f"address {first:#x}, which is a generic address in .{window}, not an address in .{space}"
    elif (holder := _below_zero(table, first)) is not None:
        number = (first - holder.start) // holder.element_bytes
        message += f"{holder.name}[{number}]; {holder.name} has {holder.elements}"
        help = f"a u32 index below 0 wraps around to 2**32: here {number - 2**32}; use s32, or compare first"
    elif 0 <= first < 4096 and space == "global":
        message += f"address {first:#x}: a null pointer"
    else:
        named = "shared" if space == "shared::cluster" else space
        message += f"address {first % (1 << 64):#x} in .{named}, where nothing is allocated"
    access.by.finding("out-of-bounds", message, outside, help=help)


def _as_python_has_it(access: Access, allocation: Allocation) -> Allocation:
    """Describe an allocation with the elements of the Python array, and with its shape if that is row-major."""
    array = access.by.notes.whole(allocation.name)
    if array is None or allocation.bytes % array.element.bytes:
        return allocation
    offsets = array.offsets(0)
    in_rows = np.array_equal(offsets.reshape(-1), np.arange(allocation.bytes // array.element.bytes))
    shape = offsets.shape if in_rows else ()
    return replace(allocation, element=str(array.element), element_bytes=array.element.bytes, shape=shape, named=None)


def _below_zero(table: Table, address: int) -> Allocation | None:
    """Return the allocation that a 32-bit unsigned index just below 2**32 was meant for."""
    for each in table.allocations:
        number, extra = divmod(address - each.start, each.element_bytes)
        if not extra and 0 < 2**32 - number <= max(_LITTLE, each.bytes // each.element_bytes):
            return each
    return None


def _is_near(allocation: Allocation, address: int) -> bool:
    """True if an address is close to an allocation."""
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
    help = f"access multiples of {size} bytes, or use a narrower access"
    access.by.finding("misaligned", message, crooked, help=help)
