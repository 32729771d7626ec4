"""Parse layouts from the notation that they and CuTe print."""

from __future__ import annotations

import re

from ptxdsl.layout.atoms import COPIES, INSTRUCTIONS, MULTIPLIES, Atom, atom
from ptxdsl.layout.layout import Layout
from ptxdsl.layout.shape import IntTuple, kind_of, refusal
from ptxdsl.layout.swizzle import ComposedLayout, Swizzle

_TOKEN = re.compile(r"\s*(?:_?(?P<int>-?\d+)|(?P<sign>Sw<|[(),:>o]))")
_EXAMPLE = "write ((4,8),(2,2)):((32,1),(16,8)), Sw<3,3,3> or Sw<3,3,3> o 0 o (8,64):(64,1), as layouts are printed"


def parse_layout(text: str) -> Layout | Swizzle | ComposedLayout:
    """Parse `(4,8):(8,1)`, `(4,8)`, `Sw<3,3,3>` or `Sw<3,3,3> o 0 o (8,64):(64,1)`; an offset of 0 may be omitted.

    A `_` before an int is ignored, as in CuTe's static ints.
    """
    return _Reader(_text(text, _EXAMPLE)).read()


def parse(text: str) -> Layout | Swizzle | ComposedLayout | Atom:
    """Parse a layout or swizzle, as `parse_layout` does, or return the atom of a PTX name."""
    text = _text(text, f"{_EXAMPLE}; or {INSTRUCTIONS}").strip()
    if not text[:1].islower():
        return parse_layout(text)
    if text.split(".")[0] not in (*MULTIPLIES, *COPIES):
        raise refusal(f"{text!r} is not a layout, a swizzle or an instruction", f"{_EXAMPLE}; or {INSTRUCTIONS}")
    return atom(text)


def _text(value: object, help: str) -> str:
    if not isinstance(value, str):
        raise refusal(f"a layout is parsed from a string; found {kind_of(value)}", help)
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def read(self) -> Layout | Swizzle | ComposedLayout:
        if self.accept("Sw<"):
            value: Layout | Swizzle | ComposedLayout = self.swizzled()
        else:
            value = self.layout()
        if self.text[self.at :].strip():
            raise self.unexpected("the end")
        return value

    def swizzled(self) -> Swizzle | ComposedLayout:
        bits = self.number()
        self.expect(",")
        base = self.number()
        self.expect(",")
        swizzle = Swizzle(bits, base, self.number())
        self.expect(">")
        if not self.accept("o"):
            return swizzle
        if self.begins("("):
            return ComposedLayout(swizzle, 0, self.layout())
        offset = self.number()
        if self.text[self.at :].strip() and not self.begins(":"):
            self.expect("o")
            return ComposedLayout(swizzle, offset, self.layout())
        return ComposedLayout(swizzle, 0, self.strided(offset))

    def layout(self) -> Layout:
        return self.strided(self.int_tuple())

    def strided(self, shape: IntTuple) -> Layout:
        return Layout(shape, self.int_tuple()) if self.accept(":") else Layout(shape)

    def int_tuple(self) -> IntTuple:
        if not self.accept("("):
            return self.number()
        entries = [self.int_tuple()]
        while self.accept(","):
            entries.append(self.int_tuple())
        self.expect(")")
        return tuple(entries)

    def number(self) -> int:
        token = _TOKEN.match(self.text, self.at)
        if not token or not token["int"]:
            raise self.unexpected("an int")
        self.at = token.end()
        return int(token["int"])

    def begins(self, sign: str) -> bool:
        token = _TOKEN.match(self.text, self.at)
        return token is not None and token["sign"] == sign

    def accept(self, sign: str) -> bool:
        token = _TOKEN.match(self.text, self.at)
        if not token or token["sign"] != sign:
            return False
        self.at = token.end()
        return True

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            raise self.unexpected(repr(sign))

    def unexpected(self, expected: str) -> Exception:
        rest = self.text[self.at :].strip()
        text = repr(rest[0]) if rest else "the end"
        return refusal(
            f"cannot read the layout {self.text!r}: at column {self.at + 1} found {text}, expected {expected}",
            _EXAMPLE,
        )
