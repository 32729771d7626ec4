"""Matrix products as functions of JAX arrays, with their gradients."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ptxdsl.arrays import type_of
from ptxdsl.errors import called_elsewhere, public
from ptxdsl.jax.calls import call, refuse
from ptxdsl.kernels import gemm as products
from ptxdsl.kernels.call.matrix import describe_type
from ptxdsl.kernels.product.operands import INPUTS, outputs


def _struct(a: Any, b: Any) -> jax.ShapeDtypeStruct:
    """Return the output of a product. Raises LaunchError for unsupported shapes and types."""
    kind = type_of(np.dtype(a.dtype))
    if a.ndim not in (2, 3) or a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        refuse(
            f"`a` has the shape {a.shape} and `b` {b.shape}",
            "pass (M, K) and (K, N), or (batch, M, K) and (batch, K, N)",
        )
    if kind not in INPUTS or a.dtype != b.dtype:
        refuse(
            f"`a` is {a.dtype} and `b` is {b.dtype}",
            f"pass two arrays of one type, one of {', '.join(map(describe_type, INPUTS))}",
        )
    return jax.ShapeDtypeStruct((*a.shape[:-1], b.shape[-1]), jax.numpy.dtype(describe_type(outputs(kind)[0])))


_product = call(lambda a, b, out: products.gemm(a, b, out=out), out=_struct)


def _gemm(a: Any, b: Any) -> Any:
    return _product(a, b)


@public
@called_elsewhere(
    out="leave it out: JAX allocates its outputs; ptxdsl.kernels.gemm takes `out=`", c="add it to the result"
)
def gemm(a: Any, b: Any) -> Any:
    """Return a @ b of (M, K) and (K, N), or of batches of them, for the types that ptxdsl.kernels.gemm takes.

    Accumulators are float32. The result has the type of a and b, or int32 for integers. The gradients are products too.
    Raises LaunchError for arrays that do not fit.
    """
    return _differentiable(a, b)


def _forward(a: Any, b: Any) -> tuple[Any, tuple[Any, Any]]:
    return gemm(a, b), (a, b)


def _backward(saved: tuple[Any, Any], gradient: Any) -> tuple[Any, Any]:
    a, b = saved
    return gemm(gradient, b.swapaxes(-1, -2)), gemm(a.swapaxes(-1, -2), gradient)


_differentiable = jax.custom_vjp(_gemm)
_differentiable.defvjp(_forward, _backward)
