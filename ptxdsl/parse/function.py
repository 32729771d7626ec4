"""Function bodies: scopes and names, statements, and source locations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lark import Token

from ptxdsl.errors import Location, ParseError
from ptxdsl.ir import (
    COMPONENTS,
    Directive,
    Function,
    Instruction,
    Item,
    Label,
    Not,
    Operand,
    Register,
    Scope,
    Variable,
    Vector,
    element_names,
    text_at,
)
from ptxdsl.isa import choose, lookup
from ptxdsl.isa.opaque import opaque
from ptxdsl.isa.target import FLUSHING
from ptxdsl.parse import constants
from ptxdsl.parse.declarations import (
    MOST_NUMBERED,
    Declarations,
    Declared,
    counted,
    declared,
    label,
    pragma,
    vector_parameters,
)
from ptxdsl.parse.operands import (
    UNUSUAL,
    Indexed,
    OperandReader,
    Read,
    Sum,
    number_in,
)
from ptxdsl.parse.syntax import MOST_NESTED, Node, is_rule, is_token
from ptxdsl.types import TYPES, Type, f32, s16, s32, s64, u16, u32, u64

MOST_PENDING = 256
"""Maximum count of a register family in a nested scope that is created before use."""

LONGEST_NAME = 1000
"""Maximum length of a register name with leading zeros in its number."""

MOST_OPCODES = 1 << 16
_opcodes: dict[tuple[Any, ...], Any] = {}
"""Cache of opcodes by mnemonic and operand shapes, for all modules."""

_HEAD = re.compile(r"(?:@\s*(?:(!)\s*)?([\w$%]+)\s+)?([a-zA-Z][\w.:]*)\s*", re.ASCII)
_NAME = re.compile(r"[\w$]+", re.ASCII)
_INTEGERS = {16: u16, 32: u32, 64: u64}
_ADDED = (u16, u32, u64, s16, s32, s64)


@dataclass(frozen=True, slots=True)
class Pending:
    """A register declared in a nested scope, created on first use."""

    name: str
    type: Type


class Family:
    """The registers of a declaration such as `r<1000>`, with the names of those already created."""

    def __init__(self, prefix: str, declared: Declared, count: int, nested: bool, complete: bool) -> None:
        self.prefix, self.declared, self.count, self.nested = prefix, declared, count, nested
        self.complete = complete  # all are already created
        self.names: list[str] = []
        self.position = 0  # among the function's registers, where those made later belong

    def has(self, name: str) -> bool:
        """True if the family contains a register of this name, written without leading zeros."""
        number = number_in(name, self.prefix)
        return number is not None and number < self.count


def _stem(name: str) -> str:
    return name.rstrip("0123456789")


def _by_stem(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names grouped by their prefix before trailing digits."""
    stems: dict[str, list[str]] = {}
    for name in names:
        stems.setdefault(_stem(name), []).append(name)
    return stems


def _family_of(name: str, families: Mapping[str, Family]) -> Family | None:
    """Return the family, of those in a mapping from prefixes, that declares `name`."""
    starts = range(len(_stem(name)), len(name)) if families else ()
    return next((f for start in starts if (f := families.get(name[:start])) and f.has(name)), None)


