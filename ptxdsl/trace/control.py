"""Branches and loops of a kernel: `with` and `for` in Python, labels and branches in PTX."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from ptxdsl import ir
from ptxdsl.errors import is_looped_here
from ptxdsl.trace import literal
from ptxdsl.trace.builder import Builder, ControlRegion, current, refuse
from ptxdsl.trace.changes import Bindings
from ptxdsl.trace.flow import leaving
from ptxdsl.trace.instruction import Scalar, ScalarLike, emit, shown
from ptxdsl.trace.operators import binary, steps
from ptxdsl.trace.value import Value, Var, var
from ptxdsl.types import TYPES, Type, pred, s32, u32

FULL = "full"


class Block:
    """Base class of `with` blocks that contain traced code. Subclasses emit the code before and after the body."""

    words = ""
    loops = False
    always = False  # True if every thread runs the body once: what it computes has a value after it

    def __init__(self) -> None:
        self.builder = current(self.words)
        self.builder.check_whole()
        self.where = self.builder.site().location
        self.ticket = (self.words, self.where)
        self.builder.unentered.append(self.ticket)

    def __enter__(self) -> object:
        if self.ticket not in self.builder.unentered:
            refuse(f"`{self.words}` is entered a second time", f"write `with {self.words}:` for each")
        self.builder.unentered.remove(self.ticket)
        self.entered = self.builder.site().calls
        self.begin()
        self.region, self.outer = (
            ControlRegion(f"`with {self.words}` ({self.where})", self.builder.site().location),
            self.builder.region,
        )
        if not self.always:
            self.builder.regions.append(self.region)
            self.bindings = Bindings(self.builder, self.loops)
        self.body()
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if self.watch in self.builder.watchers:
            self.builder.watchers.remove(self.watch)
        if kind is not None:
            left = f"{self.region.words} was left by a {kind.__name__}: the block was traced only partly"
            self.builder.left(left, "catch exceptions inside of the block", self.where)
            return
        self.builder.check_whole()
        self._check_whole()
        if not self.always:
            self.bindings.check(self.region)
            self.bindings.end(self.region)
            self.builder.close(self.region)
        elif self.builder.region is not self.outer:
            refuse(f"{self.region.words} ends before {self.builder.region.words}, which began inside of it")
        self.end()

    def _check_whole(self) -> None:
        """Refuse a Python statement that leaves the block, since the rest of the block would be missing for all
        threads."""
        left = leaving(self.entered, self.builder.site())
        if left is None:
            return
        keyword, at, code = left
        statement = f"`{keyword}`" if keyword else "`return`, `break` or `continue`"
        refuse(
            f"a Python {statement} leaves {self.region.words}: "
            "Python would skip what follows while tracing, for all threads",
            _instead(keyword, code is self.builder.code, self.builder.noun),
            at=at,
        )

    def watch(self, instruction: ir.Instruction) -> None:
        """Refuse an instruction that does not belong into the body; a subclass adds this to the builder's watchers."""

    def begin(self) -> None:
        """Emit the code before the body."""

    def body(self) -> None:
        """Emit the first instructions of the body."""

    def end(self) -> None:
        """Emit the code after the body."""


def _instead(keyword: str, in_kernel: bool, noun: str) -> str:
    """Return the help line for a Python statement that leaves a block."""
    if keyword == "break":
        return "`pd.break_()` leaves the pd.range or pd.while_ loop for the threads that reach it"
    if keyword == "continue":
        return "`pd.continue_()` starts the next iteration of the pd.range or pd.while_ loop"
    value = "value=…" if noun == "function" else ""
    if keyword and in_kernel:
        return f"`pd.return_({value})` ends the {noun} for the threads that reach it"
    if keyword:
        return f"`pd.return_({value})` ends the whole {noun} for these threads; results of a function go into a pd.var"
    return "write `pd.return_()`, `pd.break_()` or `pd.continue_()`"


