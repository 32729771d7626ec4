"""Layouts, swizzles, tiled copies and tiled MMAs as values: CuTe's algebra on nested Python tuples."""

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
from ptxdsl.layout.draw import to_latex, to_svg, to_text
from ptxdsl.layout.index import Index
from ptxdsl.layout.layout import Layout
from ptxdsl.layout.parse import parse_layout
from ptxdsl.layout.recast import downcast, max_common_layout, max_common_vector, recast, upcast
from ptxdsl.layout.swizzle import ComposedLayout, Swizzle
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
