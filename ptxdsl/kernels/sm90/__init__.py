"""The path of Hopper: TMA, mbarriers and wgmma.

- tiling, boxes, traits, parameters: `WarpgroupTiling`, TMA boxes, the traits, kernel parameters
- copies, pixels, memory, gathered: TMA loads of matrices and images; rows gathered by cp.async
- mma, first_factor, scales, scales_along_k: `StageMma`; A from registers; scales of 8-bit floats
- store, staging, deferred, vectors, addend: `TensorStore` and its epilogue
- order, tile_queue, maps: ping-pong and staggered order, dynamic tiles, tensor maps changed by a kernel
"""
