"""Routing in a mixture of experts: tokens sorted by expert, and back.

A token has several rows, one for each expert chosen for it. `rank` (tokens, chosen) is the position of each among all
rows sorted by expert, as `sort_kernel` computes it. `spread_kernel` copies tokens to their rows, `gather_kernel` is its
gradient; `combine_kernel` adds up the rows of a token. Rows have `width` elements without gaps; `access` is the bytes
that a thread moves at a time: 16 if rows are multiples of that, else those of an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import ptxdsl as pd
from ptxdsl import b32, f32, ptr, s32, s64, u32
from ptxdsl.trace.instruction import Scalar
from ptxdsl.trace.memory import ArrayView, PointerValue
from ptxdsl.trace.value import Var
from ptxdsl.types import Type

EVERY_LANE, LANES = 0xFFFFFFFF, 32
COUNTERS = 8192  # in total, one an expert and warp: 32 KB of shared memory
MOST_WARPS = 32
TOGETHER = 4  # entries that a thread reads before it uses the first
THREADS = 128  # of a block, which has one token
WORD_BYTES, REGISTER_BYTES = 16, 4


@pd.kernel(reqntid=lambda warps: LANES * warps)
def sort_kernel(
    chosen: ptr[s64], rank: ptr[s32], ends: ptr[s32], entries: u32, *, experts: int = 8, warps: int = MOST_WARPS
) -> None:
    """Store rank[i], the number of entries before entry i in a stable sort by expert, and ends[e], the number of
    entries of experts up to e. One block: each warp counts a part, then numbers it."""
    counts = pd.shared(u32, (warps, experts))
    begins = pd.shared(u32, experts)
    for i in pd.range(pd.tid.x, warps * experts, warps * LANES):
        counts.address(0, 0)[i] = 0
    pd.ptx.bar.sync(0)
    of_warp = WarpPart(chosen, entries, counts, experts, warps)
    of_warp.count()
    pd.ptx.bar.sync(0)
    add_up_warps(counts, begins, experts, warps)
    pd.ptx.bar.sync(0)
    with pd.if_(pd.warpid == 0):
        add_up_experts(begins, ends, experts)
    pd.ptx.bar.sync(0)
    of_warp.number(begins, rank)


class WarpPart:
    """The entries of a warp, which it processes 32 at a time."""

    def __init__(self, chosen: PointerValue, entries: Scalar, counts: ArrayView, experts: int, warps: int) -> None:
        self.chosen, self.entries, self.experts = chosen, entries, experts
        step = LANES * TOGETHER
        part = (entries + (warps * step - 1)) // (warps * step) * step
        self.begin = pd.min(pd.warpid * part, entries)
        self.end = pd.min(self.begin + part, entries)
        self.counts = counts.address(pd.warpid, 0)

    def count(self) -> None:
        """Add the entries of each expert to its counter."""
        for _, expert, peers in self.entries_with_peers():
            self.add_once(expert, peers)

    def number(self, begins: ArrayView, rank: PointerValue) -> None:
        """Store the ranks. The counters hold how many entries of an expert came before, of earlier warps and then of
        this one."""
        for entry, expert, peers in self.entries_with_peers():
            with pd.if_(expert < self.experts):
                before = pd.ptx.popc.b32(peers & pd.special("%lanemask_lt"))
                rank[entry] = (begins[expert] + self.counts[expert] + before).to(s32)
            pd.ptx.bar.warp.sync(EVERY_LANE)
            self.add_once(expert, peers)

    def entries_with_peers(self) -> Iterator[tuple[Scalar, Scalar, Scalar]]:
        """Yield, in each round, the entry of this lane, its expert, and the lanes with the same expert. The expert is
        out of range if there is no entry."""
        for first in pd.range(self.begin, self.end, LANES * TOGETHER):
            entries = [first + pd.laneid + LANES * n for n in range(TOGETHER)]
            experts = [self.expert_of(entry) for entry in entries]
            for entry, expert in zip(entries, experts, strict=True):
                yield entry, expert, pd.ptx.match.any.sync.b32(expert, EVERY_LANE)

    def expert_of(self, entry: Scalar) -> Scalar:
        expert = pd.var(u32, self.experts)
        with pd.if_(entry < self.end):
            expert.set(pd.min(self.chosen[entry].to(u32), self.experts))
        return expert

    def add_once(self, expert: Scalar, peers: Scalar) -> None:
        """Add all lanes with an expert to its counter, by the first of them."""
        is_first = (peers & pd.special("%lanemask_lt")) == 0
        with pd.if_(is_first & (expert < self.experts)):
            self.counts[expert] = self.counts[expert] + pd.ptx.popc.b32(peers)
        pd.ptx.bar.warp.sync(EVERY_LANE)


def add_up_warps(counts: ArrayView, begins: ArrayView, experts: int, warps: int) -> None:
    """Replace the counts of warps by those of all warps before them; `begins` becomes the total of each expert."""
    for expert in pd.range(pd.tid.x, experts, LANES * warps):
        total = pd.var(u32, 0)
        for warp in range(warps):
            count = counts[warp, expert]
            counts[warp, expert] = total
            total += count
        begins[expert] = total


def add_up_experts(begins: ArrayView, ends: PointerValue, experts: int) -> None:
    """Replace the total of each expert by the beginning of its rows, and store their ends; by one warp."""
    before = pd.var(u32, 0)
    for first in range(0, experts, LANES):
        expert = pd.laneid + first
        count = pd.var(u32, 0)
        with pd.if_(expert < experts):
            count.set(begins[expert])
        end = pd.var(u32, count)
        for distance in (1, 2, 4, 8, 16):
            other = pd.ptx.shfl.sync.up.b32(end, distance, 0, EVERY_LANE)
            end += pd.select(pd.laneid >= distance, other.bitcast(u32), 0)
        with pd.if_(expert < experts):
            begins[expert] = before + end - count
            ends[expert] = (before + end).to(s32)
        before += pd.ptx.shfl.sync.idx.b32(end, LANES - 1, LANES - 1, EVERY_LANE).bitcast(u32)


class RowWords:
    """Parts of a row of `type`, of `access` bytes each, converted to float32 and back."""

    def __init__(self, type: Type, access: int) -> None:
        self.type, self.access, self.each = type, access, access // type.bytes

    def of_thread(self, width: Scalar) -> Iterable[Scalar]:
        """Return the words of a row that belong to a thread."""
        return pd.range(pd.tid.x, width // self.each, THREADS)

    def load(self, row: PointerValue, word: Scalar) -> list[Scalar]:
        if self.access < WORD_BYTES:
            return [row[word].to(f32)]
        registers = pd.ptx.ld.global_.v4.b32(row + word * self.each)
        per_register = REGISTER_BYTES // self.type.bytes
        if per_register == 1:
            return [register.bitcast(self.type) for register in registers]
        return [part.to(f32) for register in registers for part in pd.unpack(register, self.type)]

    def store(self, row: PointerValue, word: Scalar, numbers: list[Scalar]) -> None:
        if self.access < WORD_BYTES:
            row[word] = numbers[0].to(self.type)
            return
        per_register = REGISTER_BYTES // self.type.bytes
        parts = [number.to(self.type) for number in numbers]
        registers = [pd.pack(*parts[i : i + per_register]) for i in range(0, len(parts), per_register)]
        pd.ptx.st.global_.v4.b32(row + word * self.each, [register.bitcast(b32) for register in registers])


@pd.kernel(reqntid=THREADS)
def combine_kernel(
    rows: ptr[type], rank: ptr[s32], weights: ptr[f32], out: ptr[type], width: u32,
    *, type: Type = f32, chosen: int = 2, access: int = 4,
) -> None:  # fmt: skip
    """Store out[t] = the sum over j of weights[t, j] * rows[rank[t, j]]. A block has one token."""
    factors = [weights[pd.ctaid.x * chosen + j] for j in range(chosen)]
    add_rows(RowWords(type, access), RowsOfToken(rank, width, chosen), rows, out, factors)


@pd.kernel(reqntid=THREADS)
def gather_kernel(
    rows: ptr[type], rank: ptr[s32], out: ptr[type], width: u32,
    *, type: Type = f32, chosen: int = 2, access: int = 4,
) -> None:  # fmt: skip
    """Store out[t] = the sum over j of rows[rank[t, j]]. A block has one token."""
    add_rows(RowWords(type, access), RowsOfToken(rank, width, chosen), rows, out, [None] * chosen)


@pd.kernel(reqntid=THREADS)
def spread_kernel(
    tokens: ptr[type], rank: ptr[s32], out: ptr[type], width: u32,
    *, type: Type = f32, chosen: int = 2, access: int = 4,
) -> None:  # fmt: skip
    """Store out[rank[t, j]] = tokens[t]. A block has one token."""
    words, at = RowWords(type, access), RowsOfToken(rank, width, chosen)
    for word in words.of_thread(width):
        numbers = words.load(tokens + at.token, word)
        for begin in at.rows:
            words.store(out + begin, word, numbers)


@pd.kernel(reqntid=THREADS)
def combine_backward_kernel(
    gradient: ptr[type], rows: ptr[type], rank: ptr[s32], weights: ptr[f32],
    of_rows: ptr[type], of_weights: ptr[f32], width: u32,
    *, type: Type = f32, chosen: int = 2, access: int = 4,
) -> None:  # fmt: skip
    """Store of_rows[rank[t, j]] = weights[t, j] * gradient[t] and of_weights[t, j] = gradient[t] · rows[rank[t, j]]."""
    words, at = RowWords(type, access), RowsOfToken(rank, width, chosen)
    first = pd.ctaid.x * chosen
    factors, totals = [weights[first + j] for j in range(chosen)], [pd.var(f32, 0) for _ in range(chosen)]
    for word in words.of_thread(width):
        numbers = words.load(gradient + at.token, word)
        read = [words.load(rows + begin, word) for begin in at.rows]
        for begin, factor, total, others in zip(at.rows, factors, totals, read, strict=True):
            for x, y in zip(numbers, others, strict=True):
                total += x * y
            words.store(of_rows + begin, word, [factor * x for x in numbers])
    store_totals(totals, of_weights + first)


class RowsOfToken:
    """The offsets of a block's token and of its rows, in elements."""

    def __init__(self, rank: PointerValue, width: Scalar, chosen: int) -> None:
        self.width, across = width, width.to(s64)
        self.token = pd.ctaid.x.to(s64) * across
        self.rows = [rank[pd.ctaid.x * chosen + j].to(s64) * across for j in range(chosen)]


