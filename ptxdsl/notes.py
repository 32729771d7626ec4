"""Facts about a kernel that its PTX does not hold, for messages: arrays in shared memory, rings and roles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxdsl.errors import Location
from ptxdsl.types import Type


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array in shared memory: its Python name, its variable, its byte offset in the variable, and its layout.

    The layout is None for an array of unknown length.
    """

    name: str
    variable: str
    offset: int
    element: Type
    layout: Any

    def offsets(self, count: int) -> np.ndarray:
        """Return the element offsets in the shape of the layout; `count` offsets for an array without a layout."""
        if self.layout is None:
            return np.arange(count)
        shape = self.layout.shape
        extents = [int(np.prod(list(_flat(mode)))) for mode in (shape if isinstance(shape, tuple) else (shape,))]
        indices = np.indices(extents) if len(extents) > 1 else [np.arange(extents[0])]
        return np.broadcast_to(np.asarray(self.layout(*indices)), extents)

    def at(self, offset: int) -> str:
        """Return the element at a byte offset of the variable as Python indexes it, 'tile[1, 5]'; empty if there is no
        such element."""
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
    """A ring of stages: its mbarrier variable (full mbarriers first), its location, and the arrivals that fill and
    empty a stage.

    `stage_bytes` is None if threads write the stages. Each arrival that empties a stage represents `each` threads, and
    goes to all `cluster` blocks of a cluster.
    """

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
        """The name on which its methods are called."""
        return self.name or "ring"

    def too_many(self, full: bool, threads: int) -> str:
        """Return the help line for arrivals beyond those that the phase of a stage expects."""
        if full and self.stage_bytes is not None and threads > 1:
            return f"one thread fills the stages of {self.made_at}: `with pd.elect():` in a warp, around its loop"
        if not full:
            return (
                f"call `{self.called}.release()` once per phase, in exactly the `consumers=` threads of {self.made_at}"
            )
        if self.stage_bytes is None:
            return (
                f"call `{self.called}.commit()` once per phase, in exactly the `producers=` threads of {self.made_at}"
            )
        return (
            f"call `{self.called}.commit()` after the copies of a stage of {self.made_at}, before the next "
            f"`acquire()`, and `{self.called}.release()` once per phase in each reader; if two threads fill a "
            f"stage, one of them calls `{self.called}.acquire(leads=False)`"
        )


@dataclass(frozen=True, slots=True)
class RoleNote:
    """A role: its Python text, its warps, and the lines, as (file, number), that only they execute."""

    words: str
    warps: range
    lines: frozenset[tuple[str, int]]

    def has(self, warp: int, line: Location | None) -> bool:
        """True if a warp executes a line in this role."""
        return line is not None and warp in self.warps and (line.file, line.line) in self.lines


@dataclass(frozen=True, slots=True)
class ExternNote:
    """An external function as a kernel declares it: parameter and result types, and the location of a call."""

    name: str
    parameters: tuple[str, ...]
    results: tuple[str, ...]
    location: Location

    @property
    def words(self) -> str:
        return f"({', '.join(self.parameters)}) -> {', '.join(self.results) or 'None'}"

    @property
    def declaration(self) -> str:
        """The declaration as Python text."""
        one = len(self.results) == 1
        results = self.results[0] if one else _tuple(self.results) if self.results else "None"
        return f'pd.extern("{self.name}", {_tuple(self.parameters)}, {results})'


def _tuple(words: tuple[str, ...]) -> str:
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class KernelNotes:
    """The arrays, rings, roles and external functions of a kernel; empty for parsed PTX."""

    arrays: tuple[SharedArray, ...] = ()
    rings: tuple[RingNote, ...] = ()
    roles: tuple[RoleNote, ...] = ()
    externs: tuple[ExternNote, ...] = ()

    @property
    def extents(self) -> dict[str, int]:
        """Return the bytes of the first array in each variable, which may be padded beyond it."""
        first = [array for array in self.arrays if array.layout is not None and not array.offset]
        return {array.variable: array.layout.cosize * array.element.bytes for array in first}

    def whole(self, variable: str) -> SharedArray | None:
        """Return the only array of a variable if it begins at its start, else None."""
        arrays = [array for array in self.arrays if array.variable == variable]
        return arrays[0] if len(arrays) == 1 and not arrays[0].offset and arrays[0].layout is not None else None

    def element(self, variable: str, offset: int) -> str:
        """Return the array element at a byte offset of a variable; empty if there is no such element."""
        behind = sorted((a for a in self.arrays if a.variable == variable), key=lambda a: a.offset, reverse=True)
        return next((text for a in behind if a.offset <= offset and (text := a.at(offset))), "")

    def stage(self, variable: str, offset: int) -> tuple[RingNote, int, bool] | None:
        """Return the ring, the stage, and True for a full mbarrier, of the mbarrier at a byte offset of a variable."""
        for ring in self.rings:
            if ring.variable == variable:
                number = offset // 8
                return ring, number % ring.stages, number < ring.stages
        return None

    def role(self, warp: int, line: Location | None) -> RoleNote | None:
        """Return the innermost role in which a warp executes a line; None outside of roles."""
        roles = [role for role in self.roles if role.has(warp, line)]
        return min(roles, key=lambda role: len(role.warps), default=None)


NO_NOTES = KernelNotes()


def _flat(mode: object) -> Iterable[int]:
    """Yield the extents of a mode of a shape."""
    return [n for part in mode for n in _flat(part)] if isinstance(mode, tuple) else [int(mode)]  # type: ignore[call-overload]
