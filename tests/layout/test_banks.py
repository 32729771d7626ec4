"""Wavefronts of shared-memory accesses, counted by hand."""

import pytest

from ptxdsl.errors import LayoutError
from ptxdsl.layout import (
    Layout,
    Swizzle,
    bank_wavefronts,
    composition,
    make_tiled_copy,
    make_tiled_copy_a,
    make_tiled_copy_c,
    make_tiled_mma,
    to_text,
)
from ptxdsl.layout.banks import phases_of

ROWS_128 = Layout((64, 64), (64, 1))  # 16-bit elements: rows of 128 bytes
ROWS_64 = Layout((64, 32), (32, 1))


def counts(access, layout, bits=16):
    report = bank_wavefronts(access, layout, bits)
    return report.total, report.ideal, report.worst


@pytest.mark.parametrize("access", ["ldmatrix.x1", "ldmatrix.x2", "ldmatrix.x4", "stmatrix.x4", "ldmatrix.x4.trans"])
def test_eight_rows_of_128_bytes_meet_in_the_same_banks(access):
    assert counts(access, ROWS_128) == (8 * 64, 64, 8)
    assert counts(access, ROWS_64) == (4 * 32, 32, 4)  # two rows are side by side in 128 bytes
    assert counts(access, Layout((64, 64), (72, 1))) == (64, 64, 1)
    assert counts(access, composition(Swizzle(3, 3, 3), ROWS_128)) == (64, 64, 1)
    assert counts(access, composition(Swizzle(2, 3, 3), ROWS_64)) == (32, 32, 1)


def test_a_swizzle_by_the_row_modulo_four_leaves_two_way_conflicts():
    assert counts("ldmatrix.x4", composition(Swizzle(2, 3, 2), ROWS_64)) == (2 * 32, 32, 2)


def test_the_matrices_of_an_mn_major_tile_are_read_along_its_columns():
    assert counts("ldmatrix.x4.trans", Layout((64, 64), (1, 64))) == (8 * 64, 64, 8)
    assert counts("ldmatrix.x4.trans", composition(Swizzle(3, 3, 3), Layout((64, 64), (1, 64)))) == (64, 64, 1)


@pytest.mark.parametrize(
    "access, instructions, phases",
    [("cp.async.16", 16, 4), ("ld.shared.16", 16, 4), ("ld.shared.8", 32, 2), ("st.shared.4", 64, 1), ("ld.2", 128, 1)],
)
def test_lanes_side_by_side_are_served_128_bytes_at_a_time(access, instructions, phases):
    assert counts(access, ROWS_128) == (instructions * phases, instructions * phases, 1)


@pytest.mark.parametrize("stride, ways", [(1, 1), (2, 2), (3, 1), (8, 8), (32, 32), (33, 1), (0, 1)])
def test_words_at_a_stride_conflict_by_its_common_factor_with_32(stride, ways):
    (phase,) = phases_of([4 * stride * lane for lane in range(32)], 4)
    assert len(phase) == ways
    assert sorted(lane for wave in phase for lanes in wave.values() for lane in lanes) == list(range(32))


def test_lanes_that_read_one_word_share_it():
    (phase,) = phases_of([lane // 2 * 4 for lane in range(32)], 4)
    assert phase == ({bank: [2 * bank, 2 * bank + 1] for bank in range(16)},)
    (halves,) = phases_of([2 * lane for lane in range(32)], 2)
    assert len(halves) == 1


def test_a_misaligned_access_is_refused():
    with pytest.raises(LayoutError) as caught:
        phases_of([0, 130], 16)
    assert caught.value.message == "an access of 16 bytes at byte 130, which is not a multiple of 16"


def test_a_tiled_copy_is_counted_by_its_own_instructions():
    mma = make_tiled_mma("mma.m16n8k16.f32.f16", (2, 2, 1), (32, 32, 16))
    load = make_tiled_copy_a("ldmatrix.x4", mma)
    assert counts(load, ROWS_128) == (4 * 8 * 4 * 4 * 2, 4 * 4 * 4 * 2, 8)  # warps x ways x phases x K x M steps
    assert counts(load, composition(Swizzle(3, 3, 3), ROWS_128)) == (128, 128, 1)
    by_pairs = make_tiled_copy_c("st.shared.4", mma, bits=16)
    assert counts(by_pairs, ROWS_128) == (4 * 64 // 2 * 8 // 2, 64, 8)
    assert counts(by_pairs, composition(Swizzle(3, 3, 3), ROWS_128)) == (64, 64, 1)
    copy = make_tiled_copy("cp.async.16", Layout((16, 8), (8, 1)), (1, 8))
    assert counts(copy, composition(Swizzle(3, 3, 3), ROWS_128)) == (64, 64, 1)


def test_the_report_names_the_conflict():
    assert str(bank_wavefronts("ldmatrix.x4", ROWS_64)) == (
        "ldmatrix.x4 of (64,32):(32,1): 128 wavefronts of 32 at best, 4-way conflict"
    )
    assert str(bank_wavefronts("ldmatrix.x1", composition(Swizzle(2, 3, 3), ROWS_64))) == (
        "ldmatrix.x1 of Sw<2,3,3> o 0 o (64,32):(32,1): 32 wavefronts of 32 at best, no conflict"
    )


def test_lanes_that_share_a_word_share_a_cell():
    (grid,) = bank_wavefronts("ld.shared.2", Layout((1, 64), (64, 1))).picture().grids
    assert [cell.lines for cell in grid.cells[0][:3]] == [("T0+1",), ("T2+1",), ("T4+1",)]


def test_an_access_along_no_contiguous_mode_runs_along_the_last():
    with pytest.raises(LayoutError, match="contiguous in no mode"):
        bank_wavefronts("ld.shared.4", Layout((64, 64), (2, 128)))
    assert counts("ld.shared.2", Layout((32, 64), (128, 2))) == (64, 64, 1)  # a row of 32 lanes, a word each


def test_its_picture_shows_which_lanes_each_wavefront_serves():
    assert (
        to_text(bank_wavefronts("ldmatrix.x1", ROWS_64), color=False)
        == """\
ldmatrix.x1 of (64,32):(32,1): 128 wavefronts of 32 at best, 4-way conflict

one instruction; rows are phase.wavefront, columns banks
       0-3   4-7  8-11 12-15 16-19 20-23 24-27 28-31
 0.0    T0                      T1                  \n\
 0.1    T2                      T3                  \n\
 0.2    T4                      T5                  \n\
 0.3    T6                      T7                  \n"""
    )