def add_rows(
    words: RowWords, at: RowsOfToken, rows: PointerValue, out: PointerValue, factors: Sequence[Scalar | None]
) -> None:
    """Add up the rows of a token, each times its factor if it has one."""
    for word in words.of_thread(at.width):
        accumulators = [pd.cast(0, f32)] * words.each
        read = [words.load(rows + begin, word) for begin in at.rows]
        for factor, numbers in zip(factors, read, strict=True):
            accumulators = [
                total + (x if factor is None else factor * x) for total, x in zip(accumulators, numbers, strict=True)
            ]
        words.store(out + at.token, word, accumulators)


def store_totals(totals: Sequence[Var], target: PointerValue) -> None:
    """Add up each of `totals` over the threads of a block, and store it."""
    parts = pd.shared(f32, (THREADS // LANES, len(totals)))
    for number, total in enumerate(totals):
        for distance in (16, 8, 4, 2, 1):
            total += pd.ptx.shfl.sync.bfly.b32(total, distance, 31, EVERY_LANE).bitcast(f32)
        with pd.if_(pd.laneid == 0):
            parts[pd.warpid, number] = total
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x < len(totals)):
        total = pd.var(f32, 0)
        for warp in range(THREADS // LANES):
            total += parts[warp, pd.tid.x]
        target[pd.tid.x] = total
