"""`@pd.function` and `pd.extern`: device functions that kernels and other device functions call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Generic, NoReturn, TypeVar, overload

from ptxdsl import ir
from ptxdsl.errors import (
    CallError,
    Location,
    Site,
    TraceError,
    UnknownAttribute,
    called_elsewhere,
    here,
    listed,
    names_here,
    public,
)
from ptxdsl.notes import ExternNote
from ptxdsl.trace import calls, literal
from ptxdsl.trace.builder import RESERVED, Builder, ModuleScope, building, current, is_name, refuse
from ptxdsl.trace.changes import Rounds, check_rounds
from ptxdsl.trace.contents import Traceable, constant_key
from ptxdsl.trace.flow import warn_unread
from ptxdsl.trace.foreign import called_value, undefined_name
from ptxdsl.trace.instruction import Scalar, Source, conversion, emit, shown
from ptxdsl.trace.mapped import MappedTensor
from ptxdsl.trace.memory import ArrayView, PointerValue
from ptxdsl.trace.operators import constant
from ptxdsl.trace.parameters import (
    Definition,
    FieldType,
    Leaf,
    Parameters,
    assembled,
    is_alike,
    leaves,
    ptx_name,
    spelled,
)
from ptxdsl.trace.signature import FUNCTION, REQUIRED, KernelSignature, Parameter, place_of, signature
from ptxdsl.trace.state import outside
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.trace.value import make_value
from ptxdsl.types import Pointer, Type

Results = tuple[FieldType, ...]
R = TypeVar("R")  # the annotated result of a function
_OF_KERNELS = frozenset(("ptx", "ir", "cubin", "sass", "resources", "compiled"))


@dataclass(frozen=True, slots=True)
class Interface:
    """The parameter and result types of a function. `is_tuple` is True if Python receives the results as a tuple."""

    name: str
    parameters: tuple[Parameter, ...]
    results: Results
    is_tuple: bool
    constants: tuple[str, ...] = ()

    @property
    def passed(self) -> list[Leaf]:
        """The values that a call passes."""
        return [leaf for parameter in self.parameters for leaf in parameter.leaves]

    @property
    def returned(self) -> list[calls.Passed]:
        """The types of the values that a call returns."""
        return [leaf.type for type in self.results for leaf in leaves("result", type)]

    def note(self, location: Location) -> ExternNote:
        """Return the types as text, for comparison between linked modules."""
        passed, returned = (tuple(map(str, types)) for types in ([leaf.type for leaf in self.passed], self.returned))
        return ExternNote(self.name, passed, returned, location)

    def flat(self, arguments: Sequence[object]) -> list[Any]:
        """Return the flattened values of a call's arguments. Raises TraceError for arguments of the wrong type."""
        if len(arguments) != len(self.parameters):
            self.refuse_call(f"{len(arguments)} argument{'s' * (len(arguments) != 1)} given by position")
        pairs = zip(self.parameters, arguments, strict=True)
        return [value for p, argument in pairs for value in _flat(f"`{self.name}` takes", p.name, p.type, argument)]

    def refuse_call(self, happens: str) -> NoReturn:
        """Refuse a call whose arguments are not those of the function."""
        takes = listed([f"{parameter.name}: {parameter.type}" for parameter in self.parameters] or ["nothing"])
        names = [*(parameter.name for parameter in self.parameters), *(f"{name}=…" for name in self.constants)]
        refuse(f"`{self.name}` takes {takes}; {happens}", f"call it as `{self.name}({', '.join(names)})`", CallError)

    def returned_values(self, result: object) -> list[Any]:
        """Return the flattened values of a Python function's result."""
        values = (result,) if not self.is_tuple else result
        if not isinstance(values, tuple | list) or len(values) != len(self.results):
            results = ", ".join(map(str, self.results))
            listed = f"({results})" if self.is_tuple else results or "nothing"
            refuse(f"`{self.name}` returns {_shown(result)}; it gives {listed}", "return one value for each")
        pairs = zip(self.results, values, strict=True)
        return [value for type, each in pairs for value in _flat(f"`{self.name}` gives", "its result", type, each)]

    def call(self, builder: Builder, function: ir.Function, values: Sequence[Any]) -> Any:
        """Emit a call with these flattened arguments, and return its result in Python."""
        with calls.scope(builder):
            variables = calls.call(builder, function, [leaf.type for leaf in self.passed], values)
            if not self.results:
                return None
            loaded = iter([calls.load(member) for member in calls.members(variables, self.returned)])
            gathered = tuple([assembled(type, loaded) for type in self.results])
            return gathered if self.is_tuple else gathered[0]


