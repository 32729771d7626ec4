"""mbarrier objects: phases, drops, waits, and arrivals of copies."""

import numpy as np
import pytest

from ptxdsl.isa import lookup

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
