"""The paths, which are families of kernels, and the one function that selects a configuration among theirs.

- path: the protocol of a path, and the request of a call
- sm80, sm90: the two paths
- select: the selection, and what `config="tune"` may time
- kernel: from a configuration to the traits of a kernel, and what keeps TMA and wgmma from operands
- groups, tma: what the sm_90a path makes of configurations for groups, and of products for its loads
"""
