"""The arrays that a kernel writes, as they were before it was tuned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ptxdsl import driver
from ptxdsl.driver import call
from ptxdsl.runtime.timing import Run
from ptxdsl.runtime.variant import Variant


@contextmanager
def saved(variant: Variant, arguments: Sequence[object], device: int, stream: int) -> Iterator[Run]:
    """Copies of the arrays on a GPU that a kernel writes, for the body of a `with`; yields what puts them back, which
    is done at its end, too."""
    signature = variant.signature
    values = signature.check(signature.flat(arguments), device, may_overlap=True)
    spans = [array.span for _, array, written in signature.arrays(values) if written]
    copies: list[tuple[int, int, int]] = []

    def restore() -> None:
        for copy, start, size in copies:
            call("restoring what was tuned", driver.cuda.cuMemcpyDtoDAsync, start, copy, size, stream)

    with driver.on(device):
        try:
            for start, end in spans:
                copy = int(call("saving what is tuned", driver.cuda.cuMemAlloc, max(1, end - start)))
                copies.append((copy, start, end - start))
                call("saving what is tuned", driver.cuda.cuMemcpyDtoDAsync, copy, start, end - start, stream)
            yield restore
            restore()
            call("restoring what was tuned", driver.cuda.cuStreamSynchronize, stream)
        finally:
            for copy, _, _ in copies:
                driver.cuda.cuMemFree(copy)
