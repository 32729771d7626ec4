"""Configurations that are timed whatever the rates think of them."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

import pytest

from ptxdsl.kernels.choose.promising import TuningCandidate
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.types import bf16

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def tiles(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("all_tiles")


@pytest.mark.parametrize("shape", [(1, 4096, 4096), (272, 7168, 2048), (1024, 1024, 4096), (8192, 192, 8192)], ids=str)
def test_they_are_of_many_kinds_and_can_be_launched(tiles, shape):
    known = tiles.all_tiles(*shape, 60)
    kinds = Counter(TuningCandidate(config).kind for config in known.values())
    assert 20 < len(known) <= 60 and len(kinds) > 3 and max(kinds.values()) <= tiles.MOST_OF_A_KIND
    for name, config in known.items():
        config.traits(Operands(bf16, bf16), "sm_90a").check("sm_90a")
        assert tiles.name_of(config) == name


def test_those_that_must_take_the_least_time_are_first(tiles):
    times = [tiles.least_time(config, 272, 7168, 2048) for config in tiles.all_tiles(272, 7168, 2048, 30).values()]
    assert times == sorted(times) and times[-1] < tiles.FAR * times[0]


def test_clusters_have_tiles_for_all_their_blocks(tiles):
    assert tiles.fit((2, 1), 2, 1) and tiles.fit((1, 4), 3, 4) and tiles.fit((4, 1), 7, 1)
    assert not tiles.fit((2, 1), 1, 9) and not tiles.fit((2, 1), 3, 1) and not tiles.fit((1, 4), 1, 3)