class FunctionReader(OperandReader):
    """The reader of one function body."""

    def __init__(self, module: Declarations, function: Function) -> None:
        super().__init__(module.source, module.names)
        self.module, self.function = module, function
        self.location: Location | None = None
        self.sites: dict[tuple[str, ...], Location] = {}
        self.variables: dict[int, list[Variable]] = {}
        self.families: dict[str, Family] = {}  # families of the function's own scope that are made when used, by prefix
        self.listed: set[Label] = set()  # lists of targets and prototypes that the text has declared so far
        self.late: list[tuple[int, int, list[Register]]] = []  # their members: where they belong, number, registers
        self.depth = self.origin = 0

    def fill(self, tree: Node) -> None:
        """Read the body of the function that `tree` declares."""
        body = tree.children[-1]
        self.origin = next(filter(is_token, tree.children)).start_pos or 0
        self._name_parameters(tree)
        self._reserve(body, nested=False)
        self._declare(body, nested=False)
        self.function.body = self._statements(body)
        self._place_late()

    def _place_late(self) -> None:
        """Move the members of families to where the families are declared, so that printing keeps their order."""
        registers = self.function.registers
        for position, _, members in sorted(self.late, key=lambda late: late[:2], reverse=True):
            registers[position:position] = members

    def _name_parameters(self, tree: Node) -> None:
        for parameter in [*self.function.parameters, *self.function.returns]:
            if parameter.name in self.names and parameter.name != "_":
                name = next(filter(is_token, reversed(tree.children[:-1])))
                raise self.source.mistake(
                    name, f"`{name}` has two parameters `{parameter.name}`", "rename one of the two"
                )
            self.names[parameter.name] = parameter
            self.function.names[parameter.name] = 0
        for name, count in vector_parameters(tree):
            parts = [self.names[element] for element in element_names(name, count)]
            self.names |= _vector(name, parts)

    def _reserve(self, tree: Node, nested: bool) -> None:
        """Reserve the names that must not change: all except registers and labels in nested scopes."""
        for child in tree.children:
            if is_token(child):
                if child.type == "LABEL" and not nested:
                    self.function.names[label(child)] = 0
            elif child.data == "body":
                self._check_depth(child)
                self._reserve(child, nested=True)
                self.depth -= 1
            elif child.data == "local" and not (nested and child.children[0] == ".reg"):
                self.function.names.update((str(d.children[0]), 0) for d in child.children if is_rule(d, "declarator"))

    def _check_depth(self, scope: Node) -> None:
        self.depth += 1
        if self.depth == MOST_NESTED:
            first = next(scope.scan_values(is_token), None)
            raise self.source.too_deep(self.origin if first is None else first.start_pos or 0, "scope")

    def _unique(self, hint: str) -> str:
        """Return a free name for something of a nested scope that moves to the function's scope."""
        name = self.function.unique(hint)
        while name in self.outer or _family_of(name, self.families):
            name = self.function.unique(hint)
        return name

    def lookup(self, name: str) -> Operand | None:
        pending = self.names.get(name)
        if isinstance(pending, Pending):
            self.names[name] = self._new(pending.name, pending.type)
        return super().lookup(name)

    def _new(self, hint: str, type: Type) -> Register:
        register = Register(self._unique(hint), type)
        self.function.registers.append(register)
        return register

    def _declare(self, tree: Node, nested: bool) -> dict[str, Any]:
        """Declare the names of a scope; return the entities that they hide, None for a name that hides nothing."""
        hidden: dict[str, Any] = {}
        families = {} if nested else self.families
        parameters = () if nested else dict(self.names)
        outer: dict[str, list[str]] | None = None  # built when a family needs it: most scopes have none
        stems: dict[str, list[str]] = {}
        for name, token, entity in self._declarations(tree, nested):
            self.source.check_name(token, name.removesuffix("<>"))
            if name in hidden or name in parameters or _family_of(name, families):
                raise self._twice(token, name)
            hidden[name] = self.names.get(name)
            stems.setdefault(_stem(name), []).append(name)
            if isinstance(entity, Family) and not entity.complete:
                families[entity.prefix] = entity
                entity.position = len(self.function.registers)
                stem = _stem(entity.prefix)
                if twice := next(filter(entity.has, stems.get(stem, ())), None):
                    raise self._twice(token, twice)
                outer = _by_stem(self.names) if outer is None else outer
                hidden |= self._hide(entity, [other for other in outer.get(stem, ()) if other not in hidden])
            self.names[name] = entity
        return hidden

    def _twice(self, token: Token, name: str) -> ParseError:
        shown = name.replace("<>", "<n>")
        return self.source.mistake(token, f"`{shown}` is declared twice in this scope", "rename one of the two")

    def _hide(self, family: Family, candidates: list[str]) -> dict[str, Any]:
        """Remove and return the names of outer scopes that a family hides."""
        return {name: self.names.pop(name) for name in candidates if name in self.names and family.has(name)}

    def _declarations(self, tree: Node, nested: bool) -> Iterator[tuple[str, Token, Any]]:
        for child in tree.children:
            if is_token(child):
                if child.type == "LABEL":
                    name = label(child)
                    yield name, child, Label(self._unique(name) if nested else name)
            elif child.data == "local":
                yield from self._declarators(child, nested)
            elif child.data in ("targets", "prototype"):
                name = label(child.children[0])
                yield name, child.children[0], Label(self._unique(name) if nested else name)

    def _declarators(self, tree: Node, nested: bool) -> Iterator[tuple[str, Token, Any]]:
        space, attributes, *declarators = tree.children
        for declarator in declarators:
            token, *rest = declarator.children
            if space == ".reg":
                words = declared(self.source, space, attributes.children, token)
                yield from ((name, token, entity) for name, entity in self._registers(words, token, rest, nested))
            else:
                variables = self.module.variables(space, attributes, declarator)
                self.variables[id(declarator)] = variables
                yield from ((variable.name, token, variable) for variable in variables)

    def _registers(self, declared: Declared, token: Token, rest: list[Node], nested: bool) -> Iterator[tuple[str, Any]]:
        """Yield registers by name; `%r<3>` is three, and a family that also finds `%r01`."""
        if any(is_rule(c, "initial") for c in rest):
            raise self.source.mistake(
                token, f"`{token}` is a register, which takes no initial value", "write it with mov"
            )
        count = counted(self.source, token, rest)
        if count is None:
            yield from self._register(str(token), declared, nested).items()
            return
        complete = self._is_complete(count, nested)
        names = [f"{token}{number}" for number in range(count if complete else 0)]
        if nested or declared.vector > 1:
            yield from (entry for name in names for entry in self._register(name, declared, nested).items())
        else:
            yield from zip(names, self._scalars(names, declared.type), strict=True)
        yield f"{token}<>", Family(str(token), declared, count, nested, complete)

    def _is_complete(self, count: int, nested: bool) -> bool:
        """True if all registers of a family are created at once, so that unused ones are printed again."""
        if nested:
            return count <= MOST_PENDING
        self.module.registers += count
        return self.module.registers <= MOST_NUMBERED

    def _register(self, name: str, declared: Declared, nested: bool) -> dict[str, Any]:
        """Create a register by name; a vector register becomes one register per element."""
        if (count := declared.vector) > 1:
            vector = self._unique(name) if nested else name
            self.function.names.setdefault(vector, 0)
            elements = [Register(each, declared.type, count) for each in element_names(vector, count)]
            self.function.registers += elements
            return _vector(name, elements)
        if nested:
            return {name: Pending(name, declared.type)}
        return {name: self._scalars([name], declared.type)[0]}

    def _scalars(self, names: list[str], type: Type) -> list[Register]:
        """Create registers of the function, with their names in the text."""
        registers = [Register(name, type) for name in names]
        self.function.names |= dict.fromkeys(names, 0)
        self.function.registers += registers
        return registers

    def member(self, name: str) -> Operand | None:
        """Return a register of a family that is not created yet, or is written with leading zeros."""
        if len(name) > LONGEST_NAME:
            return None
        for start in range(len(name.rstrip("0123456789")), len(name)):
            family = self.names.get(f"{name[:start]}<>")
            if family is None:
                continue
            number = number_in(name, name[:start], zeros=True)
            if number is not None and number < family.count:
                return self._member(family, f"{name[:start]}{number}")
        return None

    def _member(self, family: Family, name: str) -> Operand | None:
        if name not in self.names:
            registers = self.function.registers
            before = len(registers)
            self.names |= self._register(name, family.declared, family.nested)
            family.names.append(name)
            if not family.nested:
                self.late.append((family.position, int(name.removeprefix(family.prefix)), registers[before:]))
                del registers[before:]
        return self.lookup(name)

    def _statements(self, tree: Node) -> list[Item]:
        items: list[Item] = []
        for child in tree.children:
            if type(child) is not Token:
                items += getattr(self, f"_{child.data}")(child)
            elif child.type == "INSTRUCTION":
                self._instruction(child, items)
            elif child.type == "LABEL":
                items.append(self.names[label(child)])
            else:
                self._locate(child)
        return items

    def _body(self, tree: Node) -> Iterator[Scope]:
        """Enter a nested scope: its names hide outer ones until it ends."""
        hidden = self._declare(tree, nested=True)
        memo = self.memo
        if hidden:
            self.memo = {}
        scope = Scope(self._statements(tree))
        self.memo = memo
        for name in list(hidden):
            if isinstance(family := self.names.get(name), Family):
                hidden = dict.fromkeys(family.names) | hidden
        for name, entity in hidden.items():
            self.names.pop(name, None)
            if entity is not None:
                self.names[name] = entity
        yield scope

    def _local(self, tree: Node) -> Iterator[Variable]:
        for declarator in tree.children[2:]:
            yield from self.variables.get(id(declarator), ())

    def _pragma(self, tree: Node) -> Iterator[Directive]:
        yield pragma(tree)

    def _targets(self, tree: Node) -> Iterator[Directive]:
        name, kind, *names = tree.children
        yield Directive(str(kind)[1:], tuple(map(self._target, names)), self._list(name))

    def _list(self, name: Token) -> Label:
        """Return the label of a list of targets or of a prototype; instructions after it may name it."""
        self.listed.add(self.names[label(name)])
        return self.names[label(name)]  # type: ignore[no-any-return]

    def _target(self, name: Token) -> Operand:
        target = self.lookup(str(name))
        if target is None:
            raise self.undeclared(str(name), name.start_pos or 0)
        return target

    def _prototype(self, tree: Node) -> Iterator[Directive]:
        name, *signature = tree.children
        yield Directive("callprototype", (self.module.signature(signature, "func"),), self._list(name))

    def _locate(self, token: Token) -> None:
        """Set the location of subsequent statements from `.loc`. Without a `.file` the line of the PTX is kept."""
        index, line, column, *inlined = _NAME.findall(token[4:])
        file = self.module.files.get(int(index))
        if file is None:
            self.location = None
            return
        columns = (int(column) - 1, int(column)) if int(column) else (0, 0)
        name, caller = self.function.name, None
        if inlined:
            _, entry, *offset = inlined[:-4]
            name = text_at(self.module.strings.get(entry, b"")[int(offset[0]) if offset else 0 :])
            caller = self._caller(*inlined[-3:])
        self.location = Location(file, int(line), columns, name, caller)
        self.sites[index, line, column] = self.location

    def _caller(self, index: str, line: str, column: str) -> Location:
        """Return the location of a call: an earlier location in the text, with the calls that led to it."""
        columns = (int(column) - 1, int(column)) if int(column) else (0, 0)
        plain = Location(self.module.files.get(int(index), ""), int(line), columns, self.function.name)
        return self.sites.get((index, line, column), plain)

    def _instruction(self, token: Token, items: list[Item]) -> None:
        head = _HEAD.match(token)
        if head is None:
            raise self._bad_head(token)
        negated, guard, mnemonic = head.groups()
        if self.module.flushes:
            mnemonic = _flushing(mnemonic)
        start, end = head.end(), token.rindex(";")
        read = self._operands(token, mnemonic, start, end) if end > start else ()
        operands, shapes = zip(*read, strict=True) if read else ((), ())
        if mnemonic.startswith(("brx", "call")) and isinstance(operands[-1], Label):
            self._check_listed(token, operands[-1], mnemonic)
        shapes = (mnemonic, *shapes)
        opcode: Any = _opcodes.get(shapes)
        instruction = Instruction(
            opcode,
            operands,
            self._guard(token, negated, guard) if guard else None,
            self.location or Location(self.source.name, token.line or 0),
        )
        if opcode is None:
            self._choose(token, mnemonic, instruction, shapes, items)
        items.append(instruction)

    def _check_listed(self, token: Token, used: Label, mnemonic: str) -> None:
        """Refuse a list of targets or a prototype that is declared further down, as assemblers do."""
        if used in self.listed:
            return
        name = token.rstrip("; \t\n").rpartition(",")[2].strip()
        directive = "branchtargets" if mnemonic.startswith("brx") else "callprototype"
        position = (token.start_pos or 0) + token.rfind(name)
        message = f"`{name}` is not a list of targets or a prototype that is declared above"
        raise self.source.error(position, len(name), message, f"write `{name}: .{directive} …;` before this line")

    def _operands(self, token: Token, mnemonic: str, start: int, end: int) -> list[Read]:
        origin = (token.start_pos or 0) + start
        try:
            return (self.call if mnemonic.startswith("call") else self.read)(token[start:end], origin)
        except ParseError:
            if missing := self.source.missing_semicolon(token.start_pos or 0, origin + end - start):
                raise missing from None
            raise

    def _choose(
        self, token: Token, mnemonic: str, instruction: Instruction, shapes: tuple[Any, ...], items: list[Item]
    ) -> None:
        """Look up the opcode, and cache it if the operands need no other treatment."""
        if UNUSUAL.isdisjoint(shapes):
            if len(_opcodes) > MOST_OPCODES:
                _opcodes.clear()
            opcode: Any = choose(mnemonic, instruction.operands) or opaque(mnemonic)
            instruction.opcode = _opcodes[shapes] = opcode
            return
        sums = tuple(self._sum(token, operand, instruction, items) for operand in instruction.operands)
        operands = _addressed(mnemonic, sums)
        opcode = choose(mnemonic, operands) or opaque(mnemonic)
        instruction.opcode, instruction.operands = opcode, _singles(opcode, operands)

    def _sum(self, token: Token, operand: Any, user: Instruction, items: list[Item]) -> Any:
        """Compute `r+4`, which ptxas accepts as an integer value, with an instruction before the one that uses it."""
        if not isinstance(operand, Sum):
            return operand
        register = operand.register
        type = _INTEGERS.get(register.type.bits) if register.type.kind == "b" else register.type
        if type not in _ADDED:
            raise self.source.error(
                (token.start_pos or 0) + max(0, token.find(register.name)),
                len(register.name),
                f"`{operand}` adds to a .{register.type} register; only integer registers allow that",
                "add it with a separate instruction",
            )
        result = self._new(register.name, register.type)
        (add,) = lookup(f"add.{type}")
        constant = constants.signed(operand.constant, type)
        items.append(Instruction(add, (result, register, constant), user.guard, user.location))
        return result

    def _guard(self, token: Token, negated: str, name: str) -> Register | Not:
        register = self.lookup(name)
        position = (token.start_pos or 0) + token.index(name)
        if register is None:
            raise self.undeclared(name, position)
        if not isinstance(register, Register):
            raise self.source.error(position, len(name), f"`{name}` guards an instruction, but is not a register")
        return Not(register) if negated else register

    def _bad_head(self, token: Token) -> ParseError:
        return self.source.mistake(token, "expected an instruction after its guard", "write `@p add.u32 …;`")


