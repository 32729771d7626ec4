"""The signatures of kernels and device functions: typed parameters, and constants."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Any

from ptxdsl.cached import cached_property
from ptxdsl.errors import Location, TraceError
from ptxdsl.trace.captured import defined_at
from ptxdsl.trace.parameters import (
    ANNOTATE,
    Definition,
    FieldType,
    Leaf,
    Parameters,
    homonyms,
    leaves,
    near_type,
    passable,
    ptx_name,
    resolved,
)
from ptxdsl.types import Pointer, pred


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter passed at each launch: a number, an array, or a group of them."""

    name: str
    type: FieldType

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The PTX parameters that represent it."""
        return leaves(self.name, self.type)


REQUIRED = inspect.Parameter.empty  # the default of a constant without a default
FUNCTION = "function"  # the noun of device functions in messages


@dataclass(frozen=True)
class KernelSignature:
    """A kernel's parameters (`names`), and its trace-time `constants` (name: default or REQUIRED).

    Parameter types may depend on constants: `a: ptr[config.inputs]`. For a method, `self` precedes the parameters.
    `Annotated[Any, type]` is read as `type`.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]
    constants: Mapping[str, object]
    scope: Mapping[str, object]  # local names at the definition
    noun: str = "kernel"
    is_method: bool = False

    def parameters(self, constants: Mapping[str, object]) -> tuple[Parameter, ...]:
        """Return the typed parameters. Raises TraceError at the definition for a type that no kernel takes."""
        annotations = [(name, self._annotation(name, constants)) for name in self.names]
        parameters = tuple(Parameter(name, self._passable(name, type)) for name, type in annotations)
        for other, path in homonyms(leaf for parameter in parameters for leaf in parameter.leaves):
            raise TraceError(
                f"parameters `{other}` and `{path}` of {self.noun} `{self.function.__name__}` would both be "
                f"`{ptx_name(path)}` in PTX",
                at=place_of(self.function),
                help="rename one of them",
            )
        return parameters

    def _annotation(self, name: str, constants: Mapping[str, object]) -> Any:
        subject = "the result" if name == "return" else f"parameter `{name}`"
        help = "it may name types, what is known where the kernel is defined, and the kernel's constants"
        return resolved(
            self.function.__annotations__[name],
            name,
            f"{subject} of {self.noun} `{self.function.__name__}`",
            (self.function.__globals__, {**self.scope, **constants}),
            place_of(self.function),
            help,
        )

    def _passable(self, name: str, type: Any) -> FieldType:
        if not self.can_pass(type):
            called = type.__name__ if isinstance(type, Definition) else repr(type)
            annotated = f"parameter `{name}` of {self.noun} `{self.function.__name__}` is annotated {called}"
            raise TraceError(
                f"{annotated}, which no {self.noun} takes",
                at=place_of(self.function),
                help="derive a class from it, and annotate its fields" if type is Parameters else _help(name, type),
            )
        return type  # type: ignore[no-any-return]

    def can_pass(self, type: Any) -> bool:
        """True if a number, address or group of this type can be passed."""
        if isinstance(type, Definition):
            return type is not Parameters
        if self.noun == FUNCTION and (type is pred or (isinstance(type, Pointer) and type.space == "local")):
            return True
        return passable(type)

    def returned(self, constants: Mapping[str, object]) -> Any:
        """Return the annotated result; None without an annotation."""
        known = "return" in self.function.__annotations__
        return self._annotation("return", constants) if known else None

    @property
    def _annotations(self) -> list[Any]:
        known = self.function.__annotations__
        return [known[name] for name in (*self.names, "return") if name in known]

    @cached_property
    def captured(self) -> tuple[object, ...]:
        """Annotations that are read with the function: strings as functions, which are evaluated again for each set of
        constants, and classes of parameters."""
        return tuple(
            FunctionType(compile(each, "annotation", "eval"), self.function.__globals__)
            if isinstance(each, str)
            else each
            for each in self._annotations
            if isinstance(each, str | Definition)
        )

    def bound(self, instance: object) -> KernelSignature:
        """Return the signature of a method bound to an object."""
        return replace(self, function=MethodType(self.function, instance), is_method=False)

    @property
    def depends_on_constants(self) -> bool:
        """True if annotations name constants, so that types are known only together with these."""
        texts = [text for text in self._annotations if isinstance(text, str)]
        return any(_names_in(text) & self.constants.keys() for text in texts)


def _help(name: str, annotation: Any) -> str:
    near = near_type(annotation)
    if annotation in (int, bool, str):
        constant = f"a constant that the kernel is traced for follows a `*`: `*, {name}: {annotation.__name__}`"
        return f"did you mean `{name}: {near}`? {constant}" if annotation is int else constant
    return f"did you mean `{name}: {near}`?" if near else ANNOTATE


def _names_in(text: str) -> set[str]:
    """Return the names that an annotation reads; empty if it is not a valid expression."""
    try:
        return set(compile(text, "annotation", "eval").co_names)
    except SyntaxError:
        return set()


def place_of(function: Callable[..., Any]) -> Location:
    """Return the location of a function's definition."""
    return defined_at(function.__code__)


def signature(function: Callable[..., Any], scope: Mapping[str, object], noun: str = "kernel") -> KernelSignature:
    """Return the signature of a kernel or device function; `scope` holds local names at its definition.

    Raises TraceError at the definition for an invalid parameter.
    """
    names, constants = [], {}
    parameters = list(inspect.signature(function).parameters.values())
    is_method = bool(parameters) and parameters[0].name == "self" and parameters[0].annotation is inspect._empty
    for p in parameters[is_method and noun == "kernel" :]:
        if p.kind is p.KEYWORD_ONLY:
            constants[p.name] = p.default
        else:
            _check_parameter(function, p, noun)
            names.append(p.name)
    result = KernelSignature(function, tuple(names), constants, scope, noun, is_method)
    if not result.depends_on_constants:
        result.parameters({})
    return result


def _check_parameter(function: Callable[..., Any], p: inspect.Parameter, noun: str) -> None:
    of, where = f"of {noun} `{function.__name__}`", place_of(function)
    at_each = "launch" if noun == "kernel" else "call"
    if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
        help = "name each parameter, or take a group of them: pd.Parameters.of makes one whose fields are computed"
        raise TraceError(
            f"`{p.replace(annotation=p.empty)}` {of}: the number of its parameters must be known", at=where, help=help
        )
    if p.default is not p.empty:
        help = f"parameters are given at each {at_each}; constants of a {noun} are keyword-only, after a `*`"
        raise TraceError(f"parameter `{p.name}` {of} has a default", at=where, help=help)
    if p.annotation is p.empty:
        help = f"annotate it: `{p.name}: ptr[f32]` for an array, `{p.name}: u32` for a number"
        if p.name in ("self", "cls"):
            help = f"define the {noun} outside of the class, and pass what it needs as parameters and constants"
        raise TraceError(f"parameter `{p.name}` {of} has no type", at=where, help=help)
