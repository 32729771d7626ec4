"""What an H200 computed for 256 inputs of each of 263 instructions, against the emulator.

`ops_h200.json.gz` is a list of cases: registers, loads, PTX lines, store; inputs and results are little-endian hex.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd

VECTORS = Path(__file__).with_name("vectors") / "ops_h200.json.gz"
CASES = {case["name"]: case for case in json.loads(gzip.decompress(VECTORS.read_bytes()))}

APPROXIMATE = {
    "div_approx_f32": ("ulp", 2.0),
    "div_full_ftz_f32": ("ulp", 2.0),
    "ex2_approx": ("ulp", 2.0),
    "rcp_approx_ftz": ("ulp", 1.0),
    "sqrt_approx_ftz": ("relative", 2.0**-22),
    "rsqrt_approx": ("relative", 2.0**-22.9),
    "lg2_approx": ("relative or absolute", 2.0**-22),
    "sin_approx": ("absolute", 2.0**-20.5),
    "cos_approx_ftz": ("absolute", 2.0**-20.5),
}
"""Cases that need not agree to the bit, with the largest error that the PTX manual allows (sine, cosine: up to pi)."""

MODULE = """.version 7.8
.target sm_90
.address_size 64
.visible .entry k({parameters})
{{
    .reg .b64 %at<{addresses}>;
    .reg .b32 %thread;
    {registers}
    mov.u32 %thread, %tid.x;
    {body}
    ret;
}}
"""


def dtype(name: str) -> np.dtype:
    """The numpy type of a case's type: u32, i16, f64, bool."""
    return np.dtype("u1" if name == "bool" else f"{name[0]}{int(name[1:]) // 8}")


def module(case: dict) -> str:
    """A kernel in which thread i loads element i of each input, runs the case's lines and stores element i."""
    sizes = [dtype(t).itemsize for t in (*case["input_types"], case["output_type"])]
    body = [
        line
        for n, size in enumerate(sizes)
        for line in (f"ld.param.u64 %at{n}, [p{n}];", f"mad.wide.u32 %at{n}, %thread, {size}, %at{n};")
    ]
    body += [f"ld.global.{type_} {register}, [%at{n}];" for n, (type_, register) in enumerate(case["loads"])]
    body += [line for line in case["body"] if not line.startswith("//")]
    body.append("st.global.{} [%at{}], {};".format(case["store"][0], len(sizes) - 1, case["store"][1]))
    return MODULE.format(
        parameters=", ".join(f".param .u64 p{n}" for n in range(len(sizes))),
        addresses=len(sizes),
        registers="\n    ".join(f".reg .{type_} {name};" for name, type_ in case["regs"].items()),
        body="\n    ".join(body),
    )


def emulated(case: dict) -> np.ndarray:
    """The results of the emulator, as unsigned integers."""
    pairs = zip(case["inputs"], case["input_types"], strict=True)
    raw = [np.frombuffer(bytes.fromhex(text), f"u{dtype(type_).itemsize}") for text, type_ in pairs]
    bits = np.dtype(f"u{dtype(case['output_type']).itemsize}")
    output = np.zeros(case["n"], bits)
    report = pd.emulate(pd.parse(module(case))["k"], 1, case["n"], *raw, output)
    assert not report.findings
    return output


def measured(case: dict) -> np.ndarray:
    """What the H200 gave, as unsigned integers."""
    return np.frombuffer(bytes.fromhex(case["h200"]), f"u{dtype(case['output_type']).itemsize}")


def allowed(how: str, bound: float, x: np.ndarray) -> np.ndarray:
    """The largest error that is allowed next to each of the true values x."""
    sizes = {
        "ulp": np.abs(np.spacing(x)),
        "relative": np.abs(x),
        "absolute": np.ones_like(x),
        "relative or absolute": np.maximum(np.abs(x), 1),
    }
    return bound * sizes[how]


@pytest.mark.parametrize("name", [name for name in CASES if name not in APPROXIMATE])
def test_the_emulator_computes_the_very_bits_of_an_h200(name):
    np.testing.assert_array_equal(emulated(CASES[name]), measured(CASES[name]))


@pytest.mark.parametrize("name", APPROXIMATE)
def test_an_approximation_differs_from_an_h200_within_the_bound_of_the_manual(name):
    case = CASES[name]
    ours, theirs = emulated(case).view(np.float32), measured(case).view(np.float32)
    x = np.frombuffer(bytes.fromhex(case["inputs"][0]), np.float32)
    special = ~(np.isfinite(ours) & np.isfinite(theirs))
    np.testing.assert_array_equal(ours[special], theirs[special])
    compared = ~special & (np.abs(x) <= np.pi) if name[:3] in ("sin", "cos") else ~special
    assert compared.sum() > 40
    ours, theirs = ours[compared].astype(np.float64), theirs[compared].astype(np.float64)
    assert (np.abs(ours - theirs) <= allowed(*APPROXIMATE[name], ours.astype(np.float32))).all()
