"""The grammar of PTX at work: a text with its comments blanked, its tree, and what is wrong with it in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from lark import Lark, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from .errors import Location, ParseError

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/|/\*', re.DOTALL)
_WORD = re.compile(r"@?!?\.?[\w$%]+(?:(?:\.|::)\w+)*|\S")
_DIRECTIVE = re.compile(r"\.[a-zA-Z_]\w*")
_STATEMENT = re.compile(r"\s*(\.[a-z]|[\w$%]+\s*:(?!:)|(@\s*!?[\w$%]+\s+)?[a-z]\w*(\.[\w:]+)*(\s+[\w$%\[{(]|\s*$))")
_UNFINISHED = re.compile(r"[,|{(\[]\s*$|^\s*$")

_WORDS = {
    "INSTRUCTION": "an instruction", "LABEL": "a label", "LOCATION": "`.loc`", "LINKAGE": "`.visible`",
    "KIND": "`.entry` or `.func`", "SPACE": "a state space such as `.global`", "BOUND": "`.maxntid`",
    "FLAG": "`.noreturn`", "TARGETS": "`.branchtargets`", "TYPE": "a type such as `.b32`", "VECTOR": "`.v2` or `.v4`",
    "ATTRIBUTE": "`.attribute(…)`", "SECTION_NAME": "a section's name", "SECTION_BODY": "`{` and its data",
    "VERSION": "a version such as `8.0`", "NAME": "a name", "STRING": "a string", "INT": "a whole number",
    "FLOAT": "a number", "NUMBERS": "numbers", "UNARY": "`-` or `!`", "OPERATOR": "an operator",
    "$END": "the end of the text",
}  # fmt: skip
_IMPLIED = {"FLOAT": "INT", "NUMBERS": "INT", "UNARY": "INT", "VECTOR": "TYPE", "ATTRIBUTE": "TYPE", "FLAG": "BOUND"}
"""Terminals that go without saying where another one is named."""


@cache
def grammar() -> Lark:
    """The parser that `ptx.lark` describes; made at the first call, in about 50 ms."""
    text = files(__package__).joinpath("ptx.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", start=["module", "operands"], maybe_placeholders=False)


class Source:
    """A text of PTX: its tree, and errors at its places. `name` is its file, or `<ptx>`."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.code = _COMMENT.sub(self._blank, text)

    def _blank(self, comment: re.Match[str]) -> str:
        if comment[0][0] == '"':
            return comment[0]
        if comment[0] == "/*":
            raise self.error(comment.start(), 2, "this comment has no end", "close it with `*/`")
        return re.sub(r"[^\n]", " ", comment[0])

    def module(self) -> Tree:
        """The tree of the whole text."""
        return self._tree(self.code, "module", 0)

    def operands(self, text: str, origin: int) -> Tree:
        """The tree of the operands of one instruction, which stand at `origin`."""
        return self._tree(text, "operands", origin)

    def _tree(self, text: str, start: str, origin: int) -> Tree:
        try:
            return grammar().parse(text, start=start)
        except UnexpectedInput as error:
            raise self._syntax_error(error, text, origin) from None

    def location(self, position: int, length: int) -> Location:
        """The place of some characters."""
        start = self.text.rfind("\n", 0, position) + 1
        line = self.text[start:].partition("\n")[0].replace("\t", " ")
        column = position - start
        end = max(column + 1, min(column + length, len(line)))
        return Location(self.name, self.text.count("\n", 0, position) + 1, (column, end), source=line)

    def error(self, position: int, length: int, message: str, help: str | None = None) -> ParseError:
        """An error at some characters."""
        at = self.location(position, length)
        return ParseError(f"line {at.line}, column {at.columns[0] + 1}: {message}", at=at, help=help)

    def _syntax_error(self, error: UnexpectedInput, text: str, origin: int) -> ParseError:
        start = getattr(error, "pos_in_stream", None)
        if start is None or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
            start = len(text.rstrip())
        elif isinstance(error, UnexpectedToken):
            start = error.token.start_pos or 0
        position, word = origin + start, _word(text, start)
        expected = error.allowed if isinstance(error, UnexpectedCharacters) else error.expected
        return self._explained(position, word, set(expected or ())) or self.error(
            position, len(word), f"expected {_expected(expected or ())}, found {f'`{word}`' if word else 'the end'}"
        )

    def _explained(self, position: int, word: str, expected: set[str]) -> ParseError | None:
        """The error in plain words, where the place allows a guess at what was meant."""
        if not word and position >= len(self.code.rstrip()):
            return self.error(max(0, position - 1), 1, f"the text ends here; expected {_expected(expected)}")
        if word == '"':
            return self.error(position, 1, "this string has no end", 'close it with `"` on the same line')
        if "INSTRUCTION" in expected and (word[0].isalpha() or word[0] == "@"):
            return self.missing_semicolon(position) or self._unended(position)
        if _DIRECTIVE.fullmatch(word) and not _known(word):
            kind = "type" if "TYPE" in expected else "directive"
            return self.error(position, len(word), f"unknown {kind} `{word}`; expected {_expected(expected)}")
        return None

    def missing_semicolon(self, start: int, end: int | None = None) -> ParseError | None:
        """The error if a new statement starts on a later line, though the one at `start` has not ended."""
        position = start
        for line in self.code[start:end].splitlines(keepends=True):
            if (
                position > start
                and _STATEMENT.match(line)
                and not _UNFINISHED.search(self.code[start:position].rstrip(" \t\n"))
            ):
                return self._unended(start, position)
            position += len(line)
        return None

    def _unended(self, start: int, next_line: int | None = None) -> ParseError:
        """The error for a statement without its semicolon, at the end of its last line."""
        if next_line is None:
            next_line = start + len(re.match(r"[^;{}\n]*(\{[^;{}\n]*\}[^;{}\n]*)*", self.code[start:])[0])  # type: ignore[index]
        last = len(self.code[:next_line].rstrip())
        return self.error(last - 1, 1, "`;` is missing after this instruction", "end every instruction with `;`")


def _word(text: str, start: int) -> str:
    """What stands at a place, to be named in a message."""
    match = _WORD.match(text, start)
    return match[0] if match else ""


@cache
def _known(word: str) -> bool:
    """Whether a directive occurs anywhere in the grammar."""
    patterns = (t.pattern.to_regexp() for t in grammar().terminals if t.name not in ("SECTION_NAME", "NAME"))
    return any(re.fullmatch(pattern, word) for pattern in patterns)


def _expected(terminals: Iterable[str]) -> str:
    """Terminals as words, joined by commas and `or`."""
    names = set(terminals)
    names -= {name for name, other in _IMPLIED.items() if other in names}
    literals = {t.name: f"`{t.pattern.value}`" for t in grammar().terminals}
    order = list(_WORDS)
    words = [_WORDS[name] for name in order if name in names]
    words += sorted(literals[name] for name in names - set(order) if name in literals)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
