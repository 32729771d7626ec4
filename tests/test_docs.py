"""The code blocks of README.md and of the pages in docs/ run, and print what the pages show."""

import importlib.util
import re
import runpy

import pytest

import ptxdsl as pd
from ptxdsl.isa import Op
from tests.snippets import BLOCK, ROOT, file_of, python_blocks, run_page

PAGES = sorted((ROOT / "docs").rglob("*.md"))
WITH_CODE = [page for page in (ROOT / "README.md", *PAGES) if python_blocks(page.read_text())]
GENERATED = ("instructions/", "pictures/", "gallery.md", "notebooks/")  # by docs/hooks.py


def name_of(page):
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def in_its_tier(page):
    """The page of all kernels takes as long as the others together."""
    return pytest.param(page, marks=pytest.mark.exhaustive) if name_of(page) == "guide/kernels.md" else page


@pytest.mark.parametrize("page", [*map(in_its_tier, WITH_CODE)], ids=name_of)
def test_every_block_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    """`python -m tests.snippets PAGE` writes the outputs again."""
    for framework in re.findall(r"^import (torch|jax)$", page.read_text(), re.MULTILINE):
        if importlib.util.find_spec(framework) is None:
            pytest.skip(f"{framework} is not installed")
    monkeypatch.chdir(tmp_path)
    for ran in run_page(page.read_text(), tmp_path):
        assert ran.agrees, f"{ran.name} printed\n{ran.printed}"


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_every_fence_is_closed_and_every_block_names_its_file(page):
    text = page.read_text()
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(BLOCK.findall(text))
    unnamed = [block for block in python_blocks(text) if file_of(block) is None]
    assert unnamed == []


def test_the_chapters_of_the_tutorial_are_numbered_and_counted_in_the_readme():
    chapters = [name_of(page)[9:11] for page in WITH_CODE if "tutorial" in page.parts]
    assert chapters == [f"{n:02}" for n in range(1, len(chapters) + 1)]
    assert ["ten", "eleven", "twelve"][len(chapters) - 10] + " short chapters" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_it_links_to_exists(page):
    text = re.sub(r"`[^`\n]*`", "", BLOCK.sub("", page.read_text()))
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    written = [link for link in links if not any(folder in link for folder in GENERATED)]
    assert [link for link in written if not (page.parent / link).exists()] == []


def test_every_page_is_once_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    assert sorted(re.findall(r"\S+\.md$", navigation, re.MULTILINE)) == sorted(map(name_of, PAGES))


@pytest.fixture(scope="module")
def generated():
    return runpy.run_path(str(ROOT / "docs" / "generated.py"))


def test_every_picture_is_drawn(generated):
    shown = {name for page in PAGES for name in re.findall(r"pictures/([\w-]+)\.svg", page.read_text())}
    assert shown == set(generated["PICTURES"])
    assert all(draw().startswith("<svg ") for draw in generated["PICTURES"].values())


@pytest.mark.parametrize("page", ["language", "layout", "schedule", "kernels"])
def test_the_table_of_names_of_a_page_is_that_of_the_code(page):
    """`python docs/names.py` writes them again."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text()
    assert runpy.run_path(str(ROOT / "docs" / "names.py"))["written"](text) == text


def test_every_public_name_is_in_the_reference():
    pages = "".join(page.read_text() for page in PAGES if page.parent.name == "reference")
    names = [name for name in pd.__all__ if not re.search(rf"pd\.{name}\b", pages)]
    assert names == []


def test_every_example_is_in_the_gallery_with_its_kernels():
    gallery = runpy.run_path(str(ROOT / "docs" / "gallery.py"))
    page = gallery["page"]()
    examples = sorted((ROOT / "examples").glob("[0-9]*.py"))
    assert re.findall(r"^## (\d+)\. ", page, re.MULTILINE) == [str(int(path.name[:2])) for path in examples]
    for path in examples:
        for name in re.findall(r"^@pd\.(?:kernel|function).*\ndef (\w+)", path.read_text(), re.MULTILINE):
            assert f"    def {name}(" in page
    pictures = {name for name, _ in gallery["PICTURES"].values()}
    assert pictures == set(re.findall(r"\]\(pictures/([\w-]+)\.svg\)", page))


def test_every_instruction_has_its_section(generated):
    pages = "".join(generated["page"](*chapter) for chapter in generated["chapters"]())
    sections = {heading.partition(".")[0] for heading in re.findall(r"^## (\S+)$", pages, re.MULTILINE)}
    assert sections == set(Op.table)
