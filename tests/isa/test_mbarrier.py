"""mbarrier objects: phases, drops, waits, and arrivals of copies."""

import numpy as np
import pytest

from ptxdsl.emulate import emulate
from ptxdsl.isa import lookup, mbarrier
from ptxdsl.parse import parse

from .fake_step import FakeStep, execute
from .refusals import refusal

LANES = 4
HERE = np.zeros(LANES, np.uint64)


def barrier(count: int) -> FakeStep:
    """A machine with an mbarrier at address 0 whose phases wait for `count` arrivals."""
    m = FakeStep((LANES,), shared=np.full(8, 0xFF, np.uint8))
    execute("mbarrier.init.shared.b64", m, HERE, np.full(LANES, count, np.uint32))
    return m


def arrive(m: FakeStep, lanes: int, text: str = "mbarrier.arrive.shared.b64", count: int | None = None) -> np.ndarray:
    """The states of so many lanes that arrive one after the other."""
    m.shape = (lanes,)
    form = 0 if count is None else next(n for n, i in enumerate(lookup(text)) if len(i.operands) == 3)
    states = execute(text, m, HERE[:lanes], *([] if count is None else [np.full(lanes, count, np.uint32)]), form=form)
    m.shape = (LANES,)
    return states


def complete(m: FakeStep, state: np.ndarray, text: str = "mbarrier.test_wait.shared.b64") -> bool:
    (outcome,) = set(execute(text, m, HERE, np.broadcast_to(state, LANES)).tolist())
    return outcome


def of_parity(m: FakeStep, parity: int) -> bool:
    return complete(m, np.uint32(parity), "mbarrier.test_wait.parity.shared.b64")


def test_a_phase_is_complete_when_all_have_arrived():
    m = barrier(3)
    first = arrive(m, 2)
    assert not complete(m, first[0]) and not of_parity(m, 0)
    arrive(m, 1)
    assert complete(m, first[0]) and complete(m, first[1]) and of_parity(m, 0) and not of_parity(m, 1)
    second = arrive(m, 3)
    assert complete(m, second[0]) and of_parity(m, 1) and not of_parity(m, 0)


def test_the_state_knows_how_many_were_missing():
    states = arrive(barrier(5), 3)
    pending = lookup("mbarrier.pending_count.b64")[0]
    assert pending.op.run(pending, states).tolist() == [5, 4, 3]


def test_an_arrival_may_count_for_several():
    m = barrier(5)
    state = arrive(m, 1, "mbarrier.arrive.noComplete.shared.b64", 4)
    assert not complete(m, state[0])
    arrive(m, 1, count=1)
    assert complete(m, state[0])


def test_who_drops_out_is_not_waited_for_again():
    m = barrier(3)
    arrive(m, 1, "mbarrier.arrive_drop.shared.b64")
    state = arrive(m, 2)
    assert complete(m, state[0])
    state = arrive(m, 2)  # the next phase waits for two
    assert complete(m, state[0])


def test_try_wait_lets_the_lanes_wait():
    m = barrier(1)
    execute("mbarrier.try_wait.parity.shared::cta.b64", m, HERE, np.array([0, 1, 0, 1], np.uint32))
    ((name, ready),) = m.calls
    assert (name, ready.tolist()) == ("suspend", [False, True, False, True])


@pytest.mark.parametrize(("noinc", "others"), [("", 2), (".noinc", 1)])
def test_copies_arrive_when_they_are_done(noinc, others):
    """Without .noinc the arrival of the copies is one that `count` does not include."""
    m = barrier(2)
    m.shape = (1,)
    execute(f"cp.async.mbarrier.arrive{noinc}.shared.b64", m, HERE[:1])
    m.shape = (LANES,)
    ((name, action),) = m.calls
    state = arrive(m, others)
    assert name == "after_copies" and not complete(m, state[0])
    action(m)
    assert complete(m, state[0])


@pytest.mark.parametrize("count", [0, 1 << 20])
def test_a_count_that_does_not_fit(count):
    expected = f"mbarrier.init.shared.b64: `count` is {count}; an mbarrier counts from 1 to 1048575 arrivals"
    assert refusal(f"mbarrier.init.shared.b64 [tile], {count};") == expected


KERNEL = """.version 7.1
.target sm_80
.address_size 64
.visible .entry k(.param .u64 source, .param .u64 target) {
.shared .align 16 .b8 tile[1024];
.shared .align 8 .b64 full;
.reg .b32 %t, %at, %other; .reg .b64 %s, %d, %o, %state; .reg .pred %p, %first; .reg .b32 %x<4>;
mov.u32 %t, %tid.x; setp.ne.u32 %first, %t, 0;
@%first bra ready;
mbarrier.init.shared.b64 [full], COUNT;
ready: bar.sync 0;
ld.param.u64 %s, [source]; ld.param.u64 %d, [target];
mul.wide.u32 %o, %t, 16; add.u64 %s, %s, %o; add.u64 %d, %d, %o;
mov.u32 %at, tile; shl.b32 %x0, %t, 4; add.u32 %at, %at, %x0;
cp.async.ca.shared.global [%at], [%s], 16;
cp.async.mbarrier.arrive.noinc.shared.b64 [full];
wait: mbarrier.test_wait.parity.shared.b64 %p, [full], 0;
@!%p bra wait;
xor.b32 %other, %x0, 512; mov.u32 %at, tile; add.u32 %at, %at, %other;
ld.shared.v4.b32 {%x0, %x1, %x2, %x3}, [%at];
st.global.v4.b32 [%d], {%x0, %x1, %x2, %x3};
ret;
}
"""


def run(count: int) -> tuple[np.ndarray, np.ndarray, list]:
    """What 64 threads store that copy 16 bytes each, and then read those of the other warp."""
    module = parse(KERNEL.replace("COUNT", str(count)))
    source, target = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    report = emulate(module.kernels[0], module, (1, 1, 1), (64, 1, 1), [source, target])
    return source, target, report.findings


def test_copies_are_there_when_their_barrier_is_complete():
    source, target, findings = run(64)
    assert findings == []
    np.testing.assert_array_equal(target.reshape(2, 128), source.reshape(2, 128)[::-1])


def test_a_barrier_that_waits_for_too_many_is_a_deadlock():
    *_, findings = run(65)
    assert [f.kind for f in findings] == ["deadlock"]


@pytest.mark.parametrize("each", [1, 3, 40])
def test_arrivals_in_one_call_are_those_one_after_another(each, rng):
    """Over several phases, with more arrivals than one phase awaits, and with bytes that a phase still expects."""
    for bytes in (0, 16):
        counts = rng.integers(1, 3, 100).astype(np.uint64)
        word = mbarrier.expect(np.array([each << int(mbarrier.EACH) | each], np.uint64), np.array([bytes]))
        result = mbarrier.ArrivalScan().accumulate(np.concatenate([word, counts]))
        for n, count in enumerate(counts):
            word = mbarrier.arrive(word, count[np.newaxis])
            assert result[n + 1] == word[0]
