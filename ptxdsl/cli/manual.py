"""The instruction table as pages to read: `ptxdsl isa`."""

from __future__ import annotations

import importlib
import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby, islice

from ptxdsl import isa
from ptxdsl.cli.targets import UsageError, nearest
from ptxdsl.isa.spec import Form, Op, Opcode, Parameter, lookup
from ptxdsl.isa.special import Requirement
from ptxdsl.isa.target import OLDEST, TARGETS

INDENT = "    "
WIDTH = 100
LEAST_SM = min(int(name[3:].rstrip("af")) for name in TARGETS)
SPELLINGS = 20000
"""So many spellings of an instruction are searched for one that was meant."""
_TYPE_WORDS = {
    "wide": "{}, twice as wide", "bits": "bits, as wide as {}", "register": "a register that holds {}",
}  # fmt: skip
_WORDS = {"imm": "a constant", "any": "a register or symbol", "arguments": "a list in parentheses"}


def contents() -> str:
    """The names of all instructions, by chapter."""
    chapters = {name: sorted(names, key=str.lower) for name, names in _chapters().items()}
    lines = [f"{len(Op.table)} instructions; `ptxdsl isa NAME` shows the forms of one"]
    for title, names in sorted(chapters.items()):
        lines += ["", title, *_wrapped(" ".join(names))]
    return "\n".join(lines)


def _chapters() -> dict[str, set[str]]:
    chapters: dict[str, set[str]] = {}
    for name, entries in Op.table.items():
        for op, _ in entries:
            chapters.setdefault(_chapter(op), set()).add(name)
    return chapters


def _chapter(op: Op) -> str:
    """The subject of the file that an instruction stands in."""
    title = (importlib.import_module(type(op).__module__).__doc__ or "").partition("\n")[0]
    return re.split(r" \(|[.:]( |$)", title)[0]


def _wrapped(text: str, indent: str = INDENT, hanging: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False)


def page(text: str) -> str:
    """What the table says of an instruction by its name (`ldmatrix`), or of one form of it (`add.rn.f32`).

    Raises UsageError, with the nearest names, for what the table does not have.
    """
    name = text.partition(".")[0]
    if name not in Op.table:
        near = nearest(name, Op.table) or "`ptxdsl isa` lists the instructions that it has"
        raise UsageError(f"the table has no instruction `{name}`", help=near)
    if text == name and not any(form.match([]) is not None for _, form in Op.table[name]):
        return "\n\n".join(_family(name, op, forms) for op, forms in _by_op(name))
    found = lookup(text)
    if not found:
        spellings = (spelling for _, form in Op.table[name] for spelling in form.spellings())
        raise UsageError(f"`{name}` has no form `{text}`", help=nearest(text, islice(spellings, SPELLINGS)))
    return "\n\n".join(map(_spelled, found))


def _by_op(name: str) -> list[tuple[Op, list[Form]]]:
    """The meanings of an instruction with their forms; those of the plain name before those of `add.cc`."""
    groups = groupby(Op.table[name], key=lambda entry: entry[0])
    found = [(op, [form for _, form in entries]) for op, entries in groups]
    return sorted(found, key=lambda entry: sum(modifier.literal for modifier in entry[1][0].modifiers))


def _family(name: str, op: Op, forms: Iterable[Form]) -> str:
    """The forms of an instruction that have one meaning."""
    head = _wrapped(f"{name}: {op.meaning}", "", INDENT)
    return "\n\n".join(["\n".join(head), *("\n".join(_form(form)) for form in forms)])


def _form(form: Form) -> Iterator[str]:
    """One line of syntax, then its modifiers, operands and requirements."""
    yield f"  {form.syntax.partition(' ')[0]} {_operands(form.parameters)}".rstrip()
    rows = [(m.name, " ".join(map(str, m.choices))) for m in form.modifiers if not m.literal]
    for kind, group in groupby(form.parameters, key=_kind):
        rows.append((", ".join(p.name for p in group), kind))
    rows += _requirements(form)
    if form.note:
        rows.append(("note", form.note))
    widest = max((len(left) for left, _ in rows), default=0)
    for left, right in rows:
        yield from _wrapped(f"{left:{widest}}  {right}", hanging=" " * (widest + 2))


def _operands(parameters: Iterable[Parameter]) -> str:
    """Operands as the manual writes them."""
    text = ""
    for p in parameters:
        written = f"[{p.name}]" if p.role == "address" else ("{!}" if p.negatable else "") + p.name
        joint = "|" if p.paired else ", " if text else ""
        text += f"{{{joint}{written}}}" if p.optional else f"{joint}{written}"
    return text


def _kind(p: Parameter) -> str:
    """What an operand takes, in words."""
    if p.role == "address":
        return "an address" if p.type == "generic" else f"an address in .{p.type}"
    does = {"out": "written: ", "both": "read and written: "}.get(p.role, "")
    function, _, inner = p.type.rstrip(")").partition("(")
    what = _TYPE_WORDS[function].format(inner) if inner else _WORDS.get(p.type, p.type)
    return does + (f"{p.count} registers of {what}" if p.count not in ("", "1") else what)


def _requirements(form: Form) -> list[tuple[str, str]]:
    """What the form needs, and what some of its modifiers need beyond that."""
    rows = [("needs", _need(form.requires))]
    spelled = {str(choice) for modifier in form.modifiers for choice in modifier.choices}
    extra = {w: n for w, n in form.needs.items() if spelled.issuperset(w.split()) and not _covers(form.requires, n)}
    for need, group in groupby(sorted(extra, key=extra.__getitem__), key=extra.__getitem__):
        words = ", ".join(" ".join(f".{word}" for word in w.split()) for w in group)
        rows.append(("", f"with {words}: {_need(need)}"))
    return rows


def _covers(have: Requirement, need: Requirement) -> bool:
    return max(have[0], OLDEST) >= need[0] and max(have[1:], (LEAST_SM, "")) >= need[1:]


def _need(requires: Requirement) -> str:
    version, sm, suffix = requires
    major, minor = max(version, OLDEST)
    return f"PTX {major}.{minor}" + (f", sm_{sm}{suffix}" if sm > LEAST_SM else "")


def _spelled(opcode: Opcode) -> str:
    """One form with all choices made, as PTX and as Python."""
    lines = [
        *_wrapped(f"{opcode.text}: {opcode.op.meaning}", "", INDENT),
        "",
        f"  {opcode.text} {_operands(opcode.form.parameters)}".rstrip(),
    ]
    results = ", ".join(o.name for o in opcode.operands if o.written and not o.optional)
    taken = ", ".join(o.name for o in opcode.operands if not o.written and not o.optional)
    lines.append(f"  {results + ' = ' if results else ''}{python_name(opcode.text)}({taken})")
    rows = [(o.name, ("written: " if o.written else "") + o.describe()) for o in opcode.operands]
    rows.append(("needs", _need(opcode.requires)))
    widest = max(len(left) for left, _ in rows)
    return "\n".join([*lines, *(f"{INDENT}{left:{widest}}  {right}" for left, right in rows)])


def python_name(mnemonic: str) -> str:
    """How a mnemonic is spelled in Python: pd.ptx.ld.global_.f32 for ld.global.f32."""
    return ".".join(["pd.ptx", *map(_attribute, mnemonic.split("."))])


def _attribute(word: str) -> str:
    word = word.replace("::", "__")
    if keyword.iskeyword(word):
        return f"{word}_"
    return f"_{word}" if word[0].isdigit() else word


__all__ = ["contents", "isa", "page", "python_name"]
