"""What a kernel must not do, and how it is told: the full text of each finding."""

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f32, ptr
from tests.emulate.support import clean, only, run

OWN = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;\n"


def found(body, *arguments, **options):
    return str(only(run(body, *arguments, **options)))


def test_past_the_end():
    x = np.zeros(30, np.float32)
    assert found(OWN + "ld.global.f32 %f1, [%rd2];", x) == (
        "out-of-bounds: ld.global.f32 reads 4 bytes at x[30]; x has 30 f32\n"
        "  <ptx>:7\n"
        "  by thread (30, 0, 0) of block (0, 0, 0) and 1 more thread"
    )


def test_before_the_beginning():
    x = np.zeros(32, np.float32)
    assert found(OWN + "st.global.f32 [%rd2-8], 0f00000000;", x, block=3) == (
        "out-of-bounds: st.global.f32 writes 4 bytes at x[-2]; x has 32 f32\n"
        "  <ptx>:7\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 1 more thread"
    )


def test_between_elements_before_the_beginning():
    x = np.zeros(32, np.float32)
    assert found(OWN + "ld.global.u8 %r1, [%rd2-3];", x, block=1).startswith(
        "out-of-bounds: ld.global.u8 reads 1 byte at 3 bytes before x; x has 32 f32\n"
    )
    matrix = np.zeros((8, 4), np.uint32)
    body = "ld.param.u64 %rd1, [x]; ld.global.u32 %r1, [%rd1-4];"
    assert found(body, matrix, block=1).startswith(
        "out-of-bounds: ld.global.u32 reads 4 bytes at 4 bytes before x; x has 8 × 4 u32\n"
    )


def test_dynamic_shared_memory_of_which_the_launch_gives_nothing():
    module = ".extern .shared .align 16 .b8 tile[];"
    assert found("st.shared.u32 [tile+4], 0;", parameters="", module=module, block=1) == (
        "out-of-bounds: st.shared.u32 writes 4 bytes at tile[4]; tile has 0 b8\n"
        "  <ptx>:6\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: pass its size in bytes at the launch: `k[grid, block, bytes]`"
    )


@pytest.mark.parametrize(
    "wait, what", [("test_wait", "in a loop that makes no progress"), ("try_wait", "at mbarrier.try")]
)
def test_an_mbarrier_that_waits_for_more_than_arrive(wait, what):
    @pd.kernel
    def k(out: pd.ptr[pd.u32]):
        barrier = pd.shared(pd.b64, 1)
        with pd.if_(pd.tid.x == 0):
            pd.ptx.mbarrier.init.shared.b64(barrier.address(), 33)
        pd.ptx.bar.sync(0)
        state = pd.ptx.mbarrier.arrive.shared.b64(barrier.address())
        waits = pd.var(pd.u32, 1)
        with pd.while_(lambda: waits == 1):
            done = pd.ptx(f"mbarrier.{wait}.shared.b64", barrier.address(), state)
            waits.set(pd.select(done, pd.cast(0, pd.u32), 1))
        out[pd.tid.x] = waits

    with config.using(arch="sm_90"):
        (finding,) = pd.emulate(k, 1, 32, np.zeros(32, np.uint32)).findings
    assert what in finding.message
    assert finding.message.endswith(" for the mbarrier barrier[0]: 32 of 33 arrivals received")
    assert finding.help == (
        "execute 33 mbarrier.arrive at barrier[0], the count of its mbarrier.init; if they arrived in the previous "
        "phase, wait for the other parity"
    )


def test_a_matrix_is_told_by_row_and_column():
    x = np.zeros((8, 4), np.uint16)
    body = "ld.param.u64 %rd1, [x]; atom.global.add.u32 %r1, [%rd1+68], 1;"
    assert found(body, x, block=1) == (
        "out-of-bounds: atom.global.add.u32 updates 4 bytes at x[8, 2]; x has 8 × 4 u16\n"
        "  <ptx>:6\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)"
    )


def test_half_in_half_out():
    x = np.zeros(6, np.uint32)
    body = "ld.param.u64 %rd1, [x]; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+16];"
    assert found(body, x, block=1).startswith("out-of-bounds: ld.global.v4.u32 reads 16 bytes at x[4]; x has 6 u32\n")


