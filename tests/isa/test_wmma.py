"""wmma: products of all sizes, types and layouts against numpy, and which lane holds which element."""

import re

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl.errors import EmulationError, VerifyError
from ptxdsl.isa.wmma import PRODUCTS, Size, fragment
from ptxdsl.types import TYPES

NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "tf32": np.float32, "s32": np.int32, "s8": np.int8,
         "u8": np.uint8, "bf16": np.uint16}  # fmt: skip
REGISTERS = {"f16": "b32", "bf16": "b32", "s8": "b32", "u8": "b32", "s4": "b32", "u4": "b32", "b1": "b32",
             "tf32": "b32", "f32": "f32", "f64": "f64", "s32": "s32"}  # fmt: skip


def registers(name, type, use, shape):
    """The declaration of a fragment, and its list in braces."""
    count = fragment(use, shape, TYPES[type]).registers
    return f".reg .{REGISTERS[type]} {name}<{count}>;", "{" + ", ".join(f"{name}{n}" for n in range(count)) + "}"


def program(shape, inputs, old, new, layouts=("row", "col", "row", "row"), space="", flag="", rest=""):
    """A kernel that multiplies one pair of matrices."""
    names = dict(zip("abcd", (inputs, inputs, old, new), strict=True))
    uses = {use: registers(use, names[use], "c" if use == "d" else use, shape) for use in names}
    types = f"{new}.{old}" if inputs == "f16" else f"{new}.{inputs}.{inputs}.{old}"
    loads = "\n".join(
        f"wmma.load.{use}.sync.aligned.{layout}.{shape}{space}.{names[use]} {uses[use][1]}, [p{n}];"
        for n, (use, layout) in enumerate(zip("abc", layouts, strict=False))
    )
    lists = ", ".join(uses[use][1] for use in "dabc")
    pointers = "\n".join(f"ld.param.u64 p{n}, [q{n}];" for n in range(4))
    return f"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 q0, .param .u64 q1, .param .u64 q2, .param .u64 q3) {{
