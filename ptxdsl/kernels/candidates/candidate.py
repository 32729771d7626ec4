"""Candidates: configurations with the properties of their kernels that the estimate depends on."""

from __future__ import annotations

from dataclasses import dataclass

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import HorizontalThreadblockSwizzle, IdentityThreadblockSwizzle

PERSISTENT, IN_COLUMNS, IN_ROWS = Strips(), IdentityThreadblockSwizzle(1), HorizontalThreadblockSwizzle()
ALONE = 1, 1  # a cluster of one block


@dataclass(frozen=True)
class Candidate:
    """A configuration with `resident` blocks per multiprocessor. An iteration loads `loaded` bytes of A and B into
    shared memory, and `fragments` bytes from there to registers. `slow` is True for A and B if their rows are not
    aligned, and load more slowly. `delay` is added to each iteration, in microseconds."""

    config: GemmConfig
    resident: int
    loaded: tuple[float, float]
    fragments: float = 0.0
    slow: tuple[bool, bool] = (False, False)
    delay: float = 0.0

    @property
    def cluster(self) -> tuple[int, int]:
        """The blocks along M and N that share loads."""
        schedule = self.config.schedule
        return schedule.blocks if isinstance(schedule, ClusterStrips) else ALONE


def labelled(labels: str) -> tuple[GemmConfig, ...]:
    """Return the configurations of the sm_80 path with these labels, separated by spaces."""
    return tuple(_of_label(*each.split("/")) for each in labels.split())


def _of_label(tile: str, warp: str, stages: str) -> GemmConfig:
    m, n, k = map(int, tile.split("x"))
    return GemmConfig(tile=(m, n, k), warp=tuple(map(int, warp.split("x"))), stages=int(stages))