def _shown(result: object) -> str:
    return "nothing" if result is None else shown(result)


def _flat(takes: str, name: str, type: FieldType, value: object) -> Iterator[Any]:
    """Yield the flattened values of an argument or result. `takes` begins the message for a mismatch."""
    if isinstance(type, Definition):
        if not isinstance(value, Parameters) or not is_alike(value, type):
            refuse(f"{takes} a group {type} as {_called(name)}; found {_shown(value)}", f"make one: `{spelled(type)}`")
        for leaf, part in zip(type.leaves_, value.flat, strict=True):
            yield _fitting(takes, f"{name}.{leaf.path}", leaf.type, part)
    else:
        yield _fitting(takes, name, type, value)


def _called(name: str) -> str:
    return name if " " in name else f"`{name}`"


def _fitting(takes: str, name: str, type: Any, value: object) -> Any:
    if isinstance(type, Type) and literal.is_number(value):
        number = literal.plain(value)
        try:
            literal.encode(number, type)
        except ValueError as why:
            low, high = literal.limits(type)
            help = None if type.is_float or type.bits > 64 else f"{type} holds integers from {low} to {high}"
            refuse(f"{takes} {type} as {_called(name)}; {why}", help)
        return constant(number, type)
    if isinstance(value, Scalar | PointerValue | MappedTensor) and value.type == type:
        return value
    refuse(f"{takes} {type} as {_called(name)}; found {_shown(value)}", _mend(type, value))


def _mend(type: object, value: object) -> str | None:
    """Return the help line for an argument of the wrong type."""
    if isinstance(value, ArrayView):
        return f"pass the address of its first element: `{value.name}.address(0)`"
    if isinstance(type, Pointer):
        if isinstance(value, PointerValue):
            return "bitcast() changes the element type; an address stays in its state space"
        return f"pass an address, such as that in a parameter `p: {type}` of the kernel"
    if not isinstance(type, Type):
        return None
    if isinstance(value, Scalar):
        return conversion(value, type)
    if isinstance(value, PointerValue):
        return "pass an element of it, `p[0]`, or its address, `p.value`"
    return f"take a value of type {type}, or a number"


