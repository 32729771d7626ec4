"""Pointers and arrays in units of elements: bounds checks, layouts and address arithmetic."""

from __future__ import annotations

import math
from typing import Any, NoReturn, TypeAlias, cast, overload

from ptxdsl import ir
from ptxdsl.driver import Late
from ptxdsl.errors import LayoutError, public
from ptxdsl.isa.operand import Operand, Problem, compatible
from ptxdsl.trace import literal, operators
from ptxdsl.trace.builder import Builder, current, refuse
from ptxdsl.trace.foreign import NoNumber
from ptxdsl.trace.instruction import Binding, Scalar, ScalarLike, Source, Unfit, conversion, emit, shown
from ptxdsl.trace.operators import operate
from ptxdsl.types import Pointer, Type, bits, pred, s64, u32

layouts: Any = Late("ptxdsl.layout.layout")
MOST_OFFSET = (1 << 31) - 1  # maximum offset in an address operand, in bytes
Coordinate: TypeAlias = "ScalarLike | tuple[Coordinate, ...]"
"""Of an element: a number, traced or known, or a tuple of coordinates, one for each mode of the layout."""
MENDS = {
    ("global", "shared"): "copy the tile to shared memory first (cp.async), or load it with ld.global",
    ("shared", "global"): "shared memory is read by ld.shared and written by st.shared",
}


_MISSING = "to test for a missing Python argument, write `… is not None`"


