"""`ptxdsl`: verbs imported on use, `info`, `completion`, `--const` of commands that launch, Ctrl-C, the profile page."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptxdsl import cli
from ptxdsl.assemble import assemblers
from ptxdsl.cli import process
from ptxdsl.cli.completion import SHELLS
from ptxdsl.cli.progress import LaunchProgress

ROOT = Path(__file__).parent.parent
KERNELS = """\
import numpy as np
import ptxdsl as pd
from ptxdsl import f32, ptr

@pd.kernel
def scaled(x: ptr[f32], *, factor: float = 1.0):
    x[pd.tid.x] = x[pd.tid.x] * factor

def example_scaled(rng):
    return 1, 32, np.ones(32, np.float32)
"""


@pytest.fixture
def kernels(tmp_path):
    (tmp_path / "mine.py").write_text(KERNELS)
    return f"{tmp_path / 'mine.py'}:scaled"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
@pytest.mark.parametrize("imported", ["from ptxdsl.cli import main", "from ptxdsl import cli; main = cli.main"])
def test_version_and_help_import_no_verb(arguments, imported):
    script = f"import sys\n{imported}\ntry: main({arguments})\nexcept SystemExit: pass\n"
    script += "print(*sorted({'numpy', 'ptxdsl.ir', 'ptxdsl.kernels', 'cuda'} & sys.modules.keys()), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(("ptxdsl 0", "usage: ptxdsl"))
    assert done.stderr.strip() == ""


def test_help_lists_each_verb_and_each_verb_has_help(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"\n    {verb}" in shown for verb in cli.VERBS)
    assert all(cli.parser_of(verb) for verb in cli.VERBS)


def test_info_as_text_and_json(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PTXDSL_STEPS", "1000")
    assert cli.main(["info"]) == 0
    text = capsys.readouterr().out
    assert f"cache      {tmp_path}: 0 entries, 0 bytes\n" in text and "PTXDSL_STEPS=1000\n" in text
    assert cli.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["cache"] == {"folder": str(tmp_path), "entries": 0, "bytes": 0}
    assert facts["packages"]["numpy"] and facts["settings"]["PTXDSL_STEPS"] == "1000"


def test_info_without_a_cache(capsys, monkeypatch):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", "off")
    assert cli.main(["info"]) == 0
    assert "\ncache      off\n" in capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_has_verbs_options_and_choices(capsys, shell):
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    stage = "-l stage -xa 'ir ptx cubin sass'" if shell == "fish" else "--stage"
    assert all(verb in script for verb in cli.VERBS) and stage in script and "ir ptx cubin sass" in script


def test_completion_of_an_unknown_shell(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["completion", "tcsh"])
    assert left.value.code == 2
    assert "invalid choice: 'tcsh' (choose from" in capsys.readouterr().err


def test_bash_reads_its_script(capsys):
    cli.main(["completion", "bash"])
    script = capsys.readouterr().out
    script += "COMP_WORDS=(ptxdsl dump --st); COMP_CWORD=2; _ptxdsl; echo ${COMPREPLY[@]}\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("--stage\n", "")


def test_constants_of_commands_that_launch(capsys, kernels, tmp_path):
    assert cli.main(["check", kernels, "--const", "factor=3.0"]) == 0
    assert cli.main(["profile", kernels, "--const", "factor=3.0", "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "0f40400000" in page and '<div class="bars">' in page and "<summary>PTX</summary>" in page  # 3.0 in PTX
    capsys.readouterr()
    assert cli.main(["debug", kernels, "--const", "factor=3.0", "-c", "continue"]) == 0
    assert "the launch has ended" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["check", "profile", "debug"])
def test_an_unknown_constant_is_refused(capsys, kernels, verb):
    assert cli.main([verb, kernels, "--const", "factr=3"]) == 2
    assert "kernel `scaled` has no constant `factr`\n  help: it has factor\n" in capsys.readouterr().err
    assert cli.main([verb, "some.ptx", "--const", "factor=3"]) == 2
    assert "--const factor=3: PTX has no constants\n  help: leave it out\n" in capsys.readouterr().err


def test_ctrl_c_says_what_was_interrupted(capsys):
    progress = LaunchProgress("checking")

    def command():
        with progress.launch("first[1, 32]()"):
            pass
        with progress.launch("second[1, 32]()"):
            raise process.Interrupted

    assert process.run(command) == 130
    error = capsys.readouterr().err
    assert error.startswith("ptxdsl: interrupted while checking second[1, 32](), after ")
    assert error.endswith(" s; 1 launch finished before\n")


def test_dump_shows_the_wgmma_kernel_of_gemm(capsysbinary):
    assert (
        cli.main(["dump", "ptxdsl.kernels.gemm:gemm", "--arch", "sm_90a", "--const", "traits.operands.inputs=bf16"])
        == 0
    )
    text = capsysbinary.readouterr().out.decode()
    assert ".entry warpgroup_gemm_kernel(" in text
    assert re.search(r"wgmma\.mma_async\.sync\.aligned\.m64n\d+k16\.f32\.bf16\.bf16", text)


def test_dump_shows_the_kernel_of_attention(capsysbinary):
    assert cli.main(["dump", "ptxdsl.kernels.attention:attention"]) == 0
    assert ".entry attention_kernel(" in capsysbinary.readouterr().out.decode()


def test_info_names_the_release_of_ptxas(capsys, monkeypatch):
    if assemblers.ASSEMBLERS["ptxas"].why_not():
        pytest.skip("ptxas is not on the PATH")
    monkeypatch.setenv("PTXDSL_ASSEMBLER", "ptxas")
    assert cli.main(["info"]) == 0
    assert re.search(r"^assembler  ptxas \d+\.\d+\.\d+ \(/.*ptxas\)$", capsys.readouterr().out, re.MULTILINE)


def test_dump_shows_the_wgmma_kernel_of_conv2d(capsysbinary, monkeypatch):
    monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
    assert cli.main(["dump", "ptxdsl.kernels.conv:conv2d"]) == 0
    text = capsysbinary.readouterr().out.decode()
    assert ".entry warpgroup_conv2d_kernel(" in text
    assert "wgmma.mma_async.sync.aligned.m64n" in text
    assert "cp.async.bulk.tensor" in text
