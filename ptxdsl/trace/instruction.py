"""Build one instruction from Python operands: select the form they match, or report why none matches."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, TypeAlias

from ptxdsl import ir
from ptxdsl.errors import Site, TraceError, VerifyError
from ptxdsl.isa.lookup import lookup
from ptxdsl.isa.opcode import Opcode, names_of
from ptxdsl.isa.operand import Operand, Problem, compatible, describe
from ptxdsl.trace import literal
from ptxdsl.trace.aliases import check_aliases
from ptxdsl.trace.builder import Builder, ControlRegion, current, peek, refuse
from ptxdsl.trace.descriptors import check_descriptors
from ptxdsl.trace.misfits import target_refusal, title, unknown_instruction, wrong_count
from ptxdsl.trace.source import argument
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import TYPES, Pointer, Type, bf16, bits, f16, lanes, pred

if TYPE_CHECKING:
    from ptxdsl.trace.annotations import ScalarType
else:
    ScalarType = type  # type checkers see `f32` as both this class and a Type

Destination = ir.Register | ir.Sink
SINK = "_"
_REORDERED = 5  # maximum number of operands for which other orders are tried


class Unfit(Exception):
    """A value that an operand cannot take, with the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(slots=True)
class Binding:
    """The operands bound to one form, its new registers, and the preparatory instructions, such as a conversion."""

    opcode: Opcode
    operands: list[ir.Operand | None] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    fresh: list[tuple[ir.Register, str]] = field(default_factory=list)
    steps: list[ir.Instruction] = field(default_factory=list)  # emitted before the bound one
    written: list[Any] = field(default_factory=list)
    problem: Problem | None = None
    source_index: dict[str, int] = field(default_factory=dict)

    def step(self, mnemonic: str, type: Type, *sources: ir.Operand) -> ir.Register:
        """Add a preparatory instruction and return its result register."""
        register = ir.Register("", register_type(type).register)
        self.steps.append(ir.Instruction(lookup(mnemonic)[0], (register, *sources)))
        return register


class Source:  # no ABC: isinstance, called for each operand, is many times slower with one
    """Base class of instruction operands. `traced` marks them for code that avoids importing the class."""

    __slots__ = ()
    traced = True
    type: Type | Pointer | TensorMap

    @abstractmethod
    def scalar(self, binding: Binding, operand: Operand) -> ir.Operand:
        """Return this value as a register, special register or constant."""

    @abstractmethod
    def address(self, binding: Binding, operand: Operand) -> ir.Address:
        """Return this value as an address operand in brackets."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name used in messages."""

    @property
    def code(self) -> str:
        """The name in suggestions that append `.to(…)`, parenthesised if necessary."""
        return self._spelled if _stands_alone(self._spelled) else f"({self._spelled})"

    @property
    def _spelled(self) -> str:
        """The name in suggestions: `name`, or a placeholder if the source is not available."""
        return self.name


def _stands_alone(code: str) -> bool:
    """True if a method call can follow the expression without parentheses, unlike `a - (b)`."""
    try:
        tree = ast.parse(code, mode="eval").body
    except SyntaxError:  # a placeholder for a value without an expression
        return " " not in code
    return isinstance(tree, ast.Name | ast.Attribute | ast.Call | ast.Subscript)


