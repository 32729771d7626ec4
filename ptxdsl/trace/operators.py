"""Python's operators on traced values: the operand type selects the instruction.

Results equal those on Python numbers, within the width of the type: integers wrap, `//` and `%` round down, `>>` is
arithmetic for signed values, floats round to nearest and are never fused (`pd.fma` does that). Operations with neutral
constants emit nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from operator import add, and_, floordiv, mod, mul, or_, sub, xor
from typing import Any, NoReturn, TypeGuard

from ptxdsl import ir
from ptxdsl.errors import is_dropped_here
from ptxdsl.isa.operand import compatible
from ptxdsl.trace import literal
from ptxdsl.trace.aliases import check_two_ways
from ptxdsl.trace.builder import current, peek, refuse
from ptxdsl.trace.instruction import Scalar, ScalarLike, Source, article, emit, register_type, shown
from ptxdsl.trace.literal import conversions
from ptxdsl.types import TYPES, Type, bf16, lanes, pred

LOGIC = {"&": "and", "|": "or", "^": "xor"}
# Folded while tracing if both operands are known.
_KNOWN = {"+": add, "-": sub, "*": mul, "&": and_, "|": or_, "^": xor, "//": floordiv, "%": mod}
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def refuse_uncalled(spelled: str) -> None:
    """Refuse a bare `pd.ptx.…` or `pd.break_` statement without a call."""
    if peek() is not None and is_dropped_here():
        refuse(f"`{spelled}` is a statement, but it is not called: it emits nothing", f"write `{spelled}(…)`")


def refuse_update(symbol: str, value: Source, otherwise: str) -> NoReturn:
    """Refuse to change a computed value, or an element of an array, in place; it may be called `otherwise`."""
    (name,) = current(value.name).site().names[:1] or (otherwise,)
    refuse(
        f"`{symbol}` on `{name}`, which is not a variable",
        f"write `{name} = {name} {symbol[:-1]} …`, or keep it in a variable, `v = pd.var({value.type}, …)`; "
        "pd.ptx.red and pd.ptx.atom update an element that threads share",
    )


def operate(text: str, *sources: object, out: Scalar | None = None, type: Type | None = None) -> Scalar:
    """Emit an instruction and return its one result, written into `out` if given; `type` refines the result type."""
    if len(sources) == 2 and sources[0] is sources[1] and getattr(sources[0], "again", False):
        check_two_ways(sources[0])
    ((register, held),) = emit(text, sources, out=out, type=type)
    result: Scalar = register if out is not None else current(text).value(register, type or held)
    return result


def steps() -> AbstractContextManager[None]:
    """Suppress naming for intermediate results."""
    return current("a value").anonymous()


def constant(number: literal.PythonNumber, type: Type) -> Scalar:
    """Return a constant value; it occupies no register until an instruction needs one."""
    try:
        known: Scalar = current("a constant").value(literal.encode(literal.plain(number), type), type)
        return known
    except ValueError as why:
        refuse(f"no constant of type {type}: {why}")


def kept(value: ScalarLike, out: Scalar | None) -> Scalar:
    """Return the operand itself as the result, without an instruction unless a variable is involved."""
    assert isinstance(value, Scalar)
    if out is not None:
        return out if value is out else operate(move(out.type), value, out=out)
    return copy(value) if value.writable else value


def copy(value: Scalar) -> Scalar:
    return operate(move(value.type), value, type=value.type)


def move(type: Type) -> str:
    """Return the mov mnemonic for a register type."""
    held = register_type(type).register
    return f"mov.b{held.bits}" if held.kind == "x" or held.name == "f16" else f"mov.{held}"


def settle(number: literal.PythonNumber, type: Type, out: Scalar | None) -> Scalar:
    """Return a result that is known while tracing."""
    if out is None:
        return constant(number, type)
    encoded = literal.encode(literal.plain(number), type)  # mov takes f16 constants as bits
    return operate(move(type), number if encoded.type else encoded.value, out=out)


def is_floating(type: Type) -> bool:
    return lanes(type)[0].is_float


def wrapped(number: int, type: Type) -> int:
    """Wrap an integer to the width of a type."""
    low, _ = literal.limits(type)
    return (number - low) % (1 << type.bits) + low


def number_of(value: ScalarLike) -> int | float | None:
    """Return the number of a constant operand; None for a register."""
    if isinstance(value, Scalar):
        return value.number
    return literal.plain(value)


def is_operand(value: object) -> TypeGuard[ScalarLike]:
    return isinstance(value, Scalar) or (literal.is_number(value) and not isinstance(value, Source))


def common_type(symbol: str, left: ScalarLike, right: ScalarLike) -> Type:
    """Return the type of both operands; refuse mixed types, with the conversion as help."""
    types = [v.type for v in (left, right) if isinstance(v, Scalar)]
    if len(set(types)) > 1 and isinstance(left, Scalar) and isinstance(right, Scalar):
        _refuse_mix(symbol, left, right)
    if types[0] is pred and len(types) == 1:
        value = next(v for v in (left, right) if isinstance(v, Scalar))
        refuse(
            f"`{symbol}` of a number and `{value.name}`, which is a predicate",
            f"count predicates as integers: `{value.code}.to(u32)`; decide what is known while tracing by a Python "
            "`if`",
        )
    for side, other in ((left, right), (right, left)):
        if not isinstance(side, Scalar) and isinstance(other, Scalar):
            check_number(symbol, side, types[0], other)
    return types[0]


def _refuse_mix(symbol: str, left: Scalar, right: Scalar) -> NoReturn:
    message = f"`{symbol}` of two types: `{left.name}` is {left.type}, `{right.name}` is {right.type}"
    if "b" in (left.type.kind, right.type.kind):
        bits, other = (left, right) if left.type.kind == "b" else (right, left)
        refuse(message, f"interpret the bits: `{bits.code}.bitcast({other.type})`")
    if pred in (left.type, right.type):
        predicate, other = (left, right) if left.type is pred else (right, left)
        refuse(message, f"convert the predicate: `{predicate.code}.to({other.type})`")
    first, second = sorted((left, right), key=lambda value: (value.type.is_float, value.type.bits))  # the wider last
    refuse(message, f"convert one of them: `{first.code}.to({second.type})` or `{second.code}.to({first.type})`")


def check_number(symbol: str, number: literal.PythonNumber, type: Type, other: Source) -> None:
    """Refuse a Python number that `type`, the type of the other operand, cannot hold."""
    plain = literal.plain(number)
    try:
        literal.encode(abs(plain) if symbol in "+-" and type.kind == "u" else plain, type)
    except ValueError as why:
        wider = "f64" if type.is_float else "f32" if isinstance(plain, float) else "s64"
        help = f"write a float that {type} has" if type.is_float else f"{type} holds integers from {{}} to {{}}"
        help = help.format(*literal.limits(type))
        help += f"; or convert first: `{other.code}.to({wider})`" if isinstance(other, Scalar) else ""
        refuse(f"`{symbol}` with `{other.name}`: {why}", help)


def arithmetic(symbol: str, type: Type) -> None:
    """Refuse types without arithmetic."""
    if type is pred:
        refuse(f"`{symbol}` is not supported for predicates", "they have & | ^ ~; count them as integers: `p.to(u32)`")
    if type.kind == "b":
        refuse(
            f"`{symbol}` is not supported for {type}, which is untyped bits",
            f"interpret them: `.bitcast(u{type.bits})`",
        )
    if type.bits == 8:
        wider = f"{type.kind if type.is_integer else 'f'}32"
        refuse(
            f"`{symbol}` is not supported for {type}: PTX has no arithmetic on 8 bits", f"convert first: `.to({wider})`"
        )


def binary(symbol: str, left: object, right: object, out: Scalar | None = None) -> Scalar:
    """Apply a binary operator to two values of one type. Returns NotImplemented if the other operand is a pointer."""
    if not (is_operand(left) and is_operand(right)):
        return _foreign(symbol, left, right)
    type = common_type(symbol, left, right)
    if type.is_integer and symbol in _KNOWN and None not in (number_of(left), number_of(right)):
        if symbol in "//%":
            _divisor(symbol, right)
        return settle(wrapped(_KNOWN[symbol](number_of(left), number_of(right)), type), type, out)
    if symbol in "&|^":
        return _logic(symbol, type, left, right, out)
    arithmetic(symbol, type)
    return _ARITHMETIC[symbol](type, left, right, out)


def _foreign(symbol: str, left: object, right: object) -> Scalar:
    """Return NotImplemented for pointers, which refuse the operator themselves; refuse all other objects."""
    other = left if is_operand(right) else right
    if isinstance(other, Source):
        return NotImplemented  # type: ignore[no-any-return]
    known = right if other is left else left
    refuse(
        f"`{symbol}` of {shown(known)}, and {article(type(other).__name__)}",
        "traced values combine with each other and with Python numbers",
    )


def _logic(symbol: str, type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    if is_floating(type):
        refuse(f"`{symbol}` is not supported for {type}", f"work on its bits: `.bitcast(u{type.bits})`")
    if number_of(left) is not None:
        left, right = right, left
    number = number_of(right)
    if number is not None and type is not pred:
        unchanged, fixed = {"&": (-1, 0), "|": (0, -1), "^": (0, None)}[symbol]
        if wrapped(int(number), type) == wrapped(unchanged, type):
            return kept(left, out)
        if fixed is not None and wrapped(int(number), type) == wrapped(fixed, type):
            return settle(wrapped(fixed, type), type, out)
    form = "pred" if type is pred else f"b{type.bits}"
    return operate(f"{LOGIC[symbol]}.{form}", left, right, out=out, type=type)


def _add(type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    if number_of(left) is not None:
        left, right = right, left
    return _sum("add", "sub", type, left, right, out)


def _subtract(type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    return _sum("sub", "add", type, left, right, out)


def _sum(name: str, opposite: str, type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    """Add or subtract. Integers take no instruction for 0, and the opposite one for a negative constant if it fits."""
    number = None if is_floating(type) else number_of(right)
    if number == 0:
        return kept(left, out)
    if number is not None and number < 0 and -number <= literal.limits(type)[1]:
        name, right = opposite, -number
    return _rounded(name, type, left, right, out)


def _rounded(name: str, type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    """Emit add, sub or mul; floats round to nearest."""
    if not is_floating(type):
        return operate(f"{name}{'.lo' if name == 'mul' else ''}.{type}", left, right, out=out, type=type)
    if lanes(type)[0] is bf16 and current(name).sm < 90:
        # add, sub and mul of bf16 need sm_90; fma exists since sm_80 and also rounds once
        operands = {"add": (left, 1.0, right), "sub": (right, -1.0, left), "mul": (left, right, -0.0)}[name]
        return operate(f"fma.rn.{type}", *operands, out=out, type=type)
    return operate(f"{name}.rn.{type}", left, right, out=out, type=type)


def _multiply(type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    if number_of(left) is not None:
        left, right = right, left
    number = number_of(right)
    if number == 1 and isinstance(left, Scalar):
        return kept(left, out)
    if number == 0 and not is_floating(type):
        return settle(0, type, out)
    return _rounded("mul", type, left, right, out)


def _divide(type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    if not is_floating(type):
        refuse(
            f"`/` is not supported for {type}", "write `//`, which rounds down, or convert to a float first: `.to(f32)`"
        )
    if type.name not in ("f32", "f64"):
        refuse(f"`/` is not supported for {type}: PTX divides f32 and f64", "convert first: `.to(f32)`")
    return operate(f"div.rn.{type}", left, right, out=out)


def _integers_only(symbol: str, type: Type) -> None:
    if not type.is_integer:
        refuse(f"`{symbol}` is not supported for {type}", "floats have `/`; pd.ptx.cvt.rmi rounds down")


def power_of_two(number: object) -> int | None:
    """Return the exponent of a power of two; None for other values."""
    return number.bit_length() - 1 if isinstance(number, int) and number > 0 and number & (number - 1) == 0 else None


def _floor_divide(type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    _integers_only("//", type)
    divisor = _divisor("//", right)
    exponent = power_of_two(divisor)
    if exponent is not None and isinstance(left, Scalar):
        return shift(">>", left, exponent, out)
    if not type.is_signed:
        return operate(f"div.{type}", left, right, out=out)
    with steps():
        quotient, rest = operate(f"div.{type}", left, right), operate(f"rem.{type}", left, right)
        is_one_too_large = _wrong_side(type, rest, right)
    return _subtract(type, quotient, is_one_too_large.to(type), out)


def _modulo(type: Type, left: ScalarLike, right: ScalarLike, out: Scalar | None) -> Scalar:
    _integers_only("%", type)
    divisor = _divisor("%", right)
    exponent = power_of_two(divisor)
    if exponent is not None and isinstance(left, Scalar):
        return _logic("&", type, left, (1 << exponent) - 1, out)
    if not type.is_signed:
        return operate(f"rem.{type}", left, right, out=out)
    with steps():
        rest = operate(f"rem.{type}", left, right)
        added = _selected(type, _wrong_side(type, rest, right), right, 0)
    return _add(type, rest, added, out)


def _divisor(symbol: str, right: ScalarLike) -> int | float | None:
    number = number_of(right)
    if number == 0:
        refuse(f"`{symbol}` divides by zero", "the divisor is the constant 0 here")
    return number


def _wrong_side(type: Type, rest: Scalar, divisor: ScalarLike) -> Scalar:
    """Return a predicate: the remainder is nonzero and its sign differs from the divisor's."""
    number = number_of(divisor)
    if number is not None:
        return rest < 0 if number > 0 else rest > 0
    return (rest != 0) & ((rest ^ divisor) < 0)


