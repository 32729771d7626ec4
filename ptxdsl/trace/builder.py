"""The kernel being traced: its registers, the instructions so far, and the open branches and loops."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from traceback import walk_tb
from types import CodeType
from typing import Any, NoReturn

from ptxdsl import ir
from ptxdsl.errors import Error, Location, Site, TraceError, here, recursion
from ptxdsl.isa.special import SPECIAL_REGISTERS
from ptxdsl.types import Type

KINDS = {"u": "r", "s": "i", "b": "b", "f": "f", "x": "h", "p": "p"}  # register prefixes: %r0, %i0, …
WIDTHS = {1: "", 8: "c", 16: "s", 32: "", 64: "d", 128: "q"}
RESERVED = sorted({f"%{name.lstrip('%').partition('.')[0]}" for name in SPECIAL_REGISTERS} | {"WARP_SZ"})


@dataclass(eq=False, slots=True)
class ControlRegion:
    """A branch or loop body: a part of the kernel that may execute any number of times."""

    words: str  # its name in messages
    opened: Location
    open: bool = True
    leave: ir.Label | None = None  # target of pd.break_
    again: ir.Label | None = None  # target of pd.continue_
    condition: frozenset[str] = frozenset()  # names that a loop condition reads


@dataclass(eq=False, slots=True)
class ModuleScope:
    """The state shared by all functions of a module: variables, external declarations, and device functions by key.

    `functions` lists declarations and definitions in the order in which they are printed.
    """

    globals: list[ir.Variable] = field(default_factory=list)
    declared: dict[str, ir.Function] = field(default_factory=dict)
    functions: list[ir.Function] = field(default_factory=list)
    known: dict[Any, ir.Function] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def items(self, kernel: ir.Function) -> list[ir.Function | ir.Variable | ir.Directive | ir.Section]:
        """Return all items of the module, the kernel last."""
        return [*self.globals, *self.declared.values(), *self.functions, kernel]

    def copy(self) -> ModuleScope:
        """Return a copy that a trial trace can modify."""
        return ModuleScope([*self.globals], {**self.declared}, [*self.functions], {**self.known}, {*self.names})


@dataclass(eq=False)
class Builder:
    """Collects the instructions of one kernel or device function.

    `code` is the user's function; stack frames up to it locate an instruction. `caller` is the builder of the calling
    function, for a device function; `give` stores its return value, if it has one.
    """

    name: str
    arch: str
    code: CodeType | None
    where: Location
    value: Callable[[Any, Type], Any]  # creates a traced value from a register
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
    refused: Error | None = None  # the last refused conversion to a Python number; numpy may swallow it
    targets: set[ir.Label] = field(default_factory=set)  # labels with a branch to them
    used: set[int] = field(default_factory=set)  # ids of the registers read
    # The result registers of instructions without side effects.
    computed: list[tuple[tuple[ir.Register, ...], ir.Instruction, Site]] = field(default_factory=list)
    memory: dict[Any, Any] = field(default_factory=dict)  # per-kernel caches, by the creator's key
    dynamic_bytes: int | None = 0  # None after an array of unknown length
    watchers: list[Callable[[ir.Instruction], None]] = field(default_factory=list)  # each may refuse an instruction
    _numbers: Counter[str] = field(default_factory=Counter)
    _anonymous: int = 0
    _fixed_site: Site | None = None

    def __post_init__(self) -> None:
        self.function = ir.Function(self.name)
        self.function.names.update(dict.fromkeys(RESERVED, 0))
        self.regions = [ControlRegion(f"the {self.noun}", self.where)]

    @property
    def region(self) -> ControlRegion:
        return self.regions[-1]

    @property
    def sm(self) -> int:
        """The number of the target: 90 for sm_90a."""
        return int(self.arch.removeprefix("sm_").rstrip("af"))

    @property
    def block(self) -> tuple[int, ...] | None:
        """The block's extents, None if the kernel does not declare them."""
        kernel = [*self.callers][-1].function
        extents = next((d.arguments for d in kernel.directives if d.name == "reqntid"), None)
        return None if extents is None else tuple(int(str(extent)) for extent in extents)

    @property
    def callers(self) -> Iterator[Builder]:
        """This builder, then those of the calling functions, the kernel last."""
        builder: Builder | None = self
        while builder is not None:
            yield builder
            builder = builder.caller

    def names(self, variable: ir.Variable) -> bool:
        """True if this function can refer to a variable."""
        return variable in self.variables or variable in self.module.globals

    def check_kernel(self, words: str, help: str) -> None:
        """Refuse in a device function what only a kernel may use."""
        if self.caller:
            refuse(f"`{words}` stands in the function `{self.name}`: it belongs to a kernel as a whole", help)

    def unique(self, hint: str) -> str:
        """Return an unused name in this function that does not hide a name of the module."""
        name = self.function.unique(hint)
        while name in self.module.names:
            name = self.function.unique(hint)
        return name

    def unique_global(self, hint: str) -> str:
        """Return an unused name in the module that no function being traced hides."""
        name, number = hint, 0
        while name in self.module.names or any(name in builder.function.names for builder in self.callers):
            number += 1
            name = f"{hint}_{number}"
        self.module.names.add(name)
        return name

    def site(self) -> Site:
        """Return the location of the user's running call, and the names its result is assigned to."""
        if self._fixed_site:
            return self._fixed_site
        site = here(self.code)
        return replace(site, names=()) if self._anonymous else site

    @contextmanager
    def anonymous(self) -> Iterator[None]:
        """Do not name registers created in this context after the assignment target: they are intermediate results."""
        self._anonymous += 1
        try:
            yield
        finally:
            self._anonymous -= 1

    @contextmanager
    def at_start(self, name: str) -> Iterator[None]:
        """Emit the instructions of this context once, before the kernel's first line, with the result in a register
        `name`."""
        body, site, regions, hidden = self.body, self._fixed_site, self.regions, self._anonymous
        self.body, self._fixed_site, self._anonymous = self.prologue, Site(self.where, (name,)), 0
        self.regions = regions[:1]
        try:
            yield
        finally:
            self.body, self._fixed_site, self.regions, self._anonymous = body, site, regions, hidden

    def once_at_start(self, key: object, name: str, compute: Callable[[], Any]) -> Any:
        """Return what is computed once, before the kernel's first line."""
        if key not in self.memory:
            with self.at_start(name):
                self.memory[key] = compute()
        return self.memory[key]

    def at_end(self) -> None:
        """Attribute all further instructions to the kernel as a whole instead of a user line."""
        self._fixed_site = Site(self.where)

    def register(self, type: Type, name: str = "") -> ir.Register:
        """Create a register, named after the Python name if there is one, else numbered by kind."""
        return self.adopt(ir.Register("", type), name)

    def adopt(self, register: ir.Register, name: str = "") -> ir.Register:
        """Name and declare a register that was created without a name."""
        if not is_name(name) or name.startswith("_"):
            prefix = KINDS[register.type.kind] + WIDTHS[register.type.bits]  # one declaration for all of one type
            name = f"{prefix}{self._numbers[prefix]}"
            self._numbers[prefix] += 1
        register.name = self.function.unique(f"%{name}")
        self.function.registers.append(register)
        return register

    def append(self, item: ir.Item) -> None:
        self.check_whole()
        self.body.append(item)

    def check_whole(self) -> None:
        """Raise the error of a construct that was created but not entered or completed."""
        if self.broken:
            raise self.broken
        if self.unentered:
            opened, where = self.unentered[-1]
            help = f"write `with {opened}:` and indent what it holds"
            refuse(f"`{opened}` was called, but never entered", help, at=where)

    def check_ended(self) -> None:
        """Refuse to end the function while a loop is open because Python stopped iterating over it."""
        self.check_whole()
        if len(self.regions) > 1:
            refuse(
                f"{self.region.words} is still open where the {self.noun} ends: Python took one iteration and "
                f"stopped, and the loop was traced only partly",
                "loop over the pd.range itself, by a `for` that ends",
                at=self.region.opened,
            )

    def left(self, message: str, help: str, at: Location | None = None) -> None:
        """Let the next instruction fail: Python left a block or loop, so that the rest of it is missing."""
        self.broken = self.broken or TraceError(message, at=at or self.site().location, help=help)

    def close(self, region: ControlRegion) -> None:
        """End a branch or loop; values computed in it can no longer be read."""
        if self.region is not region:
            refuse(f"{region.words} ends before {self.region.words}, which began inside of it")
        self.regions.pop().open = False

    def append_target(self, label: ir.Label) -> None:
        """Append a label if a branch goes to it."""
        if label in self.targets:
            self.append(label)

    def finished(self) -> list[ir.Item]:
        """Return the whole body: variables, the prologue, then the traced instructions."""
        return [*self.variables, *self.prologue, *self.body]


