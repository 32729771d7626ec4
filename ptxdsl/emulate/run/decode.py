"""A function of the IR as a flat list of steps with resolved operands, decoded once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ... import ir
from ...cached import cached_property
from ...errors import EmulationError, Location
from ...isa.lookup import lookup
from ...isa.opcode import Op
from ...isa.operand import Problem
from ...types import pred
from ..memory.access import Origin
from .operands import ReadAsIs, ReadVector, Slots
from .residents import WARP

_LARGEST_BATCH = 128


class Decoded:
    """One instruction with its readers, writers and location.

    `effect` is False if it only computes. `carried` are inputs that it only hands on, `decisive` the others. `members`
    is the index of its operand `membermask`, or None. An `aligned` collective must be executed by all lanes of a warp
    at the same instruction. `touched` are registers of wgmmas or tcgen05.lds in flight that it accesses;
    `fragment` are those of the A operand of a wgmma, and `late` the readers of what it reads only when it completes.
    `batch`, on the first of several similar instructions that may run at once, has all of them.
    """

    __slots__ = (
        "aligned",
        "batch",
        "carried",
        "collective",
        "decisive",
        "effect",
        "fragment",
        "guard",
        "ignores_guard",
        "inputs",
        "instruction",
        "late",
        "location",
        "members",
        "op",
        "opcode",
        "origin",
        "outputs",
        "reads",
        "refusal",
        "touched",
        "writes",
    )

    def __init__(self, instruction: ir.Instruction, slots: Slots) -> None:
        opcode: Any = instruction.opcode
        self.instruction, self.opcode, self.op = instruction, opcode, opcode.op
        self.location: Location | None = instruction.location
        self.origin = Origin(opcode.text, self.location)
        self.effect = type(self.op).execute is not Op.execute
        self.collective = self.op.collective
        self.aligned = self.collective and self.op.aligned(opcode)
        self.guard = slots.register(pred, instruction.guard) if instruction.guard is not None else None
        self.ignores_guard = self.guard is not None and self.op.ignores_guard(opcode)
        self.refusal: EmulationError | None = None
        self.batch: Batch | None = None
        self.reads: tuple[Any, ...] = ()
        self.writes: tuple[Any, ...] = ()
        self.members: int | None = None
        self.carried: tuple[int, ...] = ()
        try:
            self._bind(slots, instruction.operands)
        except EmulationError as refusal:
            self.refusal = EmulationError(refusal.message, at=self.location, help=refusal.help)
        self.inputs = tuple(_slots(self.reads))
        self.decisive = tuple(slot for slot in self.inputs if slot not in self.carried)
        self.outputs = (*_slots(self.writes), *self._results(slots))
        self.touched: tuple[int, ...] = ()
        self.late: tuple[Any, ...] = ()
        self.fragment: tuple[int, ...] = ()
        if self.op.late and self.refusal is None:
            pair: tuple[Any, ...] = self.reads[:2]
            self.late = tuple(reader for reader in pair if isinstance(reader, ReadVector))
            self.fragment = tuple(_slots(self.late[1:]))
            self.reads = (*(ReadAsIs(None) for _ in self.late), *self.reads[len(self.late) :])

    def _results(self, slots: Slots) -> Iterator[int]:
        """Yield the registers in the lists of a call, whether results or arguments."""
        for operand in self.instruction.operands:
            if isinstance(operand, ir.Arguments):
                yield from (slots.of(element) for element in operand.flat if isinstance(element, ir.Register))

    def _bind(self, slots: Slots, operands: Sequence[ir.Operand]) -> None:
        bound = self.opcode.bind(operands)
        if isinstance(bound, Problem):
            raise EmulationError(f"{self.opcode.text} {bound.message}")
        pairs = list(zip(self.opcode.operands, bound, strict=True))
        self.reads = tuple(slots.reader(o, v) for o, v in pairs if o.read or o.role == "both")
        self.writes = tuple(slots.writer(o, v) for o, v in pairs if o.written)
        names = [o.name for o, _ in pairs if o.read or o.role == "both"]
        self.members = names.index("membermask") if "membermask" in names else None
        carried = [reader for name, reader in zip(names, self.reads, strict=True) if name in self.op.carries]
        others = [reader for name, reader in zip(names, self.reads, strict=True) if name not in self.op.carries]
        self.carried = tuple(set(_slots(carried)) - set(_slots(others)))


def _slots(operands: Iterable[Any]) -> Iterable[int]:
    for operand in operands:
        if hasattr(operand, "slot"):
            yield operand.slot
        elif hasattr(operand, "elements"):
            yield from _slots(operand.elements)
        elif hasattr(operand, "base"):
            yield operand.base.slot
        elif hasattr(operand, "whole"):
            yield operand.whole.slot


def _named(operands: Iterable[object]) -> Iterator[ir.Variable]:
    """Yield the variables in operands, however deeply nested."""
    for operand in operands:
        if isinstance(operand, ir.Variable):
            yield operand
        elif isinstance(operand, ir.Address | ir.Offset | ir.Generic):
            yield from _named((operand.base,))
        elif isinstance(operand, ir.Vector | ir.Arguments):
            yield from _named(operand.elements)


class Batch:
    """Consecutive independent instructions of one opcode; repeated operands are read once.

    `reads[j]` are the distinct readers of input j, `index[j]` the reader that each instruction uses.
    """

    def __init__(self, steps: Sequence[Decoded]) -> None:
        self.steps = steps
        self.reads: list[Any] = []
        self.index: list[list[int] | None] = []
        for readers in zip(*(step.reads for step in steps), strict=True):
            if isinstance(readers[0], ReadAsIs):
                self.reads.append(readers[0])
                self.index.append(None)
                continue
            distinct = list(dict.fromkeys(readers))
            number = {reader: n for n, reader in enumerate(distinct)}
            self.reads.append(distinct)
            self.index.append([number[reader] for reader in readers])

    def stack(self, x: Any, number: int, warps: int) -> Any:
        """The distinct values of an input: (d, warps, 32), or (n, d, warps, 32) for an operand of n registers."""
        readers = self.reads[number]
        if self.index[number] is None:
            return readers.value
        shape: tuple[int, ...] = (len(readers), warps, WARP)
        if isinstance(readers[0], ReadVector):
            shape = len(readers[0].elements), *shape
            readers = [reader for rank in zip(*(r.elements for r in readers), strict=True) for reader in rank]
        return np.concatenate([reader.read(x) for reader in readers]).reshape(shape)


class Code:
    """The steps of a function, its labels, and the slots of its registers."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.slots = Slots(function)
        self.steps: list[Decoded] = []
        self.labels: dict[ir.Label, int] = {}
        self.lists: dict[ir.Label, tuple[Any, ...]] = {}
        for item in ir.items(function.body or []):
            self._add(item)
        self._add(ir.Instruction(lookup("ret")[0]))  # the end of the body, where lanes return
        self.variables = [*_variables(function.parameters), *_variables(function.returns), *function.variables()]
        self._find_loops()
        self._find_touched()
        self._find_batches()

    def _add(self, item: ir.Item) -> None:
        if isinstance(item, ir.Instruction):
            self.steps.append(Decoded(item, self.slots))
        elif isinstance(item, ir.Label):
            self.labels[item] = len(self.steps)
        elif isinstance(item, ir.Directive) and item.label is not None:
            self.lists[item.label] = tuple(a for a in item.arguments if isinstance(a, ir.Label | ir.Function))

    @cached_property
    def mentioned(self) -> frozenset[ir.Variable]:
        """Yield every variable that an operand names."""
        named = (variable for step in self.steps for variable in _named(step.instruction.operands))
        return frozenset(named)

    @cached_property
    def special(self) -> frozenset[str]:
        """Yield every special register that an operand names, alone or in a list."""
        operands = (o for step in self.steps for o in step.instruction.operands)
        leaves = (leaf for o in operands for leaf in (o.elements if isinstance(o, ir.Vector) else (o,)))
        return frozenset(leaf.name for leaf in leaves if isinstance(leaf, ir.SpecialRegister))

    @cached_property
    def cancels_clusters(self) -> bool:
        """True if a step cancels the launch of clusters."""
        return any(step.op.cancels_clusters for step in self.steps)

    @cached_property
    def uses_async_proxy(self) -> bool:
        """True if it has mbarriers, bulk copies, wgmma or proxy fences."""
        return any(step.op.uses_async_proxy(step.opcode) for step in self.steps)

    @cached_property
    def uses_tensor_memory(self) -> bool:
        """True if it has tcgen05 instructions."""
        return any(step.op.tensor_memory for step in self.steps)

    @cached_property
    def pairs(self) -> bool:
        """True if it has instructions of CTA pairs."""
        return any(".cta_group::2" in step.opcode.text for step in self.steps)

    @cached_property
    def reads_without_coherence(self) -> bool:
        """True if it reads global memory by instructions that assume that nothing writes it meanwhile."""
        return any(step.op.reads_without_coherence(step.opcode) for step in self.steps)

    @cached_property
    def lets_grids_begin(self) -> bool:
        """True if dependent grids may start before this one has ended."""
        return any(step.op.lets_grids_begin for step in self.steps)

    @cached_property
    def _read(self) -> frozenset[int]:
        """The slots that some step reads."""
        guards = (step.guard.slot for step in self.steps if step.guard is not None)
        return frozenset((*guards, *(slot for step in self.steps for slot in step.inputs)))

    def reads_result(self, step: Decoded) -> bool:
        """True if some step reads what a step writes."""
        return not self._read.isdisjoint(step.outputs)

    @cached_property
    def written_between(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """The slots that the steps from one to another write, filled as loops are executed."""
        return {}

    def written(self, first: int, last: int) -> tuple[int, ...]:
        """Return the slots that the steps first … last write."""
        if (first, last) not in self.written_between:
            slots = (slot for step in self.steps[first : last + 1] for slot in step.outputs)
            self.written_between[first, last] = tuple(dict.fromkeys(slots))
        return self.written_between[first, last]

    def _find_loops(self) -> None:
        """Number the steps, and note where the loops end that start at or before each; a branch back makes a loop."""
        ends: dict[int, int] = {}
        for number, step in enumerate(self.steps):
            for label in step.instruction.operands:
                if isinstance(label, ir.Label) and (start := self.labels.get(label, number + 1)) <= number:
                    ends[start] = number
        loops_to = -1
        for number, step in enumerate(self.steps):
            loops_to = max(loops_to, ends.get(number, -1))
            step.origin = replace(step.origin, number=number, loops_to=loops_to)

    def _find_touched(self) -> None:
        late = {slot for step in self.steps if step.op.late for slot in (*step.outputs, *step.fragment)}
        loaded = {slot for step in self.steps if step.op.arrives_late for slot in step.outputs}
        self.multiplies_late = bool(late)
        for step in self.steps if late or loaded else ():
            slots = loaded if step.op.late else late | loaded
            step.touched = tuple(slots.intersection((*step.inputs, *step.outputs)))

    def _find_batches(self) -> None:
        targets = set(self.labels.values())
        start = 0
        while start < len(self.steps):
            end = start + 1
            if _batchable(self.steps[start]):
                end = self._batch_end(start, targets)
                if end - start > 1:
                    batch = self.steps[start:end]
                    self.steps[start].batch = Batch(batch)
                    self.steps[start].touched = tuple({slot for step in batch for slot in step.touched})
            start = end

    def _batch_end(self, start: int, targets: set[int]) -> int:
        first = self.steps[start]
        written = set(first.outputs)
        end = start + 1
        while end < min(len(self.steps), start + _LARGEST_BATCH) and end not in targets:
            step = self.steps[end]
            like = _batchable(step) and step.opcode.text == first.opcode.text and _shape(step) == _shape(first)
            if not like or not written.isdisjoint((*step.inputs, *step.outputs)):
                break
            written.update(step.outputs)
            end += 1
        return end


def _batchable(step: Decoded) -> bool:
    return (
        step.op.batchable and step.collective and step.guard is None and step.refusal is None and step.members is None
    )


def _shape(step: Decoded) -> tuple[object, ...]:
    """Return the properties that operands must share to be stacked."""
    return tuple(
        (type(r), len(r.elements) if isinstance(r, ReadVector) else getattr(r, "value", None)) for r in step.reads
    )


def _variables(declared: Iterable[ir.Variable | ir.Register]) -> list[ir.Variable]:
    return [item for item in declared if isinstance(item, ir.Variable)]


@lru_cache(maxsize=256)
def decode(function: ir.Function) -> Code:
    """Return the code of a function, decoded on first use."""
    return Code(function)
