"""The gallery: the kernels of every example, cut from its file, and a picture for some."""

from __future__ import annotations

import ast
import re
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
PICTURES = {
    "04": ("mma", "The fragments of A, B and C"),
    "07": ("grouped", "Three products of very different sizes on four blocks"),
    "11": ("descriptor", "A tile and its wgmma descriptor"),
}
_INTRODUCTION = """\
# Gallery

The programs in `examples/` introduce one idea each. They run on the emulator, and on a GPU with `--device cuda`. The
kernels are shown here; the files also contain the launch and the comparison with numpy.

| shipped kernels | read |
|---|---|
| GEMM of any size and type, with an epilogue | [`gemm`](guide/kernels.md#gemm) |
| many products in one launch; mixtures of experts | [`grouped_gemm`](guide/kernels.md#grouped-gemm) |
| convolutions as matrix products | [`conv2d`](guide/kernels.md#convolutions) |
"""


def programs() -> list[Path]:
    """Return the numbered examples in order."""
    return sorted(path for path in EXAMPLES.glob("*.py") if path.name[:2].isdigit())


def page() -> str:
    """Return the gallery in Markdown."""
    return "\n".join([_INTRODUCTION, *map(_entry, programs())])


def _entry(path: Path) -> str:
    text = path.read_text()
    tree = ast.parse(text)
    first, *rest = (ast.get_docstring(tree) or "").split("\n\n")
    about = [paragraph for paragraph in rest if not paragraph.lstrip().startswith("python ")]
    lines = [f"## {_title(path)}", "", first, "", *[f"{_plain(paragraph)}\n" for paragraph in about]]
    if picture := PICTURES.get(path.name[:2]):
        name, caption = picture
        lines += [f"![{caption}](pictures/{name}.svg)", ""]
    functions = kernels(tree)
    if functions:
        lines += [f'??? example "`examples/{path.name}`"', ""]
    for kernel in functions:
        source = ast.get_source_segment(text, kernel) or ""
        decorators = [f"@{ast.get_source_segment(text, each)}" for each in kernel.decorator_list]
        lines += ["    ``` {.python .wide}", *[f"    {line}".rstrip() for line in [*decorators, *source.splitlines()]]]
        lines += ["    ```", ""]
    return "\n".join(lines)


def _title(path: Path) -> str:
    number, words = path.stem[:2], path.stem[3:].replace("_", " ")
    spelled = {"tma": "TMA", "mma": "mma", "gemm": "GEMM", "wgmma": "wgmma", "mbarrier": "mbarrier"}
    called = " ".join(spelled.get(word, word) for word in words.split())
    return f"{int(number)}. {called[0].upper() + called[1:] if called[:2] != 'mb' else called}"


def _plain(paragraph: str) -> str:
    """Return a numbered list as Markdown, and any other paragraph unchanged."""
    steps = re.findall(r"^ *(\d+)\. (.*)$", paragraph, re.MULTILINE) if paragraph.lstrip().startswith("1. ") else []
    return "\n".join(f"{number}. {' '.join(step.split())}" for number, step in steps) if steps else paragraph


def kernels(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the kernels, and the functions of the program that they call."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    found = [function for function in functions if _is_kernel(function)]
    called = {node.id for function in found for node in ast.walk(function) if isinstance(node, ast.Name)}
    helpers = [function for function in functions if function.name in called and function not in found]
    return sorted([*found, *helpers], key=lambda function: function.lineno)


def _is_kernel(function: ast.FunctionDef) -> bool:
    names = {
        node.attr for each in function.decorator_list for node in ast.walk(each) if isinstance(node, ast.Attribute)
    }
    return bool(names & {"kernel", "function"})
