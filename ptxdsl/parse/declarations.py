"""Declarations: attributes, names with counts and extents, and linkage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lark import Token

from ptxdsl.ir import Directive, Function, Operand, Register, Variable, element_names
from ptxdsl.parse import constants
from ptxdsl.parse.initial import Initials
from ptxdsl.parse.operands import OperandReader
from ptxdsl.parse.syntax import Node, SourceText, is_rule, is_token
from ptxdsl.types import TYPES, Type, f32, samplerref, surfref, texref

MOST_NUMBERED = 1 << 16
"""Maximum count of a parameterised variable name; also the number of registers created even if unused."""

_DECLARABLE = TYPES | {type.name: type for type in (texref, samplerref, surfref)}


@dataclass(slots=True)
class Declared:
    """The parts of a declaration before its names."""

    space: str
    type: Type
    vector: int = 1
    align: int | None = None
    words: list[str] = field(default_factory=list)


class Declarations:
    """State shared by all declarations of a module and its functions."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.names: dict[str, Operand] = {}
        self.files: dict[int, str] = {}
        self.strings: dict[str, bytes] = {}
        self.registers = 0  # number of registers in families
        self.flushes = False  # true if all f32 arithmetic flushes subnormals
        self.operands = OperandReader(source, self.names)
        self.initials = Initials(self.operands)

    def signature(self, parts: list[Any], kind: str) -> Function:
        """Create a function without its body from `results name parameters properties`."""
        results, name, parameters, *properties = parts
        returns = [p for tree in results.children for p in parameter(self.operands, tree)]
        if len(returns) > 1 and any(isinstance(p, Variable) for p in returns):
            message = f"`{name}` returns {len(returns)} values, and ptxas takes one in .param space"
            raise self.source.mistake(name, message, "return them as one array: .param .align 8 .b8 results[16]")
        return Function(
            str(name),
            kind,
            parameters=[p for tree in parameters.children for p in parameter(self.operands, tree)],
            returns=returns,
            directives=[d for p in properties for d in self._property(p)],
            body=None,
        )

    def variables(self, space: Token, attributes: Node, declarator: Node, linkage: str = "") -> list[Variable]:
        """Create the variables of one declarator; `x<3>` is three variables. Initial values are read later."""
        name, *rest = declarator.children
        words = declared(self.source, space, attributes.children, name)
        extents = [c for c in rest if is_rule(c, "extent")]
        variables = [variable(self.operands, words, each, extents) for each in numbered(self.source, name, rest)]
        initial = next((c.children[0] for c in rest if is_rule(c, "initial")), None)
        for each in variables:
            each.linkage = linkage
            if initial is not None:
                self.initials.add(each, initial)
            elif None in each.shape and linkage != "extern":
                raise self.source.mistake(
                    name, f"`{name}` has no length", f"write {name}[n], or .extern if another module defines it"
                )
        return variables

    def _property(self, node: Node) -> Iterator[Directive]:
        if is_token(node):
            yield Directive(str(node)[1:])
        elif node.data == "pragma":
            yield pragma(node)
        else:
            name, *values = node.children
            yield Directive(str(name)[1:], tuple(whole(self.source, value) for value in values))


def pragma(tree: Node) -> Directive:
    """`.pragma "nounroll";`"""
    return Directive("pragma", tuple(map(str, tree.children)))


def declared(source: SourceText, space: Token, words: Iterable[Node], name: Token) -> Declared:
    """Return the attributes of the declaration of `name`; an alignment after `.ptr` belongs to the pointer."""
    result = Declared(str(space)[1:], f32)
    type = None
    for word in words:
        if is_rule(word, "pointer"):
            result.words += [".ptr", *map(str, word.children)]
        elif not is_token(word):
            align = _alignment(source, word.children[0])
            if ".ptr" in result.words:
                result.words.append(f".align {align}")
            else:
                result.align = align
        elif word.type == "TYPE":
            type = _DECLARABLE[word[1:]]
        elif word.type == "VECTOR":
            result.vector = int(word[2:])
        else:
            result.words.append("".join(word.split()))
    if type is None:
        raise source.mistake(name, f"`{name}` has no type", f"write a type before it: `.b32 {name}`")
    result.type = type
    return result


def _alignment(source: SourceText, token: Token) -> int:
    align = whole(source, token)
    if align & (align - 1) or not 0 < align < 1 << 32:
        raise source.mistake(token, f"an alignment is a power of two; found {token}", "write .align 4, 8 or 16")
    return align


def variable(operands: OperandReader, declared: Declared, name: str, extents: Iterable[Node]) -> Variable:
    """Create a variable without its initial value."""
    return Variable(
        name,
        declared.space,
        declared.type,
        tuple(_extent(operands, extent) for extent in extents),
        declared.align,
        attributes=tuple(declared.words),
        vector=declared.vector,
    )


def _extent(operands: OperandReader, tree: Node) -> int | None:
    if not tree.children:
        return None
    return operands.constant(tree.children[0], least=1, noun="the length of an array")


def parameter(operands: OperandReader, tree: Node) -> list[Variable | Register]:
    """Create a parameter of a function; a vector register becomes one register per element."""
    space, *words, name = [c for c in tree.children if not is_rule(c, "extent")]
    attributes = declared(operands.source, space, words, name)
    if attributes.space != "reg":
        return [variable(operands, attributes, str(name), [c for c in tree.children if is_rule(c, "extent")])]
    if attributes.vector == 1:
        return [Register(str(name), attributes.type)]
    count = attributes.vector
    return [Register(element, attributes.type, count) for element in element_names(str(name), count)]


def vector_parameters(tree: Node) -> list[tuple[str, int]]:
    """Return the vector registers among the parameters and results of a function, with their number of elements."""
    signature = [c for c in tree.children if is_rule(c, "parameters", "results")]
    vectors = []
    for space, *words, name in ([*p.children] for part in signature for p in part.children):
        sizes = [int(word[2:]) for word in words if is_token(word, "VECTOR")]
        if space == ".reg" and sizes:
            vectors.append((str(name), sizes[0]))
    return vectors


def counted(source: SourceText, name: Token, rest: list[Node]) -> int | None:
    """Return 3 for `r<3>`, None for a plain name."""
    counts = [whole(source, c.children[0]) for c in rest if is_rule(c, "count")]
    return counts[0] if counts else None


def numbered(source: SourceText, name: Token, rest: list[Node]) -> list[str]:
    """Return the names of a declarator: `r<3>` is r0, r1 and r2."""
    count = counted(source, name, rest)
    if count is None:
        return [str(name)]
    if count > MOST_NUMBERED:
        raise source.mistake(
            name, f"`{name}<{count}>` declares {count} variables; the maximum is {MOST_NUMBERED}", "declare an array"
        )
    return [f"{name}{n}" for n in range(count)]


def whole(source: SourceText, token: Token) -> int:
    """Return the value of an integer token."""
    return constants.whole(source, token, token.start_pos or 0)


def label(token: Token) -> str:
    """Return the name of a label."""
    return token.rstrip()[:-1].rstrip()


def linkage(tree: Node) -> tuple[str, list[Node]]:
    """Split a declaration into its linkage and the rest."""
    first, *rest = tree.children
    return (str(first)[1:], rest) if is_token(first, "LINKAGE") else ("", tree.children)
