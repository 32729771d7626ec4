"""The kernel that is being traced: its registers, its text so far, and the branches and loops that are open."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from traceback import walk_tb
from types import CodeType
from typing import Any

from ptxdsl import ir
from ptxdsl.errors import Error, Location, Site, TraceError, here, recursion
from ptxdsl.isa.special import SPECIAL_REGISTERS
from ptxdsl.types import Type

KINDS = {"u": "r", "s": "i", "b": "b", "f": "f", "x": "h", "p": "p"}  # as in %r0, %i0, …
WIDTHS = {1: "", 8: "c", 16: "s", 32: "", 64: "d", 128: "q"}
RESERVED = {f"%{name.lstrip('%').partition('.')[0]}" for name in SPECIAL_REGISTERS} | {"WARP_SZ"}


@dataclass(eq=False, slots=True)
class ControlRegion:
    """A stretch of the kernel that may run never, once or often: a branch or the body of a loop."""

    words: str  # how a message names it
    opened: Location
    open: bool = True
    leave: ir.Label | None = None  # where pd.break_ goes
    again: ir.Label | None = None  # where pd.continue_ goes
    reads: set[int] = field(default_factory=set)  # the identities of the values that were read in it
    condition: frozenset[str] = frozenset()  # names that the condition of a loop reads in each round


@dataclass(eq=False, slots=True)
class ModuleScope:
    """What the functions of a module share: variables, functions that others define, device functions by their keys.

    `functions` has declarations and definitions in the order of the text.
    """

    globals: list[ir.Variable] = field(default_factory=list)
    declared: dict[str, ir.Function] = field(default_factory=dict)
    functions: list[ir.Function] = field(default_factory=list)
    known: dict[Any, ir.Function] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def items(self, kernel: ir.Function) -> list[ir.Function | ir.Variable | ir.Directive | ir.Section]:
        """All of the module, the kernel last."""
        return [*self.globals, *self.declared.values(), *self.functions, kernel]

    def copy(self) -> ModuleScope:
        """The same, to be added to by a trace that only looks."""
        return ModuleScope([*self.globals], {**self.declared}, [*self.functions], {**self.known}, {*self.names})


@dataclass(eq=False)
class Builder:
    """Collects one kernel or device function.

    `code` is the user's function: frames up to it are the place of an instruction. `caller` is what a device function
    is traced for; `give` takes what it returns, where it has results.
    """

    name: str
    arch: str
    code: CodeType | None
    where: Location
    value: Callable[[Any, Type], Any]  # makes a traced value of a register
    noun: str = "kernel"
    caller: Builder | None = None
    module: ModuleScope = field(default_factory=ModuleScope)
    give: Callable[[Any], None] | None = None
    function: ir.Function = field(init=False)
    variables: list[ir.Variable] = field(default_factory=list)
    prologue: list[ir.Item] = field(default_factory=list)
    body: list[ir.Item] = field(default_factory=list)
    regions: list[ControlRegion] = field(init=False)
    unentered: list[tuple[str, Location]] = field(default_factory=list)
    broken: Error | None = None
    refused: Error | None = None  # the last refusal to be a Python number, which numpy may swallow
    targets: set[ir.Label] = field(default_factory=set)  # labels that something jumps to
    used: set[int] = field(default_factory=set)  # the identities of the registers that were read
    computed: list[tuple[tuple[ir.Register, ...], ir.Instruction, Site]] = field(default_factory=list)
    memory: dict[Any, Any] = field(default_factory=dict)  # what is made once a kernel, by its maker's key
    dynamic_bytes: int | None = 0  # None once an array of unknown length is the last
    watchers: list[Callable[[ir.Instruction], None]] = field(default_factory=list)  # each may refuse an instruction
    _numbers: Counter[str] = field(default_factory=Counter)
    _anonymous: int = 0
    _fixed_site: Site | None = None

    def __post_init__(self) -> None:
        self.function = ir.Function(self.name)
        self.function.names.update(dict.fromkeys(self.reserved(), 0))
        self.regions = [ControlRegion(f"the {self.noun}", self.where)]

    @staticmethod
    def reserved() -> list[str]:
        """Names that PTX has for itself."""
        return sorted(RESERVED)

    @property
    def region(self) -> ControlRegion:
        return self.regions[-1]

    @property
    def sm(self) -> int:
        """The target's number: 90 for sm_90a."""
        return int(self.arch.removeprefix("sm_").rstrip("af"))

    @property
    def block(self) -> tuple[int, ...] | None:
        """The extents of a block, where the kernel says them."""
        kernel = [*self.callers][-1].function
        extents = next((d.arguments for d in kernel.directives if d.name == "reqntid"), None)
        return None if extents is None else tuple(int(str(extent)) for extent in extents)

    @property
    def callers(self) -> Iterator[Builder]:
        """This function, and those that are being traced around it, the kernel last."""
        builder: Builder | None = self
        while builder is not None:
            yield builder
            builder = builder.caller

    def names(self, variable: ir.Variable) -> bool:
        """Whether the text of this function may name a variable."""
        return variable in self.variables or variable in self.module.globals

    def check_kernel(self, words: str, help: str) -> None:
        """Refuses what belongs to a kernel in a device function."""
        if self.caller:
            message = f"`{words}` stands in the function `{self.name}`: it belongs to a kernel as a whole"
            raise TraceError(message, at=self.site().location, help=help)

    def unique(self, hint: str) -> str:
        """A name for something of this function, which hides nothing of the module."""
        name = self.function.unique(hint)
        while name in self.module.names:
            name = self.function.unique(hint)
        return name

    def unique_global(self, hint: str) -> str:
        """A name for something of the module, which nothing of the functions that are being traced hides."""
        name, number = hint, 0
        while name in self.module.names or any(name in builder.function.names for builder in self.callers):
            number += 1
            name = f"{hint}_{number}"
        self.module.names.add(name)
        return name

    def site(self) -> Site:
        """The user's call that is running, and the names its result gets."""
        if self._fixed_site:
            return self._fixed_site
        site = here(self.code)
        return replace(site, names=()) if self._anonymous else site

    @contextmanager
    def anonymous(self) -> Iterator[None]:
        """Registers made in here are steps towards a result: they are not named after what it is assigned to."""
        self._anonymous += 1
        try:
            yield
        finally:
            self._anonymous -= 1

    @contextmanager
    def at_start(self, name: str) -> Iterator[None]:
        """What is emitted in here stands before the kernel's first line, once, in a register called `name`."""
        body, site, regions, hidden = self.body, self._fixed_site, self.regions, self._anonymous
        self.body, self._fixed_site, self._anonymous = self.prologue, Site(self.where, (name,)), 0
        self.regions = regions[:1]
        try:
            yield
        finally:
            self.body, self._fixed_site, self.regions, self._anonymous = body, site, regions, hidden

    def at_end(self) -> None:
        """From here on nothing is the user's line any more, but the kernel as a whole."""
        self._fixed_site = Site(self.where)

    def register(self, type: Type, name: str = "") -> ir.Register:
        """A fresh register, named after a Python name where there is one, else numbered by its kind."""
        return self.adopt(ir.Register("", type), name)

    def adopt(self, register: ir.Register, name: str = "") -> ir.Register:
        """Names a register that was made without a name, and declares it in the function."""
        if not is_name(name) or name.startswith("_"):
            prefix = _prefix(register.type)
            name = f"{prefix}{self._numbers[prefix]}"
            self._numbers[prefix] += 1
        register.name = self.function.unique(f"%{name}")
        self.function.registers.append(register)
        return register

    def append(self, item: ir.Item) -> None:
        self.check_whole()
        self.body.append(item)

    def note(self, registers: tuple[ir.Register, ...], instruction: ir.Instruction, site: Site) -> None:
        """Remembers the new registers of an instruction that only computes them."""
        self.computed.append((registers, instruction, site))

    def check_whole(self) -> None:
        """Refuse to go on after a construct that was begun and not followed through."""
        if self.broken:
            raise self.broken
        if self.unentered:
            opened, where = self.unentered[-1]
            raise TraceError(
                f"`{opened}` was called, but never entered",
                at=where,
                help=f"write `with {opened}:` and indent what it holds",
            )

    def check_ended(self) -> None:
        """Refuses to end while a loop is open that Python keeps and takes no more rounds of."""
        self.check_whole()
        if len(self.regions) > 1:
            raise TraceError(
                f"{self.region.words} is still open where the {self.noun} ends: Python took one of its rounds and kept "
                "it, and half a loop was traced",
                at=self.region.opened,
                help="loop over the pd.range itself, by a `for` that ends",
            )

    def finished(self) -> list[ir.Item]:
        """The whole body: variables, what is computed once, then the kernel's lines."""
        return [*self.variables, *self.prologue, *self.body]


