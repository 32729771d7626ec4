"""Source locations of user code, and the errors that refer to them."""

from __future__ import annotations

import dis
import inspect
import linecache
import os
import re
import stat
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, lru_cache, wraps
from itertools import islice, pairwise
from traceback import walk_tb
from types import CodeType, FrameType, MappingProxyType, SimpleNamespace, TracebackType
from typing import NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_LIBRARY = os.path.dirname(__file__) + os.sep
_CALLING = ("numpy", "torch", "jax")  # their Python functions call ours
_SHIPPED_KERNELS = os.path.join(_LIBRARY, "kernels") + os.sep
EXCERPT_COLUMNS = 200  # maximum length of a source line in a message
SOURCE_BYTES = 16 << 20  # maximum size of a file whose lines messages show
# Packages that call ours for the user.
_BETWEEN = ("ptxdsl", "contextlib", "copy", "dataclasses", "functools", "numpy", "torch", "jax")


@dataclass(frozen=True, slots=True)
class Location:
    """A location in a source file; `columns` is a half-open range of 0-based columns, (0, 0) if unknown.

    `source` is the line itself if it is not in a file (an error in text passed as a string).
    """

    file: str
    line: int
    columns: tuple[int, int] = (0, 0)
    function: str = ""
    inlined_at: Location | None = None
    source: str = field(default="", compare=False, repr=False)

    def __str__(self) -> str:
        return f"{printable(os.path.basename(self.file))}:{self.line}"

    @property
    def text(self) -> str:
        """The source line, without its newline; empty if the source is unavailable, or must not be shown."""
        if self.source or not _is_shown(self.file):
            return self.source
        return linecache.getline(self.file, self.line).rstrip("\n")

    def excerpt(self) -> str:
        """The location and its source line, with carets under the columns; a very long line is cut around them."""
        text, (start, end) = self.text, self.columns
        if not text.strip():
            return f"  {self}"
        first = len(text) - len(text.lstrip())
        if start - first > EXCERPT_COLUMNS:
            first = start - EXCERPT_COLUMNS // 2
        shown = printable(text[first : first + EXCERPT_COLUMNS].rstrip())
        lines = [f"  {self} | {shown}"]
        if end > start >= first:
            carets = min(end - first, EXCERPT_COLUMNS) - (start - first)
            lines.append(" " * (len(str(self)) + 5 + start - first) + "^" * carets)
        return "\n".join(lines)

    def chain(self) -> list[Location]:
        """Return this location, then each call that led to it, innermost first."""
        outer = self.inlined_at.chain() if self.inlined_at else []
        return [self, *outer]


def printable(text: str) -> str:
    """Replace every control character by a space."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


_shown: set[str] = set()


def show_lines_of(file: str) -> None:
    """Allow messages to show lines of a file. By default only files that Python runs are shown, since PTX text can name
    any file.
    """
    _shown.add(file)


def _is_shown(file: str) -> bool:
    if file in linecache.cache:
        return True
    if file not in _shown and not any(getattr(module, "__file__", None) == file for module in [*sys.modules.values()]):
        return False
    try:
        about = os.stat(file)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(about.st_mode) and about.st_size <= SOURCE_BYTES


class Error(Exception):
    """Base of all errors of ptxdsl: the message, the location, and the fix.

    `at` is the location of the cause; `help` is one sentence that says how to fix it.
    """

    def __init__(self, message: str, *, at: Location | None = None, help: str | None = None) -> None:
        super().__init__(message)
        self.message, self.at, self.help = message, at, help

    def __str__(self) -> str:
        lines = [self.message]
        if self.at:
            chain = self.at.chain()
            lines.append(chain[0].excerpt())  # a comprehension is called from its own line
            lines += [f"  called from {caller}" for called, caller in pairwise(chain) if str(called) != str(caller)]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class TraceError(Error):
    """A Python kernel contains something that cannot be traced."""


class VerifyError(Error):
    """An instruction, kernel or module violates a rule of the PTX ISA."""


class ParseError(Error):
    """The text is not valid PTX, or uses a part of PTX that is not supported."""


class AssembleError(Error):
    """The assembler rejected a module, or a kernel does not fit the target."""


class LinkError(Error):
    """Modules cannot be linked: a symbol is undefined, or defined twice."""


class LaunchError(Error):
    """A launch was rejected before it ran, or the driver reported a failure; located at the user's call by default."""

    def __init__(self, message: str, *, at: Location | None = None, help: str | None = None) -> None:
        super().__init__(message, at=at or caller(), help=help)