class DeviceFunction(Traceable, Generic[R]):
    """A function decorated with `@pd.function`: traced once per module into a `.func` that kernels call."""

    def __init__(self, function: Callable[..., Any], signature: KernelSignature) -> None:
        functools.update_wrapper(self, function)
        self.signature, self.name = signature, function.__name__

    def __repr__(self) -> str:
        return f"<device function {self.name}>"

    @property
    def traced(self) -> tuple[object, ...]:
        return self.signature.function, *self.signature.captured

    def __getitem__(self, launch: object) -> NoReturn:
        refuse(f"`{self.name}` is a device function, and is not launched", "launch a kernel that calls it")

    __iter__ = None  # Python would iterate over elements

    def __getattr__(self, name: str) -> NoReturn:
        if name in _OF_KERNELS:
            message = f"`{self.name}` is a device function, which has no `{name}`"
            refuse(message, "ask a kernel that calls it", UnknownAttribute)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __call__(self, *arguments: object, **constants: object) -> R:
        """Call the function from a kernel or another device function."""
        builder = current(f"{self.name}(…)")
        interface, values = self.interface(constants)
        passed = interface.flat(arguments)
        function = self.traced_in(builder, interface, values)
        result: R = interface.call(builder, function, passed)
        return result

    def interface(self, constants: Mapping[str, object]) -> tuple[Interface, dict[str, object]]:
        """Return the types for these constants, and the values of all constants."""
        known = self.signature.constants
        values = {name: constants.get(name, default) for name, default in known.items()}
        results, is_tuple = self._results(values)
        interface = Interface(self.name, self.signature.parameters(values), results, is_tuple, tuple(known))
        for name in constants.keys() - known.keys():
            interface.refuse_call(f"`{name}` given by name")
        for name, value in values.items():
            if value is REQUIRED:
                interface.refuse_call(f"its constant `{name}` is missing")
            if isinstance(value, Source):
                refuse(
                    f"`{name}` is a constant of `{self.name}`; {shown(value)}, has no value while tracing",
                    f"make it a parameter: `{name}: {value.type}`, before the `*`",
                )
        return interface, values

    def _results(self, constants: Mapping[str, object]) -> tuple[Results, bool]:
        """Return the result types, and True for a tuple. Raises TraceError for one that a function cannot return."""
        annotation = self.signature.returned(constants)
        is_tuple = isinstance(annotation, GenericAlias) and annotation.__origin__ is tuple
        types = annotation.__args__ if is_tuple else () if annotation is None else (annotation,)
        for type in types:
            if not self.signature.can_pass(type):
                raise TraceError(
                    f"function `{self.name}` is annotated to return {type!r}, which a function cannot return",
                    at=place_of(self.signature.function),
                    help="annotate a type such as `-> u32`, or several: `-> tuple[u32, f32]`",
                )
        return tuple(types), is_tuple

    def traced_in(self, builder: Builder, interface: Interface, constants: dict[str, object]) -> ir.Function:
        """Return the PTX function in the current module, traced at its first call."""
        scope = builder.module
        key = id(self), *map(constant_key, constants.values())
        known = scope.known.get(key)
        if known is None:
            return self._traced(builder, interface, constants, key)
        is_open = known is not builder.function and any(known is caller.function for caller in builder.callers)
        if is_open and not any(each.name == known.name for each in scope.functions):
            declaration = ir.Function(known.name, "func", known.parameters, known.returns, body=None, linkage="")
            scope.functions.insert(0, declaration)  # called before its definition is printed
        return known

    def _traced(
        self, builder: Builder, interface: Interface, constants: dict[str, object], key: tuple[Any, ...]
    ) -> ir.Function:
        function = self.signature.function
        state, untouched = outside(function, constants), builder.module.copy()

        def traced(rounds: Rounds, scope: ModuleScope) -> Builder:
            return self._run(builder, interface, constants, key, rounds, scope)

        first = traced(Rounds(), builder.module)
        if changed := state.changed():
            name = changed[0].differences()[0][0]
            state.restore()
            refuse(
                f"the function `{self.name}` changes `{name}` of Python: it is traced only once for all calls",
                "return what it computes; a helper without @pd.function is traced at each call",
            )
        if first.memory[Rounds].suspects:
            check_rounds(first, lambda rounds: traced(rounds, untouched.copy()))
        warn_unread(first)
        first.function.body = first.finished()
        builder.module.functions.append(first.function)
        return first.function

    def _run(
        self,
        caller: Builder,
        interface: Interface,
        constants: dict[str, object],
        key: tuple[Any, ...],
        rounds: Rounds,
        scope: ModuleScope,
    ) -> Builder:
        """Run the Python function once and return its builder."""
        function = self.signature.function
        builder = Builder(
            self.name, caller.arch, function.__code__, place_of(function), make_value, FUNCTION, caller, scope
        )
        builder.function = target = ir.Function(builder.unique_global(self.name), "func", linkage="")
        target.names.update(dict.fromkeys(RESERVED, 0))
        scope.known[key] = target
        builder.memory[Rounds] = rounds
        target.returns += calls.results(builder.unique("result"), interface.returned)
        builder.give = functools.partial(_give, builder, interface)
        with building(builder):
            result = run(function, interface.parameters, lambda leaf: _load(builder, leaf), constants)
            builder.check_ended()
            builder.at_end()
            if interface.results or result is not None:
                _check_given(builder, interface, result)
                builder.give(result)
            emit("ret")
        return builder


