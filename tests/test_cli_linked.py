"""Kernels of linked programs, and parsed ones, as targets of the command: `file.py:program.kernel`."""

import pytest

from ptxdsl import cli

PROGRAM = '''\
import numpy as np
import ptxdsl as pd
from ptxdsl import f32, ptr

TWICE = """
.version 7.0
.target sm_80
.address_size 64
.visible .func (.param .b32 result) twice(.param .b32 x)
{
    .reg .f32 %f<3>;
    ld.param.f32 %f1, [x];
    add.f32 %f2, %f1, %f1;
    st.param.f32 [result], %f2;
    ret;
}
"""
twice = pd.extern("twice", (f32,), f32)

@pd.kernel
def doubled(x: ptr[f32]):
    x[pd.tid.x] = twice(x[pd.tid.x])

def example_doubled(rng):
    return 1, 32, rng.standard_normal(32).astype(np.float32)

program = pd.link(doubled, TWICE)
'''
CLEAN = "program.doubled[1, 32](float32[32]): clean\n"


@pytest.fixture
def run(tmp_path, capsys):
    def run(command, target, *options, text=PROGRAM):
        (tmp_path / "linked.py").write_text(text)
        code = cli.main([command, str(tmp_path / "linked.py") + target, *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.replace(f"{tmp_path}/", "")

    return run


@pytest.mark.parametrize("target", ["", ":program", ":program.doubled"])
def test_the_examples_of_a_kernel_are_those_of_the_linked_one(run, target):
    assert run("check", target) == (0, CLEAN, "")


def test_a_linked_kernel_with_a_name_of_its_own(run):
    code, out, err = run(
        "check", ":ready", text=PROGRAM + 'ready = program["doubled"]\nexample_ready = example_doubled\n'
    )
    assert (code, out, err) == (0, "ready[1, 32](float32[32]): clean\n", "")


@pytest.mark.parametrize("target", ["", ":program", ":program.doubled"])
def test_dump_shows_the_whole_program(run, target):
    code, out, _ = run("dump", target)
    assert code == 0 and ".func (.param .b32 result) twice" in out and ".visible .entry doubled" in out


def test_profile_and_debug(run):
    assert "twice" not in run("profile", "")[2]
    code, out, err = run("debug", ":program", "-c", "break 22", "-c", "continue", "-c", "backtrace")
    assert (code, err) == (0, "") and "#0 linked.py:22  in doubled" in out


def test_a_parsed_kernel(run):
    text = PROGRAM + 'parsed = pd.parse(program.ptx())["doubled"]\n'
    assert ".visible .entry doubled" in run("dump", ":parsed", text=text)[1]


@pytest.mark.parametrize(
    ("command", "target", "refusal"),
    [
        (
            "check",
            ":program.double",
            "ptxdsl: linked.py has no `program.double`\n  help: did you mean `program.doubled` or `both.doubled`?\n",
        ),
        (
            "dump",
            ":both",
            "ptxdsl: `both` of linked.py has 2 kernels: name one\n"
            "  help: write `linked.py:both.doubled`; it has both.doubled, both.other\n",
        ),
    ],
)
def test_refusals(run, command, target, refusal):
    text = PROGRAM + "@pd.kernel\ndef other(x: ptr[f32]):\n    x[0] = 1.0\n\nboth = pd.link(doubled, other, TWICE)\n"
    code, _, err = run(command, target, text=text)
    assert (code, err) == (2, refusal)


def test_constants_belong_to_the_link(run):
    assert run("dump", ":program.doubled", "--const", "n=1")[2] == (
        "ptxdsl: --const n=1: the constants of kernel `doubled` are fixed\n"
        "  help: pass constants of linked kernels to pd.link; PTX has no constants\n"
    )
