"""What a caller gives to an epilogue beside arrays: a function, which may be written anew at each call, and numbers."""

from __future__ import annotations

import inspect
import math
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from ptxdsl import arrays
from ptxdsl.errors import LaunchError
from ptxdsl.kernels.epilogue import Epilogue, Vector
from ptxdsl.types import Type, f32, s32

MOST_FUNCTIONS = 256
_PLAIN = (int, float, str, bool, type(None))  # of what a function reads: the same where type and text are
_OURS = "ptxdsl."
_known: OrderedDict[tuple[Any, ...], tuple[Epilogue, list[Any]]] = OrderedDict()


def canonical(function: Any) -> Any:
    """One function for all that have its code and read what it reads now: a kernel is made for each, once.

    A lambda in a loop is a new function each time, and one that is not new may read a variable that has changed. Of
    variables, those that are numbers, text, functions, or sequences of these are compared; objects are the same as long
    as they are the same object. The last ones that were asked for are remembered.
    """
    if type(function).__hash__ is None:
        raise LaunchError(
            f"`epilogue` is of type {type(function).__name__}, which is not hashable",
            help="pass a function: a kernel is made for each",
        )
    if type(function) is not FunctionType or _is_ours(function):
        return function
    alive: list[Any] = []
    key = _key(function, alive, ())
    if key not in _known:
        _known[key] = _copy(function), alive
    _known.move_to_end(key)
    if len(_known) > MOST_FUNCTIONS:
        _known.popitem(last=False)
    return _known[key][0]


def _is_ours(function: FunctionType) -> bool:
    return (function.__module__ or "").startswith(_OURS)


def _copy(function: FunctionType) -> FunctionType:
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _key(function: FunctionType, alive: list[Any], outer: tuple[FunctionType, ...]) -> tuple[Any, ...]:
    """What tells a function from others. `alive` gets the objects in it that are known by their address."""
    outer = (*outer, function)
    alive.append(function.__code__)
    inside = [_content(cell) for cell in function.__closure__ or ()]
    surroundings = function.__globals__
    outside = [surroundings[name] for name in _names(function.__code__) if name in surroundings]
    defaults = *(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())
    return (id(function.__code__), *(_value(value, alive, outer) for value in (*defaults, *inside, *outside)))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that is set later
        return None


@lru_cache(maxsize=MOST_FUNCTIONS)
def _names(code: CodeType) -> tuple[str, ...]:
    """The names that a function, or one inside it, may read of its module."""
    inner = [name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names(constant)]
    return (*code.co_names, *inner)


def _value(value: Any, alive: list[Any], outer: tuple[FunctionType, ...]) -> Any:
    if isinstance(value, _PLAIN):
        return type(value), repr(value)
    if isinstance(value, tuple | list):
        return type(value), *(_value(item, alive, outer) for item in value)
    if type(value) is FunctionType and value not in outer and not _is_ours(value):
        return _key(value, alive, outer)
    alive.append(value)
    return id(value)


def check_function(function: Callable[..., Any] | None, operands: Sequence[Any]) -> None:
    """Raises LaunchError for an epilogue that is no function of an element and as many operands."""
    if operands and function is None:
        raise LaunchError(
            "operands are given, and no epilogue that takes them", help="pass the function, such as epilogue=add_relu"
        )
    if function is None:
        return
    if not callable(function):
        raise LaunchError(
            f"`epilogue` is {function!r}, not a function", help="pass a function of one element, such as relu"
        )
    try:
        inspect.signature(function).bind(None, *operands)
    except TypeError as reason:
        beside = f", and one of each of {len(operands)} operands" if len(operands) > 1 else ", and one of its operand"
        takes = f"it is called with an element of the product{beside if operands else ' alone'}"
        raise LaunchError(f"`epilogue` is {_name(function)}: {reason}", help=takes) from None
    except ValueError:  # a function without a signature, written in C
        return


def _name(function: Any) -> str:
    return f"`{getattr(function, '__name__', type(function).__name__)}`"


def sequence_of(operands: Any) -> Sequence[Any]:
    """The operands of an epilogue. Raises LaunchError for one that stands alone."""
    if isinstance(operands, tuple | list):
        return operands
    one = type(operands).__name__
    written = f"{one}(…)" if isinstance(operands, Vector) else "matrix"
    raise LaunchError(
        f"`operands` is of type {one}; it takes a tuple, with one for each operand of the epilogue",
        help=f"write operands=({written},)",
    )


def factor(name: str, value: Any) -> Any:
    """alpha or beta as a Python number, an int where it is whole: int32 matrices take no other.

    Raises LaunchError for what is no number.
    """
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < 2**31 else value
    if isinstance(value, np.generic):
        return factor(name, value.item())
    if isinstance(value, int):
        return value
    array = _array(value)
    if array is not None:
        raise LaunchError(
            f"`{name}` is {array}, not a number",
            help=f"pass its value, float({name}); a factor for each row or column is an operand of the epilogue",
        )
    if isinstance(value, complex | str) or not hasattr(value, "__float__"):
        raise LaunchError(f"`{name}` is {value!r}, not a number", help="pass an int or a float")
    return factor(name, float(value))


def _array(value: Any) -> arrays.Array | None:
    try:
        return arrays.describe(value)
    except BufferError:
        return None


def check_factor(name: str, value: Any, scalar: Type) -> None:
    """Raises LaunchError for a number that is none of the type in which the output is computed."""
    if scalar is s32:
        if not isinstance(value, int):
            raise LaunchError(
                f"`{name}` is {value!r}; an int32 output is scaled by integers",
                help="write to a float32 out, which takes any factor",
            )
        if not -(2**31) <= value < 2**31:
            raise LaunchError(f"`{name}` is {value}, which is no int32", help="write to a float32 out")
    elif scalar is f32 and math.isfinite(value) and not _fits(value):
        raise LaunchError(
            f"`{name}` is {value!r}; the output is computed in float32, which ends at 3.4e38",
            help="scale the matrices before, or multiply float64 ones",
        )


def _fits(value: float) -> bool:
    try:
        struct.pack("=f", value)
    except (OverflowError, struct.error):
        return False
    return True