def branch(target: ir.Label, unless: Scalar | None = None, when: Scalar | None = None) -> None:
    """Emit a branch to `target`: unconditional, or if a predicate is false or true."""
    current("a branch").targets.add(target)
    emit("bra", (target,), guard=when if unless is None else ~unless)


def condition(called: str, value: object) -> Value:
    """Return `value` if it is a predicate to branch on; refuse it otherwise."""
    if not isinstance(value, Value) or value.type is not pred:
        held = "a function" if callable(value) else shown(value)
        refuse(f"{called} takes a predicate; found {held}", "compare values, `x != 0`; decide a bool by a Python `if`")
    return value


class if_(Block):
    """Run the body in the threads where the predicate holds.

    with pd.if_(i < n):
        y[i] = x[i]
    """

    words = "pd.if_(…)"

    def __init__(self, predicate: Scalar) -> None:
        current("pd.if_")
        self.predicate = condition("pd.if_", predicate)
        super().__init__()

    def begin(self) -> None:
        self.behind = self.builder.function.label("$endif")
        branch(self.behind, unless=self.predicate)

    def end(self) -> None:
        self.builder.append(self.behind)
        self.builder.memory[BranchEnd] = BranchEnd(self.behind, None, len(self.builder.body))


@dataclass(frozen=True, slots=True)
class BranchEnd:
    """The end of a branch that else_ or elif_ can continue: its last labels, and the length of the body there."""

    unless: ir.Label  # target of threads whose predicate did not hold
    behind: ir.Label | None  # end of all branches, after an else_ or elif_
    length: int


class _Otherwise(Block):
    """A block for the threads in which no previous predicate held."""

    _help = "put it directly after the body of its pd.if_"

    def __init__(self) -> None:
        called = self.words.partition("(")[0]
        builder = current(called)
        before = builder.memory.pop(BranchEnd, None)
        if before is None or before.length != len(builder.body) or builder.unentered:
            refuse(f"`{called}` does not directly follow the branch of a `with pd.if_(…)`", self._help)
        self.before: BranchEnd = before
        super().__init__()

    def begin(self) -> None:
        """Move the end label of the previous branch to the start of this body."""
        body = self.builder.body
        del body[-1 if self.before.behind is None else -2 :]
        self.behind = self.before.behind or self.builder.function.label("$endelse")
        branch(self.behind)
        self.builder.append(self.before.unless)


class else_(_Otherwise):
    """Run the body in the threads where no previous predicate held, directly after an if_ or elif_ block.

    with pd.if_(i < n):
        y[i] = x[i]
    with pd.else_():
        y[i] = 0.0
    """

    words = "pd.else_()"

    def end(self) -> None:
        self.builder.append(self.behind)


class elif_(_Otherwise):
    """Run the body where no previous predicate held and this one does, directly after an if_ or elif_ block.

    `predicate` is a function, called inside the branch: `with pd.elif_(lambda: x == 1):`. A predicate computed before
    the if_ block can be passed directly.
    """

    words = "pd.elif_(…)"
    _help = f"{_Otherwise._help}, and compute what it tests in a function: `with pd.elif_(lambda: …):`"

    def __init__(self, predicate: Callable[[], Scalar] | Scalar) -> None:
        self.predicate = predicate
        super().__init__()

    def body(self) -> None:
        predicate = self.predicate
        computed = predicate if isinstance(predicate, Scalar) or not callable(predicate) else predicate()
        self.unless = self.builder.function.label("$endif")
        branch(self.unless, unless=condition("pd.elif_", computed))

    def end(self) -> None:
        self.builder.append(self.unless)
        self.builder.append(self.behind)
        self.builder.memory[BranchEnd] = BranchEnd(self.unless, self.behind, len(self.builder.body))


