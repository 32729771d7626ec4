"""Options that several commands share: bounded numbers, and output in a format to stdout or a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from ptxdsl.cli.process import UsageError

STDOUT = "-"
MOST = 2**31 - 1  # kernels count in 32 bits
_SHOWN_DIGITS = 20


def at_most(flag: str, digits: str, most: int = MOST) -> int:
    """Convert decimal digits to a number. Raises UsageError if it is more than `most`."""
    number = int(digits) if len(digits) <= _SHOWN_DIGITS else most + 1
    if number > most:
        shown = digits if len(digits) <= _SHOWN_DIGITS else f"{digits[:_SHOWN_DIGITS]}…"
        raise UsageError(f"{flag} {shown} is too large: the limit is {most}")
    return number


def number(flag: str, least: int = 0, most: int = MOST) -> Callable[[str], int]:
    """Return the reader of an option that is a whole number."""

    def read(text: str) -> int:
        if not text.isdecimal() or at_most(flag, text, most) < least:
            raise UsageError(f"{flag} {text} is not a number of {least} or more", help=f"for example {flag} 8")
        return int(text)

    return read


seed = number("--seed", most=2**64 - 1)


def shape(flag: str, least: int, form: str, most: int = MOST) -> Callable[[str], tuple[int, ...]]:
    """Return the reader of an option that is `least` to three numbers, such as 4x4 or 512x512x256; `form` describes
    it."""

    def read(text: str) -> tuple[int, ...]:
        parts = text.lower().split("x")
        if not least <= len(parts) <= 3 or not all(part.isdecimal() for part in parts):
            raise UsageError(f"{flag} {text} is not a shape", help=f"write {form}")
        return tuple(at_most(flag, part, most) for part in parts)

    return read


def add_format(parser: argparse.ArgumentParser, name: str, help: str) -> None:
    """Add an option that writes a format to stdout, or to the file that is its value."""
    parser.add_argument(f"--{name}", nargs="?", const=STDOUT, metavar="FILE", help=f"{help}, to stdout or a file")


def check_formats(options: argparse.Namespace, *names: str, stdout: str = "stdout") -> None:
    """Raise UsageError if two formats would be written to the same place. `stdout` describes that of -."""
    places: dict[str, str] = {}
    for name in names:
        file = getattr(options, name)
        if file in places:
            where = stdout if file == STDOUT else file
            raise UsageError(f"--{places[file]} and --{name} both write to {where}", help="name a file for each")
        if file is not None:
            places[file] = name


def write(file: str | None, content: str | bytes) -> None:
    """Write to stdout for None and -, else to a file. Bytes of file names that are not UTF-8 are kept."""
    encoded = content.encode(errors="surrogateescape") if isinstance(content, str) else content
    if file in (None, STDOUT):
        sys.stdout.flush()
        sys.stdout.buffer.write(encoded)
        return
    try:
        Path(file).write_bytes(encoded)
    except OSError as reason:
        raise UsageError(f"{file} cannot be written: {reason.strerror}") from None
