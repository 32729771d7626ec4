"""Scalar and packed types, state spaces and pointers of PTX, and their numpy types.

Source: PTX ISA, "State Spaces, Types, and Variables".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

import numpy as np

from ptxdsl.errors import TraceError, here


@dataclass(frozen=True, slots=True)
class FixedArray:
    """The type of a fixed-length array field in a parameter group: `u32[4]`.

    Raises TraceError unless the length is an int of at least 1.
    """

    element: Any  # a Type, a Pointer, or the class of a group
    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, int | np.integer) or isinstance(self.count, bool) or self.count < 1:
            help = "the length of an array is an int of at least 1; for any length use a pointer, such as ptr[f32]"
            raise TraceError(f"{self} has an invalid length", at=here().location, help=help)

    def __str__(self) -> str:
        return f"{self.element}[{self.count!r}]"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Type:
    """A PTX type. `kind` is b (bits), u, s, f (floating), p (predicate), x (packed elements) or o (opaque)."""

    name: str
    bits: int
    kind: str

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__
    __iter__ = None  # `u32[4]` is not an element type

    def __getitem__(self, count: int) -> FixedArray:
        return FixedArray(self, count)

    def __call__(self, *values: object) -> NoReturn:
        """Refuse `f32(i)`, as written in CUDA C++ and numba, and suggest the conversion."""
        code = getattr(values[0], "code", None) if values else None
        help = f"convert a value by `v.to({self})`; Python numbers adopt the type of the other operand"
        help = f"convert it by `{code}.to({self})`" if isinstance(code, str) else help
        raise TraceError(f"{self} is a type and cannot be called to convert a value", at=here().location, help=help)

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle by name, so that types can be compared with `is`."""
        return _by_name, (self.name,)

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def is_integer(self) -> bool:
        return self.kind in "us"

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.kind == "s"

    @property
    def register(self) -> Type:
        """The type of registers that hold this type (`.bf16` is held in a `.b16`)."""
        return self if self.name in _DECLARABLE else bits(self.bits)

    @property
    def dtype(self) -> np.dtype:
        """The numpy type of one lane; floats that numpy lacks are unsigned integers of the same width."""
        return _dtype(self.kind, self.bits, self.name)


