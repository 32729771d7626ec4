"""A folder of results that are dear to make: safe for many processes and on network file systems, never required.

An entry is written beside its address and renamed into it, so a reader sees all of it or nothing. It begins with a
digest of its key and content, so that one that is damaged, or was moved, is made anew; and it is read only where it is
a plain file of this user that nobody else may write, since what it holds runs on the GPU. Where the folder cannot be
read or written, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"ptxdsl 2\n"
_NAME = re.compile(r"[0-9a-f]{64}")
_DIGEST_BYTES = hashlib.sha256().digest_size
# A FIFO must not make us wait, and a link is somebody's choice of another file.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def key(parts: Iterable[str]) -> str:
    """The name of an entry that depends on these texts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def load(folder: Path | None, name: str) -> bytes | None:
    """The content of an entry; None where there is none that can be trusted."""
    if folder is None:
        return None
    try:
        entry = _read(_path(folder, name))
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    content = entry[start:]
    return content if entry[:start] == _head(name, content) else None


def store(folder: Path | None, name: str, content: bytes) -> bool:
    """Keep an entry; False where the folder is switched off, read-only or full, which costs only time."""
    if folder is None:
        return False
    try:
        _replace(_path(folder, name), _head(name, content) + content)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What is kept under a name: its size, and when it was written, in seconds since 1970."""

    name: str
    bytes: int
    written: float


def entries(folder: Path | None) -> list[CacheEntry]:
    """All entries of this user, the last written first. Files that are none are left out."""
    known = []
    for path in folder.glob("??/*") if folder else ():
        name = path.parent.name + path.name
        with contextlib.suppress(OSError):  # another process has removed it
            status = path.lstat()
            if _NAME.fullmatch(name) and _is_ours(status):
                known.append(CacheEntry(name, status.st_size, status.st_mtime))
    return sorted(known, key=lambda entry: (-entry.written, entry.name))


def remove(folder: Path, entry: CacheEntry) -> bool:
    """Removes an entry, and its folder if that is empty then; False where that is not possible."""
    path = _path(folder, entry.name)
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    with contextlib.suppress(OSError):  # it holds other entries
        path.parent.rmdir()
    return True


def _path(folder: Path, name: str) -> Path:
    return folder / name[:2] / name[2:]


def _head(name: str, content: bytes) -> bytes:
    """What an entry begins with: the format, and a digest that no other key or content has."""
    return _MAGIC + hashlib.sha256(name.encode() + b"\n" + content).digest()


def _read(path: Path) -> bytes:
    """A file of ours; empty where it is something else."""
    with open(os.open(path, _READING), "rb") as file:
        return file.read() if _is_ours(os.fstat(file.fileno())) else b""


def _is_ours(status: os.stat_result) -> bool:
    """Whether it is a plain file that belongs to this user and that no other user can write."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows has no modes; its home folders are private
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _replace(path: Path, content: bytes) -> None:
    """Writes a file, in the stead of whatever is there."""
    _make_folder(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        _clear(path)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _make_folder(folder: Path) -> None:
    """The folder of two digits, where a file or FIFO may stand; the cache's own folder is the user's affair."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:  # it is no folder; looking first would see none where another process is about to make one
        folder.unlink(missing_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)


def _clear(path: Path) -> None:
    """Removes a folder from where an entry shall be; os.replace() takes the place of all else."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
