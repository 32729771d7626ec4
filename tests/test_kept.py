"""Traces that are kept on disk: a second process need not trace a kernel of the package, and never gets another one."""

import dataclasses
import json
import os
import subprocess
import sys
import time

import pytest

from ptxdsl import f16
from ptxdsl.assemble import cache
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import relu
from ptxdsl.kernels.gemm import gemm_kernel
from ptxdsl.kernels.product.operands import Operands
from ptxdsl.runtime import imported, kept
from ptxdsl.runtime.kept import KeptTrace, NotPlainError, described
from ptxdsl.schedule import PersistentScheduler

# `variant` forgets what this process has traced, and tells whether it took what is kept, and whether it kept something.
PROCESS = """
import dataclasses, hashlib, json, sys
import numpy as np
import ptxdsl as pd
from ptxdsl import config
from ptxdsl.assemble import cache
from ptxdsl.kernels.config import GemmConfig
from ptxdsl.kernels.epilogue import relu
from ptxdsl.kernels.gemm import USUAL, HOPPER, gemm, gemm_kernel, warpgroup_gemm_kernel
from ptxdsl.kernels.product import accumulators
from ptxdsl.runtime import imported, kept

log, load, keep = [], kept.load, kept.keep
def loading(folder, name):
    trace = load(folder, name)
    log.append("none" if trace is None else "taken")
    return trace
kept.load, kept.keep = loading, lambda *arguments: (log.append("kept"), keep(*arguments))
def variant(kernel=gemm_kernel, arch="sm_80", **constants):
    kernel._variants.clear(), kernel._asked.clear(), log.clear()
    variant = kernel.variant(arch, constants or {"traits": USUAL})
    return variant, " ".join(log)
def facts(variant):
    text = hashlib.sha256(variant.text.encode()).hexdigest()
    parameters = [(name, str(type)) for name, type in variant.parameters]
    return text, parameters, variant.dynamic_bytes, sorted(variant.written), variant.extents
def entries():
    return {entry.name for entry in cache.entries(config.current().cache_dir)}
results = {}
"""


@pytest.fixture
def run(tmp_path):
    """Runs a program in a process of its own, and gives its `results`."""

    def run(program, **environment):
        code = f"{PROCESS}\n{program}\nprint(json.dumps(results))"
        process = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False,
            env=os.environ | {"PTXDSL_CACHE_DIR": str(tmp_path), "PYTHONWARNINGS": "error"} | environment,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    return run


@pytest.mark.exhaustive
def test_a_second_process_takes_what_the_first_one_traced_and_nothing_else(run):
    both = """
for name, (kernel, arch, traits) in {
    "usual": (gemm_kernel, "sm_80", USUAL), "wgmma": (warpgroup_gemm_kernel, "sm_90a", HOPPER),
}.items():
    made, said = variant(kernel, arch, traits=traits)
    results[name] = said, facts(made)
"""
    first = run(both)
    second = run(
        both
        + """
small = GemmConfig(tile=(64, 64, 32), warp=(32, 32)).traits()
made, said = variant()
results["traced where it is asked for"] = len(made.module.kernels), len(made.arrays)
results["other target"] = variant(arch="sm_90")[1]
results["other constants"] = variant(traits=small)[1]
results["a function of the package"] = variant(traits=dataclasses.replace(small, epilogue=relu))[1]
results["a function of the caller"] = variant(traits=dataclasses.replace(small, epilogue=lambda x: x * 2.0))[1]
with config.using(lineinfo=False):
    results["without lines"] = variant()[1]
same = pd.kernel(gemm_kernel.__wrapped__)
results["another kernel of the function"] = variant(same)[1]
with config.using(cache_dir=None):
    results["no cache"] = variant()[1]
a = np.ones((8, 8), np.float16)
results["right"] = float(gemm(a, a).sum())
"""
    )
    assert all(said == "none kept" for said, _ in first.values())
    for name, (_, facts) in first.items():
        assert second.pop(name) == ["taken", facts]
    assert second.pop("traced where it is asked for") == [1, 1]
    assert second.pop("right") == 512.0
    traced = ("other target", "other constants", "a function of the package", "without lines")
    assert second == dict.fromkeys(second, "") | dict.fromkeys(traced, "none kept")


