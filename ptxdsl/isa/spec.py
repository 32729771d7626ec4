"""How an instruction is described: its spelling, operands, requirements and meaning in one class.

A `Form` is one line of syntax as the PTX manual prints it, with the operands typed:

    Form("add{.rnd}{.ftz}{.sat}.f32 d=f32, a:f32, b:f32", rnd="rn rz rm rp")
    Form("ld{.weak}.{space}.{type} d=type, [a:space]", …)

- `.name` is a literal or, when `name` is a keyword of the form, a slot with the choices given; `{.name}` is optional.
- `d=type` is written, `a:type` is read, `d+type` is both. A type is the name of a PTX type, a slot that holds one,
  a function of these (`wide(type)`, `bits(type)`), or a word for what is no register: `imm`, `label`, `function`,
  `symbol`, `any`. `*4`, `*vec` stands for `{…}` of that many registers.
- `[a:space]` is an address; `{!}c:pred` may be negated; `{, e:b64}` may be left out; `{|p=pred}` is a second
  destination after a bar.

`Opcode` is a form with its choices made (`add.rn.f32`). It checks operands, and an `Op`'s `run` gives it its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from .. import ir, types
from ..types import TYPES, Type
from . import target

Choices = tuple[Any, ...]
WIDER = {8: 16, 16: 32, 32: 64, 64: 128}
TYPE_FUNCTIONS: dict[str, Callable[[Type], Type]] = {
    "wide": lambda t: TYPES[f"{t.kind}{WIDER[t.bits]}"],
    "bits": lambda t: types.bits(max(8, t.bits)),
    "register": lambda t: t.register,
}
NOT_REGISTERS = ("imm", "label", "function", "symbol", "any", "arguments")


def one_of(choices: str | Iterable[Any]) -> Choices:
    """Choices of a slot: words of a string, those that name a PTX type as that type."""
    words = choices.split() if isinstance(choices, str) else choices
    return tuple(TYPES.get(w, w) if isinstance(w, str) else w for w in words)


@dataclass(frozen=True, slots=True)
class Modifier:
    """One `.word` of a mnemonic: its name in `Opcode`, what it may be, whether it may be left out."""

    name: str
    choices: Choices
    optional: bool
    literal: bool

    @property
    def typed(self) -> bool:
        """Whether it names a type: with several of these, their order says which is which."""
        return not self.optional and any(str(choice) in TYPES for choice in self.choices)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One operand of a form, before its type is known."""

    name: str
    role: str  # "out", "in", "both" or "address"
    type: str
    count: str = ""  # behind `*`
    negatable: bool = False
    optional: bool = False
    paired: bool = False  # printed after a bar, behind the operand before it


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of an opcode: a parameter with its type and count resolved.

    `type` is None for what is no register (`word` says what); `space` is set for addresses. With `vector`, `count`
    registers stand in braces, and arrays have an axis for them in front, even if it is one register.
    """

    name: str
    role: str
    type: Any  # a Type
    count: int
    space: str | None
    word: str
    negatable: bool
    optional: bool
    paired: bool
    vector: bool = False

    @property
    def written(self) -> bool:
        return self.role in ("out", "both")

    @property
    def read(self) -> bool:
        return self.role in ("in", "both", "address")

    def describe(self) -> str:
        """What this operand takes, in words."""
        if self.role == "address":
            return "an address" if self.space in (None, "generic") else f"an address in .{self.space}"
        if self.type is None:
            return {
                "imm": "an integer constant",
                "any": "a register or symbol",
                "arguments": "a list in parentheses",
            }.get(self.word, f"a {self.word}")
        if self.type is types.pred:
            return "a predicate" if self.count == 1 else f"{self.count} predicates"
        if self.type.register is not self.type:
            kind, held = str(self.type.register), f" ({self.type})"
        else:
            kinds = {"b": f"{self.type.bits}-bit", **dict.fromkeys("us", f"{self.type.bits}-bit integer")}
            kind, held = kinds.get(self.type.kind, str(self.type)), ""
        return (f"{_article(kind)} register" if self.count == 1 else f"{self.count} {kind} registers") + held


def _article(words: str) -> str:
    return ("an " if words[0] in "aeio8" or (words[0] in "fs" and words[1:2].isdigit()) else "a ") + words


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that an instruction breaks: the operand it is about ('' for the whole), what, and the mend."""

    operand: str
    message: str
    help: str | None = None


