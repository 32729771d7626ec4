"""Roles: code for some of a block's warpgroups or warps, or for one lane of a warp."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self, cast

from ptxdsl import ir
from ptxdsl.errors import Location, TraceError
from ptxdsl.isa.opcode import Op
from ptxdsl.notes import RoleNote
from ptxdsl.trace.builder import Builder, current, refuse
from ptxdsl.trace.control import Block, branch
from ptxdsl.trace.instruction import Scalar, emit
from ptxdsl.trace.operators import operate, steps
from ptxdsl.trace.value import Value, tid
from ptxdsl.types import pred, u32

WARP, WARPGROUP = 32, 128
REGISTER_FILE = 65536  # 32-bit registers of a multiprocessor
FEWEST, MOST, UNIT = 24, 256, 8  # registers per thread that setmaxnreg accepts
MIN_BLOCKS = "minnctapersm"
NAMED_BARRIERS = 15  # in addition to barrier 0, which the whole block uses
ALL_LANES = 0xFFFFFFFF
SINK = "_"


@dataclass(eq=False, slots=True)
class BlockRoles:
    """The state shared by a kernel's roles: the registers of each warpgroup, and the allocated named barriers."""

    threads: int
    at_launch: int  # registers of a thread
    registers: dict[int, int] = field(default_factory=dict)
    barriers: dict[object, int] = field(default_factory=dict)
    next_barrier: int = 1
    waits: list[ir.Instruction] = field(default_factory=list)  # barrier instructions emitted for roles
    last: Location | None = None  # location of the last register request

    @property
    def total(self) -> int:
        """The registers that a launch gives to a block."""
        return self.at_launch * self.threads

    def barrier(self, key: object, count: int) -> int:
        """Return the first of `count` named barriers allocated for a key."""
        if key not in self.barriers:
            if self.next_barrier + count > NAMED_BARRIERS + 1:
                refuse(
                    f"the roles of this kernel take {self.next_barrier + count - 1} named barriers; "
                    f"a block has {NAMED_BARRIERS}",
                    "let several roles meet at one barrier, or use mbarriers",
                )
            self.barriers[key] = self.next_barrier
            self.next_barrier += count
        return self.barriers[key]


def thread_of(builder: Builder) -> Any:
    """Return the linear thread index in the block, x fastest."""
    extents = (*(builder.block or ()), 1, 1)[:3]
    with steps():
        number: Any = tid.x
        if extents[1] > 1 or extents[2] > 1:
            rows = tid.y + tid.z * extents[1] if extents[2] > 1 else tid.y
            number = rows * extents[0] + number
    return number


def uniform_index(builder: Builder, noun: str, threads: int) -> Any:
    """Return the index of a thread's warpgroup or warp, computed once per kernel.

    A shuffle shows ptxas that the value is uniform, so that values derived from it use uniform registers.
    """

    def compute() -> Scalar:
        with steps():
            number = thread_of(builder) >> threads.bit_length() - 1
            return operate("shfl.sync.idx.b32", number, 0, WARP - 1, ALL_LANES, type=u32)

    return builder.once_at_start(noun, noun, compute)