def is_name(text: str) -> bool:
    """Whether PTX can call something what Python calls it: `_` alone is the sink of an instruction there."""
    return text.isascii() and text.isidentifier() and text != "_"


def _prefix(type: Type) -> str:
    """A prefix for each type, so that numbered registers of a type are declared together."""
    return KINDS[type.kind] + WIDTHS[type.bits]


_current: ContextVar[Builder | None] = ContextVar("ptxdsl_builder", default=None)


def peek() -> Builder | None:
    """The kernel that is being traced, if there is one."""
    return _current.get()


def current(called: str) -> Builder:
    """The kernel that is being traced; a TraceError that names `called` where there is none."""
    builder = _current.get()
    if builder is None:
        raise TraceError(
            f"`{called}` is used outside of a kernel",
            at=here().location,
            help="call it from a function that is decorated with @pd.kernel, or from one that such a kernel calls",
        )
    return builder


def _passes(error: Exception, location: Location | None) -> bool:
    """Whether an exception comes through a line of the user's."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    return location is not None and (location.file, location.line) in lines


@contextmanager
def building(builder: Builder) -> Iterator[Builder]:
    """Makes `builder` the kernel that operations emit to. Raises what we refused where another error took its place."""
    token = _current.set(builder)
    try:
        yield builder
    except (IndexError, TypeError, ValueError) as error:
        if builder.refused and _passes(error, builder.refused.at):
            raise builder.refused from None
        raise
    except RecursionError as error:
        location = recursion(error)
        if location is None:
            raise
        raise _too_deep(location) from None
    finally:
        _current.reset(token)


def _too_deep(location: Location) -> TraceError:
    return TraceError(
        f"`{location.function}` calls itself, while tracing, deeper than Python does: {sys.getrecursionlimit()} calls",
        at=location,
        help="it needs an end that Python knows while tracing: an `if` on Python's numbers; what ends in the kernel "
        "is a loop, pd.range or pd.while_",
    )
