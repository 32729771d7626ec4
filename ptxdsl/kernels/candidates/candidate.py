"""A candidate: a configuration with what the estimate needs of its kernel, and its name in tables."""

from __future__ import annotations

from dataclasses import dataclass

from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.interleaved import InterleavedStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import HorizontalThreadblockSwizzle, IdentityThreadblockSwizzle, StreamKThreadblockSwizzle

PERSISTENT, IN_COLUMNS, IN_ROWS = Strips(), IdentityThreadblockSwizzle(1), HorizontalThreadblockSwizzle()
ALONE = 1, 1  # a cluster of one block


@dataclass(frozen=True)
class Candidate:
    """A configuration. A multiprocessor holds `resident` of its blocks. An iteration loads `loaded` bytes of A and of B
    through shared memory, and `fragments` bytes from there to registers."""

    config: GemmConfig
    resident: int
    loaded: tuple[float, float]
    fragments: float = 0.0

    @property
    def cluster(self) -> tuple[int, int]:
        """The blocks along M and N that share loads."""
        schedule = self.config.schedule
        return schedule.blocks if isinstance(schedule, ClusterStrips) else ALONE


def label(config: GemmConfig) -> str:
    """The name of a configuration in tables: "128x256x64/64x64/3 split 2", "swap 16x64/10 cluster 2"."""
    m, n, k = config.tile
    if config.atom != WGMMA:
        how = " stream-k" if isinstance(config.schedule, StreamKThreadblockSwizzle) else ""
        how = f" split {config.split_k}" if config.split_k > 1 else how
        return f"{m}x{n}x{k}/{'x'.join(map(str, config.warp))}/{config.stages}{how}"
    schedule = config.schedule
    name = f"{'swap ' * config.swap_ab}{'pingpong ' * config.pingpong}{m}x{n}/{config.stages}"
    if isinstance(schedule, ClusterStrips):
        kind = "interleaved" if isinstance(schedule, InterleavedStrips) else "clusters"
        name += f" {kind} {'x'.join(map(str, schedule.blocks))}"
    elif config.split_k > 1:
        name += f" {config.reduction} {config.split_k}"
    elif isinstance(schedule, StreamKThreadblockSwizzle):
        name += " stream-k"
    elif schedule in (IN_COLUMNS, IN_ROWS):
        name += " one tile"
    return name + f" staggered {config.stagger}" * (config.stagger > 0)


def labelled(labels: str) -> tuple[GemmConfig, ...]:
    """The configurations of the sm_80 path with these labels, separated by spaces."""
    return tuple(_of_label(*each.split("/")) for each in labels.split())


def _of_label(tile: str, warp: str, stages: str) -> GemmConfig:
    m, n, k = map(int, tile.split("x"))
    return GemmConfig(tile=(m, n, k), warp=tuple(map(int, warp.split("x"))), stages=int(stages))
