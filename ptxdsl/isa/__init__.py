"""The instruction table: one class an instruction, one file a chapter of the PTX manual."""

from . import atomic, control, copy, integer, matrix, memory, sync, warp
from .spec import Op, Opcode, choose, lookup

__all__ = [
    "Op", "Opcode", "atomic", "choose", "control", "copy", "integer", "lookup", "matrix", "memory", "sync", "warp",
]  # fmt: skip
