"""Parameter groups: named, typed fields that a launch passes together and a kernel reads by name.

Instances hold numbers and arrays on the host, and traced values in a kernel. Each field, including those of nested
groups, is a separate PTX parameter. `flat` holds all values in parameter order; it is computed with the instance, so
that a launch need not traverse it.
"""

from __future__ import annotations

import copyreg
import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, NoReturn, Self, TypeAlias, get_origin
from weakref import WeakValueDictionary

import numpy as np

from ptxdsl.errors import Error, LaunchError, Location, TraceError, here, names_here
from ptxdsl.trace.builder import peek, refuse
from ptxdsl.trace.foreign import UnknownName
from ptxdsl.trace.instruction import Source
from ptxdsl.trace.tensor_map import TensorMap
from ptxdsl.types import FixedArray, Pointer, Type, meant_annotation, nearest_type, pred

FieldType: TypeAlias = "Type | Pointer | TensorMap | Definition"
METHODS = ("align_", "fields_", "flat", "leaves_", "of", "of_", "own_fields_", "with_")
ANNOTATE = "annotate ptr[f32] and the like for arrays, u32 and the like for numbers, u32[4] for four of them"
_NUMBERS = (int, float, np.generic)
_MISSING = object()
_of: WeakValueDictionary[Any, Definition] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class ParameterField:
    """A field of a group; `count` is the array length, None for a single value."""

    name: str
    type: FieldType
    count: int | None = None

    def __str__(self) -> str:
        return f"{self.type}" if self.count is None else f"{self.type}[{self.count}]"

    @property
    def names(self) -> list[str]:
        """The names of the values: that of the field, or `sizes[0]` and so on."""
        return [self.name] if self.count is None else [f"{self.name}[{n}]" for n in range(self.count)]


class Leaf(NamedTuple):
    """One PTX parameter; `path` is its access path, such as `a.data` or `sizes[0]`."""

    path: str
    type: Type | Pointer | TensorMap


class Definition(type):
    """The metaclass of groups: reads a class's fields at its definition, and refuses types that no kernel takes."""

    fields_: tuple[ParameterField, ...]
    own_fields_: tuple[ParameterField, ...]
    leaves_: tuple[Leaf, ...]
    align_: int

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, object], *, align: int = 1) -> Definition:
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object], *, align: int = 1) -> None:
        super().__init__(name, bases, namespace)
        if align not in (1, 2, 4, 8, 16, 32, 64, 128):
            refuse(f"{name} has align={align!r}", "align is a power of two of at most 128 bytes")
        if not bases:
            cls.fields_, cls.leaves_, cls.align_ = (), (), 1
            return
        inherited = [field for base in reversed(cls.__mro__[1:]) for field in vars(base).get("own_fields_", ())]
        cls.own_fields_ = tuple(_own_fields(cls, namespace))
        cls.fields_ = tuple(dict.fromkeys([*inherited, *cls.own_fields_]))
        cls.leaves_ = tuple(leaf for field in cls.fields_ for name in field.names for leaf in leaves(name, field.type))
        cls.align_ = max([align, *(base.align_ for base in bases if isinstance(base, Definition))])
        _check_distinct(cls)
        initializer(cls)

    __iter__ = None  # `Matrix[2]` is an array type, so Python must not iterate

    def __getitem__(cls, count: int) -> FixedArray:
        return FixedArray(cls, count)

    def __str__(cls) -> str:
        return cls.__name__

    def __setattr__(cls, name: str, value: object) -> None:
        if name in {field.name for field in vars(cls).get("fields_", ())}:
            raise _unsettable(cls, name)
        super().__setattr__(name, value)


def leaves(name: str, type: FieldType) -> tuple[Leaf, ...]:
    """Return the PTX parameters of a kernel parameter: one, or those of its group."""
    if not isinstance(type, Definition):
        return (Leaf(name, type),)
    return tuple([Leaf(f"{name}.{path}", kind) for path, kind in type.leaves_])


def assembled(type: FieldType, values: Iterator[object]) -> Any:
    """Assemble the value of a parameter from the values of its leaves."""
    if not isinstance(type, Definition):
        return next(values)
    fields: dict[str, Any] = {}
    for field in type.fields_:
        parts = [assembled(field.type, values) for _ in field.names]
        fields[field.name] = parts[0] if field.count is None else tuple(parts)
    return type(**fields)


def is_alike(value: object, definition: Definition) -> bool:
    """True if a value is an instance of the class, or of another class with the same fields."""
    kind = type(value)
    return kind is definition or getattr(kind, "fields_", None) == definition.fields_


def spelled(definition: Definition) -> str:
    """Return the text of an instance's constructor call: `Matrix(data=…, stride=…)`."""
    return f"{definition}({', '.join(f'{field.name}=…' for field in definition.fields_)})"


