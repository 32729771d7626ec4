"""mma, ldmatrix and stmatrix, against their matrices: the layouts of CuTe, and what an H200 computes."""

import json
from pathlib import Path

import numpy as np
import pytest

from ptxdsl.isa import lookup

from .fake_step import FakeStep, execute
from .refusals import refusal
from .warp_cases import BYTES, CASES, recorded

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "cute_tiled_copy_mma.json").read_text())
ATOMS = {entry["name"]: entry for entry in VECTORS if entry["kind"] in ("mma_atom", "copy_atom")}
WARPS = 3
rng = np.random.default_rng(41)


def fragment(matrix: np.ndarray, places: list, registers: int) -> np.ndarray:
    """Registers (n, warps, 32) of matrices (warps, rows, columns), by CuTe's (lane, value) -> (row, column)."""
    row, column = np.moveaxis(np.array(places), -1, 0)
    values = np.ascontiguousarray(matrix[:, row, column])  # (warps, lanes, values)
    width = values.shape[2] * values.itemsize // registers
    return np.ascontiguousarray(np.moveaxis(values.view(f"u{width}"), -1, 0))


def product(name: str, text: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """d of one mma a warp as fragments (n, warps, 32), for matrices a (m, k), b (n, k) and c (m, n)."""
    atom, i = ATOMS[name], lookup(text)[0]
    counts = [o.count for o in i.operands]
    layouts = (atom["A_thread_value_to_mk"], atom["B_thread_value_to_nk"], atom["C_thread_value_to_mn"])
    fragments = [fragment(x, p, n) for x, p, n in zip((a, b, c), layouts, counts[1:], strict=True)]
    typed = [f.view(o.type.dtype) for f, o in zip(fragments, i.operands[1:], strict=True)]
    return execute(text, FakeStep((WARPS, 32)), *typed)


@pytest.mark.parametrize("sums", ["f32", "f16"])
def test_f16_products_follow_the_layouts_of_cute(sums):
    name, text = "SM80_16x8x16_F32F16F16F32_TN", f"mma.sync.aligned.m16n8k16.row.col.{sums}.f16.f16.{sums}"
    a, b = rng.normal(size=(WARPS, 16, 16)).astype(np.float16), rng.normal(size=(WARPS, 8, 16)).astype(np.float16)
    c = rng.normal(size=(WARPS, 16, 8)).astype(np.float32 if sums == "f32" else np.float16)
    exact = a.astype(float) @ b.astype(float).swapaxes(1, 2) + c
    expected = fragment(exact.astype(c.dtype), ATOMS[name]["C_thread_value_to_mn"], 4 if sums == "f32" else 2)
    np.testing.assert_array_equal(product(name, text, a, b, c).view(np.uint32), expected)


@pytest.mark.parametrize("clamp", ["", ".satfinite"])
def test_s8_products_follow_the_layouts_of_cute(clamp):
    name, text = "SM80_16x8x32_S32S8S8S32_TN", f"mma.sync.aligned.m16n8k32.row.col{clamp}.s32.s8.s8.s32"
    a, b = (
        rng.integers(-128, 128, (WARPS, 16, 32)).astype(np.int8),
        rng.integers(-128, 128, (WARPS, 8, 32)).astype(np.int8),
    )
    c = rng.choice(np.array([0, 2**31 - 5, -(2**31)]), (WARPS, 16, 8)).astype(np.int32)
    exact = a.astype(np.int64) @ b.astype(np.int64).swapaxes(1, 2) + c
    total = (np.clip(exact, -(2**31), 2**31 - 1) if clamp else exact).astype(np.int32)
    expected = fragment(total, ATOMS[name]["C_thread_value_to_mn"], 4)
    np.testing.assert_array_equal(product(name, text, a, b, c).view(np.uint32), expected)


MMA_CASES = [case for case in CASES if case.name.startswith("mma")]
EXACT = [case for case in MMA_CASES if "special" not in case.name]


def computed(case) -> np.ndarray:
    i = lookup(case.body.split()[0])[0]
    arrays, inputs = case.arrays(), []
    for operand in i.operands[1:]:
        taken, arrays = arrays[: operand.count], arrays[operand.count :]
        inputs.append(np.stack([x.view(operand.type.dtype) for x in taken])[:, np.newaxis])
    return np.ascontiguousarray(execute(i.text, FakeStep((1, 32)), *inputs))


@pytest.mark.parametrize("case", EXACT, ids=lambda case: case.name)
def test_mma_computes_what_an_h200_computes(case):
    """Small whole numbers, integers, and f64 with all its roundings: bit for bit."""
    got = computed(case).view(f"u{BYTES[case.outputs[0]]}").reshape(-1)
    np.testing.assert_array_equal(got, np.frombuffer(recorded()[case.name], got.dtype))


@pytest.mark.parametrize("case", [c for c in MMA_CASES if "special" in c.name], ids=lambda case: case.name)
def test_infinities_nans_and_subnormals(case):
    """As an H200 has them, but for what a tensor core drops of numbers of very different size."""
    kind = np.float32 if case.outputs[0] == "f32" else np.float16
    got = computed(case).view(kind).reshape(-1)
    expected = np.frombuffer(recorded()[case.name], kind)
    same = got.view(f"u{got.itemsize}") == expected.view(f"u{got.itemsize}")
    assert same[~np.isfinite(expected)].all()
    np.testing.assert_allclose(got[~same], expected[~same], rtol=2e-3)


@pytest.mark.parametrize(("name", "blocks", "steps"), [("m8n8k128", 1, 1), ("m16n8k128", 2, 1), ("m16n8k256", 2, 2)])
@pytest.mark.parametrize(("compare", "ufunc"), [("and", np.bitwise_and), ("xor", np.bitwise_xor)])
def test_single_bits_are_compared_and_counted(name, blocks, steps, compare, ufunc):
    a = rng.integers(0, 1 << 32, (steps, blocks, 8, 4), np.uint32)  # registers along k and m, lanes as (row, word)
    b = rng.integers(0, 1 << 32, (steps, 8, 4), np.uint32)
    c = rng.integers(-9, 9, (blocks, 8, 4, 2)).astype(np.int32)
    counts = np.bitwise_count(ufunc(a[:, :, :, np.newaxis], b[:, np.newaxis, np.newaxis])).sum((0, 4), dtype=np.int32)
    inputs = (x.reshape(-1, 1, 32) for x in (a, b, np.ascontiguousarray(np.moveaxis(c, -1, 1))))
    d = execute(f"mma.sync.aligned.{name}.row.col.s32.b1.b1.s32.{compare}.popc", FakeStep((1, 32)), *inputs)
    expected = counts.reshape(blocks, 8, 4, 2) + c  # (block, row, column / 2, column % 2)
    np.testing.assert_array_equal(d.reshape(blocks, 2, 8, 4), np.moveaxis(expected, -1, 1))


F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def fragments(distinct: int, registers: int) -> np.ndarray:
    """Random f16 pairs, (registers, distinct, warps, 32)."""
    return rng.normal(size=(registers, distinct, WARPS, 64)).astype(np.float16).view(np.uint32)


@pytest.mark.parametrize("index", [
    (np.repeat(np.arange(4), 8), np.tile(np.arange(8), 4)),
    (np.tile(np.arange(4), 8), np.repeat(np.arange(8), 4)),
    (np.array([3, 1, 2, 0, 1]), np.array([0, 7, 7, 2, 7])),
    (np.array([0, 0]), np.array([1, 1])),
], ids=["by rows", "by columns", "some", "twice the same"])  # fmt: skip
def test_a_batch_is_one_after_the_other(index):
    i = lookup(F16)[0]
    a, b = fragments(4, 4), fragments(8, 2)
    c = rng.normal(size=(4, 5, WARPS, 32)).astype(np.float32)
    index = (*index, np.arange(len(index[0])) % 5)
    together = i.op.execute_batch(i, FakeStep((len(index[0]), WARPS, 32)), [a, b, c], index)
    for n, (x, y, z) in enumerate(zip(*index, strict=True)):
        alone = execute(F16, FakeStep((WARPS, 32)), a[:, x], b[:, y], c[:, z])
        np.testing.assert_array_equal(together[:, n], alone)


def test_many_warps_are_computed_in_pieces():
    warps = 700
    a, b = (rng.normal(size=(n, warps, 64)).astype(np.float16).view(np.uint32) for n in (4, 2))
    c = np.zeros((4, warps, 32), np.float32)
    together = execute(F16, FakeStep((warps, 32)), a, b, c)
    parts = [execute(F16, FakeStep((1, 32)), a[:, w : w + 1], b[:, w : w + 1], c[:, :1]) for w in (0, 511, 512, 699)]
    np.testing.assert_array_equal(together[:, [0, 511, 512, 699]], np.concatenate(parts, axis=1))


def words(copy: dict, side: str) -> np.ndarray:
    """The 16-bit element of the tile that each lane has at each place, (lanes, elements), by CuTe."""
    (lanes, values), (lane_step, value_step) = copy[side]["shape"], copy[side]["stride"]
    places = [[_crd(n, lanes, lane_step) + _crd(v, values, value_step) for v in range(8)] for n in range(32)]
    return np.array(places)


def _crd(index: int, shape, stride) -> int:
    """A CuTe layout applied to an index."""
    if isinstance(shape, int):
        return index * stride
    total = 0
    for extent, step in zip(shape, stride, strict=True):
        total += index % extent * step
        index //= extent
    return total


@pytest.mark.parametrize(("atom", "trans"), [("SM75_U32x4_LDSM_N", ""), ("SM75_U16x8_LDSM_T", ".trans")])
def test_ldmatrix_follows_cute(atom, trans):
    memory = rng.integers(0, 1 << 16, WARPS * 32 * 8, np.uint16)
    rows = rng.permutation(WARPS * 32).reshape(WARPS, 32)
    m = FakeStep((WARPS, 32), shared=memory.view(np.uint8))
    d = execute(f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16", m, rows.astype(np.uint64) * np.uint64(16))
    given, taken = words(ATOMS[atom], "val_src"), words(ATOMS[atom], "val_dst")
    for warp in range(WARPS):
        tile = np.empty(256, np.uint16)
        tile[given] = memory.reshape(-1, 8)[rows[warp]]
        got = np.ascontiguousarray(d[:, warp].T).view(np.uint16)  # (lanes, 8)
        np.testing.assert_array_equal(got, tile[taken])


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix_reads_what_stmatrix_wrote(count, trans):
    a = rng.integers(0, 1 << 32, (count, WARPS, 32), np.uint32)
    rows = rng.permutation(WARPS * 32).reshape(WARPS, 32).astype(np.uint64) * np.uint64(16)
    m = FakeStep((WARPS, 32), shared=np.zeros(WARPS * 512, np.uint8))
    execute(f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16", m, rows, a)
    np.testing.assert_array_equal(execute(f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16", m, rows), a)
    other = "" if trans else ".trans"
    turned = execute(f"ldmatrix.sync.aligned.m8n8.x{count}{other}.shared.b16", m, rows)
    moved = [execute("movmatrix.sync.aligned.m8n8.trans.b16", m, matrix) for matrix in a]
    np.testing.assert_array_equal(turned, np.stack(moved))


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_a_batch_of_ldmatrix(trans):
    memory = rng.integers(0, 256, WARPS * 512, np.uint8)
    text = f"ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16"
    address = rng.integers(0, WARPS * 32, (5, WARPS, 32)).astype(np.uint64) * np.uint64(16)
    together = execute(text, FakeStep((5, WARPS, 32), shared=memory), address)
    for n in range(5):
        alone = execute(text, FakeStep((WARPS, 32), shared=memory), address[n])
        np.testing.assert_array_equal(together[:, n], alone)


def test_only_the_first_lanes_give_addresses():
    m = FakeStep((1, 32), shared=np.zeros(128, np.uint8))
    wild = np.full((1, 32), 1 << 40, np.uint64)
    wild[:, :8] = np.arange(8) * 16
    assert not execute("ldmatrix.sync.aligned.m8n8.x1.shared.b16", m, wild).any()


@pytest.mark.parametrize(("instruction", "message"), [
    (
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [table];",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16: `address` is `table` in .global; this instruction takes an address"
        " in .shared",
    ),
    (
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1}, [tile];",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16: `d` has 2 registers; this form takes 4",
    ),
    (
        "ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%r0, %r1, %r2, %r3}, [tile+8];",
        "ldmatrix.sync.aligned.x4.m8n8.shared.b16: `address` is 8 bytes past an aligned address; this access requires"
        " multiples of 16",
    ),
    (
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%h0, %h1}, [tile];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16: `d` is a b16 register; this form takes a 32-bit register",
    ),
    (
        "stmatrix.sync.aligned.m8n8.x2.shared.b16 [tile], {%r0};",
        "stmatrix.sync.aligned.m8n8.x2.shared.b16: `a` has 1 register; this form takes 2",
    ),
    (
        "movmatrix.sync.aligned.m8n8.trans.b16 %r0, 65;",
        "movmatrix.sync.aligned.m8n8.trans.b16: `a` is the constant 65; movmatrix takes a register\n"
        "  help: move it to a register first",
    ),
    (
        f"{F16} {{%f0, %f1, %f2, %f3}}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}}, {{%f0, %f1}};",
        f"{F16}: `c` has 2 registers; this form takes 4",
    ),
    (
        f"{F16} {{%f0, %f1, %f2, %f3}}, {{%f0, %f1, %f2, %f3}}, {{%r4, %r5}}, {{%f0, %f1, %f2, %f3}};",
        f"{F16}: `a` is an f32 register; this form takes an f16x2 register",
    ),
    (
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, %r4, {%f0, %f1, %f2, %f3};",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32: `b` is not in braces; mma takes its registers as a list,"
        " even a single one\n  help: write [b] in Python, {b} in PTX",
    ),
])  # fmt: skip
def test_refusals(instruction, message):
    assert refusal(instruction) == message


@pytest.mark.parametrize("text", [
    "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32", "mma.sync.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", "ldmatrix.sync.aligned.m8n8.x3.shared.b16",
])  # fmt: skip
def test_forms_that_do_not_exist(text):
    assert lookup(text) == ()
