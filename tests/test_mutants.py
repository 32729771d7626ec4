"""A sample of the mutants of `tests/mutants`, and what the tool says of kernels whose answers are known."""

import multiprocessing
import random
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import f32, ptr
from tests.mutants import racecheck
from tests.mutants.__main__ import main
from tests.mutants.cores import Cores, OutOfTime
from tests.mutants.mutate import SHARED_ACCESS, Kernel
from tests.mutants.reasons import explained
from tests.mutants.rows import Rows
from tests.mutants.subjects import ROWS, SHARES, SUBJECTS, hopper, shares
from tests.mutants.table import table, with_tables
from tests.mutants.trial import DOUBLED, FINDING, MISSED, NUMBER, SAME, Trial, Verdict, launches

SEED, EACH = 11, 5
INTACT = ("gemm", "gemm, split K in turn", "conv2d", "10_mbarrier_ring")
SAMPLE = ("02_reduce", "03_transpose", "09_tma_copy", "13_cluster")


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_mutants(name):
    (problems,) = launches(SUBJECTS[name])
    trial = Trial(problems)
    assert trial.accused == []
    mutants = trial.mutants()
    for verdict in trial.verdicts(random.Random(SEED).sample(mutants, min(EACH, len(mutants)))):
        told = explained(name, verdict)
        assert told.verdict != MISSED, str(told.mutant)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", INTACT)
