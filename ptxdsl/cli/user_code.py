"""Python that is not ours, run by the command: whatever it raises becomes one error with its line."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import ptxdsl
from ptxdsl.cli.process import Interrupted, UsageError
from ptxdsl.errors import Error, Location, printable

DEEP = "name the parts of a long expression, or make a loop of the recursion"
_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_IMPORTLIB = os.path.dirname(importlib.__file__) + os.sep


@contextmanager
def user_code(failure: str) -> Iterator[None]:
    """Runs somebody's Python: what it prints goes to stderr, and what it raises becomes an error of ours.

    Our own errors stay as they are, and so does Ctrl-C.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Error, Interrupted):
        raise
    except Exception as error:
        raise UsageError(f"{failure}: {_told(error)}", at=_raised_at(error), help=_help(error)) from error
    except BaseException as error:  # SystemExit and the like would end the command as if all were well
        at = _raised_at(error)
        where = f" ({at})" if at else ""
        raise UsageError(f"{failure}: it raised {_told(error)}{where}") from error


def _help(error: Exception) -> str | None:
    if isinstance(error, RecursionError):
        return DEEP
    if isinstance(error, NameError) and error.name in ptxdsl.__all__:
        return f"from ptxdsl import {error.name}"
    return None


def _told(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, RecursionError):
        return f"RecursionError: it is nested deeper than {recursion_limit()}"
    if isinstance(error, MemoryError) and not str(error):
        return "MemoryError: too little memory, or an expression that is nested deeper than Python's parser goes"
    text = printable(" ".join(str(getattr(error, "msg", error)).split()))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def recursion_limit() -> str:
    """Its name and number."""
    return f"Python's recursion limit of {sys.getrecursionlimit()}"


def _raised_at(error: BaseException) -> Location | None:
    """The line of the user's code that an exception comes from."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(error.filename, error.lineno or 0, source=error.text or "")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_user(frame.filename)]
    return Location(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def _is_of_user(file: str) -> bool:
    return not file.startswith(("<", _LIBRARY, _IMPORTLIB))