class Scalar(Source, metaclass=ScalarType):
    """A value in a register, or a constant of known type: the operand of operators and instructions."""

    __slots__ = ("builder", "operand", "region", "site", "type")
    writable = False
    type: Type

    def __init__(
        self, operand: ir.Register | ir.Not | ir.Immediate, type: Type, builder: Builder, site: Site | None = None
    ) -> None:
        self.operand, self.type, self.builder = operand, type, builder
        self.region: ControlRegion = builder.region
        self.site = site or builder.site()

    @property
    def name(self) -> str:
        if len(self.site.names) == 1:
            return self.site.names[0]
        return self._text or article(str(self.type))

    @property
    def _spelled(self) -> str:
        return self.name if len(self.site.names) == 1 or self._text else "v"

    @property
    def _text(self) -> str:
        """The source text that computed the value; empty if the source is not available."""
        location = self.site.location
        text = location.text[slice(*location.columns)]
        return text if len(text) > 1 or text.isalnum() else ""

    def read(self) -> ir.Register | ir.Not | ir.Immediate:
        """Return the operand. Raises TraceError if the value cannot be read here."""
        if self.builder is not peek():
            raise _elsewhere(self)
        if not self.region.open:
            raise _ended(self)
        self.builder.used.add(id(self.operand))
        return self.operand

    def scalar(self, binding: Binding, operand: Operand) -> ir.Operand:
        value = self.read()
        if isinstance(value, ir.Not) and not operand.negatable:
            return binding.step("not.pred", pred, value.register)
        if operand.type is not None and not self.fits(operand.type, binding.opcode.op.relaxed):
            constant = isinstance(value, ir.Immediate)
            kind = f"{article(str(self.type))} constant" if constant else describe(ir.Register("", self.type))
            raise _unfit(operand, kind, conversion(self, operand.type))
        if isinstance(value, ir.Immediate):
            return _as_operand(binding, operand, value, self.type)
        if operand.type is not None and not compatible(operand.type, self.held, binding.opcode.op.relaxed):
            return binding.step(f"mov.b{self.type.bits}", self.type, value)  # a bitcast shares its source's register
        return value

    def fits(self, wanted: Type, relaxed: bool) -> bool:
        """Apply PTX's operand type rules, but keep f16 and bf16 apart, which PTX treats alike as 16 bits."""
        confused = wanted.kind == self.type.kind == "f" and {wanted, self.type} == {f16, bf16}
        return not confused and compatible(wanted, self.type, relaxed)

    @property
    def held(self) -> Type:
        """The type with which the register is declared."""
        value = self.read()
        return (value.register if isinstance(value, ir.Not) else value).type or self.type

    @property
    def number(self) -> int | float | None:
        """The number of a constant; None for registers and packed constants."""
        if not isinstance(self.operand, ir.Immediate) or self.type.kind == "x":
            return None
        return literal_of(self.operand, self.type)

    def address(self, binding: Binding, operand: Operand) -> ir.Address:
        value = self.read()
        if not isinstance(value, ir.Register):
            value = binding.step(f"mov.b{self.type.bits}", self.type, value)
        return ir.Address(value)

    if TYPE_CHECKING:  # the operators of `value.Value`, which all scalars are

        def _binary(self, other: ScalarLike) -> Scalar: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _binary
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = _binary
        __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary

        def __eq__(self, other: object) -> Scalar: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Scalar: ...  # type: ignore[override]
        def __invert__(self) -> Scalar: ...
        def __neg__(self) -> Scalar: ...
        def __abs__(self) -> Scalar: ...
        def to(self, type: Type) -> Scalar: ...
        def bitcast(self, type: Type) -> Scalar: ...
        def select(self, a: ScalarLike, b: ScalarLike) -> Scalar: ...
        @property
        def value(self) -> Scalar: ...


ScalarLike: TypeAlias = "Scalar | literal.PythonNumber"
"""What operators take: a traced value, or a number that is known while tracing."""


def literal_of(value: ir.Immediate, type: Type) -> int | float:
    """Return the Python number of a constant of a type."""
    return literal.decode(value.value, type) if type.is_float else value.value


def conversion(value: Scalar, wanted: Type) -> str:
    """Return the help line that converts a value to a type."""
    (element, count), is_as_wide = lanes(wanted), wanted.bits == value.type.bits
    if count > 1:
        held = f"; if it holds them already, say so: `{value.code}.bitcast(b{wanted.bits})`" if is_as_wide else ""
        return f"put {count} values of {element} side by side by pd.pack{held}"
    if wanted is pred:
        return f"compare: `{value.code} != 0`"
    if value.type is pred or (wanted.kind != "b" and value.type.kind not in "bx"):
        return f"convert it: `{value.code}.to({wanted})`"
    if is_as_wide:
        return f"interpret the bits: `{value.code}.bitcast({wanted})`"
    return "pd.pack puts values side by side in a wider register, pd.unpack takes it apart"


def _elsewhere(value: Scalar) -> TraceError:
    builder = current(value.name)
    location = builder.site().location
    if value.builder in builder.callers:
        caller = f"the {value.builder.noun} `{value.builder.name}`"
        message = f"`{value.name}` is computed in {caller}, and read in the function `{builder.name}`, which it calls"
        return TraceError(message, at=location, help="pass it to the function as a parameter")
    return TraceError(
        f"`{value.name}` belongs to another kernel, or to an earlier trace of this one",
        at=location,
        help="compute it inside of this kernel; keep no traced values between kernels",
    )


def _ended(value: Scalar) -> TraceError:
    region, location = value.region, value.site.location
    name = value.site.names[0] if value.site.names else "v"
    return TraceError(
        f"`{value.name}` was computed in {region.words}, which has ended; outside of it, it has no value",
        at=value.builder.site().location,
        help=f"make a variable before it, `{name} = pd.var({value.type})`, "
        f"and write to it at {location}: `{name}.set(…)`",
    )


