"""Clusters: distributed shared memory, and stores that signal an mbarrier (PTX ISA, "mapa", "st.async")."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import ir
from ..errors import EmulationError
from .atomic import INTEGER
from .bulk import BYTES, MBARRIER_BYTES
from .cluster_address import FIRST_RANK, RANK_BITS, RANKS, ranks_of
from .form import Form
from .memory import ADDRESSES, access_bytes, alignment_problems
from .opcode import Op, Opcode
from .operand import Problem
from .step import Ordering, PhaseArrival, Step
from .target import CLUSTER_BLOCKS
from .transactions import count_bytes


class Mapa(Op):
    """Map a shared memory address to the same location in another block of the cluster."""

    reads = ADDRESSES
    forms = (
        Form("mapa{.space}.type d=type, a:type, rank:u32", space="shared::cluster", type="u32 u64", ptx="7.8", sm=90),
    )

    def run(self, i: Opcode, a: np.ndarray, rank: np.ndarray) -> np.ndarray:
        named = np.minimum(rank, np.uint32(RANKS - FIRST_RANK)).astype(a.dtype) + a.dtype.type(FIRST_RANK)
        return a & ~a.dtype.type(RANKS << RANK_BITS) | named << a.dtype.type(RANK_BITS)

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        _, a, rank = operands
        if isinstance(rank, ir.Immediate) and not 0 <= rank.value < CLUSTER_BLOCKS:
            yield Problem("rank", f"`rank` is {rank.value}; ranks are 0 to {CLUSTER_BLOCKS - 1}")
        if isinstance(rank, ADDRESSES):
            yield Problem("rank", f"`rank` is the address of `{rank}`; expected the rank of a block in the cluster")
        if isinstance(a, ir.Variable) and a.space.partition("::")[0] != "shared":
            yield Problem("a", f"`a` is `{a}` in .{a.space}; mapa takes an address in .shared")


class GetCtaRank(Op):
    """Get the cluster rank of the block whose shared memory contains address a."""

    reads = ADDRESSES
    forms = (Form("getctarank{.space}.type d=u32, a:type", space="shared::cluster", type="u32 u64", ptx="7.8", sm=90),)

    def execute(self, i: Opcode, m: Step, a: np.ndarray) -> np.ndarray:
        return ranks_of(m, a.astype(np.uint64))


class AsyncAccess(Op):
    """Base of asynchronous stores and reductions, visible to another block through its mbarrier or an acquire."""

    async_proxy = True
    stores = "a"

    def execute(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray, mbarrier: np.ndarray | None = None) -> None:
        if mbarrier is None:
            raise EmulationError(
                f"`{i.text}` cannot be emulated yet: stores without an mbarrier require sm_100",
                help="run this kernel on a GPU, or use st.release",
            )
        a, b, mbarrier = a.copy(), b.copy(), mbarrier.copy()  # registers change before it is done
        size, space = access_bytes(i), i.space or "generic"

        def land(m: Step) -> None:
            self.change(i, m, a, b)
            m.order(PhaseArrival(space, mbarrier, Ordering("release", "cluster"), asynchronous=True))
            count_bytes(m, space, mbarrier, np.full(mbarrier.shape, -size, np.int64))

        m.store_async(mbarrier, land, releases=True)

    @abstractmethod
    def change(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray) -> None:
        """Update memory."""

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name == "a":
                yield from alignment_problems("a", value, access_bytes(i))
            elif declared.name == "mbarrier":
                yield from alignment_problems("mbarrier", value, MBARRIER_BYTES)


class StoreAsync(AsyncAccess):
    """Store asynchronously to shared memory of a block of the cluster, or (.release) to global memory."""

    forms = (
        Form(
            f"st.async{{.weak}}{{.space}}.{BYTES}{{.vec}}.type [a:space], b:type*vec, [mbarrier:space]",
            space="shared::cluster",
            vec="v2 v4",
            type="b32 b64 u32 u64 s32 s64 f32 f64",
            when=lambda i: access_bytes(i) <= 16,
            ptx="8.1",
            sm=90,
        ),
        Form(
            "st.async{.mmio}.release.scope{.space}.type [a:space], b:type",
            scope="gpu sys",
            space="global",
            type="b32 b64 u32 u64 s32 s64 f32 f64",
            ptx="8.7",
            sm=100,
        ),
    )

    def change(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray) -> None:
        m.store(i.space or "generic", a, i.type, b)


REDUCED = {
    **dict.fromkeys(("inc", "dec"), "u32"), **dict.fromkeys(("min", "max"), "u32 s32"),
    **dict.fromkeys(("and", "or", "xor"), "b32"), "add": "u32 s32 u64 s64",
}  # fmt: skip
COMBINED: dict[str, Any] = {
    "operation": REDUCED,
    "type": "u32 s32 u64 s64 b32",
    "when": lambda i: str(i.type) in REDUCED[i.operation].split(),
}


class RedAsync(AsyncAccess):
    """Reduce asynchronously into shared memory of a block of the cluster, or (.release) into global memory."""

    forms = (
        Form(
            f"red.async.relaxed.cluster{{.space}}.{BYTES}.operation.type [a:space], b:type, [mbarrier:space]",
            space="shared::cluster",
            ptx="8.1",
            sm=90,
            **COMBINED,
        ),
        Form(
            "red.async{.mmio}.release.scope{.space}.operation.type [a:space], b:type",
            scope="gpu sys",
            space="global",
            ptx="8.7",
            sm=100,
            **COMBINED,
        ),
    )

    def change(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray) -> None:
        update = INTEGER[i.operation]
        scan = update if isinstance(update, np.ufunc) else None
        m.atomic(i.space or "generic", a, i.type, update, b, scan=scan, ordering=Ordering("relaxed", "cluster"))
