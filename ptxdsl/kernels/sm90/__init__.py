"""The path of Hopper: TMA, mbarriers and wgmma.

- tiling, boxes, traits, parameters: `WarpgroupTiling`, TMA boxes, the traits, kernel parameters
- loads, pixels, memory, gathered: TMA loads of matrices and images; rows gathered by cp.async
- mma, first_factor: `StageMma`; A from registers
- scales: scales of 8-bit floats
- epilogue, fragments, staging, writers, broadcast: `TmaEpilogue` and its parts
- order, tile_queue, maps: ping-pong and staggered order, dynamic tiles, tensor maps changed by a kernel
"""
