"""A Python function as a kernel: it runs once, and every operation on its traced values becomes an instruction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any, overload

from ptxdsl import ir
from ptxdsl.errors import Error, Location, Names, Site, TraceError
from ptxdsl.isa.tensor_map import MAP_ALIGNMENT, MAP_BYTES
from ptxdsl.trace.builder import Builder, building, is_name
from ptxdsl.trace.instruction import Scalar, ScalarLike, emit, shown
from ptxdsl.trace.mapped import MappedTensor
from ptxdsl.trace.memory import PointerValue, PointerVar, align_dynamic
from ptxdsl.trace.operators import operate
from ptxdsl.trace.parameters import Definition, FieldType, Leaf, Parameters, assembled, leaves, passable, ptx_name
from ptxdsl.trace.roles import check_roles
from ptxdsl.trace.rounds import Rounds, check_rounds
from ptxdsl.trace.state import Snapshot
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.trace.unread import warn_unread
from ptxdsl.trace.value import Var, make_value
from ptxdsl.trace.value import var as scalar_var
from ptxdsl.types import Pointer, Type, b8, bits, u64


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel, given at each launch: a number, an array, or a group of them."""

    name: str
    type: FieldType

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The parameters in PTX that it stands for."""
        return leaves(self.name, self.type)


class Required:
    """The default of a constant that has none."""

    def __repr__(self) -> str:
        return "required"


REQUIRED = Required()
_PASSABLE = "annotate ptr[f32] and the like for arrays, a scalar type such as u32 or f32 for numbers"


@dataclass(frozen=True)
class KernelSignature:
    """What a kernel takes: `names` at each launch, `constants` (name: default or REQUIRED) while it is traced.

    The types of parameters may depend on constants: `a: ptr[config.inputs]`.
    """

    function: Callable[..., Any]
    names: tuple[str, ...]
    constants: Mapping[str, object]
    scope: Mapping[str, object]  # local names at the definition

    def parameters(self, constants: Mapping[str, object]) -> tuple[Parameter, ...]:
        """The parameters with their types. Raises TraceError at the definition for one that no kernel can take."""
        annotations = [(name, self._annotation(name, constants)) for name in self.names]
        parameters = tuple(Parameter(name, self._passable(name, type)) for name, type in annotations)
        self._check_distinct(parameters)
        return parameters

    def _check_distinct(self, parameters: Sequence[Parameter]) -> None:
        """PTX has no dots in names: `p.a` and `p_a` would be one."""
        known: dict[str, str] = {}
        for path, _ in (leaf for parameter in parameters for leaf in parameter.leaves):
            other = known.setdefault(ptx_name(path), path)
            if other != path:
                raise TraceError(
                    f"parameters `{other}` and `{path}` of kernel `{self.function.__name__}` would both be "
                    f"`{ptx_name(path)}` in PTX",
                    at=place_of(self.function),
                    help="rename one of them",
                )

    def _annotation(self, name: str, constants: Mapping[str, object]) -> Any:
        type = self.function.__annotations__[name]
        return self._resolve(name, type, constants) if isinstance(type, str) else type

    def _passable(self, name: str, type: Any) -> FieldType:
        if type is Parameters or not (passable(type) or isinstance(type, Definition)):
            called = type.__name__ if isinstance(type, Definition) else repr(type)
            raise TraceError(
                f"parameter `{name}` of kernel `{self.function.__name__}` is annotated {called}, which no kernel takes",
                at=place_of(self.function),
                help="derive a class from it, and annotate its fields" if type is Parameters else _PASSABLE,
            )
        return type  # type: ignore[no-any-return]

    def _resolve(self, name: str, text: str, constants: Mapping[str, object]) -> Any:
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

    @cached_property
    def captured(self) -> tuple[object, ...]:
        """What annotations read, as functions: those that are text are evaluated anew for each set of constants."""
        annotations = [self.function.__annotations__[name] for name in self.names]
        return tuple(
            FunctionType(compile(each, "annotation", "eval"), self.function.__globals__)
            if isinstance(each, str)
            else each
            for each in annotations
            if isinstance(each, str | Definition)
        )

    @property
    def depends_on_constants(self) -> bool:
        """Whether annotations name constants, so that they are known only when these are."""
        texts = [t for name in self.names if isinstance(t := self.function.__annotations__[name], str)]
        return any(set(compile(text, "annotation", "eval").co_names) & self.constants.keys() for text in texts)


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced kernel; `dynamic_bytes` of shared memory are needed at launch, None if that is for the caller to say."""

    module: ir.Module
    parameters: tuple[Parameter, ...]
    dynamic_bytes: int | None


def place_of(function: Callable[..., Any]) -> Location:
    """Where a function is defined."""
    code = function.__code__
    return Location(code.co_filename, code.co_firstlineno, function=code.co_name)


def signature(function: Callable[..., Any], scope: Mapping[str, object]) -> KernelSignature:
    """The parameters and constants of a kernel; `scope` holds local names at its definition.

    Raises TraceError at the definition for a parameter that no kernel can take.
    """
    names, constants = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            constants[p.name] = REQUIRED if p.default is p.empty else p.default
        else:
            _check_parameter(function, p)
            names.append(p.name)
    result = KernelSignature(function, tuple(names), constants, scope)
    if not result.depends_on_constants:
        result.parameters({})
    return result


