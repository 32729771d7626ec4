"""Convolutions as implicit GEMMs: the (M, N, K) that a kernel computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, TypeAlias

from ptxdsl.errors import ScheduleError
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.schedule.problems import OPERATIONS, GemmShape, sizes

Pads: TypeAlias = "Sequence[int | tuple[int, int]]"
"""The padding of each dimension: one size for both sides, or a pair (before, after)."""


class ConvProblem:
    """The base of 2- and 3-dimensional convolutions."""

    N: int
    C: int
    K: int
    pad: Pads
    stride: Sequence[int]
    dilation: Sequence[int]
    split_k: int
    groups = 1

    inputs: ClassVar[tuple[str, ...]]
    window: ClassVar[tuple[str, ...]]
    outputs: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        self._check()
        for name, largest in zip(self.outputs, self._largest_outputs(), strict=True):
            value = getattr(self, name)
            if value is None:
                object.__setattr__(self, name, largest)
            elif not 0 <= value <= largest:
                raise ScheduleError(
                    f"{type(self).__name__}: {name} is {value}, but the input allows 0 to {largest}",
                    help=f"leave {name} out to use {largest}",
                )

    def _check(self) -> None:
        problem = type(self).__name__
        extents = ("N", *self.inputs, "C", "K")
        sizes(self._values(extents), problem, extents)
        factors = (*self.window, "split_k", "groups")
        sizes(self._values(factors), problem, factors, least=1)
        for name, least in (("pad", 0), ("stride", 1), ("dilation", 1)):
            value = getattr(self, name)
            sides = _pairs(value) if name == "pad" else value
            per_side = tuple(f"{n} {side}" for n in self.inputs for side in ("before", "after"))
            sizes(sides, f"{problem}: {name}", per_side if name == "pad" else self.inputs, least)
            object.__setattr__(self, name, tuple(tuple(g) if isinstance(g, Sequence) else g for g in value))
        if self.C % self.groups or self.K % self.groups:
            raise ScheduleError(
                f"{problem}: {self.groups} groups do not divide C = {self.C} and K = {self.K}",
                help="C and K must be multiples of the number of groups",
            )

    def _values(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in names)

    def _largest_outputs(self) -> list[int]:
        """Return the number of positions of the dilated window in each padded dimension."""
        pads = _pairs(self.pad)
        padded = [x + a + b for x, a, b in zip(self._values(self.inputs), pads[::2], pads[1::2], strict=True)]
        reach = [(r - 1) * d + 1 for r, d in zip(self._values(self.window), self.dilation, strict=True)]
        return [max(0, (p - r) // s + 1) for p, r, s in zip(padded, reach, self.stride, strict=True)]

    @property
    def input_size(self) -> int:
        """The number of pixels (voxels) of all input images: N·H·W."""
        return self.N * prod(self._values(self.inputs))

    @property
    def output_size(self) -> int:
        """The number of pixels (voxels) of all output images: N·P·Q."""
        return self.N * prod(self._values(self.outputs))

    @property
    def window_size(self) -> int:
        """The number of filter positions: R·S."""
        return prod(self._values(self.window))

    def implicit_gemm(self, op: str) -> GemmShape:
        """Return (M, N, K): fprop is (NPQ, K, RSC), dgrad and deconv are (NHW, C, RSK), wgrad is (K, RSC, NPQ)."""
        self._check_operation(op)
        if op == "fprop":
            return GemmShape(self.output_size, self.K, self.window_size * self.C // self.groups)
        if op == "wgrad":
            return GemmShape(self.K, self.window_size * self.C, self.output_size)
        return GemmShape(self.input_size, self.C, self.window_size * self.K)

    def k_iterations(self, op: str, tile_k: int) -> int:
        """Return the K iterations of `tile_k` in one slice of split-K; the channels of each filter position are rounded
        up to whole iterations.
        """
        self._check_operation(op)
        sizes((tile_k,), "the tile", ("K",), least=1)
        if op == "wgrad":
            return ceil_div(ceil_div(self.output_size, self.split_k), tile_k)
        channels = self.C // self.groups if op == "fprop" else self.K
        return self.window_size * ceil_div(ceil_div(channels, self.split_k), tile_k)

    @property
    def before(self) -> list[int]:
        """The padding before each dimension."""
        return _pairs(self.pad)[::2]

    @property
    def after(self) -> list[int]:
        """The padding after each dimension."""
        return _pairs(self.pad)[1::2]

    def _check_operation(self, op: str) -> None:
        if op not in OPERATIONS:
            raise ScheduleError(f"a convolution has no operation {op!r}", help=f"use one of {', '.join(OPERATIONS)}")
        if op != "fprop" and self.groups > 1:
            raise ScheduleError(
                f"{op} with {self.groups} groups is not a single GEMM", help="create one problem for each group"
            )


def _pairs(pad: Pads) -> list[int]:
    """Return the padding before and after each dimension as a flat list."""
    return [side for p in pad for side in (p if isinstance(p, Sequence) else (p, p))]


@dataclass(frozen=True)
class Conv2dProblem(ConvProblem):
    """A convolution of NHWC images with KRSC filters to an NPQK output.

    `pad` gives for H and W the padding of both sides, or a pair (before, after). P and Q default to the largest valid
    sizes. Raises ScheduleError for invalid sizes.
    """

    N: int
    H: int
    W: int
    C: int
    K: int
    R: int
    S: int
    P: int = None  # type: ignore[assignment]  # the largest that fits
    Q: int = None  # type: ignore[assignment]  # the largest that fits
    pad: Pads = (0, 0)
    stride: Sequence[int] = (1, 1)
    dilation: Sequence[int] = (1, 1)
    split_k: int = 1
    groups: int = 1

    inputs = ("H", "W")
    window = ("R", "S")
    outputs = ("P", "Q")

    def strided_dgrad_rows(self, tile_m: int) -> int:
        """Return the number of tiles along M for one stride phase of dgrad."""
        rows = self.N * ceil_div(self.H, self.stride[0]) * ceil_div(self.W, self.stride[1])
        return ceil_div(rows, tile_m)

    def strided_dgrad_start(self, r: int, s: int) -> tuple[int, int]:
        """Return the first (h, w) that filter position (r, s) contributes to in a strided dgrad."""
        steps = zip((r, s), self.before, self.stride, strict=True)
        h, w = (abs(stride - (pad % stride - at)) % stride for at, pad, stride in steps)
        return h, w


@dataclass(frozen=True)
class Conv3dProblem(ConvProblem):
    """A convolution of NDHWC volumes with KTRSC filters to an NZPQK output; like Conv2dProblem, without groups."""

    N: int
    D: int
    H: int
    W: int
    C: int
    K: int
    T: int
    R: int
    S: int
    Z: int = None  # type: ignore[assignment]  # the largest that fits
    P: int = None  # type: ignore[assignment]  # the largest that fits
    Q: int = None  # type: ignore[assignment]  # the largest that fits
    pad: Pads = (0, 0, 0)
    stride: Sequence[int] = (1, 1, 1)
    dilation: Sequence[int] = (1, 1, 1)
    split_k: int = 1

    inputs = ("D", "H", "W")
    window = ("T", "R", "S")
    outputs = ("Z", "P", "Q")