def passable(type: object) -> bool:
    """True if a kernel can have a parameter of this type."""
    if isinstance(type, Pointer):
        return type.space in ("global", "const", "generic", "shared")
    if isinstance(type, TensorMap):
        return True
    return isinstance(type, Type) and type is not pred and type.bits in (8, 16, 32, 64)


def _own_fields(cls: Definition, namespace: Mapping[str, object]) -> Iterator[ParameterField]:
    for name, value in namespace.items():
        if isinstance(value, Type | Pointer | TensorMap):
            refuse(f"`{name}` of {cls} is set to {value}", f"annotate it: `{name}: {value}`")
    names = names_here()
    scope, members = {**names.globals, **names.values} if names else {}, {**namespace, cls.__name__: cls}
    for name, annotation in inspect.get_annotations(cls).items():
        help = "it may name types and groups that are known where the class is defined"
        type = resolved(annotation, name, f"field `{name}` of {cls}", (scope, members), here().location, help)
        if type is ClassVar or get_origin(type) is ClassVar:
            continue
        _check_name(cls, name)
        if name in namespace:
            refuse(
                f"field `{name}` of {cls} has a default",
                "leave it out: each launch gives every field; what is usual can be filled in by a function of yours",
            )
        yield _field(cls, name, type)


def _check_name(cls: Definition, name: str) -> None:
    if name in METHODS or name.startswith("_"):
        why = "is what groups use for themselves" if name in METHODS else "begins with an underscore"
        refuse(f"field `{name}` of {cls} {why}", "give it another name")
    if not name.isidentifier() or iskeyword(name):
        refuse(f"field `{name}` of {cls} has a name that Python cannot read", "give it another name")


def resolved(
    annotation: Any, name: str, subject: str, scopes: tuple[dict[str, Any], Mapping[str, Any]], at: Location, help: str
) -> Any:
    """Evaluate a string annotation, as produced by `from __future__ import annotations`, in the scopes (global, local).

    `Annotated[Any, type]` is read as `type`. `subject` names what is annotated in the TraceError at `at`.
    """
    text = annotation
    try:
        while isinstance(annotation, str):  # a string in a string
            text = annotation
            annotation = eval(text, *scopes)
    except Error as why:
        raise TraceError(f"{subject}: {why.message}", at=at, help=why.help) from None
    except Exception as why:
        happens, near = f"cannot be resolved: {type(why).__name__}: {why}", meant_annotation(text)
        if isinstance(why, SyntaxError):
            happens = "is no expression of Python"
        help = f"did you mean `{name}: {near}`?" if near else help
        raise TraceError(f"the annotation `{text}` of {subject} {happens}", at=at, help=help) from None
    return annotation.__metadata__[0] if get_origin(annotation) is Annotated else annotation


def _field(cls: Definition, name: str, annotation: Any) -> ParameterField:
    type, count = annotation, None
    if isinstance(annotation, FixedArray):
        type, count = annotation.element, int(annotation.count)
    if type is cls:
        refuse(
            f"field `{name}` of {cls} is {cls} itself, which would never end",
            "point to others by ptr[u64], or name a group that is defined before",
        )
    if not (passable(type) or isinstance(type, Definition)) or type is Parameters:
        near = near_type(type)
        help = f"did you mean `{name}: {near}`?" if near else ANNOTATE
        kind = type.__name__ if inspect.isclass(type) else repr(type)
        refuse(f"field `{name}` of {cls} is annotated {kind}, which no kernel takes", help)
    return ParameterField(name, type, count)


def near_type(annotation: Any) -> str | None:
    """Return the type that an invalid annotation most likely means."""
    if isinstance(annotation, tuple) and len(annotation) == 2 and passable(annotation[0]):
        return f"{annotation[0]}[{annotation[1]}]"
    near = nearest_type(annotation)
    return str(near) if near is not None and passable(near) else None


def _check_distinct(cls: Definition) -> None:
    """Refuse fields that have the same PTX name: `a.data` and `a_data`."""
    for other, path in homonyms(cls.leaves_):
        refuse(f"fields `{other}` and `{path}` of {cls} would both be `{ptx_name(path)}` in PTX", "rename one of them")
    names = [field.name for field in cls.fields_]
    for name in names:
        if names.count(name) > 1:
            refuse(f"field `{name}` of {cls} has two types: it inherits a field of that name", "rename one of them")


