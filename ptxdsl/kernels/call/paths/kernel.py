"""Derive the traits of a kernel from a configuration, and check operands for TMA and wgmma."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ptxdsl.errors import LaunchError
from ptxdsl.kernels.call.matrix import WIDEST_ACCESS, Matrix, describe_type
from ptxdsl.kernels.config import GemmConfig, LeftOut, specialise
from ptxdsl.kernels.product.operands import FP8, Operands
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.tiling import INPUTS, TURNED
from ptxdsl.kernels.traits.traits import Traits
from ptxdsl.runtime.dispatch import target
from ptxdsl.types import Type

SQUARE = 128, 128  # M and N of the tile of a configuration of wgmma that names none
Refusal: TypeAlias = tuple[str, str]
"""The cause, and the help text."""


def configure(config: GemmConfig, operands: Operands, device: int | None, shares_copies: bool = False) -> Traits:
    """Return the traits of a kernel for a configuration on a GPU. A wgmma configuration without a tile gets a square
    one.

    Raises LaunchError if the GPU lacks resources, and for multicast in a kernel that does not support it.
    """
    if not shares_copies:
        check_copies(config)
    if isinstance(config.tile, LeftOut):
        config = specialise(config, tile=(*SQUARE, LINE_BYTES // operands.inputs.bytes))
    arch = target(device)
    traits = config.traits(operands, arch)
    traits.check(arch)
    return traits


def check_copies(config: GemmConfig) -> None:
    """Raise LaunchError for a multicast schedule."""
    if config.tile_schedule.multicast != (1, 1):
        raise LaunchError(
            f"schedule is {config.schedule!r}, whose blocks share TMA loads, and this call has no such kernel",
            help="leave it out here",
        )


def by_wgmma(inputs: Type, output: Type | None = None) -> tuple[str, str]:
    """Return the reason why a product uses wgmma, and the end of the help text if its types have another path."""
    if inputs in FP8:
        return f"`a` and `b` are {describe_type(inputs)}, which takes wgmma", ""
    if output in FP8:
        return f"`out` is {describe_type(output)}, which takes wgmma", ""
    return 'atom is "wgmma"', ", or leave atom out"


def is_read_by_wgmma(a: Matrix, b: Matrix) -> bool:
    """Return True if wgmma reads A and B of these types in these major orders."""
    return a.type in TURNED or (a.type in INPUTS and a.major == "row" and b.major == "column")


def check_mappable(k: int, a: Matrix, b: Matrix, output: Type | None = None, first: str = "none") -> None:
    """Raise LaunchError for A and B that TMA cannot load in the layout that wgmma reads. `first` is the float32 operand
    that comes from registers, "a" or "b"."""
    refuse(unmappable(k, a, b, output, first))


def refuse(refusals: Iterable[Refusal]) -> None:
    """Raise LaunchError for the first of these refusals, if there are any."""
    for cause, help in refusals:
        raise LaunchError(cause, help=help or None)


def unmappable(k: int, a: Matrix, b: Matrix, output: Type | None = None, first: str = "none") -> Iterator[Refusal]:
    """Yield the reasons why TMA cannot address A or B, or wgmma cannot read their layout. `first` as in
    `check_mappable`."""
    cause, otherwise = by_wgmma(a.type, output)
    if k == 0:
        help = "leave atom out" if otherwise else "write to `out` what follows of products that are 0, without a launch"
        yield f"{cause}, and K is 0: there is nothing to multiply", help
    operands = [
        (matrix, a.type in TURNED or matrix.major == along_k or name == first)
        for matrix, along_k, name in ((a, "row", "a"), (b, "column", "b"))
    ]
    yield from (
        _misaligned(matrix, f"{otherwise}: then they are loaded without TMA" if otherwise else "")
        for matrix, is_read in operands
        if is_read and not matrix.is_mappable
    )
    yield from (
        (
            f"`{matrix.name}` is not K-major, as wgmma needs {describe_type(a.type)} operands to be",
            f"pass a row-major `a` and a column-major `b`{otherwise}",
        )
        for matrix, is_read in operands
        if not is_read
    )


def _misaligned(matrix: Matrix, otherwise: str) -> Refusal:
    """Return the reason why TMA cannot load a matrix with a misaligned address or stride."""
    stride, batch_stride = matrix.stride * matrix.type.bytes, matrix.batch_stride * matrix.type.bytes
    batches = f", a batch stride of {batch_stride} bytes" if (matrix.batches or 1) > 1 else ""
    return (
        f"`{matrix.name}` has a leading dimension of {stride} bytes{batches} and the address "
        f"{matrix.array.pointer:#x}; TMA takes multiples of {WIDEST_ACCESS} bytes"
        f"{', 0 or more' if batch_stride < 0 else ''}",
        f"pad its leading dimension{otherwise}",
    )
