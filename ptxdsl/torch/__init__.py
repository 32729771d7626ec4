"""Kernels in torch: operators that compile and differentiate, and ready-made matrix products and convolution.

from ptxdsl.torch import gemm, op

This package imports torch; `import ptxdsl` does not import it.
"""

try:
    import torch as _torch
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "ptxdsl.torch needs torch, which is not installed\n  help: pip install 'ptxdsl[torch]'", name="torch"
    ) from None

from functools import partial
from typing import TYPE_CHECKING

from ptxdsl.errors import refuse_attribute
from ptxdsl.torch.attention import attention
from ptxdsl.torch.convolution import conv2d
from ptxdsl.torch.modules import Experts, Linear, MixtureOfExperts
from ptxdsl.torch.operator import Operator, op
from ptxdsl.torch.products import gemm, grouped_gemm_ragged, grouped_gemm_ragged_k, linear
from ptxdsl.torch.routing import Routes, combine, dispatch, route

__all__ = [
    "Experts", "Linear", "MixtureOfExperts", "Operator", "Routes", "attention", "combine", "conv2d", "dispatch",
    "gemm", "grouped_gemm_ragged", "grouped_gemm_ragged_k", "linear", "op", "route",
]  # fmt: skip

_ELSEWHERE = {
    **dict.fromkeys(("matmul", "mm", "addmm"), "`gemm` is the product of two matrices"),
    "scaled_dot_product_attention": "`attention` is a function of tensors",
    **dict.fromkeys(("Conv2d", "conv1d", "conv3d"), "`conv2d` is a function of tensors"),
    **dict.fromkeys(("compile", "custom_op", "kernel", "call"), "`op` makes an operator of a kernel or a launcher"),
}  # of torch, and of ptxdsl.jax


if not TYPE_CHECKING:
    __getattr__ = partial(refuse_attribute, __name__, __all__, _ELSEWHERE)
