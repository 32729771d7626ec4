"""Tiled copies and MMAs: every element once, fragments as the instructions have them, a product by their rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxdsl.layout import (
    Layout,
    Swizzle,
    composition,
    copy_atom,
    idx2crd,
    make_tiled_copy,
    make_tiled_copy_a,
    make_tiled_copy_b,
    make_tiled_copy_c,
    make_tiled_mma,
    mma_atom,
    recast,
    size,
)
from tests.layout.fakes import Traced

ATOMS = [
    *("mma.m16n8k16.f32.f16", "mma.m16n8k16.f16.f16", "mma.m16n8k16.f32.bf16", "mma.m16n8k16.f64.f64"),
    *("mma.m16n8k16.s32.s8", "mma.m16n8k16.f32.e4m3", "mma.m16n8k8.f32.f16", "mma.m16n8k8.f32.tf32"),
    *("mma.m16n8k8.f64.f64", "mma.m16n8k4.f32.tf32", "mma.m16n8k4.f64.f64", "mma.m16n8k32.s32.u8"),
    *("mma.m16n8k32.f32.e5m2", "mma.m8n8k4.f64.f64", "mma.m8n8k16.s32.s8"),
]
WGMMA = ["wgmma.m64n8k16.f32.f16.rs", "wgmma.m64n256k32.s32.s8.rs", "wgmma.m64n96k8.f32.tf32.rs"]


def by_the_manual(operand, atom, lane, i):
    """(row, column) of element i of a lane, by the formulas of the PTX manual; B as (n, k)."""
    group, in_group = lane >> 2, lane % 4
    if operand == "c":
        return group + 8 * (i // 2), in_group * 2 + i % 2
    packed = max(1, 32 // getattr(atom, f"{operand}_bits"))
    register, part = divmod(i, packed)
    if operand == "b" or atom.shape[0] == 8:
        return group, in_group * packed + part + 4 * packed * register
    return group + 8 * (register % 2), in_group * packed + part + 4 * packed * (register // 2)


@pytest.mark.parametrize("name", ATOMS)
@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_fragments_are_those_of_the_manual(name, operand):
    atom = mma_atom(name)
    layout_tv = getattr(atom, operand)
    rows = atom.shape[1] if operand == "b" else atom.shape[0]
    for lane in range(32):
        for i in range(layout_tv[1].size):
            position = layout_tv(lane, i)
            assert (position % rows, position // rows) == by_the_manual(operand, atom, lane, i)


@pytest.mark.parametrize("name", ATOMS + WGMMA)
def test_a_fragment_holds_each_element_once(name):
    atom = mma_atom(name)
    m, n, k = atom.shape
    for operand, count in (("a", m * k), ("c", m * n)) + ((("b", n * k),) if name.startswith("mma") else ()):
        assert sorted(getattr(atom, operand).offsets()) == list(range(count))


@pytest.mark.parametrize(
    "name, same",
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.m16n8k16.f32.f16"),
        ("mma.m16n8k16", "mma.m16n8k16.f32.f16"),
        ("mma.m16n8k8.tf32", "mma.m16n8k8.f32.tf32"),
        ("mma.m8n8k4.f64", "mma.m8n8k4.f64.f64"),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "mma.m16n8k32.s32.s8.u8"),
        ("mma.m16n8k32.f32.e4m3.e5m2", "mma.m16n8k32.f32.e4m3.e5m2"),
        ("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16", "wgmma.m64n64k16.f32.bf16"),
        ("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2.rs", "wgmma.m64n64k32.f32.e4m3.e5m2.rs"),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "ldmatrix.x4.trans"),
        ("stmatrix.sync.aligned.m8n8.x2.shared::cta.b16", "stmatrix.x2"),
        ("cp.async.cg.shared.global.L2::128B.16", "cp.async.16"),
        ("ld.global.nc.L1::no_allocate.v4.f32", "ld.global.16"),
        ("st.shared.v2.b16", "st.shared.4"),
        ("ld.b128", "ld.16"),
        ("ld.volatile.u8", "ld.1"),
    ],
)
def test_the_full_name_of_an_instruction_means_the_same_atom(name, same):
    make = mma_atom if "mma" in name else copy_atom
    assert make(name).name == same and make(same) == make(name)
    assert make(name).threads == {"wgmma": 128, "cp": 1, "ld": 1, "st": 1}.get(same.split(".")[0], 32)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", ["ldmatrix", "stmatrix"])
@pytest.mark.parametrize("transposed", ["", ".trans"])
def test_matrix_copies_hand_each_row_to_four_lanes(kind, count, transposed):
    atom = copy_atom(f"{kind}.x{count}{transposed}")
    memory, registers = atom.source_values(16), atom.target_values(16)
    if kind == "stmatrix":
        memory, registers = registers, memory
    for lane in range(32):
        row = lane % (8 * count)
        assert [memory(lane, v) for v in range(8)] == list(range(8 * row, 8 * row + 8))
        for v in range(2 * count):
            matrix, along, across = v // 2, lane // 4, lane % 4 * 2 + v % 2
            row, column = (across, along) if transposed else (along, across)
            assert registers(lane, v) == 64 * matrix + 8 * row + column


MMAS = [
    make_tiled_mma("mma.m16n8k16.f32.f16"),
    make_tiled_mma("mma.m16n8k16.f32.f16", (2, 2, 1), (32, 32, 16)),
    make_tiled_mma("mma.m16n8k16.f32.f16", Layout((2, 4, 1), (4, 1, 8)), (64, 64, 32)),
    make_tiled_mma("mma.m16n8k8.f32.tf32", (4, 1, 1), (64, 16, 8)),
    make_tiled_mma("mma.m16n8k32.s32.s8", (1, 2, 2), (16, 32, 64)),
    make_tiled_mma("mma.m8n8k4.f64", (2, 2), (16, None, 8)),
]


def test_a_copy_for_an_atom_is_the_copy_for_one_warp_of_it():
    name = "mma.m16n8k16.f32.f16"
    copy = make_tiled_copy_a("ldmatrix.x4", make_tiled_mma(name))
    assert make_tiled_copy_a("ldmatrix.x4", name) == make_tiled_copy_a("ldmatrix.x4", mma_atom(name)) == copy
    assert make_tiled_copy_a(copy_atom("ldmatrix.x4"), name) == copy


def test_an_mma_partitions_the_layout_of_a_tensor():
    class Tensor:
        layout = Layout((64, 64))

    mma = MMAS[1]
    assert mma.partition_c(Tensor()) == mma.partition_c(Tensor.layout)


@pytest.mark.parametrize("mma", MMAS, ids=str)
@pytest.mark.parametrize("operand, missing", [("a", 1), ("b", 0), ("c", 2)])
def test_a_tiled_mma_holds_each_element_once_for_each_warp_of_the_other_dimension(mma, operand, missing):
    shape = tuple(2 * n for n in mma.tile_of(operand))
    offsets = mma.partition(operand, Layout(shape)).offsets()
    assert sorted(offsets) == sorted(list(range(shape[0] * shape[1])) * mma.warps[missing])
    tile = mma.layout_tv(operand).offsets()
    assert sorted(tile) == sorted(list(range(size(mma.tile_of(operand)))) * mma.warps[missing])


@pytest.mark.parametrize("mma", MMAS, ids=str)
def test_a_fragment_numbers_the_values_of_a_thread(mma):
    fragment = mma.fragment("c", (2 * mma.tile[0], mma.tile[1]))
    assert sorted(fragment.offsets()) == list(range(2 * mma.tile[0] * mma.tile[1] * mma.warps[2] // mma.threads))
    assert fragment[0].size == mma.atom.c[1].size


def test_threads_are_numbered_by_the_layout_of_the_warps():
    mma = make_tiled_mma("mma.m16n8k16.f32.f16", Layout((2, 4, 1), (4, 1, 8)))
    c = mma.partition_c(Layout((32, 32)))
    starts = [c(32 * warp, 0, 0, 0) for warp in range(8)]
    assert starts == [16 * (warp // 4) + 32 * 8 * (warp % 4) for warp in range(8)]


@pytest.mark.parametrize("make", [make_tiled_copy_a, make_tiled_copy_b, make_tiled_copy_c])
def test_both_sides_of_a_copy_cover_the_tile_alike(make):
    mma = MMAS[1]
    for name in ("ldmatrix.x1", "ldmatrix.x2", "ldmatrix.x4", "ldmatrix.x4.trans", "stmatrix.x4", "ld.shared.4"):
        copy = make(name, mma, bits=16)
        if copy.atom.is_matrix:  # an address serves a row: lanes without one of their own repeat it
            assert set(copy.source_tv.offsets()) == set(copy.target_tv.offsets()) == set(range(size(copy.tile)))
        registers = copy.target_tv if copy.atom.target == "registers" else copy.source_tv
        assert registers.offsets() == copy.layout_tv.offsets()


@given(
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
    st.sampled_from([2, 4, 8, 16]),
    st.sampled_from([8, 16, 32]),
)
def test_a_tiled_copy_moves_each_element_of_the_tile_once(rows, columns, row_major, vector_bytes, bits):
    length = max(1, vector_bytes * 8 // bits)
    threads = Layout((rows, columns), (columns, 1) if row_major else (1, rows))
    atom = f"ld.shared.{length * bits // 8}"
    copy = make_tiled_copy(atom, threads, (1, length), bits)
    assert copy.tile == (rows, columns * length)
    layout = Layout((2 * rows, 3 * columns * length), (3 * columns * length, 1))
    partition = copy.partition_s(layout)
    assert sorted(partition.offsets()) == list(range(size(layout)))
    for thread in range(threads.size):
        row, column = divmod(thread, columns) if row_major else (thread % rows, thread // rows)
        assert partition(thread, 0, 0, 0) == layout(row, column * length)
    assert (
        copy.get_slice(threads.size - 1).partition_s(layout).offsets()
        == partition.offsets()[threads.size - 1 :: threads.size]
    )


def test_a_tiled_copy_may_be_one_dimensional():
    copy = make_tiled_copy("ld.global.16", 64, 4, bits=32)
    assert copy.tile == (256,)
    assert copy.get_slice(3).partition_s(Layout(1024)).offsets() == [
        12 + i + 256 * j for j in range(4) for i in range(4)
    ]


def test_coordinates_say_where_each_value_is():
    copy = make_tiled_copy("cp.async.16", Layout((32, 4), (4, 1)), (1, 8))
    rows, columns = copy.get_slice(Traced(77, "t")).coordinates((128, 64))
    offsets = copy.partition_s(Layout((128, 64), (64, 1)))
    for i in range(rows.size):
        coord = idx2crd(i, rows.shape)
        row, column = rows.index(coord).get(), columns.index(coord).get()
        numbers = [v.number if isinstance(v, Traced) else v for v in (row, column)]
        assert offsets(77, *coord) == 64 * numbers[0] + numbers[1]
    assert repr(rows(0)) == "(t>>2)" and repr(columns(0)) == "((t&3)<<3)"
    assert columns.shape == ((8, 1), 4, 2)


def test_retile_gives_the_registers_of_each_instruction():
    fragment = MMAS[1].fragment("b", (128, 64))
    assert str(fragment) == "((2,2),8,4):((1,2),4,32)"
    assert str(make_tiled_copy_b("ldmatrix.x4", MMAS[1]).retile(fragment)) == "((8,1),4,4):((1,0),8,32)"
    by_register = recast(make_tiled_copy_b("ldmatrix.x4", MMAS[1]).retile(fragment), 16, 32)
    assert by_register.offsets() == list(range(4 * 4 * 4))
    assert str(make_tiled_copy_b("ldmatrix.x2", MMAS[1]).retile(fragment)) == "((4,2),4,4):((1,4),8,32)"


def warp_product(atom, a, b):
    """D = A @ B' of one atom, from and to the registers of its lanes: a[lane, value], b[lane, value]."""
    m, n, k = atom.shape
    flat_a, flat_b = np.zeros(m * k, int), np.zeros(n * k, int)
    flat_a[np.array(atom.a.offsets())] = a.ravel(order="F")
    flat_b[np.array(atom.b.offsets())] = b.ravel(order="F")
    product = flat_a.reshape(m, k, order="F") @ flat_b.reshape(n, k, order="F").T
    return product.ravel(order="F")[np.array(atom.c.offsets())].reshape(32, -1, order="F")


