"""The memory model judges small recorded executions as the manual's sentences say, and random programs as the detector does."""

import pytest

from tests.memory_model import (
    ATOM,
    BARRIER,
    CLUSTER_ARRIVE,
    CLUSTER_WAIT,
    FENCE,
    ISSUE,
    PROXY_FENCE,
    READ,
    RED,
    WRITE,
    Operation,
    Place,
    Thread,
    races,
)
from tests.random_programs import SCHEDULES, Program, Round, Step, compare, generate, reduce, verdict

X, Y, MBARRIER = Place(-1, 0, 4), Place(-1, 4, 4), Place(0, 8, 8)
FIRST, SAME_BLOCK, SAME_CLUSTER, FAR = Thread(0, 0, 0), Thread(0, 0, 32), Thread(1, 0, 0), Thread(2, 1, 0)


def operation(thread, kind, place=None, order="weak", reads_from=(), **facts):
    sem, _, scope = order.partition(".")
    return Operation(thread, kind, 0, place, sem, scope, reads_from=set(reads_from), **facts)


def racing(*execution):
    return {(execution.index(a), execution.index(b)) for a, b in races(list(execution))}


def passed(release, acquire, other=FAR, before=(), after=()):
    """A weak write of X, a write of Y and a read of its value, and a weak read of X."""
    data, flag = operation(FIRST, WRITE, X), operation(FIRST, WRITE, Y, release)
    seen = operation(other, READ, Y, acquire, [flag])
    fences = [operation(FIRST, FENCE, order=order) for order in before]
    later = [operation(other, FENCE, order=order) for order in after]
    return bool(races([data, *fences, flag, seen, *later, operation(other, READ, X)]))


@pytest.mark.parametrize(
    ("release", "acquire", "other", "before", "after", "race"),
    [
        ("release.gpu", "acquire.gpu", FAR, (), (), False),
        ("relaxed.gpu", "acquire.gpu", FAR, (), (), True),
        ("release.gpu", "relaxed.gpu", FAR, (), (), True),
        ("release.gpu", "acquire.cta", FAR, (), (), True),
        ("release.gpu", "acquire.cta", SAME_BLOCK, (), (), False),
        ("release.cluster", "acquire.gpu", SAME_CLUSTER, (), (), False),
        ("release.cluster", "acquire.gpu", FAR, (), (), True),
        ("relaxed.gpu", "relaxed.gpu", FAR, ("acq_rel.gpu",), ("acq_rel.gpu",), False),
        ("relaxed.gpu", "relaxed.gpu", FAR, ("release.gpu",), ("acquire.gpu",), False),
        ("relaxed.gpu", "relaxed.gpu", FAR, ("acquire.gpu",), ("acq_rel.gpu",), True),
        ("relaxed.gpu", "relaxed.gpu", FAR, ("sc.cta",), ("sc.gpu",), True),
        ("weak", "acquire.gpu", FAR, ("acq_rel.gpu",), (), True),
    ],
)
def test_a_flag_orders_by_its_patterns_and_scopes(release, acquire, other, before, after, race):
    assert passed(release, acquire, other, before, after) == race


def test_a_store_after_the_release_belongs_to_the_pattern():
    data, first = operation(FIRST, WRITE, X), operation(FIRST, WRITE, Y, "release.gpu")
    second = operation(FIRST, WRITE, Y, "relaxed.gpu")
    seen = operation(FAR, READ, Y, "acquire.gpu", [second])
    assert not racing(data, first, second, seen, operation(FAR, READ, X))


def test_atomics_pass_on_what_they_replace_and_stores_do_not():
    for kind, race in ((ATOM, False), (RED, False), (WRITE, True)):
        data, flag = operation(FIRST, WRITE, X), operation(FIRST, WRITE, Y, "release.gpu")
        between = operation(SAME_CLUSTER, kind, Y, "relaxed.gpu", [flag] * (kind != WRITE))
        seen = operation(FAR, READ, Y, "acquire.gpu", [between])
        assert bool(racing(data, flag, between, seen, operation(FAR, READ, X))) == race


def test_the_read_of_red_is_no_acquire_pattern():
    data, flag = operation(FIRST, WRITE, X), operation(FIRST, WRITE, Y, "release.gpu")
    for kind, race in ((ATOM, False), (RED, True)):
        seen, fence = operation(FAR, kind, Y, "relaxed.gpu", [flag]), operation(FAR, FENCE, order="acquire.gpu")
        assert bool(racing(data, flag, seen, fence, operation(FAR, READ, X))) == race


