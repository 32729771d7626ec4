"""Epilogues: accumulators to global memory, through a function of the caller.

- epilogue: `Epilogue`, `WarpEpilogue`, and the reads of its operands
- function, traced: the caller's function, and its trace
"""
