"""The code blocks of Markdown pages. Each block runs as the file that it names, and must print the output after it.

python -m tests.snippets README.md docs/tutorial/*.md      # write the outputs again, except those with an ellipsis
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import ptxdsl as pd
from ptxdsl import cli

ROOT = Path(__file__).parent.parent
PYTHONPATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
FILE = re.compile(r"# ([\w/]+\.py)\n")


@dataclass(frozen=True)
class Ran:
    """A block or a command of a page: its name, the output at page[begin:end] (-1: it has none), and what it printed."""

    name: str
    begin: int
    end: int
    shown: str
    printed: str

    @property
    def agrees(self) -> bool:
        """True if the page shows what was printed; an ellipsis is the rest of a line, or on its own any lines."""
        return re.fullmatch(_pattern(self.shown), self.printed) is not None


def python_blocks(page: str) -> list[str]:
    return [block[2] for block in BLOCK.finditer(page) if block[1] == "python"]


def file_of(block: str) -> str | None:
    """Return the file name in the first line of a Python block."""
    match = FILE.match(block)
    return match[1] if match else None


def run_page(page: str, folder: Path) -> Iterator[Ran]:
    """Run the blocks of a page in `folder`, one file for each, which later blocks may import."""
    modules = set(sys.modules)
    try:
        for block, after in pairwise([*BLOCK.finditer(page), None]):
            assert block is not None
            if block[1] == "python":
                name = file_of(block[2]) or "unnamed.py"
                (folder / name).write_text(block[2])
                begin, end = after.span(2) if after and after[1] == "text" else (-1, -1)
                yield Ran(name, begin, end, page[begin:end], _run_file(name))
            elif block[1] == "console":
                for command in COMMAND.finditer(page, *block.span(2)):
                    yield Ran(command[1], *command.span(2), command[2], _run_command(command[1]))
    finally:
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]


def updated(page: str, folder: Path) -> str:
    """Return the page with the outputs that its blocks print now. An output with an ellipsis stays as it is."""
    for ran in reversed(list(run_page(page, folder))):
        if not ran.agrees and "…" not in ran.shown and ran.begin >= 0:
            page = page[: ran.begin] + ran.printed + page[ran.end :]
    return page


def _pattern(text: str) -> str:
    lines = [r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in text.splitlines()]
    return "".join(lines)


def _run_file(name: str) -> str:
    """Run a file of the current folder as Python does. Return its output, with the message of its error."""
    path = sys.path.copy()
    sys.path.insert(0, os.getcwd())
    message, module = "", {"__name__": "__main__", "__file__": str(Path(name).resolve())}
    with _captured() as output:
        try:
            exec(compile(Path(name).read_text(), module["__file__"], "exec"), module)
        except pd.Error as error:
            message = f"{error}\n"
        finally:
            sys.path[:] = path
    return output() + message


def _run_command(line: str) -> str:
    """Run a command of a console block. Return what it prints."""
    name, *arguments = shlex.split(line)
    if name == "python":
        environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
        command = [sys.executable, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert name == "ptxdsl", line
    path = sys.path.copy()
    with _captured() as output:
        status = cli.main(arguments)
    sys.path[:] = path
    assert status in (0, 1), output()  # 1: the command found something
    return output()


@contextlib.contextmanager
def _captured():
    """Capture stdout and stderr together; yields a function that returns the text so far."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        yield lambda: stream.buffer.getvalue().decode()


def _main(pages: list[str]) -> None:
    for path in map(Path, pages):
        path = path.resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            page = path.read_text()
            path.write_text(updated(page, Path(folder)))
            for ran in run_page(path.read_text(), Path(folder)):
                if not ran.agrees:
                    print(f"{path.name}, {ran.name}:\n{ran.printed}")


if __name__ == "__main__":
    _main(sys.argv[1:])
