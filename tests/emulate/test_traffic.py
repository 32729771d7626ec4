"""Wavefronts of shared memory and sectors of global memory, against the least that would do; counters by line."""

import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import b64, f16, ptr, u32
from ptxdsl.layout import Layout
from tests.emulate.support import clean, run

BODY = """mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, {stride}; mov.u32 %r3, s; add.u32 %r2, %r2, %r3;
    st.shared{kind} [%r2], {value};"""
MODULE = ".shared .align 128 .b8 s[8192];"
QUAD = "{%r1, %r1, %r1, %r1}"


@pytest.mark.parametrize(("stride", "kind", "value", "taken", "ideal"), [
    (4, ".u32", "%r1", 1, 1), (8, ".u32", "%r1", 2, 1), (128, ".u32", "%r1", 32, 1), (132, ".u32", "%r1", 1, 1),
    (0, ".u32", "7", 1, 1), (16, ".v4.u32", QUAD, 4, 4), (128, ".v4.u32", QUAD, 32, 4), (144, ".v4.u32", QUAD, 4, 4),
    (2, ".u16", "1", 1, 1),
])  # fmt: skip
def test_wavefronts(stride, kind, value, taken, ideal):
    body = BODY.format(stride=stride, kind=kind, value=value)
    report = clean(run(body, parameters="", module=MODULE, traffic=True))
    (traffic,) = report.bank_conflicts
    assert (traffic.taken, traffic.ideal) == (taken, ideal)
    assert traffic.name == f"st.shared{kind}"
    assert traffic.location.line == 7


@pytest.mark.parametrize(("stride", "taken", "ideal"), [(4, 4, 4), (32, 32, 4), (0, 1, 1), (8, 8, 4)])
def test_sectors(stride, taken, ideal):
    body = f"""ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, {stride}; add.u64 %rd2, %rd1, %rd2;
        ld.global.u32 %r2, [%rd2];"""
    report = clean(run(body, np.zeros(512, np.uint32), traffic=True))
    (traffic,) = report.global_sectors
    assert (traffic.taken, traffic.ideal) == (taken, ideal)


def test_nothing_is_counted_unless_asked_for():
    report = clean(run(BODY.format(stride=4, kind=".u32", value="%r1"), parameters="", module=MODULE))
    assert report.bank_conflicts == report.global_sectors == report.counters == []


SHARED = Layout((32, 8), (8, 1))


@pd.kernel
def reversed_rows(source: ptr[f16], target: ptr[f16], used: u32):
    tile = pd.shared(f16, SHARED)
    pd.ptx.cp.async_.cg.shared.global_(tile.address(pd.tid.x, 0), source + pd.tid.x * 8, 16, used)
    pd.ptx.cp.async_.wait_all()
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x < 5):
        target[pd.tid.x] = tile[31 - pd.tid.x, 0]


def counted(used=16, **options):
    arrays = np.zeros(256, np.float16), np.zeros(32, np.float16)
    return clean(pd.emulate(reversed_rows, 1, 32, *arrays, used, traffic=True, **options))


TABLE = """\
line                instructions                                                                             bytes                   wavefronts  sectors
test_traffic.py:00  64 ld.param.u64, 64 cvta.to.global.u64, 64 mov.u32, 32 ld.param.u32, 32 ret              640 param
test_traffic.py:03  32 shl.b32, 32 mad.lo.u32, 32 mul.lo.u32, 32 mad.wide.u32, 32 cp.async.cg.shared.global  512 shared, 512 global  4 (4)       16 (16)
test_traffic.py:04  32 cp.async.wait_all
test_traffic.py:05  32 bar.sync
test_traffic.py:06  32 setp.lt.u32, 27 bra
test_traffic.py:07  5 sub.u32, 5 shl.b32, 5 mad.lo.u32, 5 ld.shared.b16, 5 mad.wide.u32, 5 st.global.b16     10 shared, 10 global    1 (1)       1 (1)"""


def test_the_table_has_a_row_for_each_line():
    report = counted()
    first = report.counters[0].location.line
    table = re.sub(r"(?<=py:)\d+", lambda line: f"{int(line[0]) - first:02}", report.table())
    assert table == TABLE
    assert sum(line.instructions.total() for line in report.counters) == report.instructions


@pytest.mark.parametrize(("used", "bytes", "sectors"), [(16, 512, 16), (6, 192, 16), (0, 0, 0)])
def test_a_copy_reads_only_the_bytes_that_it_uses(used, bytes, sectors):
    (copy,) = (line for line in counted(used).counters if line.bytes["shared"] == 512)
    assert (copy.bytes["global"], copy.sectors) == (bytes, sectors)


def test_a_line_adds_up_what_all_its_instructions_did():
    body = """mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 7; mov.u32 %r3, s; add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1; st.shared.u32 [%r2+4], %r1; ld.shared.u32 %r4, [%r2];"""
    report = clean(run(body, parameters="", module=MODULE, traffic=True))
    line = report.counters[-1]
    assert (line.location.line, line.instructions["st.shared.u32"], line.instructions["ld.shared.u32"]) == (7, 64, 32)
    assert line.bytes == {"shared": 3 * 128}
    assert (line.wavefronts, line.ideal_wavefronts) == (96, 3)


def test_the_end_that_nobody_wrote_has_no_line():
    report = clean(run("mov.u32 %r1, 7;", parameters="", traffic=True))
    assert (
        report.table()
        == """\
line       instructions  bytes  wavefronts  sectors
(no line)  32 ret
<ptx>:6    32 mov.u32"""
    )


def test_a_collective_that_is_met_in_two_lines_counts_in_both():
    body = """mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 12; @%p1 bra low;
    bar.warp.sync 0xffffffff; bra end;
    low: bar.warp.sync 0xffffffff;
    end: ret;"""
    report = clean(run(body, parameters="", traffic=True))
    met = [(line.location.line, line.instructions["bar.warp.sync"]) for line in report.counters]
    assert [counts for counts in met if counts[1]] == [(7, 20), (8, 12)]


BOX = pd.TensorMap(f16, (4, 16))


@pd.kernel(arch="sm_90a", reqntid=32)
def boxed(x: BOX, y: BOX):
    tile, full = x.shared(), pd.shared(b64, 1)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.mbarrier.init.shared__cta.b64(full.address(), 1)
        pd.ptx.fence.mbarrier_init.release.cluster()
        pd.ptx.mbarrier.arrive.expect_tx.shared__cta.b64(full.address(), x.bytes, out="_")
        x.load(tile, (0, 8), full)
        with pd.while_(lambda: ~pd.ptx.mbarrier.try_wait.parity.shared__cta.b64(full.address(), 0)):
            pass
        y.store((0, 8), tile)
        pd.ptx.cp.async_.bulk.commit_group()
        pd.ptx.cp.async_.bulk.wait_group(0)


def test_boxes_count_the_bytes_inside_of_the_array():
    x = np.ones((3, 16), np.float16)  # half of each of three rows lies in the box
    report = clean(pd.emulate(boxed, 1, 32, x, np.zeros_like(x), traffic=True))
    load, store = (line for line in report.counters if any("tensor" in name for name in line.instructions))
    for line in (load, store):
        assert (line.bytes["shared"], line.bytes["global"], line.sectors, line.wavefronts) == (128, 48, 3, 0)
