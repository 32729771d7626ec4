"""Multicast memory of several GPUs (PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red").

A multimem address refers to a location in the memory of each GPU of a group; the host program sets it up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..types import f64
from .form import Form, Needs, Values
from .memory import SCOPES, access_bytes, alignment_problems
from .opaque import GpuOnly
from .opcode import Opcode
from .operand import OperandList, Problem

INTEGERS = "u32 u64 s32 s64 b32 b64"
HALVES = "f16 f16x2 bf16 bf16x2"
BYTES = "e4m3x2 e4m3x4 e5m2x2 e5m2x4"
FLOATS = f"{HALVES} f32 f64"
COMBINED = {
    "add": f"u32 u64 s32 {FLOATS} {BYTES}",
    **dict.fromkeys(("min", "max"), f"u32 s32 u64 s64 {HALVES} {BYTES}"),
    **dict.fromkeys(("and", "or", "xor"), "b32 b64"),
}
"""The types that each operation supports."""
REDUCED = {**COMBINED, "add": f"u32 u64 s32 {FLOATS}", **dict.fromkeys(("min", "max"), "u32 s32 u64 s64")}
"""The types that multimem.red supports."""
NEEDS: Needs = {
    **dict.fromkeys((*BYTES.split(), "acc::f16"), ("8.6", "100f 110f 120a 121a")),
    "acc::f32": ("8.2", 90),
}  # fmt: skip
VECTORS = "v2 v4 v8"
LEAST: dict[str, Any] = {"space": "global", "ptx": "8.1", "sm": 90, "needs": NEEDS}


def _whole(i: Values) -> bool:
    """True if one access has 4, 8 or 16 bytes; f64 has no vectors."""
    return access_bytes(i) in (4, 8, 16) and not (i.type is f64 and i.vec)


def _loads(i: Values) -> bool:
    """True if the type supports the operation and the accumulator type."""
    wider = {"acc::f32": HALVES, "acc::f16": BYTES}.get(i.acc)
    return str(i.type) in COMBINED[i.operation].split() and (
        wider is None or (i.operation == "add" and str(i.type) in wider.split())
    )


def _load(order: str, **slots: Any) -> tuple[Form, Form]:
    """Return the integer and the floating-point form."""
    front = f"multimem.ld_reduce{order}{{.space}}.operation"
    return (
        Form(f"{front}.type d=type, [a:space]", operation=COMBINED, type=INTEGERS, when=_loads, **LEAST, **slots),
        Form(
            f"{front}{{.acc}}{{.vec}}.type d=type*vec, [a:space]",
            operation="add min max",
            acc="acc::f32 acc::f16",
            vec=VECTORS,
            type=f"{FLOATS} {BYTES}",
            when=lambda i: _loads(i) and _whole(i),
            **LEAST,
            **slots,
        ),
    )


def _store(order: str, **slots: Any) -> tuple[Form, Form]:
    front = f"multimem.st{order}{{.space}}"
    return (
        Form(f"{front}.type [a:space], b:type", type=INTEGERS, **LEAST, **slots),
        Form(
            f"{front}{{.vec}}.type [a:space], b:type*vec",
            vec=VECTORS,
            type=f"{FLOATS} {BYTES}",
            when=_whole,
            **LEAST,
            **slots,
        ),
    )


def _red(order: str, **slots: Any) -> tuple[Form, Form]:
    front = f"multimem.red{order}{{.space}}"
    return (
        Form(
            f"{front}.operation.type [a:space], b:type",
            operation=REDUCED,
            type=INTEGERS,
            when=lambda i: str(i.type) in REDUCED[i.operation].split(),
            **LEAST,
            **slots,
        ),
        Form(
            f"{front}.add{{.vec}}.type [a:space], b:type*vec", vec=VECTORS, type=FLOATS, when=_whole, **LEAST, **slots
        ),
    )


class Multimem(GpuOnly):
    """Base of the multimem instructions."""

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        names = [operand.name for operand in i.operands]
        yield from alignment_problems("a", operands[names.index("a")], access_bytes(i))


class MultimemLoadReduce(Multimem):
    """Load from all GPUs and reduce: d = the values at a multimem address, combined by an operation."""

    forms = (*_load("{.weak}"), *_load(".sem.scope", sem="relaxed acquire", scope=SCOPES))


class MultimemStore(Multimem):
    """Store a value to all GPUs."""

    stores = "a"
    forms = (*_store("{.weak}"), *_store(".sem.scope", sem="relaxed release", scope=SCOPES))


class MultimemRed(Multimem):
    """Reduce a value into the memory of all GPUs: [a] = op([a], b) on each."""

    stores = "a"
    forms = (*_red(""), *_red(".sem.scope", sem="relaxed release", scope=SCOPES))
