"""A folder of results that are dear to make: safe for many processes and on network file systems, never required.

An entry is written beside its place and renamed into it, so a reader sees all of it or nothing, and carries a digest of
its content, so that a damaged one is made anew. Where the folder cannot be read or written, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

_MAGIC = b"ptxdsl 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size


def key(parts: Iterable[str]) -> str:
    """The name of an entry that depends on these texts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def load(folder: Path | None, name: str) -> bytes | None:
    """The content of an entry; None where there is none, or where it is damaged."""
    if folder is None:
        return None
    try:
        entry = _path(folder, name).read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    content = entry[start:]
    return content if entry[:start] == _MAGIC + hashlib.sha256(content).digest() else None


def store(folder: Path | None, name: str, content: bytes) -> bool:
    """Keep an entry; False where the folder is switched off, read-only or full, which costs only time."""
    if folder is None:
        return False
    try:
        _replace(_path(folder, name), _MAGIC + hashlib.sha256(content).digest() + content)
    except OSError:
        return False
    return True


def _path(folder: Path, name: str) -> Path:
    return folder / name[:2] / name[2:]


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
