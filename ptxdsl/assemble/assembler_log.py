"""Parse the log of ptxas and its linker: resources of each kernel, warnings, errors, and the Python lines they refer
to.

nvJitLink, ptxas and the driver print the same sentences. ptxas reports spills and barriers. The linker, if it ran,
reports the registers and the stack of a kernel including its callees. Shared memory is read from the cubin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ptxdsl.errors import Location
from ptxdsl.ir import unquoted


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one kernel. Spills and stack are in bytes per thread, shared memory in bytes per block.

    `shared_bytes` is static shared memory, which the cubin declares. `dynamic_shared_bytes` is the dynamic shared
    memory of a launch that does not name a size; None if each launch must name one.
    """

    registers: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    stack_bytes: int = 0
    shared_bytes: int = 0
    constant_bytes: int = 0
    barriers: int = 0
    dynamic_shared_bytes: int | None = 0

    @property
    def total_shared_bytes(self) -> int:
        """Static plus dynamic shared memory in bytes per block, which limits occupancy."""
        return self.shared_bytes + (self.dynamic_shared_bytes or 0)

    def __str__(self) -> str:
        return (
            f"{_counted(self.registers, 'register')}, {self._shared()}, "
            f"{_counted(self.spill_store_bytes, 'byte')} spilled, {_counted(self.stack_bytes, 'byte')} of stack, "
            f"{_counted(self.barriers, 'barrier')}"
        )

    def _shared(self) -> str:
        total = f"{_counted(self.total_shared_bytes, 'byte')} of shared memory"
        if self.dynamic_shared_bytes is None:
            return f"{total} plus the dynamic shared memory of the launch"
        dynamic = f" ({self.shared_bytes} static, {self.dynamic_shared_bytes} dynamic)"
        return total + dynamic * bool(self.dynamic_shared_bytes)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


_COMPILING = re.compile(r"Compiling entry function '(.+?)'")
_PROPERTIES = re.compile(r"Function properties for '?([\w$.%]+)'?")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"\bUsed (\d+) registers(.*)")
_LINKED = re.compile(r"\bused (\d+) registers(.*)")


def resources(log: str) -> dict[str, Resources]:
    """Return the resources of each kernel in a verbose log, in its order."""
    by_name: dict[str, Resources] = {}
    kernel = function = ""
    for line in log.splitlines():
        if entry := _COMPILING.search(line):
            kernel = function = entry[1]
            by_name[kernel] = Resources()
        elif properties := _PROPERTIES.search(line):
            function = properties[1]
        elif (frame := _FRAME.search(line)) and function in by_name:
            stack, stores, loads = map(int, frame.groups())
            by_name[function] = replace(
                by_name[function], stack_bytes=stack, spill_store_bytes=stores, spill_load_bytes=loads
            )
        elif (used := _USED.search(line)) and kernel in by_name:
            by_name[kernel] = replace(
                by_name[kernel],
                registers=int(used[1]),
                barriers=_sum(r"used (\d+) barriers", used[2]),
                constant_bytes=_sum(r"(\d+) bytes cmem", used[2]),
            )
        elif (linked := _LINKED.search(line)) and function in by_name:
            known = by_name[function]
            by_name[function] = replace(  # the barriers stay: the linker counts those reserved by the system too
                known,
                registers=max(known.registers, int(linked[1])),
                stack_bytes=max(known.stack_bytes, _sum(r"(\d+) stack", linked[2])),
                constant_bytes=known.constant_bytes or _sum(r"(\d+) bytes cmem", linked[2]),
            )
    return by_name


def _sum(pattern: str, text: str) -> int:
    return sum(map(int, re.findall(pattern, text)))


@dataclass(frozen=True, slots=True)
class Remark:
    """An error or warning; `line` is the PTX line that it refers to, counted from 1, or None."""

    severity: str
    message: str
    line: int | None = None


_REMARK = re.compile(r"(?:, line (?P<line>\d+);)?\s*\b(?P<severity>error|fatal|warning|info)\s*: (?P<message>.*)")
_AROUND = re.compile(r"\bin (?:around )?line (\d+)\b")
_SHARED = re.compile(r"Entry function '(.+?)' uses too much shared data \(0x(\w+) bytes, 0x(\w+) max\)")


def remarks(log: str) -> list[Remark]:
    """Return every remark of a log that has a severity, in its order."""
    return [_remark(match) for line in log.splitlines() if (match := _REMARK.search(line))]


