"""Instructions made from the table: spellings that show all choices, operands that fit, and what the assembler says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, combinations
from random import Random
from typing import Any

from ptxdsl import ir
from ptxdsl.assemble import assemblers
from ptxdsl.isa import CHAPTERS, Op, Opcode, lookup, target
from ptxdsl.isa.form import Form
from ptxdsl.isa.operand import Operand
from ptxdsl.types import Type, b32, bits, f16, f16x2, u64

LAST_MINOR = {1: 5, 2: 3, 3: 2, 4: 3, 5: 0, 6: 5, 7: 8, 8: 8, 9: 0}
VERSIONS = tuple((major, minor) for major, last in LAST_MINOR.items() for minor in range(last + 1))
"""All versions of PTX."""

OLD_TARGETS = {
    "sm_10": (1, 0), "sm_11": (1, 0), "sm_12": (1, 2), "sm_13": (1, 2), "sm_20": (2, 0), "sm_30": (3, 0),
    "sm_32": (4, 0), "sm_35": (3, 1), "sm_37": (4, 1),
}  # fmt: skip
TARGETS = {**OLD_TARGETS, **{name: version for name, version in target.TARGETS.items() if name[-1].isdigit()}}
"""The targets of all architectures, with the least `.version` that knows each; a GPU runs code of any older one."""

EXHAUSTIVE = 64
"""Forms with no more spellings than this are spelled in full."""


@dataclass(frozen=True)
class Spelled:
    """An opcode with operands that fit."""

    opcode: Opcode
    operands: tuple[Any, ...]

    def __str__(self) -> str:
        return str(ir.Instruction(self.opcode, self.operands))

    @property
    def least(self) -> tuple[tuple[int, int], str]:
        """The least `.version` and target that our table claims for it."""
        requires = self.opcode.requires
        name = requires.least if requires.only else next(t for t in TARGETS if number(t) >= requires.sm)
        oldest = self.floor
        return max(requires.version, known_since(name), oldest[0]), max(name, oldest[1], key=number)

    @property
    def floor(self) -> tuple[tuple[int, int], str]:
        """The oldest version and target on which claims can be tested; generic addresses came with sm_20."""
        if not isinstance(assembler(), assemblers.Ptxas):
            return (4, 0), "sm_50"
        addressed = any(operand.role == "address" for operand in self.opcode.operands)
        return ((2, 0), "sm_20") if addressed else ((1, 0), "sm_10")


def number(name: str) -> int:
    """90 for sm_90a."""
    return int(re.sub(r"\D", "", name))


def known_since(name: str) -> tuple[int, int]:
    return {**OLD_TARGETS, **target.TARGETS}[name]


@cache
def assembler() -> Any:
    """ptxas where there is one, for it reads the oldest versions too; else nvJitLink."""
    ptxas = assemblers.Ptxas()
    return ptxas if ptxas.why_not() is None else assemblers.NvJitLink()


def forms_of(chapter: str) -> list[tuple[Op, Form]]:
    """The forms of a chapter of the table, in its order."""
    named = {f"ptxdsl.isa.{chapter}"}
    return [(op, form) for entries in Op.table.values() for op, form in entries if type(op).__module__ in named]


def chapters() -> list[str]:
    return [module.__name__.rpartition(".")[2] for module in CHAPTERS]


def covering(form: Form, strength: int = 2) -> list[str]:
    """Spellings in which every choice of `strength` modifiers that may stand together does so."""
    every = list(form.combinations())
    if len(every) > EXHAUSTIVE:
        Random(form.syntax).shuffle(every)
        every = list(_covering(every, strength))
    return [form.spell(chosen) for chosen in every]


def _covering(every: Iterable[tuple[Any, ...]], strength: int) -> Iterator[tuple[Any, ...]]:
    seen: set[Any] = set()
    for chosen in every:
        shown = set(combinations(enumerate(chosen), strength)) - seen
        if shown:
            seen |= shown
            yield chosen


def opcode_of(form: Form, text: str) -> Opcode:
    """The opcode that a spelling of a form means."""
    return next(opcode for opcode in lookup(text) if opcode.form is form)


@cache
def register(type: Type, number: int) -> ir.Register:
    return ir.Register(f"{type}_{number}", type)


CONSTANTS = (0, 1, 2, 3, 4, 8, 16, 32, 64, 128)


def values_for(operand: Operand, first: int) -> list[Any]:
    """Values that fit an operand: registers numbered from `first` on, or constants to try."""
    if operand.role == "address":
        return [ir.Address(register(b32 if operand.space == "tmem" else u64, first))]
    if operand.type is None:
        constants = [ir.Immediate(value) for value in CONSTANTS]
        return {"imm": constants, "sink": [ir.Sink()]}.get(operand.word, [])
    declared = operand.type.register
    if declared in (f16, f16x2):
        declared = bits(declared.bits)  # so that the instruction and not its registers needs a newer target
    registers = tuple(register(declared, first + n) for n in range(operand.count))
    return [ir.Vector(registers) if operand.vector else registers[0]]


def fitting(opcode: Opcode) -> Iterator[Spelled]:
    """The opcode with operands that our own rules accept: all of them, and without the optional ones."""
    for without in (False, True) if any(o.optional for o in opcode.operands) else (False,):
        firsts = accumulate((max(4, operand.count) for operand in opcode.operands), initial=0)
        spaces = [
            [None] if operand.optional and without else values_for(operand, first)
            for first, operand in zip(firsts, opcode.operands, strict=False)
        ]
        if (operands := _fit(opcode, spaces)) is not None:
            yield Spelled(opcode, operands)


def _fit(opcode: Opcode, spaces: list[list[Any]]) -> tuple[Any, ...] | None:
    """Operands that our own rules accept: the first of each operand's values, or the next where that is refused."""
    names = [operand.name for operand in opcode.operands]
    left = [iter(space) for space in spaces]
    values = [next(space, None) for space in left]
    while (problem := next(opcode.problems(opcode.group(values)), None)) is not None:
        position = names.index(problem.operand) if problem.operand in names else 0
        values[position] = next(left[position], None)
        if values[position] is None:
            return None
    return opcode.group(values)


