"""Scales of A and B in the kernels of products: a part of alpha, factors of the accumulators at the end of a tile, or
factors of the products of each 128 elements of K.

A thread holds four accumulators of each 16×8: columns 2·(lane % 4) and the next, in rows lane / 4 and lane / 4 + 8.
Scales along K are applied to the products of each stage, which are added to the accumulators. This also keeps the
precision of float32 over a long K, where the tensor cores lose low bits of 8-bit products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import gcd
from typing import Any, NamedTuple, TypeAlias

import ptxdsl as pd
from ptxdsl import f32, s32, s64, u32
from ptxdsl.kernels.product.accumulators import TileAccumulators
from ptxdsl.kernels.product.operands import Scaling
from ptxdsl.kernels.product.product import Index, WorkTile
from ptxdsl.kernels.sm90.mma import StageMma
from ptxdsl.kernels.sm90.parameters import tensor_products_of
from ptxdsl.kernels.sm90.tiling import GROUP_ROWS, WARP, WARP_ROWS, WARPGROUP
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.store.epilogue import Epilogue
from ptxdsl.kernels.tiles.schedule import KernelContext, Walk
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue
from ptxdsl.trace.value import Var

GROUP_UNIT = 16  # elements along K: tensor maps of 8-bit floats start at a multiple of it
BLOCK = 128  # elements along K, and columns of B, that share a scale; along K, one stage of the ring
MATRIX = 8  # rows and columns of an accumulator matrix
ROWS = 2  # of a thread, among the 64 of its warpgroup
LANES = 4  # with the same rows

Mainloop: TypeAlias = "Callable[[pd.Ring, StageMma, Epilogue, Walk, WorkTile], TileAccumulators]"
"""Return the accumulators of a tile, as `gemm.multiply_tiles`."""


class ScaleLine(NamedTuple):
    """The scales of the rows of A or the columns of B: the first scale of the matrix, the elements between scales, and
    the numbers of the first scale of a tile and of the end."""

    pointer: PointerValue
    apart: Index
    first: Index
    last: Scalar


class Scales:
    """The addresses of the scales of a thread's accumulators.

    `p` has `scale_a` and `scale_b`. `located(work)` returns the group of a tile, and the number of the first row of the
    group among all `rows` of its matrix of scales. `down` and `across` are the thread's first row and column in a
    product of wgmma, which are a column and a row of a swapped tile.
    """

    def __init__(
        self,
        p: Any,
        traits: WarpgroupTraits,
        consumer: pd.warpgroup,
        rows: Scalar,
        located: Callable[[WorkTile], tuple[Index, Index]],
    ) -> None:
        self.a, self.b, self.rows, self.located = p.scale_a, p.scale_b, rows, located
        self.tiling, self.tile_n = traits.tiling, traits.tile[1]
        lane = pd.laneid
        warp = consumer.thread % WARPGROUP // WARP
        of_warpgroup = consumer.index * (0 if traits.tiling.pingpong else GROUP_ROWS)
        self.down = of_warpgroup + warp * WARP_ROWS + lane // 4
        self.across = lane % 4 * 2

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile by the mainloop of unscaled products: the scales of tensors are part of
        alpha."""
        return plain(ring, mma, epilogue, walk, work)

    def rows_of(self, work: WorkTile) -> list[Any]:
        """Return pointers to the first scales of a thread's two rows."""
        line = self.along_m(work)
        rows = [pd.min(line.first + self.down + further, line.last - 1) for further in (0, MATRIX)]
        return [line.pointer + row.to(s64) * line.apart for row in rows]

    def along_m(self, work: WorkTile) -> ScaleLine:
        """Return the first scales of the rows of a tile."""
        group, first = self.located(work)
        matrix = self.a.pointer + pd.cast(group, s64) * self.a.apart
        return ScaleLine(matrix, self.a.line, first + work.first[0], self.rows)

    def columns_of(self, work: WorkTile) -> Any:
        """Return a pointer to the scales of B, or of the group's matrix of B."""
        group, _ = self.located(work)
        return self.b.pointer + pd.cast(group, s64) * self.b.apart

    def along_n(self, work: WorkTile) -> ScaleLine:
        """Return the scales of the columns of a tile, which are contiguous."""
        return ScaleLine(self.columns_of(work), 1, work.first[1], work.product.n)


