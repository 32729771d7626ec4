"""Cache of launches: for arrays of a known layout, only the addresses are new.

Checking arrays, choosing tiles and planning a schedule take longer than launching a kernel. The result holds for all
arrays with the same types, shapes, strides, GPUs and alignments. Overlaps depend on the addresses and are checked at
each launch. The launch itself checks the numbers.
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
    """The layout of the arrays of a call, including which of them are the same and which numbers are 0, and their
    addresses. The address of an array that is not given is negative."""

    layout: Hashable
    addresses: list[int]


class QuickLaunch(Protocol):
    """A kept launch that checks by itself if other arrays have its layout."""

    def launch(self, arrays: Any, numbers: tuple[float, ...]) -> Any:
        """Launch with other arrays and return the output; return None, having done nothing, if they do not fit."""


class MovedLaunch(Protocol):
    """A kept launch for arrays of the same layout at other addresses."""

    def launch(self, addresses: list[int], arrays: Sequence[object], numbers: tuple[float, ...]) -> Any:
        """Launch with arrays at these addresses and return the output; return None, having done nothing, if arrays
        overlap or the launch belongs to another stream."""


class KnownCall:
    """The launches of calls with the same key. `quick` ones are tried first, then those kept by layout; the newest come
    first."""

    __slots__ = ("by_layout", "quick")

    def __init__(self) -> None:
        self.quick: tuple[QuickLaunch, ...] = ()
        self.by_layout: dict[Hashable, tuple[MovedLaunch, ...]] = {}

    @property
    def count(self) -> int:
        """The number of launches."""
        return len(self.quick) + sum(map(len, self.by_layout.values()))

    def launch(self, arrays: Sequence[object], numbers: tuple[float, ...]) -> Any:
        """Launch by layout and return the output; return None if no kept launch fits."""
        placement = placement_of(arrays, numbers) if self.by_layout else None
        if placement is None:
            return None
        for launch in self.by_layout.get(placement.layout, ()):
            out = launch.launch(placement.addresses, arrays, numbers)
            if out is not None:
                return out
        return None

    def keep_quick(self, launch: QuickLaunch) -> None:
        """Keep a launch that has just been made."""
        self.quick = (launch, *self.quick)[:MOST_LAUNCHES]

    def keep(self, layout: Hashable, launch: MovedLaunch) -> None:
        """Keep a launch that has just been made with arrays of this layout. If there are too many layouts, the oldest
        is dropped."""
        if len(self.by_layout) >= MOST_LAYOUTS and layout not in self.by_layout:
            del self.by_layout[next(iter(self.by_layout))]
        self.by_layout[layout] = (launch, *self.by_layout.get(layout, ()))[:MOST_LAUNCHES]


class LaunchCache:
    """Launches by the key of their call: kernel, options, settings, and shapes or lengths.

    There are two generations. When the younger one is full, it becomes the older one, and what was not used since is
    dropped.
    """

    def __init__(self, most: int = MOST_KEYS) -> None:
        self.most = most  # keys of a generation
        self._young: dict[Hashable, KnownCall] = {}
        self._old: dict[Hashable, KnownCall] = {}

    def __len__(self) -> int:
        """Return the number of launches."""
        return sum(known.count for known in (self._old | self._young).values())

    def launch(self, key: Hashable, arrays: Any, numbers: tuple[float, ...]) -> Any:
        """Launch with these arrays and numbers if a kept launch fits, and return the output. Return None otherwise,
        also for an error, which the full check then reports in the caller's terms."""
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
        """Return the entry of a key, to keep a launch in it. The entry of a key that is not hashable is not kept."""
        try:
            return self._young.get(key) or self._from_old(key) or self._put(key, KnownCall())
        except TypeError:
            return KnownCall()

    def clear(self) -> None:
        """Drop all launches."""
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


def key_of(check: object, config: object, options: Hashable, a: Any, b: Any) -> Hashable:
    """Return the key of a call, whose arrays `check` checks. `config` and `options` are its other arguments, with equal
    functions represented by one. None if a or b has neither a shape nor, as a list, a length."""
    try:
        return check, config, options, settings.deciding(), a.shape, b.shape
    except AttributeError:  # lists, arrays by protocol, or what is none
        extents = [len(each) if isinstance(each, LISTS) else getattr(each, "shape", None) for each in (a, b)]
        return None if None in extents else (check, config, options, settings.deciding(), *extents)


def placement_of(arrays: Sequence[object], numbers: tuple[float, ...] = ()) -> Placement | None:
    """Return the layout and the addresses of arrays; None if one is not an array of torch or CuPy, or has no memory."""
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
