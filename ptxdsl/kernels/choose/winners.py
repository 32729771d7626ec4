"""The configurations that were measured best on GPUs of this machine, by shape class.

`config="tune"` writes one JSON file a GPU to the cache directory, with the `winners` of the files next to this module:
the label of a configuration for each name of a class. They hold until a kernel changes.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from ptxdsl import config
from ptxdsl.assemble import cache

KERNELS = Path(__file__).parent.parent
_FORMAT = "winners 1"  # part of the entry name
_KNOWN: dict[tuple[Path | None, str], dict[str, str]] = {}


@lru_cache(maxsize=1)
def kernel_sources() -> str:
    """Return a digest of the files that all kernels are made of. What was measured holds until one changes."""
    chosen_by = tuple(str(KERNELS / folder) for folder in ("call", "choose"))
    files = sorted(path for path in KERNELS.rglob("*.py") if not str(path).startswith(chosen_by))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def winners(gpu: str) -> dict[str, str]:
    """Return the table of a GPU, by the driver's name of it: labels of configurations by names of shape classes."""
    folder = config.current().cache_dir
    if (folder, gpu) not in _KNOWN:
        _KNOWN[folder, gpu] = read_winners(cache.load(folder, _name(gpu)))
    return _KNOWN[folder, gpu]


def keep(gpu: str, shape_class: str, label: str) -> None:
    """Add a measured winner to the table of a GPU, in this process and on disk."""
    table, folder = winners(gpu), config.current().cache_dir
    table |= {**read_winners(cache.load(folder, _name(gpu))), shape_class: label}  # with those of other processes
    content = {"source": {"gpu": gpu, "kernels": kernel_sources()}, "winners": dict(sorted(table.items()))}
    cache.store(folder, _name(gpu), json.dumps(content, indent=1).encode() + b"\n")


def _name(gpu: str) -> str:
    return cache.key((_FORMAT, gpu))


def read_winners(content: bytes | None) -> dict[str, str]:
    """Return the winners in an entry of the cache; none if the bytes are not one, or if kernels have changed since."""
    try:
        data = json.loads(content or b"")
        is_current = data["source"]["kernels"] == kernel_sources()
        return {str(name): str(label) for name, label in data["winners"].items()} if is_current else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
