"""Scales of 8-bit floats, and what their kernels are made for: checked alike for products and for groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument, describe_type, describe_types
from ptxdsl.kernels.call.paths.groups import scheduled
from ptxdsl.kernels.call.paths.kernel import configure
from ptxdsl.kernels.call.products.problem import check_devices, check_written
from ptxdsl.kernels.call.scales import ScaledOperands
from ptxdsl.kernels.config import WGMMA, GemmConfig, specialise
from ptxdsl.kernels.product.operands import FP8, Operands, Scaling
from ptxdsl.kernels.sm90.scales import BLOCK
from ptxdsl.kernels.sm90.tiling import ARCH, GROUP_ROWS, IN_TURN
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.runtime.dispatch import target
from ptxdsl.types import f32

MOST_COLUMNS, TWO_HALVES = 192, 256  # of a tile with block scales, which holds products next to its accumulators
BY_EPILOGUE = "call gemm with an epilogue that multiplies by operands of per_row(…) and per_column(…)"


class ScaleShapes(NamedTuple):
    """The shapes of the scales of a and b for each granularity but that of tensors, which have one scale each."""

    rows: tuple[tuple[int, ...], tuple[int, ...]]
    blocks: tuple[tuple[int, ...], tuple[int, ...]]


def check_type(a: ArrayArgument, otherwise: str = BY_EPILOGUE) -> None:
    """Raise LaunchError for matrices of other types than 8-bit floats; `otherwise` is the help text."""
    if a.type not in FP8:
        raise LaunchError(
            f"`a` and `b` are {describe_type(a.type)}; scales are of {describe_types(FP8)} matrices", help=otherwise
        )


def scales_of(
    scales: Sequence[object], shapes: ScaleShapes, others: list[Any], is_turned: bool = False
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
        check_side_by_side(of_a if is_turned else of_b, is_turned)
    return scaled


def check_side_by_side(scales: ArrayArgument, is_turned: bool = False) -> None:
    """Raise LaunchError for scales of columns that are not contiguous; for those of rows if `is_turned`, since the
    kernel computes the transposed product."""
    axis, lines = (-2, "rows, with a column-major `out`,") if is_turned else (-1, "columns")
    if scales.array.size and scales.array.shape[axis] > 1 and scales.array.strides[axis] != 1:
        raise LaunchError(
            f"`{scales.name}` has strides of {scales.array.strides} elements; scales of {lines} lie side by side",
            help="make a contiguous copy of it",
        )


def _scaling(a: ArrayArgument, b: ArrayArgument, shapes: ScaleShapes) -> Scaling:
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


def traits_of(
    operands: Operands,
    config: GemmConfig,
    device: int | None,
    schedule: TileSchedule,
    epilogue: Callable[..., Any] | None = None,
) -> WarpgroupTraits:
    """Return the traits of the kernel of groups of rows."""
    config = config if epilogue is None else specialise(config, epilogue=epilogue)
    check_config(config, operands, device)
    if operands.scaling is Scaling.BLOCKS:
        check_columns(config)
    return configured(config, operands, device, schedule)


def check_config(config: GemmConfig, operands: Operands, device: int | None) -> None:
    """Raise LaunchError for a configuration or a GPU without kernels of scaled groups."""
    check_path(config, operands, device)
    if config.swap_ab and operands.scaling not in (None, Scaling.TENSORS):
        raise LaunchError(
            f"`config` has swap_ab=True; scales of {operands.scaling.value} are multiplied to sums that are not "
            "transposed",
            help="leave swap_ab out, or pass one scale of each tensor",
        )
    check_warpgroups(config)


def check_path(config: GemmConfig, operands: Operands, device: int | None) -> None:
    """Raise LaunchError for a configuration of another path, and for a GPU without this path."""
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


def check_warpgroups(config: GemmConfig) -> None:
    """Raise LaunchError for tiles that three warpgroups share."""
    shared = "N" if config.swap_ab else "M"
    if config.tile[config.swap_ab] > GROUP_ROWS * IN_TURN:
        raise LaunchError(
            f"tile is {config.tile}; with scales its {shared} is {GROUP_ROWS} or {GROUP_ROWS * IN_TURN}: products lie "
            "beside sums, for which three warpgroups have too few registers",
            help="take a tile that two warpgroups share",
        )


def check_columns(config: GemmConfig) -> None:
    """Raise LaunchError for tiles that are too wide for block scales."""
    if MOST_COLUMNS < config.tile[1] != TWO_HALVES:
        raise LaunchError(
            f"tile is {config.tile}; with scales of blocks its N is {MOST_COLUMNS} at most, or {TWO_HALVES}, of which "
            "each half is multiplied alone: a thread has products beside the sums of the tile",
            help="take a narrower tile",
        )


def configured(config: GemmConfig, operands: Operands, device: int | None, schedule: TileSchedule) -> WarpgroupTraits:
    """Return the traits of a kernel with a checked configuration."""
    traits = configure(scheduled(config, schedule), operands, device)
    assert isinstance(traits, WarpgroupTraits)
    return traits
