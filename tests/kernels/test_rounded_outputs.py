"""Outputs of 8-bit floats of float16 and bfloat16 matrices, on the sm_90a path: rounded once, and finite.

Sums of small integers are exact, so that only the last step rounds.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.kernels.call.products import plan as call
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import add_relu, per_column
from ptxdsl.kernels.gemm import KERNELS, gemm, warpgroup_gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.kernels.reorder.rows import rows_kernel
from ptxdsl.kernels.sm90.stages import stages_of
from ptxdsl.kernels.sm90.tiling import WarpgroupTiling
from ptxdsl.kernels.sm90.traits import WarpgroupTraits
from ptxdsl.kernels.tiles.persistent import Strips
from ptxdsl.schedule import StreamKThreadblockSwizzle
from ptxdsl.types import TYPES
from tests.kernels.placed import zeros
from tests.kernels.spills import check_no_spill
from tests.kernels.test_schedules import few_blocks
from tests.machines import MACHINES, NAMES, machine

__all__ = ["few_blocks"]  # a fixture for all tests here
every_machine = pytest.mark.parametrize("name", MACHINES)
PAIRS = [(inputs, output) for inputs in ("f16", "bf16") for output in ("e4m3", "e5m2")]
every_pair = pytest.mark.parametrize(("inputs", "output"), PAIRS, ids=map("-".join, PAIRS))
SIZES = ((1, 1, 1), (33, 47, 65), (130, 72, 144), (17, 256, 64))


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")


def tiles(m=64, n=64, **more):
    return GemmConfig(tile=(m, n, 64), **{"stages": 3, "atom": "wgmma", **more})


def integers(rng, shape, inputs, order="C", padding=0):
    lines, length = shape if order == "C" else shape[::-1]
    view = rng.integers(-5, 6, (lines, length + padding)).astype(NAMES[inputs])[:, :length]
    return view if order == "C" else view.T


def rounded(values, output):
    """To the nearest, ties to even, and to the largest finite number where that is less."""
    most = float(ml_dtypes.finfo(NAMES[output]).max)
    return np.clip(values, -most, most).astype(np.float32).astype(NAMES[output]).astype(np.float64)


def exact(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def poisoned(shape, output, order="C"):
    return np.full(shape, np.nan, NAMES[output], order)


@every_machine
@every_pair
@pytest.mark.parametrize("layout", ["CCC", "CFC", "FCC", "CCF"])
def test_sums_are_rounded_once(name, inputs, output, layout, rng):
    """Of any layout, lines and sizes; sums reach beyond the largest number."""
    where = machine(name)
    for m, n, k in SIZES:
        a, b = integers(rng, (m, k), inputs, layout[0], 1), integers(rng, (k, n), inputs, layout[1], 3)
        a *= NAMES[inputs].type(8)
        out = where.array(poisoned((m, n), output, layout[2]))
        result = where.values(gemm(where.array(a), where.array(b), out=out, alpha=0.5))
        assert np.array_equal(result, rounded(exact(a, b) / 2, output))


@every_machine
@pytest.mark.parametrize("how", [
    {"config": tiles(pingpong=True)}, {"config": tiles(128, stagger=2)}, {"config": tiles(swap_ab=True)},
    {"split_k": 2, "reduction": "parallel"}, {"split_k": 2, "reduction": "cluster"}, {"split_k": 2, "reduction": "serial"},
    {"schedule": StreamKThreadblockSwizzle()}, {"schedule": Strips()},
], ids=["turns", "staggered", "swapped", "parallel", "cluster", "serial", "stream-k", "strips"])  # fmt: skip
def test_schedules_and_an_epilogue(name, how, few_blocks, rng):
    where, (m, n, k) = machine(name), (130, 96, 256)
    a, b = integers(rng, (m, k), "bf16"), integers(rng, (k, n), "bf16", "F")
    bias = rng.integers(-30, 30, n).astype(np.float32)
    fused = {"epilogue": add_relu, "operands": [per_column(where.array(bias))]}
    result = gemm(where.array(a), where.array(b), out=where.array(poisoned((m, n), "e4m3")), **fused, **how)
    assert np.array_equal(where.values(result), rounded(np.maximum(exact(a, b) + bias, 0), "e4m3"))


@every_machine
@pytest.mark.parametrize(
    "inputs, output, added", [("f16", "e4m3", "f16"), ("bf16", "e5m2", "f32"), ("e4m3", "e4m3", "bf16")]
)
@pytest.mark.parametrize("shape", [(70, 48, 64), (33, 37, 65)])
@pytest.mark.parametrize("order, added_order", ["CC", "FF", "CF"])
def test_c_of_more_bits(name, inputs, output, added, shape, order, added_order, rng):
    """Once it is not read."""
    where, (m, n, k) = machine(name), shape
    a, b, c = (
        integers(rng, (m, k), inputs),
        integers(rng, (k, n), inputs, "F"),
        integers(rng, (m, n), added, added_order, 1),
    )
    for alpha, beta in ((0.5, -2.0), (1.0, 0.0)):
        out = where.array(poisoned((m, n), output, order))
        result = gemm(where.array(a), where.array(b), where.array(c), out=out, alpha=alpha, beta=beta)
        expected = alpha * exact(a, b) + beta * c.astype(np.float64)
        assert np.array_equal(where.values(result), rounded(expected, output))


@every_machine
@pytest.mark.parametrize("how", [
    {"config": tiles(pingpong=True)}, {"config": tiles(128, stagger=2)}, {"config": tiles(swap_ab=True)},
    {"split_k": 2, "reduction": "scatter"}, {"split_k": 2, "reduction": "cluster"}, {"schedule": StreamKThreadblockSwizzle()},
], ids=["turns", "staggered", "swapped", "scatter", "cluster", "stream-k"])  # fmt: skip
def test_schedules_with_c(name, how, few_blocks, rng):
    where, (m, n, k) = machine(name), (130, 96, 256)
    a, b = integers(rng, (m, k), "bf16"), integers(rng, (k, n), "bf16", "F")
    c = rng.integers(-30, 30, (m, n)).astype(np.float32)
    out = where.array(poisoned((m, n), "e4m3"))
    result = gemm(*map(where.array, (a, b, c)), out=out, beta=0.5, **how)
    assert np.array_equal(where.values(result), rounded(exact(a, b) + 0.5 * c, "e4m3"))


def test_types_of_c_that_no_kernel_reads():
    for output, added in (("f16", "f32"), ("e4m3", "s32")):
        with pytest.raises(pd.LaunchError) as caught:
            Operands(TYPES["f16"], TYPES[output], c="separate", c_type=TYPES[added])
        assert caught.value.message == (
            f"Operands: c_type is {TYPES[added]!r}; beside outputs of 8 bits it takes f16, bf16 or f32, else None"
        )


@every_machine
def test_batches(name, rng):
    where = machine(name)
    a, b = (rng.integers(-5, 6, shape).astype(np.float16) for shape in ((3, 33, 64), (3, 64, 40)))
    result = gemm(where.array(a), where.array(b), out=where.array(poisoned((3, 33, 40), "e5m2")))
    assert np.array_equal(where.values(result), rounded(exact(a, b), "e5m2"))


@every_machine
def test_nan_stays_nan_and_infinity_becomes_the_largest_number(name):
    where = machine(name)
    a, b = np.full((3, 16), np.nan, np.float16), np.ones((16, 16), np.float16)
    a[1:] = 1
    a[1, 0] = np.inf
    result = where.values(gemm(where.array(a), where.array(b), out=where.array(np.zeros((3, 16), NAMES["e4m3"]))))
    assert np.isnan(result[0]).all()
    assert (result[1] == 448).all() and (result[2] == 16).all()


@pytest.mark.exhaustive
@every_pair
def test_kernels_that_are_chosen_spill_nothing(inputs, output):
    tile = (128, 256, 64)
    operands = Operands(TYPES[inputs], TYPES[output])
    check_no_spill(
        warpgroup_gemm_kernel, WarpgroupTraits(WarpgroupTiling(tile, stages_of(tile, operands)), operands, Strips())
    )


def test_lines_that_no_map_takes_are_copied_whatever_the_size():
    a, b, out = zeros(40, 33, np.float16), zeros(48, 40, np.float16), np.zeros((40, 48), NAMES["e4m3"])
    plan = call.plan_of(KERNELS, problem_of(a, b.T[:33], None, out, 0.0).row_major, GemmOptions(), (1.0, 0.0))
    assert [each.kernel for each in plan.before] == [rows_kernel]
    assert isinstance(plan.constants["traits"], WarpgroupTraits)


A, OUT = np.ones((64, 64), np.float16), np.full((64, 64), 7, NAMES["e4m3"])
REFUSED = {
    "tiles of warps": (
        lambda: gemm(A, A, out=OUT, config=GemmConfig()),
        'GemmConfig: the tiles are those of mma.sync, whose path does not round to e4m3; with atom="wgmma" sm_90a does',
        None,
    ),
    "c": (
        lambda: gemm(A, A, OUT, out=OUT, beta=1.0),
        "`c` is float8_e4m3fn; C must have 16 bits or more",
        "convert it to float16, bfloat16 or float32; `out` may be of 8 bits",
    ),
    "float32": (
        lambda: gemm(A.astype(np.float32), A.astype(np.float32), out=OUT),
        "`out` is float8_e4m3fn; for float32 inputs gemm writes float32, float16 or bfloat16",
        "pass one of these, and convert it afterwards",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which):
    refused, message, help = REFUSED[which]
    with pytest.raises(pd.LaunchError) as caught:
        refused()
    assert (caught.value.message, caught.value.help) == (message, help)
    assert (OUT == 7).all()


def test_other_gpus(monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_89")
    with pytest.raises(pd.LaunchError) as caught:
        gemm(A, A, out=OUT)
    assert caught.value.message == "`out` is float8_e4m3fn, to which gemm rounds on sm_90a; the kernel is for sm_89"
    assert caught.value.help == ("convert a float16 `out` afterwards; on the emulator, set PTXDSL_ARCH=sm_90a")
    assert (OUT == 7).all()
