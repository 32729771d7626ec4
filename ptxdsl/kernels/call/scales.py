"""The scales of 8-bit A and B, as a call keeps them and as kernels take them."""

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
    """The checked scales of a call. Those of B are read along its columns."""

    scaling: Scaling
    a: ArrayArgument
    b: ArrayArgument

    @property
    def values(self) -> dict[str, Parameters]:
        """The scales as parameters of a kernel."""
        return {"scale_a": self._view(self.a), "scale_b": self._view(self.b, along_last=True)}

    @property
    def pair_bytes(self) -> int:
        """The bytes of an access to scales of columns along K: two of them if all pairs are aligned."""
        if self.scaling is not Scaling.BLOCKS:
            return f32.bytes
        (_, columns), (step, _) = self.b.array.shape, self.b.array.strides
        return gcd(2 * f32.bytes, columns * f32.bytes, step * f32.bytes, self.b.array.pointer)

    @property
    def transposed(self) -> ScaledOperands:
        """The scales of the transposed product, whose A is the transpose of b."""
        return ScaledOperands(self.scaling, _transposed(self.b), _transposed(self.a))

    def without_k(self, device_stream: tuple[int | None, int]) -> ScaledOperands:
        """Return a zero for each tensor, in memory of this stream. If K is 0, there are no block scales, and infinite
        scales must have no effect."""
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
        (*count, _, _), (*apart, first, second) = scales.array.shape, scales.array.strides
        line, step = (second, first) if along_last else (first, second)
        return ScaleView(pointer=scales.pointer, line=line, step=step, apart=apart[0] if count not in ([], [1]) else 0)


def _transposed(scales: ArrayArgument) -> ArrayArgument:
    """Return scales with rows and columns exchanged; a single number as it is."""
    shape, strides = ((*axes[:-2], *reversed(axes[-2:])) for axes in (scales.array.shape, scales.array.strides))
    return replace(scales, array=replace(scales.array, shape=shape, strides=strides))


def scale_values(scales: ScaledOperands | None) -> dict[str, Parameters]:
    """Return the scales as parameters of a kernel; none if A and B have no scales."""
    return scales.values if scales else {}
