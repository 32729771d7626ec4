"""Limits on the shared memory that a kernel declares."""

from __future__ import annotations

from ptxdsl import ir
from ptxdsl.trace.builder import Builder, refuse

STATIC_BYTES = 48 * 1024  # of statically sized arrays
BLOCK_BYTES = 227 * 1024  # of a block on any GPU


def shared_variables(builder: Builder) -> list[ir.Variable]:
    """Return the statically sized arrays in shared memory."""
    return [variable for variable in builder.variables if variable.space == "shared"]


def check_shared_bytes(builder: Builder, name: str) -> None:
    """Refuse an array that brings shared memory beyond the limit of static arrays, or of a block on any GPU."""
    static = sum(variable.bytes for variable in shared_variables(builder))
    total = static + (builder.dynamic_bytes or 0)
    if total > BLOCK_BYTES:
        refuse(
            f"`{name}` brings shared memory to {total} bytes; a block has at most {BLOCK_BYTES} on any GPU",
            "use a smaller tile or fewer stages",
        )
    if static > STATIC_BYTES:
        refuse(
            f"`{name}` brings shared memory to {static} bytes; a kernel can declare {STATIC_BYTES}",
            "use pd.dynamic_shared, whose size is given at launch",
        )
