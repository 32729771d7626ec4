"""The result of a device function that returns nothing; every use of it is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from ptxdsl.errors import TraceError, UnknownAttribute, here

_USES = """
    add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rfloordiv rmod rpow
    rmatmul rand ror rxor rlshift rrshift neg pos invert abs lt le gt ge bool int iter len getitem setitem
    contains
"""


class NoResult:
    """The missing result of a device function; using it as a value raises TraceError."""

    __slots__ = ("function",)

    def __init__(self, function: str) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"what `{self.function}` gives, which is nothing"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownAttribute(self._message, at=here().location, help=_HELP)

    @property
    def _message(self) -> str:
        return f"the function `{self.function}` gives no result, and one is used here"


_HELP = "annotate its result, `-> u32` after its parameters, and `return` it"


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(self: NoResult, *_: Any) -> NoReturn:
        raise TraceError(self._message, at=here().location, help=_HELP)

    refuse.__name__ = name
    return refuse


for _name in _USES.split():
    setattr(NoResult, f"__{_name}__", _refusing(f"__{_name}__"))


@cache
def no_result(function: str) -> NoResult:
    """Return the NoResult of a function, one object per name, so that loop iterations compare equal."""
    return NoResult(function)