@lru_cache(maxsize=1024)
def _flushing(mnemonic: str) -> str:
    """Return f32 arithmetic of the oldest targets in the spelling of later ones, with .ftz."""
    name, *words = mnemonic.split(".")
    if "ftz" in words or words[-1:] != ["f32"]:
        return mnemonic
    first = next(n for n, word in enumerate(words) if word in TYPES)
    spelled = ".".join([name, *words[:first], "ftz", *words[first:]])
    exists = any(opcode.requires.supports(FLUSHING[-1]) for opcode in lookup(spelled))
    return spelled if exists else mnemonic


def _vector(name: str, parts: list[Any]) -> dict[str, Any]:
    """Return the names of a vector register: `v` for all elements, `v.x` or `v.r` for one."""
    components = zip(COMPONENTS, parts, strict=False)
    return {name: Vector(tuple(parts)), **{f"{name}.{c}": part for names, part in components for c in names}}


def _addressed(mnemonic: str, operands: tuple[Any, ...]) -> tuple[Operand, ...]:
    """Convert `array[1]` to an address in memory if the instruction takes one, else to a value."""
    if not any(isinstance(operand, Indexed) for operand in operands):
        return operands
    addresses = tuple(o.address() if isinstance(o, Indexed) else o for o in operands)
    opcode = choose(mnemonic, addresses)
    if opcode is not None and next(opcode.problems(addresses), None) is None:
        return addresses
    return tuple(o.value() if isinstance(o, Indexed) else o for o in operands)


def _singles(opcode: Any, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Convert decimals, which are doubles, to f32 if the instruction takes f32."""
    bound = opcode.bind(operands)
    if not isinstance(bound, list):
        return operands
    single = {id(value) for operand, value in zip(opcode.operands, bound, strict=False) if operand.type is f32}
    return tuple(constants.as_f32(o) if id(o) in single and constants.is_double(o) else o for o in operands)
