"""The operations of an instruction, and the unit of a multiprocessor that executes it.

A multiply-add counts as two operations. Operations of tensor cores are divided among the threads that issue them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

WARP, WARPGROUP = 32, 128  # threads
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_FLOATING = ("f64", "f32", "f16", "f16x2", "bf16", "bf16x2", "f32x2")
_SIMPLE = ("add", "sub", "mul", "min", "max", "neg", "abs", "div", "copysign")
_SPECIAL = ("rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh")  # executed by the special function units
_ALIKE = {"bf16": "f16", "u8": "s8", "e5m2": "e4m3", "u4": "s4"}  # types with the same rate


class Operations(NamedTuple):
    """The unit and the operations of one instruction of one thread. The unit is "" if it has none."""

    unit: str
    each: float


@lru_cache(maxsize=4096)
def operations_of(name: str) -> Operations:
    """Return the operations of an instruction by its PTX name, such as `fma.rn.f32`."""
    words = name.split(".")
    if words[0] in ("mma", "wmma", "wgmma"):
        return _of_tensor_cores(name, words)
    type = words[-1]
    if type not in _FLOATING:
        return Operations("", 0)
    lanes = 2 if type.endswith("x2") else 1
    unit = {"f64": "f64", "f32": "f32", "f32x2": "f32"}.get(type, "f16")
    if words[0] in _SPECIAL:
        return Operations("f64" if type == "f64" else "special functions", lanes)
    if words[0] in ("fma", "mad"):
        return Operations(unit, 2 * lanes)
    return Operations(unit, lanes) if words[0] in _SIMPLE else Operations("", 0)


def _of_tensor_cores(name: str, words: list[str]) -> Operations:
    """Return the operations of a matrix product; a sparse A halves them."""
    shape = _SHAPE.search(name)
    if shape is None or "mma" not in words[0] + words[1]:
        return Operations("", 0)
    if words[0] == "wmma" and words[1] != "mma":
        return Operations("", 0)
    m, n, k = map(int, shape.groups())
    threads = WARPGROUP if words[0] == "wgmma" else WARP
    multiplied = m * n * k / (2 if "sp" in words else 1)
    return Operations(f"tensor {_inputs(words)}", 2 * multiplied / threads)


def _inputs(words: list[str]) -> str:
    """Return the type of A, which follows the type of D. wmma with f16 names only the types of D and C."""
    types = [word for word in words if re.fullmatch(r"(b?f|tf|s|u|b|e\dm)\d+(m\d)?", word)]
    inputs = types[1] if len(types) > 2 else "f16"
    return _ALIKE.get(inputs, inputs)
