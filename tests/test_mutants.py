"""A sample of the mutants of `tests/mutants`, and what the tool says of kernels whose answers are known."""

import random

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr
from tests.mutants.reasons import explained
from tests.mutants.subjects import SUBJECTS
from tests.mutants.table import table
from tests.mutants.trial import DOUBLED, FINDING, MISSED, NUMBER, SAME, Trial, launches

SEED, EACH = 11, 5
SAMPLE = ("02_reduce", "03_transpose", "09_tma_copy", "13_cluster")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_mutants(name):
    (problems,) = launches(SUBJECTS[name])
    trial = Trial(problems)
    assert trial.accused == []
    mutants = trial.mutants()
    for verdict in trial.verdicts(random.Random(SEED).sample(mutants, min(EACH, len(mutants)))):
        told = explained(name, verdict)
        assert told.verdict != MISSED, str(told.mutant)


@pd.kernel
def exchange(x: ptr[f32], y: ptr[f32]):
    tile = pd.shared(f32, 64)
    tile[pd.tid.x] = x[pd.tid.x]
    pd.ptx.bar.sync(0)
    pd.ptx.bar.sync(0)
    with pd.if_(pd.tid.x < 60):
        y[pd.tid.x] = tile[pd.tid.x ^ 32]
    pd.ptx.bar.sync(0)


def verdicts():
    """Of all mutants of `exchange`, by what was changed."""
    (problems,) = launches(lambda: exchange[1, 64](np.arange(64, dtype=np.float32), np.zeros(64, np.float32)))
    trial = Trial(problems)
    return {f"{v.mutant.kind} {v.mutant.line} {v.mutant.change}": v for v in trial.verdicts(trial.mutants())}


def test_what_is_found_what_is_equivalent_and_why():
    told = {(v.mutant.kind, v.mutant.change, v.verdict, v.reason) for v in verdicts().values()}
    meets = "no thread touches memory before it meets the others again, or ends"
    assert told == {
        ("barrier", "removed", SAME, meets),
        ("barrier", "before st.shared.f32", SAME, meets),
        ("barrier", "removed", DOUBLED, "`bar.sync 0;` (test_mutants.py:34) does it too"),
        ("bound", "is le", NUMBER, "under lockstep"),
        ("bound", "removed", NUMBER, "under lockstep"),
        ("swizzle", "removed", NUMBER, "under lockstep"),
    }


def test_a_barrier_that_is_needed_is_found_and_the_intact_kernel_is_not_accused():
    (problems,) = launches(SUBJECTS["03_transpose"])
    trial = Trial(problems)
    (barrier,) = (m for m in trial.mutants() if m.kind == "barrier" and m.change == "removed")
    verdict = trial.verdict(barrier)
    assert verdict.verdict == FINDING
    assert "no barrier lies between the two" in verdict.reason
    assert verdict.reason.endswith("[lockstep]")
    assert trial.accused == []


def test_the_table_counts_every_mutant():
    results = {"exchange": list(verdicts().values())}
    rows = table(results).split("\n")
    count = len(results["exchange"])
    assert rows[0] == "| kernel | mutants | finding | another number | equivalent | not reached | missed |"
    assert rows[2].startswith(f"| exchange | {count} | ")
    assert rows[3].startswith(f"| all | {count} | ")
    assert rows[-1] == "- none"
