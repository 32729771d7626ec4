"""Calls of grouped_gemm_ragged() and grouped_gemm_masked(): checks and launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ptxdsl import Parameters, s32
from ptxdsl.arrays import HOST
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.residency import resident_blocks, stream_of
from ptxdsl.kernels.call.launching.workspace import workspace
from ptxdsl.kernels.call.matrix import (
    WIDEST_ACCESS,
    ArrayArgument,
    Matrix,
    array_argument,
    check_input_types,
    describe_type,
    empty,
    matrix,
)
from ptxdsl.kernels.call.paths.kernel import check_mappable, unmappable
from ptxdsl.kernels.call.paths.path import GroupRequest, Refusal
from ptxdsl.kernels.call.paths.select import grouped, path_of
from ptxdsl.kernels.call.products.copies import as_wgmma_reads, copied_rows
from ptxdsl.kernels.call.products.options import facts
from ptxdsl.kernels.call.products.plan import Kernels
from ptxdsl.kernels.call.products.problem import EpilogueOperand, check_devices, check_written, is_same, vector_operand
from ptxdsl.kernels.call.products.values import extra_values
from ptxdsl.kernels.call.scales import ScaledOperands, scale_values
from ptxdsl.kernels.candidates.facts import GroupFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import VectorOperand
from ptxdsl.kernels.product.operands import FP8, INPUTS, Batches, Major, Operands, Scaling, outputs
from ptxdsl.kernels.sm90.parameters import tensor_ragged_parameters
from ptxdsl.kernels.sm90.tile_queue import COUNTERS
from ptxdsl.kernels.store.function import check_function
from ptxdsl.kernels.traits.parameters import Group, group_view, ragged_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule.problems import MOST_TILES
from ptxdsl.types import Type, u32

ALIASED_OUTPUT_HELP = "give the output memory of its own"
SIZES_HELP = {
    "ragged": "pass the end of each group; an empty group ends where the previous one does",
    "masked": "pass the number of valid rows of each matrix, 0 for an empty group",
}


@dataclass(frozen=True)
class Groups:
    """The checked arrays of a call: rows of a, one matrix of b per group, and rows of out."""

    a: Matrix
    b: Matrix
    out: Matrix
    sizes: ArrayArgument
    index: ArrayArgument | None = None  # the row of a for each row of the product
    out_index: ArrayArgument | None = None  # the row of out for each row of the product
    operands: tuple[EpilogueOperand, ...] = ()
    epilogue: Callable[..., Any] | None = None
    c: Matrix | None = None  # only for groups that are ranges of K
    scales: ScaledOperands | None = None
    depth: int = 0  # the total K of groups that are ranges of K

    @property
    def device_stream(self) -> tuple[int | None, int]:
        """The GPU of the arrays, None for host memory, and the stream on which their library works."""
        return stream_of(self.a.array, self.b.array, self.out.array, self.sizes.array)

    @property
    def in_place(self) -> bool:
        """True if C is out, element for element."""
        return self.c is not None and is_same(self.c, self.out)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(rows, N, K), with the rows of all groups, or of each matrix of a batch."""
        rows = self.a.shape[0] if self.index is None else self.index.array.shape[0]
        return rows, self.b.shape[1], self.a.shape[1]


class RaggedCall(TunableCall):
    """A call of grouped_gemm_ragged() or grouped_gemm_masked()."""

    problem: Groups
    inputs: tuple[Type, ...] = INPUTS
    prefix = "grouped_gemm"

    def __init__(self, call: PublicCall) -> None:
        out, a, b, sizes, index, out_index, *scales = call.arrays
        _, self.form, self.validate, *_ = call.options
        self.kernels, self.name = call.kernels, f"{self.prefix}_{self.form}"
        groups = ragged_groups(self.form, a, b, sizes, out, self.inputs, index, out_index, call.epilogue, call.operands)
        self.problem = groups = self.scaled(groups, scales[:2])
        if self.validate:
            check_values(self.form, groups.sizes, groups.shape[0])
        self.out = groups.out.owner
        self.is_empty = not (groups.out.array.size and groups.b.batches and groups.shape[0])

    @property
    def request(self) -> GroupRequest:
        """The request to the paths."""
        return request_of(self.problem, self.form)

    def scaled(self, groups: Groups, scales: Sequence[object]) -> Groups:
        """Return the groups with the scales of the call. This call has none."""
        return groups

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        traits = grouped(config, self.request)
        return plan_of(self.kernels, self.form, self.problem, traits, self.validate)


