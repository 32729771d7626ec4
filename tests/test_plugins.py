"""The suite beside other pytest plugins: warnings of our tests are errors, warnings of a plugin are not."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
NOISY = """
import warnings

def pytest_configure(config):
    warnings.warn("benchmarks are disabled")

def pytest_sessionfinish(session):
    warnings.warn("nothing to save")

def pytest_terminal_summary(terminalreporter):
    warnings.warn("no data")
"""
TESTS = """
import warnings

def test_quiet():
    pass
"""


@pytest.fixture
def project(tmp_path):
    """Our settings, conftest and tiers, for tests that a test writes."""
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in ("conftest.py", "tiers.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "tests" / "test_it.py").write_text(TESTS)
    return tmp_path


def run(project, *arguments):
    path = os.pathsep.join([str(project), str(ROOT)])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=project,
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.exhaustive
def test_a_plugin_may_warn_while_it_starts_and_ends(project):
    finished = run(project, "-p", "noisy", "-n", "2")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "1 passed" in finished.stdout


@pytest.mark.exhaustive
def test_pytest_benchmark_starts_beside_xdist(project):
    pytest.importorskip("pytest_benchmark")
    finished = run(project, "-n", "2", "--benchmark-autosave")
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.exhaustive
def test_a_warning_of_a_test_is_an_error(project):
    (project / "tests" / "test_it.py").write_text(TESTS.replace("pass", "warnings.warn('loud')"))
    finished = run(project, "-p", "noisy")
    assert finished.returncode == 1
    assert "UserWarning: loud" in finished.stdout and "1 failed" in finished.stdout


@pytest.mark.exhaustive
def test_a_warning_while_a_test_file_is_read_is_an_error(project):
    (project / "tests" / "test_it.py").write_text(TESTS + "warnings.warn('read')\n")
    finished = run(project)
    assert finished.returncode == 2
    assert "UserWarning: read" in finished.stdout and "1 error" in finished.stdout


@pytest.mark.exhaustive
def test_the_command_line_has_the_last_word_on_warnings(project):
    (project / "tests" / "test_it.py").write_text(TESTS.replace("pass", "warnings.warn('loud')"))
    assert run(project, "-W", "ignore:loud").returncode == 0
