"""wgmma: what it multiplies, from every layout that its descriptors say, against numpy; on the emulator and on a GPU."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from ptxdsl import config
from ptxdsl.assemble import assemble
from ptxdsl.errors import EmulationError
from ptxdsl.layout.descriptors import MODES
from ptxdsl.types import TYPES

from ..emulate.support import launch
from ..machines import MACHINES, machine
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


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_it_is_the_product_of_numpy(case, on, rng):
    a, b, c = case.inputs(rng)
    d = case.run(machine(on), a, b, c).astype(np.float64)
    expected = case.expected(a, b, c)
    left, right = (np.abs(case.numbers(x, type)) for x, type in zip((a, b), case.types, strict=True))
    sizes = left @ right.T + np.abs(c.astype(np.float64))
    short = TYPES[case.a].bits == 8 and case.sums != "s32"  # tensor cores keep 13 bits of such sums
    units = {"f32": 2.0**-13 if short else 2.0**-22, "f16": 2.0**-10, "s32": 0}[case.sums]
    assert (np.abs(d - expected) <= case.steps * units * sizes).all()


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


def test_a_sparse_a_is_refused():
    text = Case(8, a="f16", steps=1).text()
    sparse = text.replace("mma_async.sync", "mma_async.sp.sync").replace("n8k16", "n8k32")
    text = sparse.replace("%tb, %scale", "%tb, %v0, 0, %scale").replace(
        "setp.ge.u32 %scale", "mov.b32 %v0, 0;\nsetp.ge.u32 %scale"
    )
    with pytest.raises(EmulationError) as refusal:
        launch(text, *(np.zeros(1 << 14, np.uint8) for _ in range(3)), block=128)
    assert refusal.value.message == (
        "`wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16` cannot be emulated yet: products of a sparse A have no "
        "meaning there"
    )
