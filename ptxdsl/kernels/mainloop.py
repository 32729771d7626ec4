"""The product of one tile: copies several stages ahead, fragments one k step ahead, tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ptxdsl as pd
from ptxdsl import u32
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.operand import Fragments, Loader
from ptxdsl.kernels.tile import WARP_TILE
from ptxdsl.kernels.words import WIDEST, read_words, write_words


class Accumulators:
    """A warp's part of the output tile, 16 rows at a time: `rows[i]` are the values of each thread for 16 rows.

    The values of 16 rows stand in the order of the tiled MMA: those of an atom, then atoms along m, then along n.
    """

    def __init__(self, config: GemmConfig, groups: int | None = None) -> None:
        """All 0; of all rows of the warp, or of so many times 16."""
        self.config = config
        m, n, _ = config.mma.atom.shape
        self.atoms_m, self.values = WARP_TILE // m, m * n // 32
        self.columns = config.warp[1] // n
        count = self.atoms_m * self.values * self.columns
        zero = 0 if config.sum.is_integer else 0.0
        groups = groups or config.warp[0] // WARP_TILE
        self.rows = [[pd.var(config.sum, zero) for _ in range(count)] for _ in range(groups)]
        self.mnemonic = mnemonic(config)

    def piece(self, i: int, j: int) -> list[Any]:
        """The values of the atom that is i-th along m and j-th along n."""
        group, within = divmod(i, self.atoms_m)
        return self.rows[group][(j * self.atoms_m + within) * self.values :][: self.values]

    def multiply(self, a: list[list[Any]], b: list[list[Any]]) -> None:
        """Adds the product of one k step; neighbours in the order share a fragment."""
        a, b = _atoms(a, self.atoms_m), _atoms(b, 2)
        for i, left in enumerate(a):
            columns = list(enumerate(b))
            for j, right in columns if i % 2 == 0 else reversed(columns):
                piece = self.piece(i, j)
                pd.ptx(self.mnemonic, left, right, piece, out=piece)


def mnemonic(config: GemmConfig) -> str:
    """The tensor core instruction, spelled out."""
    m, n, k = config.mma.atom.shape
    _, _, accumulator, given = config.mma.atom.name.split(".")
    types = f"{accumulator}.{given}.{given}.{accumulator}"
    return f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{types}"


def _atoms(groups: list[list[Any]], count: int) -> list[list[Any]]:
    """Each group's registers by the `count` atoms that it has."""
    return [group[i * len(group) // count : (i + 1) * len(group) // count] for group in groups for i in range(count)]


@contextmanager
def holders(config: GemmConfig) -> Iterator[None]:
    """The body is for the threads that hold sums, where warps share the K of a tile."""
    if config.slices == 1:
        yield
        return
    with pd.if_(pd.tid.x < config.holders):
        yield


class Mainloop:
    """Tiles are copied `stages - 1` ahead, fragments read one k step ahead of the tensor cores."""

    def __init__(self, config: GemmConfig, memory: Any) -> None:
        """`memory` is where the ring begins; in each stage the tile of B stands behind that of A."""
        self.config, self.memory = config, memory
        self.memory_b = memory + config.a.bytes // config.inputs.bytes
        self.fragments = Fragments(config, "a", memory), Fragments(config, "b", self.memory_b)

    def loaders(self, a: Any, b: Any, first: tuple[Any, Any], k: tuple[Any, Any]) -> tuple[Loader, Loader]:
        """The copies of the tiles at (m, n) = `first`, from k[0] to k[1], of two Sources."""
        config = self.config
        load_a = Loader(config.a, self.memory, a, first[0], k, config.threads)
        return load_a, Loader(config.b, self.memory_b, b, first[1], k, config.threads)

    def start(self, loaders: tuple[Any, ...]) -> None:
        """Begins the copies of the first tiles, to a ring that is free."""
        for stage in range(self.config.stages - 1):
            fetch(loaders, stage * self.config.stage_bytes)
            deposit(loaders, stage * self.config.stage_bytes)

    def run(self, loaders: tuple[Any, ...], iterations: Any) -> Accumulators:
        """The product over so many tiles along k. Afterwards the ring is free for all threads."""
        self.start(loaders)
        return self.go_on(loaders, iterations)

    def go_on(self, loaders: tuple[Any, ...], iterations: Any) -> Accumulators:
        """The same, of copies that were started."""
        config = self.config
        accumulators = Accumulators(config)
        ring = Ring(config.stage_bytes, config.stages)
        buffers = [[operand.variables() for operand in self.fragments] for _ in range(2)]
        steps = config.tile[2] // config.k_step
        wait_for_stage(config.stages)
        self._load_fragments(buffers[0], 0, 0)
        for _ in pd.range(iterations, unroll=1):
            for step in range(steps):
                following = (step + 1) % steps
                if following == 0:
                    pd.ptx.cp.async_.commit_group()
                    deposit(loaders, ring.write)
                    ring.advance(ring.write)
                    ring.advance(ring.read)
                    wait_for_stage(config.stages)
                self._load_fragments(buffers[(step + 1) % 2], ring.read, following)
                for loader in loaders[step :: steps - 1] if step < steps - 1 else ():
                    loader.fetch(ring.write)
                accumulators.multiply(*buffers[step % 2])
        pd.ptx.cp.async_.wait_all()
        pd.ptx.bar.sync(0)
        if config.slices > 1:
            self._gather([value for row in accumulators.rows for value in row])
        return accumulators

    def _gather(self, values: list[Any]) -> None:
        """Warps that share the K of a tile leave their sums in shared memory; the first slice adds them to its own."""
        config = self.config
        each = WIDEST // config.sum.bytes
        slice, thread = pd.tid.x // config.holders, pd.tid.x % config.holders
        first, elements = self.memory.bitcast(config.sum) + thread * each, config.tile[0] * config.tile[1]
        groups = [(i * config.holders, values[i : i + each]) for i in range(0, len(values), each)]
        with pd.if_(slice > 0):
            mine = first + (slice - 1) * elements
            for distance, group in groups:
                write_words(mine + distance, group)
        pd.ptx.bar.sync(0)
        with holders(config):
            for other in range(config.slices - 1):
                for distance, group in groups:
                    words = read_words(first + (other * elements + distance), each, config.sum)
                    for value, word in zip(group, words, strict=True):
                        value += word
        pd.ptx.bar.sync(0)

    def _load_fragments(self, into: list[Any], stage: Any, k_step: int) -> None:
        for operand, registers in zip(self.fragments, into, strict=True):
            operand.load(registers, stage, k_step)


def fetch(loaders: tuple[Any, ...], stage: Any) -> None:
    """Begins to copy the next tile of each operand; the copies are one group."""
    for loader in loaders:
        loader.fetch(stage)
    pd.ptx.cp.async_.commit_group()


def deposit(loaders: tuple[Any, ...], stage: Any) -> None:
    for loader in loaders:
        loader.deposit(stage)


def wait_for_stage(stages: int) -> None:
    """Until the oldest stage has arrived for all threads; all of them have then also done with the one before it."""
    pd.ptx.cp.async_.wait_group(stages - 2)
    pd.ptx.bar.sync(0)


class Ring:
    """Where in the ring of stages, in bytes, the tensor cores read and the copies write."""

    def __init__(self, stage_bytes: int, stages: int) -> None:
        self.stage_bytes, self.all = stage_bytes, stage_bytes * stages
        self.read, self.write = pd.var(u32, 0), pd.var(u32, stage_bytes * (stages - 1))

    def advance(self, place: Any) -> None:
        """Goes on to the next stage, from the last to the first."""
        place += self.stage_bytes
        place.set(pd.select(place == self.all, 0, place))
