"""The command `ptxdsl`: what it prints, what it refuses and how, and its exit codes."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import ptxdsl as pd
from ptxdsl import cli, config, driver
from ptxdsl.cli import demo, targets, trial
from ptxdsl.cli import isa as manual
from ptxdsl.driver import why_no_gpu
from ptxdsl.isa.page import python_name

ROOT = Path(__file__).parent.parent
PYTHONPATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
GEMM = "ptxdsl.kernels.gemm:gemm"
KERNELS = """\
import ptxdsl as pd
from dataclasses import dataclass
from ptxdsl import f32, ptr, u32

print("a module may say something")

@dataclass(frozen=True)
class Shape:
    rows: int = 2
    columns: int = 3

@pd.kernel
def scale(x: ptr[f32], *, factor: float = 2.0, shape: Shape = Shape()):
    for i in range(shape.rows):
        x[i] = x[i] * factor

@pd.kernel
def needs(x: ptr[f32], *, count):
    x[0] = x[count]

@pd.kernel
def mistaken(x: ptr[f32]):
    x[0] = x[0] + pd.tid.x

def function():
    pass

number = 3
"""


@pytest.fixture
def kernels(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(KERNELS)
    return str(path)


@pytest.fixture
def run(capfdbinary, monkeypatch):
    """Runs the command and returns its exit code, stdout and stderr."""

    def run(*arguments, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            code = cli.main(arguments)
        except SystemExit as exit:
            code = exit.code
        out, err = capfdbinary.readouterr()
        return SimpleNamespace(code=code, raw=out, out=out.decode(errors="replace"), err=err.decode())

    return run


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


class TestDump:
    def test_a_launcher_stands_for_the_kernel_of_its_default_configuration(self, run):
        done = run("dump", GEMM, "--arch", "sm_80")
        assert done.code == 0
        assert ".target sm_80" in done.out
        for word in ("ldmatrix.sync.aligned.m8n8.x4", "mma.sync.aligned.m16n8k16", "cp.async.cg.shared.global"):
            assert word in done.out

    def test_a_kernel_of_roles_for_sm_90a(self, run):
        done = run("dump", GEMM.replace(":gemm", ":warpgroup_gemm_kernel"), "--arch", "sm_90a")
        assert (done.code, done.err) == (0, "")
        for word in (".target sm_90a", "wgmma.mma_async.sync.aligned.m64n256k16", "setmaxnreg.inc.sync.aligned.u32",
                     "cp.async.bulk.tensor.2d.shared::cluster.global", ".param .align 64 .b8 "):  # fmt: skip
            assert word in done.out
        refused = run("dump", GEMM.replace(":gemm", ":warpgroup_gemm_kernel"), "--arch", "sm_90")
        assert refused.code == 1
        assert "needs sm_90a" in refused.err

    def test_a_kernel_by_its_file(self, run, kernels):
        done = run("dump", f"{kernels}:scale")
        assert (done.code, done.err) == (0, "a module may say something\n")
        assert done.out == pd.parse(done.out).ptx()

    def test_a_kernel_by_its_module_in_the_current_folder(self, run, kernels, monkeypatch):
        monkeypatch.chdir(Path(kernels).parent)
        monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
        monkeypatch.delitem(sys.modules, "mine", raising=False)
        assert ".entry scale(" in run("dump", "mine:scale").out

    def test_the_only_kernel_of_a_file_needs_no_name(self, run, tmp_path):
        path = tmp_path / "one.py"
        path.write_text(KERNELS.partition("@pd.kernel\ndef needs")[0])
        assert ".entry scale(" in run("dump", str(path)).out

    def test_constants_are_expressions_in_the_module_of_the_kernel(self, run, kernels):
        assert ".entry" in run("dump", f"{kernels}:scale", "--const", "shape=Shape(4)").out
        assert run("dump", f"{kernels}:scale", "--const", "shape=Shape(4)").out.count("st.global") == 4

    def test_a_field_of_a_constant_can_be_given(self, run, kernels):
        done = run("dump", f"{kernels}:scale", "--const", "shape.rows=5", "--const", "factor=3.0")
        assert done.out.count("st.global") == 5
        assert "0f40400000" in done.out

    def test_annotate_shows_each_python_line_over_its_ptx(self, run, kernels):
        done = run("dump", f"{kernels}:scale", "--annotate")
        assert "    // mine.py:15 | x[i] = x[i] * factor\n    ld.global.f32" in done.out
        assert ".loc" not in done.out

    def test_the_ir_has_a_line_an_instruction_with_its_place(self, run, kernels):
        lines = run("dump", f"{kernels}:scale", "--stage", "ir").out.splitlines()
        assert lines[0] == "entry scale: 9 instructions, 6 registers; PTX 7.0, sm_80"
        assert lines[1] == "  param x: u64"
        assert lines[-1] == "mine.py:12    ret;"

    def test_a_cubin_goes_to_a_file_and_its_resources_to_stderr(self, run, kernels, tmp_path):
        done = run("dump", f"{kernels}:scale", "--stage", "cubin", "-o", str(tmp_path / "k.cubin"))
        assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")
        assert done.raw == b""
        assert re.search(r"^scale: \d+ registers, 0 bytes of shared memory, 0 bytes spilled", done.err, re.M)

    def test_a_cubin_can_be_piped(self, run, kernels):
        assert run("dump", f"{kernels}:scale", "--stage", "cubin").raw.startswith(b"\x7fELF")

    def test_machine_instructions(self, run, kernels):
        assert "STG.E" in run("dump", f"{kernels}:scale", "--stage", "sass").out

    def test_ptx_from_stdin_for_another_target(self, run, kernels):
        text = run("dump", f"{kernels}:scale").out
        again = run("dump", "-", "--arch", "sm_90a", stdin=text).out
        assert again == text.replace(".version 7.0", ".version 8.0").replace("sm_80", "sm_90a")

    def test_ptx_from_a_file(self, run, kernels, tmp_path):
        run("dump", f"{kernels}:scale", "-o", str(tmp_path / "k.ptx"))
        text = (tmp_path / "k.ptx").read_text()
        assert run("dump", str(tmp_path / "k.ptx")).out == text

    def test_ptx_for_a_target_older_than_ours_is_assembled_for_sm_80(self, run, kernels):
        text = run("dump", f"{kernels}:scale").out.replace("sm_80", "sm_52")
        assert run("dump", "-", "--stage", "cubin", stdin=text).raw.startswith(b"\x7fELF")

    def test_PTXDSL_ARCH_is_the_default_target(self, run, kernels, monkeypatch):
        monkeypatch.setenv("PTXDSL_ARCH", "sm_90a")
        assert ".target sm_90a" in run("dump", f"{kernels}:scale").out


KNOWN = ", ".join(config.ARCHITECTURES)
SOURCES = "write package.module:kernel, file.py:kernel, file.ptx, or - for PTX from stdin"
REFUSED = [
    (
        ["dump", GEMM, "--arch", "sm_81"],
        f"unknown architecture `sm_81`\n  help: did you mean `sm_89`? known architectures are {KNOWN}",
    ),
    (
        ["dump", GEMM, "--arch", "90a"],
        f"unknown architecture `90a`\n  help: did you mean `sm_90a`? known architectures are {KNOWN}",
    ),
    (
        ["dump", GEMM, "--arch", "sm_75"],
        f"`sm_75` is not supported; the oldest target is sm_80\n  help: known architectures are {KNOWN}",
    ),
    (["dump", "nothing:kernel"], f"there is no module `nothing`\n  help: {SOURCES}"),
    (["dump", "ptxdsl.nothing:kernel"], f"there is no module `ptxdsl.nothing`\n  help: {SOURCES}"),
    (
        ["dump", "ptxdsl.kernels.gemm.gemm"],
        "there is no module `ptxdsl.kernels.gemm.gemm`\n  help: for a name in it, write ptxdsl.kernels.gemm:gemm",
    ),
    (
        ["dump", "some/where"],
        "`some/where` is not a module, a .py file or a .ptx file\n"
        "  help: write package.module:kernel, file.py:kernel, file.ptx, or - for PTX from stdin",
    ),
    (["dump", "nothing.py:kernel"], "there is no file nothing.py"),
    (["dump", "nothing.ptx"], "nothing.ptx cannot be read: No such file or directory"),
    (["dump", "{file}:scael"], "{file} has no `scael`\n  help: did you mean `scale`?"),
    (["dump", "{file}:zzz"], "{file} has no `zzz`\n  help: its kernels: scale, needs, mistaken"),
    (
        ["dump", "{file}"],
        "{file} has 3 kernels: name one\n  help: write `{file}:scale`; it has scale, needs, mistaken",
    ),
    (["dump", "ptxdsl.config"], "ptxdsl.config has no kernel"),
    (
        ["dump", "ptxdsl.kernels:gemm"],
        "ptxdsl.kernels.gemm has 3 kernels: name one\n"
        "  help: write `ptxdsl.kernels.gemm:gemm_kernel`; it has gemm_kernel, warpgroup_gemm_kernel, gemm",
    ),
    (
        ["dump", "{file}:function"],
        "`function` of {file} is a function, not a kernel\n"
        "  help: put @pd.kernel above it, or name the kernel that it launches: `function.kernel = …`",
    ),
    (
        ["dump", "{file}:number"],
        "`number` of {file} is of type int, not a kernel\n  help: its kernels: scale, needs, mistaken",
    ),
    (
        ["dump", "{file}:scale", "--const", "factr=3"],
        "kernel `scale` has no constant `factr`\n  help: it has factor, shape",
    ),
    (
        ["dump", "{file}:mistaken", "--const", "n=3"],
        "kernel `mistaken` has no constant `n`\n  help: its parameters are passed at each launch",
    ),
    (
        ["dump", "{file}:scale", "--const", "factor"],
        "--const factor has no value\n  help: write --const factor=VALUE",
    ),
    (
        ["dump", "{file}:scale", "--const", "factor=(2"],
        "(2 is not a value: '(' was never closed (<string>, line 1)\n"
        "  help: write a Python expression, such as 3 or (64, 64)",
    ),
    (
        ["dump", "{file}:scale", "--const", "shape.row=1"],
        "shape.row: Shape has no field `row`\n  help: did you mean `rows`?",
    ),
    (["dump", "{file}:scale", "--const", "factor.x=1"], "factor.x: float has no field `x`"),
    (
        ["dump", "{file}:needs"],
        "constant `count` of kernel `needs` has no default\n  help: pass --const count=…",
    ),
    (
        ["dump", "{file}:needs", "--const", "count.x=1"],
        "--const count.x=1: `count` has no default\n  help: pass the whole value: --const count=…",
    ),
    (
        ["dump", "{file}:scale", "--const", "shape=3"],
        "kernel `scale` cannot be traced: AttributeError: 'int' object has no attribute 'rows'\n"
        "  mine.py:14 | for i in range(shape.rows):",
    ),
    (
        ["dump", "{file}:scale", "--annotate", "--stage", "sass"],
        "--annotate shows Python lines in PTX, not in sass\n  help: leave out one of the two",
    ),
    (
        ["dump", "{file}:scale", "-o", "no/such/folder"],
        "no/such/folder cannot be written: No such file or directory",
    ),
    (
        ["dump", "mine.ptx:scale"],
        "mine.ptx:scale names one kernel of PTX; this command takes the whole file\n  help: write mine.ptx",
    ),
    (["dump", "-", "--const", "n=1"], "--const n=1: PTX has no constants\n  help: leave it out"),
    (
        ["isa", "ldmatix"],
        "the table has no instruction `ldmatix`\n  help: did you mean `ldmatrix` or `stmatrix` or `movmatrix`?",
    ),
    (
        ["isa", "zzzzzz"],
        "the table has no instruction `zzzzzz`\n  help: `ptxdsl isa` lists all instructions",
    ),
    (
        ["isa", "add.u33"],
        "`add` has no form `add.u33`\n  help: did you mean `add.u32` or `add.u64` or `add.u16`?",
    ),
    (
        ["run", "gemm", "--config", "stagse=3"],
        "stagse: GemmConfig has no field `stagse`\n  help: did you mean `stages` or `stagger`?",
    ),
    (["run", "gemm", "--config", "stages"], "--config stages has no value\n  help: write --config stages=VALUE"),
]


@pytest.mark.parametrize("arguments, text", REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_what_is_not_there_is_refused_with_exit_code_2(run, kernels, arguments, text):
    done = run(*(argument.replace("{file}", kernels) for argument in arguments))
    expected = f"ptxdsl: {text}\n".replace("{file}", kernels)
    assert (done.code, done.out, done.err.removeprefix("a module may say something\n")) == (2, "", expected)


def test_a_mistake_in_a_kernel_is_told_as_python_would_tell_it_with_exit_code_1(run, kernels):
    done = run("dump", f"{kernels}:mistaken")
    assert done.code == 1
    assert done.err.removeprefix("a module may say something\n") == (
        "ptxdsl: `+` of two types: `x[0]` is f32, `tid.x` is u32\n"
        "  mine.py:23 | x[0] = x[0] + pd.tid.x\n"
        "                      ^^^^^^^^^^^^^^^\n"
        "  help: convert one of them: `tid.x.to(f32)` or `x[0].to(u32)`\n"
    )


def test_a_file_that_cannot_be_imported_is_shown_with_its_line(run, tmp_path):
    (tmp_path / "broken.py").write_text("import ptxdsl\nimport no_such_package\n")
    done = run("dump", f"{tmp_path}/broken.py:k")
    assert (done.code, done.err) == (
        2,
        f"ptxdsl: {tmp_path}/broken.py cannot be imported: ModuleNotFoundError: No module named 'no_such_package'\n"
        "  broken.py:2 | import no_such_package\n",
    )


def test_a_file_with_a_syntax_error(run, tmp_path):
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert run("dump", f"{tmp_path}/broken.py:k").err == (
        f"ptxdsl: {tmp_path}/broken.py cannot be imported: SyntaxError: invalid syntax\n  broken.py:1 | def f(:\n"
    )


def test_ptx_that_is_none_is_refused_with_its_line(run):
    done = run("dump", "-", stdin=".version 8.0\n.target sm_80\n.addres_size 64\n")
    assert done.code == 1
    assert "line 3, column 1" in done.err
    assert "<stdin>:3 | .addres_size 64" in done.err


def test_a_file_that_is_no_text(run, tmp_path):
    (tmp_path / "k.ptx").write_bytes(b"\x7fELF\xff\xfe")
    assert run("dump", f"{tmp_path}/k.ptx").err == (
        f"ptxdsl: {tmp_path}/k.ptx is not text\n  help: to disassemble a cubin, use nvdisasm\n"
    )


def test_a_cubin_is_not_written_to_a_terminal(run, kernels, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run("dump", f"{kernels}:scale", "--stage", "cubin").err == (
        "ptxdsl: a cubin is binary\n  help: write it to a file (-o kernel.cubin), or into a pipe\n"
    )


@pytest.mark.parametrize("command", [["dump"], ["frob"], [], ["run", "gemm", "--dtype", "f13"], ["run", "conv"]])
def test_an_unknown_command_or_option_exits_with_2_and_the_usage(run, command):
    done = run(*command)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: ptxdsl")


@pytest.mark.parametrize("command", [[], ["dump"], ["run"], ["run", "gemm"], ["isa"], ["demo"]])
def test_every_command_has_help(run, command):
    done = run(*command, "--help")
    assert done.code == 0
    assert done.out.startswith(f"usage: ptxdsl {' '.join(command)}".rstrip())


def test_errors_are_red_only_on_a_terminal_that_wants_colours(run, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert run("isa", "zzzzzz").err.startswith("ptxdsl: ")
    monkeypatch.delenv("NO_COLOR")
    assert run("isa", "zzzzzz").err.startswith("\x1b[1;31mptxdsl:\x1b[0m ")
    monkeypatch.setenv("TERM", "dumb")
    assert run("isa", "zzzzzz").err.startswith("ptxdsl: ")


class TestIsa:
    def test_an_instruction_with_its_forms_operands_and_requirements(self, run):
        assert run("isa", "ldmatrix.sync.aligned.m8n8").out == (
            "ldmatrix: Load 8x8 matrices: lane 4g + t gets elements 2t and 2t+1 of row g (.trans: column g).\n"
            "\n"
            "  ldmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 d, [address]\n"
            "    num      x1 x2 x4\n"
            "    space    shared shared::cta\n"
            "    d        written: num registers of b32\n"
            "    address  an address in .space\n"
            "    needs    PTX 6.5, sm_75\n"
            "             with .shared::cta: PTX 7.8\n"
        )

    def test_one_form_as_ptx_and_as_python(self, run):
        assert run("isa", "ld.global.f32").out == (
            "ld.global.f32: Load from memory: d = [a].\n"
            "\n"
            "  ld.global.f32 d, [a]{, policy}\n"
            "  d = pd.ptx.ld.global_.f32(a)\n"
            "    d       written: an f32 register\n"
            "    a       an address in .global\n"
            "    policy  a 64-bit register\n"
            "    needs   PTX 3.1\n"
        )

    def test_the_plain_meaning_comes_first(self, run):
        assert "\n    p           written if pair=True: pred\n" in run("isa", "shfl").out
        out = run("isa", "add").out
        assert out.index("modulo 2^n") < out.index("CC.CF")

    def test_every_instruction_is_listed_and_has_a_page(self, run):
        listed = {word for line in run("isa").out.splitlines() if line.startswith(" ") for word in line.split()}
        assert listed == set(manual.Op.table)
        for name in listed:
            assert manual.page(name).startswith(f"{name}")

    def test_python_names_are_what_pd_ptx_takes(self):
        names = ("and.b32", "cp.async.bulk.tensor.2d.shared::cluster.global", "ld.global.L2::128B.f32")
        spelled = [python_name(name) for name in names]
        assert spelled == [
            "pd.ptx.and_.b32",
            "pd.ptx.cp.async_.bulk.tensor._2d.shared__cluster.global_",
            "pd.ptx.ld.global_.L2__128B.f32",
        ]
        assert [repr(eval(text)).removeprefix("pd.ptx.") for text in spelled] == list(names)


class TestRunGemm:
    @pytest.mark.cases(3)
    @pytest.mark.parametrize("layout", ["tn", "nn", "nt", "tt"])
    @pytest.mark.parametrize("dtype, out", [("f16", "f16"), ("bf16", "f32"), ("bf16", "bf16")])
    def test_layouts_and_types(self, run, layout, dtype, out):
        options = ["--m", "65", "--n", "40", "--k", "33", "--layout", layout, "--dtype", dtype, "--out", out]
        done = run("run", "gemm", *options, "--device", "emulator")
        assert done.code == 0, done.err
        first, second, last = done.out.splitlines()
        assert first == f"gemm 65 x 40 x 33, {dtype} to {out}, {layout}, on emulator"
        assert "against numpy in float64" in second
        assert last == "ok"

    def test_a_configuration(self, run):
        done = run("run", "gemm", "--config", "tile=64,64,32", "--config", "warp=32,32", "--device", "emulator")
        assert (done.code, done.out.splitlines()[-1]) == (0, "ok")

    @pytest.mark.cases(2)
    @pytest.mark.parametrize(
        "dtype, out", [("f32", "f32"), ("f64", "f64"), ("s8", "s32"), ("u8", "f16"), ("s8", "bf16")]
    )
    @pytest.mark.parametrize("layout", ["tn", "nt"])
    def test_other_types(self, run, dtype, out, layout):
        options = ["--m", "40", "--n", "33", "--k", "50", "--layout", layout, "--dtype", dtype, "--out", out]
        done = run("run", "gemm", *options, "--device", "emulator")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"gemm 40 x 33 x 50, {dtype} to {out}, {layout}, on emulator\n")

    def test_integers_are_exact(self, run, monkeypatch):
        def off_by_one(a, b, out, config):
            out[...] = a.astype(int) @ b.astype(int)
            out[3, 5] += 1

        monkeypatch.setattr(trial, "gemm", off_by_one)
        assert run("run", "gemm", "--m", "8", "--dtype", "s8", "--device", "emulator").code == 1

    def test_a_result_that_is_not_written(self, run):
        done = run("run", "gemm", "--dtype", "f64", "--out", "f16", "--device", "emulator")
        assert (done.code, done.err) == (2, "ptxdsl: --out f16 of --dtype f64\n  help: it is one of f64\n")

    def test_nothing_to_compute(self, run):
        assert run("run", "gemm", "--n", "0", "--device", "emulator").code == 0

    def test_a_wrong_result_fails(self, run, monkeypatch):
        monkeypatch.setattr(trial, "gemm", lambda a, b, out, config: out.fill(1))
        done = run("run", "gemm", "--m", "8", "--device", "emulator")
        assert (done.code, done.out.splitlines()[-1]) == (1, "FAILED")

    def test_a_result_that_was_not_written_fails(self, run, monkeypatch):
        monkeypatch.setattr(trial, "gemm", lambda a, b, out, config: None)
        assert run("run", "gemm", "--m", "8", "--device", "emulator").code == 1

    def test_one_step_of_the_result_type_is_more_than_rounding(self, run, monkeypatch):
        def off_by_a_step(a, b, out, config):
            out[...] = a.astype(float) @ b.astype(float)
            out[3, 5] += 2 * abs(out[3, 5]) * 2**-10

        monkeypatch.setattr(trial, "gemm", off_by_a_step)
        assert run("run", "gemm", "--m", "8", "--device", "emulator").code == 1

    @pytest.mark.skipif(not why_no_gpu(), reason="there is a GPU")
    def test_no_gpu(self, run):
        done = run("run", "gemm", "--device", "cuda")
        assert done.code == 1
        assert done.err.startswith("ptxdsl: no GPU to launch on: ")

    def test_bf16_without_ml_dtypes(self, run, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert run("run", "gemm", "--dtype", "bf16", "--device", "emulator").err == (
            "ptxdsl: numpy has no bf16 arrays without ml_dtypes\n  help: pip install 'ptxdsl[dtypes]'\n"
        )

    @pytest.mark.gpu
    @pytest.mark.parametrize("dtype", ["f16", "bf16"])
    def test_on_a_gpu(self, run, dtype):
        done = run("run", "gemm", "--m", "1000", "--n", "999", "--k", "504", "--dtype", dtype, "--device", "cuda")
        assert done.code == 0, done.err
        assert "TFLOP/s" in done.out


class TestDemo:
    def test_it_says_what_it_does_and_ends_with_ok(self, run):
        done = run("demo")
        lines = done.out.splitlines()
        assert (done.code, lines[0]) == (0, "f16 GEMM, out = a @ b, 333 x 277 x 200")
        assert lines[-1].startswith("ok")
        for word in ("ldmatrix", "mma.sync", "cp.async", "registers", "0 bytes spilled", "numpy in float64"):
            assert word in done.out

    def test_wrong_numbers_end_with_FAILED(self, run, monkeypatch):
        monkeypatch.setattr(driver, "why_no_gpu", lambda: "none in this test")
        monkeypatch.setattr(trial, "gemm", lambda a, b, out, config: out.fill(1))
        done = run("demo")
        assert done.code == 1
        assert done.out.splitlines()[-1].startswith("FAILED: wrong result on emulator")

    def test_an_error_ends_with_FAILED(self, run, monkeypatch):
        def refused(*arguments, **options):
            raise pd.Error("no")

        monkeypatch.setattr(trial, "gemm", refused)
        assert run("demo").out.splitlines()[-1] == "FAILED: no"

    def test_a_spill_ends_with_FAILED(self, run, monkeypatch):
        monkeypatch.setattr(demo, "_computed", lambda trial: [])
        monkeypatch.setattr(demo.Variant, "cubin", property(lambda variant: SPILLING), raising=False)
        assert run("demo").out.splitlines()[-1] == "FAILED: gemm_kernel spills registers"


SPILLING = SimpleNamespace(
    image=b"", warnings=(), kernels={"gemm_kernel": SimpleNamespace(spill_store_bytes=4, __str__=lambda self: "")}
)


def test_the_default_device_is_that_of_the_environment_then_the_gpu(monkeypatch):
    monkeypatch.setenv("PTXDSL_DEVICE", "emulator")
    assert trial.default_device() == "emulator"
    monkeypatch.delenv("PTXDSL_DEVICE")
    monkeypatch.setattr(driver, "why_no_gpu", lambda: None)
    assert trial.default_device() == "cuda"


def test_instructions_are_counted_the_most_frequent_first():
    counted = targets.instructions(targets.find(GEMM).module)
    assert list(counted.values()) == sorted(counted.values(), reverse=True)
    assert counted["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] > 0


def python_m(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    command = [sys.executable, "-m", "ptxdsl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)


def test_python_m_ptxdsl_is_the_command():
    assert python_m("--version").stdout == f"ptxdsl {pd.__version__}\n"


@pytest.mark.exhaustive
def test_a_reader_that_has_seen_enough_is_no_error():
    done = subprocess.run(
        f"set -o pipefail; {sys.executable} -m ptxdsl dump {GEMM} | head -n 1",
        shell=True, executable="/bin/bash", capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.stdout.startswith(".version")
    assert done.stderr == ""