def test_order_is_cumulative():
    data, flag = operation(FIRST, WRITE, X), operation(FIRST, WRITE, Y, "release.cta")
    seen = operation(SAME_BLOCK, READ, Y, "acquire.cta", [flag])
    onward = operation(SAME_BLOCK, WRITE, Place(-1, 8, 4), "release.gpu")
    last = operation(FAR, READ, Place(-1, 8, 4), "acquire.gpu", [onward])
    assert not racing(data, flag, seen, onward, last, operation(FAR, READ, X))


def test_strong_accesses_of_other_sizes_or_narrow_scopes_race():
    wide = operation(FIRST, WRITE, Place(-1, 0, 8), "relaxed.gpu")
    assert racing(wide, operation(FAR, READ, X, "relaxed.gpu")) == {(0, 1)}
    assert racing(operation(FIRST, WRITE, X, "relaxed.cta"), operation(FAR, READ, X, "relaxed.gpu")) == {(0, 1)}
    assert not racing(operation(FIRST, WRITE, X, "relaxed.gpu"), operation(FAR, READ, X, "relaxed.gpu"))


def test_an_observed_write_comes_before_later_accesses_to_its_place_alone():
    flag = operation(FIRST, WRITE, X, "relaxed.gpu")
    seen = operation(FAR, READ, X, "relaxed.gpu", [flag])
    clear = operation(FAR, WRITE, X)
    assert not races([flag, seen, clear])
    assert races([flag, seen, clear], observed=False)
    data = operation(FIRST, WRITE, Y)
    assert racing(data, flag, seen, clear, operation(FAR, READ, Y)) == {(0, 4)}


def test_a_barrier_orders_those_that_wait_after_those_that_arrive():
    for waits, race in ((True, False), (False, True)):
        data, arrive = operation(FIRST, WRITE, X), operation(FIRST, BARRIER, meeting=1, waits=False)
        other = operation(SAME_BLOCK, BARRIER, meeting=1, waits=waits)
        assert bool(racing(data, arrive, other, operation(SAME_BLOCK, READ, X))) == race
    later = operation(SAME_BLOCK, BARRIER, meeting=2)
    assert racing(
        operation(FIRST, WRITE, X), operation(FIRST, BARRIER, meeting=1), later, operation(SAME_BLOCK, READ, X)
    )


def test_a_relaxed_arrival_at_the_cluster_barrier_orders_after_a_fence_alone():
    for order, fences, race in (
        ("release", (), False),
        ("relaxed", (), True),
        ("relaxed", ("acq_rel.cluster",), False),
    ):
        before = [operation(FIRST, WRITE, X), *(operation(FIRST, FENCE, order=fence) for fence in fences)]
        arrive = operation(FIRST, CLUSTER_ARRIVE, order=order, meeting=1)
        wait = operation(SAME_CLUSTER, CLUSTER_WAIT, order="acquire", meeting=1)
        assert bool(races([*before, arrive, wait, operation(SAME_CLUSTER, READ, X)])) == race


def copied(*, fence=False, waits=True, read=False):
    """A thread writes Y; a bulk copy reads it, writes X and completes at an mbarrier; another thread reads X, or Y."""
    issue = operation(FIRST, ISSUE)
    done = operation(FIRST, RED, MBARRIER, "release.cluster", is_mbarrier=True, issued=issue)
    done.completed = done
    source = operation(FIRST, READ, Y, proxy="async", issued=issue, completed=done)
    target = operation(FIRST, WRITE, X, proxy="async", issued=issue, completed=done)
    wait = operation(SAME_BLOCK, READ, MBARRIER, "acquire.cta", [done] * waits, is_mbarrier=True)
    fences = [operation(FIRST, PROXY_FENCE, fences=("global",))] * fence
    last = operation(SAME_BLOCK, READ, Y if read else X)
    execution = [operation(FIRST, WRITE, Y), *fences, issue, source, target, done, wait, last]
    return {(a.kind, a.place, b.kind, b.place) for a, b in races(execution)}


def test_a_copy_needs_a_proxy_fence_before_it_and_a_wait_after_it():
    assert copied(fence=True) == set()
    assert copied() == {(WRITE, Y, READ, Y)}
    assert copied(fence=True, waits=False) == {(WRITE, X, READ, X)}


