"""Asynchronous bulk copies and reductions of contiguous bytes (PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk").

One thread issues the whole copy. Copies to shared memory signal an mbarrier; copies to global memory belong to a bulk
async-group of the issuing thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from .. import ir
from ..types import b64
from .atomic import reduction
from .cluster_address import in_block
from .form import Form, Needs
from .memory import alignment_problems
from .opcode import Op, Opcode
from .operand import Problem
from .step import BULK_REDUCTION, Ordering, PhaseArrival, Pieces, Step
from .transactions import count_bytes

BYTES = "mbarrier::complete_tx::bytes"
HINTED, POLICY = "{.L2::cache_hint}", "{, policy:b64 if L2_cache_hint}"
MASKED, MASK = "{.multicast::cluster}", "{, cta_mask:u16 if multicast_cluster}"
LEAST: dict[str, Any] = {"ptx": "8.0", "sm": 90}
CTA: Needs = {"shared::cta": ("8.6", 90)}  # as destination of a copy from global memory
ALIGNMENT = 16  # of addresses and sizes, in bytes
MBARRIER_BYTES = 8

REDUCED = {
    **dict.fromkeys(("and", "or", "xor"), "b32 b64"), **dict.fromkeys(("inc", "dec"), "u32"),
    **dict.fromkeys(("min", "max"), "u32 s32 u64 s64 f16 bf16"), "add": "u32 s32 u64 f32 f64",
}  # fmt: skip
"""The types that each operation combines in global memory."""
REDUCED_SHARED = {
    **dict.fromkeys(("and", "or", "xor"), "b32"), **dict.fromkeys(("inc", "dec"), "u32"),
    **dict.fromkeys(("min", "max"), "u32 s32"), "add": "u32 s32 u64",
}  # fmt: skip
"""The types that each operation combines in shared memory."""


class Bulk(Op):
    """Base of the bulk copies; checks operands by name."""

    async_proxy = True
    alignment = ALIGNMENT

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name in ("dst", "src"):
                yield from alignment_problems(declared.name, value, self.alignment)
            elif declared.name == "mbarrier":
                yield from alignment_problems(declared.name, value, MBARRIER_BYTES)
            elif isinstance(value, ir.Immediate):
                yield from _constant_problems(declared.name, value.value)


def by_name(i: Opcode, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return the inputs of an instruction, keyed by operand name."""
    return {operand.name: value for operand, value in zip(i.operands, inputs, strict=True)}


Destinations: TypeAlias = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]


def destinations(v: dict[str, Any]) -> Destinations:
    """Yield the destinations of a copy to shared memory: a lane mask, addresses, and mbarrier addresses.

    .multicast::cluster writes to the same offset in the shared memory of every block in `cta_mask`.
    """
    dst, mbarrier, mask = v["dst"], v["mbarrier"], v.get("cta_mask")
    if mask is None:
        yield np.ones(dst.shape, bool), dst, mbarrier
        return
    for rank in range(int(np.bitwise_or.reduce(mask)).bit_length()):
        which = (mask >> np.uint16(rank) & np.uint16(1)).astype(bool)
        if which.any():
            yield which, in_block(dst, rank), in_block(mbarrier, rank)


