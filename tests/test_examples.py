"""Every example runs as a program, on the emulator and on a GPU, and checks its own result."""

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxdsl import cli, config, driver

ROOT = Path(__file__).parent.parent
PYTHONPATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
ARRAYS = ROOT / "examples" / "arrays.py"
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def example(path):
    """An example, which is skipped where torch is missing and it uses that."""
    lacks = "import torch\n" in path.read_text() and importlib.util.find_spec("torch") is None
    return pytest.param(path, marks=[pytest.mark.skip(reason="torch is not installed")] if lacks else [], id=path.stem)


every_example = pytest.mark.parametrize("path", [example(path) for path in EXAMPLES])


def run(path, *arguments, **environment):
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH, **environment}
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.cases(2)
@every_example
def test_on_the_emulator(path):
    done = run(path, PYTHONWARNINGS="error")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"ok  .* on the emulator", done.stdout)


def lacks_launches(path):
    """True for programs whose kernels are launched inside torch."""
    return "import torch\n" in path.read_text()


checkable = [str(path) for path in EXAMPLES if not lacks_launches(path)] + ["ptxdsl.kernels.gemm"]


@pytest.fixture
def apart(monkeypatch):
    """Undo what loading an example does to the search path and the loaded modules."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(sys, "argv", ["ptxdsl"])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "examples")):
            del sys.modules[name]


@pytest.mark.cases(6)
@pytest.mark.parametrize("target", checkable, ids=lambda target: Path(target).name)
def test_ptxdsl_check_finds_nothing(target, apart, capfd):
    assert cli.main(["check", target]) == 0
    assert set(re.findall(r": ([\w ]+)$", capfd.readouterr().out, re.MULTILINE)) == {"clean"}


@pytest.mark.parametrize("target", [checkable[0], checkable[5], "ptxdsl.kernels.gemm"], ids=lambda t: Path(t).name)
def test_the_other_verbs_take_the_same_examples(target, apart, capfd):
    with config.using(device="emulator"):
        assert cli.main(["debug", target, "-c", "step", "-c", "where", "-c", "quit"]) == 0
        assert "(ptxdsl) where\n" in capfd.readouterr().out
        assert cli.main(["profile", target, "--gpu", "h200"]) == 0
        assert "\nfloor " in capfd.readouterr().out
        assert cli.main(["dump", target if target.endswith(".py") else f"{target}:gemm"]) == 0
        assert ".visible .entry " in capfd.readouterr().out


@pytest.mark.gpu
@every_example
def test_on_a_gpu(path):
    done = run(path, "--device", "cuda")
    if "tcgen05" in path.read_text() and (refused := re.match(r"--device cuda: the GPU is sm_\w+; .*\n$", done.stderr)):
        pytest.skip(refused.group())
    assert done.returncode == 0, done.stderr
    assert re.match(r"ok  .* on the GPU", done.stdout)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", [example(path) for path in (EXAMPLES[0], EXAMPLES[-1])])
def test_a_wrong_result_ends_with_code_1(path, tmp_path):
    """All examples check their results by the same function, see below."""
    (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "arrays.py").write_text(
        f"{ARRAYS.read_text()}\n\nexact = to_host\nto_host = lambda array: exact(array) + 1\n"
    )
    done = run(tmp_path / path.name)
    assert done.returncode == 1
    assert done.stderr.startswith("FAILED  ")


@every_example
def test_results_are_read_where_they_are_checked(path):
    """So that what `check` refuses fails every example."""
    assert "check(" in path.read_text() and "to_host" not in path.read_text()


@pytest.mark.parametrize("wrong", [2.0, 0.0, np.nan, np.inf])
def test_what_is_off_by_more_than_rounding_and_what_is_no_number_fails(wrong, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["example.py"])
    check = runpy.run_path(str(ARRAYS))["check"]
    check("right", np.array([1.0, 1.5]), 1.0, tolerance=0.5)
    with pytest.raises(SystemExit, match=r"^FAILED  wrong: an element is off by (1|nan|inf); at most 0.5 is rounding$"):
        check("wrong", np.array([1.0, wrong]), 1.0, tolerance=0.5)


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["example.py", "--device", "cuda"])
    monkeypatch.setattr(driver, "why_no_gpu", lambda: "the CUDA driver (libcuda) is not installed")
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ARRAYS))
    assert str(ended.value) == (
        "--device cuda: the CUDA driver (libcuda) is not installed\n"
        "  help: leave it out, and the kernels run on the emulator"
    )


@every_example
def test_it_says_what_is_new_and_how_to_run_it(path):
    docstring = path.read_text().split('"""')[1]
    assert f"python examples/{path.name}" in docstring
    assert "New here: " in docstring.replace("\n", " ")
