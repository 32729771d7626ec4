"""Constants of kernels chosen by measuring: what fits is timed on the GPU at hand, and the best is kept on disk."""

from ptxdsl.tune.tuned import TunedKernel, autotune

__all__ = ["TunedKernel", "autotune"]
