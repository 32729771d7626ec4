"""Calls of grouped_gemm_ragged_k(): checks and launches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.groups.ragged import (
    ALIASED_OUTPUT_HELP,
    Groups,
    can_store_by_tma,
    check_output,
    check_size_array,
    check_values,
    group_values,
    matrix_argument,
    types_help,
)
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.residency import resident_blocks
from ptxdsl.kernels.call.launching.workspace import room, workspace
from ptxdsl.kernels.call.matrix import (
    WIDEST_ACCESS,
    Matrix,
    array_argument,
    check_input_types,
    describe_type,
    describe_types,
    empty,
)
from ptxdsl.kernels.call.paths.kernel import unmappable
from ptxdsl.kernels.call.paths.path import GroupRequest, Refusal
from ptxdsl.kernels.call.paths.select import grouped, path_of
from ptxdsl.kernels.call.products.options import facts, narrower
from ptxdsl.kernels.call.products.plan import Kernels, check_factors
from ptxdsl.kernels.call.products.problem import check_added, check_devices, check_written
from ptxdsl.kernels.call.scales import scale_values
from ptxdsl.kernels.candidates.facts import ListFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import FLOATS, FP8, INPUTS, Batches, CSource, Major, Operands, outputs
from ptxdsl.kernels.sm90.maps import map_bytes
from ptxdsl.kernels.sm90.parameters import tensor_ragged_k_parameters
from ptxdsl.kernels.sm90.tile_queue import COUNTERS
from ptxdsl.kernels.sm90.tiling import TURNED
from ptxdsl.kernels.store.function import UNSCALED
from ptxdsl.kernels.traits.parameters import ragged_k_parameters
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.schedule.problems import MOST_TILES
from ptxdsl.types import u32

FACTORS = "alpha", "beta"
ALONG_K = "along k"  # the form of these groups in the tuning tables


class RaggedKCall(TunableCall):
    """A call of grouped_gemm_ragged_k()."""

    name = "grouped_gemm_ragged_k"
    problem: Groups

    def __init__(self, call: PublicCall) -> None:
        *_, self.validate = call.options
        self.kernels, self.factors = call.kernels, call.factors
        self.problem = groups = self.groups(call)
        if self.validate:
            self.check_offsets()
        self.out, self.is_empty = groups.out.owner, not groups.out.array.size

    def groups(self, call: PublicCall) -> Groups:
        """Check the arrays of the call."""
        out, a, b, offsets, c = call.arrays
        return ragged_k_groups(a, b, offsets, out, c, call.beta)

    def check_offsets(self) -> None:
        """Raise LaunchError for the first invalid offset in host memory."""
        check_values("ragged", self.problem.sizes, self.problem.depth)

    def readable(self) -> tuple[Groups, tuple[LaunchPlan, ...]]:
        """Return the groups with copies of the operands that the kernel cannot read in place, and the launches of the
        copies. This kernel reads all operands in place."""
        return self.problem, ()

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        traits = grouped(config, self.request)
        check_factors(self.factors, traits)
        groups, before = self.readable()
        return plan_of(self.kernels, groups, traits, self.validate, self.factors, before)

    @property
    def request(self) -> GroupRequest:
        """The request to the paths."""
        return request_of(self.problem)


def request_of(groups: Groups) -> GroupRequest:
    """Return the request to the paths, for groups of average size."""
    count, m, n = groups.out.full_shape
    sizes = np.full(count, m), np.full(count, n), np.full(count, groups.depth / max(1, count))
    operands = replace(_facts_of(groups), batches=Batches.STRIDED, out_boxes=can_store_groups_by_tma(groups))
    return GroupRequest(
        f"{'scaled' if groups.scales else 'grouped'}_gemm_ragged_k",
        ListFacts(sizes, operands),
        groups.device_stream[0],
        obstacles=() if groups.scales else tuple(_obstacles(groups)),  # scaled operands are copied for TMA
        form=ALONG_K,
        is_along_k=True,
        boxed=can_store_groups_by_tma(groups),
    )


def ragged_k_groups(a: object, b: object, offsets: object, out: object, c: object = None, beta: float = 0.0) -> Groups:
    """Check the arrays of a call, and return its groups. `out` is allocated if it is None, and C is dropped if beta is
    0. Raises LaunchError for arrays that do not fit."""
    left, right = matrix_argument("a", a, 2, "(rows, M)"), matrix_argument("b", b, 2, "(rows, N)")
    check_input_types(left, right, INPUTS, types_help(INPUTS, left.type, "scaled_gemm_ragged_k of a.T and b"))
    if left.shape[0] != right.shape[0]:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {left.shape[0]} rows meet {right.shape[0]}",
            help="pass a of (rows, M) and b of (rows, N): the rows of a group are the K of its product",
        )
    sizes = left.shape[1], right.shape[1], left.shape[0]
    return check_k_groups(left, right, sizes, offsets, out, c, beta)


def check_k_groups(
    a: Matrix, b: Matrix, sizes: tuple[int, int, int], offsets: object, out: object, c: object, beta: float
) -> Groups:
    """Check the other arrays of groups that are ranges of K, and return the groups. `sizes` are M, N, and the K of all
    groups. `out` is allocated if it is None, and C is dropped if beta is 0. Raises LaunchError for arrays that do not
    fit."""
    m, n, k = sizes
    ends = array_argument(
        "offsets", offsets, 1, "it has one number for each group", "pass offsets of the shape (groups,)"
    )
    (count,) = ends.array.shape
    check_size_array(ends, count, f"`offsets` has {count} groups")
    shape = count, m, n
    written = matrix_argument("out", empty(a, shape, outputs(a.type)[0]) if out is None else out, 3, str(shape))
    check_output(written, shape, a)
    groups = Groups(a, b, written, ends, c=_check_c(c, written, beta), depth=k)
    addends = [] if groups.c is None else [groups.c]
    check_devices([a, b, written, ends, *addends])
    check_written(written, [a, b, ends, *([] if groups.in_place else addends)], help=ALIASED_OUTPUT_HELP)
    return groups


def _check_c(c: object, out: Matrix, beta: float) -> Matrix | None:
    """Check C, and return it; None if it is not given or beta is 0."""
    check_added(c, beta)
    if c is None:
        return None
    addend = matrix_argument("c", c, 3, str(out.full_shape))
    _check_addend(addend, out)
    return addend if beta != 0 else None


def _check_addend(c: Matrix, out: Matrix) -> None:
    """Raise LaunchError for a C of another shape, type or layout than the output."""
    if c.full_shape != out.full_shape:
        raise LaunchError(
            f"`c` has the shape {c.full_shape}; the output has {out.full_shape}", help="pass `c` of that shape"
        )
    if out.type in FP8 and c.type not in FLOATS:
        raise LaunchError(
            f"`c` is {describe_type(c.type)}; C must have 16 bits or more",
            help=f"convert it to {describe_types(FLOATS)}; `out` may be of 8 bits",
        )
    if c.type is not out.type and out.type not in FP8:
        raise LaunchError(
            f"`c` is {describe_type(c.type)} and `out` {describe_type(out.type)}; they must have one type",
            help="pass an `out` of the type of c, or convert c before",
        )
    if c.array.size and c.major != "row":
        raise LaunchError(
            f"`c` has strides of {c.array.strides} elements; its rows must be contiguous",
            help="make a row-major copy",
        )


def can_store_groups_by_tma(groups: Groups) -> bool:
    """Return True if TMA can store the output and load C."""
    return can_store_by_tma(groups.out) and (groups.c is None or groups.c.is_mappable)


def _facts_of(groups: Groups) -> Operands:
    """Return the operand facts of the kernel."""
    a, b, c, out = groups.a, groups.b, groups.c, groups.out
    out_bytes = narrower(out, c, out.shape[1])
    if groups.scales is None:
        return facts(a.transposed, b, c, out, (_width(a), _width(b), out_bytes), in_place=groups.in_place)
    operands = facts(a, b, c, out, (WIDEST_ACCESS, WIDEST_ACCESS, out_bytes), in_place=groups.in_place)
    return replace(
        operands, a_major=Major.K, b_major=Major.K, scaling=groups.scales.scaling, scale_bytes=groups.scales.pair_bytes
    )


def _width(matrix: Matrix) -> int:
    """Return the access width of a load in bytes. A group starts at any row, and thus at any element of a column-major
    matrix."""
    return matrix.widest(matrix.inner_extent) if matrix.major == "row" else matrix.type.bytes


def _obstacles(groups: Groups) -> Iterator[Refusal]:
    """Yield the reasons why TMA cannot load A and B from any row, or wgmma cannot read them."""
    a, b = groups.a, groups.b
    if a.type not in TURNED:
        yield (
            f'atom is "wgmma", and `a` and `b` are {describe_type(a.type)}, which wgmma multiplies K-major only; '
            "the rows of `a` and `b` run along M and N",
            "leave atom out, or convert them to float16 or bfloat16",
        )
    for matrix in (a, b):
        if matrix.major != "row":
            yield (
                f'atom is "wgmma", and `{matrix.name}` is column-major: its groups start at any row, and '
                "TMA loads at multiples of 16 bytes",
                f"pass a row-major `{matrix.name}`, or leave atom out: then they are loaded without TMA",
            )
    yield from unmappable(a.shape[0], a, b)


def plan_of(
    kernels: Kernels,
    groups: Groups,
    traits: Traits,
    validate: bool,
    factors: tuple[float, float] = UNSCALED,
    before: tuple[LaunchPlan, ...] = (),
) -> LaunchPlan:
    """Return the launch, with one block per resident slot, or per tile if there are fewer tiles."""
    count, m, n = groups.out.full_shape
    constants = {"traits": traits, "validate": validate}
    tiles = _tile_count(groups.out, traits.tile)
    kernel, (device, stream) = kernels.of(traits), groups.device_stream
    blocks = min(tiles, resident_blocks(kernel, traits.threads, device, **constants))
    numbers = {"sizes": groups.sizes, "groups": count, "rows": groups.depth, "m": m, "n": n}
    numbers |= dict(zip(FACTORS, factors, strict=True))
    if not path_of(traits).uses_tma:
        values = ragged_k_parameters(traits)(**_matrices(groups), **numbers)
        return LaunchPlan(kernel, blocks, traits.threads, values, constants, FACTORS)
    matrices = _mapped(groups, traits, blocks)
    values = tensor_ragged_k_parameters(traits)(**numbers, **matrices, **scale_values(groups.scales))
    return LaunchPlan(kernel, blocks, traits.threads, values, constants, FACTORS, stream, before)


def _tile_count(out: Matrix, tile: tuple[int, int, int]) -> int:
    """Return the number of tiles of all outputs. Raises LaunchError if it exceeds 2**31."""
    count, m, n = out.full_shape
    tiles = count * -(-m // tile[0]) * -(-n // tile[1])
    if tiles > MOST_TILES:
        raise LaunchError(
            f"{count} groups with outputs of {m} × {n} have {tiles} tiles, more than 2**31",
            help="take larger tiles, or compute the groups in parts",
        )
    return tiles


def _matrices(groups: Groups) -> dict[str, Any]:
    """Return A, B, out, and a separate C as kernel parameters."""
    matrices = {"a": groups.a, "b": groups.b, "out": groups.out}
    if groups.c is not None and not groups.in_place:
        matrices["c"] = groups.c
    return {name: group_values(matrix) for name, matrix in matrices.items()}


def _mapped(groups: Groups, traits: Any, blocks: int) -> dict[str, Any]:
    """Return the parameters of the sm_90a kernel: tensor maps of all of A and B, and memory for the maps of groups."""
    device, stream = groups.device_stream
    boxes = {"boxes": groups.out.mapped(traits.out_map)} if traits.operands.out_boxes else {}
    if boxes and groups.c is not None and traits.operands.c is CSource.SEPARATE:
        boxes["c"] = groups.c.mapped(traits.out_map)
    maps = room(device, stream, "maps", blocks * map_bytes(traits))
    _, counters = workspace(device, stream, u32, 0, COUNTERS)
    a, b = (replace(operand, batches=1) for operand in (groups.a, groups.b))
    return {
        "a_map": a.mapped(traits.a.map),
        "b_map": b.mapped(traits.b.map),
        "maps": maps,
        "counters": counters,
        **_matrices(replace(groups, a=_with_aligned_stride(groups.a), b=_with_aligned_stride(groups.b))),
        **boxes,
    }


def _with_aligned_stride(matrix: Matrix) -> Matrix:
    """Return the matrix. The stride of a single row is rounded up to 16 bytes, since a tensor map needs a multiple."""
    unit = WIDEST_ACCESS // matrix.type.bytes
    return matrix if matrix.outer_extent > 1 else replace(matrix, stride=-(-matrix.stride // unit) * unit)
