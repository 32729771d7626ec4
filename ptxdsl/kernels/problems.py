"""A list of problems on sm_90a: one warp locates a block's tiles and rewrites tensor maps for their problems; it passes
them on to the warps that load, multiply and store."""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl import s64, u32, u64
from ptxdsl.kernels.call.groups.table import ROW
from ptxdsl.kernels.gemm import compute_tiles, load_tile, multiply_tiles
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.product.product import Product, View, WorkTile
from ptxdsl.kernels.ragged import multiply_shares, share_of, tile_of_group
from ptxdsl.kernels.sm90.epilogue import list_epilogue
from ptxdsl.kernels.sm90.loads import GroupRows, TensorView, TmaLoads
from ptxdsl.kernels.sm90.maps import MATRICES, NO_PROBLEM, ProblemMaps
from ptxdsl.kernels.sm90.memory import SharedTiles
from ptxdsl.kernels.sm90.mma import warpgroup_mma
from ptxdsl.kernels.sm90.order import consumer_walk
from ptxdsl.kernels.sm90.tile_queue import TileQueue, TileQueueWalk
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.many import VisitorWalk
from ptxdsl.kernels.tiles.schedule import loaded_elsewhere
from ptxdsl.kernels.tiles.visitor import DeviceVisitor
from ptxdsl.schedule.arithmetic import ceil_div
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import PointerValue

PROBLEM_WORDS = 7  # that other warps need of a tile


def load_product(table: PointerValue, number: Scalar, operands: Operands, alpha: Scalar, beta: Scalar) -> Product:
    """Load a row of the table: M, N, K, tiles along M on sm_90a, and the address and row stride of A, B, C and out."""
    row = table + number.to(s64) * ROW
    m, n, k, _, *matrices = [word for i in range(0, ROW, 2) for word in pd.ptx.ld.global_.v2.s64(row + i)]
    types = operands.inputs, operands.inputs, operands.output, operands.output
    a, b, c, out = (
        View(pd.pointer(address.to(u64), type), stride)
        for type, address, stride in zip(types, matrices[::2], matrices[1::2], strict=True)
    )
    return Product(m.to(u32), n.to(u32), k.to(u32), a, b, c, out, alpha, beta)


class ProblemTiles:
    """The tiles of a list of problems; `p` are the parameters of a kernel."""

    def __init__(self, p: Any, traits: WarpgroupTraits, queue: TileQueue, maps: ProblemMaps) -> None:
        self.p, self.traits, self.queue, self.maps = p, traits, queue, maps

    def find(self) -> None:
        """Locate the tiles, in all lanes of a warp, and pass each on to the other warps."""
        queue, maps = self.queue, self.maps
        maps.begin()
        visitor = DeviceVisitor(self.p.problems, self._tiled, succeeding=queue.taken)
        walk = VisitorWalk(visitor, self._located, ahead=True)
        for work in walk.tiles(loaded_elsewhere):
            maps.follow(work.item[0], self._product)
            with pd.elect():
                self._announce(work)
                queue.broadcast(queue.take())
            walk.skip(work)
        with pd.elect():
            queue.close()

    def load(self, ring: pd.Ring, copies: TmaLoads) -> None:
        """Load tiles as `gemm.load_tiles` does, in one lane of another warp, always the same."""
        walk, version = TileQueueWalk(self.queue, self._loaded), pd.var(u32, NO_PROBLEM)
        for work in walk.tiles(loaded_elsewhere):
            with pd.elect():
                with pd.if_(work.item[1] != version):
                    version.set(work.item[1])
                    for number in range(MATRICES):
                        self.maps.acquire(number, version)
                load_tile(ring, copies.of(work))
            walk.skip(work)
        with pd.elect():
            ring.drain()

    def compute(self, ring: pd.Ring, memory: SharedTiles, consumer: pd.warpgroup) -> None:
        """Compute and store all tiles of a consumer warpgroup."""
        traits = self.traits
        mma = warpgroup_mma(traits, memory, consumer.index)
        epilogue = list_epilogue(traits, memory, consumer, self.maps)
        walk = TileQueueWalk(self.queue, self._multiplied, self.stored)
        multiply = multiply_shares if traits.shares_rows else multiply_tiles
        compute_tiles(ring, mma, epilogue, consumer_walk(traits, walk, ring, epilogue, consumer), multiply)

    def _announce(self, work: WorkTile) -> None:
        """Pass a tile on with the version of the maps of its problem. The next tile is located when all readers have
        this one."""
        product = work.product
        first, rows = product.a.row, product.m
        self.queue.announce(work.item[0], self.maps.version, first, rows, *work.tile, work.iterations)
        self.queue.ring.acquire()

    def _tiled(self, number: Scalar) -> tuple[Scalar, Scalar]:
        """Return the number of tiles of a problem along M and N."""
        _, n, _, down = self._sizes(number)
        return down, ceil_div(n, self.traits.tile[1])

    def _sizes(self, number: Scalar) -> tuple[Scalar, ...]:
        """Return M, N, K, and the number of tiles along M."""
        row = self.p.table + number.to(s64) * ROW
        return tuple(word.to(u32) for i in (0, 2) for word in pd.ptx.ld.global_.v2.s64(row + i))

    def _located(self, number: Scalar, tile: Scalar) -> WorkTile:
        """Return a tile of a problem as the locating warp sees it: its first row, and its number of rows."""
        (m, n, k, down), traits = self._sizes(number), self.traits
        row, column = tile_of_group(tile, down, ceil_div(n, traits.tile[1]))
        first, rows = pd.cast(0, u32), m
        if traits.shares_rows:
            first, rows = share_of(m, down, row)
            row = pd.cast(0, u32)
        product = Product(rows, n, k, TensorView(None, 0, first), None, None, None, 1, 0)
        return WorkTile(product, (row, column), 0, ceil_div(k, traits.tile[2]), traits.tile)

    def _loaded(self, number: Scalar, version: Scalar, first: Scalar, rows: Scalar, *tile: Scalar) -> WorkTile:
        """Return a tile as the producer sees it."""
        row, column, iterations = tile
        a, b = self.maps.of(0, version, first if self.traits.shares_rows else None), self.maps.of(1, version)
        product = Product(rows, rows, rows, a, b, None, None, 1, 0)
        return WorkTile(product, (row, column), 0, iterations, self.traits.tile, (number, version, first))

    def _multiplied(self, number: Scalar, version: Scalar, first: Scalar, rows: Scalar, *tile: Scalar) -> WorkTile:
        """Return a tile as the consumers see it during the mainloop."""
        row, column, iterations = tile
        product = Product(rows, rows, rows, None, None, None, None, 1, 0)
        return WorkTile(product, (row, column), 0, iterations, self.traits.tile, (number, version, first))

    def stored(self, work: WorkTile) -> WorkTile:
        """Return a tile as the consumers store it, with the matrices of the table, which is read again: accumulators
        leave few registers."""
        number, version, first = work.item
        product, row = self._product(number)._replace(m=work.product.m), first if self.traits.shares_rows else None
        if row is not None:
            product = product._replace(c=_from(product.c, row), out=_from(product.out, row))
        if self.traits.operands.out_boxes:
            out = product.out
            product = product._replace(out=GroupRows(out.pointer, out.stride, self.maps.of(MATRICES, version, row)))
        return work._replace(product=product)

    def _product(self, number: Scalar) -> Product:
        p = self.p
        return load_product(p.table, number, self.traits.operands, p.alpha, p.beta)


def _from(view: View, row: Scalar) -> View:
    """Return a matrix from a row on."""
    return View(view.pointer + row.to(s64) * view.stride, view.stride)
