"""The command `ptxdsl debug`: stop, step and inspect one launch on the emulator from a terminal."""

from __future__ import annotations

import argparse
import cmd
import linecache
import re
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from ptxdsl.cli.launches import TARGETS, add_example, add_launch, one_launch, running, using_arch
from ptxdsl.cli.process import FAILURE, UsageError
from ptxdsl.cli.progress import LaunchProgress
from ptxdsl.debug import Debugger, Stop, debug
from ptxdsl.debug.inspection import UNWRITTEN
from ptxdsl.emulate.report import counted, shown
from ptxdsl.emulate.threads import ThreadName
from ptxdsl.errors import Error, meant

DESCRIPTION = "Run a launch on the emulator, and stop, step and inspect it."
AROUND = 5  # lines and instructions before and behind
A_ROW = 8  # lanes of a warp in a line of text
MOST_ELEMENTS = 4096  # of an array, that are printed
EPILOG = f"""{TARGETS}
Commands come from the terminal, from stdin, or from --command. The launch is stopped at its first instruction.

  break LINE [thread T]       stop at a line: 12, or file.py:12        (b)
  clear [N]                   remove a breakpoint, or all of them
  continue                    run to a breakpoint, a finding or the end  (c)
  step, next                  run to another line; next: of the kernel   (s, n)
  stepi                       run to the next instruction                (si)
  thread [T]                  select a thread: 3, 3,1 or 3 of 0,1
  print NAME [as TYPE]        a register by its Python or PTX name       (p)
  registers [all]             the registers that the thread has written  (r)
  warp NAME [as TYPE]         a register in all lanes of the warp        (w)
  shared [NAME]               shared memory, through its layout: tile, tile[3], tile[0:8, 16:32]
  memory NAME [FIRST [COUNT]] the present contents of an argument array  (m)
  where                       the state of all threads
  backtrace                   the call stack of the thread               (bt)
  list, ptx                   source lines, instructions                 (l)
  findings, breaks, quit                                                 (q)

exit code: 0 no findings, 1 findings, 2 the command line, or one of the commands, is wrong

examples
  ptxdsl debug kernels.py:saxpy
  ptxdsl debug kernels.py:saxpy -c "break 9" -c continue -c "warp i" -c where
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_launch(parser)
    add_example(parser)
    parser.add_argument(
        "-c", "--command", action="append", dest="lines", metavar="COMMAND", help="a command to run; repeat the option"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; return 1 if there are findings."""
    if options.target == "-" and not options.lines:
        raise UsageError("stdin has the PTX and cannot have commands", help="pass them with --command")
    with using_arch(options):
        name, kernel, example = one_launch(options)
        with running(name, options):
            session = debug(kernel, example.grid, example.block, *example.arguments, **example.keywords)
        with session:
            terminal = DebuggerTerminal(session)
            print(f"{name}{example}\n{session.stop}")
            if options.lines is None and sys.stdin.isatty():
                terminal.cmdloop()
            else:
                terminal.run_script(options.lines if options.lines is not None else sys.stdin.read().splitlines())
            return FAILURE if terminal.findings() else 0


