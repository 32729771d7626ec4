"""The accumulators of a tile in registers, with the layout that says which element each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import ptxdsl as pd
from ptxdsl.cached import cached_property
from ptxdsl.kernels.product.words import WIDEST
from ptxdsl.layout import Layout, TiledMma
from ptxdsl.trace.value import Var
from ptxdsl.types import Type

Fragments: TypeAlias = "tuple[TiledMma, tuple[Layout, Layout]]"


@dataclass(frozen=True)
class AccumulatorLayout:
    """Which elements of a tile a thread holds. A warp has `warp` (M, N) of them, in groups of `rows` rows.

    The registers of a group are in the order of `mma`, one warp's tiled MMA of a group: those of an atom, then atoms
    along M, then along N; `order` says which row and column of the group the MMA's are. `fragments` makes both, where
    they are needed: tiles are chosen without. Of `threads` in a block, the first hold accumulators in the end, where
    warps share the K of a tile. A group is stored in strips of `columns` columns, or at once; the MMA is that of a
    strip. `barrier` is the one at which these threads meet. Where accumulators are `is_turned`, rows of the MMA are
    columns of the group."""

    type: Type
    tile: tuple[int, int]
    warp: tuple[int, int]
    rows: int
    fragments: Callable[[], Fragments]
    threads: int
    columns: int = 0
    barrier: int = 0
    is_turned: bool = False

    @cached_property
    def mma(self) -> TiledMma:
        return self.fragments()[0]

    @cached_property
    def order(self) -> tuple[Layout, Layout]:
        return self.fragments()[1]

    @property
    def warps(self) -> tuple[int, int]:
        """Along M and N, M first; that is how warps are numbered."""
        return self.tile[0] // self.warp[0], self.tile[1] // self.warp[1]

    @property
    def all_warps(self) -> int:
        """That hold accumulators."""
        return self.warps[0] * self.warps[1]

    @property
    def groups(self) -> int:
        return self.warp[0] // self.rows

    @property
    def strip(self) -> int:
        """The columns of a group that are stored at a time."""
        return self.columns or self.warp[1]

    @property
    def strips(self) -> int:
        return self.warp[1] // self.strip

    @property
    def lanes(self) -> int:
        """The threads of a warp."""
        return 32

    @property
    def holders(self) -> int:
        return self.lanes * self.all_warps

    @property
    def each(self) -> int:
        """The registers of a thread for a group."""
        return self.rows * self.warp[1] // self.lanes

    @property
    def word(self) -> int:
        """Registers that are moved at a time."""
        return WIDEST // self.type.bytes

    def meet(self) -> None:
        """Waits for all threads of the block, or of those that hold accumulators where others have other work."""
        if self.barrier:
            pd.ptx.bar.sync(self.barrier, self.holders)
        else:
            pd.ptx.bar.sync(0)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """The body is for the threads that hold accumulators."""
        if self.threads == self.holders:
            yield
            return
        with pd.if_(pd.tid.x < self.holders):
            yield


class TileAccumulators:
    """The accumulators of all groups of a tile, or of some: `groups[i]` are the registers of each thread for one
    group."""

    def __init__(self, layout: AccumulatorLayout, groups: int | None = None) -> None:
        """All 0."""
        zero = 0 if layout.type.is_integer else 0.0
        self.layout = layout
        self.groups = [[pd.var(layout.type, zero) for _ in range(layout.each)] for _ in range(groups or layout.groups)]

    def strip(self, number: int) -> list[list[Any]]:
        """Of each group the registers of one strip."""
        each = self.layout.each // self.layout.strips
        return [group[number * each :][:each] for group in self.groups]

    def pieces(self, count: int) -> list[TileAccumulators]:
        """The accumulators of so many pieces of a tile, one behind the other."""
        each, pieces = len(self.groups) // count, [copy(self) for _ in range(count)]
        for number, piece in enumerate(pieces):
            piece.groups = self.groups[number * each :][:each]
        return pieces

    @property
    def registers(self) -> list[Var]:
        """Those of all groups, in a row."""
        return [register for group in self.groups for register in group]

    def words(self) -> Iterator[tuple[int, list[Var]]]:
        """(number of the first register, registers): as many as are moved at a time."""
        registers = self.registers
        for first in range(0, len(registers), self.layout.word):
            yield first, registers[first : first + self.layout.word]

    def clear(self) -> None:
        for register in self.registers:
            register.set(0 if self.layout.type.is_integer else 0.0)