def test_where_somebody_has_written_into_the_package_nothing_is_taken_or_kept(run):
    program = """
results["at first"] = variant()[1]
results["again"] = variant()[1]
patches = {
    "a method": (accumulators.TileAccumulators, "clear", lambda self: None),
    "an inherited method": (pd.Ring, "__len__", lambda self: 2),
    "a function": (sys.modules["ptxdsl.trace.control"], "if_", print),
    "a number": (accumulators, "WIDEST", 2),
    "a table": (sys.modules["ptxdsl.kernels.product.operands"], "SUMS", {}),
    "a new name": (accumulators, "NARROWEST", 2),
    "a name of ptxdsl": (pd, "range", range),
    "a class": (sys.modules["ptxdsl.kernels.gemm"], "TileAccumulators", type("TileAccumulators", (accumulators.TileAccumulators,), {})),
}
before = entries()
for name, (owner, attribute, value) in patches.items():
    getattr(owner, attribute, None)  # which loads a name of ptxdsl
    known = vars(owner).get(attribute, results)
    setattr(owner, attribute, value)
    results[name] = [kept.load(config.current().cache_dir, each) for each in entries()], kept._is_unchanged()
    delattr(owner, attribute) if known is results else setattr(owner, attribute, known)
    assert kept._is_unchanged(), name
table = sys.modules["ptxdsl.kernels.product.operands"].SUMS
table["new"] = 1
results["in a table"] = [kept.load(config.current().cache_dir, each) for each in entries()], kept._is_unchanged()
del table["new"]
pd.parse = json
assert kept._is_unchanged() and type(json) is type(sys)  # a module of others is none of ours
accumulators.TileAccumulators.clear = lambda self: None
made, said = variant(arch="sm_86")
results["traced by it"] = said, entries() == before
"""
    results = run(program)
    assert (results.pop("at first"), results.pop("again")) == ("none kept", "taken")
    assert results.pop("traced by it") == ["none kept", True]  # `keep` was asked, and kept nothing
    assert all(said == [[None], False] for said in results.values())


class TestEntries:
    """What is on disk, without a process of its own: the tests' own has switched something in `errors`."""

    NAME = cache.key(["a kernel"])

    @pytest.fixture
    def trace(self, monkeypatch):
        monkeypatch.setattr(kept, "_is_unchanged", lambda: True)
        stamp = imported.file_stamp("errors.py")
        assert stamp is not None, "errors.py was written in the last seconds"
        return KeptTrace("k", "sm_80", 1024, ["out"], {"tile": 4096}, {"errors.py": stamp}, ".version 8.0\n// µ\n")

    def test_what_is_kept_comes_back(self, tmp_path, trace):
        for each in (trace, dataclasses.replace(trace, dynamic_bytes=None, written=[], extents={})):
            cache.store(tmp_path, self.NAME, kept.packed(each))
            assert kept.load(tmp_path, self.NAME) == each

    def test_by_other_files_or_where_the_package_is_not_what_they_say_it_is_not_used(
        self, tmp_path, trace, monkeypatch
    ):
        for path, stamp in (("errors.py", "0 0 0 0"), ("gone.py", "0 0 0 0")):
            files = trace.files | {path: stamp}
            cache.store(tmp_path, self.NAME, kept.packed(dataclasses.replace(trace, files=files)))
            assert kept.load(tmp_path, self.NAME) is None
        cache.store(tmp_path, self.NAME, kept.packed(trace))
        monkeypatch.setattr(kept, "_is_unchanged", lambda: False)
        assert kept.load(tmp_path, self.NAME) is None

    @pytest.mark.parametrize(
        "damage",
        [
            lambda path: path.write_bytes(path.read_bytes()[:-3]),
            lambda path: path.write_bytes(path.read_bytes().replace(b".version 8.0", b".version 8.1")),
            lambda path: path.write_bytes(b""),
            lambda path: path.chmod(0o666),
            lambda path: (path.rename(path.with_suffix(".other")), path.symlink_to(path.with_suffix(".other"))),
            lambda path: (path.unlink(), os.mkfifo(path)),
        ],
    )  # fmt: skip
    def test_what_is_damaged_or_planted_is_not_used_and_heals(self, tmp_path, trace, damage):
        cache.store(tmp_path, self.NAME, kept.packed(trace))
        damage(tmp_path / self.NAME[:2] / self.NAME[2:])
        assert kept.load(tmp_path, self.NAME) is None
        cache.store(tmp_path, self.NAME, kept.packed(trace))
        assert kept.load(tmp_path, self.NAME) == trace

    @pytest.mark.parametrize(
        "content", [b"?", b"[]\n", b'{"trace": 1}\n', b'{"trace": {}}\n', b'{"kernels": {}}\n\x7fELF', b"[" * 100000]
    )
    def test_what_is_no_trace_is_not_used(self, tmp_path, content):
        cache.store(tmp_path, self.NAME, content)
        assert kept.load(tmp_path, self.NAME) is None

    def test_one_under_the_name_of_another_is_not_used(self, tmp_path, trace):
        cache.store(tmp_path, self.NAME, kept.packed(trace))
        other = cache.key(["another kernel"])
        (tmp_path / other[:2]).mkdir()
        (tmp_path / self.NAME[:2] / self.NAME[2:]).rename(tmp_path / other[:2] / other[2:])
        assert kept.load(tmp_path, other) is None