_ARITHMETIC = {
    "+": _add, "-": _subtract, "*": _multiply, "/": _divide, "//": _floor_divide, "%": _modulo,
}  # fmt: skip


def shift(symbol: str, left: object, right: object, out: Scalar | None = None) -> Scalar:
    """Return left << right or left >> right: `left` determines the type; `right` is a number or a 32-bit integer."""
    if not (is_operand(left) and is_operand(right)):
        return _foreign(symbol, left, right)
    if not isinstance(left, Scalar):
        assert isinstance(right, Scalar)
        refuse(
            f"`{symbol}` of the Python number {left!r}, whose width is not known, by `{right.name}`",
            f"give it a type: `pd.cast({left!r}, u32)`",
        )
    type = left.type
    if type.kind not in "usb" or type.bits < 16:
        refuse(f"`{symbol}` is not supported for {type}", "integers and bits of 16 bits and more have it")
    number = _shift_amount(symbol, type, right)
    if number == 0:
        return kept(left, out)
    form = f"shl.b{type.bits}" if symbol == "<<" else f"shr.{type}"
    return operate(form, left, right, out=out, type=type)


def _shift_amount(symbol: str, type: Type, right: ScalarLike) -> int | float | None:
    if isinstance(right, Scalar) and not (right.type.is_integer and right.type.bits == 32):
        refuse(f"`{symbol}` by {shown(right)}: PTX takes the amount as 32 bits", f"convert it: `{right.code}.to(u32)`")
    number = number_of(right)
    if number is not None and not (isinstance(number, int) and 0 <= number < type.bits):
        refuse(f"`{symbol}` by {number!r} of {type}, which has {type.bits} bits", f"shift by 0 to {type.bits - 1}")
    return number


