"""Bounded runs of the fuzzers in `tests/fuzz`: random programs keep their invariants, and damaged PTX is read or refused."""

import importlib
import itertools
import os
import re
import subprocess
import sys
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ptxdsl import types
from ptxdsl.isa import Op, integer, lookup
from tests.fuzz import __main__ as command
from tests.fuzz import damage, exclusions, generate
from tests.fuzz.exclusions import canonical_nan
from tests.fuzz.generate import program
from tests.fuzz.machines import prepare
from tests.fuzz.program import Line, lines, mentioned
from tests.fuzz.reduction import Reducer, places, simpler_texts

ROOT = Path(damage.__file__).parents[2]
CHUNK = 10


class Here(Executor):
    """Runs what is submitted at once."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


@pytest.mark.cases(2)
@pytest.mark.parametrize("first", range(0, 50 * CHUNK, CHUNK))
def test_programs_assemble_and_give_the_same_bits_under_every_schedule(first):
    outcomes = {seed: prepare(program(seed), assembles=True).outcome for seed in range(first, first + CHUNK)}
    assert not {seed: (o.kind, o.details, o.differences[:4]) for seed, o in outcomes.items() if o.kind}


@pytest.mark.gpu
def test_programs_give_the_bits_of_the_emulator_on_a_gpu():
    fuzz = [sys.executable, "-m", "tests.fuzz", "--seed", "0", "--count", "50", "--gpu"]  # of its own: it forks
    done = subprocess.run(fuzz, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_programs_are_the_same_in_every_run():
    assert [program(n).text for n in range(5)] == [program(n).text for n in range(5)]
    assert len({program(n).text for n in range(5)}) == 5


def test_programs_have_every_kind_of_statement():
    text = "\n".join(program(n).text for n in range(100))
    for what in (
        "bra L", "brx.idx", "call (", "shfl.sync", "vote.sync", "match.any", "redux.sync", "mma.sync", "ldmatrix", "bar.sync",
        "ld.const", "ld.local", "st.shared", ".v4.", "atom.", "red.shared", "addc", "cvt.", "setp.", "vadd", "fma.rn", "@!%p",
        "f16x2", "bf16", ".f64", "0f7F800000",
    ):  # fmt: skip
        assert what in text, what


def test_a_dependence_on_the_schedule_is_found_and_reduced(monkeypatch, capsys):
    monkeypatch.setattr(integer.Popc, "run", lambda op, i, a: np.full(a.shape, a.size, np.uint32))
    monkeypatch.setattr(command, "pool", lambda jobs: Here())
    body = (*program(3).body[:6], Line("popc.b32 %r1, %r2;"), *program(3).body[6:8])
    monkeypatch.setattr(generate, "program", lambda seed: replace(program(seed), body=body))
    assert command.main(["--seed", "3", "--count", "1", "--jobs", "4"]) == 1
    printed = capsys.readouterr().out
    assert "1 schedule" in printed and "python -m tests.fuzz --seed 3 --count 1" in printed
    assert "skewed differs from lockstep" in printed and "popc" in printed
    assert printed.count("\n") < 30


def test_reduction_keeps_only_what_fails():
    start = next(p for p in map(program, range(100)) if "shfl" in "".join(lines(p.body)))
    small = Reducer(lambda some: ["shfl.sync" in p.text for p in some], 8).reduce(start, 0)
    assert len(list(places(small))) == 1 and isinstance(small.body[0], Line)
    assert mentioned(lines(small.body)) >= {"%r0"}


@pytest.mark.exhaustive
def test_every_exclusion_leaves_something_out():
    opcodes = [
        next(i for i in lookup(text) if i.form is form)
        for rows in Op.table.values()
        for _, form in rows
        for text in itertools.islice(form.spellings(), 200)
    ]
    assert [why for why, applies in exclusions.EXCLUDED.items() if not any(map(applies, opcodes))] == []


SEEDS = {0: 80, 1_000_000: 80}
"""The first mutant of each run, and how many there are."""


@pytest.mark.cases(1)
@pytest.mark.parametrize("first, count", SEEDS.items())
def test_mutants_are_read_or_refused_in_words(first, count):
    command = [sys.executable, "-m", "tests.fuzz.damage", str(first), str(count)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    limit = 30 + count * damage.SECONDS
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_mutants_are_the_same_in_every_run():
    texts = damage.corpus()
    assert len(texts) >= 10
    assert [damage.mutant(n, texts) for n in range(20)] == [damage.mutant(n, texts) for n in range(20)]
    assert len({damage.mutant(n, texts) for n in range(20)}) == 20


@pytest.mark.parametrize("type", [types.f16, types.f16x2, types.f32, types.f64], ids=str)
def test_a_reduced_program_still_canonicalises_nan(type):
    canonical = canonical_nan("%r3", type)
    for text in simpler_texts(f"fma.rn.{type} %r3, %r1, 1, 7; {canonical}"):
        result = re.match(r"fma\S+ (%r\d)", text)
        assert result is None or canonical_nan(result[1], type) in text


@pytest.mark.parametrize("mutate", damage.MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_every_mutation_changes_something(mutate):
    text, other = damage.corpus()[:2]
    assert any(mutate(text, other, damage.random.Random(n)) != text for n in range(5))


def test_the_fuzzer_sees_a_bare_error(monkeypatch):
    reader = importlib.import_module("ptxdsl.parse.module").ModuleReader
    monkeypatch.setattr(reader, "read", lambda reader: [][0])
    assert "1: IndexError: list index out of range" in list(damage.failures(0, 4))
