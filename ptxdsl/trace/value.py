"""Traced values, variables and special registers; Python constructs that cannot be traced are refused here."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from ptxdsl import ir
from ptxdsl.errors import Location, Site, TraceError, caller, is_repeated_here
from ptxdsl.isa.special import SPECIAL_REGISTERS
from ptxdsl.trace import operators
from ptxdsl.trace.builder import Builder, current, refuse
from ptxdsl.trace.foreign import BOTH_SIDES, Foreign, NoNumber, host_function
from ptxdsl.trace.instruction import Scalar, ScalarLike, conversion, register_type, shown
from ptxdsl.trace.operators import COMPARISONS, binary, compare, shift
from ptxdsl.trace.source import known_integer
from ptxdsl.types import Type, pred, u32


class Value(
    Foreign,
    Scalar,
    refuses={
        "passed to len()": "vectors are Python tuples of values",
        "looked up in a set or dictionary": "use keys that are known while tracing",
    },
):
    """A value computed once. Operators return new values; only a `pd.var` can be written again."""

    __slots__ = ()

    @property
    def _noun(self) -> str:  # type: ignore[override]
        return f"one {self.type}"

    def to(self, type: Type) -> Scalar:
        """Return this value converted: integers are truncated or extended, floats become integers toward zero.

        All other conversions round to nearest even. Raises TraceError if no conversion exists.
        """
        return operators.cast(self, type)

    def bitcast(self, type: Type) -> Scalar:
        """Return the same bits as another type of the same width."""
        return operators.bitcast(self, type)

    def select(self, a: ScalarLike, b: ScalarLike) -> Scalar:
        """Return `a` where this predicate holds, else `b`; both are computed."""
        return operators.select(self, a, b)

    @property
    def value(self) -> Scalar:
        """The current value; for a variable a copy, which later writes do not change."""
        return operators.kept(self, None)

    @value.setter
    def value(self, new: object) -> NoReturn:
        variable = f"write `{self.name}.set(…)`" if self.writable else f"make it a variable: `pd.var({self.type}, …)`"
        refuse(f"`.value` of `{self.name}` is a copy of what it holds now, and cannot be written", variable)

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"

    def __divmod__(self, other: ScalarLike) -> tuple[Scalar, Scalar]:
        return self // other, self % other

    def __invert__(self) -> Scalar:
        return operators.invert(self)

    def __neg__(self) -> Scalar:
        return operators.negate(self)

    def __pos__(self) -> Scalar:
        return operators.kept(self, None)

    def __abs__(self) -> Scalar:
        return operators.absolute(self)

    def __bool__(self) -> bool:
        refuse(
            f"Python tests `{self.name}`, which is not known while tracing",
            "use pd.if_, pd.while_, pd.select (for `a if p else b`), pd.assert_, pd.min or pd.max; write `and`, `or`, "
            "`not` as `&`, `|`, `~`, and `a < b < c` as `(a < b) & (b < c)`",
        )

    def __iter__(self) -> NoReturn:
        help = "bind it to one name, `a = …`; loops count integers, `for i in pd.range(n):`; "
        self._refuse_use("looped over or unpacked", f"{help}`pair=True` returns a second destination")

    def __getitem__(self, index: object) -> NoReturn:
        help = "index the pointer or the array that holds the values, with one index or as a pd.view; "
        self._refuse_use("indexed", f"{help}`pd.pointer(v, f32)` makes a pointer of an address")

    def __setitem__(self, index: object, value: object) -> NoReturn:
        self.__getitem__(index)

    __delitem__ = __getitem__

    def __index__(self) -> int:
        self._no_number(
            f"`{self.name}` is needed as a Python integer, but has no value while tracing",
            known_integer(current(self.name).site().location),
        )

    def __int__(self) -> int:
        self._no_number(
            f"int() of `{self.name}`, which has no value while tracing", f"convert it by `{self.code}.to(s32)`"
        )

    def __float__(self) -> float:
        function, help = host_function(current(self.name).site().location)
        self._no_number(
            f"{f'`{function}`' if function else 'float()'} of `{self.name}`, which has no value while tracing",
            help or f"convert it by `{self.code}.to(f32)`; math functions are instructions, such as pd.ptx.sqrt.rn.f32",
        )

    def _no_number(self, message: str, help: str) -> NoReturn:
        builder = current(self.name)
        builder.refused = TraceError(message, at=builder.site().location, help=help)
        raise builder.refused

    def __pow__(self, other: object) -> NoReturn:
        self._refuse_operator("**", "multiply: `x * x`; a power of 2 is pd.ptx.ex2.approx.f32")

    def __matmul__(self, other: object) -> NoReturn:
        self._refuse_operator("@", "matrices are multiplied by pd.ptx.mma.sync, on fragments")

    __rpow__, __rmatmul__ = __pow__, __matmul__

    if TYPE_CHECKING:

        def _in_place(self, other: ScalarLike) -> Self: ...

        __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = _in_place
        __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _in_place

    def _updated(self, symbol: str, other: ScalarLike) -> Self:
        operators.refuse_update(symbol, self, self._spelled)


def _add_operators(name: str, symbol: str, apply: Callable[..., Scalar], forms: str) -> None:
    """Define an operator of values: with the value on the left ("l"), on the right ("r") and in place ("i")."""

    def left(self: Value, other: object) -> Scalar:
        return apply(symbol, self, other)

    def right(self: Value, other: object) -> Scalar:
        return apply(symbol, other, self)

    def in_place(self: Value, other: ScalarLike) -> Value:
        return self._updated(f"{symbol}=", other)

    methods = {"l": (f"__{name}__", left), "r": (f"__r{name}__", right), "i": (f"__i{name}__", in_place)}
    for form in forms:
        setattr(Value, *methods[form])


for _name, _symbol in BOTH_SIDES.items():
    if _symbol not in ("@", "**"):
        _add_operators(_name, _symbol, shift if _symbol in ("<<", ">>") else binary, "lri")
for _symbol, _name in COMPARISONS.items():
    _add_operators(_name, _symbol, compare, "l")


class Var(Value):
    """A register that can be written again. Reading it yields its current contents."""

    __slots__ = ("again", "repeated", "written")
    writable = True

    def __init__(self, operand: ir.Register, type: Type, builder: Builder) -> None:
        super().__init__(operand, type, builder)
        self.written = False
        self.again = False  # written more than once
        self.repeated = False  # occurs at several places of one list

    def read(self) -> ir.Register | ir.Not | ir.Immediate:
        register = super().read()
        if not self.written:
            refuse(
                f"`{self.name}` is read, but nothing was written to it before",
                f"give it a first value: `pd.var({self.type}, 0)`",
            )
        return register

    def target(self) -> ir.Register:
        """Return the register for writing."""
        return super().read()  # type: ignore[return-value]

    def set(self, value: ScalarLike) -> None:
        """Write `value`: a value of this variable's type, or a number that fits it."""
        if not operators.is_operand(value):
            refuse(f"`{self.name}.set` takes a value or a number; found {shown(value)}")
        if isinstance(value, Scalar) and value.type is not self.type:
            message = f"the variable `{self.name}` is {self.type}; it cannot be set to {shown(value)}"
            refuse(message, conversion(value, self.type))
        operators.common_type("set", self, value)
        operators.kept(value, self) if isinstance(value, Scalar) else operators.settle(value, self.type, self)

    def __copy__(self) -> NoReturn:
        refuse(
            f"Python cannot copy the variable `{self.name}`: its contents are in a register of the kernel",
            f"`{self.name}.value` is what it holds now; `pd.var({self.type}, {self.name})` is another variable, which "
            "begins with it",
            at=caller(),
        )

    def __deepcopy__(self, memory: object) -> NoReturn:
        self.__copy__()

    def _updated(self, symbol: str, other: ScalarLike) -> Self:
        how = shift if symbol in ("<<=", ">>=") else binary
        if how(symbol[:-1], self, other, self) is NotImplemented:
            refuse(f"`{symbol}` on `{self.name}`, which is {self.type}, with a pointer", "take its address: `p.value`")
        return self


