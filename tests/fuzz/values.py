"""Inputs of random programs: edges of every type, numbers that mix well, and random bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..isa.scalar_kernels import EDGES, integer_edges

Words = np.ndarray
"""uint64."""


def words(random: np.random.RandomState, shape: tuple[int, ...]) -> Words:
    """Return random 64-bit words: each holds one, two or four numbers of a kind."""
    result = np.empty(shape, np.uint64)
    kind = random.randint(0, len(KINDS), shape)
    for number, make in enumerate(KINDS):
        chosen = kind == number
        result[chosen] = make(random, int(chosen.sum()))
    return result


def _bits(random: np.random.RandomState, count: int) -> Words:
    return np.frombuffer(random.bytes(8 * count), np.uint64)


def _edges(table: tuple[int, ...], width: int) -> Callable[[np.random.RandomState, int], Words]:
    numbers = np.array(table, f"u{width // 8}")
    return lambda random, count: random.choice(numbers, (count, 64 // width)).view(np.uint64)[:, 0]


def _moderate(dtype: type) -> Callable[[np.random.RandomState, int], Words]:
    """Return a source of numbers of 2**-6 to 2**6 with random significands."""
    in_word = 8 // np.dtype(dtype).itemsize

    def make(random: np.random.RandomState, count: int) -> Words:
        size = np.exp2(random.uniform(-6, 6, (count, in_word))) * random.choice([-1, 1], (count, in_word))
        return size.astype(dtype).view(np.uint64)[:, 0]

    return make


def _small(random: np.random.RandomState, count: int) -> Words:
    return random.randint(-70, 70, (count, 2)).astype(np.int32).view(np.uint64)[:, 0]


KINDS = (
    _bits,
    *(_edges(EDGES[name], width) for name, width in (("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64))),
    *(_edges(integer_edges(width), width) for width in (16, 32, 64)),
    *map(_moderate, (np.float16, np.float32, np.float64)),
    _small,
)