def test_a_null_pointer():
    body = "ld.param.u64 %rd1, [x]; ld.global.u32 %r1, [%rd1];"
    assert found(body, None, block=1).startswith(
        "out-of-bounds: ld.global.u32 reads 4 bytes at address 0x0: a null pointer\n"
    )


def test_an_address_of_another_space():
    body = "cvta.shared.u64 %rd1, s; ld.global.u32 %r1, [%rd1];"
    assert found(body, parameters="", module=".shared .u32 s;", block=1).startswith(
        "out-of-bounds: ld.global.u32 reads 4 bytes at address 0x7e0000000000, "
        "which is a generic address in .shared, not an address in .global\n"
    )


def test_an_address_where_nothing_lies():
    body = "mov.u64 %rd1, 0x123456789000; ld.u32 %r1, [%rd1];"
    assert found(body, parameters="", block=1).startswith(
        "out-of-bounds: ld.u32 reads 4 bytes at address 0x123456789000 in .global, where nothing is allocated\n"
    )


def test_an_index_below_zero_of_an_unsigned_type():
    """As `x[n - 5]` of a kernel, with n = 3."""
    body = "ld.param.u64 %rd1, [x]; mov.u32 %r1, 3; sub.u32 %r1, %r1, 5; mad.wide.u32 %rd1, %r1, 4, %rd1; st.u32 [%rd1], 1;"
    assert found(body, np.zeros(6, np.uint32), block=1) == (
        "out-of-bounds: st.u32 writes 4 bytes at x[4294967294]; x has 6 u32\n"
        "  <ptx>:6\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: a u32 index below 0 wraps around to 2**32: here -2; use s32, or compare first"
    )


def test_past_a_shared_array_into_its_neighbour():
    body = "mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, a; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], 1;"
    module = ".shared .u32 a[31]; .shared .u32 b[64];"
    assert found(body, parameters="", module=module).startswith(
        "out-of-bounds: st.shared.u32 writes 4 bytes at a[31]; a has 31 u32\n"
    )


def test_past_dynamic_shared_memory():
    body = "mov.u32 %r1, buffer; ld.shared.u8 %r2, [%r1+100];"
    module = ".extern .shared .align 16 .b8 buffer[];"
    assert found(body, parameters="", module=module, block=1, shared_bytes=100).startswith(
        "out-of-bounds: ld.shared.u8 reads 1 byte at buffer[100]; buffer has 100 b8\n"
    )


def test_past_a_local_array():
    body = ".local .u32 mine[2]; mov.u64 %rd1, mine; st.local.u32 [%rd1+8], 1;"
    assert found(body, parameters="", block=1).startswith(
        "out-of-bounds: st.local.u32 writes 4 bytes at mine[2]; mine has 2 u32\n"
    )


def test_past_a_parameter():
    body = "ld.param.u32 %r1, [x+8];"
    assert found(body, 1, block=1).startswith("out-of-bounds: ld.param.u32 reads 4 bytes at x[1]; x has 1 u64\n")


def test_misaligned():
    x = np.zeros(8, np.float32)
    body = "ld.param.u64 %rd1, [x]; ld.global.v2.f32 {%f1, %f2}, [%rd1+12];"
    assert found(body, x, block=1).startswith(
        "misaligned: ld.global.v2.f32 reads 8 bytes at x[3], 4 bytes past a multiple of 8\n"
    )


def test_between_elements():
    x = np.zeros(8, np.float32)
    body = "ld.param.u64 %rd1, [x]; ld.global.u32 %r1, [%rd1+6];"
    assert found(body, x, block=1).startswith(
        "misaligned: ld.global.u32 reads 4 bytes at x[1] plus 2 bytes, 2 bytes past a multiple of 4\n"
    )


def test_a_view_is_as_misaligned_as_on_a_gpu():
    x = np.zeros(9, np.float32)[1:]
    body = "ld.param.u64 %rd1, [x]; ld.global.v2.f32 {%f1, %f2}, [%rd1];"
    assert found(body, x, block=1).startswith(
        "misaligned: ld.global.v2.f32 reads 8 bytes at x[0], 4 bytes past a multiple of 8\n"
    )