@cache
def _dtype(kind: str, width: int, name: str) -> np.dtype:
    if kind == "p":
        return np.dtype(bool)
    if width > 64:
        return np.dtype(np.void(width // 8).dtype)
    if kind == "f" and name in ("f16", "f32", "f64"):
        return np.dtype(f"f{width // 8}")
    return np.dtype(("i" if kind == "s" else "u") + str(max(1, width // 8)))


b8, b16, b32, b64, b128 = (Type(f"b{n}", n, "b") for n in (8, 16, 32, 64, 128))
u8, u16, u32, u64 = (Type(f"u{n}", n, "u") for n in (8, 16, 32, 64))
s8, s16, s32, s64 = (Type(f"s{n}", n, "s") for n in (8, 16, 32, 64))
f16, f32, f64 = (Type(f"f{n}", n, "f") for n in (16, 32, 64))
bf16, tf32 = Type("bf16", 16, "f"), Type("tf32", 32, "f")
e4m3, e5m2 = Type("e4m3", 8, "f"), Type("e5m2", 8, "f")
f16x2, bf16x2, u16x2, s16x2 = (Type(n, 32, "x") for n in ("f16x2", "bf16x2", "u16x2", "s16x2"))
e4m3x2, e5m2x2, f32x2 = Type("e4m3x2", 16, "x"), Type("e5m2x2", 16, "x"), Type("f32x2", 64, "x")
e4m3x4, e5m2x4 = Type("e4m3x4", 32, "x"), Type("e5m2x4", 32, "x")
s4, u4, b1 = Type("s4", 4, "s"), Type("u4", 4, "u"), Type("b1", 1, "b")
pred = Type("pred", 1, "p")
texref, samplerref, surfref = (Type(n, 64, "o") for n in ("texref", "samplerref", "surfref"))

TYPES = {t.name: t for t in (
    b8, b16, b32, b64, b128, u8, u16, u32, u64, s8, s16, s32, s64, f16, f32, f64, bf16, tf32, e4m3, e5m2,
    f16x2, bf16x2, u16x2, s16x2, e4m3x2, e5m2x2, e4m3x4, e5m2x4, f32x2, s4, u4, b1, pred,
)}  # fmt: skip

_OPAQUE = {t.name: t for t in (texref, samplerref, surfref)}


def _by_name(name: str) -> Type:
    return TYPES.get(name) or _OPAQUE[name]


_DECLARABLE = {"pred", "f16", "f16x2", "f32", "f64"} | {f"{k}{n}" for k in "bus" for n in (8, 16, 32, 64)} | {"b128"}


def bits(width: int) -> Type:
    """Return the untyped-bits type of a width: bits(32) is b32."""
    return TYPES[f"b{width}"]


def lanes(packed: Type) -> tuple[Type, int]:
    """Return the element type and count of a packed type: lanes(f16x2) is (f16, 2); a scalar has one lane."""
    if packed.kind != "x":
        return packed, 1
    element, _, count = packed.name.rpartition("x")
    return TYPES[element], int(count)


SPACES = ("const", "global", "local", "param", "shared", "shared::cta", "shared::cluster", "generic")


@dataclass(frozen=True, slots=True)
class Pointer:
    """The type of a pointer parameter of a kernel: `ptr[f32]`, or `ptr[f32, "shared"]`.

    Raises TraceError if the element is not a type, or the space is not a PTX state space.
    """

    element: Type
    space: str = "global"

    def __str__(self) -> str:
        return f"ptr[{self.element}]" if self.space == "global" else f'ptr[{self.element}, "{self.space}"]'

    __repr__ = __str__
    __iter__ = None

    def __getitem__(self, count: int) -> FixedArray:
        return FixedArray(self, count)

    bits = 64
    bytes = 8

    @property
    def register(self) -> Type:
        return u64 if self.space in ("global", "generic", "const", "local", "param") else u32


class _PointerMaker:
    """The indexable object `ptr`, so that `ptr[f32]` reads as a type."""

    def __getitem__(self, item: Type | tuple[Type, str]) -> Pointer:
        element: Any
        element, space = item if isinstance(item, tuple) else (item, "global")
        if not isinstance(element, Type):
            help = "write the element type, such as `ptr[f32]`"
            help = f"did you mean `ptr[{known}]`?" if (known := nearest_type(element)) else help
            raise TraceError(f"ptr[…] takes a type of ptxdsl; found {_shown(element)}", at=here().location, help=help)
        if space not in SPACES:
            help = f"it is one of {', '.join(SPACES)}"
            raise TraceError(f"ptr[{element}, …] takes a state space; found {space!r}", at=here().location, help=help)
        return Pointer(element, space)

    def __call__(self, *element: object) -> NoReturn:
        """Refuse `ptr(f32)`, and suggest `ptr[f32]`."""
        known = element[0] if element and isinstance(element[0], Type) else "f32"
        raise TraceError(
            "ptr is indexed by the element type, not called", at=here().location, help=f"write `ptr[{known}]`"
        )

    def __repr__(self) -> str:
        return "ptr"


def _shown(element: Any) -> str:
    return element.__name__ if isinstance(element, type) else repr(element)


def nearest_type(element: Any) -> Type | None:
    """Return the type that a Python or numpy type, or a name, most likely denotes."""
    if element is int or element is float:
        return s32 if element is int else f32
    try:
        return TYPES.get(str(element)) or from_dtype(np.dtype(element))
    except (TypeError, ValueError):
        return None


_NAMES_ELSEWHERE = {
    "half": f16, "__half": f16, "fp16": f16, "float16": f16, "__nv_bfloat16": bf16, "bfloat16": bf16,
    "float": f32, "fp32": f32, "float32": f32, "double": f64, "fp64": f64, "float64": f64,
    "int": s32, "unsigned": u32, "char": s8, "size_t": u64, "bool": u8,
    **{f"{name}{b}{t}": TYPES[f"{k}{b}"] for name, k in (("int", "s"), ("uint", "u")) for b in (8, 16, 32, 64)
       for t in ("", "_t")},
    **{f"i{b}": TYPES[f"s{b}"] for b in (8, 16, 32, 64)},
}  # fmt: skip


def meant_annotation(text: str) -> str | None:
    """Return the annotation meant by one written as in C (`const float*`), Triton (`*fp16`) or by one of their type
    names.
    """
    words = [word for word in text.replace("*", " ").split() if word not in ("const", "__restrict__", "restrict")]
    name = "unsigned" if words == ["unsigned", "int"] else " ".join(words)
    type = TYPES.get(name) or _NAMES_ELSEWHERE.get(name)
    return None if type is None else str(Pointer(type) if "*" in text else type)


ptr = _PointerMaker()

_ML_DTYPES = {"bfloat16": bf16, "float8_e4m3fn": e4m3, "float8_e5m2": e5m2}
_NUMPY = {
    "f2": f16,
    "f4": f32,
    "f8": f64,
    **{f"{k}{n}": TYPES[f"{p}{8 * n}"] for k, p in ("is", "uu") for n in (1, 2, 4, 8)},
}


def from_dtype(dtype: np.dtype | str) -> Type | None:
    """Return the type of a numpy (or ml_dtypes, torch or CuPy) dtype; None if there is no equivalent."""
    name = str(dtype).rpartition(".")[2]
    if name in _ML_DTYPES:
        return _ML_DTYPES[name]
    try:
        known = np.dtype(name)
    except TypeError:
        return None
    return u8 if known == np.bool_ else _NUMPY.get(f"{known.kind}{known.itemsize}")
