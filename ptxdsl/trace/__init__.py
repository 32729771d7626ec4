"""A Python function as a kernel: it runs once, and every operation on its traced values becomes an instruction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptxdsl import ir
from ptxdsl.errors import Error, Location, TraceError
from ptxdsl.trace.builder import Builder, building, is_name
from ptxdsl.trace.instruction import emit, shown
from ptxdsl.trace.memory import PointerValue, PointerVar, align_dynamic
from ptxdsl.trace.operators import operate
from ptxdsl.trace.value import Var, make_value
from ptxdsl.trace.value import var as scalar_var
from ptxdsl.types import Pointer, Type, bits, pred


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel, given at each launch."""

    name: str
    type: Type | Pointer


class Required:
    """The default of a constant that has none."""

    def __repr__(self) -> str:
        return "required"


REQUIRED = Required()


@dataclass(frozen=True, slots=True)
class Signature:
    """What a kernel takes: `names` at each launch, `constants` (name: default or REQUIRED) while it is traced.

    The types of parameters may depend on constants: `a: ptr[config.inputs]`. `rest` is the name of `*rest: types`, of
    which a tuple of types says how many parameters it stands for.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]
    rest: str | None
    constants: Mapping[str, Any]
    scope: Mapping[str, Any]  # local names at the definition

    def parameters(self, constants: Mapping[str, Any]) -> tuple[Parameter, ...]:
        """The parameters with their types. Raises TraceError at the definition for one that no kernel can take."""
        fixed = [Parameter(name, self._passable(name, self._annotation(name, constants))) for name in self.names]
        return *fixed, *self._rest(constants)

    def _rest(self, constants: Mapping[str, Any]) -> Iterator[Parameter]:
        if self.rest is None:
            return
        types = self._annotation(self.rest, constants)
        if not isinstance(types, tuple):
            raise TraceError(
                f"`*{self.rest}` of kernel `{self.function.__name__}` is annotated {types!r}, which is no tuple",
                at=place_of(self.function),
                help="annotate it with a constant that is a tuple of types, one for each parameter",
            )
        for number, type in enumerate(types):
            name = f"{self.rest}_{number}"
            yield Parameter(name, self._passable(name, type))

    def _annotation(self, name: str, constants: Mapping[str, Any]) -> Any:
        type = self.function.__annotations__[name]
        return self._resolve(name, type, constants) if isinstance(type, str) else type

    def _passable(self, name: str, type: Any) -> Type | Pointer:
        if not isinstance(type, (Type, Pointer)) or not _passable(type):
            raise TraceError(
                f"parameter `{name}` of kernel `{self.function.__name__}` is annotated {type!r}, which no kernel takes",
                at=place_of(self.function),
                help="annotate ptr[f32] and the like for arrays, a scalar type such as u32 or f32 for numbers",
            )
        return type

    def _resolve(self, name: str, text: str, constants: Mapping[str, Any]) -> Any:
        """An annotation that is text, as `from __future__ import annotations` makes them all."""
        try:
            return eval(text, self.function.__globals__, {**self.scope, **constants})
        except Error as why:
            message = f"parameter `{name}` of kernel `{self.function.__name__}`: {why.message}"
            raise TraceError(message, at=place_of(self.function), help=why.help) from None
        except Exception as why:
            raise TraceError(
                f"the annotation `{text}` of parameter `{name}` cannot be resolved: {type(why).__name__}: {why}",
                at=place_of(self.function),
                help="it may name types, what is known where the kernel is defined, and the kernel's constants",
            ) from None

    @property
    def depends_on_constants(self) -> bool:
        """Whether annotations name constants, so that they are known only when these are."""
        names = self.names if self.rest is None else (*self.names, self.rest)
        texts = [t for name in names if isinstance(t := self.function.__annotations__[name], str)]
        return any(set(compile(text, "annotation", "eval").co_names) & self.constants.keys() for text in texts)


def _passable(type: Type | Pointer) -> bool:
    if isinstance(type, Pointer):
        return type.space in ("global", "const", "generic", "shared")
    return type is not pred and type.bits in (8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced kernel; `dynamic_bytes` of shared memory are needed at launch, None if that is for the caller to say."""

    module: ir.Module
    dynamic_bytes: int | None


