"""Reference text of the instruction table."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, zip_longest

from .form import Choice, Form, FormOperand
from .lookup import forms_with, lookup, nearest
from .opcode import Op, Opcode
from .operand import Operand
from .target import OLDEST, TARGETS, Requirement, capability

INDENT = "    "
WIDTH = 100
LEAST_SM = min(capability(name)[0] for name in TARGETS)
MANY_SHAPES = 8
PAIRED = "written if pair=True"
COMBINATIONS = 2000
"""Limit on the spellings examined for the derived values of a form."""
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_TYPE_WORDS = {
    "wide": "{}, twice as wide", "bits": "bits, as wide as {}", "register": "a register that holds {}",
}  # fmt: skip
_WORDS = {
    "imm": "a constant",
    "any": "a register or symbol",
    "arguments": "a list in parentheses",
    "sink": "nothing: there is no result",
    "flag": "a predicate, 0 or 1",
}


def page(text: str) -> str:
    """Return the reference text of an instruction (`ldmatrix`) or of one spelling (`add.rn.f32`).

    For other text, return the forms that have these words among their modifiers: `cp.async`, `mma.sync`, `e4m3`. Empty
    if the table has no match.
    """
    if opcodes := lookup(text):
        return "\n\n".join(map(_spelled, opcodes))
    name, *words = text.split(".")
    rows = forms_with(words, name) if name in Op.table else forms_with([name, *words])
    rows = [row for row in rows if row[-1].syntax.startswith(f"{text}.")] or rows
    return "\n\n".join(family(name, op, forms) for name, op, forms in by_op(rows))


def refusal(text: str) -> tuple[str, str | None]:
    """Return the message for an unknown mnemonic, and the closest known ones."""
    near, name = nearest(text), text.partition(".")[0]
    meant = "did you mean " + " or ".join(f"`{n}`" for n in near) + "?" if near else None
    if name in Op.table:
        return f"`{name}` has no form `{text}`", meant
    return f"the table has no instruction `{name}`", meant


def wrapped(text: str, indent: str = INDENT, hanging: str = "") -> list[str]:
    """Wrap text to WIDTH."""
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False)


def by_op(rows: Iterable[tuple[str, Op, Form]]) -> list[tuple[str, Op, list[Form]]]:
    """Group forms by operation; within an instruction, plain forms come before those such as `add.cc`."""
    groups = groupby(rows, key=lambda row: row[:2])
    meanings = [(name, op, [form for *_, form in group]) for (name, op), group in groups]
    names = list(dict.fromkeys(name for name, *_ in meanings))
    literals = {op: sum(modifier.literal for modifier in forms[0].modifiers) for _, op, forms in meanings}
    return sorted(meanings, key=lambda meaning: (names.index(meaning[0]), literals[meaning[1]]))


def family(name: str, op: Op, forms: Iterable[Form]) -> str:
    """Return the text of the forms that share one summary."""
    head = wrapped(f"{name}: {op.meaning}", "", INDENT)
    return "\n\n".join(["\n".join(head), *("\n".join(_form(form)) for form in forms)])


def _form(form: Form) -> Iterator[str]:
    """Yield the syntax line of a form, then its modifiers, operands and requirements."""
    yield f"  {form.syntax.partition(' ')[0]} {_operands(form.parameters)}".rstrip()
    rows = [(m.name, _choices(m.choices)) for m in form.modifiers if not m.literal]
    for kind, group in groupby(form.parameters, key=lambda p: _kind(form, p)):
        rows.append((", ".join(p.name for p in group), kind))
    rows += _requirements(form)
    if form.note:
        rows.append(("note", form.note))
    widest = max((len(left) for left, _ in rows), default=0)
    for left, right in rows:
        yield from wrapped(f"{left:{widest}}  {right}", hanging=" " * (widest + 2))


def _operands(parameters: Sequence[FormOperand | Operand]) -> str:
    """Return operands in the notation of the manual."""
    text = ""
    for p, following in zip_longest(parameters, parameters[1:]):
        if p.joined:
            text += f", {{{p.name}}}]"
            continue
        written = f"[{p.name}" if p.role == "address" else ("{!}" if p.negatable else "") + p.name
        written += "]" if p.role == "address" and not (following and following.joined) else ""
        joint = "|" if p.paired else ", " if text else ""
        text += f"{{{joint}{written}}}" if p.optional or getattr(p, "condition", "") else f"{joint}{written}"
    return text


def _kind(form: Form, p: FormOperand) -> str:
    """Describe the operand in words."""
    if p.role == "address":
        return "an address" if p.type == "generic" else f"an address in .{p.type}"
    does = {"out": "written: ", "both": "read and written: "}.get(p.role, "")
    does = f"{PAIRED}: " if p.paired and p.optional else does
    function, _, inner = p.type.rstrip(")").partition("(")
    meaning = _TYPE_WORDS[function].format(inner) if inner else _WORDS.get(p.type) or _values(form, p.type)
    return does + (meaning if p.count in ("", "1") else f"{_values(form, p.count)} registers of {meaning}")


def _values(form: Form, name: str) -> str:
    """Return the values of a derived name: its types, or its smallest and largest number; other names are returned
    unchanged.
    """
    if name not in form.derived:
        return name
    combinations = (form.complete(dict(form.named(chosen))) for chosen in islice(form.combinations(), COMBINATIONS))
    values = dict.fromkeys(values[name] for values in combinations)
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) < len(values):
        return " or ".join(map(str, values))
    return f"{min(numbers)} to {max(numbers)}" if len(numbers) > 1 else str(*numbers)


def _choices(choices: Sequence[Choice]) -> str:
    """Return the choices of a modifier; a long list of shapes that differ only in n becomes one pattern and the values
    of n.
    """
    shapes = [_SHAPE.fullmatch(str(choice)) for choice in choices]
    fixed = {(shape[1], shape[3]) for shape in shapes if shape}
    if len(choices) < MANY_SHAPES or not all(shapes) or len(fixed) != 1:
        return " ".join(map(str, choices))
    ((m, k),) = fixed
    return f"m{m}nNk{k}, N = {' '.join(shape[2] for shape in shapes if shape)}"


def _requirements(form: Form) -> list[tuple[str, str]]:
    """Return the requirements of the form, and the additional ones of its modifiers."""
    rows = [("needs", in_words(form.requires))]
    spelled = {str(choice) for modifier in form.modifiers for choice in modifier.choices}
    extra = {w: n for w, n in form.needs.items() if spelled.issuperset(w.split()) and not _covers(form.requires, n)}
    for need, group in groupby(sorted(extra, key=lambda word: _order(extra[word])), key=extra.__getitem__):
        words = ", ".join(" ".join(f".{word}" for word in w.split()) for w in group)
        rows.append(("", f"with {words}: {in_words(need)}"))
    return rows


def _order(requires: Requirement) -> tuple[object, ...]:
    return requires.version, requires.sm, requires.only


def _covers(have: Requirement, need: Requirement) -> bool:
    newer = max(have.version, OLDEST) >= need.version and max(have.sm, LEAST_SM) >= need.sm
    return newer and set(have.only) >= set(need.only)


def in_words(requires: Requirement) -> str:
    """Return the minimum PTX version and targets in words."""
    major, minor = max(requires.version, OLDEST)
    targets = " or ".join(requires.targets) if requires.only or requires.sm > LEAST_SM else ""
    return f"PTX {major}.{minor}" + (f", {targets}" if targets else "")


def _spelled(opcode: Opcode) -> str:
    """Return one fully resolved form, as PTX and as Python."""
    lines = [
        *wrapped(f"{opcode.text}: {opcode.op.meaning}", "", INDENT),
        "",
        f"  {opcode.text} {_operands(opcode.operands)}".rstrip(),
    ]
    results = ", ".join(o.name for o in opcode.operands if o.written and o.type and not o.optional)
    taken = ", ".join(o.name for o in opcode.operands if not o.written and not o.optional)
    lines.append(f"  {results + ' = ' if results else ''}{python_name(opcode.text)}({taken})")
    rows = [(o.name, _does(o) + o.describe()) for o in opcode.operands]
    rows.append(("needs", in_words(opcode.requires)))
    widest = max(len(left) for left, _ in rows)
    return "\n".join([*lines, *(f"{INDENT}{left:{widest}}  {right}" for left, right in rows)])


def _does(operand: Operand) -> str:
    return f"{PAIRED}: " if operand.paired and operand.optional else "written: " if operand.written else ""


def python_name(mnemonic: str) -> str:
    """Return the Python spelling of a mnemonic: pd.ptx.ld.global_.f32 for ld.global.f32."""
    return ".".join(["pd.ptx", *map(attribute, mnemonic.split("."))])


def attribute(word: str) -> str:
    """Return the Python attribute name of a word of a mnemonic."""
    word = word.replace("::", "__")
    if keyword.iskeyword(word):
        return f"{word}_"
    return f"_{word}" if word[0].isdigit() else word
