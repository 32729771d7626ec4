"""Which source lines messages show: of files that Python runs or that were asked for, as far as a terminal takes them."""

import importlib
import os
import subprocess
import sys

import pytest

from ptxdsl import ir
from ptxdsl.errors import EXCERPT_COLUMNS, SOURCE_BYTES, Error, Location, ParseError, show_lines_of
from ptxdsl.parse import parse


def names(file):
    """The place that a PTX text gives its one instruction: line 1 of any file that it cares to name."""
    text = f".version 8.0\n.target sm_80\n.file 1 {ir.quoted(str(file))}\n.entry k() {{\n.loc 1 1 1\nret;\n}}"
    return next(parse(text).functions[0].walk()).location


def test_a_ptx_text_shows_no_file_that_it_names(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("password\n")
    assert names(secret).text == "" and names(secret).excerpt() == "  secret:1"
    show_lines_of(str(secret))
    assert names(secret).excerpt() == "  secret:1 | password\n             ^"


def test_files_that_are_no_files_are_not_read(tmp_path):
    """They would not end, or never begin."""
    os.mkfifo(tmp_path / "fifo")
    for path in (str(tmp_path / "fifo"), "/dev/zero", str(tmp_path), str(tmp_path / "missing"), "a\0b"):
        show_lines_of(path)
        assert names(path).text == ""


def test_huge_files_are_not_read(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.truncate(SOURCE_BYTES + 1)
    show_lines_of(str(path))
    assert names(path).text == ""


def test_files_that_python_runs_are_shown():
    assert names(__file__).text.startswith('"""Which source lines messages show')


def test_the_file_of_a_parsed_text_is_shown(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(".version 8.0\n.target sm_80\n.entry k() { ret; }")
    location = next(parse(path.read_text(), file=str(path)).functions[0].walk()).location
    assert location.excerpt() == "  k.ptx:3 | .entry k() { ret; }"


def test_sources_that_were_asked_for_are_shown(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k() {}\n")
    text = f'.version 8.0\n.target sm_80\n.file 1 "{source}"\n.entry k() {{\n.loc 1 1 1\nret;\n}}'
    location = next(parse(text, sources=[str(source)]).functions[0].walk()).location
    assert location.text == "__global__ void k() {}"


def test_of_a_long_line_the_part_around_its_place_is_shown():
    line = "a" * 1000 + "HERE" + "b" * 1000
    shown, carets = Location("f", 1, (1000, 1004), source=line).excerpt().splitlines()
    assert len(shown) <= EXCERPT_COLUMNS + 10
    assert shown[carets.index("^") :].startswith("HERE") and carets.count("^") == 4
    assert len(Location("f", 1, (1000, 2000), source=line).excerpt().splitlines()[1]) <= EXCERPT_COLUMNS + 10


def test_nothing_that_a_terminal_would_obey_is_shown():
    with pytest.raises(ParseError) as caught:
        parse("\x1b[2J\x07 boom", file="\x1b]0;title\x07.ptx")
    assert str(caught.value) == (
        "line 1, column 1: expected `.version`, found `\\x1b`\n   ]0;title .ptx:1 |  [2J  boom\n                     ^"
    )


def test_a_script_is_shown_in_its_own_messages(tmp_path):
    """By the name that Python runs it under, in a folder of any name."""
    script = "import ptxdsl as pd\n@pd.kernel\ndef k():\n    pd.ptx.frobnicate()\nk.ptx()\n"
    folder = tmp_path / "größe"
    folder.mkdir()
    (folder / "k.py").write_text(script)
    done = subprocess.run([sys.executable, "k.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert "k.py:4 | pd.ptx.frobnicate()" in done.stderr


EDITED = """\
import ptxdsl as pd
from ptxdsl import f32, ptr

@pd.kernel
def k(x: ptr[f32]):
    with pd.if_(pd.tid.x < 4):
        t = x[pd.tid.x] + 1
    x[pd.tid.x] = t
"""
LINE = "edited_kernel.py:8 | x[pd.tid.x] = t"


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """A module with a kernel that cannot be traced, and its file."""
    file = tmp_path / "edited_kernel.py"
    file.write_text(EDITED)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("edited_kernel"), file
    del sys.modules["edited_kernel"]


def refused_line(module):
    with pytest.raises(Error) as refused:
        module.k.ptx()
    return str(refused.value).splitlines()[1].strip()


@pytest.mark.parametrize("change", ["a line on top", "a shorter file", "no file"])
def test_lines_of_a_file_that_is_edited_after_its_import_are_those_that_run(change, edited):
    module, file = edited
    if change == "no file":
        file.unlink()
    else:
        file.write_text("# new\n" + EDITED if change == "a line on top" else EDITED[:60])
    assert refused_line(module) == LINE


def test_a_module_that_is_reloaded_after_the_edit_shows_its_new_lines(edited):
    module, file = edited
    file.write_text("# new\n" + EDITED)
    importlib.invalidate_caches()
    module = importlib.reload(module)
    assert refused_line(module).startswith("edited_kernel.py:9 | x[pd.tid.x] = t")
