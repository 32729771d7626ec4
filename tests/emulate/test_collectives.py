"""Warp collectives: who waits for whom, and who waits in vain."""

import numpy as np
import pytest

from tests.emulate.support import clean, only, run

OWN = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"


def test_a_collective_waits_for_lanes_that_come_by_another_way():
    body = (
        OWN
        + """
        mov.u32 %r2, 1;
        setp.lt.u32 %p1, %r1, 16;
        @%p1 bra LOW;
        mov.u32 %r2, 100;
        bra MEET;
    LOW:
        add.u32 %r2, %r2, 1;
    MEET:
        redux.sync.add.u32 %r3, %r2, -1;
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(64, np.uint32)
    clean(run(body, x, block=64))
    assert (x[:32] == 16 * 2 + 16 * 100).all()
    assert (x[32:] == 32 * 100).all()


def test_halves_of_a_warp_with_masks_of_their_own():
    body = (
        OWN
        + """
        setp.lt.u32 %p1, %r1, 16;
        selp.u32 %r2, 0x0000ffff, 0xffff0000, %p1;
        redux.sync.add.u32 %r3, %r1, %r2;
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x))
    assert (x[:16] == sum(range(16))).all()
    assert (x[16:] == sum(range(16, 32))).all()


def test_one_half_only():
    body = (
        OWN
        + """
        setp.ge.u32 %p1, %r1, 16;
        @%p1 bra DONE;
        redux.sync.add.u32 %r3, %r1, 0xffff;
        st.global.u32 [%rd2], %r3;
    DONE:
        bar.warp.sync -1;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x))
    assert (x[:16] == sum(range(16))).all()
    assert (x[16:] == 0).all()


def test_lanes_that_have_ended_are_not_waited_for():
    body = (
        OWN
        + """
        setp.ge.u32 %p1, %r1, 20;
        @%p1 ret;
        redux.sync.add.u32 %r3, %r1, -1;
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x))
    assert (x[:20] == sum(range(20))).all()


