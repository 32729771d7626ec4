"""The running softmax of a warpgroup, and the turns of warpgroups at the tensor cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

import ptxdsl as pd
from ptxdsl import f32
from ptxdsl.kernels.flash.tile import AttentionTile
from ptxdsl.kernels.flash.traits import WARPGROUP

ALL_LANES = 0xFFFFFFFF
FIRST_TURN = 8  # the first of the named barriers of `Turns`


class Softmax:
    """The running softmax of a warpgroup's rows: the scores of one tile of keys, and the output so far.

    For each row that a thread holds, `maxima` is the greatest score, `totals` this thread's part of the sum of weights,
    and `factors` the factor by which the last tile's maximum scales the output so far. Weights are at most 2**shift:
    8-bit types have few exponents below 1.
    With `slack`, a maximum is kept until a score exceeds it by a factor of 2**slack: then weights are at most
    2**(shift + slack), and most tiles do not rescale the output.
    """

    def __init__(self, scores: Any, output: Any, scale: Any, cap: Any, shift: int = 0, slack: int = 0) -> None:
        self.scores, self.output, self.scale, self.cap = scores, output, scale, cap
        self.shift, self.slack = shift, slack
        self.rows = scores.rows()
        self.maxima = [pd.var(f32, -math.inf) for _ in self.rows]
        self.totals = [pd.var(f32, 0.0) for _ in self.rows]
        self.factors = [pd.var(f32, 1.0) for _ in self.rows]

    def limit(self, tile: AttentionTile, number: Any, is_masked: bool) -> None:
        """Cap the scores of a tile of keys, and set those of keys that a row does not see to -inf."""
        if self.cap is not None:
            for score in self.scores.registers:
                score.set(pd.ptx.tanh.approx.f32(score * self.cap))
        for row in self.rows if is_masked else ():
            hide(row, *tile.limits(row, number))

    def weigh(self) -> None:
        """Replace the scores by their weights 2^(scale·(score - maximum)), and add these to the totals."""
        for row, maximum, total, factor in zip(self.rows, self.maxima, self.totals, self.factors, strict=True):
            before = maximum.value
            greatest = row.reduce(pd.max, pd.max(before, *row.registers))
            if self.slack:
                greatest = pd.select((greatest - before) * self.scale <= self.slack, before, greatest)
            maximum.set(greatest)
            top = self._factor(before, maximum, factor)
            added = total * factor
            top = top - self.shift if self.shift else top
            for score in row.registers:
                score.set(pd.ptx.ex2.approx.ftz.f32(pd.fma(score, self.scale, -top)))
                added = added + score
            total.set(added)

    def follow(self, maxima: Sequence[Any]) -> None:
        """Take new maxima, those after a tile of keys whose weights another warpgroup computes."""
        for new, maximum, total, factor in zip(maxima, self.maxima, self.totals, self.factors, strict=True):
            before = maximum.value
            maximum.set(new)
            self._factor(before, maximum, factor)
            total *= factor

    def _factor(self, before: Any, maximum: Any, factor: Any) -> Any:
        """Set the factor from one maximum to the next, and return the exponent of the next."""
        top = pd.select(maximum == -math.inf, 0.0, maximum * self.scale)  # a row without keys so far
        factor.set(pd.ptx.ex2.approx.ftz.f32(pd.fma(before, self.scale, -top)))
        return top

    def rescale(self) -> None:
        """Scale the output so far to the new maxima."""
        if not self.slack:
            self._rescale()
            return
        grows = reduce(or_, [factor != 1.0 for factor in self.factors])
        with pd.if_(pd.ptx.vote.sync.any.pred(grows, ALL_LANES)):
            self._rescale()

    def _rescale(self) -> None:
        for row, factor in zip(self.output.rows(), self.factors, strict=True):
            for value in row.registers:
                value *= factor

    def finish(self) -> list[tuple[Any, Any]]:
        """Divide the output by the sum of weights. Return (row, log-sum-exp) for each row of this thread."""
        results = []
        for row, maximum, total in zip(self.output.rows(), self.maxima, self.totals, strict=True):
            whole = row.reduce(lambda a, b: a + b, total.value)
            is_empty = whole == 0.0
            factor = pd.select(is_empty, 0.0, pd.ptx.rcp.approx.ftz.f32(whole))
            for value in row.registers:
                value *= factor
            exponent = maximum * self.scale + pd.ptx.lg2.approx.f32(whole)
            lse = (exponent - self.shift if self.shift else exponent) * math.log(2)
            results.append((row, pd.select(is_empty, -math.inf, lse)))
        return results


def hide(row: Any, first: Any, last: Any) -> None:
    """Set the scores of a row before column `first` and after column `last` to -inf; None is no bound.

    Both are relative to the first column that the thread holds.
    """
    for offset, score in zip(row.offsets, row.registers, strict=True):
        outside = [last < offset] if last is not None else []
        outside += [first > offset] if first is not None else []
        if outside:
            score.set(pd.select(reduce(or_, outside), -math.inf, score))


class Turns:
    """Turns of the consumer warpgroups at the tensor cores: one issues wgmmas while another computes its softmax."""

    def __init__(self, index: Any, count: int) -> None:
        self.count = count
        if count > 1:
            self.number = index + FIRST_TURN
            self.next = pd.select(index == count - 1, FIRST_TURN, self.number + 1)
            with pd.if_(index == count - 1):
                self.end()

    def begin(self) -> None:
        """Wait for the turn of this warpgroup."""
        if self.count > 1:
            pd.ptx.bar.sync(self.number, 2 * WARPGROUP)

    def end(self) -> None:
        """Pass the turn to the next warpgroup."""
        if self.count > 1:
            pd.ptx.bar.arrive(self.next, 2 * WARPGROUP)
