"""The code blocks of a Markdown page: found, run, and what they print."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import ptxdsl as pd
from ptxdsl import cli

ROOT = Path(__file__).parent.parent
PYTHONPATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> Iterator[tuple[str, str, str | None]]:
    """Each block that is run, as (language, text, the output that the page shows behind it, or None)."""
    fenced = BLOCK.findall(page)
    for (language, text), (after, output) in pairwise([*fenced, ("", "")]):
        if language in ("python", "console"):
            yield language, text, output if after == "text" else None


def pattern(text: str) -> str:
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


def run_page(page: str, capfd) -> None:
    """Runs the blocks of a page in their order, as one program, in the current folder; compares what they print."""
    names = {"__name__": "__main__"}
    for language, text, output in blocks(page):
        if language == "python":
            printed, refused = execute(text, names, capfd)
            assert (printed + refused == output) if output else not refused, printed + refused
            continue
        for line, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            printed = command(line, capfd)
            assert re.fullmatch(pattern(shown), printed), f"{line}\n{printed}"