.reg .b64 p<4>; {" ".join(declared for declared, _ in uses.values())}
{pointers}
{loads}
wmma.mma{flag}.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{types}{rest} {lists};
wmma.store.d.sync.aligned.{layouts[3]}.{shape}{space}.{new} [p3], {uses["d"][1]};
ret;
}}"""


def by(layout, matrix):
    """A matrix as it lies in memory."""
    return np.ascontiguousarray(matrix if layout == "row" else matrix.T)


def matrices(type, rows, columns, seed):
    """Small whole numbers, of which all sums are exact: as they are stored, and as f64."""
    random = np.random.default_rng(seed)
    numbers = random.integers(0 if type.startswith("u") else -3, 4, (rows, columns))
    if type == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), numbers.astype(float)
    return numbers.astype(NUMPY[type]), numbers.astype(float)


CASES = [
    (shape, inputs, old, new)
    for product in PRODUCTS
    for shape in product.shapes
    for inputs in product.inputs
    for old in product.sums
    for new in product.sums
    if inputs in NUMPY
]


@pytest.mark.parametrize("layouts", [("row", "col", "row", "col"), ("col", "row", "col", "row")], ids=["rc", "cr"])
@pytest.mark.parametrize("shape, inputs, old, new", CASES)
def test_products_are_those_of_numpy(shape, inputs, old, new, layouts):
    m, n, k = Size.of(shape)
    (a, x), (b, y), (c, z) = (
        matrices(*spec) for spec in ((inputs, m, k, 1), (inputs, k, n, 2), (old, m, n, 3))
    )  # fmt: skip
    d = np.zeros((m, n) if layouts[3] == "row" else (n, m), NUMPY[new])
    kernel = pd.parse(program(shape, inputs, old, new, layouts))["k"]
    kernel[1, 32](by(layouts[0], a), by(layouts[1], b), by(layouts[2], c), d)
    assert np.array_equal(by(layouts[3], d) if layouts[3] == "row" else d.T, (x @ y + z).astype(NUMPY[new]))


@pytest.mark.parametrize("inputs", ["s4", "u4"])
def test_products_of_four_bits(inputs):
    random = np.random.default_rng(4)
    low = -8 if inputs == "s4" else 0
    a, b = random.integers(low, low + 16, (8, 32)), random.integers(low, low + 16, (32, 8))
    packed = [(x[:, ::2] & 15 | (x[:, 1::2] & 15) << 4).astype(np.uint8) for x in (a, b.T)]
    c, d = random.integers(-9, 9, (8, 8)).astype(np.int32), np.zeros((8, 8), np.int32)
    pd.parse(program("m8n8k32", inputs, "s32", "s32"))["k"][1, 32](*map(np.ascontiguousarray, packed), c, d)
    assert np.array_equal(d, a @ b + c)


@pytest.mark.parametrize("operation", ["xor", "and"])
def test_products_of_bits(operation):
    random = np.random.default_rng(5)
    a, b = random.integers(0, 2, (8, 128)), random.integers(0, 2, (128, 8))
    packed = [np.packbits(x, axis=1, bitorder="little") for x in (a, b.T)]
    c, d = random.integers(-9, 9, (8, 8)).astype(np.int32), np.zeros((8, 8), np.int32)
    pd.parse(program("m8n8k128", "b1", "s32", "s32", flag=f".{operation}.popc"))["k"][1, 32](
        *map(np.ascontiguousarray, packed), c, d
    )
    pairs = a[:, np.newaxis] != b.T if operation == "xor" else a[:, np.newaxis] & b.T
    assert np.array_equal(d, pairs.sum(2) + c)


def test_sums_are_clamped_where_that_is_asked_for():
    a, b = np.full((16, 16), 127, np.int8), np.full((16, 16), 127, np.int8)
    c, d = np.full((16, 16), 2**31 - 1, np.int32), np.zeros((16, 16), np.int32)
    pd.parse(program("m16n16k16", "s8", "s32", "s32", rest=".satfinite"))["k"][1, 32](a, b, c, d)
    assert (d == 2**31 - 1).all()
    pd.parse(program("m16n16k16", "s8", "s32", "s32"))["k"][1, 32](a, b, c, d)
    assert (d == 2**31 - 1 + 16 * 127**2 - 2**32).all()


def test_doubles_round_as_they_are_told():
    a, b = np.full((8, 4), 1.0), np.zeros((4, 8))
    b[0] = 2.0**-60
    c, d = np.ones((8, 8)), np.zeros((8, 8))
    for mode, expected in (("rn", 1.0), ("rp", 1.0 + 2.0**-52), ("rm", 1.0)):
        pd.parse(program("m8n8k4", "f64", "f64", "f64", ("row", "row", "row", "row"), rest=f".{mode}"))["k"][1, 32](
            a, b, c, d
        )
        assert (d == expected).all()


def test_strides_and_shared_memory():
    text = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 q) {
.reg .b64 p, a; .reg .b32 t, x, f<8>; .reg .f32 g, c<8>; .reg .b16 h;
.shared .align 32 .b16 s[704];
ld.param.u64 p, [q]; mov.u32 t, %tid.x;
LOOP: mad.wide.u32 a, t, 2, p; ld.global.b16 h, [a]; shl.b32 x, t, 1; mov.u32 f0, s; add.u32 x, x, f0; st.shared.b16 [x], h;
add.u32 t, t, 32; .reg .pred q1; setp.lt.u32 q1, t, 704; @q1 bra LOOP; bar.warp.sync -1;
wmma.load.c.sync.aligned.col.m16n16k16.shared.f16 {f0, f1, f2, f3}, [s+64], 40;
wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [p], {f0, f1, f2, f3}, 24;
ret;
}"""
    memory = np.arange(704, dtype=np.float16)
    expected = memory.copy()
    for row in range(16):
        expected[row * 24 : row * 24 + 16] = memory[32 + row + 40 * np.arange(16)]
    pd.parse(text)["k"][1, 32](memory)
    assert np.array_equal(memory, expected)


def test_lanes_with_different_addresses_are_found():
    text = program("m8n8k4", "f64", "f64", "f64").replace(
        "wmma.load.a", ".reg .b32 t; mov.u32 t, %laneid; mad.wide.u32 p0, t, 8, p0;\nwmma.load.a"
    )
    arrays = [np.zeros((64, 64)) for _ in range(4)]
    with pytest.raises(EmulationError, match=r"wmma\.load\.a\.\S+: the address differs between lanes of a warp"):
        pd.parse(text)["k"][1, 32](*arrays)