def _remark(match: re.Match[str]) -> Remark:
    message = match["message"].strip()
    if shared := _SHARED.search(message):
        declared, limit = int(shared[2], 16), int(shared[3], 16)
        message = f"`{shared[1]}` declares {declared} bytes of static shared memory; the limit is {limit}"
    line = match["line"] or (around[1] if (around := _AROUND.search(message)) else None)
    return Remark(match["severity"], message, int(line) if line else None)


def errors(log: str) -> list[Remark]:
    """Return the errors of a log; "aborted due to errors" only if there is no other."""
    refusals = [remark for remark in remarks(log) if remark.severity in ("error", "fatal")]
    return [remark for remark in refusals if "aborted due to errors" not in remark.message] or refusals


def warnings(log: str) -> list[Remark]:
    """Return warnings (spills) and numbered advice, without the remarks of `warpgroup_losses`."""
    return [
        remark
        for remark in remarks(log)
        if remark.severity == "warning"
        or (remark.severity == "info" and remark.message.startswith("(C") and not _LOSS.match(remark.message))
    ]


_LOSS = re.compile(r"\(C(75\d\d)\)")
_IN_FUNCTION = re.compile(r"in (?:the )?function '(.+?)'")


@dataclass(frozen=True, slots=True)
class WarpgroupLoss:
    """A feature that the assembler dropped: asynchronous wgmma (serialised, C7510 and related codes) or setmaxnreg."""

    code: int
    kernel: str
    remark: Remark


def warpgroup_losses(log: str) -> list[WarpgroupLoss]:
    """Return every such remark of a log with its kernel; "" if the log names no kernel."""
    kernels = _COMPILING.findall(log)
    losses = []
    for remark in remarks(log):
        if code := _LOSS.match(remark.message):
            named = _IN_FUNCTION.search(remark.message)
            kernel = named[1] if named else kernels[0] if len(kernels) == 1 else ""
            losses.append(WarpgroupLoss(int(code[1]), kernel, remark))
    return losses


def loss_line(ptx: str, loss: WarpgroupLoss) -> int | None:
    """Return the PTX line that a loss refers to: that of the remark, else the kernel's first such instruction."""
    if loss.remark.line:
        return loss.remark.line
    return first_line(ptx, loss.kernel, "setmaxnreg." if "setmaxnreg" in loss.remark.message else "wgmma.mma_async.")


def first_line(ptx: str, kernel: str, wanted: str) -> int | None:
    """Return the first PTX line that contains `wanted` in a kernel; in any kernel if `kernel` is ""."""
    inside = not kernel
    for number, line in enumerate(ptx.splitlines(), start=1):
        if _FUNCTION.search(line):
            inside = not kernel or re.search(rf"\b{re.escape(kernel)}\b", line) is not None
        if inside and wanted in line:
            return number
    return None


_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"(.*?)"', re.MULTILINE)
_POSITION = r"(\d+)\s+(\d+)\s+(\d+)"
_LOC = re.compile(rf"\.loc\s+{_POSITION}(?:\s*,\s*function_name\s+[^,]+,\s*inlined_at\s+{_POSITION})?")
_FUNCTION = re.compile(r"\.(?:entry|func)\b")


def python_location(ptx: str, line: int) -> Location | None:
    """Return the Python location of a PTX line, from its `.loc`; None if it has none."""
    files = {int(number): unquoted(name) for number, name in _FILE.findall(ptx)}
    lines = ptx.splitlines()[:line]
    for at in range(len(lines) - 1, -1, -1):
        if loc := _LOC.search(lines[at]):
            return _location(loc, lines[:at], files)
        if _FUNCTION.search(lines[at]):
            return None
    return None


def _location(loc: re.Match[str], before: Sequence[str], files: dict[int, str]) -> Location:
    """Return the location of a `.loc`. `inlined_at` refers to an earlier `.loc`, which may be inlined itself."""
    location = _located(loc.groups()[:3], files)
    if loc[4] is None:
        return location
    call = loc.groups()[3:]
    for at in range(len(before) - 1, -1, -1):
        outer = _LOC.search(before[at])
        if outer and outer.groups()[:3] == call:
            return replace(location, inlined_at=_location(outer, before[:at], files))
    return replace(location, inlined_at=_located(call, files))


def _located(numbers: Sequence[str], files: dict[int, str]) -> Location:
    file, line, column = map(int, numbers)
    return Location(files.get(file, f"<file {file}>"), line, (column - 1, column) if column else (0, 0))
