"""The requirements of a module on version and target, and all violations of the PTX ISA in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ptxdsl.errors import Location, VerifyError
from ptxdsl.ir import (
    Address,
    Arguments,
    Directive,
    Function,
    Immediate,
    Instruction,
    Label,
    Lane,
    Negative,
    Not,
    Pair,
    PtxModule,
    Register,
    SpecialRegister,
    Variable,
    Vector,
    items,
)
from ptxdsl.isa import target
from ptxdsl.isa.opaque import Opaque
from ptxdsl.isa.operand import Problem
from ptxdsl.isa.special import REQUIREMENTS
from ptxdsl.isa.target import Requirement

SHOWN = 20
"""Number of problems shown in full in one error; the others are counted."""
UNSIZED = "the assembler ignores it in a kernel that does not declare its block size"
UNCOUNTED = "the assembler ignores it in a kernel that does not declare the minimum blocks per multiprocessor"


@dataclass(frozen=True, slots=True)
class Need:
    """A part of a module with its required version and target, and its location."""

    subject: str
    requires: Requirement
    at: Location | None = None

    def missing(self, arch: str, version: tuple[int, int] | None) -> VerifyError | None:
        """Return the error if a target such as sm_80, or the `.version` of a module, does not support it."""
        if not self.requires.supports(arch):
            help = f'compile the kernel for {self.requires}: arch="{self.requires.least}"'
            return VerifyError(f"{self.subject} needs {self.requires}; the target is {arch}", at=self.at, help=help)
        if version is None or version >= self.requires.version:
            return None
        least, have = (".".join(map(str, v)) for v in (self.requires.version, version))
        message = f"{self.subject} needs PTX {least}; the module has .version {have}"
        return VerifyError(message, at=self.at, help=f"write .version {least}")


def least_version(module: PtxModule, inlined: bool = False) -> tuple[int, int]:
    """Return the minimum `.version` for target, directives and instructions; `inlined` if `.loc` has inlined_at."""
    arch = module.target[0]
    needed = [
        target.OLDEST,
        (target.TARGETS | target.EARLIER).get(arch, target.OLDEST),
        *(need.requires.version for need in _needs(module)),
    ]
    return max(needed + [target.INLINED_AT] * inlined)


def check_targets(module: PtxModule) -> None:
    """Raise VerifyError for the first requirement that target and version do not meet, or for an unknown target."""
    arch = module.target[0]
    if arch not in target.TARGETS | target.EARLIER:
        raise VerifyError(f"`{arch}` is not a supported target", help=f"use one of {', '.join(target.TARGETS)}")
    for error in _unsupported(module):
        raise error


def _unsupported(module: PtxModule) -> Iterator[VerifyError]:
    """Yield an error for each requirement that the module's target or `.version` does not meet."""
    arch, version = module.target[0], module.version
    least = target.TARGETS.get(arch, target.OLDEST)
    if version is not None and version < least:
        needed, have = (".".join(map(str, v)) for v in (least, version))
        yield VerifyError(f"{arch} needs PTX {needed}; the module has .version {have}", help=f"write .version {needed}")
    for need in _needs(module):
        if error := need.missing(arch, version):
            yield error


def check_blocks(module: PtxModule) -> None:
    """Raise VerifyError if instructions require more of a block or cluster than the kernel declares."""
    for function in module.functions:
        for error in _block_problems(function):
            raise error


def _block_problems(function: Function) -> Iterator[VerifyError]:
    promised = {d.name: d.arguments for d in function.directives}
    extents = [n for n in promised.get("reqnctapercluster", ()) if isinstance(n, int)]
    if prod(extents) > target.CLUSTER_BLOCKS:
        yield VerifyError(
            f"`{function}` asks for clusters of {' x '.join(map(str, extents))} blocks; the maximum is "
            f"{target.CLUSTER_BLOCKS}",
            help="8 blocks run on every GPU that has clusters",
        )
    elif extents:
        yield from _mask_problems(function, prod(extents))
    if function.kind == "entry":
        resized = (i for i in function.walk() if i.opcode.text.startswith("setmaxnreg."))
        if not promised.keys() & {"reqntid", "maxntid"}:
            help = "declare it: `@pd.kernel(reqntid=384)`, or .reqntid in PTX"
            yield from (_error(i, Problem("", UNSIZED, help)) for i in resized)
        elif not promised.keys() & {"minnctapersm", "maxnreg"}:
            help = "declare it: `@pd.kernel(reqntid=384, min_blocks=1)`, or .minnctapersm in PTX"
            yield from (_error(i, Problem("", UNCOUNTED, help)) for i in resized)
        else:
            numbers = {name: [n for n in values if isinstance(n, int)] for name, values in promised.items()}
            yield from (_error(i, problem) for i in resized for problem in _register_problems(i, numbers))


