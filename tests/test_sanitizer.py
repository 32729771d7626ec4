"""compute-sanitizer has nothing to say of the examples of Hopper, nor of small products of the sm_90a path."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = [
    path.stem for path in sorted((ROOT / "examples").glob("*.py")) if path.stem[:2] in ("09", "10", "11", "12", "13")
]
CLEAN = {
    "memcheck": "ERROR SUMMARY: 0 errors",
    "synccheck": "ERROR SUMMARY: 0 errors",
    "racecheck": "RACECHECK SUMMARY: 0 hazards",
}


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not on the PATH")
@pytest.mark.parametrize("tool", CLEAN)
@pytest.mark.parametrize("name", [*EXAMPLES, "gemm", "cluster", "ragged"])
def test_it_is_clean(name, tool):
    program = [f"examples/{name}.py"] if name in EXAMPLES else ["-m", "tests.sanitized", name]
    environment = {
        **os.environ,
        "PTXDSL_DEVICE": "cuda",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    # Bindings ask the driver for functions that it may not have, which memcheck would call an error.
    options = ["--report-api-errors", "no"] if tool == "memcheck" else []
    done = subprocess.run(
        ["compute-sanitizer", "--tool", tool, *options, sys.executable, *program],
        capture_output=True, text=True, env=environment, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert CLEAN[tool] in done.stdout, done.stdout
