"""The instruction table: one class an instruction, one file a chapter of the PTX manual."""

from . import (
    atomic,
    compare,
    control,
    convert,
    copy,
    extended,
    floating,
    half,
    integer,
    logic,
    matrix,
    mbarrier,
    memory,
    sync,
    video,
    warp,
)
from .spec import Op, Opcode, choose, lookup

CHAPTERS = (
    integer, extended, floating, half, compare, logic, memory, convert, copy,
    control, sync, mbarrier, atomic, warp, matrix, video,
)  # fmt: skip
"""The modules of the table, in the order of the manual."""

__all__ = ["CHAPTERS", "Op", "Opcode", "choose", "lookup"]
