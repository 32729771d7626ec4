"""Run the notebooks of docs/notebooks without Jupyter, and convert them to pages of the site.

`python docs/notebooks.py` writes the outputs of the cells into the files.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
SVG = "image/svg+xml"
Output = dict[str, Any]  # of a cell, as the format of notebooks has it


def notebooks() -> list[Path]:
    """Return the notebooks, sorted by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """Read a notebook from disk."""
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def run(path: Path) -> list[list[Output]]:
    """Return the outputs of the code cells, which run in order in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [outputs(cell, names) for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def outputs(cell: dict[str, Any], names: dict[str, Any]) -> list[Output]:
    """Return the output of a cell, and the value of its last expression."""
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    return [*_stream(printed.getvalue()), *_value(value)]


def _stream(text: str) -> Iterator[Output]:
    if text:
        yield {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def _value(value: object) -> Iterator[Output]:
    if value is None:
        return
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_svg_"):
        data = {SVG: value._repr_svg_().splitlines(keepends=True), "text/plain": [f"<{type(value).__name__}>"]}
    yield {"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}


def page(path: Path) -> tuple[str, dict[str, str]]:
    """Return a notebook in Markdown, and its drawings by file name."""
    lines, drawings = [], dict[str, str]()
    results = iter(run(path))
    for cell in read(path)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in next(results):
            if "text" in output:
                lines += ["```text", "".join(output["text"]).rstrip("\n"), "```", ""]
            elif SVG in output["data"]:
                name = f"{path.stem}-{len(drawings) + 1}.svg"
                drawings[name] = "".join(output["data"][SVG])
                lines += [f"![{source.splitlines()[-1]}]({name})", ""]
            else:
                lines += ["```text", "".join(output["data"]["text/plain"]), "```", ""]
    return "\n".join(lines), drawings


def fill(path: Path) -> None:
    """Write the outputs of a notebook into its file."""
    content = read(path)
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    for number, (cell, results) in enumerate(zip(code, run(path), strict=True), start=1):
        cell["execution_count"] = number
        for output in results:
            if "execution_count" in output:
                output["execution_count"] = number
        cell["outputs"] = results
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for each in notebooks():
        fill(each)