_PARAMETER = re.compile(
    r"(?P<optional>\{[,|]?\s*)?(?P<negatable>\{!\})?(?P<address>\[)?(?P<name>\w+)"
    r"((?P<role>[=:+])(?P<type>[\w:]+(\(\w+\))?)(\*(?P<count>\w+))?)?\]?\}?"
)
_ROLES = {"=": "out", ":": "in", "+": "both"}


class Form:
    """One line of an instruction's syntax, with what it requires.

    `ptx` is the least `.version`, `sm` the least target ("90a" for architecture-specific); `needs` maps a modifier,
    or several that stand together ("v4 b64"), to (ptx, sm) that they require beyond these; `when` says which choices
    go together; `note` is shown by `ptxdsl isa`.
    """

    def __init__(
        self,
        syntax: str,
        *,
        ptx: str = "1.0",
        sm: int | str = 10,
        needs: Mapping[str, tuple[str, int | str]] | None = None,
        when: Callable[[Any], bool] | None = None,
        note: str = "",
        **slots: str | Iterable[Any],
    ) -> None:
        self.syntax, self.note, self.when = syntax, note, when
        mnemonic, _, operands = syntax.partition(" ")
        hidden = slots.keys() & Opcode.__slots__
        assert not hidden, f"{syntax}: Opcode has attributes of its own that are called {hidden}"
        self.requires = requirement(ptx, sm)
        self.needs = {word: requirement(*need) for word, need in (needs or {}).items()}
        self.name, self.modifiers = _modifiers(mnemonic, {k: one_of(v) for k, v in slots.items()})
        self.parameters = _parameters(operands)

    def match(self, words: Sequence[str]) -> dict[str, Any] | None:
        """The choices that spell these modifiers, in any order but that of the types; None if they do not."""
        values: dict[str, Any] = {}
        left, last_type = dict(enumerate(words)), -1
        for modifier in sorted(self.modifiers, key=lambda m: m.optional):
            fits = (n for n, w in left.items() if _chosen(modifier, w) is not None)
            place = next((n for n in fits if n > last_type or not modifier.typed), None)
            if place is not None:
                word = left.pop(place)
                last_type = place if modifier.typed else last_type
                values[modifier.name] = True if modifier.literal else _chosen(modifier, word)
            elif modifier.optional:
                values[modifier.name] = False if modifier.literal else None
            else:
                return None
        if left or (self.when and not self.when(_Choices(values))):
            return None
        return values

    def spellings(self) -> Iterator[str]:
        """Every mnemonic of this form, in the order of the syntax."""
        return map(self.spell, self.combinations())

    def combinations(self) -> Iterator[Choices]:
        """Every choice of all modifiers that `when` permits, in the order of the syntax; None for one left out."""
        spaces = [(*([None] if m.optional else []), *m.choices) for m in self.modifiers]
        for chosen in product(*spaces):
            named = zip(self.modifiers, chosen, strict=True)
            if not self.when or self.when(_Choices({m.name: bool(c) if m.literal else c for m, c in named})):
                yield chosen

    def spell(self, chosen: Choices) -> str:
        """The mnemonic with these choices."""
        return ".".join([self.name, *(str(choice) for choice in chosen if choice is not None)])


