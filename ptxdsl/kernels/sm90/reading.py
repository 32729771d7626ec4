"""Configurations of the sm_90a path, whose atom is "wgmma": tiles of warpgroups, swapped, ping-pong or staggered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling, warpgroup_misfits
from ptxdsl.kernels.sm90.traits import WarpgroupTraits, warpgroup_traits_of
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.interleaved import InterleavedStrips
from ptxdsl.kernels.traits.reading import ConfigReader
from ptxdsl.schedule import HorizontalThreadblockSwizzle, IdentityThreadblockSwizzle, StreamKThreadblockSwizzle

WGMMA = "wgmma"
ONE_TILE = IdentityThreadblockSwizzle(1), HorizontalThreadblockSwizzle()


class WarpgroupConfigs(ConfigReader):
    """Reads configurations whose atom is "wgmma"."""

    path, chooses_tiles = "sm90", True

    def reads(self, atom: object) -> bool:
        return isinstance(atom, str) and atom == WGMMA

    def misfits(self, config: Any) -> Iterator[str]:
        yield from warpgroup_misfits(config)
        if type(config.copies_rows) is not bool:
            yield f"copies_rows is {config.copies_rows!r}; it takes True or False"

    def tiling(self, config: Any) -> WarpgroupTiling:
        m, n, k = config.tile
        return WarpgroupTiling((m, n, k), config.stages, config.swap_ab, config.pingpong, config.stagger)

    def traits(self, config: Any, operands: Operands, arch: str) -> WarpgroupTraits:
        return warpgroup_traits_of(config.tiling, operands, config.tile_schedule, config.epilogue)

    def label(self, config: Any) -> str:
        """Return such as "swap 16x64/10 cluster 2"."""
        (m, n, _), schedule = config.tile, config.schedule
        name = f"{'swap ' * config.swap_ab}{'pingpong ' * config.pingpong}{m}x{n}/{config.stages}"
        if isinstance(schedule, ClusterStrips):
            kind = "interleaved" if isinstance(schedule, InterleavedStrips) else "clusters"
            name += f" {kind} {'x'.join(map(str, schedule.blocks))}"
        elif config.split_k > 1:
            name += f" {config.reduction} {config.split_k}"
        elif isinstance(schedule, StreamKThreadblockSwizzle):
            name += " stream-k"
        elif schedule in ONE_TILE:
            name += " one tile"
        return name + f" staggered {config.stagger}" * (config.stagger > 0)
