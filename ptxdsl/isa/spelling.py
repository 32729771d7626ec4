"""Mnemonics as a tree of words, with the Python call signature of each; used by editors and `dir`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from .form import Choice, Derived, Form, FormOperand, Modifier
from .lookup import lookup
from .opcode import Op
from .operand import resolve
from .target import Requirement

COMBINATIONS = 20_000
"""Limit on the continuations of a word that are searched for a permitted one."""
EXACT = (2, 4)
"""Vector lengths that have a type of their own."""


@dataclass(frozen=True, slots=True)
class PythonCall:
    """The Python signature of an instruction: source names; sources after the first `required` are optional.

    `result` is the return type: "None", "Scalar", "Vector" (a tuple of scalars), "Vector4" (with a fixed length), a
    tuple of these, or "Any" if the operands decide.
    """

    meaning: str
    sources: tuple[str, ...]
    required: int
    result: str
    requires: Requirement


@dataclass(slots=True)
class Prefix:
    """A prefix of mnemonics: the words that may follow, and its call signature if the mnemonic may end here."""

    words: dict[str, Prefix] = field(default_factory=dict)
    calls: list[PythonCall] = field(default_factory=list)

    @property
    def call(self) -> PythonCall | None:
        return _joined(self.calls) if self.calls else None


def spellings(name: str) -> Prefix:
    """Return all spellings of an instruction as a tree, with words in syntax order."""
    root = Prefix()
    for op, form in Op.table.get(name, ()):
        calls = _Calls(op, form)
        for chosen in form.combinations():
            at = root
            for choice in chosen:
                if choice is not None:
                    at = at.words.setdefault(str(choice), Prefix())
            if (call := calls.of(chosen)) not in at.calls:
                at.calls.append(call)
    return root


class _Calls:
    """The call signatures of a form's spellings, cached by the few modifiers that determine the operands."""

    def __init__(self, op: Op, form: Form) -> None:
        self._op, self._form = op, form
        self._known: dict[tuple[Choice | None, ...], PythonCall] = {}
        deciding = {name for p in form.parameters for name in (p.count, p.condition)}
        every = bool(deciding & form.derived.keys())
        self._deciding = [n for n, modifier in enumerate(form.modifiers) if every or modifier.name in deciding]

    def of(self, chosen: tuple[Choice | None, ...]) -> PythonCall:
        key = tuple([chosen[n] for n in self._deciding])
        if key not in self._known:
            values = self._form.complete(dict(self._form.named(chosen)))
            self._known[key] = _call(self._op, self._form, values)
        return self._known[key]


def following(text: str) -> list[str]:
    """Return the words that may follow a prefix; instruction names for an empty one."""
    if not text:
        return list(Op.table)
    name, *words = text.split(".")
    forms = (form for _, form in Op.table.get(name, ()))
    return list(dict.fromkeys(word for form in forms for word in _following(form, words)))


def _following(form: Form, words: Sequence[str]) -> Iterator[str]:
    for chosen in _choices(form.modifiers, words):
        rest = form.modifiers[len(chosen) :]
        for n, modifier in enumerate(rest):
            after = [(*([None] if m.optional else []), *m.choices) for m in rest[n + 1 :]]
            left_out = (*chosen, *[None] * n)
            yield from (str(c) for c in modifier.choices if _permitted(form, (*left_out, c), after))
            if not modifier.optional:
                break


def _choices(modifiers: Sequence[Modifier], words: Sequence[str]) -> Iterator[tuple[Choice | None, ...]]:
    """Yield the choices of the leading modifiers that match these words, up to the last one matched."""
    if not words:
        yield ()
    elif modifiers:
        first, *rest = modifiers
        choice = first.chosen(words[0])
        if choice is not None:
            yield from ((choice, *others) for others in _choices(rest, words[1:]))
        if first.optional:
            yield from ((None, *others) for others in _choices(rest, words))


def _permitted(form: Form, chosen: Sequence[Choice | None], after: Sequence[Sequence[Choice | None]]) -> bool:
    """True if some completion of these choices is a valid spelling."""
    complete = islice(product(*after), COMBINATIONS)
    return any(form.permits(form.named((*chosen, *others))) for others in complete)


def call_of(text: str) -> PythonCall | None:
    """Return the call signature of a mnemonic; None if the table does not have it."""
    calls = [_call(opcode.op, opcode.form, opcode.values) for opcode in lookup(text)]
    return _joined(calls) if calls else None


def _joined(each: Sequence[PythonCall]) -> PythonCall:
    """Merge the call signatures of several forms into one."""
    calls = list(dict.fromkeys(each))
    longest = max(calls, key=lambda each: len(each.sources))
    results = {each.result for each in calls}
    return PythonCall(
        "; or ".join(dict.fromkeys(each.meaning.removesuffix(".") for each in calls)) + ".",
        longest.sources,
        min(each.required for each in calls),
        results.pop() if len(results) == 1 else "Any",
        min((each.requires for each in calls), key=lambda requires: (requires.sm, requires.version)),
    )


def _call(op: Op, form: Form, values: Mapping[str, Derived]) -> PythonCall:
    present = [p for p in form.parameters if not p.condition or values[p.condition]]
    sources = [p for p in present if p.role in ("in", "address")]
    required = sum(not p.optional for p in sources)
    return PythonCall(op.meaning, tuple(p.name for p in sources), required, _result(present, values), form.requires)


def _result(present: Sequence[FormOperand], values: Mapping[str, Derived]) -> str:
    written = [p for p in present if p.role in ("out", "both") and p.type != "sink"]
    if any(p.paired and p.optional for p in written):
        return "Paired"
    results = list(_results(written, values))
    return f"tuple[{', '.join(results)}]" if len(results) > 1 else results[0] if results else "None"


def _results(written: Sequence[FormOperand], values: Mapping[str, Derived]) -> Iterator[str]:
    for p in written:
        count = resolve(p, values).count if p.count else 1
        yield "Scalar" if count == 1 else f"Vector{count}" if count in EXACT else "Vector"