def compare(symbol: str, left: object, right: object) -> Scalar:
    """Return the predicate of a comparison; with NaN, all float comparisons but != are false."""
    if not (is_operand(left) and is_operand(right)):
        return _foreign(symbol, left, right)
    type = common_type(symbol, left, right)
    if type is pred:
        refuse(f"`{symbol}` is not supported for predicates", "write `~(p ^ q)` for equal, `p ^ q` for different")
    if type.kind == "b" and symbol not in ("==", "!="):
        arithmetic(symbol, type)
    if type.bits == 8:
        arithmetic(symbol, type)
    if number_of(left) is not None:
        left, right, symbol = right, left, MIRRORED[symbol]
    unordered = "u" if symbol == "!=" and is_floating(type) else ""
    return operate(f"setp.{COMPARISONS[symbol]}{unordered}.{type}", left, right)


def invert(value: Scalar) -> Scalar:
    """Return ~value; for a predicate `!p`, which most instructions take directly."""
    if value.type is pred:
        if value.writable:
            return operate("not.pred", value)
        register: Any = value.read()
        negated: Scalar = value.builder.value(
            register.register if isinstance(register, ir.Not) else ir.Not(register), pred
        )
        return negated
    if is_floating(value.type) or value.type.bits == 8:
        refuse(
            f"`~` is not supported for {value.type}", "integers and bits of 16 bits and more have it, and predicates"
        )
    return operate(f"not.b{value.type.bits}", value, type=value.type)


