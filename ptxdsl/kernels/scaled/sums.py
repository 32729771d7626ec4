"""How sums come to their scales: what kernels of scaled products have in common."""

from __future__ import annotations

from typing import Any

from ptxdsl.kernels.gemm import multiply_tiles
from ptxdsl.kernels.ragged import Multiply
from ptxdsl.kernels.sm90.scales import BlockScales, RowScales, Scales
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.trace.instruction import Scalar

TILING = WarpgroupTiling((128, 128, 128))
SCALES = {"tensors": Scales, "rows": RowScales, "blocks": BlockScales}


def scaled_alpha(p: Any, scaling: str, alpha: Scalar | int) -> Any:
    """What all sums are multiplied by: `alpha`, and the scales of both tensors."""
    return alpha * (p.scale_a.pointer[0] * p.scale_b.pointer[0]) if scaling == "tensors" else alpha


def multiply_with(scales: Scales) -> Multiply:
    """`gemm.multiply_tiles`, with sums that are scaled but for the scales of tensors."""
    if isinstance(scales, BlockScales):
        return lambda ring, mma, store, walk, work: scales.multiply(ring, mma, work)
    if isinstance(scales, RowScales):
        return lambda ring, mma, store, walk, work: scales.scaled(multiply_tiles(ring, mma, store, walk, work), work)
    return multiply_tiles
