"""PTX text as ir: whole modules, as compilers print them and people write them. No text is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lark import Token

from ptxdsl.errors import Location, ParseError
from ptxdsl.ir import (
    Directive,
    Function,
    Immediate,
    Instruction,
    Item,
    Label,
    Module,
    Not,
    Operand,
    Register,
    Scope,
    Section,
    Setting,
    Variable,
    Vector,
    text_at,
)
from ptxdsl.isa import choose
from ptxdsl.isa.opaque import opaque
from ptxdsl.parse import constants
from ptxdsl.parse.operands import DOUBLE, Operands, Pending
from ptxdsl.parse.syntax import Node, Source, is_rule, is_token
from ptxdsl.types import TYPES, Type, f32, f64, samplerref, surfref, texref

_HEAD = re.compile(r"(?:@\s*(!?)\s*([\w$%]+)\s+)?([a-zA-Z][\w.:]*)\s*")
_NAME = re.compile(r"[\w$]+")
_DECLARABLE = TYPES | {type.name: type for type in (texref, samplerref, surfref)}
_COMPONENTS = ("xr", "yg", "zb", "wa")
"""Names of the elements of a vector register."""


def parse(text: str, *, file: str = "<ptx>") -> Module:
    """A module from its text.

    Each instruction's location is the `.loc` in force, or its line in `file` where the text has none. An instruction
    that the table does not know stays as `isa.opaque.Opaque`.
    Raises ParseError with line, column and what was expected.
    """
    return _ModuleReader(Source(text, file)).read()


@dataclass(slots=True)
class _Declared:
    """The words of a declaration before its names."""

    space: str
    type: Type
    vector: int = 1
    align: int | None = None
    words: list[str] = field(default_factory=list)


class _ModuleReader:
    """Makes all functions and variables first, so that bodies may name what stands below them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: dict[str, Operand] = {}
        self.files: dict[int, str] = {}
        self.strings: dict[str, bytes] = {}
        self.initials: list[tuple[Variable, Any]] = []
        self.operands = Operands(source, self.names)

    def read(self) -> Module:
        version, target, *rest = self.source.module().children
        major, minor = version.children[0].split(".")
        module = Module(tuple(map(str, target.children)), (int(major), int(minor)))
        later = []
        for tree in rest:
            if tree.data == "address_size":
                module.address_size = int(tree.children[0])
            elif tree.data == "function":
                function = self._function(tree)
                module.items.append(function)
                later.append((function, tree))
            else:
                module.items += getattr(self, f"_{tree.data}")(tree)
        self._resolve_aliases(module)
        for function, tree in later:
            if function.body is not None:
                _FunctionReader(self, function).fill(tree.children[-1])
        self._read_initials()
        return module

    def _resolve_aliases(self, module: Module) -> None:
        for item in module.items:
            if isinstance(item, Directive) and item.name == "alias":
                item.arguments = tuple(map(self._named, item.arguments))

    def _read_initials(self) -> None:
        """Initial values, which may name anything in the module."""
        for variable, tree in self.initials:
            variable.initial = self._value(tree, variable.type)

    def _function(self, tree: Node) -> Function:
        linkage, rest = _linkage(tree)
        kind, *signature = rest
        has_body = is_rule(signature[-1], "body")
        function = self.signature(signature[:-1] if has_body else signature, str(kind)[1:])
        function.linkage, function.body = linkage, [] if has_body else None
        self._declare(next(filter(is_token, signature)), function, has_body)
        return function

    def _declare(self, name: Token, entity: Function | Variable, defined: bool) -> None:
        """A name may be declared often, and defined once; the definition is what others mean."""
        known = self.names.get(entity.name)
        if defined and isinstance(known, Function) and known.body is not None:
            raise self.source.mistake(name, f"`{name}` is defined twice", "rename one of the two")
        if defined or known is None:
            self.names[entity.name] = entity

    def signature(self, parts: list[Any], kind: str) -> Function:
        """A function without its body from `results name parameters properties`."""
        results, name, parameters, *properties = parts
        return Function(
            str(name),
            kind,
            parameters=[self._parameter(p) for p in parameters.children],
            returns=[self._parameter(p) for p in results.children],
            directives=[d for p in properties for d in self._property(p)],
            body=None,
        )

    def _parameter(self, tree: Node) -> Variable | Register:
        space, *words, name = [c for c in tree.children if not is_rule(c, "extent")]
        declared = self.declared(space, words, name)
        if declared.space == "reg":
            if declared.vector > 1:
                raise self.source.mistake(
                    name, f"`{name}` is a vector register, which no parameter can be", "pass its elements"
                )
            return Register(str(name), declared.type)
        return self.variable(declared, str(name), [c for c in tree.children if is_rule(c, "extent")])

    def declared(self, space: Token, words: Iterable[Node], name: Token) -> _Declared:
        """The attributes of a declaration; alignment after `.ptr` is the pointer's."""
        found = _Declared(str(space)[1:], f32)
        type = None
        for word in words:
            if is_rule(word, "pointer"):
                found.words += [".ptr", *map(str, word.children)]
            elif not is_token(word):
                if ".ptr" in found.words:
                    found.words.append(f".align {word.children[0]}")
                else:
                    found.align = int(constants.number(str(word.children[0])))  # type: ignore[arg-type]
            elif word.type == "TYPE":
                type = _DECLARABLE[word[1:]]
            elif word.type == "VECTOR":
                found.vector = int(word[2:])
            else:
                found.words.append("".join(word.split()))
        if type is None:
            raise self.source.mistake(name, f"`{name}` has no type", f"write a type before it: `.b32 {name}`")
        found.type = type
        return found

    def variable(self, declared: _Declared, name: str, extents: Iterable[Node]) -> Variable:
        """A variable without its initial value."""
        return Variable(
            name,
            declared.space,
            declared.type,
            tuple(self._extent(extent) for extent in extents),
            declared.align,
            attributes=tuple(declared.words),
            vector=declared.vector,
        )

    def variables(self, declared: _Declared, declarator: Node) -> list[Variable]:
        """What one declarator stands for; `x<3>` is three variables. The initial value is kept for later."""
        name, *rest = declarator.children
        extents = [c for c in rest if is_rule(c, "extent")]
        found = [self.variable(declared, each, extents) for each in numbered(name, rest)]
        self.initials += [(variable, c.children[0]) for c in rest if is_rule(c, "initial") for variable in found]
        return found

    def _extent(self, tree: Node) -> int | None:
        if not tree.children:
            return None
        value = self.operands.operand(tree.children[0], 0)
        return value.value if isinstance(value, Immediate) else None

    def _variable(self, tree: Node) -> Iterator[Variable]:
        linkage, (space, attributes, *declarators) = _linkage(tree)
        for declarator in declarators:
            name = declarator.children[0]
            for variable in self.variables(self.declared(space, attributes.children, name), declarator):
                variable.linkage = linkage
                self._declare(name, variable, linkage != "extern")
                yield variable

    def _value(self, tree: Node, type: Type) -> object:
        """An initial value; groups are tuples."""
        if is_rule(tree, "group"):
            return tuple(leaf for child in tree.children for leaf in self._leaves(child, type))
        if is_rule(tree, "setting"):
            return Setting(*map(str, tree.children))
        value = self.operands.operand(tree, 0)
        return constants.as_f32(value) if type is f32 and isinstance(value, Immediate) and value.type is f64 else value

    def _leaves(self, child: Node, type: Type) -> Iterator[object]:
        if is_token(child, "NUMBERS"):
            yield from (self._number(text.strip()) for text in child.split(","))
        else:
            yield self._value(child, type)

    def _number(self, text: str) -> Immediate:
        value = constants.number(text.removeprefix("-"))
        if isinstance(value, Immediate):
            return constants.negative(value) if text.startswith("-") else value
        return Immediate(-value if text.startswith("-") else value)

    def _file(self, tree: Node) -> Iterator[Directive]:
        index, name = int(tree.children[0]), tree.children[1][1:-1]
        self.files[index] = name
        yield Directive("file", (index, name))

    def _alias(self, tree: Node) -> Iterator[Directive]:
        yield Directive("alias", tuple(tree.children))

    def _named(self, name: Any) -> Operand:
        if name not in self.names:
            raise self.operands.undeclared(str(name), name.start_pos)
        return self.names[name]

    def _property(self, node: Node) -> Iterator[Directive]:
        if is_token(node):
            yield Directive(str(node)[1:])
        elif node.data == "pragma":
            yield from self._pragma(node)
        else:
            name, *values = node.children
            yield Directive(str(name)[1:], tuple(map(int, values)))

    def _pragma(self, tree: Node) -> Iterator[Directive]:
        yield Directive("pragma", tuple(map(str, tree.children)))

    def _section(self, tree: Node) -> Iterator[Section]:
        name, body = tree.children
        section = Section(str(name), [" ".join(line.split()) for line in body[1:-1].splitlines() if line.strip()])
        if section.name == ".debug_str":
            self.strings |= section.data()
        yield section