class Special(Value):
    """A special register such as %tid.x, read once before the kernel's first line."""

    __slots__ = ("_compute", "_label")

    def __init__(self, label: str, type: Type, compute: Callable[[], Scalar]) -> None:
        self._label, self.type, self._compute = label, type, compute
        self.site = Site(Location("<special register>", 0), (label,))

    @property
    def name(self) -> str:
        return self._label

    def read(self) -> ir.Register | ir.Not | ir.Immediate:
        label, builder = self._label, current(f"pd.{self._label}")
        register: ir.Register = builder.once_at_start(label, label.replace(".", "_"), lambda: self._compute().operand)
        return register

    @property
    def number(self) -> None:
        return None


def make_value(registers: Any, type: Type) -> Any:
    """Wrap registers as values; a tuple for a vector."""
    builder = current("a value")
    if isinstance(registers, tuple):
        return tuple(Value(register, type, builder) for register in registers)
    return Value(registers, type, builder)


def var(type: Type, init: ScalarLike | None = None, *, name: str | None = None) -> Var:
    """Create a scalar variable, see `ptxdsl.trace.var`."""
    builder = current("pd.var")
    if not isinstance(type, Type):
        refuse(f"pd.var takes a type first; found {type!r}", "for example `pd.var(u32, 0)`")
    if type.bits < 16 and type is not pred:
        refuse(f"pd.var({type}): a register has 16 bits or more", "use u32, and convert where you store it")
    site = builder.site()
    names = (name,) if name else site.names
    register = builder.register(register_type(type).register, names[0] if len(names) == 1 else "")
    variable = Var(register, type, builder)
    variable.site = Site(site.location, names)
    if init is not None:
        variable.set(init)
    variable.repeated = is_repeated_here()
    return variable


