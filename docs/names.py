"""Tables of names for the reference pages, so that they can be read without the site: each name, its arguments, a line.

What stands behind `:::` in a page is put there in full when the site is built. `python docs/names.py` writes the tables
of all pages again, between the lines BEGIN and END; a test compares them.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

PAGES = [Path(__file__).parent / "reference" / f"{name}.md" for name in ("language", "layout", "schedule", "kernels")]
BEGIN, END = "<!-- names -->\n", "<!-- end of names -->\n"
INTRODUCTION = (
    "Each name with its arguments, and the first line of what is said of it. The full texts follow below on the site "
    "(`make docs`); in a clone, where a line with `:::` stands for each, `help(…)` of Python prints them.\n\n"
)
# Of these one gets objects; nobody makes them by a call.
RETURNED = (
    "pd.Kernel", "pd.LinkedProgram", "pd.Module", "ArrayView", "PointerValue", "MappedTensor", "Report", "Finding",
    "Traffic", "LineCounters", "ExecutedStep", "Debugger", "Stop", "SharedContent", "TiledCopy", "ThreadCopy",
    "TiledMma", "ThreadMma", "TmaAtom", "TmaCopy", "TmaTiles", "SharedOperand", "Wavefronts", "TileMap", "Timeline",
    "ptx_check",
)  # fmt: skip
_BLOCK = re.compile(r"^::: (?P<path>\S+)(?:\n    options: \{ heading: (?P<heading>[\w.]+))?", re.MULTILINE)


def table(page: str) -> str:
    """The table of a page."""
    rows = [f"| `{call}` | {line} |" for call, line in _rows(page)]
    return INTRODUCTION + "\n".join(["| name | what it is |", "|---|---|", *rows, ""])


def written(page: str) -> str:
    """A page with its table as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table(page)}{END}{after}"


def _rows(page: str) -> Iterator[tuple[str, str]]:
    for block in _BLOCK.finditer(page):
        known = _resolved(block["path"])
        if not inspect.ismodule(known):
            name = block["heading"] or block["path"].rpartition(".")[2]
            yield name if name in RETURNED else name + _arguments(known), _line(known)


def _resolved(path: str) -> object:
    """What a dotted path names."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return getattr(_resolved(module), name)
    except AttributeError:
        return importlib.import_module(path)


def _arguments(known: object) -> str:
    """The names of what it takes; those in brackets may be left out."""
    if inspect.isclass(known) and known.__init__ is object.__init__:
        return ""
    parameters = [p for p in inspect.signature(known).parameters.values() if not p.name.startswith("_")]  # type: ignore[arg-type]
    words, by_name = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not by_name and not any(q.kind is q.VAR_POSITIONAL for q in parameters):
            words.append("*")
        by_name = by_name or p.kind is p.KEYWORD_ONLY
        words.append({p.VAR_POSITIONAL: f"*{p.name}", p.VAR_KEYWORD: f"**{p.name}"}.get(p.kind, p.name))
        words[-1] += "=…" if p.default is not p.empty else ""
    return f"({', '.join(words)})"


def _line(known: object) -> str:
    """The first sentence of its text, on one line."""
    text = inspect.getdoc(known) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[^.]\.)\s", first)[0].replace("|", "\\|")


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text()))