def test_the_completion_of_a_copy_says_nothing_of_what_its_thread_did_before():
    assert copied(fence=True, read=True) == {(WRITE, Y, READ, Y)}


def test_a_difference_is_reduced(monkeypatch):
    """If the model knew no barrier, a program with one would be reduced to the access that the prologue races with."""
    steps = (Step(("st.weak.shared.u32 [s+0], 5;",)), Step(("st.weak.global.u32 [%rd1+0], 5;",)))
    rounds = Round((steps, ()), ("bar.sync 0;",)), Round(((), (Step(("ld.weak.shared.u32 %r9, [s+0];",)),)))
    program = Program(((0, 0), (0, 32)), 1, 1, (), rounds)
    assert compare(program) is None
    monkeypatch.setattr("tests.memory_model.Execution.barriers", lambda self: self.identity & False)
    difference = reduce(compare(program))
    assert difference.missed
    assert [len(steps) for each in difference.program.rounds for steps in each.steps if steps] == [1]


COPY_BACK = "cp.async.bulk.global.shared::cta.bulk_group [%rd1+0], [%r3+128], 16;"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+128], [%rd1+0], 16, [%r3+192];"
STORE = COPY_BACK, "cp.async.bulk.commit_group;"
LOAD = "mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [s+192], 16;", COPY
WAIT = "{L}: mbarrier.test_wait.parity.shared::cta.b64 %p3, [s+192], 0;", "@!%p3 bra {L};"
READ_X, WRITE_X = "ld.weak.global.u32 %r9, [%rd1+0];", "st.weak.global.u32 [%rd1+0], 7;"
SIGNAL, REPLY = "st.release.gpu.shared::cluster.u32 [%q0+64], 1;", "st.release.sys.shared.u32 [s+64], 2;"
WIDE = "st.volatile.shared.u64 [s+64], 1;"
NARROW = "ld.relaxed.cta.shared.u32 %r9, [s+64];"
FAR_STORE, TAKE = "st.relaxed.gpu.global.u32 [%rd1+64], 1;", "atom.relaxed.gpu.global.exch.b32 %r9, [%rd1+64], 2;"
NARROW_LOAD = "ld.acquire.cta.global.u32 %r9, [%rd1+64];"
FIRST_WIDE, LAST_WIDE = (f"st.release.sys.shared.u64 [s+64], {value};" for value in (1, 2))
HALF, SMALLER, LAST = (
    "ld.acquire.sys.shared.u32 %r9, [s+68];",
    "st.release.cta.shared.u32 [s+64], 2;",
    "st.volatile.shared.u32 [s+64], 3;",
)
READ_STAGE, DONE, MEET, MEET_4 = (
    "ld.weak.shared.u32 %r9, [s+128];",
    "cp.async.bulk.wait_group 0;",
    "bar.sync 0;",
    "bar.sync 1, 128;",
)
LOOK, LOOK_NEAR = (f"ld.relaxed.{scope}.global.u32 %r9, [%rd1+0];" for scope in ("gpu", "cta"))
LOOK_TOO, PUT, PUT_TOO = (
    "ld.volatile.global.u32 %r9, [%rd1+0];",
    *(f"st.relaxed.gpu.global.u32 [%rd1+0], {n};" for n in (8, 9)),
)
LOOK_FAR_NEAR, LOOK_FAR = (f"ld.acquire.{scope}.shared::cluster.u32 %r9, [%q1+64];" for scope in ("cta", "sys"))
OWN_SIGNAL = "red.release.cluster.shared.add.u32 [s+64], 1;"
ADD = "atom.relaxed.gpu.global.add.u32 %r9, [%rd1+0], 5;"
FIVE_WARPS = tuple((0, 32 * warp) for warp in range(5))
REDUCE = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1+0], [%r3+128], 16;"
REDUCTION = REDUCE, "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;"
SEND = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%q1+0], 7, [%q1+192];"
EXPECT, FAR_WEAK = (
    "mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [s+192], 4;",
    "st.weak.shared::cluster.u32 [%q1+0], 8;",
)
MEET_ALL = "barrier.cluster.arrive;", "barrier.cluster.wait;"
WARPS, CLUSTER, LANES = ((0, 0), (0, 32)), ((0, 0), (1, 0), (0, 32)), ((0, 0), (0, 1), (0, 2))
COPY_IN, STAGED = "cp.async.cg.shared.global [s+128], [%rd1+0], 16;", "cp.async.wait_all;"
COPIED_AND_TOLD = COPY_IN, STAGED, "st.release.cta.shared.u32 [s+64], 1;"
SEEN = "{L}: ld.acquire.cta.shared.u32 %r9, [s+64];", "setp.eq.u32 %p3, %r9, 0;", "@%p3 bra {L};"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("threads", "rounds", "race"),
    [
        (WARPS, [[[STORE, READ_X], []]], {COPY_BACK, READ_X}),
        (WARPS, [[[STORE, WRITE_X], []]], {COPY_BACK, WRITE_X}),
        (WARPS, [[[LOAD, WRITE_X, WAIT], []]], {COPY, WRITE_X}),
        (WARPS, [[[LOAD], []], [[], [WRITE_X]], [[WAIT], []]], {COPY, WRITE_X}),
        (WARPS, [[[LOAD, READ_X], [WAIT, WRITE_X]]], {WRITE_X, READ_X}),
        (CLUSTER, [[[], [SIGNAL], []], [[REPLY], [], []], [[], [], [NARROW]]], {NARROW, SIGNAL}),
        (WARPS, [[[WIDE, REPLY], []], [[], [NARROW]]], {NARROW, WIDE}),
        (CLUSTER, [[[], [FAR_STORE], []], [[TAKE], [], []], [[], [], [NARROW_LOAD]]], {NARROW_LOAD, FAR_STORE}),
        (WARPS, [[[FIRST_WIDE], []], [[], [LAST_WIDE, HALF]]], {HALF, FIRST_WIDE}),
        (LANES, [[[WIDE, SMALLER, LAST], [], []], [[], [], [NARROW]]], {NARROW, WIDE}),
        (WARPS, [[[LOAD, READ_X], []], [[], [READ_X, WAIT, WRITE_X]]], {WRITE_X, READ_X}),
        (CLUSTER, [[[SEND, WRITE_X], [EXPECT, WAIT, READ_X], []]], {WRITE_X, READ_X}),
        (CLUSTER, [[[SEND, FAR_WEAK, MEET_ALL], [EXPECT, MEET_ALL, WAIT], [MEET_ALL]]], {SEND, FAR_WEAK}),
        (WARPS, [[[REDUCTION, MEET, MEET], [MEET, READ_X, MEET]]], {REDUCE, READ_X}),
        (WARPS, [[[REDUCTION, MEET, MEET], [MEET, WRITE_X, MEET]]], {REDUCE, WRITE_X}),
        (WARPS, [[[READ_STAGE, STORE, DONE, MEET], [MEET, LOAD]]], {READ_STAGE, COPY}),
        (CLUSTER, [[[LOOK_NEAR, LOOK], [], []], [[], [], [PUT]], [[], [PUT_TOO], []]], {LOOK_NEAR, PUT_TOO}),
        (FIVE_WARPS, [[[LOOK], [], [], [], []], [[], [LOOK_TOO, MEET_4], [], [], []], [[], [], [LOOK_TOO, MEET_4], [], []],
                      [[], [], [], [PUT, MEET_4], [MEET_4, WRITE_X]]], {LOOK, WRITE_X}),
        (WARPS, [[[REDUCTION, MEET, MEET], [MEET, PUT_TOO, MEET]]], {REDUCE, PUT_TOO}),
        (WARPS, [[[REDUCTION], []], [[], [ADD]]], {REDUCE, ADD}),
        (CLUSTER, [[[LOOK_FAR_NEAR, LOOK_FAR], [], []], [[], [OWN_SIGNAL], []]], {LOOK_FAR_NEAR, OWN_SIGNAL}),
    ],
    ids=["read-back", "written-twice", "own-source", "source", "read-after-a-copy", "hidden-store", "hidden-size",
         "hidden-by-an-atom", "size-behind-another-thread", "size-behind-two-others", "read-before-a-copy",
         "store-after-a-send", "own-store-after-a-send", "read-reduced", "written-reduced", "generic-read-before-a-store", "scope-behind-a-write", "third-reader-behind-a-write", "store-after-a-reduction", "atom-in-a-reduction", "narrow-read-of-another-block"],
)  # fmt: skip
def test_races_that_random_programs_showed(threads, rounds, race, schedule):
    """Each was silent once: accesses to what a bulk copy in flight reads or writes, and stores that others hide."""
    steps = [[[Step((one,) if isinstance(one, str) else one) for one in thread] for thread in each] for each in rounds]
    blocks = 1 + max(block for block, _ in threads)
    program = Program(threads, blocks, blocks, (1,), tuple(Round(tuple(map(tuple, each))) for each in steps))
    judged, lines = verdict(program, schedule), program.text().split("\n")
    assert race in [{lines[line - 1] for line in pair} for pair in judged.detector]
    assert race in [{lines[line - 1] for line in pair} for pair, _ in judged.possible]


