"""The disk cache: an entry comes back whole or not at all, and no state of the folder is an error."""

import hashlib
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

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


def entry(tmp_path):
    """The file of the one entry that is stored."""
    cache.store(tmp_path, NAME, b"content")
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    return path


def test_an_entry_is_bound_to_its_key(tmp_path):
    other = cache.key(["another kernel"])
    moved = tmp_path / other[:2] / other[2:]
    moved.parent.mkdir()
    entry(tmp_path).rename(moved)
    assert cache.load(tmp_path, other) is None
    assert cache.store(tmp_path, other, b"other content")
    assert cache.load(tmp_path, other) == b"other content"


def test_an_entry_of_the_format_before_is_not_used(tmp_path):
    entry(tmp_path).write_bytes(b"ptxdsl 1\n" + hashlib.sha256(b"planted").digest() + b"planted")
    assert cache.load(tmp_path, NAME) is None


@pytest.mark.parametrize(
    "mode, used", [(0o600, True), (0o644, True), (0o400, True), (0o666, False), (0o660, False), (0o602, False)]
)
def test_an_entry_that_others_may_write_is_not_used(tmp_path, mode, used):
    entry(tmp_path).chmod(mode)
    assert cache.load(tmp_path, NAME) == (b"content" if used else None)
    assert cache.store(tmp_path, NAME, b"made anew")
    assert cache.load(tmp_path, NAME) == b"made anew"


def test_an_entry_of_another_user_is_not_used(tmp_path, monkeypatch):
    path = entry(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert cache.load(tmp_path, NAME) is None


def test_what_is_stored_can_be_written_by_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        assert stat.S_IMODE(entry(tmp_path).stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_link_to_another_file_is_not_followed(tmp_path):
    path = entry(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.load(tmp_path, NAME) is None
    assert cache.store(tmp_path, NAME, b"made anew")
    assert cache.load(tmp_path, NAME) == b"made anew"


def full_folder(path):
    path.mkdir()
    (path / "file").touch()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, full_folder, lambda path: path.symlink_to("nowhere")])
@pytest.mark.parametrize("depth", ["entry", "folder of entries"])
def test_what_is_no_file_heals(tmp_path, make, depth):
    path = entry(tmp_path)
    path.unlink()
    if depth == "folder of entries":
        path = path.parent
        path.rmdir()
    make(path)
    assert cache.load(tmp_path, NAME) is None
    assert cache.store(tmp_path, NAME, b"made anew")
    assert cache.load(tmp_path, NAME) == b"made anew"


def test_a_fifo_in_the_stead_of_the_cache_keeps_nothing(tmp_path):
    os.mkfifo(tmp_path / "cache")
    assert not cache.store(tmp_path / "cache", NAME, b"content")
    assert cache.load(tmp_path / "cache", NAME) is None


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


def test_writers_that_begin_together_make_one_folder(tmp_path):
    together = threading.Barrier(4)

    def write(number):
        together.wait()
        return cache.store(tmp_path / str(number), NAME, b"x")

    with ThreadPoolExecutor(4) as writers:
        assert all(writers.map(write, [number for number in range(200) for _ in range(4)]))


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
