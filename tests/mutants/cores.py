"""Work in processes that begin with all that is in memory, of which no more compute at a time than there are cores."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Semaphore
from typing import Any, TypeVar

FORK = multiprocessing.get_context("fork")
POLL_SECONDS = 0.05
Result = TypeVar("Result")


class OutOfTime(Exception):
    """The time limit has passed. Results that were known before are kept."""


class Cores:
    """A number of cores, which the processes of a run share, until a time limit.

    A process is forked for each piece of work, so that it inherits what its function reads and leaves nothing behind.
    """

    def __init__(self, count: int, seconds: float = float("inf")) -> None:
        self.count, self.end, self.free = count, time.monotonic() + seconds, FORK.Semaphore(count)

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.end

    def check_time(self) -> None:
        """Raise OutOfTime after the time limit."""
        if self.is_over:
            raise OutOfTime

    def each(self, function: Callable[[int], Result], numbers: Iterable[int]) -> Iterator[tuple[int, Result]]:
        """Yield each number with its result as it becomes known; the function computes on a core of its own.

        Raises OutOfTime at the time limit, after the processes that compute were stopped.
        """
        yield from self._run(function, numbers, self.free, self.check_time)

    def apart(self, function: Callable[[int], Result], numbers: Iterable[int]) -> Iterator[tuple[int, Result]]:
        """Yield each number with its result; the function takes a core only where it computes `with cores.free`.

        It ends soon after the time limit by itself.
        """
        yield from self._run(function, numbers, FORK.Semaphore(self.count + 1), lambda: None)

    def _run(
        self,
        function: Callable[[int], Result],
        numbers: Iterable[int],
        places: Semaphore,
        check_time: Callable[[], None],
    ) -> Iterator[tuple[int, Result]]:
        waiting = list(numbers)[::-1]
        if self.count == 1:
            for number in reversed(waiting):
                check_time()
                yield number, function(number)
            return
        running: dict[Connection, tuple[int, BaseProcess]] = {}
        try:
            while waiting or running:
                check_time()
                if waiting and places.acquire(timeout=POLL_SECONDS):
                    connection, process = _start(function, waiting[-1])
                    running[connection] = waiting.pop(), process
                for ended in wait([*running], 0 if waiting else POLL_SECONDS):
                    assert isinstance(ended, Connection)
                    number, process = running.pop(ended)
                    yield number, _result(ended, process, places)
        finally:
            for _, process in running.values():
                process.terminate()
                process.join()
                places.release()


def _start(function: Callable[[int], object], number: int) -> tuple[Connection, BaseProcess]:
    receiver, sender = FORK.Pipe(duplex=False)

    def compute() -> None:
        try:
            result: object = function(number)
        except BaseException as error:
            result = error
        sender.send((isinstance(result, BaseException), result))

    process = FORK.Process(target=compute)
    process.start()
    sender.close()
    return receiver, process


def _result(connection: Connection, process: BaseProcess, places: Semaphore) -> Any:
    """Return what a process sent when it ended, or raise its exception."""
    try:
        failed, result = connection.recv()
    except EOFError:
        raise RuntimeError(f"a process ended with code {process.exitcode}") from None
    finally:
        process.join()
        places.release()
    if failed:
        raise result
    return result
