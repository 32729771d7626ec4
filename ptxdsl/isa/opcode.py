"""An instruction and its spellings: the class that a chapter derives from, and a mnemonic with its choices made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .. import ir
from .form import Form
from .operand import Operand, OperandCheck, OperandList, Problem
from .step import Awaited, Step
from .target import Requirement, has

Results: TypeAlias = "np.ndarray | tuple[np.ndarray, ...]"
"""What an instruction computes: an array over the active lanes for each destination."""


class Op:
    """An instruction. Subclasses give `forms` and a meaning, and their docstring's first line says what it does.

    `run(i, *inputs)` is the meaning of an instruction that only computes: `i` is the `Opcode` (`i.type`, `i.rnd`, …);
    each input is a numpy array over the active lanes with the dtype of its operand's type (`*n` operands have shape
    (n, lanes); an operand left out is None); it returns the outputs in order, one array or a tuple of them.
    `execute(i, m, *inputs)` replaces it where the machine is touched (memory, control, barriers): `m` is a `step.Step`.
    With `collective`, lanes come as whole warps: arrays of shape (…, warps, 32), `m.active` says which take part.
    `whole_warp` False: lanes that have ended are not waited for (a `membermask` operand says the same of the others).
    `relaxed` lets a register be wider than its operand's type, as ld, st and cvt do.
    `stores` names the address operand through which it writes memory.
    `reads` names the kinds of operands (special registers, variables, …) that it reads beside registers and constants.
    `computes` says that nothing happens but its results; that is so of those that have only a `run`.
    `carries` names the operands whose values decide nothing: they are stored, exchanged or summed as they are.
    With `exchanges` the first of them goes from lane to lane unchanged; with `selects` the third decides between two.
    `gives` says more of a destination than `.b32` does, for kernels in Python: an operand whose type it has, or a type.
    `warps` is how many warps of a warpgroup, from a multiple of it on, a collective needs together.
    With `late`, registers are read and written behind the instruction, up to a wait: see `Step.multiply_late`.
    `awaits` says what lanes wait for at it. With `async_proxy` it uses that proxy, or what the proxy signals or reads.
    With `lets_grids_begin`, grids that are launched as dependents may begin behind it.
    `batchable` lets the machine run k consecutive independent instructions of one opcode at once, by `execute_batch`.
    """

    forms: ClassVar[tuple[Form, ...]] = ()
    collective: ClassVar[bool] = False
    whole_warp: ClassVar[bool] = True
    batchable: ClassVar[bool] = False
    warps: ClassVar[int] = 1
    late: ClassVar[bool] = False
    awaits: ClassVar[Awaited] = Awaited.NOTHING
    async_proxy: ClassVar[bool] = False
    lets_grids_begin: ClassVar[bool] = False
    computes: ClassVar[bool] = True
    relaxed: ClassVar[bool] = False
    stores: ClassVar[str] = ""
    reads: ClassVar[tuple[type, ...]] = ()
    carries: ClassVar[tuple[str, ...]] = ()
    exchanges: ClassVar[bool] = False
    gives: ClassVar[Mapping[str, str]] = {}
    selects: ClassVar[bool] = False
    table: ClassVar[dict[str, list[tuple[Op, Form]]]] = {}
    check: ClassVar[OperandCheck] = OperandCheck()

    def __init_subclass__(cls) -> None:
        cls.check = OperandCheck(cls.reads, cls.relaxed)
        cls.computes = cls.__dict__.get("computes", cls.execute is Op.execute)
        op = cls()
        for form in cls.__dict__.get("forms", ()):
            Op.table.setdefault(form.name, []).append((op, form))

    @cached_property
    def modifiers(self) -> frozenset[str]:
        """The names that modifiers have in any form of this instruction, or of those that it derives from."""
        names = (form.names for base in type(self).__mro__ for form in base.__dict__.get("forms", ()))
        return frozenset[str]().union(*names)

    @property
    def meaning(self) -> str:
        """One line of meaning."""
        return (self.__doc__ or "").strip().partition("\n")[0]

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        """Rules beyond types and counts: ranges of constants, alignment, forbidden combinations."""
        return iter(())

    def run(self, i: Opcode, *inputs: Any) -> Results:
        raise NotImplementedError(f"{i.text} has no meaning of its own")

    def run_h200(self, i: Opcode, *inputs: Any) -> Results:
        """`run`, as an H200 computes it: another function where the manual leaves bits open."""
        return self.run(i, *inputs)

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> Results | None:
        return self.run(i, *inputs)

    def reads_without_coherence(self, i: Opcode) -> bool:
        """Whether it reads global memory that nothing may write while the kernel runs."""
        return False

    def uses_async_proxy(self, i: Opcode) -> bool:
        """Whether this spelling of it does what `async_proxy` says."""
        return self.async_proxy

    def aligned(self, i: Opcode) -> bool:
        """Of a collective: whether the lanes of a warp must all come to it, and in one place of the program."""
        return all(operand.name != "membermask" for operand in i.operands)

    def execute_batch(
        self, i: Opcode, m: Step, values: Sequence[np.ndarray], index: Sequence[np.ndarray | None]
    ) -> Results | None:
        """k instructions at once: `execute` with `m.shape` one axis longer, (k, …), in inputs and outputs alike.

        Operands that repeat are handed over once: `values[j]` holds the distinct ones of input j, (d, …) or (n, d, …)
        for a `*n` operand, and `index[j]`, k integers, says which of them each instruction takes; None: it is left out.
        """
        inputs = [v if x is None else np.take(v, x, -len(m.shape)) for v, x in zip(values, index, strict=True)]
        return self.execute(i, m, *inputs)


@dataclass(slots=True, eq=False)
class Opcode:
    """A mnemonic with all choices made: `add.rn.f32`. Slot values are attributes: `i.rnd`, `i.type`, `i.ftz`."""

    text: str
    op: Op
    form: Form
    values: dict[str, Any]
    operands: tuple[Operand, ...]
    requires: Requirement = field(init=False)
    grouped: bool = field(init=False)  # whether operands stand behind a bar, or as coordinates in brackets

    def __post_init__(self) -> None:
        self.requires = self.form.requires_of(self.text.split("."))
        self.grouped = any(operand.paired or operand.joined for operand in self.operands)

    def __getattr__(self, name: str) -> Any:
        """A modifier's choice; None where this form has no such modifier but another form of the instruction has."""
        if name not in self.op.modifiers:
            raise AttributeError(f"{self.text} has no modifier {name!r}")
        return self.values.get(name)

    def problems(self, operands: OperandList) -> Iterator[Problem]:
        """Every rule that these operands (in PTX order, destinations first) break."""
        bound = self.bind(operands)
        if isinstance(bound, Problem):
            yield bound
            return
        check = self.op.check
        for operand, value in zip(self.operands, bound, strict=True):
            if value is not None:
                yield from check.problems(operand, value)
        yield from self.op.problems(self, bound)

    def bind(self, operands: OperandList) -> list[ir.Operand | None] | Problem:
        """Operands by their place in `self.operands`, None for those left out; a Problem if their number is wrong."""
        flat = list(_apart(self.operands, operands)) if self.grouped else list(operands)
        flat += [None] * (len(self.operands) - len(flat))
        lacking = (v is None and not o.optional for o, v in zip(self.operands, flat, strict=False))
        if len(flat) > len(self.operands) or any(lacking):
            return Problem("", f"takes {names_of(self.operands)}; {len(operands)} given")
        return flat

    def group(self, values: OperandList) -> tuple[ir.Operand, ...]:
        """Operands by their place as they are printed: `d|p` and `[map, {x, y}]` as one, none for those left out."""
        return tuple(_together(self.operands, values)) if self.grouped else tuple(v for v in values if v is not None)

    def supports(self, arch: str) -> bool:
        """Whether this form exists on a target such as sm_90a."""
        lost = self.form.until and has(arch, self.form.until, "")
        return self.requires.supports(arch) and not lost