def _register_problems(instruction: Instruction, promised: Mapping[str, Sequence[int]]) -> Iterator[Problem]:
    """Report register counts that a block can never get, even if its other threads keep the minimum."""
    threads, first = prod(promised.get("reqntid") or promised["maxntid"]), target.registers_at_launch(promised)
    if threads % target.WARPGROUP:
        message = f"register counts change per warpgroup of {target.WARPGROUP} threads, but the block has {threads}"
        yield Problem("", message, f"take a multiple of {target.WARPGROUP} threads")
        return
    count, others = getattr(instruction.operands[0], "value", 0), threads - target.WARPGROUP
    total = count * target.WARPGROUP + others * target.LEAST_REGISTERS
    if total > threads * first:
        most = (threads * first - others * target.LEAST_REGISTERS) // target.WARPGROUP // 8 * 8
        message = (
            f"{count} registers for a thread of a warpgroup and {target.LEAST_REGISTERS} for the others are {total}; "
            f"the block is launched with {threads * first}"
        )
        yield Problem("", message, f"ask for {most} at most")


def _mask_problems(function: Function, blocks: int) -> Iterator[VerifyError]:
    """Report constant block masks and ranks outside the clusters of a kernel."""
    for instruction in function.walk():
        names = [(operand.name, n) for n, operand in enumerate(instruction.opcode.operands)]  # type: ignore[attr-defined]
        bound = instruction.opcode.bind(instruction.operands)  # type: ignore[attr-defined]
        if isinstance(bound, Problem):
            continue
        for name, n in names:
            value = bound[n].value if n < len(bound) and isinstance(bound[n], Immediate) else 0
            if name == "cta_mask" and value >> blocks:
                message = f"`cta_mask` is {value:#x}; the clusters of the kernel have {blocks} blocks"
                yield _error(instruction, Problem(name, message, f"use ranks 0 to {blocks - 1}"))
            if name == "rank" and instruction.opcode.text.startswith("mapa") and value >= blocks:
                message = f"`rank` is {value}; the clusters of the kernel have ranks 0 to {blocks - 1}"
                yield _error(instruction, Problem(name, message))


def verify(module: PtxModule) -> None:
    """Raise one VerifyError that lists every violation of the PTX ISA in the module, each with its location."""
    functions = (e for f in module.functions for e in (*_operand_problems(f), *_unwritten(f), *_block_problems(f)))
    is_known = module.target[0] in target.TARGETS | target.EARLIER
    _raise([*(_unsupported(module) if is_known else ()), *functions])


def check_operands(functions: Iterable[Function]) -> None:
    """Raise one VerifyError that lists every instruction whose operands are invalid."""
    _raise([error for function in functions for error in _operand_problems(function)])


