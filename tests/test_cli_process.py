"""The command as a process: what the system and somebody's Python do to it is one line on stderr and exit code 2."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptxdsl import cli
from ptxdsl.cli import process, trial

ROOT = Path(__file__).parent.parent
GEMM = "ptxdsl.kernels.gemm:gemm"
DIGITS = "9" * 5000


def shell(line, **variables):
    """A line of sh in which $ptxdsl is the command: its exit code and stderr."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    environment |= {"PYTHONPATH": path, "NO_COLOR": "1", "ptxdsl": f"{sys.executable} -m ptxdsl", **variables}
    done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, check=False, timeout=120)
    return done.returncode, done.stderr.decode()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "line, text",
    [
        ("$ptxdsl isa > /dev/full", "stdout cannot be written: No space left on device"),
        ("$ptxdsl --help > /dev/full", "stdout cannot be written: No space left on device"),
        (f"$ptxdsl dump {GEMM} > /dev/full", "stdout cannot be written: No space left on device"),
        (f"$ptxdsl dump {GEMM} -o /dev/full", "/dev/full cannot be written: No space left on device"),
        ("$ptxdsl layout '(4,8)' --svg /dev/full", "/dev/full cannot be written: No space left on device"),
        ("$ptxdsl isa >&-", "stdout cannot be written: Bad file descriptor"),
        (f"$ptxdsl dump {GEMM} >&-", "stdout cannot be written: Bad file descriptor"),
        ("$ptxdsl dump - <&-", "stdin cannot be read: Bad file descriptor"),
        (
            "printf '.version\\377' | PYTHONUTF8=1 $ptxdsl dump -",
            "stdin is not text\n  help: to disassemble a cubin, use nvdisasm",
        ),
    ],
)
def test_streams_that_are_closed_or_full(line, text):
    assert shell(line) == (2, f"ptxdsl: {text}\n")


@pytest.mark.exhaustive
def test_a_closed_stdout_is_no_loss_where_nothing_is_written_to_it(tmp_path):
    assert shell(f"$ptxdsl dump {GEMM} -o {tmp_path}/gemm.ptx >&-") == (0, "")
    assert (tmp_path / "gemm.ptx").read_text().startswith(".version")


@pytest.mark.exhaustive
@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize("command", ["isa nonsense", "nonsense", "isa nonsense <&- >&-"])
def test_without_a_stderr_the_exit_code_remains(stderr, command):
    assert shell(f"$ptxdsl {command} {stderr}") == (2, "")


def test_letters_that_stdout_does_not_take():
    assert shell("$ptxdsl dump --help", PYTHONIOENCODING="ascii", PYTHONUTF8="0") == (
        2,
        "ptxdsl: the encoding of stdout, ascii, has no '\\u2026'; set PYTHONIOENCODING=utf-8\n",
    )


@pytest.mark.exhaustive
def test_a_file_without_end(tmp_path):
    (tmp_path / "zero.ptx").symlink_to("/dev/zero")
    assert shell(f"$ptxdsl dump {tmp_path}/zero.ptx") == (
        2,
        f"ptxdsl: {tmp_path}/zero.ptx has more than 256 MiB, the limit for PTX\n",
    )