def test_lanes_that_end_later_release_those_that_wait():
    body = (
        OWN
        + """
        setp.lt.u32 %p1, %r1, 16;
        @%p1 bra WAIT;
        mov.u32 %r2, 0;
    LOOP:
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p2, %r2, 200;
        @%p2 bra LOOP;
        ret;
    WAIT:
        redux.sync.add.u32 %r3, %r1, -1;
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x))
    assert (x[:16] == sum(range(16))).all()


def test_active_lanes():
    body = (
        OWN
        + """
        and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
        @%p1 activemask.b32 %r3;
        @!%p1 mov.u32 %r3, 0;
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(32, np.uint32)
    clean(run(body, x))
    assert (x == np.where(np.arange(32) % 2 == 0, 0x55555555, 0)).all()


def test_a_collective_that_the_others_never_reach():
    body = (
        OWN
        + """
        setp.lt.u32 %p1, %r1, 16;
        @%p1 bra LOW;
        bar.sync 0;
        ret;
    LOW:
        shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;
        bar.sync 0;
    """
    )
    finding = only(run(body, np.zeros(32, np.uint32)))
    assert str(finding) == (
        "divergent-collective: bar.sync: lanes 16–31 of a warp wait for lanes 0–15; "
        "lanes 0–15 wait at shfl.sync.idx.b32 (<ptx>:13)\n"
        "  <ptx>:10\n"
        "  <ptx>:13\n"
        "  by thread (16, 0, 0) of block (0, 0, 0) and 15 more threads\n"
        "  help: execute it in all 32 lanes of the warp: branch on a condition that is uniform across the warp"
    )


def test_a_mask_that_does_not_name_its_own_lane():
    finding = only(run(OWN + "redux.sync.add.u32 %r3, %r1, 0xffff;", np.zeros(32, np.uint32)))
    assert finding.message == ("redux.sync.add.u32: lane 16 passes membermask 0x0000ffff, which does not include it")


def test_masks_that_do_not_agree():
    body = (
        OWN
        + """
        setp.lt.u32 %p1, %r1, 1;
        selp.u32 %r2, -1, 0x7fffffff, %p1;
        redux.sync.add.u32 %r3, %r1, %r2;
    """
    )
    finding = only(run(body, np.zeros(31, np.uint32), block=31))
    assert finding.message == (
        "redux.sync.add.u32: lane 0 passes membermask 0xffffffff, lane 1 passes 0x7fffffff; "
        "all lanes of a mask must pass that mask"
    )


SHUFFLES = [
    (
        "setp.ge.u32 %p1, %r1, 20;\n@%p1 ret;\nshfl.sync.down.b32 %r2, %r1, 16, 31, -1;",
        "divergent-collective: shfl.sync.down.b32: lane 4 reads from lane 20, which membermask 0xffffffff names, "
        "but it has exited or does not exist\n"
        "  <ptx>:9\n"
        "  by thread (4, 0, 0) of block (0, 0, 0) and 11 more threads\n"
        "  help: make that lane execute it too, or limit the source lanes with the clamp in `c`",
    ),
    (
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 shfl.sync.idx.b32 %r2, %r1, 20, 31, 0xffff;",
        "divergent-collective: shfl.sync.idx.b32: lane 0 reads from lane 20, which membermask 0x0000ffff does not name\n"
        "  <ptx>:8\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 15 more threads\n"
        "  help: include it in the membermask of all participating lanes, or limit the source lanes with the clamp in `c`",
    ),
    (
        "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r3, 0xffff, 0xffff0000, %p1;\nshfl.sync.idx.b32 %r2, %r1, 3, 31, %r3;",
        "divergent-collective: shfl.sync.idx.b32: lane 16 reads from lane 3, which membermask 0xffff0000 does not name\n"
        "  <ptx>:9\n"
        "  by thread (16, 0, 0) of block (0, 0, 0) and 15 more threads\n"
        "  help: include it in the membermask of all participating lanes, or limit the source lanes with the clamp in `c`",
    ),
]


@pytest.mark.parametrize(("body", "message"), SHUFFLES, ids=["ended", "not named", "of another mask"])
def test_a_shuffle_from_a_lane_that_takes_no_part(body, message):
    assert str(only(run(OWN + body, np.zeros(32, np.uint32)))) == message


def test_a_shuffle_within_the_lanes_that_a_clamp_allows():
    """Half a warp reduces by itself: the segments of 16 lanes keep to themselves."""
    body = (
        OWN
        + """
        setp.ge.u32 %p1, %r1, 16;
        @%p1 ret;
        shfl.sync.down.b32 %r2|%p2, %r1, 8, 0x100f, 0xffff;
        selp.u32 %r2, %r2, 0, %p2;
        st.global.u32 [%rd2], %r2;
    """
    )
    x = np.zeros(16, np.uint32)
    clean(run(body, x))
    assert (x == np.where(np.arange(16) < 8, np.arange(16) + 8, 0)).all()


MATRIX = """
    mov.u32 %r2, tile;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];
"""
TILE = ".shared .align 16 .b8 tile[128];"


@pytest.mark.parametrize("last", [29, 30])
def test_a_matrix_instruction_needs_the_whole_warp(last):
    body = f"mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, {last};\n@%p1 ret;" + MATRIX
    finding = only(run(body, parameters="", module=TILE, checks=False))
    assert finding.kind == "divergent-collective"
    assert finding.message == (
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 needs all 32 lanes of the warp; "
        f"lanes 0–{last} arrived and the others have ended"
    )


def test_a_matrix_instruction_in_a_block_of_odd_size():
    finding = only(run(MATRIX, parameters="", module=TILE, block=48, checks=False))
    assert finding.message == (
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 needs all 32 lanes of the warp; "
        "lanes 0–15 arrived and a block of 48 threads has no others"
    )


@pytest.mark.parametrize("blocks", [1, 7, 300])
def test_a_product_of_matrices_in_some_warps(blocks, rng):
    """Half of the warps multiply; the others do something else meanwhile."""
    body = """
        ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r9, %ctaid.x;
        mad.lo.u32 %r2, %r9, 64, %r1; mul.wide.u32 %rd2, %r2, 16; add.u64 %rd2, %rd1, %rd2;
        setp.ge.u32 %p1, %r1, 32;
        mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f00000000; mov.f32 %f3, %f2; mov.f32 %f4, %f2;
        mov.b32 %r3, 0x3C003C00;
        @%p1 bra OTHER;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r3, %r3, %r3, %r3}, {%r3, %r3}, {%f1, %f2, %f3, %f4};
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r3, %r3, %r3, %r3}, {%r3, %r3}, {%f1, %f2, %f3, %f4};
    OTHER:
        st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};
    """
    x = np.zeros((blocks, 2, 32, 4), np.float32)
    clean(run(body, x, grid=blocks, block=64))
    assert (x[:, 0] == [33, 32, 32, 32]).all()
    assert (x[:, 1] == [1, 0, 0, 0]).all()


def test_lanes_meet_at_like_instructions_in_different_places():
    body = (
        OWN
        + """
        setp.lt.u32 %p1, %r1, 16;
        @%p1 bra LOW;
        add.u32 %r2, %r1, 100;
        bar.warp.sync -1;
        redux.sync.add.u32 %r3, %r2, -1;
        bra DONE;
    LOW:
        bar.warp.sync -1;
        redux.sync.add.u32 %r4, %r1, -1;
        add.u32 %r3, %r4, 1;
    DONE:
        st.global.u32 [%rd2], %r3;
    """
    )
    x = np.zeros(96, np.uint32)
    clean(run(body, x, block=96))
    total = sum(range(32)) + 1600
    assert (x[:16] == total + 1).all()
    assert (x[16:32] == total).all()
    assert (x[32:64] == sum(range(32, 64)) + 3200).all()
