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
MOST_KEYS, MOST_OF_A_KEY = 2048, 8


class BriefKey(NamedTuple):
    """Some of what decides about a launch, quickly asked; the launch tells itself whether it fits the arrays.

    `config` is part of the key by its identity. There is no key for arguments that stand for others from call to call.
    `epilogue` is the function of a call where it is part of the key, by all that it reads.
    """

    key: Hashable | None
    config: object
    epilogue: object = None

    @property
    def is_lasting(self) -> bool:
        """Whether a launch may be remembered by it: not where it depends on what was tuned, or on what a function of
        the configuration reads that is not in the key."""
        if self.key is None or self.config == "tune":
            return False
        return self.epilogue is not None or getattr(self.config, "epilogue", None) is None


class CachedLaunch(Protocol):
    """A launch that was worked out, of arrays that may lie elsewhere the next time."""

    def launch(self, addresses: Any, arrays: Any, numbers: tuple[float, ...]) -> Any:
        """Launches with other arrays, and returns the output; None, with nothing done, where they do not fit."""


class LaunchCache:
    """Launches by all that decides about them: the kernel, the options, the settings, and how the arrays lie.

    The last ones are remembered, in two generations: where the younger one is full, it becomes the older one, of which
    is forgotten what has not been used since. A key may have several launches: for other streams, or lists of other
    sizes.
    """

    def __init__(self, most: int = MOST_KEYS) -> None:
        self.most = most  # keys of a generation
        self._young: dict[Hashable, tuple[CachedLaunch, ...]] = {}
        self._old: dict[Hashable, tuple[CachedLaunch, ...]] = {}

    def __len__(self) -> int:
        """How many launches are remembered."""
        return sum(map(len, (self._old | self._young).values()))

    def launch(self, key: Hashable, addresses: Any, arrays: Any, numbers: tuple[float, ...]) -> Any:
        """The output of a remembered launch that has now been made with these arrays and numbers; None where there is
        none that fits, or where something is wrong, which the check of the arguments says in the caller's words."""
        try:
            for launch in self._young.get(key) or self._from_old(key):
                out = launch.launch(addresses, arrays, numbers)
                if out is not None:
                    return out
        except (LaunchError, TypeError, AttributeError):  # TypeError: also of an option that is not hashable
            pass
        return None

    def keep(self, key: Hashable, launch: CachedLaunch) -> None:
        """Remembers a launch that has just been made; not where an option is not hashable."""
        try:
            launches = self._young.get(key) or self._from_old(key)
        except TypeError:
            return
        self._put(key, (launch, *launches)[:MOST_OF_A_KEY])

    def clear(self) -> None:
        """Forgets all of them: each is worked out anew at its next call."""
        self._young, self._old = {}, {}

    def _from_old(self, key: Hashable) -> tuple[CachedLaunch, ...]:
        launches = self._old.get(key, ())
        if launches:
            self._put(key, launches)
        return launches

    def _put(self, key: Hashable, launches: tuple[CachedLaunch, ...]) -> None:
        if len(self._young) >= self.most and key not in self._young:
            self._young, self._old = {}, self._young
        self._young[key] = launches


CALLS = LaunchCache()


def brief_key(kernel: object, config: object, options: Hashable, a: Any, b: Any) -> Hashable | None:
    """The key of a `BriefKey`; None for a and b that are no arrays."""
    try:
        return kernel, id(config), options, settings.deciding(), a.shape, b.shape
    except AttributeError:
        return None


def key_of(kernel: object, options: Hashable, arrays: Sequence[object]) -> tuple[Hashable, list[int]] | None:
    """All that decides about a launch, with how its arrays lie and which of them are the same; and their addresses,
    below 0 for those that are not given. None where one is no array of torch or CuPy, or has no memory."""
    key: list[Hashable] = [kernel, options, settings.deciding()]
    addresses: list[int] = []
    kind, library = None, None
    for array in arrays:
        if array is None:
            key.append(None)
            addresses.append(~len(addresses))  # no two of them are the same
            continue
        if type(array) is not kind:
            kind = type(array)
            library = library_of(kind)
        if library is None:
            return None
        try:
            layout, address = library.look(array)
        except RuntimeError:
            return None
        key += layout, address % ALIGNMENT
        addresses.append(address)
    if len({*addresses}) < len(addresses):
        key += map(addresses.index, addresses)
    return tuple(key), addresses


def key_of_lists(kernel: object, options: Hashable, lengths: Sequence[int | None]) -> Hashable:
    """The same of lists, whose launches tell themselves whether they fit arrays that lie so."""
    return kernel, options, settings.deciding(), *lengths
