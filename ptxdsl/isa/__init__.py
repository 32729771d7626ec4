"""The instruction table: one class an instruction, one file a chapter of the PTX manual."""

from . import control, integer, sync
from .spec import Op, Opcode, choose, lookup

__all__ = ["Op", "Opcode", "choose", "control", "integer", "lookup", "sync"]