def homonyms(leaves: Iterable[Leaf]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of paths that have one PTX name: `p.a` and `p_a`."""
    known: dict[str, str] = {}
    for path, _ in leaves:
        other = known.setdefault(ptx_name(path), path)
        if other != path:
            yield other, path


def ptx_name(path: str) -> str:
    """Return the PTX name of a parameter by its path: p_a_data for `p.a.data`, p_sizes_0 for `p.sizes[0]`."""
    return path.replace(".", "_").replace("[", "_").replace("]", "")


def initializer(cls: Definition) -> None:
    """Generate `__init__`: it takes each field by name, checks groups and arrays, and assembles `flat`."""
    names = [field.name for field in cls.fields_]
    keyword = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    cls.__signature__ = inspect.Signature(keyword)
    special = [field for field in cls.fields_ if field.count is not None or isinstance(field.type, Definition)]
    missing = "".join(f" or {name} is _missing" for name in names)
    values = "".join(f"{name!r}: {name}, " for name in names)
    lines = [
        f"def __init__(_self, *_positional, {''.join(f'{name}=_missing, ' for name in names)}**_unknown):",
        f"if _positional or _unknown{missing}: _misfit(_self, _positional, {{{values}**_unknown}})",
        *(f"if type({f.name}) is not _type_{f.name}: {f.name} = _fitted(_self, {f.name!r}, {f.name})" for f in special),
        "_state = _self.__dict__",
        *(f"_state[{name!r}] = {name}" for name in names),
        f"_state['flat'] = ({''.join(map(_flattened, cls.fields_))})",
        "if _peek() is not None: _check_traced(_self)",
    ]
    scope: dict[str, Any] = {
        "_missing": _MISSING, "_misfit": _misfit, "_fitted": _fitted, "_peek": peek, "_check_traced": _check_traced,
        "_leaves_of": _leaves_of, "__name__": __name__,
        **{f"_type_{f.name}": f.type if f.count is None else None for f in special},
    }  # fmt: skip
    exec(compile("\n    ".join(lines), __file__, "exec"), scope)
    cls.__init__ = scope["__init__"]  # type: ignore[misc]


def _flattened(field: ParameterField) -> str:
    if not isinstance(field.type, Definition):
        return f"{field.name}, " if field.count is None else f"*{field.name}, "
    return f"*{field.name}.flat, " if field.count is None else f"*_leaves_of({field.name}), "


def _leaves_of(groups: Sequence[Parameters]) -> list[Any]:
    return [leaf for group in groups for leaf in group.flat]


def _misfit(group: Parameters, positional: tuple[object, ...], values: Mapping[str, object]) -> NoReturn:
    """Raise the error for a missing or unknown field."""
    cls = type(group)
    fields = [field.name for field in cls.fields_]
    unknown = [name for name in values if name not in fields]
    missing = [name for name in fields if values.get(name, _MISSING) is _MISSING]
    if positional:
        _refuse(f"{cls} takes its fields by name; {len(positional)} given by position", f"write {spelled(cls)}")
    if unknown:
        _refuse(*_unknown(cls, unknown[0]))
    few = f"field{'s' * (len(missing) > 1)} {', '.join(f'`{name}`' for name in missing)}"
    _refuse(f"{cls} is made without its {few}", f"write {spelled(cls)}")


def _fitted(group: Parameters, name: str, value: object) -> Any:
    """Return a group or array elements that match the field. Raises LaunchError otherwise."""
    cls = type(group)
    field = next(field for field in cls.fields_ if field.name == name)
    if field.count is None:
        _check_group(f"field `{name}` of {cls}", field.type, value)
        return value
    elements = value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
    if not isinstance(elements, tuple | list):
        _refuse(f"field `{name}` of {cls} expects {field}, got {brief(value)}", f"pass a tuple of {field.count}")
    if len(elements) != field.count:
        _refuse(
            f"field `{name}` of {cls} expects {field}, got {len(elements)} elements", f"pass a tuple of {field.count}"
        )
    for n, element in enumerate(elements):
        _check_group(f"field `{name}[{n}]` of {cls}", field.type, element)
    return tuple(elements)


def _check_group(called: str, type: FieldType, value: object) -> None:
    if isinstance(type, Definition) and not is_alike(value, type):
        _refuse(f"{called} expects {type}, got {brief(value)}", f"write {spelled(type)}")


def _check_traced(group: Parameters) -> None:
    """Check, in a kernel, that traced values have the types of their fields."""
    for (path, type_), value in zip(type(group).leaves_, group.flat, strict=True):
        if isinstance(value, Source) and value.type != type_:
            is_number = isinstance(type_, Type) and isinstance(value.type, Type)
            _refuse(
                f"field `{path}` of {type(group)} is {type_}; `{value.name}` is {value.type}",
                f"convert it: `{value.name}.to({type_})`" if is_number else f"give it a {type_}",
            )


def _refuse(message: str, help: str) -> NoReturn:
    raise (LaunchError if peek() is None else TraceError)(message, at=here().location, help=help)


def _unknown(cls: Definition, name: str) -> tuple[str, str]:
    """Return the message for an unknown field, and the help line."""
    fields = [field.name for field in cls.fields_]
    near = difflib.get_close_matches(name, fields, 1)
    help = f"did you mean `{near[0]}`?" if near else f"its fields: {', '.join(fields)}" if fields else "it has none"
    return f"{cls} has no field `{name}`", help


def _unsettable(cls: Definition, name: str) -> TraceError:
    field = next((field for field in cls.fields_ if field.name == name), None)
    scalar = field is not None and field.count is None and not isinstance(field.type, Definition)
    variable = f"keep what changes in a variable, `{name} = pd.var({field}, p.{name})`; " if scalar else ""
    return TraceError(
        f"field `{name}` of {cls} is set; the parameters of a launch are immutable",
        at=here().location,
        help=f"{variable}`p.with_({name}=…)` is another {cls}",
    )


def brief(value: object) -> str:
    """Return a value in messages: numbers and strings as written, others by class."""
    if isinstance(value, int | float | str | None) and len(repr(value)) < 40:
        return repr(value)
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


class Parameters(metaclass=Definition):
    """Base class of parameter groups: derive from it and annotate the fields.

        class Matrix(pd.Parameters):
            data: ptr[f32]
            stride: s64

        @pd.kernel
        def scale(p: Matrix): ...            # reads p.data[i]

        scale[grid, block](Matrix(data=x, stride=64))

    A field is a pointer, a number, another group, or an array of these (`u32[4]`), which is read as a tuple. Fields of
    a base class come first. Methods may compute with the fields, in kernels and on the host. Instances are immutable.

    For struct parameters of parsed PTX, an instance has the layout of a C struct; `class Matrix(pd.Parameters,
    align=16)` corresponds to `__align__(16)`.

    Raises TraceError at the class for a field type that no kernel takes, and LaunchError for an instance with a field
    that is missing, unknown or of the wrong type.
    """

    flat: tuple[Any, ...]  # the values of all fields, with groups and arrays expanded in place

    @classmethod
    def of(cls, name: str, /, **fields: object) -> Callable[..., Self]:
        """Create a class of computed fields: `Parameters.of("Matrix", data=ptr[dtype], stride=s64)`.

        The same name and fields return the same class while it is in use.
        """
        key = cls, name, tuple((field, _key(annotation)) for field, annotation in fields.items())
        known = _of.get(key)
        if known is None:
            frame = names_here()
            module = frame.globals.get("__name__", "") if frame else ""
            known = Definition(name, (cls,), {"__annotations__": fields, "__module__": module, "of_": (cls, fields)})
            _of[key] = known
        return known

    def with_(self, **changes: object) -> Self:
        """Return a copy with other values of some fields."""
        cls: Any = type(self)
        return cls(**{field.name: getattr(self, field.name) for field in cls.fields_} | changes)  # type: ignore[no-any-return]

    if TYPE_CHECKING:  # on the host a field holds an array or a number, not the type that a kernel reads

        def __init__(self, **fields: object) -> None: ...

    else:

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            message, help = _unknown(type(self), name)
            refuse(message, help, UnknownName)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise _unsettable(type(self), name)

    def __delattr__(self, name: str) -> NoReturn:
        raise _unsettable(type(self), name)

    def __eq__(self, other: object) -> bool:
        """True for equal numbers of the same types, and identical arrays."""
        return type(self) is type(other) and _identity(self) == _identity(other)

    def __hash__(self) -> int:
        return hash(_identity(self))

    def __repr__(self) -> str:
        return (
            f"{type(self)}({', '.join(f'{f.name}={_represented(getattr(self, f.name))}' for f in type(self).fields_)})"
        )


def _key(annotation: object) -> object:
    """Return a key that distinguishes field types; groups live as long as the classes that contain them."""
    if isinstance(annotation, FixedArray):
        return _key(annotation.element), annotation.count
    if isinstance(annotation, TensorMap):  # its text omits the order of a box in shared memory
        return annotation
    return id(annotation) if isinstance(annotation, type) else repr(annotation)


def _identity(group: Parameters) -> tuple[Any, ...]:
    return type(group), *((type(v), repr(v)) if isinstance(v, _NUMBERS) else id(v) for v in group.flat)


def _represented(value: object) -> str:
    if isinstance(value, (*_NUMBERS, Parameters, Source, tuple, str, type(None))):
        return repr(value)
    shape = getattr(value, "shape", None)
    return f"<{type(value).__name__}{f' {shape}' if shape is not None else ''}>"


def _reduced(cls: Definition) -> Any:
    """Pickle a class of computed fields by its fields, and other classes by name."""
    if "of_" not in vars(cls):
        return cls.__qualname__
    base, fields = vars(cls)["of_"]
    return functools.partial(base.of, cls.__name__, **fields), ()


copyreg.pickle(Definition, _reduced)
