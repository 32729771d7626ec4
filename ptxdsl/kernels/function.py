"""What a caller gives to an epilogue beside arrays: a function, which may be written anew at each call, and numbers."""

from __future__ import annotations

import builtins
import inspect
import math
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

import ptxdsl as pd
from ptxdsl import arrays, ptr
from ptxdsl.errors import LaunchError, bytecode
from ptxdsl.kernels.epilogue import Epilogue, Known, Vector, traced
from ptxdsl.types import Type, f32, f64, s32

MOST_FUNCTIONS = 256
MOST_DIGITS = 40  # that are written out
_PLAIN = (int, float, str, bool, type(None))  # of what a function reads: the same where type and text are
_OURS = "ptxdsl"
_OUR_VALUES = ("ptxdsl.types", "ptxdsl.trace", "ptxdsl.layout")  # modules of whose types values do not change
_STEADY = {_OURS, "builtins", "math", "cmath", "operator", "_operator", "numpy"}  # modules that are not written to
_UNSTEADY = {"globals", "locals", "vars", "eval", "exec", "open", "input", "__import__"}
_OF_NUMPY = (np.ufunc, type(np.where))
_SCALARS = f32, f64, s32  # in which epilogues compute
_Key = tuple[Any, ...]


_known: OrderedDict[_Key, tuple[Known, list[Any]]] = OrderedDict()


class _Unsteady(Exception):
    """A function reads what may change without a trace in its variables."""


def canonical(function: Any, count: int = 0) -> Any:
    """One function for all that have its code and read what it reads now: a kernel is made for each, once.

    A lambda in a loop is a new function each time, and one that is not new may read a variable that has changed. Of
    variables, those that are numbers, text, functions, or lists, tuples and dicts of these are compared. Where a
    function reads others, as the attribute of an object, it is traced each time, with `count` operands, and known by
    the instructions. The last ones that were asked for are remembered.
    """
    if function is None:
        return None
    _check_callable(function)
    if _is_steady(function):
        return function
    alive: list[Any] = []
    try:
        key = _value(function, alive, ())
    except (_Unsteady, RecursionError):
        key = _instructions(function, count + 1)
    return _remembered(function, key, alive)


def epilogue_of(config: Any, epilogue: Any) -> Any:
    """The function of a call: its own, else that of its configuration."""
    return getattr(config, "epilogue", None) if epilogue is None else epilogue


def _remembered(function: Epilogue, key: _Key, alive: list[Any]) -> Known:
    if not key:
        return Known(function)
    known, _ = _known.setdefault(key, (Known(function), alive))
    known.__wrapped__ = function  # variables around an earlier one may have changed
    _known.move_to_end(key)
    if len(_known) > MOST_FUNCTIONS:
        _known.popitem(last=False)
    return known


def _is_ours(function: FunctionType) -> bool:
    return _root(function.__globals__.get("__name__")) == _OURS and not function.__closure__


def _root(module: Any) -> str:
    return str(module).partition(".")[0]


def _key(function: FunctionType, alive: list[Any], outer: _Key) -> _Key:
    """What tells a function from others. `alive` gets the objects in it that are known by their address."""
    outer = (*outer, function)
    alive.append(function.__code__)
    scopes = vars(builtins), function.__globals__
    read = {name: scope[name] for name in _names(function.__code__) for scope in scopes if name in scope}
    around = [_content(cell) for cell in function.__closure__ or ()]
    beside = vars(function), function.__defaults__, function.__kwdefaults__, read
    return (id(function.__code__), *(_value(value, alive, outer) for value in (*around, *beside)))


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that is set later
        return None


