"""Results on the sm_90a path are the same from run to run, to the bit: whichever warp goes on first, and whichever block
takes a tile that is dealt while the kernel runs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import config
from ptxdsl.kernels.call.launching import residency
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.conv import conv2d
from ptxdsl.kernels.gemm import gemm
from ptxdsl.kernels.grouped import grouped_gemm, grouped_gemm_masked, grouped_gemm_ragged, grouped_gemm_ragged_k
from ptxdsl.kernels.scaled import scaled_gemm, scaled_gemm_ragged
from ptxdsl.kernels.tiles.persistent import Strips
from tests.kernels.test_warpgroups import hopper
from tests.machines import MACHINES, machine
from tests.mutants.trial import SCHEDULES

__all__ = ["hopper"]  # a fixture for all tests here
every_machine = pytest.mark.parametrize("name", MACHINES)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
LAUNCHES, LARGER = 20, 16  # on a GPU: of the same arrays, which have as many times the rows and columns


def tiles(m, n, stages=3, depth=64, **more):
    return GemmConfig((m, n, depth), stages=stages, atom="wgmma", **more)


class Arrays:
    """Normal numbers on a machine, of which sums differ by their order, and outputs that are poisoned."""

    def __init__(self, name, rng):
        self.where, self.rng, self.factor = machine(name), rng, 1 if name == "emulator" else LARGER

    def __call__(self, *shape, type=np.float16):
        return self.where.array(self.rng.standard_normal(shape).astype(type))

    def of(self, *numbers):
        return self.where.array(np.array(numbers, np.int32))

    def out(self, *shape):
        return self.where.array(np.full(shape, np.nan, np.float16))


def product(config):
    def prepared(x):
        m, n, k = 72 * x.factor, 136 * x.factor, 200
        a, b = x(m, k), x(n, k)
        return lambda: [gemm(a, b.T, out=x.out(m, n), config=config)]

    return prepared


def scaled(x):
    """By blocks, whose sums are added up in registers: a product, and groups of rows."""
    m, n, k = 40 * x.factor, 72 * x.factor, 272
    a, b, groups = x(m, k, type=E4M3), x(n, k, type=E4M3), x(3, n, k, type=E4M3)
    of_a, of_b, of_groups = (x(*shape, type=np.float32) for shape in ((m, 3), (3, -(-n // 128)), (3, 3, -(-n // 128))))
    ends = x.of(m // 3, m // 3, m)
    return lambda: [
        scaled_gemm(a, b.T, of_a, of_b, out=x.out(m, n), config=tiles(64, 48, depth=128)),
        scaled_gemm_ragged(a, turned(groups), ends, of_a, of_groups, out=x.out(m, n), config=tiles(64, 48, depth=128)),
    ]


def turned(matrices):
    """Each of a batch as its transpose, of numpy or torch."""
    return matrices.swapaxes(1, 2)


def ragged(config):
    def prepared(x):
        m, n, k = 90 * x.factor, 72 * x.factor, 136
        a, b, ends = x(m, k), x(4, n, k), x.of(m // 3, m // 3, m - 5, m)
        return lambda: [grouped_gemm_ragged(a, turned(b), ends, out=x.out(m, n), config=config)]

    return prepared


def masked(config):
    def prepared(x):
        m, n, k = 66 * x.factor, 72 * x.factor, 136
        a, b, counts = x(4, m, k), x(4, n, k), x.of(0, m, m // 3, 5)
        return lambda: [grouped_gemm_masked(a, turned(b), counts, out=x.out(4, m, n), config=config)]

    return prepared


def along_k(x):
    m, n, k = 40 * x.factor, 72 * x.factor, 200
    a, b, ends = x(k, m), x(k, n), x.of(70, 70, 71, k)
    return lambda: [grouped_gemm_ragged_k(a, b, ends, out=x.out(4, m, n), config=tiles(64, 64))]


def lists(config):
    def prepared(x):
        sizes = [(m * x.factor, n * x.factor, k) for m, n, k in ((40, 72, 136), (8, 40, 64), (70, 40, 200), (9, 8, 8))]
        a, b = [x(m, k) for m, _, k in sizes], [x(n, k).T for _, n, k in sizes]
        return lambda: grouped_gemm(a, b, out=[x.out(m, n) for m, n, _ in sizes], config=config)

    return prepared


def windows(config):
    def prepared(x):
        images, w = x(1, 9 * x.factor, 9, 16), x(40, 3, 3, 16)
        return lambda: [conv2d(images, w, pad=1, out=x.out(1, 9 * x.factor, 9, 40), config=config)]

    return prepared


SHARES = tiles(64, 64, swap_ab=True)
WAYS = {
    "ping-pong": product(tiles(64, 64, pingpong=True, schedule=Strips())),
    "staggered": product(tiles(128, 256, stagger=2, schedule=Strips())),
    "swapped, in turns": product(tiles(64, 64, swap_ab=True, pingpong=True, schedule=Strips())),
    "scaled by blocks": scaled,
    "groups of rows": ragged(tiles(128, 48)),
    "groups of rows, in turns": ragged(tiles(128, 48, pingpong=True)),
    "groups of rows, shares": ragged(SHARES),
    "masked groups": masked(tiles(128, 48)),
    "masked groups, shares": masked(SHARES),
    "groups along K": along_k,
    "lists": lists(tiles(64, 64)),
    "lists, shares": lists(SHARES),
    "conv2d": windows(tiles(64, 64)),
    "conv2d, in turns": windows(tiles(64, 64, pingpong=True, schedule=Strips())),
}


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("way", WAYS)
def test_runs_do_not_differ_by_a_bit(name, way, rng, monkeypatch):
    """Of a few blocks, which take several tiles each, under schedules of the emulator; of many launches on a GPU."""
    monkeypatch.setattr(residency, "EMULATED", 3)
    residency._resident_blocks.cache_clear()
    launch, where = WAYS[way](Arrays(name, rng)), machine(name)
    results = []
    for schedule in SCHEDULES if name == "emulator" else [None] * LAUNCHES:
        with config.using(**({"schedule": schedule} if schedule else {})):
            results.append([np.ascontiguousarray(where.values(out)).view(np.uint64) for out in launch()])
    residency._resident_blocks.cache_clear()
    first, *others = results
    assert sum(np.isfinite(each.view(np.float64)).sum() for each in first) > 0
    for other in others:
        assert all(np.array_equal(one, two) for one, two in zip(first, other, strict=True))
