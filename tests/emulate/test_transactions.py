"""Mbarriers that wait for bytes: what is expected, what is complete, and which phase that makes."""

import numpy as np
import pytest

from tests.emulate.support import clean, only, run

BARRIER = ".shared .align 8 .b64 bar;"
BEGIN = """
    ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [bar], {count};
    bar.sync 0; @!%p1 bra END;
"""
TOLD = "mbarrier.test_wait.shared.b64 %p2, [bar], %rd2; selp.u32 %r2, 1, 0, %p2; st.global.u32 [%rd1+{place}], %r2;"
HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setattr("tests.emulate.support.HEAD", HEAD)


def told(place):
    return TOLD.replace("{place}", str(4 * place))


def kernel(body, count=1):
    return BEGIN.replace("{count}", str(count)) + body + "\nEND:"


def phases(body, count=1, tests=3):
    """What the tests of a body say, which store 0 or 1."""
    x = np.full(tests, 99, np.uint32)
    clean(run(kernel(body, count), x, module=BARRIER))
    return x.tolist()


def test_a_phase_waits_for_its_bytes():
    body = (
        "mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 48;" + told(0)
        + "mbarrier.complete_tx.shared.b64 [bar], 16;" + told(1)
        + "mbarrier.complete_tx.shared.b64 [bar], 32;" + told(2)
    )  # fmt: skip
    assert phases(body) == [0, 0, 1]


def test_bytes_alone_complete_nothing():
    body = (
        "mov.b64 %rd2, 0; mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 48;"
        "mbarrier.complete_tx.shared.b64 [bar], 48;" + told(0)
        + "mbarrier.arrive.shared.b64 %rd3, [bar];" + told(1)
        + "mbarrier.arrive.shared.b64 %rd3, [bar];" + told(2)
    )  # fmt: skip
    assert phases(body, count=2) == [0, 0, 1]


def test_bytes_may_come_before_they_are_expected():
    body = (
        "mov.b64 %rd2, 0; mbarrier.complete_tx.shared.b64 [bar], 48;" + told(0)
        + "mbarrier.arrive.shared.b64 %rd3, [bar];" + told(1)
        + "mbarrier.expect_tx.shared.b64 [bar], 48;" + told(2)
    )  # fmt: skip
    assert phases(body) == [0, 0, 1]


def test_who_drops_out_with_bytes_is_not_waited_for_again():
    body = (
        "mbarrier.arrive_drop.expect_tx.shared.b64 %rd3, [bar], 16; mbarrier.arrive.shared.b64 %rd2, [bar];" + told(0)
        + "mbarrier.complete_tx.shared.b64 [bar], 16;" + told(1)
        + "mbarrier.arrive.shared.b64 %rd2, [bar];" + told(2)
    )  # fmt: skip
    assert phases(body, count=2) == [0, 1, 1]


def test_an_mbarrier_of_the_own_block_under_its_address_in_the_cluster():
    body = (
        "mov.b64 %rd2, 0; mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [bar], 16;" + told(0)
        + "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [bar], 16;" + told(1)
        + "mbarrier.arrive.shared::cluster.b64 _, [bar];"
        "mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1; selp.u32 %r2, 1, 0, %p2; st.global.u32 [%rd1+8], %r2;"
    )  # fmt: skip
    assert phases(body) == [0, 1, 1]


def test_more_bytes_than_an_mbarrier_counts():
    expect = "mbarrier.expect_tx.shared.b64 [bar], 1048575;\n"
    found = only(run(kernel(expect + expect), np.zeros(1, np.uint32), module=BARRIER))
    assert str(found) == (
        "mbarrier: the phase of the mbarrier expects 2097150 bytes; an mbarrier counts up to 1048575\n"
        "  <ptx>:11\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: expect fewer bytes per phase, or use more mbarriers"
    )


def test_more_arrivals_than_a_phase_waits_for():
    arrive = "mbarrier.arrive.shared.b64 %rd2, [bar];\n"
    body = "mbarrier.expect_tx.shared.b64 [bar], 16;\n" + 2 * arrive
    found = only(run(kernel(body), np.zeros(1, np.uint32), module=BARRIER))
    assert str(found) == (
        "mbarrier: 1 arrival where the phase of the mbarrier waits for 0 more of 1\n"
        "  <ptx>:12\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: initialize the mbarrier with the number of arrivals per phase"
    )


def test_an_arrival_that_must_not_complete_the_phase():
    """The manual leaves open what comes then."""
    last = "mbarrier.arrive.noComplete.shared.b64 %rd2, [bar], 1;"
    found = only(run(kernel(last), np.zeros(1, np.uint32), module=BARRIER))
    assert str(found) == (
        "mbarrier: this arrival completes the phase, which .noComplete must not do\n"
        "  <ptx>:10\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: drop .noComplete from the last arrival of the phase"
    )
    clean(run(kernel("mbarrier.expect_tx.shared.b64 [bar], 16;\n" + last), np.zeros(1, np.uint32), module=BARRIER))


def test_a_deadlock_tells_the_bytes_that_are_lacking():
    body = """mbarrier.arrive.expect_tx.shared.b64 %rd2, [bar], 4096; mbarrier.complete_tx.shared.b64 [bar], 1024;
    AGAIN:
    mbarrier.try_wait.shared.b64 %p2, [bar], %rd2; @!%p2 bra AGAIN;"""
    found = only(run(kernel(body), np.zeros(1, np.uint32), module=BARRIER))
    assert found.kind == "deadlock"
    assert found.message == (
        "every thread is blocked\n"
        "  thread 0 of block (0, 0, 0) waits at mbarrier.try_wait.shared.b64 (<ptx>:12) "
        "for the mbarrier bar[0]: 1 of 1 arrivals received, 3072 bytes still pending"
    )
    assert found.help == "expect_tx announced 3072 bytes more at bar[0] than the copies that complete there transfer"
