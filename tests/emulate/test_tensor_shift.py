"""tcgen05.shift: the rows that move, what follows a shift without waiting, and what is refused."""

import numpy as np
import pytest

from ptxdsl.assemble import assemble
from tests.emulate.support import clean
from tests.emulate.tensor_kernels import launch, source, words
from tests.emulate.test_tensor_memory import dump, fill
from tests.emulate.test_tensor_order import AFTER, BEFORE, PROXY, SYNC, wait
from tests.isa.pair_products import MEET, paired

READY = "tcgen05.wait::st.sync.aligned;\n" + BEFORE + PROXY
INIT = "@%p1 mbarrier.init.shared::cta.b64 [%r4], 1; fence.mbarrier_init.release.cluster;\n"
SHIFT = "tcgen05.shift.cta_group::1.down [%r9];\n"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n"
FROM = "add.u32 %r9, %r7, {};\n"
ROWS = f"mov.b64 %rd5, {1 << 46 | 128 // 16 << 32 | 128 // 16 << 16};\n"


def shifted(cells, lane, column):
    """Cells, (columns, lanes), after a shift of 32 lanes and 8 columns."""
    result, part = cells.copy(), np.s_[column : column + 8]
    result[part, lane : lane + 31] = cells[part, lane + 1 : lane + 32]
    return result


def run(work, rng, **options):
    matrix, result = words(rng, 128), np.zeros((128, 128), np.uint32)
    body = (
        fill(128) + READY + options.pop("setup", "") + INIT + SYNC + AFTER + FROM.format(options.pop("at", "0x200004"))
    )
    text = source(body + "@!%p1 bra W;\n" + work + wait() + AFTER + dump(128), 128)
    return launch(text, matrix, result, **options), matrix, result


def test_each_row_but_the_last_takes_the_next(rng):
    """Lanes 32 to 63, columns 4 to 11."""
    report, matrix, result = run(SHIFT + COMMIT, rng)
    clean(report)
    np.testing.assert_array_equal(result, shifted(matrix, 32, 4))


def test_shifts_that_are_not_pipelined_wait_for_each_other(rng):
    report, *_ = run(SHIFT + SHIFT + COMMIT, rng)
    assert (report.findings[0].kind, report.findings[0].message) == (
        "race",
        "tcgen05.shift.cta_group::1.down reads columns 4 to 11 of tensor memory, which tcgen05.shift.cta_group::1.down of "
        "the same warp may still write; no tcgen05.commit that covers it has arrived",
    )


@pytest.mark.parametrize("shape, is_pipelined", [("4x256b", True), ("128x256b", False)])
def test_a_copy_of_new_last_rows_follows_a_shift(shape, is_pipelined, rng):
    copy = (
        ROWS
        + f"add.u32 %r14, %r7, {0x1F0004 if is_pipelined else 4}; mov.b32 %r14, %r14; tcgen05.cp.cta_group::1.{shape} [%r14], %rd5;\n"
    )
    zero = "shl.b32 %r10, %r1, 6; add.u32 %r10, %r3, %r10; mov.b32 %r12, 0;\n"
    zero += "Q: st.shared.b32 [%r10], 0; add.u32 %r10, %r10, 4; add.u32 %r12, %r12, 1; setp.lt.u32 %p5, %r12, 16; @%p5 bra Q;\n"
    report, matrix, result = run(SHIFT + copy + COMMIT, rng, setup=zero + PROXY)
    if is_pipelined:
        clean(report)
        wanted = shifted(matrix, 32, 4)
        wanted[4:12, [31, 63, 95, 127]] = 0
        np.testing.assert_array_equal(result, wanted)
    else:
        assert report.findings[0].kind == "race"


def test_both_blocks_of_a_pair_shift(rng):
    ranks = "mul.wide.u32 %rd12, %r30, 65536; add.u64 %rd1, %rd1, %rd12; add.u64 %rd2, %rd2, %rd12;\n"
    commit = COMMIT.replace("shared::cluster.b64 [%r4]", "shared::cluster.multicast::cluster.b64 [%r4], %h1")
    body = ranks + fill(128) + READY + INIT + MEET + AFTER + FROM.format("0x600010")
    text = paired(body + "@!%p7 bra W; @!%p1 bra W;\n" + SHIFT + commit + wait() + AFTER + dump(128), 128)
    matrix, result = np.stack([words(rng, 128) for _ in range(2)]), np.zeros((2, 128, 128), np.uint32)
    clean(launch(text, matrix, result, grid=2))
    for block in (0, 1):
        np.testing.assert_array_equal(result[block], shifted(matrix[block], 96, 16))


def test_lanes_that_are_not_aligned(rng):
    finding = run(SHIFT + COMMIT, rng, at="0x100000")[0].findings[0]
    assert (finding.kind, finding.message, finding.help) == (
        "tensor-memory", "tcgen05.shift.cta_group::1.down: its rows begin in lane 16",
        "begin in a multiple of 32: an address is lane << 16 | column",
    )  # fmt: skip


def test_cells_that_are_not_allocated(rng):
    finding = run(SHIFT + COMMIT, rng, at="124")[0].findings[0]
    assert (finding.kind, finding.message) == (
        "tensor-memory",
        "tcgen05.shift.cta_group::1.down writes columns 124 to 131 of tensor memory; the block has allocated columns 0 to 127",
    )


def test_the_assembler_warns_of_nothing(rng):
    text = source(fill(128) + INIT + FROM.format(0) + SHIFT + COMMIT, 128)
    assert assemble(text, "sm_100a").warnings == ()