@lru_cache(maxsize=MOST_FUNCTIONS)
def _names(code: CodeType) -> tuple[str, ...]:
    """The names that a function, or one inside it, reads of its module."""
    listing = bytecode(code)
    if any(i.opname == "IMPORT_NAME" for i in listing):
        return ("__import__",)
    own = [str(i.argval) for i in listing if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    inner = [name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names(constant)]
    return (*own, *inner)


def _value(value: Any, alive: list[Any], outer: _Key) -> _Key:
    """What tells a value from others. Raises _Unsteady for one that may change and stay the same object."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, repr(value)
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if kind in (tuple, list):
        return kind, *(_value(item, alive, outer) for item in value)
    if kind is dict:
        return kind, *(_value(item, alive, outer) for pair in value.items() for item in pair)
    if kind is partial:
        return kind, *(_value(item, alive, outer) for item in (value.func, value.args, value.keywords, vars(value)))
    if kind is FunctionType and not _is_ours(value):
        return (kind, outer.index(value)) if value in outer else _key(value, alive, outer)
    if not _is_steady(value):
        raise _Unsteady
    alive.append(value)
    return (id(value),)


def _is_steady(value: Any) -> bool:
    """Whether an object means the same as long as it is the same."""
    kind = type(value)
    if kind is FunctionType:
        return _is_ours(value)
    if kind is ModuleType:
        return _root(value.__name__) in _STEADY
    if isinstance(value, type):
        return _root(value.__module__) in _STEADY
    if kind is BuiltinFunctionType:
        owner = value.__self__
        return value.__name__ not in _UNSTEADY and (owner is None or (type(owner) is ModuleType and _is_steady(owner)))
    return kind.__module__.startswith(_OUR_VALUES) or kind in _OF_NUMPY


def _instructions(function: Epilogue, count: int) -> _Key:
    """What becomes of a function of so many values in each type; () where that is an error, which the kernel shows."""
    found = [_text(function, (scalar,) * count) for scalar in _SCALARS]
    return (count, *found) if any(found) else ()


def _text(function: Epilogue, types: tuple[Type, ...]) -> str:
    try:
        return str(pd.kernel(_applied).ptx(function=function, types=types))
    except Exception:  # whatever the caller's function raises
        return ""


def _applied(
    out: ptr[types[0]],
    *given: types,
    function: Epilogue,
    types: tuple[Type, ...],
) -> None:
    cast(Any, out)[0] = traced(function, *given)


def check_function(function: Callable[..., Any] | None, operands: Sequence[Any]) -> None:
    """Raises LaunchError for an epilogue that is no function of an element and as many operands."""
    if operands and function is None:
        raise LaunchError(
            "operands are given, and no epilogue that takes them", help="pass the function, such as epilogue=add_relu"
        )
    if function is None:
        return
    _check_callable(function)
    try:
        inspect.signature(function).bind(None, *operands)
    except TypeError as reason:
        beside = f", and one of each of {len(operands)} operands" if len(operands) > 1 else ", and one of its operand"
        takes = f"it is called with an element of the product{beside if operands else ' alone'}"
        raise LaunchError(f"`epilogue` is {_name(function)}: {reason}", help=takes) from None
    except ValueError:  # a function without a signature, written in C
        return


def _check_callable(function: Any) -> None:
    if not callable(function):
        raise LaunchError(
            f"`epilogue` is {function!r}, not a function", help="pass a function of one element, such as relu"
        )


def _name(function: Any) -> str:
    own = function.__wrapped__ if type(function) is Known else function
    return f"`{getattr(own, '__name__', type(own).__name__)}`"


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
    elif scalar is f32 and not _fits(value, "=f"):
        raise LaunchError(
            f"`{name}` is {_written(value)}; the output is computed in float32, which ends at 3.4e38",
            help="scale the matrices before, or multiply float64 ones",
        )
    elif not _fits(value, "=d"):
        raise LaunchError(
            f"`{name}` is {_written(value)}; the output is computed in float64, which ends at 1.8e308",
            help="scale the matrices before",
        )


def _fits(value: float, format: str) -> bool:
    try:
        struct.pack(format, value)
    except (OverflowError, struct.error):
        return False
    return True


def _written(value: float) -> str:
    """A number, or of a very long one how long it is."""
    digits = math.log10(abs(value)) if isinstance(value, int) and value else 0
    return repr(value) if digits < MOST_DIGITS else f"an int of {int(digits) + 1} digits"