def test_read_only():
    x = np.zeros(32, np.float32)
    x.flags.writeable = False
    assert found(OWN + "st.global.f32 [%rd2], 0f00000000;", x).startswith(
        "read-only: st.global.f32 writes x[0]; x is read-only\n"
    )


def test_a_constant_is_read_only():
    body = "mov.u64 %rd1, c; cvta.const.u64 %rd1, %rd1; st.u32 [%rd1+4], 1;"
    assert found(body, parameters="", module=".const .u32 c[2] = {1, 2};", block=1).startswith(
        "read-only: st.u32 writes c[1]; c is read-only\n"
    )


def test_shared_memory_that_nobody_wrote():
    body = """mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2;
        setp.eq.u32 %p1, %r1, 20;
        @!%p1 st.shared.u32 [%r1], 1;
        ld.shared.u32 %r3, [%r1];
        add.u32 %r4, %r3, 1; setp.eq.u32 %p2, %r4, 0;
        @%p2 bra END;
    END:"""
    assert found(body, parameters="", module=".shared .u32 s[32];") == (
        "uninitialized: ld.shared.u32 reads 4 bytes at s[5], which no thread has written; "
        "bra uses it (register %p2)\n"
        "  <ptx>:11\n"
        "  <ptx>:9\n"
        "  by thread (5, 0, 0) of block (0, 0, 0)\n"
        "  help: write it first, for example with zeros"
    )


def test_a_single_byte_that_nobody_wrote():
    body = "st.shared.u16 [s], 1; st.shared.u8 [s+2], 1; ld.shared.u32 %r3, [s]; red.shared.add.u32 [t], %r3;"
    assert "reads 4 bytes at s[0], which no thread has written" in found(
        body, parameters="", module=".shared .u32 s; .shared .u32 t;", block=1
    )


def test_local_memory_that_nobody_wrote():
    body = ".local .f32 mine[4]; st.local.f32 [mine], 0f00000000; ld.local.v2.f32 {%f1, %f2}, [mine];"
    body += " ld.param.u64 %rd1, [x]; st.global.f32 [%rd1], %f2;"
    assert found(body, np.zeros(1, np.float32), block=1).startswith(
        "uninitialized: ld.local.v2.f32 reads 8 bytes at mine[0], which no thread has written; "
        "st.global.f32 uses it (register %f2)\n"
    )


