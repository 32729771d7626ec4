"""Tables of names for the reference pages: each name with its arguments and a one-line summary.

The tables make the pages readable as plain Markdown; the site replaces each `:::` directive with the full docstring.
`python docs/names.py` regenerates the tables of all pages, between the lines BEGIN and END; a test compares them.
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
    "Each name with its arguments and a one-line summary. The site (`make docs`) replaces each line with `:::` below "
    "with the full docstring; without the site, read it with `help(…)` in Python.\n\n"
)
# Classes of objects that the library returns; users do not call their constructors.
RETURNED = (
    "pd.Kernel", "pd.LinkedProgram", "pd.Module", "ArrayView", "PointerValue", "pd.MappedTensor", "Report", "Finding",
    "Degree", "Traffic", "LineCounters", "ExecutedStep", "Debugger", "Stop", "SharedContent", "TiledCopy", "ThreadCopy",
    "TiledMma", "ThreadMma", "TensorMatrix", "TmaAtom", "TmaCopy", "TmaTiles", "SharedOperand", "Wavefronts", "TileMap",
    "Timeline", "ptx_check",
)  # fmt: skip
_BLOCK = re.compile(r"^::: (?P<path>\S+)(?:\n    options: \{ heading: (?P<heading>[\w.]+))?", re.MULTILINE)


def table(page: str) -> str:
    """Return the table of a page."""
    rows = [f"| `{call}` | {line} |" for call, line in _rows(page)]
    return INTRODUCTION + "\n".join(["| name | summary |", "|---|---|", *rows, ""])


def written(page: str) -> str:
    """Return the page with its table regenerated."""
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
    """Return the object at a dotted path."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return getattr(_resolved(module), name)
    except AttributeError:
        return importlib.import_module(path)


def _arguments(known: object) -> str:
    """Return the parameter list, with `=…` for optional parameters."""
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
    """Return the first sentence of the docstring, on one line."""
    text = inspect.getdoc(known) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[^.]\.)\s", first)[0].replace("|", "\\|")


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text()))