def negate(value: Scalar) -> Scalar:
    """Return -value; unsigned integers wrap."""
    arithmetic("-", value.type)
    signed = TYPES[f"s{value.type.bits}"] if value.type.is_integer else value.type
    return operate(f"neg.{signed}", value, type=value.type)


def absolute(value: Scalar) -> Scalar:
    arithmetic("abs", value.type)
    return kept(value, None) if value.type.kind == "u" else operate(f"abs.{value.type}", value)


def minimum(*values: ScalarLike) -> Scalar:
    """Return the minimum of two or more values; NaN operands are ignored.

    lowest = pd.min(a, b, 0.0)
    """
    return _extreme("min", *values)


def maximum(*values: ScalarLike) -> Scalar:
    """Return the maximum of two or more values; NaN operands are ignored.

    y[i] = pd.max(x[i], 0.0)
    """
    return _extreme("max", *values)


def _extreme(name: str, *values: ScalarLike) -> Scalar:
    if len(values) < 2:
        refuse(f"pd.{name} takes two values or more; {len(values)} given", "to pass a list, write `*values`")
    check_operands(f"pd.{name}", *values)
    if len(values) > 2:
        known = sorted(values, key=lambda value: not isinstance(value, Scalar))  # untyped numbers last
        with steps():
            first = _extreme(name, *known[:-1])
        return _extreme(name, first, known[-1])
    a, b = values
    type = common_type(f"pd.{name}", a, b)
    arithmetic(f"pd.{name}", type)
    if number_of(a) is not None:
        a, b = b, a
    return operate(f"{name}.{type}", a, b)


