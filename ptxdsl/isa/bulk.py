"""Asynchronous bulk copies and reductions of a row of bytes (PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk").

One thread asks for the whole copy. Copies to shared memory complete bytes at an mbarrier, those to global memory belong
to a bulk group of the thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from .. import ir
from ..types import b64
from .atomic import reduction
from .cluster_address import OFFSET, RANK_BITS
from .form import Form, Needs
from .memory import alignment_problems
from .opcode import Op, Opcode
from .operand import Problem
from .step import Ordering, PhaseArrival, Pieces, Step
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
    """Base of the bulk copies, and what is true of their operands by their names."""

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
    """The inputs of an instruction by the names of its operands."""
    return {operand.name: value for operand, value in zip(i.operands, inputs, strict=True)}


Destinations: TypeAlias = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]


def destinations(v: dict[str, Any]) -> Destinations:
    """Where copies to shared memory go: lanes (a mask), addresses there and of the mbarriers beside them.

    With .multicast::cluster they go to the same places in the shared memory of all blocks in `cta_mask`.
    """
    dst, mbarrier, mask = v["dst"], v["mbarrier"], v.get("cta_mask")
    if mask is None:
        yield np.ones(dst.shape, bool), dst, mbarrier
        return
    for rank in range(int(np.bitwise_or.reduce(mask)).bit_length()):
        which = (mask >> np.uint16(rank) & np.uint16(1)).astype(bool)
        if which.any():
            block = np.uint64((rank + 1) << RANK_BITS)
            yield which, dst & np.uint64(OFFSET) | block, mbarrier & np.uint64(OFFSET) | block


def spans(m: Step, size: np.ndarray, unit: int = ALIGNMENT) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Lanes that move as many bytes, and where these begin, `unit` at a time: offsets (n, 1). Reports odd sizes."""
    crooked = size % unit != 0
    if crooked.any():
        message = f"`size` is {int(size[crooked][0])} bytes, which is no multiple of {unit}"
        m.fail("misaligned", message, crooked, "copy the bytes that remain by ld and st")
    for bytes in np.unique(size[~crooked & (size > 0)]):
        yield size == bytes, np.arange(0, bytes, unit, dtype=np.uint64)[:, np.newaxis]


def _constant_problems(name: str, value: int) -> Iterator[Problem]:
    if name == "size" and (value < 0 or value % ALIGNMENT):
        help = f"copy the bytes that remain by ld and st; sizes are multiples of {ALIGNMENT}"
        yield Problem("size", f"`size` is {value} bytes; a bulk copy takes multiples of {ALIGNMENT}", help)
    elif name == "cta_mask" and value == 0:
        help = "bit n stands for the block of rank n in the cluster"
        yield Problem("cta_mask", "`cta_mask` is 0; it names the blocks that receive the copy", help)
    elif name == "n" and value < 0:
        yield Problem("n", f"`n` is {value}; it counts groups, from 0")


class BulkCopyToShared(Bulk):
    """Copies `size` bytes to shared memory, with .multicast::cluster of all blocks in `cta_mask`; completes them."""

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
    """Copies `size` bytes to global memory; done when the thread waits for its group."""

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
    """The bytes of chunks whose bits are set in a mask of 16 bits."""
    each = np.arange(ALIGNMENT)[:, np.newaxis]
    address = (pieces.address[:, np.newaxis] + each.astype(np.uint64)).reshape(-1, pieces.address.shape[-1])
    inside = np.tile((mask >> each & 1).astype(bool), (len(pieces.address), 1))
    return Pieces(pieces.space, address, 1, inside)


class BulkPrefetch(Bulk):
    """Brings `size` bytes of global memory into L2."""

    forms = (Form(f"cp.async.bulk.prefetch.L2.global{HINTED} [src:global], size:u32{POLICY}", **LEAST),)

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        """Nothing comes of it but what is wrong with its size."""
        list(spans(m, by_name(i, inputs)["size"]))


class BulkReduceShared(Bulk):
    """Combines `size` bytes with those at `dst` in the shared memory of a block of the cluster, and completes them."""

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
        """Reads chunks of 16 bytes at `source` (n, lanes) from now on, and combines them late."""
        space, update, size = "shared::cluster", reduction(i.operation, i.type), len(source) * ALIGNMENT
        dst, mbarrier, reading = dst.copy(), mbarrier.copy(), m.begin_reading(source)

        def land(m: Step) -> None:
            octets = m.end_reading(reading)  # (n, lanes, 16)
            values = np.ascontiguousarray(octets.transpose(0, 2, 1).reshape(size, -1).T).view(i.type.dtype)
            for n, value in enumerate(values.T):
                address = dst + np.uint64(n * i.type.bytes)
                m.atomic(space, address, i.type, update, value, ordering=Ordering("relaxed", "cluster"))
            m.order(PhaseArrival(space, mbarrier, Ordering("release", "cluster")))
            count_bytes(m, space, mbarrier, np.full(mbarrier.shape, -size, np.int64))

        m.store_async(dst, land)


class BulkReduceGlobal(Bulk):
    """Combines `size` bytes with those at `dst` in global memory; done when the thread waits for its group."""

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
    """Makes a group of the thread's bulk copies since the last one."""

    forms = (Form("cp.async.bulk.commit_group", **LEAST),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.commit_bulk_group()


class BulkWaitGroup(Bulk):
    """Waits until at most the `n` newest bulk groups of the thread are under way; .read: have sources to read."""

    forms = (Form("cp.async.bulk.wait_group{.read} n:imm", **LEAST),)

    def execute(self, i: Opcode, m: Step, n: int) -> None:
        m.wait_bulk_group(n, bool(i.read))


class StoreBulk(Bulk):
    """Fills `size` bytes of shared memory with zeros."""

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
