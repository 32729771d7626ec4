"""wgmma: what it multiplies, from every layout that its descriptors say, against numpy; on the emulator and on a GPU."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from ptxdsl.assemble import assemble
from ptxdsl.isa.tensor_core import OF_WGMMA, accumulate
from ptxdsl.layout import shared_operand
from ptxdsl.layout.descriptors import MODES, constant_bits
from ptxdsl.types import TYPES

from ..emulate.support import launch
from ..machines import MACHINES, machine
from .sparse_kernels import wild
from .wgmma_kernels import Case

VECTORS = json.loads(gzip.decompress((Path(__file__).parent / "vectors" / "wgmma_h200.json.gz").read_bytes()))

MAJORS = ((False, False), (False, True), (True, False), (True, True))
LAYOUTS = [Case(64, a="bf16", span=span, transposed=majors) for span in MODES for majors in MAJORS]
WIDTHS = [Case(n, span=128) for n in (8, 24, 72, 136, 256)]
TYPES_OF_SUMS = [
    Case(16, a="f16", sums="f16"),
    Case(32, a="tf32"),
    Case(32, a="e4m3", b="e5m2", span=64),
    Case(32, a="e5m2", sums="f16", span=32),
    Case(24, sums="s32", a="s8", b="u8"),
    Case(48, sums="s32", a="u8", b="u8", span=0),
]
REGISTERS = [
    Case(32, from_registers=True),
    Case(64, from_registers=True, transposed=(False, True), span=64),
    Case(16, a="tf32", from_registers=True, span=32),
    Case(16, a="e4m3", from_registers=True),
    Case(16, sums="s32", a="s8", from_registers=True),
]
CONSTANTS = [
    Case(16, signs=(-1, 1)),
    Case(16, signs=(1, -1), a="tf32"),
    Case(16, signs=(-1, -1), a="bf16", from_registers=True),
    Case(16, steps=1, scale_from=128),
    Case(16, sums="s32", a="s8", flag=".satfinite"),
]
CASES = LAYOUTS + WIDTHS + TYPES_OF_SUMS + REGISTERS + CONSTANTS


def label(case):
    majors = "".join("KM"[major] for major in case.transposed)
    return f"{case.name}-{majors}{case.span}{case.flag}{case.signs}{case.scale_from}"


@pytest.mark.cases(24)
@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_it_is_the_product_of_numpy(case, on, rng):
    a, b, c = case.inputs(rng)
    d = case.run(machine(on), a, b, c).astype(np.float64)
    expected = case.expected(a, b, c)
    left, right = (case.numbers(x, type) for x, type in zip((a, b), case.types, strict=True))
    sizes = np.abs(left) @ np.abs(right).T + np.abs(c.astype(np.float64))
    bound = {"f32": 2.0**-22, "f16": 2.0**-10, "s32": 0}[case.sums] * sizes
    if TYPES[case.a].bits == 8 and case.sums == "f32":
        bound = most_cut(case, left, right, c)
    assert (np.abs(d - expected) <= case.steps * bound).all()


def most_cut(case, left, right, c):
    """Of 8-bit floats tensor cores keep 13 bits below the largest number that they add at a time: each product of an
    instruction, and the sum so far, may lose a unit of these."""
    products = left[:, None] * right
    sums = np.abs(products.cumsum(-1)).max(-1) + np.abs(c)
    return (case.k + 1) * 2.0**-13 * np.maximum(np.abs(products).max(-1), sums)


@pytest.mark.parametrize("case", [c for c in VECTORS if not c.startswith("s32")])
def test_sums_are_those_of_an_h200_bit_for_bit(case):
    """256 recorded outputs, each of a row of A and a row of B, as diagonals of four products."""
    sums, element, _ = case.split(".")
    kernel = Case(64, sums=sums, a=element, span=32, steps=1)
    type = TYPES[element]
    a, b = (np.frombuffer(bytes.fromhex(VECTORS[case][o]), f"u{type.bytes}").reshape(4, 64, -1) for o in "ab")
    c, d = (np.frombuffer(bytes.fromhex(VECTORS[case][o]), TYPES[sums].dtype).reshape(4, 64) for o in "cd")
    with config.using(numerics="h200"):
        for part in range(4):
            computed = kernel.run(machine("emulator"), a[part], b[part], np.diag(c[part])).diagonal()
            bits = f"u{c.itemsize}"
            np.testing.assert_array_equal(computed.copy().view(bits), d[part].view(bits))


def test_satfinite_clamps_and_wraps_without(rng):
    a, b = np.full((64, 64), 127, np.uint8), np.full((16, 64), 127, np.uint8)
    c = np.full((64, 16), 2**31 - 1, np.int32)
    plain, clamped = (Case(16, sums="s32", a="s8", flag=flag) for flag in ("", ".satfinite"))
    assert (clamped.run(machine("emulator"), a, b, c) == 2**31 - 1).all()
    assert (plain.run(machine("emulator"), a, b, c) == 2**31 - 1 + 64 * 127 * 127 - 2**32).all()


def test_b1_counts_pairs_of_ones(rng):
    a, b = rng.integers(0, 256, (64, 32), np.uint8), rng.integers(0, 256, (16, 32), np.uint8)
    as_bytes = Case(16, sums="s32", a="u8", span=32, steps=1)
    text = as_bytes.text().replace("m64n16k32.s32.u8.u8", "m64n16k256.and.popc.s32.b1.b1")
    memory = as_bytes.memory(a, b, np.zeros((64, 16), np.int32))
    launch(text, *memory, block=128)
    ones = [np.unpackbits(x, axis=1).astype(int) for x in (a, b)]
    np.testing.assert_array_equal(as_bytes.result(memory[2]), ones[0] @ ones[1].T)


@pytest.mark.parametrize(
    "case", [LAYOUTS[0], LAYOUTS[3], WIDTHS[-1], *TYPES_OF_SUMS[1:5:2], REGISTERS[1], CONSTANTS[2]], ids=label
)
def test_the_assembler_warns_of_nothing(case):
    assert assemble(case.text(), "sm_90a").warnings == ()


PLACES = {4: (0, 1), 8: (0, 2), 12: (0, 3), 9: (1, 2), 13: (1, 3), 14: (2, 3)}
"""The places of two numbers among four, by four bits of metadata."""


def sparse(case, rng, selector=0, nibbles=tuple(PLACES)):
    """The text of one product of a sparse A, what it takes, and the numbers of A with its zeros, B and C.

    Metadata as CUTLASS lays them out: of four neighbouring threads, the thread number says the row or the part of K.
    """
    halves = 256 // case.bits  # numbers of a row of A
    whole = replace(case, steps=2)  # B is twice as deep
    a, _, c = case.inputs(rng)
    _, b, _ = whole.inputs(rng)
    if case.sums != "s32":
        a, b = (wild(rng, type, x.shape, 6) for x, type in zip((a, b), case.types, strict=True))
        c = (64 * rng.standard_normal(c.shape)).astype(c.dtype)
    picks = (4, 14) if case.bits == 32 else nibbles
    fours = rng.choice(picks, (64, halves // (1 if case.bits == 32 else 2)))
    full = np.zeros((64, 2 * halves))
    metadata = np.zeros(128, np.uint32)
    for row, group in np.ndindex(*fours.shape):
        bits = int(fours[row, group])
        if case.bits == 32:
            full[row, 2 * group + (bits == 14)] = case.numbers(a, case.a)[row, group]
        else:
            for n, place in enumerate(PLACES[bits]):
                full[row, 4 * group + place] = case.numbers(a, case.a)[row, 2 * group + n]
        part, inside = divmod(group, fours.shape[1] // 2)
        quad = row // 16 * 32 + row % 8 * 4
        if case.bits == 8:
            metadata[quad + row % 16 // 8 + 2 * part] |= np.uint32(bits << 4 * inside)
        else:
            metadata[quad + part + 2 * selector] |= np.uint32(bits << 4 * inside + row % 16 // 8 * 16)
    text = sparse_text(case, whole, selector)
    arrays = [*case.memory(a, b[:, : b.shape[1] // 2], c), metadata]
    arrays[1] = whole.memory(np.concatenate([a, a], 1), b, c)[1]
    return text, arrays, (full, whole.numbers(b, whole.types[1]), c)


def sparse_text(case, whole, selector):
    """The kernel of a case with a B of twice the depth, and metadata as its fourth array."""
    text = case.text()
    bytes_b = case.layout("b").size * case.bits // 8
    text = text.replace(f"tile_b[{bytes_b}]", f"tile_b[{whole.layout('b').size * case.bits // 8}]")
    text = text.replace(
        f"setp.ge.u32 %p, %i, {bytes_b};\n@%p bra DONE_b",
        f"setp.ge.u32 %p, %i, {whole.layout('b').size * case.bits // 8};\n@%p bra DONE_b",
    )
    if case.span == 32 and not case.transposed[1]:  # the second half of K is a tile of its own
        b = shared_operand(case.name, "b", case.layout("b"))
        apart = constant_bits(32 * case.n, b.fields.stride_bytes, case.span)
        text = text.replace(f"or.b64 %db, %db, {b.constant};", f"or.b64 %db, %db, {apart};")
    text = text.replace("mma_async.sync", "mma_async.sp.sync").replace(
        f"n{case.n}k{case.k}.", f"n{case.n}k{2 * case.k}."
    )
    text = text.replace(f"n{case.n}k{case.k}.sat", f"n{case.n}k{2 * case.k}.sat")
    text = text.replace("%tb, %scale", f"%tb, %v0, {selector}, %scale").replace(
        ".param .u64 d)", ".param .u64 d, .param .u64 e)"
    )
    load = "ld.param.u64 %x, [e];\nmul.wide.u32 %a, %thread, 4;\nadd.u64 %x, %x, %a;\nld.global.b32 %v0, [%x];\n"
    return text.replace("setp.ge.u32 %scale", load + "setp.ge.u32 %scale")


SPARSE = [
    (Case(16, span=64, steps=1), 0),
    (Case(16, span=0, steps=1), 0),
    (Case(24, span=32, steps=1), 0),
    (Case(16, a="e5m2", b="e4m3", span=32, steps=1), 0),
    (Case(64, steps=1, transposed=(False, True)), 0),
    (Case(64, span=64, steps=1, transposed=(True, False)), 1),
    (Case(16, steps=1), 0),
    (Case(16, steps=1), 1),
    (Case(8, a="bf16", steps=1), 1),
    (Case(8, a="tf32", steps=1), 0),
    (Case(8, a="tf32", steps=1), 1),
    (Case(16, a="e4m3", steps=1), 0),
    (Case(16, "s32", "s8", steps=1), 0),
    (Case(16, steps=1, from_registers=True), 1),
    (Case(16, a="e5m2", steps=1, from_registers=True), 0),
]


@pytest.mark.cases(10)
@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("case, selector", SPARSE)
def test_a_sparse_product_adds_up_as_the_dense_one_with_its_zeros(case, selector, on, rng):
    """Bit for bit as on an H200, whatever the type."""
    text, arrays, matrices = sparse(case, rng, selector)
    where = machine(on)
    there = [where.array(x.view(np.uint8).copy()) for x in arrays]
    with config.using(numerics="h200"):
        pd.parse(text)["k"][1, 128](*there)
    result = case.result(np.ascontiguousarray(where.values(there[2]).astype(np.uint8)))
    a, b, c = (x[np.newaxis] for x in matrices)
    types = TYPES[case.types[0]], TYPES[case.types[1]]
    expected = a @ b.transpose(0, 2, 1) + c if case.sums == "s32" else accumulate(a, b, c, types, OF_WGMMA[types[0]])
    np.testing.assert_array_equal(result, expected[0].astype(result.dtype))


def test_metadata_that_name_a_place_twice_are_found(rng):
    text, arrays, _ = sparse(Case(8, steps=1), rng)
    arrays[3][33] = 0x5555_5555
    finding = launch(text, *arrays, block=128).findings[0]
    assert finding.kind == "sparse-metadata"
    assert finding.message == (
        "`metadata` has 0b0101 for a group of neighbours along K; "
        "it can be 0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110"
    )
    assert finding.help == "write the positions of the elements that A stores, the smaller one in the low bits"
