"""Barriers and fences (PTX ISA, "Parallel Synchronization and Communication Instructions")."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import ir
from .form import Form
from .opcode import Op, Opcode, Results
from .operand import OperandList, Problem
from .step import Fence as Fencing
from .step import Step, TensorMapAcquire
from .warp import LANES_SET


class Barrier(Op):
    """Base of the CTA barriers: a warp arrives when all of its live lanes have arrived, and counts as 32 threads.

    `bar` is `barrier.aligned`: all threads must execute the same instruction; exited threads count as arrived.
    """

    collective = True
    orders_lanes = True
    whole_warp = False

    def aligned(self, i: Opcode) -> bool:
        return i.text.startswith("bar.") or ".aligned" in i.text

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if not isinstance(value, ir.Immediate):
                continue
            if declared.name == "a" and not 0 <= value.value <= 15:
                yield Problem("a", f"barrier {value.value} does not exist; a CTA has barriers 0 to 15")
            if declared.name == "b" and (value.value <= 0 or value.value % 32):
                yield Problem("b", f"`b` is {value.value} threads; it must be a positive multiple of the warp size, 32")


class BarrierSync(Barrier):
    """Wait at barrier `a` until all threads of the CTA, or `b` threads, have arrived."""

    forms = (
        Form("bar.sync a:u32{, b:u32}"),
        Form("bar.cta.sync a:u32{, b:u32}", ptx="7.8", sm=20),
        Form("barrier.sync{.aligned} a:u32{, b:u32}", ptx="6.0", sm=30),
        Form("barrier.cta.sync{.aligned} a:u32{, b:u32}", ptx="7.8", sm=30),
    )

    def execute(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray | None = None) -> None:
        m.barrier(a, b)


class BarrierArrive(Barrier):
    """Arrive at barrier `a` of `b` threads without waiting."""

    forms = (
        Form("bar.arrive a:u32, b:u32", ptx="2.0", sm=20),
        Form("bar.cta.arrive a:u32, b:u32", ptx="7.8", sm=20),
        Form("barrier.arrive{.aligned} a:u32, b:u32", ptx="6.0", sm=30),
        Form("barrier.cta.arrive{.aligned} a:u32, b:u32", ptx="7.8", sm=30),
    )

    def execute(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray) -> None:
        m.barrier(a, b, arrive=True)


class BarrierReduce(Barrier):
    """Wait at a barrier and reduce a predicate: d = the number of threads with `c` true, or the AND or OR of all."""

    forms = tuple(
        Form(f"{name}.red.{how} {destination}, a:u32{threads}, {{!}}c:pred", ptx=ptx, sm=sm, how="and or")
        for name, ptx, sm in (
            ("bar", "2.0", 20),
            ("bar.cta", "7.8", 20),
            ("barrier", "6.0", 30),
            ("barrier.cta", "7.8", 30),
        )
        for how, destination in (
            ("popc{.aligned}.u32" if name.startswith("barrier") else "popc.u32", "d=u32"),
            ("how{.aligned}.pred" if name.startswith("barrier") else "how.pred", "d=pred"),
        )
        for threads in ("", ", b:u32")
    )

    def execute(self, i: Opcode, m: Step, a: np.ndarray, *rest: np.ndarray) -> Results | None:
        *threads, c = rest
        return m.barrier_reduce(a, threads[0] if threads else None, c, i.how or "popc")


_ORDERED = dict.fromkeys(("release", "relaxed", "acquire"), ("8.0", 90))


class BarrierClusterArrive(Op):
    """Arrive at the cluster barrier without waiting; .relaxed does not order memory accesses."""

    forms = (Form("barrier.cluster.arrive{.sem}", sem="release relaxed", needs=_ORDERED, ptx="7.8", sm=90),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.cluster_arrive(i.sem != "relaxed")


class BarrierClusterArriveAligned(BarrierClusterArrive):
    """Arrive at the cluster barrier without waiting, all threads of the warp together."""

    collective = True
    whole_warp = False
    forms = (Form("barrier.cluster.arrive{.sem}.aligned", sem="release relaxed", needs=_ORDERED, ptx="7.8", sm=90),)


class BarrierClusterWait(Op):
    """Wait until all threads of the cluster have arrived, and acquire the writes they released."""

    forms = (Form("barrier.cluster.wait{.acquire}", needs=_ORDERED, ptx="7.8", sm=90),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.cluster_wait()


class BarrierClusterWaitAligned(BarrierClusterWait):
    """Wait at the cluster barrier, all threads of the warp together."""

    collective = True
    whole_warp = False
    forms = (Form("barrier.cluster.wait{.acquire}.aligned", needs=_ORDERED, ptx="7.8", sm=90),)


class BarWarpSync(Op):
    """Wait until the lanes in `membermask` have arrived, and order their memory accesses."""

    forms = (Form("bar.warp.sync membermask:u32", ptx="6.0", sm=30),)
    collective = True
    orders_lanes = True

    def execute(self, i: Opcode, m: Step, membermask: np.ndarray) -> None:
        """Do nothing: the scheduler has already joined the lanes."""


class Activemask(Op):
    """Query the active lanes of the warp, as a bit mask."""

    gives = LANES_SET
    forms = (Form("activemask.b32 d=b32", ptx="6.2", sm=30),)

    def execute(self, i: Opcode, m: Step) -> Results | None:
        return m.together()


class FenceThread(Op):
    """Order this thread's memory accesses as observed by the threads of a scope."""

    forms = (
        Form("fence{.sem}.scope", sem="sc acq_rel", scope="cta gpu sys", ptx="6.0", sm=70),
        Form("fence{.sem}.cluster", sem="sc acq_rel", ptx="7.8", sm=90),
        Form(
            "fence.sem.scope",
            sem="acquire release",
            scope="cta cluster gpu sys",
            ptx="6.0",
            sm=70,
            needs={"cluster": ("7.8", 90)},
        ),
        Form("fence.mbarrier_init.release.cluster", ptx="8.0", sm=90),
        Form("fence.acquire.sync_restrict::shared::cluster.cluster", ptx="8.6", sm=90),
        Form("fence.release.sync_restrict::shared::cta.cluster", ptx="8.6", sm=90),
    )

    def uses_async_proxy(self, i: Opcode) -> bool:
        return i.text.startswith("fence.mbarrier_init")

    def execute(self, i: Opcode, m: Step) -> None:
        m.order(Fencing(i.sem or ("acq_rel" if i.scope else "release"), i.scope or "cluster"))
        if self.uses_async_proxy(i):
            m.order(Fencing("release", "cluster", "mbarrier"))


