"""Which configuration takes the least time for a shape."""

from __future__ import annotations

from ptxdsl.kernels.config import GemmConfig

LARGE = GemmConfig(tile=(128, 256, 64), stages=3)
MEDIUM = GemmConfig(tile=(128, 128, 32), stages=4)
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=4)
EFFICIENCY = {LARGE: 1.0, MEDIUM: 0.93, SMALL: 0.5}  # of the tensor cores, when all multiprocessors are busy
MULTIPROCESSORS = 132


def choose(m: int, n: int) -> GemmConfig:
    """The configuration that should take the least time: whole waves of tiles, by how fast each is computed."""

    def time(config: GemmConfig) -> float:
        tiles_m, tiles_n = config.tiles(m, n)
        waves = -(-tiles_m * tiles_n // MULTIPROCESSORS)
        return waves * config.tile[0] * config.tile[1] / EFFICIENCY[config]

    return min(EFFICIENCY, key=time)
