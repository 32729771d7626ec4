"""The paths, which are families of kernels, and the selection of a configuration.

- path: the protocol of a path, and the request of a call
- sm80, sm90: the two paths
- select: the selection, and the candidates of config="tune"
- kernel: from a configuration to the traits of a kernel; checks of operands for TMA and wgmma
- groups, tma: adapt configurations to grouped kernels, and products to TMA loads
"""
