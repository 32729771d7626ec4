"""Instructions that the emulator cannot run: those not in the table, and those that only a GPU runs so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

from .. import ir
from ..errors import EmulationError
from .form import Form
from .opcode import Op, Opcode
from .operand import Operand, OperandList, Problem
from .step import Step
from .target import NOTHING, Requirement


class GpuOnly(Op):
    """Base of instructions that the emulator does not implement yet."""

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> NoReturn:
        raise EmulationError(
            f"`{i.text}` cannot be emulated yet: the table has its forms but no implementation",
            help="run this kernel on a GPU; `ptxdsl dump` prints and assembles it anywhere",
        )


class Unknown(Op):
    """An instruction that is not in the table."""

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> NoReturn:
        raise EmulationError(
            f"`{i.text}` is not in the instruction table, so it cannot be emulated",
            help="run this kernel on a GPU, or add a class for the instruction in ptxdsl/isa",
        )


_UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Opaque:
    """The opcode of an instruction that is not in the table; replaces `opcode.Opcode` and holds only the text."""

    text: str
    op: Op = field(default=_UNKNOWN, repr=False)
    form: Form | None = None
    operands: tuple[Operand, ...] = ()
    requires: Requirement = NOTHING

    def problems(self, operands: OperandList) -> Iterator[Problem]:
        """Report no problems: the rules are unknown."""
        return iter(())

    def bind(self, operands: OperandList) -> list[ir.Operand | None]:
        """Return no operands: their roles are unknown."""
        return []


@lru_cache(maxsize=4096)
def opaque(text: str) -> Opaque:
    """Return the opaque opcode of a mnemonic, one object for each text."""
    return Opaque(text)