class PointerValue(
    NoNumber,
    Source,
    refuses={
        "looped over or unpacked": "loop over the indices: pd.range",
        "passed to len()": "pass the length as a parameter: `n: u32`",
        "tested for truth while tracing": f"compare `p.value != 0`; {_MISSING}",
        "searched by `in`": "compare each element",
        "compared": "compare the addresses in bytes: `p.value == q.value`",
    },
):
    """The address of elements: `p[i]` reads, `p[i] = v` writes, `p + i` advances by elements.

    `base` is a register, or the variable at that address; `offset` is added in bytes where the address is used.
    """

    __slots__ = ("base", "offset", "type")
    _moves = False
    _noun, _instead = "a pointer", "`p + i` is i elements on, `p[i]` an element, and `p.value` the address in bytes"
    type: Pointer

    def __init__(self, base: Scalar | ir.Variable, type: Pointer, offset: int = 0) -> None:
        self.base, self.type, self.offset = base, type, offset

    @property
    def element(self) -> Type:
        return self.type.element

    @property
    def space(self) -> str:
        return self.type.space

    @property
    def name(self) -> str:
        return self.base.name

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"

    def address(self, binding: Binding, operand: Operand) -> ir.Address:
        if not _reaches(self.space, operand.space):
            raise Unfit(self._misplaced(binding, operand))
        if -MOST_OFFSET <= self.offset <= MOST_OFFSET:
            return ir.Address(self._base(), self.offset)  # type: ignore[arg-type]
        return ir.Address(self.scalar(binding, operand))  # type: ignore[arg-type]

    def _base(self) -> ir.Register | ir.Not | ir.Immediate | ir.Variable:
        """Return the register or variable of the address. Raises TraceError if it cannot be read here."""
        builder = current(self.name)
        if isinstance(self.base, Scalar):
            return self.base.read()
        if not builder.names(self.base):
            _refuse_elsewhere(builder, self.base)
        return self.base

    def _misplaced(self, binding: Binding, operand: Operand) -> Problem:
        verb = "reads" if any(o.written for o in binding.opcode.operands) else "takes"
        wanted = operand.space or "generic"
        message = f"`{operand.name}` is a {self.type.register} in .{self.space}; this instruction {verb} "
        if wanted == "generic":
            wide = "p.value" if self.type.register.bits == 64 else "p.value.to(u64)"
            generic = f'pd.ptx("cvta.{self.space}.u64", {wide})'
            return Problem(
                operand.name, f"{message}a generic address", f"name the space in the mnemonic, or convert: {generic}"
            )
        mend = MENDS.get((self.space.partition("::")[0], wanted.partition("::")[0]))
        return Problem(operand.name, f"{message}.{wanted}", mend or "give it a pointer into that space")

    def scalar(self, binding: Binding, operand: Operand) -> ir.Operand:
        self._base()
        register, wanted = self.type.register, operand.type
        if wanted is not None and not compatible(wanted, register, binding.opcode.op.relaxed):
            converted = f"convert its address, a {register}: `p.value.to(u{wanted.bits})`"
            help = "an element of it is `p[0]`" if wanted.kind not in "usb" else converted
            message = f"`{operand.name}` is {shown(self)}; this form takes {operand.describe()}"
            raise Unfit(Problem(operand.name, message, help))
        held = self._base_value().scalar(binding, operand)
        return binding.step(f"add.{register}", register, held, ir.Immediate(self.offset)) if self.offset else held

    @property
    def value(self) -> Scalar:
        """The address in bytes, a u64 (a u32 in shared memory)."""
        self._base()
        return operators.binary("+", self._base_value(), self.offset)

    def _base_value(self) -> Scalar:
        """Return the base in a register; the address of a variable is computed once per kernel."""
        if isinstance(self.base, Scalar):
            return self.base
        variable, register = self.base, self.type.register
        compute = lambda: operate(f"mov.{register}", variable, type=register)  # noqa: E731
        address: Scalar = current(variable.name).once_at_start(variable, variable.name, compute)
        return address

    def bitcast(self, element: Type) -> PointerValue:
        """Return the same address as a pointer to another element type."""
        if not isinstance(element, Type):
            refuse(f"bitcast of the pointer `{self.name}` takes the new element type; found {element!r}", "such as b32")
        return PointerValue(self.base, Pointer(element, self.space), self.offset)

    def __add__(self, index: ScalarLike) -> PointerValue:
        return self._moved(index)

    __radd__ = __add__

    def __sub__(self, index: ScalarLike) -> PointerValue:
        if isinstance(index, PointerValue):
            refuse("a pointer minus a pointer", "subtract the addresses in bytes: `p.value - q.value`")
        return self.__add__(_negative(self, index))

    def _moved(self, index: ScalarLike) -> PointerValue:
        """Return this pointer advanced by `index` elements; a known distance becomes part of the address operand."""
        number = _known_index(self, index)
        self._base()
        if number is None:
            return PointerValue(_scaled(index, self.element.bytes, self), self.type, self.offset)
        return PointerValue(self.base, self.type, self.offset + number * self.element.bytes)

    def __getitem__(self, index: ScalarLike) -> Scalar:
        with operators.steps():
            address = self._moved(index)
        return address.load()

    def __setitem__(self, index: ScalarLike, value: ScalarLike) -> None:
        with operators.steps():
            address = self._moved(index)
        address.store(value)

    def load(self) -> Scalar:
        """Load the element at this address."""
        return operate(f"ld{_dotted(self.space)}.{stored_type(self.element)}", self, type=self.element)

    def store(self, value: ScalarLike) -> None:
        """Store a value of the element type, or a number that fits it."""
        if self.space == "const":
            refuse(f"`{self.name}` is in constant memory, which no kernel writes", "write to a pd.shared or pd.local")
        stored, several = stored_type(self.element), cast("object", value)
        text = f"st{_dotted(self.space)}.{stored}"
        if not operators.is_operand(value):
            held = f"{len(several)} values" if isinstance(several, tuple | list) else repr(value)
            help = f"store a value of type {self.element}, or a number; pd.ptx.st with .v2 or .v4 stores several"
            refuse(f"an element of `{self.name}` is set to {held}", help)
        if isinstance(value, Scalar):
            if value.type is not self.element:
                message = f"`{self.name}` has elements of type {self.element}; `{value.name}` is {value.type}"
                refuse(message, conversion(value, self.element))
            emit(text, (self, value))
        else:
            operators.check_number("=", value, self.element, self)
            encoded = literal.encode(literal.plain(value), self.element)
            number = literal.decode(encoded.value, self.element) if encoded.type else encoded.value
            emit(text, (self, number))

    def __iadd__(self, index: ScalarLike) -> PointerValue:
        operators.refuse_update("+=", self, self.name)

    def __hash__(self) -> int:
        return id(self)


