"""The PTX grammar: a text with its comments blanked, its tree, and readable syntax errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ptxdsl.errors import Location, ParseError

Node: TypeAlias = Any
"""A `lark.Tree` or `lark.Token`; `ptx.lark` defines the children of each rule."""

WORD_COLUMNS = 80  # maximum length of a quoted word in a message

MOST_NESTED = 100
"""Maximum nesting of braces and parentheses."""

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/|/\*', re.DOTALL)
_LETTERS = re.compile(r'\.file\s+\w+\s+"[^"\n]*"|([^\x00-\x7f])')
_WORD = re.compile(r"@?!?\.?[\w$%]+(?:(?:\.|::)\w+)*|\S")
_DIRECTIVE = re.compile(r"\.[a-zA-Z_]\w*")
_NESTED = re.compile(r"[^;{}\n]*\{[^;{}\n]*(\{)")
_STATEMENT = re.compile(
    r"\s*(\.[a-z]|\}\s*$|[\w$%]+\s*:(?!:)|(@\s*!?[\w$%]+\s+)?[a-z]\w*(\.[\w:]+)*(\s+[\w$%\[{(]|\s*$))"
)

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
"""Terminals omitted from messages if another one is listed."""


@cache
def grammar() -> Lark:
    """Return the parser for `ptx.lark`; it is built on the first call, in about 50 ms."""
    text = files(__package__).joinpath("ptx.lark").read_text(encoding="utf-8")
    start = ["module", "operands"]
    return Lark(text, parser="lalr", start=start, maybe_placeholders=False, g_regex_flags=re.ASCII)


class SourceText:
    """A PTX text: its tree, and errors at positions. `name` is its file, or `<ptx>`."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.code = _COMMENT.sub(self._blank, text)
        if not self.code.isascii():
            self._check_letters()

    def _check_letters(self) -> None:
        for match in _LETTERS.finditer(self.code):
            if match[1]:
                raise self.error(
                    match.start(1),
                    1,
                    f"`{shortened(match[1])}` is not ASCII; PTX is limited to ASCII",
                    "remove it; other characters are allowed in comments and file names",
                )

    def _blank(self, comment: re.Match[str]) -> str:
        if comment[0][0] == '"':
            return comment[0]
        if comment[0] == "/*":
            raise self.error(comment.start(), 2, "this comment is not closed", "close it with `*/`")
        return re.sub(r"[^\n]", " ", comment[0])

    def module(self) -> Node:
        """Return the tree of the whole text."""
        return self._tree(self.code, "module", 0)

    def operands(self, text: str, origin: int) -> Node:
        """Return the tree of the operands of one instruction, which start at `origin`."""
        return self._tree(text, "operands", origin)

    def _tree(self, text: str, start: str, origin: int) -> Node:
        try:
            return grammar().parse(text, start=start)
        except UnexpectedInput as error:
            raise self._syntax_error(error, text, origin) from None

    def location(self, position: int, length: int) -> Location:
        """Return the location of some characters."""
        start = self.text.rfind("\n", 0, position) + 1
        line = self.text[start:].partition("\n")[0].replace("\t", " ")
        column = position - start
        end = max(column + 1, min(column + length, len(line)))
        return Location(self.name, self.text.count("\n", 0, position) + 1, (column, end), source=line)

    def error(self, position: int, length: int, message: str, help: str | None = None) -> ParseError:
        """Return an error at some characters."""
        at = self.location(position, length)
        return ParseError(f"line {at.line}, column {at.columns[0] + 1}: {message}", at=at, help=help)

    def too_deep(self, position: int, noun: str) -> ParseError:
        """Return an error for an item that is nested too deeply."""
        message = f"this {noun} is nested too deeply; {MOST_NESTED} levels are allowed"
        return self.error(position, 1, message, "move a part of it out")

    def mistake(self, token: Token, message: str, help: str | None = None) -> ParseError:
        """Return an error at a token of the tree of the whole text."""
        return self.error(token.start_pos or 0, len(token.rstrip()), message, help)

    def check_name(self, token: Token, name: str) -> None:
        """Raise ParseError if a declaration uses `_` as a name."""
        if name == "_":
            raise self.mistake(
                token,
                "`_` discards a result and cannot be declared",
                "use another name",
            )

    def _syntax_error(self, error: UnexpectedInput, text: str, origin: int) -> ParseError:
        start = len(text.rstrip())
        if isinstance(error, UnexpectedCharacters):
            start = error.pos_in_stream or 0
        elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
            start = error.token.start_pos or 0
        position = min(_skip_space(self.code, origin + start), len(self.code.rstrip()))
        word = _word(self.code, position)
        expected = _accepted(error)
        if origin and "$END" in expected:  # the end of an operand
            expected = (expected - {"$END", "OPERATOR", "QMARK", "LPAR", "LSQB"}) | {"SEMICOLON"}
        return self._explained(position, word, expected) or self.error(
            position, len(word), f"expected {_expected(expected)}, found `{shortened(word)}`"
        )

    def _explained(self, position: int, word: str, expected: set[str]) -> ParseError | None:
        """Return a specific error if the context suggests what was meant."""
        if not word:
            return self._ended(position, expected)
        if word == '"':
            return self.error(position, 1, "this string is not closed", 'close it with `"` on the same line')
        if "INSTRUCTION" in expected and (word[0].isalpha() or word[0] == "@"):
            end = self.code.find(";", position) % (len(self.code) + 1)
            missing = self.missing_semicolon(position, end) or self._nested(position)
            return missing or self._open_bracket(position, end) or self._unended(position)
        if word == "}" and "$END" in expected:
            return self.error(position, 1, "this `}` has no matching `{`", "remove it, or add the missing `{`")
        if word == "{" and "SECTION_BODY" in expected:
            return self.error(position, 1, "the data of this section is not closed", "close it with `}`")
        if word[0].isdigit() and "INT" in expected:
            help = "write integers as 31 or 0x1f, floats as 0f with 8 or 0d with 16 hexadecimal digits"
            return self.error(position, len(word), f"`{word}` is not a constant", help)
        if word == ".loc" and "LOCATION" in expected:
            return self.error(position, 4, "`.loc` takes a file, a line and a column", "write it as `.loc 1 12 5`")
        if _DIRECTIVE.fullmatch(word) and not _known(word):
            kind = "type" if "TYPE" in expected else "directive"
            return self.error(position, len(word), f"unknown {kind} `{word}`; expected {_expected(expected)}")
        return None

    def _ended(self, position: int, expected: set[str]) -> ParseError:
        last = max(0, position - 1)
        if "INSTRUCTION" in expected:
            return self.error(last, 1, "the text ends inside a function", "close its body with `}`")
        return self.error(last, 1, f"the text ends here; expected {_expected(expected)}")

    def _nested(self, start: int) -> ParseError | None:
        """Return the error if a statement has nested braces."""
        if match := _NESTED.match(self.code, start):
            return self.error(match.start(1), 1, "a vector contains a vector", "write one list: `{a, b, c, d}`")
        return None

    def _open_bracket(self, start: int, end: int) -> ParseError | None:
        """Return the error if a statement opens a brace that is not closed before its semicolon."""
        opened = self.code.rfind("{", start, end)
        if self.code.rfind("}", start, end) >= opened:
            return None
        return self.error(opened, 1, "this `{` is not closed before the `;`", "close the vector with `}`")

    def missing_semicolon(self, start: int, end: int) -> ParseError | None:
        """Return the error if a statement starts on a later line before the one at `start` has ended."""
        position, before = start, ""
        for line in self.code[start:end].splitlines(keepends=True):
            if before and before[-1] not in ",|{([" and _STATEMENT.match(line):
                return self._unended(start, position)
            position += len(line)
            before = line.strip() or before
        return None

    def _unended(self, start: int, next_line: int | None = None) -> ParseError:
        """Return the error for a statement without its semicolon, at the end of its last line."""
        if next_line is None:
            next_line = start + len(re.match(r"[^;{}\n]*(\{[^;{}\n]*\}[^;{}\n]*)*", self.code[start:])[0])  # type: ignore[index]
        last = len(self.code[:next_line].rstrip())
        return self.error(last - 1, 1, "`;` is missing after this instruction", "end every instruction with `;`")


