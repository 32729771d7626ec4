"""Random calls on a GPU, by many processes: one that hangs, or whose context is lost, is ended and replaced."""

from __future__ import annotations

import collections
import multiprocessing
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ptxdsl import config
from tests.random_calls.call import Call, OnEmulator, OnGpu, Wrong
from tests.random_calls.drawing import LARGE, SMALL
from tests.random_calls.many import drawn, tried

CALLING_SECONDS, RUNNING_SECONDS = 60.0, 12.0  # to trace, assemble and launch; for kernels to end
VARIANTS = 5  # calls of a seed
MOST_LINES = 60
GRAPHS = 3  # of so many seeds one is replayed as a graph
EMULATED = 4  # of so many seeds one has small calls, which are emulated as well


@dataclass
class Worker:
    """A process, and what it does."""

    process: BaseProcess
    messages: Connection
    label: str = "begins"
    limit: float = field(default_factory=lambda: time.monotonic() + CALLING_SECONDS)


def run(first: int, count: int, processes: int, seconds: float) -> int:
    """Makes calls of `count` seeds. Prints what goes wrong, and returns how often."""
    context, end = multiprocessing.get_context("spawn"), time.monotonic() + seconds
    seeds, outcomes = context.Value("q", first), collections.Counter[str]()

    def begin() -> Worker:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(theirs, seeds, first + count), daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours)

    workers = [begin() for _ in range(processes)]
    while workers and time.monotonic() < end:
        for messages in wait([worker.messages for worker in workers], 0.5):
            worker = next(worker for worker in workers if worker.messages is messages)
            if not _heard(worker, outcomes):
                worker.process.join(2)
                workers.remove(worker)
                if seeds.value < first + count:
                    workers.append(begin())
        for worker in [worker for worker in workers if time.monotonic() > worker.limit]:
            _tell("HANGS", worker.label, outcomes)
            worker.process.kill()
            workers.remove(worker)
            workers.append(begin())
    for worker in workers:
        worker.process.kill()
    print(f"seeds {first} to {seeds.value - 1}")
    for outcome, times in outcomes.most_common(MOST_LINES):
        print(f"{times:6} {outcome[:200] or 'as it should be'}")
    return sum(times for outcome, times in outcomes.items() if outcome.startswith(("WRONG", "HANGS", "LOST")))


def _heard(worker: Worker, outcomes: collections.Counter[str]) -> bool:
    """Takes one message; False where there are no more."""
    try:
        kind, text = worker.messages.recv()
    except (EOFError, OSError):
        if worker.label != "ends":
            _tell("LOST", worker.label, outcomes)
        return False
    if kind == "begins":
        worker.label, worker.limit = text, time.monotonic() + CALLING_SECONDS
    elif kind == "runs":
        worker.label, worker.limit = text, time.monotonic() + RUNNING_SECONDS
    elif kind == "ends":
        worker.label = kind
    elif kind == "wrong":
        _tell("WRONG", text, outcomes)
    else:
        outcomes[text] += 1
    return True


def _tell(kind: str, text: str, outcomes: collections.Counter[str]) -> None:
    outcomes[kind] += 1
    print(f"{kind} {text}", flush=True)


def work(messages: Connection, seeds: Any, end: int) -> None:
    """What a process does: seed after seed, until it has lost its GPU."""
    while True:
        with seeds.get_lock():
            seed, seeds.value = seeds.value, seeds.value + 1
        if seed >= end:
            messages.send(("ends", ""))
            return
        if not together(messages, seed):
            messages.send(("ends", ""))
            return


def together(messages: Connection, seed: int) -> bool:
    """Makes the calls of a seed; False where the context is lost."""
    small = seed % EMULATED == 0
    label = f"seed {seed} {'small' if small else 'large'}"

    def tell(call: Call | None) -> None:
        messages.send(("runs", f"{label} with all variants") if call is None else ("begins", f"{label} {call}"))

    try:
        calls = [drawn(seed, "sm_90a", SMALL if small else LARGE, variant) for variant in range(VARIANTS)]
        outcomes = tried(calls, OnGpu, 2, tell, graph=seed % GRAPHS == 1)
        for outcome in outcomes:
            messages.send(("outcome", outcome.refusal.partition("\n")[0]))
        if small and not outcomes[0].refusal:
            messages.send(("begins", f"emulator {label}"))
            _emulated(messages, seed, outcomes[0].stored)
    except Wrong as error:
        messages.send(("wrong", f"{label} {error}"))
    except Exception as error:  # of any kind: it is told, and with it an error of the GPU, after which nothing runs
        told = "".join(traceback.format_exception(error)[-4:])
        messages.send(("wrong", f"{label}\n    {type(error).__name__}: {error}\n{told}"))
        return "CUDA" not in told
    return True


def _emulated(messages: Connection, seed: int, stored: Sequence[Any]) -> None:
    """Holds bits of a GPU against those of the emulator."""
    with config.using(arch="sm_90a", numerics="h200", schedule=f"random:{seed}", seconds=20.0):
        (emulated,) = tried([drawn(seed, "sm_90a")], OnEmulator)
    same = all(one.tobytes() == other.tobytes() for one, other in zip(stored, emulated.stored, strict=True))
    messages.send(("outcome", "as emulated, to the bit" if same else f"other bits than emulated: {emulated.call}"))