def _refuse_elsewhere(builder: Builder, variable: ir.Variable) -> NoReturn:
    caller = next((each for each in builder.callers if each.names(variable)), None)
    if caller is None:
        help = "make it inside of this kernel; keep no arrays between kernels"
        refuse(f"the array `{variable}` belongs to another kernel, or to an earlier trace of this one", help)
    pointer = f'p: ptr[…, "{variable.space}"]'
    refuse(
        f"the array `{variable}` is made in the {caller.noun} `{caller.name}`, and used in the function "
        f"`{builder.name}`, which it calls",
        f"pass the address of its first element as a parameter, `{pointer}`: `{variable}.address(0)`",
    )


class PointerVar(PointerValue):
    """A pointer variable: `p += 4`, `p.set(q)`."""

    __slots__ = ()
    _moves = True

    def __iadd__(self, index: ScalarLike) -> PointerVar:
        _advance(self, index)
        return self

    def __isub__(self, index: ScalarLike) -> PointerVar:
        _advance(self, _negative(self, index))
        return self

    def set(self, pointer: PointerValue) -> None:
        """Set the pointer to `pointer`, which must have the same element type and space."""
        if not isinstance(pointer, PointerValue) or pointer.type != self.type:
            refuse(
                f"`{self.name}` is a {self.type}; it cannot be set to {shown(pointer)}",
                "bitcast() changes the element type",
            )
        self.base.set(pointer.value)  # type: ignore[union-attr]

    def __add__(self, index: ScalarLike) -> PointerValue:
        """Return an independent pointer, which does not move with this one."""
        moved = self._moved(index)
        return moved if moved.base is not self.base else PointerValue(moved.value, self.type)

    __radd__ = __add__

    def bitcast(self, element: Type) -> PointerValue:
        return (self + 0).bitcast(element)


def _negative(pointer: PointerValue, index: ScalarLike) -> ScalarLike:
    """Return -index as a signed value, wide enough for an unsigned one."""
    with operators.steps():
        if not isinstance(index, Scalar):
            return -literal.plain(index)
        return -(operators.cast(index, s64) if pointer.type.register.bits > index.type.bits else index)


def _advance(pointer: PointerVar, index: ScalarLike) -> None:
    number = _known_index(pointer, index)
    base: Any = pointer.base
    if number is not None:
        operators.binary("+", base, number * pointer.element.bytes, base)
    else:
        _scaled(index, pointer.element.bytes, pointer, out=base)


def _known_index(pointer: PointerValue, index: object) -> int | None:
    """Return an index as an int if it is known, None for a register; refuse other values."""
    if pointer.element.bits % 8 or pointer.element is pred:
        refuse(f"`{pointer.name}` points to {pointer.element}, which is smaller than a byte", "use b8 or b32")
    if isinstance(index, Scalar):
        if not (index.type.is_integer and index.type.bits >= 32):
            refuse(
                f"`{pointer.name}` is indexed by `{index.name}`, which is {index.type}",
                "an index is u32, s32, u64 or s64",
            )
        return index.number  # type: ignore[return-value]
    if not literal.is_number(index) or isinstance(literal.plain(index), float):
        described = f"{len(index)} indices" if isinstance(index, tuple) else repr(index)
        has_axes = all(isinstance(getattr(index, axis, None), Scalar) for axis in "xyz")
        more = f"{index!r} has three: write {index!r}.x" if has_axes else "pd.view(pointer, layout) takes more"
        refuse(f"the pointer `{pointer.name}` is indexed by {described}", f"it takes one integer; {more}")
    return literal.plain(index)  # type: ignore[return-value]


