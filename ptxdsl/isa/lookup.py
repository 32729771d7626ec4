"""Look up mnemonics in the instruction table, and find the closest matches of unknown ones."""

from __future__ import annotations

import copyreg
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, product

from .. import ir
from ..types import TYPES, lanes
from .form import Choice, Derived, Form, Modifier
from .opcode import Op, Opcode
from .operand import OperandList, Problem, resolve

MOST_SUGGESTIONS = 3
ALIKE = 0.6
"""So alike are names of instructions that may have been meant, from 0 to 1; two letters swapped count as one change."""
SPELLINGS = 64
"""So many spellings of a form are looked at for the nearest."""

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_opcodes: dict[str, tuple[Opcode, ...]] = {}


def lookup(text: str) -> tuple[Opcode, ...]:
    """Return every opcode that a mnemonic may denote (the operands decide between them); empty if there is none."""
    if text not in _opcodes:
        name, *words = text.split(".")
        _opcodes[text] = tuple(
            opcode_of(text, op, form, values)
            for op, form in Op.table.get(name, ())
            if (values := form.match(words)) is not None
        )
    return _opcodes[text]


def opcode_of(text: str, op: Op, form: Form, values: dict[str, Derived]) -> Opcode:
    """Return the opcode of a form with these choices, without the operands whose condition is false."""
    present = (p for p in form.parameters if not p.condition or values[p.condition])
    return Opcode(text, op, form, values, tuple(resolve(p, values) for p in present))


def _at(text: str, number: int) -> Opcode:
    """Return an opcode by mnemonic and position; unpickling uses it, so that a process has one object for each."""
    return lookup(text)[number]


def _reduce(opcode: Opcode) -> tuple[Callable[..., Opcode], tuple[str, int]]:
    return _at, (opcode.text, lookup(opcode.text).index(opcode))


copyreg.pickle(Opcode, _reduce)


def choose(text: str, operands: OperandList) -> Opcode | None:
    """Return the opcode of this mnemonic that best fits the operands; None if the mnemonic is unknown."""
    candidates = lookup(text)
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    fitting = (c for c in candidates if next(c.problems(operands), None) is None)
    return next(fitting, None) or min(candidates, key=lambda c: _distance(c, operands))


def _distance(candidate: Opcode, operands: OperandList) -> tuple[bool, int, int]:
    """Rank how badly operands fit an opcode: wrong count, number of problems, braces in the wrong places."""
    bound = candidate.bind(operands)
    if isinstance(bound, Problem):
        return True, 0, 0
    braces = sum(o.vector != isinstance(v, ir.Vector) for o, v in zip(candidate.operands, bound, strict=True))
    return False, len(list(candidate.problems(operands))), braces


def forms_with(words: Sequence[str], name: str = "") -> list[tuple[str, Op, Form]]:
    """Return the forms, of one instruction or of all, whose modifiers can include all of these words.

    A scalar type also matches its packed types.
    """
    entries = {name: Op.table[name]} if name else Op.table
    return [(n, op, form) for n, rows in entries.items() for op, form in rows if all(_has(form, w) for w in words)]


def _has(form: Form, word: str) -> bool:
    packed = {choice.name for choice in TYPES.values() if lanes(choice)[0].name == word}
    return any(str(c) == word or str(c) in packed for modifier in form.modifiers for c in modifier.choices)


def nearest(text: str) -> list[str]:
    """Return the closest instruction names, or spellings of an instruction, to an unknown mnemonic."""
    name, *words = text.split(".")
    if name not in Op.table:
        return nearest_names(name)
    spellings = {spelling for _, form in Op.table[name] for spelling in _near(form, words)}
    return _most_alike(text, spellings)


def nearest_names(name: str) -> list[str]:
    """Return the instruction names closest to an unknown name."""
    return _most_alike(name, (known for known in Op.table if _likeness(name, known) >= ALIKE))


def _most_alike(text: str, known: Iterable[str]) -> list[str]:
    """Return the closest matches; prefer shorter names and round-to-nearest on ties."""

    def rank(name: str) -> tuple[float, int, bool, str]:
        return _likeness(text, name), -name.count("."), ".rn" in name, name

    return sorted(known, key=rank, reverse=True)[:MOST_SUGGESTIONS]


def _likeness(text: str, known: str) -> float:
    """Return a similarity from 0 to 1. Shapes compare by their numbers; swapped letters, as in `fam`, are corrected."""
    if sizes := _sizes_apart(text, known):
        return 1 - min(sizes, 500) / 1000
    swaps = (text[:n] + text[n + 1] + text[n] + text[n + 2 :] for n in range(min(len(text), 8) - 1))
    ratio = difflib.SequenceMatcher(None, text, known).ratio()
    if known in swaps or set(text.split(".")) < set(known.split(".")):  # or a required word was omitted
        return max(ratio, 0.9)
    return ratio


def _sizes_apart(text: str, known: str) -> int:
    """Return the distance of two mnemonics that differ in the m, n and k of a shape; 0 for others."""
    differing = {pair for pair in zip(text.split("."), known.split("."), strict=False) if pair[0] != pair[1]}
    shapes = [_SHAPE.fullmatch(word) for pair in differing for word in pair]
    if len(shapes) != 2 or not all(shapes) or text.count(".") != known.count("."):
        return 0
    return sum(abs(int(a) - int(b)) for a, b in zip(*(shape.groups() for shape in shapes if shape), strict=True))


def _near(form: Form, words: Sequence[str]) -> Iterator[str]:
    """Yield spellings of a form close to some words: known words are kept, others become their closest match.

    Afterwards, yield the remaining choices of each modifier.
    """
    choices, unknown = form.assign(words)
    spaces = [[choices[m.name]] if m.name in choices else _alternatives(m, unknown) for m in form.modifiers]
    permitted = list(_permitted(form, spaces))
    if not permitted:  # the words are not allowed together: one of them must change
        others = ([*spaces[:n], [*m.choices], *spaces[n + 1 :]] for n, m in enumerate(form.modifiers))
        permitted = [chosen for space in others for chosen in _permitted(form, space)]
    for chosen in permitted:
        yield form.spell(chosen)
        for n, modifier in enumerate(form.modifiers):
            for choice in modifier.choices if chosen[n] is not None else ():
                other = (*chosen[:n], choice, *chosen[n + 1 :])
                if form.permits(form.named(other)):
                    yield form.spell(other)


def _permitted(form: Form, spaces: Sequence[Sequence[Choice | None]]) -> Iterator[tuple[Choice | None, ...]]:
    return islice((chosen for chosen in product(*spaces) if form.permits(form.named(chosen))), SPELLINGS)


def _alternatives(modifier: Modifier, unknown: Sequence[str]) -> list[Choice | None]:
    """Return the choices of a modifier that unknown words may denote, the most likely first."""
    known = [str(choice) for choice in modifier.choices]
    ranked = [(_likeness(word, k), k) for word in unknown for k in known]
    meant = [k for likeness, k in sorted(ranked, reverse=True)[: 2 * MOST_SUGGESTIONS] if likeness >= 0.5]
    choices = [modifier.chosen(match) for match in dict.fromkeys(meant)]
    return [*choices, None] if modifier.optional else choices or list(modifier.choices)
