"""`ptxdsl check` and the fixture `ptx_check`: what they run, what they print, how they exit."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import cli
from ptxdsl.cli.arguments import read_argument
from ptxdsl.cli.process import UsageError

ROOT = Path(__file__).parent.parent
KERNELS = """\
import numpy as np
import ptxdsl as pd
from ptxdsl import f16, f32, ptr, u32

@pd.kernel
def reversed_rows(source: ptr[f16], target: ptr[f16]):
    tile = pd.shared(f16, (32, 8))
    pd.ptx.cp.async_.cg.shared.global_(tile.address(pd.tid.x, 0), source + pd.tid.x * 8, 16)
    pd.ptx.cp.async_.commit_group()
    pd.ptx.bar.sync(0)
    target[pd.tid.x] = tile[31 - pd.tid.x, 0]

def example_reversed_rows(rng):
    return 1, 32, rng.standard_normal(256).astype(np.float16), np.zeros(32, np.float16)

@pd.kernel
def saxpy(x: ptr[f32], y: ptr[f32], a: f32, n: u32, *, scale: int = 1):
    i = pd.ctaid.x * pd.ntid.x + pd.tid.x
    with pd.if_(i < n):
        y[i] = a * x[i] * scale + y[i]

def example_saxpy(rng):
    yield 8, 128, *rng.standard_normal((2, 1000), np.float32), 2.0, 1000
    yield (1, 1), (32, 1), *rng.standard_normal((2, 1), np.float32), 2.0, 1, {"scale": 3}

@pd.kernel
def lonely(x: ptr[f32]):
    x[pd.tid.x] = 1.0
"""
REVERSED = """\
reversed_rows[1, 32](float16[256], float16[32]): 1 finding
unwaited-async: ld.shared.b16 accesses 2 bytes at tile[31, 0] while an asynchronous copy to it is in flight
  mine.py:11 | target[pd.tid.x] = tile[31 - pd.tid.x, 0]
                                  ^
  mine.py:8 | pd.ptx.cp.async_.cg.shared.global_(tile.address(pd.tid.x, 0), source + pd.tid.x * 8, 16)
              ^
  by thread (0, 0, 0) of block (0, 0, 0) and 31 more threads
  help: wait for the copy first, through its group or its mbarrier
"""
SAXPY = """\
saxpy[8, 128](float32[1000], float32[1000], 2.0, 1000): clean
saxpy[(1, 1), (32, 1)](float32[1], float32[1], 2.0, 1): clean
"""
LONELY = "ptxdsl: lonely has no example_lonely(rng) and is not checked\n"
OUT_OF_BOUNDS = """\
lonely[1, 32](float32[30]): 1 finding
out-of-bounds: st.global.f32 writes 4 bytes at x[30]; x has 30 f32
  {place}
  by thread (30, 0, 0) of block (0, 0, 0) and 1 more thread
"""
TOLD = (
    "ld.shared.b16 accesses 2 bytes at tile[31, 0] while an asynchronous copy to it is in flight, "
    "by thread (0, 0, 0) of block (0, 0, 0) and 31 more threads (reversed_rows[1, 32](float16[256], float16[32])); "
    "help: wait for the copy first, through its group or its mbarrier"
)


@pytest.fixture
def check(tmp_path, monkeypatch, capfd):
    """Runs `ptxdsl check` in a folder with KERNELS as mine.py; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "mine.py").write_text(KERNELS)

    def check(*arguments):
        code = cli.main(["check", *map(str, arguments)])
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return check


def test_a_kernel_with_a_finding(check):
    assert vars(check("mine.py:reversed_rows")) == {"code": 1, "out": REVERSED, "err": ""}


def test_a_clean_kernel_with_two_examples(check):
    assert vars(check("mine.py:saxpy")) == {"code": 0, "out": SAXPY, "err": ""}


def test_all_kernels_of_a_file_that_have_examples(check):
    assert vars(check("mine.py")) == {"code": 1, "out": REVERSED + SAXPY, "err": LONELY}


