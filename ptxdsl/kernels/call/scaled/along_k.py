"""Calls of scaled_gemm_ragged_k(): their arrays, and their launch."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

import numpy as np

from ptxdsl.arrays import HOST
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import PublicCall
from ptxdsl.kernels.call.groups.ragged import (
    Groups,
    GroupsCall,
    check_output,
    check_size_array,
    check_values,
    help_of_types,
    in_boxes,
    matrix_of_rank,
)
from ptxdsl.kernels.call.groups.ragged_k import FACTORS, addend_of, are_boxed, check_groups, mapped, tiles_of
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.residency import resident_blocks
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument, check_input_types, empty
from ptxdsl.kernels.call.products.configure import check_mappable, facts, narrower
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
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.shape_class import class_of_list
from ptxdsl.kernels.choose.warpgroups import ListFacts, choose_scaled, ranked_scaled
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import FP8, Scaling, outputs
from ptxdsl.kernels.sm90.parameters import tensor_ragged_k_parameters
from ptxdsl.kernels.sm90.scales import BLOCK, GROUP_UNIT
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.function import UNSCALED
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import f32


class ScaledRaggedKCall(GroupsCall):
    """A call of scaled_gemm_ragged_k()."""

    name = "scaled_gemm_ragged_k"

    def __init__(self, call: PublicCall) -> None:
        out, a, b, scale_a, scale_b, offsets, c = call.arrays
        *_, self.validate = call.options
        self.kernel, self.factors = call.kernels.warpgroups, call.factors
        self.groups = groups = groups_of(a, b, offsets, out, c, call.beta)
        self.scaled = checked_scales(groups, scale_a, scale_b)
        if self.validate:
            _check_offsets(groups.sizes, groups.a.shape[1])
        self.out, self.is_empty = groups.out.owner, not groups.out.array.size

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        traits = traits_of(self.groups, self.scaled, config)
        check_factors(self.factors, traits)
        return plan_of(self.kernel, self.groups, self.scaled, traits, self.validate, self.factors)

    @property
    def shape_class(self) -> str:
        """The key under which the best configuration is kept."""
        average = _list_facts(self.groups, self.scaled)
        return f"{class_of_list(average)}, {average.operands}, validated {self.validate}"

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class, none if there is nothing to multiply."""
        if not self.groups.a.shape[1]:
            return []
        average, (device, _) = _list_facts(self.groups, self.scaled), self.groups.device_stream
        known = replace(average, sizes=class_of_list(average).sizes)
        return [
            (time, TuningCandidate(each))
            for time, each in ranked_scaled(known, model_of(device), MOST_COLUMNS)
            if not each.swap_ab or self.scaled.scaling is Scaling.TENSORS
        ]


def groups_of(a: object, b: object, offsets: object, out: object, c: object = None, beta: float = 0.0) -> Groups:
    """The arrays of a call; out is made where it is not given. C is checked, and left out with a beta of 0. Raises
    LaunchError for what does not fit."""
    left, right = matrix_of_rank("a", a, 2, "(M, K)"), matrix_of_rank("b", b, 2, "(K, N)").along_column
    check_type(left, "call grouped_gemm_ragged_k of their transposes, whose rows are K")
    check_input_types(left, right, FP8, help_of_types(FP8))
    if left.shape[1] != right.shape[0]:
        raise LaunchError(
            f"`a` has the shape {left.shape} and `b` {right.shape}: {left.shape[1]} columns meet {right.shape[0]} rows",
            help="pass a of (M, K) and b of (K, N), with the K of all groups; of (N, K), pass the transpose",
        )
    counted = array_argument(
        "offsets", offsets, 1, "it has one number for each group", "pass offsets of the shape (groups,)"
    )
    (count,) = counted.array.shape
    check_size_array(counted, count, f"`offsets` has {count} groups")
    shape = count, left.shape[0], right.shape[1]
    written = matrix_of_rank("out", empty(left, shape, outputs(left.type)[0]) if out is None else out, 3, str(shape))
    check_output(written, shape, left)
    groups = Groups(left, right, written, counted, c=addend_of(c, written, beta))
    check_groups(groups)
    return groups


