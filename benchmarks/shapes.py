"""The shapes (M, N, K) of the tables in BENCHMARKS.md."""

import numpy as np

SQUARE = [256, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192]
LARGE = [(4096, 14336, 4096), (16384, 4096, 7168), (6144, 4096, 4096), (5000, 5000, 5000), (16384, 16384, 16384)]
LONG_K = [(1024, 1024, 4096), (512, 512, 16384)]
UNALIGNED = [(4097, 4095, 4100), (8192, 8190, 8194), (4097, 4095, 4099), (1023, 1023, 1023), (333, 777, 1111)]
FEW_ROWS = [1, 16, 32, 64, 128, 256]  # against these (N, K)
WEIGHTS = [(4096, 4096), (2112, 7168), (4096, 7168), (7168, 16384), (24576, 1536)]
SHAPES = {
    "square": [(n, n, n) for n in SQUARE],
    "large": LARGE,
    "long-k": LONG_K,
    "unaligned": UNALIGNED,
    "few-rows": [(m, n, k) for n, k in WEIGHTS for m in FEW_ROWS],
}
ALIGNED = [shape for name, of_table in SHAPES.items() if name != "unaligned" for shape in of_table]


def mixed() -> list[tuple[int, int, int]]:
    """Return 32 problems of 128 to 1024 along each of M, N and K; one of them has a K of 16384."""
    sizes = (64 * np.random.default_rng(24).integers(2, 17, (31, 3))).tolist()
    return [*map(tuple, sizes[:20]), (1024, 1024, 16384), *map(tuple, sizes[20:])]


GROUPED = {
    "8 large": [(m, 4096, 7168) for m in (512, 640, 896, 1024, 1152, 1280, 1536, 1664)],
    "64 small": [(16 * (1 + i % 8), 1408, 2048) for i in range(64)],
    "32 mixed": mixed(),
}
