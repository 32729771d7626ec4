"""Degrees of findings: rules of the manual that shipped kernels break are strict, and let parsed PTX run to its end."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import EmulationError, b64, config, ptr, u32
from ptxdsl.check.examples import Example, checked
from ptxdsl.check.formats import as_github, as_json, as_sarif, as_text
from ptxdsl.emulate import Degree
from ptxdsl.emulate.run import core

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
MODULE = ".shared .align 128 .b8 s[4096]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;"
BEGIN = """.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
mov.u32 %r2, s; mov.u32 %r3, full; mov.u32 %r4, empty; shl.b32 %r5, %r1, 2; add.u32 %r6, %r2, %r5;
mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd2, %rd4;
"""
INIT = "@%p1 mbarrier.init.shared.b64 [%r3], 1;\n@%p1 mbarrier.init.shared.b64 [%r4], 32;\n"
FENCE = "fence.mbarrier_init.release.cluster;\n"
LOAD = """mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r3], 128;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [SOURCE], 128, [%r3];
"""
FULL = "FULL{0}: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], {0};\n@!%p2 bra FULL{0};\n"
EMPTY = "EMPTY: mbarrier.try_wait.parity.shared.b64 %p2, [%r4], 0;\n@!%p2 bra EMPTY;\n"
READ = "ld.shared.u32 %r7, [%r6];\nst.global.u32 [%rd5+{}], %r7;\n"
ONE = "@!%p1 bra {0};\n{1}{0}:\n"


def load(source):
    return LOAD.replace("SOURCE", source)


def roles(first, second):
    """Warp 0 executes the first part, the first thread of warp 1 the second."""
    return f"setp.lt.u32 %p3, %r1, 32;\n@!%p3 bra OTHERS;\n{first}bra END;\nOTHERS:\nsetp.ne.u32 %p4, %r1, 32;\n@%p4 bra END;\n{second}END:\n"


CASES = {
    "mbarrier.init without a fence": (
        INIT + "bar.sync 0;\n" + ONE.format("A", load("%rd1")) + FULL.format(0) + READ.format(0),
        32,
        "race (strict): cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes updates full[0] through the async "
        "proxy, written by thread (0, 0, 0) of block (0, 0, 0) with mbarrier.init.shared.b64 through the generic proxy; "
        "no proxy fence separates the two\n"
        "  <ptx>:15\n  <ptx>:10\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: add a `fence.mbarrier_init.release.cluster` between line 10 and line 15, in the thread that initialised "
        "it",
    ),
    "generic reads before a bulk copy": (
        INIT + FENCE + "bar.sync 0;\n"
        + roles(
            FULL.format(0) + READ.format(0) + "mbarrier.arrive.shared.b64 %rd7, [%r4];\n" + FULL.format(1)
            + READ.format(128),
            load("%rd1") + EMPTY + load("%rd1+128"),
        ),
        64,
        "race (strict): cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes writes s[0] through the async "
        "proxy, read by thread (0, 0, 0) of block (0, 0, 0) with ld.shared.u32 through the generic proxy; no proxy "
        "fence separates the two\n"
        "  <ptx>:34\n  <ptx>:18\n"
        "  by thread (32, 0, 0) of block (0, 0, 0)\n"
        "  help: add a `fence.proxy.async` between line 18 and line 34, in the threads that read, before the barrier that "
        "the other threads wait at",
    ),
    "a bulk store at the end of its block": (
        "mul.wide.u32 %rd6, %r1, 4; add.u64 %rd6, %rd6, %rd1; ld.global.u32 %r7, [%rd6];\n"
        "st.shared.u32 [%r6], %r7;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
        + ONE.format("A", "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 128;\ncp.async.bulk.commit_group;\n"),
        32,
        "unwaited-async (strict): cp.async.bulk.global.shared::cta.bulk_group still reads s[0] when its block ends\n"
        "  <ptx>:15\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: execute cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 in the thread that issued it",
    ),
}  # fmt: skip


def parsed(body):
    return pd.parse(f"{HEAD}{MODULE}\n{BEGIN}{body}ret; }}")["k"]


def arrays(rows=2):
    return np.arange(1, 1 + rows * 32, dtype=np.uint32), np.zeros(rows * 32, np.uint32)


def written(name):
    return slice(None) if name == "generic reads before a bulk copy" else slice(32)


@pytest.mark.parametrize("name", CASES)
def test_strict_findings_of_parsed_ptx_are_reported_and_results_are_written(name):
    body, block, text = CASES[name]
    x, y = arrays()
    report = pd.emulate(parsed(body), 1, block, x, y)
    assert [str(finding) for finding in report.findings] == [text]
    assert report.findings[0].degree == Degree.STRICT == "strict"
    assert not report.errors
    assert (y[written(name)] == x[written(name)]).all()


@pytest.mark.parametrize("name", CASES)
def test_a_launch_of_parsed_ptx_runs_in_spite_of_strict_findings(name):
    body, block, _ = CASES[name]
    x, y = arrays()
    parsed(body)[1, block](x, y)
    assert (y[written(name)] == x[written(name)]).all()


@pytest.mark.parametrize("name", CASES)
def test_strict_findings_are_errors_under_the_setting(name, monkeypatch):
    monkeypatch.setenv("PTXDSL_STRICT", "1")
    body, block, text = CASES[name]
    (x, y), kernel = arrays(), parsed(body)
    report = pd.emulate(kernel, 1, block, x, y)
    assert [str(finding) for finding in report.errors] == [text.replace(" (strict)", "")]
    with pytest.raises(EmulationError):
        kernel[1, block](x, y)
    assert not y.any()


@pytest.mark.parametrize("name", CASES)
def test_strict_findings_are_not_made_without_checks(name):
    body, block, _ = CASES[name]
    x, y = arrays()
    with config.using(strict=True):
        assert not pd.emulate(parsed(body), 1, block, x, y, checks=False).findings
    assert (y[written(name)] == x[written(name)]).all()


@pd.kernel(arch="sm_90a")
def unfenced(x: ptr[u32], y: ptr[u32]):
    tile, full = pd.shared(u32, 32, align=128), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), 128, out="_")
        pd.ptx(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", tile.address(), x, 128, full.address()
        )
    with pd.while_(lambda: ~pd.ptx("mbarrier.try_wait.parity.shared::cta.b64", full.address(), 0)):
        pass
    y[pd.tid.x] = tile[pd.tid.x]


def test_strict_findings_are_errors_in_traced_kernels():
    x, y = arrays(1)
    (finding,) = pd.emulate(unfenced, 1, 32, x, y).findings
    assert (finding.kind, finding.degree) == ("race", "error")
    with pytest.raises(EmulationError):
        unfenced[1, 32](x, y)
    assert not y.any()


def test_reads_that_a_block_barrier_separates_from_the_copy_are_an_error():
    """On an H200 a copy then does overwrite what threads have yet to read."""
    again = load("%rd1+128").replace("%rd3", "%rd8")
    body = INIT + FENCE + "bar.sync 0;\n" + ONE.format("A", load("%rd1")) + FULL.format(0) + READ.format(0)
    body += "bar.sync 0;\n" + ONE.format("B", again) + FULL.format(1) + READ.format(128)
    (finding,) = pd.emulate(parsed(body), 1, 32, *arrays()).findings
    assert (finding.kind, finding.degree) == ("race", "error")
    assert "read by thread (0, 0, 0) of block (0, 0, 0) with ld.shared.u32 through the generic proxy" in finding.message


def test_an_unfenced_write_is_an_error_though_unfenced_reads_of_the_same_bytes_are_strict():
    body = CASES["generic reads before a bulk copy"][0]
    arrive = "mbarrier.arrive.shared.b64 %rd7, [%r4];\n"
    body = body.replace(arrive, "st.shared.u32 [%r6], %r1;\n" + arrive)
    (finding,) = pd.emulate(parsed(body), 1, 64, *arrays()).findings
    assert (finding.kind, finding.degree) == ("race", "error")
    assert "written by thread" in finding.message


def test_a_strict_finding_does_not_hide_an_error_at_the_same_instruction():
    """In the first round nothing orders the initialisation before the proxy; in the second, reads before the copy."""
    loop = "mov.u32 %r9, 0;\nAGAIN:\n" + ONE.format("A", load("%rd1"))
    loop += "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r9;\n@!%p2 bra WAIT;\n" + READ.format(0)
    loop += "bar.sync 0;\nadd.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 2;\n@%p5 bra AGAIN;\n"
    report = pd.emulate(parsed(INIT + "bar.sync 0;\n" + loop), 1, 32, *arrays())
    assert [(finding.kind, finding.degree) for finding in report.findings] == [("race", "strict"), ("race", "error")]


MISUSE = {
    "barrier": "bar.sync 1, 96;\n",
    "mbarrier": "@%p1 mbarrier.init.shared.b64 [%r3], 1;\n@%p1 mbarrier.arrive.shared.b64 %rd3, [%r3], 2;\n",
    "uninitialized": "st.global.u32 [%rd5], %r7;\n",
    "race": "st.shared.u32 [%r2], %r1;\n",
}


@pytest.mark.parametrize("kind", MISUSE)
def test_without_checks_misuse_keeps_no_launch_from_its_end(kind, monkeypatch):
    body = MISUSE[kind] + "st.global.u32 [%rd5], %r1;\n"
    assert [f.kind for f in pd.emulate(parsed(body), 1, 32, *arrays()).findings] == [kind]
    x, y = arrays()
    assert not pd.emulate(parsed(body), 1, 32, x, y, checks=False).findings
    assert (y[:32] == np.arange(32)).all()
    monkeypatch.setenv("PTXDSL_CHECKS", "off")
    y[:] = 99
    parsed(body)[1, 32](x, y)
    assert (y[:32] == np.arange(32)).all()


def test_without_checks_a_launch_continues_after_an_access_outside_of_an_array(monkeypatch):
    monkeypatch.setattr(core, "STEPS_AFTER_ERROR", 10)
    loop = "ld.global.u32 %r7, [%rd5+4096];\nmov.u32 %r9, 0;\nAGAIN:\nadd.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 50;\n@%p5 bra AGAIN;\n"
    reports = [pd.emulate(parsed(loop), 1, 32, *arrays(), checks=checks) for checks in (True, False)]
    assert [[f.kind for f in report.findings] for report in reports] == [["out-of-bounds"]] * 2
    assert reports[0].instructions < 32 * 50 < reports[1].instructions


def test_check_and_its_fixture_pass_with_strict_findings():
    body, block, text = CASES["a bulk store at the end of its block"]
    kernel, example = parsed(body), Example(1, block, arrays())
    for strict, level in ((False, "warning"), (True, "error")):
        with config.using(strict=strict):
            result = checked(kernel, "k", example)
        assert result.failed is strict
        assert f'"degree": "{"error" if strict else "strict"}"' in as_json([result])
        assert f'"level": "{level}"' in as_sarif([result])
        assert as_github([result]).startswith(f"::{level} title=ptxdsl%3A unwaited-async")
        assert (
            as_text([result])
            == f"k[1, 32](uint32[64], uint32[64]): 1 finding\n{text if not strict else text.replace(' (strict)', '')}\n"
        )
