"""Every form of the table, held against the assembler: what we accept it assembles, what we refuse it refuses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from ptxdsl.isa import Op, lookup

from .misuse import misuses
from .spelled import (
    TARGETS,
    VERSIONS,
    Spelled,
    assembler,
    chapters,
    complaints,
    covering,
    errors,
    fitting,
    forms_of,
    known_since,
    number,
    opcode_of,
)

Setting = tuple[tuple[int, int], str]

pytestmark = pytest.mark.skipif(assembler().why_not() is not None, reason="no assembler: pip install nvidia-nvjitlink")

SURROUNDINGS = {
    "bra{.uni} target:label": "{} L; L:",
    "brx.idx{.uni} index:u32, targets:label": "T: .branchtargets L; {} r, T; L:",
    "call{.uni} function:function": "{} plain;",
    "call{.uni} function:function, arguments:arguments": "{} takes, (a);",
    "call{.uni} results:arguments, function:function, arguments:arguments": "{} (a), gives, (a);",
    "call{.uni} pointer:u64, targets:label": "P: .callprototype _ (); {} d, P;",
    "call{.uni} pointer:u64, arguments:arguments, targets:label": "P: .callprototype _ (.param .b32 _); {} d, (a), P;",
    "call{.uni} results:arguments, pointer:u64, arguments:arguments, targets:label": (
        "P: .callprototype (.param .b32 _) _ (.param .b32 _); {} (a), d, (a), P;"
    ),
}
"""Instructions that are nothing by themselves: the text around their mnemonic."""

CONTROL_MODULE = """.version 6.0
.target sm_50
.address_size 64
.func plain() {{ ret; }}
.func takes(.param .b32 x) {{ ret; }}
.func (.param .b32 y) gives(.param .b32 x) {{ ret; }}
.visible .entry k() {{
.reg .b32 r; .reg .b64 d; .param .b32 a;
{}
ret;
}}
"""

LENIENT = {
    "a constant that does not fit": "",
    "`_` is read": "",
    "a constant is written": "",
    "two registers for one": "createpolicy mbarrier",
    "a predicate for a number, in braces": "",
    "an integer for a float, in braces": "",
    "a float for an integer": "fns shfl",
    "too narrow": "isspacep",
    "a float as address": "fence",
    "an operand too many": "atom vadd vsub vabsdiff vmin vmax vshl vshr vset",
    "a predicate for a number": "movmatrix",
}
"""What ptxas lets pass against the manual, in all instructions or only in these; we do not, for no one means that."""

UNCHECKED_TYPES = ("bf16", "tf32", "e4m3", "e5m2")
"""ptxas lets any register stand for these in some instructions."""


def lenient(kind: str, i: Spelled) -> bool:
    """Whether the assembler is known to let a misuse pass."""
    names = LENIENT.get(kind)
    if names is not None and (not names or i.opcode.form.name in names.split()):
        return True
    return any(type_ in i.opcode.text for type_ in UNCHECKED_TYPES)


@cache
def accepted(chapter: str, strength: int = 2) -> tuple[Spelled, ...]:
    """Instructions that we accept: each form's spellings, with and without optional operands."""
    forms = [form for _, form in forms_of(chapter) if form.syntax not in SURROUNDINGS]
    opcodes = [opcode_of(form, text) for form in forms for text in covering(form, strength)]
    return tuple(instruction for opcode in opcodes for instruction in fitting(opcode))


def lines_that(verdict: bool, instructions: Iterable[tuple[Setting, Spelled]]) -> list[str]:
    """The instructions that the assembler takes (or does not) in their settings, one module a setting."""
    groups: dict[Setting, list[Spelled]] = defaultdict(list)
    for setting, instruction in instructions:
        groups[setting].append(instruction)
    found = []
    for (version, name), members in groups.items():
        said = complaints(members, version, name)
        assert verdict or not {place for place in said if place < 0}, said
        found += [
            f"{member} at PTX {version[0]}.{version[1]}, {name}: {said.get(place, 'accepted')}"
            for place, member in enumerate(members)
            if (place not in said) == verdict
        ]
    return found


@pytest.mark.parametrize("chapter", chapters())
def test_every_form_has_operands_that_fit(chapter):
    fitted = {i.opcode.form for i in accepted(chapter)}
    for _, form in forms_of(chapter):
        assert form in fitted or form.syntax in SURROUNDINGS, f"{form.syntax} takes no operands that we can think of"


@pytest.mark.parametrize("chapter", chapters())
def test_every_form_assembles_at_its_least_version_and_target(chapter):
    assert not lines_that(False, ((i.least, i) for i in accepted(chapter)))


@pytest.mark.parametrize("syntax", SURROUNDINGS)
def test_control_flow_assembles_in_its_surroundings(syntax):
    entries = [form for forms in Op.table.values() for _, form in forms if form.syntax == syntax]
    assert len(entries) == 1
    for text in covering(entries[0]):
        assert not errors(CONTROL_MODULE.format(SURROUNDINGS[syntax].format(text)), "sm_50")


def lower_versions(instructions: Iterable[Spelled]) -> Iterator[tuple[Setting, Spelled]]:
    """Each with the version before the least one, where its target is known to that."""
    for i in instructions:
        version, name = i.least
        before = max((v for v in VERSIONS if v < version), default=version)
        if version > i.floor[0] and before >= known_since(name):
            yield (before, name), i


def lower_targets(instructions: Iterable[Spelled]) -> Iterator[tuple[Setting, Spelled]]:
    """Each with the target before the least one."""
    for i in instructions:
        version, name = i.least
        older = [n for n in TARGETS if number(n) < number(name)]
        if name != i.floor[1]:
            before = older[-1] if name in TARGETS else name.rstrip("af")
            yield (max(version, known_since(before)), before), i


@pytest.mark.parametrize("lower", [lower_versions, lower_targets])
@pytest.mark.parametrize("chapter", chapters())
def test_no_form_claims_to_need_more_than_it_does(chapter, lower):
    assert not lines_that(True, lower(accepted(chapter)))


@pytest.mark.parametrize("chapter", chapters())
def test_targets_that_are_too_old_are_refused(chapter):
    for (_, before), i in lower_targets(accepted(chapter, strength=1)):
        assert not i.opcode.supports(before), f"{i} on {before}"
        assert i.opcode.supports(i.least[1]), f"{i} on {i.least[1]}"


def wrong(chapter: str) -> Iterator[tuple[str, Spelled]]:
    """Misuses of each form that are not a right use of another form with the same mnemonic."""
    for right in accepted(chapter, strength=1):
        for kind, instruction in misuses(right):
            others = [o for o in lookup(right.opcode.text) if o is not right.opcode]
            if not any(next(other.problems(instruction.operands), None) is None for other in others):
                yield kind, instruction


@pytest.mark.parametrize("chapter", chapters())
def test_every_misuse_is_refused(chapter):
    passed = [f"{kind}: {i}" for kind, i in wrong(chapter) if next(i.opcode.problems(i.operands), None) is None]
    assert not passed


def newest(i: Spelled) -> Setting:
    """A setting that knows all that a setting knows in which the instruction is right."""
    name = max(i.least[1], "sm_90", key=number)
    return max(VERSIONS[-1], i.least[0]), name


@pytest.mark.parametrize("chapter", chapters())
def test_the_assembler_refuses_the_misuses_too(chapter):
    assert not lines_that(True, ((newest(i), i) for kind, i in wrong(chapter) if not lenient(kind, i)))
