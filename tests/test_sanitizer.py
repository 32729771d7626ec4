"""compute-sanitizer has nothing to say of the examples of Hopper, nor of small products of the sm_90a path."""

import os
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests import sanitized
from tests.machines import machine

ROOT = Path(__file__).parent.parent
EXAMPLES = [
    path.stem for path in sorted((ROOT / "examples").glob("*.py")) if path.stem[:2] in ("09", "10", "11", "12", "13")
]
CLEAN = {
    "memcheck": "ERROR SUMMARY: 0 errors",
    "synccheck": "ERROR SUMMARY: 0 errors",
    "racecheck": "RACECHECK SUMMARY: 0 hazards",
}
needs_it = pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not on the PATH")


@pytest.mark.gpu
@needs_it
@pytest.mark.parametrize("tool", CLEAN)
@pytest.mark.parametrize("name", [*EXAMPLES, "gemm", "cluster", "ragged"])
def test_it_is_clean(name, tool):
    program = [f"examples/{name}.py"] if name in EXAMPLES else ["-m", "tests.sanitized", name]
    environment = {
        **os.environ,
        "PTXDSL_DEVICE": "cuda",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        ["compute-sanitizer", "--tool", tool, *sanitized.TOOLS[tool], sys.executable, *program],
        capture_output=True, text=True, env=environment, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert CLEAN[tool] in done.stdout, done.stdout


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sanitized.PRODUCTS)
def test_the_products_are_right_on_the_emulator(name, monkeypatch):
    """Those that run under the tools, with as many blocks."""
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    assert sanitized.error_of(name, machine("emulator")) == 0


REPORTED = """========= COMPUTE-SANITIZER
ended: gemm
========= Error: Race reported between Read access at warpgroup_gemm_kernel+0x5d0 in gemm.py:41
=========     and Write access at warpgroup_gemm_kernel+0x4d0 in gemm.py:35 [1232 hazards]
=========
========= Warning: Race reported between Write access at warpgroup_gemm_kernel+0x10
=========     and Write access at warpgroup_gemm_kernel+0x20 [4 hazards]
ended: swapped, in turns
ended: lists
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
INVALID = """========= Invalid __global__ write of size 2 bytes
=========     at warpgroup_grouped_kernel+0x40
=========     by thread (0,0,0) in block (0,0,0)
========= ERROR SUMMARY: 1 error
"""


def test_errors_are_of_the_product_that_ended_next():
    assert sanitized.counted(REPORTED) == ({"gemm": 0, "swapped, in turns": 2, "lists": 0}, 0)
    assert sanitized.counted("ended: gemm\n" + INVALID) == ({"gemm": 0}, 1)


FAKE = """#!/bin/sh
# Stands in for compute-sanitizer: one error of `b`, and a process that ends in `c`.
tool=$2
while [ "$1" != tests.sanitized ]; do shift; done
shift
echo ========= COMPUTE-SANITIZER
for name; do
    [ $tool/$name = memcheck/b ] && printf '========= Invalid read\\n=========     at k\\n'
    [ $tool/$name = memcheck/c ] && { echo '========= Error: process ended'; exit 1; }
    echo "ended: $name"
    [ $tool/$name = synccheck/a ] && echo "a: an element is off by 1.0"
done
echo ========= ERROR SUMMARY: 0 errors
"""


@pytest.mark.parametrize("processes", [1, 3, 8])
def test_one_command_runs_all_and_goes_on_behind_a_process_that_ended(processes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sanitized, "PROCESSES", processes)
    fake = tmp_path / "compute-sanitizer"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert sanitized.sweep(["a", "b", "c", "d"]) == 3
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith(tuple(sanitized.TOOLS))]
    by_tool = [[line for line in told if line.startswith(tool)] for tool in sanitized.TOOLS]
    assert told == [*chain(*by_tool)] and [sorted(lines) for lines in by_tool] == [
        [
            "memcheck a: 0 errors",
            "memcheck b: 1 errors",
            "memcheck c: 1 errors, and its process ended (exit code 1)",
            "memcheck d: 0 errors",
        ],
        ["synccheck a: 0 errors, wrong results", *(f"synccheck {name}: 0 errors" for name in "bcd")],
        [f"racecheck {name}: 0 errors" for name in "abcd"],
    ]
