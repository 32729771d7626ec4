"""Blocks of a cluster that share the K of a tile bring each other sums in the ring, where it leaves no room behind it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.runtime.limits import shared_bytes
from ptxdsl.schedule import IdentityThreadblockSwizzle
from ptxdsl.types import bf16, f32, s8
from tests.kernels.test_pingpong import every_machine
from tests.kernels.test_warpgroups import hopper, run
from tests.machines import machine
from tests.mutants.subjects import whole
from tests.mutants.trial import SCHEDULES, launches

__all__ = ["hopper"]  # a fixture for all tests here
MEETING = r"barrier\.cluster\.arrive\.release\.aligned;(.*?)barrier\.cluster\.wait\.acquire\.aligned;"


def config(m, n, stages, slices=2, **how):
    order = IdentityThreadblockSwizzle(1)
    return GemmConfig(
        (m, n, 64), stages=stages, atom="wgmma", schedule=order, split_k=slices, reduction="cluster", **how
    )


WAYS = {
    "of two warpgroups": config(128, 64, 8),
    "of one": config(64, 64, 13),
    "three slices": config(64, 128, 9, 3),
    "swapped": config(16, 64, 22, swap_ab=True),
    "staggered": config(128, 64, 8, stagger=2),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def traits(way, output=bf16):
    return way.traits(Operands(bf16, output), "sm_90a")


@every_machine
@every_way
@pytest.mark.parametrize("k", [8, 328, 1544])
def test_sizes_around_tiles(name, way, k, rng):
    """One iteration along K in all; a few; more than the ring has stages."""
    assert traits(way).exchanges_in_ring
    run(name, rng, 9 if way.swap_ab else 130, 72, k, config=way)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("beta", [0.0, -1.5])
def test_other_types_of_output_and_c(name, beta, rng):
    run(name, rng, 100, 40, 200, output="f32", alpha=0.5, beta=beta, config=WAYS["of two warpgroups"])


@every_machine
def test_a_function_of_vectors(name, rng):
    on, (m, n, k) = machine(name), (100, 72, 200)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    bias = rng.standard_normal(n).astype(np.float16)
    out = gemm(
        on.array(a), on.array(b), epilogue=add_relu, operands=[per_column(on.array(bias))], config=WAYS["of one"]
    )
    assert np.allclose(on.values(out), np.maximum(a.astype(float) @ b + bias, 0), rtol=2e-3, atol=2e-2)


@pytest.mark.exhaustive
@every_machine
def test_runs_do_not_differ_by_a_bit(name, rng):
    """Nor from those whose sums meet behind a shorter ring."""
    where = machine(name)
    a, b = (where.array(rng.standard_normal(shape).astype(np.float16)) for shape in ((130, 904), (72, 904)))
    ways = [config(128, 64, 4)] + [config(128, 64, 8)] * (2 if name == "emulator" else 50)
    first, *others = (where.values(gemm(a, b.T, config=way)) for way in ways)
    assert all(np.array_equal(first.view(np.uint16), other.view(np.uint16)) for other in others)


@pytest.mark.exhaustive
@pytest.mark.parametrize("k", [128, 200])
def test_blocks_meet_before_they_write_where_others_read(k):
    """Slices of one or two iterations: the last products read where sums are brought."""
    a, b = whole(50, k), whole(40, k, seed=1).T
    ((launch,),) = launches(lambda: gemm(a, b, out=np.zeros((50, 40), np.float16), config=WAYS["of one"]))
    outcomes = [launch.run(launch.text, schedule) for schedule in SCHEDULES]
    assert not any(outcome.finding for outcome in outcomes)
    assert len({outcome.contents for outcome in outcomes}) == 1
    alone, count = re.subn(MEETING, r"\1", launch.text, count=1, flags=re.DOTALL)
    findings = [launch.run(alone, schedule).finding for schedule in SCHEDULES]
    assert count == 1
    assert all("which may not have started" in each or "still reads" in each for each in findings)
    assert any("which an asynchronous operation still reads" in each for each in findings)


def test_sums_lie_behind_the_ring_where_there_is_room():
    """128×128 by two blocks: 64 KB of sums, and what 8 warps stage, beside stages of 32 KB."""
    short, long = (traits(config(128, 128, stages)) for stages in (4, 5))
    assert not short.exchanges_in_ring and long.exchanges_in_ring
    assert short.exchanged_at == short.tiling.ring_bytes(short.operands)
    assert (long.exchanged_at, long.staged_at) == (0, 65536)
    longest = traits(config(128, 128, 7))
    assert longest.shared_bytes == longest.tiling.ring_bytes(longest.operands)
    assert longest.shared_bytes + longest.static_bytes <= shared_bytes("sm_90a")


@pytest.mark.exhaustive
@pytest.mark.parametrize("operands", [Operands(bf16, bf16), Operands(bf16, f32, c="separate"), Operands(s8, f32)])
def test_nothing_spills(operands):
    way = GemmConfig(
        (128, 80 if operands.inputs is s8 else 128, 128 // operands.inputs.bytes), stages=7, atom="wgmma",
        schedule=IdentityThreadblockSwizzle(1), split_k=2, reduction="cluster",
    )  # fmt: skip
    known = way.traits(operands, "sm_90a")
    resources = warpgroup_gemm_kernel.resources("sm_90a", traits=known)
    assert known.exchanges_in_ring
    assert resources.spill_store_bytes == resources.spill_load_bytes == resources.stack_bytes == 0
