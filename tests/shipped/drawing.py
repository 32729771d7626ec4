"""What is drawn at random for calls that choose kernels: types, sizes up to those of large products, empty arrays."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import GemmProblem
from ptxdsl.kernels.choose.products import ranked_products
from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.config import WGMMA, GemmConfig
from ptxdsl.types import f32
from tests.kernels.placed import LINE_BYTES
from tests.machines import NAMES

INPUTS = {"bf16": 8, "f16": 5, "e4m3": 3, "s8": 2, "e5m2": 1, "u8": 1, "f32": 2}  # how often each is drawn
FLOATS = "f32", "f16", "bf16"
OUTPUTS = {
    **dict.fromkeys(FLOATS, FLOATS),
    **dict.fromkeys(("e4m3", "e5m2"), (*FLOATS, "e4m3", "e5m2")),
    **dict.fromkeys(("s8", "u8"), ("s32", *FLOATS)),
}
TURNED = "f16", "bf16"  # that wgmma reads along M and N too
SIZES = (16, 128, 1024, 4096, 16384)  # about which one is drawn, each as often
MOST_BYTES = 1 << 32  # of an array: it is never written, and takes no memory
Item = TypeVar("Item")


class Draw:
    """Choices by one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one_of(self, choices: Sequence[Item]) -> Item:
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def inputs(self, *names: str) -> str:
        known = {name: weight for name, weight in INPUTS.items() if not names or name in names}
        return self.random.choices([*known], [*known.values()])[0]

    def output(self, inputs: str) -> str:
        """Mostly of as few bits as the usual outputs have."""
        usual = inputs if inputs in TURNED else "bf16"
        return usual if self.chance(0.5) else self.one_of(OUTPUTS[inputs])

    def size(self, most: int = SIZES[-1], unit: int = 16) -> int:
        """Mostly a multiple of `unit`, and often of 64."""
        size = self.random.randint(1, min(most, self.one_of(SIZES)))
        steps = self.random.choices((64, unit, 1), (4, 5, 1))[0]
        return min(most, max(1, size // steps) * steps)

    def array(self, shape: Sequence[int], name: str, order: str = "row") -> np.ndarray:
        """Begins where arrays on GPUs do; the last two axes change places in a column-major one."""
        type, extents = NAMES[name], list(shape)
        if order == "column":
            extents[-2:] = extents[:-3:-1]
        count = int(np.prod(extents))
        if count * type.itemsize > MOST_BYTES:
            raise TooLarge
        room = np.zeros(count + LINE_BYTES // type.itemsize, type)
        first = -room.ctypes.data % LINE_BYTES // type.itemsize
        array = room[first : first + count].reshape(extents)
        return array.swapaxes(-1, -2) if order == "column" else array

    def orders(self, inputs: str) -> tuple[str, str]:
        """Of A and B."""
        if inputs not in (*TURNED, "f32") or self.chance(0.5):
            return "row", "column"
        return self.one_of(("row", "column")), self.one_of(("row", "column"))

    def tiles_of(self, problem: GemmProblem, epilogue: Callable[..., Any] | None = None) -> GemmConfig | None:
        """One of those that the choice for a product is made of, as it may be tuned to, or None: the best. Of float32,
        whose copies are rounded where it is tuned, one of those that a caller may ask for."""
        planner = GemmPlanner(problem.row_major, GemmOptions(epilogue=epilogue))
        if problem.a.type is f32:
            return self.candidate(ranked_products(planner.facts, planner.rates))
        return self.tuned(planner.candidates())

    def tuned(self, known: Sequence[tuple[float, TuningCandidate]]) -> GemmConfig | None:
        """One of those that may be tuned to for operands as they lie, or None."""
        return self.candidate([(time, each.config) for time, each in known if not each.copied])

    def candidate(self, known: Sequence[tuple[float, GemmConfig]]) -> GemmConfig | None:
        """One of the configurations of warpgroups, with times that do not count, or at times None."""
        if self.chance(0.4):
            return None
        configs = [config for _, config in known if config.atom == WGMMA]
        return self.one_of(configs) if configs else None


class TooLarge(Exception):
    """An array has more bytes than are drawn."""
