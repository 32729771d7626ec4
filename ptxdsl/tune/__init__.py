"""Choose kernel constants by measurement: time the configurations that fit on this GPU and keep the best on disk."""

from ptxdsl.tune.tuned import TunedKernel, autotune

__all__ = ["TunedKernel", "autotune"]
