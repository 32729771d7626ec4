"""Convolutions of images with few channels: these are packed first, to a workspace, for im2col copies of whole lines.

What follows is a convolution of other images, by a window of one column: its channels are a line of the window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ptxdsl.kernels.call.conv_problem import Convolution, Pixels
from ptxdsl.kernels.call.launches import LaunchPlan
from ptxdsl.kernels.call.matrix import ArrayArgument, Matrix, array_argument
from ptxdsl.kernels.call.workspace import memory
from ptxdsl.kernels.sm90.boxes import LINE_BYTES
from ptxdsl.kernels.sm90.lines import THREADS, WORD_BYTES
from ptxdsl.kernels.sm90.packed import packed_images, packing_kernel, packing_parameters
from ptxdsl.schedule import Conv2dProblem
from ptxdsl.schedule.arithmetic import ceil_div

FOLDS = (4, 2, 1)  # pixels below each other in a word
MOST_WORDS, MOST_BLOCKS = 1 << 31, 1 << 16  # which 32 bits count, and a grid along y and z


class PackedExtents(NamedTuple):
    """Of packed images: how many, the lines of each, and the windows of a line."""

    images: int
    lines: int
    windows: int


@dataclass(frozen=True)
class Packing:
    """How images and filters become words: `fold` pixels below each other in one."""

    problem: Convolution
    fold: int

    @property
    def elements(self) -> int:
        """Of a word."""
        return WORD_BYTES // self.problem.product.a.type.bytes

    @property
    def pitch(self) -> int:
        """Words from one window to the next: lines of boxes do not reach over those of the L2 cache."""
        whole, seen = LINE_BYTES // WORD_BYTES, self.problem.sizes.S
        return ceil_div(seen, whole) * whole if seen > whole else 1 << (seen - 1).bit_length()

    @property
    def filters(self) -> PackedExtents:
        sizes = self.problem.sizes
        return PackedExtents(sizes.K, ceil_div(sizes.R, self.fold), 1)

    @property
    def images(self) -> PackedExtents:
        """As many lines as windows see."""
        sizes = self.problem.sizes
        lines = (sizes.P - 1) * (sizes.stride[0] // self.fold) + (self.filters.lines - 1) * sizes.dilation[0] + 1
        return PackedExtents(sizes.N, lines, sizes.Q)

    def words_of(self, extents: PackedExtents) -> int:
        """In all."""
        return extents.images * extents.lines * extents.windows * self.pitch

    @property
    def words(self) -> int:
        return self.words_of(self.images) + self.words_of(self.filters)

    @property
    def lines(self) -> int:
        """That tensor copies bring for all windows."""
        sizes = self.sizes
        return sizes.output_size * sizes.window_size * ceil_div(sizes.C, LINE_BYTES // WORD_BYTES * self.elements)

    @property
    def moved_bytes(self) -> int:
        """That are read and written."""
        return self.words * WORD_BYTES + self.problem.sizes.input_size * self._pixel_bytes

    @property
    def sizes(self) -> Conv2dProblem:
        """The convolution of what is packed."""
        sizes, channels = self.problem.sizes, self.problem.sizes.S * self.elements
        return Conv2dProblem(
            sizes.N, self.images.lines, sizes.Q, channels, sizes.K, self.filters.lines, 1,
            pad=(0, 0), stride=(sizes.stride[0] // self.fold, 1), dilation=(sizes.dilation[0], 1),
        )  # fmt: skip

    def carry_out(self) -> tuple[Convolution, LaunchPlan]:
        """The convolution of what is packed, and the launch that packs it."""
        product, sizes = self.problem.product, self.sizes
        x, images = self._room("x", product.a, self.images, sizes.C)
        w, filters = self._room("w", product.b, self.filters, sizes.C)
        m, _, k = sizes.implicit_gemm("fprop")
        pixels = Pixels("x", x.owner, x.array, (m, k), "row", k)
        rows = Matrix("w", w.owner, w.array, (sizes.K, k), "row", w.array.strides[0])
        packed = Convolution(sizes, replace(product, a=pixels, b=rows.transposed))
        return packed, self._launch(images, filters)

    def _room(
        self, name: str, like: ArrayArgument, extents: PackedExtents, channels: int
    ) -> tuple[ArrayArgument, ArrayArgument | int]:
        """Room for so many words, as images, and as all that the copy writes: numpy memory on the emulator, else the
        workspace of a stream, by its address."""
        device, stream = self.problem.product.device_stream
        window = self.pitch * self.elements
        line = extents.windows * window
        shape = extents.images, extents.lines, extents.windows, channels
        strides = extents.lines * line, line, window, 1
        if device is None:
            room = np.empty(self.words_of(extents) * self.elements, like.owner.dtype)
            seen = np.lib.stride_tricks.as_strided(room, shape, [stride * room.itemsize for stride in strides])
            return array_argument(name, seen, 4, "", ""), array_argument(name, room, 1, "", "")
        address = memory(device, stream, name, self.words_of(extents) * WORD_BYTES)
        array = replace(like.array, pointer=address, shape=shape, strides=strides, owner=None)
        return ArrayArgument(name, None, array), address

    def _launch(self, images: object, filters: object) -> LaunchPlan:
        sizes, x, w = self.problem.sizes, self.problem.product.a, self.problem.product.b
        type, filter_strides = x.type, (w.stride, sizes.S * sizes.C, sizes.C)
        top, left = sizes.before
        values = packing_parameters(type)(
            images=self._values(x, images, x.array.strides[:3], (sizes.H, sizes.W), (top, left), self.images),
            filters=self._values(w, filters, filter_strides, (sizes.R, sizes.S), (0, 0), self.filters),
            count=sizes.N,
        )
        constants = {
            "type": type, "channels": sizes.C, "fold": self.fold, "access": self._access, "pitch": self.pitch
        }  # fmt: skip
        stream = self.problem.product.device_stream[1]
        return LaunchPlan(packing_kernel, self._grid, THREADS, values, constants, stream=stream)

    @property
    def _grid(self) -> tuple[int, int, int]:
        """Words, lines and images; behind these the lines of filters."""
        lines, filters = self.images.lines, self.filters
        return (
            ceil_div(self.images.windows * self.pitch, THREADS),
            lines,
            self.images.images + ceil_div(filters.images * filters.lines, lines),
        )

    def _values(
        self,
        source: ArrayArgument,
        copy: object,
        strides: tuple[int, ...],
        size: tuple[int, int],
        before: tuple[int, int],
        extents: PackedExtents,
    ) -> Any:
        """What the kernel takes of images, or of filters."""
        (image, line, pixel), (height, width), (above, left), sizes = strides, size, before, self.problem.sizes
        return packed_images(source.type)(
            source=source, copy=copy, image=image, line=line, pixel=pixel, height=height, width=width,
            above=above, left=left, lines=extents.lines, words=extents.windows * self.pitch,
            total=extents.images * extents.lines, seen=sizes.S, step=sizes.stride[1],
        )  # fmt: skip

    @property
    def _pixel_bytes(self) -> int:
        return self.problem.sizes.C * self.problem.product.a.type.bytes

    @property
    def _access(self) -> int:
        """The bytes that are read at a time: at multiples of themselves, and within a pixel."""
        x, w = self.problem.product.a, self.problem.product.b
        return min(x.widest(), w.widest(self.problem.sizes.C))


def packing_of(problem: Convolution) -> Packing | None:
    """How images of few channels are packed; None where they are not."""
    sizes, x = problem.sizes, problem.product.a
    is_dilated, pixel_bytes = sizes.dilation[0] > 1, sizes.C * x.type.bytes
    if sizes.window_size == 1 or sizes.dilation[1] > 1 or not x.array.size or pixel_bytes > WORD_BYTES:
        return None
    folds = [
        fold for fold in FOLDS
        if fold * pixel_bytes <= WORD_BYTES and not sizes.stride[0] % fold and not (fold > 1 and is_dilated)
    ]  # fmt: skip
    packing = Packing(problem, folds[0])
    is_counted = packing.words < MOST_WORDS and max(packing.images.lines, sizes.N + sizes.K) < MOST_BLOCKS
    return packing if is_counted else None
