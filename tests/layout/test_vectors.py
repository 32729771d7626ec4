"""Every number that CUTLASS's headers gave for layouts, swizzles, atoms, tiled copies and ldmatrix."""

import re

import numpy as np
import pytest

import ptxdsl.layout as pl
from ptxdsl.errors import LayoutError
from ptxdsl.layout import (
    Layout,
    Swizzle,
    bank_wavefronts,
    composition,
    copy_atom,
    make_tiled_copy,
    make_tiled_copy_a,
    make_tiled_copy_b,
    make_tiled_mma,
    mma_atom,
    parse_layout,
    tile_to_shape,
)
from tests.layout.vectors import layout, load, nested

OPERATIONS = {"filter": "filter_", "coalesce_by_mode": "coalesce"}
PLAIN_TUPLES = {"coalesce_by_mode", "tile_to_shape"}  # whose second argument is no tiler

ATOMS = {
    "SM80_16x8x16_F32F16F16F32_TN": "mma.m16n8k16.f32.f16",
    "SM80_16x8x32_S32S8S8S32_TN": "mma.m16n8k32.s32.s8",
    "SM90_64x64x16_F32F16F16_SS<K,K>": "wgmma.m64n64k16.f32.f16",
    "SM90_64x64x16_F32F16F16_RS<K,K>": "wgmma.m64n64k16.f32.f16.rs",
    "SM75_U32x1_LDSM_N": "ldmatrix.x1",
    "SM75_U32x2_LDSM_N": "ldmatrix.x2",
    "SM75_U32x4_LDSM_N": "ldmatrix.x4",
    "SM75_U16x2_LDSM_T": "ldmatrix.x1.trans",
    "SM75_U16x4_LDSM_T": "ldmatrix.x2.trans",
    "SM75_U16x8_LDSM_T": "ldmatrix.x4.trans",
    "SM90_U32x4_STSM_N": "stmatrix.x4",
    "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>": "cp.async.16",
    "UniversalCopy32": "ld.shared.4",
    "UniversalCopy128": "ld.shared.16",
    "AutoVec": "ld.shared.2",
}


def rows(name, kind=None):
    return [r for r in load(name) if kind is None or r["kind"] == kind]


def numbered(cases):
    return [pytest.param(r, id=f"{i}-{r.get('op') or r.get('name') or ''}") for i, r in enumerate(cases)]


def arguments(row):
    first, *others = row["args"]
    return [layout(first), *(nested(a) if row["op"] in PLAIN_TUPLES else layout(a) for a in others)]


def apply(row):
    return getattr(pl, OPERATIONS.get(row["op"], row["op"]))(*arguments(row))


ALGEBRA = rows("cute_layout_algebra")


@pytest.mark.parametrize("row", numbered(r for r in ALGEBRA if "result" in r))
def test_algebra_gives_the_layout_of_the_cpp_headers(row):
    result, expected = apply(row), row["result"]
    if isinstance(expected, int):
        assert result == expected
        return
    assert result == layout(expected["layout"])
    assert (pl.size(result), pl.cosize(result)) == (expected["size"], expected["cosize"])
    assert result.offsets()[: len(expected["values"])] == expected["values"]


@pytest.mark.parametrize("row", numbered(r for r in ALGEBRA if "Condition" in r.get("cute_cpp_error", "")))
def test_compositions_that_the_cpp_headers_reject_are_refused(row):
    with pytest.raises(LayoutError, match=r"mode 0 of the right layout, \d+:\d+, selects the offsets"):
        apply(row)


def test_a_divide_that_leaves_a_mode_whole_is_the_one_pycute_gives():
    (row,) = (r for r in ALGEBRA if "incomplete type" in r.get("cute_cpp_error", ""))
    assert apply(row).offsets() == layout(row["pycute"]).offsets()


@pytest.mark.parametrize("row", numbered(load("cute_composition_admissibility")))
def test_composition_accepts_exactly_what_is_representable(row):
    a, b = layout(row["A"]), layout(row["B"])
    if row["representable_as_layout"]:
        result = composition(a, b)
        assert result.offsets() == row["true_values"]
        if row["cute_cpp"] == "correct":
            assert result == layout(row["cute_cpp_result"])
    else:
        values = ", ".join(map(str, row["true_values"]))
        with pytest.raises(LayoutError, match=f"mode 0 of the right layout, .* selects the offsets {values}"):
            composition(a, b)


@pytest.mark.parametrize("row", numbered(rows("cute_swizzle_composed", "swizzle_apply")))
def test_swizzles_map_each_offset_as_the_cpp_headers(row):
    swizzle = Swizzle(row["B"], row["M"], row["S"])
    assert (swizzle.source, swizzle.target) == (row["yyy_msk"], row["zzz_msk"])
    assert [[i, swizzle(i)] for i, _ in row["first_values"]] == row["first_values"]


