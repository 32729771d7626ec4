"""mbarriers are opaque objects: what may access their memory, from mbarrier.init to mbarrier.inval."""

import pytest

from tests.emulate.support import only, run

MODULE = ".shared .align 128 .b64 s[32];"
INIT, INVAL = "mbarrier.init.shared.b64 [s+64], 1;\n", "mbarrier.inval.shared.b64 [s+64];\n"
USE = "mbarrier.arrive.shared.b64 %rd1, [s+64]; mbarrier.test_wait.shared.b64 %p1, [s+64], %rd1; @!%p1 trap;\n"
ZERO = "mov.u32 %r1, 0; st.shared.u32 [s+{}], %r1;\n"


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setattr("tests.emulate.support.HEAD", ".version 8.0\n.target sm_90\n.address_size 64\n")


def launch(body):
    return run(body, parameters="", module=MODULE, block=1)


@pytest.mark.parametrize(
    "body",
    [
        INIT + USE + USE,
        INIT + USE + INVAL + INIT + USE,
        INIT + USE + INVAL + ZERO.format(64) + "ld.shared.u32 %r2, [s+64];",
        INIT + ZERO.format(60) + ZERO.format(72),
        ZERO.format(64) + INIT + USE,
        INIT + "mbarrier.init.shared.b64 [s+72], 1;" + USE + INVAL + "mbarrier.inval.shared.b64 [s+72];",
    ],
)
def test_what_is_allowed(body):
    assert not launch(body).findings


@pytest.mark.parametrize(
    ("then", "says"),
    [
        (INIT, "mbarrier.init.shared.b64 initialises the mbarrier s[8] again, which mbarrier.init.shared.b64 (line 6) initialised"),
        (ZERO.format(64), "st.shared.u32 writes the mbarrier s[8], an opaque object since mbarrier.init.shared.b64 (line 6)"),
        (ZERO.format(68), "st.shared.u32 writes the mbarrier s[8], an opaque object since mbarrier.init.shared.b64 (line 6)"),
        ("ld.shared.v2.b64 {%rd2, %rd3}, [s+64];",
         "ld.shared.v2.b64 reads the mbarrier s[8], an opaque object since mbarrier.init.shared.b64 (line 6)"),
        ("ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [s+64];",
         "ld.shared.v4.b32 reads the mbarrier s[8], an opaque object since mbarrier.init.shared.b64 (line 6)"),
        ("atom.shared.add.u32 %r2, [s+64], 1;",
         "atom.shared.add.u32 updates the mbarrier s[8], an opaque object since mbarrier.init.shared.b64 (line 6)"),
        (INVAL + USE, "mbarrier.arrive.shared.b64 uses the mbarrier s[8] after mbarrier.inval.shared.b64 (line 8) has invalidated it"),
        (INVAL + INVAL, "mbarrier.inval.shared.b64 uses the mbarrier s[8] after mbarrier.inval.shared.b64 (line 8) has invalidated it"),
    ],
)  # fmt: skip
def test_what_is_not(then, says):
    finding = launch(INIT + USE + then).findings[0]
    assert (finding.kind, finding.message) == ("mbarrier", says)


def test_an_mbarrier_that_is_initialised_again_in_words():
    assert str(only(launch(INIT + USE + INIT))) == (
        "mbarrier: mbarrier.init.shared.b64 initialises the mbarrier s[8] again, which mbarrier.init.shared.b64 (line 6) "
        "initialised\n"
        "  <ptx>:8\n"
        "  <ptx>:6\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: initialise each mbarrier once, or execute mbarrier.inval when no thread and no copy uses it any more"
    )


def test_an_mbarrier_that_is_overwritten_in_words():
    assert only(launch(INIT + USE + ZERO.format(64))).help == (
        "execute mbarrier.inval before this, when no thread and no copy uses the mbarrier any more"
    )


def test_a_copy_that_overwrites_an_mbarrier():
    copy = (
        "mov.u32 %r3, s; mov.u32 %r2, 256; mbarrier.arrive.expect_tx.shared.b64 %rd2, [s+64], 256; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [x], %r2, [%r3+64];"
    )
    module = MODULE + " .global .align 128 .b8 x[256];"
    finding = run(INIT + copy, parameters="", module=module, block=1).findings[0]
    assert finding.message == (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes writes the mbarrier s[8], an opaque object "
        "since mbarrier.init.shared.b64 (line 6)"
    )


def test_copies_complete_bytes_at_an_mbarrier():
    copies = (
        "mov.u32 %r3, s; mov.u32 %r2, 256; mbarrier.init.shared.b64 [%r3+256], 2; "
        "fence.mbarrier_init.release.cluster; mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r3+256], 256; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [x], %r2, [%r3+256]; "
        "mov.u32 %r4, t; cp.async.ca.shared.global [%r4], [x], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [%r3+256]; "
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r3+256], 0; @!%p1 bra WAIT;"
    )
    module = ".shared .align 128 .b64 s[40]; .shared .b32 t; .global .align 128 .b8 x[256];"
    assert not run(copies, parameters="", module=module, block=1).findings


def test_blocks_that_follow_have_their_own():
    assert not run(INIT + USE, parameters="", module=MODULE, block=1, grid=500).findings
