"""The debugger: where it stops, what it shows, and what it refuses, in scripts and in the terminal."""

import io
import os
import pty
import sys
from pathlib import Path

import numpy as np
import pytest

import ptxdsl as pd
from ptxdsl import bf16, cli, f32, ptr, u32, u64
from ptxdsl.cli.debug import DebuggerTerminal
from ptxdsl.debug.session import Stop
from ptxdsl.emulate.report import Thread
from ptxdsl.emulate.run import core
from ptxdsl.layout import Layout, Swizzle, composition, shared_operand, tile_layout

FILE = Path(__file__).name
SWIZZLED = composition(Swizzle(1, 1, 2), Layout((4, 4), (4, 1)))


def halved(value):
    half = value * 0.5  # halved
    return half


@pd.kernel
def sums(x: ptr[f32], y: ptr[f32], n: u32):
    tile, other = pd.dynamic_shared(f32, SWIZZLED), pd.shared(f32, 8)
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(pd.tid.x < 16):
        tile[pd.tid.x // 4, pd.tid.x % 4] = x[pd.tid.x]  # filled
    with pd.if_(pd.tid.x < 2):
        other[pd.tid.x] = 1.0
    pd.ptx.bar.sync(0)  # met
    total = pd.var(f32, 0.0)
    for k in pd.range(n):
        total += halved(tile[k, pd.tid.x % 4])  # added
    both = [total, pd.tid.x]
    y[i] = both[0]  # written


@pd.function
def factorial(n: u32) -> u32:
    result = pd.var(u32, 1)
    with pd.if_(n > 1):
        result.set(n * factorial(n - 1))  # recursion
    return result


@pd.kernel
def factorials(x: ptr[u32]):
    i = pd.tid.x
    x[i] = factorial(i)


@pd.kernel
def doubled(x: ptr[f32]):
    parts = [x[pd.tid.x] * factor for factor in (2.0, 4.0)]
    x[pd.tid.x] = parts[0] + parts[1]  # joined


def line(mark):
    """The line of this file that ends with a comment."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# {mark}"))


@pytest.fixture
def launch():
    x = np.arange(16, dtype=np.float32)
    with pd.debug(sums, 2, 64, x, np.zeros(128, np.float32), 3) as launched:
        yield launched


class TestStops:
    def test_it_stands_at_the_first_instruction(self, launch):
        assert (launch.stop.reason, launch.stop.count, launch.focus) == ("start", 128, Thread((0, 0, 0), (0, 0, 0)))
        assert launch.stop.instruction == "ld.param.u64 %rd0, [x];"

    def test_a_line_stops_once_for_all_that_come_together(self, launch):
        launch.stop_at(line("added"))
        stops = [launch.resume() for _ in range(3)]
        assert [(stop.reason, stop.location.line, stop.count) for stop in stops] == [("line", line("added"), 128)] * 3
        assert launch.resume() == Stop("end", launch.focus)
        assert launch.report.findings == []

    def test_a_line_of_a_branch_stops_those_who_go_there(self, launch):
        launch.stop_at(f"{FILE}:{line('filled')}")
        assert launch.resume().count == 32
        assert launch.resume().is_end

    def test_a_line_for_one_thread(self, launch):
        launch.stop_at(line("written"), thread=(1, 40))
        assert launch.resume().thread == Thread((1, 0, 0), (40, 0, 0))
        assert launch.value("i") == 104

    def test_a_line_of_a_helper(self, launch):
        launch.stop_at(line("halved"))
        stop = launch.resume()
        assert (stop.location.line, stop.location.chain()[-1].line) == (line("halved"), line("added"))

    def test_breakpoints_are_listed_and_cleared(self, launch):
        first, second = launch.stop_at(line("met")), launch.stop_at(line("added"), thread=3)
        assert str(first) == f"1: {FILE}:{line('met')}"
        assert str(second) == f"2: {FILE}:{line('added')}, thread (3, 0, 0) of block (0, 0, 0)"
        launch.clear(1)
        assert launch.resume().location.line == line("added")
        launch.clear()
        assert launch.resume().is_end

    def test_lines_and_instructions_are_stepped(self, launch):
        launch.stop_at(line("met"))
        launch.resume()
        assert launch.step().location.line == line("met") + 1
        launch.stop_at(line("added"))
        launch.resume()
        assert launch.step_instruction().location.line == line("added")
        assert launch.stop.reason == "step"

    def test_step_enters_helpers_and_next_does_not(self, launch):
        launch.stop_at(line("added"))
        launch.resume()
        assert launch.step().location.line == line("halved")
        assert launch.next().location.line == line("added") - 1

    def test_a_thread_that_ends_while_it_is_stepped(self, launch):
        launch.stop_at(line("written"))
        launch.resume()
        launch.select((1, 3))
        while launch.stop.reason not in ("ended", "end"):
            launch.step_instruction()
        assert str(launch.stop) in ("thread (3, 0, 0) of block (1, 0, 0) has ended", "the launch has ended")

    def test_a_finding_stops_with_its_thread(self):
        @pd.kernel
        def beyond(x: ptr[f32]):
            i = pd.tid.x + 1
            x[i] = 1.0

        with pd.debug(beyond, 1, 32, np.zeros(32, np.float32)) as launch:
            stop = launch.resume()
            assert (stop.reason, stop.finding.kind, launch.value("i")) == ("finding", "out-of-bounds", 32)
            assert launch.focus == Thread((0, 0, 0), (31, 0, 0))
            assert launch.resume().is_end
            assert [finding.kind for finding in launch.report.findings] == ["out-of-bounds"]

    def test_it_can_be_interrupted(self, launch):
        launch.interrupt()
        assert launch.resume().reason == "interrupt"

    def test_what_is_closed_writes_nothing(self):
        y = np.zeros(64, np.float32)
        with pd.debug(sums, 1, 64, np.ones(16, np.float32), y, 1) as launch:
            launch.stop_at(line("written"))
            launch.resume()
        assert launch.stop.is_end
        assert not y.any()

    def test_what_runs_to_its_end_writes_its_arrays(self):
        y = np.zeros(64, np.float32)
        with pd.debug(sums, 1, 64, np.ones(16, np.float32), y, 2) as launch:
            launch.resume()
        assert (y == 1).all()


class TestLooking:
    def test_registers_by_their_names(self, launch):
        launch.stop_at(line("written"), thread=(1, 2))
        launch.resume()
        assert (launch.value("i"), launch.value("%i"), launch.value("n")) == (66, 66, 3)
        assert launch.value("total") == (2 + 6 + 10) / 2
        assert launch.value("total", thread=1) == (1 + 5 + 9) / 2
        assert launch.value("both[0]") == launch.value("total")
        assert launch.value("total", type="b32") == 0x41100000
        assert launch.value("total", type="f16x2") == (0.0, 2.53125)
        assert launch.value("both[1]") == 2  # i = pd.tid.x is a second name, too
        assert launch.warp("tid_x", thread=(0, 40)) == list(range(32, 64))
        assert "y[0]" in str(launch.inspection.values("y", launch.focus)[0])

    def test_all_that_a_thread_has_written(self, launch):
        launch.stop_at(line("met"))
        launch.resume()
        named = {register.name for register in launch.inspection.registers(launch.focus)}
        assert {"%x", "%y", "%n", "%i"} <= named
        assert "%total" not in named
        numbered = {register.name for register in launch.inspection.registers(launch.focus, numbered=True)}
        assert numbered > named
        assert "%rd0" in numbered

    def test_lanes_that_have_written_nothing_are_none(self):
        @pd.kernel
        def halves(y: ptr[u32]):
            with pd.if_(pd.laneid < 16):
                low = pd.laneid + 100
                y[pd.laneid] = low  # low

        with pd.debug(halves, 1, 20, np.zeros(32, np.uint32)) as launch:
            launch.stop_at(line("low"))
            launch.resume()
            assert launch.warp("low") == [*range(100, 116), *[None] * 16]

    def test_shared_memory_through_its_layout(self, launch):
        launch.stop_at(line("met"))
        launch.resume()
        assert (launch.shared("tile").values == np.arange(16).reshape(4, 4)).all()
        assert launch.inspection.shared_names() == ["tile", "other"]
        assert launch.shared("other").written.tolist() == [True, True, *[False] * 6]
        assert str(launch.shared("other")) == "other: 8 f32\n 1 1 - - - - - -"
        launch.select((1, 0))
        assert (launch.shared("tile").values == np.arange(16).reshape(4, 4)).all()

    def test_the_calls_that_led_to_a_thread(self, launch):
        launch.stop_at(line("halved"))
        launch.resume()
        assert launch.inspection.backtrace(launch.focus) == [
            f"#0 {FILE}:{line('halved')}  in halved",
            f"#1 {FILE}:{line('added')}  in sums",
        ]

    def test_functions_that_stay_functions_have_frames_of_their_own(self):
        with pd.debug(factorials, 1, 8, np.zeros(8, np.uint32)) as launch:
            launch.stop_at(line("recursion"), thread=5)
            assert [launch.resume() and launch.value("n") for _ in range(3)] == [5, 4, 3]
            calls = launch.inspection.backtrace(launch.focus)
            assert [call.rpartition(" ")[2] for call in calls] == ["factorial", "factorial", "factorial", "factorials"]

    def test_arrays_as_they_are_now(self, launch):
        assert launch.inspection.memory("x", 3, 2) == [3.0, 4.0]
        assert launch.inspection.memory("x", 14) == [14.0, 15.0]

    def test_who_stands_where(self, launch):
        launch.stop_at(line("filled"))
        launch.resume()
        first, *others = launch.where()
        assert first == f"running  32 threads of 2 blocks, at and.b32 ({FILE}:{line('filled')})" or "running" in first
        assert all(text.startswith("ready ") for text in others)


class TestRefusals:
    @pytest.mark.parametrize(
        ("place", "text"),
        [
            ("nowhere", "'nowhere' is no line\n  help: write a number, or file.py:12"),
            ("other.py:3", f"sums has no code from other.py\n  help: it has code from {FILE}"),
            ("1", f"{FILE}:1 has no instruction of sums, so nothing can stop there\n  help: lines with code near it: "),
        ],
    )
    def test_lines(self, launch, place, text):
        with pytest.raises(pd.Error) as refused:
            launch.stop_at(place)
        assert str(refused.value).startswith(text)

    @pytest.mark.parametrize(
        ("ask", "text"),
        [
            (lambda d: d.value(3), "a register has a name; found 3\n  help: such as `total`, or `%r3` of PTX"),
            (lambda d: d.value("totl"), "sums has no register `totl`\n  help: did you mean `total`?"),
            (lambda d: d.value("i", type="f17"), "there is no type `f17` to read a register as\n  help: such as f32, s16, f16x2 or b64"),
            (lambda d: d.value("n", type="f64"), "%n has 32 bits; f64 has 64"),
            (lambda d: d.shared("til"), "sums has no shared array `til`"),
            (lambda d: d.inspection.memory("z"), "there is no array `z`"),
            (lambda d: d.inspection.memory("x", 99), "x[99] lies behind its end: x has 16 f32"),
            (lambda d: d.clear(7), "there is no breakpoint 7\n  help: there is none"),
        ],
    )  # fmt: skip
    def test_names(self, launch, ask, text):
        launch.stop_at(line("met"))
        launch.resume()
        launch.clear()
        with pytest.raises(pd.Error) as refused:
            ask(launch)
        assert str(refused.value).startswith(text)

    def test_what_was_not_written(self, launch):
        with pytest.raises(pd.Error) as refused:
            launch.value("total")
        assert str(refused.value) == (
            "thread (0, 0, 0) of block (0, 0, 0) has not written `total` (%total) yet\n"
            "  help: step to the line behind it"
        )

    def test_threads(self, launch):
        with pytest.raises(pd.LaunchError) as refused:
            launch.select(64 + 2)
        assert refused.value.message == "`thread` names thread (66, 0, 0) of block (0, 0, 0); the block is (64, 1, 1)"
        with pytest.raises(pd.LaunchError) as refused:
            launch.select("first")
        assert refused.value.message == "`thread` is 'first', which is not a thread"
        assert refused.value.help == "pass a thread number in block 0, ((block), (thread)), or the thread of a finding"

    def test_a_launch_that_has_ended(self, launch):
        launch.resume()
        with pytest.raises(pd.Error) as refused:
            launch.value("i")
        assert str(refused.value) == (
            "the launch has ended: there are no registers any more\n  help: start it anew, and stop earlier"
        )
        with pytest.raises(pd.Error) as refused:
            launch.step_instruction()
        assert str(refused.value) == "the launch has ended\n  help: start it anew"

    def test_arguments(self):
        with pytest.raises(pd.LaunchError) as refused:
            pd.debug(print, 1, 32)
        assert refused.value.message.startswith(
            "the first argument of pd.debug must be a kernel, got <built-in function print>"
        )


class TestTrace:
    def test_the_steps_of_a_thread(self):
        x, y = np.arange(16, dtype=np.float32), np.zeros(128, np.float32)
        report = pd.emulate(sums, 2, 64, x, y, 2, trace=[3, (1, 40)])
        steps = report.trace(3)
        assert next(step.results for step in steps if step.location.line == line("filled") - 1) == (("%p0", True),)
        filled = [step for step in steps if step.location.line == line("filled")]
        assert filled and not [s for s in report.trace((1, 40)) if s.location.line == line("filled")]
        assert [step.instruction for step in steps].count("bar.sync 0;") == 1
        written = [dict(step.results)["%total"] for step in steps if "%total" in dict(step.results)]
        assert written == [0.0, 1.5, 5.0]
        assert str(steps[-1]).endswith("ret;")

    def test_all_threads_and_threads_of_findings(self):
        x, y = np.arange(16, dtype=np.float32), np.zeros(64, np.float32)
        report = pd.emulate(sums, 1, 64, x, y, 1, trace=True)
        assert len(report.trace(63)) < len(report.trace(Thread((0, 0, 0), (1, 0, 0))))

    def test_refusals(self):
        arguments = sums, 1, 64, np.ones(16, np.float32), np.ones(64, np.float32), 1
        with pytest.raises(pd.Error) as refused:
            pd.emulate(*arguments).trace()
        assert str(refused.value) == "the report has no trace\n  help: request it: pd.emulate(…, trace=thread)"
        report = pd.emulate(*arguments, trace=3)
        with pytest.raises(pd.LaunchError) as refused:
            report.trace(4)
        assert refused.value.message == "thread (4, 0, 0) of block (0, 0, 0) was not traced"
        assert (
            refused.value.help == "pd.emulate(…, trace=[…]) takes several; it had thread (3, 0, 0) of block (0, 0, 0)"
        )
        with pytest.raises(pd.LaunchError) as refused:
            pd.emulate(*arguments, trace=(1, 0))
        assert refused.value.message == "`trace` names thread (0, 0, 0) of block (1, 0, 0); the grid is (1, 1, 1)"

    def test_a_launch_without_watchers_looks_at_few_steps(self, monkeypatch):
        looked = []
        monkeypatch.setattr(core, "monotonic", lambda: looked.append(1) or 0.0)
        pd.emulate(sums, 1, 64, np.ones(16, np.float32), np.ones(64, np.float32), 16, max_seconds=9)
        assert len(looked) <= 2


@pd.kernel
def reduced(x: ptr[f32]):
    wide = pd.shared(f32, (64, 128))
    tiles = [pd.shared(f32, (4, 8)), pd.shared(f32, 4)]
    for row in range(4):
        tiles[0][row, pd.tid.x % 8] = (pd.tid.x % 8 + 10 * row).to(f32)
    wide[0, pd.tid.x] = 1.0
    total = x[pd.tid.x]
    for shift in (16, 8):
        total = total + pd.ptx.shfl.sync.bfly.b32(total, shift, 31, 0xFFFFFFFF)
    x[pd.tid.x] = total  # reduced


KERNELS = """\
import numpy as np
import ptxdsl as pd
from ptxdsl import f32, ptr, u32

@pd.kernel
def twice(x: ptr[f32], n: u32):
    i = pd.tid.x
    with pd.if_(i < n):
        doubled = x[i] * 2
        x[i] = doubled

def example_twice(rng):
    yield 1, 32, np.arange(32, dtype=np.float32), 3
    yield 1, 32, np.arange(8, dtype=np.float32), 32

@pd.kernel
def other(x: ptr[f32]):
    x[0] = 1.0

def example_other(rng):
    return 1, 1, np.zeros(1, np.float32)
"""
SESSION = """\
twice[1, 32](float32[32], 3)
  mine.py:5 | @pd.kernel
  ld.param.u64 %rd0, [x];
  thread (0, 0, 0) of block (0, 0, 0) and 31 more
(ptxdsl) b 10 thread 2
1: mine.py:10, thread (2, 0, 0) of block (0, 0, 0)
(ptxdsl) c
  mine.py:10 | x[i] = doubled
               ^
  mad.wide.u32 %rd2, %tid_x, 4, %x;
  thread (2, 0, 0) of block (0, 0, 0) and 2 more
(ptxdsl) p doubled
%doubled = 4
(ptxdsl) w doubled
lanes  0- 7  0 2 4 - - - - -
lanes  8-15  - - - - - - - -
lanes 16-23  - - - - - - - -
lanes 24-31  - - - - - - - -
(ptxdsl) m x 0 4
x[0:4] = 0 1 2 3
(ptxdsl) thread 9
thread (9, 0, 0) of block (0, 0, 0)
  mine.py:5  ret;
(ptxdsl) l
      5 @pd.kernel
      6 def twice(x: ptr[f32], n: u32):
      7     i = pd.tid.x
      8     with pd.if_(i < n):
      9         doubled = x[i] * 2
->   10         x[i] = doubled
     11
     12 def example_twice(rng):
     13     yield 1, 32, np.arange(32, dtype=np.float32), 3
     14     yield 1, 32, np.arange(8, dtype=np.float32), 32
     15
(ptxdsl) shared
the kernel has no shared memory
(ptxdsl) findings
no findings
(ptxdsl) breaks
1: mine.py:10, thread (2, 0, 0) of block (0, 0, 0)
(ptxdsl) clear 1
no breakpoints
(ptxdsl) c
the launch has ended
236 thread instructions, 0 findings
"""
COMMANDS = [text[9:] for text in SESSION.splitlines() if text.startswith("(ptxdsl) ")]


class TestTerminal:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("mine.py").write_text(KERNELS)
        sys.modules.pop("mine", None)

    def test_a_session_of_commands(self, capsys):
        arguments = [argument for command in COMMANDS for argument in ("-c", command)]
        assert cli.main(["debug", "mine.py:twice", *arguments]) == 0
        assert capsys.readouterr().out == SESSION

    def test_commands_from_stdin(self, capsys, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(COMMANDS)))
        assert cli.main(["debug", "mine.py:twice"]) == 0
        assert capsys.readouterr().out == SESSION

    def test_a_finding_is_status_1(self, capsys):
        assert cli.main(["debug", "mine.py:twice", "--example", "2", "-c", "c", "-c", "p i", "-c", "quit"]) == 1
        shown = capsys.readouterr().out
        assert "out-of-bounds: ld.global.f32 reads 4 bytes at x[8]; x has 8 f32" in shown
        assert shown.endswith("(ptxdsl) p i\n%tid_x = 8\n(ptxdsl) quit\n")

    def test_ptx_with_a_launch(self, capsys):
        Path("k.ptx").write_text(pd.parse(sums.ptx("sm_80")).ptx())
        launch = [
            "--grid",
            "1",
            "--block",
            "64",
            "--arg",
            "f32[16]=arange",
            "--arg",
            "f32[64]=0",
            "--arg",
            "2",
            "--shared",
            "64",
        ]
        commands = ["-c", "stepi", "-c", "ptx", "-c", "shared other", "-c", "help"]
        assert cli.main(["debug", "k.ptx", *launch, *commands]) == 0
        shown = capsys.readouterr().out
        assert "->   cvta.to.global.u64 %x, %rd0;" in shown
        assert "other: 8 b32\n - - - - - - - -" in shown
        assert "continue                    run to a breakpoint, a finding or the end  (c)" in shown

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["mine.py"], "mine.py has several kernels with examples: twice, other\n  help: say which: mine.py:twice\n"),
            (["mine.py:twice", "--example", "3"], "--example 3: twice has 2 examples\n"),
            (["mine.py:twice", "--example", "0"], "--example 0 is not a number of 1 or more\n  help: for example --example 8\n"),
            (["-", "--grid", "1", "--block", "1"], "stdin has the PTX and cannot have commands\n  help: pass them with --command\n"),
            (["mine.py:twice", "-c", "b 11"], "mine.py:11 has no instruction of twice, so nothing can stop there\n  help: lines with code near it: 8, 9, 10\n"),
            (["mine.py:twice", "-c", "b"], "break takes a line\n  help: such as 12, or file.py:12\n"),
            (["mine.py:twice", "-c", "b 10 thread x"], "`x` is no thread\n  help: write 3, 3,1 for (3, 1), or 3 of 0,1 with its block\n"),
            (["mine.py:twice", "-c", "clear x"], "clear takes the number of a breakpoint; found `x`\n"),
            (["mine.py:twice", "-c", "p"], "print takes a register\n  help: such as `print i`, or `print words as f16x2`\n"),
            (["mine.py:twice", "-c", "m"], "memory takes an array, a first element and a count\n  help: for example `memory x 128 16`\n"),
            (["mine.py:twice", "-c", "r most"], "registers takes `all` or nothing; found `most`\n"),
            (["mine.py:twice", "-c", "jump 3"], "there is no command `jump`\n  help: the commands are break, "),
            (["mine.py:twice", "-c", "thread 32"], "`thread` names thread (32, 0, 0) of block (0, 0, 0); the block is (32, 1, 1)\n"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_meant_is_status_2(self, arguments, text, capsys):
        assert cli.main(["debug", *arguments]) == 2
        assert capsys.readouterr().err.startswith(f"ptxdsl: {text}")

    def test_a_terminal_shows_refusals_and_goes_on(self, capsys, monkeypatch):
        master, slave = pty.openpty()
        os.write(master, b"p nothing\nstepi\n\nq\n")
        with os.fdopen(slave) as terminal:
            monkeypatch.setattr("sys.stdin", terminal)
            monkeypatch.setattr("ptxdsl.cli.debug.DebuggerTerminal.use_rawinput", False)
            assert cli.main(["debug", "mine.py:twice"]) == 0
        os.close(master)
        shown = capsys.readouterr().out
        assert "twice has no register `nothing`" in shown
        assert "cvta.to.global.u64 %x, %rd0;" in shown
        assert shown.count("ld.param.u32 %n, [n];") == 1  # by an empty line, which says the last command again


def test_a_list_of_python_is_printed_element_by_element(capsys):
    with pd.debug(doubled, 1, 32, np.arange(32, dtype=np.float32)) as launch:
        launch.stop_at(line("joined"))
        launch.resume()
        assert [value.value for value in launch.inspection.values("parts", Thread((0, 0, 0), (3, 0, 0)))] == [6.0, 12.0]
        with pytest.raises(pd.Error, match="doubled has no register `parts`"):
            launch.value("parts")


SEEN = {
    "shared tiles[0][1:3, 2:6]": "tiles[0][1:3, 2:6]: 2 x 4 f32\n   1 12 13 14 15\n   2 22 23 24 25",
    "shared tiles[0][2]": "tiles[0][2]: 8 f32\n 20 21 22 23 24 25 26 27",
    "shared tiles[0][-1, 3]": "tiles[0][-1, 3]: f32 33",
    "shared tiles[1]": "tiles[1]: 4 f32\n - - - -",
    "shared tiles[1][2]": "tiles[1][2]: f32 -",
    "shared wide[0, ::32]": "wide[0, ::32]: 4 f32\n 1 - - -",
    "shared wide": "wide has 8192 elements, too many for a terminal\n"
    "  help: take a part of it, such as `wide[0:8, 0:8]`, or use pd.debug",
    "shared wide[0:60]": "wide[0:60] has 7680 elements, too many for a terminal\n"
    "  help: take a part of it, such as `wide[0:8, 0:8]`, or use pd.debug",
    "shared wide[0,0,0]": "wide[0,0,0] has 3 indices; wide is 64 x 128\n  help: write `wide[0:8, 0:8]`",
    "shared wide[64]": "wide[64] lies outside of wide, which is 64 x 128",
    "shared wide[5:5]": "wide[5:5] has no elements; wide is 64 x 128",
    "shared wide[a]": "`a` is no index of wide\n  help: ints and slices are, such as `wide[0:8, 0:8]`",
    "shared wide[::0]": "`::0` is no index of wide\n  help: ints and slices are, such as `wide[0:8, 0:8]`",
    "shared wid[0]": "reduced has no shared array `wid`\n  help: did you mean `wide`?",
    "warp total": "%total_2, the last written of 3 registers named total; others: `warp %total`, `warp %total_1`\n"
    "lanes  0- 7  48 52 56 60 64 68 72 76\n",
    "warp %total_1": "lanes  0- 7  16 18 20 22 24 26 28 30\n",
}


def test_parts_of_arrays_and_registers_of_one_name(capsys):
    with pd.debug(reduced, 1, 32, np.arange(32, dtype=np.float32)) as launch:
        launch.stop_at(line("reduced"))
        launch.resume()
        assert launch.shared("tiles[0][1:3, 2:6]").values.tolist() == [[12, 13, 14, 15], [22, 23, 24, 25]]
        assert launch.shared("wide").values.shape == (64, 128)
        terminal = DebuggerTerminal(launch)
        for command, text in SEEN.items():
            terminal.onecmd(command)
            assert (command, capsys.readouterr().out.startswith(text)) == (command, True)


@pd.kernel
def counted(x: ptr[f32], n: u32):
    value = pd.var(f32, 2.0)
    for _ in pd.range(pd.warpid, n):
        value += 1.0
    x[pd.tid.x] = value  # counted


def test_a_name_means_what_the_kernel_calls_so():
    """Not what functions of the package bind to the same name, which Python wrote for its classes."""
    with pd.debug(counted, 1, 32, np.zeros(32, np.float32), 3) as launch:
        launch.stop_at(line("counted"))
        launch.resume()
        assert len(launch.inspection.values("value", launch.focus)) == 1
        assert launch.value("value") == 5


TILE = tile_layout(64, 16, 16, 32)


@pd.kernel(arch="sm_90a", reqntid=128)
def multiplied(y: ptr[f32]):
    a, b = (shared_operand("wgmma.m64n64k16.f32.bf16", name, TILE) for name in "ab")
    tile = pd.shared(bf16, TILE, align=1024)
    for i in range(8):
        tile[(pd.tid.x + 128 * i) // 16, (pd.tid.x + 128 * i) % 16] = 1.0
    pd.ptx.fence.proxy.async_.shared__cta()
    pd.ptx.bar.sync(0)
    sums = [pd.var(f32, 0.0) for _ in range(32)]
    d = tile.address().value.to(u64)
    pd.ptx.wgmma.fence.sync.aligned()
    for _ in range(2):
        pd.ptx(
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
            a.descriptor(d),
            b.descriptor(d),
            1,
            1,
            1,
            0,
            0,
            out=sums,
        )
    pd.ptx.wgmma.commit_group.sync.aligned()  # issued
    pd.ptx.wgmma.wait_group.sync.aligned(0)
    y[pd.tid.x] = sums[0]  # awaited


class TestAccumulators:
    @pytest.fixture
    def launch(self):
        with pd.debug(multiplied, 1, 128, np.zeros(128, np.float32)) as launched:
            yield launched

    def test_they_hold_the_product_once_it_was_waited_for(self, launch):
        launch.stop_at(line("awaited"))
        launch.resume()
        assert launch.value("%f0", thread=77) == 32.0
        assert [each.value for each in launch.inspection.values("sums", launch.focus)] == [32.0] * 32
        assert launch.warp("%f31") == [32.0] * 32
        assert str(launch.inspection.registers(launch.focus, numbered=True)[-1]).endswith("= 32")
        assert launch.resume().is_end
        assert launch.report.findings == []

    def test_they_have_no_value_while_the_product_is_in_flight(self, launch):
        launch.stop_at(line("issued"))
        launch.resume()
        with pytest.raises(pd.Error) as refused:
            launch.value("%f0")
        assert (refused.value.message, refused.value.help) == (
            "`%f0` is an accumulator of wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16, which is in flight",
            "step past wgmma.wait_group first",
        )
        (register,) = launch.inspection.values("%f0", launch.focus)
        assert str(register) == "%f0 = in flight: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"
