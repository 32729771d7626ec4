"""The state of a stopped launch: registers by name, shared memory through layouts, and the state of all threads."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ptxdsl import ir
from ptxdsl.emulate.memory.regions import Allocation
from ptxdsl.emulate.report import Thread, shown
from ptxdsl.emulate.run.deadlock import standing_lines
from ptxdsl.emulate.run.frames import Frame
from ptxdsl.emulate.run.machine import Machine
from ptxdsl.emulate.run.residents import WARP
from ptxdsl.emulate.run.view import MachineView, Number, Standing, decoded
from ptxdsl.errors import Error
from ptxdsl.notes import SharedArray
from ptxdsl.runtime.variant import Variant
from ptxdsl.trace.named import PythonNames
from ptxdsl.types import TYPES, Type

_NUMBERED = re.compile(r"%?[a-z]{1,3}\d+")  # of registers that have no Python name
_SLICE = re.compile(r"\s*(-?\d{1,18})?\s*:\s*(-?\d{1,18})?\s*(?::\s*(-?\d{1,18})?\s*)?")
_NUMBER = re.compile(r"\s*-?\d{1,18}\s*")
Value = Number | tuple[Number, ...]
UNWRITTEN = "-"


@dataclass(frozen=True, slots=True)
class RegisterValue:
    """A register of a thread: its PTX name, type and value; the value is None if the thread has not written it.

    `points` names the array element at that address, if there is one. `in_flight` is the wgmma that will write it;
    until wgmma.wait_group the register has no value.
    """

    name: str
    type: Type
    value: Value | None
    points: str = ""
    in_flight: str = ""

    def __str__(self) -> str:
        return f"{self.name} = {self.text}"

    @property
    def text(self) -> str:
        if self.in_flight:
            return f"in flight: {self.in_flight}"
        if self.value is None:
            return "not written yet"
        if self.type.kind == "b" and isinstance(self.value, int):
            return f"{self.value:#0{self.type.bits // 4 + 2}x}"
        return f"{shown(self.value)} -> {self.points}" if self.points else shown(self.value)


@dataclass(frozen=True, slots=True)
class SharedContent:
    """An array in shared memory, or a part of it: `values` in the shape of its layout, and flags of initialised
    elements.

    `axes` are the indices of the values in the whole array, for each axis of `values`.
    """

    name: str
    type: Type
    values: np.ndarray
    written: np.ndarray
    axes: tuple[range, ...]

    def __str__(self) -> str:
        if not self.values.ndim:
            return f"{self.name}: {self.type} {shown(self.values.item()) if self.written else UNWRITTEN}"
        rows = self.values.reshape(-1, self.values.shape[-1] if self.values.ndim > 1 else self.values.size)
        flags = self.written.reshape(rows.shape)
        texts = [
            [shown(value) if is_written else UNWRITTEN for value, is_written in zip(*row, strict=True)]
            for row in zip(rows.tolist(), flags, strict=True)
        ]
        width = max((len(text) for row in texts for text in row), default=1)
        labels = [str(index) for index in product(*self.axes[:-1])] if self.values.ndim > 1 else [""]
        margin = max(map(len, labels), default=0)
        shape = " x ".join(map(str, self.values.shape))
        lines = [
            f"{label.strip('(),'):>{margin}} " + " ".join(f"{text:>{width}}" for text in row)
            for label, row in zip(labels, texts, strict=True)
        ]
        return "\n".join([f"{self.name}: {shape} {self.type}", *(line.rstrip() for line in lines)])


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """The part that an index selects: its text, the indices that remain of each axis, and numpy's index."""

    text: str
    axes: tuple[range, ...]
    index: tuple[int | slice, ...] = ()


