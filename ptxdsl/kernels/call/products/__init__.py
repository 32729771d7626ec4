"""Calls of gemm(): arrays, configuration, launch plan."""
