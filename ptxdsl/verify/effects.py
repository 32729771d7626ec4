"""Find the parameters through which a kernel may write memory, by tracking their values through registers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ptxdsl import ir
from ptxdsl.isa.opcode import Opcode
from ptxdsl.types import b8


class StructWord(NamedTuple):
    """Eight bytes of a struct parameter, `offset` bytes from its start: the size of one address."""

    parameter: ir.Variable
    offset: int

    def __str__(self) -> str:
        return f"{self.parameter}+{self.offset}"


# parameters, and addresses of shared and local variables, that a value may derive from
Origins = frozenset[ir.Variable | StructWord]
NOTHING: Origins = frozenset()
KERNEL_SPACES = ("shared", "local")  # memory with the lifetime of the kernel
ELSEWHERE = ir.Variable("elsewhere", "shared", b8)  # the kernel's own memory, variable unknown
ADDRESS_BITS = 64
TENSOR_MAP = "map"  # the box operand: data come from the tensor, never from the bytes of its map
MOST_COPIED_BYTES = 16  # by an instruction from memory to memory


def written(function: ir.Function) -> frozenset[str]:
    """Return the names of 64-bit parameters whose value may be part of an address that the kernel writes to.

    A struct `p` gives `p+8` for its eight bytes at offset 8, and `p` if the kernel computes the offset that it loads.
    Addresses stored in shared or local memory, or passed to a function of the module, are tracked to their use.
    Addresses stored elsewhere, or passed to an external function, count as written through.
    """
    steps = {function: _steps(function)}
    return frozenset(map(str, _written(function, _of_callees(function, steps), steps)))


Written = Mapping[ir.Function, frozenset[int]]
"""For each function, the indices of parameters through which it may write."""
Steps = dict[ir.Function, list["_Step"]]


def _written(function: ir.Function, callees: Written, steps: Steps) -> Origins:
    """Return the parameters of a function through which it may write."""
    variables = [p for p in function.parameters if isinstance(p, ir.Variable)]
    parameters = {p for p in variables if p.type.bits == 64 and not p.shape}
    structs = {p for p in variables if p.shape}
    through = _Flow(parameters, structs, steps[function], callees).written()
    return frozenset(o for o in through if isinstance(o, StructWord) or o in parameters | structs)


def _of_callees(function: ir.Function, steps: Steps) -> Written:
    """Return the parameters that its direct and indirect callees write through, as a fixed point; add their steps."""
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
    """Return the indices of these parameters; register parameters may be written through."""
    named = {origin.parameter if isinstance(origin, StructWord) else origin for origin in through}
    pairs = enumerate(function.parameters)
    return frozenset(n for n, p in pairs if p in named or (isinstance(p, ir.Register) and p.type.bits >= ADDRESS_BITS))


class _Memory(NamedTuple):
    """The memory that an address operand refers to."""

    base: Any
    space: str
    offset: int

    @property
    def is_of_kernel(self) -> bool:
        return self.space.startswith(KERNEL_SPACES) or _is_passed(self.base)


def _is_passed(base: object) -> bool:
    """True if it is a variable that holds an argument or a result."""
    return isinstance(base, ir.Variable) and base.space == "param"


class _Call(NamedTuple):
    """A call of a function, defined in the module or external."""

    function: ir.Function | None
    arguments: tuple[Any, ...]
    results: tuple[Any, ...]


class _Step(NamedTuple):
    """The data flow of an instruction."""

    into: tuple[ir.Register, ...]
    sources: tuple[Any, ...]  # registers, and variables whose addresses are taken
    memory: tuple[_Memory, ...]
    target: _Memory | None  # the address of the memory that it writes
    call: _Call | None

    @property
    def wide(self) -> Iterator[ir.Register]:
        """Yield the sources that are wide enough for addresses."""
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
    arguments, results = (operands.get(name, nothing).flat for name in ("arguments", "results"))
    return _Call(defined, arguments, results)


def _leaves(operands: Iterable[object]) -> Iterator[Any]:
    """Yield the registers and variables of operands, except those in brackets."""
    for operand in operands:
        if isinstance(operand, ir.Register | ir.Variable):
            yield operand
        elif isinstance(operand, ir.Vector | ir.Arguments):
            yield from _leaves(operand.elements)
        elif isinstance(operand, ir.Offset):
            yield from _leaves([operand.base])


class _Flow:
    """The origins of values: `held` in registers, `kept` in shared and local variables."""

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
        self.users: dict[Any, set[int]] = defaultdict(set)  # steps to evaluate again when what a holder has changes
        self._propagate()

    def _propagate(self) -> None:
        """Propagate values through all instructions until nothing changes."""
        for number, step in enumerate(self.steps):
            call = step.call
            for holder in (*step.sources, *(m.base for m in step.memory), *(call.arguments if call else ())):
                self.users[holder].add(number)
        pending = dict.fromkeys(range(len(self.steps)))
        while pending:
            number = next(iter(pending))
            del pending[number]
            step = self.steps[number]
            for memory in step.memory:
                for variable in self._variables(memory):
                    self.users[variable].add(number)
            for holder in self._take(step):
                pending |= dict.fromkeys(self.users[holder])

    def written(self) -> Origins:
        """Return the origins of addresses that are written to, and of values that leave the tracked memory."""
        return NOTHING.union(*map(self._written, self.steps))

    def _take(self, step: _Step) -> list[Any]:
        """Propagate values through an instruction. Return the registers and variables that have more origins now."""
        size = sum(register.type.bytes for register in step.into)
        loaded = [self._loaded(memory, size) for memory in step.memory]
        origins = _union(self.held, step.sources).union(*loaded) if step.into else NOTHING
        changed = _add(self.held, step.into, origins)
        if step.target and step.target.is_of_kernel:
            changed += _add(self.kept, self._variables(step.target), self._stored(step))
        if step.call:
            passed = NOTHING.union(*map(self._passed, step.call.arguments))
            changed += _add(self.kept, [r for r in step.call.results if isinstance(r, ir.Variable)], passed)
            changed += _add(self.held, [r for r in step.call.results if isinstance(r, ir.Register)], passed)
        return changed

    def _passed(self, argument: object) -> Origins:
        """Return the origins of a call argument."""
        return self.kept[argument] if isinstance(argument, ir.Variable) else self.held[argument]

    def _written(self, step: _Step) -> Origins:
        through = self.held[step.target.base] if step.target else NOTHING
        if step.call:  # a callee may read all memory of its caller
            known = self.callees.get(step.call.function) if step.call.function else None
            chosen = [a for n, a in enumerate(step.call.arguments) if known is None or n in known]
            return through | self._reached(self.memory.union(*map(self._passed, chosen)))
        leaves = step.target is not None and not step.target.is_of_kernel
        return through | self._reached(self._stored(step)) if leaves else through

    def _stored(self, step: _Step) -> Origins:
        read = (memory for memory in step.memory if memory is not step.target)
        return _union(self.held, step.wide).union(*[self._loaded(memory, MOST_COPIED_BYTES) for memory in read])

    def _loaded(self, memory: _Memory, size: int) -> Origins:
        """Return the origins of loaded bytes; values loaded from global memory are not addresses derived from
        parameters.
        """
        if memory.base in self.parameters:
            return frozenset([memory.base])
        if memory.base in self.structs:
            first = memory.offset // 8 * 8
            return frozenset(StructWord(memory.base, offset) for offset in range(first, memory.offset + size, 8))
        return _union(self.kept, self._variables(memory)) | self.held[memory.base] & self.structs

    def _variables(self, memory: _Memory) -> Origins:
        """Return the shared and local variables that the address may refer to."""
        return self.held[memory.base] & self.kernel_memory or (self.kernel_memory if memory.is_of_kernel else NOTHING)

    def _reached(self, origins: Origins) -> Origins:
        """Return these origins, and everything loadable through those that are addresses of variables."""
        while more := _union(self.kept, origins) - origins:
            origins |= more
        return origins


def _union(origins: Mapping[object, Origins], holders: Iterable[object]) -> Origins:
    return NOTHING.union(*(origins[holder] for holder in holders))


def _add(origins: dict[object, Origins], holders: Iterable[object], new: Origins) -> list[object]:
    """Add origins to holders. Return the holders that did not have all of them."""
    changed = [holder for holder in holders if not new <= origins[holder]] if new else []
    for holder in changed:
        origins[holder] |= new
    return changed
