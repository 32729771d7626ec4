"""Calls of scaled_gemm_ragged() and scaled_gemm_masked(): their arrays, and their launch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.call import PublicCall
from ptxdsl.kernels.call.groups.gathered import copied_rows
from ptxdsl.kernels.call.groups.ragged import (
    Groups,
    GroupsCall,
    check_values,
    group_values,
    groups_of,
    in_boxes,
    is_boxed,
    most_tiles,
)
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.residency import resident_blocks
from ptxdsl.kernels.call.launching.workspace import workspace
from ptxdsl.kernels.call.matrix import matrix
from ptxdsl.kernels.call.products.configure import check_mappable, facts
from ptxdsl.kernels.call.products.lines import as_wgmma_reads
from ptxdsl.kernels.call.products.values import extra_values
from ptxdsl.kernels.call.scaled.scales import ScaleShapes, scales_of, traits_of
from ptxdsl.kernels.call.scales import ScaledOperands
from ptxdsl.kernels.choose.grouped import with_copies
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.scaled import choose_scaled_groups, ranked_scaled_groups
from ptxdsl.kernels.choose.shape_class import class_of_groups
from ptxdsl.kernels.choose.warpgroups import GroupFacts
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import FP8, Scaling
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm90.parameters import tensor_ragged_parameters
from ptxdsl.kernels.sm90.scales import BLOCK
from ptxdsl.kernels.sm90.tile_queue import COUNTERS
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.types import u32


class ScaledRaggedCall(GroupsCall):
    """A call of scaled_gemm_ragged() or scaled_gemm_masked()."""

    def __init__(self, call: PublicCall) -> None:
        out, a, b, sizes, index, out_index, scale_a, scale_b, *_ = call.arrays
        _, self.form, self.validate, *_ = call.options
        self.kernel, self.name = call.kernels.warpgroups, f"scaled_gemm_{self.form}"
        beside = index, out_index, call.epilogue, call.operands
        self.groups = groups = groups_of(self.form, a, b, sizes, out, FP8, *beside)
        self.scaled = _scales_of(groups, scale_a, scale_b)
        if self.validate:
            check_values(self.form, groups.sizes, groups.shape[0])
        self.out = groups.out.owner
        self.is_empty = not (groups.out.array.size and groups.b.batches and groups.shape[0])

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        return _plan_of(self.kernel, self.form, self.groups, self.scaled, config, self.validate)

    @property
    def shape_class(self) -> str:
        """The key under which the best configuration is kept."""
        moves = self.groups.index is not None, self.groups.out_index is not None  # rows are gathered, or scattered
        known = class_of_groups(_known(self.groups, self.form, self.scaled.scaling))
        return f"{known}, said {moves}"

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class."""
        known = class_of_groups(_known(self.groups, self.form, self.scaled.scaling))
        ranked = ranked_scaled_groups(known, model_of(self.groups.device_stream[0]))
        return [(time, TuningCandidate(config)) for time, config in ranked]


