"""CONTRIBUTING.md draws the house as it stands: each folder and module of it is named, and what is named is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ptxdsl"
TEXT = (ROOT / "CONTRIBUTING.md").read_text().partition("## The house")[2].partition("## Add an instruction")[0]
WORDS = {word for name in re.findall(r"`([\w/.]+)`", TEXT) for word in re.split("[/.]", name)}
MODULES = sorted(path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py") if path.stem[0] != "_")
FOLDERS = sorted({path.parent for path in MODULES} - {Path()})


def rows():
    """The names in the first columns of the tables."""
    for line in TEXT.splitlines():
        if line.startswith("| `"):
            yield from re.findall(r"`([\w/]+)`", line.split("|")[1])


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_folder_is_named(folder):
    assert folder.name in WORDS


@pytest.mark.parametrize("part", ["trace", "layout", "schedule", "emulate", "runtime", "kernels"])
def test_every_module_that_a_reader_may_open_first_is_named(part):
    assert not [str(path) for path in MODULES if path.parts[0] == part and path.name not in WORDS]


def test_what_is_named_is_there():
    places = {str(path) for path in (*MODULES, *FOLDERS)}
    lost = [name for name in rows() if not any(f"/{place}".endswith(f"/{name.strip('/')}") for place in places)]
    assert not lost
