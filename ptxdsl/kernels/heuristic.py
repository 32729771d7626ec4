"""Which configuration takes the least time for a shape."""

from __future__ import annotations

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.types import Type, f16, f32, f64, s8, s32

LARGE = GemmConfig(tile=(128, 256, 64), stages=3)
MEDIUM = GemmConfig(tile=(128, 128, 32), stages=4)
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=4)
LARGE_TF32 = GemmConfig(f32, f32, tile=(128, 256, 16), stages=4)
MEDIUM_TF32 = GemmConfig(f32, f32, tile=(128, 128, 16), warp=(32, 64), stages=4)
SMALL_TF32 = GemmConfig(f32, f32, tile=(64, 64, 16), warp=(32, 32), stages=4)
LARGE_F64 = GemmConfig(f64, f64, tile=(128, 128, 16), warp=(64, 32), stages=3)
MEDIUM_F64 = GemmConfig(f64, f64, tile=(64, 128, 16), warp=(32, 32), stages=3)
SMALL_F64 = GemmConfig(f64, f64, tile=(64, 64, 16), warp=(32, 32), stages=3)
LARGE_S8 = GemmConfig(s8, s32, tile=(256, 128, 128), stages=3)
MEDIUM_S8 = GemmConfig(s8, s32, tile=(128, 128, 64), stages=4)
SMALL_S8 = GemmConfig(s8, s32, tile=(64, 64, 64), warp=(32, 32), stages=4)
# How much of the tensor cores each uses when all multiprocessors are busy, beside the others of its type.
OF_HALVES = {LARGE: 1.0, MEDIUM: 0.93, SMALL: 0.5}
OF_BYTES = {LARGE_S8: 1.0, MEDIUM_S8: 0.9, SMALL_S8: 0.5}
EFFICIENCY = {
    f32: {LARGE_TF32: 1.0, MEDIUM_TF32: 0.85, SMALL_TF32: 0.5},
    f64: {LARGE_F64: 1.0, MEDIUM_F64: 0.95, SMALL_F64: 0.85},
}
MULTIPROCESSORS = 132


def choose(m: int, n: int, k: int, inputs: Type = f16, arch: str = "sm_90") -> GemmConfig:
    """The configuration that should take the least time: whole waves of tiles, by how fast each is computed.

    It fits the shared memory of `arch`. `k` does not matter yet.
    """
    table = EFFICIENCY.get(inputs) or (OF_BYTES if inputs.bits == 8 else OF_HALVES)

    def time(config: GemmConfig) -> float:
        tiles_m, tiles_n = config.tiles(m, n)
        waves = -(-tiles_m * tiles_n // MULTIPROCESSORS)
        return waves * config.tile[0] * config.tile[1] / table[config]

    return min(filter(lambda config: config.fits(arch), table), key=time)
