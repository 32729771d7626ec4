"""Which parameters of a kernel it may write memory through, found by following their values through its registers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from . import ir
from .isa.spec import Opcode
from .types import b8

# Parameters whose values, and shared and local variables whose addresses, may be part of a value
Origins = frozenset[ir.Variable]
NOTHING: Origins = frozenset()
OWN = ("shared", "local")  # memory that ends with the kernel
ELSEWHERE = ir.Variable("elsewhere", "shared", b8)  # own memory whose variable the kernel does not name
ADDRESS_BITS = 64


def written(function: ir.Function) -> frozenset[str]:
    """The names of parameters of 64 bits whose value may be part of an address that the kernel writes to.

    An address that is stored in shared or local memory is followed to where it is loaded again. One that is stored
    anywhere else, or passed to a function, counts as written through.
    """
    parameters = {p for p in function.parameters if isinstance(p, ir.Variable) and p.type.bits == 64 and not p.shape}
    steps = [_step(i) for i in function.walk() if isinstance(i.opcode, Opcode)]
    return frozenset(str(origin) for origin in _Flow(parameters, steps).written() & parameters)


class _Memory(NamedTuple):
    """What an address operand leads to."""

    base: Any
    space: str

    @property
    def is_own(self) -> bool:
        return self.space.startswith(OWN)


class _Step(NamedTuple):
    """What an instruction does with values."""

    into: tuple[ir.Register, ...]
    sources: tuple[Any, ...]  # registers, and variables whose addresses are taken
    memory: tuple[_Memory, ...]
    target: _Memory | None  # that of the memory to which it writes
    is_call: bool

    @property
    def wide(self) -> Iterator[ir.Register]:
        """The sources that hold whole addresses."""
        return (s for s in self.sources if isinstance(s, ir.Register) and s.type.bits >= ADDRESS_BITS)


def _step(instruction: ir.Instruction) -> _Step:
    opcode: Any = instruction.opcode
    bound = list(zip(opcode.operands, opcode.bind(instruction.operands), strict=True))
    memory = {o.name: _Memory(value.base, str(o.space)) for o, value in bound if isinstance(value, ir.Address)}
    return _Step(
        tuple(leaf for leaf in _leaves(v for o, v in bound if o.written) if isinstance(leaf, ir.Register)),
        tuple(_leaves(v for o, v in bound if not o.written)),
        tuple(memory.values()),
        memory.get(opcode.op.stores),
        any(o.word == "arguments" for o, _ in bound),
    )


def _leaves(operands: Iterable[Any]) -> Iterator[Any]:
    """The registers and variables of operands, but for those in brackets."""
    for operand in operands:
        if isinstance(operand, ir.Register | ir.Variable):
            yield operand
        elif isinstance(operand, ir.Vector | ir.Arguments):
            yield from _leaves(operand.elements)
        elif isinstance(operand, ir.Offset):
            yield from _leaves([operand.base])


class _Flow:
    """What values may be part of: `held` in registers, `kept` in shared and local variables."""

    def __init__(self, parameters: set[ir.Variable], steps: list[_Step]) -> None:
        self.parameters, self.steps = parameters, steps
        named = (place for step in steps for place in (*step.sources, *(memory.base for memory in step.memory)))
        self.own = frozenset(v for v in named if isinstance(v, ir.Variable) and v.space in OWN) | {ELSEWHERE}
        self.held: dict[Any, Origins] = defaultdict(
            frozenset, {variable: frozenset([variable]) for variable in self.own}
        )
        self.kept: dict[Any, Origins] = defaultdict(frozenset)
        while any([self._take(step) for step in steps]):  # a list: all steps are taken each time
            pass

    def written(self) -> Origins:
        """What the addresses that are written to are part of, and all that goes where it is not followed."""
        return NOTHING.union(*map(self._written, self.steps))

    def _take(self, step: _Step) -> bool:
        """Lets values go where an instruction brings them. Returns whether that was news."""
        given = _union(self.held, step.sources).union(*map(self._loaded, step.memory)) if step.into else NOTHING
        is_news = _add(self.held, step.into, given)
        if step.target and step.target.is_own:
            is_news |= _add(self.kept, self._variables(step.target), self._stored(step))
        return is_news

    def _written(self, step: _Step) -> Origins:
        found = self.held[step.target.base] if step.target else NOTHING
        if step.is_call:  # a function may read all memory of its caller
            return found | self._reached(self._stored(step) | self.own)
        return found | self._reached(self._stored(step)) if step.target and not step.target.is_own else found

    def _stored(self, step: _Step) -> Origins:
        read = (memory for memory in step.memory if memory is not step.target)
        return _union(self.held, step.wide).union(*map(self._loaded, read))

    def _loaded(self, memory: _Memory) -> Origins:
        """What is loaded from global memory is no address of ours."""
        return (
            frozenset([memory.base]) if memory.base in self.parameters else _union(self.kept, self._variables(memory))
        )

    def _variables(self, memory: _Memory) -> Origins:
        """The shared and local variables of which it may be part."""
        return self.held[memory.base] & self.own or (self.own if memory.is_own else NOTHING)

    def _reached(self, origins: Origins) -> Origins:
        """These, and what may be loaded by those that are addresses of variables."""
        while more := _union(self.kept, origins) - origins:
            origins |= more
        return origins


def _union(origins: Mapping[Any, Origins], places: Iterable[Any]) -> Origins:
    return NOTHING.union(*(origins[place] for place in places))


def _add(origins: dict[Any, Origins], places: Iterable[Any], new: Origins) -> bool:
    """Returns whether that was news of one of the places."""
    is_news = False
    for place in places if new else ():
        is_news |= not new <= origins[place]
        origins[place] |= new
    return is_news
