"""What `mkdocs build` adds to the pages that are written: see generated.py."""

from __future__ import annotations

import generated
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

INSTRUCTIONS = "reference/instructions"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of instructions and the pictures; the navigation gets the chapters behind `Instructions`."""
    for name, draw in generated.PICTURES.items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=draw()))
    chapters = list(generated.chapters())
    for address, title, rows in chapters:
        files.append(File.generated(config, f"{INSTRUCTIONS}/{address}.md", content=generated.page(title, rows)))
    files.append(File.generated(config, f"{INSTRUCTIONS}/index.md", content=generated.contents(chapters)))
    reference = next(section["Reference"] for section in config.nav if "Reference" in section)
    pages = [f"{INSTRUCTIONS}/index.md", *({title: f"{INSTRUCTIONS}/{address}.md"} for address, title, _ in chapters)]
    reference.append({"Instructions": pages})
    return files
