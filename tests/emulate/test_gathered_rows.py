"""Copies of four rows by tile::gather4 and tile::scatter4, against numpy."""

from dataclasses import replace

import numpy as np
import pytest

from tests.emulate.support import clean

from .test_tensor_copies import HEAD, LOAD, STORE, kernel, launched, mapping, unswizzled

ROWS = (7, 0, 11, 3)
COORDINATES = "%r10, %r11, %r12, %r13, %r14"  # one column, four rows


@pytest.fixture(autouse=True)
def blackwell(monkeypatch):
    monkeypatch.setattr("tests.emulate.support.HEAD", HEAD.replace("sm_90a", "sm_100a"))


def prepared(body, array, width, mode, height=1, **options):
    description, parameter = mapping(array, (height, width), **options)
    four = replace(description, box=(width, 4))
    text = kernel(body, four, op="cp", operation="") if body is STORE else kernel(body, four)
    text = text.replace("{%r10, %r11}", f"{{{COORDINATES}}}").replace("global.mbarrier", f"global.{mode}.mbarrier")
    return text.replace("cta.bulk_group", f"cta.{mode}.bulk_group"), parameter, four


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("column, rows", [(0, ROWS), (8, ROWS), (32, (5, 5, 12, -1)), (-8, (2, 40, 1, 0))])
def test_four_rows_are_loaded(column, rows, swizzle):
    array = np.arange(12 * 40, dtype=np.float16).reshape(12, 40)
    width = swizzle // 2 or 24
    text, parameter, four = prepared(LOAD, array, width, "tile::gather4", swizzle=swizzle)
    y = np.zeros(four.box_bytes, np.uint8)
    clean(launched(text, parameter, y, (*rows[::-1], column)))
    got = unswizzled(y, swizzle).view(np.float16).reshape(4, width)
    padded = np.zeros((60, 200), np.float16)
    padded[8:20, 64:104] = array
    for row, line in zip(rows, got, strict=True):
        np.testing.assert_array_equal(line, padded[row + 8, column + 64 : column + 64 + width])


def test_four_rows_are_stored():
    array = np.zeros((12, 40), np.float16)
    values = np.arange(4 * 16, dtype=np.float16).reshape(4, 16) + 1
    text, parameter, _ = prepared(STORE, array, 16, "tile::scatter4")
    clean(launched(text, parameter, values.view(np.uint8).reshape(-1), (*ROWS[::-1], 24)))
    expected = np.zeros((12, 40), np.float16)
    expected[list(ROWS), 24:40] = values
    np.testing.assert_array_equal(array, expected)


def test_a_map_with_boxes_of_several_rows():
    array = np.zeros((12, 40), np.float16)
    text, parameter, four = prepared(LOAD, array, 16, "tile::gather4", height=2)
    text = text.replace("AGAIN:", "bra END; AGAIN:")
    finding = launched(text, parameter, np.zeros(four.box_bytes, np.uint8), (*ROWS, 0)).findings[0]
    assert (finding.kind, finding.message) == (
        "tensor-map",
        "the tensor map has boxes of 2 rows; .tile::gather4 takes a map with boxes of 1 row, without interleaving",
    )
