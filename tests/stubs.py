"""Writes `ptxdsl/trace/instructions.pyi`, the stub of `pd.ptx`, from the table: `python -m tests.stubs`.

What may follow in a mnemonic is the same behind many beginnings, so a class stands for all those of an instruction: the
smallest automaton that reads the mnemonics of the table.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from ptxdsl.isa.opcode import Op
from ptxdsl.isa.page import attribute
from ptxdsl.isa.spelling import Prefix, PythonCall, spellings
from ptxdsl.isa.target import Requirement

DEFAULT_ARCH = "sm_80"
STUB = Path(__file__).parent.parent / "ptxdsl/trace/instructions.pyi"
HEAD = """\
# Written from the table of instructions by `make stubs`; a test holds it to the table. A class is what may follow in a
# mnemonic; those that end there can be called.
from typing import Any, TypeAlias

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
        """The instruction of a mnemonic that is spelled as in PTX: `pd.ptx("add.rn.f32", a, b)`."""'''

State = tuple[str, tuple[tuple[str, str], ...]]
"""The class that calls what was spelled, if it may end; for each word that may follow the class of what comes then."""


class Classes:
    """Classes for the beginnings of mnemonics, those that are alike once."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, State], str] = {}
        self.callers: dict[str, str] = {}
        self.lines: list[str] = []

    def of(self, name: str, prefix: Prefix) -> str:
        """The class of what follows `prefix` in mnemonics of the instruction `name`."""
        caller = self._caller(prefix.call) if prefix.call else ""
        words = tuple((attribute(word), self.of(name, after)) for word, after in sorted(prefix.words.items()))
        if not words:
            return caller
        state = (caller, words)
        if (name, state) not in self.names:
            self.names[name, state] = f"{name}_{sum(n == name for n, _ in self.names)}"
            self.lines += _class(self.names[name, state], *state)
        return self.names[name, state]

    def _caller(self, ending: PythonCall) -> str:
        """The class that has the `__call__`."""
        text = f"{_signature(ending)}\n        {_quoted(_needing(ending.meaning, ending.requires))}"
        if text not in self.callers:
            self.callers[text] = f"C{len(self.callers)}"
            self.lines += [f"class {self.callers[text]}:", f"    {text}"]
        return self.callers[text]


def _class(name: str, caller: str, words: Sequence[tuple[str, str]]) -> list[str]:
    """A class with an attribute for each word; several in a line, as there are thousands."""
    attributes = "; ".join(f"{word}: {after}" for word, after in words)
    return [f"class {name}({caller}):" if caller else f"class {name}:", f"    {attributes}"]


def _signature(ending: PythonCall) -> str:
    sources = [f"{attribute(n)}: In{'' if k < ending.required else ' = ...'}" for k, n in enumerate(ending.sources)]
    front = ["self", *sources, "/"] if sources else ["self"]
    options = ["guard: Guard = ..."] if ending.result == "None" else ["out: Out = ...", "guard: Guard = ..."]
    paired = ["pair: bool = ..."] if ending.result == "Any" else []
    return f"def __call__({', '.join([*front, '*', *options, *paired])}) -> {ending.result}:"


def _needing(meaning: str, requires: Requirement) -> str:
    """A meaning, with the target that it needs where that is newer than the one taken by default."""
    return meaning if requires.supports(DEFAULT_ARCH) else f"{meaning} Needs {' or '.join(requires.targets)}."


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def stub() -> str:
    """The text of the stub."""
    classes = Classes()
    roots = {name: classes.of(name, spellings(name)) for name in sorted(Op.table)}
    root = [f"    {attribute(name)}: {of}\n    {_quoted(_about(name))}" for name, of in roots.items()]
    return "\n".join([HEAD, *classes.lines, ROOT, *root, ""])


def _about(name: str) -> str:
    """What the first form of an instruction means, and which target the oldest of its forms needs."""
    entries = Op.table[name]
    return _needing(entries[0][0].meaning, min((form.requires for _, form in entries), key=lambda each: each.sm))


if __name__ == "__main__":
    STUB.write_text(stub())
    print(STUB, STUB.stat().st_size, "bytes")
