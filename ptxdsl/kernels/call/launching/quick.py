"""Generate one Python function per call, which checks arrays of the same layout and launches.

Torch and the driver take most of the microseconds of a call. The function therefore has no loops, and gives up if
anything differs from the arrays that it was generated for; the slower ways then decide. For `gemm(a, b)` with torch
tensors it is

    def launch(arrays, numbers):
        a0, a1, a2, a3 = arrays
        if numbers != known or not alike(a1, a2): return None
        stream = current_stream()
        a0 = make(a1)
        p0 = a0.data_ptr()
        p1 = a1.data_ptr()
        p2 = a2.data_ptr()
        addresses = p0, p1, p2
        config0 = config_of0(stream)
        buffer0, parameters0, packed0, _ = slots0.kept
        if addresses != packed0[0] or numbers[1] is not packed0[2][1]:
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
from functools import partial
from typing import Any, TypeAlias

from ptxdsl.arrays import Library
from ptxdsl.kernels.call.launching.memory import ALIGNMENT
from ptxdsl.kernels.call.launching.replay import ArrayLaunch, KernelLaunch
from ptxdsl.runtime.quick import LaunchText

Launch: TypeAlias = Callable[[Any, tuple[float, ...]], Any]


class WrittenLaunch:
    """A generated launch function, which is compiled at its first use: many calls are made only once."""

    __slots__ = ("launch",)
    launch: Launch

    def __init__(self, write: Callable[[], Launch]) -> None:
        def written_now(arrays: Any, numbers: tuple[float, ...]) -> Any:
            self.launch = write()
            return self.launch(arrays, numbers)

        self.launch = written_now


def written(
    call: ArrayLaunch, addresses: Sequence[int], arrays: Sequence[object], library: Library
) -> WrittenLaunch | None:
    """Return the launch function for arrays like these, the first of which is the output, None if the call makes it.

    None if the library has no joint test of layouts, or if two different arrays start at one address. The joint test
    takes no array twice.
    """
    first: dict[int, int] = {}
    repeats = {n: first.setdefault(id(array), n) for n, array in enumerate(arrays) if array is not None}
    known = [*first.values()]
    alike = library.alike([arrays[n] for n in known])
    if alike is None or len({addresses[n] for n in known}) < len(known):
        return None
    text = _CallText(call, addresses, known, len(arrays), library)
    text.same = [f"a{n} is not a{before}" for n, before in repeats.items() if n != before]
    return WrittenLaunch(partial(text.written, alike))


class _CallText(LaunchText):
    """The source of the launches of a call, one kernel after the other."""

    give_up = "return None"

    def __init__(
        self, call: ArrayLaunch, addresses: Sequence[int], known: Sequence[int], count: int, library: Library
    ) -> None:
        self.call, self.known, self.count, self.library = call, known, count, library
        self.same: list[str] = []  # what is true where those that were the same are not
        self.makes_out = 0 not in known
        self.read = sorted({0}.union(*(launch.read for launch in call.launches)))
        self.alignments = {n: addresses[n] % ALIGNMENT if n in known else call.alignment for n in self.read}
        self.constants: dict[str, Any] = {}

    def written(self, alike: Callable[..., bool]) -> Launch:
        """Return the function. `alike` is true for arrays of the same layout."""
        call = self.call
        names = {"known": call.known, "alike": alike, "current_stream": call.current_stream, "make": call.make}
        launch: Launch = self.function("<call of a product>", names)
        return launch

    def __str__(self) -> str:
        body = [
            f"{', '.join(f'a{n}' for n in range(self.count))} = arrays",
            *self.unless(*self.same, "numbers != known", self._unlike()),
            "stream = current_stream()",
            *self.unless(*([] if self.call.stream is None else [f"stream != {self.call.stream}"])),
            *(["a0 = make(a1)"] if self.makes_out else []),
            *(f"p{n} = {self.library.pointer.format(f'a{n}')}" for n in self.read),
            f"addresses = ({''.join(f'p{n}, ' for n in self.read)})",
            *(line for n, launch in enumerate(self.call.launches) for line in self._prepared(n, launch)),
            *self.packing(
                "addresses",
                " or ".join(["addresses != packed0[0]", *self._other_zeros()]),
                [*self.unless(self._misaligned()), *self._overlaps()],
                {str(n): ", ".join(self._packed(n, launch)) for n, launch in enumerate(self.call.launches)},
                "packed0[0], packed0[2] = addresses, numbers",
            ),
            *(line for n in range(len(self.call.launches)) for line in self.launching(str(n))),
            "return a0",
        ]
        return "\n    ".join(["def launch(arrays, numbers):", *body])

    def _other_zeros(self) -> list[str]:
        """Return tests that are true if a number is 0 and not the zero that was packed: 0.0 and -0.0 are equal."""
        zeros = [n for n, number in enumerate(self.call.known or ()) if number == 0]
        return [f"numbers[{n}] is not packed0[2][{n}]" for n in zeros]

    def _unlike(self) -> str:
        return f"not alike({', '.join(f'a{n}' for n in self.known)})"

    def _misaligned(self) -> str:
        """Return one test for all arrays that are aligned."""
        even = [f"p{n}" for n, alignment in self.alignments.items() if not alignment]
        odd = [f"p{n} % {ALIGNMENT} != {alignment}" for n, alignment in self.alignments.items() if alignment]
        return " or ".join([f"({' | '.join(even)}) % {ALIGNMENT}"] * bool(even) + odd)

    def _overlaps(self) -> list[str]:
        """Return the test for overlaps. A new output overlaps nothing."""
        pairs = [pair for pair in self.call.apart if not (self.makes_out and 0 in pair[:2])]
        return self.unless(*(f"{low} < p{one} - p{other} < {high}" for one, other, low, high in pairs))

    def _prepared(self, n: int, launch: KernelLaunch) -> list[str]:
        """Return the statements that load a kernel's launch configuration and the memory of its parameters."""
        parts = launch.unchecked.parts
        self.constants.update((f"{name}{n}", value) for name, value in parts.items())
        return [f"config{n} = config_of{n}(stream)", f"buffer{n}, parameters{n}, packed{n}, _ = slots{n}.kept"]

    def _packed(self, n: int, launch: KernelLaunch) -> list[str]:
        """Return an expression for each parameter: an address, a tensor map, a number of the call, or a constant."""
        values = [self._constant(f"v{n}_{k}", value) for k, value in enumerate(launch.arguments)]
        for k, position in launch.positions:
            values[k] = f"p{position}"
        for k, position, encoded in launch.maps:
            self.constants[f"map{n}_{k}"] = encoded
            values[k] = f"map{n}_{k}(p{position})"
        span = range(len(values))[launch.numbers]
        for number, k in enumerate(span):
            values[k] = f"numbers[{number}]"
        return values

    def _constant(self, name: str, value: object) -> str:
        if type(value) is int:
            return str(value)
        self.constants[name] = value
        return name
