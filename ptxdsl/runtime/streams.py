"""Select the stream of a launch: the one that the caller passes, else the current stream of the arrays' library."""

from __future__ import annotations

from collections.abc import Collection

from ptxdsl import driver
from ptxdsl.arrays import Array, Library
from ptxdsl.runtime.shape import refuse


def stream_handle(stream: object) -> int:
    """Return the driver handle of an int, a `__cuda_stream__` object, or a torch, CuPy or driver stream."""
    if type(stream) is int:
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):  # torch, CuPy
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if isinstance(stream, driver.cuda.CUstream):
        return int(stream)
    refuse(
        f"stream is {stream!r}, which is not a stream",
        "pass a torch or CuPy stream, a `__cuda_stream__` object, or a handle as an int",
    )


def current_stream(libraries: Collection[Library | None], arrays: Collection[Array], device: int) -> int:
    """Return the current stream of the arrays' library (torch or CuPy), else the stream that an array carries."""
    known = next(filter(None, libraries), None)
    if known:
        return known.current_stream(device)()
    return next((array.stream for array in arrays if array.stream is not None), 0)
