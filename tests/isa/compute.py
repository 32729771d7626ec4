"""Single instructions on a few numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ptxdsl.isa import lookup
from ptxdsl.types import Type


def compute(text: str, *inputs: Any, form: int = 0, carry: Any = None) -> Any:
    """The results of the instruction spelled `text`; each input is a list of numbers, or of bits for packed types."""
    opcode = lookup(text)[form]
    read = [operand for operand in opcode.operands if operand.read]
    arrays = [x if o.type is None else _array(x, o.type) for x, o in zip(inputs, read, strict=True)]
    machine = SimpleNamespace(carry=np.array(carry, np.uint8) if carry is not None else None)
    with np.errstate(all="ignore"):
        result = opcode.op.execute(opcode, machine, *arrays)
    outputs = result if isinstance(result, tuple) else (result,)
    written = [operand for operand in opcode.operands if operand.written]
    assert [x.dtype for x in outputs] == [operand.type.dtype for operand in written]
    if carry is not None:
        return result, machine.carry
    return result


def _array(x: Any, type_: Type) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return x.view(type_.dtype) if x.dtype != bool else x
    if type_.dtype.kind in "iu":
        size = type_.dtype.itemsize
        return np.array([n % (1 << 8 * size) for n in x], f"u{size}").view(type_.dtype)
    return np.array(x, type_.dtype)


def bits(x: np.ndarray) -> list[str]:
    """The bits of numbers in hexadecimal."""
    return [f"{int(n):x}" for n in x.view(f"u{x.dtype.itemsize}")]