def run(
    function: Callable[..., Any],
    parameters: Sequence[Parameter],
    load: Callable[[Leaf], Any],
    constants: Mapping[str, object],
) -> object:
    """Call a Python function on traced arguments, which `load` makes of the PTX parameters, and return its result."""
    loaded = iter([load(leaf) for parameter in parameters for leaf in parameter.leaves])
    arguments = [assembled(parameter.type, loaded) for parameter in parameters]
    try:
        return function(*arguments, **constants)
    except (NameError, TypeError) as error:
        told = undefined_name(error) if isinstance(error, NameError) else called_value(error)
        if told is error:
            raise
        raise told from None


def _check_given(builder: Builder, interface: Interface, result: object) -> None:
    name, where = interface.name, builder.where
    if not interface.results:
        help = "annotate its result: `-> u32` after its parameters"
        refuse(f"the function `{name}` returns {shown(result)}, but its annotation declares no result", help, at=where)
    if result is None:
        help = "end it by a `return`; `pd.return_(p, value=…)` leaves it before, for the threads where `p` holds"
        types = ", ".join(map(str, interface.results))
        refuse(f"the function `{name}` is annotated to return {types}, and ends without a result", help, at=where)


def _give(builder: Builder, interface: Interface, result: object) -> None:
    """Store the function's result for its caller."""
    returns: list[Any] = builder.function.returns
    values = interface.returned_values(result) if interface.results else []
    members = calls.members(returns, interface.returned)
    for member, value in zip(members, values, strict=True):
        calls.store(member, value)


def _load(builder: Builder, leaf: Leaf) -> Any:
    path, type = leaf
    variable = calls.parameter(builder.unique(ptx_name(path)), type)
    builder.function.parameters.append(variable)
    with builder.at_start(ptx_name(path)):
        value = calls.load(calls.PassedMember(variable, 0, type))
    scalar: Any = value.pointer.base if isinstance(value, MappedTensor) else getattr(value, "base", value)
    scalar.site = Site(builder.where, (path,))
    return value


def module_of(function: DeviceFunction[Any], arch: str) -> ir.PtxModule:
    """Return a module that defines a device function for other modules."""
    builder = Builder(function.name, arch, None, place_of(function.signature.function), make_value)
    interface, constants = function.interface({})
    function.traced_in(builder, interface, constants).linkage = "visible"
    scope = builder.module
    return ir.PtxModule((arch,), items=[*scope.globals, *scope.declared.values(), *scope.functions])


@overload
def function(function: Callable[..., R]) -> DeviceFunction[R]: ...


@overload
def function() -> Callable[[Callable[..., R]], DeviceFunction[R]]: ...


@public
@called_elsewhere(
    arch="a function takes its target from the kernel that calls it",
    inline="a Python function without @pd.function is traced where it is called",
)
def function(
    function: Callable[..., Any] | None = None,
) -> DeviceFunction[Any] | Callable[[Callable[..., Any]], DeviceFunction[Any]]:
    """Decorate a Python function as a device function with typed parameters and results.

        @pd.function
        def gcd(a: u32, b: u32) -> u32:
            pd.return_(b == 0, value=a)
            return gcd(b, a % b)

    It becomes a `.func` in the PTX, is traced once per module, and may call itself; it must not change Python state.
    Parameters are annotated like those of a kernel; keyword-only ones are constants. `-> tuple[u32, f32]` returns two
    results. Plain Python helpers need no decorator: they are traced (inlined) at each call.

    Raises TraceError at the definition for types that cannot be passed, and CallError for calls with the wrong number
    of arguments.
    """
    names = names_here()
    make = functools.partial(_decorated, names.values if names else {})
    return make if function is None else make(function)