SHARED = "mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, s; add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %r1, 64; "
HALF = SHARED + "@%p1 st.shared.u32 [%r1], 1; ld.shared.u32 %r3, [%r1]; "  # lanes 16 to 31 read what nobody wrote
COPIES = {
    "loaded": "",
    "computed": "add.u32 %r4, %r3, 1; shl.b32 %r4, %r4, 2;",
    "to another place and back": "st.shared.u32 [%r1+256], %r3; ld.shared.u32 %r4, [%r1+256];",
    "exchanged": "shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;",
    "summed": "redux.sync.add.u32 %r4, %r3, -1;",
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_copying_what_nobody_wrote_is_no_use_of_it(copy):
    clean(run(HALF + copy, parameters="", module=".shared .u32 s[128];"))


USES = {
    "a branch": ("setp.eq.u32 %p2, %r3, 0; @%p2 bra END; END:", "bra uses it (register %p2)"),
    "an address": ("ld.shared.u32 %r4, [%r3];", "ld.shared.u32 uses it (register %r3)"),
    "an output": ("st.global.u32 [%rd1], %r3;", "st.global.u32 uses it (register %r3)"),
    "an output, by another place": (
        "st.shared.u32 [%r1+256], %r3; ld.shared.u32 %r4, [%r1+256]; st.global.u32 [%rd1], %r4;",
        "st.global.u32 uses it (register %r4)",
    ),
    "an atomic sum": ("red.global.add.u32 [%rd1], %r3;", "red.global.add.u32 uses it (register %r3)"),
    "a vote": (
        "setp.eq.u32 %p2, %r3, 0; vote.sync.ballot.b32 %r4, %p2, -1;",
        "vote.sync.ballot.b32 uses it (register %p2)",
    ),
}


@pytest.mark.parametrize(("use", "end"), USES.values(), ids=USES)
def test_what_nobody_wrote_is_told_where_it_decides(use, end):
    body = "ld.param.u64 %rd1, [x]; " + HALF + use
    report = run(body, np.zeros(1, np.uint32), module=".shared .u32 s[128];")
    finding = report.of_kind("uninitialized")[0]
    assert finding.message.startswith("ld.shared.u32 reads 4 bytes at s["), finding
    assert finding.message.endswith(f", which no thread has written; {end}")
    assert finding.count == 16


def test_only_what_a_selection_takes_counts():
    store = "selp.u32 %r4, {first}, {second}, %p1; ld.param.u64 %rd1, [x]; st.global.u32 [%rd1], %r4;"
    module = ".shared .u32 s[128];"
    clean(run(HALF + store.format(first="%r3", second=1), np.zeros(1, np.uint32), module=module))
    report = run(HALF + store.format(first=1, second="%r3"), np.zeros(1, np.uint32), module=module)
    assert [finding.kind for finding in report.findings][:1] == ["uninitialized"]


def test_an_exchange_moves_what_nobody_wrote():
    body = HALF + "shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1; ld.param.u64 %rd1, [x]; {guard} st.global.u32 [%rd1], %r4;"
    module, x = ".shared .u32 s[128];", np.zeros(1, np.uint32)
    assert only(run(body.format(guard="@%p1"), x, module=module)).count == 16
    clean(run(body.format(guard="@!%p1"), x, module=module))


def test_a_register_that_nobody_wrote():
    body = "ld.param.u64 %rd1, [x];\nadd.u32 %r1, %r2, 1;\nst.global.u32 [%rd1], %r1;"
    assert found(body, np.zeros(1, np.uint32), block=1) == (
        "uninitialized: st.global.u32 uses register %r1, which was never written\n"
        "  <ptx>:8\n"
        "  by thread (0, 0, 0) of block (0, 0, 0)\n"
        "  help: assign it a value first"
    )


def test_a_register_that_some_lanes_wrote():
    body = OWN + "setp.lt.u32 %p1, %r1, 20;\n@%p1 mov.u32 %r2, 5;\nst.global.u32 [%rd2], %r2;"
    assert found(body, np.zeros(32, np.uint32)) == (
        "uninitialized: st.global.u32 uses register %r2, which was never written\n"
        "  <ptx>:9\n"
        "  by thread (20, 0, 0) of block (0, 0, 0) and 11 more threads\n"
        "  help: assign it a value first"
    )


def test_moving_a_register_that_nobody_wrote_is_nothing():
    clean(
        run(OWN + "mov.u32 %r2, %r3; selp.u32 %r4, %r2, %r1, %p1; st.global.u32 [%rd2], %r1;", np.zeros(32, np.uint32))
    )


def test_a_guard_that_nobody_wrote():
    assert found("@%p1 bra END;\nEND: ret;", parameters="", block=1).startswith(
        "uninitialized: bra uses register %p1, which was never written\n"
    )


COPY = """
    ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd2, %rd1, %rd2;
    mov.u32 %r2, s; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
    cp.async.cg.shared.global [%r2], [%rd2], 16;
    cp.async.commit_group;
"""
TILE = ".shared .align 16 .f32 s[128];"


def test_reading_before_the_copy_is_waited_for():
    body = COPY + "ld.shared.f32 %f1, [%r2+4];\ncp.async.wait_group 0;"
    assert found(body, np.zeros(128, np.float32), module=TILE) == (
        "unwaited-async: ld.shared.f32 accesses 4 bytes at s[1] while an asynchronous copy to it is in flight\n"
        "  <ptx>:11\n"
        "  <ptx>:9\n"
        "  by thread (0, 0, 0) of block (0, 0, 0) and 31 more threads\n"
        "  help: wait for the copy first, through its group or its mbarrier"
    )


def test_waiting_for_an_older_group_only():
    body = COPY + "cp.async.wait_group 1;\nld.shared.f32 %f1, [%r2+4];\ncp.async.wait_all;"
    assert "while an asynchronous copy to it is in flight" in found(body, np.zeros(128, np.float32), module=TILE)


def test_writing_where_a_copy_will_arrive():
    body = COPY + "st.shared.f32 [%r2+12], 0f00000000;\ncp.async.wait_all;"
    assert found(body, np.zeros(128, np.float32), module=TILE).startswith(
        "unwaited-async: st.shared.f32 accesses 4 bytes at s[3] while an asynchronous copy to it is in flight\n"
    )


def test_a_second_copy_to_the_same_place():
    body = COPY + "cp.async.ca.shared.global [%r2+8], [%rd2], 8;\ncp.async.wait_all;"
    assert found(body, np.zeros(128, np.float32), module=TILE).startswith(
        "unwaited-async: cp.async.ca.shared.global accesses 8 bytes at s[2] "
    )


def test_a_copy_from_beyond_the_end():
    body = COPY + "cp.async.wait_all;"
    assert found(body, np.zeros(127, np.float32), module=TILE).startswith(
        "out-of-bounds: cp.async.cg.shared.global reads 16 bytes at x[124]; x has 127 f32\n"
    )


def test_a_trap():
    assert found("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 7;\n@%p1 trap;", parameters="") == (
        "trap: the kernel executed a trap\n  <ptx>:7\n  by thread (7, 0, 0) of block (0, 0, 0)"
    )


def test_a_report_counts_what_it_has():
    assert str(run("ret;", parameters="", block=1)) == "1 thread instruction, 0 findings"
    twice = OWN + "ld.global.f32 %f1, [%rd2];\nst.global.f32 [%rd2], %f1;"
    assert str(run(twice, np.zeros(1, np.float32), block=2)).startswith("14 thread instructions, 2 findings\n")


def test_every_instruction_is_told_once():
    body = (
        OWN
        + """
        mov.u32 %r2, 0;
    LOOP:
        ld.global.f32 %f1, [%rd2];
        add.u64 %rd2, %rd2, 4; add.u32 %r2, %r2, 1;
        setp.lt.u32 %p1, %r2, 10;
        @%p1 bra LOOP;
    """
    )
    assert "x[20]" in found(body, np.zeros(20, np.float32), block=20)


def test_bounds_are_checked_without_checks():
    report = run(OWN + "ld.global.f32 %f1, [%rd2]; ld.shared.f32 %f2, [s];", np.zeros(30, np.float32),
                 module=".shared .f32 s;", checks=False)  # fmt: skip
    assert only(report).kind == "out-of-bounds"


def test_nothing_is_written_after_a_finding():
    x = np.zeros(30, np.float32)
    only(run(OWN + "st.global.f32 [%rd2], 0f3F800000;", x))
    assert (x == 0).all()


@pytest.mark.parametrize("block", [(8, 2, 2), (4, 8, 1)])
@pytest.mark.usefixtures("lockstep")
def test_threads_are_named_in_three_dimensions(block):
    body = "mov.u32 %r1, %tid.y; setp.eq.u32 %p1, %r1, 1;\n@%p1 trap;"
    finding = only(run(body, parameters="", grid=(2, 3, 2), block=block))
    assert str(finding.threads[0]) == "thread (0, 1, 0) of block (0, 0, 0)"
    assert str(finding.threads[block[0]]).startswith(
        "thread (0, 1, 1)" if block[2] > 1 else "thread (0, 1, 0) of block (1"
    )


def copy(tile, word, source):
    pd.ptx.cp.async_.ca.shared.global_(tile.address(word), source, 4)  # copied


@pd.kernel
def copied_twice(x: ptr[f32], y: ptr[f32]):
    tile = pd.shared(f32, 64)
    copy(tile, 2 * pd.tid.x, x + pd.tid.x)
    copy(tile, 2 * pd.tid.x + 1, x + 32 + pd.tid.x)
    both = pd.ptx.ld.shared.v2.f32(tile.address(2 * pd.tid.x))
    y[pd.tid.x] = both[0] + both[1]


def test_a_line_of_a_helper_that_takes_part_twice_is_shown_once():
    finding = pd.emulate(copied_twice, 1, 32, np.ones(64, np.float32), np.zeros(32, np.float32)).findings[0]
    assert len(finding.locations) == 3
    assert str(finding).count("# copied") == 1
