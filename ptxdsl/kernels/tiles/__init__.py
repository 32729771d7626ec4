"""Tile schedules in kernels: `plan` on the host, `walk` in the kernel.

- schedule: `TileSchedule`
- one_tile, persistent, cluster_strips, many: one tile a block, several, several problems
- split_k, cluster_split, stream_k: blocks that share the K of a tile
- visitor, group_visitors: tiles of many problems, and of groups of rows
- resolve: the schedule of `schedule=`, `split_k=` and `reduction=`
"""
