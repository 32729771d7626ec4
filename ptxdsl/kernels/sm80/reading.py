"""Configurations of the sm_80 path: warp tiles, and an MMA atom of mma.sync or the default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm80.tiling import WarpTiling, misfits, usual_atom
from ptxdsl.kernels.sm80.traits import WarpTraits, traits_of
from ptxdsl.kernels.tiles.schedule import TileSchedule
from ptxdsl.kernels.traits.reading import ConfigReader
from ptxdsl.schedule import StreamKThreadblockSwizzle

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
        for field, (usual, why) in NOT_HERE.items():
            value = getattr(config, field)
            if type(value) is not type(usual) or value != usual:
                yield f"{field} is {value!r}; {why}"

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
