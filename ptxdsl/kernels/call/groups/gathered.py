"""Copy the rows of A that an index names to a workspace, for kernels that load boxes of rows."""

from __future__ import annotations

from dataclasses import replace

from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument, Matrix
from ptxdsl.kernels.call.products.lines import room_for_copy
from ptxdsl.kernels.choose.rates import Rates
from ptxdsl.kernels.reorder.lines import WORD_BYTES
from ptxdsl.kernels.reorder.rows import WARP, WARPS, rows_kernel, rows_parameters
from ptxdsl.kernels.traits.parameters import view
from ptxdsl.schedule.arithmetic import ceil_div


def copied_rows(
    a: Matrix, index: ArrayArgument, device: int | None, stream: int, use: str = "gathered rows"
) -> tuple[Matrix, LaunchPlan]:
    """Return the rows of a row-major matrix that an index names, as a matrix in the workspace of a stream for a `use`
    (numpy memory on the emulator, without a `device`), and the launch that copies them there."""
    (rows,), length, type = index.array.shape, a.length, a.type
    like = replace(a, array=replace(a.array, shape=(rows, length)), shape=(rows, length))
    copy, target = room_for_copy(like, "row", device, stream, use)
    values = rows_parameters(type)(
        source=view(type)(pointer=a, stride=a.stride),
        target=view(type)(pointer=target, stride=copy.stride),
        index=index,
        rows=rows,
        source_rows=a.shape[0],
        length=length,
    )
    constants = {"type": type, "in_words": a.is_mappable and not length * type.bytes % WORD_BYTES}
    return copy, LaunchPlan(rows_kernel, ceil_div(rows, WARPS), WARP * WARPS, values, constants, stream=stream)


def time_of_copies(rows: int, a: Matrix, rates: Rates) -> float:
    """Return the expected microseconds to copy a number of rows."""
    moved = 2 * rows * a.length * a.type.bytes
    return rates.copy_time(1, moved)
