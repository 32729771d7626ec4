"""Launches that were made once, of other arrays that lie as those did: only the addresses are new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ptxdsl.kernels.call.launching.memory import ALIGNMENT
from ptxdsl.runtime.loaded import Prepared


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A launch of a kernel with other arrays: `positions` says which argument is the address of which of these, `maps`
    which is a tensor map of one, with what makes it of an address."""

    checked: Callable[..., None]
    unchecked: Prepared
    arguments: tuple[Any, ...]
    numbers: slice
    positions: tuple[tuple[int, int], ...]
    maps: tuple[tuple[int, int, Callable[[int], bytes]], ...]

    @property
    def read(self) -> set[int]:
        """The arrays whose addresses it takes."""
        return {position for _, position in self.positions} | {position for _, position, _ in self.maps}

    def launch(self, addresses: list[int], numbers: tuple[float, ...], stream: int, is_known: bool) -> None:
        """Launches with arrays at these addresses; numbers that are known were checked before."""
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
    """Launches with other arrays, one behind the other.

    `apart` are pairs of arrays that may not share memory, and between which distances of their addresses they would.
    Where the output, the first array, is not given, it is made like the second one. Numbers that a launch has checked
    are `known`: with them there is nothing left to check. Where arrays lie so, and the function that was written for
    the first ones did not take these, `rewrite` may write another one for them.
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
        """Launches with these arrays, and returns the output; None, with nothing done, where their memory may overlap,
        or where the workspace belongs to another stream."""
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