def _scaled(index: ScalarLike, size: int, pointer: PointerValue, out: Scalar | None = None) -> Scalar:
    """Return base + index * size, computed by one instruction."""
    assert isinstance(index, Scalar)
    register = pointer.type.register
    base = pointer._base_value()
    if register.bits < index.type.bits:
        index = operators.cast(index, u32)
    wide = register.bits > index.type.bits
    if size == 1 and not wide:
        return operate(f"add.{register}", base, index, out=out, type=register)
    return operate(f"mad.{'wide' if wide else 'lo'}.{index.type}", index, size, base, out=out, type=register)


def _reaches(space: str, wanted: str | None) -> bool:
    """True if an address in `space` can be used where `wanted` is required."""
    if wanted in (None, "generic"):
        return space == "generic"
    if wanted == "shared::cluster":
        return space.startswith("shared")
    return space == wanted or {space, wanted} == {"shared", "shared::cta"}


def _dotted(space: str) -> str:
    return "" if space == "generic" else f".{space}"


def stored_type(type: Type) -> Type:
    """Return the type of ld and st: f32 and f64, or the bits of other floats."""
    return type if type.is_integer or type.name in ("f32", "f64") else bits(type.bits)


def pointer(address: Scalar, element: Type, space: str = "global") -> PointerValue:
    """Create a pointer from an address in bytes: a u64, or a u32 in shared memory.

    `element` is the element type, `space` the state space: "global", "shared", "const", "local" or "generic". Raises
    TraceError for an address of another width.

        p = pd.pointer(address, f32)
        y[i] = p[0]
    """
    type = Pointer(element, space)
    if not isinstance(address, Scalar) or address.type.bits != type.register.bits or address.type.is_float:
        refuse(
            f"an address in .{space} has {type.register.bits} bits; found {shown(address)}",
            "an address is a number: `p.value`"
            if isinstance(address, Source) and not isinstance(address, Scalar)
            else f"convert it: `.to({type.register})`",
        )
    return PointerValue(operators.retyped(address, type.register), type)


class ArrayView(
    NoNumber,
    refuses={
        "looped over or unpacked": "loop over its coordinates: pd.range",
        "passed to len()": "its shape is known: `.shape`",
        "tested for truth while tracing": f"compare its elements; {_MISSING}",
        "searched by `in`": "compare each element",
    },
):
    """An array in memory, indexed by coordinates through a layout: `s[i, j]`, `s[i, j] = v`, `s.address(i, j)`.

    Constant coordinates are checked against the shape while tracing. `layout` is None for an array of unknown length.
    """

    __slots__ = ("layout", "pointer", "ranked")
    _noun, _instead = "an array in memory", "index it: operators take its elements"

    def __init__(self, pointer: PointerValue, layout: Any, ranked: bool) -> None:
        self.pointer, self.layout, self.ranked = pointer, layout, ranked

    @property
    def element(self) -> Type:
        return self.pointer.element

    @property
    def space(self) -> str:
        return self.pointer.space

    @property
    def name(self) -> str:
        return self.pointer.name

    @property
    def alignment(self) -> int | None:
        """The alignment of the address in bytes; None if only the caller knows it."""
        base = self.pointer.base
        return math.gcd(base.align or 1, self.pointer.offset) if isinstance(base, ir.Variable) else None

    @property
    def shape(self) -> Any:
        return self.layout.shape if self.layout is not None else None

    def __repr__(self) -> str:
        return f"<array {self.name} of {self.element}, {self.layout or 'length unknown'}>"

    def address(self, *coordinate: Coordinate) -> PointerValue:
        """Return a pointer to the element at a coordinate, by default to the first element."""
        if not coordinate:
            return self.pointer.__add__(0)
        rank = self.layout.rank if self.layout else 1
        if self.ranked and len(coordinate) != rank:
            message = f"`{self.name}` has {rank} dimension{'s' * (rank > 1)}; {len(coordinate)} given"
            refuse(message, f"its shape is {self.shape}", LayoutError)
        if self.layout is None:
            return self.pointer.__add__(coordinate[0])  # type: ignore[operator]  # a tuple is refused in words
        numbers = tuple(map(_numbers, coordinate))
        try:
            layouts.check_bounds(self.layout, numbers[0] if len(numbers) == 1 else numbers)
        except LayoutError as why:
            help = why.help or f"its shape is {self.shape}, counted from 0; there are no negative coordinates"
            refuse(f"array `{self.name}`: {why.message}", help, LayoutError)
        with operators.steps():
            index = self.layout.index(*numbers)
        address = self.pointer if index.value is None else self.pointer.__add__(index.value)
        return address.__add__(index.constant)

    def __getitem__(self, coordinate: Coordinate) -> Scalar:
        return self._pointer_to(coordinate).load()

    def __setitem__(self, coordinate: Coordinate, value: ScalarLike) -> None:
        self._pointer_to(coordinate).store(value)

    def _pointer_to(self, coordinate: Coordinate) -> PointerValue:
        with operators.steps():
            return self.address(*coordinate) if isinstance(coordinate, tuple) else self.address(coordinate)


