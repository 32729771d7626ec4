"""What Python says of a kernel and its PTX does not: arrays in shared memory, rings and roles. Messages name them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl.errors import Location
from ptxdsl.types import Type


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array in shared memory as Python has it: its name, the variable it lies in, bytes from there, its layout.

    The layout is None for an array of unknown length.
    """

    name: str
    variable: str
    offset: int
    element: Type
    layout: Any

    def offsets(self, count: int) -> np.ndarray:
        """Where the elements lie, in the shape of the layout: an array of elements from the first on. An array without
        a layout has `count`."""
        if self.layout is None:
            return np.arange(count)
        shape = self.layout.shape
        extents = [int(np.prod(list(_flat(mode)))) for mode in (shape if isinstance(shape, tuple) else (shape,))]
        indices = np.indices(extents) if len(extents) > 1 else [np.arange(extents[0])]
        return np.broadcast_to(np.asarray(self.layout(*indices)), extents)

    def at(self, offset: int) -> str:
        """The element that has a byte of its variable, as Python indexes it: 'tile[1, 5]'; empty if none has it."""
        number, extra = divmod(offset - self.offset, max(1, self.element.bytes))
        if self.layout is None:
            index: list[int] = [number]
        else:
            known = np.argwhere(self.offsets(0) == number)
            if number < 0 or not known.size:
                return ""
            index = known[0].tolist()
        return f"{self.name}[{', '.join(map(str, index))}]" + (
            f" plus {extra} byte{'s' * (extra > 1)}" if extra else ""
        )


@dataclass(frozen=True, slots=True)
class RingNote:
    """A ring of stages: the variable with its mbarriers, those that tell of full stages first, where it was made, how
    many arrivals fill a stage and how many empty it. `stage_bytes` is None where threads write the stages. An arrival
    that empties one stands for `each` threads, and each comes to all blocks of a cluster of so many."""

    name: str
    variable: str
    stages: int
    stage_bytes: int | None
    fillers: int
    readers: int
    location: Location
    each: int = 1
    cluster: int = 1

    @property
    def words(self) -> str:
        return f"`{self.name}`" if self.name else f"the ring of line {self.location.line}"

    @property
    def made_at(self) -> str:
        return (
            f"`{self.name}` (line {self.location.line})" if self.name else f"the ring made at line {self.location.line}"
        )

    @property
    def called(self) -> str:
        """What its methods are called on."""
        return self.name or "ring"

    def too_many(self, full: bool, threads: int) -> str:
        """How to mend arrivals of threads that the phase of a stage does not wait for."""
        if full and self.stage_bytes is not None and threads > 1:
            return f"one thread fills the stages of {self.made_at}: `with pd.elect():` in a warp, around its rounds"
        if not full:
            return f"`{self.called}.release()` by as many threads as `consumers` of {self.made_at} says, once a round"
        if self.stage_bytes is None:
            return f"`{self.called}.commit()` by as many threads as `producers` of {self.made_at} says, once a round"
        return (
            f"`{self.called}.commit()` behind the copies of a stage of {self.made_at}, before the next `acquire()`; "
            f"and one `{self.called}.release()` of each reader a round; where two threads fill a stage, one of them "
            f"has `{self.called}.acquire(leads=False)`"
        )


@dataclass(frozen=True, slots=True)
class RoleNote:
    """A role: what Python calls it, its warps, and the lines that are for them alone, each (file, number)."""

    words: str
    warps: range
    lines: frozenset[tuple[str, int]]

    def has(self, warp: int, line: Location | None) -> bool:
        """Whether a warp runs a line in this role."""
        return line is not None and warp in self.warps and (line.file, line.line) in self.lines


@dataclass(frozen=True, slots=True)
class ExternNote:
    """A function of another module as a kernel declares it: types that it takes and gives, and where it is called."""

    name: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    location: Location

    @property
    def words(self) -> str:
        return f"({', '.join(self.parameters)}) -> {', '.join(self.results) or 'None'}"

    @property
    def declaration(self) -> str:
        """How Python declares it."""
        one = len(self.results) == 1
        results = self.results[0] if one else _tuple(self.results) if self.results else "None"
        return f'pd.extern("{self.name}", {_tuple(self.parameters)}, {results})'


def _tuple(words: tuple[str, ...]) -> str:
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class KernelNotes:
    """The arrays, rings and roles of a kernel, and what it calls of other modules. That of PTX, of which Python says
    nothing, has none."""

    arrays: tuple[SharedArray, ...] = ()
    rings: tuple[RingNote, ...] = ()
    roles: tuple[RoleNote, ...] = ()
    externs: tuple[ExternNote, ...] = ()

    @property
    def extents(self) -> dict[str, int]:
        """The bytes of the first array in each variable, as Python wrote it: the variable may be longer."""
        first = [array for array in self.arrays if array.layout is not None and not array.offset]
        return {array.variable: array.layout.cosize * array.element.bytes for array in first}

    def whole(self, variable: str) -> SharedArray | None:
        """The array that alone lies in a variable, from its start on; None where there is none, or several."""
        arrays = [array for array in self.arrays if array.variable == variable]
        return arrays[0] if len(arrays) == 1 and not arrays[0].offset and arrays[0].layout is not None else None

    def element(self, variable: str, offset: int) -> str:
        """The element of an array that has a byte of a variable; empty if none has it."""
        behind = sorted((a for a in self.arrays if a.variable == variable), key=lambda a: a.offset, reverse=True)
        return next((text for a in behind if a.offset <= offset and (text := a.at(offset))), "")

    def stage(self, variable: str, offset: int) -> tuple[RingNote, int, bool] | None:
        """The ring whose mbarrier is at a byte of a variable, the stage, and whether it tells that this is full."""
        for ring in self.rings:
            if ring.variable == variable:
                number = offset // 8
                return ring, number % ring.stages, number < ring.stages
        return None

    def role(self, warp: int, line: Location | None) -> RoleNote | None:
        """The innermost role in which a warp of a block runs a line; None outside of roles."""
        roles = [role for role in self.roles if role.has(warp, line)]
        return min(roles, key=lambda role: len(role.warps), default=None)


NO_NOTES = KernelNotes()


def _flat(mode: object) -> Iterable[int]:
    """The extents of a mode of a shape."""
    return [n for part in mode for n in _flat(part)] if isinstance(mode, tuple) else [int(mode)]  # type: ignore[call-overload]
