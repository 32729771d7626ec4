"""BENCHMARKS.md and the pages of docs/measured say where figures come from: files and sections that they name are there."""

import re

import pytest

from tests.snippets import ROOT

MEASURED = sorted((ROOT / "docs" / "measured").glob("*.md"))
PAGES = [ROOT / "BENCHMARKS.md", *MEASURED]
RESULTS = {path.name for path in (ROOT / "benchmarks" / "results").iterdir()}
RATES = {"h200.json"}  # of ptxdsl/kernels/choose


def anchors(text):
    """Of headings, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_sections_that_it_links_to_are_there(page):
    text = re.sub(r"`[^`\n]*`", "", page.read_text())
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text)
    targets = [(page.parent / path if path else page, anchor) for path, anchor in links]
    assert [str(path) for path, _ in targets if not path.exists()] == []
    assert [(path.name, a) for path, a in targets if a and a not in anchors(path.read_text())] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_results_that_it_names_are_kept(page):
    assert set(re.findall(r"\b(\w+\.json)\b", page.read_text())) - RESULTS - RATES == set()


def test_each_page_of_what_was_tried_is_named_in_figures_and_in_their_list():
    names = [page.name for page in MEASURED if page.name != "index.md"]
    contents = (ROOT / "docs" / "measured" / "index.md").read_text()
    figures = (ROOT / "BENCHMARKS.md").read_text()
    assert [name for name in names if f"({name})" not in contents] == []
    assert [name for name in names if f"docs/measured/{name}" not in figures] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_rows_of_a_table_have_as_many_cells_as_its_head(page):
    for rows in re.findall(r"(?:^\|.*\n)+", page.read_text(), re.MULTILINE):
        head, *others = (len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines())
        assert {head} == {*others}, rows
