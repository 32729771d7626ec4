"""Groups of rows whose sizes lie on the device, against numpy, on the emulator and on a GPU, from the same body."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import ptxdsl as pd
from ptxdsl import ptr, s32, u32
from ptxdsl.kernels.candidates.sm80 import GROUPED
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.grouped import grouped_gemm_masked, grouped_gemm_ragged
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.ragged import ragged_kernel
from ptxdsl.kernels.tiles.group_visitors import OffsetsVisitor
from ptxdsl.kernels.tiles.many import AHEAD
from tests.kernels.test_gemm import ROUNDING
from tests.machines import MACHINES, NAMES, machine

TINY = GemmConfig(tile=(16, 16, 32), warp=(16, 16))
SMALL = GemmConfig(tile=(64, 64, 32), warp=(32, 32), stages=3)
EXPERTS = [5, 5, 70, 70, 200, 201, 201, 300]  # three of eight have no rows


def normal(rng, shape, dtype):
    return rng.standard_normal(shape).astype(np.float32).astype(NAMES[dtype])


def weights(rng, groups, k, n, order, dtype):
    """(groups, K, N): its matrices are row-major, or column-major as weights of (N, K) are."""
    return normal(rng, (groups, k, n), dtype) if order == "row" else normal(rng, (groups, n, k), dtype).swapaxes(1, 2)


def near(found, x, y, dtype):
    x, y = x.astype(np.float64), y.astype(np.float64)
    allowed = (x.shape[-1] / 16 + 2) * 2.0**-22 * (np.abs(x) @ np.abs(y)) + ROUNDING[dtype] * np.abs(x @ y) + 1e-7
    return bool((np.abs(found - x @ y) <= allowed).all())


def check_ragged(where, rng, ends, rows, n, k, *, order="column", dtype="f16", a_order="row", **options):
    """Rows of no group are not written."""
    a = normal(rng, (rows, k), dtype) if a_order == "row" else normal(rng, (k, rows), dtype).T
    b = weights(rng, len(ends), k, n, order, dtype)
    out, offsets = np.full((rows, n), np.nan).astype(NAMES[dtype]), np.array(ends, np.int32)
    given = [where.array(x) for x in (a, b, offsets, out)]
    assert grouped_gemm_ragged(*given[:3], out=given[3], **options) is given[3]
    found, begin = where.values(given[3]), 0
    for group, end in enumerate(ends):
        assert near(found[begin:end], a[begin:end], b[group], dtype), (group, begin, end)
        begin = end
    assert np.isnan(found[begin:]).all()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("config", [None, SMALL, GROUPED[0]], ids=["chosen", "small", "large"])
@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("validate", [False, True])
def test_eight_experts_some_without_rows(name, config, order, validate, rng):
    check_ragged(machine(name), rng, EXPERTS, 310, 136, 72, order=order, config=config, validate=validate)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("a_order", ["row", "column"])
def test_types_and_orders(name, dtype, a_order, rng):
    check_ragged(machine(name), rng, [3, 3, 40], 41, 33, 65, order="row", dtype=dtype, a_order=a_order, config=SMALL)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_random_groups(name, rng):
    for _ in range(3 if name == "emulator" else 40):
        groups, rows = int(rng.integers(1, 80)), int(rng.integers(0, 400))
        ends = np.sort(rng.integers(0, rows + 1, groups)).tolist()
        n, k = (int(v) for v in rng.choice([0, 1, 8, 63, 64, 65, 130], 2))
        check_ragged(machine(name), rng, ends, rows, n, k, config=SMALL)


@pytest.mark.parametrize("name", MACHINES)
def test_no_groups_and_no_rows(name, rng):
    check_ragged(machine(name), rng, [], 5, 8, 8)
    check_ragged(machine(name), rng, [0, 0], 5, 8, 8)
    check_ragged(machine(name), rng, [0, 0], 0, 8, 8)


@pytest.mark.parametrize("name", MACHINES)
def test_offsets_out_of_range_are_taken_for_the_nearest(name, rng):
    where = machine(name)
    a, b = normal(rng, (20, 16), "f16"), normal(rng, (3, 16, 8), "f16")
    offsets, out = np.array([-4, 10, 99], np.int32), np.full((20, 8), np.nan, np.float16)
    given = [where.array(x) for x in (a, b, offsets, out)]
    found = where.values(grouped_gemm_ragged(*given[:3], out=given[3], config=SMALL))
    assert near(found[:10], a[:10], b[1], "f16") and near(found[10:], a[10:], b[2], "f16")


def ends_of(offsets, rows):
    """Where groups end: at the largest offset so far, from 0 up to the rows."""
    return np.minimum(np.maximum.accumulate(np.maximum(offsets, 0)), rows)


@pd.kernel
def dealt(offsets: ptr[s32], groups: u32, rows: u32, times: ptr[u32], owners: ptr[u32]):
    """How often each row is in a tile of 16, and of which group; a block is one warp."""
    visitor = OffsetsVisitor(offsets, groups, rows, (16, pd.cast(1, u32)))
    with pd.while_(visitor.next_tile):
        group, tile, first = visitor.work()
        row = first + tile * 16 + pd.laneid
        with pd.if_((pd.laneid < 16) & (row < visitor.size(group))):
            pd.ptx.atom.relaxed.gpu.global_.add.u32(times + row, 1)
            owners[row] = group
        visitor.advance()


ROWS = 60
ANY_OFFSET = st.integers(-3, ROWS + 3) | st.sampled_from([-(2**31), 2**31 - 1])
ANY_OFFSETS = st.lists(ANY_OFFSET, min_size=1, max_size=100)
FEW_STEPS = st.lists(st.tuples(ANY_OFFSET, st.integers(1, 40)), min_size=1, max_size=4)  # the same offset many times


@hypothesis.given(
    ANY_OFFSETS | FEW_STEPS.map(lambda steps: [x for x, times in steps for _ in range(times)]), st.integers(0, ROWS)
)
@hypothesis.example([40, 2, 60, 1], 50)
@hypothesis.example([7] * 32 + [5] * 32 + [9] + [3] * 40, ROWS)
@hypothesis.example([*range(ROWS), -1, *range(ROWS)], ROWS)
@hypothesis.settings(max_examples=60)
def test_no_row_is_of_two_groups(offsets, rows):
    times, owners = np.zeros(ROWS, np.uint32), np.full(ROWS, 999, np.uint32)
    dealt[3, 32](np.array(offsets, np.int32), len(offsets), rows, times, owners)
    ends = ends_of(offsets, rows)
    assert times.tolist() == [1] * ends[-1] + [0] * (ROWS - ends[-1])
    assert owners[: ends[-1]].tolist() == np.searchsorted(ends, np.arange(ends[-1]), "right").tolist()


@pytest.mark.parametrize("name", MACHINES)
def test_offsets_that_decrease(name, rng):
    """Whole products, with more groups than lanes, then more than two warps have."""
    for groups in (4, 40, 70):
        offsets = rng.integers(-20, 130, groups).astype(np.int32)
        if groups == 4:
            offsets[:] = 40, 2, 120, 1
        a, b = normal(rng, (100, 40), "f16"), normal(rng, (groups, 40, 24), "f16")
        out, where = np.full((100, 24), np.nan, np.float16), machine(name)
        given = [where.array(x) for x in (a, b, offsets, out)]
        found, begin = where.values(grouped_gemm_ragged(*given[:3], out=given[3], config=TINY)), 0
        for group, end in enumerate(ends_of(offsets, 100)):
            assert near(found[begin:end], a[begin:end], b[group], "f16"), (offsets.tolist(), group)
            begin = end
        assert np.isnan(found[begin:]).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("inputs", ["s8", "u8"])
@pytest.mark.parametrize("output", [None, "s32", "f32", "f16"])
def test_integers(name, inputs, output, rng):
    """Sums are exact, and so are they as float16: of few small numbers."""
    low, where = 0 if inputs == "u8" else -3, machine(name)
    a, b = (rng.integers(low, 4, shape).astype(NAMES[inputs]) for shape in ((3, 20, 40), (3, 40, 24)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    for call, rows, sizes in (
        (grouped_gemm_ragged, a.reshape(60, 40), [7, 7, 50]),
        (grouped_gemm_masked, a, [20, 0, 9]),
    ):
        given = [where.array(x) for x in (rows, b, np.array(sizes, np.int32))]
        out = where.array(np.zeros((*rows.shape[:-1], 24), NAMES[output])) if output else None
        found = call(*given, out=out)
        assert out is None or found is out
        assert output or str(found.dtype).endswith("int32")
        values = where.values(found)
        if call is grouped_gemm_masked:
            assert (values[0] == expected[0]).all() and (values[2, :9] == expected[2, :9]).all()
        else:
            flat = rows.astype(np.float64)
            assert (values[:7] == flat[:7] @ b[0]).all() and (values[7:50] == flat[7:50] @ b[2]).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MACHINES)
def test_float64(name, rng):
    where = machine(name)
    a, b = rng.standard_normal((2, 20, 40)), rng.standard_normal((2, 40, 24))
    bound = 1e-14 * (np.abs(a) @ np.abs(b))
    offsets, counts = (where.array(np.array(sizes, np.int32)) for sizes in ([20, 40], [20, 20]))
    ragged = grouped_gemm_ragged(where.array(a.reshape(40, 40)), where.array(b), offsets)
    masked = grouped_gemm_masked(where.array(a), where.array(b), counts)
    assert (np.abs(where.values(ragged).reshape(2, 20, 24) - a @ b) <= bound).all()
    assert (np.abs(where.values(masked) - a @ b) <= bound).all()


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("config", [None, SMALL], ids=["chosen", "small"])
def test_masked_rows_are_not_written(name, order, config, rng):
    where = machine(name)
    counts = np.array([0, 70, 3, 17, 70, 1, 0, 65], np.int32)
    a, b = normal(rng, (8, 70, 72), "bf16"), weights(rng, 8, 72, 40, order, "bf16")
    out = np.full((8, 70, 40), np.nan).astype(NAMES["bf16"])
    given = [where.array(x) for x in (a, b, counts, out)]
    found = where.values(grouped_gemm_masked(*given[:3], out=given[3], config=config))
    for group, count in enumerate(counts):
        assert near(found[group, :count], a[group, :count], b[group], "bf16")
        assert np.isnan(found[group, count:]).all()


def test_an_output_that_is_not_given_is_made(rng):
    a, b = normal(rng, (6, 8), "f16"), normal(rng, (2, 8, 4), "f16")
    made = grouped_gemm_ragged(a, b, np.array([2, 6], np.int32))
    assert made.shape == (6, 4) and near(made[:2], a[:2], b[0], "f16") and near(made[2:], a[2:], b[1], "f16")


@pytest.mark.exhaustive
@pytest.mark.parametrize("config", GROUPED, ids=lambda config: str(config.tile))
@pytest.mark.parametrize("b_major", ["k", "mn"])
def test_kernels_spill_nothing(config, b_major):
    for width in (8, 16):
        traits = config.traits(Operands(b_major=b_major, a_bytes=width, b_bytes=width))
        resources = ragged_kernel.resources(arch="sm_90", traits=replace(traits, schedule=AHEAD))
        assert resources.spill_store_bytes == resources.spill_load_bytes == 0


@pytest.mark.gpu
def test_a_graph_reads_the_offsets_when_it_is_replayed():
    torch = importlib.import_module("torch")
    a, b = torch.randn(64, 64).cuda().half(), torch.randn(2, 64, 64).cuda().half()
    out, offsets = torch.zeros(64, 64).cuda().half(), torch.tensor([10, 20], dtype=torch.int32).cuda()
    grouped_gemm_ragged(a, b, offsets, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        grouped_gemm_ragged(a, b, offsets, out=out)
    offsets.copy_(torch.tensor([0, 64]))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.allclose(out, a @ b[1], atol=0.1)


WRONG_OFFSETS = """
import torch
from ptxdsl.kernels.grouped import grouped_gemm_ragged
a, b = torch.ones(10, 8).cuda().half(), torch.ones(2, 8, 8).cuda().half()
grouped_gemm_ragged(a, b, torch.tensor([6, 5], dtype=torch.int32).cuda(), validate=True)
torch.cuda.synchronize()
"""


@pytest.mark.gpu
def test_a_gpu_stops_at_wrong_offsets_when_asked():
    """In a process of its own, whose context is lost."""
    done = subprocess.run([sys.executable, "-c", WRONG_OFFSETS], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "CUDA error" in done.stderr
