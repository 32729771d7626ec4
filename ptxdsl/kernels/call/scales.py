"""The scales of 8-bit A and B: the checked arrays of a call, and the parameters of kernels."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import NamedTuple

import numpy as np

from ptxdsl import Parameters
from ptxdsl.kernels.call.launching.workspace import NO_K, room
from ptxdsl.kernels.call.matrix import ArrayArgument, array_argument
from ptxdsl.kernels.product.operands import Scaling
from ptxdsl.kernels.sm90.parameters import ScaleView
from ptxdsl.types import f32


class ScaledOperands(NamedTuple):
    """The checked scales of a call. The scales of B are read along its columns."""

    scaling: Scaling
    a: ArrayArgument
    b: ArrayArgument

    @property
    def values(self) -> dict[str, Parameters]:
        """The scales as parameters of a kernel."""
        return {"scale_a": self._view(self.a), "scale_b": self._view(self.b, along_last=True)}

    @property
    def pair_bytes(self) -> int:
        """The access width in bytes for block scales of columns: 8, two scales, if all pairs are aligned, else 4."""
        if self.scaling is not Scaling.BLOCKS:
            return f32.bytes
        (_, columns), (step, _) = self.b.array.shape, self.b.array.strides
        return gcd(2 * f32.bytes, columns * f32.bytes, step * f32.bytes, self.b.array.pointer)

    @property
    def transposed(self) -> ScaledOperands:
        """The scales of the transposed product bᵀ@aᵀ."""
        return ScaledOperands(self.scaling, _transposed(self.b), _transposed(self.a))

    def without_k(self, device_stream: tuple[int | None, int]) -> ScaledOperands:
        """Return scales of zero per tensor, in the workspace of the stream. With a K of 0 there are no block scales,
        and infinite scales must have no effect."""
        device, stream = device_stream
        address = room(device, stream, NO_K, f32.bytes)
        if device is None:
            zero = array_argument("scales", address.view(np.float32), 1, "they are one", "pass one")
        else:
            zero = replace(self.a, owner=None, array=replace(self.a.array, pointer=address, shape=(1,), strides=(1,)))
        return ScaledOperands(Scaling.TENSORS, zero, zero)

    def _view(self, scales: ArrayArgument, along_last: bool = False) -> Parameters:
        if self.scaling is Scaling.TENSORS:
            return ScaleView(pointer=scales.pointer, line=0, step=0, apart=0)
        (*batch, _, _), (*batch_strides, first, second) = scales.array.shape, scales.array.strides
        line, step = (second, first) if along_last else (first, second)
        batch_stride = batch_strides[0] if batch not in ([], [1]) else 0
        return ScaleView(pointer=scales.pointer, line=line, step=step, apart=batch_stride)


def _transposed(scales: ArrayArgument) -> ArrayArgument:
    """Return scales with rows and columns exchanged; a scale per tensor stays unchanged."""
    shape, strides = ((*axes[:-2], *reversed(axes[-2:])) for axes in (scales.array.shape, scales.array.strides))
    return replace(scales, array=replace(scales.array, shape=shape, strides=strides))


def scale_values(scales: ScaledOperands | None) -> dict[str, Parameters]:
    """Return the scales as kernel parameters, or an empty dict if A and B have no scales."""
    return scales.values if scales else {}