class while_(Block):
    """Run the body as long as the condition holds, which is tested before each iteration.

    `predicate` is a function that computes the condition, so that it is evaluated in each iteration.

        v = pd.var(u32, 1)
        with pd.while_(lambda: v < n):
            v += v
    """

    words = "pd.while_(…)"
    loops = True

    def __init__(self, predicate: Callable[[], Scalar]) -> None:
        current("pd.while_")
        if isinstance(predicate, Scalar) or not callable(predicate):
            refuse(
                f"pd.while_ takes a function that computes the condition; found {shown(predicate)}",
                "the condition is computed in each iteration: write `with pd.while_(lambda: …):`",
            )
        self.predicate = predicate
        super().__init__()

    def begin(self) -> None:
        function = self.builder.function
        self.start, self.behind = function.label("$while"), function.label("$endwhile")
        self.builder.append(self.start)

    def body(self) -> None:
        self.region.leave, self.region.again = self.behind, self.start
        code = getattr(self.predicate, "__code__", None)
        self.region.condition = frozenset(code.co_freevars if code else ())
        branch(self.behind, unless=condition("pd.while_", self.predicate()))

    def end(self) -> None:
        branch(self.start)
        self.builder.append(self.behind)


def break_(guard: Scalar | None = None) -> None:
    """Leave the innermost pd.range or pd.while_ loop, in the threads where `guard` holds (all without it)."""
    _jump("pd.break_", "leave", guard)


def continue_(guard: Scalar | None = None) -> None:
    """Start the next iteration of the innermost pd.range or pd.while_ loop, in the threads where `guard` holds."""
    _jump("pd.continue_", "again", guard)


def _jump(called: str, where: str, guard: Scalar | None) -> None:
    builder = current(called)
    loops = [region for region in builder.regions if getattr(region, where)]
    if not loops:
        refuse(f"`{called}` is not inside a loop of the kernel", "it leaves loops made by pd.range and pd.while_")
    branch(getattr(loops[-1], where), when=None if guard is None else condition(called, guard))


def return_(guard: Scalar | None = None, *, value: object = None) -> None:
    """End the kernel in the threads where `guard` holds (all without it).

    In a device function, return `value` to the caller: `pd.return_(b == 0, value=a)`.
    """
    builder = current("pd.return_")
    holds = None if guard is None else condition("pd.return_", guard)
    if builder.give is None:
        if value is not None:
            refuse("`pd.return_` of a value in a kernel, which returns nothing", "write results to memory")
        emit("ret", guard=holds)
        return
    behind = builder.function.label("$endif")
    if holds is not None:
        branch(behind, unless=holds)
    builder.give(value)
    emit("ret")
    if holds is not None:
        builder.append(behind)


@dataclass(slots=True)
class LoopBounds:
    """The bounds and step of a loop, ints if known while tracing, and the type of the loop variable."""

    start: Scalar | int
    stop: Scalar | int
    step: Scalar | int
    type: Type

    @property
    def known(self) -> builtins.range | None:
        """The bounds as a Python range; None unless all three are known."""
        parts = [part for part in (self.start, self.stop, self.step) if isinstance(part, int)]
        return builtins.range(*parts) if len(parts) == 3 else None

    @property
    def down(self) -> bool:
        return isinstance(self.step, int) and self.step < 0

    @property
    def cannot_wrap(self) -> bool:
        """True if the counter cannot overflow its type when it passes the end."""
        if not isinstance(self.step, int):
            return False
        low, high = literal.limits(self.type)
        return abs(self.step) == 1 or (isinstance(self.stop, int) and low <= self.stop + self.step <= high)

    def left(self, value: Scalar) -> Scalar:
        """Return the distance from a value to the end of the loop as an unsigned number."""
        return (value - self.stop if self.down else self.stop - value).to(self._unsigned)

    def distance(self, steps: int) -> Scalar | int:
        """Return the length of `steps` steps as an unsigned number."""
        if isinstance(self.step, int):
            return abs(self.step) * steps
        return (self.step * steps).to(self._unsigned)

    @property
    def _unsigned(self) -> Type:
        return TYPES[f"u{self.type.bits}"]


