"""The output of a warpgroup: accumulators stored through shared memory as rows of 16-byte units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ptxdsl as pd
from ptxdsl.kernels.flash.traits import WARP, WARPGROUP
from ptxdsl.types import Type

STEP = 16  # columns that one stmatrix writes, and rows of a warp
CHUNK = 8  # elements of a 16-byte store
ALL_LANES = 0xFFFFFFFF


def store_tile(
    accumulators: Any, staging: Any, first: Any, dtype: Type, out: Any, stride: Any, rows: tuple[Any, Any]
) -> None:
    """Store the 64 rows of a warpgroup's accumulators.

    The rows from `first` on in `staging`, a (…, row, column) array in shared memory, are overwritten: the wgmmas that
    read them must have been waited for. Row i of the tile goes to row rows[0] + i of `out`, whose rows are `stride`
    elements apart; rows from rows[1] on are not stored.
    """
    columns = accumulators.shape[1]
    begin, end = rows
    first = first + pd.warpid % (WARPGROUP // WARP) * STEP  # rows of this warp
    stage_words(accumulators.as_a(dtype), staging, first)
    pd.ptx.bar.warp.sync(ALL_LANES)
    chunks = columns // CHUNK
    for step in range(STEP * chunks // WARP):
        number = pd.laneid + step * WARP
        row, column = first + number // chunks, number % chunks * CHUNK
        target = row.to(pd.s32) + begin
        with pd.if_(target < end):
            words = pd.ptx.ld.shared.v4.b32(_at(staging, row, column))
            pd.ptx.st.global_.v4.b32(out + (target.to(pd.s64) * stride + column.to(pd.s64)), words)


def stage_words(words: Sequence[Sequence[Any]], staging: Any, first: Any) -> None:
    """Write the 16 rows of a warp, as `Accumulators.as_a` returns them, to the rows from `first` on in `staging`."""
    for step, registers in enumerate(words):
        column = pd.laneid // STEP * CHUNK + step * STEP
        pd.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(_at(staging, first + pd.laneid % STEP, column), registers)


def _at(staging: Any, row: Any, column: Any) -> Any:
    """Return the address of an element of an array whose columns may be in boxes."""
    width = staging.shape[-1][0] if isinstance(staging.shape[-1], tuple) else staging.shape[-1]
    columns = (column % width, column // width) if width != staging.shape[-1] else column
    return staging.address(*[0] * (len(staging.shape) - 2), row, columns)


def offset(strides: Sequence[Any], batch: Any, head: Any) -> Any:
    """Return the offset of a batch and head in elements; batch 0 of packed sequences is an int."""
    return strides[1] * head.to(pd.s64) + (0 if isinstance(batch, int) else strides[0] * batch.to(pd.s64))
