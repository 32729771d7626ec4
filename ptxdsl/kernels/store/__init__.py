"""WarpEpilogue accumulators, with an epilogue of the caller.

- store, readers: `WarpEpilogue`, and the operands an epilogue reads
- function, traced: the caller's function, and its trace
"""
