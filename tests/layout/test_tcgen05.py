"""Atoms of tcgen05: their instruction descriptors as the instruction decodes them, and pictures of tensor memory."""

import pytest

from ptxdsl.isa.tensor_descriptors import instruction
from ptxdsl.isa.tensor_scales import scaled_instruction
from ptxdsl.layout import mma_atom, parse, scale_layout
from ptxdsl.layout.mma_shapes import TCGEN05
from ptxdsl.layout.tensor_memory import fragment

PLAIN = [
    (kind.kind, f"tcgen05.m{m}n{n}k{kind.k}.{d}.{a}" + (f".{b}" if b != a else ""), (d, a, b), m, n)
    for kind in TCGEN05
    if not kind.scales
    for m, n in ((64, 8), (128, 256), (256, 32))
    for d in kind.sums
    for a in kind.inputs
    for b in kind.inputs
    if d == "f32" or kind.kind == "i8" or (a == b and a != "bf16")
]


@pytest.mark.cases(8)
@pytest.mark.parametrize(("kind", "name", "types", "m", "n"), PLAIN, ids=[case[1] for case in PLAIN])
def test_a_descriptor_has_the_types_and_the_shape_of_its_name(kind, name, types, m, n):
    atom = mma_atom(name)
    majors = (True, False) if types[1] in ("f16", "bf16", "e4m3", "e5m2") else (False, False)
    fields = instruction(f"kind::{kind}", atom.ctas, atom.descriptor(*majors))
    assert tuple(map(str, (fields.dtype, fields.atype, fields.btype))) == types
    assert (fields.m, fields.n, fields.k) == atom.shape == (m, n, atom.shape[2])
    assert (fields.transposed_a, fields.transposed_b) == majors
    assert (str(atom), atom.kind) == (name, kind)


@pytest.mark.parametrize(
    ("name", "kind", "size", "firsts"),
    [
        ("tcgen05.m128n16k32.f32.e4m3.e2m1.block32.ue8m0", "kind::mxf8f6f4", "block32", (0, 1, 2, 3, 0)),
        ("tcgen05.m128n16k64.f32.e2m1.block32.ue8m0", "kind::mxf4", "block32", (0, 2, 0)),
        ("tcgen05.m128n16k64.f32.e2m1.block16.ue4m3", "kind::mxf4nvf4", "block16", (0, 0)),
        ("tcgen05.m128n16k64.f32.e2m1.block16.ue8m0", "kind::mxf4nvf4", "block16", (0, 0)),
    ],
)
def test_a_descriptor_selects_the_scales_of_its_k_step(name, kind, size, firsts):
    atom = mma_atom(name)
    for step, first in enumerate(firsts):
        fields, scales = scaled_instruction(kind, size, 1, atom.descriptor(k_step=step))
        assert (fields.m, fields.n, fields.kind) == (128, 16, kind)
        assert scales == (atom.scales.type, atom.factors, first, first)


def test_d_is_drawn_by_lanes_and_columns():
    a, b, d = mma_atom("tcgen05.m64n8k16.f32.f16").picture().grids
    assert "shared memory" in a.title and "shared memory" in b.title
    assert d.title == "D (M x N) in tensor memory: lane and column of each element"
    assert [d.cells[row][3].lines for row in (0, 15, 16, 63)] == [
        ("L0", "C3"),
        ("L15", "C3"),
        ("L32", "C3"),
        ("L111", "C3"),
    ]


def test_a_pair_is_drawn_as_one_block_of_it():
    a, b, d = mma_atom("tcgen05.m256n32k16.f32.f16").picture().grids
    assert (a.height, b.width, d.height, d.width) == (128, 16, 128, 32)
    assert d.cells[127][31].lines == ("L127", "C31")


def test_a_in_tensor_memory_is_drawn_by_lanes_and_columns():
    a, *_ = mma_atom("tcgen05.m128n8k32.f32.e4m3.ts").picture().grids
    assert a.cells[127][31].lines == ("L127", "C7")


def test_scales_are_drawn_with_their_rows():
    *_, a, b = mma_atom("tcgen05.m128n40k64.f32.e2m1.block16.ue4m3").picture().grids
    assert [cell.lines for cell in a.cells[5]] == [(str(row), "k0-3") for row in (5, 37, 69, 101)]
    assert [cell and cell.lines for cell in b.cells[31]] == [("31", "k0-3"), None]


@pytest.mark.parametrize("name", ["tcgen05.ld.32x32b.x4", "tcgen05.st.16x256b.x2"])
def test_an_access_is_drawn_by_threads_and_registers(name):
    (grid,) = parse(name).picture().grids
    _, _, shape, repeats = name.split(".")
    cells = fragment(shape, int(repeats[1:]))
    for register, (lanes, columns) in enumerate(zip(cells.lanes, cells.columns, strict=True)):
        for thread, (lane, column) in enumerate(zip(lanes, columns, strict=True)):
            assert grid.cells[lane][column].lines == (f"T{thread}", f"V{register}")


def test_scales_of_a_row_are_in_one_cell_of_its_block():
    layout = scale_layout(256, 8)
    assert sorted(layout.offsets()) == list(range(2048))
    for row, factor in ((0, 0), (37, 3), (127, 7), (200, 5)):
        block, lane, column = row // 128 * 2 + factor // 4, row % 32, row % 128 // 32
        assert layout(row, factor) == block * 512 + lane * 16 + column * 4 + factor % 4
