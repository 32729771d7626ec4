"""Writers of staged boxes: by TMA, or by the threads of the warpgroup where TMA would write rows of another group."""

from __future__ import annotations

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
from ptxdsl.kernels.store.readers import RowPointer, element
from ptxdsl.trace.instruction import Scalar


class Writer:
    """Writes boxes by TMA. The rows of a box past the end of the tensor are not written.

    With `maps`, tiles are of a list of problems, whose tensor maps another warp rewrites: `work.item[1]` is the version
    of the map of a tile."""

    def __init__(
        self, traits: WarpgroupTraits, staging: Staging, fragment: Any, maps: ProblemMaps | None = None
    ) -> None:
        self.traits, self.staging, self.maps = traits, staging, maps
        self.fragment: RowFragment = fragment
        self.version = pd.var(u32, NO_PROBLEM) if maps else None

    def prepare(self, work: WorkTile) -> None:
        """Acquire the tensor map of a tile, during its mainloop."""
        if self.maps and self.version is not None:
            with pd.if_(self.staging.leads & (work.item[1] != self.version)):
                self.version.set(work.item[1])
                self.maps.acquire(MATRICES, work.item[1])

    def begin(self, work: WorkTile) -> Scalar | None:
        """Begin a tile. Return how many rows there are from its first on, or None if that does not matter. Of a list,
        all of the previous tile must be in memory, since maps are rewritten."""
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
    """Writes transposed boxes of a group of rows. The box in which the group ends is written by the threads, so that
    the rows of the next group are left alone."""

    def __init__(
        self, traits: WarpgroupTraits, staging: Staging, fragment: Any, maps: ProblemMaps | None = None
    ) -> None:
        super().__init__(traits, staging, fragment, maps)
        self.first_column = fragment.first_column
        self.type = traits.operands.output
        self.chunk = traits.operands.out_bytes // self.type.bytes
        self.lanes = traits.out_map.box[-1] // self.chunk  # that write a row
        self.step = WARPGROUP // self.lanes  # rows that are written at a time

    def begin(self, work: WorkTile) -> Scalar | None:
        super().begin(work)
        left: Scalar = work.product.m - work.first[0]
        return left

    def write(self, work: WorkTile, boxes: Boxes, rows_left: Scalar | None = None) -> None:
        assert rows_left is not None
        self.staging.publish()
        with pd.if_(self.staging.leads):
            for box, row in boxes:
                with pd.if_(rows_left >= row + self.fragment.extent):
                    self._store(work, [(box, row)])
            pd.ptx.cp.async_.bulk.commit_group()
        for box, row in boxes:
            with pd.if_((rows_left > row) & (rows_left < row + self.fragment.extent)):
                self._write_rows(box, row, work)

    def _write_rows(self, box: StagedBox, first: int, work: WorkTile) -> None:
        """Write the rows of a box that exist, each by neighbouring threads."""
        thread, product = self.staging.consumer.thread % WARPGROUP, work.product
        row, column = thread // self.lanes, thread % self.lanes * self.chunk
        left, of_out = product.m - work.first[0] - first, work.first[1] + self.first_column + column
        running = RowPointer(product.out, (work.first[0] + first + row, of_out), self.step)
        for step in range(0, self.fragment.extent, self.step):
            with pd.if_((row + step < left) & (of_out < product.n)):
                staged = box.address(*self.staging.origin, row + step, column)
                write_words(running.pointer, read_words(staged, self.chunk, self.type), self.chunk)
            running.advance()


class ScatterWriter(GroupWriter):
    """Writes transposed boxes to rows that an index names, all by the threads. They read the indices of a box at
    once."""

    def write(self, work: WorkTile, boxes: Boxes, rows_left: Scalar | None = None) -> None:
        assert rows_left is not None
        self.staging.consumer.warpgroup_barrier()
        for box, row in boxes:
            with pd.if_(rows_left > row):
                self._write_rows(box, row, work)

    def _write_rows(self, box: StagedBox, first: int, work: WorkTile) -> None:
        thread, product = self.staging.consumer.thread % WARPGROUP, work.product
        row, column, out = thread // self.lanes, thread % self.lanes * self.chunk, product.out
        left, of_out = product.m - work.first[0] - first, work.first[1] + self.first_column + column
        steps, begin = range(0, self.fragment.extent, self.step), work.first[0] + first + row
        numbers = [out.numbers[pd.min(begin + step, out.last)] for step in steps]
        for step, number in zip(steps, numbers, strict=True):
            is_row = (row + step < left) & (number >= 0) & (number < out.rows.to(s32))
            with pd.if_(is_row & (of_out < product.n)):
                staged = box.address(*self.staging.origin, row + step, column)
                to = element(View(out.pointer, out.stride), (number, of_out))
                write_words(to, read_words(staged, self.chunk, self.type), self.chunk)
