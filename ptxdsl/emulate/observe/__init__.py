"""Observers of memory accesses: checks and counters.

- bounds, read_only: the bounds of accesses; `ld.global.nc` of written data
- contents: uninitialised bytes
- arrivals: arrivals at mbarriers
- traffic, lines, steps: wavefronts and sectors, counts by source line, the trace of a thread
- races: unordered accesses
"""