def emit(
    text: str,
    sources: Sequence[object] = (),
    *,
    out: object = None,
    guard: Scalar | None = None,
    pair: bool = False,
    count: int | None = None,
    type: Type | None = None,
) -> list[tuple[Any, Any]]:
    """Append one instruction; return (registers, type) for each destination, with a tuple of registers for a vector.

    If `out` provided a destination, that value is returned with type None. `count` selects a form that writes a vector
    of that many registers; `type` declares new registers more precisely than the instruction does. Raises VerifyError
    if no form of the target takes the operands.
    """
    builder = current(text)
    candidates = lookup(text)
    if not candidates:
        raise unknown_instruction(text, builder.site())
    call = _Call(text, sources, out, pair, guard is not None, count, type)
    bindings = []
    for opcode in candidates:
        bound = call.bind(opcode)
        if bound.problem is None and opcode.supports(builder.arch):
            if guard is not None and opcode.op.ignores_guard(opcode):
                help = "execute it in `with pd.if_(guard):`, or write it to a new register and use pd.select"
                refuse(f"{opcode.text}: ptxas 13 ignores the guard of this instruction", help, VerifyError)
            if guard is not None and (not isinstance(guard, Scalar) or guard.type is not pred):
                refuse(f"a guard is a predicate; found {shown(guard)}", "compare first: `guard=i < n`")
            return _append(builder, bound, None if guard is None else guard.read())  # type: ignore[arg-type]
        bindings.append(bound)
    raise _refusal(call, bindings, builder)


def _refusal(call: _Call, bindings: list[Binding], builder: Builder) -> VerifyError:
    """Return the error of the form that came closest to the operands."""
    fitting = next((b for b in bindings if b.problem is None), None)
    if fitting:
        return target_refusal(fitting.opcode, builder)
    closest = min(bindings, key=call.distance)
    assert closest.problem
    at = argument(builder.site().location, closest.source_index.get(closest.problem.operand))
    order = _order_that_fits(call, closest) if closest.problem.operand else ""
    message = closest.problem.message
    message = f"{title(closest.opcode)}: {message}" if closest.problem.operand else f"{call.text} {message}"
    return VerifyError(message, at=at, help=order or closest.problem.help)


def _order_that_fits(call: _Call, closest: Binding) -> str:
    """Return a help line if the operands match in another order, else an empty string."""
    number, index = len(call.sources), closest.source_index.get(closest.problem.operand if closest.problem else "")
    if index is None or not 2 <= number <= _REORDERED or not _is_of_another_kind(call.sources[index], closest):
        return ""
    orders = (replace(call, sources=order) for order in permutations(call.sources))
    takes = [operand for operand in closest.opcode.operands if not operand.written][:number]
    fits = any(each.bind(closest.opcode).problem is None for each in orders)
    return f"they fit in another order: it takes {names_of(takes)}" if fits else ""


def _is_of_another_kind(source: object, closest: Binding) -> bool:
    """True if an operand cannot take a source even with a width conversion or another number."""
    operand = next(o for o in closest.opcode.operands if closest.problem and o.name == closest.problem.operand)
    if isinstance(source, Scalar) and not operand.vector and operand.space is None and operand.type is not None:
        return bool(source.type.is_float != operand.type.is_float)
    return isinstance(source, Source | tuple | list) or operand.space is not None


def _append(builder: Builder, bound: Binding, guard: ir.Register | ir.Not | None) -> list[tuple[Any, Any]]:
    site = builder.site()
    for step in bound.steps:
        builder.adopt(step.operands[0])  # type: ignore[arg-type]  # the register that it computes
        step.location = site.location
        builder.append(step)
    names = _names(site.names, len(bound.fresh))
    for (register, _), name in zip(bound.fresh, names, strict=True):
        builder.adopt(register, name)
    instruction = ir.Instruction(bound.opcode, bound.opcode.group(bound.operands), guard, site.location)
    for watch in builder.watchers:
        watch(instruction)
    if bound.opcode.text.startswith("wgmma.mma_async"):
        check_descriptors(builder, instruction)
    builder.append(instruction)
    if bound.fresh and bound.opcode.op.computes and not bound.written:
        builder.computed.append((tuple(register for register, _ in bound.fresh), instruction, site))
    for variable in bound.written:
        variable.again, variable.written = variable.written, True
        check_aliases(builder, site, variable)
    return bound.results


