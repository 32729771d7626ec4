"""Several blocks share the K of one output tile: partial sums meet in global memory, in an order that never changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import WIDEST, read_words, write_words
from ptxdsl.kernels.mainloop import Accumulators

IN_FLIGHT = 64  # sums that a thread reads before it adds the first


class SplitK:
    """The meeting of the blocks of one tile."""

    def __init__(self, config: GemmConfig, memory: tuple[Any, ...], shared: Any, tile: Any, tiles: Any) -> None:
        """`memory` is the workspace, with room for the sums of each tile ("parallel": of each tile of each slice), and
        one semaphore for each tile, 0 before and after. `shared` is free for all threads: an array of its own would
        move the ring off its alignment. `tile` is the number of this one, of `tiles`."""
        workspace, semaphores = memory
        self.order = shared.bitcast(u32)
        self.config, self.tile, self.tiles = config, tile, tiles
        self.semaphore = semaphores + tile
        self.elements = config.tile[0] * config.tile[1]
        self.each = WIDEST // config.sum.bytes
        self.mine = workspace + pd.tid.x * self.each

    @contextmanager
    def last(self, accumulators: Accumulators, slice: Any, slices: Any) -> Iterator[None]:
        """The body is for one block of each tile, whose accumulators then hold the sums of all slices."""
        values = [value for row in accumulators.rows for value in row]
        meet = self._serial if self.config.reduction == "serial" else self._parallel
        with pd.if_(meet(values, slice, slices)):
            yield

    def _parallel(self, values: list[Any], slice: Any, slices: Any) -> Any:
        """Each block leaves its sums; the one that comes last adds up those of all, the first slice first."""
        self._store(values, slice * self.tiles + self.tile)
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            arrived = pd.ptx.atom.acq_rel.gpu.global_.add.u32(self.semaphore, 1)
            self.order.store(arrived)
            with pd.if_(arrived == slices - 1):
                self.semaphore.store(0)
        pd.ptx.bar.sync(0)
        is_last = self.order.load() == slices - 1
        pd.ptx.bar.sync(0)
        with pd.if_(is_last):
            for value in values:
                value.set(0 if value.type.is_integer else 0.0)
            for number in pd.range(slices, unroll=max(1, IN_FLIGHT // len(values))):
                self._add(values, number * self.tiles + self.tile)
        return is_last

    def _serial(self, values: list[Any], slice: Any, slices: Any) -> Any:
        """Each block waits for the one before it, and adds its sums to those of all before."""
        with pd.if_(pd.tid.x == 0):
            turn = pd.var(u32, pd.ptx.ld.acquire.gpu.global_.u32(self.semaphore))
            with pd.while_(lambda: turn != slice):
                pd.ptx.ld.acquire.gpu.global_.u32(self.semaphore, out=turn)
        pd.ptx.bar.sync(0)
        with pd.if_(slice > 0):
            self._add(values, self.tile)
        is_last = slice == slices - 1
        with pd.if_(~is_last):
            self._store(values, self.tile)
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            pd.ptx.st.release.gpu.global_.u32(self.semaphore, pd.select(is_last, 0, slice + 1))
        return is_last

    def _places(self, values: list[Any], slot: Any) -> Iterator[tuple[Any, list[Any]]]:
        """16 bytes of each thread side by side."""
        place = self.mine + slot.to(pd.u64) * self.elements
        for first in range(0, len(values), self.each):
            yield place + first * self.config.threads, values[first : first + self.each]

    def _store(self, values: list[Any], slot: Any) -> None:
        for place, group in self._places(values, slot):
            write_words(place, group)

    def _add(self, values: list[Any], slot: Any) -> None:
        for place, group in self._places(values, slot):
            for value, other in zip(group, read_words(place, self.each, self.config.sum), strict=True):
                value += other


def workspace_elements(config: GemmConfig, tiles: int) -> int:
    """Sums that the blocks of so many tiles leave for each other."""
    slots = tiles if config.reduction == "serial" else tiles * config.split_k
    return slots * config.tile[0] * config.tile[1]
