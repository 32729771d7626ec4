"""The approximate functions of an H200 (driver 580, sm_90a): a million results of each, by their checksums."""

import zlib

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import config, f16, f32, ptr
from ptxdsl.isa import special_functions as special


@pytest.fixture(autouse=True)
def without_warnings():
    """As the emulator calls it."""
    with np.errstate(all="ignore"):
        yield


def binade(first, step):
    """Every `step`-th f32 from a power of two up to the next."""
    start = np.float32(first).view(np.uint32)
    return (start + np.arange(0, 1 << 23, step, dtype=np.uint32)).view(np.float32)


MEASURED = {
    ("rcp", 1.0, 8): 0xA0A41FF3,
    ("rsqrt", 1.0, 8): 0x22D560D0,
    ("rsqrt", 2.0, 8): 0x90AC50FB,
    ("sqrt", 1.0, 8): 0x1173359A,
    ("sqrt", 2.0, 8): 0x718FAF88,
    ("ex2", 1.0, 8): 0x426498EE,
    ("lg2", 1.0, 8): 0xECEBF13E,
    ("lg2", 0.5, 8): 0x35E74086,
    ("sin", 0.5, 8): 0x3BAD7E7B,
    ("sin", 1.0, 8): 0xCEEE2F64,
    ("cos", 0.5, 8): 0x76F57F7D,
    ("cos", 1.0, 8): 0x617FC97E,
    ("tanh", 2.0**-8, 256): 0x5A3F6CFB,
    ("tanh", 0.5, 256): 0x48B7FA1F,
    ("tanh", 1.0, 256): 0xDC419C61,
    ("tanh", 2.0, 256): 0x3A429E9F,
    ("tanh", 4.0, 256): 0x77E6E198,
}
"""CRC-32 of what the GPU gave for every so many arguments from a power of two on: function with .ftz, first, step."""


def checksum(name, first, step):
    results = getattr(special, name)(binade(first, step), True)
    assert results.dtype == np.float32
    return zlib.crc32(results.view("<u4").tobytes())


@pytest.mark.parametrize("case", MEASURED, ids=lambda case: f"{case[0]}-{case[1]}")
def test_results_are_those_of_an_h200_bit_for_bit(case):
    assert checksum(*case) == MEASURED[case]


def test_exponents_that_are_not_positive_are_complements():
    x = np.concatenate([-binade(2.0**-e, 64) for e in range(-7, 30)])
    assert zlib.crc32(special.ex2(x, True).view("<u4").tobytes()) == 0xBE05EF63


@pytest.mark.exhaustive
@pytest.mark.parametrize("cut", [14, 16])
def test_a_column_of_partial_products_more_or_fewer_differs(cut, monkeypatch):
    """x² without what is less than 2^-15: so the number of that column is known."""
    with monkeypatch.context() as patch:
        patch.setattr(special, "CUT", cut)
        squares = special.squares.__wrapped__()
    scaled = squares << 1 if cut == 14 else squares >> 1
    monkeypatch.setattr(special, "squares", lambda: scaled)
    assert all(checksum(*case) != MEASURED[case] for case in MEASURED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["rcp", "rsqrt", "sqrt", "lg2", "ex2", "sin", "cos", "tanh"])
@pytest.mark.parametrize("row", [0, -1])
def test_every_coefficient_counts(name, row, monkeypatch):
    """A result differs for each of the three, changed by one."""
    real = special.coefficients
    table = {"rsqrt": "rsqrt1", "sqrt": "sqrt1", "cos": "sin"}.get(name, name)
    arguments = np.concatenate([binade(first, 32) for first in (2.0**-8, 0.5, 1.0, 4.0)])
    expected = getattr(special, name)(arguments, True)
    for column in range(3):
        bias, rows = real(table)
        rows = rows.copy()
        rows[row, column] += 1 if column else 4
        changed = special.Coefficients(bias, rows)
        monkeypatch.setattr(special, "coefficients", lambda asked: changed if asked == table else real(asked))  # noqa: B023
        assert (getattr(special, name)(arguments, True) != expected).any()


@pd.kernel
def functions(x: ptr[f32], y: ptr[f32], h: ptr[f16], g: ptr[f16]):
    value, i = x[pd.tid.x], pd.tid.x
    y[i] = pd.ptx.ex2.approx.ftz.f32(value) + pd.ptx.lg2.approx.f32(pd.ptx.rcp.approx.f32(value))
    g[i] = pd.ptx.tanh.approx.f16(h[i])


def test_a_kernel_computes_by_them_where_the_setting_says_so():
    x = np.linspace(0.1, 3, 64, dtype=np.float32)
    h, y, g = x.astype(np.float16), np.zeros(64, np.float32), np.zeros(64, np.float16)
    results = {}
    for numerics in config.NUMERICS:
        with config.using(numerics=numerics):
            functions[1, 64](x, y, h, g)
        results[numerics] = y.copy(), g.copy()
    expected = special.ex2(x, True) + special.lg2(special.rcp(x, False), False)
    assert (results["h200"][0] == expected).all()
    assert (results["rounded"][0] != expected).any()
    exact = np.tanh(h.astype(np.float64))
    assert (results["rounded"][1] == exact.astype(np.float16)).all()
    assert (results["h200"][1] <= results["rounded"][1]).all() and (results["h200"][1] != results["rounded"][1]).any()
