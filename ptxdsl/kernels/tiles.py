"""Tiles of products, one after another: what a persistent block does with each of them is that of `gemm.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import Output, Target, Writer
from ptxdsl.kernels.mainloop import Mainloop
from ptxdsl.kernels.operand import Source
from ptxdsl.kernels.split_k import SplitK
from ptxdsl.schedule.arithmetic import ceil_div


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


class Tiles:
    """Computes tiles, one after another, in the same shared memory."""

    def __init__(self, config: GemmConfig, factors: tuple[Any, Any], workspace: tuple[Any, ...] = ()) -> None:
        """`factors` are alpha and beta; parts of tiles meet in `workspace`."""
        self.config, self.factors, self.workspace = config, factors, workspace
        self.memory = pd.dynamic_shared(config.inputs, config.shared_bytes // config.inputs.bytes, align=1024).address()
        self.mainloop = Mainloop(config, self.memory)

    def compute(self, problem: Problem, tile: tuple[Any, Any], part: Part | None = None) -> None:
        """The tile of a problem in this row and column of tiles, or a part of it."""
        tile_m, tile_n, tile_k = self.config.tile
        first = tile[0] * tile_m, tile[1] * tile_n
        begin, end = (part.begin, part.end) if part else (0, ceil_div(problem.k, tile_k))
        sources = Source(*problem.a, problem.m), Source(*problem.b, problem.n)
        loaders = self.mainloop.loaders(*sources, first, (begin * tile_k, pd.min(end * tile_k, problem.k)))
        accumulators = self.mainloop.run(loaders, end - begin)
        output = Output(problem.out, problem.c, (problem.m, problem.n), *self.factors)
        if part:
            with pd.if_(self._is_complete(accumulators, part)):
                Writer(self.config, self.memory, first, output).write(accumulators)
        else:
            Writer(self.config, self.memory, first, output).write(accumulators)
        pd.ptx.bar.sync(0)  # the next tile's copies overwrite the staged output

    def _is_complete(self, accumulators: Any, part: Part) -> Any:
        """Whether the accumulators hold the sums of all parts: those of the block that comes last."""
        complete: Any = pd.var(u32, 1)
        with pd.if_(part.count > 1):
            complete.set(0)
            split = SplitK(self.config, self.workspace, self.memory, part.slot, 1)
            with split.last(accumulators, part.number, part.count):
                complete.set(1)
        return complete == 1