def registers_in(operands: Iterable[Any]) -> Iterator[ir.Register]:
    for operand in operands:
        if isinstance(operand, ir.Register):
            yield operand
        elif isinstance(operand, ir.Vector):
            yield from registers_in(operand.elements)
        elif isinstance(operand, ir.Pair):
            yield from registers_in((operand.first, operand.second))
        elif isinstance(operand, ir.Not):
            yield operand.register
        elif isinstance(operand, ir.Address):
            yield from registers_in((operand.base, operand.coordinates))


def complaints(instructions: Sequence[Spelled], version: tuple[int, int], name: str) -> dict[int, str]:
    """What the assembler says about each instruction, by its number, at a `.version` and `.target`."""
    declared = dict.fromkeys(r for i in instructions for r in registers_in(i.operands))
    head = [
        f".version {version[0]}.{version[1]}",
        f".target {name}",
        *([".address_size 64"] if version >= (2, 3) else []),
        ".visible .entry k() {",
        *(f".reg .{r.type} {r};" for r in declared),
    ]
    text = "\n".join([*head, *map(str, instructions), "ret;", "}", ""])
    return {line - len(head) - 1: what for line, what in errors(text, name).items()}


def errors(text: str, name: str) -> dict[int, str]:
    """The first complaint of the assembler about each line of a module; 0 for what is about no line."""
    arch = name if number(name) >= 75 else "sm_75"
    outcome = assembler().assemble([text], arch, ["-O0"])
    found: dict[int, str] = {}
    for match in re.finditer(r"line (\d+); (?:error|fatal)\s*: (.*)", outcome.log):
        found.setdefault(int(match[1]), match[2])
    if outcome.image is None and not found:
        found[0] = outcome.log
    return found
