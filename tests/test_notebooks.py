"""The notebooks of docs/: their cells run, and print and draw what they show."""

import ast
import importlib.util
import runpy

import pytest

from tests.snippets import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SVG = "image/svg+xml"
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def runner():
    return runpy.run_path(str(ROOT / "docs" / "notebooks.py"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(outputs):
    """What cells print and draw, without the numbers of their runs; drawings alone, where there are some."""
    texts = [output.get("text") or output["data"].get(SVG) or output["data"]["text/plain"] for output in outputs]
    return ["".join(text) for text in texts]


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["layouts", "schedules"]


@every_notebook
def test_cells_print_and_draw_what_the_file_shows(runner, path):
    saved = [shown(cell["outputs"]) for cell in code_cells(runner["read"](path))]
    assert [shown(outputs) for outputs in runner["run"](path)] == saved
    drawings = [text for outputs in saved for text in outputs if text.startswith("<svg ")]
    assert len(drawings) >= 5


@every_notebook
def test_the_page_of_a_notebook_has_its_drawings(runner, path):
    text, drawings = runner["page"](path)
    assert text.startswith("# ")
    assert all(f"]({name})" in text for name in drawings)
    assert all(svg.startswith("<svg ") for svg in drawings.values())


@every_notebook
def test_cells_import_nothing_that_is_not_installed_with_us(runner, path):
    tree = ast.parse("\n".join("".join(cell["source"]) for cell in code_cells(runner["read"](path))))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= {"ptxdsl", "numpy"}


@pytest.mark.exhaustive
@every_notebook
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("nbformat", "nbclient", "ipykernel")),
    reason="nbformat, nbclient and ipykernel are not installed (the extra `notebooks`)",
)
def test_jupyter_runs_it(path):
    nbclient, nbformat = importlib.import_module("nbclient"), importlib.import_module("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    saved = [shown(cell["outputs"]) for cell in code_cells(notebook)]
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=ROOT)
    assert [shown(cell["outputs"]) for cell in code_cells(notebook)] == saved
