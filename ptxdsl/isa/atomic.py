"""Atomic operations (PTX ISA, "Parallel Synchronization and Communication Instructions": atom, red).

Lanes that address the same location are serialised in lane order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import ir
from ..types import Type, b128, f32, f64, lanes
from .form import Form, Values
from .memory import HINT, NEEDS, ORDERED, SCOPES, access_bytes, alignment_problems, elements, ordering, policy_problems
from .numerics import canonical, decode, encode, flush, maximum, minimum
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import Step

Update = Callable[..., np.ndarray]

TYPES_OF = {
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("min", "max"), ("u32", "s32", "u64", "s64")),
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "exch": ("b32", "b64", "b128"),
}
"""The scalar types of each operation."""

_NEEDS: dict[str, tuple[str, int | str]] = {
    **NEEDS,
    **dict.fromkeys(("cta", "gpu", "sys"), ("5.0", 60)),
    **dict.fromkeys(("min u64", "max u64", "min s64", "max s64", "and b64", "or b64", "xor b64"), ("3.1", 32)),
    **dict.fromkeys(("bf16", "bf16x2"), ("7.8", 90)),
    "f64": ("5.0", 60), "f16x2": ("6.2", 60), "f16": ("6.3", 70), "cas b16": ("6.3", 70), "b128": ("8.3", 90),
}  # fmt: skip


def _increment(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where(old >= limit, np.uint32(0), old + np.uint32(1))


def _decrement(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > limit), limit, old - np.uint32(1))


def _exchange(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return new


def _compare_and_swap(old: np.ndarray, expected: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where(old == expected, new, old)


def _compare_and_swap_words(old: np.ndarray, expected: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where((old == expected).all(axis=-1, keepdims=True), new, old)


def _add_f32(old: np.ndarray, value: np.ndarray, flushed: np.ndarray) -> np.ndarray:
    total = flush(old, f32) + flush(value, f32)
    return canonical(np.where(flushed, flush(total, f32), old + value))


INTEGER: dict[str, Update] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "inc": _increment, "dec": _decrement, "exch": _exchange, "cas": _compare_and_swap,
}  # fmt: skip
FLOATING: dict[str, Update] = {"add": np.add, "min": minimum, "max": maximum}


def _half(operation: str, type: Type) -> Update:
    """Return the update function of an operation on f16 or bf16, scalar or packed in pairs."""

    def update(old: np.ndarray, value: np.ndarray) -> np.ndarray:
        return encode(FLOATING[operation](decode(old, type), decode(value, type)), type)

    return update


def _update(operation: str, type: Type) -> Update:
    if lanes(type)[0].bits == 16 and (type.is_float or type.kind == "x"):
        return _half(operation, type)
    if type is b128 and operation == "cas":
        return _compare_and_swap_words
    return _add_f32 if type is f32 else INTEGER[operation]


def reduction(operation: str, type: Type) -> Update:
    """Return what a bulk reduction does to an element of memory. An f32 sum keeps subnormals, as on an H200."""
    if operation == "add" and type in (f32, f64):
        return lambda old, value: canonical(old + value)
    return _update(operation, type)


def _scalar(i: Values) -> bool:
    return str(i.type) in TYPES_OF[i.operation] and (i.hint is None or i.space in (None, "global"))


def _hinted(i: Values) -> bool:
    return i.hint is None or i.space in (None, "global")


def _vector(i: Values) -> bool:
    size = access_bytes(i)
    return size <= 16 and ((i.type is f32) == (i.noftz is not True)) and (i.operation == "add" or i.type is not f32)


def _forms(name: str, sem: str, d: str) -> tuple[Form, ...]:
    """Return the forms shared by atom and red; `d` is "d=type" for atom and empty for red."""
    front = f"{name}{{.sem}}{{.scope}}{{.space}}"
    slots: dict[str, Any] = {"sem": sem, "scope": SCOPES, "hint": HINT, "needs": _NEEDS}
    result, results = (f"{d}, ", f"{d}*vec, ") if d else ("", "")
    return (
        Form(
            f"{front}.operation{{.hint}}.type {result}[a:space], b:type{{, policy:b64}}",
            operation=" ".join(op for op in TYPES_OF if d or op != "exch"),
            type="b32 b64 u32 u64 s32 s64 f32 f64" + (" b128" if d else ""),
            space=ORDERED,
            when=_scalar,
            **slots,
        ),
        Form(
            f"{front}.operation.noftz{{.hint}}.type {result}[a:space], b:type{{, policy:b64}}",
            operation="add",
            type="f16 f16x2 bf16 bf16x2",
            space=ORDERED,
            when=_hinted,
            **slots,
        ),
        Form(
            f"{front}.operation{{.noftz}}{{.hint}}.vec.type {results}[a:space], b:type*vec{{, policy:b64}}",
            operation="add min max",
            vec="v2 v4 v8",
            type="f32 f16 f16x2 bf16 bf16x2",
            space="global",
            when=_vector,
            ptx="8.1",
            sm=90,
            **slots,
        ),
    )


class Atomic(Op):
    """Base of the atomic operations."""

    stores = "a"

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        by_name = {o.name: value for o, value in zip(i.operands, operands, strict=True)}
        yield from alignment_problems("a", by_name["a"], access_bytes(i))
        if "policy" in by_name:
            yield from policy_problems(i, by_name["policy"])

    def change(self, i: Opcode, m: Step, a: np.ndarray, *inputs: np.ndarray) -> np.ndarray:
        """Update memory and return the old values."""
        if elements(i) == 1:
            return self._change_one(i, m, a, *inputs)
        offsets = range(0, access_bytes(i), i.type.bytes)
        return np.stack([self._change_one(i, m, a + np.uint64(o), *v) for o, *v in zip(offsets, *inputs, strict=True)])

    def _change_one(self, i: Opcode, m: Step, a: np.ndarray, *inputs: np.ndarray) -> np.ndarray:
        space, update = i.space or "generic", _update(i.operation, i.type)
        scan = update if isinstance(update, np.ufunc) and not i.type.is_float else None
        if update is _add_f32:
            inputs = (*inputs, self._flushes(m, space, a))
        return m.atomic(space, a, i.type, update, *inputs, scan=scan, ordering=ordering(i, "relaxed"))

    def _flushes(self, m: Step, space: str, a: np.ndarray) -> np.ndarray:
        """Flush f32 subnormals of additions in global memory; shared memory keeps them."""
        if space == "generic":
            return ~m.within("shared::cluster", a)
        return np.full(a.shape, space == "global")


class Atom(Atomic):
    """Atomically read-modify-write memory: d = [a], [a] = op([a], b)."""

    forms = _forms("atom", "relaxed acquire release acq_rel", "d=type")

    def execute(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray, policy: np.ndarray | None = None) -> np.ndarray:
        return self.change(i, m, a, b)


class AtomCas(Atomic):
    """Atomically compare and swap: d = [a]; if [a] equals b, [a] = c."""

    forms = (
        Form(
            "atom{.sem}{.scope}{.space}.operation.type d=type, [a:space], b:type, c:type",
            operation="cas",
            type="b16 b32 b64 b128",
            sem="relaxed acquire release acq_rel",
            scope=SCOPES,
            space=ORDERED,
            needs=_NEEDS,
        ),
    )

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        yield from super().problems(i, operands)
        for declared, value in zip(i.operands, operands, strict=True):
            if i.type is b128 and isinstance(value, ir.Immediate):
                message = f"`{declared.name}` is the constant {value}, on which ptxas 13 crashes"
                yield Problem(declared.name, message, "move it to a register first")

    def execute(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return self.change(i, m, a, b, c)


class Red(Atomic):
    """Atomically reduce into memory without returning the old value: [a] = op([a], b)."""

    forms = _forms("red", "relaxed release", "")

    def execute(self, i: Opcode, m: Step, a: np.ndarray, b: np.ndarray, policy: np.ndarray | None = None) -> None:
        self.change(i, m, a, b)
