"""The emulator: run PTX on numpy arrays, and report everything whose result is undefined.

- launch, stream: arguments to memory and back; what earlier launches touched
- threads, report: thread names, findings
- run: the machine, its processor and scheduler
- memory, asynchronous: state spaces; copies and wgmma in flight
- observe: checks of accesses, among them `observe.races`
"""

from .launch import emulate, now, run
from .report import Degree, Finding, Report, Thread
from .stream import Stream

__all__ = ["Degree", "Finding", "Report", "Stream", "Thread", "emulate", "now", "run"]
