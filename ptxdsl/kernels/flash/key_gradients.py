"""The gradients of keys and values on sm_90a: the products of a warpgroup that owns 64 keys, and the mathematics that
both kernels of the gradient share."""

from __future__ import annotations

from typing import Any

import ptxdsl as pd
from ptxdsl import s32, u32
from ptxdsl.kernels.flash.backward import KeyTile
from ptxdsl.kernels.flash.softmax import hide


def visited(p: Any, tile: KeyTile, but_last: bool = False) -> Any:
    """Loop over the (query head, number of a tile of queries) that a tile of keys visits, or over all but the last."""
    head, number = pd.var(u32, tile.kv_head * p.group), pd.var(s32, tile.begin)
    for _ in pd.range((tile.end - tile.begin) * p.group.to(s32) - but_last, unroll=1):
        yield head.value, number.value
        number += 1
        is_next_head = number == tile.end
        number.set(pd.select(is_next_head, tile.begin, number))
        head.set(pd.select(is_next_head, head + 1, head))


class KeyGradients:
    """The products of a consumer warpgroup that owns 64 keys, for one tile of queries after another."""

    def __init__(self, p: Any, tile: KeyTile, arrays: tuple[Any, ...], ring: pd.Ring, first_row: Any) -> None:
        keys, values, queries, douts, self.statistics = arrays
        self.p, self.tile, self.ring, self.slot = p, tile, ring, pd.var(u32, 0)
        traits = tile.traits
        self.kq = pd.WarpgroupMma(traits.atom, keys, queries, first_row=first_row)
        self.vo = pd.WarpgroupMma(traits.atom, values, douts, first_row=first_row)
        self.sq = pd.WarpgroupMma(traits.output_atom, b=queries, b_transposed=True, first_row=first_row)
        self.wo = pd.WarpgroupMma(traits.output_atom, b=douts, b_transposed=True, first_row=first_row)
        self.scores, self.products = self.kq.accumulators(), self.vo.accumulators()
        self.dk, self.dv = self.sq.accumulators(), self.wo.accumulators()
        self.rows = self.scores.rows()

    def begin(self) -> None:
        """Wait for a tile and compute its scores, while the products of its gradients begin."""
        self.slot.set(self.ring.wait().index)
        self.kq(self.scores, 0, self.slot, accumulate=False)
        self.vo(self.products, 0, self.slot, accumulate=False)
        self.kq.wait(1)

    def begin_next(self) -> None:
        """Do the same for the next tile, while the last product of this one is computed; then release this one."""
        self.slot.set(self.ring.wait().index)
        self.kq(self.scores, 0, self.slot, accumulate=False)
        self.end(1)
        self.vo(self.products, 0, self.slot, accumulate=False)
        self.kq.wait(1)

    def differentiate(self, number: Any) -> Any:
        """Add to dv, begin to add to dk, and return the gradients of the scores of a tile as operand A."""
        tile, rows, traits, stage = self.tile, self.rows, self.tile.traits, self.slot.value
        if traits.is_capped:
            self.vo.wait(0)
            cap(rows, self.products, of_columns(self.statistics, stage, 1, rows), self.p.cap)
        partial = tile.is_partial(number)
        if partial is not None:
            with pd.if_(partial):
                for row in rows:
                    hide(row, *tile.limits(row, number))
        weigh(rows, of_columns(self.statistics, stage, 0, rows), self.p.scale)
        if traits.is_pipelined:
            self.vo.wait(0)
        self.wo(self.dv, self.scores.as_a(traits.dtype), stage)
        if not traits.is_pipelined:
            self.wo.wait(1)
        multiply(rows, self.products, None if traits.is_capped else of_columns(self.statistics, stage, 1, rows))
        shifted = self.scores.as_a(traits.dtype)
        self.sq(self.dk, shifted, stage)
        return shifted

    def end(self, begun: int = 0) -> None:
        """Wait for all products but the last `begun`, and release the tile that they read."""
        self.sq.wait(begun)
        pd.ptx.bar.warp.sync(0xFFFFFFFF)
        self.ring.release()


def cap(rows: Any, products: Any, delta: Any, factor: Any) -> None:
    """Cap the scores by tanh. The products become (product - delta) · (1 - tanh²), before scores are masked."""
    for row, gradients, values in zip(rows, products.rows(), delta, strict=True):
        for score, gradient, value in zip(row.registers, gradients.registers, values, strict=True):
            score.set(pd.ptx.tanh.approx.f32(score * factor))
            gradient.set((gradient - value) * pd.fma(-score, score, 1.0))


def weigh(rows: Any, exponents: Any, scale: Any) -> None:
    """Replace the scores by their weights 2^(scale·score - exponent)."""
    for row, values in zip(rows, exponents, strict=True):
        for score, exponent in zip(row.registers, values, strict=True):
            score.set(pd.ptx.ex2.approx.ftz.f32(pd.fma(score, scale, -exponent)))


def multiply(rows: Any, products: Any, delta: Any) -> None:
    """Multiply the weights by the products less delta, which is None after `cap`."""
    for i, (row, gradients) in enumerate(zip(rows, products.rows(), strict=True)):
        for j, (score, gradient) in enumerate(zip(row.registers, gradients.registers, strict=True)):
            score *= gradient if delta is None else gradient - delta[i][j]


def of_columns(statistics: Any, stage: Any, which: int, rows: Any) -> list[list[Any]]:
    """Return the statistic of each column that a thread holds, for each of its rows."""
    values: dict[int, Any] = {}
    for offset_ in rows[0].offsets[::2]:
        address = statistics.address(stage, which, rows[0].first_column + offset_)
        values[offset_], values[offset_ + 1] = pd.ptx.ld.shared.v2.f32(address)
    return [[values[offset_] for offset_ in row.offsets] for row in rows]


def stage_of(array: Any, stage: Any) -> Any:
    """Return the address of a stage."""
    return array.address(stage, *[0] * (len(array.shape) - 1))
