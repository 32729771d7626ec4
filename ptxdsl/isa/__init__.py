"""The instruction table: one class an instruction, one file a chapter of the PTX manual."""

from . import (
    atomic,
    blackwell,
    bulk,
    cluster,
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
    mma_narrow,
    mma_sparse,
    multimem,
    sync,
    tcgen05,
    tcgen05_mma,
    tensor,
    transactions,
    video,
    warp,
    wgmma,
    wmma,
)
from .lookup import choose, lookup
from .opcode import Op, Opcode

CHAPTERS = (
    integer, extended, floating, half, compare, logic, memory, convert, copy, bulk, tensor, multimem,
    control, sync, mbarrier, transactions, cluster, atomic, warp, matrix, mma_sparse, mma_narrow,
    wmma, wgmma,
    tcgen05, tcgen05_mma, blackwell, video,
)  # fmt: skip
"""The modules of the table, in the order of the manual."""

__all__ = ["CHAPTERS", "Op", "Opcode", "choose", "lookup"]
