"""Random small programs on which the race detector of the emulator is compared with `tests.memory_model`.

A program has two to four threads, in one block, in a cluster or in several blocks. Its rounds are separated by barriers of all
threads; in a round each thread runs its own steps: weak and strong accesses, fences, flags, atomics, mbarriers, bulk copies.
Each program runs under three schedules. The model judges the recorded execution; the detector must report a race in the same
variables, and no pair of instructions that the model orders.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from ptxdsl import config
from ptxdsl.emulate import emulate
from ptxdsl.ir import PtxModule
from ptxdsl.parse import parse
from tests.memory_model import ATOM, FENCE, PROXY_FENCE, READ, WRITE, Execution, Operation, Place, races
from tests.recorder import Recorder

SCHEDULES = ("lockstep", "skewed", "random:{seed}")
RACES = ("race", "unwaited-async")
SCOPES = ("cta", "cluster", "gpu", "sys")
DATA, FLAGS, COPIES, MBARRIERS = 0, 64, 128, 192  # offsets in the array x and in the shared memory of each block
WORDS = 64
COPIED = 16  # bytes of a bulk copy
MOST = 8  # mbarriers of a block
Pair = tuple[int, int]
Race = tuple[Operation, Operation]


@dataclass(frozen=True)
class Step:
    """Lines of PTX that one thread runs; `{L}` is a label of its own."""

    text: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        return list(self.text)


@dataclass(frozen=True)
class Round:
    """The steps of each thread, and the lines that all threads run after them."""

    steps: tuple[tuple[Step, ...], ...]
    meeting: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """Threads by block and number in the block, and what they run. `arrivals` are the counts of the mbarriers."""

    threads: tuple[Pair, ...]
    blocks: int
    cluster: int
    arrivals: tuple[int, ...]
    rounds: tuple[Round, ...]
    seed: int = 0
    order: tuple[int, ...] = ()

    @property
    def block_threads(self) -> int:
        return 1 + max(number for _, number in self.threads)

    def text(self) -> str:
        """The module in PTX, one instruction a line."""
        lines = [*_begin(self)]
        for n, each in enumerate(self.rounds):
            for thread in self.order or range(len(self.threads)):
                if each.steps[thread]:
                    lines.append(f"@!%t{thread} bra S{n}_{thread};")
                    for k, step in enumerate(each.steps[thread]):
                        lines += [line.replace("{L}", f"L{n}_{thread}_{k}") for line in step.lines]
                    lines.append(f"S{n}_{thread}:")
            lines += each.meeting
        return "\n".join([*lines, *_end(self), "ret;", "}"])


def _begin(program: Program) -> Iterator[str]:
    yield ".version 8.6"
    yield ".target sm_90"
    yield ".address_size 64"
    yield f".shared .align 128 .b8 s[{4 * WORDS}];"
    yield ".visible .entry k(.param .u64 x)"
    yield "{"
    yield ".reg .pred %p<4>; .reg .pred %t<8>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .b32 %q<8>;"
    yield "ld.param.u64 %rd1, [x];"
    yield "mov.u32 %r1, %tid.x;"
    yield "mov.u32 %r2, %ctaid.x;"
    yield "mov.u32 %r3, s;"
    for n, (block, number) in enumerate(program.threads):
        yield f"setp.eq.u32 %p1, %r2, {block};"
        yield f"setp.eq.and.u32 %t{n}, %r1, {number}, %p1;"
        yield f"or.pred %p2, %{'p2' if n else f't{n}'}, %t{n};"
    yield "@!%p2 ret;"
    for block, first in _first_threads(program).items():
        yield f"@!%t{first} bra I{block};"
        yield from (f"st.shared.v2.u32 [s+{at}], {{0, 0}};" for at in (DATA, DATA + 8, FLAGS, COPIES, COPIES + 8))
        yield from (f"mbarrier.init.shared.b64 [s+{MBARRIERS + 8 * n}], {c};" for n, c in enumerate(program.arrivals))
        yield "fence.mbarrier_init.release.cluster;"
        yield "fence.proxy.async;"
        yield f"I{block}:"
    yield "bar.sync 0;"
    if program.cluster > 1:
        yield from (f"mapa.shared::cluster.u32 %q{rank}, %r3, {rank};" for rank in range(program.cluster))
        yield from ("barrier.cluster.arrive;", "barrier.cluster.wait;")


def _end(program: Program) -> Iterator[str]:
    yield from ("cp.async.wait_all;", "cp.async.bulk.wait_group 0;")
    if program.cluster > 1:
        yield from ("barrier.cluster.arrive;", "barrier.cluster.wait;")


def _first_threads(program: Program) -> dict[int, int]:
    return {block: n for n, (block, _) in reversed(list(enumerate(program.threads)))}


# Generation


@dataclass
class Generator:
    """Makes one program of a seed. Threads wait for those of lower numbers alone."""

    random: random.Random
    threads: list[Pair] = field(default_factory=list)
    value: int = 0
    barriers: int = 0
    arrivals: list[int] = field(default_factory=list)
    last: list[list[Step]] = field(default_factory=list)
    arrived: bool = False  # at the barrier of the cluster

    def program(self, seed: int) -> Program:
        r = self.random
        shape = r.choice(["warps", "warps", "lanes", "blocks", "cluster"])
        count = r.randint(2, 4)
        self.blocks = {"blocks": r.randint(2, count), "cluster": 2}.get(shape, 1)
        self.cluster = 2 if shape == "cluster" else 1
        width = 1 if shape == "lanes" or r.random() < 0.2 else 32
        numbers = [0] * self.blocks
        for n in range(count):
            block = n if n < self.blocks else r.randrange(self.blocks)
            self.threads.append((block, numbers[block] * width))
            numbers[block] += 1
        self.data, self.flags = self.home(), self.home()
        self.usual_scope = r.choice(SCOPES)
        self.last = [[] for _ in range(count)]
        rounds = [self.round() for _ in range(r.choice([1, 1, 2]))]
        rounds.append(Round(tuple(map(tuple, self.last)), ("barrier.cluster.wait;",) * self.arrived))
        order = tuple(r.sample(range(count), count))
        arrivals = tuple(self.arrivals)
        return Program(tuple(self.threads), self.blocks, self.cluster, arrivals, tuple(rounds), seed, order)

    def home(self) -> int:
        """The block whose shared memory holds some variables, or -1 for global memory."""
        if self.blocks == 1 or self.cluster > 1:
            return self.random.choice([-1, self.random.randrange(self.blocks)])
        return -1

    def round(self) -> Round:
        """Links between threads, each a weak access ordered or not before one of a later thread, and some noise."""
        r, count = self.random, len(self.threads)
        steps: list[list[Step]] = [[] for _ in range(count)]
        for _ in range(r.choice([0, 1, 1, 2, 2, 3])):
            source, target = sorted(r.sample(range(count), 2))
            before, after = self.link(source, target)
            steps[source] += [*self.maybe(0.7, self.weak, source), *before]
            steps[target] += [*after, *self.maybe(0.8, self.weak, target)]
        for thread in range(count):
            for step in self.maybe(0.3, self.noise, thread):
                steps[thread].insert(r.randint(0, len(steps[thread])), step)
        return Round(tuple(map(tuple, steps)), self.meeting())

    def maybe(self, probability: float, make: Callable[[int], list[Step]], thread: int) -> list[Step]:
        return make(thread) if self.random.random() < probability else []

    def meeting(self) -> tuple[str, ...]:
        if self.arrived:
            self.arrived = False
            return ("barrier.cluster.wait;",)
        choices: list[tuple[str, ...]] = [(), (), ("bar.sync 0;",)]
        if self.blocks == 1 and max(number for _, number in self.threads) < 32:
            mask = sum(1 << number for _, number in self.threads)
            choices += [(f"bar.warp.sync {mask:#x};",)]
        if self.cluster > 1:
            arrive = self.random.choice(["", ".release", ".relaxed"])
            fence = self.random.choice([(), (), (self.fence(),)])
            arrival = (*fence, f"barrier.cluster.arrive{arrive};")
            choices += [(*arrival, "barrier.cluster.wait;"), (*arrival, "barrier.cluster.wait;"), arrival]
        meeting = self.random.choice(choices)
        self.arrived = "barrier.cluster" in "".join(meeting) and "wait" not in "".join(meeting)
        return meeting

    # Links

    def link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        same_block = self.threads[source][0] == self.threads[target][0]
        kinds: dict[Callable[[int, int], tuple[list[Step], list[Step]]], int] = {self.flag_link: 4}
        if same_block and self.threads[source][1] // 32 != self.threads[target][1] // 32 and self.barriers < 14:
            kinds[self.barrier_link] = 1
        if (same_block or self.cluster > 1) and len(self.arrivals) < MOST:
            kinds |= {self.mbarrier_link: 2, self.copy_link: 2}
        if (same_block or self.cluster > 1) and len(self.arrivals) + 2 <= MOST:
            kinds[self.handshake_link] = 1
        if self.cluster > 1 and len(self.arrivals) < MOST:
            kinds[self.remote_link] = 1
        if same_block or self.data < 0 or self.data == self.threads[source][0]:
            kinds |= {self.store_link: 1, self.cp_async_link: 1}
        return self.random.choices(list(kinds), list(kinds.values()))[0](source, target)

    def barrier_link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        """A barrier of two warps, at which the first one need not wait."""
        self.barriers += 1
        how = self.random.choice(["sync", "arrive"])
        return [Step((f"bar.{how} {self.barriers}, 64;",))], [Step((f"bar.sync {self.barriers}, 64;",))]

    def new_mbarrier(self, count: int) -> int:
        self.arrivals.append(count)
        return MBARRIERS + 8 * (len(self.arrivals) - 1)

    def arrive(self, source: int, home: int, at: int) -> Step:
        far = self.threads[source][0] != home
        sem = self.random.choice(["", ".release.cta", ".release.cluster", ".release.cluster", ".relaxed.cluster"])
        where = (
            self.where(source, home, at).replace(".shared.", ".shared::cta.").format("b64 _, " if far else "b64 %rd3, ")
        )
        return Step((f"mbarrier.arrive{sem}{where};",))

    def mbarrier_link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        """An mbarrier of the block that waits there; sometimes with two arrivals and an access in between."""
        home, count = self.threads[target][0], self.random.choice([1, 1, 1, 2])
        at = self.new_mbarrier(count)
        before = [*self.maybe(0.3, self.any_fence, source), self.arrive(source, home, at)]
        if count == 2:
            before += [*self.weak(source), self.arrive(source, home, at)]
        return before, [self.mbarrier_wait(at), *self.maybe(0.2, self.any_fence, target)]

    def handshake_link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        """Two mbarriers: the source fills, the target takes and hands back, and the source fills again."""
        homes = self.threads[target][0], self.threads[source][0]
        full, empty = self.new_mbarrier(1), self.new_mbarrier(1)
        before = [
            self.arrive(source, homes[0], full),
            self.mbarrier_wait(empty),
            *self.maybe(0.3, self.any_fence, source),
        ]
        before += [*self.weak(source), self.arrive(source, homes[0], full)]
        after = [
            self.mbarrier_wait(full),
            *self.maybe(0.7, self.weak, target),
            *self.maybe(0.3, self.any_fence, target),
        ]
        return before, [*after, self.arrive(target, homes[1], empty), self.mbarrier_wait(full, parity=1)]

    def mbarrier_wait(self, at: int, loops: bool = True, parity: int = 0) -> Step:
        r = self.random
        sem = r.choice(["", ".acquire.cta", ".acquire.cluster", ".acquire.cluster"])
        wait = f"mbarrier.{r.choice(['try', 'test'])}_wait.parity{sem}.shared::cta.b64 %p3, [s+{at}], {parity};"
        return Step((f"{{L}}: {wait}", "@!%p3 bra {L};")) if loops else Step((wait,))

    def copy_link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        """A bulk copy to the data or from them, which completes at an mbarrier of the block of the target."""
        at, block = self.new_mbarrier(1), self.threads[target][0]
        far = self.threads[source][0] != block
        shared, place = (DATA, COPIES) if self.data == block else (COPIES, DATA if self.data < 0 else COPIES)
        base, space, state = (f"%q{block}", "cluster", "_") if far else ("%r3", "cta", "%rd3")
        expect = f"mbarrier.arrive.expect_tx.release.cluster.shared::{space}.b64 {state}, [{base}+{at}], {COPIED};"
        copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        before = [*self.maybe(0.6, self.proxy_fence, source)]
        before.append(Step((expect, f"{copy} [{base}+{shared}], [%rd1+{place}], {COPIED}, [{base}+{at}];")))
        self.last[target].append(self.mbarrier_wait(at))
        return before, [self.mbarrier_wait(at, self.random.random() < 0.9)]

    def remote_link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        """A store by st.async, which completes at an mbarrier of the block of the target."""
        at, block = self.new_mbarrier(1), self.threads[target][0]
        place = DATA if self.data == block else COPIES
        name = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32"
        store = Step((f"{name} [%q{block}+{place}], {self.next()}, [%q{block}+{at}];",))
        expect = Step((f"mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [s+{at}], 4;",))
        self.last[target].append(self.mbarrier_wait(at))
        return [store, *self.maybe(0.5, self.weak, source)], [expect, self.mbarrier_wait(at)]

    def cp_async_link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        """A copy without the async proxy, waited for by its thread, and a flag."""
        shared, place = (DATA, COPIES) if self.data == self.threads[source][0] else (COPIES, DATA)
        copy = f"cp.async.cg.shared.global [s+{shared}], [%rd1+{place}], {COPIED};"
        wait = self.random.choice([(), ("cp.async.wait_all;",), ("cp.async.wait_all;",)])
        before, after = self.flag_link(source, target)
        return [Step((copy, *wait)), *before], after

    def store_link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        """A bulk copy or reduction from the data or to them, waited for by its thread, and a flag."""
        shared, place = (DATA, COPIES) if self.data == self.threads[source][0] else (COPIES, DATA)
        name, type = self.random.choice([("cp.async", ""), ("cp.async", ""), ("cp.reduce.async", ".add.u32")])
        copy = f"{name}.bulk.global.shared::cta.bulk_group{type} [%rd1+{place}], [%r3+{shared}], {COPIED};"
        wait = self.random.choice([(), ("cp.async.bulk.wait_group.read 0;",), ("cp.async.bulk.wait_group 0;",)])
        step = Step((copy, "cp.async.bulk.commit_group;", *wait))
        before, after = self.flag_link(source, target)
        return [*self.maybe(0.6, self.proxy_fence, source), step, *before], after

    def flag_link(self, source: int, target: int) -> tuple[list[Step], list[Step]]:
        """A flag that one thread sets and another waits for."""
        at = FLAGS + 4 * self.random.randrange(2)
        before = [*self.maybe(0.4, self.fence_step, source), self.signal(source, self.flags, at)]
        if self.random.random() < 0.15:
            before.append(self.signal(source, self.flags, at))
        return before, [self.wait(target, at), *self.maybe(0.4, self.fence_step, target)]

    def signal(self, thread: int, home: int, at: int) -> Step:
        """A strong write."""
        r, where = self.random, self.where(thread, home, at)
        kind = r.choice(["store", "store", "atom", "red", "exch"])
        if r.random() < 0.05:
            where = self.where(thread, home, at // 8 * 8)
            return Step((f"st.{self.strong('release')}{where.format('u64 ')}, {self.next()};",))
        if kind == "store":
            return Step((f"st.{self.strong('release')}{where.format('u32 ')}, {self.next()};",))
        if kind == "red":
            return Step((f"red.{r.choice(['relaxed', 'release'])}.{self.scope()}{where.format('add.u32 ')}, 1;",))
        how = "add.u32 %r9, " if kind == "atom" else "exch.b32 %r9, "
        sem = r.choice(["relaxed", "release", "acquire", "acq_rel"])
        return Step((f"atom.{sem}.{self.scope()}{where.format(how)}, {self.next()};",))

    def wait(self, thread: int, at: int) -> Step:
        """A loop until a flag is not 0; sometimes a single look at it."""
        load = f"ld.{self.strong('acquire')}{self.where(thread, self.flags, at).format('u32 %r9, ')};"
        if self.random.random() < 0.2:
            return Step((load,))
        return Step((f"{{L}}: {load}", "setp.eq.u32 %p3, %r9, 0;", "@%p3 bra {L};"))

    # Steps of a thread

    def noise(self, thread: int) -> list[Step]:
        return self.random.choice([self.weak, self.flag, self.flag, self.any_fence])(thread)

    def weak(self, thread: int) -> list[Step]:
        return [self.load_or_store(thread, "weak")]

    def flag(self, thread: int) -> list[Step]:
        """A strong access, mostly to a flag."""
        r = self.random
        home, at = (self.flags, FLAGS) if r.random() < 0.7 else (self.data, DATA)
        at += 4 * r.randrange(2)
        if r.random() < 0.3:
            return [Step((f"ld.{self.strong('acquire')}{self.where(thread, home, at).format('u32 %r9, ')};",))]
        return [self.signal(thread, home, at)]

    def any_fence(self, thread: int) -> list[Step]:
        return self.random.choice([self.fence_step, self.proxy_fence])(thread)

    def proxy_fence(self, thread: int) -> list[Step]:
        space = self.random.choice(["", "", ".global", ".shared::cta", ".shared::cluster"])
        return [Step((f"fence.proxy.async{space};",))]

    def fence_step(self, thread: int) -> list[Step]:
        return [Step((self.fence(),))]

    def load_or_store(self, thread: int, sem: str) -> Step:
        wide, number = self.random.random() < 0.1, self.random.randrange(2)
        where = self.where(thread, self.data, DATA + 4 * number * (not wide))
        if self.random.random() < 0.5:
            return Step((f"ld.{sem}{where.format('u64 %rd9, ' if wide else 'u32 %r9, ')};".replace("%rd9", "%rd2"),))
        return Step((f"st.{sem}{where.format('u64 ' if wide else 'u32 ')}, {self.next()};",))

    def where(self, thread: int, home: int, at: int) -> str:
        """The state space and the address, with a gap for the type and the destination."""
        if home < 0:
            return f".global.{{}}[%rd1+{at}]"
        if self.threads[thread][0] == home:
            return f".shared.{{}}[s+{at}]"
        return f".shared::cluster.{{}}[%q{home}+{at}]"

    def next(self) -> int:
        """A value that no other store writes."""
        self.value += 1
        return 1000 + self.value

    def scope(self) -> str:
        return self.usual_scope if self.random.random() < 0.7 else self.random.choice(SCOPES)

    def strong(self, ordered: str) -> str:
        sem = self.random.choice(["relaxed", ordered, ordered, "volatile"])
        return sem if sem == "volatile" else f"{sem}.{self.scope()}"

    def fence(self) -> str:
        sem = self.random.choice(["acq_rel", "acq_rel", "sc", "acquire", "release"])
        return f"fence.{sem}.{self.scope()};"


def generate(seed: int) -> Program:
    return Generator(random.Random(seed)).program(seed)


# Comparison


@dataclass(frozen=True)
class Difference:
    """Where the detector and the model disagree: pairs of lines by (found by the detector alone, by the model alone)."""

    program: Program
    schedule: str
    false_alarms: tuple[Pair, ...]
    missed: tuple[Pair, ...]
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"seed {self.program.seed}, schedule {self.schedule}"]
        numbered = self.program.text().split("\n")
        for what, pairs in (("false alarm", self.false_alarms), ("missed", self.missed)):
            for first, second in pairs:
                lines.append(f"  {what}: {first} `{numbered[first - 1]}` and {second} `{numbered[second - 1]}`")
        return "\n".join(lines)


@dataclass(frozen=True)
class Verdict:
    """Racing pairs of lines, each with a place where they race: `model` must be found, and only `possible` ones may be.

    `detector` has the lines of each finding, that of the access at which it was found in front; `others` are the kinds of the
    other findings.
    """

    model: set[tuple[Pair, Place]]
    possible: set[tuple[Pair, Place]]
    detector: set[Pair]
    others: tuple[str, ...]
    recorded: list[Operation]


@lru_cache(1)
def parsed(text: str) -> PtxModule:
    return parse(text)


def verdict(program: Program, schedule: str) -> Verdict:
    """Run a program and let both judge it."""
    module, recorder, x = parsed(program.text()), Recorder(), np.zeros(WORDS, np.uint32)
    grid, block, cluster = (program.blocks, 1, 1), (program.block_threads, 1, 1), (program.cluster, 1, 1)
    with config.using(schedule=schedule.format(seed=program.seed), seconds=20):
        report = emulate(module.kernels[0], module, grid, block, [x], cluster=cluster, watchers=[recorder])
    pairs = {(f.locations[-2:][0].line, f.locations[-1].line): f for f in report.findings if f.kind in RACES}
    ending = {pair for pair, finding in pairs.items() if "block ends" in finding.message}
    ended, found = {line for pair in ending for line in pair}, pairs.keys() - ending
    others = tuple(sorted({f.kind for f in report.findings if f.kind not in RACES}))
    model = races(recorder.operations)
    model -= released(recorder.operations, model) | unfenced(recorder.operations, model)
    model -= counted(recorder.operations, model)
    model = {(a, b) for a, b in model if not {a.line, b.line} & ended}  # named for the end of their block instead
    possible = races(recorder.operations, observed=False)
    placed = [{((a.line, b.line), a.place) for a, b in pairs} for pairs in (model, possible)]
    return Verdict(*placed, found, others, recorder.operations)


def released(execution: list[Operation], racing: set[Race]) -> set[Race]:
    """The races that an mbarrier would order if its scopes were wide enough, but for stores: docs/emulator.md, "Races".
    A proxy fence may be missing as well, where that is not reported.

    Reads are ordered all the same, and so are bulk copies, with the stores that they replace.
    """
    scopes = {operation: operation.scope for operation in execution if operation.is_mbarrier or operation.kind == FENCE}
    if not racing or not any(operation.is_mbarrier for operation in execution):
        return set()
    relations = Execution(execution)
    order, _ = relations.base_causality()
    copies = relations.where(lambda o: o.kind == WRITE and o.issued is not None)
    replaced = (order & relations.overlap & copies).any(1)
    for operation in scopes:
        operation.scope = "cluster"
    wide = races(execution)
    ordered = racing - (wide - unfenced(execution, wide))
    for operation, scope in scopes.items():
        operation.scope = scope
    return {(a, b) for a, b in ordered if a.kind == READ or a.issued is not None or replaced[relations.index[a]]}


def unfenced(execution: list[Operation], racing: set[Race]) -> set[Race]:
    """The races with copies that lack a proxy fence alone and are not reported: "Limits".

    The first access is a read of global memory or of another block, or both are copies that access one shared memory for
    threads of two blocks, or another lane of a warp executes the fence for it.
    """
    racing = {(a, b) for a, b in racing if b.proxy == "async"}
    if not racing:
        return racing
    relations = Execution(execution)
    index, (order, base) = relations.index, relations.base_causality()
    warps = [(operation.thread.block, operation.thread.number // 32) for operation in execution]
    later = np.triu([[one == other for one in warps] for other in warps])
    fenced = relations.fenced(base | relations.where(lambda o: o.kind == PROXY_FENCE)[:, None] & (later @ base))
    return {
        (a, b)
        for a, b in racing
        if order[index[a], index[b]] and (_is_far_read(a) or _are_copies_in_shared(a, b) or fenced[index[a], index[b]])
    }


def _is_far_read(a: Operation) -> bool:
    return a.kind == READ and a.place is not None and a.place.block != a.thread.block


def _are_copies_in_shared(a: Operation, b: Operation) -> bool:
    return a.proxy == b.proxy == "async" and a.place is not None and a.place.block >= 0


def counted(execution: list[Operation], racing: set[Race]) -> set[Race]:
    """The races with accesses of a thread to which an `atom` gave a later value of the place: "Limits"."""
    atoms = [(n, operation) for n, operation in enumerate(execution) if operation.kind == ATOM]
    index = {operation: n for n, operation in enumerate(execution)}
    return {
        (a, b)
        for a, b in racing
        for n, atom in atoms
        if index[a] < n < index[b] and atom.thread == b.thread and _overlap(atom.place, b.place)
    }


def compare(program: Program) -> Difference | None:
    """The first disagreement, or None.

    The detector names one race for each access that races, not all: it must name one in each place, and no access that does
    not race. Of lanes of a warp that read a place, it may name another. Where it names a strong access of a thread, a flag
    races: what that flag would order is not compared.
    """
    for schedule in SCHEDULES:
        judged = verdict(program, schedule)
        racing = {line for pair, _ in judged.possible for line in pair}
        named = {line for pair in judged.detector for line in pair}
        false_alarms = tuple(pair for pair in sorted(judged.detector) if pair[0] not in racing)
        missed = tuple(sorted({pair for pair, place in judged.model if not named & _lines_in(judged, place)}))
        if named & {
            operation.line for operation in judged.recorded if operation.sem != "weak" and not operation.issued
        }:
            missed = ()
        if false_alarms or missed:
            return Difference(program, schedule, false_alarms, missed, judged.others)
    return None


def _lines_in(judged: Verdict, place: Place) -> set[int]:
    """The lines that race in bytes of a place."""
    return {line for pair, other in judged.possible if _overlap(place, other) for line in pair}


def _overlap(a: Place, b: Place) -> bool:
    return a.block == b.block and a.start < b.start + b.bytes and b.start < a.start + a.bytes


# Reduction


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one part less."""
    for n, each in enumerate(program.rounds):

        def with_round(*changed: Round, n: int = n) -> Program:
            return replace(program, rounds=(*program.rounds[:n], *changed, *program.rounds[n + 1 :]))

        if len(program.rounds) > 1:
            yield with_round()
        if each.meeting:
            yield with_round(replace(each, meeting=()))
        for thread, steps in enumerate(each.steps):
            for k in range(len(steps)):
                fewer = (*each.steps[:thread], (*steps[:k], *steps[k + 1 :]), *each.steps[thread + 1 :])
                yield with_round(replace(each, steps=fewer))


def reduce(difference: Difference) -> Difference:
    """A difference of the same kind in a program of which nothing more can be left out."""
    kind = bool(difference.false_alarms)
    again = True
    while again:
        again = False
        for program in smaller(difference.program):
            less = compare(program)
            if less is not None and bool(less.false_alarms) == kind:
                difference, again = less, True
                break
    return difference


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.memory_model", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program")
    options = parser.parse_args()
    differences = 0
    for seed in range(options.seed, options.seed + options.count):
        difference = compare(generate(seed))
        if difference is not None:
            differences += 1
            least = reduce(difference)
            print(least, least.program.text(), sep="\n", flush=True)
    print(f"{options.count} programs, {len(SCHEDULES)} schedules each: {differences} differences")
