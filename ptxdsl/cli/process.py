"""The command as a process: closed streams, full disks, Ctrl-C, too little memory; a sentence and a status for each.

0 when all is well, 1 for an error in a kernel or a wrong result, 2 for a command that cannot be meant or carried out.
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
    """The command line names something that is not there, or that cannot be done."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, as opposed to a KeyboardInterrupt that somebody's module raises."""


def run(command: Callable[[], int]) -> int:
    """Runs a command; its exit status, after a sentence on stderr where it failed."""
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
    """The status of a command, once all that it printed is written."""
    try:
        status = command()
    except SystemExit:  # of argparse, after --help or a usage
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _explained(error: Exception) -> str:
    """What the system refused, in one line. Raises what is a mistake of ours."""
    if isinstance(error, MemoryError):
        return f"there is too little memory: {error}" if str(error) else "there is too little memory"
    if isinstance(error, RecursionError):
        return f"this is nested deeper than Python's recursion limit, {sys.getrecursionlimit()}"
    if isinstance(error, UnicodeEncodeError):
        letter = error.object[error.start]
        return f"stdout takes {error.encoding} alone, which has no {letter!a}; set PYTHONIOENCODING=utf-8"
    if "int_max_str_digits" in str(error):
        return f"a number has more than {sys.get_int_max_str_digits()} digits"
    raise error


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # stderr is closed, or its disk is full: the status has to do
        print(f"{_red('ptxdsl:')} {text}", file=sys.stderr)


def _red(text: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
    return text if plain else f"\x1b[1;31m{text}\x1b[0m"


def _open_closed_streams() -> None:
    """Puts /dev/null where the caller has closed a stream, so that no other file gets its number.

    It is opened the wrong way round for stdin and stdout: to use them is then an error like any other.
    """
    for name, (number, flags, mode) in _STREAMS.items():
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _drop(stream: TextIO) -> None:
    """What could not be written is not tried again when Python ends, which would change the status."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def _ctrl_c() -> Iterator[None]:
    """Within, Ctrl-C is Interrupted, where it is a KeyboardInterrupt before. Only the main thread may say so."""
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
    """Add to a Ctrl-C in the body of a `with` what was interrupted; the command prints it."""
    try:
        yield
    except Interrupted as interrupt:
        raise Interrupted(*(interrupt.args or (describe(),))) from None


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted
