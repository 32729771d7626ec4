"""The instruction table: one class an instruction, one file a chapter of the PTX manual."""

from . import integer
from .spec import Op, Opcode, choose, lookup

__all__ = ["Op", "Opcode", "choose", "integer", "lookup"]