class DebuggerTerminal(cmd.Cmd):
    """A command loop that reads commands and prints the replies of a debugger."""

    prompt = "(ptxdsl) "

    def __init__(self, session: Debugger) -> None:
        super().__init__()
        self.session = session

    # Reading commands

    def run_script(self, lines: Sequence[str]) -> None:
        """Run commands one after another and print each with its reply. Raises UsageError if one is refused."""
        for line in filter(str.strip, lines):
            print(f"{self.prompt}{line}")
            try:
                if self._obey(line):
                    return
            except Error as error:
                raise UsageError(error.message, at=error.at, help=error.help) from error

    def onecmd(self, line: str) -> bool:
        """Run one command of a terminal; a refusal is only printed."""
        if line == "EOF":
            print()
            return True
        line = line.strip() or self.lastcmd  # an empty line repeats the last command, as in other debuggers
        if not line:
            return False
        self.lastcmd = line
        try:
            return self._obey(line)
        except Error as error:
            print(error)
            return False

    def _obey(self, line: str) -> bool:
        """Run a command and return True if it was the last one."""
        word, _, rest = line.strip().partition(" ")
        name = SHORT.get(word, word)
        if name not in COMMANDS:
            near = meant(word, COMMANDS, ELSEWHERE)
            known = f"the commands are {', '.join(COMMANDS)}"
            raise Error(f"there is no command `{word}`", help=f"{near} {known}" if near else known)
        return bool(COMMANDS[name](self, rest.strip()))

    def completenames(self, text: str, *_: Any) -> list[str]:
        return [name for name in COMMANDS if name.startswith(text)]

    # Running

    def findings(self) -> bool:
        """True if there are findings so far."""
        report = self.session.report or self.session.machine.report
        return any(finding.kind != "closed" for finding in report.errors)

    def _tell(self, stop: Stop) -> None:
        print(stop)
        if stop.is_end and self.session.report is not None:
            report = self.session.report
            print(f"{counted(report.instructions, 'thread instruction')}, {counted(len(report.findings), 'finding')}")

    def do_break(self, text: str) -> None:
        position, _, thread = text.partition(" thread ")
        if not text:
            raise Error("break takes a line", help="such as 12, or file.py:12")
        print(self.session.stop_at(position, _thread(thread) if thread else None))

    def do_breaks(self, text: str) -> None:
        print("\n".join(map(str, self.session.breaks)) or "no breakpoints")

    def do_clear(self, text: str) -> None:
        if text and not text.isdecimal():
            raise Error(f"clear takes the number of a breakpoint; found `{text}`")
        self.session.clear(int(text) if text else None)
        self.do_breaks("")

    def do_continue(self, text: str) -> None:
        with LaunchProgress("running").launch("to the next stop"):
            stop = self.session.resume()
        self._tell(stop)

    def do_step(self, text: str) -> None:
        self._tell(self.session.step())

    def do_next(self, text: str) -> None:
        self._tell(self.session.next())

    def do_stepi(self, text: str) -> None:
        self._tell(self.session.step_instruction())

    def do_quit(self, text: str) -> bool:
        return True

    def do_help(self, arg: str) -> None:
        print(EPILOG.partition("first instruction.\n\n")[2].partition("\n\nexit code")[0])

    # Inspecting

    def do_thread(self, text: str) -> None:
        if text:
            self.session.select(_thread(text))
        print(self.session.focus)
        if text and (standing := self.session.inspection.standing(self.session.focus)) is not None:
            step = standing.step
            print(f"  {step.location or '(no line)'}  {step.instruction}{'  (waits)' * standing.waits}")

    def do_print(self, text: str) -> None:
        name, type = _typed("print", text)
        for each in self.session.inspection.values(name, self.session.focus, type):
            print(each)

    def do_registers(self, text: str) -> None:
        if text not in ("", "all"):
            raise Error(f"registers takes `all` or nothing; found `{text}`")
        known = self.session.inspection.registers(self.session.focus, numbered=text == "all")
        print("\n".join(map(str, known)) or "no register is written yet")

    def do_warp(self, text: str) -> None:
        name, type = _typed("warp", text)
        chosen, names = self.session.inspection.choice(name, self.session.focus)
        if len(names) > 1:
            others = ", ".join(f"`warp {each}`" for each in names if each != chosen)
            print(f"{chosen}, the last written of {len(names)} registers named {name}; others: {others}")
        row = [UNWRITTEN if v is None else shown(v) for v in self.session.warp(name, type=type)]
        width = max(map(len, row))
        for first in range(0, len(row), A_ROW):
            print(f"lanes {first:2}-{first + A_ROW - 1:2}  " + " ".join(f"{v:>{width}}" for v in row[first:][:A_ROW]))

    def do_shared(self, text: str) -> None:
        inspection = self.session.inspection
        if not text:
            print(", ".join(inspection.shared_names()) or "the kernel has no shared memory")
            return
        print(inspection.shared(text, self.session.focus, MOST_ELEMENTS))

    def do_memory(self, text: str) -> None:
        match = re.fullmatch(r"(\S+)(?:\s+(\d{1,12}))?(?:\s+(\d{1,6}))?", text)
        if match is None:
            raise Error("memory takes an array, a first element and a count", help="for example `memory x 128 16`")
        first, count = int(match[2] or 0), int(match[3] or A_ROW)
        values = self.session.inspection.memory(match[1], first, count)
        print(f"{match[1]}[{first}:{first + len(values)}] = {' '.join(map(shown, values))}")

    def do_where(self, text: str) -> None:
        print("\n".join(self.session.inspection.where()))

    def do_backtrace(self, text: str) -> None:
        print("\n".join(self.session.inspection.backtrace(self.session.focus)))

    def do_findings(self, text: str) -> None:
        report = self.session.report or self.session.machine.report
        print("\n".join(map(str, report.findings)) or "no findings")

    def do_list(self, text: str) -> None:
        at = self.session.stop.location
        if at is None:
            raise Error("the launch is not stopped at a line", help="`ptx` shows instructions")
        for line in range(max(1, at.line - AROUND), at.line + AROUND + 1):
            if source := linecache.getline(at.file, line):
                print(f"{'->' if line == at.line else '  '} {line:4} {source}".rstrip())

    def do_ptx(self, text: str) -> None:
        standing = self.session.inspection.standing(self.session.focus)
        if standing is None:
            raise Error(f"{self.session.focus} does not run")
        first = max(0, standing.pc - AROUND)
        steps = list(enumerate(standing.frame.code.steps[first : standing.pc + AROUND + 1], first))
        for position, group in groupby(steps, key=lambda numbered: str(numbered[1].location or "")):
            print(f"{position}:")
            for pc, step in group:
                print(f"{'->' if pc == standing.pc else '  '}   {step.instruction}")