MEET_2, OVERWRITE, PUT_FAR = (
    "bar.sync 1, 64;",
    "st.weak.shared.u32 [s+128], 7;",
    "st.weak.shared::cluster.u32 [%q1+4], 8;",
)
SEND_TOO = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%q1+4], 7, [%q1+200];"
EXPECT_TOO = "mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [s+200], 4;"
LOAD_TOO, WAIT_TOO = (tuple(line.replace("+192]", "+200]") for line in lines) for lines in (LOAD, WAIT))
COPY_TOO = LOAD_TOO[1]
ANSWERED = "{L}: ld.acquire.cluster.shared.u32 %r9, [s+64];", "setp.eq.u32 %p3, %r9, 0;", "@%p3 bra {L};"
ANSWER = "st.release.cluster.shared::cluster.u32 [%q0+64], 1;"


@pytest.mark.parametrize("schedule", [*SCHEDULES, "random:16", "random:17"])
@pytest.mark.parametrize(
    ("threads", "rounds", "race"),
    [
        (WARPS, [[[LOAD, MEET_2], [MEET_2, WRITE_X]], [[WAIT], []]], {COPY, WRITE_X}),
        (WARPS, [[[LOAD, MEET_2], [MEET_2, OVERWRITE]], [[WAIT], []]], {COPY, OVERWRITE}),
        (WARPS, [[[LOAD, MEET_2], [MEET_2, LOAD_TOO]], [[WAIT], [WAIT_TOO]]], {COPY, COPY_TOO}),
        (CLUSTER, [[[SEND_TOO, SEND, ANSWERED, MEET_2], [EXPECT_TOO, EXPECT, WAIT, ANSWER], [MEET_2, PUT_FAR]]], {SEND_TOO, PUT_FAR}),
    ],
    ids=["source", "destination", "two-copies", "st.async"],
)  # fmt: skip
def test_a_barrier_of_the_issuing_warp_orders_nothing_after_a_copy_that_landed(threads, rounds, race, schedule):
    """The mbarrier alone shows that it has. Under some schedules the copy lands before the barrier."""
    steps = [[[Step((one,) if isinstance(one, str) else one) for one in thread] for thread in each] for each in rounds]
    blocks = 1 + max(block for block, _ in threads)
    program = Program(threads, blocks, blocks, (1, 1), tuple(Round(tuple(map(tuple, each))) for each in steps))
    judged, lines = verdict(program, schedule), program.text().split("\n")
    assert {lines[line - 1] for pair, _ in judged.model for line in pair} == race
    assert {lines[line - 1] for pair in judged.detector for line in pair} == race


