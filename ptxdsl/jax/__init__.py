"""Kernels in JAX: `call` makes one a function inside `jax.jit`, and `gemm` is one with a gradient.

    from ptxdsl.jax import call, gemm

It imports jax, and is imported only where somebody asks for it: `import ptxdsl` does not.
"""

try:
    import jax as _jax
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "ptxdsl.jax needs jax, which is not installed\n  help: pip install 'ptxdsl[jax]'", name="jax"
    ) from None

from ptxdsl.jax.calls import call
from ptxdsl.jax.products import gemm

__all__ = ["call", "gemm"]
