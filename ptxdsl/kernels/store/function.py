"""The arguments of an epilogue other than arrays: a function, which may be created anew for each call, and factors."""

from __future__ import annotations

import builtins
import inspect
import math
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast

import numpy as np

import ptxdsl as pd
from ptxdsl import arrays, ptr
from ptxdsl.errors import LaunchError, TraceError
from ptxdsl.kernels.epilogue import Epilogue, VectorOperand
from ptxdsl.kernels.store.traced import Known, traced
from ptxdsl.trace.captured import captures, reads
from ptxdsl.trace.contents import Key, is_steady
from ptxdsl.types import Type, f32, f64, s32

UNSCALED = 1, 0  # alpha and beta
MOST_FUNCTIONS = 256
MOST_DIGITS = 40  # of a number in a message
_SCALARS = f32, f64, s32  # types in which epilogues compute
_UNCHANGING = frozenset((int, float, bool, str, bytes, complex, type(None)))
_BUILTINS = vars(builtins)
_known: OrderedDict[Key, tuple[Known, Sequence[object]]] = OrderedDict()


def canonical(function: Any, count: int = 0) -> Any:
    """Return one function for all that have the same code and read the same values, so that one kernel serves them.

    A lambda in a loop is a new function each time, and an old function may read a variable that has changed. A function
    that reads an object whose contents cannot be compared is traced each time with `count` operands, and identified by
    its instructions. The last MOST_FUNCTIONS are remembered.
    """
    if function is None:
        return None
    _check_callable(function)
    if is_steady(function):
        return function
    known = _met(function)
    if known is not None:
        return known
    try:
        read = captures([function])
    except (TraceError, RecursionError):
        return _remembered(function, _instructions(function, count + 1), ())
    known = _remembered(function, read.key, read.alive)
    _meet(function, known)
    return known


class _Met(NamedTuple):
    """A function whose variables do not change in place. Other functions of the same code that read the same objects
    match it without a key."""

    code: CodeType
    variables: dict[str, object]
    cells: list[object]
    known: Known

    def is_of(self, function: FunctionType) -> bool:
        """Return whether a function matches. Raises ValueError if one of its variables is not set yet."""
        return (
            self.code is function.__code__
            and _has_nothing_attached(function)
            and all(_variable(function, name) is value for name, value in self.variables.items())
            and all(
                cell.cell_contents is value for cell, value in zip(function.__closure__ or (), self.cells, strict=True)
            )
        )


_by_code: dict[int, _Met] = {}


def _met(function: Any) -> Known | None:
    """Return the canonical function of one that matches an earlier function."""
    met = _by_code.get(id(function.__code__)) if type(function) is FunctionType else None
    try:
        if met is None or not met.is_of(function):
            return None
    except ValueError:
        return None
    met.known.__wrapped__ = function
    return met.known


def _meet(function: Any, known: Known) -> None:
    """Remember the canonical function of a function by its code, if that identifies it."""
    if type(function) is not FunctionType or not _has_nothing_attached(function):
        return
    variables = {
        read.name: _variable(function, read.name) for read in reads(function.__code__) if read.kind == "global"
    }
    try:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # a variable that is not set yet
        return
    if all(type(value) in _UNCHANGING or is_steady(value) for value in (*variables.values(), *cells)):
        if len(_by_code) >= MOST_FUNCTIONS:
            _by_code.clear()
        _by_code[id(function.__code__)] = _Met(function.__code__, variables, cells, known)


def _has_nothing_attached(function: FunctionType) -> bool:
    return function.__defaults__ is None and function.__kwdefaults__ is None and not function.__dict__


def _variable(function: FunctionType, name: str) -> object:
    """Return the current value of a global or built-in name in a function."""
    scope = function.__globals__
    return scope[name] if name in scope else _BUILTINS.get(name)


def epilogue_of(config: Any, epilogue: Any) -> Any:
    """Return the epilogue of a call, or that of its configuration."""
    return getattr(config, "epilogue", None) if epilogue is None else epilogue


def _remembered(function: Epilogue, key: Key, alive: Sequence[object]) -> Known:
    if not key:
        return Known(function)
    known, _ = _known.setdefault(key, (Known(function), alive))
    known.__wrapped__ = function  # variables around an earlier one may have changed
    _known.move_to_end(key)
    if len(_known) > MOST_FUNCTIONS:
        _known.popitem(last=False)
    return known


def _instructions(function: Epilogue, count: int) -> Key:
    """Return the instructions of a function of `count` values in each type; () if it cannot be traced, which the kernel
    reports."""
    texts = [_text(function, (scalar,) * count) for scalar in _SCALARS]
    return (count, *texts) if any(texts) else ()


def _text(function: Epilogue, types: tuple[Type, ...]) -> str:
    try:
        return str(pd.kernel(_applied).ptx(function=Known(function), types=types))
    except Exception:  # whatever the caller's function raises
        return ""


def _elements(types: tuple[Type, ...]) -> Callable[..., pd.Parameters]:
    """Return a parameter group with one element of each type."""
    return pd.Parameters.of("Elements", out=ptr[types[0]], **{f"of_{n}": type for n, type in enumerate(types)})


def _applied(p: _elements(types), *, function: Epilogue, types: tuple[Type, ...]) -> None:
    cast(Any, p).out[0] = traced(function, *(getattr(p, f"of_{n}") for n in range(len(types))))


def check_function(function: Callable[..., Any] | None, operands: Sequence[Any]) -> None:
    """Raise LaunchError for an epilogue that is not a function of an element and one value of each operand."""
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
    original = function.__wrapped__ if type(function) is Known else function
    return f"`{getattr(original, '__name__', type(original).__name__)}`"


def sequence_of(operands: Any) -> Sequence[Any]:
    """Return the operands of an epilogue. Raises LaunchError for a single operand."""
    if isinstance(operands, tuple | list):
        return operands
    one = type(operands).__name__
    written = f"{one}(…)" if isinstance(operands, VectorOperand) else "matrix"
    raise LaunchError(
        f"`operands` is of type {one}; it takes a tuple, with one for each operand of the epilogue",
        help=f"write operands=({written},)",
    )


def array_of(operand: Any) -> Any:
    """Return the array of an operand."""
    return operand.array if isinstance(operand, VectorOperand) else operand


def factors_of(alpha: Any, beta: Any) -> tuple[Any, Any]:
    """Return alpha and beta as `factor` does, without a check for the defaults."""
    if type(alpha) is type(beta) is float and alpha == 1.0 and beta == 0.0:
        return UNSCALED
    return factor("alpha", alpha), factor("beta", beta)


def factor(name: str, value: Any) -> Any:
    """Return alpha or beta as a Python number: an int if it is whole, which int32 matrices need. Raises LaunchError for
    other types."""
    if type(value) is float:
        is_whole = value.is_integer() and abs(value) < 2**31 and (value or math.copysign(1, value) > 0)  # -0.0 stays
        return int(value) if is_whole else value
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
    if isinstance(value, complex | str | type) or not hasattr(value, "__float__"):
        raise LaunchError(f"`{name}` is {value!r}, not a number", help="pass an int or a float")
    return factor(name, float(value))


def _array(value: Any) -> arrays.Array | None:
    try:
        return arrays.describe(value)
    except BufferError:
        return None


def check_factor(name: str, value: Any, scalar: Type) -> None:
    """Raise LaunchError for a number that does not fit the type in which the output is computed."""
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
    """Return the text of a number, or the number of its digits if there are many."""
    digits = math.log10(abs(value)) if isinstance(value, int) and value else 0
    return repr(value) if digits < MOST_DIGITS else f"an int of {int(digits) + 1} digits"
