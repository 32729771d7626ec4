"""Launches that were worked out before: for arrays that lie as those did, only their addresses are new.

To say what is wrong with arrays takes longer than to launch a kernel. What was found right once, is right for all
arrays with the same types, shapes, strides, GPUs and alignments, but for memory that they share, which is checked each
time. The launch itself checks the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, cast

from ptxdsl.arrays import Library, Strided, describe, library_of
from ptxdsl.calls import Launch
from ptxdsl.launch import Compiled

ALIGNMENT = 16  # bytes; no access is wider
MOST_PLANS = 4096


class Sight(NamedTuple):
    """How arrays lie and which of them are the same, and where they lie: at 0 for one that is not given."""

    kinds: tuple[Any, ...]
    addresses: tuple[int, ...]


def look(arrays: Sequence[Any]) -> Sight | None:
    """The sight of arrays of torch or CuPy; None where one is not theirs or has no memory."""
    kinds: list[Any] = []
    addresses = []
    for array in arrays:
        library = library_of(type(array))
        if library is None and array is not None:
            return None
        try:
            kind, address = library.look(array) if library else (None, 0)
        except RuntimeError:
            return None
        kinds += kind, address % ALIGNMENT
        addresses.append(address)
    if len({*addresses}) < len(addresses):
        kinds += map(addresses.index, addresses)
    return Sight(tuple(kinds), tuple(addresses))


@dataclass(frozen=True, slots=True)
class Call:
    """A launch with all that it is given: arguments, of which arrays are `strided`, and constants.

    `numbers` are the places of the arguments that may be others the next time. A launch with a workspace is bound to
    the `stream` that it belongs to.
    """

    launch: Launch
    arguments: tuple[Any, ...]
    constants: Mapping[str, Any]
    numbers: slice
    stream: int | None = None

    def run(self) -> None:
        self.launch(*self.arguments, **self.constants)


@dataclass(frozen=True, slots=True)
class Plan:
    """A launch of a kernel with other arrays: `places` says which argument is which of these.

    `apart` are pairs of arrays that may not share memory, and between which distances of their addresses they would.
    """

    handle: Callable[..., None]
    arguments: tuple[Any, ...]
    numbers: slice
    stream: int | None
    places: tuple[tuple[int, int], ...]
    apart: tuple[tuple[int, int, int, int], ...]
    device: int
    current_stream: Callable[[], int]

    def launch(self, addresses: Sequence[int], numbers: tuple[Any, ...]) -> bool:
        """Launches with arrays at these addresses; False, with nothing done, where their memory may overlap, or where
        the workspace belongs to another stream."""
        stream = self.current_stream()
        if self.stream is not None and self.stream != stream:
            return False
        for one, other, low, high in self.apart:
            if low < addresses[one] - addresses[other] < high:
                return False
        given = list(self.arguments)
        for n, place in self.places:
            given[n] = addresses[place]
        given[self.numbers] = numbers
        self.handle(given, stream=stream, device=self.device)
        return True


class Plans:
    """Plans by what their user knows of a launch beside the arrays, and by how the arrays lie."""

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def launch(self, what: tuple[Any, ...], sight: Sight | None, numbers: tuple[Any, ...]) -> bool:
        """Whether a launch of such arrays was planned, and has now been made with these numbers."""
        if sight is None:
            return False
        plan = self._plans.get((what, sight.kinds))
        return plan is not None and plan.launch(sight.addresses, numbers)

    def learn(self, what: tuple[Any, ...], sight: Sight | None, arrays: Sequence[Any], call: Call) -> None:
        """Plans a call that has just been made on a GPU; each array among its arguments is one of `arrays`."""
        handle = call.launch.known(*call.arguments, **call.constants)
        if sight is None or handle is None:
            return
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[what, sight.kinds] = _plan(handle, arrays, call)


def _plan(handle: partial[None], arrays: Sequence[Any], call: Call) -> Plan:
    signature = cast(Compiled, handle.func).signature
    places = [(n, _place(v.array, arrays)) for n, v in enumerate(call.arguments) if isinstance(v, Strided)]
    written = {place for n, place in places if signature.names[n] in signature.written}
    apart = combinations(dict.fromkeys(place for _, place in places), 2)
    reach = [(a.span[0] - a.pointer, a.span[1] - a.pointer) if a else (0, 0) for a in map(describe, arrays)]
    first = arrays[places[0][1]]
    library = cast(Library, library_of(type(first)))
    device = int(library.device(first))
    return Plan(
        handle=handle,
        arguments=tuple(0 if isinstance(v, Strided) else v for v in call.arguments),
        numbers=call.numbers,
        stream=call.stream,
        places=tuple(places),
        apart=tuple((*pair, *_overlaps(*(reach[n] for n in pair))) for pair in apart if written & {*pair}),
        device=device,
        current_stream=library.current_stream(device),
    )


def _overlaps(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Between which distances of their addresses two arrays overlap, of what they reach below and above these."""
    return other[0] - one[1], other[1] - one[0]


def _place(array: object, arrays: Sequence[object]) -> int:
    return next(n for n, one in enumerate(arrays) if one is array)
