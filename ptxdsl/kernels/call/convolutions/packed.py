"""Convolutions of images with few channels. They are packed into a workspace, so that im2col loads fill whole box rows.

The packed convolution has a window of one column. Its channels are a row of the original window.
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

FOLDS = (4, 2, 1)  # vertically adjacent pixels in a word
MAX_WORDS = 1 << 31  # counted in 32 bits


class PackedExtents(NamedTuple):
    """The number of packed images, and the rows and columns of words in an image."""

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
        """The extents of packed filters. Rows are padded to whole boxes: TMA takes three times as long for boxes that
        exceed the channels."""
        sizes, box_words = self.problem.sizes, LINE_BYTES // WORD_BYTES
        return PackedExtents(sizes.K, ceil_div(sizes.R, self.fold), ceil_div(sizes.S, box_words) * box_words)

    @property
    def images(self) -> PackedExtents:
        """The extents of packed images, which contain the pixels inside windows."""
        sizes = self.problem.sizes
        down, right = sizes.stride
        lines = (sizes.P - 1) * (down // self.fold) + (self.filters.lines - 1) * sizes.dilation[0] + 1
        return PackedExtents(sizes.N, lines, (sizes.Q - 1) * right + self.filters.columns)

    @property
    def words(self) -> int:
        return self.images.words + self.filters.words

    @property
    def moved_bytes(self) -> int:
        """The number of bytes that packing reads and writes."""
        sizes = self.problem.sizes
        return self.words * WORD_BYTES + sizes.input_size * sizes.C * self.problem.product.a.type.bytes

    @property
    def sizes(self) -> Conv2dProblem:
        """The packed convolution."""
        sizes, channels = self.problem.sizes, self.filters.columns * self.elements
        return Conv2dProblem(
            sizes.N, self.images.lines, sizes.Q, channels, sizes.K, self.filters.lines, 1,
            pad=(0, 0), stride=(sizes.stride[0] // self.fold, 1), dilation=(sizes.dilation[0], 1),
        )  # fmt: skip

    def pack(self) -> tuple[Convolution, LaunchPlan]:
        """Return the packed convolution, and the launch that packs it."""
        product, old, sizes, elements = self.problem.product, self.problem.sizes, self.sizes, self.elements
        (x, w), line = (product.a, product.b), self.images.columns * elements
        images, image_values = self._allocate_packed(
            x, x.array.strides[:3], (old.H, old.W), (old.before[0], old.before[1]), self.images,
            (sizes.N, sizes.H, sizes.Q, sizes.C), (self.images.lines * line, line, old.stride[1] * elements, 1),
        )  # fmt: skip
        filters, filter_values = self._allocate_packed(
            w, (w.stride, old.S * old.C, old.C), (old.R, old.S), (0, 0), self.filters,
            (sizes.K, sizes.R, 1, sizes.C), (self.filters.lines * sizes.C, sizes.C, sizes.C, 1),
        )  # fmt: skip
        m, _, k = sizes.implicit_gemm("fprop")
        pixels = Pixels("x", images.owner, images.array, (m, k), "row", k)
        rows = Matrix("w", filters.owner, filters.array, (sizes.K, k), "row", k)
        access = min(x.widest(), w.widest(old.C))  # aligned, and within a pixel
        constants = {"type": x.type, "channels": old.C, "fold": self.fold, "access": access}
        values = packing_parameters(x.type)(images=image_values, filters=filter_values)
        blocks, (_, stream) = ceil_div(self.words, THREADS), self.problem.device_stream
        launch = LaunchPlan(packing_kernel, blocks, THREADS, values, constants, stream=stream)
        return Convolution(sizes, replace(product, a=pixels, b=rows.transposed)), launch

    def _allocate_packed(
        self,
        source: ArrayArgument,
        source_strides: tuple[int, ...],
        size: tuple[int, int],
        pad: tuple[int, int],
        extents: PackedExtents,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> tuple[ArrayArgument, Any]:
        """Allocate packed words, and return them as images of a shape and strides, with the parameters of the packing
        kernel. The memory is a numpy array on the emulator, and the workspace of a stream on a GPU."""
        (device, stream), name = self.problem.device_stream, source.name
        copy: Any
        if device is None:
            buffer = np.empty(extents.words * self.elements, source.owner.dtype)
            # np.lib.stride_tricks.as_strided does not support 8-bit floats
            byte_strides = [stride * buffer.itemsize for stride in strides]
            view = np.ndarray(shape, buffer.dtype, buffer.view(np.uint8).data, strides=byte_strides)
            packed, copy = array_argument(name, view, 4, "", ""), array_argument(name, buffer, 1, "", "")
        else:
            copy = memory(device, stream, name, extents.words * WORD_BYTES)
            array = replace(source.array, pointer=copy, shape=shape, strides=strides, owner=None)
            packed = ArrayArgument(name, None, array)
        (image, line, pixel), (height, width), (above, left) = source_strides, size, pad
        values = packed_images(source.type)(
            source=source, copy=copy, image=image, line=line, pixel=pixel, height=height, width=width,
            above=above, left=left, lines=extents.lines, columns=extents.columns, words=extents.words,
        )  # fmt: skip
        return packed, values


def choose_packing(problem: Convolution) -> Packing | None:
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
    return packing if packing.words < MAX_WORDS else None