def _check_parameter(function: Callable[..., Any], p: inspect.Parameter) -> None:
    of, where = f"of kernel `{function.__name__}`", place_of(function)
    if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
        help = "name each parameter, or take a group of them: pd.Parameters.of makes one whose fields are computed"
        raise TraceError(
            f"`{p.replace(annotation=p.empty)}` {of}: the number of its parameters must be known", at=where, help=help
        )
    if p.default is not p.empty:
        help = "parameters are given at each launch; constants of a kernel are keyword-only, behind a `*`"
        raise TraceError(f"parameter `{p.name}` {of} has a default", at=where, help=help)
    if p.annotation is p.empty and p.name in ("self", "cls"):
        help = "define the kernel outside of the class, and pass what it needs: arrays and numbers as parameters, "
        help += "what decides its text as keyword-only constants"
        raise TraceError(f"kernel `{function.__name__}` is a method: it takes `{p.name}`", at=where, help=help)
    if p.annotation is p.empty:
        help = f"annotate it: `{p.name}: ptr[f32]` for an array, `{p.name}: u32` for a number"
        raise TraceError(f"parameter `{p.name}` {of} has no type", at=where, help=help)


def trace(
    found: KernelSignature,
    constants: Mapping[str, object],
    *,
    arch: str = "sm_80",
    directives: tuple[ir.Directive, ...] = (),
) -> Traced:
    """Runs a kernel's function on traced values and returns its ir. Exceptions of the function pass through."""
    parameters = found.parameters(constants)
    kept = Snapshot([_outside(found, constants)])

    def traced(rounds: Rounds) -> Builder:
        kept.restore()
        return _traced(found, parameters, constants, arch, directives, rounds)

    builder = traced(Rounds())
    if builder.memory[Rounds].suspects:
        after = Snapshot([_outside(found, constants)])
        try:
            check_rounds(builder, traced)
        finally:
            after.restore()
    warn_unread(builder)
    builder.function.body = builder.finished()
    module = ir.Module((arch,), items=[*builder.globals, *builder.declared.values(), builder.function])
    return Traced(module, parameters, builder.dynamic_bytes)


def _outside(found: KernelSignature, constants: Mapping[str, object]) -> Names:
    """Where a kernel may find state that outlives a trace."""
    function = found.function
    return Names(function.__code__, 0, {function.__name__: function, **constants}, function.__globals__)


def _traced(
    found: KernelSignature,
    parameters: tuple[Parameter, ...],
    constants: Mapping[str, object],
    arch: str,
    directives: tuple[ir.Directive, ...],
    rounds: Rounds,
) -> Builder:
    """The kernel as its function emits it, once."""
    function = found.function
    builder = Builder(function.__name__, arch, function.__code__, place_of(function), make_value)
    builder.memory[Rounds] = rounds
    builder.function.directives.extend(directives)
    builder.function.unique(function.__name__)
    with building(builder):
        arguments = [_argument(builder, parameter) for parameter in parameters]
        _finish(builder, function(*arguments, **constants))
    return builder


def _argument(builder: Builder, parameter: Parameter) -> Any:
    """What the kernel's function gets for a parameter."""
    return assembled(parameter.type, iter([_load(builder, leaf) for leaf in parameter.leaves]))


def _load(builder: Builder, leaf: Leaf) -> Scalar | PointerValue | MappedTensor:
    """A parameter of PTX in a register; a pointer to a state space as an address within it."""
    path, type = leaf
    if isinstance(type, TensorMap):
        return _map(builder, path, type)
    held = type.register if isinstance(type, Pointer) else type
    stored = held if held.is_integer or held.name in ("f32", "f64") else bits(held.bits)
    name = ptx_name(path)
    variable = _parameter(builder, name, stored)
    windowed = isinstance(type, Pointer) and type.space in ("global", "const")
    with builder.at_start("" if windowed else name):
        loaded = operate(f"ld.param.{stored}", ir.Address(variable), type=held)
    if not isinstance(type, Pointer):
        return _called(loaded, path)
    if windowed:
        with builder.at_start(name):
            loaded = operate(f"cvta.to.{type.space}.u64", loaded)
    return PointerValue(_called(loaded, path), type)


def _parameter(
    builder: Builder, name: str, type: Type, shape: tuple[int, ...] = (), align: int | None = None
) -> ir.Variable:
    called = builder.function.unique(name if is_name(name) else "parameter")
    variable = ir.Variable(called, "param", type, shape, align)
    builder.function.parameters.append(variable)
    return variable


def _map(builder: Builder, path: str, type: TensorMap) -> MappedTensor:
    """A tensor map, which is passed by value: instructions take the generic address of the parameter."""
    name = ptx_name(path)
    variable = _parameter(builder, name, b8, (MAP_BYTES,), MAP_ALIGNMENT)
    with builder.at_start(""):
        address = operate("mov.u64", variable, type=u64)
    with builder.at_start(name):
        address = operate("cvta.param.u64", address, type=u64)
    return MappedTensor(PointerValue(_called(address, path), Pointer(b8, "generic")), type)


def _called(value: Scalar, path: str) -> Scalar:
    """Messages call a field by its path, which is no name in PTX."""
    value.site = Site(value.site.location, (path,))
    return value


def _finish(builder: Builder, result: object) -> None:
    builder.check_whole()
    if result is not None:
        raise TraceError(
            f"kernel `{builder.name}` returns {shown(result)}",
            at=builder.where,
            help="a kernel returns nothing: write results to memory",
        )
    check_roles(builder)
    builder.at_end()
    emit("ret")
    align_dynamic(builder)


@overload
def var(type: Type, init: ScalarLike | None = None, *, name: str | None = None) -> Var: ...


@overload
def var(type: Pointer, init: PointerValue | None = None, *, name: str | None = None) -> PointerVar: ...


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