@pytest.fixture
def refused(capfd, monkeypatch):
    """Runs the command, and gives the text of its refusal with exit code 2."""
    monkeypatch.setenv("NO_COLOR", "1")

    def refused(*arguments):
        assert cli.main(arguments) == 2
        out, err = capfd.readouterr()
        assert out == ""
        return err.removeprefix("ptxdsl: ").removesuffix("\n")

    return refused


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["run", "gemm", "--m", "1" + "0" * 24], "--m 10000000000000000000… is too large: the limit is 2147483647"),
        (["run", "gemm", "--k", DIGITS], "--k 99999999999999999999… is too large: the limit is 2147483647"),
        (["run", "gemm", "--n", "2147483648"], "--n 2147483648 is too large: the limit is 2147483647"),
        (["run", "gemm", "--m", "-1"], "--m -1 is not a number of 0 or more\n  help: for example --m 8"),
        (["run", "gemm", "--seed", "-1"], "--seed -1 is not a number of 0 or more\n  help: for example --seed 8"),
        (["run", "gemm", "--seed", "1.5"], "--seed 1.5 is not a number of 0 or more\n  help: for example --seed 8"),
        (["run", "gemm", "--seed", DIGITS], "--seed 99999999999999999999… is too large: the limit is 18446744073709551615"),
        (["schedule", "identity", "--problem", f"{DIGITS}x1"], "--problem 99999999999999999999… is too large: the limit is 1000000000000000000"),
        (["schedule", "identity", "--problem", "4x4", "--n", DIGITS], "--n 99999999999999999999… is too large: the limit is 2147483647"),
        (["layout", f"{DIGITS}:1"], "a number has more than 4300 digits"),
        (["layout", "(10000000000,10000000000)"], "the layout has 2**66 cells or more; a drawing has at most 65536"),
        (["layout", "Sw<40,3,40>"], "the layout has 2**80 cells or more; a drawing has at most 65536"),
        (["layout", "(" * 3000 + "1" + ")" * 3000], "this is nested deeper than Python's recursion limit, 1000"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_numbers_that_are_too_large(refused, monkeypatch, arguments, text):
    monkeypatch.setattr(sys, "getrecursionlimit", lambda: 1000)
    assert refused(*arguments) == text


def test_a_product_that_no_memory_holds(refused, monkeypatch):
    monkeypatch.setattr(trial, "memory_bytes", lambda: 16 << 30)
    assert refused("run", "gemm", "--m", "1000000000", "--device", "emulator") == (
        "comparing 1000000000 x 256 x 256 takes 1.335e+04 GiB of memory; this machine has 16 GiB"
    )


def test_memory_that_runs_out_on_the_way(refused, monkeypatch):
    def allocate(self):
        raise MemoryError("Unable to allocate 5.0 GiB")

    monkeypatch.setattr(trial.Trial, "matrices", allocate)
    assert refused("run", "gemm", "--device", "emulator") == "there is too little memory: Unable to allocate 5.0 GiB"


HEAD = "import ptxdsl as pd\nfrom ptxdsl import f32, ptr\n\n"
RAISED = {  # a line, and what is said of it
    "raise SystemExit": "it raised SystemExit (mine.py:4)",
    "raise SystemExit(0)": "it raised SystemExit: 0 (mine.py:4)",
    "import sys; sys.exit('no\\nmore')": "it raised SystemExit: no more (mine.py:4)",
    "raise SystemExit('no \\x1b[2J more')": "it raised SystemExit: no  [2J more (mine.py:4)",
    "raise KeyboardInterrupt": "it raised KeyboardInterrupt (mine.py:4)",
    "raise GeneratorExit": "it raised GeneratorExit (mine.py:4)",
    "raise type('Stop', (BaseException,), {})('now')": "it raised Stop: now (mine.py:4)",
    "raise ValueError('two\\nlines')": "ValueError: two lines\n  mine.py:4 | raise ValueError('two\\nlines')",
}


@pytest.mark.parametrize("line", RAISED)
def test_a_module_that_raises(refused, tmp_path, line):
    (tmp_path / "mine.py").write_text(f"{HEAD}{line}\n")
    assert refused("dump", f"{tmp_path}/mine.py") == f"{tmp_path}/mine.py cannot be imported: {RAISED[line]}"


def test_a_module_that_lacks_a_name_of_ours(refused, tmp_path):
    (tmp_path / "mine.py").write_text(f"{HEAD}s32(3)\n")
    assert refused("dump", f"{tmp_path}/mine.py") == (
        f"{tmp_path}/mine.py cannot be imported: NameError: name 's32' is not defined\n"
        "  mine.py:4 | s32(3)\n  help: from ptxdsl import s32"
    )


@pytest.mark.parametrize("line", RAISED)
def test_a_module_by_its_name_that_raises(refused, tmp_path, monkeypatch, line):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (tmp_path / "mine.py").write_text(f"{HEAD}{line}\n")
    assert refused("dump", "mine:k") == f"mine cannot be imported: {RAISED[line]}"


@pytest.mark.parametrize("line", RAISED)
def test_a_kernel_that_raises(refused, tmp_path, line):
    (tmp_path / "mine.py").write_text(f"import ptxdsl as pd\n@pd.kernel\ndef k():\n    {line}\n")
    assert refused("dump", f"{tmp_path}/mine.py") == f"kernel `k` cannot be traced: {RAISED[line]}"


def test_an_attribute_that_raises(refused, tmp_path):
    (tmp_path / "mine.py").write_text("def __getattr__(name):\n    raise SystemExit(name)\n")
    assert refused("dump", f"{tmp_path}/mine.py:k") == (
        f"`k` of {tmp_path}/mine.py cannot be read: it raised SystemExit: k (mine.py:2)"
    )


def test_objects_whose_attributes_raise_are_no_launchers(refused, tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Lazy:\n    def __getattr__(self, name):\n        raise RuntimeError(name)\nlazy = Lazy()\n"
    )
    assert refused("dump", f"{tmp_path}/mine.py") == f"{tmp_path}/mine.py has no kernel"


def test_a_constant_that_raises(refused, tmp_path):
    (tmp_path / "mine.py").write_text("import ptxdsl as pd\n@pd.kernel\ndef k(*, n): pass\n")
    assert refused("dump", f"{tmp_path}/mine.py", "--const", "n=exit()") == (
        "exit() is not a value: None\n  help: write a Python expression, such as 3 or (64, 64)"
    )


def test_what_a_kernel_prints_while_it_is_traced_is_no_ptx(tmp_path, capfd):
    (tmp_path / "mine.py").write_text("import ptxdsl as pd\n@pd.kernel\ndef k(): print('traced')\n")
    assert cli.main(["dump", f"{tmp_path}/mine.py"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith(".version") and "traced" not in out
    assert err == "traced\n"


DEEPER = (
    "RecursionError: it is nested deeper than Python's recursion limit of {limit}{line}\n"
    "  help: split a long expression with intermediate variables, or turn the recursion into a loop"
)


@pytest.mark.parametrize(
    "text, refusal",
    [
        ("x = 1" + "+1" * 100_000, "{file} cannot be imported: " + DEEPER.replace("{line}", "")),
        ("def f(n): return f(n + 1)\nf(0)", "{file} cannot be imported: " + DEEPER.replace("{line}", "\n  mine.py:1 | def f(n): return f(n + 1)")),
    ],
    ids=["expression", "import"],
)  # fmt: skip
def test_python_that_is_too_deep(refused, tmp_path, text, refusal):
    (tmp_path / "mine.py").write_text(text)
    expected = refusal.replace("{file}", f"{tmp_path}/mine.py").replace("{limit}", str(sys.getrecursionlimit()))
    assert refused("dump", f"{tmp_path}/mine.py") == expected


def test_python_that_is_too_deep_while_it_is_traced(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("import ptxdsl as pd\ndef f(n): return f(n + 1)\n@pd.kernel\ndef k(): f(0)\n")
    assert cli.main(["dump", f"{tmp_path}/mine.py"]) == 1
    assert capsys.readouterr().err == (
        f"ptxdsl: `f` calls itself, while tracing, deeper than Python does: {sys.getrecursionlimit()} calls\n"
        "  mine.py:2 | def f(n): return f(n + 1)\n"
        "                               ^^^^^^^^\n"
        "  help: it needs an end that is known while tracing: an `if` on Python's numbers; write a loop that ends in the kernel by pd.range or pd.while_\n"
    )


@pytest.mark.exhaustive
def test_a_name_that_is_no_utf_8(tmp_path):
    name = os.fsdecode(b"\xff\xfe")
    missing = f"{tmp_path}/{name}".replace(name, "\\udcff\\udcfe")
    for suffix, text in (
        (".py", f"there is no file {missing}.py"),
        (".ptx", f"{missing}.ptx cannot be read: No such file or directory"),
    ):
        assert shell(f"$ptxdsl dump \"$folder\"/$(printf '\\377\\376'){suffix}", folder=str(tmp_path)) == (
            2,
            f"ptxdsl: {text}\n",
        )


@pytest.mark.exhaustive
def test_a_file_with_a_name_that_is_no_utf_8(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"\xff\xfe.py")
    with open(path, "w") as file:
        file.write("import ptxdsl as pd\n@pd.kernel\ndef k(x: pd.ptr[pd.f32]):\n    x[0] = 1.0\n")
    for options in ("", "--annotate", "--stage ir", "-o /dev/null"):
        assert shell(f"$ptxdsl dump \"$folder\"/$(printf '\\377\\376').py {options}", folder=str(tmp_path)) == (0, "")


@pytest.mark.parametrize("name", ["a" * 3000 + ".py", "a" * 3000 + ".ptx"])
def test_a_name_that_is_too_long(refused, name):
    text = f"there is no file {name}" if name.endswith("py") else f"{name} cannot be read: File name too long"
    assert refused("dump", name) == text


def heeds_ctrl_c():
    """As a command that was typed; what a shell runs in the background ignores it, and so do the children of that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where another test has loaded it
def test_ctrl_c_while_a_module_is_imported_is_silent(tmp_path):
    (tmp_path / "slow.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "ptxdsl", "dump", str(tmp_path / "slow.py")]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}, preexec_fn=heeds_ctrl_c
    )
    with child:
        assert child.stderr.readline() == "ready\n"
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == 130
        assert child.stderr.read() == ""


def test_a_mistake_of_ours_is_not_hidden():
    def command():
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        process.run(command)
