"""The memory consistency model of PTX as an offline check of one recorded execution.

Each relation is written down as the manual defines it (PTX ISA, "Memory Consistency Model"; the asynchronous operations as
in the descriptions of cp.async.bulk, mbarrier and fence.proxy), as a boolean matrix over all pairs of operations. It shares no
code with the race detector of the emulator, which is compared with it.

`python -m tests.memory_model --count N --seed S` compares the two on N random programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

READ, WRITE, ATOM, RED = "read", "write", "atom", "red"  # memory operations
FENCE, PROXY_FENCE = "fence", "proxy fence"
BARRIER, CLUSTER_ARRIVE, CLUSTER_WAIT = "barrier", "cluster arrive", "cluster wait"
ISSUE, COMPLETION = "issue", "completion"  # of asynchronous operations, seen by the thread


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of the grid."""

    block: int
    cluster: int
    number: int


@dataclass(frozen=True, slots=True)
class Place:
    """A memory location: bytes of global memory (block -1) or of the shared memory of a block."""

    block: int
    start: int
    bytes: int


@dataclass(eq=False, slots=True)
class Operation:
    """An operation of a recorded execution.

    `reads_from` are the writes of the bytes that it read; for a wait that saw phases of an mbarrier complete, the arrivals in
    these phases. An asynchronous memory operation is ordered after what precedes `issued` and before what follows
    `completed`; that of a copy that completes at an mbarrier is an operation on it, and is its own completion. `meeting`
    identifies the instance of a barrier, and `waits` is false for an arrival alone. `fences` are the state spaces of a proxy
    fence. An asynchronous operation that `releases` passes on what precedes its issue.
    """

    thread: Thread
    kind: str
    line: int
    place: Place | None = None
    sem: str = "weak"
    scope: str = ""
    proxy: str = "generic"
    reads_from: set[Operation] = field(default_factory=set)
    issued: Operation | None = None
    completed: Operation | None = None
    meeting: object = None
    waits: bool = True
    is_mbarrier: bool = False
    fences: tuple[str, ...] = ()
    releases: bool = False


def races(execution: list[Operation], observed: bool = True) -> set[tuple[Operation, Operation]]:
    """Return the pairs of operations that are in a data race, the one recorded first in front.

    Without `observed`, a read that acquires nothing by itself orders nothing, unless a fence follows: which value it returned
    was a matter of timing.
    """
    if not execution:
        return set()
    first, second = np.nonzero(np.triu(Execution(execution, observed).data_race()))
    return {(execution[i], execution[j]) for i, j in zip(first, second, strict=True)}


