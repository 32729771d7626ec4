"""The shapes of products, (M, N, K), that the tables of BENCHMARKS.md have."""

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
