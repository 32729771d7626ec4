"""Generate one Python function per call, which checks arrays of the same layout and launches.

Torch and the driver take most of the microseconds of a call. The function therefore has no loops, and gives up if
anything but the addresses and numbers differs from the call that it was generated for; the full check then decides. For
`gemm(a, b)` with torch tensors it is

    def launch(arrays, numbers):
        a0, a1, a2, a3 = arrays
        if not alike(a1, a2): return None
        stream = current_stream()
        a0 = make(a1)
        p0 = a0.data_ptr()
        p1 = a1.data_ptr()
        p2 = a2.data_ptr()
        addresses = p0, p1, p2
        config0 = config_of0(stream)
        buffer0, parameters0, packed0, _ = slots0.kept
        if addresses != packed0[0] or numbers != packed0[2] or numbers[1] is not packed0[2][1]:
            if numbers != known and not may_replace(numbers, known): return None
            if (p0 | p1 | p2) % 16: return None
            packed0[0], packed0[1] = None, addresses
            pack_into0(buffer0, 0, p1, 64, p2, …)
            if packed0[1] is not addresses: return None
            packed0[0], packed0[2] = addresses, numbers
        (status,) = run0(config0, function0, parameters0, 0)
        if status: again0(status, config0, parameters0)
        return a0

Arrays at the same addresses as in the last call of this thread are not checked and packed again. Equal numbers may be
zeros of different sign, which are compared by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from ptxdsl.arrays import Library
from ptxdsl.kernels.call.launching.memory import ALIGNMENT
from ptxdsl.kernels.call.matrix import ArrayArgument, MappedMatrix, maker
from ptxdsl.runtime.quick import EXACT, LaunchText, compiled

Launch: TypeAlias = Callable[[Any, tuple[float, ...]], Any]


class KernelLaunch(NamedTuple):
    """The launch of one kernel: the objects that its code uses, its arguments, the span of those that are numbers of
    the call, and the arrays that it writes."""

    parts: dict[str, Any]
    arguments: tuple[Any, ...]
    numbers: slice
    written: Sequence[ArrayArgument]

    @property
    def arrays(self) -> list[ArrayArgument]:
        return [argument for argument in self.arguments if isinstance(argument, ArrayArgument)]


class WrittenLaunch:
    """A generated launch function, which is compiled at its first use: many calls are made only once. It keeps no array
    of the call that it was generated for."""

    __slots__ = ("launch",)
    launch: Launch

    def __init__(self, text: CallText) -> None:
        source, scope = str(text), text.constants

        def compiled_now(arrays: Any, numbers: tuple[float, ...]) -> Any:
            self.launch = compiled(source, scope, "<call of a product>")
            return self.launch(arrays, numbers)

        self.launch = compiled_now


def may_replace(numbers: tuple[float, ...], known: tuple[float, ...]) -> bool:
    """Return True if a launch with known numbers can be made with others: the same of them are 0, and none is an int
    that a float parameter may round."""
    are_exact = all(type(number) is float or abs(number) <= EXACT["f32"] for number in numbers)
    return are_exact and [number == 0 for number in numbers] == [number == 0 for number in known]


class CallText(LaunchText):
    """The source of the launches of a call, one kernel after the other.

    `arrays` are those of the call, the first of which is the output, None if the call makes it as it made `out`. A
    launch with a workspace is bound to `stream`.
    """

    give_up = "return None"

    def __init__(
        self,
        launches: Sequence[KernelLaunch],
        arrays: Sequence[Any],
        out: Any,
        numbers: tuple[float, ...],
        stream: int | None,
        library: Library,
    ) -> None:
        self.launches, self.library, self.numbers, self.stream = launches, library, numbers, stream
        self.arrays, self.makes_out = (out, *arrays[1:]), arrays[0] is None
        passed = [n for n, array in enumerate(arrays) if array is not None]
        self.first = {n: next(m for m in passed if arrays[m] is arrays[n]) for n in passed}
        self.known = [n for n in passed if self.first[n] == n]
        self.looks = {n: library.look(self.arrays[n]) for n in sorted({0, *self.known})}
        self.by_array = {self._position(argument): argument for launch in launches for argument in launch.arrays}
        self.alike = library.alike([arrays[n] for n in self.known])
        make = maker(library.name, out.shape, out.dtype)
        current_stream = library.current_stream(int(library.device(out)))
        self.constants = {"known": numbers, "may_replace": may_replace, "make": make, "current_stream": current_stream}

    def __str__(self) -> str:
        body = [
            f"{', '.join(f'a{n}' for n in range(len(self.arrays)))} = arrays",
            *self.unless(*(f"a{n} is not a{first}" for n, first in self.first.items() if n != first)),
            *self._layouts(),
            "stream = current_stream()",
            *self.unless(*([] if self.stream is None else [f"stream != {self.stream}"])),
            *(["a0 = make(a1)"] if self.makes_out else []),
            *(f"p{n} = {self.library.pointer.format(f'a{n}')}" for n in self.looks),
            f"addresses = ({''.join(f'p{n}, ' for n in self.looks)})",
            *(line for n, launch in enumerate(self.launches) for line in self._prepared(n, launch)),
            *self.packing(
                "addresses",
                " or ".join(["addresses != packed0[0]", *self._other_numbers()]),
                self._checks(),
                {str(n): ", ".join(self._packed(n, launch)) for n, launch in enumerate(self.launches)},
                "packed0[0], packed0[2] = addresses, numbers",
            ),
            *(line for n in range(len(self.launches)) for line in self.launching(str(n))),
            "return a0",
        ]
        return "\n    ".join(["def launch(arrays, numbers):", *body])

    def _position(self, argument: ArrayArgument) -> int:
        return next(n for n, array in enumerate(self.arrays) if array is argument.owner)

    def _layouts(self) -> list[str]:
        """Return the test of the layouts: for all arrays at once if the library can do that. The joint test takes no
        array twice."""
        if self.alike is not None:
            self.constants["alike"] = self.alike
            return self.unless(f"not alike({', '.join(f'a{n}' for n in self.known)})")
        self.constants |= {"look": self.library.look, **{f"layout{n}": self.looks[n][0] for n in self.known}}
        return self.unless(*(f"look(a{n})[0] != layout{n}" for n in self.known))

    def _other_numbers(self) -> list[str]:
        """Return tests that are true if numbers differ from those that are packed, also in the sign of a zero."""
        zeros = [n for n, number in enumerate(self.numbers) if number == 0]
        differ = ["numbers != packed0[2]"] if self.numbers else []
        return differ + [f"numbers[{n}] is not packed0[2][{n}]" for n in zeros]

    def _checks(self) -> list[str]:
        """Return the tests of addresses and numbers that differ from those that are packed."""
        others = ["numbers != known and not may_replace(numbers, known)"] if self.numbers else []
        return [*self.unless(*others), *self.unless(*self._misaligned()), *self.unless(*self._overlaps())]

    def _misaligned(self) -> list[str]:
        """Return one test for all arrays that are aligned, and one for each other array."""
        alignments = {n: address % ALIGNMENT for n, (_, address) in self.looks.items()}
        even = [f"p{n}" for n, alignment in alignments.items() if not alignment]
        odd = [f"p{n} % {ALIGNMENT} != {alignment}" for n, alignment in alignments.items() if alignment]
        return [f"({' | '.join(even)}) % {ALIGNMENT}"] * bool(even) + odd

    def _overlaps(self) -> list[str]:
        """Return tests for arrays that began at one address and do not now, and for overlaps of what a kernel writes. A
        new output overlaps nothing."""
        addresses = {n: address for n, (_, address) in self.looks.items()}
        same = [pair for pair in combinations(addresses, 2) if addresses[pair[0]] == addresses[pair[1]]]
        written = {self._position(argument) for launch in self.launches for argument in launch.written}
        pairs = [pair for pair in combinations(self.by_array, 2) if written & {*pair} and pair not in same]
        bounds = {
            pair: _overlap(*(self.by_array[n] for n in pair)) for pair in pairs if not self.makes_out or all(pair)
        }
        return [f"p{one} != p{other}" for one, other in same] + [
            f"{low} < p{one} - p{other} < {high}" for (one, other), (low, high) in bounds.items()
        ]

    def _prepared(self, n: int, launch: KernelLaunch) -> list[str]:
        """Return the statements that load a kernel's launch configuration and the memory of its parameters."""
        self.constants.update((f"{name}{n}", value) for name, value in launch.parts.items())
        return [f"config{n} = config_of{n}(stream)", f"buffer{n}, parameters{n}, packed{n}, _ = slots{n}.kept"]

    def _packed(self, n: int, launch: KernelLaunch) -> list[str]:
        """Return an expression for each parameter: an address, a tensor map, a number of the call, or a constant."""
        values = [self._parameter(f"{n}_{k}", argument) for k, argument in enumerate(launch.arguments)]
        for number, k in enumerate(range(len(values))[launch.numbers]):
            values[k] = f"numbers[{number}]"
        return values

    def _parameter(self, suffix: str, argument: Any) -> str:
        if isinstance(argument, MappedMatrix):
            self.constants[f"map{suffix}"] = argument.encoder()
            return f"map{suffix}(p{self._position(argument)})"
        if isinstance(argument, ArrayArgument):
            return f"p{self._position(argument)}"
        if type(argument) is int:
            return str(argument)
        self.constants[f"v{suffix}"] = argument
        return f"v{suffix}"


def _overlap(one: ArrayArgument, other: ArrayArgument) -> tuple[int, int]:
    """Return the bounds between which the difference of two addresses means that the arrays overlap."""
    (low, high), (other_low, other_high) = (
        (first - argument.array.pointer, last - argument.array.pointer)
        for argument in (one, other) for first, last in [argument.array.span]
    )  # fmt: skip
    return other_low - high, other_high - low
