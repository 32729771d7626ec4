"""The version of nvJitLink by its file: what is kept is loaded without loading the library."""

import json
from types import SimpleNamespace

import pytest

from ptxdsl import cli, config
from ptxdsl.assemble import assemble, assembler_version, assemblers, cache
from tests.test_assemble import NO_SECTIONS, STORE


class Library(assemblers.NvJitLink):
    """Counts how often it is loaded, and what it assembles."""

    def __init__(self):
        self.loads, self.runs, self.release = 0, 0, "nvJitLink 1.0"

    def why_not(self):
        self.loads += 1

    def version(self):
        return self.release

    def assemble(self, modules, arch, options):
        self.runs += 1
        return assemblers.Outcome(NO_SECTIONS + self.release.encode(), "")


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The file of the library, and what is loaded: that file."""
    path = tmp_path / "libnvJitLink.so.1"
    path.write_text("1.0")
    monkeypatch.setattr(assembler_version, "library", lambda: str(path))
    loaded = SimpleNamespace(abs_path=str(path))
    monkeypatch.setattr(assemblers, "pathfinder", SimpleNamespace(load_nvidia_dynamic_lib=lambda name: loaded))
    return path, loaded


@pytest.fixture
def library(file, tmp_path, monkeypatch):
    library = Library()
    monkeypatch.setattr(assemblers, "ASSEMBLERS", {"nvjitlink": library})
    with config.using(cache_dir=tmp_path / "cache"):
        yield library


def test_what_is_kept_is_loaded_without_the_library(library):
    made = assemble(STORE, "sm_80")
    loads = library.loads
    assert assemble(STORE, "sm_80") == made
    assert (library.loads, library.runs) == (loads, 1)
    assemble(STORE, "sm_90")
    assert library.loads > loads and library.runs == 2


def test_another_library_in_its_file_is_asked_for_its_version(library, file):
    assemble(STORE, "sm_80")
    library.release = "nvJitLink 1.1"
    file[0].write_text("1.10")
    assert assemble(STORE, "sm_80").image.endswith(b"1.1")
    assert library.runs == 2
    file[0].unlink()
    loads = library.loads
    assemble(STORE, "sm_80")
    assert library.loads > loads and library.runs == 2


def test_one_that_is_loaded_from_elsewhere_is_not_noted_and_its_cubins_are_its_own(library, file):
    file[1].abs_path = "/elsewhere/libnvJitLink.so.2"
    library.release = "nvJitLink 2.0"
    for runs in (1, 1):
        assert assemble(STORE, "sm_80").image.endswith(b"2.0") and library.runs == runs
    assert assembler_version.version(config.current().cache_dir, None, False) is None
    file[1].abs_path = str(file[0])
    library.release = "nvJitLink 1.0"
    assemble(STORE, "sm_80")  # by which the file is noted
    file[1].abs_path = "/elsewhere/libnvJitLink.so.2"
    library.release = "nvJitLink 2.0"
    for arch in ("sm_90", "sm_90"):
        assert assemble(STORE, arch).image.endswith(b"2.0")
    assert library.runs == 3


@pytest.mark.parametrize("content", [b"?", b"[]\n", b'{"assembler": 1}\n', b'{"kernels": {}}\n', b"[" * 100000])
def test_what_is_no_note_is_none(content):
    assert assembler_version.read(content) is None and assembler_version.read(None) is None


def test_ptxas_is_known_by_its_file_and_others_by_loading(monkeypatch):
    ptxas = assemblers.Ptxas()
    monkeypatch.setattr(ptxas, "why_not", lambda: None)
    monkeypatch.setattr(ptxas, "version", lambda: "ptxas of 3 bytes")
    library = Library()
    monkeypatch.setattr(assembler_version, "library", lambda: None)
    monkeypatch.setattr(assemblers, "ASSEMBLERS", {"nvjitlink": library, "ptxas": ptxas, "driver": object()})
    assert (
        assembler_version.version(None, None, True)
        == assembler_version.version(None, "ptxas", False)
        == "ptxas of 3 bytes"
    )
    assert assembler_version.version(None, None, False) is assembler_version.version(None, "driver", False) is None
    monkeypatch.setattr(ptxas, "why_not", lambda: "there is none")
    assert assembler_version.version(None, None, True) is None
    assert library.loads == 0


def test_a_note_is_listed(library, tmp_path, capsys):
    assemble(STORE, "sm_80")
    assert cli.main(["cache"]) == 0
    assert "assembler version: nvJitLink 1.0" in capsys.readouterr().out
    cli.main(["cache", "--json"])
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert sorted(str(entry["assembler"]) for entry in entries) == ["None", "nvJitLink 1.0"]
    assert len(cache.entries(tmp_path / "cache")) == 2