def is_name(text: str) -> bool:
    """True if PTX accepts a Python name; `_` alone denotes a discarded destination in PTX."""
    return text.isascii() and text.isidentifier() and text != "_"


_current: ContextVar[Builder | None] = ContextVar("ptxdsl_builder", default=None)


def peek() -> Builder | None:
    """Return the builder of the kernel being traced, None outside of tracing."""
    return _current.get()


def refuse(
    message: str, help: str | None = None, error: type[Error] = TraceError, at: Location | None = None
) -> NoReturn:
    """Raise an error at the user's line, or at `at`. An exception that is being handled is not shown with it."""
    builder = _current.get()
    raise error(message, at=at or (builder.site() if builder else here()).location, help=help) from None


def current(called: str) -> Builder:
    """Return the builder of the kernel being traced. Raise TraceError that names `called` outside of tracing."""
    builder = _current.get()
    if builder is None:
        refuse(
            f"`{called}` is used outside of a kernel",
            "call it from a function that is decorated with @pd.kernel, or from one that such a kernel calls",
        )
    return builder


@contextmanager
def building(builder: Builder) -> Iterator[Builder]:
    """Make `builder` the target of emitted instructions.

    If another exception replaced one of our refusals, raise the refusal.
    """
    token = _current.set(builder)
    try:
        yield builder
    except (IndexError, TypeError, ValueError) as error:
        refused = builder.refused  # its line is in the traceback if the error came from it
        lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
        if refused and refused.at and (refused.at.file, refused.at.line) in lines:
            raise refused from None
        raise
    except RecursionError as error:
        location = recursion(error)
        if location is None:
            raise
        raise TraceError(
            f"`{location.function}` calls itself, while tracing, deeper than Python does: "
            f"{sys.getrecursionlimit()} calls",
            at=location,
            help="it needs an end that is known while tracing: an `if` on Python's numbers; "
            "write a loop that ends in the kernel by pd.range or pd.while_",
        ) from None
    finally:
        _current.reset(token)
