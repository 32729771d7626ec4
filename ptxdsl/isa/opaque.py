"""Instructions without a meaning on the emulator: that the table does not know, or that only a GPU runs yet."""

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
    """Base of instructions that have no meaning on the emulator yet."""

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> NoReturn:
        raise EmulationError(
            f"`{i.text}` cannot be emulated yet: the table has its forms and no meaning for it",
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
    """The opcode of such an instruction; it stands where `opcode.Opcode` does and knows no more than its text."""

    text: str
    op: Op = field(default=_UNKNOWN, repr=False)
    form: Form | None = None
    operands: tuple[Operand, ...] = ()
    requires: Requirement = NOTHING

    def problems(self, operands: OperandList) -> Iterator[Problem]:
        """None: nothing is known about its rules."""
        return iter(())

    def bind(self, operands: OperandList) -> list[ir.Operand | None]:
        """No operand has a role that we know."""
        return []


@lru_cache(maxsize=4096)
def opaque(text: str) -> Opaque:
    """The opaque opcode of a mnemonic, one object for each text."""
    return Opaque(text)
