"""Trace of a caller's function in a kernel. Its errors are reported at the caller's own lines."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

import ptxdsl as pd
from ptxdsl.errors import Error, Location, TraceError, caller, raised_at
from ptxdsl.types import Type

KERNELS = str(Path(__file__).parents[1])


class Known:
    """One function in place of all that make the same kernel: it calls the last of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, *values: Any) -> Any:
        return self.__wrapped__(*values)


def traced(function: Callable[..., Any], *values: Any) -> Any:
    """Return the result of the caller's function for an element. Its errors are reported at the caller's own lines."""
    function = function.__wrapped__ if isinstance(function, Known) else function
    try:
        result = function(*values)
    except Error as error:
        error.at = _in_own_lines(error.at)
        raise
    except (NameError, AttributeError) as error:
        raise _unknown_name(function, error) from None
    type, scalar = getattr(result, "type", None), values[0].type
    if isinstance(type, Type) and type.kind in "fsu":
        return result if type is scalar else _converted(result, scalar)
    if isinstance(result, int | float | np.number) and not isinstance(result, bool):
        return _constant(result, scalar)
    code, returned = getattr(function, "__code__", None), f"a {type}" if type is not None else repr(result)
    raise TraceError(
        f"`epilogue` returns {returned}; it returns the element that is written",
        at=Location(code.co_filename, code.co_firstlineno, inlined_at=caller()) if code else caller(),
        help="of a predicate, write pd.select(p, 1.0, 0.0)" if type is not None else "return the element",
    )


def _unknown_name(function: Any, error: NameError | AttributeError) -> TraceError:
    """Return the error for a name that the caller's function reads and that does not exist."""
    if isinstance(error, AttributeError):
        known = dir(error.obj)
    else:
        code = getattr(function, "__code__", None)
        names = (*code.co_varnames, *code.co_freevars) if code else ()
        known = [*names, *getattr(function, "__globals__", ()), *dir(builtins)]
    near = get_close_matches(error.name or "", known, 1)
    return TraceError(
        f"`epilogue` cannot be traced: {error}",
        at=raised_at(error, caller()),
        help=f"did you mean `{near[0]}`?" if near else None,
    )


def _constant(number: Any, scalar: Type) -> Any:
    """Return a constant result as a register."""
    if scalar.is_integer and not isinstance(number, int | np.integer):
        raise TraceError(
            f"`epilogue` returns {number!r}, and the output is {scalar}",
            at=caller(),
            help="return an integer, or write to a float32 out",
        )
    return pd.var(scalar, number.item() if isinstance(number, np.number) else number)


def _converted(result: Any, scalar: Type) -> Any:
    if scalar.is_integer and result.type.is_float:
        raise TraceError(
            f"`epilogue` returns an {result.type}, and the output is {scalar}",
            at=caller(),
            help="round it, as by pd.ptx.cvt.rni.s32.f32(x), or write to a float32 out",
        )
    return result.to(scalar)


def _in_own_lines(at: Location | None) -> Location | None:
    """Return a location in the caller's function as called by the caller, without the lines of the kernel in
    between."""
    called_at = caller()
    outer = takewhile(lambda location: not location.file.startswith(KERNELS), at.chain() if at else ())
    for location in reversed(list(outer)):
        called_at = replace(location, inlined_at=called_at)
    return called_at
