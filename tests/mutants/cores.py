"""Work in processes that begin with all that is in memory, of which no more compute at a time than there are cores."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

FORK = multiprocessing.get_context("fork")
Result = TypeVar("Result")


class Cores:
    """So many cores, which processes share with those that they start: who computes does so `with cores.free`."""

    def __init__(self, count: int) -> None:
        self.count, self.free = count, FORK.Semaphore(count)

    def each(self, function: Callable[[int], Result], numbers: Iterable[int]) -> Iterator[tuple[int, Result]]:
        """Each number with its result, as they become known. What the function reads is not sent: processes have it."""
        waiting = list(numbers)
        if self.count == 1 or len(waiting) < 2:
            yield from ((number, function(number)) for number in waiting)
            return
        _FUNCTIONS.append(function)
        try:
            with ProcessPoolExecutor(min(self.count, len(waiting)), FORK) as pool:
                for future in as_completed([pool.submit(_call, number) for number in waiting]):
                    yield future.result()
        finally:
            _FUNCTIONS.pop()


_FUNCTIONS: list[Callable[[int], object]] = []
"""The last is that of the processes which are forked next."""


def _call(number: int) -> tuple[int, object]:
    return number, _FUNCTIONS[-1](number)