class Inspection:
    """The inspection of a stopped launch."""

    def __init__(self, machine: Machine, variant: Variant, names: Callable[[], PythonNames]) -> None:
        self.machine, self.variant, self.view, self.names = machine, variant, MachineView(machine), names
        traced = [f for f in variant.module.functions if f.name == variant.name]
        self.types = {r.name: r.type for f in traced for r in f.registers}

    @staticmethod
    def lane_of(machine: Machine, thread: Thread) -> int | None:
        return MachineView(machine).lane(thread)

    def standing(self, thread: Thread) -> Standing | None:
        """Return the state of a thread; None if it has ended or its block has not started."""
        lane = self.view.lane(thread)
        return None if lane is None else self.view.standing(lane)

    def where(self) -> list[str]:
        """Return the state of all threads: running, ready or waiting, and for what."""
        x = self.machine.processor
        return standing_lines(self.machine, x, None if x.group is None else x.group.lanes)

    def backtrace(self, thread: Thread) -> list[str]:
        """Return the location of a thread and the calls that led there, innermost first, including inlined Python
        functions.
        """
        self._frame_of(thread)
        standing = self.standing(thread)
        lines: list[str] = []
        while standing is not None:
            frame, location = standing.frame, standing.step.location
            for each in location.chain() if location is not None else ():
                lines.append(f"{each}  in {each.function or frame.code.function.name}")
            standing = None if frame.parent is None else Standing(frame.parent, frame.site)
        return [f"#{number} {line}" for number, line in enumerate(lines)]

    # Registers

    def registers(self, thread: Thread, numbered: bool = False) -> list[RegisterValue]:
        """Return the registers that a thread has written; without `numbered`, only those with a Python name."""
        lane, frame = self._frame_of(thread)
        slots = enumerate(frame.code.slots.registers)
        named = [slot for slot, register in slots if numbered or not _NUMBERED.fullmatch(register.name)]
        return [self._read(frame, slot, lane, None) for slot in named if self.view.written(frame, slot, lane)]

    def values(self, name: str, thread: Thread, type: str | None = None) -> list[RegisterValue]:
        """Return the registers with a name, for a thread: several for a Python name that was assigned again, or for a
        list.
        """
        lane, frame = self._frame_of(thread)
        elements = self._elements(name)
        slots = [slot for each in elements or [name] for slot in self._slots(frame, each)]
        return [self._read(frame, slot, lane, _type(type)) for slot in slots]

    def value(self, name: str, thread: Thread, type: str | None = None) -> Value:
        """Return the value of one register; of several with the name, the last that the thread has written."""
        lane, frame = self._frame_of(thread)
        known = [self._read(frame, slot, lane, _type(type)) for slot in self._slots(frame, name)]
        written = [each.value for each in known if each.value is not None]
        if flying := next((each.in_flight for each in known if each.in_flight), ""):
            raise Error(
                f"`{name}` is an accumulator of {flying}, which is in flight", help="step past wgmma.wait_group first"
            )
        if not written:
            raise Error(f"{thread} has not written `{name}` ({known[0].name}) yet", help="step to the line behind it")
        return written[-1]

    def warp(self, name: str, thread: Thread, type: str | None = None) -> list[Value | None]:
        """Return the values of a register in the lanes of the thread's warp."""
        lane, frame = self._frame_of(thread)
        first, wanted = lane // WARP * WARP, _type(type)
        last = self._last(frame, self._slots(frame, name), lane)
        exists = self.machine.residents.exists
        lanes = range(first, first + WARP)
        return [self._read(frame, last, each, wanted).value if exists[each] else None for each in lanes]

    def choice(self, name: str, thread: Thread) -> tuple[str, list[str]]:
        """Return the register that `warp` shows for a name, and all registers with that name in text order."""
        lane, frame = self._frame_of(thread)
        slots, registers = self._slots(frame, name), frame.code.slots.registers
        return registers[self._last(frame, slots, lane)].name, [registers[slot].name for slot in slots]

    def _last(self, frame: Frame, slots: Sequence[int], lane: int) -> int:
        """Return the last register in the text, of several, that a thread has written."""
        return max(slots, key=lambda slot: (self.view.written(frame, slot, lane), slot))

    def _read(self, frame: Frame, slot: int, lane: int, wanted: Type | None) -> RegisterValue:
        register: ir.Register = frame.code.slots.registers[slot]
        type = wanted or self.types.get(register.name, register.type)
        if (product := self.view.in_flight(frame, slot, lane)) is not None:
            return RegisterValue(register.name, type, None, in_flight=product.opcode.text)
        if not self.view.written(frame, slot, lane):
            return RegisterValue(register.name, type, None)
        raw = self.view.raw(frame, slot, lane)
        if type.bits > 8 * len(raw):
            raise Error(f"{register.name} has {8 * len(raw)} bits; {type} has {type.bits}")
        values = decoded(raw, type)
        points = self._points(values[0]) if type.name in ("u64", "s64", "b64") else ""
        return RegisterValue(register.name, type, values[0] if len(values) == 1 else values, points)

    def _points(self, address: Number) -> str:
        holder = self.machine.memory.spaces["global"].table.holder(int(address), int(address))
        return "" if holder is None else holder.at(int(address))

    def _slots(self, frame: Frame, name: str) -> list[int]:
        """Return the registers with a name, in the order of the text."""
        if not isinstance(name, str):
            raise Error(f"a register has a name; found {name!r}", help="such as `total`, or `%r3` of PTX")
        registers = frame.code.slots.registers
        exact = [slot for slot, r in enumerate(registers) if r.name == name]
        if exact and (name.startswith("%") or _NUMBERED.fullmatch(name)):
            return exact
        same, known = re.compile(rf"%?{re.escape(name)}(_\d+)?"), self.names().registers
        wanted = known.get(name, ())
        slots = [slot for slot, r in enumerate(registers) if r.name in wanted or same.fullmatch(r.name)]
        if not slots:
            named = (r.name.lstrip("%") for r in registers if not _NUMBERED.fullmatch(r.name))
            names = dict.fromkeys([*named, *known])
            raise Error(f"{frame.code.function.name} has no register `{name}`", help=_nearest(name, list(names)))
        return slots

    def _elements(self, name: str) -> list[str]:
        """Return the names of the elements of a Python list, in order; empty if the name is a register's."""
        known = self.names().registers
        inside = re.compile(rf"{re.escape(name)}(\[\d+\])+")
        return [] if name in known else [each for each in known if inside.fullmatch(each)]

    def _frame_of(self, thread: Thread) -> tuple[int, Frame]:
        lane = self.view.lane(thread)
        standing = None if lane is None else self.view.standing(lane)
        if lane is None or standing is None:
            state = "has ended" if self.view.has_started(thread) else "has not begun"
            raise Error(f"{thread} {state}, and has no registers", help="choose another thread")
        return lane, standing.frame

    # Memory

    def shared(self, name: str, thread: Thread, most: int | None = None) -> SharedContent:
        """Return an array in the shared memory of a thread's block, or a part of it: 'tile[0:8, 3]'. Raises Error for
        one with more than `most` elements.
        """
        lane = self.view.lane(thread)
        if lane is None:
            raise Error(f"block {thread.block_text} does not run, and has no shared memory", help="choose another one")
        array, index = self._shared_array(name)
        holder = next(a for a in self._allocations() if a.name == array.variable)
        bytes = max(1, array.element.bytes)
        offsets, wanted = _of_part(array, (holder.bytes - array.offset) // bytes, index, most)
        slot = int(self.machine.residents.slot[lane])
        count = (int(offsets.max(initial=-1)) + 1) * bytes
        data, written = self.view.bytes_of("shared", holder.offset + array.offset, count, slot)
        values = np.array([decoded(data[o * bytes :][:bytes].tobytes(), array.element)[0] for o in offsets.flat])
        flags = np.all(written.reshape(-1, bytes), axis=1)
        called = f"{array.name}{wanted.text}"
        flags = np.asarray(flags[offsets])
        return SharedContent(called, array.element, values.reshape(offsets.shape), flags, wanted.axes)

    def memory(self, name: str, first: int = 0, count: int = 8) -> list[Value]:
        """Return elements of an array among the arguments, or of a variable in global memory."""
        table = self.machine.memory.spaces["global"].table
        known = {a.name: a for a in table.allocations if a.name != "workspace"}
        if name not in known:
            raise Error(f"there is no array `{name}`", help=_nearest(name, list(known)))
        array, size = known[name], known[name].element_bytes
        if first * size >= array.bytes:
            raise Error(f"{name}[{first}] lies behind its end: {name} has {array.elements}")
        end = min(array.bytes, (first + count) * size)
        data, _ = self.view.bytes_of("global", array.offset + first * size, end - first * size)
        type = TYPES.get(array.element) or TYPES[f"b{8 * size}"]
        values = [decoded(data[at : at + size].tobytes(), type) for at in range(0, len(data), size)]
        return [each[0] if len(each) == 1 else each for each in values]

    def _allocations(self) -> Sequence[Allocation]:
        return self.machine.launch.shared.allocations

    def shared_names(self) -> list[str]:
        return [array.name for array in self._arrays()]

    def _arrays(self) -> Iterator[SharedArray]:
        """Return the arrays of the kernel by their Python names; for PTX, its variables."""
        known = self.names().arrays
        yield from known.values()
        starts = {(array.variable, array.offset) for array in known.values()}
        yield from (array for array in self.variant.arrays if (array.variable, array.offset) not in starts)
        if not known and not self.variant.arrays:
            for a in self._allocations():
                yield SharedArray(a.name, a.name, 0, TYPES.get(a.element, TYPES["b8"]), None)

    def _shared_array(self, name: str) -> tuple[SharedArray, str]:
        """Return an array and the index after its name; a Python name may itself end with an index, in a list of
        arrays.
        """
        known = {array.name: array for array in self._arrays()}
        if name in known:
            return known[name], ""
        first, bracket, rest = name.rpartition("[")
        called = first.rstrip() if bracket and rest.rstrip().endswith("]") else name
        if called not in known:
            raise Error(f"{self.variant.name} has no shared array `{called}`", help=_nearest(called, list(known)))
        return known[called], f"[{rest.rstrip()}"


def _of_part(array: SharedArray, count: int, index: str, most: int | None) -> tuple[np.ndarray, ArrayPart]:
    """Return the offsets of the elements of a part of an array, in elements from its start."""
    offsets = array.offsets(count)
    wanted = _part(array.name, index, offsets.shape)
    elements = np.asarray(offsets[wanted.index])
    if most is not None and elements.size > most:
        raise Error(
            f"{array.name}{index} has {elements.size} elements, too many for a terminal",
            help=f"take a part of it, such as {_example(array.name, offsets.shape)}, or use pd.debug",
        )
    return elements, wanted


def _part(name: str, text: str, shape: tuple[int, ...]) -> ArrayPart:
    """Return the part of an array of a shape that `text` names, '[0:8, 3]' or nothing. Raises Error for an invalid
    one.
    """
    if not text:
        return ArrayPart("", tuple(map(range, shape)))
    inside = text.strip()[1:-1]
    index = tuple(_item(name, item, shape) for item in inside.removesuffix(",").split(","))
    extents = " x ".join(map(str, shape))
    if len(index) > len(shape):
        help = f"write {_example(name, shape)}"
        raise Error(f"{name}{text} has {len(index)} indices; {name} is {extents}", help=help)
    axes = []
    for item, extent in zip(index, shape, strict=False):
        if isinstance(item, slice):
            axes.append(range(extent)[item])
        elif not -extent <= item < extent:
            raise Error(f"{name}{text} lies outside of {name}, which is {extents}")
    axes += [range(extent) for extent in shape[len(index) :]]
    if not all(axes):
        raise Error(f"{name}{text} has no elements; {name} is {extents}")
    return ArrayPart(text, tuple(axes), index)


def _item(name: str, text: str, shape: tuple[int, ...]) -> int | slice:
    if _NUMBER.fullmatch(text):
        return int(text)
    match = _SLICE.fullmatch(text)
    if match is None or (match[3] is not None and int(match[3]) == 0):
        raise Error(
            f"`{text.strip()}` is no index of {name}", help=f"ints and slices are, such as {_example(name, shape)}"
        )
    return slice(*(None if number is None else int(number) for number in match.groups()))


def _example(name: str, shape: tuple[int, ...]) -> str:
    """Return a part of an array that fits a terminal."""
    last = [f"0:{min(8, extent)}" for extent in shape[-2:]]
    return f"`{name}[{', '.join(['0'] * (len(shape) - len(last)) + last)}]`"


def _type(name: str | None) -> Type | None:
    if name is None:
        return None
    if name not in TYPES or TYPES[name].bits % 8:
        raise Error(f"there is no type `{name}` to read a register as", help="such as f32, s16, f16x2 or b64")
    return TYPES[name]


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 3)
    if near:
        return "did you mean " + " or ".join(f"`{n}`" for n in near) + "?"
    return f"there is {', '.join(known)}" if known else "there is none"
