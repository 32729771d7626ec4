"""What Python shows of an error that nobody catches: the user's frames, and one of ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import errors, f32, ptr

ROOT = Path(__file__).parent.parent


def helper(x):
    return x.exp()


@pd.kernel
def k(x: ptr[f32], *, mode="refused"):
    if mode == "mistake":
        undefined  # noqa: B018, F821
    if mode == "ours":
        pd.types.bits(None)
    x[0] = helper(x[1])


def frames(function, kind, monkeypatch):
    """The functions that a traceback shows, from the caller of `function` on."""
    monkeypatch.setattr(errors.tracebacks, "show_all", False)
    with pytest.raises(kind) as caught:
        function()
    return [f.name for f in traceback.extract_tb(caught.value.__traceback__)][2:]


CALLS = {
    "ptx": lambda: k.ptx(),
    "launch": lambda: k[1, 1](np.zeros(4, np.float32)),
    "emulate": lambda: pd.emulate(k, 1, 1, np.zeros(4, np.float32)),
    "cubin": lambda: k.cubin(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_error_shows_the_users_frames_and_one_of_ours(call, monkeypatch):
    ours, *users = frames(call, pd.TraceError, monkeypatch)
    assert ours in ("called", "__call__")
    assert users == ["k", "helper"]


def test_a_mistake_of_pythons_in_a_kernel_shows_them_too(monkeypatch):
    assert frames(lambda: k.ptx(mode="mistake"), NameError, monkeypatch)[1:] == ["k"]


def test_a_mistake_of_ours_shows_all(monkeypatch):
    names = frames(lambda: k.ptx(mode="ours"), Exception, monkeypatch)
    assert "bits" in names
    assert len(names) > 4


def test_an_error_of_a_text_shows_the_call(monkeypatch):
    assert frames(lambda: pd.parse("nothing"), pd.ParseError, monkeypatch) == ["called"]


def test_what_python_prints(tmp_path):
    text = "import ptxdsl as pd\n\n@pd.kernel\ndef k(n: pd.u32):\n    if n > 3:\n        pass\n\nk.ptx()\n"
    (tmp_path / "script.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    shown = [line.strip() for line in done.stderr.splitlines() if not set(line) <= set(" ^~")]
    places = [re.sub(r'^File ".*[/"\\]?\b(\w+\.py)", line \d+, in ', r"\1: ", line) for line in shown]
    assert places == [
        "Traceback (most recent call last):",
        "script.py: <module>",
        "k.ptx()",
        "errors.py: called",
        "raise of_user(error)  # noqa: B904",
        "script.py: k",
        "if n > 3:",
        "ptxdsl.errors.TraceError: Python tests `n > 3`, which is not known while tracing",
        "script.py:5 | if n > 3:",
        "help: use pd.if_, pd.while_, pd.select (for `a if p else b`), pd.assert_, pd.min or pd.max; write `and`, `or`, `not` as `&`, `|`, `~`, and `a < b < c` as `(a < b) & (b < c)`",
    ]


@pytest.mark.exhaustive
def test_the_package_may_be_on_a_path_with_dots():
    """As a notebook writes it: sys.path.insert(0, "..")."""
    program = f"import sys; sys.path.insert(0, {str(ROOT / 'docs' / '..')!r}); from ptxdsl import kernels; print(kernels.__file__)\n"
    program += "from ptxdsl.kernels import gemm\ntry: gemm(1)\nexcept Exception as e: print(e.at.file)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT / "docs"
    )
    assert done.stdout.split() == [str(ROOT / "docs" / ".." / "ptxdsl" / "kernels" / "__init__.py"), "<string>"]


def test_the_place_is_the_users_line_wherever_numpy_is_installed(tmp_path):
    text = "import numpy as np\nimport ptxdsl as pd\n\n@pd.kernel\ndef k(x: pd.ptr[pd.f32]):\n    x[0] = np.sum(x[1])\n\nk.ptx()\n"
    (tmp_path / "script.py").write_text(text)
    (tmp_path / "numpy").symlink_to(Path(np.__file__).parent)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "script.py:6 | x[0] = np.sum(x[1])" in done.stderr
