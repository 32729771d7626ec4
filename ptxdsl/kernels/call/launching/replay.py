"""Kept launches, with other arrays of the same layout: only the addresses are new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ptxdsl.kernels.call.launching.memory import ALIGNMENT
from ptxdsl.runtime.loaded import Prepared


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """The launch of a kernel with other arrays. `positions` are pairs of an argument and the array whose address it
    takes; `maps` are an argument, its array, and the encoder of its tensor map."""

    checked: Callable[..., None]
    unchecked: Prepared
    arguments: tuple[Any, ...]
    numbers: slice
    positions: tuple[tuple[int, int], ...]
    maps: tuple[tuple[int, int, Callable[[int], bytes]], ...]

    @property
    def read(self) -> set[int]:
        """The arrays whose addresses the launch takes."""
        return {position for _, position in self.positions} | {position for _, position, _ in self.maps}

    def launch(self, addresses: list[int], numbers: tuple[float, ...], stream: int, is_known: bool) -> None:
        """Launch with arrays at these addresses. Known numbers are not checked again."""
        arguments = list(self.arguments)
        for n, position in self.positions:
            arguments[n] = addresses[position]
        for n, position, encoded in self.maps:
            arguments[n] = encoded(addresses[position])
        if self.numbers.stop:
            arguments[self.numbers] = numbers
        if is_known:
            self.unchecked(arguments, stream)
        else:
            self.checked(arguments, stream=stream)


@dataclass(frozen=True, slots=True)
class ArrayLaunch:
    """The launches of a call, one after the other, with other arrays.

    `apart` are pairs of arrays that must not overlap, with the bounds between which the difference of their addresses
    means that they do. An output, the first array, that is not given is made like the second array. `known` are the
    numbers that have been checked. `rewrite` may generate another launch function for arrays of this layout that the
    first function did not take.
    """

    launches: tuple[KernelLaunch, ...]
    apart: tuple[tuple[int, int, int, int], ...]
    current_stream: Callable[[], int]
    stream: int | None
    make: Callable[[Any], Any]
    address: Callable[[Any], int]
    alignment: int
    known: tuple[float, ...] | None = None
    rewrite: Callable[[ArrayLaunch, list[int], Sequence[object]], None] | None = None

    def launch(self, addresses: list[int], arrays: Sequence[object], numbers: tuple[float, ...]) -> Any:
        """Launch with these arrays and return the output; return None, having done nothing, if they may overlap or if
        the workspace belongs to another stream."""
        stream = self.current_stream()
        if self.stream is not None and self.stream != stream:
            return None
        out = arrays[0]
        if out is None:
            out = self.make(arrays[1])
            addresses[0] = self.address(out)
            if addresses[0] % ALIGNMENT != self.alignment:
                return None
        for one, other, low, high in self.apart:
            if low < addresses[one] - addresses[other] < high:
                return None
        is_known = numbers == self.known
        for launch in self.launches:
            launch.launch(addresses, numbers, stream, is_known)
        if is_known and self.rewrite:
            self.rewrite(self, addresses, arrays)
        return out