def request_of(groups: Groups, form: str) -> GroupRequest:
    """Return the request to the paths, for groups of average size."""
    (rows, n, k), count = groups.shape, groups.b.batches or 1
    boxed, scatters, is_scaled = can_store_by_tma(groups.out), groups.out_index is not None, groups.scales is not None
    operands = replace(_facts_of(groups, form), batches=Batches.STRIDED, out_boxes=boxed and not scatters)
    return GroupRequest(
        f"{'scaled' if is_scaled else 'grouped'}_gemm_{form}",
        GroupFacts(rows if form == "masked" else rows / count, n, k, count, operands),
        groups.device_stream[0],
        obstacles=() if is_scaled else tuple(_obstacles(groups, form)),  # scaled operands are copied for TMA
        form=form,
        epilogue=groups.epilogue,
        boxed=boxed,
        gathers=groups.index is not None and (groups.a.is_mappable or not is_scaled),
        scatters=scatters,
        cut=not is_scaled,
    )


def _obstacles(groups: Groups, form: str) -> Iterator[Refusal]:
    """Yield the reasons why TMA cannot load the rows of groups for wgmma."""
    yield from unmappable(groups.shape[2], groups.a, groups.b)
    if groups.a.major != "row" and form != "masked":
        yield (
            'atom is "wgmma", and `a` is column-major: its groups start at any row, and TMA loads at '
            "multiples of 16 bytes",
            "pass a row-major `a`, or leave atom out: then they are loaded without TMA",
        )


def ragged_groups(
    form: str,
    a: object,
    b: object,
    sizes: object,
    out: object,
    inputs: tuple[Type, ...] = INPUTS,
    index: object = None,
    out_index: object = None,
    epilogue: Callable[..., Any] | None = None,
    operands: Sequence[object] = (),
) -> Groups:
    """Check the arrays of a call, and return its groups. `out` is allocated if it is None. Raises LaunchError for
    arrays that do not fit."""
    name, rank = ("offsets", 2) if form == "ragged" else ("counts", 3)
    left = matrix_argument("a", a, rank, "(rows, K)" if form == "ragged" else "(groups, M, K)")
    right = matrix_argument("b", b, 3, "(groups, K, N)")
    _check_inputs(left, right, inputs, form)
    counted = array_argument(name, sizes, 1, "it has one number for each group", f"pass {name} of the shape (groups,)")
    check_size_array(counted, right.batches or 0, f"`b` has {right.batches} groups")
    gathered = None if index is None else _row_index("rows", index)
    if gathered is not None and left.major != "row":
        raise LaunchError(
            "`rows` gathers rows of `a`, which is column-major: its rows are not contiguous",
            help="pass a row-major `a`, or a[rows], which copies them",
        )
    shape = (*(left.full_shape[:-1] if gathered is None else gathered.array.shape), right.shape[1])
    scattered = None if out_index is None else _row_index("out_rows", out_index, shape[0])
    if scattered is not None and out is None:
        raise LaunchError("`out_rows` says which rows of `out` are written, and `out` is not given", help="pass `out`")
    result = empty(left, shape, outputs(left.type)[0]) if out is None else out
    written = matrix_argument("out", result, rank, str(shape))
    check_output(written, shape if scattered is None else (written.full_shape[0], shape[1]), left)
    check_function(epilogue, operands)
    extras = tuple(
        _operand(f"operands[{n}]", operand, written, shape[-2], right.batches or 0, form)
        for n, operand in enumerate(operands)
    )
    arguments = (operand.argument for operand in extras)
    read = [left, right, counted, *filter(None, (gathered, scattered)), *arguments]
    check_devices([*read, written])
    check_written(written, read, help=ALIASED_OUTPUT_HELP)
    return Groups(left, right, written, counted, gathered, scattered, extras, epilogue)


