"""A kernel's launch on the emulator: arguments become memory, and memory becomes the caller's arrays again."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

import numpy as np

from .. import ir
from ..arrays import AddressTable, Array, Struct, describe
from ..errors import EmulationError
from ..isa.cluster_size import clusters_of
from ..notes import KernelNotes
from .memory.regions import Allocation, Region, Table, spread
from .memory.spaces import Memory
from .observe.races import GridBeside
from .report import Index, Report
from .run.core import EmulatedLaunch, FirstFinding
from .run.machine import Machine, MachineWatcher
from .run.program import NO_EXTENTS, Arena, Program, allocation, copy_blocks, initial_bytes, shared_allocations
from .stream import HeldArray, Stream

_PARAMETER_ZONE = 16
_WORKSPACE_BYTES = 64
_MOST_BYTES = 1 << 47  # bytes of a variable: no address space has more

now = monotonic
"""The clock of limits of seconds."""
Notes = Callable[[], KernelNotes]
Key = tuple[int, ...]
"""The place of an array's address: the number of its argument, the offset in a struct, the index in a pointer table."""


def emulate(
    function: ir.Function,
    module: ir.PtxModule,
    grid: Index,
    block: Index,
    arguments: Sequence[object],
    shared_bytes: int = 0,
    checks: bool = True,
    resident: int | None = None,
    variables: dict[ir.Variable, bytes | np.ndarray] | None = None,
    traffic: bool = False,
    cluster: Index | None = None,
    watchers: Sequence[MachineWatcher] = (),
    stream: Stream | None = None,
    dependent: bool = False,
    notes: Notes = KernelNotes,
    extents: Mapping[str, int] = NO_EXTENTS,
    strict: bool = True,
    started: float | None = None,
) -> Report:
    """Run a kernel and return its report; arrays are written only if there are no errors.

    An argument is a numpy array or an `arrays.Array` in host memory for a pointer, a number for a scalar, or bytes for
    a struct. Bounds and alignment are always checked; `checks` adds uninitialised reads, races and missing waits.
    `resident` limits the number of blocks that run at once; by default, as many as fit on an H200. `variables` keeps
    the contents of module variables from one launch to the next. `traffic` counts accesses by line. `cluster` is the
    number of blocks of a cluster, which divides the grid; by default, the kernel's own. `watchers` see each step.
    `stream` holds the previous launch, which a `dependent` launch may overlap, and remembers this one. `extents` are
    the bytes of arrays in shared memory whose variables may be longer. A limit of seconds counts from `started`, or
    else from now.
    """
    with _enough_memory(function, module):
        emulation = _Emulation(function, module, arguments, shared_bytes, variables, notes, extents, started)
        beside = emulation.enter(stream, dependent)
        report = emulation.run(grid, block, cluster, checks, resident, False, traffic, watchers, beside, strict)
        emulation.leave(stream, report)
        return report


def run(
    function: ir.Function,
    module: ir.PtxModule,
    grid: Index,
    block: Index,
    arguments: Sequence[object],
    shared_bytes: int = 0,
    checks: bool = True,
    variables: dict[ir.Variable, bytes | np.ndarray] | None = None,
    cluster: Index | None = None,
    stream: Stream | None = None,
    dependent: bool = False,
    notes: Notes = KernelNotes,
    extents: Mapping[str, int] = NO_EXTENTS,
    strict: bool = True,
    started: float | None = None,
) -> Report:
    """Run a kernel. Raises EmulationError with the first error, and then leaves all arrays unchanged."""
    with _enough_memory(function, module):
        emulation = _Emulation(function, module, arguments, shared_bytes, variables, notes, extents, started)
        beside = emulation.enter(stream, dependent)
        report = emulation.run(grid, block, cluster, checks, None, True, beside=beside, strict=strict)
        emulation.leave(stream, report)
    if report.errors:
        first = report.errors[0]
        at, *others = first.locations or (None,)
        also = "".join(f"\n{location.excerpt()}" for location in others if location is not None)
        by = "" if first.says_who else f", by {first.who}"
        raise EmulationError(f"{function.name}: {first.message}{by}{also}", at=at, help=first.help or None)
    return report


@contextmanager
def _enough_memory(function: ir.Function, module: ir.PtxModule) -> Iterator[None]:
    """Raise EmulationError for variables that no memory can hold, and when memory runs out."""
    text = f"not enough memory to emulate {function.name}"
    for variable in (*module.globals, *ir.items(function.body or [])):
        if isinstance(variable, ir.Variable) and variable.bytes > _MOST_BYTES:
            raise EmulationError(f"{text}: `{variable}` takes {variable.bytes} bytes")
    try:
        yield
    except MemoryError as error:
        raise EmulationError(f"{text}: {error}" if str(error) else text) from error


