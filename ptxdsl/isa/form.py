"""One form of an instruction: a syntax line as the PTX manual prints it, with typed operands.

    Form("add{.rnd}{.ftz}{.sat}.f32 d=f32, a:f32, b:f32", rnd="rn rz rm rp")
    Form("ld{.weak}.{space}.{type} d=type, [a:space]", …)

- `.name` is a literal; if `name` is a keyword argument of the form, it is a slot with the given choices. `{.name}` is
  optional.
- `d=type` is written, `a:type` is read, `d+type` is both. A type is the name of a PTX type, a slot that holds one,
  a function of these (`wide(type)`, `bits(type)`), or a word for operands that are not registers: `imm`, `label`,
  `function`, `symbol`, `any`; `flag` is a predicate, 0 or 1. `*4` and `*vec` mean `{…}` with that many registers.
- `[a:space]` is an address; `{!}c:pred` may be negated; `{, e:b64}` is optional; `{|p=pred}` is a second
  destination after a bar; `{, e:b64 if hint}` is present exactly if the modifier `hint` is.
- `_` is a destination without a register, for instructions that return no result there.
- `[map:space, {at:s32*rank}]` is an address with coordinates: two operands in one pair of brackets.
- Values that no slot gives are derived from the choices: `derived={"rank": lambda i: int(i.dim[0])}`. A derived value
  can be a type, a space, a number of registers or a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..cached import cached_property
from ..types import TYPES, Type
from .target import Requirement, requirement

Choice = str | Type
Choices = tuple[Choice, ...]
Chosen = Choice | bool | None
"""The value of a modifier in a spelling: a choice, a bool for a literal, None for an omitted slot."""
Derived = Chosen | int
"""A modifier's value, or a value derived from the choices: a type, a space, a register count, a condition."""
Needs = Mapping[str, tuple[str, int | str]]
"""(ptx, sm) required by modifiers. The key is a word, or several words for a combination."""


def one_of(choices: str | Iterable[Choice]) -> Choices:
    """Return the choices of a slot: the words of a string, with the names of PTX types replaced by types."""
    words = choices.split() if isinstance(choices, str) else choices
    return tuple(TYPES.get(w, w) if isinstance(w, str) else w for w in words)


@dataclass(frozen=True, slots=True)
class Modifier:
    """One `.word` of a mnemonic: its name in `Opcode`, its choices, and whether it is optional."""

    name: str
    choices: Choices
    optional: bool
    literal: bool

    @property
    def typed(self) -> bool:
        """True if it names a type; the order of several types identifies them."""
        return not self.optional and any(str(choice) in TYPES for choice in self.choices)

    def chosen(self, word: str) -> Choice | None:
        """Return the choice with this spelling."""
        return next((c for c in self.choices if str(c) == word), None)


@dataclass(frozen=True, slots=True)
class FormOperand:
    """One operand of a form, before its type is resolved."""

    name: str
    role: str  # "out", "in", "both" or "address"
    type: str
    count: str = ""  # the count after `*`
    negatable: bool = False
    optional: bool = False
    paired: bool = False  # printed after a bar, following the previous operand
    joined: bool = False  # printed in the brackets of the preceding address
    condition: str = ""  # the modifier after `if`


