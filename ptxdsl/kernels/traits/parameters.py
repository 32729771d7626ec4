"""Kernel parameters by name: the product, and those of its schedule, batches and epilogue."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeAlias

import ptxdsl as pd
from ptxdsl import ptr, s32, s64, u32, u64
from ptxdsl.kernels.product.operands import Batches, CSource, Extra, Operands
from ptxdsl.kernels.product.product import Product, Products, View
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.trace.instruction import Scalar
from ptxdsl.types import Type

MATRICES = ("a", "b", "c", "out")
Group: TypeAlias = Callable[..., pd.Parameters]
"""A class of pd.Parameters whose fields follow from types."""


def view(type: Type) -> Group:
    """Return the parameters of a matrix: its first element, and the elements between rows or columns."""
    return pd.Parameters.of("View", pointer=ptr[type], stride=s64)


@lru_cache(maxsize=1024)
def parameters(traits: Traits) -> Group:
    """Return the parameters of `gemm_kernel`: A is m×k, B is k×n, C and out are m×n and row-major."""
    inputs = view(traits.operands.inputs)
    return pd.Parameters.of("Gemm", **gemm_fields(traits, inputs, inputs))


def gemm_fields(traits: Traits, a: Any, b: Any) -> dict[str, Any]:
    """Return the fields of a kernel for products, given the types of A and B."""
    output, added = view(traits.operands.output), view(traits.operands.added)
    matrices = {"a": a, "b": b, "c": added, "out": output}
    numbers = {"m": u32, "n": u32, "k": u32, **factor_fields(traits)}
    return {**matrices, **numbers, **shared_parameters(traits)}


def shared_parameters(traits: Traits) -> dict[str, Group]:
    """Return the parameters for the schedule, the batches and the epilogue."""
    return {
        "schedule": traits.schedule.parameters(traits.operands.sum),
        "batches": BATCHES[traits.operands.batches],
        "extras": extras(traits.operands),
    }


class Nothing(pd.Parameters):
    """The parameters of a single product: no batches."""


class StridedBatches(pd.Parameters):
    """The number of batches, and the elements between their matrices."""

    count: u32
    a: s64
    b: s64
    c: s64
    out: s64


class ListedBatches(pd.Parameters):
    """The number of batches, and a table of addresses: all of A, all of B, then C and out."""

    count: u32
    table: ptr[u64]


BATCHES: dict[str, Group] = {"none": Nothing, "strided": StridedBatches, "listed": ListedBatches}


def extras(operands: Operands) -> Group:
    """Return the operands of the epilogue, by number, without the output itself."""
    groups = {f"of_{n}": extra_view(extra) for n, extra in enumerate(operands.extras) if not extra.in_place}
    return pd.Parameters.of("Extras", **groups)


def extra_view(extra: Extra) -> Group:
    """Return the parameters of an operand of the epilogue; `batch` is the elements between the matrices of batches."""
    stride, batch = {"stride": s64} if extra.is_matrix else {}, {"batch": s64} if extra.is_batched else {}
    return pd.Parameters.of("Extra", pointer=ptr[extra.type], **stride, **batch)


def extra_values(p: Any, operands: Operands) -> tuple[Any, ...]:
    """Return the operands of the epilogue in a kernel, None for the output itself."""
    return tuple(None if e.in_place else getattr(p.extras, f"of_{n}") for n, e in enumerate(operands.extras))


def products_of(p: Any, traits: Traits) -> Products:
    """Return the products of a kernel with the parameters of `parameters`."""
    operands = traits.operands
    product = product_of(p, operands, p.a, p.b)
    if not operands.is_batched:
        return Products(product, traits.tile)
    return Products(product, traits.tile, p.batches.count, partial(batch, p, product, operands))


def product_of(p: Any, operands: Operands, a: Any, b: Any) -> Product:
    """Return the product of these A and B, or the first of a batch."""
    return Product(p.m, p.n, p.k, a, b, p.c, p.out, p.alpha, p.beta, extra_values(p, operands))


def batch(p: Any, product: Product, operands: Operands, number: Scalar, moving: tuple[str, ...] = MATRICES) -> Product:
    """Return the product of one batch, given the first; `moving` are the matrices that are addressed by pointers."""
    moved: dict[str, Any] = {name: _moved(p.batches, operands, name, getattr(product, name), number) for name in moving}
    extras = tuple(
        View(value.pointer + number.to(s64) * value.batch, value.stride) if extra.is_batched else value
        for extra, value in zip(operands.extras, product.extras, strict=True)
    )
    return product._replace(**moved, extras=extras)


def _moved(batches: Any, operands: Operands, name: str, matrix: View, number: Scalar) -> View:
    """Return a matrix of a batch, by stride or by the table of addresses."""
    row = MATRICES.index(name)
    if operands.batches is Batches.STRIDED:
        return View(matrix.pointer + number.to(s64) * getattr(batches, name), matrix.stride)
    return View(pd.pointer(batches.table[row * batches.count + number], matrix.pointer.element), matrix.stride)


class Geometry(pd.Parameters):
    """The geometry of a convolution.

    As a GEMM it is m×n×k: N·P·Q, K and R·S·C. Steps in memory are in elements of an array, and in bytes if they belong
    to the walk along k.
    """

    m: u32
    n: u32
    k: u32
    height: u32  # of an input image
    width: u32
    channels: u32
    out_height: u32
    out_width: u32
    window_width: u32
    pad_top: u32
    pad_left: u32
    stride_h: u32
    stride_w: u32
    dilation_h: u32
    dilation_w: u32
    image: s64  # elements between input images, image rows, pixels
    line: s64
    pixel: s64
    ldw: s64  # elements between filters, output pixels
    ldo: s64
    step_c: u32  # the step of a tile along k, without carries: channels, columns and rows
    step_w: u32
    step_h: u32
    turn: u32  # columns of the window, S·dilation
    step: s64  # bytes of that step, of a carry from channels to columns, and from columns to rows
    carry_w: s64
    carry_h: s64


@lru_cache(maxsize=1024)
def conv2d_parameters(traits: Traits) -> Group:
    """Return the parameters of `conv2d_kernel`: images, filters and the output, and the geometry of the windows."""
    inputs, output = ptr[traits.operands.inputs], ptr[traits.operands.output]
    return pd.Parameters.of("Conv2d", x=inputs, w=inputs, out=output, geometry=Geometry, **shared_parameters(traits))


@lru_cache(maxsize=1024)
def grouped_parameters(traits: Traits, mode: str) -> Group:
    """Return the parameters of `grouped_kernel`: `table` describes `problems` problems of `total` tiles, `schedule` is
    what the host has planned; partial tiles meet in `sums`."""
    scalar = traits.operands.scalar
    shared = {"sums": ptr[traits.operands.sum], "semaphores": ptr[u32]} if mode == "parts" else {}
    return pd.Parameters.of(
        "Grouped", table=ptr[s64], schedule=ptr[s32], problems=u32, total=u32, alpha=scalar, beta=scalar, **shared
    )


@lru_cache(maxsize=1024)
def ragged_parameters(traits: Traits, gathers: bool = False, scatters: bool = False) -> Group:
    """Return the parameters of `ragged_kernel`: matrices, with the elements from one group's to the next, and the sizes
    of the groups. `rows` is the number of rows of a, or of each of its matrices. If it `gathers`, `index` names the row
    of a, of `a_rows`, for each of these."""
    inputs = group_view(traits.operands.inputs)
    gathered = {"index": ptr[s32], "a_rows": u32} if gathers else {}
    return pd.Parameters.of("Ragged", **ragged_fields(traits, inputs, inputs, scatters), **gathered)


def ragged_fields(traits: Traits, a: Any, b: Any, scatters: bool = False) -> dict[str, Any]:
    """Return the fields of a kernel for groups of rows, given the types of A and B. If it `scatters`, `out_index` names
    the row of out, of `out_rows`, for each row of the product. Operands of an epilogue have a value for each row of the
    product, for each column, or for each row or column of each group."""
    numbers = {"groups": u32, "rows": u32, "n": u32, "k": u32}
    scattered = {"out_index": ptr[s32], "out_rows": u32} if scatters else {}
    beside = {"extras": extras(traits.operands)} if traits.operands.extras else {}
    out = group_view(traits.operands.output)
    return {"a": a, "b": b, "out": out, "sizes": ptr[s32], **numbers, **scattered, **beside}


@lru_cache(maxsize=1024)
def ragged_k_parameters(traits: Traits) -> Group:
    """Return the parameters of `ragged_k_kernel`: A and B of all rows, a matrix of out for each group, and of C if
    there is a separate one, and the ends of the groups."""
    return pd.Parameters.of("RaggedK", **ragged_k_fields(traits))


def factor_fields(traits: Traits) -> dict[str, Any]:
    """Return the fields of alpha and beta."""
    return {"alpha": traits.operands.scalar, "beta": traits.operands.scalar}


def ragged_k_fields(traits: Traits) -> dict[str, Any]:
    """Return the fields of a kernel for groups along K."""
    a, b = map(group_view, traits.operands.input_types)
    numbers = {"groups": u32, "rows": u32, "m": u32, "n": u32}
    c = {"c": group_view(traits.operands.added)} if traits.operands.c is CSource.SEPARATE else {}
    out = group_view(traits.operands.output)
    return {"a": a, "b": b, **c, "out": out, "sizes": ptr[s32], **numbers, **factor_fields(traits)}


def group_view(type: Type) -> Group:
    """Return the parameters of the matrices of groups, `apart` elements from each other."""
    return pd.Parameters.of("GroupView", pointer=ptr[type], stride=s64, apart=s64)
