"""Initial values of variables, read after all names of the module are known, and checked against the declarations."""

from __future__ import annotations

from collections.abc import Iterator

from lark import Token

from ptxdsl.errors import ParseError
from ptxdsl.ir import Immediate, Setting, Variable
from ptxdsl.parse import constants
from ptxdsl.parse.operands import Indexed, OperandReader
from ptxdsl.parse.syntax import MOST_NESTED, Node, is_rule, is_token
from ptxdsl.types import Type, b32, f32

INITIALISED = ("global", "const")
"""State spaces whose variables may have initial values."""


class Initials:
    """The initial values of a module, pending until all its names are known."""

    def __init__(self, operands: OperandReader) -> None:
        self.operands, self.source = operands, operands.source
        self.waiting: list[tuple[Variable, Node]] = []

    def add(self, variable: Variable, tree: Node) -> None:
        """Record `tree` as the initial value of `variable`."""
        self.waiting.append((variable, tree))

    def read(self) -> None:
        """Set the initial value of every variable."""
        for variable, tree in self.waiting:
            if variable.space not in INITIALISED or variable.linkage == "extern":
                kind = "an external variable" if variable.linkage == "extern" else f"in .{variable.space}"
                raise self._error(
                    tree,
                    f"`{variable}` is {kind}, which takes no initial value",
                    "store it in the kernel"
                    if variable.linkage != "extern"
                    else "give the initial value at its definition",
                )
            variable.initial = self._value(tree, variable.type)
            if not variable.type.name.endswith("ref"):
                self._check(tree, variable)

    def _check(self, tree: Node, variable: Variable) -> None:
        """Check the number of values: an array takes up to its number of elements, a vector exactly that, all others
        one.
        """
        if variable.shape and variable.shape[0] is None and isinstance(variable.initial, tuple):
            variable.shape = (len(variable.initial), *variable.shape[1:])
        problem = _misfit(variable.initial, variable.shape, variable.vector)
        if problem:
            raise self._error(tree, f"the initial value of `{variable}` has {problem}", _spelling(variable))
        if wrong := next((v for v in _leaves(variable.initial) if not _is_of(v, variable.type)), None):
            raise self._error(
                tree,
                f"`{wrong}` is not a valid initial value of `{variable}`, which is .{variable.type}",
                _mend(variable.type),
            )

    def _value(self, tree: Node, type: Type, depth: int = 0) -> object:
        """Return an initial value; groups are tuples."""
        if is_rule(tree, "group"):
            if depth == MOST_NESTED:
                raise self.source.too_deep(_position(tree), "initial value")
            return tuple(leaf for child in tree.children for leaf in self._elements(child, type, depth + 1))
        if is_rule(tree, "setting"):
            return Setting(*map(str, tree.children))
        value = self.operands.operand(tree, 0)
        if isinstance(value, Indexed):
            return value.value()
        return constants.as_f32(value) if type in (f32, b32) and constants.is_double(value) else value

    def _elements(self, child: Node, type: Type, depth: int) -> Iterator[object]:
        if not is_token(child, "NUMBERS"):
            yield self._value(child, type, depth)
            return
        position = child.start_pos or 0
        for text in child.split(","):
            yield self._number(text.strip(), position + len(text) - len(text.lstrip()))
            position += len(text) + 1

    def _number(self, text: str, position: int) -> Immediate:
        digits = text.removeprefix("-")
        value = constants.read(self.source, digits, position + len(text) - len(digits))
        if isinstance(value, Immediate):
            return constants.negative(value) if digits is not text else value
        return Immediate(-value if digits is not text else value)

    def _error(self, tree: Node, message: str, help: str) -> ParseError:
        return self.source.error(_position(tree), 1, message, help)


def _position(tree: Node) -> int:
    """Return the start of a value; the start of the text for an empty group, which has no tokens."""
    first = tree if isinstance(tree, Token) else next(tree.scan_values(is_token), None)
    return (first.start_pos or 0) if first is not None else 0


def _misfit(value: object, shape: tuple[int | None, ...], vector: int) -> str | None:
    """Describe how an initial value does not fit an array of this shape; None if it fits."""
    if not shape and vector == 1:
        return "braces, and is a single element" if isinstance(value, tuple) else None
    most = (shape[0] if shape else vector) or 0
    if not isinstance(value, tuple):
        return f"one element where {most} in braces are declared"
    if len(value) > most or (not shape and len(value) < most):
        return f"{len(value)} element{'s' * (len(value) != 1)} in braces where {most} are declared"
    return next(filter(None, (_misfit(v, shape[1:], vector if shape else 1) for v in value)), None)


def _spelling(variable: Variable) -> str:
    extents = "".join(f"[{extent}]" for extent in variable.shape)
    kind = f"{f'.v{variable.vector} ' if variable.vector > 1 else ''}.{variable.type}"
    if not extents and variable.vector == 1:
        return "write one value, without braces"
    return f"it is {kind} {variable}{extents}: write a list in braces for each dimension"


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        yield from (leaf for element in value for leaf in _leaves(element))
    else:
        yield value


def _is_of(value: object, type: Type) -> bool:
    """True if the constant fits the type; addresses are left to the assembler."""
    if not isinstance(value, Immediate):
        return True
    return type.kind == "b" or (value.type is None) == type.is_integer


def _mend(type: Type) -> str:
    return "write an integer" if type.is_integer else "write 1.0, or the bits as 0f3F800000"
