# What `f32` and `ptr[f32]` are to a type checker: as an annotation the values that a kernel computes with, as an
# expression the types of `ptxdsl.types`.
from typing import Generic, TypeAlias, TypeVar

from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.types import Pointer, Type

Element = TypeVar("Element")

class ScalarType(type, Type): ...  # type: ignore[misc] # it has slots

# One class for all types: what operators and `pd.fma` return is a Scalar, and a function that gives `f32` returns that.
class PointerType(type, Pointer):  # type: ignore[misc]
    def __getitem__(self, item: Type | tuple[Type, str]) -> Pointer: ...  # type: ignore[override]

class ptr(PointerValue, Generic[Element], metaclass=PointerType): ...

b1: TypeAlias = Scalar
b8: TypeAlias = Scalar
b16: TypeAlias = Scalar
b32: TypeAlias = Scalar
b64: TypeAlias = Scalar
b128: TypeAlias = Scalar
bf16: TypeAlias = Scalar
bf16x2: TypeAlias = Scalar
e4m3: TypeAlias = Scalar
e4m3x2: TypeAlias = Scalar
e5m2: TypeAlias = Scalar
e5m2x2: TypeAlias = Scalar
f16: TypeAlias = Scalar
f16x2: TypeAlias = Scalar
f32: TypeAlias = Scalar
f64: TypeAlias = Scalar
pred: TypeAlias = Scalar
s4: TypeAlias = Scalar
s8: TypeAlias = Scalar
s16: TypeAlias = Scalar
s16x2: TypeAlias = Scalar
s32: TypeAlias = Scalar
s64: TypeAlias = Scalar
tf32: TypeAlias = Scalar
u4: TypeAlias = Scalar
u8: TypeAlias = Scalar
u16: TypeAlias = Scalar
u16x2: TypeAlias = Scalar
u32: TypeAlias = Scalar
u64: TypeAlias = Scalar
