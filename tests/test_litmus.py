"""Litmus tests of the PTX memory model with weak accesses, and the verdicts that Dat3M publishes for them.

Dat3M (github.com/hernanponcedeleon/Dat3M: litmus/PTX, and PTXv7_5-expected.csv) says whether threads can see a stale value, or a
value that no interleaving explains. Where they can, the accesses must race; where they cannot, they must be ordered once the
threads wait for the flags of which the condition speaks. Left out are tests without weak accesses, of several GPUs, of surfaces,
textures and aliases, and those whose condition excludes one outcome of accesses that race all the same.

A test is a line: threads between bars, each with its block in front. `W x` and `R x` are weak accesses. `set`, `get`, `add`,
`exch` and `wait` (a loop) are strong, with order and scope, and may end with a value; `take` is a loop of `atom.cas`.
`ticket` and `turn` are the two halves of a ticket lock. `bar 1 2` is a barrier for two warps, `arrive` does not wait there.
"""

import pytest

from tests.random_programs import SCHEDULES, Program, Round, Step, verdict

STALE = """
MP-cta: 0 W x; set.release.cta y | 1 wait.acquire.cta y; R x
MP-dlb-no-fence-1: 0 W x; W y | 1 R y; fence.sc.gpu; R x
MP-dlb-no-fence-2: 0 W x; fence.sc.gpu; W y | 1 R y; R x
LB-dlb-no-fence-1: 0 wait.relaxed.gpu y; W x | 1 R x; fence.sc.gpu; exch.relaxed.gpu y
LB-dlb-no-fence-2: 0 wait.relaxed.gpu y; fence.sc.gpu; W x | 1 R x; exch.relaxed.gpu y
LB+RMW-a: 0 wait.acquire.gpu y; W x | 0 add.relaxed.gpu x | 0 get.relaxed.gpu x; set.release.gpu y
SL-cas-minus: 0 W x; exch.relaxed.gpu y | 1 take.relaxed.gpu y; R x
SL-future-minus: 0 R x; W y; fence.sc.gpu | 1 take.relaxed.gpu y; W x
Ticketlock-acq2rlx-2: 0 ticket.acquire.gpu z; turn.relaxed.gpu y; W x; add.release.gpu y
  | 0 ticket.acquire.gpu z; turn.acquire.gpu y; W x; add.release.gpu y
Ticketlock-rel2rlx: 0 ticket.acquire.gpu z; turn.acquire.gpu y; W x; add.relaxed.gpu y
  | 0 ticket.acquire.gpu z; turn.acquire.gpu y; W x; add.release.gpu y
XF-Barrier-rlx: 0 W x; wait.relaxed.gpu y; bar 1 1; set.relaxed.gpu y 2
  | 1 bar 1 2; set.relaxed.gpu y; wait.relaxed.gpu y 2; bar 2 2; R x | 1 bar 1 2; bar 2 2
XF-Barrier-weak: 0 W x; R y; bar 1 1; W y | 1 bar 1 2; W y; R y; bar 2 2; R x | 1 bar 1 2; bar 2 2
Atom-plus-location-weak_: 0 add.acq_rel.cta x | 1 add.acq_rel.cta x
Cause-base-weak: 0 W x; set.release.sys y | 1 set.release.gpu x 2; R x; set.release.sys z
  | 2 wait.acquire.sys y; wait.acquire.sys z; R x
Co-Total-3-threads-scope-same: 0 W x; set.release.sys y | 0 W x; set.release.sys z
  | 0 wait.acquire.sys y; wait.acquire.sys z; R x; R x
Co-Total-4-threads: 0 W x; set.release.sys y | 0 W x; set.release.sys z
  | 0 wait.acquire.sys y; wait.acquire.sys z; R x | 0 wait.acquire.sys y; wait.acquire.sys z; R x
CoRR-weak-acquire-weak: 0 set.release.gpu x; W x | 1 R x; get.acquire.gpu x; R x
CoRR-weak-acquire: 0 set.release.gpu x | 1 R x; get.acquire.gpu x
CoRR-weak-weak: 0 set.release.gpu x | 1 R x; R x
CoWW-RR: 0 W x; W x | 0 R x; R x
Coherence-weak: 0 W x | 0 W x | 0 get.acquire.sys x; get.acquire.sys x | 0 get.acquire.sys x; get.acquire.sys x
barrier-not-inscope: 0 W x; bar 1 1 | 1 bar 1 1; R x
PC-bar-sync-arrive: 0 R x; bar 0 2; arrive 1 2 | 0 arrive 1 2; W x; bar 0 2
SB+bar-const-diff: 0 W x; bar 0 1; R y | 0 W y; bar 1 1; R x
SB+bar-diff-cta: 0 W x; bar 1 1; R y | 1 W y; bar 1 1; R x
SB+named-bar-reg-const-diff: 0 W x; bar r0 1; R y | 0 W y; bar 1 1; R x
SB+named-bar-reg-diff: 0 W x; bar r1 1; R y | 0 W y; bar r2 1; R x
SB+sc-cta-outScope: 0 W x; fence.sc.cta; R y | 1 W y; fence.sc.cta; R x
SB-weak: 0 W x; R y | 1 W y; R x
SB+twice-bars-diff: 0 W x; bar 1 2; R y; W z; bar 2 1; R w | 0 W y; bar 1 2; R x; W w; bar 3 1; R z
barrier-instance-id-exists: 0 W x; bar 1 2; R y; R w | 0 W y; bar 1 2; R x; R z
  | 0 W z; bar 2 2; R y; R w | 0 W w; bar 2 2; R x; R z
barrier-logical-id-exists: 0 W x; bar r1 2; R y; R w | 0 W y; bar 1 2; R x; R z
  | 0 W z; bar r2 2; R y; R w | 0 W w; bar 2 2; R x; R z
IRIW1: 0 W x | 1 R x; fence.sc.cta; R y | 1 W x | 1 R x; fence.sc.gpu; R y
IRIW2: 0 W x | 0 R x; fence.sc.cta; R y | 0 W x | 1 R x; fence.sc.gpu; R y
IRIW_gl_cta: 0 W x | 1 R x; fence.sc.gpu; R x | 1 W x | 1 R x; fence.sc.cta; R x
IRIW_uniproc: 0 W x | 1 R x; fence.sc.cta; R x | 1 W x | 1 R x; fence.sc.gpu; R x
IRRWIW1: 0 W x | 1 R x; fence.sc.cta; R y | 1 W x | 1 R x; fence.sc.gpu; W y
IRRWIW2: 0 W x | 1 R x; fence.sc.gpu; R y | 1 W x | 1 R x; fence.sc.cta; W y
IRRWIW3: 0 W x | 0 R x; fence.sc.gpu; R y | 0 W x | 1 R x; fence.sc.cta; W y
IRRWIW4: 0 W x | 0 R x; fence.sc.cta; R y | 0 W x | 1 R x; fence.sc.gpu; W y
IRRWIW_uniproc: 0 W x | 1 R x; fence.sc.cta; R x | 1 W x | 1 R x; fence.sc.gpu; W x
IRWIW_gl_cta: 0 W x | 1 R x; fence.sc.gpu; W y | 1 W y | 1 R y; fence.sc.cta; W x
RWC1: 0 W x | 1 R x; fence.sc.cta; R y | 1 W x; fence.sc.gpu; R y
RWC2: 0 W x | 1 R x; fence.sc.gpu; R y | 1 W x; fence.sc.cta; R y
RWC_uniproc: 0 W x | 1 R x; fence.sc.cta; R x | 1 W x; fence.sc.gpu; R x
WRC1: 0 W x | 1 R x; fence.sc.cta; W y | 1 R x; fence.sc.gpu; R y
WRC2: 0 W x | 1 R x; fence.sc.gpu; W y | 1 R x; fence.sc.cta; R y
WRR+2W: 0 W x | 1 R x; fence.sc.cta; R y | 1 W x; fence.sc.gpu; W y
WRR+2W1: 0 W x | 1 R x; fence.sc.cta; R y | 1 W x; fence.sc.gpu; W y
WRR+2W2: 0 W x | 1 R x; fence.sc.gpu; R y | 1 W x; fence.sc.cta; W y
"""
ORDERED = """
MP-gpu: 0 W x; set.release.gpu y | 0 wait.acquire.gpu y; R x
MP-sys: 0 W x; set.release.sys y | 0 wait.acquire.sys y; R x
MP-cta-gpu: 0 W x; set.release.cta y | 0 wait.acquire.gpu y; R x
MP-sys-fence: 0 W x; fence.acq_rel.sys; set.relaxed.sys y | 0 wait.relaxed.sys y; fence.acq_rel.sys; R x
MP-3-transitive: 0 W x; set.release.cta y | 0 wait.acquire.cta y; set.release.gpu z | 1 wait.acquire.gpu z; R x
Release-acquire-pattern: 0 W x; set.release.sys y; set.relaxed.sys y 2 | 1 wait.relaxed.sys y 2; fence.acq_rel.sys; R x
Cause-base-strong: 0 set.release.gpu x | 1 wait.acquire.gpu x; W x; set.release.sys y
  | 2 wait.acquire.sys y; get.acquire.sys y; R x
CoRR-acquire-weak: 0 set.release.gpu x | 1 wait.acquire.gpu x; R x
CoRW-R: 0 set.release.sys x | 1 wait.acquire.sys x; W x; R x
CoRW_: 0 set.release.gpu x | 1 wait.acquire.gpu x; W x
CoWW_: 0 W x; W x
CoWW-R: 0 W x; W x; get.acquire.sys x
LB+RMW-b: 0 wait.acquire.gpu y; W x | 0 get.relaxed.gpu x; set.release.gpu y
LB-dlb: 0 wait.relaxed.gpu y; fence.sc.gpu; W x | 1 R x; fence.sc.gpu; exch.relaxed.gpu y
SL-cas-plus: 0 W x; fence.sc.gpu; exch.relaxed.gpu y | 1 take.relaxed.gpu y; fence.sc.gpu; R x
SL-future-plus: 0 R x; fence.sc.gpu; exch.relaxed.gpu y | 1 take.relaxed.gpu y; fence.sc.gpu; W x
Ticketlock-same-gpu: 0 ticket.acquire.gpu z; turn.acquire.gpu y; W x; add.release.gpu y
  | 0 ticket.acquire.gpu z; turn.acquire.gpu y; W x; add.release.gpu y
Ticketlock-acq2rlx-1: 0 ticket.relaxed.gpu z; turn.acquire.gpu y; W x; add.release.gpu y
  | 0 ticket.acquire.gpu z; turn.acquire.gpu y; W x; add.release.gpu y
XF-Barrier-relacq: 0 W x; wait.relaxed.gpu y; bar 1 1; set.release.gpu y 2
  | 1 bar 1 2; set.relaxed.gpu y; wait.acquire.gpu y 2; bar 2 2; R x | 1 bar 1 2; bar 2 2
barrier-inscope: 0 W x; bar 1 2 | 0 bar 1 2; R x
quorum1-fail: 0 W x; bar 1 3 | 0 bar 1 3; R x | 0 bar 1 3
quorum2-fail: 0 R x; bar 1 3 | 0 bar 1 3; W x | 0 bar 1 3
PC-bar-sync-sync-1: 0 R x; bar 0 2; bar 1 2 | 0 bar 0 2; W x; bar 1 2
SB+bar-const-equal: 0 W x; bar 1 2; R y | 0 W y; bar 1 2; R x
SB+named-bar-reg-const-equal: 0 W x; bar r0 2; R y | 0 W y; bar 0 2; R x
SB+named-bar-reg-equal: 0 W x; bar r1 2; R y | 0 W y; bar r1 2; R x
SB+twice-bars: 0 W x; bar 1 2; R y; W z; bar 2 2; R w | 0 W y; bar 1 2; R x; W w; bar 2 2; R z
counter-plain-store-rmw: 0 W x; bar 0 2; add.acq_rel.gpu x | 0 bar 0 2; add.acq_rel.gpu x
counter-plain-store-atomic-load: 0 W x; bar 0 2; get.relaxed.gpu x | 0 bar 0 2; get.relaxed.gpu x
counter-plain-store-plain-load: 0 W x; bar 0 2; R x | 0 bar 0 2; R x
"""
STUCK = """
quorum1-hang: 0 W x; bar 1 4 | 0 bar 1 4; R x | 0 bar 1 4 | 0 R y
quorum2-hang: 0 R x; bar 1 4 | 0 bar 1 4; W x | 0 bar 1 4 | 0 R y
PC-bar-sync-sync-3: 0 R x; bar 0 2; bar 1 2 | 0 bar 1 2; W x; bar 0 2
"""
CROWDED = """
quorum1-pass: 0 W x; bar 1 2 | 0 bar 1 2; R x | 0 bar 1 2
quorum2-pass: 0 R x; bar 1 2 | 0 bar 1 2; W x | 0 bar 1 2
"""
LOOP = ("setp.ne.u32 %p3, %r9, {value};", "@%p3 bra {{L}};")