def _raise(errors: list[VerifyError]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        shown = [str(error) for error in errors[:SHOWN]]
        more = [f"… and {len(errors) - SHOWN} more"] if len(errors) > SHOWN else []
        raise VerifyError("\n\n".join([f"{len(errors)} problems", *shown, *more]))


def _needs(module: PtxModule) -> Iterator[Need]:
    """Yield every distinct part that may require more than the oldest version and target."""
    seen: set[object] = set()
    for item in module.items:
        if isinstance(item, Variable):
            yield from _variable_needs(item)
        elif isinstance(item, Directive):
            yield from _directive_need(item)
        elif isinstance(item, Function):
            yield from _signature_needs(item)
            yield from (need for inner in items(item.body or []) for need in _item_needs(inner, seen))


def _item_needs(item: Any, seen: set[object]) -> Iterator[Need]:
    if isinstance(item, Instruction):
        opcode = item.opcode
        if opcode not in seen:
            seen.add(opcode)
            yield Need(f"`{opcode.text}`", opcode.requires, item.location)  # type: ignore[attr-defined]
        for operand in item.operands:
            if type(operand) is SpecialRegister and operand not in seen:
                seen.add(operand)
                yield Need(f"`{operand}`", REQUIREMENTS[operand.name], item.location)
    elif isinstance(item, Directive):
        yield from _directive_need(item)


def _directive_need(directive: Directive) -> Iterator[Need]:
    if directive.name in target.DIRECTIVES:
        version, sm = target.DIRECTIVES[directive.name]
        yield Need(f"`.{directive.name}`", Requirement(version, sm))


def _variable_needs(variable: Variable) -> Iterator[Need]:
    if variable.linkage == "common":
        yield Need("`.common`", Requirement(target.COMMON))
    for word, (version, sm) in target.ATTRIBUTES.items():
        if any(word in attribute for attribute in variable.attributes):
            yield Need(f"`.{word}`", Requirement(version, sm))


def _signature_needs(function: Function) -> Iterator[Need]:
    yield from (need for directive in function.directives for need in _directive_need(directive))
    if any(register.type.bits == 128 for register in function.registers):
        yield Need("a .b128 register", Requirement(*target.WIDE_REGISTERS))
    if sum(p.bytes for p in function.parameters if isinstance(p, Variable)) > target.LARGE_PARAMETER_BYTES:
        yield Need(
            f"more than {target.LARGE_PARAMETER_BYTES} bytes of parameters", Requirement(*target.LARGE_PARAMETERS)
        )


def _operand_problems(function: Function) -> Iterator[VerifyError]:
    body = list(items(function.body or []))
    labels = {item for item in body if isinstance(item, Label)}
    labels |= {item.label for item in body if isinstance(item, Directive) and item.label}
    for item in body:
        if isinstance(item, Instruction):
            yield from (_error(item, problem) for problem in _instruction_problems(item, labels))


def _unwritten(function: Function) -> Iterator[VerifyError]:
    """Report registers that are read but never written in the function, at their first read."""
    written: set[Register] = {p for p in function.parameters if isinstance(p, Register)}
    reads: list[tuple[Register, Instruction]] = []
    for instruction in function.walk():
        _collect(instruction, written, reads)
    for register, instruction in reads:
        if register not in written:
            written.add(register)
            message = f"`{register}` is read but never written"
            yield _error(instruction, Problem("", message, "write it on every path before this line"))


def _error(instruction: Instruction, problem: Problem) -> VerifyError:
    return VerifyError(f"{instruction.opcode.text}: {problem.message}", at=instruction.location, help=problem.help)


def _instruction_problems(instruction: Instruction, labels: set[Label]) -> Iterator[Problem]:
    yield from instruction.opcode.problems(instruction.operands)  # type: ignore[attr-defined]
    for operand in instruction.operands:
        if isinstance(operand, Label) and operand not in labels:
            yield Problem("", f"this function has no label `{operand}`", "define the label in the body")


def _collect(instruction: Instruction, written: set[Register], reads: list[tuple[Register, Instruction]]) -> None:
    """Collect the registers that an instruction writes, and those that it reads."""
    opcode: Any = instruction.opcode
    bound = opcode.bind(instruction.operands)
    if isinstance(opcode, Opaque) or isinstance(bound, Problem):
        written.update(_registers(instruction.operands))
        return
    for operand, value in zip(opcode.operands, bound, strict=True):
        if operand.written or isinstance(value, Arguments):  # a call's results are a list like its arguments
            written.update(_registers((value,)))
        if operand.read:
            reads += ((register, instruction) for register in _registers((value,)))
    if instruction.guard is not None:
        reads += ((register, instruction) for register in _registers((instruction.guard,)))


def _registers(operands: Iterable[Any]) -> Iterator[Register]:
    """Yield every register in operands, including those in addresses and vectors."""
    for operand in operands:
        if isinstance(operand, Register):
            yield operand
        elif isinstance(operand, Address):
            yield from _registers((operand.base, operand.coordinates))
        elif isinstance(operand, (Vector, Arguments)):
            yield from _registers(operand.elements)
        elif isinstance(operand, (Not, Lane)):
            yield operand.register
        elif isinstance(operand, Negative):
            yield from _registers((operand.operand,))
        elif isinstance(operand, Pair):
            yield from _registers((operand.first, operand.second))
