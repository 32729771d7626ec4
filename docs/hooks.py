"""Pages that `mkdocs build` generates: see generated.py, gallery.py and notebooks.py."""

from __future__ import annotations

import gallery
import generated
import notebooks
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

INSTRUCTIONS = "reference/instructions"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and pictures to the site and its navigation."""
    _add_pictures(files, config)
    _add_instructions(files, config)
    files.append(File.generated(config, "gallery.md", content=gallery.page()))
    _section(config, "Gallery").append("gallery.md")
    for path in notebooks.notebooks():
        text, drawings = notebooks.page(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, svg in drawings.items():
            files.append(File.generated(config, f"notebooks/{name}", content=svg))
        _section(config, "Gallery").append(f"notebooks/{path.stem}.md")
    return files


def _section(config: MkDocsConfig, name: str) -> list[object]:
    """Return the pages of a section of the navigation."""
    pages: list[object] = next(section[name] for section in config.nav or [] if name in section)
    return pages


def _add_pictures(files: Files, config: MkDocsConfig) -> None:
    for name, draw in generated.PICTURES.items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=draw()))


def _add_instructions(files: Files, config: MkDocsConfig) -> None:
    """Add a page for each chapter of the table, and the list of them."""
    chapters = list(generated.chapters())
    for address, title, rows in chapters:
        files.append(
            File.generated(config, f"{INSTRUCTIONS}/{address}.md", content=generated.page(address, title, rows))
        )
    files.append(File.generated(config, f"{INSTRUCTIONS}/index.md", content=generated.contents(chapters)))
    pages = [f"{INSTRUCTIONS}/index.md", *({title: f"{INSTRUCTIONS}/{address}.md"} for address, title, _ in chapters)]
    _section(config, "Reference").append({"Instructions": pages})