def test_a_module_by_its_name(check, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    assert check("mine:saxpy").out == SAXPY


def test_a_launch_that_the_command_line_says(check):
    done = check("mine.py:lonely", "--grid", 1, "--block", 32, "--arg", "f32[30]")
    place = "mine.py:28 | x[pd.tid.x] = 1.0\n               ^"
    assert (done.code, done.out) == (1, OUT_OF_BOUNDS.format(place=place))
    assert check("mine.py:lonely", "--grid", 1, "--block", 32, "--arg", "f32[32]").code == 0


PTX = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry lonely(.param .u64 x)
{
    .reg .b64 %address;
    .reg .b32 %thread;
    ld.param.u64 %address, [x];
    mov.u32 %thread, %tid.x;
    mad.wide.u32 %address, %thread, 4, %address;
    st.global.f32 [%address], 0f3F800000;
    ret;
}
"""


def test_ptx(check, tmp_path):
    (tmp_path / "lonely.ptx").write_text(PTX)
    launch = ("--grid", 1, "--block", "32x1", "--arg", "f32[30]=0")
    place = "lonely.ptx:11 | st.global.f32 [%address], 0f3F800000;"
    expected = OUT_OF_BOUNDS.format(place=place).replace("lonely[1, 32]", "lonely[1, (32, 1)]")
    for target in ("lonely.ptx", "lonely.ptx:lonely"):
        assert vars(check(target, *launch)) == {"code": 1, "out": expected, "err": ""}


def test_what_kernels_print_stays_out_of_what_programs_read(check, tmp_path):
    kernel = '@pd.kernel\ndef told(x: pd.ptr[pd.f32]):\n    pd.printf("%g;", x[pd.tid.x])\n'
    (tmp_path / "told.py").write_text(f"import ptxdsl as pd\n{kernel}")
    launch = ("told.py:told", "--grid", 1, "--block", 2, "--arg", "f32[2]=1")
    done = check(*launch, "--json")
    assert json.loads(done.out)
    assert done.err == "1;1;"


def test_json(check, tmp_path):
    assert check("mine.py:reversed_rows", "--json").code == 1
    done = check("mine.py:reversed_rows", "--json", "findings.json")
    assert (done.code, done.out) == (1, REVERSED)
    written = json.loads((tmp_path / "findings.json").read_text())
    assert written.keys() == {"ptxdsl", "launches"}
    (launch,) = written["launches"]
    assert launch == {
        "kernel": "reversed_rows",
        "launch": "reversed_rows[1, 32](float16[256], float16[32])",
        "instructions": launch["instructions"],
        "findings": [
            {
                "kind": "unwaited-async",
                "degree": "error",
                "message": "ld.shared.b16 accesses 2 bytes at tile[31, 0] while an asynchronous copy to it is in flight",
                "help": "wait for the copy first, through its group or its mbarrier",
                "locations": [
                    {"file": "mine.py", "line": 11, "column": 24, "end_column": 25,
                     "source": "target[pd.tid.x] = tile[31 - pd.tid.x, 0]"},
                    {"file": "mine.py", "line": 8, "column": 5, "end_column": 6,
                     "source": "pd.ptx.cp.async_.cg.shared.global_(tile.address(pd.tid.x, 0), source + pd.tid.x * 8, 16)"},
                ],
                "threads": 32,
                "first_thread": {"block": [0, 0, 0], "thread": [0, 0, 0]},
            }
        ],
    }  # fmt: skip
    assert launch["instructions"] > 0


def place(file, line, start, end):
    region = {"startLine": line, "startColumn": start, "endColumn": end}
    return {"physicalLocation": {"artifactLocation": {"uri": file}, "region": region}}


def test_sarif(check):
    done = check("mine.py", "--sarif")
    written = json.loads(done.out)
    version = written["runs"][0]["tool"]["driver"]["version"]
    assert done.code == 1
    assert written == {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ptxdsl",
                        "version": version,
                        "semanticVersion": version,
                        "rules": [{"id": "unwaited-async"}],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    {
                        "ruleId": "unwaited-async",
                        "level": "error",
                        "message": {"text": TOLD},
                        "locations": [place("mine.py", 11, 24, 25)],
                        "relatedLocations": [place("mine.py", 8, 5, 6)],
                    }
                ],
            }
        ],
    }


def test_sarif_of_a_clean_kernel_has_no_results(check):
    done = check("mine.py:saxpy", "--sarif")
    assert done.code == 0
    assert json.loads(done.out)["runs"][0]["results"] == []


def test_github_annotations(check):
    copy = "pd.ptx.cp.async_.cg.shared.global_(tile.address(pd.tid.x, 0), source + pd.tid.x * 8, 16)"
    assert vars(check("mine.py:reversed_rows", "--github")) == {
        "code": 1,
        "out": "::error title=ptxdsl%3A unwaited-async,file=mine.py,line=11,col=24,endColumn=25::"
        f"{TOLD}%0Aand mine.py:8 | {copy}%0A              ^\n",
        "err": "",
    }


def test_a_file_elsewhere_and_letters_that_mean_something(check, tmp_path):
    folder = tmp_path / "a b,c:d%"
    folder.mkdir()
    (folder / "mine.py").write_text(KERNELS)
    found = check("a b,c:d%/mine.py:reversed_rows", "--github").out
    assert "file=a b%2Cc%3Ad%25/mine.py," in found
    uri = json.loads(check("a b,c:d%/mine.py:reversed_rows", "--sarif").out)["runs"][0]["results"][0]["locations"][0]
    assert uri["physicalLocation"]["artifactLocation"]["uri"] == "a%20b%2Cc%3Ad%25/mine.py"


@pytest.mark.usefixtures("lockstep")
def test_a_race_is_a_finding_at_both_of_its_lines(check, tmp_path):
    (tmp_path / "racy.py").write_text(
        "import numpy as np\nimport ptxdsl as pd\n@pd.kernel\ndef k(x: pd.ptr[pd.f32]):\n"
        "    tile = pd.shared(pd.f32, 64)\n    tile[pd.tid.x] = x[pd.tid.x]\n    x[pd.tid.x] = tile[63 - pd.tid.x]\n"
        "def example_k(rng):\n    return 1, 64, rng.standard_normal(64, np.float32)\n"
    )
    done = check("racy.py", "--sarif")
    (result,) = json.loads(done.out)["runs"][0]["results"]
    assert (done.code, result["ruleId"]) == (1, "race")
    lines = [
        place["physicalLocation"]["region"]["startLine"] for place in result["locations"] + result["relatedLocations"]
    ]
    assert sorted(lines) == [6, 7]


def test_a_kernel_that_is_refused_is_a_finding(check, tmp_path):
    (tmp_path / "mixed.py").write_text(
        "import numpy as np\nimport ptxdsl as pd\n@pd.kernel\ndef k(x: pd.ptr[pd.s32]):\n    x[0] = x[0] + pd.tid.x\n"
        "def example_k(rng):\n    return 1, 1, np.zeros(1, np.int32)\n"
    )
    done = check("mixed.py")
    assert (done.code, done.err) == (1, "")
    assert done.out == (
        "k[1, 1](int32[1]): 1 finding\n"
        "refused: `+` of two types: `x[0]` is s32, `tid.x` is u32\n"
        "  mixed.py:5 | x[0] = x[0] + pd.tid.x\n"
        "                      ^^^^^^^^^^^^^^^\n"
        "  help: convert one of them: `x[0].to(u32)` or `tid.x.to(s32)`\n"
    )
    assert check("mixed.py", "--github").out == (
        "::error title=ptxdsl%3A refused,file=mixed.py,line=5,col=12,endColumn=27::"
        "`+` of two types: `x[0]` is s32, `tid.x` is u32; help: convert one of them: `x[0].to(u32)` or `tid.x.to(s32)`\n"
    )


def test_a_refusal_of_all_launches_is_told_once(check, tmp_path):
    (tmp_path / "mixed.py").write_text(
        "import numpy as np\nimport ptxdsl as pd\n@pd.kernel\ndef k(x: pd.ptr[pd.s32]):\n    x[0] = x[0] + pd.tid.x\n"
        "def example_k(rng):\n    for n in (1, 2): yield 1, 1, np.zeros(n, np.int32)\n"
    )
    told = check("mixed.py").out
    assert told.startswith("k[1, 1](int32[1]): 1 finding\nrefused: ")
    assert told.endswith("\nk[1, 1](int32[2]): 1 finding, as above\n")
    assert told.count("refused: ") == 1


REFUSED = [
    (["mine.py:lonely"], "mine.py has no example function for lonely\n  help: write a function example_lonely(rng) that returns (grid, block, *arguments), or pass --grid, --block and each --arg"),
    (["mine.py:lonly"], "mine.py has no `lonly`\n  help: did you mean `lonely`?"),
    (["mine.py:lonely", "--grid", "1"], "a launch needs --grid and --block\n  help: such as --grid 8 --block 128"),
    (["mine.py:lonely", "--grid", "0"], "a launch needs --grid and --block\n  help: such as --grid 8 --block 128"),
    (["mine.py:lonely", "--arg", "1"], "a launch needs --grid and --block\n  help: such as --grid 8 --block 128"),
    (["mine.py", "--grid", "1", "--block", "32"], "mine.py has 3 kernels: name one\n  help: write `mine.py:reversed_rows`; it has reversed_rows, saxpy, lonely"),
    (["two.ptx", "--grid", "1", "--block", "1"], "two.ptx has 2 kernels: name one\n  help: write two.ptx:a; it has a, b"),
    (["two.ptx:c", "--grid", "1", "--block", "1"], "two.ptx has no kernel `c`\n  help: it has a, b"),
    (["two.ptx:a"], "PTX has no example function: two.ptx needs a launch\n  help: pass --grid, --block and each --arg"),
    (["mine.py:lonely", "--grid", "1,2", "--block", "1"], "--grid 1,2 is not a shape\n  help: write X, XxY or XxYxZ"),
    (["mine.py:lonely", "--grid", "99999999999", "--block", "1"], "--grid 99999999999 is too large: the limit is 2147483647"),
    (["mine.py", "--seed", "-1"], "--seed -1 is not a number of 0 or more\n  help: for example --seed 8"),
    (["mine.py", "--shared", "many", "--grid", "1", "--block", "1"], "--shared many is not a number of 0 or more\n  help: for example --shared 8"),
    (["mine.py", "--json", "--sarif"], "--json and --sarif both write to stdout\n  help: name a file for each"),
    (["mine.py", "--json", "--github"], "--json and --github both write to stdout\n  help: name a file for each"),
    (["mine.py:lonely", "--grid", "1", "--block", "1", "--arg", "many"], "--arg many is not an argument\n  help: write a number, f32[32,8] (random), f32[32,8]=0 (every element 0), u32[32]=arange or a file.npy"),
    (["empty.py"], "empty.py has no kernel"),
    (["nowhere.py"], "there is no file nowhere.py"),
]  # fmt: skip


@pytest.mark.parametrize("arguments, text", REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_what_cannot_be_meant(check, tmp_path, arguments, text):
    (tmp_path / "empty.py").touch()
    entries = "".join(f".visible .entry {name}()\n{{\nret;\n}}\n" for name in "ab")
    (tmp_path / "two.ptx").write_text(f".version 7.0\n.target sm_80\n.address_size 64\n{entries}")
    assert vars(check(*arguments)) == {"code": 2, "out": "", "err": f"ptxdsl: {text}\n"}


@pytest.mark.parametrize(
    "body, text",
    [
        ("return None", "example_k returned None; a launch is (grid, block, *arguments)\n  help: return the arguments of pd.emulate() after the kernel, keyword arguments as a dict at the end"),
        ("return 1,", "example_k returned (1,); a launch is (grid, block, *arguments)\n  help: return the arguments of pd.emulate() after the kernel, keyword arguments as a dict at the end"),
        ("raise SystemExit(0)", "example_k of mine.py fails: it raised SystemExit: 0 (mine.py:5)"),
        ("1 / 0", "example_k of mine.py fails: ZeroDivisionError: division by zero\n  mine.py:5 | 1 / 0"),
    ],
)  # fmt: skip
def test_an_example_that_makes_no_launch(check, tmp_path, body, text):
    (tmp_path / "mine.py").write_text(
        f"import ptxdsl as pd\n@pd.kernel\ndef k(): pass\ndef example_k(rng):\n    {body}\n"
    )
    assert vars(check("mine.py")) == {"code": 2, "out": "", "err": f"ptxdsl: {text}\n"}


def test_an_example_that_takes_no_random_numbers(check, tmp_path):
    (tmp_path / "mine.py").write_text("import ptxdsl as pd\n@pd.kernel\ndef k(): pass\ndef example_k(): return 1, 1\n")
    text = "example_k of mine.py does not take one argument\n  help: write `def example_k(rng):`; rng is a numpy.random.Generator"
    assert vars(check("mine.py")) == {"code": 2, "out": "", "err": f"ptxdsl: {text}\n"}


class TestArguments:
    @pytest.fixture
    def read(self):
        return lambda text: read_argument(text, np.random.default_rng(0))

    def test_numbers(self, read):
        assert [read(text) for text in ("12", "-3", "0x10", "2.5", "1e3")] == [12, -3, 16, 2.5, 1000.0]
        assert type(read("12")) is int and type(read("12.0")) is float

    @pytest.mark.parametrize("name, dtype", [("f32", "f4"), ("f16", "f2"), ("u8", "u1"), ("s64", "i8"), ("b32", "u4")])
    def test_types(self, read, name, dtype):
        assert read(f"{name}[2, 3]").dtype == dtype
        assert read(f"{name}[2, 3]").shape == (2, 3)

    def test_bf16(self, read):
        assert read("bf16[4]").dtype == ml_dtypes.bfloat16

    def test_contents(self, read):
        assert abs(read("f32[1000]").mean()) < 0.2 and 0.8 < read("f32[1000]").std() < 1.2
        assert set(read("s8[1000]")) == set(range(10))
        assert (read("f32[2,2]=1.5") == 1.5).all() and (read("u32[3]=0x10") == 16).all()
        assert read("u32[2,2]=arange").tolist() == [[0, 1], [2, 3]]

    def test_the_same_seed_gives_the_same_numbers(self, read):
        assert (read("f32[8]") == read("f32[8]")).all()

    def test_a_file(self, read, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(3))
        assert read(f"{tmp_path}/x.npy").tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        "text, refusal",
        [
            ("f33[4]", "--arg f33[4]: `f33` is not an element type\n  help: take f32, u8, s64, bf16, …"),
            ("u4[4]", "--arg u4[4]: `u4` is not an element type\n  help: take f32, u8, s64, bf16, …"),
            ("u8[4]=300", "--arg u8[4]=300: 300 is not a uint8 value\n  help: write a number, f32[32,8] (random), f32[32,8]=0 (every element 0), u32[32]=arange or a file.npy"),
            ("f32[4]=x", "--arg f32[4]=x: x is not a float32 value\n  help: write a number, f32[32,8] (random), f32[32,8]=0 (every element 0), u32[32]=arange or a file.npy"),
            ("f32[1000000,1000000]", "--arg f32[1000000,1000000] has more than 4 GiB"),
            ("nowhere.npy", "--arg nowhere.npy cannot be read: No such file or directory"),
        ],
    )  # fmt: skip
    def test_refusals(self, read, text, refusal):
        with pytest.raises(UsageError) as error:
            read(text)
        assert str(error.value) == refusal

    def test_a_file_of_objects_is_not_run(self, read, tmp_path):
        np.save(tmp_path / "x.npy", np.array([print], object), allow_pickle=True)
        with pytest.raises(UsageError, match=r"x\.npy cannot be read: .*allow_pickle=False"):
            read(f"{tmp_path}/x.npy")


TESTS = """
import numpy as np
import mine

def test_examples(ptx_check):
    first, second = ptx_check.examples(mine.saxpy)
    assert first.instructions > second.instructions

def test_a_launch(ptx_check):
    x = np.zeros(32, np.float32)
    assert ptx_check(mine.lonely, 1, 32, x).findings == ()
    assert (x == 1).all()

def test_a_constant(ptx_check):
    ptx_check(mine.saxpy, 1, 1, np.zeros(1, np.float32), np.zeros(1, np.float32), 1.0, 1, scale=2)

def test_findings(ptx_check):
    ptx_check(mine.lonely, 1, 32, np.zeros(30, np.float32))

def test_findings_of_examples(ptx_check):
    ptx_check.examples(mine.reversed_rows)

def test_no_examples(ptx_check):
    ptx_check.examples(mine.lonely)
"""


@pytest.mark.exhaustive
def test_the_fixture(tmp_path):
    (tmp_path / "mine.py").write_text(KERNELS)
    (tmp_path / "test_mine.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["ptxdsl.testing"]\n')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "-W", "error"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "80"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert "3 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    place = "mine.py:28 | x[pd.tid.x] = 1.0\n               ^"
    assert f"___ test_findings ___\n{OUT_OF_BOUNDS.format(place=place)}___" in rules_shortened(done.stdout)
    assert f"___ test_findings_of_examples ___\n{REVERSED}___" in rules_shortened(done.stdout)
    assert "___ test_no_examples ___\nthere is no example_lonely(rng) in mine\n" in rules_shortened(done.stdout)


def rules_shortened(output):
    """Lines of underscores, whose number depends on the terminal, as three."""
    return "\n".join(
        line if not line.startswith("___") else f"___ {line.strip('_ ')} ___" for line in output.split("\n")
    )


def test_the_plugin_loads_next_to_nothing():
    code = textwrap.dedent("""
        import sys
        import pytest
        before = set(sys.modules)
        import ptxdsl.testing
        new = set(sys.modules) - before
        assert not new & {"numpy", "lark", "ptxdsl.trace", "ptxdsl.emulate", "ptxdsl.check"}, new
    """)
    subprocess.run([sys.executable, "-c", code], check=True)
