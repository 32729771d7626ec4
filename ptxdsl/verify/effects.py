"""Which parameters of a kernel it may write memory through, found by following their values through its registers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ptxdsl import ir
from ptxdsl.isa.opcode import Opcode
from ptxdsl.types import b8


class StructWord(NamedTuple):
    """Eight bytes of a parameter that is a struct, `offset` bytes behind its start: room for one address."""

    parameter: ir.Variable
    offset: int

    def __str__(self) -> str:
        return f"{self.parameter}+{self.offset}"


# Parameters whose values, and shared and local variables whose addresses, may be part of a value
Origins = frozenset[ir.Variable | StructWord]
NOTHING: Origins = frozenset()
KERNEL_SPACES = ("shared", "local")  # memory that ends with the kernel
ELSEWHERE = ir.Variable("elsewhere", "shared", b8)  # own memory whose variable the kernel does not name
ADDRESS_BITS = 64
TENSOR_MAP = "map"  # the operand that names a box: data come from the tensor, never from the bytes of its map
MOST_COPIED_BYTES = 16  # by an instruction from memory to memory


def written(function: ir.Function) -> frozenset[str]:
    """The names of parameters of 64 bits whose value may be part of an address that the kernel writes to.

    Of a struct `p` it is `p+8` for the eight bytes at 8, and `p` where the kernel computes the place that it loads. An
    address that is stored in shared or local memory, or passed to a function of the module, is followed to where it is
    used. One that is stored anywhere else, or passed to a function that is not there, counts as written through.
    """
    steps = {function: _steps(function)}
    return frozenset(map(str, _written(function, _of_callees(function, steps), steps)))


Written = Mapping[ir.Function, frozenset[int]]
"""The parameters of functions, by their numbers, through which they may write."""
Steps = dict[ir.Function, list["_Step"]]


def _written(function: ir.Function, callees: Written, steps: Steps) -> Origins:
    """The parameters of a function through which it may write."""
    variables = [p for p in function.parameters if isinstance(p, ir.Variable)]
    parameters = {p for p in variables if p.type.bits == 64 and not p.shape}
    structs = {p for p in variables if p.shape}
    through = _Flow(parameters, structs, steps[function], callees).written()
    return frozenset(o for o in through if isinstance(o, StructWord) or o in parameters | structs)


def _of_callees(function: ir.Function, steps: Steps) -> Written:
    """What the functions that it calls write, and those that they call, whose steps are added: from nothing on, until
    that is no news."""
    callees: dict[ir.Function, frozenset[int]] = {}
    pending = [function]
    while pending:
        called = {step.call.function for step in steps[pending.pop()] if step.call}
        new = [each for each in called if each is not None and each not in callees]
        steps.update((each, _steps(each)) for each in new)
        callees |= dict.fromkeys(new, frozenset[int]())
        pending += new
    while True:
        numbers = {callee: _numbers(callee, _written(callee, callees, steps)) for callee in callees}
        if numbers == callees:
            return callees
        callees = numbers


def _numbers(function: ir.Function, through: Origins) -> frozenset[int]:
    """Which parameters these are; registers as parameters may be written through."""
    named = {origin.parameter if isinstance(origin, StructWord) else origin for origin in through}
    pairs = enumerate(function.parameters)
    return frozenset(n for n, p in pairs if p in named or (isinstance(p, ir.Register) and p.type.bits >= ADDRESS_BITS))


class _Memory(NamedTuple):
    """What an address operand leads to."""

    base: Any
    space: str
    offset: int

    @property
    def is_of_kernel(self) -> bool:
        return self.space.startswith(KERNEL_SPACES) or _is_passed(self.base)


def _is_passed(base: object) -> bool:
    """Whether it is a variable that holds an argument or a result."""
    return isinstance(base, ir.Variable) and base.space == "param"


class _Call(NamedTuple):
    """A call, of a function that the module defines or of another one."""

    function: ir.Function | None
    arguments: tuple[Any, ...]
    results: tuple[Any, ...]


class _Step(NamedTuple):
    """What an instruction does with values."""

    into: tuple[ir.Register, ...]
    sources: tuple[Any, ...]  # registers, and variables whose addresses are taken
    memory: tuple[_Memory, ...]
    target: _Memory | None  # that of the memory to which it writes
    call: _Call | None

    @property
    def wide(self) -> Iterator[ir.Register]:
        """The sources that hold whole addresses."""
        return (s for s in self.sources if isinstance(s, ir.Register) and s.type.bits >= ADDRESS_BITS)


def _steps(function: ir.Function) -> list[_Step]:
    return [_step(i) for i in function.walk() if isinstance(i.opcode, Opcode)]


def _step(instruction: ir.Instruction) -> _Step:
    opcode: Any = instruction.opcode
    bound = list(zip(opcode.operands, opcode.bind(instruction.operands), strict=True))
    memory = {
        o.name: _Memory(value.base, str(o.space), value.offset) for o, value in bound if isinstance(value, ir.Address)
    }
    return _Step(
        tuple(leaf for leaf in _leaves(v for o, v in bound if o.written) if isinstance(leaf, ir.Register)),
        tuple(_leaves(v for o, v in bound if not o.written)),
        tuple(value for name, value in memory.items() if name != TENSOR_MAP),
        memory.get(opcode.op.stores),
        _call({o.name: value for o, value in bound}) if opcode.form.name == "call" else None,
    )


def _call(operands: Mapping[str, Any]) -> _Call:
    function = operands.get("function")
    defined = function if isinstance(function, ir.Function) and function.body is not None else None
    nothing = ir.Arguments(())
    arguments, results = (operands.get(name, nothing).elements for name in ("arguments", "results"))
    return _Call(defined, arguments, results)


def _leaves(operands: Iterable[object]) -> Iterator[Any]:
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

    def __init__(
        self, parameters: set[ir.Variable], structs: set[ir.Variable], steps: list[_Step], callees: Written
    ) -> None:
        self.parameters, self.structs, self.steps, self.callees = parameters, frozenset(structs), steps, callees
        bases = (memory.base for step in steps for memory in step.memory)
        named = (*(source for step in steps for source in step.sources), *bases)
        variables = frozenset(v for v in named if isinstance(v, ir.Variable)) - parameters - structs
        self.memory = frozenset(v for v in variables if v.space in KERNEL_SPACES) | {ELSEWHERE}
        self.kernel_memory = self.memory | frozenset(filter(_is_passed, variables))
        addressed = self.kernel_memory | self.structs
        self.held: dict[Any, Origins] = defaultdict(
            frozenset, {variable: frozenset([variable]) for variable in addressed}
        )
        self.kept: dict[Any, Origins] = defaultdict(frozenset)
        while any([self._take(step) for step in steps]):  # a list: all steps are taken each time
            pass

    def written(self) -> Origins:
        """What the addresses that are written to are part of, and all that goes where it is not followed."""
        return NOTHING.union(*map(self._written, self.steps))

    def _take(self, step: _Step) -> bool:
        """Lets values go where an instruction brings them. Returns whether that was news."""
        size = sum(register.type.bytes for register in step.into)
        loaded = [self._loaded(memory, size) for memory in step.memory]
        origins = _union(self.held, step.sources).union(*loaded) if step.into else NOTHING
        is_news = _add(self.held, step.into, origins)
        if step.target and step.target.is_of_kernel:
            is_news |= _add(self.kept, self._variables(step.target), self._stored(step))
        if step.call:
            passed = NOTHING.union(*map(self._passed, step.call.arguments))
            is_news |= _add(self.kept, [r for r in step.call.results if isinstance(r, ir.Variable)], passed)
            is_news |= _add(self.held, [r for r in step.call.results if isinstance(r, ir.Register)], passed)
        return is_news

    def _passed(self, argument: object) -> Origins:
        """What an argument of a call may be part of."""
        return self.kept[argument] if isinstance(argument, ir.Variable) else self.held[argument]

    def _written(self, step: _Step) -> Origins:
        through = self.held[step.target.base] if step.target else NOTHING
        if step.call:  # a function may read all memory of its caller
            known = self.callees.get(step.call.function) if step.call.function else None
            chosen = [a for n, a in enumerate(step.call.arguments) if known is None or n in known]
            return through | self._reached(self.memory.union(*map(self._passed, chosen)))
        leaves = step.target is not None and not step.target.is_of_kernel
        return through | self._reached(self._stored(step)) if leaves else through

    def _stored(self, step: _Step) -> Origins:
        read = (memory for memory in step.memory if memory is not step.target)
        return _union(self.held, step.wide).union(*[self._loaded(memory, MOST_COPIED_BYTES) for memory in read])

    def _loaded(self, memory: _Memory, size: int) -> Origins:
        """What so many bytes are part of; what is loaded from global memory is no address of ours."""
        if memory.base in self.parameters:
            return frozenset([memory.base])
        if memory.base in self.structs:
            first = memory.offset // 8 * 8
            return frozenset(StructWord(memory.base, offset) for offset in range(first, memory.offset + size, 8))
        return _union(self.kept, self._variables(memory)) | self.held[memory.base] & self.structs

    def _variables(self, memory: _Memory) -> Origins:
        """The shared and local variables of which it may be part."""
        return self.held[memory.base] & self.kernel_memory or (self.kernel_memory if memory.is_of_kernel else NOTHING)

    def _reached(self, origins: Origins) -> Origins:
        """These, and what may be loaded by those that are addresses of variables."""
        while more := _union(self.kept, origins) - origins:
            origins |= more
        return origins


def _union(origins: Mapping[object, Origins], holders: Iterable[object]) -> Origins:
    return NOTHING.union(*(origins[holder] for holder in holders))


def _add(origins: dict[object, Origins], holders: Iterable[object], new: Origins) -> bool:
    """Returns whether that was news of one of the holders."""
    is_news = False
    for holder in holders if new else ():
        is_news |= not new <= origins[holder]
        origins[holder] |= new
    return is_news
