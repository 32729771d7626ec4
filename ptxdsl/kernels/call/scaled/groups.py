"""A call of scaled_gemm(), or of its groups, ragged or masked: its arrays are checked, its launch made and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from ptxdsl import Parameters
from ptxdsl.errors import LaunchError
from ptxdsl.kernel import Kernel
from ptxdsl.kernels.call.groups.gathered import copied_rows
from ptxdsl.kernels.call.groups.ragged import Groups, group_values, groups_of, in_boxes, is_boxed, most_tiles
from ptxdsl.kernels.call.launching.launches import LaunchPlan, carry_out
from ptxdsl.kernels.call.launching.memory import CALLS, key_of, placement_of
from ptxdsl.kernels.call.launching.residency import resident_blocks
from ptxdsl.kernels.call.launching.workspace import workspace
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument, describe_type, describe_types, matrix
from ptxdsl.kernels.call.products.configure import check_mappable, configure, facts, settled
from ptxdsl.kernels.call.products.problem import GemmProblem, check_devices, check_written, problem_of
from ptxdsl.kernels.call.tuned import Trials, TuningSubject, text_of, tuned_once, wants_tuning
from ptxdsl.kernels.choose.grouped import of_groups
from ptxdsl.kernels.choose.model import model_of
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.choose.shape_class import VERSION, class_of, class_of_groups
from ptxdsl.kernels.choose.warpgroups import Facts, GroupFacts, ProductFacts, choose_scaled, ranked_scaled
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.product.operands import FP8, Operands
from ptxdsl.kernels.sm90.parameters import ScaleView, scaled_parameters, scaled_ragged_parameters
from ptxdsl.kernels.sm90.scales import BLOCK
from ptxdsl.kernels.sm90.tile_queue import COUNTERS
from ptxdsl.kernels.sm90.tiling import ARCH
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import AHEAD
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.kernels.tiles.schedule import ProblemShape, TileSchedule
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.runtime.dispatch import target
from ptxdsl.schedule.problems import GemmShape
from ptxdsl.types import f32, u32

TileChoice: TypeAlias = GemmConfig | None
Choose: TypeAlias = Callable[[ProductFacts | GroupFacts, str, tuple[int | None, int]], TileChoice]
"""What chooses a tile, given what is known of a product, what scales are of, and the GPU and stream; None is for the
choice of the model."""
MOST_COLUMNS, TWO_HALVES = 192, 256  # of a tile with scales of blocks: beside whose sums products are in registers
BY_EPILOGUE = "call gemm with an epilogue that multiplies by operands of per_row(…) and per_column(…)"


class ScaledKernels(NamedTuple):
    """The kernels of one product, and of groups of rows."""

    product: Kernel
    ragged: Kernel


class ScaleShapes(NamedTuple):
    """What shapes scales of a and b have, by how they are said."""

    rows: tuple[tuple[int, ...], tuple[int, ...]]
    blocks: tuple[tuple[int, ...], tuple[int, ...]]


class ScaledOperands(NamedTuple):
    """The scales of a call, checked: `scaling` is "tensors", "rows" or "blocks"."""

    scaling: str
    a: ArrayArgument
    b: ArrayArgument

    @property
    def values(self) -> dict[str, Parameters]:
        """What a kernel takes of them."""
        return {"scale_a": self._view(self.a), "scale_b": self._view(self.b, along_last=True)}

    def _view(self, scales: ArrayArgument, along_last: bool = False) -> Parameters:
        if self.scaling == "tensors":
            return ScaleView(pointer=scales.pointer, line=0, step=0, apart=0)
        *apart, first, second = scales.array.strides
        line, step = (second, first) if along_last else (first, second)
        return ScaleView(pointer=scales.pointer, line=line, step=step, apart=apart[0] if apart else 0)


def run(
    kernels: ScaledKernels,
    form: str | None,
    a: object,
    b: object,
    scale_a: object,
    scale_b: object,
    sizes: object,
    out: object,
    config: GemmConfig | Literal["tune"] | None,
    index: object = None,
    out_index: object = None,
) -> Any:
    """The product, or those of groups of rows in a form, "ragged" or "masked", that `sizes` tells apart. Returns
    out."""
    arrays: tuple[Any, ...] = out, a, b, scale_a, scale_b, sizes, index, out_index
    options, is_tuned = (out is None, form, index is None, out_index is None), wants_tuning(config)
    tiles = None if is_tuned else settled(cast("GemmConfig | None", config))
    key = key_of(kernels, tiles or config, options, a, b)
    launched = CALLS.launch(key, arrays, ())
    if launched is not None:
        return launched

    def chosen(known: ProductFacts | GroupFacts, scaling: str, device_stream: tuple[int | None, int]) -> TileChoice:
        best = _best(kernels, form, arrays, known, scaling, device_stream) if is_tuned else None
        return best.config if best else tiles

    if form is None:
        problem = problem_of(a, b, None, out, 0.0)
        plan = _plan_of_product(kernels.product, problem, (scale_a, scale_b), chosen)
        return carry_out(plan, key, arrays, problem.out.owner)
    groups = groups_of(form, a, b, sizes, out, FP8, index, out_index)
    plan = _plan_of_groups(kernels.ragged, form, groups, (scale_a, scale_b), chosen)
    return carry_out(plan, key, arrays, groups.out.owner)


def _best(
    kernels: ScaledKernels,
    form: str | None,
    arrays: tuple[object, ...],
    known: ProductFacts | GroupFacts,
    scaling: str,
    device_stream: tuple[int | None, int],
) -> TuningCandidate | None:
    """What config="tune" stands for; None for the choice of the model: on the emulator, and for arrays of other
    libraries than torch and CuPy."""
    if placement_of(arrays) is None:
        return None
    out, a, b, scale_a, scale_b, sizes, index, out_index = arrays
    shape_class = class_of(known) if isinstance(known, ProductFacts) else class_of_groups(known)
    name = "scaled_gemm" if form is None else f"scaled_gemm_{form}"
    moves = index is not None, out_index is not None  # rows that are gathered, or scattered
    subject = TuningSubject(name, f"{VERSION}: {shape_class}, scales of {scaling}, said {moves}", device_stream)

    def run_with(candidate: TuningCandidate) -> None:
        run(kernels, form, a, b, scale_a, scale_b, sizes, out, candidate.config, index, out_index)

    def text(candidate: TuningCandidate) -> str:
        operands, schedule = replace(known.operands, out_boxes=False), Strips() if form is None else AHEAD
        traits = _traits_of(operands, known, scaling, candidate.config, subject.device, schedule)
        kernel, told = (kernels.product, {}) if form is None else (kernels.ragged, {"form": form})
        return text_of(kernel, {"traits": traits, "scaling": scaling, **told}, subject.device)

    def timed() -> list[tuple[float, TuningCandidate]]:
        ranked = ranked_scaled(shape_class, model_of(subject.device))
        return [(time, TuningCandidate(config)) for time, config in ranked]

    return tuned_once(subject, kernels, lambda: Trials(timed(), run_with, text))


def _plan_of_product(
    kernel: Kernel, problem: GemmProblem, scales: tuple[object, object], chosen: Choose
) -> LaunchPlan | None:
    _check_product(problem)
    m, n, k = problem.m, problem.n, problem.k
    blocks = -(-k // BLOCK), -(-n // BLOCK)
    shapes = ScaleShapes(((m, 1), (1, n)), ((m, blocks[0]), blocks))
    scaled = scales_of(scales, shapes, [problem.a, problem.b, problem.out])
    if not m or not n:
        return None
    device, _ = problem.device_stream
    operands = facts(problem.a, problem.b, None, problem.out, (16, 16, problem.out.widest(n)))
    known = ProductFacts(m, n, k, 1, replace(operands, out_boxes=is_boxed(problem.out)))
    config = chosen(known, scaled.scaling, problem.device_stream)
    traits = _traits_of(operands, known, scaled.scaling, config, device, Strips())
    check_mappable(k, problem.a, problem.b)
    traits = in_boxes(traits, device) if is_boxed(problem.out) else traits
    constants = {"traits": traits, "scaling": scaled.scaling}
    shape = ProblemShape(GemmShape(m, n, k))
    plan = traits.schedule.plan(
        shape, traits.tile, lambda: resident_blocks(kernel, traits.threads, device, **constants)
    )
    stored = problem.out.mapped(traits.out_map) if traits.operands.out_boxes else problem.out
    values = scaled_parameters(traits)(
        a=problem.a.mapped(traits.a.map),
        b=problem.b.mapped(traits.b.map),
        out=stored if traits.operands.out_boxes else view(operands.output)(pointer=stored, stride=problem.out.stride),
        m=m,
        n=n,
        k=k,
        schedule=traits.schedule.parameters(traits.sum)(**plan.numbers),
        **scaled.values,
    )
    return LaunchPlan(kernel, plan.grid, traits.threads, values, constants)


def _check_product(problem: GemmProblem) -> None:
    """Raises LaunchError for a product that is none of single matrices of 8-bit floats with rows."""
    check_type(problem.a)
    if problem.batches is not None:
        raise LaunchError(
            f"`a` and `b` are batches of {problem.batches} matrices; scaled_gemm multiplies single ones",
            help="call scaled_gemm for each of them, or scaled_gemm_ragged for groups of rows",
        )
    if problem.out.array.size and problem.out.major != "row":
        raise LaunchError("`out` is column-major; scaled_gemm writes rows", help="make a row-major output")


def check_type(a: ArrayArgument, otherwise: str = BY_EPILOGUE) -> None:
    """Raises LaunchError for matrices of other than 8-bit floats; `otherwise` is what to do with them."""
    if a.type not in FP8:
        raise LaunchError(
            f"`a` and `b` are {describe_type(a.type)}; scales are of {describe_types(FP8)} matrices", help=otherwise
        )


def _plan_of_groups(
    kernel: Kernel, form: str, groups: Groups, scales: tuple[object, object], chosen: Choose
) -> LaunchPlan | None:
    (rows, n, k), count = groups.shape, groups.b.batches or 0
    blocks, lines = (-(-k // BLOCK), -(-n // BLOCK)), groups.a.full_shape[:-1]
    shapes = ScaleShapes(((*lines, 1), (count, 1, n)), ((*lines, blocks[0]), (count, *blocks)))
    scaled = scales_of(scales, shapes, [groups.a, groups.b, groups.out])
    if groups.index is not None:
        _check_rows_of_scales(scaled)
    if not groups.out.array.size or not count or not rows:
        return None
    device, stream = groups.device_stream
    operands = replace(facts(groups.a, groups.b, None, groups.out, (16, 16, groups.out.widest(n))), batches="strided")
    average = rows if form == "masked" else rows / count
    known = GroupFacts(average, n, k, count, replace(operands, out_boxes=is_boxed(groups.out)))
    config = chosen(known, scaled.scaling, groups.device_stream)
    traits = _traits_of(operands, known, scaled.scaling, config, device, AHEAD)
    check_mappable(k, groups.a, groups.b)
    scatters = groups.out_index is not None
    traits = in_boxes(traits, device) if is_boxed(groups.out) and not scatters else traits
    groups, scaled, before = _gathered(groups, scaled)
    constants: dict[str, Any] = {"traits": traits, "scaling": scaled.scaling, "form": form}
    scattered: dict[str, Any] = {}
    if scatters:
        constants["scatters"] = True
        scattered = {"out_index": groups.out_index, "out_rows": groups.out.shape[0]}
    tiles = most_tiles(groups, traits.tile, form)
    grid = min(tiles, resident_blocks(kernel, traits.threads, device, **constants))
    boxes = {"boxes": groups.out.mapped(traits.out_map)} if traits.operands.out_boxes else {}
    _, counters = workspace(device, stream, u32, 0, COUNTERS)
    values = scaled_ragged_parameters(traits, scatters)(
        a=groups.a.mapped(traits.a.map),
        b=groups.b.mapped(traits.b.map),
        out=group_values(groups.out),
        sizes=groups.sizes,
        groups=count,
        rows=rows,
        n=n,
        k=k,
        counters=counters,
        **scaled.values,
        **scattered,
        **boxes,
    )
    return LaunchPlan(kernel, grid, traits.threads, values, constants, stream=stream, before=before)


def _gathered(groups: Groups, scaled: ScaledOperands) -> tuple[Groups, ScaledOperands, tuple[LaunchPlan, ...]]:
    """The groups and scales with copies of the rows of A that an index names, and the launches that make these."""
    index, (device, stream) = groups.index, groups.device_stream
    if index is None:
        return groups, scaled, ()
    rows, of_rows = copied_rows(groups.a, index, device, stream)
    groups = replace(groups, a=rows, index=None)
    if scaled.scaling == "tensors":
        return groups, scaled, (of_rows,)
    owner = matrix(scaled.a.name, scaled.a.owner)
    scales, of_scales = copied_rows(owner, index, device, stream, "gathered scales")
    return groups, scaled._replace(a=scales), (of_rows, of_scales)


def _check_rows_of_scales(scaled: ScaledOperands) -> None:
    """Raises LaunchError for scales of rows that are to be gathered, and do not lie in rows."""
    strides = scaled.a.array.strides
    if scaled.scaling != "tensors" and scaled.a.array.shape[1] > 1 and strides[1] != 1:
        raise LaunchError(
            f"`rows` gathers rows of `scale_a`, which has strides of {strides} elements: they do not lie without gaps",
            help="make a contiguous copy of it, or pass scale_a[rows] with a[rows], which copies both",
        )


def scales_of(scales: Sequence[object], shapes: ScaleShapes, others: list[Any]) -> ScaledOperands:
    """The scales, checked, and what they are of. Raises LaunchError for what does not fit."""
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
    scaling = _scaling(of_a, of_b, shapes)
    if scaling == "rows":
        check_side_by_side(of_b)
    return ScaledOperands(scaling, of_a, of_b)


def check_side_by_side(of_b: ArrayArgument) -> None:
    """Raises LaunchError for scales of columns that kernels cannot read so."""
    if of_b.array.size and of_b.array.shape[-1] > 1 and of_b.array.strides[-1] != 1:
        raise LaunchError(
            f"`scale_b` has strides of {of_b.array.strides} elements; scales of columns lie side by side",
            help="make a contiguous copy of it",
        )


def _scaling(a: ArrayArgument, b: ArrayArgument, shapes: ScaleShapes) -> str:
    """What scales of such shapes are of."""
    if a.array.size == b.array.size == 1:
        return "tensors"
    actual = a.array.shape, b.array.shape
    for scaling, expected in shapes._asdict().items():
        if actual == expected:
            return str(scaling)
    raise LaunchError(
        f"`scale_a` has the shape {actual[0]} and `scale_b` {actual[1]}",
        help=f"pass one number for each tensor; {shapes.rows[0]} and {shapes.rows[1]} for rows and columns; or "
        f"{shapes.blocks[0]} and {shapes.blocks[1]} for blocks of {BLOCK}",
    )


def _traits_of(
    operands: Operands,
    known: Facts,
    scaling: str,
    config: GemmConfig | None,
    device: int | None,
    schedule: TileSchedule,
) -> WarpgroupTraits:
    """What the kernel is made for: `config` gives the tile, else it is chosen."""
    if config is None:
        config = choose_scaled(known, model_of(device))
    check_config(config, operands, scaling, device)
    if scaling == "blocks" and MOST_COLUMNS < config.tile[1] != TWO_HALVES:
        raise LaunchError(
            f"tile is {config.tile}; with scales of blocks its N is {MOST_COLUMNS} at most, or {TWO_HALVES}, of which "
            "each half is multiplied alone: a thread has products beside the sums of the tile",
            help="take a narrower tile",
        )
    return configured(config, operands, device, schedule)


def check_config(config: GemmConfig, operands: Operands, scaling: str, device: int | None) -> None:
    """Raises LaunchError for a configuration, or a GPU, of which there are no kernels with scales."""
    if config.atom != WGMMA:
        raise LaunchError(
            f"`config` has atom={config.atom!r}; scaled 8-bit floats are multiplied by wgmma, on {ARCH}",
            help='pass a GemmConfig with atom="wgmma", or none',
        )
    if target(device) != ARCH:
        raise LaunchError(
            f"`a` and `b` are {describe_type(operands.inputs)}, multiplied with scales on {ARCH}; the kernel is for "
            f"{target(device)}",
            help=f"on the emulator, PTXDSL_ARCH={ARCH} says that it is such a GPU",
        )
    if config.swap_ab and scaling != "tensors":
        raise LaunchError(
            f"`config` has swap_ab=True; scales of {scaling} are multiplied to sums that are not transposed",
            help="leave swap_ab out, or pass one scale of each tensor",
        )


def configured(config: GemmConfig, operands: Operands, device: int | None, schedule: TileSchedule) -> WarpgroupTraits:
    """What a kernel is made for, by a checked configuration."""
    traits = configure(of_groups(config, schedule), operands, device, takes_warpgroups=True)
    assert isinstance(traits, WarpgroupTraits)
    return traits
