"""The replay of recorded calls: what a record holds, and what a comparison tells."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.recorded_calls import compared, difference, normalised, records

PTX = """.version 8.0
.target sm_90a
.file 1 "gemm.py"
.visible .entry scale(
    .param .u64 p_x,
    .param .u32 p_n
)
{
    .reg .u64 %rd<1>;
    .reg .u32 %r<2>, %count;
    .loc 1 97 0
    ld.param.u64 %rd0, [p_x];
    ld.param.u32 %count, [p_n];
$again:
    mov.u32 %r0, %tid.x;
    add.u32 %r1, %r0, %count;
    bra $again;
}
"""
RENAMED = (
    PTX.replace("scale", "multiply")
    .replace("p_x", "p_values")
    .replace("%r<2>, %count", "%r<1>, %rows, %n")
    .replace("%count", "%n")
    .replace("%r1", "%rows")
    .replace("$again", "$loop")
    .replace(".loc 1 97 0", ".loc 1 103 4")
)
LAUNCH = ["gemm_kernel", [1, 1, 1], [128, 1, 1], 49152, [], False, "0f", "f16[8, 8]/[8, 1]"]


def test_names_and_lines_do_not_count_in_ptx_and_instructions_do():
    assert normalised(PTX + "\n.section .debug_str\n{\n.b8 98,0\n}\n") == normalised(PTX)
    assert normalised(RENAMED) == normalised(PTX)
    assert normalised(PTX.replace("add.u32 %r1, %r0", "add.u32 %r1, %r1")) != normalised(PTX)
    assert normalised(PTX.replace("add.u32", "sub.u32")) != normalised(PTX)
    assert normalised(PTX.replace("%tid.x", "%tid.y")) != normalised(PTX)


def record(refusal="", *launches):
    return {"number": 3, "call": "gemm(a, b)", **({"refusal": refusal} if refusal else {}), "launches": [*launches]}


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (record("", LAUNCH), record("", LAUNCH), "identical"),
        (record("", LAUNCH), record("", ["other_kernel", *LAUNCH[1:]]), "identical"),
        (record("", LAUNCH), record("", [LAUNCH[0], [2, 1, 1], *LAUNCH[2:-2], "1e", LAUNCH[-1]]), "grid, PTX of a kernel"),
        (record("", LAUNCH), record("", LAUNCH, LAUNCH), "number of launches differs"),
        (record("", LAUNCH), record("LaunchError: no"), "refused before or now only"),
        (record("LaunchError: no"), record("LaunchError: never"), "refusal text differs"),
        (None, record(), "not in the record"),
    ],
)  # fmt: skip
def test_a_comparison_names_what_differs(old, new, kind):
    assert difference(old, new)[0] == kind


def test_a_refusal_is_shown_as_it_was_and_is(capsys):
    assert compared([record("LaunchError: no")], [record("LaunchError: never")], 1) == 1
    assert "- LaunchError: no\n          + LaunchError: never" in capsys.readouterr().out


@pytest.mark.exhaustive
@pytest.mark.parametrize("options", [[], ["--plans"]], ids=["ptx", "plans"])
def test_two_replays_of_the_same_calls_are_identical_in_any_process(tmp_path, options):
    count = 20 if not options else 100
    command = [sys.executable, "-m", "tests.recorded_calls", "record", tmp_path / "a", "--count", str(count), *options]
    subprocess.run([*command, "--jobs", "1"], check=True)
    first = [*map(json.loads, (tmp_path / "a").read_text().splitlines())]
    assert len(first) == count and [*records(count, 2, bool(options))] == first
