"""Blocks that share the K of a tile: split K, in turn and in parallel, and stream-K; what they leave behind."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import driver
from ptxdsl.kernels.call.launching import workspace
from ptxdsl.kernels.call.launching.memory import CALLS
from ptxdsl.kernels.call.products import scheduled
from ptxdsl.kernels.candidates.sm80 import LARGE
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add, per_column, per_row, relu, scale_rows_and_columns
from ptxdsl.kernels.gemm import gemm
from ptxdsl.schedule import (
    BatchedIdentityThreadblockSwizzle,
    PersistentScheduler,
    SplitKHorizontalThreadblockSwizzle,
    SplitKIdentityThreadblockSwizzle,
    StreamKThreadblockSwizzle,
)
from tests.kernels.test_gemm import matrix, poisoned
from tests.machines import MACHINES, machine

TINY = GemmConfig(tile=(32, 32, 32), warp=(16, 32), stages=2)
TINY_BYTES = GemmConfig(tile=(32, 32, 64), warp=(16, 32), stages=2)
TINY_F64 = GemmConfig(tile=(32, 32, 16), warp=(16, 16), stages=2)
WAYS = {
    "parallel": {"split_k": 3},
    "scatter": {"split_k": 3, "reduction": "scatter"},
    "serial": {"split_k": 3, "reduction": "serial"},
    "stream-k": {"schedule": StreamKThreadblockSwizzle(5)},
    "stream-k-reduction": {"schedule": StreamKThreadblockSwizzle(132, 2), "split_k": 3},
}
every_machine = pytest.mark.parametrize("name", MACHINES)
every_way = pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)


def integers(rng, shape, dtype=np.float16):
    """Small integers, whose sums are exact in whatever order."""
    return rng.integers(-3, 4, shape).astype(dtype)


def product(where, rng, m, n, k, how, **given):
    """Holds a product of small integers against numpy: it is exact. Returns A, B and the expected values."""
    a, b = integers(rng, (m, k)), integers(rng, (k, n))
    out = where.array(poisoned((m, n), "row", "f32"))
    gemm(where.array(a), where.array(b), out=out, **{"config": TINY, **how, **given})
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.array_equal(where.values(out), expected)
    return a, b, expected


@every_machine
@every_way
@pytest.mark.parametrize("k", [0, 1, 31, 32, 33, 64, 65, 96, 97, 129, 500])
def test_slices_may_be_empty(name, how, k, rng):
    product(machine(name), rng, 40, 50, k, how)


@every_machine
@pytest.mark.parametrize("reduction", ["serial", "parallel", "scatter"])
@pytest.mark.parametrize("slices", [1, 2, 7, 40])
def test_any_number_of_slices(name, reduction, slices, rng):
    product(machine(name), rng, 65, 33, 300, {"split_k": slices, "reduction": reduction})


@every_machine
@every_way
def test_epilogues_run_once_on_whole_sums(name, how, rng):
    where = machine(name)
    a, b, c = integers(rng, (40, 200)), integers(rng, (200, 50)), integers(rng, (40, 50))
    rows, columns = integers(rng, 40, np.float32), integers(rng, 50, np.float32)
    sums = a.astype(np.float64) @ b.astype(np.float64)
    cases = [
        ({"epilogue": relu}, np.maximum(sums, 0)),
        ({"epilogue": add, "operands": [where.array(c)]}, sums + c),
        (
            {"epilogue": scale_rows_and_columns, "operands": [per_row(where.array(rows)), per_column(where.array(columns))]},
            sums * rows[:, None] * columns,
        ),
        ({"c": where.array(c.astype(np.float32)), "beta": 2.0, "alpha": -0.5}, -0.5 * sums + 2.0 * c),
    ]  # fmt: skip
    for given, expected in cases:
        out = where.array(poisoned((40, 50), "row", "f32"))
        gemm(where.array(a), where.array(b), out=out, config=TINY, **how, **given)
        assert np.array_equal(where.values(out), expected)


@every_machine
@every_way
@pytest.mark.parametrize("order", ["row", "column"])
def test_c_may_be_the_output(name, how, order, rng):
    where = machine(name)
    a, b = integers(rng, (40, 200)), integers(rng, (200, 50))
    c = integers(rng, (40, 50), np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64) - c
    held = where.array(c if order == "row" else c.T.copy().T)
    gemm(where.array(a), where.array(b), held, out=held, beta=-1.0, config=TINY, **how)
    assert np.array_equal(where.values(held), expected)


TYPES = [
    (TINY, np.float16, "f16"),
    (TINY, np.float16, "bf16"),
    (TINY, np.float16, "f32"),
    (TINY_BYTES, np.int8, np.int32),
    (TINY_BYTES, np.int8, np.float32),
    (TINY_F64, np.float64, np.float64),
]


@every_machine
@every_way
@pytest.mark.parametrize("config, inputs, output", TYPES, ids=str)
def test_types(name, how, config, inputs, output, rng):
    where = machine(name)
    a, b = (rng.integers(-1, 2, shape).astype(inputs) for shape in ((40, 200), (200, 50)))
    made = poisoned((40, 50), "row", output) if isinstance(output, str) else np.full((40, 50), 99, output)
    out = where.array(made)
    gemm(where.array(a), where.array(b), out=out, config=config, **how)
    assert np.array_equal(where.values(out), a.astype(np.float64) @ b.astype(np.float64))


class Kept:
    """Notes the workspaces that launches are given."""

    def __init__(self, monkeypatch, machine_name):
        self.on_gpu, self.semaphores = machine_name == "gpu", []
        original = scheduled.workspace

        def noted(device, stream, type, elements, semaphores):
            made = original(device, stream, type, elements, semaphores)
            self.semaphores.append((made[1], semaphores))
            return made

        monkeypatch.setattr(scheduled, "workspace", noted)
        CALLS.clear()  # a planned launch asks for no workspace

    def values(self):
        """All semaphores as they are now."""
        if not self.on_gpu:
            return np.concatenate([array for array, _ in self.semaphores])
        driver.synchronize()
        found = []
        with driver.on(0):
            for address, count in self.semaphores:
                held = (ctypes.c_uint32 * count)()
                driver.call("reading semaphores", driver.cuda.cuMemcpyDtoH, ctypes.addressof(held), address, 4 * count)
                found.append(np.array(held))
        return np.concatenate(found)


@pytest.mark.exhaustive
@every_machine
@every_way
def test_semaphores_are_0_afterwards(name, how, rng, monkeypatch):
    kept = Kept(monkeypatch, name)
    for m, n, k in [(40, 50, 200), (97, 130, 64), (33, 1, 1), (200, 65, 999)]:
        product(machine(name), rng, m, n, k, how)
    assert kept.semaphores
    assert not kept.values().any()


@pytest.mark.gpu
def test_calls_that_follow_use_the_same_workspace(rng):
    where = machine("gpu")
    for _ in range(20):
        for how in WAYS.values():
            m, n, k = (int(v) for v in rng.integers(1, 280, 3))
            product(where, rng, m, n, k, how)


@pytest.mark.gpu
@pytest.mark.parametrize("how", [*WAYS.values(), {"schedule": PersistentScheduler()}], ids=[*WAYS, "persistent"])
def test_numpy_arrays_run_on_the_gpu_where_they_are_told_to(how, rng):
    with pd.config.using(device="cuda"):
        product(machine("emulator"), rng, 97, 70, 500, how)


@pytest.mark.gpu
@every_way
def test_streams_have_a_workspace_each(how, rng):
    where = machine("gpu")
    torch = where.torch
    a, b = where.array(integers(rng, (256, 2000))), where.array(integers(rng, (2000, 300)))
    streams = [torch.cuda.Stream() for _ in range(3)]
    outs = [[torch.full((256, 300), torch.nan, device="cuda") for _ in range(10)] for _ in streams]
    torch.cuda.synchronize()
    for number in range(10):
        for stream, made in zip(streams, outs, strict=True):
            with torch.cuda.stream(stream):
                gemm(a, b, out=made[number], config=TINY, **how)
    torch.cuda.synchronize()
    expected = where.values(a) @ where.values(b)
    assert all(np.array_equal(where.values(out), expected) for made in outs for out in made)


@pytest.mark.gpu
@every_way
def test_graphs_capture_it_after_one_call_of_each_kernel(how, rng):
    where = machine("gpu")
    torch = where.torch
    a, b = where.array(integers(rng, (140, 777))), where.array(integers(rng, (777, 150)))
    out = torch.full((140, 150), torch.nan, device="cuda")
    gemm(a, b, out=out, config=TINY, **how)
    gemm(a, b, out, out=out, beta=1.0, config=TINY, **how)
    out.fill_(torch.nan)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(a, b, out=out, config=TINY, **how)
        gemm(a, b, out, out=out, beta=1.0, config=TINY, **how)
    for _ in range(3):
        a.copy_(where.array(integers(rng, (140, 777))))
        out.fill_(torch.nan)
        graph.replay()
        assert np.array_equal(where.values(out), 2 * (where.values(a) @ where.values(b)))


@pytest.mark.gpu
@pytest.mark.parametrize("how", [{}, {"schedule": PersistentScheduler()}], ids=["plain", "persistent"])
def test_graphs_capture_batches(how, rng):
    where = machine("gpu")
    torch = where.torch
    a, b = where.array(integers(rng, (3, 140, 77))), where.array(integers(rng, (3, 77, 150)))
    out = torch.empty((3, 140, 150), device="cuda")
    given = [([*a], [*b], [*out]), (a, b, out)]
    for left, right, target in given:
        gemm(left, right, out=target, **how)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            gemm(left, right, out=target, **how)
        out.fill_(torch.nan)
        graph.replay()
        assert np.array_equal(where.values(out), where.values(a) @ where.values(b))


def test_a_workspace_grows_and_the_old_one_is_kept(monkeypatch):
    made = []
    monkeypatch.setattr(workspace, "_KEPT", {})
    monkeypatch.setattr(workspace, "_cleared", lambda bytes, stream: made.append(bytes) or len(made))
    monkeypatch.setattr(workspace.driver, "on", lambda device: workspace.while_captured())
    monkeypatch.setattr(workspace, "while_captured", lambda: __import__("contextlib").nullcontext())
    first = workspace.workspace(0, 7, pd.f32, 1000, 10)
    assert workspace.workspace(0, 7, pd.f32, 1 << 18, 10) == first
    larger = workspace.workspace(0, 7, pd.f32, (1 << 18) + 1, 10)
    assert larger[0] != first[0] and larger[1] == first[1]
    assert workspace.workspace(0, 8, pd.f32, 1, 1) != larger
    assert made == [1 << 20, 1 << 20, 1 << 21, 1 << 20, 1 << 20]


A, B = np.ones((40, 600), np.float16), np.ones((600, 40), np.float16)
REFUSED = {
    "persistent": (
        {"schedule": PersistentScheduler(), "split_k": 2},
        "GemmConfig: split_k is 2, and persistent blocks compute whole tiles; take StreamKThreadblockSwizzle, whose "
        "blocks share them",
        None,
    ),
    "batches": (
        {"schedule": BatchedIdentityThreadblockSwizzle(), "split_k": 2},
        "GemmConfig: split_k is 2, and z of the batched-identity grid is the batch; take "
        "SplitKIdentityThreadblockSwizzle, whose z is the slice of K",
        None,
    ),
    "no slices": ({"split_k": 0}, "GemmConfig: split_k is 0; it takes 1 or more blocks a tile", None),
    "half a slice": ({"split_k": 1.5}, "GemmConfig: split_k is 1.5; it takes an int", None),
    "a reduction that is none": (
        {"reduction": "tree"}, 'GemmConfig: reduction is \'tree\'; it takes "serial", "parallel", "scatter" or "cluster"', None,
    ),
    "a schedule that is none": (
        {"schedule": "stream-k"},
        "GemmConfig: schedule is 'stream-k'; it takes a threadblock swizzle of GEMM, a PersistentScheduler or a "
        "StreamKThreadblockSwizzle of ptxdsl.schedule",
        "it is an object: `from ptxdsl.schedule import StreamKThreadblockSwizzle`, "
        "schedule=StreamKThreadblockSwizzle()",
    ),
    "a list of schedules": (
        {"schedule": [SplitKIdentityThreadblockSwizzle(1)]},
        "schedule is [SplitKIdentityThreadblockSwizzle(n=1)]; it takes one schedule, a value of ptxdsl.schedule",
        "such as IdentityThreadblockSwizzle(8), PersistentScheduler() or StreamKThreadblockSwizzle()",
    ),
    "too many slices": (
        {"schedule": SplitKHorizontalThreadblockSwizzle(), "split_k": 65536},
        "split-k-horizontal: the grid has 65536 blocks along z, but the limit is 65535",
        "split K into fewer slices; for more batches, use BatchedIdentityThreadblockSwizzle",
    ),
    "more parts than blocks run": (
        {"schedule": StreamKThreadblockSwizzle(4), "split_k": 3},
        "stream-k: 12 blocks would wait for each other's parts, but only 4 can be resident (4 multiprocessors, 1 blocks on "
        "each)",
        "leave split_k out, split K into fewer than 3 parts, or use SplitKIdentityThreadblockSwizzle, whose blocks wait only for blocks "
        "that started before them",
    ),
}  # fmt: skip


@pytest.mark.parametrize("given, message, help", REFUSED.values(), ids=REFUSED)
def test_refused(given, message, help):
    out = np.full((40, 40), 7, np.float16)
    with pytest.raises(pd.Error) as refused:
        gemm(A, B, out=out, config=TINY, **given)
    assert (refused.value.message, refused.value.help) == (message, help)
    assert (out == 7).all()


def test_more_blocks_than_are_resident_are_refused(monkeypatch):
    monkeypatch.setattr(scheduled, "resident_blocks", lambda kernel, config, device: 3)
    with pytest.raises(pd.Error) as refused:
        gemm(np.ones((64, 2000), np.float16), np.ones((2000, 64), np.float16), config=TINY, **WAYS["stream-k"])
    assert refused.value.message == (
        "stream-k: 5 blocks would wait for each other's parts, and 3 of this kernel can be resident on the GPU"
    )
    assert refused.value.help == (
        "make it for this GPU: StreamKThreadblockSwizzle(multiprocessors=…, occupancy=…); fewer registers or less "
        "shared memory a block let more of them run at the same time"
    )


@pytest.mark.exhaustive
def test_what_split_k_says_goes_before_the_configuration(monkeypatch):
    seen = []
    original = scheduled.schedule
    monkeypatch.setattr(
        scheduled, "schedule", lambda p, traits, kernel: seen.append(traits.schedule) or original(p, traits, kernel)
    )
    config = GemmConfig(tile=(32, 32, 32), warp=(16, 32), stages=2, split_k=4, reduction="serial")
    for given in ({}, {"split_k": 2}, {"reduction": "parallel"}, {"schedule": SplitKHorizontalThreadblockSwizzle()}):
        gemm(A, B, config=config, **given)
    found = [(s.slices, s.reduction, s.order.name) for s in seen]
    assert found == [
        (4, "serial", "grouped-rows"),
        (2, "serial", "grouped-rows"),
        (4, "parallel", "grouped-rows"),
        (4, "serial", "split-k-horizontal"),
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", ["row", "column"])
def test_matrices_of_any_order(order, rng):
    a, b = matrix(rng, (40, 300), order, "f16"), matrix(rng, (300, 50), order, "f16")
    whole = gemm(a, b, out=poisoned((40, 50), order, "f32"), config=TINY)
    for how in WAYS.values():
        found = gemm(a, b, out=poisoned((40, 50), order, "f32"), config=TINY, **how)
        assert np.allclose(found, whole, rtol=1e-5, atol=1e-4)


@pytest.mark.gpu
def test_a_plan_for_more_blocks_than_the_driver_holds_is_refused():
    """Blocks of this size are alone on a multiprocessor, whatever the schedule says."""
    where = machine("gpu")
    a, b = where.array(np.ones((1280, 512), np.float16)), where.array(np.ones((512, 2560), np.float16))
    present = driver.device(0).multiprocessors
    with pytest.raises(pd.Error) as refused:
        gemm(a, b, config=LARGE, schedule=StreamKThreadblockSwizzle(present, 2), split_k=2)
    assert refused.value.message == (
        f"stream-k: 200 blocks would wait for each other's parts, and {present} of this kernel can be resident on the GPU"
    )