class _Emulation:
    """The memory of arguments and module variables."""

    def __init__(
        self,
        function: ir.Function,
        module: ir.PtxModule,
        arguments: Sequence[object],
        dynamic_bytes: int,
        variables: dict[ir.Variable, bytes | np.ndarray] | None = None,
        notes: Notes = KernelNotes,
        extents: Mapping[str, int] = NO_EXTENTS,
        started: float | None = None,
    ) -> None:
        self.started = now() if started is None else started
        self.notes, self.extents = notes, extents
        self.function, self.dynamic_bytes = function, dynamic_bytes
        self.contents = {} if variables is None else variables
        self.variables: dict[ir.Variable, Allocation] = {}
        self.program = Program(function, module)
        self.arena = Arena()
        self.addresses: dict[ir.Variable, int] = {}
        self.arrays: list[HeldArray] = []
        self.constants: list[Allocation] = []
        self.workspace = self.arena.add(Allocation("workspace", 0, _WORKSPACE_BYTES, 0), bytes(_WORKSPACE_BYTES))
        self._place_variables()
        self._place_arguments(arguments)

    def run(
        self,
        grid: Index,
        block: Index,
        cluster: Index | None,
        checks: bool,
        resident: int | None,
        only_first: bool,
        traffic: bool = False,
        watchers: Sequence[MachineWatcher] = (),
        beside: GridBeside | None = None,
        strict: bool = True,
    ) -> Report:
        _, shared, stride = shared_allocations(self.program.of_space("shared"), self.dynamic_bytes, self.extents)
        for each in shared:
            each.named = self._named(each.name)
        table = Table(shared)
        launch = EmulatedLaunch(
            self.program, grid, block, self.addresses, table, stride, self.dynamic_bytes, self.workspace, checks,
            resident, only_first, traffic, cluster or clusters_of(self.function).required, watchers, beside, self.notes,
            strict, self.started,
        )  # fmt: skip
        memory = Memory(self._spaces(), Table(self.constants))
        machine = Machine(launch, memory)
        for watcher in watchers:
            watcher.attach(machine)
        try:
            with np.errstate(all="ignore"):
                machine.run()
        except FirstFinding:
            pass
        finally:
            memory.observers.clear()  # they refer to the machine; its memory must not wait for the garbage collector
            print(machine.report.output, end="")
        if not machine.report.errors:
            self._write_back(memory)
        return machine.report

    def _named(self, variable: str) -> Callable[[int], str]:
        return lambda offset: self.notes().element(variable, offset)

    def enter(self, stream: Stream | None, dependent: bool) -> GridBeside | None:
        """Return the previous grid if this one may overlap it."""
        if stream is None:
            return None
        before = stream.beside(self.arrays) if dependent else None
        stream.last = None
        return before

    def leave(self, stream: Stream | None, report: Report) -> None:
        """Remember this grid in the stream if its dependent may start before it has ended."""
        if stream is not None and self.program.lets_grids_begin and not report.errors:
            stream.remember(self.function.name, self.arrays)

    def _spaces(self) -> dict[str, Region]:
        everything = Region(Table(self.arena.allocations), self.arena.bytes, 1, None, False)
        self.arena.fill(everything.data)
        parameters = Region(self.parameters, len(self.packed), 1, None, False)
        parameters.data[:] = np.frombuffer(bytes(self.packed), np.uint8)
        return {"global": everything, "const": everything, "param": parameters}

    def _write_back(self, memory: Memory) -> None:
        """Copy the bytes that the kernel wrote back to the arrays."""
        data = memory.spaces["global"].data
        for held in self.arrays:
            target = held.allocation
            if target.written:
                held.octets[:] = data[target.offset : target.offset + target.bytes]
        for variable, target in self.variables.items():
            if target.written:
                self.contents[variable] = kept = np.zeros(target.bytes, np.uint8)
                copy_blocks(data[target.offset : target.offset + target.bytes], kept)

    def _place_variables(self) -> None:
        """Place module variables; contents follow when all addresses are known."""
        shared, _, _ = shared_allocations(self.program.of_space("shared"), self.dynamic_bytes)
        allocations = self.variables
        for variable in self.program.of_space("global", "const"):
            allocations[variable] = allocation(variable, 0, 0)
            allocations[variable].writable = variable.space == "global"
            self.addresses[variable] = self.arena.add(allocations[variable], b"")
        self.addresses |= shared
        for declared, defined in self.program.variables.items():
            self.addresses[declared] = self.addresses[defined]
        self.arena.contents[1:] = [self._content(v) for v in allocations]
        self.constants = [m for v, m in allocations.items() if v.space == "const"]

    def _content(self, variable: ir.Variable) -> bytes | np.ndarray:
        """Return the bytes of a variable after the last launch, or its initial ones; none if all are zero."""
        if variable not in self.contents:
            return b"" if variable.initial is None else initial_bytes(variable, self._address_of)
        return self.contents[variable]

    def _address_of(self, symbol: Any) -> int:
        if isinstance(symbol, ir.Function):
            return self.program.code_address(symbol)
        if symbol in self.addresses:
            return self.addresses[symbol]
        raise EmulationError(f"{symbol} is declared but not defined")

    def _place_arguments(self, arguments: Sequence[object]) -> None:
        """Place arrays, and return the bytes of the parameters."""
        formals = [p for p in self.function.parameters if isinstance(p, ir.Variable)]
        if len(arguments) != len(formals):
            raise EmulationError(f"{self.function.name} takes {len(formals)} arguments, {len(arguments)} given")
        sizes = [(f.bytes, max(f.align or 1, f.type.bytes, 1)) for f in formals]
        addresses, end = spread(sizes, _PARAMETER_ZONE)
        self.packed = bytearray(end)
        self.spans: list[tuple[int, int, Allocation]] = []
        for formal, address, content in zip(formals, addresses, self._packed(formals, arguments), strict=True):
            self.addresses[formal] = address
            self.packed[address : address + len(content)] = content
        allocations = [allocation(f, p, p) for f, p in zip(formals, addresses, strict=True)]
        for each in allocations:
            each.writable = False
        self.parameters = Table(allocations)

    def _packed(self, formals: Sequence[ir.Variable], arguments: Sequence[object]) -> list[bytes]:
        arrays: dict[Key, tuple[str, Array]] = {
            (n,): (a.name or formals[n].name, a) for n, v in enumerate(arguments) if (a := _array(v)) is not None
        }
        structs = {n: v for n, v in enumerate(arguments) if isinstance(v, Struct)}
        arrays |= {(n, i): (name, a) for n, struct in structs.items() for i, name, a in struct.holders}
        tables = {key: a.owner for key, (_, a) in arrays.items() if isinstance(a.owner, AddressTable)}
        listed = {(*key, i): (name, a) for key, table in tables.items() for i, name, a in table.holders}
        addresses = self._place_arrays(arrays | listed)
        for key in listed:
            tables[key[:-1]].view(np.int64).flat[key[-1]] = int.from_bytes(addresses[key], "little")
        filled = {n: v.filled([addresses[n, i] for i, *_ in v.holders]) for n, v in structs.items()}
        return [
            (addresses[n,] if (n,) in addresses else argument_bytes(formal, filled.get(n, argument)))
            for n, (formal, argument) in enumerate(zip(formals, arguments, strict=True))
        ]

    def _place_arrays(self, arrays: dict[Key, tuple[str, Array]]) -> dict[Key, bytes]:
        """Return the bytes of each array's address; arrays that share memory are in one allocation."""
        addresses = {}
        for members in _sharing(arrays):
            low = min(arrays[n][1].span[0] for n in members)
            high = max(arrays[n][1].span[1] for n in members)
            name, array = arrays[members[0]]
            whole = Allocation(name, 0, high - low, 0, str(array.type or array.dtype), array.itemsize, array.shape)
            if len(members) > 1 or not array.contiguous:
                whole.shape = ((high - low) // max(1, array.itemsize),)
            whole.writable = not any(arrays[n][1].readonly for n in members)
            octets = _octets(low, high - low)
            start = self.arena.add(whole, octets, _misalignment(low, array))
            self.arrays.append(HeldArray(whole, octets, array.owner))
            for n in members:
                addresses[n] = (start + arrays[n][1].pointer - low).to_bytes(8, "little")
        return addresses


def _array(value: object) -> Array | None:
    if isinstance(value, Array):
        return value
    if isinstance(value, int | float | bytes | bytearray | np.generic | None):
        return None
    return describe(value)


def _sharing(arrays: dict[Key, tuple[str, Array]]) -> list[list[Key]]:
    """Group arrays whose extents overlap."""
    groups: list[tuple[int, list[Key]]] = []
    for number in sorted(arrays, key=lambda n: arrays[n][1].span):
        low, high = arrays[number][1].span
        if groups and low < groups[-1][0]:
            end, members = groups[-1]
            groups[-1] = (max(end, high), [*members, number])
        else:
            groups.append((high, [number]))
    return [members for _, members in groups]


def _octets(address: int, count: int) -> np.ndarray:
    """Return the bytes at an address of this process."""
    if not count:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(address))


def _misalignment(address: int, array: Array) -> int:
    """Return the distance of an array from the start of its owner's memory, which a GPU aligns to 256 bytes."""
    base = array.owner
    while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
        base = base.base
    return (address - base.ctypes.data) % 256 if isinstance(base, np.ndarray) else 0


def argument_bytes(formal: ir.Variable, argument: Any) -> bytes:
    """Return a number, or bytes, as the bytes of a parameter."""
    if argument is None:
        return bytes(formal.bytes)
    if isinstance(argument, bytes | bytearray):
        return bytes(argument)
    if isinstance(argument, np.generic):
        return _widened(argument.tobytes(), formal.bytes)
    if isinstance(argument, float):
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[formal.bytes], argument)
    return (int(argument) % (1 << 8 * formal.bytes)).to_bytes(formal.bytes, "little")


def _widened(content: bytes, size: int) -> bytes:
    return content[:size] + bytes(max(0, size - len(content)))