@pytest.mark.parametrize("fence", [(), ("fence.proxy.async.shared::cta;",)])
def test_a_bulk_store_of_what_st_async_wrote_needs_a_proxy_fence(fence):
    store = STORE[0].replace("[%r3+128]", "[%r3+0]")
    rounds = ((Step((SEND,)),), (Step((EXPECT, *WAIT, *fence, store, STORE[1], DONE)),), ())
    judged = verdict(Program(CLUSTER, 2, 2, (1,), (Round(rounds),)), "lockstep")
    assert bool(judged.model) == bool(judged.detector) == (not fence)


RELEASE = "st.release.gpu.global.u32 [%rd1+64], 1;"
FENCED = "fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [%rd1+64], 1;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("release", "read", "fence", "race"),
    [
        ((RELEASE,), "acquire.cta", ("fence.acq_rel.gpu;",), False),
        ((RELEASE,), "relaxed.cta", ("fence.sc.gpu;",), False),
        (FENCED, "acquire.cta", ("fence.acq_rel.gpu;",), False),
        ((RELEASE,), "relaxed.cta", ("fence.acq_rel.cta;",), True),
        ((RELEASE,), "acquire.cta", (), True),
    ],
)
def test_an_atomic_of_the_readers_block_passes_a_release_on(release, read, fence, race, schedule):
    """A read of block scope observes the atomic, and the fence after it reaches the thread that released."""
    take = "atom.relaxed.gpu.global.cas.b32 %r9, [%rd1+64], 1, 2;"
    atomic = Step((f"{{L}}: {take}", "setp.ne.u32 %p3, %r9, 1;", "@%p3 bra {L};", "bar.sync 1, 64;"))
    reader = Step(("bar.sync 1, 64;", f"ld.{read}.global.u32 %r9, [%rd1+64];", *fence, READ_X))
    program = Program(
        ((0, 0), (1, 32), (1, 0)), 2, 1, (), (Round(((Step((WRITE_X, *release)),), (atomic,), (reader,))),)
    )
    judged, lines = verdict(program, schedule), program.text().split("\n")
    racing = {WRITE_X, READ_X} if race else set()
    assert {lines[line - 1] for pair, _ in judged.model for line in pair} == racing
    assert {lines[line - 1] for pair in judged.detector for line in pair} == racing


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_reductions_in_flight_do_not_race_with_each_other(schedule):
    rounds = Round(((Step(REDUCTION),), (Step(REDUCTION),)), (MEET,)), Round(((Step((DONE,)),), ()), (MEET,))
    judged = verdict(Program(WARPS, 1, 1, (1,), rounds), schedule)
    assert not judged.possible
    assert not judged.detector