def step(text, value):
    """One operation as PTX. `value` is what a weak store writes."""
    kind, *rest = text.split()
    name, _, how = kind.partition(".")
    if name == "fence":
        return Step((f"{text};",))
    if name in ("bar", "arrive"):
        number = rest[0].replace("r", "%r1") if rest[0].startswith("r") else rest[0]
        ready = (f"mov.u32 {number}, {rest[0][1:]};",) if number.startswith("%") else ()
        return Step((*ready, f"bar.{'sync' if name == 'bar' else name} {number}, {32 * int(rest[1])};"))
    at = f"[%rd1+{4 * 'xyzw'.index(rest[0])}]"
    number = rest[1] if len(rest) > 1 else "1"
    loop = tuple(line.format(value=number) for line in LOOP)
    return Step({
        "W": (f"st.weak.global.u32 {at}, {value};",),
        "R": (f"ld.weak.global.u32 %r9, {at};",),
        "set": (f"st.{how}.global.u32 {at}, {number};",),
        "get": (f"ld.{how}.global.u32 %r9, {at};",),
        "add": (f"atom.{how}.global.add.u32 %r9, {at}, 1;",),
        "exch": (f"atom.{how}.global.exch.b32 %r9, {at}, 1;",),
        "wait": (f"{{L}}: ld.{how}.global.u32 %r9, {at};", *loop),
        "take": (f"{{L}}: atom.{how}.global.cas.b32 %r9, {at}, 1, 2;", *loop),
        "ticket": (f"atom.{how}.global.add.u32 %r8, {at}, 1;",),
        "turn": (f"{{L}}: ld.{how}.global.u32 %r9, {at};", "setp.ne.u32 %p3, %r9, %r8;", "@%p3 bra {L};"),
    }[name])  # fmt: skip


