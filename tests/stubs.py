"""Generate `ptxdsl/trace/instructions.pyi`, the stub of `pd.ptx`, from the table: `python -m tests.stubs`.

Many prefixes of an instruction have the same continuations, so they share a class: the classes of an instruction are
the minimal automaton that accepts its mnemonics. A class is named after the longest common prefix of its mnemonics.
"""

import itertools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ptxdsl.isa.opcode import Op
from ptxdsl.isa.page import attribute
from ptxdsl.isa.spelling import Prefix, PythonCall, spellings
from ptxdsl.isa.target import Requirement

DEFAULT_ARCH = "sm_80"
STUB = Path(__file__).parent.parent / "ptxdsl/trace/instructions.pyi"
HEAD = """\
# Generated from the instruction table by `make stubs`. Each class stands for mnemonics that begin with its name; the
# attributes are the words that may follow, and classes of complete mnemonics can be called.
from typing import Any, Literal, TypeAlias, overload

from ptxdsl.trace.instruction import Scalar

In: TypeAlias = object  # a traced value, a pointer, a number, a list of these for a vector
Out: TypeAlias = object  # a variable, "_", or a list of these
Guard: TypeAlias = Scalar | None  # a predicate
Vector: TypeAlias = tuple[Scalar, ...]
Vector2: TypeAlias = tuple[Scalar, Scalar]
Vector4: TypeAlias = tuple[Scalar, Scalar, Scalar, Scalar]
"""
ROOT = '''
class Ptx:
    def __call__(self, mnemonic: str, /, *sources: In, out: Out = ..., guard: Guard = ..., pair: bool = ...) -> Any:
        """Emit the instruction with a mnemonic spelled as in PTX: `pd.ptx("add.rn.f32", a, b)`."""'''

State = tuple[str, tuple[tuple[str, str], ...]]
"""The caller class of a prefix that may end here, and the class of each word that may follow."""


class Classes:
    """Classes for prefixes of mnemonics; prefixes of an instruction with the same continuations share one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[tuple[str, State | str], str] = {}
        self._paths: dict[str, list[tuple[str, ...]]] = {}

    def of(self, name: str, prefix: Prefix, path: tuple[str, ...] = ()) -> str:
        """Return the class of the words after `prefix`, which is the instruction `name` followed by `path`."""
        caller = self._caller(name, prefix.call, path) if prefix.call else ""
        words = tuple(
            (attribute(word), self.of(name, after, (*path, word))) for word, after in sorted(prefix.words.items())
        )
        if not words:
            return caller
        return self._shared(name, path, (caller, words), lambda known: _class(known, caller, words))

    def renamed(self, text: str) -> str:
        """Replace the numbered classes of a text by names that begin with the mnemonic prefix."""
        final: dict[str, str] = {}
        taken: set[str] = set()
        for known, paths in self._paths.items():
            name = known[1:].partition("__")[0]
            stem = "_".join([name, *map(_identifier, _common(paths))])
            count = next(n for n in itertools.count(1) if (stem if n == 1 else f"{stem}_{n}") not in taken)
            final[known] = attribute(stem if count == 1 else f"{stem}_{count}")
            taken.add(final[known].removesuffix("_"))
        return re.sub(r"%\w+__\d+", lambda match: final[match[0]], text)

    def _caller(self, name: str, ending: PythonCall, path: tuple[str, ...]) -> str:
        """Return the class that has the `__call__`."""
        text = _calls(ending)
        return self._shared(name, path, text, lambda known: [f"class {known}:", *text.splitlines()])

    def _shared(self, name: str, path: tuple[str, ...], key: State | str, lines: Callable[[str], Sequence[str]]) -> str:
        if (name, key) not in self._names:
            known = self._names[name, key] = f"%{name}__{len(self._names)}"
            self._paths[known] = []
            self.lines += lines(known)
        known = self._names[name, key]
        self._paths[known].append(path)
        return known


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the longest common prefix."""
    first, last = min(paths), max(paths)
    return first[: next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _identifier(word: str) -> str:
    return re.sub(r"\W+", "_", word)


def _calls(ending: PythonCall) -> str:
    """Return the `__call__` of an instruction; two overloads if `pair=True` adds a destination."""
    meaning = f"        {_quoted(_needing(ending.meaning, ending.requires))}"
    if ending.result != "Paired":
        return f"    {_signature(ending, ending.result)}\n{meaning}"
    overloads = (("Scalar", "pair: Literal[False] = ..."), ("Vector2", "pair: Literal[True]"))
    return "\n".join(f"    @overload\n    {_signature(ending, *each)}\n{meaning}" for each in overloads)


def _class(name: str, caller: str, words: Sequence[tuple[str, str]]) -> list[str]:
    """Return a class with an attribute for each word, on one line to keep the file small."""
    attributes = "; ".join(f"{word}: {after}" for word, after in words)
    return [f"class {name}({caller}):" if caller else f"class {name}:", f"    {attributes}"]


def _signature(ending: PythonCall, result: str, pair: str = "") -> str:
    sources = [f"{attribute(n)}: In{'' if k < ending.required else ' = ...'}" for k, n in enumerate(ending.sources)]
    front = ["self", *sources, "/"] if sources else ["self"]
    options = ["guard: Guard = ..."] if result == "None" else ["out: Out = ...", "guard: Guard = ..."]
    paired = [pair] if pair else ["pair: bool = ..."] if result == "Any" else []
    return f"def __call__({', '.join([*front, '*', *options, *paired])}) -> {result}:"


def _needing(meaning: str, requires: Requirement) -> str:
    """Append the required target to a summary if it is newer than the default one."""
    return meaning if requires.supports(DEFAULT_ARCH) else f"{meaning} Requires {' or '.join(requires.targets)}."


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def stub() -> str:
    """The text of the stub."""
    classes = Classes()
    roots = {name: classes.of(name, spellings(name)) for name in sorted(Op.table)}
    root = [f"    {attribute(name)}: {of}\n    {_quoted(_about(name))}" for name, of in roots.items()]
    return "\n".join([HEAD, classes.renamed("\n".join(classes.lines)), ROOT, classes.renamed("\n".join(root)), ""])


def _about(name: str) -> str:
    """What the first form of an instruction means, and which target the oldest of its forms needs."""
    entries = Op.table[name]
    return _needing(entries[0][0].meaning, min((form.requires for _, form in entries), key=lambda each: each.sm))


if __name__ == "__main__":
    STUB.write_text(stub())
    print(STUB, STUB.stat().st_size, "bytes")