HELD_ON_AN_H200 = {
    ("a", "m16n16k16", "f16"): ((1, "0,2 0,3 8,2 8,3 0,10 0,11 8,10 8,11 " * 2), (31, "7,6 7,7 15,6 15,7 7,14 7,15 15,14 15,15 " * 2)),
    ("b", "m16n16k16", "f16"): ((1, "2,0 3,0 10,0 11,0 2,8 3,8 10,8 11,8 " * 2),),
    ("a", "m8n32k16", "f16"): ((1, "0,2 0,3 0,10 0,11 " * 4),),
    ("b", "m8n32k16", "bf16"): ((1, "2,0 3,0 2,8 3,8 10,0 11,0 10,8 11,8 2,16 3,16 2,24 3,24 10,16 11,16 10,24 11,24"),),
    ("c", "m16n16k16", "f32"): ((1, "0,2 0,3 8,2 8,3 0,10 0,11 8,10 8,11"),),
    ("c", "m8n32k16", "s32"): ((1, "2,0 3,0 2,8 3,8 2,16 3,16 2,24 3,24"),),
    ("c", "m32n8k16", "f32"): ((1, "0,2 0,3 8,2 8,3 16,2 16,3 24,2 24,3"),),
    ("c", "m8n8k4", "f64"): ((5, "1,2 1,3"),),
}  # fmt: skip


@pytest.mark.parametrize("use, shape, type", HELD_ON_AN_H200)
def test_lanes_hold_what_they_hold_on_an_h200(use, shape, type):
    part = fragment(use, shape, TYPES[type])
    for lane, text in HELD_ON_AN_H200[use, shape, type]:
        positions = zip(part.rows[:, lane].ravel(), part.columns[:, lane].ravel(), strict=True)
        assert " ".join(f"{row},{column}" for row, column in positions) == text.strip()


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda p: "-".join((*p.shapes, *p.inputs)))
def test_a_fragment_holds_every_element(product):
    for shape in product.shapes:
        for use, names in (("a", product.inputs), ("b", product.inputs), ("c", product.sums)):
            rows, columns = Size.of(shape).matrix(use)
            for name in names:
                part = fragment(use, shape, TYPES[name])
                assert set(zip(part.rows.ravel(), part.columns.ravel(), strict=True)) == set(np.ndindex(rows, columns))


def test_a_fragment_is_a_list():
    with pytest.raises(VerifyError) as caught:
        pd.parse(program("m8n8k4", "f64", "f64", "f64").replace("{a0}", "a0"))["k"].ptx()
    assert "`d` is not in braces; wmma takes its registers as a list, even a single one" in str(caught.value)
    assert "help: write [b] in Python, {b} in PTX" in str(caught.value)


def test_numbers_between_are_rounded_once():
    """As mma.sync does: sums in f64, rounded to f32 or f16 at the end."""
    random = np.random.default_rng(7)
    a, b = (random.normal(size=(16, 16)).astype(np.float16) for _ in range(2))
    c, d = random.normal(size=(16, 16)).astype(np.float16), np.zeros((16, 16), np.float32)
    pd.parse(program("m16n16k16", "f16", "f16", "f32", ("row", "row", "row", "row")))["k"][1, 32](a, b, c, d)
    assert np.array_equal(d, (a.astype(float) @ b.astype(float) + c).astype(np.float32))


def test_the_text_of_nvcc_before_alignment_was_spelled():
    text = (
        re.sub(r"\.sync\.aligned", ".sync", program("m16n16k16", "f16", "f32", "f32"))
        .replace("7.8", "6.1")
        .replace("sm_80", "sm_70")
    )
    assert "wmma.mma.sync.row.col.m16n16k16.f32.f32" in pd.parse(text).ptx()
    a, d = np.eye(16, dtype=np.float16), np.zeros((16, 16), np.float32)
    pd.parse(text)["k"][1, 32](a, a, np.zeros((16, 16), np.float32), d)
    assert np.array_equal(d, np.eye(16))
