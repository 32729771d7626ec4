"""The emulator: runs PTX on numpy arrays and finds what has no defined result."""

from .launch import emulate, run
from .report import Finding, Report, Thread
from .stream import Stream

__all__ = ["Finding", "Report", "Stream", "Thread", "emulate", "run"]