class _Choices:
    """Attribute access to slot values, for `when`."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        return None


def _chosen(modifier: Modifier, word: str) -> Any:
    return next((c for c in modifier.choices if str(c) == word), None)


def _modifiers(mnemonic: str, slots: dict[str, Choices]) -> tuple[str, tuple[Modifier, ...]]:
    name, *rest = re.split(r"(\{\.[\w:]+\}|\.[\w:]+)", mnemonic)
    found = []
    for part in filter(None, rest):
        word = part.strip("{}").lstrip(".")
        literal = word not in slots
        found.append(Modifier(word.replace("::", "_"), (word,) if literal else slots[word], part[0] == "{", literal))
    return name, tuple(found)


def _parameters(text: str) -> tuple[Parameter, ...]:
    found = []
    for match in _PARAMETER.finditer(text):
        g = match.groupdict()
        role = "address" if g["address"] else _ROLES[g["role"] or ":"]
        optional = g["optional"] or ""
        found.append(Parameter(
            g["name"], role, g["type"] or ("generic" if role == "address" else "any"), g["count"] or "",
            bool(g["negatable"]), bool(optional), paired="|" in optional or text[: match.start()].endswith("|"),
        ))  # fmt: skip
    return tuple(found)


def requirement(ptx: str, sm: int | str) -> tuple[tuple[int, int], int, str]:
    """("7.8", "90a") as ((7, 8), 90, "a")."""
    major, minor = ptx.split(".")
    number = re.fullmatch(r"(\d+)([af]?)", str(sm))
    assert number, sm
    return (int(major), int(minor)), int(number[1]), number[2]


class Op:
    """An instruction. Subclasses give `forms` and a meaning, and their docstring's first line says what it does.

    `run(i, *inputs)` is the meaning of an instruction that only computes: `i` is the `Opcode` (`i.type`, `i.rnd`, …);
    each input is a numpy array over the active lanes with the dtype of its operand's type (`*n` operands have shape
    (n, lanes); an operand left out is None); it returns the outputs in order, one array or a tuple of them.
    `execute(i, m, *inputs)` replaces it where the machine is touched (memory, control, barriers): `m` is a `step.Step`.
    With `collective`, lanes come as whole warps: arrays of shape (…, warps, 32), `m.active` says which take part.
    `whole_warp` False: lanes that have ended are not waited for (a `membermask` operand says the same of the others).
    `relaxed` lets a register be wider than its operand's type, as ld, st and cvt do.
    `stores` names the address operand through which it writes memory.
    `reads` names the kinds of operands (special registers, variables, …) that it reads beside registers and constants.
    `batchable` lets the machine run k consecutive independent instructions of one opcode at once, by `execute_batch`.
    """

    forms: ClassVar[tuple[Form, ...]] = ()
    collective: ClassVar[bool] = False
    whole_warp: ClassVar[bool] = True
    batchable: ClassVar[bool] = False
    relaxed: ClassVar[bool] = False
    stores: ClassVar[str] = ""
    reads: ClassVar[tuple[type, ...]] = ()
    table: ClassVar[dict[str, list[tuple[Op, Form]]]] = {}
    modifiers: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        own = {modifier.name for form in cls.__dict__.get("forms", ()) for modifier in form.modifiers}
        cls.modifiers = frozenset(own).union(*(getattr(base, "modifiers", ()) for base in cls.__bases__))
        op = cls()
        for form in cls.__dict__.get("forms", ()):
            Op.table.setdefault(form.name, []).append((op, form))

    @property
    def meaning(self) -> str:
        """One line of meaning."""
        return (self.__doc__ or "").strip().partition("\n")[0]

    def problems(self, i: Opcode, operands: Sequence[Any]) -> Iterator[Problem]:
        """Rules beyond types and counts: ranges of constants, alignment, forbidden combinations."""
        return iter(())

    def run(self, i: Opcode, *inputs: Any) -> Any:
        raise NotImplementedError(f"{i.text} has no meaning of its own")

    def execute(self, i: Opcode, m: Any, *inputs: Any) -> Any:
        return self.run(i, *inputs)

    def aligned(self, i: Opcode) -> bool:
        """Of a collective: whether the lanes of a warp must all come to it, and in one place of the program."""
        return all(operand.name != "membermask" for operand in i.operands)

    def execute_batch(self, i: Opcode, m: Any, values: Sequence[Any], index: Sequence[Any]) -> Any:
        """k instructions at once: `execute` with `m.shape` one axis longer, (k, …), in inputs and outputs alike.

        Operands that repeat are handed over once: `values[j]` holds the distinct ones of input j, (d, …) or (n, d, …)
        for a `*n` operand, and `index[j]`, k integers, says which of them each instruction takes; None: it is left out.
        """
        inputs = [v if x is None else np.take(v, x, -len(m.shape)) for v, x in zip(values, index, strict=True)]
        return self.execute(i, m, *inputs)


@dataclass(slots=True, eq=False)
class Opcode:
    """A mnemonic with all choices made: `add.rn.f32`. Slot values are attributes: `i.rnd`, `i.type`, `i.ftz`."""

    text: str
    op: Op
    form: Form
    values: dict[str, Any]
    operands: tuple[Operand, ...]
    requires: tuple[tuple[int, int], int, str] = field(init=False)

    def __post_init__(self) -> None:
        words = set(self.text.split("."))
        needed = [self.form.requires, *(n for w, n in self.form.needs.items() if words.issuperset(w.split()))]
        version = max(n[0] for n in needed)
        self.requires = (version, *max((n[1], n[2]) for n in needed))

    def __getattr__(self, name: str) -> Any:
        """A modifier's choice; None where this form has no such modifier but another form of the instruction has."""
        if name not in self.op.modifiers:
            raise AttributeError(f"{self.text} has no modifier {name!r}")
        return self.values.get(name)

    def problems(self, operands: Sequence[Any]) -> Iterator[Problem]:
        """Every rule that these operands (in PTX order, destinations first) break."""
        bound = self.bind(operands)
        if isinstance(bound, Problem):
            yield bound
            return
        for operand, value in zip(self.operands, bound, strict=True):
            if value is not None:
                yield from check_operand(self, operand, value)
        yield from self.op.problems(self, bound)

    def bind(self, operands: Sequence[Any]) -> list[Any] | Problem:
        """Operands by their place in `self.operands`, None for those left out; a Problem if their number is wrong."""
        flat = list(_unpaired(self.operands, operands))
        flat += [None] * (len(self.operands) - len(flat))
        lacking = (v is None and not o.optional for o, v in zip(self.operands, flat, strict=False))
        if len(flat) > len(self.operands) or any(lacking):
            names = ", ".join(f"[{o.name}]" if o.optional else o.name for o in self.operands)
            return Problem("", f"takes {names or 'no operands'}; {len(operands)} given")
        return flat

    def supports(self, arch: str) -> bool:
        """Whether this form exists on a target such as sm_90a."""
        return target.has(arch, *self.requires[1:])


