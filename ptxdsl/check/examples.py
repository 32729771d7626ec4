"""Example launches of a kernel, and the emulator's findings in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptxdsl.emulate.report import Finding, counted
from ptxdsl.errors import Error, LaunchError
from ptxdsl.runtime.emulation import emulate

REFUSED = "refused"  # the kind of a finding for a kernel or launch that does not reach the emulator
Maker = Callable[[np.random.Generator], object]


@dataclass(frozen=True)
class Example:
    """A launch: the arguments of pd.emulate() after the kernel."""

    grid: Any
    block: Any
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object, maker: str) -> Example:
        """Convert the result of the function named `maker`. Raises Error if it is not a launch."""
        if not isinstance(value, tuple) or len(value) < 2:
            raise Error(
                f"{maker} returned {_brief(value)}; a launch is (grid, block, *arguments)",
                help="return the arguments of pd.emulate() after the kernel, keyword arguments as a dict at the end",
            )
        grid, block, *arguments = value
        keywords = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        return cls(grid, block, tuple(arguments), keywords)

    def __str__(self) -> str:
        return f"[{self.grid}, {self.block}]({', '.join(map(_brief, self.arguments))})"


@dataclass(frozen=True)
class Checked:
    """The findings in one launch of a kernel, and the number of instructions that its threads executed."""

    kernel: str
    example: Example
    findings: tuple[Finding, ...]
    instructions: int = 0

    @property
    def failed(self) -> bool:
        """True if a finding is an error."""
        return any(finding.is_error for finding in self.findings)

    def __str__(self) -> str:
        outcome = counted(len(self.findings), "finding") if self.findings else "clean"
        return f"{self.kernel}{self.example}: {outcome}"


def name_of_examples(kernel: str) -> str:
    """Return the name of the example function of a kernel."""
    return f"example_{kernel}"


def examples_of(maker: Maker, seed: int) -> Iterator[Example]:
    """Yield the launches of an example function, with random numbers from a seed."""
    value = maker(np.random.default_rng(seed))
    for each in value if inspect.isgenerator(value) else [value]:
        yield Example.of(each, getattr(maker, "__name__", "the example"))


def checked(kernel: Any, name: str, example: Example, *, asked: bool = False) -> Checked:
    """Run a launch on the emulator. A kernel or launch that is refused gives a finding of the kind `refused`.

    A launch that was `asked` for on the command line raises LaunchError instead if it does not fit the kernel.
    """
    try:
        report = emulate(kernel, example.grid, example.block, *example.arguments, **example.keywords)
    except Error as error:
        if asked and isinstance(error, LaunchError):
            raise
        locations = tuple(error.at.chain()) if error.at else ()
        return Checked(name, example, (Finding(REFUSED, error.message, locations, help=error.help or ""),))
    return Checked(name, example, tuple(report.findings), report.instructions)


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
