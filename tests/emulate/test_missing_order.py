"""The races that kernels have most often, as their authors read them: the full text of each finding."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr, u32

pytestmark = pytest.mark.usefixtures("lockstep")


@pd.kernel
def tree(x: ptr[f32], y: ptr[f32]):
    s, t = pd.shared(f32, 128), pd.tid.x
    s[t] = x[t]
    for half in (64, 32, 16, 8, 4, 2, 1):
        if half < 64:
            pd.ptx.bar.sync(0)
        with pd.if_(t < half):
            s[t] = s[t] + s[t + half]
    with pd.if_(t == 0):
        y[0] = s[0]


@pd.kernel
def one_buffer(x: ptr[f32], y: ptr[f32], n: u32):
    s, t = pd.shared(f32, 64), pd.tid.x
    for i in pd.range(n):
        s[t] = x[i * 64 + t]
        pd.ptx.bar.sync(0)
        y[i * 64 + t] = s[63 - t]


@pd.kernel
def warp_to_warp(x: ptr[f32], y: ptr[f32]):
    s, t = pd.shared(f32, 32), pd.tid.x
    with pd.if_(pd.warpid == 0):
        s[t] = x[t]
    with pd.else_():
        y[t - 32] = s[t - 32]


@pd.kernel
def plain_flag(x: ptr[f32], flag: ptr[u32]):
    with pd.if_(pd.ctaid.x == 0):
        x[0] = 42.0
        flag[0] = 1
    with pd.else_(), pd.while_(lambda: flag[0] == 0):
        pass


@pd.kernel
def flag_that_nobody_acquires(x: ptr[f32], flag: ptr[u32]):
    with pd.if_(pd.ctaid.x == 0):
        x[0] = 42.0
        pd.ptx.st.release.gpu.global_.u32(flag, 1)
    with pd.else_():
        with pd.while_(lambda: pd.ptx.ld.relaxed.gpu.global_.u32(flag) == 0):
            pass
        x[1] = x[0]


@pd.kernel
def last_block(x: ptr[f32], parts: ptr[f32], count: ptr[u32], y: ptr[f32]):
    last = pd.shared(u32, 1)
    with pd.if_(pd.tid.x == 0):
        parts[pd.ctaid.x] = x[pd.ctaid.x]
        last[0] = pd.ptx.atom.relaxed.gpu.global_.add.u32(count, 1)
    pd.ptx.bar.sync(0)
    with pd.if_((last[0] == 3) & (pd.tid.x < 4)):
        y[pd.tid.x] = parts[pd.tid.x]


def floats(size):
    return np.zeros(size, np.float32)


NUMBER = np.zeros(1, np.uint32)
FENCES = (
    "after line {}, release at .gpu scope (st.release, or fence.acq_rel and an atomic in one thread); before line {}, "
    "acquire it (ld.acquire, or an atomic and fence.acq_rel in one thread); join both to the other threads of their "
    "blocks with bar.sync; or split the kernel into two launches"
)
CASES = {
    "tree": (
        (tree, 1, 128, floats(128), floats(1)),
        [
            "race: ld.shared.f32 reads s[64], written by thread (64, 0, 0) of block (0, 0, 0) with "
            "st.shared.f32; no barrier orders the two",
            "  test_missing_order.py:20 | s[t] = s[t] + s[t + half]",
            "  test_missing_order.py:15 | s[t] = x[t]",
            "  by thread (0, 0, 0) of block (0, 0, 0) and 63 more threads",
            "  help: add a `bar.sync` between line 15 and line 20",
        ],
    ),
    "one_buffer": (
        (one_buffer, 1, 64, floats(256), floats(256), 4),
        [
            "race: st.shared.f32 writes s[0], read by thread (63, 0, 0) of block (0, 0, 0) with "
            "ld.shared.f32; no barrier orders the two",
            "  test_missing_order.py:29 | s[t] = x[i * 64 + t]",
            "  test_missing_order.py:31 | y[i * 64 + t] = s[63 - t]",
            "  by thread (0, 0, 0) of block (0, 0, 0) and 63 more threads",
            "  help: add a `bar.sync` between line 31 and line 29 of the next iteration",
        ],
    ),
    "warp_to_warp": (
        (warp_to_warp, 1, 64, floats(64), floats(32)),
        [
            "race: ld.shared.f32 reads s[0], written by thread (0, 0, 0) of block (0, 0, 0) with "
            "st.shared.f32; no barrier orders the two",
            "  test_missing_order.py:40 | y[t - 32] = s[t - 32]",
            "  test_missing_order.py:38 | s[t] = x[t]",
            "  by thread (32, 0, 0) of block (0, 0, 0) and 31 more threads",
            "  help: add a `bar.sync` between line 38 and line 40",
        ],
    ),
    "plain_flag": (
        (plain_flag, 2, 1, floats(2), NUMBER),
        [
            "race: ld.global.u32 reads flag[0], written by thread (0, 0, 0) of block (0, 0, 0) with "
            "st.global.u32; nothing orders the two: blocks run in any order",
            "  test_missing_order.py:48 | with pd.else_(), pd.while_(lambda: flag[0] == 0):",
            "  test_missing_order.py:47 | flag[0] = 1",
            "  by thread (0, 0, 0) of block (1, 0, 0)",
            "  help: " + FENCES.format(47, 48),
        ],
    ),
    "flag_that_nobody_acquires": (
        (flag_that_nobody_acquires, 2, 1, floats(2), NUMBER),
        [
            "race: ld.global.f32 reads x[0], written by thread (0, 0, 0) of block (0, 0, 0) with "
            "st.global.f32; nothing orders the two: blocks run in any order",
            "  test_missing_order.py:60 | x[1] = x[0]",
            "  test_missing_order.py:55 | x[0] = 42.0",
            "  by thread (0, 0, 0) of block (1, 0, 0)",
            "  help: " + FENCES.format(55, 60),
        ],
    ),
    "last_block": (
        (last_block, 4, 32, floats(4), floats(4), NUMBER, floats(4)),
        [
            "race: ld.global.f32 reads parts[0], written by thread (0, 0, 0) of block (0, 0, 0) with "
            "st.global.f32; nothing orders the two: blocks run in any order",
            "  test_missing_order.py:71 | y[pd.tid.x] = parts[pd.tid.x]",
            "  test_missing_order.py:67 | parts[pd.ctaid.x] = x[pd.ctaid.x]",
            "  by thread (0, 0, 0) of block (3, 0, 0) and 2 more threads",
            "  help: " + FENCES.format(67, 71),
        ],
    ),
}


@pytest.mark.parametrize(("launch", "lines"), CASES.values(), ids=CASES)
def test_it_is_told_in_full(launch, lines):
    (finding,) = pd.emulate(*launch).findings
    assert [line for line in str(finding).splitlines() if line.strip(" ^")] == lines
