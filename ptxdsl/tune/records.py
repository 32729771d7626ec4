"""Tuning results on disk, next to the cubins: by kernel, GPU and key, with a digest of the kernel's text."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from ptxdsl.assemble import cache

_FORMAT = "tuning 1"  # part of the entry name
_SOURCE = re.compile(r"^\s*\.(?:loc|file)\b.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TuningRecord:
    """The best configuration of a kernel for a key on a GPU; `text` is a digest of its PTX."""

    kernel: str
    gpu: str
    key: str
    config: str
    text: str
    microseconds: float


def name_of(kernel: str, gpu: str, key: str, code: str) -> str:
    """Return the name of an entry. `code` separates kernels of one name."""
    return cache.key((_FORMAT, kernel, gpu, key, code))


def digest_of(ptx: str) -> str:
    """Return a digest of PTX that does not depend on source line numbers."""
    return hashlib.sha256(_SOURCE.sub("", ptx).encode()).hexdigest()


def load(folder: Path | None, name: str) -> TuningRecord | None:
    content = cache.load(folder, name)
    return None if content is None else read(content)


def store(folder: Path | None, name: str, record: TuningRecord) -> bool:
    """Store a record, replacing an older one. Return False if it cannot be stored."""
    return cache.store(folder, name, json.dumps({"tuning": asdict(record)}).encode() + b"\n")


def read(content: bytes) -> TuningRecord | None:
    """Decode a record; None if the bytes are not one."""
    try:
        return TuningRecord(**json.loads(content)["tuning"])
    except (ValueError, KeyError, TypeError):
        return None
