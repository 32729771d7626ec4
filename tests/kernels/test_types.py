"""gemm() of every type against numpy, from the same body on the emulator and on a GPU; integers are exact."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from ptxdsl import config, f16, f32, f64, s8, s32
from ptxdsl.kernels.call.products.options import GemmOptions
from ptxdsl.kernels.call.products.planner import GemmPlanner
from ptxdsl.kernels.call.products.problem import problem_of
from ptxdsl.kernels.candidates.facts import ProductFacts
from ptxdsl.kernels.candidates.sm80 import OF_BYTES, OF_WORDS
from ptxdsl.kernels.choose.products import ranked_by_warps
from ptxdsl.kernels.choose.rates import rates_of
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.gemm import gemm, gemm_kernel
from ptxdsl.kernels.product.operands import Operands, outputs
from tests.machines import MACHINES, NAMES, machine

ORDERS = ["row", "column"]
BOUNDARIES = [1, 7, 8, 15, 17, 31, 33, 63, 65]
OUTPUTS = {
    **dict.fromkeys(("f16", "bf16", "f32"), ("f16", "bf16", "f32")),
    **dict.fromkeys(("s8", "u8"), ("s32", "f32", "f16", "bf16")),
    "f64": ("f64",),
}
PAIRS = [(inputs, output) for inputs, outputs in OUTPUTS.items() for output in outputs]
# Of one rounding, relative: of an operand as the tensor cores read it, of a step of a sum, of an output.
READ = {"f32": 2.0**-11}  # by mma.sync, as small products are; of large ones by wgmma the cut errors cancel
SUMMED = {"f64": 2.0**-53, "s8": 0.0, "u8": 0.0}
WRITTEN = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53, "s32": 0.0}
WHOLE = ("s8", "u8", "s32")


@dataclass(frozen=True)
class Case:
    """One product: what it is made of, and how its matrices lie; `c_order` is that of out where it is not given."""

    sizes: tuple[int, int, int]
    inputs: str
    output: str
    orders: tuple[str, str, str] = ("row", "column", "row")
    alpha: float = 1
    beta: float = 0
    c_order: str = ""
    padding: tuple[int, int, int] = (0, 0, 0)
    in_place: bool = False


def numbers(rng, shape, name):
    """All values of 8 bits, integers up to a million, or N(0,1)."""
    if name in WHOLE:
        low, high = {"s8": (-128, 128), "u8": (0, 256), "s32": (-(10**6), 10**6)}[name]
        return rng.integers(low, high, shape).astype(NAMES[name])
    return rng.standard_normal(shape).astype(np.float32).astype(NAMES[name])


def matrix(rng, shape, order, name, padding=0):
    """Numbers in row- or column-major order, `padding` other elements between rows or columns."""
    rows, columns = shape if order == "row" else shape[::-1]
    view = numbers(rng, (rows, columns + padding), name)[:, :columns]
    return view if order == "row" else view.T


def check(where, rng, case):
    """Runs one product and holds every element against what exact arithmetic gives, within its rounding."""
    m, n, k = case.sizes
    a = matrix(rng, (m, k), case.orders[0], case.inputs, case.padding[0])
    b = matrix(rng, (k, n), case.orders[1], case.inputs, case.padding[1])
    order = case.orders[2]
    c = matrix(rng, (m, n), case.c_order or order, case.output, case.padding[2]) if case.beta else None
    out = c if case.in_place else matrix(rng, (m, n), order, case.output, case.padding[2])
    expected, allowed = exact(case, a, b, c)
    given = [None if v is None else where.array(v) for v in (a, b, c, out)]
    if case.in_place:
        given[3] = given[2]
    result = gemm(*given[:3], out=given[3], alpha=case.alpha, beta=case.beta)
    assert result is given[3]
    error = np.abs(where.values(result) - expected)
    assert error.shape == (m, n)
    assert np.all(error <= allowed), np.max(error - allowed)


def exact(case, a, b, c):
    """alpha·a@b + beta·c, and by how much each element may be off."""
    wide = np.int64 if case.inputs in WHOLE else np.float64
    x, y, z = a.astype(wide), b.astype(wide), 0 if c is None else c.astype(wide if case.output == "s32" else np.float64)
    expected = case.alpha * (x @ y) + case.beta * z
    if case.output == "s32":
        return expected.astype(np.int32).astype(np.float64), 0.0
    scale = abs(case.alpha) * (np.abs(x) @ np.abs(y)).astype(np.float64) + abs(case.beta) * np.abs(z)
    steps = case.sizes[2] / 16 + 4
    relative = 2 * READ.get(case.inputs, 0.0) + steps * SUMMED.get(case.inputs, 2.0**-22) + 3 * 2.0**-24
    if case.inputs == "f64":
        relative = case.sizes[2] * SUMMED["f64"]
    return expected, relative * scale + WRITTEN[case.output] * np.abs(expected) + 2.0**-24


def near(rng, count):
    return [tuple(int(v) for v in rng.choice(BOUNDARIES, 3)) for _ in range(count)]


every_machine = pytest.mark.parametrize("name", MACHINES)
every_input = pytest.mark.parametrize("inputs", ["f32", "f64", "s8", "u8"])
every_pair = pytest.mark.parametrize("inputs, output", PAIRS, ids=["-".join(pair) for pair in PAIRS])


@every_machine
@every_input
@pytest.mark.parametrize("orders", list(product(ORDERS, ORDERS, ORDERS)), ids="-".join)
def test_all_layouts_at_sizes_around_the_tiles(name, inputs, orders, rng):
    output = OUTPUTS[inputs][0] if inputs != "f32" else "f32"
    for sizes in near(rng, 1 if name == "emulator" else 8):
        check(machine(name), rng, Case(sizes, inputs, output, orders))


@pytest.mark.exhaustive
@every_machine
@every_pair
def test_every_output_with_alpha_beta_and_c(name, inputs, output, rng):
    alpha, beta = (-3, 2) if output == "s32" else (-0.0075, 1.5)
    (sizes,) = near(rng, 1)
    check(machine(name), rng, Case(sizes, inputs, output, alpha=alpha, beta=beta))
    check(machine(name), rng, Case(sizes, inputs, output, alpha=alpha, beta=beta, in_place=True))


@every_machine
@every_pair
@pytest.mark.parametrize("order", ORDERS)
def test_c_may_lie_otherwise_than_out(name, inputs, output, order, rng):
    other = ORDERS[order == "row"]
    alpha = 1 if output == "s32" else 0.0625  # sums of bytes, as float16 holds them
    orders = "row", "row", order
    case = Case((35, 21, 16), inputs, output, orders, alpha=alpha, beta=2, c_order=other, padding=(0, 0, 3))
    check(machine(name), rng, case)


@pytest.mark.exhaustive
@every_machine
@every_input
@pytest.mark.parametrize("padding", [(1, 2, 3), (4, 8, 1)], ids=str)
@pytest.mark.parametrize("orders", [("row", "column", "row"), ("column", "row", "column")], ids="-".join)
def test_rows_may_begin_at_any_element(name, inputs, padding, orders, rng):
    output = OUTPUTS[inputs][0] if inputs != "f32" else "f32"
    check(machine(name), rng, Case((33, 18, 40), inputs, output, orders, padding=padding, beta=2))


@every_machine
@every_input
def test_sizes_that_take_the_large_tiles(name, inputs, rng):
    if name == "emulator":
        pytest.skip("as many tiles take a GPU; smaller ones run in the other tests")
    output = OUTPUTS[inputs][0] if inputs != "f32" else "f32"
    for sizes in [(4096, 4096, 320), (2047, 2049, 129), (1, 5000, 777)]:
        check(machine(name), rng, Case(sizes, inputs, output))


@pytest.mark.exhaustive
@every_machine
def test_sums_of_integers_wrap(name):
    where = machine(name)
    a, b = np.full((3, 40_000), 255, np.uint8), np.full((40_000, 2), 255, np.uint8)
    b[:, 1] = 1
    wrapped = 255 * 255 * 40_000 - 2**32
    deep = GemmConfig(tile=(16, 16, 256), warp=(16, 16), stages=2)  # few iterations, of one warp
    assert (where.values(gemm(where.array(a), where.array(b), config=deep)) == [wrapped, 255 * 40_000]).all()
    scaled = gemm(where.array(a[:, :2]), where.array(b[:2]), alpha=-(10**6))
    assert (where.values(scaled) == [-(10**6) * 130_050 + 30 * 2**32, -510 * 10**6]).all()


@every_machine
def test_float32_is_rounded_to_tf32_half_way_cases_away_from_zero(name, rng):
    """Products with 1 show what the tensor cores read."""
    where = machine(name)
    x = rng.standard_normal((40, 1)).astype(np.float32)
    last = 2.0**-10
    ties = [1 + last / 2, -1 - last / 2, 1 + 3 * last / 2, 1 + 0.499 * last, 3e38, 2.0**-126]
    x[: len(ties), 0] = ties
    expected = ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    assert (where.values(gemm(where.array(x), where.array(np.ones((1, 1), np.float32)))) == expected).all()


@every_machine
def test_infinities_and_every_nan_stay_what_they_are(name):
    where = machine(name)
    bits = np.array([[0x7F800000], [0xFF800000], [0x7FFFFFFF], [0xFFFFFFFF], [0x7FC00000], [0x7FA00000]], np.uint32)
    given = where.array(bits.view(np.float32).copy())
    found = where.values(gemm(given, where.array(np.ones((1, 1), np.float32))))
    assert np.array_equal(found[:, 0], [np.inf, -np.inf, *[np.nan] * 4], equal_nan=True)


@pytest.mark.parametrize("orders", list(product(ORDERS, ORDERS)), ids="-".join)
def test_bytes_are_read_by_ldmatrix_however_they_lie(orders, rng):
    a, b = matrix(rng, (32, 32), orders[0], "s8"), matrix(rng, (32, 32), orders[1], "s8")
    made = GemmPlanner(problem_of(a, b, None, np.zeros((32, 32), np.int32), 0.0), GemmOptions()).traits()
    text = gemm_kernel.ptx(traits=made)
    trans = (orders[0] == "column") + (orders[1] == "row")
    assert bool(trans) == ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in text)
    assert (trans < 2) == ("ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text)
    assert "ld.shared.u8" not in text


@pytest.mark.parametrize("arch, mnemonic", [("sm_80", "m8n8k4"), ("sm_90", "m16n8k4"), ("sm_90a", "m16n8k4")])
def test_float64_takes_the_wide_instruction_where_there_is_one(arch, mnemonic, rng):
    case = Case((33, 18, 40), "f64", "f64", alpha=0.5, beta=-1.5)
    with config.using(arch=arch):
        check(machine("emulator"), rng, case)
        a = np.ones((8, 8))
        made = GemmPlanner(problem_of(a, a, None, a.copy(), 0.0), GemmOptions()).traits()
        assert f"mma.sync.aligned.{mnemonic}.row.col.f64" in gemm_kernel.ptx(traits=made)


def test_a_configuration_keeps_its_atom(rng):
    a = rng.standard_normal((40, 40))
    made = GemmConfig(tile=(32, 32, 32), warp=(16, 16), stages=2, atom="mma.m16n8k8.f64.f64")
    with config.using(arch="sm_90"):
        assert "m16n8k8" in gemm_kernel.ptx(
            traits=GemmPlanner(problem_of(a, a, None, a.copy(), 0.0), GemmOptions(made)).traits()
        )
        assert np.allclose(gemm(a, a, config=made), a @ a, rtol=0, atol=1e-13)


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_120"])
@pytest.mark.parametrize("inputs", [f16, f32, f64, s8], ids=str)
def test_what_is_chosen_fits_the_gpu(arch, inputs):
    for m, n, k in product([1, 100, 5000], repeat=3):
        operands = Operands(inputs, outputs(inputs)[0])
        for _, chosen in ranked_by_warps(ProductFacts(m, n, k, 1, operands), arch, rates_of()):
            chosen.traits(operands, arch).check(arch)


CHOSEN = [(f32, f32, config) for config in OF_WORDS[f32]]
CHOSEN += [(f64, f64, config) for config in OF_WORDS[f64]] + [(s8, s32, config) for config in OF_BYTES]
KERNELS = [
    pytest.param(config.traits(Operands(inputs, output, **lies), "sm_90"), id=f"{inputs}-{config.tile}-{lies}")
    for inputs, output, config in CHOSEN
    for lies in [{}, {"a_major": "mn", "b_major": "mn"}]
    if not lies or config is not OF_WORDS[f32][0]
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("traits", KERNELS)
def test_kernels_that_are_chosen_spill_nothing(traits):
    resources = gemm_kernel.resources(arch="sm_90a", traits=traits)
    assert resources.spill_store_bytes == resources.spill_load_bytes == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("inputs, output, config", [CHOSEN[-1], CHOSEN[1], (f64, f64, OF_WORDS[f64][0])], ids=str)
def test_nor_do_those_for_rows_that_begin_anywhere(inputs, output, config):
    width = inputs.bytes
    operands = Operands(inputs, output, a_bytes=width, b_bytes=width, out_bytes=output.bytes, c="separate")
    resources = gemm_kernel.resources(arch="sm_90a", traits=config.traits(operands, "sm_90"))
    assert resources.spill_store_bytes == resources.spill_load_bytes == 0
