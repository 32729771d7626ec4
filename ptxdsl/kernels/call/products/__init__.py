"""A call of gemm(): its arrays checked, its tiles and schedule chosen, its launch planned."""