def _operand(name: str, operand: object, out: Matrix, rows: int, groups: int, form: str) -> EpilogueOperand:
    """Check an operand of the epilogue of groups of rows. Raises LaunchError for one that does not fit."""
    if not isinstance(operand, VectorOperand):
        raise LaunchError(
            f"`{name}` is of type {type(operand).__name__}; the epilogue of groups of rows takes one value per row or "
            "column",
            help="wrap it in per_row(…) or per_column(…); add a matrix to the output afterwards",
        )
    return vector_operand(name, operand, out, rows, groups, in_matrices=form == "masked")


def _row_index(name: str, owner: object, rows: int | None = None) -> ArrayArgument:
    """Check an index of rows, with one number per row if `rows` is given, and return it. Raises LaunchError for
    anything else."""
    index = array_argument(name, owner, 1, "it has one number for each row of the product", "reshape it", "int32")
    if index.type is not s32 or not index.array.contiguous:
        raise LaunchError(
            f"`{name}` is {describe_type(index.type)} with strides of {index.array.strides} elements; it takes "
            "contiguous int32",
            help="convert it before, or make a contiguous copy",
        )
    if rows is not None and index.array.shape[0] != rows:
        raise LaunchError(
            f"`{name}` has {index.array.shape[0]} numbers; the product has {rows} rows", help="pass one for each row"
        )
    return index


def matrix_argument(name: str, owner: object, rank: int, expected: str) -> Matrix:
    """Check that `owner` is a matrix (rank 2) or a batch of matrices (rank 3), and return it. `expected` is its shape
    in the help text. Raises LaunchError for anything else."""
    operand = matrix(name, owner, f"pass `{name}` of {expected}", batched=True)
    if len(operand.full_shape) != rank:
        raise LaunchError(
            f"`{name}` has the shape {operand.full_shape}; it must have {rank} dimensions",
            help=f"pass `{name}` of {expected}",
        )
    return operand


def types_help(inputs: tuple[Type, ...], actual: Type | None = None, scaled: str = "") -> str:
    """Return the help text for inputs of wrong types. `scaled` is the call that multiplies 8-bit floats."""
    if actual in FP8 and actual not in inputs:
        return f"call {scaled}, with scales of 1 if the matrices have none"
    return f"pass two arrays of one type, one of {', '.join(map(describe_type, inputs))}"


def _check_inputs(left: Matrix, right: Matrix, inputs: tuple[Type, ...], form: str) -> None:
    check_input_types(left, right, inputs, types_help(inputs, left.type, f"scaled_gemm_{form}"))
    if left.shape[1] != right.shape[0]:
        raise LaunchError(
            f"`a` has the shape {left.full_shape} and `b` {right.full_shape}: "
            f"{left.shape[1]} columns meet {right.shape[0]} rows",
            help="pass b of (groups, K, N); for b of (groups, N, K), pass a view with the last two axes exchanged",
        )
    if left.batches not in (None, right.batches):
        raise LaunchError(
            f"`a` has {left.batches} groups and `b` {right.batches}", help="give each group one matrix in both"
        )


def check_size_array(operand: ArrayArgument, groups: int, count: str) -> None:
    """Raise LaunchError for sizes that are not one contiguous int32 per group. `count` states the number of groups in
    the error message."""
    if operand.type is not s32:
        raise LaunchError(
            f"`{operand.name}` is {describe_type(operand.type)}; it takes int32", help="convert it before"
        )
    if operand.array.shape != (groups,) or not operand.array.contiguous:
        raise LaunchError(
            f"`{operand.name}` has the shape {operand.array.shape} and strides of {operand.array.strides} elements; "
            f"{count}",
            help=f"pass {groups} contiguous numbers, one per group",
        )