def spans(m: Step, size: np.ndarray, unit: int = ALIGNMENT) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for each distinct size, the lanes that copy it and the offsets of its `unit`-byte chunks, (n, 1). Report
    sizes that are not a multiple of `unit`.
    """
    crooked = size % unit != 0
    if crooked.any():
        message = f"`size` is {int(size[crooked][0])} bytes, not a multiple of {unit}"
        m.fail("misaligned", message, crooked, "copy the remaining bytes with ld and st")
    for bytes in np.unique(size[~crooked & (size > 0)]):
        yield size == bytes, np.arange(0, bytes, unit, dtype=np.uint64)[:, np.newaxis]


def _constant_problems(name: str, value: int) -> Iterator[Problem]:
    if name == "size" and (value < 0 or value % ALIGNMENT):
        help = f"copy the remaining bytes with ld and st; sizes are multiples of {ALIGNMENT}"
        yield Problem("size", f"`size` is {value} bytes; a bulk copy takes multiples of {ALIGNMENT}", help)
    elif name == "cta_mask" and value == 0:
        help = "bit n selects the block of rank n in the cluster"
        yield Problem("cta_mask", "`cta_mask` is 0; it must select at least one block to receive the copy", help)
    elif name == "n" and value < 0:
        yield Problem("n", f"`n` is {value}; a number of groups is at least 0")


class BulkCopyToShared(Bulk):
    """Copy `size` bytes to shared memory asynchronously, or (.multicast::cluster) to all blocks in `cta_mask`."""

    stores = "dst"
    forms = (
        Form(
            f"cp.async.bulk.dst.global.{BYTES}{HINTED} [dst:dst], [src:global], size:u32, [mbarrier:shared]{POLICY}",
            dst="shared::cta",
            needs=CTA,
            **LEAST,
        ),
        Form(
            f"cp.async.bulk.dst.global.{BYTES}{MASKED}{HINTED}"
            f" [dst:dst], [src:global], size:u32, [mbarrier:shared]{MASK}{POLICY}",
            dst="shared::cluster",
            **LEAST,
        ),
        Form(
            f"cp.async.bulk.shared::cluster.shared::cta.{BYTES}"
            " [dst:shared::cluster], [src:shared::cta], size:u32, [mbarrier:shared::cluster]",
            **LEAST,
        ),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        v = by_name(i, inputs)
        space = "global" if ".global." in i.text else "shared::cta"
        for alike, offsets in spans(m, v["size"]):
            for receives, dst, mbarrier in destinations(v):
                which = alike & receives
                with m.only(which):
                    source = Pieces(space, v["src"][which] + offsets, ALIGNMENT)
                    m.load_bulk(i.dst or "shared::cluster", dst[which] + offsets, source, mbarrier[which])


class BulkCopyToGlobal(Bulk):
    """Copy `size` bytes from shared to global memory asynchronously, as part of a bulk async-group."""

    stores = "dst"
    forms = (
        Form(
            f"cp.async.bulk.global.shared::cta.bulk_group{HINTED} [dst:global], [src:shared::cta], size:u32{POLICY}",
            **LEAST,
        ),
        Form(
            f"cp.async.bulk.global.shared::cta.bulk_group{HINTED}.cp_mask"
            f" [dst:global], [src:shared::cta], size:u32{POLICY}, byte_mask:u16",
            ptx="8.6",
            sm=100,
        ),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        v = by_name(i, inputs)
        for which, offsets in spans(m, v["size"]):
            with m.only(which):
                target = Pieces("global", v["dst"][which] + offsets, ALIGNMENT)
                if "byte_mask" in v:
                    target = _masked(target, v["byte_mask"][which])
                m.store_bulk(v["src"][which] + offsets, target)


def _masked(pieces: Pieces, mask: np.ndarray) -> Pieces:
    """Keep the bytes of each 16-byte chunk whose bit in a 16-bit mask is set."""
    each = np.arange(ALIGNMENT)[:, np.newaxis]
    address = (pieces.address[:, np.newaxis] + each.astype(np.uint64)).reshape(-1, pieces.address.shape[-1])
    inside = np.tile((mask >> each & 1).astype(bool), (len(pieces.address), 1))
    return Pieces(pieces.space, address, 1, inside)


class BulkPrefetch(Bulk):
    """Prefetch `size` bytes of global memory into the L2 cache."""

    forms = (Form(f"cp.async.bulk.prefetch.L2.global{HINTED} [src:global], size:u32{POLICY}", **LEAST),)

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        """Check the size; a prefetch has no other effect."""
        list(spans(m, by_name(i, inputs)["size"]))


class BulkReduceShared(Bulk):
    """Reduce `size` bytes asynchronously into the shared memory of a block of the cluster; signals an mbarrier."""

    stores = "dst"
    forms = (
        Form(
            f"cp.reduce.async.bulk.shared::cluster.shared::cta.{BYTES}.operation.type"
            " [dst:shared::cluster], [src:shared::cta], size:u32, [mbarrier:shared::cluster]",
            operation=REDUCED_SHARED,
            type="u32 s32 u64 b32",
            when=lambda i: str(i.type) in REDUCED_SHARED[i.operation].split(),
            **LEAST,
        ),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        v = by_name(i, inputs)
        for which, offsets in spans(m, v["size"]):
            with m.only(which):
                self._reduce(i, m, v["dst"][which], v["src"][which] + offsets, v["mbarrier"][which])

    def _reduce(self, i: Opcode, m: Step, dst: np.ndarray, source: np.ndarray, mbarrier: np.ndarray) -> None:
        """Read 16-byte chunks at `source` (n, lanes) from now on, and combine them at the destination later."""
        space, update, size = "shared::cluster", reduction(i.operation, i.type), len(source) * ALIGNMENT
        dst, mbarrier, reading = dst.copy(), mbarrier.copy(), m.begin_reading(source)

        def land(m: Step) -> None:
            octets = m.end_reading(reading)  # (n, lanes, 16)
            values = np.ascontiguousarray(octets.transpose(0, 2, 1).reshape(size, -1).T).view(i.type.dtype)
            for n, value in enumerate(values.T):
                address = dst + np.uint64(n * i.type.bytes)
                m.atomic(space, address, i.type, update, value, ordering=BULK_REDUCTION)
            m.order(PhaseArrival(space, mbarrier, Ordering("release", "cluster"), asynchronous=True))
            count_bytes(m, space, mbarrier, np.full(mbarrier.shape, -size, np.int64))

        m.store_async(mbarrier, land, releases=False)


class BulkReduceGlobal(Bulk):
    """Reduce `size` bytes of shared memory asynchronously into global memory, as part of a bulk async-group."""

    stores = "dst"
    forms = (
        Form(
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group{HINTED}.operation.type"
            f" [dst:global], [src:shared::cta], size:u32{POLICY}",
            operation=REDUCED,
            type="u32 s32 u64 s64 b32 b64 f32 f64 f16 bf16",
            when=lambda i: str(i.type) in REDUCED[i.operation].split(),
            **LEAST,
        ),
        Form(
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group{HINTED}.add.noftz.type"
            f" [dst:global], [src:shared::cta], size:u32{POLICY}",
            type="f16 bf16",
            **LEAST,
        ),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        v = by_name(i, inputs)
        for which, offsets in spans(m, v["size"]):
            with m.only(which):
                target = Pieces("global", v["dst"][which] + offsets, ALIGNMENT)
                m.store_bulk(v["src"][which] + offsets, target, i.type, reduction(i.operation or "add", i.type))


class BulkCommitGroup(Bulk):
    """Commit the thread's prior bulk copies to global memory as a bulk async-group."""

    forms = (Form("cp.async.bulk.commit_group", **LEAST),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.commit_bulk_group()


class BulkWaitGroup(Bulk):
    """Wait until at most the `n` latest bulk async-groups are pending; with .read until sources are read."""

    forms = (Form("cp.async.bulk.wait_group{.read} n:imm", **LEAST),)

    def execute(self, i: Opcode, m: Step, n: int) -> None:
        m.wait_bulk_group(n, bool(i.read))


class StoreBulk(Bulk):
    """Fill `size` bytes of shared memory with zeros."""

    async_proxy = False
    stores = "dst"
    forms = (Form("st.bulk{.weak}{.space} [dst:space], size:u64, value:imm", space="shared::cta", ptx="8.6", sm=100),)

    def execute(self, i: Opcode, m: Step, dst: np.ndarray, size: np.ndarray, value: int) -> None:
        for which, offsets in spans(m, size, b64.bytes):
            with m.only(which):
                address = dst[which] + offsets
                m.store(i.space or "generic", address, b64, np.zeros(address.shape, np.uint64))

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        _, size, value = operands
        if isinstance(size, ir.Immediate) and (size.value < 0 or size.value % 8):
            yield Problem("size", f"`size` is {size.value} bytes; st.bulk fills multiples of 8")
        if isinstance(value, ir.Immediate) and value.value != 0:
            yield Problem("value", f"`value` is {value.value}; st.bulk stores zeros only", "write 0")
