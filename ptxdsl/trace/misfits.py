"""Errors for instructions that PTX, the target or the table does not have, or that take other operands."""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.errors import Site, VerifyError
from ptxdsl.isa.lookup import nearest
from ptxdsl.isa.opcode import Op, Opcode, names_of
from ptxdsl.isa.operand import Operand, Problem
from ptxdsl.trace.builder import Builder
from ptxdsl.types import SPACES


def wrong_count(opcode: Opcode, takes: list[Operand], sources: Sequence[object]) -> Problem:
    """Return the problem of a wrong number of operands."""
    help = opcode.form.note or f"`ptxdsl isa {title(opcode)}` lists its forms"
    more, variables = len(sources) - len(takes), sources[0] if sources and isinstance(sources[0], list) else sources[:1]
    if 0 < more == sum(o.written for o in opcode.operands) and all(getattr(v, "writable", False) for v in variables):
        help = "destinations are not operands: the call returns them, or writes the variables that `out=` names"
    return Problem("", f"takes {names_of(takes)}; {len(sources)} given", help)


def title(opcode: Opcode) -> str:
    """Return the short name of an instruction: `ldmatrix`, `cp.async`, `mbarrier.try_wait`."""
    words = [opcode.form.name]
    for modifier in opcode.form.modifiers:
        word = str(modifier.choices[0])
        if (
            not modifier.literal
            or modifier.optional
            or word in ("sync", "aligned")
            or word.partition("::")[0] in SPACES
        ):
            break
        words.append(word)
    return ".".join(words)


class TargetRefusal(VerifyError):
    """The kernel's target does not have an instruction; another target may have it."""


def target_refusal(opcode: Opcode, builder: Builder) -> VerifyError:
    """Return the error for an instruction that the kernel's target does not have."""
    least = opcode.requires.least
    if opcode.form is not None and opcode.requires.supports(builder.arch):
        return VerifyError(
            f"{opcode.text} exists on targets before sm_{opcode.form.until}; this kernel is traced for {builder.arch}",
            at=builder.site().location,
            help=opcode.form.note,
        )
    return TargetRefusal(
        f"{opcode.text} needs {opcode.requires.words}; this kernel is traced for {builder.arch}",
        at=builder.site().location,
        help=f'ask for arch="{least}", or use instructions that {builder.arch} has',
    )


def unknown_instruction(text: str, site: Site) -> VerifyError:
    """Return the error for an unknown mnemonic, with similar known ones."""
    name, near = text.partition(".")[0], nearest(text)
    help = "did you mean " + " or ".join(f"`{n}`" for n in near) + "?" if near else None
    if name not in Op.table:
        help = help or "PTX text may have instructions that ptxdsl does not know: `pd.parse(text)[name]` is a kernel"
        return VerifyError(f"ptxdsl does not know the PTX instruction `{name}`", at=site.location, help=help)
    return VerifyError(f"`{name}` has no form `{text}`", at=site.location, help=help)
