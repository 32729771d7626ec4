"""Decorators of the public functions: they explain arguments by the names that other libraries use."""

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

_TRANSPOSED = "pass the transpose itself, such as b.T: column-major matrices are read as they lie"
_CONFIGURED = "it is part of `config=`: GemmConfig(tile=(128, 128, 32), warp=(64, 64), stages=4)"
_PRODUCTS = {
    **dict.fromkeys(("transpose_a", "transpose_b", "trans_a", "trans_b", "transa", "transb"), _TRANSPOSED),
    **dict.fromkeys(("dtype", "out_dtype", "output_dtype"), "the type is that of `out=`, which the caller makes"),
    **dict.fromkeys(("num_stages", "stages", "num_warps", "warps", "tile", "warp", "atom"), _CONFIGURED),
}
_ADDED = "pass the array that is added to as `c=` and `out=`, with beta=1"
_OF_THE_EPILOGUE = "{}(…, epilogue=add, operands=[per_column(bias)]) adds one; both are in ptxdsl.kernels.epilogue"
_ACTIVATION = "it is the epilogue: {}(…, epilogue=relu), with relu of ptxdsl.kernels.epilogue or one of yours"
_PADDED = "use `pad=`: one number, or one for height and one for width"
_GROUPED = "grouped convolution is not supported; call conv2d once per group"
_STRIDED = "windows move by single pixels here: of a stride s pass `dy` with s - 1 zeros between its pixels"


def public_product(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function that multiplies matrices."""
    return _launcher(function, **_PRODUCTS)


def public_convolution(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a convolution, or a gradient of one."""
    return _launcher(function, padding=_PADDED, groups=_GROUPED, stride=_STRIDED)


def _launcher(function: Callable[P, R], **helps: str) -> Callable[P, R]:
    """Decorate a public function. `helps` has the help text for each argument that only other libraries have."""
    name, parameters = function.__name__, inspect.signature(function).parameters
    if "beta" in parameters:
        helps["accumulate"] = _ADDED
    if "epilogue" in parameters:
        helps["bias"] = _OF_THE_EPILOGUE.format(name)
        helps["activation"] = helps["act"] = _ACTIVATION.format(name)
    if name in _OPERATORS:
        fix = f"call `{name}` of ptxdsl.torch, which is an operator"
    else:
        fix = 'make an operator of the call, `f = ptxdsl.torch.op("my::f", launcher, fake=…)`, and call f(…)'
    sentence = f"torch cannot look into `{name}` of ptxdsl.kernels; {fix}; {_BETWEEN}"
    return public(untraceable(sentence)(called_elsewhere(**helps)(function)))