def _unpaired(declared: Sequence[Operand], given: Sequence[Any]) -> Iterator[Any]:
    """Given operands with `d|p` taken apart; None where an optional second destination is missing."""
    values = iter(given)
    index = 0
    for value in values:
        takes_pair = index + 1 < len(declared) and declared[index + 1].paired
        yield value.first if isinstance(value, ir.Pair) else value
        if takes_pair:
            yield value.second if isinstance(value, ir.Pair) else None
        index += 2 if takes_pair else 1


_WORDS: dict[str, Any] = {"label": ir.Label, "function": (ir.Function, ir.Symbol), "arguments": ir.Arguments}


def check_operand(i: Opcode, operand: Operand, value: Any) -> Iterator[Problem]:
    """What is wrong with one operand: kind, width, type, number of registers."""
    if isinstance(value, ir.Sink):
        if not operand.written:
            yield Problem(operand.name, f"`{operand.name}` is read, so it cannot be `_`")
    elif operand.role == "address":
        yield from _check_address(operand, value)
    elif operand.type is None:
        if operand.word == "imm" and not (isinstance(value, ir.Immediate) and value.type is None):
            yield Problem(operand.name, f"`{operand.name}` is {found(value)}; it must be an integer constant")
        elif operand.word in _WORDS and not isinstance(value, _WORDS[operand.word]):
            yield Problem(operand.name, f"`{operand.name}` is {found(value)}; this form takes {operand.describe()}")
    elif operand.count > 1 or isinstance(value, ir.Vector):
        yield from _check_vector(i, operand, value)
    else:
        yield from _check_scalar(i, operand, value)