def check_output(operand: Matrix, shape: tuple[int, ...], left: Matrix) -> None:
    """Raise LaunchError for an output of another shape, type or layout."""
    if operand.full_shape != shape:
        raise LaunchError(f"`out` has the shape {operand.full_shape}; a@b has {shape}", help="pass `out` of that shape")
    if operand.type not in outputs(left.type):
        raise LaunchError(
            f"`out` is {describe_type(operand.type)}; for {describe_type(left.type)} inputs it may be "
            f"{', '.join(map(describe_type, outputs(left.type)))}",
            help="pass one of these, and convert it afterwards",
        )
    if operand.array.size and (operand.major != "row" or not operand.is_disjoint):
        raise LaunchError(
            f"`out` has strides of {operand.array.strides} elements; its rows must be contiguous and must not overlap",
            help="make a row-major output",
        )


def check_values(form: str, counted: ArrayArgument, extent: int, axis: str = "rows") -> None:
    """Raise LaunchError for the first invalid size in host memory. `extent` is the number of rows of a, or of
    `axis`."""
    if counted.array.device != HOST:
        return
    name, sizes = counted.name, counted.array.view().view(np.int32)
    least = np.append(0, sizes[:-1]) if form == "ragged" else np.zeros_like(sizes)
    for group in np.flatnonzero((sizes < least) | (sizes > extent))[:1]:
        most = f"the {extent} {axis} of `a`" if form == "ragged" else f"the {extent} rows of each matrix"
        from_least = f"`{name}[{group - 1}]`, which is {least[group]}," if least[group] else "0"
        raise LaunchError(
            f"`{name}[{group}]` is {sizes[group]}; group {group} takes a number from {from_least} to {most}",
            help=SIZES_HELP[form],
        )


def _facts_of(groups: Groups, form: str) -> Operands:
    """Return the operand facts of the kernel."""
    a, b, out = groups.a, groups.b, groups.out
    starts_aligned = a.major == "row" or form == "masked"  # otherwise a group starts at any element
    a_bytes = a.widest(a.inner_extent) if starts_aligned else a.type.bytes
    widths = a_bytes, b.widest(b.inner_extent), out.widest(groups.shape[1])
    operands = facts(a, b, None, out, widths, extras=tuple(operand.extra for operand in groups.operands))
    if groups.scales is None:
        return operands
    return replace(
        operands,
        a_major=Major.K,
        b_major=Major.K,
        a_bytes=a_bytes if groups.index is not None and a.is_mappable else WIDEST_ACCESS,
        b_bytes=WIDEST_ACCESS,
        scaling=groups.scales.scaling,
    )


def can_store_by_tma(out: Matrix) -> bool:
    """Return True if TMA can store the output."""
    return out.type.bits == 16 and out.is_storable


def readable(groups: Groups, traits: Traits) -> tuple[Groups, tuple[LaunchPlan, ...]]:
    """Return the groups with copies of the operands that a kernel cannot read in place, and the launches of the copies.

    Gathered rows are copied if the kernel does not gather them, and so are their scales. With scales, A and B are
    copied if wgmma cannot read them in place.
    """
    index, scales, before = groups.index, groups.scales, []
    if index is not None and path_of(traits).uses_tma and not traits.operands.a_gathered:
        rows, launch = copied_rows(groups.a, index, groups.device_stream)
        groups, before = replace(groups, a=rows, index=None), [launch]
    if scales is None:
        return groups, tuple(before)
    if index is not None and scales.scaling is not Scaling.TENSORS:
        row_scales = matrix(scales.a.name, scales.a.owner)
        gathered, launch = copied_rows(row_scales, index, groups.device_stream, "gathered scales")
        groups, before = replace(groups, scales=scales._replace(a=gathered)), [*before, launch]
    a, b, copies = as_wgmma_reads(groups.a, groups.b, groups.device_stream)
    check_mappable(groups.shape[2], a, b)
    return replace(groups, a=a, b=b), (*before, *copies)


