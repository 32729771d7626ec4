"""Calls of scaled_gemm_ragged_k()."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

import numpy as np

from ptxdsl.arrays import HOST
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.groups.ragged import Groups, check_values, help_of_types, matrix_of_rank
from ptxdsl.kernels.call.groups.ragged_k import ALONG_K, are_boxed, groups_along_k, plan_of
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument, check_input_types
from ptxdsl.kernels.call.paths.groups import in_boxes
from ptxdsl.kernels.call.paths.kernel import check_mappable
from ptxdsl.kernels.call.products.configure import facts, narrower
from ptxdsl.kernels.call.products.lines import as_wgmma_reads, zeros
from ptxdsl.kernels.call.products.plan import check_factors
from ptxdsl.kernels.call.scaled.scales import (
    MOST_COLUMNS,
    ScaleShapes,
    check_config,
    check_side_by_side,
    check_type,
    configured,
    scales_of,
)
from ptxdsl.kernels.call.scales import ScaledOperands
from ptxdsl.kernels.candidates.facts import ListFacts, class_of_list
from ptxdsl.kernels.choose.products import Ranked, choose_groups, ranked_groups
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import FP8, Major, Scaling
from ptxdsl.kernels.sm90.scales import BLOCK, GROUP_UNIT
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import f32


class ScaledRaggedKCall(CheckedCall):
    """A call of scaled_gemm_ragged_k()."""

    name = "scaled_gemm_ragged_k"
    problem: Groups

    def __init__(self, call: PublicCall) -> None:
        out, a, b, scale_a, scale_b, offsets, c = call.arrays
        *_, self.validate = call.options
        self.kernels, self.factors = call.kernels, call.factors
        self.problem = groups = groups_of(a, b, scale_a, scale_b, offsets, out, c, call.beta)
        if self.validate:
            _check_offsets(groups.sizes, groups.depth)
        self.out, self.is_empty = groups.out.owner, not groups.out.array.size

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        traits = traits_of(self.problem, config)
        check_factors(self.factors, traits)
        groups, before = _readable(self.problem)
        return plan_of(self.kernels, groups, traits, self.validate, self.factors, before)

    @property
    def shape_class(self) -> str:
        """The key under which the best configuration is kept."""
        average = _list_facts(self.problem)
        return f"{class_of_list(average)}, {average.operands}, validated {self.validate}"

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class, none if there is nothing to multiply."""
        if not self.problem.depth:
            return []
        average, (device, _) = _list_facts(self.problem), self.problem.device_stream
        known = replace(average, sizes=class_of_list(average).sizes)
        return [
            (time, TuningCandidate(each))
            for time, each in _ranked(known, device)
            if not each.swap_ab or known.operands.scaling is Scaling.TENSORS
        ]


def groups_of(
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
    check_type(left, "call grouped_gemm_ragged_k of their transposes, whose rows are K")
    check_input_types(left, right, FP8, help_of_types(FP8))
    (m, k), (rows, n) = left.shape, right.shape
    if k != rows:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {k} columns meet {rows} rows",
            help="pass a of (M, K) and b of (K, N), with the K of all groups; of (N, K), pass the transpose",
        )
    groups = groups_along_k(left, right, (m, n, k), offsets, out, c, beta)
    count, blocks = groups.out.batches or 0, -(-k // BLOCK)
    shapes = ScaleShapes(((count, m, 1), (count, 1, n)), ((m, blocks), (blocks, n)))
    scales = scales_of((scale_a, scale_b), shapes, [left, right, groups.out])
    if scales.scaling is Scaling.BLOCKS:
        check_side_by_side(scales.b)
    return replace(groups, scales=scales)


def _check_offsets(offsets: ArrayArgument, k: int) -> None:
    """Raise LaunchError for the first invalid offset in host memory."""
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


def traits_of(groups: Groups, config: GemmConfig | None) -> WarpgroupTraits:
    """Return the traits of the kernel, with the tile of `config` or of the model."""
    known, (device, _) = _list_facts(groups), groups.device_stream
    operands = replace(known.operands, out_boxes=False)
    if config is None:
        config = choose_groups(_ranked(known, device), known, rates_of(device), ALONG_K)
    check_config(config, operands, device)
    if config.tile[1] > MOST_COLUMNS:
        raise LaunchError(
            f"tile is {config.tile}; with scales along K its N is {MOST_COLUMNS} at most: a thread has products of 128 "
            "along K beside the sums of the tile",
            help="take a narrower tile",
        )
    traits = configured(config, operands, device, AHEAD)
    return in_boxes(traits, device) if are_boxed(groups) else traits


def _ranked(known: ListFacts, device: int | None) -> Ranked:
    """Return the configurations whose threads have registers for products next to accumulators, with the microseconds
    that each should take."""
    return [(time, each) for time, each in ranked_groups(known, rates_of(device)) if each.tile[1] <= MOST_COLUMNS]


def _list_facts(groups: Groups) -> ListFacts:
    """Return the facts of groups of average size, whose A and B are copied if wgmma cannot read them in place."""
    (count, m, n), c, out = groups.out.full_shape, groups.c, groups.out
    operands = facts(
        groups.a, groups.b, c, out, (16, 16, narrower(out, c, n)), in_place=groups.in_place, batches="strided"
    )
    sizes = np.full(count, m), np.full(count, n), np.full(count, groups.depth / count)
    layout: dict[str, Any] = {"a_major": Major.K, "b_major": Major.K, "out_boxes": are_boxed(groups)}
    return ListFacts(sizes, replace(operands, **layout, **_scale_facts(groups.scales)))


def _readable(groups: Groups) -> tuple[Groups, tuple[LaunchPlan, ...]]:
    """Return the groups with copies of A and B where wgmma cannot read them in place, and the launches that make the
    copies. With a K of 0, A and B are memory for which there are tensor maps, and which no group reads."""
    at = groups.device_stream
    a, b = groups.a, groups.b
    if not groups.depth:
        a, b = zeros(a, at), zeros(b.transposed, at).transposed
    a, b, before = as_wgmma_reads(a, b, at)
    check_mappable(a.shape[1], a, b)
    return replace(groups, a=a, b=b), before


def _scale_facts(scales: ScaledOperands | None) -> dict[str, Any]:
    """Return the facts of scales. Those of columns along K are read in pairs if all pairs are aligned."""
    assert scales is not None
    if scales.scaling is not Scaling.BLOCKS:
        return {"scaling": scales.scaling}
    (_, columns), (step, _) = scales.b.array.shape, scales.b.array.strides
    width = gcd(2 * f32.bytes, columns * f32.bytes, step * f32.bytes, scales.b.array.pointer)
    return {"scaling": scales.scaling, "scale_bytes": width}
