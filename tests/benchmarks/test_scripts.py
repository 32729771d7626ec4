"""The benchmarks as they are run, with numpy in torch's stead: their cases, contenders and rows."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
PATH = os.pathsep.join([str(pathlib.Path(__file__).parent / "fake_torch"), str(ROOT), str(BENCHMARKS)])
QUICK = ("--rounds", 1, "--turns", 1)
SHORT = "protocols.SLICE_SECONDS, protocols.COUNTED_SLICES, protocols.rest.__defaults__ = 0.001, 1, (0.0,)"

pytestmark = pytest.mark.exhaustive


def python(*arguments):
    command = [sys.executable, *map(str, arguments)]
    environment = {
        **os.environ,
        "PYTHONPATH": PATH,
        "PTXDSL_ARCH": "sm_90",
        "PTXDSL_CHECKS": "off",
    }  # kernels are checked elsewhere
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def run(*arguments):
    return python(BENCHMARKS / "gemm.py", *arguments)


def rows(name, changes, folder, *arguments):
    """The rows of a benchmark, after lines of Python that make its cases small."""
    path = folder / "result.json"
    finished = python("-c", f"import protocols, {name}\n{SHORT}\n{changes}\n{name}.main()",
                      *QUICK, "--json", path, *arguments)  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return json.loads(path.read_text())["rows"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Before and after, which are the same here, in one run."""
    path = tmp_path_factory.mktemp("result") / "gemm.json"
    finished = run("--shape", "48x32x64", *QUICK, "--against", ROOT, "--json", path)
    assert finished.returncode == 0, finished.stderr
    return json.loads(path.read_text())


def test_before_and_after_in_one_command(compared):
    assert [row["contender"] for row in compared["rows"]] == ["cublas", "ptxdsl", "before ptxdsl"]
    for row in compared["rows"]:
        assert row["shape"] == "48x32x64"
        assert min(row["us, rest"], row["us, held"], row["TFLOP/s, rest"], row["TFLOP/s, held"]) > 0
    assert {"now/before, rest", "now/before, held"} < set(compared["rows"][1])


def test_the_result_has_the_command(compared):
    command = compared["environment"]["command"]
    assert command.startswith("python benchmarks/gemm.py --shape 48x32x64 --rounds 1 --turns 1 --against ")


def test_large_tiles_fit_an_h200():
    """Beside boxes that are staged, and those of C."""
    lines = """
import large_tiles
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.types import bf16
for epilogue in large_tiles.EPILOGUES:
    operands = Operands(bf16, bf16, out_boxes=True, c="separate" if epilogue == "residual" else "none")
    print(all(config.traits(operands).fits("sm_90a") for config in large_tiles.configs(epilogue).values()))
"""
    assert python("-c", lines).stdout.split() == ["True"] * 3


def test_large_tiles(tmp_path):
    few = "large_tiles.configs = lambda epilogue: {'usual': None}"
    found = rows("large_tiles", few, tmp_path, "--shape", "48x32x64", "--epilogue", "none", "--epilogue", "residual")
    for epilogue in ("none", "residual"):
        assert contenders(found, epilogue=epilogue) == ["cublas", "usual"]


def test_a_budget_of_nothing_measures_nothing_and_says_so(tmp_path):
    finished = run("--shapes", "square", "--budget", 0, "--json", tmp_path / "gemm.json")
    assert finished.returncode == 0, finished.stderr
    assert {row["contender"] for row in json.loads((tmp_path / "gemm.json").read_text())["rows"]} == {
        "left out: no time"
    }


def test_a_missing_checkout_is_refused(tmp_path):
    finished = run("--against", tmp_path)
    assert finished.returncode == 1
    assert finished.stderr == f"--against {tmp_path}: there is no folder ptxdsl in it; name the root of a checkout\n"


def contenders(rows, **label):
    return [row["contender"] for row in rows if all(row.get(name) == value for name, value in label.items())]


def test_grouped(tmp_path):
    changes = """
grouped.GROUPED = {"64 small": [(16, 24, 32)] * 2 + [(8, 8, 16)], "32 mixed": [(16, 24, 32), (8, 8, 16)]}
grouped.RAGGED, grouped.VISITED = [(2, 20, 16, 32)], (128, 256, 64)
"""
    found = rows("grouped", changes, tmp_path, "--shapes", "64 small", "--shapes", "ragged", "--shapes", "visitor")
    ours = ["device", "device sorted", "host", "host sorted", "balance k"]
    others = ["cuBLAS loop", "cuBLAS on streams", "cuBLAS batched", "reading"]
    assert contenders(found, orders="rcr") == others + ours
    assert contenders(found, data="integers") == others + ours
    assert contenders(found, set="ragged 2 groups, 20x16x32") == ["torch._grouped_mm", "cuBLAS loop", "ptxdsl"]
    assert contenders(found, set="one problem") == ["persistent gemm", "gemm", "device", "host"]