def _names(names: tuple[str, ...], count: int) -> list[str]:
    """Return a name for each new register: the assignment targets, or `a0`, `a1`, … for a single target."""
    if len(names) == count:
        return list(names)
    return [f"{names[0]}{n}" for n in range(count)] if len(names) == 1 else [""] * count


def shown(value: object) -> str:
    """Return the text of a value in messages: a traced value with its type, others by repr."""
    return f"`{value.name}`, {article(str(value.type))}" if isinstance(value, Source) else repr(value)


def article(word: str) -> str:
    """Return a type or class name with its article."""
    if word == "pred":
        return "a predicate"
    spoken_with_vowel = word[0] in "aeio" or word.startswith("nd") or (word[0] in "sf" and word[1:2].isdigit())
    return f"an {word}" if spoken_with_vowel else f"a {word}"


@dataclass(slots=True)
class _Call:
    """A requested instruction, tried against each form."""

    text: str
    sources: Sequence[object]
    out: object
    pair: bool
    guarded: bool
    count: int | None
    type: Type | None

    def bind(self, opcode: Opcode) -> Binding:
        bound = Binding(opcode)
        try:
            self._bind(bound)
        except Unfit as unfit:
            bound.problem = unfit.problem
        else:
            bound.problem = next(opcode.problems(opcode.group(bound.operands)), None)
        return bound

    def distance(self, bound: Binding) -> tuple[int, bool]:
        """Return the mismatch of a form: vectors in the wrong positions, then a wrong number of operands."""
        takes = (o for o in bound.opcode.operands if not o.written)
        misplaced = sum(isinstance(s, tuple | list) != o.vector for s, o in zip(self.sources, takes, strict=False))
        return misplaced, not (bound.problem and bound.problem.operand)

    def _bind(self, bound: Binding) -> None:
        declared = bound.opcode.operands
        if self.count is not None and declared[0].count != self.count:
            raise Unfit(Problem("", f"writes no {self.count} registers"))
        outs = self._outs([o for o in declared if _is_result(o) and (self.pair or not (o.paired and o.optional))])
        sources = list(self.sources)
        takes = [o for o in declared if not o.written]
        if not sum(not o.optional for o in takes) <= len(sources) <= len(takes):
            raise Unfit(wrong_count(bound.opcode, takes, sources))
        for operand in declared:
            if operand.written:
                bound.operands.append(self._destination(bound, operand, outs) if _is_result(operand) else ir.Sink())
            elif sources:
                bound.source_index[operand.name] = len(self.sources) - len(sources)
                bound.operands.append(_source(bound, operand, sources.pop(0)))

    def _outs(self, wanted: list[Operand]) -> dict[str, object]:
        """Return the given destination for each operand; None for a new register."""
        if self.out is None:
            return {o.name: None for o in wanted}
        outs = [self.out] if len(wanted) == 1 or not isinstance(self.out, tuple | list) else list(self.out)
        if len(outs) != len(wanted):
            names = ", ".join(o.name for o in wanted) or "nothing"
            raise Unfit(Problem("", f"writes {names}; out= gives {len(outs)}"))
        return dict(zip((o.name for o in wanted), outs, strict=True))

    def _destination(self, bound: Binding, operand: Operand, outs: dict[str, object]) -> ir.Operand | None:
        if operand.name not in outs:
            return None
        destination = outs[operand.name]
        if destination is None:
            return self._fresh(bound, operand)
        bound.results.append((destination, None))
        if isinstance(destination, (tuple, list)):
            return ir.Vector(tuple(_written(bound, operand, variable) for variable in destination))
        return _written(bound, operand, destination)

    def _fresh(self, bound: Binding, operand: Operand) -> ir.Operand:
        if operand.read:
            help = "give variables to it: out=[…], each made by pd.var"
            raise Unfit(Problem(operand.name, f"`{operand.name}` is read and written", help))
        if self.guarded:
            help = "write to a variable that has a value already: `v = pd.var(…)`, out=v"
            raise Unfit(Problem(operand.name, f"`{operand.name}` has no value where the guard is false", help))
        assert operand.type is not None
        told = self._told(bound.opcode, operand)
        wanted = self.type or told
        precise = wanted is not None and compatible(operand.type, register_type(wanted).register)
        held = register_type(wanted if precise and wanted else operand.type).register
        registers = tuple(ir.Register("", held) for _ in range(operand.count))
        bound.fresh += [(r, operand.name) for r in registers]
        bound.results.append((registers if operand.count > 1 else registers[0], told or operand.type))
        return ir.Vector(registers) if operand.vector else registers[0]

    def _told(self, opcode: Opcode, operand: Operand) -> Type | None:
        """Return the type of a destination register beyond its width: that of the exchanged value, or that of the
        table."""
        like = opcode.op.gives.get(operand.name)
        if like is None or operand.type is None or like in TYPES:
            return TYPES.get(like or "")
        takes = [o.name for o in opcode.operands if not o.written]
        source = self.sources[takes.index(like)]
        return source.type if isinstance(source, Scalar) and source.type.bits == operand.type.bits else None


