"""Instructions that the table does not know: they parse and print, but have no meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..errors import EmulationError
from .spec import Form, Op, Operand, Problem


class Unknown(Op):
    """An instruction that is not in the table."""

    def execute(self, i: Any, m: Any, *inputs: Any) -> Any:
        raise EmulationError(
            f"`{i.text}` is not in the instruction table, so it cannot be emulated",
            help="run this kernel on a GPU, or add a class for the instruction in ptxdsl/isa",
        )


_UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Opaque:
    """The opcode of such an instruction; it stands where `spec.Opcode` does and knows no more than its text."""

    text: str
    op: Op = field(default=_UNKNOWN, repr=False)
    form: Form | None = None
    operands: tuple[Operand, ...] = ()
    requires: tuple[tuple[int, int], int, str] = ((1, 0), 0, "")

    def problems(self, operands: Sequence[Any]) -> Iterator[Problem]:
        """None: nothing is known about its rules."""
        return iter(())

    def bind(self, operands: Sequence[Any]) -> list[Any]:
        """No operand has a role that we know."""
        return []


@lru_cache(maxsize=4096)
def opaque(text: str) -> Opaque:
    """The opaque opcode of a mnemonic, one object for each text."""
    return Opaque(text)
