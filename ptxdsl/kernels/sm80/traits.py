"""The traits of a kernel on sm_80, with what ldmatrix and mma.sync need, and the configurations that they follow
from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ptxdsl.cached import cached_property
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.product.operands import FP8, Operands
from ptxdsl.kernels.sm80.tile import OperandTile
from ptxdsl.kernels.sm80.tiling import WarpTiling, misfits, usual_atom
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.traits import ConfigReader, Traits
from ptxdsl.layout import TiledMma
from ptxdsl.schedule import StreamKThreadblockSwizzle


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


# Fields that only the sm_90a path has, with their usual values
NOT_HERE = {
    "swap_ab": (False, "only wgmma takes the transposes of A and B"),
    "pingpong": (False, "only warpgroups that multiply take turns at the tensor cores"),
    "stagger": (0, "only warpgroups that multiply share tiles"),
    "copies_rows": (False, "only groups of rows by wgmma take copies, others gather rows always"),
}


class WarpConfigs(ConfigReader):
    """Reads configurations whose atom is not that of another path."""

    path = "sm80"

    def reads(self, atom: object) -> bool:
        return True

    def misfits(self, config: Any) -> Iterator[str]:
        yield from misfits(config)
        if isinstance(config.reduction, str) and config.reduction == "cluster":
            yield 'reduction is "cluster"; only blocks of "wgmma" add up in the shared memory of a cluster'
        if isinstance(config.schedule, TileSchedule) and config.schedule.multicast != (1, 1):
            yield f'schedule is {config.schedule!r}; only blocks of "wgmma" share TMA loads'
        for name, (usual, why) in NOT_HERE.items():
            value = getattr(config, name)
            if type(value) is not type(usual) or value != usual:
                yield f"{name} is {value!r}; {why}"

    def tiling(self, config: Any) -> WarpTiling:
        return WarpTiling(config.tile, config.warp, config.stages, config.atom)

    def traits(self, config: Any, operands: Operands, arch: str) -> WarpTraits:
        atom = config.atom or usual_atom(operands.inputs, arch)
        return traits_of(replace(config.tiling, atom=atom), operands, config.tile_schedule, config.epilogue)

    def label(self, config: Any) -> str:
        """Return such as "128x256x64/64x64/3 split 2"."""
        shared = " stream-k" if isinstance(config.schedule, StreamKThreadblockSwizzle) else ""
        shared = f" split {config.split_k}" if config.split_k > 1 else shared
        return f"{'x'.join(map(str, config.tile))}/{'x'.join(map(str, config.warp))}/{config.stages}{shared}"