class EmulationError(Error):
    """A kernel performed an operation on the emulator whose result is undefined."""


class CallError(Error, TypeError):
    """A function was called with an unknown argument, or with too many or too few."""


class UnknownAttribute(Error, AttributeError):
    """A module of ptxdsl has no such name."""


class LayoutError(Error):
    """A layout, tiled copy or tiled MMA is invalid."""


class ScheduleError(Error):
    """A schedule does not fit its problem or the hardware; located at the user's call by default."""

    def __init__(self, message: str, *, at: Location | None = None, help: str | None = None) -> None:
        super().__init__(message, at=at or caller(), help=help)


class UnusedResultWarning(UserWarning):
    """The result of an instruction without side effects is not used."""


@dataclass(frozen=True, slots=True)
class Site:
    """A call in user code: its location, the names its result is assigned to, and the active user functions.

    `calls` are these functions with their bytecode offsets, in the order of the chain of `location`.
    """

    location: Location
    names: tuple[str, ...] = ()
    calls: tuple[tuple[CodeType, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Names:
    """The local names of the running user function, its bytecode offset, and its module's names."""

    code: CodeType
    offset: int
    values: dict[str, object]
    globals: dict[str, object]


def names_here() -> Names | None:
    """Return the local names visible in the innermost user function; None outside user code."""
    frames = _user_frames(sys._getframe(1), None)
    return _names(frames[0]) if frames else None


def names_of_calls(outermost: CodeType | None, wanted: Callable[[CodeType], bool]) -> list[Names | None]:
    """Return the `Names` of every active user function, innermost first; None for those that are not wanted."""
    frames = _user_frames(sys._getframe(1), outermost)
    return [_names(frame) if wanted(frame.f_code) else None for frame in frames]


def _names(frame: FrameType) -> Names:
    values = dict(frame.f_locals)
    values.pop(".0", None)  # the iterator of a comprehension: a reference to it would hide that its loop was left
    return Names(frame.f_code, frame.f_lasti, values, frame.f_globals)


@contextmanager
def local_names(collect: Callable[[CodeType, dict[str, object]], None]) -> Iterator[None]:
    """While active, call `collect` with the local names of each user function when it returns."""

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "return" and not _is_library(frame.f_code.co_filename) and not _is_generated(frame):
            collect(frame.f_code, dict(frame.f_locals))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


def here(outermost: CodeType | None = None) -> Site:
    """Return the user's call that is running now. Only this module inspects frames.

    Callers up to the function whose code is `outermost` become `inlined_at`.
    """
    frames = _user_frames(sys._getframe(1), outermost)
    if not frames:
        return Site(Location("<unknown>", 0))
    key = tuple([number for frame in frames for number in (id(frame.f_code), frame.f_lasti)])
    if key not in _sites:
        _sites[key] = _site(frames, key)
    return _sites[key]


def caller() -> Location | None:
    """Return the user's call that is running now, counting shipped kernels as library code; None for our own command
    line.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.startswith("ptxdsl.cli"):
            return None
        if module.partition(".")[0] not in _BETWEEN:
            return _location(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def raised_at(error: BaseException, location: Location | None = None) -> Location | None:
    """Return the location where user code raised an exception, with the user's calls that led there, starting at
    `location`.
    """
    for frame, _ in walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(_LIBRARY):
            location = replace(_location(frame.f_code, frame.f_lasti), inlined_at=location)
    return location


def recursion(error: RecursionError) -> Location | None:
    """Return the location of a recursive call in user code, direct or indirect; None if the error has another cause."""
    calls = [(f.f_code, f.f_lasti) for f, _ in walk_tb(error.__traceback__) if not _is_library(f.f_code.co_filename)]
    repeated = [call for call, times in Counter(calls).most_common(1) if times > 2]
    return _location(*repeated[0]) if repeated else None


def of_user(error: BaseException) -> BaseException:
    """Return an error to raise again where users call the package, without the frames in between.

    Python errors raised by our own code keep their frames, since they are bugs of the package. An error from a kernel
    that calls a package function with wrong arguments becomes a CallError.
    """
    if type(error) is TypeError:
        error = _refused_inside(error) or error
    steps = []
    step = error.__traceback__
    while step is not None:
        steps.append(step)
        step = step.tb_next
    users = [step for step in steps if not _is_ours(step.tb_frame.f_code.co_filename)]
    if tracebacks.show_all or not (isinstance(error, Error) or users[-1:] == steps[-1:]):
        return error
    shown = None
    for step in reversed(users):
        shown = TracebackType(shown, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return error.with_traceback(shown)


_PARENTHESES = "write its parentheses: `with pd.elect():`"
_CALL = re.compile(
    r"(\w+)(?:\.__init__)?\(\) (?:got an unexpected keyword argument '(\w+)'|missing \d+ required |"
    r"takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) (?:was|were) given)"
)


def _refused_inside(error: TypeError) -> CallError | None:
    """Return the CallError for a user function that called a package function wrongly; None for other errors.

    Tracing functions are not wrapped like `public` functions, because wrapping would slow down every call.
    """
    match, frames = _CALL.match(str(error)), [frame for frame, _ in walk_tb(error.__traceback__)]
    if not frames or _is_ours(frames[-1].f_code.co_filename):
        return None
    if str(error).startswith("'type' object does not support the context manager protocol"):
        return _instead(error, CallError("`with` takes a call", at=raised_at(error), help=_PARENTHESES))
    if match is None:
        return None
    name, unknown, most, count = match.groups()
    function = vars(sys.modules["ptxdsl"]).get(name)
    if not callable(function) or (frames[-1].f_globals | frames[-1].f_locals).get(name, function) is not function:
        return None  # a function of the user's own
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_POSITIONAL]
    lacking = listed([f"`{each}`" for each in re.findall(r"'(\w+)'", str(error))] or [""])
    message = f"pd.{name} {'takes no' if unknown else 'lacks'} {lacking}; its keyword parameters are {listed(names)}"
    help = meant(unknown, names) if unknown else None
    if count:
        places = "positional argument" if most == "1" else "positional arguments"
        message = f"pd.{name} takes {most} {places}; {count} given"
        named = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
        help = "pass the others by name, `name=value`" if named else help
    return _instead(error, CallError(message, at=raised_at(error), help=help))


def _instead(error: TypeError, refused: CallError) -> CallError:
    """Return an error to raise instead of one raised by Python."""
    refused.__suppress_context__ = True
    return refused.with_traceback(error.__traceback__)


# for package developers; an attribute, since writing a module variable disables the on-disk cache of kernels
tracebacks = SimpleNamespace(show_all=False)


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that users call: its errors show only user frames, and unknown arguments are named."""

    @wraps(function)
    def called(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return function(*arguments, **options)
        except Exception as error:
            if isinstance(error, TypeError) and error.__traceback__ and error.__traceback__.tb_next is None:
                raise _refused_call(function, arguments, options, error) from None  # the function was not entered
            raise of_user(error)  # noqa: B904

    return called


def public_class(cls: type[T]) -> type[T]:
    """Decorate a class that users call, like `public`."""
    cls.__init__ = public(cls.__init__)  # type: ignore[method-assign]
    return cls


def called_elsewhere(**mends: str) -> Callable[[T], T]:
    """Decorate a `public` function with fixes for arguments that other libraries have, by their names."""

    def add(target: T) -> T:
        setattr(target.__init__ if isinstance(target, type) else target, _MENDS, mends)  # type: ignore[misc]
        return target

    return add


_MENDS = "mends"


def _called_name(function: object) -> str:
    """Return the name users call: `gemm`, `pd.Ring`; for a constructor, the class."""
    name = getattr(function, "__qualname__", repr(function)).removesuffix(".__init__")
    return f"pd.{name}" if name in getattr(sys.modules.get("ptxdsl"), "__all__", ()) else name


def _refused_call(
    function: Callable[..., object], arguments: tuple[object, ...], options: dict[str, object], error: TypeError
) -> CallError:
    """Return the error for a call whose arguments do not bind to the parameters of a function."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    by_position = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    count = len(arguments) - (next(iter(inspect.signature(function).parameters), "") == "self")
    required = {p.name for p in parameters if p.name in names and p.default is p.empty}
    called, takes, help = _called_name(function), f"it takes {listed(names) if names else 'no arguments'}", None
    if unknown := [name for name in options if name not in names]:
        message, help = (
            f"{called} takes no `{unknown[0]}`; {takes}",
            meant(unknown[0], names, getattr(function, _MENDS, {})),
        )
    elif count > len(by_position):
        taken = f"{len(by_position) or 'no'} {'positional ' if names else ''}argument{'s' * (len(by_position) != 1)}"
        message = f"{called} takes {taken}; {count} given"
        behind = f"pass the arguments after `{by_position[-1]}` by name; {takes}" if by_position else takes
        help = behind if names else "leave it out" if count == 1 else "leave them out"
    elif twice := [name for name in by_position[:count] if name in options]:
        message = f"{called} has `{twice[0]}` twice, by position and by name"
    elif missing := [name for name in names if name in required - {*by_position[:count], *options}]:
        message = f"{called} lacks {listed(f'`{name}`' for name in missing)}; {takes}"
    else:
        message = str(error)
    return CallError(message, at=caller(), help=help)


def listed(words: Iterable[str], last: str = "and") -> str:
    """Join words as 'a, b and c'."""
    *first, final = words
    return f"{', '.join(first)} {last} {final}" if first else final


def meant(
    name: str, known: Iterable[str], mends: Mapping[str, str] = MappingProxyType({}), *, cutoff: float = 0.55
) -> str | None:
    """Suggest the name meant by an unknown one: a name from another library, or a close spelling.

    `cutoff` is the minimum similarity of a known name, from 0 to 1.
    """
    if name in mends:
        return mends[name]
    near = get_close_matches(name, list(known), 1, cutoff)
    return f"did you mean `{near[0]}`?" if near else None


def refuse_attribute(module: str, known: Iterable[str], mends: Mapping[str, str], name: str) -> NoReturn:
    """Raise AttributeError for an unknown name of a module, with a suggestion. Names that begin with _ are looked up by
    Python itself and get no suggestion.
    """
    if name.startswith("_"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise UnknownAttribute(f"{module} has no `{name}`", at=caller(), help=meant(name, known, mends))


def parameters_unlike(function: object, names: Iterable[str]) -> str | None:
    """Return the parameters of a function that cannot take this number of positional arguments; None if it can, or if
    it is not a Python function.
    """
    if not callable(function):
        return None
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin
        return None
    try:
        signature.bind(*names)
    except TypeError:
        return ", ".join(signature.parameters) or "nothing"
    return None


def _is_ours(file: str) -> bool:
    return file.startswith(_LIBRARY) or "contextlib" in file


def is_dropped_here() -> bool:
    """True if the user's function loads an attribute and discards it: an expression statement."""
    frames = _user_frames(sys._getframe(1), None)
    return bool(frames) and _is_dropped(frames[0].f_code, frames[0].f_lasti)


@lru_cache(maxsize=1024)
def _is_dropped(code: CodeType, offset: int) -> bool:
    running, following, *_ = _from(code, offset)
    return running.opname == "LOAD_ATTR" and following.opname == "POP_TOP"


def _from(code: CodeType, offset: int) -> list[dis.Instruction]:
    """Return the running instruction of a function and all that follow it."""
    listing = bytecode(code)
    return listing[bisect_right(listing, offset, key=lambda i: i.offset) - 1 :]


def is_looped_here() -> bool:
    """True if a Python loop or generator, rather than a function, requests an iterator from the caller."""
    frame = sys._getframe(2)
    return _from(frame.f_code, frame.f_lasti)[0].opname in ("GET_ITER", "GET_YIELD_FROM_ITER", "FOR_ITER")


def is_repeated_here() -> bool:
    """True if the user's function puts the result of this call alone into a list or tuple, and repeats it with `*`."""
    frames = _user_frames(sys._getframe(1), None)
    return bool(frames) and _is_repeated(frames[0].f_code, frames[0].f_lasti)


@lru_cache(maxsize=1024)
def _is_repeated(code: CodeType, offset: int) -> bool:
    _, *following = _from(code, offset)
    if len(following) < 2 or following[0].opname not in ("BUILD_LIST", "BUILD_TUPLE") or following[0].arg != 1:
        return False
    first, *rest = following
    return _multiplies(rest[0]) or any(_multiplies(i) and begins(i) == begins(first) for i in rest)


def _multiplies(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_OP" and instruction.argrepr in ("*", "*=")


def begins(instruction: dis.Instruction) -> tuple[int | None, int | None]:
    """Return the line and column where an instruction's source text begins."""
    span = instruction.positions
    return (span.lineno, span.col_offset) if span else (None, None)


# Keyed by each running function's identity, since equal code may occur in two files, and offset; values keep it alive.
_sites: dict[tuple[int, ...], Site] = {}
_located: dict[tuple[int, ...], tuple[CodeType, Location]] = {}


def _site(frames: list[FrameType], key: tuple[int, ...]) -> Site:
    """Return the site of the innermost frame, inlined at the others; `key` is that of `_sites`."""
    codes = tuple([frame.f_code for frame in frames])
    new = next((n for n in range(len(codes)) if key[2 * n :] in _located), len(codes))
    _, location = _located.get(key[2 * new :], (None, None))
    for n in reversed(range(new)):
        location = replace(_location(codes[n], key[2 * n + 1]), inlined_at=location)
        _located[key[2 * n :]] = codes[n], location
    assert location is not None
    return Site(location, _targets(codes[0], key[1]), tuple(zip(codes, key[1::2], strict=True)))


def _user_frames(frame: FrameType | None, outermost: CodeType | None) -> list[FrameType]:
    """Return frames of user code, innermost first, up to `outermost`; one frame if that is unknown."""
    frames: list[FrameType] = []
    while frame is not None:
        file = frame.f_code.co_filename
        if not _is_library(file) and not (file == "<string>" and _is_generated(frame)):
            frames.append(frame)
            if outermost is None or frame.f_code is outermost:
                break
        frame = frame.f_back
    return frames if outermost is None or (frames and frames[-1].f_code is outermost) else frames[:1]


def _is_generated(frame: FrameType) -> bool:
    """True if the frame belongs to a function that `dataclass` generated for the package."""
    module = frame.f_globals.get("__name__") if frame.f_code.co_filename == "<string>" else None
    return isinstance(module, str) and module.startswith("ptxdsl.")


@cache
def _is_library(file: str) -> bool:
    is_ours = file.startswith(_LIBRARY) and not file.startswith(_SHIPPED_KERNELS)
    callers = filter(None, map(sys.modules.get, _CALLING))
    folders = tuple(os.path.join(folder, "") for module in callers for folder in getattr(module, "__path__", ()))
    return is_ours or "contextlib" in file or file.startswith(folders)


def _location(code: CodeType, offset: int) -> Location:
    """Return the location of one bytecode instruction; one that spans several lines gives its start."""
    line, end_line, start, end = next(islice(code.co_positions(), offset // 2, None))
    columns = (start or 0, end or 0) if line == end_line else (start or 0, (start or 0) + 1)
    show_lines_of(code.co_filename)
    return Location(code.co_filename, line or code.co_firstlineno, columns, code.co_name)


@lru_cache(maxsize=1024)
def bytecode(code: CodeType) -> list[dis.Instruction]:
    """Return the instructions of a Python function."""
    return list(dis.get_instructions(code))


def _targets(code: CodeType, offset: int) -> tuple[str, ...]:
    """Return the names in `a = f()` or `a, b = f()` if the instruction at `offset` is the call or operator."""
    listing = bytecode(code)
    following = listing[bisect_right(listing, offset, key=lambda i: i.offset) :]
    if not following:
        return ()
    count = 1
    if following[0].opname == "UNPACK_SEQUENCE":
        count = following[0].arg or 0
        following = following[1:]
    stores = [name for i in following[:count] for name in _stored(i)][:count]
    return tuple(stores) if len(stores) == count else ()


def _stored(instruction: dis.Instruction) -> tuple[str, ...]:
    """Return the names that an instruction binds; from Python 3.13 on, some bind two, or bind one and load another."""
    if not instruction.opname.startswith(("STORE_FAST", "STORE_NAME", "STORE_DEREF")):
        return ()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return tuple(map(str, names[: instruction.opname.count("STORE")]))
