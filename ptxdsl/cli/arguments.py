"""Kernel arguments on a command line: numbers, and arrays given by type and shape."""

from __future__ import annotations

import re

import numpy as np

from ptxdsl.cli.process import UsageError
from ptxdsl.cli.trial import numpy_dtype
from ptxdsl.types import TYPES

_ARRAY = re.compile(r"(?P<type>\w+)\[(?P<shape>[\d, ]*)\](?:=(?P<fill>.+))?")
HELP = "write a number, f32[32,8] (random), f32[32,8]=0 (every element 0), u32[32]=arange or a file.npy"
MOST_BYTES = 1 << 32


def read_argument(text: str, rng: np.random.Generator) -> int | float | np.ndarray:
    """Return a number, or an array that is random, filled or read from a file. Raises UsageError for anything else."""
    if text.endswith(".npy"):
        return _loaded(text)
    match = _ARRAY.fullmatch(text.strip())
    if match:
        return _array(text, match["type"], match["shape"], match["fill"], rng)
    for number in (lambda: int(text, 0), lambda: float(text)):
        try:
            return number()
        except ValueError:
            continue
    raise UsageError(f"--arg {text} is not an argument", help=HELP)


def _loaded(file: str) -> np.ndarray:
    try:
        loaded = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as reason:
        raise UsageError(f"--arg {file} cannot be read: {getattr(reason, 'strerror', None) or reason}") from None
    assert isinstance(loaded, np.ndarray)
    return loaded


def _array(text: str, type: str, extents: str, fill: str | None, rng: np.random.Generator) -> np.ndarray:
    if type not in TYPES or TYPES[type].bits % 8:
        raise UsageError(f"--arg {text}: `{type}` is not an element type", help="take f32, u8, s64, bf16, …")
    dtype = numpy_dtype(type)
    try:
        shape = tuple(int(extent) for extent in extents.split(",") if extent.strip())
    except ValueError:
        raise UsageError(f"--arg {text} has an invalid shape", help=HELP) from None
    size = int(np.prod([1, *shape], dtype=object))
    if size * dtype.itemsize > MOST_BYTES:
        raise UsageError(f"--arg {text} has more than {MOST_BYTES >> 30} GiB")
    if fill == "arange":
        return np.arange(size).reshape(shape).astype(dtype)
    if fill is not None:
        return _filled(text, shape, dtype, fill)
    numbers = rng.integers(0, 10, shape) if dtype.kind in "iub" else rng.standard_normal(shape)
    return numbers.astype(dtype)


def _filled(text: str, shape: tuple[int, ...], dtype: np.dtype, fill: str) -> np.ndarray:
    try:
        return np.full(shape, float(fill) if dtype.kind not in "iub" else int(fill, 0), dtype)
    except (ValueError, OverflowError):
        raise UsageError(f"--arg {text}: {fill} is not a {dtype} value", help=HELP) from None
