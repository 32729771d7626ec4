"""Layouts, swizzles, tiled copies and tiled MMAs as values: CuTe's algebra on nested Python tuples."""

from functools import partial
from typing import TYPE_CHECKING

from ptxdsl.errors import refuse_attribute
from ptxdsl.layout.algebra import (
    as_layout,
    coalesce,
    complement,
    composition,
    cosize,
    crd2idx,
    depth,
    filter_,
    idx2crd,
    left_inverse,
    nullspace,
    rank,
    right_inverse,
    size,
    slice_,
)
from ptxdsl.layout.atoms import CopyAtom, atom, copy_atom, mma_atom
from ptxdsl.layout.banks import Wavefronts, bank_wavefronts
from ptxdsl.layout.draw import to_latex, to_svg, to_text
from ptxdsl.layout.index import Index
from ptxdsl.layout.layout import Layout
from ptxdsl.layout.mma_atom import MmaAtom
from ptxdsl.layout.parse import parse, parse_layout
from ptxdsl.layout.recast import byte_index, downcast, in_bytes, max_common_layout, max_common_vector, recast, upcast
from ptxdsl.layout.shared_operand import SharedOperand, shared_operand, tile_layout
from ptxdsl.layout.swizzle import ComposedLayout, InverseLayout, Swizzle
from ptxdsl.layout.tcgen05 import scale_layout
from ptxdsl.layout.tiled_copy import (
    ThreadCopy,
    TiledCopy,
    make_tiled_copy,
    make_tiled_copy_a,
    make_tiled_copy_b,
    make_tiled_copy_c,
)
from ptxdsl.layout.tiled_mma import ThreadMma, TiledMma, make_tiled_mma
from ptxdsl.layout.tiling import (
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from ptxdsl.layout.tma_copy import TmaAtom, TmaCopy, TmaTiles, tma_atom

__all__ = [
    "ComposedLayout",
    "CopyAtom",
    "Index",
    "InverseLayout",
    "Layout",
    "MmaAtom",
    "SharedOperand",
    "Swizzle",
    "ThreadCopy",
    "ThreadMma",
    "TiledCopy",
    "TiledMma",
    "TmaAtom",
    "TmaCopy",
    "TmaTiles",
    "Wavefronts",
    "as_layout",
    "atom",
    "bank_wavefronts",
    "blocked_product",
    "byte_index",
    "coalesce",
    "complement",
    "composition",
    "copy_atom",
    "cosize",
    "crd2idx",
    "depth",
    "downcast",
    "filter_",
    "flat_divide",
    "flat_product",
    "idx2crd",
    "in_bytes",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "make_tiled_copy",
    "make_tiled_copy_a",
    "make_tiled_copy_b",
    "make_tiled_copy_c",
    "make_tiled_mma",
    "max_common_layout",
    "max_common_vector",
    "mma_atom",
    "nullspace",
    "parse",
    "parse_layout",
    "raked_product",
    "rank",
    "recast",
    "right_inverse",
    "scale_layout",
    "shared_operand",
    "size",
    "slice_",
    "tile_layout",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "tma_atom",
    "to_latex",
    "to_svg",
    "to_text",
    "upcast",
    "zipped_divide",
    "zipped_product",
]

_ELSEWHERE = {
    "make_layout": "write `Layout(shape, stride)`",
    "make_ordered_layout": "write `Layout(shape, stride)`: a stride for each mode",
    "make_swizzle": "write `Swizzle(bits, base, shift)`, and `composition(swizzle, layout)`",
    "make_composed_layout": "write `composition(swizzle, layout)`",
    "make_tensor": "write `pd.view(pointer, layout)`",
    "local_tile": "write `zipped_divide(layout, tiler)`: its modes are (tile, rest)",
    "local_partition": "write `make_tiled_copy(…)`, whose `get_slice(thread)` has the thread's part",
    "make_copy_atom": 'write `atom(name)`, with the name of the instruction: atom("ldmatrix.x4")',
    "make_mma_atom": 'write `atom(name)`, with the name of the instruction: atom("mma.m16n8k16.f32.f16")',
    "size_in_bytes": "write `in_bytes(layout, element_bytes)`, whose `.cosize` it is",
}


if not TYPE_CHECKING:  # for type checkers, a misspelt name is an error
    __getattr__ = partial(refuse_attribute, __name__, __all__, _ELSEWHERE)
