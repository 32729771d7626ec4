"""An on-disk cache, safe for concurrent processes and network file systems, and always optional.

An entry is written to a temporary file and renamed, so that readers see all of it or nothing. It begins with a digest
of its key and content; a damaged or moved entry is rebuilt. It is read only if it is a regular file of this user that
no other user can write, because its content runs on the GPU. If the folder cannot be read or written, nothing is
cached.
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
# Opening a FIFO would block, and a symbolic link may point anywhere.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def key(parts: Iterable[str]) -> str:
    """Return the name of an entry that depends on these texts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def load(folder: Path | None, name: str) -> bytes | None:
    """Return the content of an entry; None if it does not exist or cannot be trusted."""
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
    """Store an entry; return False if the folder is off, read-only or full, which costs only time."""
    if folder is None:
        return False
    try:
        _replace(_path(folder, name), _head(name, content) + content)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The name and size of an entry, and its modification time in seconds since 1970."""

    name: str
    bytes: int
    written: float


def entries(folder: Path | None) -> list[CacheEntry]:
    """Return all entries of this user, newest first. Other files are skipped."""
    known = []
    for path in folder.glob("??/*") if folder else ():
        name = path.parent.name + path.name
        with contextlib.suppress(OSError):  # removed by another process
            status = path.lstat()
            if _NAME.fullmatch(name) and _is_ours(status):
                known.append(CacheEntry(name, status.st_size, status.st_mtime))
    return sorted(known, key=lambda entry: (-entry.written, entry.name))


def remove(folder: Path, entry: CacheEntry) -> bool:
    """Remove an entry, and its folder if it is then empty; return False if that fails."""
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
    """Return the first line of an entry: the format, and a digest of its key and content."""
    return _MAGIC + hashlib.sha256(name.encode() + b"\n" + content).digest()


def _read(path: Path) -> bytes:
    """Return the content of a trusted file; empty otherwise."""
    with open(os.open(path, _READING), "rb") as file:
        return file.read() if _is_ours(os.fstat(file.fileno())) else b""


def _is_ours(status: os.stat_result) -> bool:
    """True if this is a regular file of this user that no other user can write."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows has no modes; its home folders are private
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _replace(path: Path, content: bytes) -> None:
    """Write a file, replacing anything at that path."""
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
    """Create the two-digit folder, replacing a file or FIFO; the cache folder itself is left to the user."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:  # not a folder; checking first would race with another process that creates it
        folder.unlink(missing_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)


def _clear(path: Path) -> None:
    """Remove a folder at the path of an entry; os.replace() overwrites everything else."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
