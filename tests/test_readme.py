"""All code of the README runs in its order, and prints what the README says."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import ptxdsl as pd
from ptxdsl import cli, config

ROOT = Path(__file__).parent.parent
PYTHONPATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    """Each block that is run, as (language, text, the output that the README shows behind it, or None)."""
    found = BLOCK.findall(README)
    for (language, text), (after, output) in zip(found, [*found[1:], ("", "")], strict=True):
        if language in ("python", "console"):
            yield language, text, output if after == "text" else None


def pattern(text):
    """… stands for the rest of a line, or as a line of its own for any lines."""
    lines = [r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in text.splitlines()]
    return "".join(lines)


def execute(text, names, capsys):
    """Runs a block as the file that its first line names. Returns what it prints, and the refusal that ends it."""
    file = Path(text.partition("\n")[0].removeprefix("# "))
    file.write_text(text)
    refused = ""
    try:
        exec(compile(text, str(file.resolve()), "exec"), names)
    except pd.Error as error:
        refused = f"{error}\n"
    return capsys.readouterr().out, refused


def command(line, capfd):
    """Runs a command of a console block. Returns what it prints."""
    name, *arguments = shlex.split(line)
    if name == "ptxdsl":
        assert cli.main(arguments) == 0
        done = capfd.readouterr()
        return done.err + done.out
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    assert name == "python"
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_every_snippet_runs_and_prints_what_is_shown(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for language, text, output in blocks():
        if language == "python":
            printed, refused = execute(text, names, capfd)
            assert (printed + refused == output) if output else not refused
            continue
        for line, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            printed = command(line, capfd)
            assert re.fullmatch(pattern(shown), printed), f"{line}\n{printed}"


def test_there_are_as_many_snippets_as_seen_here():
    """So that a block whose fence is misspelled does not go untested."""
    assert README.count("\n```python\n") == sum(language == "python" for language, _, _ in blocks()) == 21
    assert README.count("\n```console\n") == sum(language == "console" for language, _, _ in blocks()) == 2


@pytest.mark.parametrize("file", re.findall(r"\]\(([^)#:]+)\)", BLOCK.sub("", README)))
def test_what_it_links_to_is_there(file):
    assert (ROOT / file).exists()


def test_every_setting_is_listed():
    variables = {field.metadata["variable"] for field in fields(config.Config)}
    assert variables == set(re.findall(r"PTXDSL_\w+", README.partition("## Settings")[2]))


def test_every_command_has_a_row(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    commands = set(re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE))
    assert {"dump", "layout", "schedule"} < commands
    assert commands == set(re.findall(r"^\| `ptxdsl (\w+)", README, re.MULTILINE))


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", README, re.MULTILINE))
def test_make_targets_exist(target):
    assert f"\n{target}: " in (ROOT / "Makefile").read_text()


def test_the_first_screen_shows_it_working():
    first = "\n".join(README.splitlines()[:45])
    assert "@pd.kernel" in first
    assert "$ ptxdsl dump" in first
