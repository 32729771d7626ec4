"""The disk cache: an entry comes back whole or not at all, and no state of the folder is an error."""

import os
import subprocess
import sys

import pytest

from ptxdsl.assemble import cache

NAME = cache.key(["a kernel"])


def test_what_is_stored_comes_back(tmp_path):
    assert cache.load(tmp_path, NAME) is None
    assert cache.store(tmp_path, NAME, b"content")
    assert cache.load(tmp_path, NAME) == b"content"


def test_the_key_tells_parts_apart():
    assert len({cache.key(parts) for parts in (["ab", "c"], ["a", "bc"], ["abc"], ["c", "ab"])}) == 4


def test_a_cache_that_is_off_keeps_nothing():
    assert not cache.store(None, NAME, b"content")
    assert cache.load(None, NAME) is None


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:20], lambda b: b"", lambda b: b[:-1] + b"X"])
def test_a_damaged_entry_is_none_and_can_be_replaced(tmp_path, damage):
    cache.store(tmp_path, NAME, b"content")
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    path.write_bytes(damage(path.read_bytes()))
    assert cache.load(tmp_path, NAME) is None
    assert cache.store(tmp_path, NAME, b"content")
    assert cache.load(tmp_path, NAME) == b"content"


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert not cache.store(tmp_path / "file", NAME, b"content")
    assert cache.load(tmp_path / "file", NAME) is None


def test_a_full_disk_leaves_no_part_of_an_entry(tmp_path, monkeypatch):
    def no_space(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    assert not cache.store(tmp_path, NAME, b"content")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_many_processes_may_write_one_entry(tmp_path):
    code = (
        "import sys; from pathlib import Path; from ptxdsl.assemble import cache\n"
        "folder, name = Path(sys.argv[1]), sys.argv[2]\n"
        "for _ in range(200):\n"
        "    assert cache.store(folder, name, b'x' * 100_000)\n"
        "    assert cache.load(folder, name) == b'x' * 100_000\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), NAME]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert sum(p.is_file() for p in tmp_path.rglob("*")) == 1