def _scales_of(groups: Groups, scale_a: object, scale_b: object) -> ScaledOperands:
    """The scales of groups, checked, and what they are of."""
    (_, n, k), count = groups.shape, groups.b.batches or 0
    blocks, lines = (-(-k // BLOCK), -(-n // BLOCK)), groups.a.full_shape[:-1]
    shapes = ScaleShapes(((*lines, 1), (count, 1, n)), ((*lines, blocks[0]), (count, *blocks)))
    scaled = scales_of((scale_a, scale_b), shapes, [groups.a, groups.b, groups.out])
    if groups.index is not None:
        _check_rows_of_scales(scaled)
    return scaled


def _known(groups: Groups, form: str, scaling: Scaling) -> GroupFacts:
    """What is known of groups of average size; operands that are not read as they lie are copied so."""
    (rows, n, k), count = groups.shape, groups.b.batches or 1
    extras = tuple(operand.extra for operand in groups.operands)
    operands = facts(groups.a, groups.b, None, groups.out, (WIDEST, WIDEST, groups.out.widest(n)), extras=extras)
    average = rows if form == "masked" else rows / count
    boxed = is_boxed(groups.out)
    known = replace(operands, a_major="k", b_major="k", batches="strided", out_boxes=boxed, scaling=scaling)
    return GroupFacts(average, n, k, count, known)


def _plan_of(
    kernel: Kernel, form: str, groups: Groups, scaled: ScaledOperands, config: GemmConfig | None, validate: bool
) -> LaunchPlan:
    """The launch: as many blocks as are resident, or as there can be tiles. `config` gives the tile, else it is
    chosen."""
    (rows, n, k), count, (device, stream) = groups.shape, groups.b.batches or 0, groups.device_stream
    known, scatters = _known(groups, form, scaled.scaling), groups.out_index is not None
    if config is None:
        config = with_copies(choose_scaled_groups(known, model_of(device)))
    gathers = groups.index is not None and groups.a.is_mappable and not config.copies_rows
    groups, scaled, before = _gathered(groups, scaled, copies_rows=not gathers)
    a, b, copies = as_wgmma_reads(groups.a, groups.b, groups.device_stream)
    check_mappable(k, a, b)
    groups, before = replace(groups, a=a, b=b), (*before, *copies)
    operands = replace(
        known.operands, out_boxes=False, a_gathered=gathers, a_bytes=a.widest(a.length) if gathers else 16
    )
    traits = traits_of(operands, config, device, AHEAD, groups.epilogue)
    traits = in_boxes(traits, device) if known.operands.out_boxes and not scatters else traits
    constants: dict[str, Any] = {"traits": traits, "form": form, "validate": validate}
    if scatters:
        constants["scatters"] = True
    grid = min(most_tiles(groups, traits.tile, form), resident_blocks(kernel, traits.threads, device, **constants))
    values = tensor_ragged_parameters(traits, scatters)(
        **_matrices(groups, traits), sizes=groups.sizes, groups=count, rows=rows, n=n, k=k, **scaled.values
    )
    return LaunchPlan(kernel, grid, traits.threads, values, constants, stream=stream, before=before)


def _matrices(groups: Groups, traits: WarpgroupTraits) -> dict[str, Any]:
    """A, B and out as a kernel takes them, and what is beside these."""
    a, out, index, gathers = groups.a, groups.out, groups.out_index, traits.operands.a_gathered
    _, counters = workspace(*groups.device_stream, u32, 0, COUNTERS)
    of_a = group_values(a) if gathers else a.mapped(traits.a.map)
    matrices = {"a": of_a, "b": groups.b.mapped(traits.b.map), "out": group_values(out)}
    boxes = {"boxes": out.mapped(traits.out_map)} if traits.operands.out_boxes else {}
    moved = {"index": groups.index, "a_rows": a.shape[0]} if gathers else {}
    moved |= {} if index is None else {"out_index": index, "out_rows": out.shape[0]}
    extras = {"extras": extra_values(groups.operands, traits.operands)} if groups.operands else {}
    return {**matrices, **boxes, **moved, **extras, "counters": counters}


def _gathered(
    groups: Groups, scaled: ScaledOperands, copies_rows: bool
) -> tuple[Groups, ScaledOperands, tuple[LaunchPlan, ...]]:
    """The groups and scales with copies of the scales of the rows that an index names, of the rows of A as well where
    these are not gathered, and the launches that make them."""
    index, (device, stream) = groups.index, groups.device_stream
    if index is None:
        return groups, scaled, ()
    before: list[LaunchPlan] = []
    if copies_rows:
        rows, of_rows = copied_rows(groups.a, index, device, stream)
        groups, before = replace(groups, a=rows, index=None), [of_rows]
    if scaled.scaling is not Scaling.TENSORS:
        owner = matrix(scaled.a.name, scaled.a.owner)
        scales, of_scales = copied_rows(owner, index, device, stream, "gathered scales")
        scaled, before = scaled._replace(a=scales), [*before, of_scales]
    return groups, scaled, tuple(before)


def _check_rows_of_scales(scaled: ScaledOperands) -> None:
    """Raises LaunchError for scales of rows that are to be gathered, and do not lie in rows."""
    strides = scaled.a.array.strides
    if scaled.scaling is not Scaling.TENSORS and scaled.a.array.shape[1] > 1 and strides[1] != 1:
        raise LaunchError(
            f"`rows` gathers rows of `scale_a`, which has strides of {strides} elements: they do not lie without gaps",
            help="make a contiguous copy of it, or pass scale_a[rows] with a[rows], which copies both",
        )
