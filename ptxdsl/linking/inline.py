"""`pd.inline`: PTX as text in a kernel, read by the parser and held against the instruction table like all else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ptxdsl import ir
from ptxdsl.errors import ParseError, Site, TraceError, VerifyError
from ptxdsl.isa import target
from ptxdsl.isa.opaque import Opaque
from ptxdsl.isa.operand import Problem
from ptxdsl.parse import parse
from ptxdsl.trace.builder import Builder, current, is_name, refuse
from ptxdsl.trace.instruction import Scalar, ScalarLike, register_type, shown
from ptxdsl.trace.memory import ArrayView, PointerValue
from ptxdsl.trace.misfits import target_refusal, unknown_instruction
from ptxdsl.trace.operators import copy, operate, steps
from ptxdsl.types import Type, pred

InlineOperand: TypeAlias = "ScalarLike | PointerValue | Type"
_POSITION = re.compile(r"^line \d+, column \d+: ")
_MEND = "write u32 and the like for a result, a value or a variable for what the text reads and writes"


def inline(text: str, **operands: InlineOperand) -> Any:
    """Emits the instructions of a text of PTX, in which the operands stand by their names.

        low, high = pd.inline("mul.lo.u32 low, a, b; mul.hi.u32 high, a, b;", low=u32, high=u32, a=x, b=y)

    An operand that is a type is a result: a new register, which the text has to write; one result comes alone, several
    as a tuple in their order. A value is read, a `pd.var` may be written too, and of a pointer the text gets the
    address. Registers, labels and arrays that the text declares are its own. Raises ParseError and VerifyError at the
    Python line for what is no PTX, is no instruction of the table, or does not fit its operands.
    """
    builder = current("pd.inline")
    if not isinstance(text, str):
        refuse(f"pd.inline takes a text of PTX; found {shown(text)}", 'such as `pd.inline("brkpt;")`')
    with steps():
        prepared = [_prepared(name, value) for name, value in operands.items()]
    body = _InlineText(builder, builder.site(), text, prepared)
    body.emit()
    results = tuple(
        builder.value(operand.register, operand.value) for operand in prepared if isinstance(operand.value, Type)
    )
    return results if len(results) > 1 else results[0] if results else None


@dataclass(eq=False, slots=True)
class NamedOperand:
    """An operand of the text: the register that it gets, and the one that the parser made for its name."""

    name: str
    value: Any
    held: Type
    register: Any = None
    parsed: ir.Register | None = None


def _prepared(name: str, value: object) -> NamedOperand:
    if isinstance(value, Type):
        return NamedOperand(name, value, register_type(value).register)
    if isinstance(value, PointerValue):
        value = value.value
    if not isinstance(value, Scalar):
        array = isinstance(value, ArrayView)
        help = f"pass an address: `{name}={value.name}.address(0)`" if array else _MEND  # type: ignore[attr-defined]
        refuse(f"operand `{name}` of pd.inline is {shown(value)}, which has no type", help)
    if value.writable:
        return NamedOperand(name, value, value.operand.type, value.target())  # type: ignore[union-attr, arg-type, attr-defined]
    if isinstance(value.read(), ir.Not):
        value = operate("not.pred", value, type=pred)
    elif isinstance(value.read(), ir.Immediate):
        value = copy(value)
    register = value.read()
    assert isinstance(register, ir.Register)
    return NamedOperand(name, value, register.type, register)


@dataclass(slots=True)
class _InlineText:
    """A text that becomes a part of a function."""

    builder: Builder
    site: Site
    text: str
    operands: list[NamedOperand]
    renamed: dict[Any, Any] = field(default_factory=dict)

    def emit(self) -> None:
        """Appends its instructions, once nothing is wrong with any of them."""
        function = self._parsed()
        instructions = list(function.walk())
        for instruction in instructions:
            self._check(instruction)
        self._check_uses(instructions)
        self._rename(function)
        for item in self._items(function.body or []):
            self.builder.append(item)

    def _parsed(self) -> ir.Function:
        declared = ", ".join(f".reg .{operand.held} {operand.name}" for operand in self.operands)
        version = ".".join(map(str, max(target.TARGETS.values())))
        head = f".version {version} .target {self.builder.arch} .address_size 64 .func inlined({declared}) {{"
        try:
            module = parse(f"{head}\n{self.text}\n}}", file="<inline>")
        except ParseError as why:
            raise self._error(
                ParseError, _POSITION.sub("", why.message), why.at.source if why.at else "", why.help
            ) from None
        function = module.functions[0]
        if len(module.items) != 1 or function.body is None:
            raise self._error(
                ParseError, "a `}` closes more than the text has opened", "", "write one `}` for each `{`"
            )
        for operand, parameter in zip(self.operands, function.parameters, strict=True):
            assert isinstance(parameter, ir.Register)
            operand.parsed = parameter
        return function

    def _check(self, instruction: ir.Instruction) -> None:
        opcode: Any = instruction.opcode
        if isinstance(opcode, Opaque):
            raise unknown_instruction(opcode.text, self.site)
        problem = next(opcode.problems(instruction.operands), None)
        if problem is not None:
            message = f"{opcode.text}: {problem.message}"
            raise self._error(VerifyError, message, str(instruction), problem.help)
        if not opcode.requires.supports(self.builder.arch):
            raise target_refusal(opcode, self.builder)
        if instruction.guard is not None and opcode.op.ignores_guard(opcode):
            help = "write it to a new register without the guard, and select with selp"
            message = f"{opcode.text}: ptxas 13 ignores the guard of this instruction"
            raise self._error(VerifyError, message, str(instruction), help)

    def _check_uses(self, instructions: list[ir.Instruction]) -> None:
        """Values are not written, results are, and a variable that is read has a value."""
        written, read = set[object](), set[object]()
        for instruction in instructions:
            _collect(instruction, written, read)
        for operand in self.operands:
            if isinstance(operand.value, Type):
                if operand.parsed not in written:
                    refuse(
                        f"the text of pd.inline never writes its result `{operand.name}`", "leave it out, or write it"
                    )
            elif operand.value.writable:
                if operand.parsed in read:
                    operand.value.read()
                operand.value.written |= operand.parsed in written
            elif operand.parsed in written:
                help = "give it a variable, `pd.var`, or a result of its own: its name with a type"
                name = operand.value.name
                refuse(f"the text of pd.inline writes `{operand.name}`, and `{name}` was computed once", help)

    def _rename(self, function: ir.Function) -> None:
        """Gives what the text declares names that nothing else in the function has."""
        names = self.site.names
        results = [operand for operand in self.operands if isinstance(operand.value, Type)]
        for n, operand in enumerate(results):
            called = names[n] if len(names) == len(results) else operand.name
            operand.register = self.builder.register(operand.held, called)
        self.renamed = {operand.parsed: operand.register for operand in self.operands}
        for register in function.registers:
            if register not in self.renamed:
                self.renamed[register] = self.builder.register(
                    register.type, register.name.lstrip("%$").replace(".", "_")
                )
        for item in ir.items(function.body or []):
            if isinstance(item, ir.Label):
                self._label(item)
            elif isinstance(item, ir.Directive) and item.label:
                self._label(item.label)
            elif isinstance(item, ir.Variable):
                item.name = self.builder.unique(item.name if is_name(item.name) else "inlined")

    def _label(self, label: ir.Label) -> None:
        self.renamed[label] = self.builder.function.label(f"${label.name.lstrip('$%')}")
        self.builder.targets.add(self.renamed[label])

    def _items(self, body: Iterable[ir.Item]) -> Iterator[ir.Item]:
        for item in body:
            if isinstance(item, ir.Instruction):
                guard: Any = item.guard and ir.substituted(item.guard, self.renamed)
                operands = tuple(ir.substituted(operand, self.renamed) for operand in item.operands)
                instruction = ir.Instruction(item.opcode, operands, guard, self.site.location)
                for watch in self.builder.watchers:
                    watch(instruction)
                yield instruction
            elif isinstance(item, ir.Scope):
                yield ir.Scope(list(self._items(item.body)))
            elif isinstance(item, ir.Label):
                yield self.renamed[item]
            elif isinstance(item, ir.Directive):
                arguments = tuple(self.renamed.get(each, each) for each in item.arguments)
                yield ir.Directive(item.name, arguments, item.label and self.renamed[item.label])
            elif item.space == "param":
                yield item
            else:
                self.builder.variables.append(item)

    def _error(
        self, kind: type[ParseError | VerifyError | TraceError], message: str, line: str, help: str | None
    ) -> ParseError | VerifyError | TraceError:
        shown_line = f" `{line.strip()}`:" if line.strip() else ""
        return kind(f"in the text of pd.inline,{shown_line} {message}", at=self.site.location, help=help)


def _collect(instruction: ir.Instruction, written: set[object], read: set[object]) -> None:
    """Adds the registers that an instruction writes, and those that it reads."""
    opcode: Any = instruction.opcode
    bound = opcode.bind(instruction.operands)
    assert not isinstance(bound, Problem)
    for operand, value in zip(opcode.operands, bound, strict=True):
        registers = set(ir.registers_of(value))
        if operand.written or isinstance(value, ir.Arguments):
            written |= registers
        if operand.read or isinstance(value, ir.Arguments):
            read |= registers
    read |= set(ir.registers_of(instruction.guard))
