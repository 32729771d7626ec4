"""A bounded run of the fuzzer: damaged PTX is read or refused in words, in 5 s and 1 GB each. See `fuzz.py`."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import fuzz

ROOT = Path(fuzz.__file__).parents[1]
SEEDS = {0: 80, 1_000_000: 80}
"""The first mutant of each run, and how many there are."""


@pytest.mark.cases(1)
@pytest.mark.parametrize("first, count", SEEDS.items())
def test_mutants_are_read_or_refused_in_words(first, count):
    command = [sys.executable, "-m", "tests.fuzz", str(first), str(count)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    limit = 30 + count * fuzz.SECONDS
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_mutants_are_the_same_in_every_run():
    texts = fuzz.corpus()
    assert len(texts) >= 10
    assert [fuzz.mutant(n, texts) for n in range(20)] == [fuzz.mutant(n, texts) for n in range(20)]
    assert len({fuzz.mutant(n, texts) for n in range(20)}) == 20


@pytest.mark.parametrize("mutate", fuzz.MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_every_mutation_changes_something(mutate):
    text, other = fuzz.corpus()[:2]
    assert any(mutate(text, other, fuzz.random.Random(n)) != text for n in range(5))


def test_the_fuzzer_sees_a_bare_error(monkeypatch):
    reader = importlib.import_module("ptxdsl.parse.module").ModuleReader
    monkeypatch.setattr(reader, "read", lambda reader: [][0])
    assert "1: IndexError: list index out of range" in list(fuzz.failures(0, 4))