class TestNames:
    SAID = "sm_80", True

    def name(self, *said, kernel=gemm_kernel, **constants):
        return kept.name_of(gemm_kernel.signature.function, kernel, *(said or self.SAID), constants=constants)

    def test_each_target_setting_and_constant_has_its_own(self):
        traits = GemmConfig().traits()
        values = (
            2, 2.0, True, 1, 0.0, -0.0, "2", b"2", None, (), (1,), (True,), ((1,),), f16, traits, relu, PersistentScheduler(),
            GemmConfig(stages=3).traits(), GemmConfig().traits(Operands(a_major="mn")), PersistentScheduler,
            dataclasses.replace(traits, epilogue=relu),
        )  # fmt: skip
        names = [self.name(traits=value) for value in values]
        names += [
            self.name("sm_90", True, traits=traits),
            self.name("sm_80", False, traits=traits),
            self.name(other=traits),
        ]
        assert None not in names and len({*names}) == len(names)
        assert self.name(traits=GemmConfig().traits()) == self.name(traits=traits)

    def test_what_may_be_another_thing_in_another_process_has_none(self):
        class Own(PersistentScheduler):
            pass

        def moved(x):
            return x

        moved.__module__, moved.__qualname__ = relu.__module__, relu.__qualname__
        for value in (lambda x: x, moved, Own(), [1], {1: 2}, {1}, object(), gemm_kernel, (1, [2]), Own, 1 + 2j):
            assert self.name(traits=value) is None
            with pytest.raises(NotPlainError):
                described(value)
        assert self.name(kernel=object(), traits=1) is None


class TestFiles:
    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        monkeypatch.setattr(imported, "ROOT", str(tmp_path))
        monkeypatch.setattr(imported, "LOADED_NS", time.time_ns() + 10**10)
        path = tmp_path / "module.py"
        path.write_text("a = 1")
        return path

    def test_each_version_of_a_file_has_its_own_stamp(self, file):
        stamps = [imported.file_stamp("module.py")]
        file.write_text("a = 23")
        stamps.append(imported.file_stamp("module.py"))
        status = file.stat()
        file.write_text("a = 24")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # of the same size and time
        stamps.append(imported.file_stamp("module.py"))
        assert None not in stamps and len({*stamps}) == 3

    def test_one_that_was_written_since_the_package_was_loaded_has_none(self, file, monkeypatch):
        monkeypatch.setattr(imported, "LOADED_NS", file.stat().st_ctime_ns - 1)
        assert imported.file_stamp("module.py") is None
        monkeypatch.setattr(imported, "LOADED_NS", file.stat().st_ctime_ns + 10**9)  # nearly at the same time
        assert imported.file_stamp("module.py") is None
        assert imported.file_stamp("gone.py") is None


def test_tests_keep_traces_too():
    """What every test shares has written nothing into the package: with that, each process would trace each kernel."""
    said = "import tests.conftest; from ptxdsl.runtime import kept; print(kept._is_unchanged())"
    root = os.path.dirname(os.path.dirname(__file__))
    process = subprocess.run([sys.executable, "-c", said], cwd=root, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "True"