class Execution:
    """The relations of a recorded execution; `relation[i, j]` holds if operation i is related to operation j."""

    def __init__(self, operations: list[Operation], observed: bool = True) -> None:
        self.operations, self.count, self.observed = operations, len(operations), observed
        self.index = {operation: n for n, operation in enumerate(operations)}
        self.identity = np.eye(self.count, dtype=bool)
        threads = [o.thread for o in operations]
        self.same_thread = _equal(threads)
        self.same_block = _equal([t.block for t in threads])
        self.same_cluster = _equal([t.cluster for t in threads])
        self.same_proxy = _equal([o.proxy for o in operations])
        self.generic = self.where(lambda o: o.proxy == "generic")
        self.is_async = self.where(lambda o: o.issued is not None)
        self.memory = self.where(lambda o: o.place is not None)
        self.atomic = self.where(lambda o: o.kind in (ATOM, RED))
        self.read = self.where(lambda o: o.kind in (READ, ATOM))
        self.write = self.where(lambda o: o.kind in (WRITE, ATOM, RED))
        self.fence = self.where(lambda o: o.kind == FENCE)
        self.strong = self.fence | self.memory & self.where(lambda o: o.sem != "weak")
        self.acquire = self.where(lambda o: o.sem in ("acquire", "acq_rel", "sc"))
        self.release = self.where(lambda o: o.sem in ("release", "acq_rel", "sc"))
        self.overlap, self.complete_overlap = self.overlaps()
        self.program_order = self.same_thread & np.triu(~self.identity) & ~_either(self.is_async)
        for n, operation in enumerate(operations):
            if operation.releases and operation.issued is not None:
                self.program_order[self.index[operation.issued], n] = True

    def where(self, holds) -> np.ndarray:
        """Return the set of operations for which a condition holds, as a boolean vector."""
        return np.array([holds(o) for o in self.operations], bool)

    def overlaps(self) -> tuple[np.ndarray, np.ndarray]:
        """8.2.1: operations on bytes in common, and those on the same bytes."""
        places = [o.place or Place(-2 - n, 0, 0) for n, o in enumerate(self.operations)]
        start, end = np.array([p.start for p in places]), np.array([p.start + p.bytes for p in places])
        same = _equal([p.block for p in places])
        overlap = same & (start[:, None] < end) & (start < end[:, None])
        return overlap, overlap & (start[:, None] == start) & (end[:, None] == end)

    def includes(self) -> np.ndarray:
        """8.5: the scope of i includes the thread of j."""
        reach = {"cta": self.same_block, "cluster": self.same_cluster}
        everyone, nobody = np.ones(self.count, bool), np.zeros(self.count, bool)
        rows = [
            reach[o.scope][n] if o.scope in reach else everyone if o.scope else nobody
            for n, o in enumerate(self.operations)
        ]
        return np.array(rows)

    @cached_property
    def morally_strong(self) -> np.ndarray:
        """8.7: in program order, or both strong with scopes that include each other; one proxy; complete overlap."""
        includes = self.includes()
        strong = _both(self.strong) & includes & includes.T
        related = self.program_order | self.program_order.T | strong
        return related & self.same_proxy & (~_both(self.memory) | self.complete_overlap)

    def conflict(self) -> np.ndarray:
        """8.7.1: overlapping operations, at least one of them a write. An mbarrier object is opaque to its operations."""
        objects = self.where(lambda o: o.is_mbarrier)
        return self.overlap & _either(self.write) & ~_both(objects) & ~self.identity

    def data_race(self) -> np.ndarray:
        """8.7.1: conflicting operations that are not related in causality order and not morally strong."""
        cause = self.causality()
        return self.conflict() & ~(cause | cause.T | self.morally_strong)

    def release_pattern(self) -> np.ndarray:
        """8.8: the first operation of a release pattern, and its write."""
        writes = self.strong & self.write
        same_place = self.program_order & self.complete_overlap
        on_location = (self.identity | same_place & writes) & (self.release & self.write)[:, None]
        return on_location | self.program_order & (self.fence & self.release)[:, None] & writes

    def acquire_pattern(self) -> np.ndarray:
        """8.8: the read of an acquire pattern, and its last operation. The read of `red` forms none."""
        reads, acquires = self.strong & self.read, self.acquire & self.read
        same_place = self.program_order & self.complete_overlap
        on_location = self.identity & acquires | same_place & reads[:, None] & acquires & self.observed
        return on_location | self.program_order & reads[:, None] & (self.fence & self.acquire)

    @cached_property
    def observation(self) -> np.ndarray:
        """8.9.2: a write and the morally strong read of its value, also through atomic operations."""
        reads_from = np.zeros((self.count, self.count), bool)
        for n, operation in enumerate(self.operations):
            reads_from[[self.index[source] for source in operation.reads_from], n] = True
        observed = reads_from & self.morally_strong
        return observed | _product(_closure(observed & self.atomic), observed)

    def synchronizes(self) -> np.ndarray:
        """8.9.4. The Fence-SC order is not recorded: fence.sc counts as fence.acq_rel."""
        patterns = _product(_product(self.release_pattern(), self.observation), self.acquire_pattern())
        return patterns & self.morally_strong | self.barriers() | self.cluster_barriers()

    def barriers(self) -> np.ndarray:
        """An arrival synchronizes with each bar.sync at the same instance of the barrier; bar.warp.sync likewise."""
        kinds = self.where(lambda o: o.kind == BARRIER)
        return self.meetings() & kinds[:, None] & (kinds & self.where(lambda o: o.waits))

    def cluster_barriers(self) -> np.ndarray:
        """barrier.cluster.arrive synchronizes with .wait; if it is .relaxed, a fence before it takes its place."""
        arrive, wait = self.where(lambda o: o.kind == CLUSTER_ARRIVE), self.where(lambda o: o.kind == CLUSTER_WAIT)
        meets = self.meetings() & arrive[:, None] & wait
        wide = self.where(lambda o: o.scope in ("cluster", "gpu", "sys")) & self.fence & self.release
        by_fence = _product(self.program_order & wide[:, None] & arrive, meets)
        return meets & self.release[:, None] | by_fence

    def meetings(self) -> np.ndarray:
        return _equal([o.meeting if o.meeting is not None else n for n, o in enumerate(self.operations)])

    def base_causality(self) -> tuple[np.ndarray, np.ndarray]:
        """8.9.5, and 8.9.1.1: asynchronous operations begin after their issue and end before their completion, and they
        pass nothing on. Return the order of all operations, and a reflexive one for the search of fences on a path."""
        base = _closure(self.program_order | self.synchronizes()) | self.identity
        begins = [self.index[o.issued or o] for o in self.operations]
        ends = [self.index[o.completed or o] for o in self.operations]
        ended = ~self.is_async | self.where(lambda o: o.completed is not None)
        return base[ends][:, begins] & ended[:, None] & ~self.identity, base

    def fenced(self, base: np.ndarray) -> np.ndarray:
        """A proxy fence for the state space lies on the path from i to j."""
        result = np.zeros((self.count, self.count), bool)
        begins = [self.index[o.issued or o] for o in self.operations]
        ends = [self.index[o.completed or o] for o in self.operations]
        spaces = [_space(o.place) for o in self.operations]
        for n, operation in enumerate(self.operations):
            if operation.kind == PROXY_FENCE:
                covered = np.array([space in operation.fences for space in spaces])
                result |= (base[ends, n] & covered)[:, None] & base[n, begins]
        return result

    def causality(self) -> np.ndarray:
        """8.9.5: proxy-preserved base causality order, also after an observation.

        Both through the generic proxy, or both through one proxy in one block; from the async proxy to the generic one, since
        the completion of a copy is followed by a proxy fence; otherwise with a proxy fence in between.
        """
        order, base = self.base_causality()
        preserved = _both(self.generic) | self.same_proxy & self.same_block
        preserved |= self.is_async[:, None] & self.generic | self.fenced(base)
        preserved &= order
        return preserved | _product(self.observation, preserved & self.overlap) if self.observed else preserved


def _space(place: Place | None) -> str:
    return "" if place is None else "global" if place.block < 0 else "shared"


def _equal(values: Iterable[object]) -> np.ndarray:
    numbers: dict[object, int] = {}
    codes = np.array([numbers.setdefault(value, len(numbers)) for value in values])
    return codes[:, None] == codes


def _both(members: np.ndarray) -> np.ndarray:
    return members[:, None] & members


def _either(members: np.ndarray) -> np.ndarray:
    return members[:, None] | members


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The composition of two relations."""
    result: np.ndarray = first @ second
    return result


def _closure(relation: np.ndarray) -> np.ndarray:
    """The transitive closure."""
    closed = relation.copy()
    for n in range(len(closed)):
        closed |= closed[:, n, None] & closed[n]
    return closed


if __name__ == "__main__":
    from tests.random_programs import main

    main()