SW = composition(Swizzle(2, 3, 3), Layout((8, 32), (32, 1)))
COMPOSED = {
    "tile_to_shape(Sw<2,3,3> o (8,32):(32,1), (16,32))": lambda: tile_to_shape(SW, (16, 32)),
    "downcast<2>(Sw<2,3,3> o (8,32):(32,1))": lambda: pl.downcast(SW, 2),
    "logical_divide(Sw<2,3,3> o (8,32):(32,1), (4,8))": lambda: pl.logical_divide(SW, (4, 8)),
    "composition(Sw<1,3,3>*Sw<1,4,3> merged)": lambda: composition(
        composition(Swizzle(1, 3, 3), Swizzle(1, 4, 3)), Layout((8, 32), (32, 1))
    ),
}


@pytest.mark.parametrize("row", rows("cute_swizzle_composed", "composed_layout"), ids=lambda r: r["expr"])
def test_composed_layouts_are_those_of_the_cpp_headers(row):
    result = COMPOSED[row["expr"]]()
    assert result == layout(row["layout"])
    assert (pl.size(result), pl.cosize(result)) == (row["size"], row["cosize"])
    assert result.offsets() == row["values_colex"]


@pytest.mark.parametrize("row", numbered(rows("cute_tiled_copy_mma", "mma_atom")))
def test_mma_atoms_hold_the_elements_that_cute_says(row):
    atom = mma_atom(ATOMS[row["name"]])
    assert list(atom.shape) == row["shape_mnk"] and atom.threads == row["thr_id"]["shape"]
    for operand, extent in (("A", 0), ("B", 1), ("C", 0)):
        tv = getattr(atom, operand.lower())
        assert tv == layout(row[f"layout{operand}_TV"])
        table = next((row[k] for k in row if k.startswith(f"{operand}_thread_value")), [])
        rows_ = atom.shape[extent]
        for thread, values in enumerate(table):
            assert [[tv(thread, v) % rows_, tv(thread, v) // rows_] for v in range(len(values))] == values


@pytest.mark.parametrize("row", numbered(rows("cute_tiled_copy_mma", "copy_atom")))
def test_copy_atoms_move_what_cute_says(row):
    atom = copy_atom(ATOMS[row["name"]])
    assert (atom.source_bits, atom.target_bits) == (layout(row["bit_src"]), layout(row["bit_dst"]))
    assert atom.source_values(16) == layout(row["val_src"])
    assert atom.target_values(16) == layout(row["val_dst"])
    assert atom.reference_values(16) == layout(row["val_ref"])


F16 = "mma.m16n8k16.f32.f16"
TILED_COPIES = {
    "flat_4x32_kmajor": lambda: make_tiled_copy("cp.async.16", Layout((4, 32), (32, 1)), (1, 8)),
    "issue1545": lambda: make_tiled_copy("cp.async.16", (16, 16), (8, 1)),
    "B_x4_2x2_32x32x16": lambda: make_tiled_copy_b("ldmatrix.x4", make_tiled_mma(F16, (2, 2, 1), (32, 32, 16))),
}


@pytest.mark.parametrize("row", numbered(rows("cute_tiled_copy_mma", "tiled_copy")))
def test_tiled_copies_are_those_of_cute(row):
    copy = TILED_COPIES[row["name"]]()
    assert (list(copy.tile), copy.threads, copy.values) == (row["tiler_mn"], row["num_threads"], row["num_values"])
    assert copy.layout_tv == layout(row["layout_tv"])
    assert copy.source_tv == layout(row["layoutS_TV"]) and copy.target_tv == layout(row["layoutD_TV"])
    height = copy.tile[0]
    for thread, values in enumerate(row.get("thread_value_to_mn", [])):
        positions = [copy.layout_tv(thread, v) for v in range(len(values))]
        assert [[p % height, p // height] for p in positions] == values


def read_mma(text):
    """ "2x2x1 tile 32x32x16" """
    warps, tile = ([int(n) for n in part.split("x")] for part in text.split(" tile "))
    return make_tiled_mma(F16, tuple(warps), tuple(tile))


def read_smem(text):
    if match := re.fullmatch(r"tile_to_shape\((.*?) o (.*?),(\(\d+,\d+\))\)", text):
        return tile_to_shape(parse_layout(f"{match[1]} o 0 o {match[2]}"), parse_layout(match[3]).shape)
    return parse_layout(text.replace("> o (", "> o 0 o ("))


def loaded(copy, smem):
    """What a thread's registers hold after its ldmatrix instructions: (thread, value) → linear coordinate in smem.

    By the addresses of the lanes, as the instruction works: lane l gets two neighbours of row l / 4 of each matrix, or
    with .trans of its column l / 4.
    """
    lane = np.arange(32)
    partition = copy.partition_s(smem)
    threads, vector = partition[0].size, partition[1][0].size
    addresses = np.array(partition.offsets()).reshape(32, threads // 32, vector, -1, order="F")[:, :, 0]
    registers = []
    for matrix, half in np.ndindex(copy.atom.addressing_threads // 8, 2):
        row, column = lane // 4, lane % 4 * 2 + half
        if copy.atom.transposed:
            row, column = column, row
        registers.append(addresses[8 * matrix + row] + column[:, None, None])
    where = np.full(max(smem.offsets()) + 1, -1)
    where[smem.offsets()] = np.arange(pl.size(smem))
    return where[np.stack(registers, axis=2).reshape(threads, -1, order="F")]


@pytest.mark.cases(3)
@pytest.mark.parametrize("row", numbered(rows("cute_tiled_copy_mma", "ldsm_partition")))
def test_ldmatrix_brings_each_thread_the_fragment_of_its_mma(row):
    mma, smem = read_mma(row["tiled_mma"]), read_smem(row["smem_layout"])
    operand = row["operand"].lower()
    copy = {"a": make_tiled_copy_a, "b": make_tiled_copy_b}[operand](ATOMS[row["copy_atom"]], mma)
    partition = copy.partition_s(smem)
    _, values, *tiles = partition
    assert [pl.size(t) for t in tiles] == row["rows_of_addresses_per_thread"]
    assert values.size == row["src_elems_per_atom"]
    assert [m.size for m in values] == [pl.size(nested(n)) for n in row["partition_S_shape"][0]]
    for thread, offsets in enumerate(row.get("lane_row_offsets_elems", [])):
        m, k = tiles
        assert [partition(thread, 0, i, j) for i in range(m.size) for j in range(k.size)] == offsets

    shape = (128, pl.size(smem) // 128)
    held = np.array(mma.partition(operand, Layout(shape)).offsets()).reshape(mma.threads, -1, order="F")
    order = copy.retile(mma.fragment(operand, shape)).offsets()
    assert (loaded(copy, smem) == held[:, order]).all()
    assert bank_wavefronts(copy, smem).worst == row["worst_ways_per_8lane_phase"]


MATRIX = load("ldsm_validity_matrix")
TILED_MMAS = {
    "atom111": (F16,),
    "warps121": (F16, (1, 2, 1)),
    "warps221": (F16, (2, 2, 1)),
    "warps221_tile32x32x16": (F16, (2, 2, 1), (32, 32, 16)),
    "atom111_tile16x16x16": (F16, (1, 1, 1), (16, 16, 16)),
    "atom111_tile16x8x32": (F16, (1, 1, 1), (16, 8, 32)),
    "warps411_tile64x16x16": (F16, (4, 1, 1), (64, 16, 16)),
    "k8_atom111": ("mma.m16n8k8.f32.f16",),
    "k8_tile16x16x8": ("mma.m16n8k8.f32.f16", (1, 1, 1), (16, 16, 8)),
    "k8_tile16x32x8": ("mma.m16n8k8.f32.f16", (1, 1, 1), (16, 32, 8)),
}
K_MAJOR = Layout((128, 64), (64, 1))
SMEM = {
    "Kmajor": K_MAJOR,
    "Kmajor_sw333": composition(Swizzle(3, 3, 3), K_MAJOR),
    "Kmajor_pad72": Layout((128, 64), (72, 1)),
    "Kmajor_pad68": Layout((128, 64), (68, 1)),
    "Kmajor_pad65": Layout((128, 64), (65, 1)),
    "MNmajor": Layout((128, 64), (1, 128)),
    "MNmajor_sw333": tile_to_shape(composition(Swizzle(3, 3, 3), Layout((64, 8), (1, 64))), (128, 64)),
}
REFUSED = {
    "too few vals": r"moves \d values of 16 bits per thread: found \d per thread in operand [AB]",
    "failed to vectorize": r"contiguous values of 16 bits per thread: found offsets 0, .*|"
    r"reads 8 contiguous elements of 16 bits, along [MN] or K: found \([MN], K\) = \(0,0\), \(0,1\), \((0,8|8,0)\), ",
    "Divisibility condition": r"contiguous values of 16 bits per thread: found offsets 0, 6[58], ",
}
MISALIGNED = r"at multiples of \d+ bytes: found a pitch of 6[58] elements"


def expected_refusal(row):
    """Our refusal of a row of the matrix; None where the copy works, on hardware too."""
    if row["outcome"] == "ok":
        vector = copy_atom(ATOMS[row["copy_atom"]]).vector_bytes
        pitch = re.search(r"pad(\d+)", row["smem_layout"])
        return MISALIGNED if pitch and int(pitch[1]) * 2 % vector else None
    return next(text for cause, text in REFUSED.items() if cause in row["outcome"])


@pytest.mark.parametrize(
    "row", MATRIX["rows"], ids=lambda r: "-".join(r[k] for k in ("tiled_mma", "operand", "copy_atom", "smem_layout"))
)
def test_ldmatrix_is_refused_where_cute_refuses_it_and_where_it_would_fault(row):
    make = {"A": make_tiled_copy_a, "B": make_tiled_copy_b}[row["operand"]]

    def partition():
        mma = make_tiled_mma(*TILED_MMAS[row["tiled_mma"]])
        return make(ATOMS[row["copy_atom"]], mma).partition_s(SMEM[row["smem_layout"]])

    refusal = expected_refusal(row)
    if refusal is None:
        assert pl.size(partition()) >= 128 * 64
    else:
        with pytest.raises(LayoutError, match=refusal):
            partition()
