"""Instructions and their opcodes: the base class of all instructions, and a mnemonic with every modifier resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .. import ir
from ..cached import cached_property
from .form import Form
from .operand import Operand, OperandCheck, OperandList, Problem
from .step import Awaited, Step
from .target import Requirement, has

Results: TypeAlias = "np.ndarray | tuple[np.ndarray, ...]"
"""The results of an instruction: one array over the active lanes for each destination."""


class Op:
    """Base class of instructions. Subclasses define `forms` and semantics; the docstring's first line is the summary.

    `run(i, *inputs)` implements an instruction that only computes. `i` is the `Opcode` (`i.type`, `i.rnd`, …). Each
    input is a numpy array over the active lanes with the dtype of its operand's type; `*n` operands have shape (n,
    lanes), and an omitted operand is None. It returns the outputs in order: one array, or a tuple of arrays.
    `execute(i, m, *inputs)` replaces it for instructions that access the machine (memory, control flow, barriers); `m`
    is a `step.Step`.

    Class attributes:

    - `collective`: lanes arrive as whole warps, arrays of shape (…, warps, 32); `m.active` marks those that take part.
    - `whole_warp` = False: do not wait for exited lanes (a `membermask` operand does the same for the others).
    - `relaxed`: a register may be wider than its operand's type, as in ld, st and cvt.
    - `stores`: the name of the address operand that the instruction writes memory through.
    - `reads`: the kinds of operands (special registers, variables, …) accepted in addition to registers and constants.
    - `computes`: the instruction has no side effects; implied for instructions that only have `run`.
    - `carries`: operands whose values do not affect control: they are stored, exchanged or accumulated unchanged.
    - `exchanges`: the first of these moves from lane to lane unchanged. `selects`: the third selects between two.
    - `gives`: the type of a destination for kernels in Python where `.b32` is not specific: an operand name, or a type.
    - `orders_lanes`: a collective that orders the memory accesses of the lanes, as `bar.warp.sync` does.
    - `warps`: the number of consecutive warps, aligned to that number, that a collective needs together.
    - `late`: registers are read and written after the instruction, until a wait; see `Step.multiply_late`.
    - `awaits`: the event that lanes wait for. `async_proxy`: uses the async proxy, or an object it signals or reads.
      `cancels_clusters`: cancels the launch of other clusters.
    - `tensor_memory`: uses tensor memory. `arrives_late`: writes its registers late, until a wait or their first use.
    - `lets_grids_begin`: dependent grids may start after this instruction.
    - `batchable`: k consecutive independent instructions of one opcode may run at once, by `execute_batch`.
    """

    forms: ClassVar[tuple[Form, ...]] = ()
    collective: ClassVar[bool] = False
    orders_lanes: ClassVar[bool] = False
    whole_warp: ClassVar[bool] = True
    batchable: ClassVar[bool] = False
    warps: ClassVar[int] = 1
    late: ClassVar[bool] = False
    awaits: ClassVar[Awaited] = Awaited.NOTHING
    async_proxy: ClassVar[bool] = False
    cancels_clusters: ClassVar[bool] = False
    tensor_memory: ClassVar[bool] = False
    arrives_late: ClassVar[bool] = False
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
        """The names of the modifiers in any form of this instruction or its base classes."""
        names = (form.names for base in type(self).__mro__ for form in base.__dict__.get("forms", ()))
        return frozenset[str]().union(*names)

    @property
    def meaning(self) -> str:
        """The one-line summary."""
        return (self.__doc__ or "").strip().partition("\n")[0]

    def problems(self, i: Opcode, operands: OperandList) -> Iterator[Problem]:
        """Report violations beyond types and counts: ranges of constants, alignment, forbidden combinations."""
        return iter(())

    def run(self, i: Opcode, *inputs: Any) -> Results:
        raise NotImplementedError(f"{i.text} has no implementation of its own")

    def run_h200(self, i: Opcode, *inputs: Any) -> Results:
        """Compute the results of an H200, which differ from `run` where the manual leaves bits undefined."""
        return self.run(i, *inputs)

    def execute(self, i: Opcode, m: Step, *inputs: Any) -> Results | None:
        return self.run(i, *inputs)

    def reads_without_coherence(self, i: Opcode) -> bool:
        """True if it reads global memory that must not be written while the kernel runs."""
        return False

    def ignores_guard(self, i: Opcode) -> bool:
        """True if the code that ptxas 13 generates writes the destination where a guard is false, at -O0 and -O3."""
        return False

    def uses_async_proxy(self, i: Opcode) -> bool:
        """True if this spelling uses the async proxy."""
        return self.async_proxy

    def aligned(self, i: Opcode) -> bool:
        """For a collective: true if all lanes of a warp must execute the same instruction in convergence."""
        return all(operand.name != "membermask" for operand in i.operands)

    def execute_batch(
        self, i: Opcode, m: Step, values: Sequence[np.ndarray], index: Sequence[np.ndarray | None]
    ) -> Results | None:
        """Run k instructions at once: like `execute`, with a leading axis k in `m.shape`, inputs and outputs.

        Repeated operands are passed once: `values[j]` holds the distinct values of input j, (d, …) or (n, d, …) for a
        `*n` operand, and `index[j]`, k integers, selects one for each instruction; None for an omitted operand.
        """
        inputs = [v if x is None else np.take(v, x, -len(m.shape)) for v, x in zip(values, index, strict=True)]
        return self.execute(i, m, *inputs)


@dataclass(slots=True, eq=False)
class Opcode:
    """A mnemonic with all modifiers resolved: `add.rn.f32`. Modifiers are attributes: `i.rnd`, `i.type`, `i.ftz`."""

    text: str
    op: Op
    form: Form
    values: dict[str, Any]
    operands: tuple[Operand, ...]
    requires: Requirement = field(init=False)
    grouped: bool = field(init=False)  # true if operands are written after a bar, or as coordinates in brackets

    def __post_init__(self) -> None:
        self.requires = self.form.requires_of(self.text.split("."))
        self.grouped = any(operand.paired or operand.joined for operand in self.operands)

    def __getattr__(self, name: str) -> Any:
        """Return the choice of a modifier; None if only other forms of the instruction have it."""
        if name not in self.op.modifiers:
            raise AttributeError(f"{self.text} has no modifier {name!r}")
        return self.values.get(name)

    def problems(self, operands: OperandList) -> Iterator[Problem]:
        """Report every rule that these operands (in PTX order, destinations first) violate."""
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
        """Return the operands in the order of `self.operands`, None for omitted ones; a Problem if their number is
        wrong.
        """
        flat = list(_apart(self.operands, operands)) if self.grouped else list(operands)
        flat += [None] * (len(self.operands) - len(flat))
        lacking = (v is None and not o.optional for o, v in zip(self.operands, flat, strict=False))
        if len(flat) > len(self.operands) or any(lacking):
            return Problem("", f"takes {names_of(self.operands)}; {len(operands)} given")
        return flat

    def group(self, values: OperandList) -> tuple[ir.Operand, ...]:
        """Return the operands as they are printed: `d|p` and `[map, {x, y}]` as one, omitted ones removed."""
        return tuple(_together(self.operands, values)) if self.grouped else tuple(v for v in values if v is not None)

    def supports(self, arch: str) -> bool:
        """True if this form exists on a target such as sm_90a."""
        lost = self.form.until and has(arch, self.form.until, "")
        return self.requires.supports(arch) and not lost


def names_of(operands: Sequence[Operand]) -> str:
    """List operand names for a message, optional ones in brackets."""
    return ", ".join(f"[{o.name}]" if o.optional else o.name for o in operands) or "no operands"


def _apart(declared: Sequence[Operand], operands: OperandList) -> Iterator[ir.Operand | None]:
    """Split `d|p` and `[map, {x, y}]` into two operands; the second is None if it is missing."""
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
    """Invert `_apart`, without the omitted operands."""
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