class RowScales(Scales):
    """One scale for each row of A and each column of B. Those down a product of wgmma are loaded before the mainloop,
    which hides the latency, and those across after it."""

    def __init__(self, p: Any, traits: WarpgroupTraits, consumer: pd.warpgroup, *more: Any) -> None:
        super().__init__(p, traits, consumer, *more)
        self.row_blocks, (_, self.width) = traits.tiling.row_blocks, traits.tiling.multiplied
        self.of_down = [pd.var(f32, 0.0) for _ in range(self.row_blocks * ROWS)]

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile, each multiplied by its scales."""
        self.fetch(work)
        return self.scaled(plain(ring, mma, epilogue, walk, work), work)

    def fetch(self, work: WorkTile) -> None:
        """Load the scales down a tile."""
        line, _ = self._lines(work)
        offsets = [row_block * GROUP_ROWS + further for row_block in range(self.row_blocks) for further in (0, MATRIX)]
        self._read(self.of_down, line, self.down, offsets)

    def scaled(self, accumulators: TileAccumulators, work: WorkTile) -> TileAccumulators:
        """Multiply each accumulator by its two scales, after `fetch`."""
        for first in range(0, self.width, MATRIX):
            across = [pd.var(f32, 0.0) for _ in range(2)]  # new ones, so that no read waits for the one before
            self._read(across, self._lines(work)[1], self.across, [first, first + 1])
            for number, row_block in enumerate(accumulators.row_blocks(self.row_blocks)):
                down = self.of_down[number * ROWS :][:ROWS]
                for n, register in enumerate(row_block.registers[first // MATRIX * 4 :][:4]):
                    register.set(register * down[n // 2] * across[n % 2])
        return accumulators

    def _lines(self, work: WorkTile) -> tuple[ScaleLine, ScaleLine]:
        """Return the scales down and across a product of wgmma."""
        along_m, along_n = self.along_m(work), self.along_n(work)
        return (along_n, along_m) if self.tiling.swap_ab else (along_m, along_n)

    def _read(self, scales: Sequence[Var], line: ScaleLine, begin: Scalar, offsets: Sequence[int]) -> None:
        """Load the scales at these offsets from number `begin` of the tile, none past the end."""
        first = line.first + begin
        pointer, left = line.pointer + first.to(s64) * line.apart, (line.last - first).to(s32)
        for scale, offset in zip(scales, offsets, strict=True):
            pd.ptx("ld.global.f32", pointer + offset * line.apart, out=scale, guard=left > offset)


MOST_PRODUCTS = 192  # columns of a tile whose products fit registers next to its accumulators
MOST_SCALED = 128  # the same, next to scales of columns too
EVERY_LANE = 0xFFFFFFFF
LINE, LINES = 32, 8  # scales in an L2 line of 128 bytes; the most lines of the scales of the columns of a tile
PREFETCHED = WARPGROUP // LINES  # iterations whose lines a warpgroup prefetches, one line per thread


class SameLines(NamedTuple):
    """Lanes whose accumulators are in the same rows or columns: their number, and the distance between them."""

    lanes: int
    apart: int


IN_QUADS, EVERY_FOURTH = SameLines(LANES, 1), SameLines(WARP // LANES, LANES)  # those down, and those across


class BlockScales(Scales):
    """One scale for each row of A and each block of 128 columns of B, per 128 elements of K.

    The two halves of the columns of a wide tile are multiplied one after the other, since products and accumulators of
    all columns would not fit the registers. The products of a warpgroup end before the next begin; the other warpgroup
    uses the tensor cores in the meantime.
    """

    sharing = IN_QUADS

    def __init__(self, p: Any, traits: WarpgroupTraits, consumer: pd.warpgroup, *more: Any) -> None:
        super().__init__(p, traits, consumer, *more)
        self.halves = 2 if self.tile_n > MOST_PRODUCTS else 1

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile, to which the products of each stage are added with their scales."""
        part = mma.narrowed(self.tile_n // self.halves) if self.halves > 1 else mma
        accumulators, products, scales = TileAccumulators(mma.layout), TileAccumulators(part.layout), self._scales(work)

        def accumulate(number: Scalar | int) -> None:
            slot = ring.wait()
            for half in range(self.halves):
                part.multiply(products, slot, accumulate=False, part=half)
                if half == 0:  # the factors are computed while wgmma multiplies
                    factors = self._factors(scales.of(number))
                part.wait(0)
                if half == self.halves - 1:
                    ring.release()
                self._add(accumulators, products, factors, half)

        for _, number in scales.over(pd.cast(work.iterations, u32)):
            accumulate(number)
        return accumulators

    def _scales(self, work: WorkTile) -> ScalesAhead:
        """Return the scales of a thread's two rows and of the columns of a tile, from the start of its slice of K."""
        columns = self.columns_of(work)
        chunks = [columns + self._chunk(work, first) for first in range(0, self.tile_n, self.width)]
        return self._ahead(work, self.rows_of(work), chunks)

    def _ahead(self, work: WorkTile, rows: Iterable[PointerValue], chunks: Iterable[PointerValue]) -> ScalesAhead:
        """Return the scales of a slice of K, given pointers to those of the whole K."""
        lines = [(row, self.a.step) for row in rows] + [(chunk, self.b.step) for chunk in chunks]
        if isinstance(work.begin, int):
            return ScalesAhead(lines, pd.cast(work.iterations, u32), self.sharing)
        lines = [(pointer + work.begin.to(s64) * step, step) for pointer, step in lines]
        end = pd.min(work.end, ceil_div(work.product.k, BLOCK))  # an empty slice is past the last block
        return ScalesAhead(lines, pd.max(end, work.begin) - work.begin, self.sharing)

    @property
    def width(self) -> int:
        """The number of columns that share a scale, wherever the tile starts."""
        return gcd(self.tile_n, BLOCK)

    def _chunk(self, work: WorkTile, first: int) -> Scalar:
        """Return the offset of the scales of the columns of a tile from number `first` on."""
        column = pd.min(work.first[1] + first, work.product.n - 1)
        return (column // BLOCK).to(s64) * self.b.line

    def _factors(self, scales: Sequence[Scalar]) -> list[list[Scalar]]:
        """Return the factors of products in both rows, for each block of columns."""
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


class TransposedBlockScales(BlockScales):
    """Block scales of a swapped tile: the 64 columns of a warpgroup share a scale, and a thread holds two neighbouring
    rows of each eight."""

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
        """Return the factors of products in two rows of each eight."""
        *rows, column = scales
        return [[row * column for row in rows[first : first + ROWS]] for first in range(0, len(rows), ROWS)]

    def _add(
        self, accumulators: TileAccumulators, products: TileAccumulators, factors: list[list[Scalar]], half: int
    ) -> None:
        for n, (total, product) in enumerate(zip(accumulators.registers, products.registers, strict=True)):
            total.set(pd.ptx.fma.rn.f32(product, factors[n // 4][n % 2], total))


class SpanScales(Scales):
    """One scale for each row of A and each column of B, per 128 elements of K, of groups that are ranges of K.

    The K of a product is that of the blocks of 128 that its group overlaps. It is 0 for an empty group, whose scales
    are not loaded. The third word of a tile's item is the number of the first block. The scales of columns are loaded
    one iteration ahead, after a prefetch to the L2 cache.
    """

    def __init__(self, p: Any, traits: WarpgroupTraits, consumer: pd.warpgroup, *more: Any) -> None:
        super().__init__(p, traits, consumer, *more)
        self.in_pairs = traits.operands.scale_bytes > f32.bytes  # of columns 2n and 2n + 1
        self.halves = 2 if self.tile_n > MOST_SCALED else 1
        self.columns = self.tile_n // self.halves  # that are multiplied at a time
        self.thread = consumer.thread % WARPGROUP

    def multiply(
        self, plain: Mainloop, ring: pd.Ring, mma: StageMma, epilogue: Epilogue, walk: Walk, work: WorkTile
    ) -> TileAccumulators:
        """Return the accumulators of a tile, to which the products of each stage are added with their scales."""
        accumulators, part = TileAccumulators(mma.layout), mma.narrowed(self.columns)
        products, rows, (pointer, left) = TileAccumulators(part.layout), self._rows_ahead(work), self._columns(work)
        firsts = range(0, self.tile_n, self.columns)
        columns = [pd.var(f32, 0.0) for _ in range(self.columns // LANES)]
        iterations = pd.cast(work.iterations, u32)

        def accumulate(iteration: Scalar, number: Scalar | int) -> None:
            slot, following = ring.wait(), iteration + 1
            left_there = pd.select(following < iterations, left, pd.cast(0, s32))
            for half, first in enumerate(firsts):
                part.multiply(products, slot, accumulate=False, part=half)
                if half == 0:
                    of_rows = rows.of(number)
                part.wait(0)
                if half == self.halves - 1:
                    ring.release()
                self._add(accumulators.registers[half * len(products.registers) :], products, of_rows, columns)
                if half < self.halves - 1:
                    beside = first + self.columns
                    self._read(columns, pointer + (iteration.to(s64) * self.b.step + beside), left - beside)
                else:
                    self._read(columns, pointer + following.to(s64) * self.b.step, left_there)

        self._prefetch(work, pd.cast(0, u32))
        self._read(columns, pointer, left)
        for iteration, number in rows.over(iterations, unrolled=False):
            with pd.if_(iteration % PREFETCHED == 0):
                self._prefetch(work, iteration + PREFETCHED)
            accumulate(iteration, number)
        return accumulators

    def _rows_ahead(self, work: WorkTile) -> ScalesAhead:
        """Return the scales of a thread's two rows."""
        begin = work.item[2].to(s64) * self.a.step
        return ScalesAhead([(row + begin, self.a.step) for row in self.rows_of(work)], work.product.k // BLOCK)

    def _columns(self, work: WorkTile) -> tuple[PointerValue, Scalar]:
        """Return a pointer to the scale of a thread's first column, and the number of columns from it on, 0 for an
        empty group."""
        column, first = work.first[1] + self.across, work.item[2].to(s64)
        left = pd.select(work.product.k == 0, pd.cast(0, s32), (work.product.n - column).to(s32))
        return self.columns_of(work) + (column.to(s64) + first * self.b.step), left

    def _prefetch(self, work: WorkTile, first: Scalar) -> None:
        """Prefetch the scales of columns of PREFETCHED iterations to the L2 cache: a load from DRAM takes longer than
        an iteration."""
        column = work.first[1] + self.thread % LINES * LINE
        iteration = first + self.thread // LINES
        pointer = self.columns_of(work) + (column.to(s64) + (work.item[2] + iteration).to(s64) * self.b.step)
        is_there = (column < work.product.n) & (self.thread % LINES * LINE < self.tile_n)
        with pd.if_(is_there & (iteration < pd.cast(work.product.k // BLOCK, u32))):
            pd.ptx.prefetch.global_.L2(pointer)

    def _read(self, columns: Sequence[Var], pointer: PointerValue, left: Scalar) -> None:
        """Load the scales of a thread's columns, none past the last one."""
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
    """The scales of the rows and columns of groups that are ranges of K. The product of an empty group stays 0 whatever
    its scales are."""

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
    """Return the accumulators of a tile, to which the products of each stage are added in float32."""
    accumulators, products = TileAccumulators(mma.layout), TileAccumulators(mma.layout)
    for _ in pd.range(work.iterations, unroll=1):
        mma.multiply(products, ring.wait(), accumulate=False)
        mma.wait(0)
        ring.release()
        for total, product in zip(accumulators.registers, products.registers, strict=True):
            total.set(total + product)
    return accumulators


class ScalesAhead:
    """Scales along K, loaded some iterations ahead: lanes with the same rows load the scales of different iterations
    and exchange them by shuffles, so that a warp issues fewer loads."""

    def __init__(
        self, pointers: Sequence[tuple[PointerValue, Scalar]], count: Scalar, sharing: SameLines = IN_QUADS
    ) -> None:
        """`pointers` to the scales of the first of `count` iterations come with the number of elements between
        iterations."""
        self.pointers, self.count, (self.lanes, self.apart) = pointers, count, sharing
        self.lane = pd.laneid // self.apart % self.lanes
        self.segment = (WARP - 1) & ~((self.lanes - 1) * self.apart)  # the bits of a lane that its partners share
        self.held = [pd.var(f32, 0.0) for _ in pointers]
        self.following = [pd.var(f32, 0.0) for _ in pointers]
        self._read(self.lane)

    def over(self, iterations: Scalar, unrolled: bool = True) -> Iterator[tuple[Scalar, Scalar | int]]:
        """Yield each iteration with its number among those whose scales the lanes hold. If `unrolled`, this is a Python
        int but for the last iterations, which do not fill all lanes; that takes more registers."""
        whole = iterations // self.lanes * self.lanes if unrolled else pd.cast(0, u32)
        if unrolled:
            for first in pd.range(pd.cast(0, u32), whole, self.lanes, unroll=1):
                self._advance(first)
                for number in range(self.lanes):
                    yield first + number, number
        for iteration in pd.range(whole, iterations, unroll=1):
            number = iteration % self.lanes
            with pd.if_(number == 0):
                self._advance(iteration)
            yield iteration, number

    def of(self, number: Scalar | int) -> list[Scalar]:
        """Return the scales that the lane `number` holds."""
        partners = self.segment << 8 | WARP - 1
        return [pd.ptx.shfl.sync.idx.b32(held, number * self.apart, partners, EVERY_LANE) for held in self.held]

    def _advance(self, first: Scalar) -> None:
        """Take the scales of the iterations from `first` on, and load those that follow them."""
        for held, following in zip(self.held, self.following, strict=True):
            held.set(following)
        self._read(first + self.lanes + self.lane)

    def _read(self, iteration: Scalar) -> None:
        exists, k = iteration < self.count, iteration.to(s64)
        for (pointer, step), scale in zip(self.pointers, self.following, strict=True):
            pd.ptx("ld.global.f32", pointer + k * step, out=scale, guard=exists)


Kinds: TypeAlias = "Mapping[Scaling | None, type[Scales]]"
SCALES: Kinds = {Scaling.TENSORS: Scales, Scaling.ROWS: RowScales, Scaling.BLOCKS: BlockScales}
SCALES_OF_SPANS: Kinds = {Scaling.ROWS: GroupScales, Scaling.BLOCKS: SpanScales}  # of groups along K


def scaled_alpha(p: Any, traits: WarpgroupTraits, alpha: Scalar | int) -> Any:
    """Return the factor of the accumulators: `alpha`, times the scales of both tensors unless it is 0."""
    if traits.operands.scaling is not Scaling.TENSORS:
        return alpha
    scaled = alpha * (p.scale_a.pointer[0] * p.scale_b.pointer[0])
    return scaled if isinstance(alpha, int) else pd.select(alpha == 0, alpha, scaled)


def scaled_context(p: Any, traits: WarpgroupTraits, context: KernelContext) -> KernelContext:
    """Return the context of consumers, whose products have the factor of `scaled_alpha`."""
    if traits.operands.scaling is None:
        return context
    return replace(context, products=tensor_products_of(p, traits, scaled_alpha(p, traits, p.alpha)))


def scaled_mainloop(
    plain: Mainloop,
    p: Any,
    traits: WarpgroupTraits,
    consumer: pd.warpgroup,
    rows: Scalar,
    located: Callable[[WorkTile], tuple[Index, Index]] | None = None,
    scales: Kinds = SCALES,
) -> Mainloop:
    """Return the mainloop of a kernel: `plain`, with scales if its operands have any. `rows` and `located` are the
    parameters of Scales, which are by default those of a product or of its batches."""
    kind = scales.get(traits.operands.scaling)
    if kind is None:
        return plain
    kind = TransposedBlockScales if kind is BlockScales and traits.tiling.swap_ab else kind
    return partial(kind(p, traits, consumer, rows, located or _batch_of(traits)).multiply, plain)


def _batch_of(traits: WarpgroupTraits) -> Callable[[WorkTile], tuple[Index, Index]]:
    """Return a function from a tile of a product to its batch and to 0, the first row of a batch."""
    if not traits.operands.is_batched:
        return lambda work: (0, 0)
    if traits.schedule.shares:  # the item of a tile is its number
        return lambda work: (pd.ctaid.z, 0)
    return lambda work: (work.item, 0)
