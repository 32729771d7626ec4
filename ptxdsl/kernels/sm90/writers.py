"""Writers of staged boxes: by TMA, or by the threads of the warpgroup where TMA would write rows of another group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ptxdsl as pd
from ptxdsl import s32, u32
from ptxdsl.kernels.product.product import View, WorkTile
from ptxdsl.kernels.product.words import read_words, write_words
from ptxdsl.kernels.sm90.fragments import Boxes, RowFragment
from ptxdsl.kernels.sm90.loads import GroupRows
from ptxdsl.kernels.sm90.maps import MATRICES, NO_PROBLEM, ProblemMaps
from ptxdsl.kernels.sm90.staging import StagedBox, Staging
from ptxdsl.kernels.sm90.tiling import WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.epilogue import RowPointer, element
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue


class Writer:
    """Writes boxes by TMA. The rows of a box past the end of the tensor are not written.

    With `maps`, tiles are of a list of problems, whose tensor maps another warp rewrites: `work.item[1]` is the version
    of the map of a tile."""

    def __init__(
        self, traits: WarpgroupTraits, staging: Staging, fragment: RowFragment, maps: ProblemMaps | None = None
    ) -> None:
        self.traits, self.staging, self.fragment, self.maps = traits, staging, fragment, maps
        self.version = pd.var(u32, NO_PROBLEM) if maps else None

    def prepare(self, work: WorkTile) -> None:
        """Acquire the tensor map of a tile, during its mainloop."""
        if self.maps and self.version is not None:
            with pd.if_(self.staging.leads & (work.item[1] != self.version)):
                self.version.set(work.item[1])
                self.maps.acquire(MATRICES, work.item[1])

    def begin(self, work: WorkTile) -> Scalar | None:
        """Begin a tile. Return how many rows there are from the first of the warpgroup on, or None if that does not
        matter. Of a list, all of the previous tile must be in memory, since maps are rewritten."""
        if self.maps:
            with pd.if_(self.staging.leads):
                pd.ptx.cp.async_.bulk.wait_group(0)
        return None

    def write(self, work: WorkTile, boxes: Boxes, rows_left: Scalar | None = None) -> None:
        """Start to write boxes that all threads have staged."""
        self.staging.publish()
        with pd.if_(self.staging.leads):
            self._store(work, boxes)
            pd.ptx.cp.async_.bulk.commit_group()

    def _store(self, work: WorkTile, boxes: Boxes) -> None:
        """Issue the TMA stores of boxes, by one thread."""
        out = work.product.out.tensor if isinstance(work.product.out, GroupRows) else work.product.out
        for address, at in self.fragment.copies(work, out, boxes):
            out.map.store(at, address)


class GroupWriter(Writer):
    """Writes boxes of a group of rows. A box in which the group ends is written by the threads, so that the rows of the
    next group are left alone."""

    def __init__(
        self, traits: WarpgroupTraits, staging: Staging, fragment: RowFragment, maps: ProblemMaps | None = None
    ) -> None:
        super().__init__(traits, staging, fragment, maps)
        self.rows, columns = traits.out_map.box[-2:]
        self.type = traits.operands.output
        self.chunk = traits.operands.out_bytes // self.type.bytes
        self.lanes = columns // self.chunk  # that write a row
        self.step = WARPGROUP // self.lanes  # rows that are written at a time
        self.steps = range(0, self.rows, self.step)

    def begin(self, work: WorkTile) -> Scalar | None:
        super().begin(work)
        first = work.first[0] + self.fragment.first_row
        left: Scalar = pd.max(work.product.m, first) - first
        return left

    def write(self, work: WorkTile, boxes: Boxes, rows_left: Scalar | None = None) -> None:
        assert rows_left is not None
        self.staging.publish()
        with pd.if_(self.staging.leads):
            for box, offset in boxes:
                with pd.if_(rows_left >= self.fragment.row(offset) + self.rows):
                    self._store(work, [(box, offset)])
            pd.ptx.cp.async_.bulk.commit_group()
        for box, offset in boxes:
            row = self.fragment.row(offset)
            with pd.if_((rows_left > row) & (rows_left < row + self.rows)):
                self._write_rows(work, box, offset, rows_left - row)

    def _write_rows(self, work: WorkTile, box: StagedBox, offset: int, left: Scalar) -> None:
        """Write the `left` rows of a box that exist, each by neighbouring threads."""
        thread, (first_row, first_column) = self.staging.consumer.thread % WARPGROUP, self.fragment.corner(work, offset)
        row, column = thread // self.lanes, thread % self.lanes * self.chunk
        at = first_row + row, first_column + column
        for step, (target, exists) in zip(self.steps, self._targets(work.product.out, at), strict=True):
            inside = (row + step < left) & (at[1] < work.product.n)
            with pd.if_(inside if exists is None else inside & exists):
                staged = box.address(*self.staging.origin, row + step, column)
                write_words(target, read_words(staged, self.chunk, self.type), self.chunk)

    def _targets(self, out: Any, at: tuple[Scalar, Scalar]) -> Iterator[tuple[PointerValue, Scalar | None]]:
        """Yield the address of an element for each step down the rows, and a predicate that its row exists, if it may
        not."""
        running = RowPointer(out, at, self.step)
        for _ in self.steps:
            yield running.pointer, None
            running.advance()


class ScatterWriter(GroupWriter):
    """Writes boxes to rows that an index names, all by the threads. They read the indices of a box at once."""

    def write(self, work: WorkTile, boxes: Boxes, rows_left: Scalar | None = None) -> None:
        assert rows_left is not None
        self.staging.consumer.warpgroup_barrier()
        for box, offset in boxes:
            row = self.fragment.row(offset)
            with pd.if_(rows_left > row):
                self._write_rows(work, box, offset, rows_left - row)

    def _targets(self, out: Any, at: tuple[Scalar, Scalar]) -> Iterator[tuple[PointerValue, Scalar | None]]:
        for number in [out.numbers[pd.min(at[0] + step, out.last)] for step in self.steps]:
            exists = (number >= 0) & (number < out.rows.to(s32))
            yield element(View(out.pointer, out.stride), (number, at[1])), exists