def test_grouped_host(tmp_path):
    changes = """
grouped.GROUPED = {name: [(16, 24, 32), (8, 8, 16)] for name in ("8 large", "64 small")}
grouped.host_us.__defaults__ = (1,)
"""
    found = rows("grouped", changes, tmp_path, "--shapes", "host")
    assert [row["set"] for row in found] == ["host µs, 8 large", "host µs, 64 small"]
    assert all(row["table"] > 0 and row["balance k"] > 0 for row in found)


def test_schedules(tmp_path):
    few = "schedules.schedules = lambda ways=list(schedules.schedules()): ways[12:14]"
    found = rows("schedules", few, tmp_path, "--shape", "64x64x64", "--shape", "2x32x32x32")
    assert contenders(found, shape="64x64x64")[0] == "cuBLAS"
    assert contenders(found, shape="64x64x64")[-1] == "as gemm() chooses"
    assert len(contenders(found, shape="64x64x64")) == 4
    assert contenders(found, shape="2x32x32x32") == [
        "cuBLAS", "as gemm() chooses", "batched, 128x128x32", "batched persistent, 128x128x32", "list of matrices",
    ]  # fmt: skip


def test_dtypes(tmp_path):
    few = "dtypes.DTYPES = {name: dtypes.DTYPES[name] for name in ('s8', 'bf16')}"
    found = rows("dtypes", few, tmp_path, "--size", 64)
    for name in ("s8", "bf16"):
        for layout in ("tn", "tt", "nn", "nt"):
            assert contenders(found, what="product", dtype=name, layout=layout) == ["cublas", "ptxdsl"]
    fused = ["torch", "addmm", "ptxdsl", "ptxdsl, product alone"]
    assert contenders(found, what="gelu(a@b + bias)") == contenders(found, what="relu(a@b + bias) + residual") == fused


@pytest.mark.parametrize("fused", [False, True])
def test_conv(tmp_path, fused):
    layers = "conv.LAYERS = [conv.Layer(6, 8, 16, 3, 2)]"
    found = rows("conv", layers, tmp_path, "--batch", 2, *["--fused"] * fused)
    assert contenders(found) == (["cudnn", "torch", "ptxdsl"] if fused else ["cudnn", "ptxdsl"])
    operations = found[0]["TFLOP/s, rest"] * found[0]["us, rest"] * 1e6
    assert operations == pytest.approx(2 * 2 * 3 * 3 * 16 * 3 * 3 * 8)


def test_of_launches_in_several_processes_the_least_counts(tmp_path):
    """Three pairs of processes: the handle takes 2, 3 and 1.5 ms, and 6, 3 and 5 before."""
    changes = """
import contextlib
from tests.benchmarks.fake_gpu import FakeGpu
gpu, pairs = FakeGpu(), [(2, 6), (3, 3), (1.5, 5)]
class Tree:
    def __init__(self, ms): self.ms = ms
    def contenders(self, case): return {"handle": protocols.Local(gpu, gpu.takes("handle", self.ms))}
@contextlib.contextmanager
def versions(against, apart):
    assert apart and str(against) == "elsewhere"
    yield dict(zip(("", "before "), map(Tree, pairs.pop(0)), strict=True))
launch_overhead.TorchGpu, launch_overhead.common.versions = lambda: gpu, versions
launch_overhead.BENCHMARK = launch_overhead.common.Benchmark(
    lambda case: {"torch": gpu.takes("torch", 4)}, None, launch_overhead.BENCHMARK.label, None)
launch_overhead.CASES = [("k",)]
"""
    path = tmp_path / "result.json"
    options = "--processes", 3, "--against", "elsewhere", "--rounds", 1, "--json", path
    finished = python("-c", f"import protocols, launch_overhead\n{changes}launch_overhead.main()", *options)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr.splitlines()[1].startswith("process 2: {('k',): {'torch': ")
    (row,) = json.loads(path.read_text())["rows"]
    assert row == pytest.approx(
        {"kernel": "k", "torch us": 4000, "handle us": 1500, "before handle us": 3000, "handle, now/before": 2,
         "processes": 3}
    )  # fmt: skip


def test_no_process_measures_nothing():
    finished = python(BENCHMARKS / "launch_overhead.py", "--processes", 0)
    assert finished.stderr.endswith("argument --processes: '0' is no number of processes, 1 or more\n")
