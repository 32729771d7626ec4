"""What the command says of options, verbs and launches that are nearly right: the last lines, and its exit status."""

from __future__ import annotations

import importlib.util

import pytest

from ptxdsl import cli, config

KERNEL = """\
import ptxdsl as pd
from ptxdsl import f32, ptr, u32

@pd.kernel
def saxpy(x: ptr[f32], y: ptr[f32], a: f32, n: u32):
    y[pd.tid.x] = a * x[pd.tid.x] + y[pd.tid.x]

@pd.function
def twice(x: f32) -> f32:
    return x + x
"""
KNOWN = ", ".join(config.ARCHITECTURES)
VERBS = (
    "break, breaks, clear, continue, step, next, stepi, quit, help, thread, print, registers, warp, shared, memory, where, "
    "backtrace, findings, list, ptx"
)  # fmt: skip
LAUNCH = "--grid 1 --block 32"
WHOLE = f"{LAUNCH} --arg f32[32] --arg f32[32] --arg 1.0 --arg 32"
FEW = "ptxdsl: saxpy takes 4 arguments, got 1\n  help: call it with (x: ptr[f32], y: ptr[f32], a: f32, n: u32)\n"
REFUSED = {
    "check k.py --schedule=random": "ptxdsl check: error: there is no option --schedule; it is a setting: put "
    "PTXDSL_SCHEDULE=random in front of the command\n",
    "check --gird 8 k.py": "ptxdsl check: error: there is no option --gird; did you mean `--grid`?\n",
    "dump k.py --annotat2=1": "ptxdsl dump: error: there is no option --annotat2; did you mean `--annotate`?\n",
    "dump k.py more": "ptxdsl dump: error: unexpected arguments: more\n",
    "build k.py --arch sm_80 sm_90a": (
        "ptxdsl build: error: unexpected arguments: sm_90a; separate targets by commas, without spaces\n"
    ),
    "build k.py --target sm_80": "ptxdsl build: error: there is no option --target; did you mean `--arch`?\n",
    "check --json k.py": (
        "ptxdsl check: error: the following arguments are required: TARGET; write it before --json, which takes the next "
        "word as its value\n"
    ),
    "build k.py --arch 90": f"ptxdsl: unknown architecture `90`\n  help: did you mean `sm_90`? known architectures are {KNOWN}\n",
    "dump k.py:twice": "ptxdsl: `twice` of k.py is a device function, not a kernel\n  help: name a kernel that calls it\n",
    f"debug k.py {WHOLE} -c thread\x0099": "ptxdsl: `thread` names thread (99, 0, 0) of block (0, 0, 0); the block is (32, 1, 1)\n",
    "dump k.py --stage sas": "invalid choice: 'sas' (choose from 'ir', 'ptx', 'cubin', 'sass'); did you mean `sass`?\n",
    "run gemm --sed 3 --dtype f16 --out": "ptxdsl run gemm: error: argument --out: expected one argument\n",
    "run gemm --sede 3": "ptxdsl run gemm: error: there is no option --sede; did you mean `--seed`?\n",
    "chek k.py": "'isa', 'info', 'completion', 'demo'); did you mean `check`?\n",
    f"check k.py {LAUNCH} --arg f32[32]": FEW,
    f"debug k.py {LAUNCH} --arg f32[32]": FEW,
    f"profile k.py {LAUNCH} --arg f32[32]": FEW,
    f"debug k.py {WHOLE} -c brek": (
        f"ptxdsl: there is no command `brek`\n  help: did you mean `break`? the commands are {VERBS}\n"
    ),
    f"debug k.py {WHOLE} -c run": (
        "ptxdsl: there is no command `run`\n  help: the launch has begun: `continue` goes on to the next stop; "
        f"the commands are {VERBS}\n"
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "k.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PTXDSL_ARCH", raising=False)


def status(words):
    try:
        return cli.main([word.replace("\0", " ") for word in words.split()])
    except SystemExit as ended:  # as argparse ends
        return ended.code


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_nearly_right_says_what_was_meant(words, folder, capsys):
    assert status(words) == 2
    assert capsys.readouterr().err.endswith(REFUSED[words])


def test_a_launch_of_an_example_that_does_not_fit_is_a_finding(folder, capsys, tmp_path):
    example = "import numpy as np\ndef example_saxpy(rng):\n    return 1, 32, np.zeros(32, np.float32)\n"
    (tmp_path / "k.py").write_text(KERNEL + example)
    assert status("check k.py") == 1
    assert "refused: saxpy takes 4 arguments, got 1\n" in capsys.readouterr().out


@pytest.mark.skipif(importlib.util.find_spec("ml_dtypes") is None, reason="needs ml_dtypes")
@pytest.mark.parametrize("words", ["--dtype e4m3", "--dtype e5m2 --out e5m2 --config tile=64,64,128"])
def test_products_of_8_bit_floats_run_on_the_emulator(words, folder, capsys):
    assert status(f"run gemm --m 64 --n 64 --k 128 --device emulator {words}") == 0
    assert capsys.readouterr().out.endswith("ok\n")
