"""Modules: the header, functions and variables by name, and the other top-level statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lark import Token

from ptxdsl.ir import Directive, Function, Operand, PtxModule, Section, Variable, unquoted
from ptxdsl.isa import target as isa_target
from ptxdsl.parse.declarations import Declarations, linkage, pragma, whole
from ptxdsl.parse.function import FunctionReader
from ptxdsl.parse.section import section_lines
from ptxdsl.parse.syntax import Node, is_rule, is_token

_ADDRESS_SIZES = (32, 64)


class ModuleReader(Declarations):
    """Reader of a module. It creates all functions and variables first, so that bodies can refer to later ones."""

    def read(self) -> PtxModule:
        version, target, *rest = self.source.module().children
        major, minor = version.children[0].split(".")
        # linking assemblers require this version, which is equivalent
        number = max(isa_target.OLDEST, (int(major), int(minor)))
        module = PtxModule(tuple(map(str, target.children)), number)
        self.flushes = module.target[0] in isa_target.FLUSHING
        later = []
        for tree in rest:
            if tree.data == "address_size":
                module.address_size = self._address_size(tree.children[0])
            elif tree.data == "function":
                function = self._function(tree)
                module.items.append(function)
                later.append((function, tree))
            else:
                module.items += getattr(self, f"_{tree.data}")(tree)
        self._resolve_aliases(module)
        for function, tree in later:
            if function.body is not None:
                FunctionReader(self, function).fill(tree)
        self.initials.read()
        return module

    def _address_size(self, token: Token) -> int:
        size = whole(self.source, token)
        if size not in _ADDRESS_SIZES:
            raise self.source.mistake(token, f"an address has 32 or 64 bits; found {token}", "write .address_size 64")
        return size

    def _resolve_aliases(self, module: PtxModule) -> None:
        for item in module.items:
            if isinstance(item, Directive) and item.name == "alias":
                item.arguments = tuple(map(self._named, item.arguments))

    def _function(self, tree: Node) -> Function:
        link, (kind, *parts) = linkage(tree)
        body = parts.pop() if is_rule(parts[-1], "body") else None
        function = self.signature(parts, str(kind)[1:])
        function.linkage, function.body = link, None if body is None else []
        name = next(filter(is_token, parts))
        for parameter in (*function.parameters, *function.returns) if kind == ".func" else ():
            self.source.check_name(name, parameter.name)
        self._declare(name, function, body is not None)
        return function

    def _declare(self, name: Token, entity: Function | Variable, defined: bool) -> None:
        """Declare a name. A name may be declared often but defined once; references resolve to the definition."""
        self.source.check_name(name, entity.name)
        known = self.names.get(entity.name)
        if known is not None:
            self._check_again(name, known, entity, defined)
        if defined or known is None:
            self.names[entity.name] = entity

    def _check_again(self, name: Token, known: Operand, entity: Function | Variable, defined: bool) -> None:
        if type(known) is not type(entity):
            kinds = " and as a ".join("function" if isinstance(e, Function) else "variable" for e in (known, entity))
            raise self.source.mistake(name, f"`{name}` is declared as a {kinds}", "rename one of the two")
        if defined and _is_defined(known):
            raise self.source.mistake(name, f"`{name}` is defined twice", "rename one of the two")
        if isinstance(known, Variable) and isinstance(entity, Variable) and _kind(known) != _kind(entity):
            message = f"`{name}` is {_kind(entity)} here, and {_kind(known)} where it was declared first"
            raise self.source.mistake(name, message, "use the same declaration everywhere")

    def _pragma(self, tree: Node) -> Iterator[Directive]:
        yield pragma(tree)

    def _variable(self, tree: Node) -> Iterator[Variable]:
        link, (space, attributes, *declarators) = linkage(tree)
        for declarator in declarators:
            name = declarator.children[0]
            for each in self.variables(space, attributes, declarator, link):
                self._declare(name, each, link != "extern")
                yield each

    def _file(self, tree: Node) -> Iterator[Directive]:
        token, text, *_ = tree.children
        index, name = whole(self.source, token), unquoted(text[1:-1])
        if self.files.setdefault(index, name) != name:
            raise self.source.mistake(token, f"file {index} is named twice", "give each file its own number")
        yield Directive("file", (index, name))

    def _alias(self, tree: Node) -> Iterator[Directive]:
        yield Directive("alias", tuple(tree.children))

    def _named(self, name: Any) -> Operand:
        if name not in self.names:
            raise self.operands.undeclared(str(name), name.start_pos)
        return self.names[name]

    def _section(self, tree: Node) -> Iterator[Section]:
        name, body = tree.children
        section = Section(str(name), list(section_lines(self.source, body)))
        if section.name == ".debug_str":
            self.strings |= section.data()
        yield section


def _is_defined(entity: Operand) -> bool:
    return entity.body is not None if isinstance(entity, Function) else getattr(entity, "linkage", "") != "extern"


def _kind(variable: Variable) -> str:
    vector = f".v{variable.vector} " if variable.vector > 1 else ""
    return f".{variable.space} {vector}.{variable.type}"
