"""The calls that were made before: for arrays that lie as those did, only their addresses are new.

To say what is wrong with arrays, to choose tiles and to plan a schedule takes longer than to launch a kernel. What was
found right once, is right for all arrays with the same types, shapes, strides, GPUs and alignments, but for memory that
they share, which is checked each time. The launch itself checks the numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from ptxdsl import config as settings
from ptxdsl.arrays import library_of
from ptxdsl.errors import LaunchError

ALIGNMENT = 16  # bytes; no access is wider
MOST_KEYS, MOST_LAYOUTS, MOST_LAUNCHES = 2048, 64, 8
LISTS = (list, tuple)  # of arrays, as arguments


class Placement(NamedTuple):
    """How the arrays of a call lie, which of them are the same, and which numbers are 0; and their addresses, below 0
    of those that are not given."""

    layout: Hashable
    addresses: list[int]


class QuickLaunch(Protocol):
    """A launch that was worked out, and tells itself whether other arrays lie as those did."""

    def launch(self, arrays: Any, numbers: tuple[float, ...]) -> Any:
        """Launches with other arrays, and returns the output; None, with nothing done, where they do not fit."""


class MovedLaunch(Protocol):
    """A launch that was worked out, of arrays that lie as those did, elsewhere."""

    def launch(self, addresses: list[int], arrays: Sequence[object], numbers: tuple[float, ...]) -> Any:
        """Launches with arrays at these addresses, and returns the output; None, with nothing done, where they may not
        be there, or where it is for another stream."""


class KnownCall:
    """What was launched by calls that say the same of arrays of the same shapes: `quick` launches, which are tried
    first, and launches by how the arrays lie. The newest ones stand before the others."""

    __slots__ = ("by_layout", "quick")

    def __init__(self) -> None:
        self.quick: tuple[QuickLaunch, ...] = ()
        self.by_layout: dict[Hashable, tuple[MovedLaunch, ...]] = {}

    @property
    def count(self) -> int:
        """How many launches are remembered."""
        return len(self.quick) + sum(map(len, self.by_layout.values()))

    def launch(self, arrays: Sequence[object], numbers: tuple[float, ...]) -> Any:
        """The output of a launch that is remembered by how the arrays lie; None where there is none that fits."""
        placement = placement_of(arrays, numbers) if self.by_layout else None
        if placement is None:
            return None
        for launch in self.by_layout.get(placement.layout, ()):
            out = launch.launch(placement.addresses, arrays, numbers)
            if out is not None:
                return out
        return None

    def keep_quick(self, launch: QuickLaunch) -> None:
        """Remembers a launch that has just been made."""
        self.quick = (launch, *self.quick)[:MOST_LAUNCHES]

    def keep(self, layout: Hashable, launch: MovedLaunch) -> None:
        """Remembers a launch that has just been made of arrays that lie so. Of too many layouts the first is
        forgotten."""
        if len(self.by_layout) >= MOST_LAYOUTS and layout not in self.by_layout:
            del self.by_layout[next(iter(self.by_layout))]
        self.by_layout[layout] = (launch, *self.by_layout.get(layout, ()))[:MOST_LAUNCHES]


class LaunchCache:
    """Known calls by what they say: the kernel, the options, the settings, and shapes or lengths.

    The last ones are remembered, in two generations: where the younger one is full, it becomes the older one, of which
    is forgotten what has not been used since.
    """

    def __init__(self, most: int = MOST_KEYS) -> None:
        self.most = most  # keys of a generation
        self._young: dict[Hashable, KnownCall] = {}
        self._old: dict[Hashable, KnownCall] = {}

    def __len__(self) -> int:
        """How many launches are remembered."""
        return sum(known.count for known in (self._old | self._young).values())

    def launch(self, key: Hashable, arrays: Any, numbers: tuple[float, ...]) -> Any:
        """The output of a remembered launch that has now been made with these arrays and numbers; None where there is
        none that fits, or where something is wrong, which the check of the arguments says in the caller's words."""
        try:
            known = self._young.get(key) or self._from_old(key)
            if known is None:
                return None
            for launch in known.quick:
                out = launch.launch(arrays, numbers)
                if out is not None:
                    return out
            return known.launch(arrays, numbers)
        except (LaunchError, TypeError, AttributeError):  # TypeError: also of an option that is not hashable
            return None

    def known(self, key: Hashable) -> KnownCall:
        """Where a launch is kept that has just been made; nowhere that is asked for an option that is not hashable."""
        try:
            return self._young.get(key) or self._from_old(key) or self._put(key, KnownCall())
        except TypeError:
            return KnownCall()

    def clear(self) -> None:
        """Forgets all of them: each is worked out anew at its next call."""
        self._young, self._old = {}, {}

    def _from_old(self, key: Hashable) -> KnownCall | None:
        known = self._old.get(key)
        return known and self._put(key, known)

    def _put(self, key: Hashable, known: KnownCall) -> KnownCall:
        if len(self._young) >= self.most and key not in self._young:
            self._young, self._old = {}, self._young
        self._young[key] = known
        return known


CALLS = LaunchCache()


def key_of(kernels: object, config: object, options: Hashable, a: Any, b: Any) -> Hashable:
    """What a call says: `config` and `options` are all that is said beside arrays. A function among these is one of
    those that stand for all that mean the same. None for a and b that have neither a shape nor, as lists, a length."""
    try:
        return kernels, config, options, settings.deciding(), a.shape, b.shape
    except AttributeError:  # lists, arrays by protocol, or what is none
        extents = [len(each) if isinstance(each, LISTS) else getattr(each, "shape", None) for each in (a, b)]
        return None if None in extents else (kernels, config, options, settings.deciding(), *extents)


def placement_of(arrays: Sequence[object], numbers: tuple[float, ...] = ()) -> Placement | None:
    """How arrays lie, and where. None where one is no array of torch or CuPy, or has no memory."""
    layout: list[Hashable] = [number == 0 for number in numbers]
    addresses: list[int] = []
    kind, library = None, None
    for array in arrays:
        if array is None:
            layout.append(None)
            addresses.append(~len(addresses))  # no two of them are the same
            continue
        if type(array) is not kind:
            kind = type(array)
            library = library_of(kind)
        if library is None:
            return None
        try:
            kind_and_shape, address = library.look(array)
        except RuntimeError:
            return None
        layout += kind_and_shape, address % ALIGNMENT
        addresses.append(address)
    if len({*addresses}) < len(addresses):
        layout += map(addresses.index, addresses)
    return Placement(tuple(layout), addresses)
