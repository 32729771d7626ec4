"""Roles of warpgroups and warps: who runs what, with how many registers, where they meet, and what is refused."""

import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f32, ptr, u32
from ptxdsl.errors import AssembleError

from .tracing import emitted, source_kernel


def refusal(body, threads=384, arch="sm_90a"):
    try:
        source_kernel(body, "y: ptr[u32]", f"(reqntid={threads})").ptx(arch)
    except pd.Error as error:
        return error.message, error.help, error.at.line - 2
    return None


REFUSED = {
    "no such warpgroup": (
        "with pd.warpgroup(3):\n    y[0] = 1", 384,
        "`pd.warpgroup(3)` names warpgroup 3; a block of this kernel has 3, counted from 0",
        "make the block larger: `@pd.kernel(reqntid=512)`", 1,
    ),
    "no such warp": (
        "with pd.warp(1, 2):\n    y[0] = 1", 64,
        "`pd.warp(1, 2)` names warp 2; a block of this kernel has 2, counted from 0",
        "make the block larger: `@pd.kernel(reqntid=96)`", 1,
    ),
    "half a warpgroup": (
        "with pd.warpgroup(0):\n    y[0] = 1", 192,
        "`pd.warpgroup(0)` is in blocks of 192 threads, which are not whole warpgroups of 128",
        "make the block a multiple of 128 threads", 1,
    ),
    "half a warp": (
        "with pd.warp(0):\n    y[0] = 1", 48,
        "`pd.warp(0)` is in blocks of 48 threads, which are not whole warps of 32",
        "make the block a multiple of 32 threads", 1,
    ),
    "no block": (
        "with pd.warpgroup(0):\n    y[0] = 1", None,
        "`pd.warpgroup(0)` is in a kernel that does not declare its block size",
        "declare it: `@pd.kernel(reqntid=384)`", 1,
    ),
    "no number": (
        "with pd.warpgroup():\n    y[0] = 1", 384,
        "`pd.warpgroup()` takes the numbers of warpgroups", "such as pd.warpgroup(0)", 1,
    ),
    "apart": (
        "with pd.warpgroup(0, 2):\n    y[0] = 1", 384,
        "`pd.warpgroup(0, 2)`: the warpgroups of a role follow one another", "open a role for each", 1,
    ),
    "registers, no multiple of 8": (
        "with pd.warpgroup(0, registers=44):\n    y[0] = 1", 384,
        "`pd.warpgroup(0, registers=44)` asks for 44 registers; it is a multiple of 8 from 24 to 256",
        "for example 40 for warps that copy, 232 for those that multiply", 1,
    ),
    "more registers than a thread has": (
        "with pd.warpgroup(0, registers=264):\n    y[0] = 1", 384,
        "`pd.warpgroup(0, registers=264)` asks for 264 registers; it is a multiple of 8 from 24 to 256",
        "for example 40 for warps that copy, 232 for those that multiply", 1,
    ),
    "more registers than there are": (
        "with pd.warpgroup(0, registers=40):\n    y[0] = 1\nwith pd.warpgroup(1, 2, registers=240):\n    y[0] = 2", 384,
        "`pd.warpgroup(1, 2, registers=240)` takes 61440 registers in addition to the 5120 of other roles; a launch gives "
        "the block 64512, 168 a thread, and the warps would wait forever",
        "registers=232 fits", 3,
    ),
    "more registers than a launch gives": (
        "with pd.warpgroup(0, registers=32):\n    y[0] = 1\nwith pd.warpgroup(1, 2, registers=240):\n    y[0] = 2", 384,
        "`pd.warpgroup(1, 2, registers=240)` takes 61440 registers in addition to the 4096 of other roles; a launch gives "
        "the block 64512, 168 a thread, and the warps would wait forever",
        "registers=232 fits", 3,
    ),
    "more than others leave": (
        "with pd.warpgroup(1, 2, registers=232):\n    y[0] = 2", 384,
        "the roles of `k` take 80896 registers with the 168 a thread that warpgroup 0 keeps; a launch gives the block 64512",
        "give registers back there: `with pd.warpgroup(0, registers=40):`", 1,
    ),
    "barrier 0": (
        "with pd.warpgroup(0):\n    y[0] = 1\n    pd.ptx.bar.sync(0)", 384,
        "`bar.sync` on barrier 0 is inside `with pd.warpgroup(0)` (kernel.py:3): it waits for all threads of the "
        "block, but threads of other roles do not reach it",
        "`with pd.warpgroup(…) as role:` has `role.barrier()`, for its threads; all threads meet after the roles", 3,
    ),
    "wgmma in a warp": (
        "with pd.warp(0):\n    y[0] = 1\n    pd.ptx.wgmma.fence.sync.aligned()", 384,
        "`wgmma.fence.sync.aligned` is inside `with pd.warp(0)` (kernel.py:3): all 128 threads of a warpgroup run it "
        "together",
        "open a role of the warpgroup for it: `with pd.warpgroup(…):`", 3,
    ),
    "registers of warps between two warpgroups": (
        "with pd.warp(2, 3, 4, 5):\n    pd.ptx.setmaxnreg.dec.sync.aligned.u32(40)", 384,
        "`setmaxnreg.dec.sync.aligned.u32` is inside `with pd.warp(2, 3, 4, 5)` (kernel.py:3): all 128 threads of "
        "a warpgroup run it together",
        "open a role of the warpgroup for it: `with pd.warpgroup(…):`", 2,
    ),
    "wgmma in one lane": (
        "with pd.warpgroup(0), pd.elect():\n    pd.ptx.wgmma.commit_group.sync.aligned()", 384,
        "`wgmma.commit_group.sync.aligned` is inside `with pd.elect()` (kernel.py:3): all 128 threads of a "
        "warpgroup run it together, but only one lane of a warp reaches it",
        "move it before or after `with pd.elect():`", 2,
    ),
    "a matrix of one lane": (
        "tile = pd.shared(pd.b16, 64)\nwith pd.elect():\n    pd.ptx.ldmatrix.sync.aligned.m8n8.x1.shared.b16(tile.address(0))",
        384,
        "`ldmatrix.sync.aligned.m8n8.x1.shared.b16` is inside `with pd.elect()` (kernel.py:4): all 32 lanes of a "
        "warp run it together, but only one lane of a warp reaches it",
        "move it before or after `with pd.elect():`", 3,
    ),
    "a role in itself": (
        "with pd.warpgroup(0):\n    with pd.warpgroup(0):\n        y[0] = 1", 384,
        "`pd.warpgroup(0)` is inside `with pd.warpgroup(0)` (kernel.py:3), which has its role already",
        "put it after that block, or name warpgroups of it", 2,
    ),
    "a warp of another role": (
        "with pd.warpgroup(1):\n    with pd.warp(0):\n        y[0] = 1", 384,
        "`pd.warp(0)` is inside `with pd.warpgroup(1)` (kernel.py:3), which has threads 128 to 255 alone",
        "put it after that block, or name warps of it", 2,
    ),
    "a barrier of a role": (
        "with pd.warp(0) as role:\n    role.barrier()\n    y[0] = 1\n    pd.ptx.bar.sync(1, 32)", 384,
        "`bar.sync` names barrier 1, which was given to a role of this kernel",
        "name one from 2 on, or let `role.barrier()` choose it", 4,
    ),
    "too many barriers": (
        "with pd.warp(0) as role:\n    for n in range(16):\n        role.roles.barrier(n, 1)", 384,
        "the roles of this kernel take 16 named barriers; a block has 15",
        "let several roles meet at one barrier, or use mbarriers", 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_role_that_cannot_be_is_refused_at_its_line(case):
    body, threads, *expected = REFUSED[case]
    assert refusal(body, threads) == tuple(expected)


def test_a_role_is_entered_by_with():
    assert refusal("pd.warpgroup(0)\ny[0] = 1")[0] == "`pd.warpgroup(0)` was called, but never entered"


@pd.kernel(reqntid=384)
def gemm_roles(y: ptr[u32]):
    with pd.warpgroup(0, registers=40), pd.warp(0), pd.elect():
        y[0] = 7
    with pd.warpgroup(1, 2, registers=232) as consumer:
        consumer.barrier()
        consumer.warpgroup_barrier()
        y[consumer.thread + 1] = consumer.index


def test_the_warpgroups_number_is_uniform_and_registers_change_first():
    text = gemm_roles.ptx("sm_90a")
    assert "shfl.sync.idx.b32 %warpgroup_1, %warpgroup, 0, 31, 4294967295;" in text
    assert ".minnctapersm 1" in text  # without which the assembler ignores setmaxnreg
    assert emitted(gemm_roles, "sm_90a")[:8] == [
        "setp.eq.u32 %p0, %warpgroup_1, 0;",
        "@!%p0 bra $endwarpgroup;",
        "setmaxnreg.dec.sync.aligned.u32 40;",
        "setp.eq.u32 %p1, %warp_1, 0;",
        "@!%p1 bra $endwarp;",
        "elect.sync _|%p2, 4294967295;",
        "@!%p2 bra $endelect;",
        "st.global.u32 [%y], 7;",
    ]
    assert emitted(gemm_roles, "sm_90a")[8:12] == [
        "setp.ge.u32 %p3, %warpgroup_1, 1;",
        "@!%p3 bra $endwarpgroup_1;",
        "setmaxnreg.inc.sync.aligned.u32 232;",
        "bar.sync 1, 256;",
    ]


def test_the_assembler_changes_registers():
    try:
        cubin = gemm_roles.cubin("sm_90a")
    except AssembleError as refusal:
        assert "(C7504)" in refusal.message
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    assert cubin.warnings == ()
    assert cubin.kernels["gemm_roles"].registers == 168


def crowded_role(x: ptr[f32]):
    with pd.warpgroup(0, registers=24):
        values = [x[128 * n + pd.tid.x] for n in range(64)]
        for n, value in enumerate(values):
            x[128 * (63 - n) + pd.tid.x] = value * value
    with pd.warpgroup(1, registers=232):
        x[8192] = 1.0


def test_a_role_that_needs_more_registers_than_it_asks_for_is_refused_at_its_line():
    kernel = pd.kernel(crowded_role, arch="sm_90a", reqntid=256)
    with config.using(spills="error"), pytest.raises(AssembleError) as refusal:
        kernel.cubin()
    if "(C7504)" in refusal.value.message:
        pytest.skip("nvJitLink ignores setmaxnreg, and there is no ptxas")
    first, second, *_ = refusal.value.message.splitlines()
    assert first == "`crowded_role` needs more registers than its warpgroups request:"
    line = crowded_role.__code__.co_firstlineno + 1
    assert re.fullmatch(
        rf"  PTX line \d+ \(test_roles.py:{line}\): \d+ bytes of registers per thread are spilled to memory", second
    )
    assert refusal.value.help == (
        "request more for the warpgroup that needs them: `with pd.warpgroup(…, registers=…):`; or set PTXDSL_SPILLS=warn"
    )


def test_registers_that_a_warpgroup_has_already_are_not_asked_for_again():
    body = "for n in range(2):\n    with pd.warpgroup(0, registers=40):\n        y[n] = 1"
    text = source_kernel(body, "y: ptr[u32]", "(reqntid=384, min_blocks=1)").ptx("sm_90a")
    assert text.count("setmaxnreg") == 1
    same = "with pd.warpgroup(0, 1, registers=256):\n    y[0] = 1"
    assert "setmaxnreg" not in source_kernel(same, "y: ptr[u32]", "(reqntid=256)").ptx("sm_90a")


@pd.kernel(reqntid=512)
def who(y: ptr[u32], z: ptr[u32]):
    with pd.warpgroup(0) as first:
        y[first.thread] = 100 + first.index
    with pd.warpgroup(1, 2) as middle:
        z[middle.thread] = middle.index
        middle.barrier()
        y[128 + middle.thread] = 200 + z[middle.threads - 1 - middle.thread]
    with pd.warpgroup(3) as last, pd.warp(13, 14) as inner:
        y[384 + last.thread] = 300 + inner.index
        z[256 + inner.thread] = inner.thread
    pd.ptx.bar.sync(0)


def test_each_role_runs_in_its_threads_and_meets_at_a_barrier_of_its_own():
    y, z = np.zeros(512, np.uint32), np.zeros(320, np.uint32)
    who[1, 512](y, z)
    assert (y[:128] == 100).all()
    assert (y[128:256] == 201).all() and (y[256:384] == 200).all()
    assert (y[384:].reshape(4, 32) == [[0], [300], [301], [0]]).all()
    assert (z[256:] == np.arange(64)).all()


@pd.kernel(reqntid=(32, 4, 2))
def flat(y: ptr[u32]):
    with pd.warpgroup(1) as role:
        y[role.thread] = pd.tid.x + 32 * pd.tid.y + 128 * pd.tid.z


def test_threads_are_counted_along_x_then_y_then_z():
    y = np.zeros(128, np.uint32)
    flat[1, (32, 4, 2)](y)
    assert (y == 128 + np.arange(128)).all()


@pd.kernel(reqntid=64)
def whole(y: ptr[u32]):
    with pd.warp(0, 1) as role:
        y[role.thread] = role.index
        pd.ptx.bar.sync(0)


def test_a_role_of_the_whole_block_has_no_branch_and_its_barrier_is_the_blocks():
    y = np.zeros(64, np.uint32)
    whole[1, 64](y)
    assert (y == np.repeat([0, 1], 32)).all()
    assert "bra" not in whole.ptx()


@pd.kernel(reqntid=64)
def elected(y: ptr[u32]):
    with pd.elect():
        pd.ptx.red.global_.add.u32(y, 1)


def test_one_lane_of_each_warp_is_elected(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    y = np.zeros(1, np.uint32)
    elected[1, 64](y)
    assert y[0] == 2


def test_a_cluster_is_said_by_the_kernel():
    kernel = source_kernel("y[0] = 1", "y: ptr[u32]", "(cluster=(2, 1, 1))")
    assert ".reqnctapercluster 2, 1, 1" in kernel.ptx("sm_90a")
    assert "needs sm_90" in refusal_of(lambda: kernel.ptx("sm_80"))


def refusal_of(call):
    with pytest.raises(pd.Error) as refused:
        call()
    return refused.value.message