class _FunctionReader(Operands):
    """The body of one function."""

    def __init__(self, module: _ModuleReader, function: Function) -> None:
        super().__init__(module.source, module.names)
        self.module, self.function = module, function
        self.opcodes: dict[Any, Any] = {}
        self.location: Location | None = None
        self.sites: dict[tuple[str, ...], Location] = {}
        self.variables: dict[int, list[Variable]] = {}

    def fill(self, tree: Node) -> None:
        for parameter in [*self.function.parameters, *self.function.returns]:
            self.names[parameter.name] = parameter
            self.function.names[parameter.name] = 0
        self._reserve(tree, nested=False)
        self._declare(tree, nested=False)
        self.function.body = self._statements(tree)

    def _reserve(self, tree: Node, nested: bool) -> None:
        """Takes the names that must stay: all but those of registers and labels in nested scopes."""
        for child in tree.children:
            if is_token(child):
                if child.type == "LABEL" and not nested:
                    self.function.names[_label(child)] = 0
            elif child.data == "body":
                self._reserve(child, nested=True)
            elif child.data == "local" and not (nested and child.children[0] == ".reg"):
                self.function.names.update((str(d.children[0]), 0) for d in child.children if is_rule(d, "declarator"))

    def _unique(self, hint: str) -> str:
        """A name for something of a nested scope that becomes the function's."""
        name = self.function.unique(hint)
        while name in self.outer:
            name = self.function.unique(hint)
        return name

    def made(self, name: str, pending: Pending) -> Operand:
        self.names[name] = register = self._new(pending.name, pending.type)
        return register

    def _new(self, hint: str, type: Type) -> Register:
        register = Register(self._unique(hint), type)
        self.function.registers.append(register)
        return register

    def _declare(self, tree: Node, nested: bool) -> dict[str, Any]:
        """Makes the names of a scope known; returns what they hid (None for nothing)."""
        hidden: dict[str, Any] = {}
        for name, token, entity in self._declarations(tree, nested):
            if name in hidden:
                raise self.source.mistake(token, f"`{name}` is declared twice in this scope", "rename one of the two")
            hidden[name] = self.names.get(name)
            self.names[name] = entity
        return hidden

    def _declarations(self, tree: Node, nested: bool) -> Iterator[tuple[str, Token, Any]]:
        for child in tree.children:
            if is_token(child):
                if child.type == "LABEL":
                    name = _label(child)
                    yield name, child, Label(self._unique(name) if nested else name)
            elif child.data == "local":
                yield from self._declarators(child, nested)
            elif child.data in ("targets", "prototype"):
                name = _label(child.children[0])
                yield name, child.children[0], Label(self._unique(name) if nested else name)

    def _declarators(self, tree: Node, nested: bool) -> Iterator[tuple[str, Token, Any]]:
        space, attributes, *declarators = tree.children
        for declarator in declarators:
            token, *rest = declarator.children
            declared = self.module.declared(space, attributes.children, token)
            if space == ".reg":
                yield from ((n, token, e) for n, e in self._registers(declared, token, rest, nested))
            else:
                self.variables[id(declarator)] = found = self.module.variables(declared, declarator)
                yield from ((variable.name, token, variable) for variable in found)

    def _registers(
        self, declared: _Declared, token: Token, rest: list[Node], nested: bool
    ) -> Iterator[tuple[str, Any]]:
        """Registers by name; `%r<3>` is three, a vector register one for each element."""
        if any(is_rule(c, "initial") for c in rest):
            raise self.source.mistake(
                token, f"`{token}` is a register, which takes no initial value", "write it with mov"
            )
        for name in numbered(token, rest):
            if declared.vector == 1:
                yield name, self._register(name, declared.type, nested)
                continue
            parts = [self._new(f"{name}_{c[0]}", declared.type) for c in _COMPONENTS[: declared.vector]]
            yield name, Vector(tuple(parts))
            yield from ((f"{name}.{n}", part) for c, part in zip(_COMPONENTS, parts, strict=False) for n in c)

    def _register(self, name: str, type: Type, nested: bool) -> Register | Pending:
        if nested:
            return Pending(name, type)
        self.function.names[name] = 0
        register = Register(name, type)
        self.function.registers.append(register)
        return register

    def _statements(self, tree: Node) -> list[Item]:
        items: list[Item] = []
        for child in tree.children:
            if type(child) is not Token:
                items += getattr(self, f"_{child.data}")(child)
            elif child.type == "INSTRUCTION":
                items.append(self._instruction(child))
            elif child.type == "LABEL":
                items.append(self.names[_label(child)])
            else:
                self._locate(child)
        return items

    def _body(self, tree: Node) -> Iterator[Scope]:
        """A nested scope: its names hide outer ones until it ends."""
        hidden = self._declare(tree, nested=True)
        memo = self.memo
        if hidden:
            self.memo = {}
        scope = Scope(self._statements(tree))
        self.memo = memo
        for name, entity in hidden.items():
            if entity is None:
                del self.names[name]
            else:
                self.names[name] = entity
        yield scope

    def _local(self, tree: Node) -> Iterator[Variable]:
        for declarator in tree.children[2:]:
            yield from self.variables.get(id(declarator), ())

    def _pragma(self, tree: Node) -> Iterator[Directive]:
        yield Directive("pragma", tuple(map(str, tree.children)))

    def _targets(self, tree: Node) -> Iterator[Directive]:
        label, kind, *names = tree.children
        yield Directive(str(kind)[1:], tuple(map(self._target, names)), self.names[_label(label)])

    def _target(self, name: Token) -> Operand:
        found = self.lookup(str(name))
        if found is None:
            raise self.undeclared(str(name), name.start_pos or 0)
        return found

    def _prototype(self, tree: Node) -> Iterator[Directive]:
        label, *signature = tree.children
        yield Directive("callprototype", (self.module.signature(signature, "func"),), self.names[_label(label)])

    def _locate(self, token: Token) -> None:
        """`.loc`: the place of what follows."""
        index, line, column, *inlined = _NAME.findall(token[4:])
        file = self.module.files.get(int(index))
        if file is None:
            message = f"file {index} has no `.file` directive"
            raise self.source.mistake(token, message, f'add `.file {index} "…"`')
        columns = (int(column) - 1, int(column)) if column != "0" else (0, 0)
        name, caller = self.function.name, None
        if inlined:
            _, label, *offset = inlined[:-4]
            name = text_at(self.module.strings.get(label, b"")[int(offset[0]) if offset else 0 :])
            caller = self._caller(*inlined[-3:])
        self.location = Location(file, int(line), columns, name, caller)
        self.sites[index, line, column] = self.location

    def _caller(self, index: str, line: str, column: str) -> Location:
        """The place of a call: where the text has been there before, with the calls that led to it."""
        columns = (int(column) - 1, int(column)) if column != "0" else (0, 0)
        plain = Location(self.module.files.get(int(index), ""), int(line), columns, self.function.name)
        return self.sites.get((index, line, column), plain)

    def _instruction(self, token: Token) -> Instruction:
        head = _HEAD.match(token)
        if head is None:
            raise self._bad_head(token)
        negated, guard, mnemonic = head.groups()
        start, end = head.end(), token.rindex(";")
        read = self._operands(token, mnemonic, start, end) if end > start else []
        operands = tuple([operand for operand, _ in read])
        shapes = (mnemonic, *[shape for _, shape in read])
        opcode = self.opcodes.get(shapes) or self._opcode(mnemonic, operands, shapes)
        if DOUBLE in shapes:
            operands = _singles(opcode, operands)
        location = self.location or Location(self.source.name, token.line or 0)
        return Instruction(opcode, operands, self._guard(token, negated, guard) if guard else None, location)

    def _operands(self, token: Token, mnemonic: str, start: int, end: int) -> list[Any]:
        origin = (token.start_pos or 0) + start
        try:
            return (self.call if mnemonic.startswith("call") else self.read)(token[start:end], origin)
        except ParseError:
            if missing := self.source.missing_semicolon(token.start_pos or 0, origin + end - start):
                raise missing from None
            raise

    def _opcode(self, mnemonic: str, operands: tuple[Operand, ...], shapes: tuple[Any, ...]) -> Any:
        opcode = choose(mnemonic, operands) or opaque(mnemonic)
        self.opcodes[shapes] = opcode
        return opcode

    def _guard(self, token: Token, negated: str, name: str) -> Register | Not:
        found = self.lookup(name)
        position = (token.start_pos or 0) + token.index(name)
        if found is None:
            raise self.undeclared(name, position)
        if not isinstance(found, Register):
            raise self.source.error(position, len(name), f"`{name}` guards an instruction, but is no register")
        return Not(found) if negated else found

    def _bad_head(self, token: Token) -> ParseError:
        return self.source.mistake(token, "expected an instruction after its guard", "write `@p add.u32 …;`")


def _singles(opcode: Any, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Operands with decimals, which are doubles, made f32 where the instruction takes these."""
    bound = opcode.bind(operands)
    if not isinstance(bound, list):
        return operands
    single = {id(value) for operand, value in zip(opcode.operands, bound, strict=False) if operand.type is f32}
    return tuple(
        constants.as_f32(o) if isinstance(o, Immediate) and o.type is f64 and id(o) in single else o for o in operands
    )


def numbered(name: Token, rest: list[Node]) -> list[str]:
    """The names that a declarator stands for: `r<3>` is r0, r1 and r2."""
    counts = [int(c.children[0]) for c in rest if is_rule(c, "count")]
    return [f"{name}{n}" for n in range(counts[0])] if counts else [str(name)]


def _label(token: Token) -> str:
    return token.rstrip()[:-1].rstrip()


def _linkage(tree: Node) -> tuple[str, list[Any]]:
    """The linkage in front of a declaration, and what follows it."""
    first, *rest = tree.children
    return (str(first)[1:], rest) if is_token(first, "LINKAGE") else ("", tree.children)