def _numbers(coordinate: Coordinate) -> Coordinate:
    """Return a coordinate with its constants as ints."""
    if isinstance(coordinate, (tuple, list)):
        return tuple(map(_numbers, coordinate))
    return coordinate.number if isinstance(coordinate, Scalar) and coordinate.number is not None else coordinate


def layout_of(layout: Any) -> tuple[Any, bool]:
    """Return (layout, True for a plain shape): a plain shape is row-major, with one coordinate for each extent."""
    if hasattr(layout, "index") and hasattr(layout, "cosize"):
        return layout, False
    shape = layout if isinstance(layout, (tuple, list)) else (layout,)
    if not shape or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape):
        refuse(
            f"the shape of an array is a positive int, a tuple of them, or a Layout; found {layout!r}",
            "shapes are known while tracing: give Python ints, such as (64, 32)",
        )
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return layouts.Layout(tuple(shape), tuple(reversed(strides))), True


@public
def view(pointer: PointerValue, layout: Any) -> ArrayView:
    """View the memory at a pointer as an array with a layout, or with a row-major shape.

    `layout` is a `Layout`, an int or a tuple of ints. Raises TraceError if `pointer` is not a pointer.

        matrix = pd.view(x, (64, 32))
        y[i] = matrix[i, 0]
    """
    if not isinstance(pointer, PointerValue):
        refuse(
            f"pd.view takes a pointer first; found {shown(pointer)}", "make one of an address: pd.pointer(address, f32)"
        )
    return ArrayView(pointer, *layout_of(layout))


@overload
def select(condition: Scalar, a: PointerValue, b: PointerValue) -> PointerValue: ...  # type: ignore[overload-overlap]


@overload
def select(condition: Scalar, a: ScalarLike, b: ScalarLike) -> Scalar: ...


def select(condition: Scalar, a: Any, b: Any) -> Scalar | PointerValue:
    """Return `a` in threads where the predicate `condition` holds, else `b`; both are computed.

    `a` and `b` are values of one type (one may be a Python number), or pointers of one element type and state space.
    Raises TraceError otherwise.

        y[i] = pd.select(x[i] > 0, x[i], 0.0)
    """
    if not (isinstance(a, PointerValue) or isinstance(b, PointerValue)):
        return operators.select(condition, a, b)
    if not (isinstance(a, PointerValue) and isinstance(b, PointerValue)):
        pointer, other = (a, b) if isinstance(a, PointerValue) else (b, a)
        refuse(f"pd.select of a pointer, {pointer.type}, and {shown(other)}", "give it two pointers, or two values")
    if a.type != b.type:
        help = "one register holds the address of elements of one type, in one state space"
        refuse(f"pd.select of two kinds of pointers: `{a.name}` is {a.type}, `{b.name}` is {b.type}", help)
    with operators.steps():
        first, second = a.value, b.value
    return PointerValue(operators.select(condition, first, second), a.type)
