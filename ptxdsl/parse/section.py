"""Contents of a section: labels, numbers and addresses for debuggers (PTX ISA, ".section")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from lark import Token

from ptxdsl.errors import ParseError
from ptxdsl.parse import constants
from ptxdsl.parse.syntax import SourceText, shortened

_NUMBER = r"(?:-\s*+)?(?:0[xX][0-9a-fA-F]++|0[bB][01]++|\d++)U?+(?![\w$.])"
_NAME = r"[a-zA-Z_$%][\w$]*+"
_ADDRESS = rf"(?:{_NAME}|\.(?!b\d)\w++)(?:\s*+\+\s*+(?:0[xX][0-9a-fA-F]++|\d++)|\s*+-\s*+{_NAME})?+(?!\s*+:)"
_NUMBERS = rf"{_NUMBER}(?:\s*+,\s*+{_NUMBER})*+"
_ITEM = re.compile(
    rf"(?P<label>{_NAME})\s*+:|\.b(?P<bits>8|16|32|64)\s++(?P<numbers>{_NUMBERS})"
    rf"|\.b(?P<wide>32|64)\s++(?P<address>{_ADDRESS})",
    re.ASCII,
)
_VALUE = re.compile(_NUMBER, re.ASCII)
_SPACE = re.compile(r"\s*+", re.ASCII)
_WORD = re.compile(r"\.b\d+\b\s*|[^\s,]+|,", re.ASCII)
_HELP = "write labels (`x:`), numbers (`.b8 104,105,0`), and `.b32` or `.b64` with a label, `x+8` or `y-x`"


def section_lines(source: SourceText, body: Token) -> Iterator[str]:
    """Yield the items of a section between its braces, one per line, with decimal numbers. Raise ParseError for invalid
    items.
    """
    start = body.start_pos or 0
    at, end = 1, len(body) - 1
    while (at := _SPACE.match(body, at, end).end()) < end:  # type: ignore[union-attr]
        item = _ITEM.match(body, at, end)
        if item is None:
            raise _unknown(source, body, at)
        if item["label"]:
            yield f"{item['label']}:"
        elif item["address"]:
            yield f".b{item['wide']} {' '.join(item['address'].split())}"
        else:
            value = partial(_value, source, int(item["bits"]), start + item.start("numbers"))
            yield f".b{item['bits']} {' '.join(_VALUE.sub(value, item['numbers']).split())}"
        at = item.end()


def _value(source: SourceText, bits: int, start: int, match: re.Match[str]) -> str:
    """Return a number of `bits` bits in decimal. Numbers wider than 16 bits are truncated, as assemblers do."""
    digits = match[0].lstrip("- \t\r\n")
    value = constants.whole(source, digits, start + match.end() - len(digits))
    value = -value if match[0][0] == "-" else value
    if bits <= 16 and not -(1 << bits - 1) <= value < 1 << bits:
        message = f"{shortened(match[0])} does not fit .b{bits}, which has {-(1 << bits - 1)} to {(1 << bits) - 1}"
        raise source.error(start + match.start(), len(match[0]), message, "write it as .b32")
    return str(value)


def _unknown(source: SourceText, body: Token, at: int) -> ParseError:
    """Return the error for text that is not an item of a section."""
    match = _WORD.match(body, at, len(body) - 1)
    assert match is not None  # there is no space here
    word = match[0]
    if word.strip() in (".b8", ".b16", ".b32", ".b64") and (value := _WORD.match(body, match.end(), len(body) - 1)):
        match, word = value, value[0]
    message = f"`{shortened(word.strip())}` is not valid section data"
    return source.error((body.start_pos or 0) + match.start(), len(word.strip()), message, _HELP)
