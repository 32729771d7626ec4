"""Calls of scaled_gemm_ragged() and scaled_gemm_masked()."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.call import CheckedCall, PublicCall
from ptxdsl.kernels.call.groups.ragged import Groups, check_values, groups_of, is_boxed, plan_of
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import matrix
from ptxdsl.kernels.call.paths.groups import in_boxes, with_copies
from ptxdsl.kernels.call.paths.kernel import check_mappable
from ptxdsl.kernels.call.products.configure import facts
from ptxdsl.kernels.call.products.lines import as_wgmma_reads, copied_rows
from ptxdsl.kernels.call.scaled.scales import ScaleShapes, scales_of, traits_of
from ptxdsl.kernels.call.scales import ScaledOperands
from ptxdsl.kernels.candidates.facts import GroupFacts, class_of_groups
from ptxdsl.kernels.choose.products import choose_groups, ranked_groups
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.product.operands import FP8, Batches, Major, Scaling
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.kernels.sm90.scales import BLOCK
from ptxdsl.kernels.tiles.many import AHEAD


class ScaledRaggedCall(CheckedCall):
    """A call of scaled_gemm_ragged() or scaled_gemm_masked()."""

    problem: Groups

    def __init__(self, call: PublicCall) -> None:
        out, a, b, sizes, index, out_index, scale_a, scale_b, *_ = call.arrays
        _, self.form, self.validate, *_ = call.options
        self.kernels, self.name = call.kernels, f"scaled_gemm_{self.form}"
        beside = index, out_index, call.epilogue, call.operands
        groups = groups_of(self.form, a, b, sizes, out, FP8, *beside)
        self.problem = groups = replace(groups, scales=_scales_of(groups, scale_a, scale_b))
        if self.validate:
            check_values(self.form, groups.sizes, groups.shape[0])
        self.out = groups.out.owner
        self.is_empty = not (groups.out.array.size and groups.b.batches and groups.shape[0])

    def plan(self, config: GemmConfig | None, copied: str = "") -> LaunchPlan:
        """Return the launch."""
        groups, (device, _) = self.problem, self.problem.device_stream
        known = _known(groups, self.form)
        if config is None:
            rates = rates_of(device)
            config = with_copies(choose_groups(ranked_groups(known, rates), known, rates, self.form))
        gathers = groups.index is not None and groups.a.is_mappable and not config.copies_rows
        groups, before = _readable(groups, copies_rows=not gathers)
        a_bytes = groups.a.widest(groups.a.length) if gathers else WIDEST
        operands = replace(known.operands, out_boxes=False, a_gathered=gathers, a_bytes=a_bytes)
        traits = traits_of(operands, config, device, AHEAD, groups.epilogue)
        if known.operands.out_boxes and groups.out_index is None:
            traits = in_boxes(traits, device)
        return plan_of(self.kernels, self.form, groups, traits, self.validate, before)

    @property
    def shape_class(self) -> str:
        """The key under which the best configuration is kept."""
        moves = self.problem.index is not None, self.problem.out_index is not None  # rows are gathered, or scattered
        known = class_of_groups(_known(self.problem, self.form))
        return f"{known}, said {moves}"

    def candidates(self) -> list[tuple[float, TuningCandidate]]:
        """Return what may be timed for the shape class."""
        known = class_of_groups(_known(self.problem, self.form))
        ranked = ranked_groups(known, rates_of(self.problem.device_stream[0]))
        return [(time, TuningCandidate(config)) for time, config in ranked]


def _scales_of(groups: Groups, scale_a: object, scale_b: object) -> ScaledOperands:
    """Check the scales of groups."""
    (_, n, k), count = groups.shape, groups.b.batches or 0
    blocks, lines = (-(-k // BLOCK), -(-n // BLOCK)), groups.a.full_shape[:-1]
    shapes = ScaleShapes(((*lines, 1), (count, 1, n)), ((*lines, blocks[0]), (count, *blocks)))
    scaled = scales_of((scale_a, scale_b), shapes, [groups.a, groups.b, groups.out])
    if groups.index is not None:
        _check_rows_of_scales(scaled)
    return scaled


def _known(groups: Groups, form: str) -> GroupFacts:
    """Return the facts of groups of average size, whose A and B are copied if wgmma cannot read them in place."""
    assert groups.scales is not None
    (rows, n, k), count = groups.shape, groups.b.batches or 1
    extras = tuple(operand.extra for operand in groups.operands)
    operands = facts(groups.a, groups.b, None, groups.out, (WIDEST, WIDEST, groups.out.widest(n)), extras=extras)
    average = rows if form == "masked" else rows / count
    layout: dict[str, Any] = {
        "a_major": Major.K,
        "b_major": Major.K,
        "batches": Batches.STRIDED,
        "out_boxes": is_boxed(groups.out),
    }
    return GroupFacts(average, n, k, count, replace(operands, **layout, scaling=groups.scales.scaling))


def _readable(groups: Groups, copies_rows: bool) -> tuple[Groups, tuple[LaunchPlan, ...]]:
    """Return the groups with copies of what the kernel cannot read in place, and the launches that make the copies: of
    A and B as wgmma reads them; of the scales of the rows that an index names, and of the rows if `copies_rows`."""
    index, scales = groups.index, groups.scales
    before: list[LaunchPlan] = []
    if index is not None and copies_rows:
        rows, of_rows = copied_rows(groups.a, index, groups.device_stream)
        groups, before = replace(groups, a=rows, index=None), [of_rows]
    if index is not None and scales is not None and scales.scaling is not Scaling.TENSORS:
        owner = matrix(scales.a.name, scales.a.owner)
        gathered, of_scales = copied_rows(owner, index, groups.device_stream, "gathered scales")
        groups, before = replace(groups, scales=scales._replace(a=gathered)), [*before, of_scales]
    a, b, copies = as_wgmma_reads(groups.a, groups.b, groups.device_stream)
    check_mappable(groups.shape[2], a, b)
    return replace(groups, a=a, b=b), (*before, *copies)


def _check_rows_of_scales(scaled: ScaledOperands) -> None:
    """Raise LaunchError for scales of rows that are to be gathered and are not contiguous."""
    strides = scaled.a.array.strides
    if scaled.scaling is not Scaling.TENSORS and scaled.a.array.shape[1] > 1 and strides[1] != 1:
        raise LaunchError(
            f"`rows` gathers rows of `scale_a`, which has strides of {strides} elements: they do not lie without gaps",
            help="make a contiguous copy of it, or pass scale_a[rows] with a[rows], which copies both",
        )
