"""The tiles of a GEMM in shared memory: each place is used once, and no access waits for a bank."""

from __future__ import annotations

import pytest

from ptxdsl import bf16, f16, f32, f64, s8
from ptxdsl.kernels.product.operands import Major, Operands, Side
from ptxdsl.kernels.sm80.fragments import by_warps
from ptxdsl.kernels.sm80.tile import OperandTile
from ptxdsl.kernels.sm80.tiling import WarpTiling
from ptxdsl.kernels.sm80.traits import WarpTraits
from ptxdsl.layout import bank_wavefronts, make_tiled_copy_a, make_tiled_copy_b

TILES = [
    OperandTile(type, mn, k, major, 16)
    for type in (f16, f32, s8, f64)
    for mn in (16, 48, 64, 80, 96, 112, 128, 192)
    for k in (32, 64)
    for major in Major
]


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_element_has_a_place_of_its_own(tile):
    assert sorted(tile.layout.offsets()) == list(range(tile.mn * tile.k))


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("threads", [96, 128, 256])
def test_copies_write_without_conflicts(tile, threads):
    copy = tile.copy(threads)
    assert bank_wavefronts(copy, tile.layout, "target").worst == 1


TILINGS = [
    *(WarpTiling((64, 64, 64), (32, 32)), WarpTiling((96, 112, 32), (48, 16)), WarpTiling((48, 192, 32), (16, 96))),
    WarpTiling((80, 96, 64), (80, 48, 32)),
]
TRAITS = [
    WarpTraits(tiling, Operands(inputs, output, major, major))
    for tiling in TILINGS
    for inputs, output in ((f16, f16), (bf16, f32), (f32, f32), (f64, f64))
    for major in Major
]


@pytest.mark.parametrize("traits", TRAITS, ids=lambda c: f"{c.tile}-{c.operands.inputs}-{c.operands.a_major}")
@pytest.mark.parametrize("operand", [Side.A, Side.B])
def test_fragments_are_read_without_conflicts(traits, operand):
    tile = traits.a if operand is Side.A else traits.b
    trans = "" if tile.major is Major.K else ".trans"
    atom = f"ldmatrix.x4{trans}" if tile.by_matrices else f"ld.shared.{tile.type.bytes}"
    copy = (make_tiled_copy_a if operand is Side.A else make_tiled_copy_b)(atom, traits.mma)
    assert bank_wavefronts(copy, by_warps(tile.layout, traits, operand)).worst == 1