def _decorated(scope: Mapping[str, object], function: Callable[..., Any]) -> DeviceFunction[Any]:
    """Create a device function whose annotations may use names of `scope`."""
    if not inspect.isfunction(function):
        refuse(f"pd.function decorates a function; found {function!r}", "put it above a `def`")
    if not is_name(function.__name__):
        refuse(
            f"PTX cannot call a function `{function.__name__}`",
            "use only ASCII letters, digits and underscores, other than `_`",
        )
    device: DeviceFunction[Any] = DeviceFunction(function, signature(function, scope, FUNCTION))
    if not device.signature.depends_on_constants:
        device._results({})
    return device


class ExternFunction:
    """A function that another module of a `pd.link` defines."""

    def __init__(self, interface: Interface, where: Location) -> None:
        self.interface, self.name, self.where = interface, interface.name, where

    def __repr__(self) -> str:
        return f"<extern function {self.name}>"

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Call the function from a kernel or a device function."""
        builder = current(f"{self.name}(…)")
        for name in named:
            self.interface.refuse_call(f"`{name}` given by name")
        passed = self.interface.flat(arguments)
        types = [leaf.type for leaf in self.interface.passed]
        for caller in builder.callers:
            if self.name in caller.function.names:
                refuse(
                    f"`{self.name}` is an external function, and also a name in the {caller.noun} `{caller.name}`",
                    "rename the parameter or the array",
                )
        *_, kernel = builder.callers
        externs = kernel.memory.setdefault(ExternNote, {})
        externs.setdefault(self.name, self.interface.note(builder.site().location))
        function = calls.declared(builder, self.name, types, self.interface.returned)
        return self.interface.call(builder, function, passed)


@public
@called_elsewhere(
    **dict.fromkeys(("args", "arguments", "argtypes", "params", "inputs"), "they are `parameters=` here"),
    **dict.fromkeys(("returns", "result", "restype", "ret", "outputs"), "it is `results=` here: a type, or a tuple"),
)
def extern(
    name: str, parameters: Sequence[FieldType] | Mapping[str, FieldType] = (), results: Any = None
) -> ExternFunction:
    """Declare a function that another module defines.

    `name` is the symbol: for C++ the mangled name, or that of an `extern "C"` function. `parameters` is a tuple of
    types, or a mapping of names to types; `results` is a type, a tuple of types (a struct in C++), or None. Values are
    passed in the C++ calling convention. `pd.link(kernel, module)` supplies the definition.

        smooth = pd.extern("smooth", (ptr[f32], u32), f32)
    """
    if not (isinstance(name, str) and is_name(name.replace("$", "_"))):
        refuse(
            f"pd.extern takes the name of a symbol; found {name!r}", 'for example `pd.extern("smooth", (u32,), f32)`'
        )
    if not isinstance(parameters, Mapping | Sequence):
        refuse(f"pd.extern of `{name}`: its parameters are {parameters!r}", f"pass a tuple: `({parameters!r},)`")
    named = parameters if isinstance(parameters, Mapping) else {f"p{n}": type for n, type in enumerate(parameters)}
    returned = tuple(results) if isinstance(results, tuple | list) else () if results is None else (results,)
    for type in (*named.values(), *returned):
        if not isinstance(type, Type | Pointer | TensorMap | Definition):
            refuse(f"pd.extern of `{name}`: {type!r} cannot be passed to a function", "such as u32, f32 or ptr[f32]")
    taken = tuple([Parameter(each, type) for each, type in named.items()])
    return ExternFunction(Interface(name, taken, returned, isinstance(results, tuple | list)), here().location)
