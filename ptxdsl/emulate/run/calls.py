"""Calls of device functions: frames, arguments and results.

A parameter in .param space is copied between the frames of caller and callee, which are in the local memory of each
thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import ir
from ...errors import EmulationError
from ...types import Type
from ..memory.spaces import CODE, FRAME_PARAMETERS
from .core import Core
from .decode import decode
from .executor import Executor
from .frames import Frame
from .library import BUILTINS

CODE_STEP = 16
_DEEPEST = 1024


class Calls:
    """Enters functions and returns from them."""

    def __init__(self, machine: Core, x: Executor) -> None:
        self.machine, self.x = machine, x

    def at_address(self, address: int) -> ir.Function:
        """Return the function at a code address."""
        functions = self.machine.program.functions
        number, extra = divmod(address - CODE, CODE_STEP)
        if extra or not 0 <= number < len(functions):
            raise EmulationError(f"call of address {address:#x}, which is not a function", at=self.x.step.location)
        return functions[number]

    def enter(
        self, function: ir.Function | ir.Symbol, arguments: Sequence[ir.Operand], results: Sequence[ir.Operand]
    ) -> None:
        """Continue the current lanes at the first step of a function."""
        defined = self.machine.program.definition(function)
        if defined is None:
            self._call_builtin(function.name, arguments, results)
            return
        if len(arguments) != len(defined.parameters) or len(results) != len(defined.returns):
            raise EmulationError(
                f"call of {function.name} with {len(arguments)} arguments and {len(results)} results; "
                f"it has {len(defined.parameters)} and {len(defined.returns)}",
                at=self.x.step.location,
            )
        frame = self._frame(defined)
        frame.results = tuple(results)
        for parameter, argument in zip(defined.parameters, arguments, strict=True):
            self._write(frame, parameter, self._read(self.x.frame, argument, parameter))
        self.x.go_to_function(frame)

    def _frame(self, function: ir.Function) -> Frame:
        """Return the frame of a call from here; lanes that arrive later by the same chain of calls share it."""
        caller, site = self.x.frame, self.x.pc - 1
        key = site, function
        if key not in caller.callees:
            if len(caller.path) >= _DEEPEST:
                raise EmulationError(
                    f"{function.name} is nested {_DEEPEST} calls deep, the limit of a thread's stack",
                    at=self.x.step.location,
                    help="look for unbounded recursion",
                )
            caller.callees[key] = self.machine.new_frame(decode(function), caller, site)
        return caller.callees[key]

    def hand_back(self, frame: Frame, caller: Frame) -> None:
        """Copy results from a function's variables or registers to their destinations in the caller."""
        for formal, wanted in zip(frame.code.function.returns, frame.results, strict=True):
            if not isinstance(wanted, ir.Sink):
                self._write(caller, wanted, self._read(frame, formal, wanted))

    def _read(self, frame: Frame, source: ir.Operand, target: ir.Operand) -> np.ndarray:
        """Return the bytes of an argument or result, (lanes, bytes)."""
        if isinstance(source, ir.Variable):
            return self._memory(frame, source)
        type: Type = getattr(target, "type", None) or source.type  # type: ignore[union-attr, assignment]
        reader = frame.code.slots.scalar(type.register, source)
        with self.x.elsewhere(frame, self.x.index):
            values = np.ascontiguousarray(reader.read(self.x))
        return values.reshape(self.x.width, -1).view(np.uint8)

    def _write(self, frame: Frame, target: ir.Operand, content: np.ndarray) -> None:
        if isinstance(target, ir.Variable):
            self._set_memory(frame, target, content)
            return
        assert isinstance(target, ir.Register)
        slot = frame.code.slots.of(target)
        dtype = frame.code.slots.dtypes[slot]
        value = np.ascontiguousarray(content[:, : max(1, target.type.bytes)]).view(dtype)
        lanes = self.x.index
        frame.put(slot, value if target.type.bits > 64 else value[:, 0], lanes, True)

    def _addresses(self, frame: Frame, variable: ir.Variable) -> np.ndarray:
        """Return the offsets of a variable's bytes in the local memory of the current lanes, (lanes, bytes)."""
        local = self.machine.memory.spaces["local"]
        assert local.base is not None
        first = local.base[self.x.lanes_now] + (frame.addresses[variable] - FRAME_PARAMETERS)
        return first[:, np.newaxis] + np.arange(variable.bytes)

    def _memory(self, frame: Frame, variable: ir.Variable) -> np.ndarray:
        return self.machine.memory.spaces["local"].data[self._addresses(frame, variable)]

    def _set_memory(self, frame: Frame, variable: ir.Variable, content: np.ndarray) -> None:
        addresses = self._addresses(frame, variable)[:, : content.shape[1]]
        self.machine.memory.spaces["local"].write(addresses, 1, content[:, : addresses.shape[1]])

    def _call_builtin(self, name: str, arguments: Sequence[ir.Operand], results: Sequence[ir.Operand]) -> None:
        """Call a function that the module only declares."""
        if name not in BUILTINS:
            raise EmulationError(
                f"{name} is declared but not defined, and the emulator has no such function",
                at=self.x.step.location,
                help="link the module that defines it: pd.link(kernel, module)",
            )
        frame = self.x.frame
        values = [_number(self._read(frame, a, a)) for a in arguments]
        outcome = BUILTINS[name](self.machine, self.x, *values)
        for wanted in results:
            width = wanted.type.bytes  # type: ignore[union-attr]
            self._write(frame, wanted, outcome.astype(f"u{width}")[:, np.newaxis].view(np.uint8))


def _number(content: np.ndarray) -> np.ndarray:
    """Return an argument of up to 8 bytes as an integer."""
    padded = np.zeros((len(content), 8), np.uint8)
    padded[:, : content.shape[1]] = content
    return padded.view(np.uint64)[:, 0]
