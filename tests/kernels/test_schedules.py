"""gemm() by every schedule against numpy in float64, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.candidates.sm80 import LARGE, MEDIUM, SMALL
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm, gemm_kernel
from ptxdsl.kernels.tiles.persistent import Persistent
from ptxdsl.schedule import (
    GroupedRowsThreadblockSwizzle,
    HilbertThreadblockSwizzle,
    HorizontalThreadblockSwizzle,
    IdentityNoPaddingThreadblockSwizzle,
    IdentityThreadblockSwizzle,
    PersistentScheduler,
    SplitKHorizontalThreadblockSwizzle,
    SplitKIdentityThreadblockSwizzle,
    StreamKThreadblockSwizzle,
)
from tests.kernels.test_gemm import ORDERS, ROUNDING, matrix, poisoned
from tests.machines import MACHINES, machine

TINY = GemmConfig(tile=(32, 32, 32), warp=(16, 32), stages=2)
BLOCKS = 5  # of a GPU on which schedules have something to do with few tiles

PLAIN = {
    "identity": {"schedule": IdentityThreadblockSwizzle(4)},
    "no-padding": {"schedule": IdentityNoPaddingThreadblockSwizzle(4)},
    "horizontal": {"schedule": HorizontalThreadblockSwizzle()},
    "rows": {"schedule": GroupedRowsThreadblockSwizzle(3)},
    "hilbert": {"schedule": HilbertThreadblockSwizzle(1)},
    "persistent": {"schedule": PersistentScheduler()},
    "persistent-clusters": {"schedule": PersistentScheduler((2, 1), 2)},
    "persistent-m": {"schedule": PersistentScheduler((2, 1), 2, "m")},
    "persistent-n": {"schedule": PersistentScheduler((1, 2), 4, "n")},
}
SHARED = {
    "split-k-identity": {"schedule": SplitKIdentityThreadblockSwizzle(2), "split_k": 3},
    "split-k-horizontal": {"schedule": SplitKHorizontalThreadblockSwizzle(), "split_k": 4, "reduction": "serial"},
    "split-k-rows": {"split_k": 2},
    "split-k-hilbert": {"schedule": HilbertThreadblockSwizzle(1), "split_k": 2, "reduction": "serial"},
    "stream-k": {"schedule": StreamKThreadblockSwizzle(BLOCKS)},
    "stream-k-cut": {"schedule": StreamKThreadblockSwizzle(132, 2), "split_k": 3},
    "stream-k-reduction": {"schedule": StreamKThreadblockSwizzle(12, 2, fragments=3)},
    "stream-k-interleaved": {"schedule": StreamKThreadblockSwizzle(6, 3, fragments=4)},
}
SCHEDULES = {**PLAIN, **SHARED}
SIZES = [0, 1, 15, 31, 32, 33, 63, 65, 97, 130]

every_machine = pytest.mark.parametrize("name", MACHINES)
every_schedule = pytest.mark.parametrize("how", SCHEDULES.values(), ids=SCHEDULES)


@pytest.fixture(autouse=True)
def few_blocks(monkeypatch):
    """Persistent blocks have several tiles each."""
    resident = scheduled.resident_blocks

    def some(kernel, traits, device):
        found = resident(kernel, traits, device)
        return BLOCKS if isinstance(traits.schedule, Persistent) else found

    monkeypatch.setattr(scheduled, "resident_blocks", some)


def check(where, rng, m, n, k, how, *, orders=("row", "column", "row"), inputs="f16", output=None, beta=0.0):
    """Runs one product into NaNs and holds it against float64. Returns what was found."""
    output = output or inputs
    a, b = matrix(rng, (m, k), orders[0], inputs), matrix(rng, (k, n), orders[1], inputs)
    c = matrix(rng, (m, n), orders[2], output) if beta else None
    out = where.array(poisoned((m, n), orders[2], output))
    given = [where.array(v) if v is not None else None for v in (a, b, c)]
    gemm(*given, out=out, beta=beta, **{"config": TINY, **how})
    x, y, z = a.astype(np.float64), b.astype(np.float64), c.astype(np.float64) if beta else 0.0
    close(where.values(out), x @ y + beta * z, np.abs(x) @ np.abs(y) + abs(beta) * np.abs(z), k, output)
    return where.values(out)


def close(found, expected, scale, k, output):
    """Every element is within the rounding of its sum."""
    assert found.shape == expected.shape
    allowed = (k / 16 + 8) * 2.0**-22 * scale + ROUNDING[output] * np.abs(expected) + 1e-7
    assert np.all(np.abs(found - expected) <= allowed), np.nanmax(np.abs(found - expected) - allowed, initial=0)


@every_machine
@every_schedule
def test_sizes_around_the_tiles(name, how, rng):
    for _ in range(2 if name == "emulator" else 20):
        m, n, k = (int(size) for size in rng.choice(SIZES, 3))
        check(machine(name), rng, m, n, k, how)
    check(machine(name), rng, 97, 100, 200, how)


@every_machine
@every_schedule
@pytest.mark.parametrize("which", range(3), ids="mnk")
@pytest.mark.parametrize("extent", [0, 1])
def test_extents_of_zero_and_one(name, how, which, extent, rng):
    sizes = [33, 65, 131]  # elements are copied one by one, also those of the others: one kernel a schedule
    sizes[which] = extent
    check(machine(name), rng, *sizes, how, beta=0.5)


@every_machine
@every_schedule
def test_layouts(name, how, rng):
    for orders in [(a, b, c) for a in ORDERS for b in ORDERS for c in ORDERS][:: 3 if name == "emulator" else 1]:
        check(machine(name), rng, 70, 100, 150, how, orders=orders)


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("config", [LARGE, MEDIUM, SMALL], ids=["large", "medium", "small"])
@pytest.mark.parametrize("how", ["persistent", "stream-k", "stream-k-reduction", "split-k-rows"])
def test_shipped_tiles(name, config, how, rng):
    check(machine(name), rng, 290, 260, 700, {"config": config, **SCHEDULES[how]})


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("how", SHARED.values(), ids=SHARED)
def test_runs_do_not_differ_by_a_bit(name, how, rng):
    where = machine(name)
    a, b = (where.array(matrix(rng, shape, "row", "f16")) for shape in ((100, 900), (900, 70)))
    first, *others = (
        where.values(gemm(a, b, out=where.array(poisoned((100, 70), "row", "f32")), config=TINY, **how))
        for _ in range(2 if name == "emulator" else 50)
    )
    assert all(np.array_equal(first, other) for other in others)


@every_machine
@pytest.mark.parametrize("how", ["persistent", "stream-k", "stream-k-reduction", "split-k-identity"])
@pytest.mark.parametrize("inputs, output", [("f16", "f32"), ("bf16", "bf16"), ("bf16", "f16")])
def test_types(name, how, inputs, output, rng):
    check(machine(name), rng, 66, 70, 300, SCHEDULES[how], inputs=inputs, output=output, beta=-1.5)


# (multiprocessors, occupancy), tiles along m and n, K-iterations: plans in which there is everything once
ROLES = {
    "one tile": ((2, 1), (1, 1, 12), {"dp_blocks": 0, "sk_blocks": 2}),
    "longer and shorter blocks": ((3, 1), (1, 1, 20), {"big_blocks_per_region": 2}),
    "whole tiles beside": ((3, 1), (1, 7, 20), {"dp_blocks": 3, "sk_blocks": 3, "regions": 1, "sk_tiles": 4}),
    "regions": ((4, 1), (1, 2, 12), {"regions": 2}),
    "reduction": ((6, 2), (1, 2, 20), {"regions": 2, "reduction_blocks": 6}),
    "reduction beside whole tiles": ((3, 2), (1, 4, 20), {"reduction_blocks": 3, "dp_blocks": 3}),
    "interleaved": ((6, 3), (2, 2, 60), {"interleaved": True, "reduction_blocks": 12}),
    "a first wave of several tiles": ((5, 3), (3, 7, 12), {"first_wave_tiles": 2}),
    "cohorts": ((6, 1), (16, 8, 12), {"cohorts": True, "sk_tiles": 8, "dp_blocks": 128}),
}


@pytest.mark.exhaustive
@every_machine
@pytest.mark.parametrize("gpu, tiles, expected", ROLES.values(), ids=ROLES)
def test_stream_k_with_every_role_of_a_block(name, gpu, tiles, expected, rng):
    swizzle = StreamKThreadblockSwizzle(*gpu, fragments=3)
    m, n, k = (count * 32 - 5 for count in tiles)
    plan = swizzle.plan((m, n, k), TINY.tile)
    roles = plan.numbers._asdict()
    assert {field: getattr(plan, field) if hasattr(plan, field) else roles[field] for field in expected} == expected
    check(machine(name), rng, m, n, k, {"schedule": swizzle}, beta=0.5)


@pytest.mark.gpu
@pytest.mark.parametrize("how", ["persistent", "stream-k", "split-k-identity", "split-k-horizontal"])
def test_large_products(how, rng):
    for m, n, k in [(4097, 1000, 777), (300, 5000, 4100), (1536, 1536, 4096)]:
        check(machine("gpu"), rng, m, n, k, {**SCHEDULES[how], "config": MEDIUM})


def texts():
    return {variant.text for variant in gemm_kernel._variants.values()}


@pytest.mark.parametrize("how", SCHEDULES.values(), ids=SCHEDULES)
def test_one_kernel_serves_all_sizes(how, rng):
    where = machine("emulator")
    check(where, rng, 33, 64, 64, how)
    before = texts()
    for m, n, k in [(1, 1, 1), (130, 33, 130), (64, 200, 40)]:
        check(where, rng, m, n, k, how, orders=("row", "column", "row"))
        # widths of copies follow from sizes: rows of 33 elements are copied otherwise than rows of 64
    check(where, rng, 200, 136, 128, how)
    check(where, rng, 8, 256, 512, how)
    after = texts()
    check(where, rng, 72, 264, 320, how)
    assert texts() == after and len(after) - len(before) <= 4
