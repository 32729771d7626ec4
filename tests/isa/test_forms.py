"""Every form of the table, held against the assembler: what we accept it assembles, what we refuse it refuses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import pytest

from ptxdsl.assemble import assemblers
from ptxdsl.isa import Op, lookup
from ptxdsl.isa.form import Form

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
MODULE_CHARACTERS = 20000
MISUSED = 12
"""So many spellings of each form are misused in every way."""

pytestmark = pytest.mark.skipif(assembler().why_not() is not None, reason="no assembler: pip install nvidia-nvjitlink")

by_ptxas = pytest.mark.skipif(
    not isinstance(assembler(), assemblers.Ptxas),
    reason="nvJitLink does not hold to old versions as ptxas does: no ptxas",
)

SURROUNDINGS = {
    "bra{.uni} target:label": "{} L; L:",
    "brx.idx{.uni} index:u32, targets:label": "T: .branchtargets L; {} r, T; L:",
    "call{.uni} function:function": "{} plain;",
    "call{.uni} function:function, arguments:arguments": "{} takes, (a);",
    "call{.uni} results:arguments, function:function": "{} (a), makes;",
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
.func (.param .b32 y) makes() {{ ret; }}
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
    "two registers for one": "createpolicy mbarrier st.async wgmma tcgen05 mma",
    "a predicate for a number, in braces": "",
    "an integer for a float, in braces": "",
    "a float for an integer": "fns shfl tcgen05",
    "too narrow": "isspacep st.bulk",
    "a float as address": "fence cp.async.bulk cp.reduce.async.bulk tcgen05",
    "an address without brackets": "cp.async.bulk cp.reduce.async.bulk",
    "an operand is missing": "st.async red.async",
    "an operand too many": "atom vadd vsub vabsdiff vmin vmax vshl vshr vset",
    "a predicate for a number": "movmatrix wgmma tcgen05 mma.sp mma.sp::ordered_metadata mma.sync",
    "a number for a predicate": "tcgen05",
    "an integer for a float": "tcgen05",
}
"""What ptxas lets pass against the manual, in all instructions or only in these; we do not, for no one means that."""

UNCHECKED_TYPES = ("bf16", "tf32", "e4m3", "e5m2")
"""ptxas lets any register stand for these in some instructions."""


def lenient(kind: str, i: Spelled) -> bool:
    """Whether the assembler is known to let a misuse pass."""
    names = LENIENT.get(kind)
    if names is not None and (not names or any(f"{i.opcode.text}.".startswith(f"{n}.") for n in names.split())):
        return True
    return any(type_ in i.opcode.text for type_ in UNCHECKED_TYPES)


@cache
def accepted(chapter: str, strength: int = 2) -> tuple[Spelled, ...]:
    """Instructions that we accept: each form's spellings, with and without optional operands."""
    forms = [form for _, form in forms_of(chapter) if form.syntax not in SURROUNDINGS]
    opcodes = [opcode_of(form, text) for form in forms for text in covering(form, strength)]
    return tuple(instruction for opcode in opcodes for instruction in fitting(opcode))


def parts(instructions: Sequence[Spelled]) -> Iterator[list[Spelled]]:
    """Instructions in modules of moderate length: the assembler's time grows faster than that."""
    part: list[Spelled] = []
    length = 0
    for instruction in sorted(instructions, key=_of_two_blocks):
        if length > MODULE_CHARACTERS or (part and _of_two_blocks(part[0]) != _of_two_blocks(instruction)):
            yield part
            part, length = [], 0
        part.append(instruction)
        length += len(str(instruction))
    yield part


def _of_two_blocks(i: Spelled) -> bool:
    """A function takes instructions of tcgen05 for one block, or for two, and not both."""
    return "cta_group::2" in i.opcode.text.split(".")


def lines_that(verdict: bool, instructions: Iterable[tuple[Setting, Spelled]]) -> list[str]:
    """The instructions that the assembler takes (or does not) in their settings, one module a setting."""
    groups: dict[Setting, list[Spelled]] = defaultdict(list)
    for setting, instruction in instructions:
        groups[setting].append(instruction)
    found = []
    for (version, name), members in ((setting, part) for setting, every in groups.items() for part in parts(every)):
        said = complaints(members, version, name)
        assert verdict or not {place for place in said if place < 0}, said
        found += [
            f"{member} at PTX {version[0]}.{version[1]}, {name}: {said.get(place, 'accepted')}"
            for place, member in enumerate(members)
            if (place not in said) == verdict
        ]
    return found


@pytest.mark.cases(8)
@pytest.mark.parametrize("chapter", chapters())
def test_every_form_has_operands_that_fit(chapter):
    fitted = {i.opcode.form for i in accepted(chapter)}
    for _, form in forms_of(chapter):
        assert form in fitted or form.syntax in SURROUNDINGS, f"{form.syntax} takes no operands that we can think of"


@pytest.mark.cases(3)
@by_ptxas
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


@pytest.mark.exhaustive
@by_ptxas
@pytest.mark.parametrize("lower", [lower_versions, lower_targets])
@pytest.mark.parametrize("chapter", chapters())
def test_no_form_claims_to_need_more_than_it_does(chapter, lower):
    assert not lines_that(True, lower(accepted(chapter)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("chapter", chapters())
def test_targets_that_are_too_old_are_refused(chapter):
    for (_, before), i in lower_targets(accepted(chapter, strength=1)):
        assert not i.opcode.supports(before), f"{i} on {before}"
        assert i.opcode.supports(i.least[1]), f"{i} on {i.least[1]}"


PARTICULAR = [f"sm_{n}" for n in ("100", "100a", "100f", "103a", "103f", "110a", "110f", "120a", "120f", "121a")]
"""Targets of one architecture or family beside the least ones, and a plain one."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PARTICULAR)
def test_forms_of_some_architectures_exist_where_the_assembler_has_them(name):
    particular = [i for chapter in chapters() for i in accepted(chapter, 1) if i.opcode.requires.only]
    few = particular[::5]
    assert not lines_that(False, ((((9, 0), name), i) for i in few if i.opcode.supports(name)))
    assert not lines_that(True, ((((9, 0), name), i) for i in few if not i.opcode.supports(name)))


def wrong(chapter: str) -> Iterator[tuple[str, Spelled]]:
    """Misuses of each form that are not a right use of another form with the same mnemonic."""
    seen: Counter[Form] = Counter()
    for right in accepted(chapter, strength=1):
        seen[right.opcode.form] += 1
        if seen[right.opcode.form] > MISUSED:
            continue
        for kind, instruction in misuses(right):
            others = [o for o in lookup(right.opcode.text) if o is not right.opcode]
            if not any(next(other.problems(instruction.operands), None) is None for other in others):
                yield kind, instruction


@pytest.mark.cases(8)
@pytest.mark.parametrize("chapter", chapters())
def test_every_misuse_is_refused(chapter):
    passed = [f"{kind}: {i}" for kind, i in wrong(chapter) if next(i.opcode.problems(i.operands), None) is None]
    assert not passed


def newest(i: Spelled) -> Setting:
    """A setting that knows all that a setting knows in which the instruction is right."""
    name = max(i.least[1], "sm_90", key=number)
    return max(VERSIONS[-1], i.least[0]), name


@pytest.mark.exhaustive
@pytest.mark.parametrize("chapter", chapters())
def test_the_assembler_refuses_the_misuses_too(chapter):
    assert not lines_that(True, ((newest(i), i) for kind, i in wrong(chapter) if not lenient(kind, i)))
