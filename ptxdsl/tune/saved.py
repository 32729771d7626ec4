"""Save and restore the arrays that a kernel writes while it is tuned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ptxdsl import driver
from ptxdsl.driver import call
from ptxdsl.runtime.timing import Run
from ptxdsl.runtime.variant import Variant


@contextmanager
def saved(variant: Variant, arguments: Sequence[object], device: int, stream: int) -> Iterator[Run]:
    """Copy the arrays on a GPU that a kernel writes, and yield a function that restores them.

    The arrays are also restored at the end of the `with` body.
    """
    signature = variant.signature
    values = signature.check(signature.flat(arguments), device, may_overlap=True)
    spans = [array.span for _, array, written in signature.arrays(values) if written]
    copies: list[tuple[int, int, int]] = []

    def restore() -> None:
        for copy, start, size in copies:
            call("restoring the arrays of a tuned kernel", driver.cuda.cuMemcpyDtoDAsync, start, copy, size, stream)

    with driver.on(device):
        try:
            for start, end in spans:
                copy = int(call("saving the arrays of a tuned kernel", driver.cuda.cuMemAlloc, max(1, end - start)))
                copies.append((copy, start, end - start))
                call(
                    "saving the arrays of a tuned kernel",
                    driver.cuda.cuMemcpyDtoDAsync,
                    copy,
                    start,
                    end - start,
                    stream,
                )
            yield restore
            restore()
            call("restoring the arrays of a tuned kernel", driver.cuda.cuStreamSynchronize, stream)
        finally:
            for copy, _, _ in copies:
                driver.cuda.cuMemFree(copy)