def _is_result(operand: Operand) -> bool:
    """True if an operand is a destination that is not always `_`."""
    return operand.written and operand.type is not None


def register_type(type: Type) -> Type:
    """Return the register type of a value: 8-bit values use 16-bit registers, since only ld, st and cvt take 8 bits."""
    if type.bits != 8:
        return type
    return TYPES[f"{type.kind}16"] if type.is_integer else bits(16)


def _written(bound: Binding, operand: Operand, value: Any) -> Destination:
    if isinstance(value, str) and value == SINK:
        return ir.Sink()
    if not getattr(value, "writable", False):
        shown = f"`{value.name}`, a value that was made once" if isinstance(value, Scalar) else repr(value)
        raise Unfit(Problem(operand.name, f"out= takes variables; found {shown}", "make it with pd.var(type)"))
    if any(value is other for other in bound.written):
        message = f"`{value.name}` is a destination twice: only the last result would be kept"
        help = f"make each a variable of its own: `[pd.var({value.type}) for _ in range(…)]`"
        raise Unfit(Problem(operand.name, message, help))
    bound.written.append(value)
    return value.target()  # type: ignore[no-any-return]


def _source(bound: Binding, operand: Operand, value: object) -> ir.Operand:
    if isinstance(value, (tuple, list)):
        return ir.Vector(tuple(_source(bound, operand, v) for v in value))
    if operand.role == "address":
        return _address(bound, operand, value)
    if isinstance(value, Source):
        return value.scalar(bound, operand)
    if literal.is_number(value):
        return constant(bound, operand, literal.plain(value))
    if isinstance(value, (ir.Label, ir.Variable, ir.Function, ir.Symbol)):
        return value
    raise _unfit(operand, repr(value))


def _unfit(operand: Operand, text: str, help: str | None = None) -> Unfit:
    return Unfit(Problem(operand.name, f"`{operand.name}` is {text}; this form takes {operand.describe()}", help))


def _address(bound: Binding, operand: Operand, value: object) -> ir.Address:
    if isinstance(value, Source):
        return value.address(bound, operand)
    if isinstance(value, ir.Address):
        return value
    raise _unfit(operand, repr(value), "pass a pointer, `array.address(…)`, or the address in a register")


def constant(bound: Binding, operand: Operand, number: int | float) -> ir.Operand:
    """Return a Python number as an operand: a PTX constant if the type has constants, else its bits in a register."""
    type = operand.type
    if type is None:
        if operand.word == "imm" and isinstance(number, int):
            return ir.Immediate(number)
        raise _unfit(operand, repr(number))
    if operand.flag and number in (0, 1):
        return ir.Immediate(int(number))
    if type is pred:
        help = "predicates come from comparisons; what is known while tracing is a Python `if`"
        raise _unfit(operand, repr(number), help)
    if not type.is_float and type.kind != "x" and isinstance(number, int):
        return ir.Immediate(number)
    try:
        encoded = literal.encode(number, type)
    except ValueError as why:
        raise Unfit(Problem(operand.name, f"`{operand.name}` is {number!r}; {why}")) from None
    return encoded if encoded.type else bound.step(f"mov.b{type.bits}", type, encoded)


def _as_operand(bound: Binding, operand: Operand, value: ir.Immediate, type: Type) -> ir.Operand:
    """Return a typed constant as an operand: its bits, as a register of the type would be read."""
    wanted = operand.type
    if wanted is None:
        return constant(bound, operand, literal_of(value, type))
    if wanted.is_float:
        bits = value.value & ((1 << wanted.bits) - 1)
        if wanted.name in ("f32", "f64"):
            return ir.Immediate(bits, wanted)
        return bound.step(f"mov.b{wanted.bits}", wanted, ir.Immediate(bits))
    fits = -(1 << wanted.bits - 1) <= value.value < 1 << wanted.bits  # as the number or as its bits
    if wanted.kind == "x" or (type.is_integer and not fits):
        return bound.step(f"mov.b{type.bits}", type, ir.Immediate(value.value))
    return ir.Immediate(value.value)
