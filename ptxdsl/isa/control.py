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
    """Branch to a label."""

    forms = (Form("bra{.uni} target:label"),)

    def execute(self, i: Opcode, m: Step, target: ir.Label) -> None:
        m.jump(target)


class BrxIdx(Op):
    """Branch to the label at position `index` of a .branchtargets list."""

    forms = (Form("brx.idx{.uni} index:u32, targets:label", ptx="6.0", sm=30),)

    def execute(self, i: Opcode, m: Step, index: np.ndarray, targets: ir.Label) -> None:
        m.jump_each(index, targets)


class Call(Op):
    """Call a function directly by name, or indirectly through a pointer with a prototype or list of targets."""

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
            named.get("arguments", nothing).flat,
            named.get("results", nothing).flat,
        )


class Ret(Op):
    """Return from a function; in a kernel, terminate the thread."""

    forms = (Form("ret{.uni}"),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.leave()


class Exit(Op):
    """Terminate the thread."""

    forms = (Form("exit"),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.exit()


class Trap(Op):
    """Abort the kernel with an error."""

    forms = (Form("trap"),)

    def execute(self, i: Opcode, m: Step) -> None:
        m.fail("trap", "the kernel executed a trap")
        m.abort()


class Brkpt(Op):
    """Suspend execution in a debugger; no effect otherwise."""

    forms = (Form("brkpt", sm=11),)

    def execute(self, i: Opcode, m: Step) -> None:
        """Do nothing: no debugger is attached."""


class Nanosleep(Op):
    """Suspend the thread for about `t` nanoseconds."""

    forms = (Form("nanosleep.u32 t:u32", ptx="6.2", sm=70),)

    def execute(self, i: Opcode, m: Step, t: np.ndarray) -> None:
        m.sleep(t)


class Pmevent(Op):
    """Trigger performance monitor events."""

    forms = (Form("pmevent events:imm", ptx="1.4"), Form("pmevent.mask events:imm", ptx="3.0", sm=20))

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        limit = 0xFFFF if i.mask else 15
        if isinstance(operands[0], ir.Immediate) and not 0 <= operands[0].value <= limit:
            yield Problem("events", f"`events` is {operands[0].value}; it must be 0 to {limit}")

    def execute(self, i: Opcode, m: Step, events: int) -> None:
        """Do nothing: no performance monitor is attached."""