def plan_of(kernels: Kernels, form: str, groups: Groups, traits: Traits, validate: bool) -> LaunchPlan:
    """Return the launch, with one block per resident slot, or per tile if there are fewer tiles."""
    groups, before = readable(groups, traits)
    (rows, n, k), count = groups.shape, groups.b.batches or 0
    constants: dict[str, Any] = {"traits": traits, "form": form, "validate": validate}
    path = path_of(traits)
    if groups.index is not None and not path.uses_tma:
        constants["gathers"] = True
    if groups.out_index is not None:
        constants["scatters"] = True
    tiles = max_tiles(groups, traits.tile, form)
    kernel = kernels.of(traits)
    blocks = max(1, min(tiles, resident_blocks(kernel, traits.threads, groups.device_stream[0], **constants)))
    group, matrices = _MATRICES[path.name](traits, groups)
    numbers = {"groups": count, "rows": rows, "n": n, "k": k}
    values = group(**matrices, **scale_values(groups.scales), sizes=groups.sizes, **numbers)
    stream = groups.device_stream[1] if path.uses_tma else None  # the stream of the workspace
    return LaunchPlan(kernel, blocks, traits.threads, values, constants, stream=stream, before=before)


def max_tiles(groups: Groups, tile: tuple[int, int, int], form: str) -> int:
    """Return the largest number of tiles for any sizes of the groups. Raises LaunchError if it exceeds 2**31."""
    (rows, n, _), count = groups.shape, groups.b.batches or 0
    tiles_m = count * -(-rows // tile[0]) if form == "masked" else rows // tile[0] + min(count, rows)
    tiles = tiles_m * -(-n // tile[1])
    if tiles > MOST_TILES:
        raise LaunchError(
            f"{count} groups in {rows} rows and {n} columns may have {tiles} tiles, more than 2**31",
            help="take larger tiles, or compute the groups in parts",
        )
    return tiles


def _extra_parameters(traits: Traits, groups: Groups) -> dict[str, Any]:
    """Return the row indices and the operands of the epilogue. Kernels of all paths take the same ones."""
    values: dict[str, Any] = {}
    if groups.index is not None:
        values |= {"index": groups.index, "a_rows": groups.a.shape[0]}
    if groups.out_index is not None:
        values |= {"out_index": groups.out_index, "out_rows": groups.out.shape[0]}
    return values | ({"extras": extra_values(groups.operands, traits.operands)} if groups.operands else {})


def _pointers(traits: Traits, groups: Groups) -> tuple[Group, dict[str, Any]]:
    """Return the parameter group of a kernel that loads through pointers, and the values of its matrices."""
    matrices = {name: group_values(getattr(groups, name)) for name in ("a", "b", "out")}
    kind = ragged_parameters(traits, groups.index is not None, groups.out_index is not None)
    return kind, {**matrices, **_extra_parameters(traits, groups)}


def _mapped(traits: Any, groups: Groups) -> tuple[Group, dict[str, Any]]:
    """Return the parameter group of a kernel that loads with TMA, and the values of its matrices."""
    a, out, scatters = groups.a, groups.out, groups.out_index is not None
    boxes = {"boxes": out.mapped(traits.out_map)} if traits.operands.out_boxes and not scatters else {}
    rows = a.mapped(traits.map_of_rows) if groups.index is None else group_values(a)
    mapped = {"a": rows, "b": groups.b.mapped(traits.b.map), "out": group_values(out), **boxes}
    _, counters = workspace(*groups.device_stream, u32, 0, COUNTERS)
    return tensor_ragged_parameters(traits, scatters), {
        **mapped,
        **_extra_parameters(traits, groups),
        "counters": counters,
    }


_MATRICES: dict[str, Callable[..., tuple[Group, dict[str, Any]]]] = {"sm80": _pointers, "sm90": _mapped}


def group_values(matrix: Matrix) -> Parameters:
    """Return the matrices of groups as a kernel parameter."""
    return group_view(matrix.type)(pointer=matrix.pointer, stride=matrix.stride, apart=matrix.batch_stride)
