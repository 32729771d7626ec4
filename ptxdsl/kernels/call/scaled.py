"""Calls of scaled 8-bit GEMM: single and batched products, groups of rows, and groups along K.

The kernels are shared with unscaled GEMM. A and B are copied to a workspace if wgmma cannot read them in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.arrays import HOST
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import PublicCall, TunableCall
from ptxdsl.kernels.call.groups.ragged import Groups, RaggedCall, check_values, matrix_argument, types_help
from ptxdsl.kernels.call.groups.ragged_k import RaggedKCall, check_k_groups
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
from ptxdsl.kernels.call.products.planner import facts_of, stores_by_tma
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

SPLIT_COLUMNS = 256  # columns of a tile with block scales whose halves are multiplied one after the other
EPILOGUE_HELP = "call gemm with an epilogue that multiplies by operands of per_row(…) and per_column(…)"
BLOCK_SCALE_CONFLICTS = {
    "pingpong": "with block scales, both warpgroups multiply the same tile at the same time",
    "stagger": "with block scales, both warpgroups finish a tile at the same time",
}


class ScaledCall(TunableCall):
    """A call of scaled_gemm(), for one product or a batch. `problem` is row-major."""

    name = "scaled_gemm"
    problem: GemmProblem

    def __init__(self, call: PublicCall) -> None:
        out, a, b, scale_a, scale_b, c, *_ = call.arrays
        self.kernels, self.factors, self.epilogue = call.kernels, call.factors, call.epilogue
        problem = problem_of(a, b, c, out, call.beta, call.epilogue, call.operands)
        problem = replace(problem, scales=_check_product_scales(problem, scale_a, scale_b)).scaled(call.alpha)
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
        """Return the launch, or None if the output is empty."""
        problem, device = self.problem, self.device_stream[0]
        _check_path(config, problem.a, device)
        config = config or select(self.request)[0]
        config = config if self.epilogue is None else specialise(config, epilogue=self.epilogue)
        traits = _traits_of(problem, self.request.facts.operands, config, device)
        check_factors(self.factors, traits)
        a, b, before = as_wgmma_reads(problem.a, problem.b, problem.device_stream)
        check_mappable(problem.k, a, b)
        return planned_with(self.kernels, replace(problem, a=a, b=b), traits, self.factors, before)


def product_facts(problem: GemmProblem, has_epilogue: bool) -> ProductFacts:
    """Return the facts of a product whose A and B are K-major and aligned, in place or as copies."""
    operands = replace(
        facts_of(problem), a_bytes=WIDEST_ACCESS, b_bytes=WIDEST_ACCESS, a_major=Major.K, b_major=Major.K
    )
    return ProductFacts(problem.m, problem.n, problem.k, problem.batches or 1, operands, has_epilogue)


def _check_product_scales(problem: GemmProblem, scale_a: object, scale_b: object) -> ScaledOperands:
    """Check the scales of a product."""
    _check_type(problem.a)
    m, n, k = problem.m, problem.n, problem.k
    (*batch_a, _, _), (*batch_b, _, _) = problem.a.full_shape, problem.b.full_shape
    k_blocks, n_blocks = -(-k // BLOCK), -(-n // BLOCK)
    shapes = _ScaleShapes(
        rows=((*batch_a, m, 1), (*batch_b, 1, n)), blocks=((*batch_a, m, k_blocks), (*batch_b, k_blocks, n_blocks))
    )
    transposes = problem.out.major != "row"
    scales = _check_scales((scale_a, scale_b), shapes, [problem.a, problem.b, problem.out], transposes)
    if transposes and scales.scaling is Scaling.BLOCKS and problem.out.array.size:
        raise LaunchError(
            f"`out` is column-major, and the scales are per block: its transpose would need a scale of B per column "
            f"and {BLOCK} of K, which the kernel reads for A alone",
            help="make a row-major output, or pass scales per tensor or per row and column",
        )
    return scales


def _traits_of(problem: GemmProblem, operands: Operands, config: GemmConfig, device: int | None) -> Traits:
    """Return the traits of the kernel. Raises LaunchError for a configuration without a scaled kernel."""
    config = _with_default_schedule(config)
    if operands.scaling is Scaling.BLOCKS:
        _check_blocks(config)
    if problem.batches is not None:
        check_not_split(config.split_k)
    traits = configure(config, operands, device, shares_copies=True)
    if not stores_by_tma(problem, config):
        return traits
    by_tma = replace(traits, operands=replace(operands, out_boxes=True))
    return by_tma if by_tma.fits(target(device)) else traits


def _with_default_schedule(config: GemmConfig) -> GemmConfig:
    """Return the configuration, with a persistent schedule unless it has another schedule or splits K."""
    if config.schedule != ROWS_OF_EIGHT or config.split_k > 1:
        return config
    return specialise(config, schedule=PERSISTENT)


def _check_blocks(config: GemmConfig) -> None:
    """Raise LaunchError for a configuration that block scales do not support."""
    for field, reason in BLOCK_SCALE_CONFLICTS.items():
        if getattr(config, field):
            raise LaunchError(
                f"`config` has {field}={getattr(config, field)!r}; {reason}",
                help=f"leave {field} out, or pass scales per tensor or per row and column",
            )
    _check_warpgroups(config)
    _check_columns(config)
    if config.swap_ab and config.tile[0] > BLOCK_SCALED_SWAPPED:
        raise LaunchError(
            f"tile is {config.tile}, and swap_ab is True; with block scales its M may be up to {BLOCK_SCALED_SWAPPED}: "
            "a thread holds the scales of a quarter of the rows next to partial sums and accumulators",
            help="use a tile with fewer rows, or leave swap_ab out",
        )


class ScaledRaggedCall(RaggedCall):
    """A call of scaled_gemm_ragged() or scaled_gemm_masked()."""

    inputs, prefix = FP8, "scaled_gemm"

    def scaled(self, groups: Groups, scales: Sequence[object]) -> Groups:
        """Return the groups with their scales, checked."""
        (_, n, k), count = groups.shape, groups.b.batches or 0
        k_blocks, n_blocks, rows = -(-k // BLOCK), -(-n // BLOCK), groups.a.full_shape[:-1]
        shapes = _ScaleShapes(rows=((*rows, 1), (count, 1, n)), blocks=((*rows, k_blocks), (count, k_blocks, n_blocks)))
        scaled = _check_scales(scales, shapes, [groups.a, groups.b, groups.out])
        strides = scaled.a.array.strides
        is_gathered = groups.index is not None and scaled.scaling is not Scaling.TENSORS
        if is_gathered and scaled.a.array.shape[1] > 1 and strides[1] != 1:
            raise LaunchError(
                f"`rows` gathers rows of `scale_a`, which has strides of {strides} elements: its rows are not "
                "contiguous",
                help="make a contiguous copy of it, or pass scale_a[rows] with a[rows], which copies both",
            )
        return replace(groups, scales=scaled)

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        _check_group_config(config, self.problem, Scaling.BLOCKS)
        return super().plan(config)


class ScaledRaggedKCall(RaggedKCall):
    """A call of scaled_gemm_ragged_k()."""

    name = "scaled_gemm_ragged_k"

    def groups(self, call: PublicCall) -> Groups:
        """Check the arrays of the call."""
        out, a, b, scale_a, scale_b, offsets, c = call.arrays
        return scaled_ragged_k_groups(a, b, scale_a, scale_b, offsets, out, c, call.beta)

    def check_offsets(self) -> None:
        """Raise LaunchError for the first invalid offset in host memory."""
        offsets, k = self.problem.sizes, self.problem.depth
        check_values("ragged", offsets, k, "columns")
        if offsets.array.device != HOST:
            return
        ends = offsets.array.view().view(np.int32)
        for group in np.flatnonzero((ends % GROUP_UNIT != 0) & (ends != k))[:1]:
            raise LaunchError(
                f"`offsets[{group}]` is {ends[group]}; a group must end at a multiple of {GROUP_UNIT}, where a TMA "
                f"load can start, or at the end of K, {k}",
                help=f"pad each group with zeros to a multiple of {GROUP_UNIT}",
            )

    def readable(self) -> tuple[Groups, tuple[LaunchPlan, ...]]:
        """Return the groups with copies of A and B that wgmma cannot read in place, and the launches of the copies.

        With a K of 0, A and B are zeros that no group reads, since a tensor map needs memory.
        """
        groups, device_stream = self.problem, self.device_stream
        a, b = groups.a, groups.b
        if not groups.depth:
            a, b = zeros(a, device_stream), zeros(b.transposed, device_stream).transposed
        a, b, before = as_wgmma_reads(a, b, device_stream)
        check_mappable(a.shape[1], a, b)
        return replace(groups, a=a, b=b), before

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        _check_group_config(config, self.problem)
        if config is not None and config.tile[1] > SCALED_COLUMNS:
            raise LaunchError(
                f"tile is {config.tile}; with scales along K its N may be up to {SCALED_COLUMNS}: a thread holds the "
                "partial sums of 128 of K next to the accumulators of the tile",
                help="use a narrower tile",
            )
        return super().plan(config)


def scaled_ragged_k_groups(
    a: object,
    b: object,
    scale_a: object,
    scale_b: object,
    offsets: object,
    out: object,
    c: object = None,
    beta: float = 0.0,
) -> Groups:
    """Check the arrays of a call, and return its groups. `out` is allocated if it is None, and C is dropped if beta is
    0. Raises LaunchError for arrays that do not fit."""
    left, right = matrix_argument("a", a, 2, "(M, K)"), matrix_argument("b", b, 2, "(K, N)").along_column
    _check_type(left, "call grouped_gemm_ragged_k of their transposes, whose rows are K")
    check_input_types(left, right, FP8, types_help(FP8))
    (m, k), (rows, n) = left.shape, right.shape
    if k != rows:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {k} columns meet {rows} rows",
            help="pass a of (M, K) and b of (K, N), with the K of all groups; for b of (N, K), pass the transpose",
        )
    groups = check_k_groups(left, right, (m, n, k), offsets, out, c, beta)
    count, blocks = groups.out.batches or 0, -(-k // BLOCK)
    shapes = _ScaleShapes(rows=((count, m, 1), (count, 1, n)), blocks=((m, blocks), (blocks, n)))
    scales = _check_scales((scale_a, scale_b), shapes, [left, right, groups.out])
    if scales.scaling is Scaling.BLOCKS:
        _check_contiguous(scales.b)
    return replace(groups, scales=scales)


class _ScaleShapes(NamedTuple):
    """The shapes of scale_a and scale_b for scales per row and column, and for block scales."""

    rows: tuple[tuple[int, ...], tuple[int, ...]]
    blocks: tuple[tuple[int, ...], tuple[int, ...]]


def _check_type(a: ArrayArgument, help: str = EPILOGUE_HELP) -> None:
    """Raise LaunchError unless the matrices are 8-bit floats."""
    if a.type not in FP8:
        raise LaunchError(
            f"`a` and `b` are {describe_type(a.type)}; only {describe_types(FP8)} matrices have scales", help=help
        )


def _check_scales(
    scales: Sequence[object], shapes: _ScaleShapes, others: list[Any], transposes: bool = False
) -> ScaledOperands:
    """Check the scales of a call, and return them. `transposes` is True if the output is column-major, so that the
    kernel computes the transposed product. Raises LaunchError for scales that do not fit."""
    for name, owner in zip(("scale_a", "scale_b"), scales, strict=True):
        if isinstance(owner, int | float | np.generic):
            raise LaunchError(
                f"`{name}` is {owner}, a number; the kernel reads scales from memory",
                help=f"pass np.full(1, {owner}, np.float32), or the same array on the GPU of the matrices",
            )
    left, right = (
        array_argument(name, owner, (0, 1, 2, 3), "scales have up to three dimensions", "reshape it", "float32")
        for name, owner in zip(("scale_a", "scale_b"), scales, strict=True)
    )
    for scale in (left, right):
        if scale.type is not f32:
            raise LaunchError(f"`{scale.name}` is {describe_type(scale.type)}; it takes float32", help="convert it")
    check_devices([*others, left, right])
    check_written(others[-1], [left, right])
    scaled = ScaledOperands(_scaling(left, right, shapes), left, right)
    if scaled.scaling is Scaling.ROWS:
        _check_contiguous(left if transposes else right, transposes)
    return scaled


def _check_contiguous(scales: ArrayArgument, transposes: bool = False) -> None:
    """Raise LaunchError for column scales that are not contiguous, or for row scales if `transposes`."""
    axis, scaled = (-2, "rows, with a column-major `out`,") if transposes else (-1, "columns")
    if scales.array.size and scales.array.shape[axis] > 1 and scales.array.strides[axis] != 1:
        raise LaunchError(
            f"`{scales.name}` has strides of {scales.array.strides} elements; the scales of {scaled} must be "
            "contiguous",
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
        help=f"pass one number per tensor; {shapes.rows[0]} and {shapes.rows[1]} for rows and columns; or "
        f"{shapes.blocks[0]} and {shapes.blocks[1]} for blocks of {BLOCK}",
    )


def _check_group_config(config: GemmConfig | None, groups: Groups, narrowed: Scaling | None = None) -> None:
    """Raise LaunchError for a GPU or a configuration without a kernel for scaled groups. Tiles are limited in width for
    the scaling `narrowed`."""
    assert groups.scales is not None
    _check_path(config, groups.a, groups.device_stream[0])
    if config is None:
        return
    scaling = groups.scales.scaling
    if config.swap_ab and scaling is not Scaling.TENSORS:
        raise LaunchError(
            f"`config` has swap_ab=True; scales of {scaling.value} need accumulators that are not transposed",
            help="leave swap_ab out, or pass one scale per tensor",
        )
    _check_warpgroups(config)
    if scaling is narrowed:
        _check_columns(config)


def _check_path(config: GemmConfig | None, a: ArrayArgument, device: int | None) -> None:
    """Raise LaunchError for a configuration of another path, or a GPU other than sm_90a."""
    if config is not None and config.atom != WGMMA:
        raise LaunchError(
            f"`config` has atom={config.atom!r}; scaled 8-bit floats are multiplied by wgmma, on {ARCH}",
            help='pass a GemmConfig with atom="wgmma", or leave config out',
        )
    if target(device) != ARCH:
        raise LaunchError(
            f"`a` and `b` are {describe_type(a.type)}, which are multiplied with scales on {ARCH}; the kernel is for "
            f"{target(device)}",
            help=f"on the emulator, set PTXDSL_ARCH={ARCH}",
        )


def _check_warpgroups(config: GemmConfig) -> None:
    """Raise LaunchError for tiles of three warpgroups."""
    shared = "N" if config.swap_ab else "M"
    if config.tile[config.swap_ab] > GROUP_ROWS * IN_TURN:
        raise LaunchError(
            f"tile is {config.tile}; with scales its {shared} is {GROUP_ROWS} or {GROUP_ROWS * IN_TURN}: partial sums "
            "are held next to the accumulators, and three warpgroups have too few registers for both",
            help="use a tile for one or two warpgroups",
        )


def _check_columns(config: GemmConfig) -> None:
    """Raise LaunchError for tiles that are too wide for block scales."""
    if SCALED_COLUMNS < config.tile[1] != SPLIT_COLUMNS:
        raise LaunchError(
            f"tile is {config.tile}; with block scales its N may be up to {SCALED_COLUMNS}, or {SPLIT_COLUMNS}, "
            "multiplied in halves: a thread holds partial sums next to the accumulators of the tile",
            help="use a narrower tile",
        )
