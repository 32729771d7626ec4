"""Calls of scaled 8-bit floats: products, groups of rows and ranges of K, whose operands have scales.

The kernels are those of the unscaled products. A and B are copied to a workspace if wgmma cannot read them in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.arrays import HOST
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.groups.ragged import Groups, RaggedCall, check_values, help_of_types, matrix_of_rank
from ptxdsl.kernels.call.groups.ragged_k import RaggedKCall, groups_along_k
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import (
    WIDEST_ACCESS,
    ArrayArgument,
    array_argument,
    check_input_types,
    describe_type,
    describe_types,
)
from ptxdsl.kernels.call.paths.kernel import check_mappable, configure
from ptxdsl.kernels.call.paths.path import Request
from ptxdsl.kernels.call.paths.select import select
from ptxdsl.kernels.call.products.copies import as_wgmma_reads, with_k, zeros
from ptxdsl.kernels.call.products.options import check_not_split
from ptxdsl.kernels.call.products.plan import check_factors, planned_with
from ptxdsl.kernels.call.products.planner import facts_of, is_stored_in_boxes
from ptxdsl.kernels.call.products.problem import GemmProblem, check_devices, check_written, problem_of
from ptxdsl.kernels.call.scales import ScaledOperands
from ptxdsl.kernels.candidates.candidate import PERSISTENT
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm90 import BLOCK_SCALED_SWAPPED, SCALED_COLUMNS
from ptxdsl.kernels.config import ROWS_OF_EIGHT, WGMMA, GemmConfig, specialise
from ptxdsl.kernels.product.operands import FP8, Major, Operands, Scaling
from ptxdsl.kernels.sm90.scales import BLOCK, GROUP_UNIT
from ptxdsl.kernels.sm90.tiling import ARCH, GROUP_ROWS, IN_TURN
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target
from ptxdsl.types import f32

TWO_HALVES = 256  # columns of a tile with scales of blocks, of which each half is multiplied alone
BY_EPILOGUE = "call gemm with an epilogue that multiplies by operands of per_row(…) and per_column(…)"
WHOLE_TOGETHER = {
    "pingpong": "with scales of blocks warpgroups multiply their shares of a tile at the same time",
    "stagger": "with scales of blocks warpgroups end a tile at the same time",
}


class ScaledCall(TunableCall):
    """A call of scaled_gemm(): one product or batches, with scales; `problem` is row-major."""

    name = "scaled_gemm"
    problem: GemmProblem

    def __init__(self, call: PublicCall) -> None:
        out, a, b, scale_a, scale_b, c, *_ = call.arrays
        self.kernels, self.factors, self.epilogue = call.kernels, call.factors, call.epilogue
        problem = problem_of(a, b, c, out, call.beta, call.epilogue, call.operands)
        problem = replace(problem, scales=_scales_of_product(problem, scale_a, scale_b)).scaled(call.alpha)
        if problem.k == 0:
            problem = with_k(problem)
        self.out, self.problem = problem.out.owner, problem.row_major
        self.is_empty = not problem.out.array.size

    @property
    def request(self) -> Request:
        """The request to the paths."""
        facts = product_facts(self.problem, self.epilogue is not None)
        return Request(self.name, facts, self.device_stream[0])

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan | None:
        """Return the launch; None if there is nothing to write."""
        problem, device = self.problem, self.device_stream[0]
        config = config or select(self.request)[0]
        config = config if self.epilogue is None else specialise(config, epilogue=self.epilogue)
        traits = _traits_of(problem, self.request.facts.operands, config, device)
        check_factors(self.factors, traits)
        a, b, before = as_wgmma_reads(problem.a, problem.b, problem.device_stream)
        check_mappable(problem.k, a, b)
        return planned_with(self.kernels, replace(problem, a=a, b=b), traits, self.factors, before)


def product_facts(problem: GemmProblem, computes: bool) -> ProductFacts:
    """Return the facts of a product, whose A and B are copied if wgmma cannot read them in place."""
    operands = replace(
        facts_of(problem), a_bytes=WIDEST_ACCESS, b_bytes=WIDEST_ACCESS, a_major=Major.K, b_major=Major.K
    )
    return ProductFacts(problem.m, problem.n, problem.k, problem.batches or 1, operands, computes)


def _scales_of_product(problem: GemmProblem, scale_a: object, scale_b: object) -> ScaledOperands:
    """Check the scales of a product."""
    _check_type(problem.a)
    m, n, k = problem.m, problem.n, problem.k
    blocks, (*of_a, _, _), (*of_b, _, _) = (-(-k // BLOCK), -(-n // BLOCK)), problem.a.full_shape, problem.b.full_shape
    shapes = _ScaleShapes(((*of_a, m, 1), (*of_b, 1, n)), ((*of_a, m, blocks[0]), (*of_b, *blocks)))
    is_turned = problem.out.major != "row"
    scales = _scales_of((scale_a, scale_b), shapes, [problem.a, problem.b, problem.out], is_turned)
    if is_turned and scales.scaling is Scaling.BLOCKS and problem.out.array.size:
        raise LaunchError(
            "`out` is column-major, and scales are of blocks: of its transpose each column has a scale for each "
            f"{BLOCK} along K, which the kernel takes of rows alone",
            help="make a row-major output, or pass scales of tensors or of rows and columns",
        )
    return scales


def _traits_of(problem: GemmProblem, operands: Operands, config: GemmConfig, device: int | None) -> Traits:
    """Return the traits of the kernel. Raises LaunchError for a configuration that has no such kernel."""
    config = _scheduled(config)
    _check_path(config, problem.a, device)
    if operands.scaling is Scaling.BLOCKS:
        _check_blocks(config)
    if problem.batches is not None:
        check_not_split(config.split_k)
    traits = configure(config, operands, device, shares_copies=True)
    if not is_stored_in_boxes(problem, config):
        return traits
    boxed = replace(traits, operands=replace(operands, out_boxes=True))
    return boxed if boxed.fits(target(device)) else traits


def _scheduled(config: GemmConfig) -> GemmConfig:
    """Return the configuration, with persistent blocks unless it has a schedule or a split of K."""
    if config.schedule != ROWS_OF_EIGHT or config.split_k > 1:
        return config
    return specialise(config, schedule=PERSISTENT)


def _check_blocks(config: GemmConfig) -> None:
    """Raise LaunchError for a configuration that block scales do not support."""
    for field, why in WHOLE_TOGETHER.items():
        if getattr(config, field):
            raise LaunchError(
                f"`config` has {field}={getattr(config, field)!r}; {why}",
                help=f"leave {field} out, or pass scales of tensors or of rows and columns",
            )
    _check_warpgroups(config)
    _check_columns(config)
    if config.swap_ab and config.tile[0] > BLOCK_SCALED_SWAPPED:
        raise LaunchError(
            f"tile is {config.tile}, and swap_ab is True; with scales of blocks its M is {BLOCK_SCALED_SWAPPED} at "
            "most: a thread has the scales of a quarter of the rows next to products and accumulators",
            help="take fewer rows, or leave swap_ab out",
        )


class ScaledRaggedCall(RaggedCall):
    """A call of scaled_gemm_ragged() or scaled_gemm_masked()."""

    inputs, called = FP8, "scaled_gemm"

    def scaled(self, groups: Groups, scales: Sequence[object]) -> Groups:
        """Return the groups with their scales, checked."""
        (_, n, k), count = groups.shape, groups.b.batches or 0
        blocks, lines = (-(-k // BLOCK), -(-n // BLOCK)), groups.a.full_shape[:-1]
        shapes = _ScaleShapes(((*lines, 1), (count, 1, n)), ((*lines, blocks[0]), (count, *blocks)))
        scaled = _scales_of(scales, shapes, [groups.a, groups.b, groups.out])
        strides = scaled.a.array.strides
        is_gathered = groups.index is not None and scaled.scaling is not Scaling.TENSORS
        if is_gathered and scaled.a.array.shape[1] > 1 and strides[1] != 1:
            raise LaunchError(
                f"`rows` gathers rows of `scale_a`, which has strides of {strides} elements: they are not contiguous",
                help="make a contiguous copy of it, or pass scale_a[rows] with a[rows], which copies both",
            )
        return replace(groups, scales=scaled)

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        _check_groups(config, self.problem, Scaling.BLOCKS)
        return super().plan(config)


class ScaledRaggedKCall(RaggedKCall):
    """A call of scaled_gemm_ragged_k()."""

    name = "scaled_gemm_ragged_k"

    def groups(self, call: PublicCall) -> Groups:
        """Check the arrays of the call."""
        out, a, b, scale_a, scale_b, offsets, c = call.arrays
        return scaled_groups_along_k(a, b, scale_a, scale_b, offsets, out, c, call.beta)

    def check_offsets(self) -> None:
        """Raise LaunchError for the first invalid offset in host memory."""
        offsets, k = self.problem.sizes, self.problem.depth
        check_values("ragged", offsets, k, "columns")
        if offsets.array.device != HOST:
            return
        ends = offsets.array.view().view(np.int32)
        for group in np.flatnonzero((ends % GROUP_UNIT != 0) & (ends != k))[:1]:
            raise LaunchError(
                f"`offsets[{group}]` is {ends[group]}; groups end at multiples of {GROUP_UNIT}, where TMA loads can "
                f"start, or at the {k} of all K",
                help=f"pad each group with zeros to a multiple of {GROUP_UNIT}",
            )

    def readable(self) -> tuple[Groups, tuple[LaunchPlan, ...]]:
        """Return the groups with copies of A and B where wgmma cannot read them in place, and the launches of the
        copies. With a K of 0, A and B are memory for which there are tensor maps, and which no group reads."""
        groups, at = self.problem, self.device_stream
        a, b = groups.a, groups.b
        if not groups.depth:
            a, b = zeros(a, at), zeros(b.transposed, at).transposed
        a, b, before = as_wgmma_reads(a, b, at)
        check_mappable(a.shape[1], a, b)
        return replace(groups, a=a, b=b), before

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        _check_groups(config, self.problem)
        if config is not None and config.tile[1] > SCALED_COLUMNS:
            raise LaunchError(
                f"tile is {config.tile}; with scales along K its N is {SCALED_COLUMNS} at most: a thread has products "
                "of 128 along K next to the accumulators of the tile",
                help="take a narrower tile",
            )
        return super().plan(config)


def scaled_groups_along_k(
    a: object,
    b: object,
    scale_a: object,
    scale_b: object,
    offsets: object,
    out: object,
    c: object = None,
    beta: float = 0.0,
) -> Groups:
    """Check the arrays of a call; `out` is allocated if it is None, and C is left out with a beta of 0. Raises
    LaunchError for arrays that do not fit."""
    left, right = matrix_of_rank("a", a, 2, "(M, K)"), matrix_of_rank("b", b, 2, "(K, N)").along_column
    _check_type(left, "call grouped_gemm_ragged_k of their transposes, whose rows are K")
    check_input_types(left, right, FP8, help_of_types(FP8))
    (m, k), (rows, n) = left.shape, right.shape
    if k != rows:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {k} columns meet {rows} rows",
            help="pass a of (M, K) and b of (K, N), with the K of all groups; of (N, K), pass the transpose",
        )
    groups = groups_along_k(left, right, (m, n, k), offsets, out, c, beta)
    count, blocks = groups.out.batches or 0, -(-k // BLOCK)
    shapes = _ScaleShapes(((count, m, 1), (count, 1, n)), ((m, blocks), (blocks, n)))
    scales = _scales_of((scale_a, scale_b), shapes, [left, right, groups.out])
    if scales.scaling is Scaling.BLOCKS:
        _check_side_by_side(scales.b)
    return replace(groups, scales=scales)


class _ScaleShapes(NamedTuple):
    """The shapes of the scales of a and b for each granularity but that of tensors, which have one scale each."""

    rows: tuple[tuple[int, ...], tuple[int, ...]]
    blocks: tuple[tuple[int, ...], tuple[int, ...]]


def _check_type(a: ArrayArgument, otherwise: str = BY_EPILOGUE) -> None:
    """Raise LaunchError for matrices of other types than 8-bit floats; `otherwise` is the help text."""
    if a.type not in FP8:
        raise LaunchError(
            f"`a` and `b` are {describe_type(a.type)}; scales are of {describe_types(FP8)} matrices", help=otherwise
        )


def _scales_of(
    scales: Sequence[object], shapes: _ScaleShapes, others: list[Any], is_turned: bool = False
) -> ScaledOperands:
    """Check the scales of a call with a row-major or, if `is_turned`, a column-major output. Raises LaunchError for
    scales that do not fit."""
    for name, owner in zip(("scale_a", "scale_b"), scales, strict=True):
        if isinstance(owner, int | float | np.generic):
            raise LaunchError(
                f"`{name}` is {owner}, a number; the kernel reads scales in memory",
                help=f"pass np.full(1, {owner}, np.float32), or such an array on the GPU of the matrices",
            )
    of_a, of_b = (
        array_argument(name, owner, (0, 1, 2, 3), "scales have up to three dimensions", "reshape it", "float32")
        for name, owner in zip(("scale_a", "scale_b"), scales, strict=True)
    )
    for scale in (of_a, of_b):
        if scale.type is not f32:
            raise LaunchError(f"`{scale.name}` is {describe_type(scale.type)}; it takes float32", help="convert it")
    check_devices([*others, of_a, of_b])
    check_written(others[-1], [of_a, of_b])
    scaled = ScaledOperands(_scaling(of_a, of_b, shapes), of_a, of_b)
    if scaled.scaling is Scaling.ROWS:
        _check_side_by_side(of_a if is_turned else of_b, is_turned)
    return scaled


def _check_side_by_side(scales: ArrayArgument, is_turned: bool = False) -> None:
    """Raise LaunchError for scales of columns that are not contiguous; for those of rows if `is_turned`, since the
    kernel computes the transposed product."""
    axis, lines = (-2, "rows, with a column-major `out`,") if is_turned else (-1, "columns")
    if scales.array.size and scales.array.shape[axis] > 1 and scales.array.strides[axis] != 1:
        raise LaunchError(
            f"`{scales.name}` has strides of {scales.array.strides} elements; scales of {lines} are contiguous",
            help="make a contiguous copy of it",
        )


def _scaling(a: ArrayArgument, b: ArrayArgument, shapes: _ScaleShapes) -> Scaling:
    """Return the granularity of scales of these shapes."""
    if a.array.size == b.array.size == 1:
        return Scaling.TENSORS
    actual = a.array.shape, b.array.shape
    for scaling, expected in shapes._asdict().items():
        if actual == expected:
            return Scaling(scaling)
    raise LaunchError(
        f"`scale_a` has the shape {actual[0]} and `scale_b` {actual[1]}",
        help=f"pass one number for each tensor; {shapes.rows[0]} and {shapes.rows[1]} for rows and columns; or "
        f"{shapes.blocks[0]} and {shapes.blocks[1]} for blocks of {BLOCK}",
    )


def _check_groups(config: GemmConfig | None, groups: Groups, narrowed: Scaling | None = None) -> None:
    """Raise LaunchError for a GPU or a configuration without a kernel of scaled groups; `narrowed` are the scales with
    which tiles are narrower."""
    assert groups.scales is not None
    _check_path(config, groups.a, groups.device_stream[0])
    if config is None:
        return
    scaling = groups.scales.scaling
    if config.swap_ab and scaling is not Scaling.TENSORS:
        raise LaunchError(
            f"`config` has swap_ab=True; scales of {scaling.value} multiply accumulators that are not transposed",
            help="leave swap_ab out, or pass one scale of each tensor",
        )
    _check_warpgroups(config)
    if scaling is narrowed:
        _check_columns(config)


def _check_path(config: GemmConfig | None, a: ArrayArgument, device: int | None) -> None:
    """Raise LaunchError for a configuration of another path, and for a GPU without this path."""
    if config is not None and config.atom != WGMMA:
        raise LaunchError(
            f"`config` has atom={config.atom!r}; scaled 8-bit floats are multiplied by wgmma, on {ARCH}",
            help='pass a GemmConfig with atom="wgmma", or none',
        )
    if target(device) != ARCH:
        raise LaunchError(
            f"`a` and `b` are {describe_type(a.type)}, multiplied with scales on {ARCH}; the kernel is for "
            f"{target(device)}",
            help=f"on the emulator, PTXDSL_ARCH={ARCH} says that it is such a GPU",
        )


def _check_warpgroups(config: GemmConfig) -> None:
    """Raise LaunchError for tiles that three warpgroups share."""
    shared = "N" if config.swap_ab else "M"
    if config.tile[config.swap_ab] > GROUP_ROWS * IN_TURN:
        raise LaunchError(
            f"tile is {config.tile}; with scales its {shared} is {GROUP_ROWS} or {GROUP_ROWS * IN_TURN}: products are "
            "held next to accumulators, for which three warpgroups have too few registers",
            help="take a tile that two warpgroups share",
        )


def _check_columns(config: GemmConfig) -> None:
    """Raise LaunchError for tiles that are too wide for block scales."""
    if SCALED_COLUMNS < config.tile[1] != TWO_HALVES:
        raise LaunchError(
            f"tile is {config.tile}; with scales of blocks its N is {SCALED_COLUMNS} at most, or {TWO_HALVES}, of "
            "which each half is multiplied alone: a thread has products next to the accumulators of the tile",
            help="take a narrower tile",
        )