def names_of(operands: Sequence[Operand]) -> str:
    """The names of operands as a message lists them, those that may be left out in brackets."""
    return ", ".join(f"[{o.name}]" if o.optional else o.name for o in operands) or "no operands"


def _apart(declared: Sequence[Operand], operands: OperandList) -> Iterator[ir.Operand | None]:
    """Operands with `d|p` and `[map, {x, y}]` taken apart; None where the second of the two is missing."""
    index = 0
    for value in operands:
        second = declared[index + 1] if index + 1 < len(declared) else None
        if second is not None and second.paired:
            yield from (value.first, value.second) if isinstance(value, ir.Pair) else (value, None)
            index += 2
        elif second is not None and second.joined:
            if isinstance(value, ir.Address) and value.sampler is None:
                yield from (ir.Address(value.base, value.offset), value.coordinates)
            else:
                yield from (value, None)
            index += 2
        else:
            yield value
            index += 1


def _together(declared: Sequence[Operand], values: OperandList) -> Iterator[ir.Operand]:
    """The reverse of `_apart`, without the operands that are left out."""
    values = [*values, *[None] * (len(declared) - len(values))]
    for index, value in enumerate(values):
        follows = declared[index + 1] if index + 1 < len(declared) else None
        second = values[index + 1] if follows is not None and (follows.paired or follows.joined) else None
        if value is None or declared[index].paired or declared[index].joined:
            continue
        if second is None:
            yield value
        elif isinstance(value, ir.Address):
            coordinates = second if isinstance(second, ir.Vector) else ir.Vector((second,))
            yield ir.Address(value.base, value.offset, coordinates)
        else:
            yield ir.Pair(value, second)
