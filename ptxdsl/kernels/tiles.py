"""Tiles of many products, one after another: what a persistent block does with each of them is that of `gemm.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl import s64, u32, u64
from ptxdsl.kernels.block import MATRIX, SEAT, Ahead, Block, Product
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig
from ptxdsl.kernels.epilogue import Target
from ptxdsl.kernels.split_k import SplitK
from ptxdsl.schedule import PersistentScheduler

# What GemmConfig.schedule says of these tiles: whether there is memory to stage one beside the ring of the next.
# Parts of tiles are no faster with it, and wide staging leaves room for fewer blocks.
AHEAD, IN_TURN = PersistentScheduler(), ROWS_OF_EIGHT


class Part(NamedTuple):
    """A part of a tile's K, from the `begin`-th to before the `end`-th iteration: the `number`-th of `count`.

    The sums of the parts lie side by side in the workspace, from `slot` on.
    """

    begin: Any
    end: Any
    slot: Any
    number: Any
    count: Any


class Work(NamedTuple):
    """A tile of a product, in this row and column of tiles, or a part of it."""

    product: Product
    tile: tuple[Any, Any]
    part: Part | None = None

    @property
    def k(self) -> tuple[Any, Any] | None:
        """The iterations of a part."""
        return self.part[:2] if self.part else None


class Tiles:
    """Computes tiles one after another. Where the configuration has memory for it, the copies of the next one are under
    way while one is written."""

    def __init__(self, config: GemmConfig, workspace: tuple[Any, ...] = ()) -> None:
        """Parts of tiles meet in `workspace`."""
        self.config, self.workspace, self.block = config, workspace, Block(config)
        zero = pd.cast(0, u32)
        self.ahead = Ahead(self.block, self.block.loaders_of(nothing(config), (zero, zero)), SEAT + MATRIX)

    def visit(self, visitor: Any, locate: Callable[..., Work]) -> None:
        """Computes all that a visitor finds; `locate` makes what its `work` gives a Work."""
        with pd.if_(visitor.next_tile()):
            self._start(locate(*visitor.work()))
        with pd.while_(visitor.next_tile):
            found = visitor.work()
            accumulators = self.ahead.multiply(self._iterations(locate(*found)))
            if not self.config.goes_on:
                self._finish(locate(*found), accumulators)
                pd.ptx.bar.sync(0)  # the next copies overwrite the staged output
            visitor.advance()
            with pd.if_(visitor.next_tile()):
                self._start(locate(*visitor.work()))
            if self.config.goes_on:
                self._finish(locate(*found), accumulators)

    def _iterations(self, work: Work) -> Any:
        begin, end = work.k or (0, self.block.iterations_of(work.product))
        return end - begin

    def _start(self, work: Work) -> None:
        """Begins the copies of a tile, to a ring that is free."""
        self.ahead.start(work.product, work.tile, work.k)

    def _finish(self, work: Work, accumulators: Any) -> None:
        if work.part:
            with pd.if_(self._is_complete(accumulators, work.part)):
                self.block.write(work.product, work.tile, accumulators)
        else:
            self.block.write(work.product, work.tile, accumulators)

    def _is_complete(self, accumulators: Any, part: Part) -> Any:
        """Whether the accumulators hold the sums of all parts: those of the block that comes last."""
        complete: Any = pd.var(u32, 1)
        with pd.if_(part.count > 1):
            complete.set(0)
            split = SplitK(self.config, self.workspace, self.block.staging, part.slot, 1)
            with split.last(accumulators, part.number, part.count):
                complete.set(1)
        return complete == 1


def nothing(config: GemmConfig) -> Product:
    """A product without elements."""
    zero, stride = pd.cast(0, u32), pd.cast(0, s64)
    types = config.inputs, config.inputs, config.output, config.output
    a, b, c, out = (Target(pd.pointer(pd.cast(0, u64), type), stride) for type in types)
    return Product(zero, zero, zero, a, b, c, out, alpha=1, beta=0)
