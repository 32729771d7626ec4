"""PTX text as ir: whole modules, as compilers print them and people write them. No text is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from ptxdsl.errors import ParseError, caller, show_lines_of
from ptxdsl.ir import PtxModule
from ptxdsl.parse.module import ModuleReader
from ptxdsl.parse.syntax import SourceText

__all__ = ["parse"]


def parse(text: str | bytes, *, file: str = "<ptx>", sources: Iterable[str] = ()) -> PtxModule:
    """A module from its text, or from the bytes that NVRTC hands out.

    Each instruction's location is the `.loc` in force, or its line in `file` where the text has none. Messages show
    lines of `file`, of `sources`, and of no other file that the text names, unless Python runs it. An instruction that
    the table does not know stays as `isa.opaque.Opaque`.
    Raises ParseError with line, column and what was expected.
    """
    for shown in (file, *sources):
        show_lines_of(os.fspath(shown))
    source = SourceText(_decoded(text), os.fspath(file))
    try:
        return ModuleReader(source).read()
    except RecursionError:
        raise source.too_deep(0, "text") from None


_FILE = re.compile(r"[^\s{};]+\.(ptx|cubin|fatbin|cu)")


def _decoded(text: str | bytes) -> str:
    """The text without the zeros that end it where it was a string of C. Raises ParseError for the name of a file, and
    for machine code."""
    if isinstance(text, str) and (name := _FILE.fullmatch(text)):
        help = "PTX is the text that nvcc -ptx writes: pass that"
        if name[1] == "ptx":
            help = f"read it: pathlib.Path({text!r}).read_text()"
        raise ParseError(f"{text!r} is the name of a file, and no PTX", at=caller(), help=help)
    if isinstance(text, (bytes, bytearray, memoryview)):
        if bytes(text[:4]) == b"\x7fELF":
            raise ParseError("this is machine code, and no PTX", at=caller(), help="pass the text that it was made of")
        return bytes(text).rstrip(b"\0").decode(errors="surrogateescape")
    if isinstance(text, str):
        return text.rstrip("\0")
    raise ParseError(
        f"PTX is read from a str or bytes; found {type(text).__name__}",
        at=caller(),
        help="pass the text of a module: pd.parse(path.read_text(), file=str(path))",
    )
