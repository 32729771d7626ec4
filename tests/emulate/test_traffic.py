"""Wavefronts of shared memory and sectors of global memory, against the least that would do."""

import numpy as np
import pytest

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
    assert report.bank_conflicts == report.global_sectors == []
