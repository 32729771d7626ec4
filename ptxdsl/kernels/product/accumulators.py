"""The accumulators of a tile in registers, with the layout that maps them to its elements."""

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
    """The elements of a tile that each thread accumulates. A warp has `warp` (M, N) of them, in groups of `rows` rows.

    The registers of a group are in the order of `mma`, the tiled MMA of one warp for a group: those of an atom, then
    atoms along M, then along N. `order` maps the rows and columns of the MMA to those of the group. `fragments` makes
    both when they are needed; choosing tiles does not need them. Of `threads` in a block, the first hold the result if
    warps share the K of a tile. A group is stored in strips of `columns` columns, or at once; the MMA is that of a
    strip. `barrier` is the named barrier of these threads. `is_transposed` accumulators are transposed: rows of the MMA
    are columns of the group."""

    type: Type
    tile: tuple[int, int]
    warp: tuple[int, int]
    rows: int
    fragments: Callable[[], Fragments]
    threads: int
    columns: int = 0
    barrier: int = 0
    is_transposed: bool = False

    @cached_property
    def mma(self) -> TiledMma:
        return self.fragments()[0]

    @cached_property
    def order(self) -> tuple[Layout, Layout]:
        return self.fragments()[1]

    @property
    def warps(self) -> tuple[int, int]:
        """The warps along M and N; M varies fastest in the number of a warp."""
        return self.tile[0] // self.warp[0], self.tile[1] // self.warp[1]

    @property
    def all_warps(self) -> int:
        """The number of warps with accumulators."""
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
        """The registers that are moved at a time."""
        return WIDEST // self.type.bytes

    def meet(self) -> None:
        """Synchronise the threads of the block, or those with accumulators if others have other roles."""
        if self.barrier:
            pd.ptx.bar.sync(self.barrier, self.holders)
        else:
            pd.ptx.bar.sync(0)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Run the body in the threads with accumulators."""
        if self.threads == self.holders:
            yield
            return
        with pd.if_(pd.tid.x < self.holders):
            yield


class TileAccumulators:
    """The accumulators of all groups of a tile, or of some: `groups[i]` are the registers of a thread for one group."""

    def __init__(self, layout: AccumulatorLayout, groups: int | None = None) -> None:
        """Set all to 0."""
        zero = 0 if layout.type.is_integer else 0.0
        self.layout = layout
        self.groups = [[pd.var(layout.type, zero) for _ in range(layout.each)] for _ in range(groups or layout.groups)]

    def strip(self, number: int) -> list[list[Any]]:
        """Return the registers of one strip, for each group."""
        each = self.layout.each // self.layout.strips
        return [group[number * each :][:each] for group in self.groups]

    def row_blocks(self, count: int) -> list[TileAccumulators]:
        """Return the accumulators of each of `count` 64-row blocks of a tile."""
        each, row_blocks = len(self.groups) // count, [copy(self) for _ in range(count)]
        for number, row_block in enumerate(row_blocks):
            row_block.groups = self.groups[number * each :][:each]
        return row_blocks

    @property
    def registers(self) -> list[Var]:
        """The registers of all groups, in order."""
        return [register for group in self.groups for register in group]

    def words(self) -> Iterator[tuple[int, list[Var]]]:
        """Yield (number of the first register, registers) for each access."""
        registers = self.registers
        for first in range(0, len(registers), self.layout.word):
            yield first, registers[first : first + self.layout.word]

    def clear(self) -> None:
        for register in self.registers:
            register.set(0 if self.layout.type.is_integer else 0.0)
