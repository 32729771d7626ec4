"""ptxdsl without cuda-python and NVIDIA's wheels, as on macOS: emulation works, and GPU errors name what is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """\
import numpy as np
import ptxdsl as pd
from ptxdsl import ptx


@pd.kernel
def double(values: pd.ptr[pd.s32], n: pd.u32):
    i = pd.tid.x
    with pd.if_(i < n):
        values[i] = values[i] * 2


"""
BLOCKED = """\
import shutil, sys
sys.modules["cuda"] = sys.modules["nvidia"] = None  # importing them raises ModuleNotFoundError
shutil.which = lambda *names, **options: None  # no command of a CUDA toolkit
sys.platform = {platform!r}
import runpy
runpy.run_path({script!r}, run_name="__main__")
"""


def run(folder, body, platform="linux", **environment):
    """Run a script in a process that can import neither `cuda` nor `nvidia`; return its exit status and its output."""
    script = folder / "script.py"
    script.write_text(KERNEL + body)
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(script=str(script), platform=platform)],
        env={**os.environ, "PYTHONPATH": root, "PTXDSL_CACHE_DIR": "off", **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


REPORT = """
try:
    {call}
except pd.Error as error:
    print(type(error).__name__)
    print(error)
"""


def reported(folder, call, platform="linux", **environment):
    """The class and the text of the error that a call raises."""
    status, out, err = run(folder, REPORT.format(call=call), platform, **environment)
    assert (status, err) == (0, "")
    return out


def test_kernels_are_traced_and_emulated(tmp_path):
    body = "values = np.arange(4, dtype=np.int32)\ndouble[1, 4](values, 4)\nprint(values, '.entry double' in double.ptx())\n"
    assert run(tmp_path, body) == (0, "[0 2 4 6] True\n", "")


def test_a_launch_on_a_gpu_says_what_to_install(tmp_path):
    out = reported(tmp_path, "double[1, 4](np.arange(4, dtype=np.int32), 4)", PTXDSL_DEVICE="cuda")
    assert out == (
        "LaunchError\n"
        "no GPU to launch on: the Python package cuda-python is not installed\n"
        "  script.py:15 | double[1, 4](np.arange(4, dtype=np.int32), 4)\n"
        "                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: pip install cuda-python, which has wheels for Linux and Windows; numpy arrays run on the emulator "
        "without it\n"
    )


def test_an_array_on_a_gpu_says_what_to_install(tmp_path):
    body = (
        "class OnGpu:\n    __cuda_array_interface__ = dict(shape=(4,), typestr='<i4', data=(4096, False), version=3)\n"
    ) + REPORT.format(call="double[1, 4](OnGpu(), 4)")
    status, out, err = run(tmp_path, body)
    assert (status, err) == (0, "")
    assert out == (
        "LaunchError\n"
        "the Python package cuda-python is not installed\n"
        "  script.py:17 | double[1, 4](OnGpu(), 4)\n"
        "                 ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: pip install cuda-python, which has wheels for Linux and Windows; numpy arrays run on the emulator "
        "without it\n"
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "platform, help",
    [
        ("linux", "pip install 'ptxdsl[asm]'; it needs no GPU and no CUDA toolkit"),
        (
            "darwin",
            "NVIDIA has no assembler for macOS: run the kernel on the emulator, or assemble it on Linux or Windows",
        ),
    ],
)
def test_machine_code_says_what_to_install(tmp_path, platform, help):
    assert reported(tmp_path, "double.cubin()", platform) == (
        "AssembleError\n"
        "no assembler for PTX is available: the Python package cuda-python is not installed; ptxas is not on the PATH\n"
        f"  help: {help}\n"
    )


@pytest.mark.exhaustive
def test_the_demo_skips_machine_code(tmp_path):
    status, out, err = run(tmp_path, "from ptxdsl.cli import demo\nassert demo.run(None) == 0\n")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert (
        "skipped    machine code: no assembler for PTX is available: the Python package cuda-python is not installed; "
        "ptxas is not on the PATH"
    ) in lines
    assert "no launch  the Python package cuda-python is not installed" in lines
    assert lines[-1] == "ok: the result of this PTX is correct on the emulator"