def test_the_read_of_a_copy_hides_no_read_of_another_lane():
    """The finding may name the copy: the two lanes are of one warp."""
    rounds = ((Step((READ_X,)),), (), ()), ((), (Step(COPIED_AND_TOLD),), (Step(SEEN), Step((WRITE_X,))))
    program = Program(LANES, 1, 1, (1,), tuple(map(Round, rounds)))
    assert {
        program.text().split("\n")[line - 1] for pair, _ in verdict(program, "lockstep").model for line in pair
    } == {
        READ_X,
        WRITE_X,
    }
    assert compare(program) is None


def test_lanes_that_read_a_word_are_weak_or_strong_each_for_itself():
    """The weak read is ordered by the mbarrier. The other one is not, but morally strong with the store."""
    read, told = Step(("ld.weak.shared.u32 %r9, [s+0];",)), Step(("mbarrier.arrive.shared::cta.b64 %rd3, [s+192];",))
    strong = Step(("ld.acquire.gpu.shared.u32 %r9, [s+0];",))
    last = Step(WAIT), Step(("st.release.cta.shared.u32 [s+0], 1;",))
    rounds = Round(((), (strong,), ())), Round(((read, told), (), last))
    assert compare(Program(LANES, 1, 1, (1,), rounds)) is None


def test_a_proxy_fence_counts_for_the_lanes_of_its_warp():
    """A documented limit: without the fence the race is found, and in another warp the fence does not count."""
    fence, found = (Step(("fence.proxy.async;",)),), []
    for threads, steps in ((LANES, ()), (LANES, fence), (((0, 0), (0, 32), (0, 64)), fence)):
        rounds = (
            Round(((), (), (Step((WRITE_X,)),)), ("bar.sync 0;",)),
            Round((steps, (), ())),
            Round(((), (Step(LOAD),), ())),
        )
        program = Program(threads, 1, 1, (1,), rounds)
        assert compare(program) is None
        judged = verdict(program, "lockstep")
        assert judged.possible
        found.append(bool(judged.detector))
    assert found == [True, False, True]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_pair_of_instructions_may_race_in_several_places(schedule):
    """A bulk store reads what cp.async wrote, and writes what cp.async read: neither place may hide the other."""
    steps = ((Step((COPY_IN, STAGED)), Step(STORE)), ())
    program = Program(WARPS, 1, 1, (1,), (Round(steps),))
    judged, lines = verdict(program, schedule), program.text().split("\n")
    pair = lines.index(COPY_IN) + 1, lines.index(COPY_BACK) + 1
    assert {(lines, place.block) for lines, place in judged.possible} == {(pair, 0), (pair, -1)}
    assert judged.model == {(pair, Place(0, 128, 16))}
    assert judged.detector == {pair[::-1]}
    assert compare(program) is None


@pytest.mark.cases(8)
@pytest.mark.parametrize("seed", range(40))
def test_the_detector_agrees_on_random_programs(seed):
    difference = compare(generate(seed))
    assert difference is None, f"{difference}\n{difference.program.text()}"


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(20))
def test_the_detector_agrees_on_many_random_programs(part):
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        difference = compare(generate(seed))
        assert difference is None, f"{difference}\n{difference.program.text()}"