def is_token(node: Node, terminal: str = "") -> bool:
    """True if the node is a token, of this terminal if one is given."""
    return isinstance(node, Token) and terminal in ("", node.type)


def is_rule(node: Node, *rules: str) -> bool:
    """True if the node is a tree of one of these rules."""
    return isinstance(node, Tree) and node.data in rules


def _skip_space(text: str, position: int) -> int:
    while text[position : position + 1].isspace():
        position += 1
    return position


def _accepted(error: UnexpectedInput) -> set[str]:
    """Return the terminals that would have been accepted."""
    parser = getattr(error, "interactive_parser", None)
    return set(parser.accepts()) if parser is not None else set(getattr(error, "expected", ()))


def _word(text: str, start: int) -> str:
    """Return the word at a position, for a message."""
    match = _WORD.match(text, start)
    return match[0] if match else ""


def shortened(word: str) -> str:
    """Return a word for a message, cut to a maximum length and without control characters."""
    word = word if len(word) <= WORD_COLUMNS else f"{word[:WORD_COLUMNS]}…"
    return word if word.isprintable() else word.encode("unicode_escape").decode()


@cache
def _known(word: str) -> bool:
    """True if the directive occurs anywhere in the grammar."""
    patterns = (t.pattern.to_regexp() for t in grammar().terminals if t.name not in ("SECTION_NAME", "NAME"))
    return any(re.fullmatch(pattern, word) for pattern in patterns)


def _expected(terminals: Iterable[str]) -> str:
    """Format terminals as words, joined by commas and `or`."""
    names = set(terminals)
    names -= {name for name, other in _IMPLIED.items() if other in names}
    literals = {t.name: f"`{t.pattern.value}`" for t in grammar().terminals}
    order = list(_WORDS)
    words = [_WORDS[name] for name in order if name in names]
    words += sorted(literals[name] for name in names - set(order) if name in literals)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
