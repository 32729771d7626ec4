"""The process around a command: exit codes, and messages for closed streams, full disks, Ctrl-C and too little memory.

Exit codes: 0 success, 1 an error in a kernel or a wrong result, 2 a command line that is wrong or cannot be carried
out.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TextIO

from ptxdsl.errors import Error

FAILURE, USAGE, INTERRUPTED = 1, 2, 130
_STREAMS = {"stdin": (0, os.O_WRONLY, "r"), "stdout": (1, os.O_RDONLY, "w"), "stderr": (2, os.O_WRONLY, "w")}


class UsageError(Error):
    """An error in the command line: something is missing or cannot be done."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, as opposed to a KeyboardInterrupt raised by user code."""


def run(command: Callable[[], int]) -> int:
    """Run a command and return its exit code, with a message on stderr if it failed."""
    _open_closed_streams()
    try:
        return _status(command)
    finally:
        try:
            sys.stderr.flush()
        except OSError:
            _drop(sys.stderr)


def _status(command: Callable[[], int]) -> int:
    try:
        with _ctrl_c():
            return _finished(command)
    except BrokenPipeError:  # a reader such as `head` has seen enough
        _drop(sys.stdout)
        return FAILURE
    except KeyboardInterrupt as interrupt:
        if interrupt.args:
            _say(f"interrupted while {interrupt.args[0]}")
        return INTERRUPTED
    except Error as error:
        _say(str(error))
        return USAGE if isinstance(error, UsageError) else FAILURE
    except OSError as error:
        _drop(sys.stdout)
        _say(f"{error.filename or 'stdout'} cannot be written: {error.strerror}")
        return USAGE
    except (MemoryError, RecursionError, ValueError) as error:
        _say(_explained(error))
        return USAGE


def _finished(command: Callable[[], int]) -> int:
    """Run a command, flush stdout and return the exit code."""
    try:
        status = command()
    except SystemExit:  # raised by argparse after --help or a usage error
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _explained(error: Exception) -> str:
    """Describe an error of the system in one line. Any other exception is a bug and is raised again."""
    if isinstance(error, MemoryError):
        return f"there is too little memory: {error}" if str(error) else "there is too little memory"
    if isinstance(error, RecursionError):
        return f"this is nested deeper than Python's recursion limit, {sys.getrecursionlimit()}"
    if isinstance(error, UnicodeEncodeError):
        letter = error.object[error.start]
        return f"the encoding of stdout, {error.encoding}, has no {letter!a}; set PYTHONIOENCODING=utf-8"
    if "int_max_str_digits" in str(error):
        return f"a number has more than {sys.get_int_max_str_digits()} digits"
    raise error


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # stderr is closed or its disk is full; the exit code is all that is left
        print(f"{_red('ptxdsl:')} {text}", file=sys.stderr)


def _red(text: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
    return text if plain else f"\x1b[1;31m{text}\x1b[0m"


def _open_closed_streams() -> None:
    """Open /dev/null in place of closed streams, so that no other file gets their number.

    stdin is opened for writing and stdout for reading, so that using them is an error like any other.
    """
    for name, (number, flags, mode) in _STREAMS.items():
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _drop(stream: TextIO) -> None:
    """Discard unwritten output, which Python would otherwise write at exit, changing the exit code."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def _ctrl_c() -> Iterator[None]:
    """Raise Interrupted instead of KeyboardInterrupt on Ctrl-C. Only the main thread may install the handler."""
    usual = signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


@contextlib.contextmanager
def interrupted_in(describe: Callable[[], str]) -> Iterator[None]:
    """Add a description of the interrupted step to a Ctrl-C in the body of a `with`; the command prints it."""
    try:
        yield
    except Interrupted as interrupt:
        raise Interrupted(*(interrupt.args or (describe(),))) from None


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted
