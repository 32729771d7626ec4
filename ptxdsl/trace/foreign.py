"""Names and functions of other libraries applied to traced values: the equivalents of numpy and CUDA names."""

from __future__ import annotations

import difflib
import math
import operator
import re
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from ptxdsl.errors import Location, TraceError, here, raised_at
from ptxdsl.isa.opcode import Op
from ptxdsl.trace.builder import refuse
from ptxdsl.types import meant_annotation

_EXP2 = "2**x is `pd.ptx.ex2.approx.f32(x)`"
_LOG2 = "log2(x) is `pd.ptx.lg2.approx.f32(x)`"

# The help line for each name of another library.
_INSTEAD = {
    "exp": f"{_EXP2}, and e**x is 2**(x * 1.4426950408889634)",
    "exp2": _EXP2,
    "log": f"{_LOG2}, and ln(x) is log2(x) * 0.6931471805599453",
    "log2": _LOG2,
    "sqrt": "write `pd.ptx.sqrt.rn.f32(x)`",
    "rsqrt": "write `pd.ptx.rsqrt.approx.f32(x)`",
    "reciprocal": "write `1.0 / x`, or `pd.ptx.rcp.rn.f32(x)`",
    "sin": "write `pd.ptx.sin.approx.f32(x)`",
    "cos": "write `pd.ptx.cos.approx.f32(x)`",
    "tanh": "write `pd.ptx.tanh.approx.f32(x)`",
    "floor": "write `pd.ptx.cvt.rmi.f32.f32(x)`",
    "ceil": "write `pd.ptx.cvt.rpi.f32.f32(x)`",
    "rint": "write `pd.ptx.cvt.rni.f32.f32(x)`",
    "trunc": "write `pd.ptx.cvt.rzi.f32.f32(x)`",
    "isnan": "write `x != x`",
    "square": "write `x * x`",
    "pow": "multiply: `x * x`; 2**x is `pd.ptx.ex2.approx.f32(x)`",
    "negative": "write `-x`",
    "invert": "write `~x`",
    **dict.fromkeys(("abs", "absolute", "fabs"), "write `abs(x)`"),
    **dict.fromkeys(("maximum", "fmax"), "write `pd.max(a, b)`"),
    **dict.fromkeys(("minimum", "fmin"), "write `pd.min(a, b)`"),
    "where": "write `pd.select(p, a, b)`",
    **dict.fromkeys(("shape", "size"), "sizes are parameters of the kernel: `n: u32`"),
    "dtype": "its type is `.type`",
    "astype": "convert it by `.to(f32)`",
    **dict.fromkeys(("syncthreads", "barrier", "sync"), "write `pd.ptx.bar.sync(0)`"),
    "syncwarp": "write `pd.ptx.bar.warp.sync(0xFFFFFFFF)`",
    **dict.fromkeys(("threadIdx", "thread_idx"), "write `pd.tid`"),
    **dict.fromkeys(("blockIdx", "block_idx", "program_id"), "write `pd.ctaid`"),
    **dict.fromkeys(("blockDim", "block_dim"), "write `pd.ntid`"),
    **dict.fromkeys(("gridDim", "grid_dim", "num_programs"), "write `pd.nctaid`"),
    "load": "write `x[i]`, in `with pd.if_(mask):` where some threads read nothing",
    "store": "write `x[i] = v`, in `with pd.if_(mask):` where some threads write nothing",
    "arange": "a value belongs to a thread: `pd.tid.x` numbers those of a block",
    **dict.fromkeys(("zeros", "full"), "a value belongs to a thread: `pd.var(f32, 0)`, or a list of these"),
    "dot": "a tensor core multiplies for a warp: `pd.ptx.mma.…`; ptxdsl.kernels.gemm multiplies matrices",
    "cdiv": "write `(a + b - 1) // b`",
    "constexpr": "constants of a kernel are keyword-only: `def k(x: ptr[f32], *, BLOCK: int)`",
    "jit": "write `@pd.kernel`",
    **dict.fromkeys(
        ("atomic_add", "atomicAdd"), "write `pd.ptx.red.global_.add.u32(p, v)`, or `atom` for the old value"
    ),
    **dict.fromkeys(
        ("atomic_max", "atomicMax"), "write `pd.ptx.red.global_.max.u32(p, v)`, or `atom` for the old value"
    ),
    **dict.fromkeys(("atomic_cas", "atomicCAS"), "write `pd.ptx.atom.global_.cas.b32(p, old, new)`"),
    **dict.fromkeys(("shfl_down", "shfl_down_sync"), "write `pd.ptx.shfl.sync.down.b32(v, n, 31, 0xFFFFFFFF)`"),
    **dict.fromkeys(("shfl_xor", "shfl_xor_sync"), "write `pd.ptx.shfl.sync.bfly.b32(v, n, 31, 0xFFFFFFFF)`"),
    **dict.fromkeys(("SharedMemory", "smem", "alloc_smem", "shared_memory"), "write `pd.shared(f32, (64, 64))`"),
    **dict.fromkeys(("make_tensor", "Tensor"), "write `pd.view(pointer, layout)`; a parameter is `x: ptr[f32]`"),
    **dict.fromkeys(("make_layout", "Layout"), "write `pd.layout.Layout(shape, stride)`"),
}


