"""Calls one behind another, as CUDA graphs too: what one writes the next one reads, and overwrites what that one has read,
whether each may begin before the one in front of it has ended or not.

Elements are small integers, whose sums are exact: the 16-bit results are those of float64, rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from ptxdsl import config as settings
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged, grouped_gemm_ragged_k
from ptxdsl.kernels.tiles.cluster_strips import ClusterStrips
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import IdentityThreadblockSwizzle, StreamKThreadblockSwizzle
from tests.kernels.test_conv import plain
from tests.machines import Gpu, machine

IN_COLUMNS = IdentityThreadblockSwizzle(1)
COLUMNS = 72  # of what the second call writes
REPLAYS = 3


@dataclass(frozen=True)
class Calls:
    """What runs one behind another, on arrays of float16 by their names. `expected` computes all of `outs` from the
    inputs in float64; `fixed` are other arrays."""

    inputs: dict[str, tuple[int, ...]]
    outs: dict[str, tuple[int, ...]]
    run: Callable[[SimpleNamespace], None]
    expected: Callable[[SimpleNamespace], dict[str, np.ndarray]]
    fixed: dict[str, np.ndarray] = field(default_factory=dict)


def products(m, n, k, config=None):
    def run(v):
        gemm(v.a, v.b, out=v.x, config=config)
        gemm(v.x, v.w, out=v.y, config=config)
        gemm(v.a2, v.b, out=v.x, config=config)

    inputs = {"a": (m, k), "b": (k, n), "w": (n, COLUMNS), "a2": (m, k)}
    outs = {"x": (m, n), "y": (m, COLUMNS)}
    return Calls(inputs, outs, run, lambda v: {"x": v.a2 @ v.b, "y": v.a @ v.b @ v.w})


def batches(m, n, k, config):
    def run(v):
        gemm(v.a, v.b, out=v.x, config=config)
        gemm(v.x, v.w, out=v.y, config=config)

    inputs = {"a": (3, m, k), "b": (3, k, n), "w": (n, COLUMNS)}
    return Calls(inputs, {"x": (3, m, n), "y": (3, m, COLUMNS)}, run, lambda v: {"x": v.a @ v.b, "y": v.a @ v.b @ v.w})


def lists(m, n, k, config):
    """Of two problems of different sizes."""

    def run(v):
        grouped_gemm([v.a, v.a2], [v.b, v.b2], out=[v.x, v.x2], schedule="device", config=config)
        grouped_gemm([v.x, v.x2], [v.w, v.w2], out=[v.y, v.y2], schedule="device", config=config)

    def expected(v):
        x, x2 = v.a @ v.b, v.a2 @ v.b2
        return {"x": x, "x2": x2, "y": x @ v.w, "y2": x2 @ v.w2}

    inputs = {"a": (m, k), "b": (k, n), "w": (n, COLUMNS), "a2": (m - 24, k), "b2": (k, n + 16), "w2": (n + 16, 40)}
    outs = {"x": (m, n), "x2": (m - 24, n + 16), "y": (m, COLUMNS), "y2": (m - 24, 40)}
    return Calls(inputs, outs, run, expected)


def groups(m, n, k, config):
    """A layer of three experts, one without rows, and the products of its inputs and outputs along these rows."""
    ends = np.array([m // 3, m // 3, m], np.int32)
    rows = [slice(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]

    def run(v):
        grouped_gemm_ragged(v.a, v.b, v.ends, out=v.x, config=config)
        grouped_gemm_ragged(v.x, v.w, v.ends, out=v.y, config=config)
        grouped_gemm_ragged_k(v.a, v.x, v.ends, out=v.dw, config=config)

    def expected(v):
        x = np.concatenate([v.a[each] @ b for each, b in zip(rows, v.b, strict=True)])
        y = np.concatenate([x[each] @ w for each, w in zip(rows, v.w, strict=True)])
        return {"x": x, "y": y, "dw": np.stack([v.a[each].T @ x[each] for each in rows])}

    inputs = {"a": (m, k), "b": (3, k, n), "w": (3, n, COLUMNS)}
    return Calls(inputs, {"x": (m, n), "y": (m, COLUMNS), "dw": (3, k, n)}, run, expected, {"ends": ends})


def masked(m, n, k, config):
    counts = np.array([m - 1, 0, m // 2], np.int32)

    def run(v):
        grouped_gemm_masked(v.a, v.b, v.counts, out=v.x, config=config)
        grouped_gemm_masked(v.x, v.w, v.counts, out=v.y, config=config)

    def expected(v):
        x = v.a @ v.b
        y = x @ v.w
        for result in (x, y):
            for matrix, count in zip(result, counts, strict=True):
                matrix[count:] = np.nan  # as it was before
        return {"x": x, "y": y}

    inputs = {"a": (3, m, k), "b": (3, k, n), "w": (3, n, COLUMNS)}
    return Calls(inputs, {"x": (3, m, n), "y": (3, m, COLUMNS)}, run, expected, {"counts": counts})


def layers(images, edge, channels, config):
    def run(v):
        conv2d(v.a, v.b, pad=1, out=v.x, config=config)
        conv2d(v.x, v.w, pad=1, out=v.y, config=config)

    def expected(v):
        x = plain(v.a, v.b, pad=1)
        return {"x": x, "y": plain(x, v.w, pad=1)}

    size = images, edge, edge
    inputs = {"a": (*size, channels), "b": (64, 3, 3, channels), "w": (COLUMNS, 3, 3, 64)}
    return Calls(inputs, {"x": (*size, 64), "y": (*size, COLUMNS)}, run, expected)


class Chain:
    """Calls in arrays that stay where they are."""

    def __init__(self, where, rng, calls):
        self.where, self.rng, self.calls = where, rng, calls
        contents = {name: self._integers(name) for name in calls.inputs} | calls.fixed
        contents |= {name: np.full(shape, np.nan, np.float16) for name, shape in calls.outs.items()}
        self.arrays = SimpleNamespace(**{name: where.array(content) for name, content in contents.items()})

    def _integers(self, name):
        return self.rng.integers(-1, 2, self.calls.inputs[name]).astype(np.float16)

    def __call__(self):
        self.calls.run(self.arrays)

    def refill(self):
        """Other inputs on the GPU, and outputs that no call wrote."""
        for name in self.calls.inputs:
            getattr(self.arrays, name).copy_(self.where.array(self._integers(name)))
        for name in self.calls.outs:
            getattr(self.arrays, name).fill_(float("nan"))

    def check(self):
        inputs = {name: self.where.values(getattr(self.arrays, name)) for name in self.calls.inputs}
        for name, expected in self.calls.expected(SimpleNamespace(**inputs)).items():
            found = self.where.values(getattr(self.arrays, name))
            np.testing.assert_array_equal(found, expected.astype(np.float16), err_msg=name)


def tiles(m, n, stages, schedule=GemmConfig.schedule, **how):
    return GemmConfig((m, n, 64), stages=stages, atom="wgmma", schedule=schedule, **how)


# What makes the calls, its sizes on the emulator, and on a GPU, where blocks have several tiles; the configuration, None
# for the one that is chosen.
CASES = {
    "strips, staggered": (products, (136, 264, 136), (2100, 4104, 520), tiles(128, 256, 4, Strips(), stagger=3)),
    "in turns": (products, (136, 168, 72), (2100, 4104, 520), tiles(128, 160, 5, Strips(), pingpong=True)),
    "clusters along M": (products, (136, 264, 72), (2100, 4104, 520), tiles(128, 256, 4, ClusterStrips((2, 1)))),
    "swapped, K in a cluster": (
        products, (13, 136, 520), (13, 4104, 4104),
        tiles(16, 64, 8, IN_COLUMNS, swap_ab=True, split_k=4, reduction="cluster"),
    ),
    "one tile each, K in a cluster": (
        products, (136, 72, 264), (520, 776, 2056),
        tiles(128, 64, 6, IN_COLUMNS, stagger=2, split_k=2, reduction="cluster"),
    ),
    "split K": (products, (136, 72, 328), (520, 776, 2056), tiles(128, 128, 4, IN_COLUMNS, split_k=3)),
    "stream-K": (products, (136, 136, 200), (520, 776, 2056), tiles(128, 128, 4, StreamKThreadblockSwizzle(5))),
    "chosen": (products, (136, 264, 72), (2100, 4104, 520), None),
    "chosen, of few rows": (products, (13, 136, 520), (13, 4104, 4104), None),
    "chosen, of lines at no multiple of 16 bytes": (products, (65, 67, 69), (1001, 1003, 1005), None),
    "batches": (batches, (72, 136, 72), (520, 776, 520), tiles(64, 128, 3)),
    "lists": (lists, (72, 72, 72), (1000, 776, 520), tiles(64, 64, 3)),
    "groups": (groups, (96, 72, 72), (3000, 776, 520), tiles(64, 64, 3)),
    "masked": (masked, (72, 72, 72), (520, 776, 520), tiles(64, 64, 3)),
    "convolutions": (layers, (1, 9, 64), (4, 28, 128), tiles(64, 64, 3)),
}  # fmt: skip
every_case = pytest.mark.parametrize("case", CASES)
both_ways = pytest.mark.parametrize("allowed", [True, False], ids=["dependent", "one by one"])


def on_emulator(case, rng):
    make, sizes, _, config = CASES[case]
    return Chain(machine("emulator"), rng, make(*sizes, config))


def on_gpu(case, rng):
    make, _, sizes, config = CASES[case]
    return Chain(Gpu(), rng, make(*sizes, config))


def captured(torch, calls):
    """A graph of the calls, of which each has been made once before."""
    calls()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        calls()
    return graph


@both_ways
@every_case
def test_calls_one_behind_another(case, allowed, rng):
    with settings.using(arch="sm_90a", device="emulator", dependent_launch=allowed):
        chain = on_emulator(case, rng)
        chain()
    chain.check()


@pytest.mark.gpu
@both_ways
@every_case
def test_a_graph_of_them_computes_with_what_the_arrays_hold(case, allowed, rng):
    """Whatever the setting says when it is replayed."""
    chain = on_gpu(case, rng)
    with settings.using(dependent_launch=allowed):
        graph = captured(chain.where.torch, chain)
    chain.check()  # of the calls themselves: those that are captured do not run
    for _ in range(REPLAYS):
        chain.refill()
        graph.replay()
        chain.check()


@pytest.mark.gpu
@every_case
def test_a_graph_of_both_ways(case, rng):
    """Launches that may not begin early between others that may, and replays that follow each other at once."""
    chain = on_gpu(case, rng)

    def calls():
        for allowed in (True, False, True):
            with settings.using(dependent_launch=allowed):
                chain()

    graph = captured(chain.where.torch, calls)
    for _ in range(REPLAYS):
        chain.refill()
        for _ in range(5):
            graph.replay()
        chain.check()
