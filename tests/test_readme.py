"""The README is short, its links and make targets exist, and the command page lists every command and setting."""

import re
from dataclasses import fields

import pytest

from ptxdsl import cli, config
from tests.snippets import BLOCK, ROOT

README = (ROOT / "README.md").read_text()
COMMAND = (ROOT / "docs" / "guide" / "command.md").read_text()


@pytest.mark.parametrize("file", re.findall(r"\]\(([^)#:]+)\)", BLOCK.sub("", README)))
def test_what_it_links_to_is_there(file):
    assert (ROOT / file).exists()


def test_every_setting_is_listed():
    variables = {field.metadata["variable"] for field in fields(config.Config)}
    assert variables == set(re.findall(r"PTXDSL_\w+", COMMAND.partition("## Settings")[2]))


def test_every_command_has_a_row(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    commands = set(re.findall(r"^    (\w+)(?: |$)", capsys.readouterr().out, re.MULTILINE))
    assert {"dump", "layout", "schedule"} < commands
    assert commands == set(re.findall(r"^\| `ptxdsl (\w+)", COMMAND, re.MULTILINE))


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", README, re.MULTILINE))
def test_make_targets_exist(target):
    assert f"\n{target}: " in (ROOT / "Makefile").read_text()


def test_it_is_short_and_its_first_screen_shows_it_working():
    lines = README.splitlines()
    assert len(lines) <= 116
    assert "@pd.kernel" in "\n".join(lines[:45])
    assert "$ ptxdsl dump" in "\n".join(lines[:45])


def test_it_says_how_tests_are_run():
    assert "\nmake test " in README
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()