def _check_address(operand: Operand, value: Any) -> Iterator[Problem]:
    if not isinstance(value, ir.Address):
        yield Problem(operand.name, f"`{operand.name}` is {found(value)}; it must be an address in brackets")
    elif isinstance(value.base, ir.Register) and not (
        value.base.type.bits in (32, 64) and value.base.type.kind in "bus"
    ):
        yield Problem(operand.name, f"`{operand.name}` is {found(value.base)}; an address is a 32- or 64-bit integer")
    elif isinstance(value.base, ir.Register) and value.base.type.bits == 32 and operand.space in ("global", "generic"):
        yield Problem(
            operand.name,
            f"`{operand.name}` is {found(value.base)}; an address in .{operand.space} has 64 bits",
        )
    elif isinstance(value.base, ir.Variable) and operand.space not in (None, "generic"):
        home, wanted = (space.partition("::")[0] for space in (value.base.space, operand.space))
        if home != wanted:
            message = f"`{operand.name}` is `{value.base}` in .{home}; this instruction takes an address in .{wanted}"
            yield Problem(operand.name, message)


def _check_vector(i: Opcode, operand: Operand, value: Any) -> Iterator[Problem]:
    given = len(value.elements) if isinstance(value, ir.Vector) else 1
    if given != operand.count:
        yield Problem(
            operand.name,
            f"`{operand.name}` has {given} register{'s' * (given != 1)}; this form takes {operand.count}",
        )
        return
    elements = value.elements if isinstance(value, ir.Vector) else (value,)
    checked = (_check_scalar(i, operand, e) for e in elements if not isinstance(e, ir.Sink))
    yield from dict.fromkeys(problem for problems in checked for problem in problems)


def _check_scalar(i: Opcode, operand: Operand, value: Any) -> Iterator[Problem]:
    assert operand.type is not None
    if isinstance(value, ir.Not):
        if not operand.negatable:
            yield Problem(operand.name, f"`{operand.name}` cannot be negated here")
        value = value.register
    if isinstance(value, ir.Immediate):
        yield from _check_immediate(operand, value)
    elif not isinstance(value, (ir.Register, () if operand.written else i.op.reads)):
        help = "copy it to a register first, with mov" if isinstance(value, _NAMED) else None
        yield _mismatch(operand, value, help)
    elif isinstance(value, (ir.Register, ir.SpecialRegister)) and not compatible(
        operand.type, value.type, i.op.relaxed
    ):
        yield _mismatch(operand, value)


def _mismatch(operand: Operand, value: Any, help: str | None = None) -> Problem:
    one = replace(operand, count=1)
    return Problem(operand.name, f"`{operand.name}` is {found(value)}; this form takes {one.describe()}", help)


_NAMED = (ir.SpecialRegister, ir.Variable, ir.Symbol, ir.Offset)


def _check_immediate(operand: Operand, value: ir.Immediate) -> Iterator[Problem]:
    assert operand.type is not None
    type_, name = operand.type, operand.name
    if operand.written:
        yield Problem(name, f"`{name}` is written, so it cannot be a constant")
    elif type_.kind == "x" or (type_.is_float and type_ not in (types.f32, types.f64)):
        yield Problem(name, f"`{name}` is a constant; this form takes {operand.describe()}")
    elif value.type is not None and (type_.is_integer or (type_.kind == "b" and type_.bits != value.type.bits)):
        yield Problem(name, f"`{name}` is a floating constant; this form takes {operand.describe()}")
    elif value.type is None and type_.is_float:
        yield Problem(name, f"`{name}` is an integer constant; this form takes {type_}", f"write {value.value}.0")
    elif value.type is None and type_ is not types.pred and not _fits(value.value, type_):
        yield Problem(name, f"`{name}` is {value.value}, which does not fit {type_}")


def _fits(value: int, type: Type) -> bool:
    """Whether a type has a constant; a 64-bit constant may stand for the negative number with its bits."""
    width = max(type.bits, 8)
    if width < 64 and value >= 1 << 63:
        value -= 1 << 64
    return -(1 << width - 1) <= value < 1 << width