class FenceProxy(Op):
    """Order memory accesses made through different proxies."""

    async_proxy = True
    forms = (
        Form("fence.proxy.alias", ptx="7.5", sm=70),
        Form("fence.proxy.async{.space}", space="global shared::cta shared::cluster", ptx="8.0", sm=90),
        Form("fence.proxy.tensormap::generic.release.scope", scope="cta cluster gpu sys", ptx="8.3", sm=90),
        Form(
            "fence.proxy.tensormap::generic.acquire.scope [address:generic], size:imm",
            scope="cta cluster gpu sys",
            ptx="8.3",
            sm=90,
        ),
        Form("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", ptx="8.6", sm=90),
        Form("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", ptx="8.6", sm=90),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        for declared, value in zip(i.operands, operands, strict=True):
            if declared.name == "size" and isinstance(value, ir.Immediate) and value.value != 128:
                yield Problem("size", f"`size` is {value.value}; a tensor map is 128 bytes", "write 128")

    def execute(self, i: Opcode, m: Step, *inputs: np.ndarray) -> None:
        """Order prior accesses of other proxies before later accesses of the lanes, and vice versa."""
        proxy = i.text.split(".")[2].partition("::")[0]
        if proxy != "tensormap":
            space = "shared" if "sync_restrict" in i.text else i.space or ""
            m.order(Fencing("acq_rel", i.scope or "cta", proxy, space))
        elif inputs:
            m.order(Fencing("acquire", i.scope))
            m.order(TensorMapAcquire("acquire", i.scope, proxy, address=inputs[0]))
        else:
            m.order(Fencing("release", i.scope))
            m.order(Fencing("release", i.scope, proxy))


class Membar(Op):
    """Memory barrier: the older spelling of fence."""

    forms = (
        Form("membar.scope", scope="cta gl sys", needs={"sys": ("2.0", 20)}, ptx="1.4"),
        Form("membar.proxy.alias", ptx="7.5", sm=60),
    )

    def execute(self, i: Opcode, m: Step) -> None:
        m.order(Fencing("sc", {"gl": "gpu"}.get(i.scope, i.scope) or "sys", "" if i.scope else "alias"))


class GridDependencyWait(Op):
    """Wait until all prerequisite grids have completed, and their writes are visible."""

    forms = (Form("griddepcontrol.wait", ptx="7.8", sm=90),)

    def execute(self, i: Opcode, m: Step) -> None:
        """Report the wait to observers: on the emulator, prior grids have already completed."""
        m.order(Fencing("acquire", "gpu", "grid"))


class GridDependentsLaunch(Op):
    """Allow dependent grids to launch, once every block has executed this or exited."""

    lets_grids_begin = True
    forms = (Form("griddepcontrol.launch_dependents", ptx="7.8", sm=90),)

    def execute(self, i: Opcode, m: Step) -> None:
        """Record the launch point: no grid starts here on the emulator, but later conflicts with it are reported."""
