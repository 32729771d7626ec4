"""Output of a command to stdout or a file."""

from __future__ import annotations

import sys
from pathlib import Path

from ptxdsl.cli.process import UsageError

STDOUT = "-"


def write(file: str | None, content: bytes) -> None:
    """Write `content` to stdout for None and -, else to a file."""
    if file in (None, STDOUT):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return
    try:
        Path(file).write_bytes(content)
    except OSError as reason:
        raise UsageError(f"{file} cannot be written: {reason.strerror}") from None
