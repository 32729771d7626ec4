"""The traits of a kernel on sm_80: those of all paths, and what ldmatrix and mma.sync need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ptxdsl.cached import cached_property
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.product.operands import FP8, Operands
from ptxdsl.kernels.sm80.tile import OperandTile
from ptxdsl.kernels.sm80.tiling import WarpTiling
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.layout import TiledMma


@dataclass(frozen=True)
class WarpTraits(Traits):
    """Traits whose tiling is a WarpTiling."""

    path = "sm80"
    tiling: WarpTiling = field(default_factory=WarpTiling)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.operands.output in FP8:
            raise LaunchError(
                f"GemmConfig: the tiles are those of mma.sync, whose path does not round to {self.operands.output}; "
                'with atom="wgmma" sm_90a does'
            )

    @cached_property
    def mma(self) -> TiledMma:
        return self.tiling.mma(self.operands.inputs)

    @property
    def k_step(self) -> int:
        """The K of one tensor core instruction of each slice."""
        return self.mma.tile[2]

    @cached_property
    def a(self) -> OperandTile:
        return self.tiling.a(self.operands)

    @cached_property
    def b(self) -> OperandTile:
        return self.tiling.b(self.operands)


@lru_cache(maxsize=4096)
def traits_of(
    tiling: WarpTiling, operands: Operands, schedule: TileSchedule, epilogue: Callable[..., Any] | None
) -> WarpTraits:
    """Return the same object for the same kernel, so that its properties are computed once."""
    return WarpTraits(tiling, operands, schedule, epilogue)
