"""Kernels in torch: operators that compile and differentiate, and the products that ship as such.

    from ptxdsl.torch import gemm, op

It imports torch, and is imported only where somebody asks for it: `import ptxdsl` does not.
"""

try:
    import torch as _torch
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "ptxdsl.torch needs torch, which is not installed\n  help: pip install 'ptxdsl[torch]'", name="torch"
    ) from None

from ptxdsl.torch.convolution import conv2d
from ptxdsl.torch.modules import Experts, Linear, MixtureOfExperts
from ptxdsl.torch.operator import Operator, op
from ptxdsl.torch.products import gemm, grouped_gemm_ragged, grouped_gemm_ragged_k, linear
from ptxdsl.torch.routing import Routes, combine, dispatch, route

__all__ = [
    "Experts", "Linear", "MixtureOfExperts", "Operator", "Routes", "combine", "conv2d", "dispatch", "gemm",
    "grouped_gemm_ragged", "grouped_gemm_ragged_k", "linear", "op", "route",
]  # fmt: skip
