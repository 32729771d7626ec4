"""Parameters of the kernels of sm_90a: A and B as tensor maps, the rest as on every path."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ptxdsl as pd
from ptxdsl import b8, f32, ptr, s32, s64, u32
from ptxdsl.kernels.product.operands import CSource
from ptxdsl.kernels.product.product import Index, Product, Products, Tile, WorkTile
from ptxdsl.kernels.sm90.loads import TensorView
from ptxdsl.kernels.sm90.pixels import WindowGeometry, boxes_of, filter_gradient_boxes
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.traits.parameters import (
    Group,
    batch,
    extra_values,
    gemm_fields,
    group_view,
    product_of,
    ragged_fields,
    ragged_k_fields,
    shared_parameters,
    view,
)
from ptxdsl.trace.instruction import Scalar


@lru_cache(maxsize=1024)
def tensor_parameters(traits: WarpgroupTraits) -> Group:
    """Return the parameters of `warpgroup_gemm_kernel`: the tensors of A, m×k, and B, k×n, and of C and out if out is
    stored in boxes; else C and out are m×n and row-major."""
    boxes = {"out": traits.out_map} if traits.operands.out_boxes else {}
    if traits.c_boxes and traits.operands.c is CSource.SEPARATE:
        boxes["c"] = traits.out_map
    fields = {**gemm_fields(traits, traits.a.map, traits.b.map), **boxes}
    return pd.Parameters.of("TensorGemm", **fields, **_scale_fields(traits))


@lru_cache(maxsize=1024)
def tensor_ragged_parameters(traits: WarpgroupTraits, scatters: bool = False) -> Group:
    """Return the parameters of `warpgroup_ragged_kernel`: the tensor of all rows of A, as one plane or as one plane a
    group, and that of B, one plane a group; the `counters` of a TileQueue; out as a tensor, `boxes`, if it is stored
    so; the rest as in `ragged_kernel`. A whose rows are gathered is passed as there."""
    boxes = {"boxes": traits.out_map} if traits.operands.out_boxes and not scatters else {}
    gathers = traits.operands.a_gathered
    a = group_view(traits.operands.inputs) if gathers else traits.map_of_rows
    fields = ragged_fields(traits, a, traits.b.map, scatters)
    index = {"index": ptr[s32], "a_rows": u32} if gathers else {}
    return pd.Parameters.of("TensorRagged", **fields, **index, **_scale_fields(traits), counters=ptr[u32], **boxes)


class ScaleView(pd.Parameters):
    """Scales of a matrix. `line` is the elements between the scales of neighbouring rows of A, columns of B or blocks
    of these, `step` between blocks along K, `apart` between the matrices of groups."""

    pointer: ptr[f32]
    line: s64
    step: s64
    apart: s64


def _scale_fields(traits: WarpgroupTraits) -> dict[str, Any]:
    """Return the scales of A and B, if they have any."""
    return {"scale_a": ScaleView, "scale_b": ScaleView} if traits.operands.scaling else {}


def tensors_of(p: Any, traits: WarpgroupTraits) -> list[Any]:
    """Return the tensor maps among the parameters."""
    c = [p.c] if traits.c_boxes and traits.operands.c is CSource.SEPARATE else []
    return [p.a, p.b, p.out, *c] if traits.operands.out_boxes else [p.a, p.b]


def _views(tensors: dict[str, Any], planes: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return matrices as views of tensors, or of planes of tensors."""
    return {name: TensorView(map, planes[name] if planes else 0) for name, map in tensors.items()}


def _apart(p: Any, traits: WarpgroupTraits, name: str) -> Any:
    """Return the elements between the matrices of a batch; 0 if one matrix is shared by all."""
    return getattr(p.batches, "out" if name == "c" and traits.operands.c is CSource.IN_PLACE else name)


class TensorProducts(Products):
    """Products whose slices of K are never empty: an empty slice multiplies the zeros that TMA returns past the end of
    K. The item of a work tile is its batch by default."""

    def work(self, tile: Tile, batch: Index = 0, k: tuple[Index, Index] | None = None, item: Any = None) -> WorkTile:
        return super().work(tile, batch, k and (k[0], pd.max(k[1], k[0] + 1)), batch if item is None else item)


