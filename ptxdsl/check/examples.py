"""Example launches of a kernel, and what the emulator finds in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptxdsl.emulate.report import Finding, counted
from ptxdsl.errors import Error, LaunchError
from ptxdsl.runtime.emulation import emulate

REFUSED = "refused"  # the kind of a finding for what does not get as far as the emulator
Maker = Callable[[np.random.Generator], object]


@dataclass(frozen=True)
class Example:
    """A launch: what pd.emulate() takes behind the kernel."""

    grid: Any
    block: Any
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object, maker: str) -> Example:
        """From what the function named `maker` returned. Raises Error where that is no launch."""
        if not isinstance(value, tuple) or len(value) < 2:
            raise Error(
                f"{maker} returned {_brief(value)}; a launch is (grid, block, *arguments)",
                help="return what pd.emulate() takes behind the kernel, keywords as a dict at the end",
            )
        grid, block, *arguments = value
        keywords = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        return cls(grid, block, tuple(arguments), keywords)

    def __str__(self) -> str:
        return f"[{self.grid}, {self.block}]({', '.join(map(_brief, self.arguments))})"


@dataclass(frozen=True)
class Checked:
    """What the emulator found in one launch of a kernel, and how many instructions its threads executed."""

    kernel: str
    example: Example
    findings: tuple[Finding, ...]
    instructions: int = 0

    def __str__(self) -> str:
        told = counted(len(self.findings), "finding") if self.findings else "clean"
        return f"{self.kernel}{self.example}: {told}"


def name_of_examples(kernel: str) -> str:
    """The name of the function that makes example arguments."""
    return f"example_{kernel}"


def examples_of(maker: Maker, seed: int) -> Iterator[Example]:
    """The launches that a function makes, of the random numbers that a seed gives."""
    value = maker(np.random.default_rng(seed))
    for each in value if inspect.isgenerator(value) else [value]:
        yield Example.of(each, getattr(maker, "__name__", "the example"))


def checked(kernel: Any, name: str, example: Example, *, asked: bool = False) -> Checked:
    """Runs a launch on the emulator. A kernel or launch that is refused is a finding of the kind `refused`.

    Of a launch that was `asked` for, and stands in no function, it raises LaunchError where that does not fit.
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
