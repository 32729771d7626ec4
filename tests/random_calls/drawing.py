"""What is drawn at random: choices, sizes, numbers."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.machines import NAMES

LITTLE, SMALL, LARGE = 40, 90, 700  # the largest sizes: for a short test, on the emulator, on a GPU
FLOATS = ("f16", "bf16", "f32")
OUTPUTS = {
    **dict.fromkeys(FLOATS, FLOATS),
    **dict.fromkeys(("s8", "u8"), ("s32", "f32", "f16", "bf16")),
    "f64": ("f64",),
    **dict.fromkeys(("e4m3", "e5m2"), ("f32", "f16", "bf16", "e4m3", "e5m2")),
}
FP8, WHOLE = ("e4m3", "e5m2"), ("s8", "u8", "s32")
RANGES = {"s8": (-128, 128), "u8": (0, 256), "s32": (-(10**6), 10**6)}


class Draw:
    """Choices by one seed. Those of one seed and other variants differ in sizes and numbers, so that kernels of many
    calls are the same. Sizes are up to `most`; those of hundreds are for GPUs, and take larger tiles."""

    def __init__(self, seed: int, arch: str, most: int, variant: int = 0) -> None:
        self.random, self.sizes = random.Random(seed), random.Random(f"{seed}/{variant}")
        self.numpy = np.random.default_rng([seed, variant])
        self.arch, self.most, self.large = arch, most, most >= LARGE

    @contextlib.contextmanager
    def varying(self) -> Iterator[None]:
        """Within, choices differ by the variant."""
        usual, self.random = self.random, self.sizes
        try:
            yield
        finally:
            self.random = usual

    def one_of(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def weighted(self, choices: Mapping[Any, float]) -> Any:
        return self.random.choices([*choices], [*choices.values()])[0]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def to(self, most: int, least: int = 0) -> int:
        return self.random.randint(least, most)

    def size(self, *tiles: int, most: int = 0) -> int:
        """0, 1, few, or about some multiple of a tile."""
        with self.varying():
            return self._size(tiles, most or self.most)

    def _size(self, tiles: Sequence[int], most: int) -> int:
        kind = self.weighted({"none": 1, "one": 4, "few": 8, "words": 14, "around": 14, "any": 6})
        if kind in ("none", "one"):
            return int(kind == "one")
        if kind == "few":
            return self.to(24, 2)
        if kind == "words":
            return min(most, 8 * self.to(max(1, most // 8), 1))
        if kind == "around":
            tile = self.one_of(*(tiles or (16, 64)))
            return max(1, min(most + 1, tile * self.to(max(1, most // tile), 1) + self.one_of(-8, -1, 0, 0, 1, 8)))
        return self.to(most, 1)

    def extent(self, *tiles: int, most: int = 0) -> int:
        """A size that is not 0."""
        return max(1, self.size(*tiles, most=most))

    def input_type(self, types: Sequence[str] = ("f16", "bf16", "f32", "f64", "s8", "u8", *FP8)) -> str:
        usual = {"f16": 6, "bf16": 5, "f32": 2, "f64": 1, "s8": 2, "u8": 1, "e4m3": 2, "e5m2": 1}
        if self.arch != "sm_90a":
            types = [type for type in types if type not in FP8]
        return self.weighted({type: usual[type] for type in types})

    def numbers(self, shape: Sequence[int], type: str, exact: bool, most: int = 2) -> np.ndarray:
        """Small whole numbers where sums shall be exact, else N(0,1)."""
        if exact:
            values = self.numpy.integers(0 if type == "u8" else -most, most + 1, shape)
        elif type in WHOLE:
            values = self.numpy.integers(*RANGES[type], shape)
        else:
            values = self.numpy.standard_normal(shape).astype(np.float32)
        return np.asarray(values).astype(NAMES[type])