def checked_scales(groups: Groups, scale_a: object, scale_b: object) -> ScaledOperands:
    """The scales, checked."""
    count, m, n = groups.out.full_shape
    blocks = -(-groups.a.shape[1] // BLOCK)
    shapes = ScaleShapes(((count, m, 1), (count, 1, n)), ((m, blocks), (blocks, n)))
    scaled = scales_of((scale_a, scale_b), shapes, [groups.a, groups.b, groups.out])
    if scaled.scaling is Scaling.BLOCKS:
        check_side_by_side(scaled.b)
    return scaled


def _check_offsets(offsets: ArrayArgument, k: int) -> None:
    """Raises LaunchError for the first offset in host memory that makes no sense."""
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


def traits_of(groups: Groups, scaled: ScaledOperands, config: GemmConfig | None) -> WarpgroupTraits:
    """What the kernel is made for: `config` gives the tile, else it is chosen."""
    known, (device, _) = _list_facts(groups, scaled), groups.device_stream
    operands = replace(known.operands, out_boxes=False)
    if config is None:
        config = choose_scaled(known, model_of(device), MOST_COLUMNS)
    check_config(config, operands, device)
    if config.tile[1] > MOST_COLUMNS:
        raise LaunchError(
            f"tile is {config.tile}; with scales along K its N is {MOST_COLUMNS} at most: a thread has products of 128 "
            "along K beside the sums of the tile",
            help="take a narrower tile",
        )
    traits = configured(config, operands, device, AHEAD)
    return in_boxes(traits, device) if are_boxed(groups) else traits


def _list_facts(groups: Groups, scaled: ScaledOperands) -> ListFacts:
    """What is known of groups of average size; operands that are not read as they lie are copied so."""
    (count, m, n), k = groups.out.full_shape, groups.a.shape[1]
    c, out = groups.c, groups.out
    widths = 16, 16, narrower(out, c, n)
    operands = facts(groups.a, groups.b, c, out, widths, in_place=groups.in_place, batches="strided")
    sizes = np.full(count, m), np.full(count, n), np.full(count, k / count)
    scales = {"scaling": scaled.scaling, "scale_bytes": _scale_bytes(scaled)}
    return ListFacts(sizes, replace(operands, a_major="k", b_major="k", out_boxes=are_boxed(groups), **scales))


def plan_of(
    kernel: Kernel,
    groups: Groups,
    scaled: ScaledOperands,
    traits: WarpgroupTraits,
    validate: bool,
    factors: tuple[float, float] = UNSCALED,
) -> LaunchPlan:
    """The launch: as many blocks as are resident, or as there are tiles."""
    (count, m, n), k, (device, stream) = groups.out.full_shape, groups.a.shape[1], groups.device_stream
    constants = {"traits": traits, "validate": validate}
    blocks = min(tiles_of(groups.out, traits.tile), resident_blocks(kernel, traits.threads, device, **constants))
    numbers = {"sizes": groups.sizes, "groups": count, "rows": k, "m": m, "n": n}
    numbers |= dict(zip(FACTORS, factors, strict=True))
    groups = _with_k(groups)
    a, b, before = as_wgmma_reads(groups.a, groups.b, groups.device_stream)
    check_mappable(a.shape[1], a, b)
    matrices = mapped(replace(groups, a=a, b=b), traits, blocks)
    values = tensor_ragged_k_parameters(traits)(**matrices, **numbers, **scaled.values)
    return LaunchPlan(kernel, blocks, traits.threads, values, constants, FACTORS, stream, before)


def _with_k(groups: Groups) -> Groups:
    """The same with A and B that tensor maps can be made of: where K is 0, memory of which nothing is read, since all
    groups are empty."""
    if groups.a.shape[1]:
        return groups
    at = groups.device_stream
    return replace(groups, a=zeros(groups.a, at), b=zeros(groups.b.transposed, at).transposed)


def _scale_bytes(scaled: ScaledOperands) -> int:
    """Return the width at which scales of columns along K are read: 8 if pairs of columns are aligned to it."""
    if scaled.scaling is not Scaling.BLOCKS:
        return f32.bytes
    (_, columns), (step, _) = scaled.b.array.shape, scaled.b.array.strides
    return gcd(2 * f32.bytes, columns * f32.bytes, step * f32.bytes, scaled.b.array.pointer)
