"""Calls of grouped GEMM: lists of problems, groups of rows, and groups along K."""
