"""Control flow (PTX ISA, "Control Flow Instructions" and "Miscellaneous Instructions")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import ir
from .form import Form
from .opcode import Op, Opcode
from .operand import OperandList, Problem
from .step import Step


class Bra(Op):
    """Goes on at a label."""

    forms = (Form("bra{.uni} target:label"),)

    def execute(self, i: Opcode, m: Step, target: ir.Label) -> None:
        m.jump(target)


class BrxIdx(Op):
    """Goes on at the label with number `index` in a list declared by .branchtargets."""

    forms = (Form("brx.idx{.uni} index:u32, targets:label", ptx="6.0", sm=30),)

    def execute(self, i: Opcode, m: Step, index: np.ndarray, targets: ir.Label) -> None:
        m.jump_each(index, targets)


class Call(Op):
    """Calls a function, by name or through a pointer with a prototype or list of targets."""

    forms = (
        Form("call{.uni} function:function"),
        Form("call{.uni} function:function, arguments:arguments"),
        Form("call{.uni} results:arguments, function:function"),
        Form("call{.uni} results:arguments, function:function, arguments:arguments"),
        Form("call{.uni} pointer:u64, targets:label", ptx="2.1", sm=20),
        Form("call{.uni} pointer:u64, arguments:arguments, targets:label", ptx="2.1", sm=20),
        Form("call{.uni} results:arguments, pointer:u64, arguments:arguments, targets:label", ptx="2.1", sm=20),
    )

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> None:
        named = dict(zip((o.name for o in i.operands), inputs, strict=True))
        nothing = ir.Arguments(())
        m.call(
            named["pointer"] if "pointer" in named else named["function"],
            named.get("arguments", nothing).elements,
            named.get("results", nothing).elements,
        )


class Ret(Op):
    """Returns from a function; ends the threads of a kernel."""

    forms = (Form("ret{.uni}"),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.leave()


class Exit(Op):
    """Ends the threads."""

    forms = (Form("exit"),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.exit()


class Trap(Op):
    """Aborts the kernel with an error."""

    forms = (Form("trap"),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.fail("trap", "the kernel reached a trap")
        m.abort()


class Brkpt(Op):
    """Stops in a debugger; without one, has no effect."""

    forms = (Form("brkpt", sm=11),)

    def execute(self, i: Opcode, m: Step) -> None:
        """No debugger is attached."""


class Nanosleep(Op):
    """Suspends the threads for about `t` nanoseconds."""

    forms = (Form("nanosleep.u32 t:u32", ptx="6.2", sm=70),)

    def execute(self, i: Opcode, m: Step, t: np.ndarray) -> None:
        m.sleep(t)


class Pmevent(Op):
    """Triggers performance monitor events; has no effect on the program."""

    forms = (Form("pmevent events:imm", ptx="1.4"), Form("pmevent.mask events:imm", ptx="3.0", sm=20))

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        limit = 0xFFFF if i.mask else 15
        if isinstance(operands[0], ir.Immediate) and not 0 <= operands[0].value <= limit:
            yield Problem("events", f"`events` is {operands[0].value}; it must be 0 to {limit}")

    def execute(self, i: Opcode, m: Step, events: int) -> None:
        """No monitor is attached."""