def check_operands(called: str, *operands: object) -> None:
    """Refuse operands that are not values or numbers, or of which none has a type."""
    for operand in operands:
        if not is_operand(operand):
            help = "a pointer's address is `p.value`" if isinstance(operand, Source) else None
            refuse(f"{called} takes values and numbers; found {shown(operand)}", help)
    if not any(isinstance(o, Scalar) for o in operands):
        refuse(
            f"{called} of Python numbers alone has no type", f"give one of them a type: `pd.cast({operands[0]!r}, f32)`"
        )


def select(condition: Scalar, a: ScalarLike, b: ScalarLike) -> Scalar:
    """Return `a` where the predicate holds, else `b`; both are computed."""
    if not (isinstance(condition, Scalar) and condition.type is pred):
        refuse(
            f"pd.select takes a predicate first; found {shown(condition)}", "compare first: `pd.select(x > 0, a, b)`"
        )
    check_operands("pd.select", a, b)
    type = common_type("pd.select", a, b)
    if type is pred:
        return (condition & a) | (invert(condition) & b)
    return _selected(type, condition, a, b)


def _selected(type: Type, condition: Scalar, a: ScalarLike, b: ScalarLike) -> Scalar:
    form = f"b{type.bits}" if type.bits == 16 or type.kind == "x" else str(type)
    if type.bits == 16 or type.kind == "x":  # numbers as their bits
        a, b = (v if isinstance(v, Scalar) else literal.encode(literal.plain(v), type).value for v in (a, b))
    return operate(f"selp.{form}", a, b, condition, type=type)


def fma(a: ScalarLike, b: ScalarLike, c: ScalarLike) -> Scalar:
    """Return a * b + c: floats are rounded once, integers keep the low half.

    total.set(pd.fma(x[i], y[i], total))
    """
    check_operands("pd.fma", a, b, c)
    known = next(v for v in (a, b, c) if isinstance(v, Scalar))
    for other in (a, b, c):
        common_type("pd.fma", known, other)
    arithmetic("pd.fma", known.type)
    return operate(f"{'fma.rn' if is_floating(known.type) else 'mad.lo'}.{known.type}", a, b, c)


def cast(value: ScalarLike, type: Type) -> Scalar:
    """Convert a value or number to a type: integers are truncated or extended, floats become integers toward zero.

    All other conversions round to nearest even. Raises TraceError if no conversion exists.

        wide = pd.cast(i, u64)
    """
    if not isinstance(type, Type):
        refuse(
            f"a conversion takes a type of PTX; found {type!r}",
            f"the value comes first: pd.cast(v, {value})" if isinstance(value, Type) else "for example f32 or s32",
        )
    if not is_operand(value):
        check_operands("pd.cast", value)
    if not isinstance(value, Scalar):
        return constant(value, type)
    if value.type is type:
        return kept(value, None)
    if value.type is pred and type.kind in "usf" and type.bits >= 16:
        return _selected(type, value, 1, 0)
    try:
        return _converted(value, type)
    except ValueError as why:
        refuse(f"`{value.name}` is {article(str(value.type))} and cannot become {article(str(type))}", str(why))


def _converted(value: Scalar, type: Type) -> Scalar:
    path = conversions(value.type, type, current("to").sm)
    if not path:
        return retyped(value, type)
    with steps():
        for step in path[:-1]:
            value = operate(step.mnemonic, value, *step.constants)
    return operate(path[-1].mnemonic, value, *path[-1].constants, type=type)


def retyped(value: Scalar, type: Type) -> Scalar:
    """Return the same bits as another type in the same kind of register, without an instruction unless it is a
    variable."""
    number = number_of(value)
    if number is not None:
        return constant(wrapped(int(number), type), type)
    return operate(move(type), value, type=type) if value.writable else current("to").value(value.read(), type)


def bitcast(value: Scalar, type: Type) -> Scalar:
    """Return the same bits as another type of the same width."""
    if type.bits != value.type.bits or pred in (type, value.type):
        refuse(
            f"bitcast of `{value.name}`, which is {value.type} ({value.type.bits} bits), to {type} ({type.bits} bits)",
            f"`.to({type})` converts the value",
        )
    held = register_type(type).register
    lost = value.number is None and value.held.is_float and not held.is_float  # most bit instructions reject floats
    if value.number is None and not lost and compatible(held, value.held):
        return retyped(value, type)
    return operate(f"mov.b{type.bits}", value, type=type)
