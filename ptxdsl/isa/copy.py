"""Asynchronous copies from global to shared memory (PTX ISA, "Asynchronous copy")."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import ir
from ..types import b64
from . import mbarrier
from .form import Form
from .memory import HINT, NEEDS, PREFETCHES, alignment_problems
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import Ordering, Step

SIZES = {"ca": (4, 8, 16), "cg": (16,)}


class CpAsync(Op):
    """Copy `size` bytes from global to shared memory asynchronously; bytes past `src_size` are zero-filled."""

    stores = "dst"
    forms = tuple(
        Form(
            f"cp.async.cop.space.global{hint}{{.prefetch}} [dst:space], [src:global], size:imm{source}{policy}",
            cop="ca cg",
            space="shared shared::cta",
            prefetch=PREFETCHES,
            needs={word: NEEDS[word] for word in (HINT, *PREFETCHES.split())},
            ptx="7.5" if "ignore_src" in source else "7.0",
            sm=80,
        )
        for hint, policy in (("", ""), (f".{HINT}", ", policy:b64"))
        for source in ("", ", src_size:u32", ", {!}ignore_src:pred")
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        by_name = {o.name: value for o, value in zip(i.operands, operands, strict=True)}
        if not isinstance(by_name["size"], ir.Immediate):
            return
        size = by_name["size"].value
        if size not in SIZES[i.cop]:
            can = "4, 8 or 16" if i.cop == "ca" else "16"
            help = "cp.async.ca copies 4, 8 or 16 bytes" if i.cop == "cg" and size in SIZES["ca"] else None
            yield Problem("size", f"`size` is {size}; cp.async.{i.cop} copies {can} bytes", help)
            return
        source = by_name.get("src_size")
        if isinstance(source, ir.Immediate) and not 0 <= source.value <= size:
            yield Problem("src_size", f"`src_size` is {source.value}; it must be from 0 to `size`, which is {size}")
        if isinstance(by_name.get("ignore_src"), ir.Immediate):
            yield Problem("ignore_src", "`ignore_src` is a constant; it must be a predicate")
        for name in ("dst", "src"):
            yield from alignment_problems(name, by_name[name], size)

    def execute(self, i: Opcode, m: Step, dst: np.ndarray, src: np.ndarray, size: int, *rest: np.ndarray) -> None:
        by_name = {o.name: value for o, value in zip(i.operands[3:], rest, strict=True)}
        wanted = by_name.get("src_size", np.uint32(size))
        if "src_size" in by_name and (too_long := wanted > size).any():
            message = f"{i.text} copies {size} bytes, but `src_size` is {int(wanted.max())}"
            help = "`src_size` must not exceed `size`; unsigned subtraction wraps, so compare first: pd.select(…)"
            m.fail("out-of-bounds", message, np.broadcast_to(too_long, m.shape), help)
            wanted = np.minimum(wanted, np.uint32(size))
        if (ignored := by_name.get("ignore_src")) is not None:
            wanted = wanted * ~ignored
        m.copy_async(dst, src, size, np.broadcast_to(wanted, m.shape))


class CpAsyncCommitGroup(Op):
    """Commit the thread's prior cp.async copies as a cp.async-group."""

    forms = (Form("cp.async.commit_group", ptx="7.0", sm=80),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.commit_group()


class CpAsyncWaitGroup(Op):
    """Wait until at most the `n` latest cp.async-groups of the thread are pending."""

    forms = (Form("cp.async.wait_group n:imm", ptx="7.0", sm=80),)

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        if isinstance(operands[0], ir.Immediate) and operands[0].value < 0:
            yield Problem("n", f"`n` is {operands[0].value}; a number of groups is at least 0")

    def execute(self, i: Opcode, m: Step, n: int) -> None:
        m.wait_group(n)


class CpAsyncWaitAll(Op):
    """Wait until all cp.async copies of the thread are complete."""

    forms = (Form("cp.async.wait_all", ptx="7.0", sm=80),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.wait_all()


class CpAsyncMbarrierArrive(Op):
    """Arrive at an mbarrier when the thread's prior copies complete; without .noinc, first increment its count."""

    async_proxy = True
    forms = (
        Form(
            "cp.async.mbarrier.arrive{.noinc}{.space}.b64 [address:space]",
            space="shared shared::cta",
            ptx="7.0",
            sm=80,
            needs=mbarrier.CTA,
        ),
    )

    def execute(self, i: Opcode, m: Step, address: np.ndarray) -> None:
        space, one = i.space or "generic", np.ones(m.shape, np.uint64)
        if not i.noinc:
            m.atomic(space, address, b64, np.add, one, scan=np.add, ordering=mbarrier.OBJECT)
        arrival = Ordering("release", "cta", "copies")
        m.after_copies(lambda later: mbarrier.count_down(later, space, address, mbarrier.arrive, one, arrival))