_MATH_CALL = re.compile(r"(?:math\.)?(\w+)\(")


def host_function(location: Location) -> tuple[str, str]:
    """Return the function of Python's math module that is called at a location, and its fix; empty if none is."""
    called = _MATH_CALL.match(location.text[location.columns[0] :])
    name = called[1] if called else ""
    if not callable(getattr(math, name, None)):
        return "", ""
    return f"math.{name}", _INSTEAD.get(name, "write it with operators and instructions: math computes on the host")


class UnknownName(TraceError, AttributeError):
    """An attribute that a module or value of ptxdsl does not have."""


class UndefinedName(TraceError, NameError):
    """An undefined name in the user's file that has an equivalent in ptxdsl."""


def undefined_name(error: NameError) -> Exception:
    """Return a helpful error for an undefined name such as `threadIdx` or `f32`, or the error itself."""
    name, public = error.name or "", getattr(sys.modules.get("ptxdsl"), "__all__", ())
    help = f"write `pd.{name}`, or `from ptxdsl import {name}`" if name in public else _INSTEAD.get(name.strip("_"))
    return UndefinedName(f"`{name}` is not defined", at=raised_at(error), help=help) if help else error


def called_value(error: TypeError) -> Exception:
    """Return a helpful error for a value called as a function, such as `pd.warpid()`, or the error itself."""
    if not str(error).endswith("' object is not callable") or str(error).split("'")[1] not in _VALUES:
        return error
    help = "leave out its parentheses: `pd.warpid`, `pd.tid.x`"
    return TraceError("a value is called like a function", at=raised_at(error), help=help)


_VALUES = ("Special", "Axes", "Value", "Var")


def unknown_name(name: str, known: Iterable[str]) -> UnknownName:
    """Return the error for an unknown `pd.name`, with its equivalent or similar names."""
    type = meant_annotation(name)
    help = _INSTEAD.get(name) or (f"write `pd.{type}`" if type else _near(name, known))
    return UnknownName(f"ptxdsl has no `{name}`", at=here().location, help=help)


def _near(name: str, known: Iterable[str]) -> str | None:
    near = [f"`pd.ptx.{name}`"] if name in Op.table else []
    names = list(known)
    alike = [n for n in names if sorted(n) == sorted(name)]  # transposed letters, as in `fam`
    alike = alike or difflib.get_close_matches(name, names, 3, cutoff=0.7)
    near += [f"`pd.{n}`" for n in alike]
    if near:
        return f"did you mean {' or '.join(near)}?"
    others = difflib.get_close_matches(name, _INSTEAD, 1, cutoff=0.8)
    said = [f"if that is `{other}`: {_INSTEAD[other]}" for other in others]
    return said[0] if said else "`dir(ptxdsl)` lists its names; instructions are in pd.ptx"