def place_of(function: Callable[..., Any]) -> Location:
    """Where a function is defined."""
    code = function.__code__
    return Location(code.co_filename, code.co_firstlineno, function=code.co_name)


def signature(function: Callable[..., Any], scope: Mapping[str, Any]) -> Signature:
    """The parameters and constants of a kernel; `scope` holds local names at its definition.

    Raises TraceError at the definition for a parameter that no kernel can take.
    """
    names, rest, constants = [], None, {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            constants[p.name] = REQUIRED if p.default is p.empty else p.default
        elif p.kind is p.VAR_POSITIONAL and p.annotation is not p.empty:
            rest = p.name
        else:
            _check_parameter(function, p)
            names.append(p.name)
    found = Signature(function, tuple(names), rest, constants, scope)
    if not found.depends_on_constants:
        found.parameters({})
    return found


def _check_parameter(function: Callable[..., Any], p: inspect.Parameter) -> None:
    of, where = f"of kernel `{function.__name__}`", place_of(function)
    if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
        help = "name each parameter, or annotate `*rest` with a constant that is a tuple of types"
        raise TraceError(f"`{p}` {of}: the number of its parameters must be known", at=where, help=help)
    if p.default is not p.empty:
        help = "parameters are given at each launch; constants of a kernel are keyword-only, behind a `*`"
        raise TraceError(f"parameter `{p.name}` {of} has a default", at=where, help=help)
    if p.annotation is p.empty:
        help = f"annotate it: `{p.name}: ptr[f32]` for an array, `{p.name}: u32` for a number"
        raise TraceError(f"parameter `{p.name}` {of} has no type", at=where, help=help)


def trace(
    found: Signature,
    constants: Mapping[str, Any],
    *,
    arch: str = "sm_80",
    directives: tuple[ir.Directive, ...] = (),
) -> Traced:
    """Runs a kernel's function on traced values and returns its ir. Exceptions of the function pass through."""
    function = found.function
    builder = Builder(function.__name__, arch, function.__code__, place_of(function), make_value)
    builder.function.unique(function.__name__)
    with building(builder):
        parameters = [_load_parameter(builder, parameter) for parameter in found.parameters(constants)]
        result = found.function(*parameters, **constants)
        _finish(builder, result)
    builder.function.directives.extend(directives)
    builder.function.body = builder.finished()
    module = ir.Module((arch,), items=[*builder.globals, builder.function])
    return Traced(module, builder.dynamic_bytes)


def _load_parameter(builder: Builder, parameter: Parameter) -> Any:
    """The parameter in a register; a pointer to a state space as an address within it."""
    type = parameter.type
    held = type.register if isinstance(type, Pointer) else type
    stored = held if held.is_integer or held.name in ("f32", "f64") else bits(held.bits)
    name = parameter.name if is_name(parameter.name) else "parameter"
    variable = ir.Variable(builder.function.unique(name), "param", stored)
    builder.function.parameters.append(variable)
    windowed = isinstance(type, Pointer) and type.space in ("global", "const")
    with builder.at_start("" if windowed else parameter.name):
        loaded = operate(f"ld.param.{stored}", ir.Address(variable), type=held)
    if not isinstance(type, Pointer):
        return loaded
    if windowed:
        with builder.at_start(parameter.name):
            loaded = operate(f"cvta.to.{type.space}.u64", loaded)
    return PointerValue(loaded, type)


def _finish(builder: Builder, result: Any) -> None:
    builder.check_whole()
    if result is not None:
        raise TraceError(
            f"kernel `{builder.name}` returns {shown(result)}",
            at=builder.where,
            help="a kernel returns nothing: write results to memory",
        )
    builder.at_end()
    emit("ret")
    align_dynamic(builder)


def var(type: Type | Pointer, init: Any = None, *, name: str | None = None) -> Var | PointerVar:
    """A variable: a register that can be written again, by `v += x`, `v.set(x)` or `out=v`.

    Without `init` it must be written before it is read. A variable of type `ptr[f32]` moves by elements.
    """
    if not isinstance(type, Pointer):
        return scalar_var(type, init, name=name)
    pointer = PointerVar(scalar_var(type.register, name=name), type)
    if init is not None:
        pointer.set(init)
    return pointer
