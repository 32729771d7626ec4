"""Launch records of library calls: one or several kernels, for arrays of one layout.

The generated function gives up if anything but the addresses and numbers differs from the call that it was generated
for; the full check then decides. For `gemm(a, b)` with torch tensors it is

    def launch(arrays, numbers):
        a0, a1, a2, a3 = arrays
        if not alike(a1, a2): return None
        stream = current_stream()
        a4 = make4(a1)
        p1 = a1.data_ptr()
        p2 = a2.data_ptr()
        p4 = a4.data_ptr()
        key = (p1, p2, p4, )
        config0 = config_of0(stream)
        buffer0, parameters0, packed0, _ = slots0.kept
        if key != packed0[0] or numbers != packed0[2] or numbers[1] is not packed0[2][1]:
            if numbers != known and not may_replace(numbers, known): return None
            if (p1 | p2 | p4) % 16: return None
            packed0[0], packed0[1] = None, key
            pack_into0(buffer0, 0, p1, 64, p2, …)
            if packed0[1] is not key: return None
            packed0[0], packed0[2] = key, numbers
        (status,) = run0(config0, function0, parameters0, 0)
        if status: again0(status, config0, parameters0)
        return a4

Equal numbers may be zeros of different sign, which are compared by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from ptxdsl.arrays import Library
from ptxdsl.kernels.call.launching.memory import ALIGNMENT
from ptxdsl.kernels.call.matrix import ArrayArgument, MappedMatrix, allocator
from ptxdsl.runtime.record import EXACT, compiled, launch_source, overlap, unless

Launch: TypeAlias = Callable[[Any, tuple[float, ...]], Any]


class KernelLaunch(NamedTuple):
    """The launch of one kernel: the objects that its code uses, its arguments, the span of those that are numbers of
    the call, and the arrays that it writes."""

    parts: dict[str, Any]
    arguments: tuple[Any, ...]
    numbers: slice
    written: Sequence[ArrayArgument]


class LazyLaunch:
    """The function of a record, which is compiled at its first use: many calls are made only once. It keeps no array of
    the call that it was generated for."""

    __slots__ = ("launch",)
    launch: Launch

    def __init__(self, record: CallRecord) -> None:
        source, scope = record.source(), record.constants

        def compiled_now(arrays: Any, numbers: tuple[float, ...]) -> Any:
            self.launch = compiled(source, scope, "<call of a product>")
            return self.launch(arrays, numbers)

        self.launch = compiled_now


def may_replace(numbers: tuple[float, ...], known: tuple[float, ...]) -> bool:
    """Return True if a launch with known numbers can be made with others: the same of them are 0, and none is an int
    that a float parameter may round."""
    are_exact = all(type(number) is float or abs(number) <= EXACT["f32"] for number in numbers)
    return are_exact and [number == 0 for number in numbers] == [number == 0 for number in known]


class CallRecord:
    """A call that launches kernels one after the other, to repeat with arrays of the same layout.

    `arrays` are those of the call, None for those that it was not given, and `out` is what it returns: an array, or a
    tuple of several. Each launch allocates the arrays that it returns or passes to a kernel and that the call was not
    given. A launch with a workspace is bound to `stream`.
    """

    def __init__(
        self,
        launches: Sequence[KernelLaunch],
        arrays: Sequence[Any],
        out: Any,
        numbers: tuple[float, ...],
        stream: int | None,
        library: Library,
    ) -> None:
        self.launches, self.numbers, self.stream, self.library = launches, numbers, stream, library
        passed = [n for n, array in enumerate(arrays) if array is not None]
        results = out if isinstance(out, tuple) else (out,)
        used = [*results, *(x.owner for launch in launches for x in launch.arguments if isinstance(x, ArrayArgument))]
        allocated = {id(array): array for array in used if not any(array is arrays[n] for n in passed)}
        self.arrays, self.argument_count = (*arrays, *allocated.values()), len(arrays)
        self.allocated = range(len(arrays), len(self.arrays))
        self.result = ", ".join(f"a{self._number(array)}" for array in results)
        self.by_array = {
            self._number(argument.owner): argument
            for launch in launches for argument in launch.arguments if isinstance(argument, ArrayArgument)
        }  # fmt: skip
        self.first = {n: next(m for m in passed if arrays[m] is arrays[n]) for n in passed}
        self.compared_arrays = [n for n in passed if self.first[n] == n]
        self.known_addresses = {n: library.address(self.arrays[n]) for n in (*self.compared_arrays, *self.allocated)}
        self.constants: dict[str, Any] = {
            "known": numbers,
            "may_replace": may_replace,
            "alike": library.alike([arrays[n] for n in self.compared_arrays]),
            "current_stream": library.current_stream(int(library.device(results[0]))),
        }
        for n in self.allocated:
            self.constants[f"make{n}"] = allocator(library.name, self.arrays[n].shape, self.arrays[n].dtype)
        for n, launch in enumerate(launches):
            self.constants.update((f"{name}{n}", value) for name, value in launch.parts.items())

    def _number(self, owner: Any) -> int:
        return next(n for n, array in enumerate(self.arrays) if array is owner)

    def source(self) -> str:
        """Return the source of the function; the names that it uses are in `constants`."""
        kept = "packed0[0], packed0[2] = key, numbers"
        checks, packed, results = self._checks(), self._packed(), ("None", self.result)
        return launch_source("arrays, numbers", self._compared(), self._is_new(), checks, packed, kept, results)

    def _compared(self) -> list[str]:
        return [
            f"{', '.join(f'a{n}' for n in range(self.argument_count))} = arrays",
            *unless((f"a{n} is not a{first}" for n, first in self.first.items() if n != first), None),
            *unless([f"not alike({', '.join(f'a{n}' for n in self.compared_arrays)})"], None),
            "stream = current_stream()",
            *unless([] if self.stream is None else [f"stream != {self.stream}"], None),
            *(f"a{n} = make{n}(a1)" for n in self.allocated),
            *(f"p{n} = {self.library.pointer.format(f'a{n}')}" for n in self.known_addresses),
            f"key = ({''.join(f'p{n}, ' for n in self.known_addresses)})",
            *(f"config{n} = config_of{n}(stream)" for n in range(len(self.launches))),
            *(f"buffer{n}, parameters{n}, packed{n}, _ = slots{n}.kept" for n in range(len(self.launches))),
        ]

    def _is_new(self) -> str:
        """Return an expression that is true if the parameters are not those that were packed last."""
        zeros = [n for n, number in enumerate(self.numbers) if number == 0]
        differ = ["numbers != packed0[2]"] if self.numbers else []
        return " or ".join(["key != packed0[0]", *differ, *(f"numbers[{n}] is not packed0[2][{n}]" for n in zeros)])

    def _checks(self) -> list[str]:
        """Return the statements that check addresses and numbers that differ from those that were packed last."""
        others = ["numbers != known and not may_replace(numbers, known)"] if self.numbers else []
        return [*unless(others, None), *unless(self._misaligned(), None), *unless(self._overlaps(), None)]

    def _misaligned(self) -> list[str]:
        """Return one test for all arrays that are aligned, and one for each other array."""
        alignments = {n: address % ALIGNMENT for n, address in self.known_addresses.items()}
        even = [f"p{n}" for n, alignment in alignments.items() if not alignment]
        odd = [f"p{n} % {ALIGNMENT} != {alignment}" for n, alignment in alignments.items() if alignment]
        return [f"({' | '.join(even)}) % {ALIGNMENT}"] * bool(even) + odd

    def _overlaps(self) -> list[str]:
        """Return tests for arrays that began at one address and do not now, and for overlaps of what a kernel writes.
        An array that the launch makes overlaps nothing."""
        addresses = {n: address for n, address in self.known_addresses.items() if n not in self.allocated}
        same = [pair for pair in combinations(addresses, 2) if addresses[pair[0]] == addresses[pair[1]]]
        written = {self._number(argument.owner) for launch in self.launches for argument in launch.written}
        passed = [n for n in self.by_array if n not in self.allocated]
        pairs = [pair for pair in combinations(passed, 2) if written & {*pair} and pair not in same]
        spans = {n: (*argument.array.span, argument.array.pointer) for n, argument in self.by_array.items()}
        reaches = {n: (low - pointer, high - pointer) for n, (low, high, pointer) in spans.items()}
        return [*(f"p{one} != p{other}" for one, other in same), *(overlap(reaches, *pair) for pair in pairs)]

    def _packed(self) -> dict[str, list[str]]:
        """Return expressions for the parameters of each kernel."""
        packed = {}
        for n, launch in enumerate(self.launches):
            values = [self._parameter(f"{n}_{k}", argument) for k, argument in enumerate(launch.arguments)]
            for number, k in enumerate(range(len(values))[launch.numbers]):
                values[k] = f"numbers[{number}]"
            packed[str(n)] = values
        return packed

    def _parameter(self, suffix: str, argument: Any) -> str:
        """Return the expression for a parameter: an address, a tensor map, or a constant."""
        if isinstance(argument, MappedMatrix):
            self.constants[f"map{suffix}"] = argument.encoder()
            return f"map{suffix}(p{self._number(argument.owner)})"
        if isinstance(argument, ArrayArgument):
            return f"p{self._number(argument.owner)}"
        if type(argument) is int:
            return str(argument)
        self.constants[f"v{suffix}"] = argument
        return f"v{suffix}"
