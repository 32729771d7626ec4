"""Scales of 8-bit floats along K on their way into accumulators: products of a stage are scaled and added up, of 128 of
K."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import gcd
from typing import Any, NamedTuple

import ptxdsl as pd
from ptxdsl import f32, s32, s64, u32
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.product import WorkTile
from ptxdsl.kernels.sm90.epilogue import Epilogue
from ptxdsl.kernels.sm90.mma import StageMma
from ptxdsl.kernels.sm90.order import PRODUCTS_BARRIER, OrderedBarrier
from ptxdsl.kernels.sm90.scales import BLOCK, LANES, MATRIX, ROWS, Mainloop, RowScales, Scales
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, IN_TURN, WARP, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.schedule import Walk
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

MOST_PRODUCTS = 192  # columns of a tile whose products are in registers beside its accumulators
MOST_SCALED = 128  # the same, and scales of columns
EVERY_LANE = 0xFFFFFFFF
LINE, LINES = 32, 8  # scales in 128 bytes, of the L2 cache; so many lines may those of the columns of a tile lie in
PREFETCHED = WARPGROUP // LINES  # iterations of which each thread of a warpgroup brings a line


class SameLines(NamedTuple):
    """Lanes that have the same lines of accumulators: how many, and how far they are from each other."""

    lanes: int
    apart: int


IN_QUADS, EVERY_FOURTH = SameLines(LANES, 1), SameLines(WARP // LANES, LANES)  # those down, and those across


class BlockScales(Scales):
    """One for 128 of K of each row of A, and for 128 of K by 128 columns of B. The products of a stage have
    accumulators of their own, which are scaled and added to those of the tile: nothing is lost to what the tensor cores
    keep of 8-bit floats over a long K. Of a wide tile each half of the columns is multiplied alone, since registers
    have no room for all twice.

    All products of a warpgroup end before the next begin; the other warpgroup has the tensor cores meanwhile. With
    halves of tiles they begin in turn.
    """

    sharing = IN_QUADS

    def __init__(self, p: Any, traits: WarpgroupTraits, consumer: pd.warpgroup, *more: Any) -> None:
        super().__init__(p, traits, consumer, *more)
        self.halves = 2 if self.tile_n > MOST_PRODUCTS else 1
        self.turns = HalfTurns(consumer) if self.halves > 1 and traits.tiling.consumers == IN_TURN else None

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile, to which the products of each stage are added with their scales."""
        accumulators, part = (
            TileAccumulators(mma.layout),
            mma.narrowed(self.tile_n // self.halves) if self.halves > 1 else mma,
        )
        products, scales = TileAccumulators(part.layout), self._scales(work)
        ready = [pd.var(f32, scale) for scale in scales.of(pd.cast(0, u32))]
        for iteration in pd.range(pd.cast(0, u32), work.iterations, unroll=1):
            slot, factors = ring.wait(), self._factors(ready)
            for half in range(self.halves):
                is_last = half == self.halves - 1
                with self.turns.turn(work) if self.turns else nullcontext():
                    part.multiply(products, slot, accumulate=False, part=half)
                if is_last:
                    for scale, following in zip(ready, scales.of(iteration + 1), strict=True):
                        scale.set(following)
                part.wait(0)
                if is_last:
                    ring.release()
                self._add(accumulators, products, factors, half)
        return accumulators

    def _scales(self, work: WorkTile) -> ScalesAhead:
        """Those of a thread's two rows, and of the columns of a tile, from where its part of K begins."""
        columns = self.columns_of(work)
        chunks = [columns + self._chunk(work, first) for first in range(0, self.tile_n, self.width)]
        return self._ahead(work, self.rows_of(work), chunks)

    def _ahead(self, work: WorkTile, rows: Iterable[PointerValue], chunks: Iterable[PointerValue]) -> ScalesAhead:
        """The scales of rows and of columns that begin there, of its part of K."""
        lines = [(row, self.a.step) for row in rows] + [(chunk, self.b.step) for chunk in chunks]
        if isinstance(work.begin, int):
            return ScalesAhead(lines, pd.cast(work.iterations, u32), self.sharing)
        lines = [(pointer + work.begin.to(s64) * step, step) for pointer, step in lines]
        end = pd.min(work.end, ceil_div(work.product.k, BLOCK))  # a part that would be empty lies behind all blocks
        return ScalesAhead(lines, pd.max(end, work.begin) - work.begin, self.sharing)

    @property
    def width(self) -> int:
        """Columns of a tile that have one scale, wherever the tile begins."""
        return gcd(self.tile_n, BLOCK)

    def _chunk(self, work: WorkTile, first: int) -> Scalar:
        """Where the scales of some columns of the tile are."""
        column = pd.min(work.first[1] + first, work.product.n - 1)
        return (column // BLOCK).to(s64) * self.b.line

    def _factors(self, scales: Sequence[Scalar]) -> list[list[Scalar]]:
        """What products of both rows are multiplied by, for all columns with one scale."""
        rows, columns = scales[:ROWS], scales[ROWS:]
        return [[row * column for row in rows] for column in columns]

    def _add(
        self, accumulators: TileAccumulators, products: TileAccumulators, factors: list[list[Scalar]], half: int
    ) -> None:
        each, chunks = self.width // MATRIX * 4, len(factors) // self.halves
        totals = accumulators.registers[half * chunks * each :]
        for number, of_rows in enumerate(factors[half * chunks :][:chunks]):
            pairs = zip(totals[number * each :][:each], products.registers[number * each :][:each], strict=True)
            for n, (total, product) in enumerate(pairs):
                total.set(pd.ptx.fma.rn.f32(product, of_rows[n % 4 // 2], total))


class TurnedBlockScales(BlockScales):
    """The same of a tile whose A and B are swapped: the 64 columns of a warpgroup have one scale, and a thread has two
    neighbouring rows of each eight."""

    sharing = EVERY_FOURTH

    def _scales(self, work: WorkTile) -> ScalesAhead:
        line, first = self.along_m(work), self.across
        rows = [
            line.first + first + further + right
            for further in range(0, self.tiling.tile[0], MATRIX)
            for right in (0, 1)
        ]
        pointers = [line.pointer + pd.min(row, line.last - 1).to(s64) * line.apart for row in rows]
        chunk = self._chunk(work, self.down // GROUP_ROWS * GROUP_ROWS)
        return self._ahead(work, pointers, [self.columns_of(work) + chunk])

    def _factors(self, scales: Sequence[Scalar]) -> list[list[Scalar]]:
        """What products of two rows are multiplied by, of each eight."""
        *rows, column = scales
        return [[row * column for row in rows[first : first + ROWS]] for first in range(0, len(rows), ROWS)]

    def _add(
        self, accumulators: TileAccumulators, products: TileAccumulators, factors: list[list[Scalar]], half: int
    ) -> None:
        for n, (total, product) in enumerate(zip(accumulators.registers, products.registers, strict=True)):
            total.set(pd.ptx.fma.rn.f32(product, factors[n // 4][n % 2], total))


class SpanScales(Scales):
    """One for 128 of K of each row of A, and of each column of B, of groups that are ranges of K. Products of a stage
    are scaled and added up as by BlockScales, those of columns by what lanes read before the products begin.

    The K of a product is that of the blocks of 128 that its group reaches into, 0 of an empty one, whose scales are not
    read. The item of some work says in its third place which of all blocks is the first.
    """

    def __init__(self, p: Any, traits: WarpgroupTraits, consumer: pd.warpgroup, *more: Any) -> None:
        super().__init__(p, traits, consumer, *more)
        self.in_pairs = traits.operands.scale_bytes > f32.bytes  # of columns 2n and 2n + 1
        self.halves = 2 if self.tile_n > MOST_SCALED else 1
        self.columns = self.tile_n // self.halves  # that are multiplied at a time
        self.thread = consumer.thread % WARPGROUP
        self.turns = HalfTurns(consumer) if self.halves > 1 and traits.tiling.consumers == IN_TURN else None

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile, to which the products of each stage are added with their scales."""
        accumulators, part = TileAccumulators(mma.layout), mma.narrowed(self.columns)
        products, rows, (pointer, left) = TileAccumulators(part.layout), self._rows_ahead(work), self._columns(work)
        firsts = range(0, self.tile_n, self.columns)
        columns = [pd.var(f32, 0.0) for _ in range(self.columns // LANES)]
        self._prefetch(work, pd.cast(0, u32))
        self._read(columns, pointer, left)
        for iteration in pd.range(pd.cast(0, u32), work.iterations, unroll=1):
            with pd.if_(iteration % PREFETCHED == 0):
                self._prefetch(work, iteration + PREFETCHED)
            slot, following = ring.wait(), iteration + 1
            left_there = pd.select(following < pd.cast(work.iterations, u32), left, pd.cast(0, s32))
            for half, first in enumerate(firsts):
                with self.turns.turn(work) if self.turns else nullcontext():
                    part.multiply(products, slot, accumulate=False, part=half)
                if half == 0:
                    of_rows = rows.of(iteration)
                part.wait(0)
                if half == self.halves - 1:
                    ring.release()
                self._add(accumulators.registers[half * len(products.registers) :], products, of_rows, columns)
                if half < self.halves - 1:
                    beside = first + self.columns
                    self._read(columns, pointer + (iteration.to(s64) * self.b.step + beside), left - beside)
                else:
                    self._read(columns, pointer + following.to(s64) * self.b.step, left_there)
        return accumulators

    def _rows_ahead(self, work: WorkTile) -> ScalesAhead:
        """Those of a thread's two rows."""
        begin = work.item[2].to(s64) * self.a.step
        return ScalesAhead([(row + begin, self.a.step) for row in self.rows_of(work)], work.product.k // BLOCK)

    def _columns(self, work: WorkTile) -> tuple[PointerValue, Scalar]:
        """Where those of a thread's first column are, and how many columns there are from it on; of an empty group
        none."""
        column, first = work.first[1] + self.across, work.item[2].to(s64)
        left = pd.select(work.product.k == 0, pd.cast(0, s32), (work.product.n - column).to(s32))
        return self.columns_of(work) + (column.to(s64) + first * self.b.step), left

    def _prefetch(self, work: WorkTile, first: Scalar) -> None:
        """Brings the scales of columns of PREFETCHED iterations to the L2 cache: an iteration takes less time than a
        line takes from DRAM."""
        column = work.first[1] + self.thread % LINES * LINE
        iteration = first + self.thread // LINES
        pointer = self.columns_of(work) + (column.to(s64) + (work.item[2] + iteration).to(s64) * self.b.step)
        is_there = (column < work.product.n) & (self.thread % LINES * LINE < self.tile_n)
        with pd.if_(is_there & (iteration < pd.cast(work.product.k // BLOCK, u32))):
            pd.ptx.prefetch.global_.L2(pointer)

    def _read(self, columns: Sequence[Var], pointer: PointerValue, left: Scalar) -> None:
        """Reads those of a thread's columns; nothing behind the last one."""
        for number, first in enumerate(range(0, self.columns, MATRIX)):
            pair = columns[number * 2 :][:2]
            if self.in_pairs:
                pd.ptx("ld.global.v2.f32", pointer + first, out=pair, guard=left > first)
                continue
            for right, scale in enumerate(pair):
                pd.ptx("ld.global.f32", pointer + (first + right), out=scale, guard=left > first + right)

    def _add(
        self, totals: Sequence[Var], products: TileAccumulators, rows: Sequence[Scalar], columns: Sequence[Scalar]
    ) -> None:
        for n, (total, product) in enumerate(zip(totals, products.registers, strict=False)):
            column = columns[n // 4 * ROWS + n % 2]
            total.set(pd.ptx.fma.rn.f32(product, rows[n % 4 // 2] * column, total))


class GroupScales(RowScales):
    """The scales of the rows and columns of a group that is a range of K. The product of an empty group stays 0,
    whatever its scales are."""

    may_be_ahead = False

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile, each multiplied by its scales."""
        accumulators = plain(ring, mma, epilogue, walk, work)
        with pd.if_(work.product.k > 0):
            self.fetch(work)
            self.scaled(accumulators, work)
        return accumulators


def promote_tiles(ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile) -> TileAccumulators:
    """Return the accumulators of a tile, to which the products of each stage are added in float32: over a long K the
    tensor cores would lose low bits of the accumulators of 8-bit floats."""
    accumulators, products = TileAccumulators(mma.layout), TileAccumulators(mma.layout)
    for _ in pd.range(work.iterations, unroll=1):
        mma.multiply(products, ring.wait(), accumulate=False)
        mma.wait(0)
        ring.release()
        for total, product in zip(accumulators.registers, products.registers, strict=True):
            total.set(total + product)
    return accumulators


class HalfTurns:
    """Turns of two warpgroups that share tiles: each begins products when those of the other one have begun, also those
    of the tile before. A tile of which one has no rows is the other one's alone."""

    def __init__(self, consumer: pd.warpgroup) -> None:
        self.barrier = OrderedBarrier(PRODUCTS_BARRIER, consumer)
        self.follows = pd.var(u32, consumer.index)  # whether the other warpgroup has had a turn

    @contextmanager
    def turn(self, work: WorkTile) -> Iterator[None]:
        """The body is a turn."""
        both = work.product.m > work.first[0] + GROUP_ROWS
        with pd.if_(both & (self.follows == 1)):
            self.barrier.wait()
        yield
        with pd.if_(both):
            self.follows.set(1)
            self.barrier.pass_on()


class ScalesAhead:
    """Scales along K, read some iterations ahead: of as many lanes with the same lines each reads those of one of the
    iterations, so that a warp asks for lines of memory more seldom."""

    def __init__(
        self, pointers: Sequence[tuple[PointerValue, Scalar]], iterations: Scalar, sharing: SameLines = IN_QUADS
    ) -> None:
        """`pointers` are to the scales of the first iteration, with the elements from one iteration to the next."""
        self.pointers, self.iterations, (self.lanes, self.apart) = pointers, iterations, sharing
        self.lane = pd.laneid // self.apart % self.lanes
        self.first_lane = pd.laneid - self.lane * self.apart
        self.held = [pd.var(f32, 0.0) for _ in pointers]
        self.following = [pd.var(f32, 0.0) for _ in pointers]
        self._read(self.lane)

    def of(self, iteration: Scalar) -> list[Scalar]:
        """Those of an iteration: of the first one, then of each next."""
        number = iteration % self.lanes
        with pd.if_(number == 0):
            for held, following in zip(self.held, self.following, strict=True):
                held.set(following)
            self._read(iteration + self.lanes + self.lane)
        lane = self.first_lane + number * self.apart
        return [pd.ptx.shfl.sync.idx.b32(held, lane, WARP - 1, EVERY_LANE) for held in self.held]

    def _read(self, iteration: Scalar) -> None:
        exists, k = iteration < self.iterations, iteration.to(s64)
        for (pointer, step), scale in zip(self.pointers, self.following, strict=True):
            pd.ptx("ld.global.f32", pointer + k * step, out=scale, guard=exists)
