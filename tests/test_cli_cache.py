"""`ptxdsl cache`: what is kept is listed with its kernels, and cleared; nothing else in the folder is touched."""

import json
import os
import time

import pytest

import ptxdsl as pd
from ptxdsl import cli, f32, ptr
from ptxdsl.assemble import assemble, assembler_version, cache
from ptxdsl.runtime.kept import KeptTrace, packed


@pd.kernel
def doubled(x: ptr[f32]):
    x[0] = x[0] * 2.0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with a cubin of two days, one of now, an entry of another version, and a file of somebody else."""
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(assembler_version, "library", lambda: None)
    for arch in ("sm_80", "sm_90a"):
        assemble(doubled.ptx(arch), arch)
    oldest = cache.entries(tmp_path)[-1]
    os.utime(tmp_path / oldest.name[:2] / oldest.name[2:], (time.time() - 2 * 86400,) * 2)
    cache.store(tmp_path, cache.key(["of another version"]), b"?")
    (tmp_path / "ab").mkdir(exist_ok=True)
    (tmp_path / "ab" / "notes.txt").write_text("mine")
    return tmp_path


@pytest.fixture
def run(capsys):
    def run(*arguments):
        return cli.main(["cache", *arguments]), *capsys.readouterr()

    return run


def test_entries_are_listed_with_kernels_targets_sizes_and_ages(folder, run):
    code, out, _ = run()
    lines = out.splitlines()
    assert code == 0
    assert sum("doubled for sm_" in line for line in lines) == 2
    assert any("2 days" in line for line in lines) and any(
        "unused: from another version of ptxdsl" in line for line in lines
    )
    assert lines[-1].startswith("3 entries kept, ") and lines[-1].endswith(f" bytes, in {folder}")


def test_json_says_the_same(folder, run):
    facts = json.loads(run("list", "--json")[1])
    assert facts["folder"] == str(folder)
    assert sorted(entry["arch"] or "" for entry in facts["entries"]) == ["", "sm_80", "sm_90a"]
    assert {tuple(entry["kernels"]) for entry in facts["entries"]} == {("doubled",), ()}
    assert max(entry["age_seconds"] for entry in facts["entries"]) >= 2 * 86400


def test_a_trace_is_listed_beside_the_cubin_that_was_made_of_it(folder, run):
    trace = KeptTrace("gemm_kernel", "sm_80", 0, [], {}, {}, ".version 8.0")
    cache.store(folder, cache.key(["a trace"]), packed(trace))
    assert any(line.endswith("gemm_kernel for sm_80, as PTX") for line in run()[1].splitlines())
    facts = [entry for entry in json.loads(run("--json")[1])["entries"] if entry["traced"]]
    assert [(entry["kernels"], entry["arch"]) for entry in facts] == [(["gemm_kernel"], "sm_80")]


def test_clear_removes_entries_and_nothing_else(folder, run):
    assert run("clear", "--older-than", "1")[1].startswith("1 entry removed, ")
    assert run("clear")[1].startswith("2 entries removed, ")
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["notes.txt"]
    assert run()[1] == f"0 entries kept, 0 bytes, in {folder}\n"


def test_a_folder_that_is_not_there_is_an_empty_cache(tmp_path, run, monkeypatch):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path / "none"))
    assert run()[1] == f"0 entries kept, 0 bytes, in {tmp_path / 'none'}\n"


def test_a_cache_that_is_off_is_said(run, monkeypatch):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", "off")
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "the cache is switched off\n  help: PTXDSL_CACHE_DIR is `off`; set it to a folder" in err


@pytest.mark.parametrize("days", ["soon", "-1", "inf", "nan"])
def test_ages_are_numbers_of_days(days, capsys):
    with pytest.raises(SystemExit):
        cli.main(["cache", f"--older-than={days}"])
    assert f"argument --older-than: '{days}' is not a number of days" in capsys.readouterr().err


def test_a_long_list_shows_the_latest_entries(tmp_path, monkeypatch, run):
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path))
    for number in range(25):
        cache.store(tmp_path, cache.key([str(number)]), b"?")
    lines = run()[1].splitlines()
    assert len(lines) == 21 and lines[-1].startswith("25 entries kept, ")
    assert lines[-1].endswith("; the 20 latest are listed, --all lists all")
    assert len(run("--all")[1].splitlines()) == 26
