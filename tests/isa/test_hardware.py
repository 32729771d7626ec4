"""What an H200 computed with every scalar instruction, on edge values and random numbers.

The emulator must give the same, and so must a GPU where there is one. `vectors/scalar_h200.json.gz` holds what the kernels of `scalar_kernels.py` gave (driver 580, sm_90, ptxas 13.0): for
exact instructions a CRC of each output row with its NaN made the same, for approximations the row itself in hex.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config
from ptxdsl.types import Type, lanes

from ..machines import MACHINES, machine
from .scalar_kernels import CHAPTERS, LANES, batches, inputs, module, results, row, rows
from .spelled import Spelled

VECTORS = Path(__file__).with_name("vectors") / "scalar_h200.json.gz"
MEASURED = json.loads(gzip.decompress(VECTORS.read_bytes()))

INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "tf32": 0x7F800000, "f64": 0x7FF0000000000000}

BOUNDS = {
    "sin": ("absolute", 2.0**-20.5),
    "cos": ("absolute", 2.0**-20.5),
    "lg2": ("either", 2.0**-22),
    "ex2.f32": ("relative", 2.0**-22),
    "ex2.f16": ("either", 2.0**-9.9),
    "ex2.bf16": ("relative", 2.0**-7),
    "tanh.f32": ("relative", 2.0**-11),
    "tanh.f16": ("relative", 2.0**-9.9),
    "tanh.bf16": ("relative", 2.0**-7),
    "rcp.f32": ("relative", 2.0**-23),
    "rcp.f64": ("relative", 2.0**-20),
    "rsqrt.f32": ("relative", 2.0**-22.9),
    "rsqrt.f64": ("relative", 2.0**-20),
    "sqrt": ("relative", 2.0**-23),
    "div": ("relative", 2.0**-22),
}
"""How far the emulator may be from a GPU, by instruction (sine and cosine: up to pi)."""


def approximate(i: Spelled) -> bool:
    """Whether an instruction need not agree to the bit."""
    return "approx" in i.opcode.text or "full" in i.opcode.text


def computed(chapter: str, name: str) -> dict[str, tuple[Spelled, np.ndarray]]:
    """The output rows of each instruction of a chapter on a machine, by mnemonic."""
    found, on = {}, machine(name)
    for batch in batches(chapter):
        count = sum(map(rows, batch))
        x, y = on.array(inputs(batch).view(np.uint8).flatten()), on.array(np.zeros(8 * LANES * count, np.uint8))
        pd.parse(module(batch))["k"][4, LANES // 4](x, y)
        output = on.values(y).astype(np.uint8).view(np.uint64).reshape(count, LANES)
        ends = np.cumsum([rows(i) for i in batch])
        found |= {i.opcode.text: (i, part) for i, part in zip(batch, np.split(output, ends[:-1]), strict=True)}
    return found


def same_nan(row: np.ndarray, type_: Type) -> np.ndarray:
    """A row of results with every NaN in it made the same."""
    element, _ = lanes(type_)
    if element.name not in INFINITY:
        return row
    parts = row.view(f"<u{element.bytes}").copy()
    parts[parts & ((1 << element.bits - 1) - 1) > INFINITY[element.name]] = INFINITY[element.name] + 1
    return parts.view("<u8")


def checksums(i: Spelled, output: np.ndarray) -> list[int]:
    """A CRC of each output row."""
    types = [operand.type for operand in results(i)]
    return [zlib.crc32(same_nan(r, t).tobytes()) for r, t in zip(output, [*types, *types], strict=False)]


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_exact_instruction_gives_the_bits_of_an_h200(chapter, name):
    measured = MEASURED["exact"]
    compared = {text: pair for text, pair in computed(chapter, name).items() if text in measured}
    assert len(compared) > 30
    assert not [text for text, (i, output) in compared.items() if checksums(i, output) != measured[text]]


def bound(text: str) -> tuple[str, float]:
    """The entry of BOUNDS for a mnemonic."""
    name, *words = text.split(".")
    return BOUNDS.get(name) or BOUNDS[f"{name}.{words[-1].removesuffix('x2')}"]


def numbers(row: np.ndarray, type_: Type) -> np.ndarray:
    """A row of results as f64."""
    element, _ = lanes(type_)
    parts = row.astype(f"<u{type_.bytes}").view(f"<u{element.bytes}")
    if element.name == "bf16":
        return (parts.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return parts.view(f"<f{element.bytes}").astype(np.float64)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("chapter", ["floating", "half"])
def test_every_approximation_is_as_close_to_an_h200_as_the_manual_says(chapter, name):
    compared = [(text, *pair) for text, pair in computed(chapter, name).items() if text in MEASURED["approximate"]]
    assert len(compared) > 7
    for text, i, output in compared:
        type_ = results(i)[0].type
        how, limit = bound(text)
        theirs = np.frombuffer(bytes.fromhex(MEASURED["approximate"][text]), f"<u{type_.bytes}").astype(np.uint64)
        x, y = numbers(output[0], type_), numbers(theirs, type_)
        assert (np.isnan(x) == np.isnan(y)).all(), text
        counted = np.isfinite(x) & np.isfinite(y)
        if text[:3] in ("sin", "cos"):
            counted &= np.abs(numbers(row(type_, 0), type_)) <= np.pi
        x, y = x[counted], y[counted]
        size = {"absolute": np.ones_like(x), "relative": np.abs(x), "either": np.maximum(1, np.abs(x))}[how]
        least = 2.0**-14 if type_.name in ("f16", "f16x2") else 2.0**-126
        assert (np.abs(x - y) <= limit * np.maximum(size, least)).all(), text


@pytest.mark.cases(1)
@pytest.mark.parametrize("chapter", ["floating", "half"])
def test_special_functions_give_the_bits_of_an_h200(chapter):
    with config.using(numerics="h200"):
        compared = [(text, *pair) for text, pair in computed(chapter, "emulator").items() if approximate(pair[0])]
    assert len(compared) > 7
    differ = []
    for text, i, output in compared:
        if text == "rsqrt.approx.f64":  # for which ptxas writes a loop of its own
            continue
        type_ = results(i)[0].type
        theirs = np.frombuffer(bytes.fromhex(MEASURED["approximate"][text]), f"<u{type_.bytes}").astype(np.uint64)
        if (same_nan(output[0], type_) != same_nan(theirs, type_)).any():
            differ.append(text)
    assert not differ


def unmeasured(text: str) -> bool:
    """fns, whose row has numbers that it has no meaning for, and scalar video instructions that look past 32 bits.

    For sm_90, ptxas makes these of 32-bit operations, so that .sat, .min, .max and vmad miss the bits above.
    """
    name, *words = text.split(".")
    video = name[0] == "v" and name[-1] not in "24"
    return name == "fns" or (video and (name == "vmad" or bool({"sat", "min", "max"} & set(words))))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_instruction_has_been_measured(chapter):
    known = MEASURED["exact"].keys() | MEASURED["approximate"].keys()
    spelled = [i.opcode.text for batch in batches(chapter) for i in batch]
    assert not [text for text in spelled if text not in known and not unmeasured(text)]