class Values:
    """The choices of a spelling as attributes; None for a modifier that is absent."""

    def __init__(self, values: Mapping[str, Derived]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        return None


class Form:
    """One syntax line of an instruction, with its requirements.

    `ptx` is the minimum `.version`. `sm` gives the targets ("90a" for architecture-specific, "90a 100f" for one of
    several). `needs` maps a modifier, or a combination ("v4 b64"), to the additional (ptx, sm) it requires. `when`
    tests whether choices are allowed together. `note` is shown by `ptxdsl isa`. Targets from `until` on no longer have
    the form (0: all have it).
    """

    def __init__(
        self,
        syntax: str,
        *,
        ptx: str = "1.0",
        sm: int | str = 10,
        needs: Needs | None = None,
        when: Callable[[Values], bool] | None = None,
        note: str = "",
        until: int = 0,
        derived: Mapping[str, Callable[[Values], Derived]] | None = None,
        **slots: str | Iterable[Choice],
    ) -> None:
        self.syntax, self.note, self.when, self.until = syntax, note, when, until
        self.name = re.split(r"[.{ ]", syntax, maxsplit=1)[0]
        self.derived = dict(derived or {})
        self._least, self._needs, self._slots = (ptx, sm), needs or {}, slots

    # The properties below are parsed on first use, since a program uses few of the table's forms.

    @cached_property
    def modifiers(self) -> tuple[Modifier, ...]:
        """The modifiers after the instruction name."""
        return tuple(_modifiers(self.syntax.partition(" ")[0], {k: one_of(v) for k, v in self._slots.items()}))

    @cached_property
    def by_need(self) -> list[Modifier]:
        """The modifiers, required ones first."""
        return sorted(self.modifiers, key=lambda m: m.optional)

    @cached_property
    def parameters(self) -> tuple[FormOperand, ...]:
        """The operands."""
        return tuple(_parameters(self.syntax.partition(" ")[2]))

    @cached_property
    def requires(self) -> Requirement:
        """The requirements of every spelling."""
        return requirement(*self._least)

    @cached_property
    def needs(self) -> dict[str, Requirement]:
        """The additional requirements of modifiers."""
        return {word: requirement(*need) for word, need in self._needs.items()}

    @cached_property
    def names(self) -> frozenset[str]:
        """The attribute names of an opcode of this form."""
        return frozenset(modifier.name for modifier in self.modifiers) | self.derived.keys()

    def match(self, words: Sequence[str]) -> dict[str, Derived] | None:
        """Return the choices that spell these modifiers, in any order except that of types, and the derived values.

        None if the words do not spell this form.
        """
        choices, unknown = self.assign(words)
        if unknown or not all(m.optional or m.name in choices for m in self.modifiers):
            return None
        values = self.named([choices.get(m.name) for m in self.modifiers])
        return self.complete(values) if self.permits(values) else None

    def assign(self, words: Sequence[str]) -> tuple[dict[str, Choice], list[str]]:
        """Assign words to modifiers; return the choices by modifier name, and the words left over."""
        choices: dict[str, Choice] = {}
        left, last_type = dict(enumerate(words)), -1
        for modifier in self.by_need:
            fits = ((n, c) for n, w in left.items() if (c := modifier.chosen(w)) is not None)
            position, choice = next(((n, c) for n, c in fits if n > last_type or not modifier.typed), (-1, None))
            if choice is not None:
                del left[position]
                last_type = position if modifier.typed else last_type
                choices[modifier.name] = choice
        return choices, [*left.values()]

    def permits(self, values: Mapping[str, Derived]) -> bool:
        """True if these choices are allowed together."""
        return self.when is None or bool(self.when(Values(values)))

    def complete(self, values: Mapping[str, Derived]) -> dict[str, Derived]:
        """Return the choices with the derived values."""
        return {**values} | {name: function(Values(values)) for name, function in self.derived.items()}

    def requires_of(self, words: Iterable[str]) -> Requirement:
        """Return the requirements of a spelling with these words."""
        spelled = set(words)
        return self.requires.joined(*(n for w, n in self.needs.items() if spelled.issuperset(w.split())))

    def spellings(self) -> Iterator[str]:
        """Yield every mnemonic of this form, in syntax order."""
        return map(self.spell, self.combinations())

    def combinations(self) -> Iterator[tuple[Choice | None, ...]]:
        """Yield every permitted combination of choices, in syntax order; None for an omitted modifier."""
        spaces = [(*([None] if m.optional else []), *m.choices) for m in self.modifiers]
        every = product(*spaces)
        return every if self.when is None else (chosen for chosen in every if self.permits(self.named(chosen)))

    def named(self, chosen: Sequence[Choice | None]) -> dict[str, Chosen]:
        """Return the choices of all modifiers, by name."""
        pairs = zip(self.modifiers, chosen, strict=True)
        return {m.name: bool(choice) if m.literal else choice for m, choice in pairs}

    def spell(self, chosen: Iterable[Choice | None]) -> str:
        """Return the mnemonic with these choices."""
        return ".".join([self.name, *(str(choice) for choice in chosen if choice is not None)])


def _modifiers(mnemonic: str, slots: Mapping[str, Choices]) -> Iterator[Modifier]:
    for part in re.findall(r"\{\.[\w:]+\}|\.[\w:]+", mnemonic):
        word = part.strip("{}").lstrip(".")
        literal = word not in slots
        choices = (word,) if literal else slots[word]
        yield Modifier(word.replace("::", "_"), choices, part[0] == "{", literal)


_PARAMETER = re.compile(
    r"(?P<front>\{\s*[,|]\s*|\|\s*|,\s*\{(?=\w))?(?P<negatable>\{!\})?(?P<address>\[)?(?P<name>\w+)"
    r"((?P<role>[=:+])(?P<type>[\w:]+(\(\w+\))?)(\*(?P<count>\w+))?)?( if (?P<condition>\w+))?[\]}]*"
)
_ROLES = {"=": "out", ":": "in", "+": "both"}
SINK = FormOperand("_", "out", "sink")


def _parameters(text: str) -> Iterator[FormOperand]:
    for match in _PARAMETER.finditer(text):
        g = match.groupdict(default="")
        if g["name"] == SINK.name:
            yield SINK
            continue
        front, condition = g["front"], g["condition"]
        role = "address" if g["address"] else _ROLES[g["role"] or ":"]
        yield FormOperand(
            g["name"], role, g["type"] or ("generic" if role == "address" else "any"), g["count"],
            bool(g["negatable"]), front.startswith("{") and not condition, "|" in front, front.startswith(","),
            condition,
        )  # fmt: skip