def special(register: str) -> Scalar:
    """Read a special register at this point, such as `pd.special("clock64")`; the PTX prefix `%` is optional.

    Raises TraceError for an unknown register.

        start = pd.special("clock64")
    """
    name = "%" + str(register).removeprefix("%")
    special = SPECIAL_REGISTERS.get(name)
    if special is None:
        near = difflib.get_close_matches(name, SPECIAL_REGISTERS, 3)
        refuse(
            f"ptxdsl does not know the special register `{name}`",
            f"did you mean {' or '.join(near)}?" if near else "such as %clock64, %smid or %lanemask_lt",
        )
    return operators.operate(operators.move(special.type), current("pd.special").value(special, special.type))


def _register(label: str, register: str) -> Special:
    return Special(label, SPECIAL_REGISTERS[register].type, lambda: special(register))


class Axes(NoNumber, refuses=dict.fromkeys(("indexed", "looped over or unpacked", "compared"))):
    """The three components of a special register: `pd.tid.x`, `pd.tid.y`, `pd.tid.z`."""

    _noun = "three values with names"

    def __init__(self, label: str) -> None:
        self.name = f"pd.{label}"
        self._instead = f"write {self.name}.x, {self.name}.y and {self.name}.z"
        self.x, self.y, self.z = (_register(f"{label}.{axis}", f"%{label}.{axis}") for axis in "xyz")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{self.name}"


tid, ntid, ctaid, nctaid = Axes("tid"), Axes("ntid"), Axes("ctaid"), Axes("nctaid")
laneid = _register("laneid", "%laneid")
warpid = Special("warpid", u32, lambda: tid.x // 32)
"""The number of the warp in a one-dimensional block: tid.x // 32. (%warpid may change while a kernel runs.)"""