def test_kernels_give_the_same_under_each_schedule(name):
    """In lockstep, one warp as far as it goes, at random: the same bytes, and no findings."""
    for problems in launches(SUBJECTS[name]):
        assert Trial(problems[:1]).accused == []


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
    meets = "no thread touches memory before its next barrier or its exit"
    assert told == {
        ("barrier", "removed", SAME, meets),
        ("barrier", "before st.shared.f32", SAME, meets),
        ("barrier", "removed", DOUBLED, "`bar.sync 0;` (test_mutants.py:53) has the same effect"),
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
    assert "no barrier orders the two" in verdict.reason
    assert verdict.reason.endswith("[lockstep]")
    assert trial.accused == []


@pytest.mark.exhaustive
def test_the_mutants_of_a_python_line_alone(capsys):
    (problems,) = launches(SUBJECTS["03_transpose"])
    (barrier,) = (m for m in Trial(problems).mutants() if m.kind == "barrier" and m.change == "removed")
    assert main(["03_transpose"], barrier.source) == 0
    (told,) = [line for line in capsys.readouterr().out.split("\n") if line.startswith("03_transpose:")]
    assert told.startswith(f"03_transpose: {barrier}: finding: ")


@pytest.mark.exhaustive
def test_verdicts_that_are_on_disk_are_not_sought_again(tmp_path, monkeypatch, capsys):
    rows = tmp_path / "rows.jsonl"
    assert main(["03_transpose"], rows=rows) == 0
    told = capsys.readouterr().out
    last = rows.read_text().splitlines(keepends=True)[-1]
    rows.write_text(rows.read_text().removesuffix(last) + last[:20])  # cut off
    assert main(["03_transpose"], rows=rows) == 0
    assert capsys.readouterr().out == told
    monkeypatch.setattr(Trial, "verdict", None)
    assert main(["03_transpose"], rows=rows) == 0
    assert capsys.readouterr().out == told


@pytest.mark.exhaustive
def test_the_tables_of_a_page_become_those_of_a_run(tmp_path, capsys):
    page, told = tmp_path / "mutants.md", {"exchange": list(verdicts().values())}
    text = f"# Mutants\n\n{table(told).partition('Missed:')[0]}None is missed.\n"
    page.write_text(text)
    assert main(["03_transpose"], kind="barrier", page=page) == 0
    of_run = capsys.readouterr().out.partition("| kernel")
    assert page.read_text() == f"# Mutants\n\n{''.join(of_run[1:]).partition('Missed:')[0]}None is missed.\n"
    page.write_text(with_tables(page.read_text(), told))
    assert page.read_text() == text


@pytest.mark.exhaustive
def test_processes_judge_as_one_does(capsys):
    assert main(["02_reduce", "13_cluster"], kind="barrier") == 0
    told = capsys.readouterr().out
    assert main(["02_reduce", "13_cluster"], kind="barrier", jobs=2) == 0
    assert capsys.readouterr().out == told


@pytest.mark.exhaustive
def test_merged_parts_are_a_whole_run(tmp_path, capsys):
    files = [tmp_path / f"part{number}" for number in (1, 2)]
    for number, file in enumerate(files, 1):
        main(["02_reduce"], part=(number, 2), rows=file)
    merged = tmp_path / "merged"
    merged.write_text("".join(file.read_text() for file in files))
    capsys.readouterr()
    assert main(["02_reduce"], rows=merged) == main(["02_reduce"]) == 0
    first, second = capsys.readouterr().out.split("- none\n")[:2]
    assert first == second


def test_a_run_without_time_says_how_to_resume(tmp_path, capsys):
    page, rows = tmp_path / "page.md", tmp_path / "rows"
    assert main(["02_reduce", "03_transpose"], seconds=0, rows=rows, page=page) == 3
    assert capsys.readouterr().out == f"stopped after 0 s with 0 mutants judged; run again with --rows {rows}\n"
    assert main(["02_reduce"], seconds=0) == 3
    assert capsys.readouterr().out.endswith("; keep verdicts with --rows FILE to resume\n")
    assert not page.exists()


def test_processes_stop_at_the_time_limit_and_what_they_found_is_kept():
    found = []
    with pytest.raises(OutOfTime):
        for number, square in Cores(2, seconds=1).each(lambda n: time.sleep(60 * (n > 2)) or n * n, range(6)):
            found.append((number, square))
    assert sorted(found) == [(0, 0), (1, 1), (2, 4)]
    assert multiprocessing.active_children() == []


def test_an_exception_in_a_process_is_raised():
    with pytest.raises(ZeroDivisionError):
        list(Cores(2).each(lambda n: 1 // n, range(2)))


@pd.kernel(reqntid=64)
def in_rounds(x: ptr[f32], y: ptr[f32]):
    """Three slots of a ring of two stages: the toggle behind the second is the last that anybody waits by."""
    tile, ring = pd.shared(f32, (2, 32)), pd.Ring(2, producers=32, consumers=32)
    with pd.warp(0):
        for k in range(3):
            tile[ring.acquire().index, pd.laneid] = x[k * 32 + pd.laneid]
            ring.commit()
    with pd.warp(1):
        for k in range(3):
            y[k * 32 + pd.laneid] = tile[ring.wait().index, pd.laneid]
            ring.release()


@pytest.mark.exhaustive
def test_parities_that_are_not_toggled_are_found_unless_nobody_waits_by_them():
    x = np.arange(96, dtype=np.float32)
    with hopper():
        (problems,) = launches(lambda: in_rounds[1, 64](x, np.zeros_like(x)))
    trial = Trial(problems)
    toggles = [m for m in trial.mutants() if (m.kind, m.change) == ("phase", "is not toggled")]
    told = [(v.verdict, v.reason if v.verdict == SAME else "") for v in map(trial.verdict, toggles)]
    unused = (SAME, "no thread waits for that parity")
    assert told == [unused, (FINDING, ""), unused] * 2


@pytest.mark.exhaustive
def test_numbers_of_tiles_are_overwritten_too_early_where_the_ring_has_more_stages_than_are_held():
    """With fewer, as the subjects have them, who copies waits for the products of that tile in any case. Warps that are
    told of a tile lose nothing: each of their lanes arrives for itself."""
    deep = replace(SHARES, stages=5)
    ((launch,),) = launches(lambda: shares(deep, (72, 64), rows=(*ROWS, 20, 7)))
    kernel = Kernel(launch.text)
    mutants = [m for m in kernel.mutants() if m.source.startswith("tile_queue.py") and "bar.warp.sync" in m.instruction]
    for schedule in ("lockstep", "skewed"):
        told = [launch.run(kernel.with_lines(m.changed), schedule).finding for m in mutants if m.change == "removed"]
        assert [(": st.async" in finding, "read by threads of warp" in finding) for finding in told] == [
            (True, True),
            (False, False),
            (False, False),
        ]


@pd.kernel(arch="sm_90a", reqntid=32)
def in_two_rounds(y: pd.TensorMap(f32, (1, 32))):
    """Each waits before it writes what it stores, and behind that: of the first three the middle one would do."""
    row = y.shared(1)
    for n in range(2):
        with pd.if_(pd.tid.x == 0):
            pd.ptx.cp.async_.bulk.wait_group.read(0)
        pd.ptx.bar.sync(0)
        row[0, 0, pd.tid.x] = 1.0 + n
        pd.ptx.fence.proxy.async_.shared__cta()
        pd.ptx.bar.sync(0)
        with pd.if_(pd.tid.x == 0):
            y.store((n, 0), row.address(0, 0, 0))
            pd.ptx.cp.async_.bulk.commit_group()
            pd.ptx.cp.async_.bulk.wait_group.read(0)


def test_a_wait_is_needed_unless_its_thread_has_waited_since_it_began_something():
    """A barrier behind it is no reason: without the wait the barrier orders nothing that the thread began."""
    (problems,) = launches(lambda: in_two_rounds[1, 32](np.zeros((2, 32), np.float32)))
    trial = Trial(problems)
    waits = [m for m in trial.mutants() if "wait_group" in m.instruction and m.change == "removed"]
    told = [(v.verdict, v.reason) for v in trial.verdicts(waits)]
    idle = (SAME, "the thread has nothing in flight")
    too = f"`cp.async.bulk.wait_group.read 0;` ({waits[2].source}) has the same effect"
    assert told[:3] == [idle, (DOUBLED, too), idle]
    assert told[3][0] == FINDING
    assert "still reads dynamic_shared[0] when its block ends" in told[3][1]


TELLING = """.entry k()
{
    bar.warp.sync 4294967295;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
    mbarrier.arrive.shared::cta.b64 _, [%r1];
    ld.shared.u32 %r2, [%r3];
    bar.warp.sync 4294967295;
    ret;
}"""


def test_who_arrives_at_an_mbarrier_tells_others_what_they_may_touch():
    """A barrier in front of that is not one that could as well be the next one."""
    kernel = Kernel(TELLING)
    removed, behind = (m for m in kernel.mutants() if m.line == 2 and m.change in ("removed", "behind ld.shared.u32"))
    for mutant in (removed, behind):
        lines = kernel.until_next(mutant, SHARED_ACCESS)
        assert [n for n, (first, *_) in sorted(lines.items()) if "trap" in first] == [4, 5]


def test_the_table_counts_every_mutant():
    results = {"exchange": list(verdicts().values())}
    rows = table(results).split("\n")
    count = len(results["exchange"])
    assert rows[0] == "| kernel | mutants | finding | another number | equivalent | not reached | missed |"
    assert rows[2].startswith(f"| exchange | {count} | ")
    assert rows[3].startswith(f"| all | {count} | ")
    assert rows[-1] == "- none"


REPORTED = """========= COMPUTE-SANITIZER
launched s0_intact
========= Error: Race reported between Read access at s0_m0+0x5d0 in kernel.py:41
=========     and Write access at s0_m0+0x4d0 in kernel.py:35 [1232 hazards]
=========
launched s0_m0
launched s0_m1
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_races_that_racecheck_reports_are_of_the_kernel_that_ended_last():
    assert racecheck.hazards(REPORTED) == {"s0_intact": 0, "s0_m0": 1, "s0_m1": 0}


def test_the_texts_for_racecheck_differ_in_their_names_and_in_one_line():
    text = exchange.ptx()
    intact, *mutants = racecheck.texts(3, text, "exchange")
    assert intact == ("s3_intact", text.replace(".entry exchange(", ".entry s3_intact("))
    assert [name for name, _ in mutants] == [f"s3_m{n}" for n in range(len(mutants))]
    assert all(changed.count("bar.sync") >= 1 for _, changed in mutants)


def test_the_table_of_both_names_what_they_judge_differently():
    agreement = racecheck.Agreement()
    first, second = racecheck.sample(exchange.ptx())[:2]
    agreement.add(first, True, True)
    agreement.add(second, True, False)
    rows = racecheck.table({"exchange": agreement}, ["03_transpose"]).split("\n")
    assert rows[2:] == [
        "| exchange | 2 | 1 | 1 | 0 | 0 |",
        "| all | 2 | 1 | 1 | 0 | 0 |",
        "",
        "Intact kernels that racecheck accuses: 03_transpose.",
        "",
        f"- exchange: emulator only: {second}",
    ]


def test_rows_stay_valid_where_only_lines_and_functions_of_python_changed(tmp_path):
    text = exchange.ptx()
    assert ".loc" in text
    moved = "\n".join(re.sub(r"(\.loc \d+) (\d+)", r"\1 9\2", line) for line in text.split("\n"))
    moved += "\n.section .debug_str\n{\n$L__info_string0:\n.b8 97,0\n}\n"  # the name of an inlined function
    mutants, others = (list(Kernel(each).mutants()) for each in (text, moved))
    assert mutants[0].source != others[0].source
    rows = Rows(tmp_path / "rows", "exchange", text, mutants)
    for n, mutant in enumerate(mutants):
        rows.keep(n, Verdict(mutant, FINDING, ""), 0)
    assert [*Rows(tmp_path / "rows", "exchange", moved, others).known] == [*range(len(mutants))]
    other = text.replace("bar.sync 0", "bar.sync 1")
    assert not Rows(tmp_path / "rows", "exchange", other, list(Kernel(other).mutants())).known