class Role(Block):
    """Base class of `pd.warpgroup` and `pd.warp`: runs the body in consecutive warps of a block.

    The kernel must declare its block size: `@pd.kernel(reqntid=384)`. `bar.sync 0`, which waits for the whole block, is
    refused in the body.
    """

    _noun = ""
    size = 0  # threads of a unit, a warp or a warpgroup

    def __init__(self, *numbers: int, registers: int | None = None) -> None:
        shown = [*map(repr, numbers), *([f"registers={registers!r}"] if registers is not None else [])]
        self.words = f"pd.{self._noun}({', '.join(shown)})"
        builder = current(f"pd.{self._noun}")
        builder.check_kernel(f"pd.{self._noun}", "call the function inside of a role of the kernel")
        self._check_block(builder.block)
        self._check_numbers(numbers, math.prod(builder.block or ()) // self.size)
        self.first, self.count, self.registers = numbers[0], len(numbers), registers
        self._check_nesting(builder)
        threads = math.prod(builder.block or (1,))
        at_launch = min(MOST, REGISTER_FILE // threads // UNIT * UNIT)
        self.roles: BlockRoles = builder.memory.setdefault(BlockRoles, BlockRoles(threads, at_launch))
        self._lines: set[tuple[str, int]] = set()
        super().__init__()

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        self.builder.memory[Role].remove(self)
        warps = range(self.first * self.size // WARP, (self.first + self.count) * self.size // WARP)
        self.builder.memory.setdefault(RoleNote, []).append(RoleNote(self.words, warps, frozenset(self._lines)))

    @property
    def threads(self) -> int:
        """The number of threads in this role."""
        return self.count * self.size

    @property
    def index(self) -> Any:
        """The index of the thread's warpgroup or warp in the role: the int 0 if there is one, else a u32."""
        if self.count == 1:
            return 0
        return self._once("index", lambda: uniform_index(self.builder, self._noun, self.size) - self.first)

    @property
    def thread(self) -> Any:
        """The index of the thread in the role, from 0, a u32."""
        return self._once("thread", lambda: thread_of(self.builder) - self.first * self.size)

    def barrier(self) -> None:
        """Synchronise the threads of this role at a named barrier of its own."""
        self._meet(self.roles.barrier(self._key, 1), self.threads)

    def _meet(self, barrier: Any, threads: int) -> None:
        emit("bar.sync", (barrier, threads))
        self.roles.waits.append(cast(ir.Instruction, self.builder.body[-1]))

    @property
    def _key(self) -> tuple[object, ...]:
        return self._noun, self.first, self.count

    def _once(self, name: str, compute: Any) -> Any:
        return self.builder.once_at_start((*self._key, name), name, compute)

    def begin(self) -> None:
        self.behind = self.builder.function.label(f"$end{self._noun}")
        whole = self.threads == math.prod(self.builder.block or ())
        if not whole:
            branch(self.behind, unless=self._holds())
            self.builder.watchers.append(self.watch)
        self.builder.memory.setdefault(Role, []).append(self)

    def end(self) -> None:
        if self.behind in self.builder.targets:
            self.builder.append(self.behind)

    def _holds(self) -> Value:
        """Return a predicate: the thread has this role."""
        number: Any = uniform_index(self.builder, self._noun, self.size)
        last = math.prod(self.builder.block or ()) // self.size - 1
        with steps():
            if self.count == 1:
                holds = number == self.first
            elif self.first == 0:
                holds = number < self.count
            elif self.first + self.count - 1 == last:
                holds = number >= self.first
            else:
                holds = number - self.first < self.count
        return holds  # type: ignore[no-any-return]

    def watch(self, instruction: ir.Instruction) -> None:
        """Refuse instructions that need threads outside of the role: barrier 0, and warpgroup instructions in a part of
        one."""
        if instruction.location is not None:
            self._lines.add((instruction.location.file, instruction.location.line))
        whole = self.first * self.size % WARPGROUP == self.threads % WARPGROUP == 0
        if not whole and _together(instruction) > 1:
            refuse(
                f"`{instruction.opcode.text}` is inside {self.region.words}: all 128 threads of a warpgroup run "
                "it together",
                "open a role of the warpgroup for it: `with pd.warpgroup(…):`",
            )
        if _barrier_number(instruction) == 0:
            refuse(
                f"`{instruction.opcode.text}` on barrier 0 is inside {self.region.words}: it waits for all "
                "threads of the block, but threads of other roles do not reach it",
                f"`with pd.{self._noun}(…) as role:` has `role.barrier()`, for its threads; all threads meet after the "
                "roles",
            )

    def _check_block(self, block: tuple[int, ...] | None) -> None:
        if block is None:
            refuse(
                f"`{self.words}` is in a kernel that does not declare its block size",
                "declare it: `@pd.kernel(reqntid=384)`",
            )
        threads = math.prod(block)
        if threads % self.size:
            refuse(
                f"`{self.words}` is in blocks of {threads} threads, which are not whole {self._noun}s of {self.size}",
                f"make the block a multiple of {self.size} threads",
            )

    def _check_numbers(self, numbers: tuple[Any, ...], units: int) -> None:
        if not numbers or not all(type(n) is int for n in numbers):
            refuse(f"`{self.words}` takes the numbers of {self._noun}s", f"such as pd.{self._noun}(0)")
        for number in numbers:
            if not 0 <= number < units:
                refuse(
                    f"`{self.words}` names {self._noun} {number}; a block of this kernel has {units}, counted from 0",
                    f"make the block larger: `@pd.kernel(reqntid={(number + 1) * self.size})`" if number > 0 else None,
                )
        if list(numbers) != list(range(numbers[0], numbers[0] + len(numbers))):
            refuse(f"`{self.words}`: the {self._noun}s of a role follow one another", "open a role for each")

    def _check_nesting(self, builder: Builder) -> None:
        """Allow a nested role only inside of a larger one that includes all of its warps."""
        for outer in builder.memory.get(Role, ()):
            start, end = outer.first * outer.size, outer.first * outer.size + outer.threads
            first = self.first * self.size
            if not start <= first <= first + self.threads <= end or self.size >= outer.size:
                refuse(
                    f"`{self.words}` is inside {outer.region.words}, which has "
                    + (f"threads {start} to {end - 1} alone" if self.size < outer.size else "its role already"),
                    f"put it after that block, or name {self._noun}s of it",
                )


class warpgroup(Role):
    """Run the body in the given warpgroups (128 threads each) of every block.

        with pd.warpgroup(1, 2, registers=232) as consumer:
            i = consumer.thread                          # 0 to 255

    `numbers` are consecutive warpgroups, counted from 0. `registers` sets the registers per thread by `setmaxnreg`, a
    multiple of 8 from 24 to 256. At launch a thread has 65536 / (threads of the block), rounded down to a multiple of
    8, and all warpgroups together never have more than that. The target has an `a` suffix, such as sm_90a, if registers
    are set.

    Raises TraceError if the kernel does not declare its block size, or for warpgroups outside of the block.
    """

    _noun, size = "warpgroup", WARPGROUP

    def warpgroup_barrier(self) -> None:
        """Synchronise the threads of the current thread's warpgroup."""
        first = self.roles.barrier((*self._key, "each"), self.count)
        self._meet(first if self.count == 1 else self._once("barrier", lambda: self.index + first), self.size)

    def body(self) -> None:
        if self.registers is not None:
            self._check_registers(self.registers)
            self._resize(self.registers)

    def _resize(self, registers: int) -> None:
        members = range(self.first, self.first + self.count)
        held = {self.roles.registers.get(n, self.roles.at_launch) for n in members}
        self.roles.registers |= dict.fromkeys(members, registers)
        self.roles.last = self.where
        if held != {registers}:
            emit(f"setmaxnreg.{'inc' if registers > min(held) else 'dec'}.sync.aligned.u32", (registers,))

    def _check_registers(self, registers: Any) -> None:
        if type(registers) is not int or not FEWEST <= registers <= MOST or registers % UNIT:
            refuse(
                f"`{self.words}` asks for {registers!r} registers; it is a multiple of {UNIT} from {FEWEST} to {MOST}",
                "for example 40 for warps that copy, 232 for those that multiply",
            )
        members = range(self.first, self.first + self.count)
        others = {n: r for n, r in self.roles.registers.items() if n not in members}
        taken = sum(others.values()) * WARPGROUP
        total = taken + registers * self.threads
        if total > self.roles.total:
            beside = f" in addition to the {taken} of other roles" * bool(taken)
            fits = (self.roles.total - taken) // self.threads // UNIT * UNIT
            refuse(
                f"`{self.words}` takes {registers * self.threads} registers{beside}; a launch gives the block "
                f"{self.roles.total}, {self.roles.at_launch} a thread, and the warps would wait forever",
                f"registers={fits} fits",
            )


class warp(Role):
    """Run the body in the given warps (32 threads each) of every block.

        with pd.warp(0):
            a.prefetch()

    `numbers` are consecutive warps, counted from 0. Raises TraceError if the kernel does not declare its block size, or
    for warps outside of the block.
    """

    _noun, size = "warp", WARP

    def __init__(self, *numbers: int) -> None:
        super().__init__(*numbers)


class elect(Block):
    """Run the body in one elected lane of each warp. All lanes of the warp must reach it.

        with pd.warp(0), pd.elect():
            a.load(tile, (0, 0), barrier)

    Instructions that a whole warp or warpgroup executes together are refused in the body with TraceError. Needs sm_90.
    """

    words = "pd.elect()"

    def begin(self) -> None:
        ((_, _), (elected, _)) = emit("elect.sync", (ALL_LANES,), out=(SINK, None), pair=True)
        self.behind = self.builder.function.label("$endelect")
        branch(self.behind, unless=Value(elected, pred, self.builder))

        self.builder.watchers.append(self.watch)

    def end(self) -> None:
        self.builder.append(self.behind)

    def watch(self, instruction: ir.Instruction) -> None:
        """Refuse instructions that whole warps execute together."""
        if warps := _together(instruction):
            everyone = "all 32 lanes of a warp" if warps == 1 else "all 128 threads of a warpgroup"
            refuse(
                f"`{instruction.opcode.text}` is inside {self.region.words}: {everyone} run it together, "
                "but only one lane of a warp reaches it",
                "move it before or after `with pd.elect():`",
            )


def _together(instruction: ir.Instruction) -> int:
    """Return the number of whole warps that execute an instruction together; 0 if single lanes may execute it."""
    opcode: Any = instruction.opcode
    op: Op = opcode.op
    if not (op.collective and op.whole_warp) or any(operand.name == "membermask" for operand in opcode.operands):
        return 0
    return op.warps


def check_roles(builder: Builder) -> None:
    """Check the kernel's roles at its end."""
    roles: BlockRoles | None = builder.memory.get(BlockRoles)
    if roles is not None and roles.registers:
        _check_registers(builder, roles)
    if roles is not None and roles.barriers:
        _check_barriers(builder, roles)


def _check_barriers(builder: Builder, roles: BlockRoles) -> None:
    """Refuse constant barrier numbers that have been allocated to a role."""
    waits = set(map(id, roles.waits))
    for item in builder.body:
        if isinstance(item, ir.Instruction) and id(item) not in waits:
            number = _barrier_number(item)
            if number is not None and 0 < number < roles.next_barrier:
                raise TraceError(
                    f"`{item.opcode.text}` names barrier {number}, which was given to a role of this kernel",
                    at=item.location,
                    help=f"name one from {roles.next_barrier} on, or let `role.barrier()` choose it",
                )


def _barrier_number(instruction: ir.Instruction) -> int | None:
    """Return the constant barrier number of a block barrier instruction."""
    opcode: Any = instruction.opcode
    if opcode.text.partition(".")[0] not in ("bar", "barrier") or ".warp." in opcode.text:
        return None
    operands = zip(opcode.operands, opcode.bind(instruction.operands), strict=True)
    number = next((value for operand, value in operands if operand.name == "a"), None)
    return int(number.value) if isinstance(number, ir.Immediate) else None


def _check_registers(builder: Builder, roles: BlockRoles) -> None:
    """Refuse roles whose registers, with those of warpgroups that keep their launch allocation, exceed the register
    file.

    Also declare the minimum number of blocks per multiprocessor, without which ptxas ignores setmaxnreg (C7508).
    """
    if not any(d.name == MIN_BLOCKS for d in builder.function.directives):
        builder.function.directives.append(ir.Directive(MIN_BLOCKS, (1,)))
    count = math.prod(builder.block or ()) // WARPGROUP
    kept = [n for n in range(count) if n not in roles.registers]
    total = (sum(roles.registers.values()) + len(kept) * roles.at_launch) * WARPGROUP
    if total > roles.total:
        raise TraceError(
            f"the roles of `{builder.name}` take {total} registers with the {roles.at_launch} a thread that "
            f"warpgroup{'s' * (len(kept) > 1)} {', '.join(map(str, kept))} keep{'s' * (len(kept) == 1)}; "
            f"a launch gives the block {roles.total}",
            at=roles.last,
            help=f"give registers back there: `with pd.warpgroup({kept[0]}, registers=40):`",
        )
