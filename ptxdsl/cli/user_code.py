"""User code run by the command: an exception that it raises becomes one error with its line."""

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

DEEP = "split a long expression with intermediate variables, or turn the recursion into a loop"
_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_IMPORTLIB = os.path.dirname(importlib.__file__) + os.sep


@contextmanager
def user_code(failure: str) -> Iterator[None]:
    """Run user code: send its output to stderr, and turn its exceptions into a UsageError.

    Errors of ptxdsl and Ctrl-C pass through.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Error, Interrupted):
        raise
    except Exception as error:
        raise UsageError(f"{failure}: {_in_one_line(error)}", at=_raised_at(error), help=_help(error)) from error
    except BaseException as error:  # SystemExit would otherwise end the command with the user's exit code
        at = _raised_at(error)
        where = f" ({at})" if at else ""
        raise UsageError(f"{failure}: it raised {_in_one_line(error)}{where}") from error


def _help(error: Exception) -> str | None:
    if isinstance(error, RecursionError):
        return DEEP
    if isinstance(error, NameError) and error.name in ptxdsl.__all__:
        return f"from ptxdsl import {error.name}"
    return None


def _in_one_line(error: BaseException) -> str:
    """Describe an exception in one line."""
    if isinstance(error, RecursionError):
        return f"RecursionError: it is nested deeper than {recursion_limit()}"
    if isinstance(error, MemoryError) and not str(error):
        return "MemoryError: too little memory, or an expression nested too deep for Python's parser"
    text = printable(" ".join(str(getattr(error, "msg", error)).split()))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def recursion_limit() -> str:
    """Return the name and the value of Python's recursion limit."""
    return f"Python's recursion limit of {sys.getrecursionlimit()}"


def _raised_at(error: BaseException) -> Location | None:
    """Return the last line of user code in the traceback of an exception."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(error.filename, error.lineno or 0, source=error.text or "")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_user(frame.filename)]
    return Location(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def _is_of_user(file: str) -> bool:
    return not file.startswith(("<", _LIBRARY, _IMPORTLIB))
