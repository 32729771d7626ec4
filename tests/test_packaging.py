"""What is said of the package in several places is the same, and the check of built packages sees what is amiss."""

import re
import tomllib
from pathlib import Path

import ptxdsl
from tests.wheel import sdist_problems, wheel_problems

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = [str(p.relative_to(ROOT)) for p in (ROOT / "ptxdsl").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
LICENSE = "ptxdsl-0.1.0.dist-info/licenses/LICENSE"


def cited(field):
    return re.search(rf"^{field}: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]


def test_the_version_and_the_license_are_the_same_everywhere():
    assert PROJECT["version"] == ptxdsl.__version__ == cited("version")
    assert PROJECT["license"] == cited("license")


def test_the_workflow_runs_make_targets_that_are_there():
    workflow, makefile = (ROOT / ".github/workflows/ci.yml").read_text(), (ROOT / "Makefile").read_text()
    targets = re.findall(r"run: make (\w+)", workflow)
    assert targets == ["test", "lint", "docs", "wheel"]
    assert all(f"\n{target}:" in makefile for target in targets)
    oldest = re.search(r'python: \["([\d.]+)"', workflow)[1]
    assert PROJECT["requires-python"] == f">={oldest}"


def test_what_a_wheel_lacks_or_has_too_much_is_told():
    assert {"ptxdsl/py.typed", "ptxdsl/trace/instructions.pyi", "ptxdsl/parse/ptx.lark"} <= {*FILES}
    assert wheel_problems([*FILES, LICENSE]) == []
    lacking = [name for name in FILES if name != "ptxdsl/py.typed"]
    assert wheel_problems([*lacking, "tests/conftest.py"]) == ["ptxdsl/py.typed", "tests/conftest.py", "LICENSE"]


def test_what_an_sdist_lacks_is_told():
    assert "Makefile" in sdist_problems(["ptxdsl-0.1.0/pyproject.toml"])
    assert "pyproject.toml" not in sdist_problems(["ptxdsl-0.1.0/pyproject.toml"])
