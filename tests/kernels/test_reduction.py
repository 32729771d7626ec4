"""The reduce-scatter of split K: who adds up what, in which order, whatever runs when."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import ptr, u32, u64
from ptxdsl.emulate.run.machine import LANES
from ptxdsl.kernels.candidates.sm80 import LARGE
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add
from ptxdsl.kernels.gemm import gemm, gemm_kernel
from ptxdsl.kernels.tiles.split_k import EVERYTHING, NOTHING, TileSemaphore
from ptxdsl.schedule import SplitKHorizontalThreadblockSwizzle, SplitKIdentityThreadblockSwizzle
from tests.kernels.test_gemm import poisoned
from tests.machines import MACHINES, machine

every_machine = pytest.mark.parametrize("name", MACHINES)
TINY = GemmConfig(tile=(32, 32, 32), warp=(16, 32), stages=2)
SCATTERED = replace(TINY, reduction="scatter")
TALL = GemmConfig(tile=(64, 32, 32), warp=(64, 16), stages=2)
SLICED = GemmConfig(tile=(32, 32, 64), warp=(32, 16, 32), stages=2)
TF32 = GemmConfig(tile=(32, 32, 16), warp=(16, 16), stages=2)
F64 = GemmConfig(tile=(32, 32, 16), warp=(16, 16), stages=2)
BYTES = GemmConfig(tile=(32, 32, 64), warp=(16, 32), stages=2)
THREADS = 64
TOGETHER = LANES // THREADS  # blocks of so many threads run together on the emulator


@pd.kernel
def meet(semaphore: ptr[u64], left: ptr[u32], shares: ptr[u32], sums: ptr[u32], blocks: u32) -> None:
    """One meeting: each block leaves a number, and notes its share and the sum of all that it sees there."""
    place = pd.shared(u32, 1)
    meeting = TileSemaphore(semaphore, blocks, lambda: pd.ptx.bar.sync(0))
    meeting.begin()
    with pd.if_(pd.tid.x == THREADS - 1):
        left[pd.ctaid.x] = pd.ctaid.x + 1
    share = meeting.share(place.address())
    with pd.if_((pd.tid.x == 0) & (share != NOTHING)):
        total = pd.var(u32, 0)
        for other in pd.range(blocks):
            total += left[other]
        shares[pd.ctaid.x], sums[pd.ctaid.x] = share, total
    meeting.end()


def shares_of(where, blocks):
    """What each of so many blocks does; checks that it sees all others' numbers, and what is left behind."""
    semaphore, left, shares, sums = (
        where.array(np.zeros(n, t)) for n, t in ((1, np.uint64), *[(blocks, np.uint32)] * 3)
    )
    meet[blocks, THREADS](semaphore, left, shares, sums, blocks)
    assert int(where.values(semaphore)[0]) == 0
    found = where.values(shares).astype(int)
    assert (where.values(sums)[found != NOTHING] == blocks * (blocks + 1) // 2).all()
    return found.tolist()


@pytest.mark.parametrize("blocks", [2, 3, 40, pytest.param(TOGETHER, marks=pytest.mark.exhaustive)])
def test_blocks_that_run_together_share_the_work(blocks):
    assert shares_of(machine("emulator"), blocks) == [blocks] * blocks


def test_where_one_comes_late_the_last_block_does_everything():
    assert sorted(shares_of(machine("emulator"), TOGETHER + 1)) == [NOTHING] * TOGETHER + [EVERYTHING]


@pytest.mark.gpu
@pytest.mark.parametrize("blocks", [2, 7, 132, 1000, 20000, 65535])
def test_all_blocks_share_or_one_does_everything(blocks):
    for _ in range(10):
        found = shares_of(machine("gpu"), blocks)
        assert found == [blocks] * blocks or sorted(found) == [NOTHING] * (blocks - 1) + [EVERYTHING]


SIZES = [(97, 70, 300, 3), (40, 50, 130, 2), (65, 33, 900, 5), (97, 70, 470, 7), (33, 31, 65, 4)]
FEW_BLOCKS = 12  # of 64 threads, that run together where seven share the K of a tile


@every_machine
@pytest.mark.parametrize(
    "config, inputs, output",
    [(config, pd.f16, pd.f16) for config in (TINY, TALL, SLICED)]
    + [(TF32, pd.f32, pd.f32), (F64, pd.f64, pd.f64), (BYTES, pd.s8, pd.s32)],
    ids=lambda value: f"{value.tile}-{value.warp}" if isinstance(value, GemmConfig) else str(value),
)
@pytest.mark.parametrize("m, n, k, slices", SIZES)
def test_all_reductions_add_in_the_order_of_k(name, config, inputs, output, m, n, k, slices, rng, monkeypatch):
    """To the last bit, whoever adds them: the fourth of these sizes has more blocks than run together."""
    if slices == 7:
        monkeypatch.setattr(import_module("ptxdsl.emulate.run.machine"), "LANES", FEW_BLOCKS * THREADS)
    where = machine(name)
    values = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    scale = 40 if inputs is pd.s8 else 1
    a, b = (where.array((scale * v).astype(inputs.dtype)) for v in values)
    made = []
    for reduction in ("serial", "parallel", "scatter"):
        out = where.array(np.full((m, n), 99, output.dtype))
        gemm(a, b, out=out, config=config, split_k=slices, reduction=reduction)
        made.append(where.values(out))
    expected = where.values(a) @ where.values(b)
    assert np.array_equal(made[0], made[1]) and np.array_equal(made[0], made[2])
    assert np.allclose(made[0], expected, rtol=2e-3, atol=2e-2 * k**0.5)


@every_machine
@pytest.mark.parametrize(
    "swizzle", [SplitKIdentityThreadblockSwizzle(2), SplitKHorizontalThreadblockSwizzle()], ids=str
)
@pytest.mark.parametrize("config", [TINY, TALL, SLICED], ids=lambda c: f"{c.tile}-{c.warp}")
def test_shares_of_every_layout_reach_the_epilogue(name, swizzle, config, rng):
    where = machine(name)
    a, b, c = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((97, 200), (200, 70), (97, 70)))
    sums = a.astype(np.float64) @ b.astype(np.float64)
    for order in ("row", "column"):
        out = where.array(poisoned((97, 70), order, "f32"))
        left, right = (where.array(v if order == "row" else np.asfortranarray(v)) for v in (a, b))
        given = {
            "epilogue": add,
            "operands": [where.array(c)],
            "config": config,
            "schedule": swizzle,
            "reduction": "scatter",
        }
        gemm(left, right, where.array(c.astype(np.float32)), out=out, beta=-2.0, split_k=3, **given)
        assert np.array_equal(where.values(out), sums - c.astype(np.float64))


def test_one_kernel_serves_every_number_of_slices():
    texts = {gemm_kernel.ptx(traits=replace(SCATTERED, split_k=n).traits()) for n in (2, 9)}
    assert len(texts) == 1


@pytest.mark.exhaustive
def test_the_largest_tiles_can_be_split_without_spills():
    resources = gemm_kernel.resources(arch="sm_90", traits=replace(LARGE, split_k=2, reduction="scatter").traits())
    assert resources.spill_store_bytes == resources.stack_bytes == 0
