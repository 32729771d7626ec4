"""The properties of the arrays of a call that a kernel is specialised for: types, layouts, access widths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ptxdsl.errors import LaunchError
from ptxdsl.types import Type, bf16, e4m3, e5m2, f16, f32, f64, s8, s32, u8

INPUTS = (f16, bf16, f32, f64, s8, u8)  # types that every path multiplies, f32 as tf32
FP8 = (e4m3, e5m2)  # multiplied at full rate by wgmma only
# The accumulator type and the output types of an input type, if they are not f32 and FLOATS
SUMS = {f64: f64, s8: s32, u8: s32}
OUTPUTS = {
    f64: (f64,),
    **dict.fromkeys((s8, u8), (s32, f32, f16, bf16)),
    **dict.fromkeys(FP8, (f32, f16, bf16, *FP8)),
}
FLOATS = (f16, bf16, f32)
WIDTHS = (1, 2, 4, 8, 16)  # bytes of an access


class Major(StrEnum):
    """The contiguous dimension of A or B: K, or M or N."""

    K = "k"
    MN = "mn"


class CSource(StrEnum):
    """The location of C: there is none, it is a matrix of its own, or out holds it."""

    NONE = "none"
    SEPARATE = "separate"
    IN_PLACE = "in place"


class COrder(StrEnum):
    """The layout of C: that of out, or its transpose."""

    ROW = "row"
    COLUMN = "column"


class Batches(StrEnum):
    """The addressing of batches: a single product, matrices at equal distances, or a list of addresses."""

    NONE = "none"
    STRIDED = "strided"
    LISTED = "listed"


class Side(StrEnum):
    """A, B, or neither."""

    NONE = "none"
    A = "a"
    B = "b"


class Along(StrEnum):
    """The shape of an operand of the epilogue: one value a row, one a column, a matrix with the layout of the output,
    or its transpose."""

    M = "m"
    N = "n"
    MN = "mn"
    NM = "nm"


class Scaling(StrEnum):
    """The granularity of the float32 scales of 8-bit A and B: one for each tensor, for each row of A and column of B,
    or for each block of 128 elements along K."""

    TENSORS = "tensors"
    ROWS = "rows"
    BLOCKS = "blocks"


@dataclass(frozen=True)
class Extra:
    """An operand of the epilogue.

    `bytes` is the access width; `in_place` marks the output itself, as it was before; `is_batched` marks an operand
    with a matrix or vector for each batch or group.
    """

    type: Type
    along: Along
    bytes: int = 16
    in_place: bool = False
    is_batched: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "along", Along(self.along))

    @property
    def is_matrix(self) -> bool:
        return self.along in (Along.MN, Along.NM)


@dataclass(frozen=True)
class Operands:
    """The properties of the arrays of a product that its kernel is specialised for. Raises LaunchError if no kernel
    supports them.

    `inputs` and `output` are element types; `b_type` is the type of B if A and B are different 8-bit floats; `c_type`
    is the type of C if the output has 8 bits and C another type. The `*_bytes` are access widths. `extras` are the
    operands of the epilogue. Modes may be given by their values, such as a_major="mn".

    The following are for sm_90a. `out_boxes`: TMA stores the output. `streamed`: the operand
    that is loaded with evict_first, since each of its rows is loaded once. `a_gathered`: an index names the rows of A,
    which warps gather while TMA loads B. `rounded`: the float32 operand that is rounded to tf32 in registers.
    `scaling`: the granularity of scales, None for A and B without; `scale_bytes`: the access width for scales of
    neighbouring columns.
    """

    inputs: Type = f16
    output: Type = f16
    a_major: Major = Major.K
    b_major: Major = Major.K
    a_bytes: int = 16
    b_bytes: int = 16
    out_bytes: int = 16
    c: CSource = CSource.NONE
    c_major: COrder = COrder.ROW
    batches: Batches = Batches.NONE
    extras: tuple[Extra, ...] = ()
    out_boxes: bool = False
    streamed: Side = Side.NONE
    a_gathered: bool = False
    c_type: Type | None = None
    b_type: Type | None = None
    rounded: Side = Side.NONE
    scaling: Scaling | None = None
    scale_bytes: int = f32.bytes

    def __post_init__(self) -> None:
        for message in self._misfits():
            raise LaunchError(f"Operands: {message}")
        for name, kind in MODES.items():
            object.__setattr__(self, name, kind(getattr(self, name)))

    @property
    def input_types(self) -> tuple[Type, Type]:
        """The types of A and B."""
        return self.inputs, self.b_type or self.inputs

    @property
    def from_registers(self) -> Side:
        """The operand that wgmma reads from registers: float32 that is rounded there, or that is not K-major."""
        if self.inputs is not f32 or self.rounded is not Side.NONE:
            return self.rounded
        if self.a_major is Major.MN:
            return Side.A
        return Side.B if self.b_major is Major.MN else Side.NONE

    @property
    def are_k_major(self) -> bool:
        return self.a_major is self.b_major is Major.K

    @property
    def is_batched(self) -> bool:
        return self.batches is not Batches.NONE

    @property
    def sum(self) -> Type:
        """The type of the accumulators."""
        return SUMS.get(self.inputs, f32)

    @property
    def scalar(self) -> Type:
        """The type of alpha and beta, in which the output is computed."""
        return self.sum if self.output is self.sum else f32

    @property
    def staged(self) -> Type:
        """The type of the output in shared memory: rounded if nothing is added to it there and it does not have 8
        bits."""
        is_whole = self.c is CSource.NONE and not self.extras and self.output not in FP8
        return self.output if is_whole else self.scalar

    @property
    def added(self) -> Type:
        """The type of C."""
        return self.c_type or self.output

    @property
    def narrowest(self) -> int:
        """The smaller access width of A and B, in bytes."""
        return min(self.a_bytes, self.b_bytes)

    @property
    def has_block_scales(self) -> bool:
        """True if accumulators are promoted with scales of blocks along K."""
        return self.scaling is Scaling.BLOCKS

    def _misfits(self) -> Iterator[str]:
        if self.inputs not in (*INPUTS, *FP8):
            yield f"inputs is {self.inputs!r}; it takes {either((*INPUTS, *FP8))}"
        elif self.output not in gemm_outputs(self.inputs):
            yield f"output is {self.output!r}; of {self.inputs} inputs it takes {either(gemm_outputs(self.inputs))}"
        for field, modes in MODES.items():
            if getattr(self, field) not in [*modes]:
                yield f"{field} is {getattr(self, field)!r}; it takes {either(map(quoted, modes))}"
        for field, type in (("a_bytes", self.inputs), ("b_bytes", self.inputs), ("out_bytes", self.output)):
            width, widths = getattr(self, field), [width for width in WIDTHS if width >= type.bytes]
            if width not in widths or not isinstance(width, int):
                yield f"{field} is {width!r}; of {type} elements it takes {either(widths)}"
        if self.c_type is not None and (self.output not in FP8 or self.c_type not in FLOATS):
            yield f"c_type is {self.c_type!r}; beside outputs of 8 bits it takes {either(FLOATS)}, else None"
        if self.b_type is not None and {self.inputs, self.b_type} != {*FP8}:
            yield f"b_type is {self.b_type!r}; it takes None, and beside {FP8[0]} inputs {FP8[1]}, or the other way"
        if not isinstance(self.extras, tuple) or not all(isinstance(extra, Extra) for extra in self.extras):
            yield f"extras is {self.extras!r}; it takes a tuple of Extra, which gemm makes of `operands`"


MODES: dict[str, type[StrEnum]] = {
    "a_major": Major,
    "b_major": Major,
    "c": CSource,
    "c_major": COrder,
    "batches": Batches,
    "streamed": Side,
    "rounded": Side,
}


def outputs(inputs: Type) -> tuple[Type, ...]:
    """Return the output types for inputs of a type; the first is the default."""
    known = OUTPUTS.get(inputs, FLOATS)
    is_usual = inputs in known and inputs not in FP8
    return (inputs, *(t for t in known if t is not inputs)) if is_usual else known


def gemm_outputs(inputs: Type) -> tuple[Type, ...]:
    """Return the output types of gemm(), which on sm_90a rounds products of 16-bit floats to 8 bits as well."""
    return (*outputs(inputs), *(FP8 if inputs in (f16, bf16) else ()))


def takes_wgmma(inputs: Type, output: Type) -> bool:
    """Return whether only sm_90a supports the product: inputs or output are 8-bit floats."""
    return inputs in FP8 or output in FP8


def either(values: Iterable[Any]) -> str:
    """Return the text "a, b or c"."""
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last


def quoted(word: str) -> str:
    return f'"{word}"'