# The operators behind numpy's functions of two operands, which numpy calls for `np.float32(2) * v`.
_NUMPY_OPERATORS: dict[str, Any] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "matmul": operator.matmul,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "left_shift": operator.lshift, "right_shift": operator.rshift, "equal": operator.eq, "not_equal": operator.ne,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
_USES = {
    "looped over or unpacked": ("iter",), "passed to len()": ("len",), "tested for truth while tracing": ("bool",),
    "searched by `in`": ("contains",), "indexed": ("getitem", "setitem", "delitem"), "compared": ("eq",),
    "looked up in a set or dictionary": ("hash",),
}  # fmt: skip


class Foreign:
    """What Python, numpy and format strings cannot do with a traced object, which is refused.

    `_noun` says what the object is. The class argument `refuses` gives a help line for each use that is refused.
    """

    __slots__ = ()
    name: Any
    _noun = ""
    _instead: str | None = None  # the help line where no other applies

    def __init_subclass__(cls, refuses: Mapping[str, str | None] = MappingProxyType({}), **options: Any) -> None:
        super().__init_subclass__(**options)
        for use, help in refuses.items():
            for method in _USES[use]:
                setattr(cls, f"__{method}__", lambda value, *_, use=use, help=help: value._refuse_use(use, help))

    def _refuse_use(self, use: str, help: str | None = None) -> NoReturn:
        refuse(f"`{self.name}` is {self._noun}; it cannot be {use}", help or self._instead)

    def _refuse_operator(self, symbol: str, help: str | None = None) -> NoReturn:
        refuse(f"`{symbol}` is not supported for `{self.name}`, which is {self._noun}", help or self._instead)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or hasattr(type(self), name) or name == "name":
            raise AttributeError(name)
        near = difflib.get_close_matches(name, [known for known in dir(type(self)) if not known.startswith("_")], 1)
        help = _INSTEAD.get(name) or (f"did you mean `{near[0]}`?" if near else self._instead)
        refuse(f"`{self.name}` has no `{name}`", help, UnknownName)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply an operator to a numpy scalar and this value; refuse all other functions of numpy."""
        operation = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        scalars = [
            each.item() if isinstance(each, np.generic | np.ndarray) and not each.ndim else each for each in inputs
        ]
        if operation in _NUMPY_OPERATORS and not any(isinstance(each, np.ndarray) for each in scalars):
            return _NUMPY_OPERATORS[operation](*scalars)
        help = _INSTEAD.get(ufunc.__name__, "write it with operators and instructions: numpy computes on the host")
        self._refuse_host(f"np.{operation}", help)

    def _refuse_host(self, function: str, help: str) -> NoReturn:
        refuse(f"`{function}` of `{self.name}`, which has no value while tracing", help)

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        refuse(
            f"`{self.name}` is formatted as `{spec}`, but has no value while tracing",
            f"`{{{self.name}}}` shows what is known of it; pd.printf prints its value in the kernel",
        )


for _name, _alike in {"round": "rint", "math.floor": "floor", "math.ceil": "ceil", "math.trunc": "trunc"}.items():
    _method = f"__{_name.rpartition('.')[2]}__"
    setattr(Foreign, _method, lambda v, *_, name=_name, alike=_alike: v._refuse_host(name, _INSTEAD[alike]))


class NoNumber(Foreign):
    """Base class of objects without the operators of numbers: those that a subclass does not define are refused."""

    __slots__ = ()


BOTH_SIDES = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "matmul": "@", "pow": "**",
    "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
_ONE_SIDE = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
for _name, _symbol in {
    **BOTH_SIDES,
    **{f"r{word}": symbol for word, symbol in BOTH_SIDES.items()},
    **_ONE_SIDE,
}.items():
    setattr(NoNumber, f"__{_name}__", lambda value, *_, symbol=_symbol: value._refuse_operator(symbol))