def _span(arguments: tuple[ScalarLike, ...]) -> LoopBounds:
    if not 1 <= len(arguments) <= 3:
        refuse(f"pd.range takes stop, or start and stop, or start, stop and step; {len(arguments)} given")
    start, stop, step = {1: (0, *arguments, 1), 2: (*arguments, 1), 3: arguments}[len(arguments)]
    for value in arguments:
        number = isinstance(value, Scalar) or (literal.is_number(value) and isinstance(literal.plain(value), int))
        if not number:
            refuse(f"pd.range takes integers; found {shown(value)}")
    types = {v.type for v in (start, stop, step) if isinstance(v, Scalar)}
    if len(types) > 1 or not all(t.is_integer and t.bits >= 32 for t in types):
        listed = ", ".join(f"`{v.name}` is {v.type}" for v in (start, stop, step) if isinstance(v, Scalar))
        refuse(f"pd.range takes integers of one type, 32 or 64 bits wide: {listed}", "convert them to one type by .to")
    numbers = [v.number if isinstance(v, Scalar) and v.number is not None else v for v in (start, stop, step)]
    plain = [v if isinstance(v, Scalar) else int(literal.plain(v)) for v in numbers]
    if not isinstance(plain[2], Scalar) and plain[2] == 0:
        refuse("pd.range with step 0 never ends")
    negative = any(isinstance(v, int) and v < 0 for v in plain)
    type = next(iter(types)) if types else (s32 if negative else u32)
    if negative and not type.is_signed:
        refuse(f"pd.range counts in {type}, which has no negative numbers", "convert the bounds: `.to(s32)`")
    start, stop, step = plain
    return LoopBounds(start, stop, step, type)


class range:
    """A loop of the kernel: `for i in pd.range(start, stop, step):`. `start` is 0 and `step` is 1 by default.

    The bounds are Python ints or traced integers of one 32- or 64-bit type; `i` has that type, or u32. A step that is
    not known while tracing is assumed positive. `unroll=1` forbids unrolling, `unroll=n` emits n copies of the body per
    iteration and a second loop for the remainder, and `unroll="full"` traces each iteration with a Python int, which
    requires known bounds.

    Raises TraceError for bounds of other types, step 0, and Python `break` or `return` inside of the loop (use
    `pd.break_()`).

        for k in pd.range(0, n, 32, unroll=4):
            total += x[k]
    """

    def __init__(self, *bounds: ScalarLike, unroll: int | str | None = None) -> None:
        current("pd.range").check_whole()
        self.span, self.unroll = _span(bounds), unroll
        if unroll not in (None, FULL) and not (isinstance(unroll, int) and unroll >= 1):
            refuse(f"pd.range cannot unroll by {unroll!r}", 'unroll is 1 (never), a number of copies, or "full"')
        if unroll == FULL and self.span.known is None:
            refuse(
                "pd.range cannot fully unroll: its trip count is not known while tracing",
                "unroll by a number, such as 4",
            )

    def __iter__(self) -> Iterator[Any]:
        builder, known = current("pd.range"), self.span.known
        if known is not None and (self.unroll == FULL or not known):
            return iter(known)
        if not is_looped_here():
            help = 'with `unroll="full"`, or with a `range` of Python, every iteration is traced'
            refuse_iteration("pd.range", help)
        return _rounds(builder, self.span, self.unroll if isinstance(self.unroll, int) else None)

    def __reversed__(self) -> Iterator[Any]:
        known = self.span.known
        if known is not None and self.unroll == FULL:
            return reversed(known)
        refuse(
            "`reversed` iterates over a pd.range, which is a loop of the kernel",
            "let the loop count down: `pd.range(n - 1, -1, -1)`, with bounds of a signed type",
        )