@pytest.mark.parametrize("mma", MMAS[:4], ids=str)
def test_a_tile_product_by_the_rules_of_the_instructions_is_the_product(mma):
    rng = np.random.default_rng(7)
    m, n, k = (2 * extent for extent in mma.tile)
    a, b = rng.integers(-9, 9, (m, k)), rng.integers(-9, 9, (n, k))
    held = {
        name: np.array(mma.partition(name, Layout(shape)).offsets()).reshape(
            mma.threads, -1, *(mode.size for mode in list(mma.partition(name, Layout(shape)))[2:]), order="F"
        )
        for name, shape in (("a", (m, k)), ("b", (n, k)), ("c", (m, n)))
    }
    registers_a, registers_b = a.ravel(order="F")[held["a"]], b.ravel(order="F")[held["b"]]
    c = np.zeros(m * n, int)
    for warp in range(mma.threads // 32):
        lanes = slice(32 * warp, 32 * warp + 32)
        for i, j, step in np.ndindex(held["c"].shape[2], held["c"].shape[3], held["a"].shape[3]):
            d = warp_product(mma.atom, registers_a[lanes, :, i, step], registers_b[lanes, :, j, step])
            c[held["c"][lanes, :, i, j]] += d
    assert (c.reshape(m, n, order="F") == a @ b.T).all()


def test_an_epilogue_through_shared_memory_stores_rows_of_16_bytes():
    mma = MMAS[1]
    staging = composition(Swizzle(3, 3, 3), Layout((64, 64), (64, 1)))
    written = make_tiled_copy_c("stmatrix.x4", mma, bits=16).partition_d(staging)
    read = make_tiled_copy("ld.shared.16", Layout((16, 8), (8, 1)), (1, 8)).partition_s(staging)
    assert set(written.offsets()) == set(read.offsets()) == set(range(64 * 64))
    assert read[1].shape == (8, 1)