COMMANDS: dict[str, Callable[[DebuggerTerminal, str], bool | None]] = {
    name.removeprefix("do_"): function for name, function in vars(DebuggerTerminal).items() if name.startswith("do_")
}
ELSEWHERE = {
    "run": "the launch has begun: `continue` goes on to the next stop;",
    "finish": "`continue` goes on to the next stop;",
    "info": "`registers`, `shared`, `where` and `findings` tell what there is;",
    "x": "`memory` shows an array of the arguments;",
    "delete": "`clear` takes breakpoints away;",
    "display": "`print` shows a register;",
}  # of other debuggers
SHORT = {
    "b": "break", "c": "continue", "s": "step", "n": "next", "si": "stepi", "p": "print", "r": "registers", "w": "warp",
    "m": "memory", "bt": "backtrace", "l": "list", "q": "quit", "?": "help",
}  # fmt: skip


def _typed(command: str, text: str) -> tuple[str, str | None]:
    """Return a name, and the type after `as`."""
    match = re.fullmatch(r"(\S+)(?:\s+as\s+(\w+))?", text)
    if match is None:
        raise Error(f"{command} takes a register", help=f"such as `{command} i`, or `{command} words as f16x2`")
    return match[1], match[2]


def _thread(text: str) -> ThreadName:
    """Parse `3`, `3,1` or `3 of 0,1`: a thread, and its block."""
    thread, _, block = text.partition(" of ")
    parts = [tuple(map(int, re.findall(r"\d{1,9}", part))) for part in (block or "0", thread)]
    if not all(1 <= len(part) <= 3 for part in parts):
        raise Error(f"`{text}` is no thread", help="write 3, 3,1 for (3, 1), or 3 of 0,1 with its block")
    of_block, of_thread = (part[0] if len(part) == 1 else part for part in parts)
    return of_block, of_thread