def found(value: Any) -> str:
    """A value as a sentence names it: 'an f32 register', 'a constant'."""
    if isinstance(value, ir.SpecialRegister):
        return f"{value}, a special {value.type} register"
    if isinstance(value, ir.Register):
        return "a predicate" if value.type is types.pred else f"{_article(str(value.type))} register"
    kinds = {ir.Immediate: "a constant", ir.Vector: "a vector", ir.Address: "an address", ir.Label: "a label"}
    return kinds.get(type(value), f"a {type(value).__name__.lower()}")


def compatible(wanted: Type, given: Type, relaxed: bool = False) -> bool:
    """Whether a `given` register may stand where `wanted` is taken (PTX ISA, "Operand Type Checking").

    Types that no register has (bf16, tf32, bf16x2, e4m3x2, …) live in untyped registers of their width.
    """
    if wanted is given or types.pred in (wanted, given):
        return wanted is given
    plain = wanted.register is wanted and wanted.kind != "x"
    if given.bits != max(wanted.bits, 8 if relaxed else 16) and not (relaxed and plain and given.bits > wanted.bits):
        return False
    if wanted.kind == "b" or given.kind == "b":
        return True
    return wanted.is_integer and given.is_integer


def resolve(parameter: Parameter, values: dict[str, Any]) -> Operand:
    """A parameter with the slot values put in."""
    space, type_, word = None, None, ""
    if parameter.role == "address":
        chosen = values.get(parameter.type, parameter.type)  # a slot's choice; True for a literal modifier
        space = parameter.type if chosen is True else chosen or "generic"
    elif parameter.type in NOT_REGISTERS:
        word = parameter.type
    else:
        type_ = _resolve_type(parameter.type, values)
    vector = parameter.count.isdigit() or bool(values.get(parameter.count))
    count = _resolve_count(parameter.count, values) if vector else 1
    return Operand(
        parameter.name,
        parameter.role,
        type_,
        count,
        space,
        word,
        parameter.negatable,
        parameter.optional,
        parameter.paired,
        vector,
    )


def _resolve_type(text: str, values: dict[str, Any]) -> Type:
    function, _, inner = text.rstrip(")").partition("(")
    if inner:
        return TYPE_FUNCTIONS[function](_resolve_type(inner, values))
    found_ = TYPES.get(text) or values.get(text)
    assert isinstance(found_, Type), f"{text} is no type"
    return found_


def _resolve_count(text: str, values: dict[str, Any]) -> int:
    return int(text if text.isdigit() else re.sub(r"\D", "", str(values[text])))


_found: dict[str, tuple[Opcode, ...]] = {}


def lookup(text: str) -> tuple[Opcode, ...]:
    """Every opcode that a mnemonic may mean (operands decide between them); empty if the table has none."""
    if text not in _found:
        name, *words = text.split(".")
        _found[text] = tuple(
            Opcode(text, op, form, values, tuple(resolve(p, values) for p in form.parameters))
            for op, form in Op.table.get(name, ())
            if (values := form.match(words)) is not None
        )
    return _found[text]


def choose(text: str, operands: Sequence[Any]) -> Opcode | None:
    """The opcode of this mnemonic that these operands fit, or come nearest to; None if the mnemonic is unknown."""
    candidates = lookup(text)
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    fitting = (c for c in candidates if next(c.problems(operands), None) is None)
    return next(fitting, None) or min(candidates, key=lambda c: _distance(c, operands))


def _distance(candidate: Opcode, operands: Sequence[Any]) -> tuple[bool, int, int]:
    """How far operands are from what an opcode takes: a wrong number of them, problems, braces in the wrong places."""
    bound = candidate.bind(operands)
    if isinstance(bound, Problem):
        return True, 0, 0
    braces = sum(o.vector != isinstance(v, ir.Vector) for o, v in zip(candidate.operands, bound, strict=True))
    return False, len(list(candidate.problems(operands))), braces


def as_bits(array: np.ndarray, type: Type) -> np.ndarray:
    """The same bits as unsigned integers of the type's width."""
    return array.view(np.dtype(f"u{type.bits // 8}"))
