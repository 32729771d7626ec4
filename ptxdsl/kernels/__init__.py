"""Kernels that ship with ptxdsl, written to be read.

    from ptxdsl.kernels import gemm

`gemm` and `epilogue` are modules here, and `gemm` may be called as the function of that name; other functions are
loaded when they are first used.
"""

import importlib
import inspect
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxdsl.errors import CallError, caller, listed, refuse_attribute
from ptxdsl.runtime import kept as kept  # each first call looks there, and shall not have to import it
from ptxdsl.runtime.imported import Watched, watch

if TYPE_CHECKING:
    from ptxdsl.kernels.config import GemmConfig as GemmConfig
    from ptxdsl.kernels.conv import conv2d as conv2d
    from ptxdsl.kernels.conv_gradients import conv2d_dgrad as conv2d_dgrad
    from ptxdsl.kernels.conv_gradients import conv2d_wgrad as conv2d_wgrad
    from ptxdsl.kernels.grouped import grouped_gemm as grouped_gemm
    from ptxdsl.kernels.ragged import grouped_gemm_masked as grouped_gemm_masked
    from ptxdsl.kernels.ragged import grouped_gemm_ragged as grouped_gemm_ragged
    from ptxdsl.kernels.ragged_k import grouped_gemm_ragged_k as grouped_gemm_ragged_k
    from ptxdsl.kernels.scaled import scaled_gemm as scaled_gemm
    from ptxdsl.kernels.scaled import scaled_gemm_masked as scaled_gemm_masked
    from ptxdsl.kernels.scaled import scaled_gemm_ragged as scaled_gemm_ragged
    from ptxdsl.kernels.scaled import scaled_gemm_ragged_k as scaled_gemm_ragged_k

_FUNCTIONS = {
    "gemm": "gemm",
    "grouped": "grouped_gemm",
    "ragged": "grouped_gemm_ragged grouped_gemm_masked",
    "ragged_k": "grouped_gemm_ragged_k",
    "scaled": "scaled_gemm scaled_gemm_ragged scaled_gemm_masked scaled_gemm_ragged_k",
    "conv": "conv2d",
    "conv_gradients": "conv2d_dgrad conv2d_wgrad",
    "config": "GemmConfig",
    "epilogue": "add add_gelu add_gelu_tanh add_relu gelu gelu_tanh per_column per_row relu scale "
    "scale_rows_and_columns sigmoid silu",
}
_HOME = {name: module for module, names in _FUNCTIONS.items() for name in names.split()}


class _Callable(ModuleType):
    """A module that calls its function of the same name, and says of others what there is to call."""

    @property
    def __signature__(self) -> inspect.Signature:
        """That of the function, for editors and `inspect.signature`; others have none."""
        name = self.__name__.rpartition(".")[2]
        return inspect.signature(getattr(self, name))

    @property
    def __call__(self) -> Any:
        name = self.__name__.rpartition(".")[2]
        function = getattr(self, name, None)
        if function is None:
            names = _FUNCTIONS[name].split()
            help = f"call {listed((f'`{name}.{each}`' for each in names), 'or')}"
            message = f"`{self.__name__}` is a module, and has no function of that name"
            raise CallError(message, at=caller(), help=help)
        return function


class _Kernels(Watched):
    """Makes modules with public functions callable."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, ModuleType) and name in _FUNCTIONS:
            value.__class__ = _Callable


def _loaded(name: str) -> Any:
    """A name that is not there yet. It is not kept: then the package were no more what it was when it was imported."""
    if name in _FUNCTIONS:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    refuse_attribute(__name__, (*_HOME, *_FUNCTIONS), {}, name)


if not TYPE_CHECKING:
    __all__ = sorted(_HOME)
    __getattr__ = _loaded


def __dir__() -> list[str]:
    return sorted({*_HOME, *_FUNCTIONS, *(name for name in globals() if name.startswith("__"))})


watch(sys.modules[__name__], _Kernels)