def refuse_iteration(words: str, help: str) -> NoReturn:
    """Refuse a function of Python that iterates over a loop of the kernel, such as `enumerate`."""
    refuse(
        f"a function of Python iterates over a {words}, which is a loop of the kernel: Python traces one iteration, "
        "and what it counts or pairs would be the same in all",
        f"loop over the {words} itself by `for`, and count or index by a `pd.var`; {help}",
    )


@dataclass(slots=True)
class _Loop:
    """A loop that is being traced, and its counter."""

    builder: Builder
    span: LoopBounds
    words: str
    behind: ir.Label
    keep_rolled: bool


def _rounds(builder: Builder, span: LoopBounds, unroll: int | None) -> Iterator[Any]:
    """Trace a loop; for each yielded value, Python runs the body of its `for`."""
    counter, copies, known = var(span.type, span.start), unroll or 1, span.known
    words, behind = f"the `for` over pd.range ({builder.site().location})", builder.function.label("$endloop")
    loop = _Loop(builder, span, words, behind, unroll == 1)
    if copies > 1 and (known is None or len(known) >= copies):
        yield from _loop(loop, counter, copies, builder.function.label("$rest"))
    if known is None or len(known) % copies or copies == 1:
        yield from _loop(loop, counter, 1, behind)
    builder.append_target(behind)


def _loop(loop: _Loop, counter: Var, copies: int, after: ir.Label) -> Iterator[Any]:
    """Emit one PTX loop with `copies` bodies, then the label `after` unless it follows all of them.

    The loop is tested at its end, and before it unless it always executes.
    """
    builder, span = loop.builder, loop.span
    start = builder.function.label("$loop")
    if span.known is None:
        branch(after, unless=_enters(span, counter, copies))
    builder.append(start)
    if loop.keep_rolled:
        builder.append(ir.Directive("pragma", ('"nounroll"',)))
    bindings = Bindings(builder, loops=True)
    for copy in builtins.range(copies):
        region = ControlRegion(loop.words, builder.site().location, leave=loop.behind)
        help = "leave the loop of the kernel by pd.break_(), inside of `with pd.if_(…):`"
        with iteration(builder, region, bindings, help):
            yield Value(counter.read(), counter.type, builder) if copy == 0 else counter + span.step * copy
    bindings.end(region, surely=bool(span.known))
    with steps():
        over = None if after is loop.behind or span.cannot_wrap else span.left(counter) <= span.distance(copies)
    branch(start, when=_advance(span, counter, copies))
    if over is not None:  # the counter may have wrapped, so the remainder cannot be derived from it
        branch(loop.behind, when=over)
    if after is not loop.behind:
        builder.append_target(after)


@contextmanager
def iteration(builder: Builder, region: ControlRegion, bindings: Bindings, help: str) -> Iterator[None]:
    """Trace an iteration of a Python `for` as the body of a loop of the kernel; `help` says how to leave it."""
    region.again = builder.function.label("$continue")
    builder.regions.append(region)
    try:
        yield
    except GeneratorExit:
        builder.left(f"{region.words} was left by a Python `break` or `return`: the loop was traced only partly", help)
        raise
    builder.check_whole()
    bindings.check(region)
    builder.close(region)
    builder.append_target(region.again)


def _enters(span: LoopBounds, counter: Var, copies: int) -> Scalar:
    """Return a predicate: `copies` iterations remain from the counter on."""
    with steps():
        inside = counter > span.stop if span.down else counter < span.stop
        return inside if copies == 1 else inside & (span.left(counter) > span.distance(copies - 1))


def _advance(span: LoopBounds, counter: Var, copies: int) -> Scalar:
    """Advance the counter and return a predicate: another full group of iterations remains.

    The remaining distance is compared before the counter moves, because the sum might wrap. For single steps, and if
    the bounds are far from wrapping, the counter itself is compared.
    """
    with steps():
        more = None if copies == 1 and span.cannot_wrap else span.left(counter) > span.distance(2 * copies - 1)
        binary("+", counter, span.step * copies, counter)
        return _enters(span, counter, 1) if more is None else more
