"""Convolutions of images with few channels, which are first packed into a workspace so that im2col loads bring whole
rows of boxes.

The packed convolution has a window of one column, whose channels are a row of the original window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.kernels.call.convolutions.problem import Convolution, Pixels
from ptxdsl.kernels.call.launching.launches import LaunchPlan
from ptxdsl.kernels.call.launching.workspace import memory
from ptxdsl.kernels.call.matrix import ArrayArgument, Matrix, array_argument
from ptxdsl.kernels.reorder.packed import packed_images, packing_kernel, packing_parameters
from ptxdsl.kernels.reorder.rows import THREADS, WORD_BYTES
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.schedule import Conv2dProblem
from ptxdsl.schedule.arithmetic import ceil_div

FOLDS = (4, 2, 1)  # pixels below each other in a word
MOST_WORDS = 1 << 31  # which 32 bits count


class PackedExtents(NamedTuple):
    """The number of packed images, and the rows and columns of words of each."""

    images: int
    lines: int
    columns: int

    @property
    def words(self) -> int:
        return self.images * self.lines * self.columns


@dataclass(frozen=True)
class Packing:
    """The packing of images and filters into words of `fold` vertically adjacent pixels."""

    problem: Convolution
    fold: int

    @property
    def elements(self) -> int:
        """The number of elements of a word."""
        return WORD_BYTES // self.problem.product.a.type.bytes

    @property
    def filters(self) -> PackedExtents:
        """The extents of packed filters, with rows of whole boxes: TMA takes three times as long for boxes that exceed
        the channels."""
        sizes, whole = self.problem.sizes, LINE_BYTES // WORD_BYTES
        return PackedExtents(sizes.K, ceil_div(sizes.R, self.fold), ceil_div(sizes.S, whole) * whole)

    @property
    def images(self) -> PackedExtents:
        """The extents of packed images: the pixels that windows see."""
        sizes = self.problem.sizes
        down, right = sizes.stride
        lines = (sizes.P - 1) * (down // self.fold) + (self.filters.lines - 1) * sizes.dilation[0] + 1
        return PackedExtents(sizes.N, lines, (sizes.Q - 1) * right + self.filters.columns)

    @property
    def words(self) -> int:
        return self.images.words + self.filters.words

    @property
    def moved_bytes(self) -> int:
        """The bytes that packing reads and writes."""
        return self.words * WORD_BYTES + self.problem.sizes.input_size * self._pixel_bytes

    @property
    def sizes(self) -> Conv2dProblem:
        """The packed convolution."""
        sizes, channels = self.problem.sizes, self.filters.columns * self.elements
        return Conv2dProblem(
            sizes.N, self.images.lines, sizes.Q, channels, sizes.K, self.filters.lines, 1,
            pad=(0, 0), stride=(sizes.stride[0] // self.fold, 1), dilation=(sizes.dilation[0], 1),
        )  # fmt: skip

    def carry_out(self) -> tuple[Convolution, LaunchPlan]:
        """Return the packed convolution, and the launch that packs it."""
        product, sizes, each = self.problem.product, self.sizes, self.elements
        line = self.images.columns * each
        x_strides = self.images.lines * line, line, self.problem.sizes.stride[1] * each, 1
        w_strides = self.filters.lines * sizes.C, sizes.C, sizes.C, 1
        device_stream = product.device_stream
        x, images = _room("x", product.a, self.images, (sizes.N, sizes.H, sizes.Q, sizes.C), x_strides, device_stream)
        w, filters = _room("w", product.b, self.filters, (sizes.K, sizes.R, 1, sizes.C), w_strides, device_stream)
        m, _, k = sizes.implicit_gemm("fprop")
        pixels = Pixels("x", x.owner, x.array, (m, k), "row", k)
        rows = Matrix("w", w.owner, w.array, (sizes.K, k), "row", k)
        packed = Convolution(sizes, replace(product, a=pixels, b=rows.transposed))
        return packed, self._launch(images, filters)

    def _launch(self, images: object, filters: object) -> LaunchPlan:
        sizes, x, w = self.problem.sizes, self.problem.product.a, self.problem.product.b
        type, filter_strides = x.type, (w.stride, sizes.S * sizes.C, sizes.C)
        top, left = sizes.before
        values = packing_parameters(type)(
            images=_values(x, images, x.array.strides[:3], (sizes.H, sizes.W), (top, left), self.images),
            filters=_values(w, filters, filter_strides, (sizes.R, sizes.S), (0, 0), self.filters),
        )
        constants = {"type": type, "channels": sizes.C, "fold": self.fold, "access": self._access}
        blocks = ceil_div(self.words, THREADS)
        stream = self.problem.product.device_stream[1]
        return LaunchPlan(packing_kernel, blocks, THREADS, values, constants, stream=stream)

    @property
    def _pixel_bytes(self) -> int:
        return self.problem.sizes.C * self.problem.product.a.type.bytes

    @property
    def _access(self) -> int:
        """The access width in bytes: aligned, and within a pixel."""
        x, w = self.problem.product.a, self.problem.product.b
        return min(x.widest(), w.widest(self.problem.sizes.C))


def packing_of(problem: Convolution) -> Packing | None:
    """Return the packing of images with few channels; None for other images."""
    sizes, x = problem.sizes, problem.product.a
    is_dilated, pixel_bytes = sizes.dilation[0] > 1, sizes.C * x.type.bytes
    if sizes.window_size == 1 or sizes.dilation[1] > 1 or not x.array.size or pixel_bytes > WORD_BYTES:
        return None
    folds = [
        fold for fold in FOLDS
        if fold * pixel_bytes <= WORD_BYTES and not sizes.stride[0] % fold and not (fold > 1 and is_dilated)
    ]  # fmt: skip
    packing = Packing(problem, folds[0])
    return packing if packing.words < MOST_WORDS else None


def _values(
    source: ArrayArgument,
    copy: object,
    strides: tuple[int, ...],
    size: tuple[int, int],
    before: tuple[int, int],
    extents: PackedExtents,
) -> Any:
    """Return the parameters of images or filters."""
    (image, line, pixel), (height, width), (above, left) = strides, size, before
    return packed_images(source.type)(
        source=source, copy=copy, image=image, line=line, pixel=pixel, height=height, width=width,
        above=above, left=left, lines=extents.lines, columns=extents.columns, words=extents.words,
    )  # fmt: skip


def _room(
    name: str,
    like: ArrayArgument,
    extents: PackedExtents,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    device_stream: tuple[int | None, int],
) -> tuple[ArrayArgument, Any]:
    """Return memory for packed words, as images of these strides and as all that the kernel writes: numpy memory on the
    emulator, else the workspace of a stream, by address."""
    device, stream = device_stream
    if device is None:
        room = np.empty(extents.words * WORD_BYTES // like.type.bytes, like.owner.dtype)
        # as_strided of numpy takes no elements of 8-bit floats
        apart = [stride * room.itemsize for stride in strides]
        seen = np.ndarray(shape, room.dtype, room.view(np.uint8).data, strides=apart)
        return array_argument(name, seen, 4, "", ""), array_argument(name, room, 1, "", "")
    address = memory(device, stream, name, extents.words * WORD_BYTES)
    array = replace(like.array, pointer=address, shape=shape, strides=strides, owner=None)
    return ArrayArgument(name, None, array), address
