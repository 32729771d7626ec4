"""What was found best, on disk beside the cubins: by kernel, GPU and key, with the text of the kernel."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from ptxdsl.assemble import cache

_FORMAT = "tuning 1"  # part of the name of an entry
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
    """The name of an entry. `code` tells kernels of one name apart."""
    return cache.key((_FORMAT, kernel, gpu, key, code))


def digest_of(ptx: str) -> str:
    """A digest of PTX that does not change when its source moves to other lines."""
    return hashlib.sha256(_SOURCE.sub("", ptx).encode()).hexdigest()


def load(folder: Path | None, name: str) -> TuningRecord | None:
    content = cache.load(folder, name)
    return None if content is None else read(content)


def store(folder: Path | None, name: str, record: TuningRecord) -> bool:
    """Keeps a record, in the stead of an older one; False where nothing can be kept."""
    return cache.store(folder, name, json.dumps({"tuning": asdict(record)}).encode() + b"\n")


def read(content: bytes) -> TuningRecord | None:
    """A record; None where the bytes are something else."""
    try:
        return TuningRecord(**json.loads(content)["tuning"])
    except (ValueError, KeyError, TypeError):
        return None
