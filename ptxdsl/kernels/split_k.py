"""Several blocks share the K of one output tile: partial sums meet in global memory, in an order that never changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.mainloop import Accumulators, holders
from ptxdsl.kernels.words import WIDEST, read_words, write_words

IN_FLIGHT = 64  # sums that a thread reads before it adds the first


class Sums:
    """Slots in global memory, each with room for the accumulators of a tile: 16 bytes of each thread side by side."""

    def __init__(self, config: GemmConfig, workspace: Any, thread: Any = None) -> None:
        """`thread` is the one whose sums are meant, if not this one's."""
        self.config = config
        self.each = WIDEST // config.sum.bytes
        self.mine = workspace + (pd.tid.x if thread is None else thread) * self.each

    def _places(self, values: list[Any], slot: Any, group: Any) -> Iterator[tuple[Any, list[Any]]]:
        """`values` are group number `group` of as many accumulators."""
        tile_m, tile_n, _ = self.config.tile
        place = self.mine + slot.to(pd.u64) * (tile_m * tile_n) + group * (len(values) * self.config.holders)
        for first in range(0, len(values), self.each):
            yield place + first * self.config.holders, values[first : first + self.each]

    def store(self, values: list[Any], slot: Any) -> None:
        with holders(self.config):
            for place, some in self._places(values, slot, 0):
                write_words(place, some)

    def add(self, values: list[Any], slot: Any, group: Any = 0) -> None:
        with holders(self.config):
            for place, some in self._places(values, slot, group):
                for value, other in zip(some, read_words(place, self.each, self.config.sum), strict=True):
                    value += other

    def add_all(self, values: list[Any], slots: tuple[Any, Any, Any], group: Any = 0) -> None:
        """Of slots from, up to, in steps of: several are read before the first is added."""
        for slot in pd.range(*slots, unroll=max(1, IN_FLIGHT // len(values))):
            self.add(values, slot, group)


def flatten(accumulators: Accumulators) -> list[Any]:
    return [value for row in accumulators.rows for value in row]


def clear(values: list[Any]) -> None:
    for value in values:
        value.set(0 if value.type.is_integer else 0.0)


def wait_for(semaphore: Any, value: Any) -> None:
    """Until a semaphore has this value; all threads then see what was written before it got that."""
    with pd.if_(pd.tid.x == 0):
        found = pd.var(u32, pd.ptx.ld.acquire.gpu.global_.u32(semaphore))
        with pd.while_(lambda: found != value):
            pd.ptx.ld.acquire.gpu.global_.u32(semaphore, out=found)
    pd.ptx.bar.sync(0)


def announce(semaphore: Any, value: Any) -> None:
    """Sets a semaphore, behind all that the block's threads have written."""
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x == 0):
        pd.ptx.st.release.gpu.global_.u32(semaphore, value)


class SplitK:
    """The meeting of the blocks of one tile, of whom the last one writes it."""

    def __init__(self, config: GemmConfig, memory: tuple[Any, ...], shared: Any, tile: Any, tiles: Any) -> None:
        """`memory` is the workspace, with room for the sums of each tile ("parallel": of each tile of each slice), and
        one semaphore for each tile, 0 before and after. `shared` is free for all threads: an array of its own would
        move the ring off its alignment. `tile` is the number of this one, of `tiles`."""
        workspace, semaphores = memory
        self.config, self.tile, self.tiles = config, tile, tiles
        self.order = shared.bitcast(u32)
        self.semaphore = semaphores + tile
        self.sums = Sums(config, workspace)

    @contextmanager
    def last(self, accumulators: Accumulators, slice: Any, slices: Any) -> Iterator[None]:
        """The body is for one block of each tile, whose accumulators then hold the sums of all slices."""
        meet = self._serial if self.config.reduction == "serial" else self._parallel
        with pd.if_(meet(flatten(accumulators), slice, slices)):
            yield

    def _parallel(self, values: list[Any], slice: Any, slices: Any) -> Any:
        """Each block leaves its sums; the one that comes last adds up those of all, the first slice first."""
        self.sums.store(values, slice * self.tiles + self.tile)
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
            clear(values)
            self.sums.add_all(values, (self.tile, self.tile + slices * self.tiles, self.tiles))
        return is_last

    def _serial(self, values: list[Any], slice: Any, slices: Any) -> Any:
        """Each block waits for the one before it, and adds its sums to those of all before."""
        wait_for(self.semaphore, slice)
        with pd.if_(slice > 0):
            self.sums.add(values, self.tile)
        is_last = slice == slices - 1
        with pd.if_(~is_last):
            self.sums.store(values, self.tile)
        announce(self.semaphore, pd.select(is_last, 0, slice + 1))
        return is_last


def workspace_elements(config: GemmConfig, tiles: int) -> int:
    """Sums that the blocks of so many tiles leave for each other."""
    slots = tiles if config.reduction == "serial" else tiles * config.split_k
    return slots * config.tile[0] * config.tile[1]