@lru_cache(maxsize=1024)
def tensor_ragged_k_parameters(traits: WarpgroupTraits) -> Group:
    """Return the parameters of `warpgroup_ragged_k_kernel`: those of `ragged_k_kernel`, the tensors of all rows of A
    and B, whose maps are the patterns for those of groups, memory for these, and the counters of a TileQueue."""
    boxes = {"boxes": traits.out_map} if traits.operands.out_boxes else {}
    if traits.c_boxes and traits.operands.c is CSource.SEPARATE:
        boxes["c"] = traits.out_map
    maps = {"a_map": traits.a.map, "b_map": traits.b.map, "maps": ptr[b8], "counters": ptr[u32]}
    fields = {**ragged_k_fields(traits), **maps, **boxes}
    return pd.Parameters.of("TensorRaggedK", **fields, **_scale_fields(traits))


@lru_cache(maxsize=1024)
def tensor_grouped_parameters(traits: WarpgroupTraits) -> Group:
    """Return the parameters of `warpgroup_grouped_kernel`: A and B of one of the problems, whose tensor maps are the
    patterns for all; `boxes`, one of the outputs if they are stored in boxes; `maps`, memory for rewritten maps; the
    `counters` of a TileQueue; the rest as in `grouped_kernel`."""
    numbers = {"problems": u32, "alpha": traits.scalar, "beta": traits.scalar}
    memory = {"maps": ptr[b8], "counters": ptr[u32], "table": ptr[s64]}
    boxes = {"boxes": traits.out_map} if traits.operands.out_boxes else {}
    return pd.Parameters.of("TensorGrouped", a=traits.map_of_rows, b=traits.b.map, **boxes, **memory, **numbers)


@lru_cache(maxsize=1024)
def tensor_conv2d_parameters(traits: WarpgroupTraits) -> Group:
    """Return the parameters of `warpgroup_conv2d_kernel`: the tensors of images and filters, the output as in
    `warpgroup_gemm_kernel`, and the geometry of the windows."""
    x, w = boxes_of(traits)
    out = traits.out_map if traits.operands.out_boxes else view(traits.operands.output)
    shared = shared_parameters(traits)
    return pd.Parameters.of("TensorConv2d", x=x.map, w=w.map, out=out, geometry=WindowGeometry, **shared)


@lru_cache(maxsize=1024)
def tensor_wgrad_parameters(traits: WarpgroupTraits) -> Group:
    """Return the parameters of `wgrad_kernel`: the tensors of the output's gradient and of the images, the rest as in a
    convolution."""
    x, out = (
        filter_gradient_boxes(traits),
        traits.out_map if traits.operands.out_boxes else view(traits.operands.output),
    )
    shared = shared_parameters(traits)
    return pd.Parameters.of("TensorWgrad", dy=traits.a.map, x=x.map, out=out, geometry=WindowGeometry, **shared)


def window_products(p: Any, traits: WarpgroupTraits, a: Any, b: Any) -> Products:
    """Return the products of a convolution, or of its filter gradient, with these parameters, A and B."""
    g, out = p.geometry, TensorView(p.out) if traits.operands.out_boxes else p.out
    extras = extra_values(p, traits.operands)
    return TensorProducts(Product(g.m, g.n, g.k, a, b, out, out, 1, 0, extras), traits.tile)


def tensor_products_of(p: Any, traits: WarpgroupTraits, alpha: Scalar | None = None) -> TensorProducts:
    """Return the products of a kernel with these parameters. Batches are planes of the tensors; a matrix shared by all
    batches has one plane. `alpha` replaces the parameter if given."""
    tensors: dict[str, Any] = {"a": p.a, "b": p.b}
    if traits.operands.out_boxes:
        tensors["out"] = p.out
    if traits.c_boxes:
        tensors["c"] = p.c if traits.operands.c is CSource.SEPARATE else p.out
    product = product_of(p, traits.operands, p.a, p.b)
    product = product._replace(**_views(tensors), alpha=product.alpha if alpha is None else alpha)
    if not traits.operands.is_batched:
        return TensorProducts(product, traits.tile)

    def of_batch(number: Any) -> Product:
        elsewhere = [name for name in ("c", "out") if name not in tensors]
        moved = batch(p, product, traits.operands, number, tuple(elsewhere))
        planes = {name: pd.select(_apart(p, traits, name) == 0, 0, number) for name in tensors}
        return moved._replace(**_views(tensors, planes))

    return TensorProducts(product, traits.tile, p.batches.count, of_batch)
