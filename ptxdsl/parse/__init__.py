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
    """Parse the text of a module, or the bytes that NVRTC returns.

    The location of an instruction is that of the last `.loc`, or its line in `file` without one. Messages show lines of
    `file`, of `sources` and of files that Python runs, but of no other file that the text names. An instruction that is
    not in the table is kept as `isa.opaque.Opaque`. Raises ParseError with line, column and what was expected.
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
    """Return the text without the zeros that end a C string. Raises ParseError for file names and machine code."""
    if isinstance(text, str) and (name := _FILE.fullmatch(text)):
        help = "compile it with nvcc -ptx, and pass the text of the result"
        if name[1] == "ptx":
            help = f"read it: pathlib.Path({text!r}).read_text()"
        raise ParseError(f"{text!r} is a file name, not PTX", at=caller(), help=help)
    if isinstance(text, (bytes, bytearray, memoryview)):
        if bytes(text[:4]) == b"\x7fELF":
            raise ParseError(
                "this is machine code, not PTX", at=caller(), help="pass the PTX that it was assembled from"
            )
        return bytes(text).rstrip(b"\0").decode(errors="surrogateescape")
    if isinstance(text, str):
        return text.rstrip("\0")
    raise ParseError(
        f"pd.parse takes PTX as str or bytes; found {type(text).__name__}",
        at=caller(),
        help="pass the text of a module: pd.parse(path.read_text(), file=str(path))",
    )
