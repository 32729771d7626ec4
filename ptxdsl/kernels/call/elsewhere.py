"""Decorators of the public functions. They explain arguments that other libraries have under other names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ptxdsl.errors import called_elsewhere, public
from ptxdsl.tracers import untraceable

_OPERATORS = {"conv2d", "gemm", "grouped_gemm_ragged", "grouped_gemm_ragged_k"}  # of ptxdsl.torch
_BETWEEN = "without fullgraph=True it runs between two graphs"
P = ParamSpec("P")
R = TypeVar("R")

_TRANSPOSED = "pass the transpose itself, such as b.T: column-major matrices are read in place"
_CONFIGURED = "it is part of `config=`: GemmConfig(tile=(128, 128, 32), warp=(64, 64), stages=4)"
_PRODUCTS = {
    **dict.fromkeys(("transpose_a", "transpose_b", "trans_a", "trans_b", "transa", "transb"), _TRANSPOSED),
    **dict.fromkeys(("dtype", "out_dtype", "output_dtype"), "pass an array of that type as `out=`"),
    **dict.fromkeys(("num_stages", "stages", "num_warps", "warps", "tile", "warp", "atom"), _CONFIGURED),
}
_ACCUMULATE = "pass the accumulated array as both `c=` and `out=`, with beta=1"
_BIAS = (
    "{}(…, epilogue=add, operands=[per_column(bias)]) adds one; import add and per_column from ptxdsl.kernels.epilogue"
)
_ACTIVATION = (
    "it is the epilogue: {}(…, epilogue=relu), with relu from ptxdsl.kernels.epilogue or a function of your own"
)
_PADDED = "use `pad=`: one number, or one for height and one for width"
_GROUPED = "grouped convolution is not supported; call conv2d once per group"
_STRIDED = "this gradient has stride 1; for a stride of s, pass `dy` with s - 1 zeros between its pixels"


def public_product(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function that multiplies matrices."""
    return _launcher(function, **_PRODUCTS)


def public_convolution(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a convolution, or a gradient of one."""
    return _launcher(function, padding=_PADDED, groups=_GROUPED, stride=_STRIDED)


def _launcher(function: Callable[P, R], **helps: str) -> Callable[P, R]:
    """Decorate a public function. `helps` maps arguments of other libraries to their help texts."""
    name, parameters = function.__name__, inspect.signature(function).parameters
    if "beta" in parameters:
        helps["accumulate"] = _ACCUMULATE
    if "epilogue" in parameters:
        helps["bias"] = _BIAS.format(name)
        helps["activation"] = helps["act"] = _ACTIVATION.format(name)
    if name in _OPERATORS:
        fix = f"call the operator `{name}` of ptxdsl.torch"
    else:
        fix = 'turn the call into an operator, `f = ptxdsl.torch.op("my::f", launcher, fake=…)`, and call f(…)'
    message = f"torch cannot trace `{name}` of ptxdsl.kernels; {fix}; {_BETWEEN}"
    return public(untraceable(message)(called_elsewhere(**helps)(function)))
