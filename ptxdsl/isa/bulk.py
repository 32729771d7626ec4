"""Asynchronous bulk copies and reductions of a row of bytes (PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk").

One thread asks for the whole copy. Copies to shared memory complete bytes at an mbarrier, those to global memory belong
to a bulk group of the thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import ir
from .form import Form, Needs
from .memory import alignment_problems
from .opaque import GpuOnly
from .opcode import Opcode
from .operand import Problem

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


class Bulk(GpuOnly):
    """Base of the bulk copies, and what is true of their operands by their names."""

    alignment = ALIGNMENT

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name in ("dst", "src"):
                yield from alignment_problems(declared.name, value, self.alignment)
            elif declared.name == "mbarrier":
                yield from alignment_problems(declared.name, value, MBARRIER_BYTES)
            elif isinstance(value, ir.Immediate):
                yield from _constant_problems(declared.name, value.value)


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


class BulkPrefetch(Bulk):
    """Brings `size` bytes of global memory into L2."""

    forms = (Form(f"cp.async.bulk.prefetch.L2.global{HINTED} [src:global], size:u32{POLICY}", **LEAST),)


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


class BulkCommitGroup(Bulk):
    """Makes a group of the thread's bulk copies since the last one."""

    forms = (Form("cp.async.bulk.commit_group", **LEAST),)


class BulkWaitGroup(Bulk):
    """Waits until at most the `n` newest bulk groups of the thread are under way; .read: have sources to read."""

    forms = (Form("cp.async.bulk.wait_group{.read} n:imm", **LEAST),)


class StoreBulk(Bulk):
    """Fills `size` bytes of shared memory with zeros."""

    stores = "dst"
    forms = (Form("st.bulk{.weak}{.space} [dst:space], size:u64, value:imm", space="shared::cta", ptx="8.6", sm=100),)

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        _, size, value = operands
        if isinstance(size, ir.Immediate) and (size.value < 0 or size.value % 8):
            yield Problem("size", f"`size` is {size.value} bytes; st.bulk fills multiples of 8")
        if isinstance(value, ir.Immediate) and value.value != 0:
            yield Problem("value", f"`value` is {value.value}; st.bulk stores zeros only", "write 0")