def program(text):
    """A test as a program whose threads stand in warps of their own."""
    threads, steps, warps = [], [], {}
    for number, thread in enumerate(text.split("|")):
        block, _, body = thread.strip().partition(" ")
        warp = warps[block] = warps.get(block, -1) + 1
        threads.append((int(block), 32 * warp))
        operations = [part.strip() for part in body.split(";")]
        steps.append(tuple(step(part, 100 * number + n + 10) for n, part in enumerate(operations)))
    return Program(tuple(threads), len(warps), 1, (), (Round(tuple(steps)),))


def cases_of(text):
    joined = text.replace("\n  |", " |").strip().split("\n")
    return [pytest.param(program(body), id=name) for name, _, body in (line.partition(": ") for line in joined)]


def verdicts(test):
    return [verdict(test, schedule) for schedule in SCHEDULES]


@pytest.mark.parametrize("test", cases_of(STALE))
def test_stale_values_come_from_races(test):
    """Under one schedule at least: with a lock, the thread that forgets an order must come first or second."""
    judged = verdicts(test)
    assert any(each.detector for each in judged)
    for each in judged:
        assert each.possible if each.detector else not each.model


@pytest.mark.parametrize("test", cases_of(ORDERED))
def test_what_sees_no_stale_value_does_not_race(test):
    for judged in verdicts(test):
        assert not judged.detector
        assert not judged.model
        assert not judged.others


@pytest.mark.parametrize("test", cases_of(STUCK))
def test_barriers_that_lack_a_thread(test):
    assert all(judged.others == ("deadlock",) for judged in verdicts(test))


@pytest.mark.parametrize("test", cases_of(CROWDED))
def test_barriers_of_more_threads_than_they_count(test):
    assert all("barrier" in judged.others for judged in verdicts(test))
