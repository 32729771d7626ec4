"""Check launch arguments before anything runs, by the same rules on the emulator and on a GPU."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np

from ptxdsl.arrays import HOST, Array, Struct
from ptxdsl.runtime.shape import refuse
from ptxdsl.runtime.structs import argument_value
from ptxdsl.runtime.values import Bytes, Kind, Value, code, packed, shown, with_arrays
from ptxdsl.trace.parameters import Definition, Parameters, brief, is_alike, leaves, spelled
from ptxdsl.types import Pointer, bf16

Parameter: TypeAlias = tuple[str, Kind | Definition]  # a launch parameter: a group counts as one


class Signature:
    """The parameters of a kernel, and the check of arguments against them.

    `parameters` are the launch parameters. `names` and `kinds` are the PTX parameters; a field of a group has a name
    such as `a.data`. `written` names the pointers that the kernel may write through, or is None if that is unknown;
    their arrays must be writable and must not overlap another argument. Build one Signature per kernel: a check then
    takes a few microseconds per argument.
    """

    def __init__(self, kernel: str, parameters: Sequence[Parameter], written: Collection[str] | None = None) -> None:
        self.kernel, self.parameters = kernel, tuple(parameters)
        self.written, self.knows_written = frozenset(written or ()), written is not None
        flat = [leaf for parameter in parameters for leaf in leaves_of(*parameter)]
        self.names = tuple(name for name, _ in flat)
        self.kinds = tuple(kind for _, kind in flat)
        self._codes = tuple(map(code, self.kinds))
        self.has_groups = any(isinstance(kind, Definition) for _, kind in parameters)

    def flat(self, arguments: Sequence[Any]) -> Sequence[Any]:
        """Expand launch arguments to one argument per PTX parameter.

        Raises LaunchError for an argument that is not the group that the kernel expects.
        """
        if not self.has_groups:
            return arguments
        self._count(arguments, self.parameters)
        flat: list[Any] = []
        for (name, kind), argument in zip(self.parameters, arguments, strict=True):
            if not isinstance(kind, Definition):
                flat.append(argument)
                continue
            if not is_alike(argument, kind):
                refuse(f"`{name}` expects {kind}, got {_group_shown(argument, kind)}", f"write {spelled(kind)}")
            flat += argument.flat
        return flat

    def flattener(self) -> Callable[..., tuple[Any, ...]]:
        """Return `flat` as a single lambda, for arguments whose classes have already been checked."""
        names = [f"a{n}" for n in range(len(self.parameters))]
        kinds = [kind for _, kind in self.parameters]
        parts = [f"*{a}.flat" if isinstance(kind, Definition) else a for a, kind in zip(names, kinds, strict=True)]
        flattener: Callable[..., tuple[Any, ...]] = eval(
            f"lambda {', '.join(names)}: ({''.join(f'{p}, ' for p in parts)})"
        )
        return flattener

    @property
    def is_plain(self) -> bool:
        """True if `struct` alone converts every checked argument to its parameter."""
        return not any(isinstance(kind, Bytes) or kind is bf16 for kind in self.kinds)

    def slots(self) -> tuple[struct.Struct, tuple[int, ...]]:
        """Return the `struct` layout of all parameters, each aligned to 8 bytes, and the offset of each."""
        sizes = [(struct.calcsize(f"={letter}") + 7) // 8 * 8 for letter in self._codes]
        padded = [f"{c}{size - struct.calcsize(f'={c}')}x" for c, size in zip(self._codes, sizes, strict=True)]
        return struct.Struct("=" + "".join(padded)), tuple(sum(sizes[:n]) for n in range(len(sizes)))

    def pack(self, values: Sequence[int | float | bytes]) -> list[bytes]:
        """Pack checked values, with arrays replaced by their addresses, into the bytes of each parameter."""
        return [packed(kind, value) for kind, value in zip(self.kinds, values, strict=True)]

    def check(
        self,
        arguments: Sequence[object],
        device: int | None = None,
        stream: int = 0,
        locate: Callable[[int], int | None] = lambda address: None,
        may_overlap: bool = False,
    ) -> list[Value]:
        """Return one checked value per PTX parameter: an Array, an address, a number, bytes or a Struct.

        `device` is HOST for the emulator, a GPU number, or None for the GPU of the first array. `locate` returns the
        GPU of an address, for arrays that do not record it. An array that the kernel writes may overlap another
        argument only with `may_overlap`. Raises LaunchError for the first argument that does not fit.
        """
        self._count(arguments, list(zip(self.names, self.kinds, strict=True)))

        def located(array: Array) -> Array:
            return replace(array, device=locate(array.pointer)) if array.device is None else array

        values = [argument_value(*each, stream) for each in zip(self.names, self.kinds, arguments, strict=True)]
        values = [with_arrays(value, located) for value in values]
        self._check_devices(values, device)
        self._check_written(values, may_overlap)
        return values

    def arrays(self, values: Sequence[Value]) -> Iterator[tuple[str, Array, bool]]:
        """Yield (name, array, is_written) for each array among checked values, including arrays in structs."""
        for name, value in zip(self.names, values, strict=True):
            if isinstance(value, Array):
                yield name, value, name in self.written
            elif isinstance(value, Struct):
                for offset, path, array in value.holders:
                    yield path, array, bool(self.written & {name, f"{name}+{offset}"})

    def _count(self, arguments: Sequence[object], parameters: Sequence[Parameter]) -> None:
        if len(arguments) != len(parameters):
            takes = f"{len(parameters)} argument{'s' * (len(parameters) != 1)}"
            refuse(
                f"{self.kernel} takes {takes}, got {len(arguments)}",
                f"call it with ({', '.join(f'{name}: {kind}' for name, kind in parameters)})",
            )

    def _check_devices(self, values: Sequence[Value], device: int | None) -> None:
        arrays = [(name, array) for name, array, _ in self.arrays(values)]
        if device is None:
            device = next((a.device for _, a in arrays if a.device not in (HOST, None)), 0)
        for name, array in arrays:
            if array.device != device and (array.device is not None or device == HOST):
                is_host, unknown = array.device == HOST, array.device is None
                stands = "in host memory" if is_host else "on a GPU" if unknown else f"on cuda:{array.device}"
                runs = f"on cuda:{device}"
                help = f"move it to cuda:{device}; a launch with only numpy arrays runs on the emulator"
                if device == HOST:
                    runs, help = "on the emulator", "pass only numpy arrays, or only arrays on one GPU"
                refuse(f"`{name}` is {array} {stands}, but this launch runs {runs}", help)
        for name, kind, value in zip(self.names, self.kinds, values, strict=True) if device == HOST else ():
            if isinstance(kind, Pointer) and isinstance(value, int) and value != 0:
                refuse(
                    f"`{name}` is the address {value:#x}, which is not emulator memory",
                    "pass the numpy array itself",
                )

    def _check_written(self, values: Sequence[Value], may_overlap: bool) -> None:
        arrays = list(self.arrays(values))
        for name, array, is_written in arrays:
            if is_written and array.readonly:
                refuse(f"`{name}` is read-only, but {self.kernel} writes it", "pass a writable copy")
        for (name, array, is_written), (other_name, other, _) in permutations(arrays, 2):
            if is_written and not may_overlap and not same(array, other) and overlap(array, other):
                refuse(
                    f"`{name}`, which {self.kernel} writes, shares memory with `{other_name}`",
                    "pass separate memory for the output, since threads run in no fixed order; if the overlap is "
                    "intended, launch with overlap=True",
                )


def leaves_of(name: str, kind: Kind | Definition) -> Sequence[tuple[str, Kind]]:
    """Return the PTX parameters of a launch parameter."""
    return leaves(name, kind) if isinstance(kind, Definition) else [(name, kind)]


def _group_shown(argument: object, expected: Definition) -> str:
    """Describe an argument passed for a group; include the fields if its class has the expected name."""
    if not isinstance(argument, Parameters):
        return shown(argument)
    fields = ", ".join(f"{field.name}: {field}" for field in type(argument).fields_)
    return brief(argument) + f" with other fields ({fields})" * (type(argument).__name__ == expected.__name__)


def same(one: Array, other: Array) -> bool:
    """True if two arrays cover exactly the same memory, which is a deliberate in-place argument."""
    return one.pointer == other.pointer and one.span == other.span


def overlap(one: Array, other: Array) -> bool:
    """True if two arrays share a byte; interleaved views do not. Also true if numpy cannot decide cheaply."""
    (start, end), (other_start, other_end) = one.span, other.span
    if end <= other_start or other_end <= start or start == end or other_start == other_end:
        return False
    try:
        return bool(np.shares_memory(one.view(), other.view(), max_work=10_000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
