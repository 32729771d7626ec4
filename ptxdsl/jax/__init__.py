"""Kernels in JAX: `call` makes a kernel a function inside `jax.jit`; `gemm` and `attention` have gradients.

from ptxdsl.jax import attention, call, gemm

This package imports jax; `import ptxdsl` does not import it.
"""

try:
    import jax as _jax
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "ptxdsl.jax needs jax, which is not installed\n  help: pip install 'ptxdsl[jax]'", name="jax"
    ) from None

from functools import partial
from typing import TYPE_CHECKING

from ptxdsl.errors import refuse_attribute
from ptxdsl.jax.attention import attention
from ptxdsl.jax.calls import call
from ptxdsl.jax.products import gemm

__all__ = ["attention", "call", "gemm"]

_ELSEWHERE = {
    **dict.fromkeys(("jit", "op", "kernel", "pallas_call"), "`call` makes a kernel a function inside jax.jit"),
    **dict.fromkeys(("matmul", "dot"), "`gemm` is the product of two matrices"),
    **dict.fromkeys(("dot_product_attention", "scaled_dot_product_attention"), "`attention` is a function of arrays"),
}  # of JAX, and of ptxdsl.torch


if not TYPE_CHECKING:
    __getattr__ = partial(refuse_attribute, __name__, __all__, _ELSEWHERE)
