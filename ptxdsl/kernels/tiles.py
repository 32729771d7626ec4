"""Tiles of products, one after another: what a persistent block does with each of them is that of `gemm.py`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl import s64, u32, u64
from ptxdsl.kernels.config import ROWS_OF_EIGHT, GemmConfig
from ptxdsl.kernels.epilogue import Output, Target, Writer
from ptxdsl.kernels.mainloop import Mainloop
from ptxdsl.kernels.operand import Source
from ptxdsl.kernels.split_k import SplitK
from ptxdsl.schedule import PersistentScheduler
from ptxdsl.schedule.arithmetic import ceil_div

# What GemmConfig.schedule says of these tiles: whether there is memory to stage one beside the ring of the next.
# Parts of tiles are no faster with it, and wide staging leaves room for fewer blocks.
AHEAD, IN_TURN = PersistentScheduler(), ROWS_OF_EIGHT
CHANGING = ("source", "mn_left", "k_left", "between", "step")  # of a loader, from tile to tile


class Problem(NamedTuple):
    """A problem in a kernel: sizes are u32, matrices pointers with the elements between their rows or columns."""

    m: Any
    n: Any
    k: Any
    a: Target
    b: Target
    c: Target
    out: Target


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
    """A tile of a problem, in this row and column of tiles, or a part of it."""

    problem: Problem
    tile: tuple[Any, Any]
    part: Part | None = None


class Tiles:
    """Computes tiles one after another. Where the configuration has memory for it, the copies of the next one are under
    way while one is written."""

    def __init__(self, config: GemmConfig, factors: tuple[Any, Any], workspace: tuple[Any, ...] = ()) -> None:
        """`factors` are alpha and beta; parts of tiles meet in `workspace`."""
        self.config, self.factors, self.workspace = config, factors, workspace
        self.memory = pd.dynamic_shared(config.inputs, config.shared_bytes // config.inputs.bytes, align=1024).address()
        self.staging = self.memory + config.staged_at // config.inputs.bytes  # free when the ring is not
        self.mainloop = Mainloop(config, self.memory)
        self.loaders = self._loaders(Work(nothing(config), (pd.cast(0, u32), pd.cast(0, u32))))
        for loader, name in product(self.loaders, CHANGING):
            value = getattr(loader, name)
            setattr(loader, name, value if isinstance(value, int) else pd.var(value.type, value))

    def visit(self, visitor: Any, locate: Callable[..., Work]) -> None:
        """Computes all that a visitor finds; `locate` makes what its `work` gives a Work."""
        with pd.if_(visitor.next_tile()):
            self._start(locate(*visitor.work()))
        with pd.while_(visitor.next_tile):
            found = visitor.work()
            accumulators = self.mainloop.go_on(self.loaders, self._iterations(locate(*found)))
            if not self.config.goes_on:
                self._finish(locate(*found), accumulators)
                pd.ptx.bar.sync(0)  # the next copies overwrite the staged output
            visitor.advance()
            with pd.if_(visitor.next_tile()):
                self._start(locate(*visitor.work()))
            if self.config.goes_on:
                self._finish(locate(*found), accumulators)

    def _span(self, work: Work) -> tuple[Any, Any]:
        """The first and last iteration along K."""
        part = work.part
        return (part.begin, part.end) if part else (0, ceil_div(work.problem.k, self.config.tile[2]))

    def _iterations(self, work: Work) -> Any:
        begin, end = self._span(work)
        return end - begin

    def _first(self, work: Work) -> tuple[Any, Any]:
        return work.tile[0] * self.config.tile[0], work.tile[1] * self.config.tile[1]

    def _loaders(self, work: Work) -> tuple[Any, ...]:
        problem, tile_k, (begin, end) = work.problem, self.config.tile[2], self._span(work)
        sources = Source(*problem.a, problem.m), Source(*problem.b, problem.n)
        return self.mainloop.loaders(*sources, self._first(work), (begin * tile_k, pd.min(end * tile_k, problem.k)))

    def _start(self, work: Work) -> None:
        """Begins the copies of a tile, to a ring that is free."""
        for (loader, found), name in product(zip(self.loaders, self._loaders(work), strict=True), CHANGING):
            if not isinstance(getattr(loader, name), int):
                getattr(loader, name).set(getattr(found, name))
        self.mainloop.start(self.loaders)

    def _finish(self, work: Work, accumulators: Any) -> None:
        problem = work.problem
        output = Output(problem.out, problem.c, (problem.m, problem.n), *self.factors)
        if work.part:
            with pd.if_(self._is_complete(accumulators, work.part)):
                Writer(self.config, self.staging, self._first(work), output).write(accumulators)
        else:
            Writer(self.config, self.staging, self._first(work), output).write(accumulators)

    def _is_complete(self, accumulators: Any, part: Part) -> Any:
        """Whether the accumulators hold the sums of all parts: those of the block that comes last."""
        complete: Any = pd.var(u32, 1)
        with pd.if_(part.count > 1):
            complete.set(0)
            split = SplitK(self.config, self.workspace, self.staging, part.slot, 1)
            with split.last(accumulators, part.number, part.count):
                complete.set(1)
        return complete == 1


def nothing(config: GemmConfig) -> Problem:
    """A problem without elements."""
    zero, stride = pd.cast(0, u32), pd.cast(0, s64)
    types = config.inputs, config.inputs, config.output, config.output
    return Problem(zero, zero, zero, *(Target(pd.pointer(pd.cast(0, u64), type), stride) for type in types))
