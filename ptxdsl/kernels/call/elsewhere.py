"""Public functions of products and convolutions; arguments that other libraries have, by the names they have there."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ptxdsl.errors import called_elsewhere, public

P = ParamSpec("P")
R = TypeVar("R")

_TRANSPOSED = "pass the transpose itself, such as b.T: column-major matrices are read as they lie"
_CONFIGURED = "it is part of `config=`: GemmConfig(tile=(128, 128, 32), warp=(64, 64), stages=4)"
_PRODUCTS = {
    **dict.fromkeys(("transpose_a", "transpose_b", "trans_a", "trans_b", "transa", "transb"), _TRANSPOSED),
    **dict.fromkeys(("dtype", "out_dtype", "output_dtype"), "the type is that of `out=`, which the caller makes"),
    **dict.fromkeys(("num_stages", "stages", "num_warps", "warps", "tile", "warp", "atom"), _CONFIGURED),
}
_OF_THE_EPILOGUE = "{}(…, epilogue=add, operands=[per_column(bias)]) adds one; both are in ptxdsl.kernels.epilogue"
_PADDED = "it is `pad=` here: one number, or one for height and one for width"


def _epilogues(called: str) -> dict[str, str]:
    """What stands for a bias and an activation where there is an epilogue."""
    activation = f"it is the epilogue: {called}(…, epilogue=relu), with relu of ptxdsl.kernels.epilogue or one of yours"
    return {"bias": _OF_THE_EPILOGUE.format(called), **dict.fromkeys(("activation", "act"), activation)}


def public_gemm(function: Callable[P, R]) -> Callable[P, R]:
    return public(called_elsewhere(**_PRODUCTS, **_epilogues("gemm"))(function))


def public_group(function: Callable[P, R]) -> Callable[P, R]:
    """Products of groups, which have no epilogue."""
    return public(called_elsewhere(**_PRODUCTS)(function))


def public_ragged(function: Callable[P, R]) -> Callable[P, R]:
    """Products of groups of rows, which have one."""
    return public(called_elsewhere(**_PRODUCTS, **_epilogues("grouped_gemm_ragged"))(function))


def public_convolution(function: Callable[P, R]) -> Callable[P, R]:
    groups = "there are none here: all channels meet all filters; call it for each group"
    return public(called_elsewhere(padding=_PADDED, groups=groups, **_epilogues("conv2d"))(function))


def public_gradient(function: Callable[P, R]) -> Callable[P, R]:
    """Gradients of convolutions."""
    return public(called_elsewhere(padding=_PADDED)(function))
