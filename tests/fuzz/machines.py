"""Where random programs run: the emulator under several schedules, and a GPU through the driver."""

from __future__ import annotations

import ctypes
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures import TimeoutError as Late
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache

import numpy as np

import ptxdsl as pd
from ptxdsl import config, driver
from ptxdsl.lower import lower

from ..isa.spelled import assembler
from . import generate
from .program import ARCH, BLOCKS, THREADS, Program

SCHEDULES = ("lockstep", "skewed", "random:1")
SECONDS = 20
"""The limit of one program on the emulator or the GPU."""

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """What became of a program: the kind of its failure or "", details, and the differing words (expected, found)."""

    kind: str = ""
    details: str = ""
    differences: tuple[tuple[int, int, int, int], ...] = ()  # array, position, expected, found


@dataclass
class Prepared:
    """A program that was emulated and assembled: its outcome so far, the emulator's arrays, and the cubin."""

    program: Program
    outcome: Outcome
    arrays: list[np.ndarray] = field(default_factory=list)
    image: bytes | None = None


def prepare(program: Program | int, assembles: bool, schedules: Sequence[str] = SCHEDULES) -> Prepared:
    """Emulate a program, or that of a seed, under the schedules, check its invariants, and assemble it."""
    program = generate.program(program) if isinstance(program, int) else program
    try:
        with config.using(numerics="h200", arch=ARCH):
            prepared = _emulate(program, schedules)
    except Exception as error:
        return Prepared(program, Outcome("exception", f"{type(error).__name__}: {error}"))
    if prepared.outcome.kind or not assembles:
        return prepared
    result = assembler().assemble([program.text], ARCH, [])
    if result.image is None:
        return Prepared(program, Outcome("assembler", result.log.strip() or "the assembler crashed"))
    prepared.image = result.image
    return prepared


def _emulate(program: Program, schedules: Sequence[str]) -> Prepared:
    """Run the text under the first schedule with all checks, and the text printed by ptxdsl under the others."""
    text = program.text
    module = pd.parse(text)
    printed = lower(module.ir)
    again = pd.parse(printed)
    if lower(again.ir) != printed:
        return Prepared(program, Outcome("printing", "parsing and printing the printed text changes it"))
    first: list[np.ndarray] = []
    for number, schedule in enumerate(schedules):
        kernel, arrays = (again if number else module)["k"], program.arrays()
        report = pd.emulate(
            kernel, BLOCKS, THREADS, *arrays, checks=number == 0, schedule=schedule, max_seconds=SECONDS
        )
        if report.findings:
            return Prepared(program, Outcome("finding", f"{schedule}: {report.findings[0]}"))
        first = first or arrays
        if found := differences(first, arrays):
            return Prepared(program, Outcome("schedule", f"{schedule} differs from {schedules[0]}", found))
    return Prepared(program, Outcome(), first)


def differences(expected: Arrays, found: Arrays) -> tuple[tuple[int, int, int, int], ...]:
    """Return the words that differ: array, position, and both values."""
    result = []
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        places = np.flatnonzero(a.reshape(-1) != b.reshape(-1))[:64]
        result += [(number, int(p), int(a.flat[p]), int(b.flat[p])) for p in places]
    return tuple(result)


class Gpu:
    """The first GPU, driven by one process of its own, which is replaced after a fault or a hang."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.process = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def why_not(self) -> str | None:
        """Return None if there is a GPU, else the reason why not."""
        return self.process.submit(driver.why_no_gpu).result()

    def compare(self, prepared: Prepared) -> Outcome:
        """Run an assembled program, and compare all its arrays with the emulator's."""
        assert prepared.image is not None
        try:
            found = self.process.submit(_launch, prepared.image, prepared.program.arrays()).result(SECONDS)
        except (BrokenProcessPool, Late, pd.Error) as error:
            self.close()
            self._start()
            return Outcome("gpu", f"{type(error).__name__}: {error}")
        words = differences(prepared.arrays, found)
        return Outcome("difference" if words else "", "", words)

    def close(self) -> None:
        for worker in list((self.process._processes or {}).values()):
            worker.kill()
        self.process.shutdown(wait=False, cancel_futures=True)


@cache
def _addresses(sizes: tuple[int, ...]) -> list[int]:
    return [int(driver.call("allocating memory", driver.cuda.cuMemAlloc, size)) for size in sizes]


def _launch(image: bytes, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Run the kernel `k` of a cubin, and return its arrays."""
    cuda, call = driver.cuda, driver.call
    driver.require_gpu()
    with driver.on(0):
        addresses = _addresses(tuple(a.nbytes for a in arrays))
        for address, array in zip(addresses, arrays, strict=True):
            call("writing memory", cuda.cuMemcpyHtoD, address, array.ctypes.data, array.nbytes)
        module = call("loading the program", cuda.cuModuleLoadData, image)
        function = call("loading the program", cuda.cuModuleGetFunction, module, b"k")
        values = (ctypes.c_uint64 * len(addresses))(*addresses)
        size = ctypes.sizeof(ctypes.c_uint64)
        pointers = (ctypes.c_void_p * len(addresses))(
            *(ctypes.addressof(values) + size * n for n in range(len(values)))
        )
        call(
            "launching", cuda.cuLaunchKernel, function, BLOCKS, 1, 1, THREADS, 1, 1, 0, 0, ctypes.addressof(pointers), 0
        )
        call("running", cuda.cuCtxSynchronize)
        for address, array in zip(addresses, arrays, strict=True):
            call("reading memory", cuda.cuMemcpyDtoH, array.ctypes.data, address, array.nbytes)
        call("unloading the program", cuda.cuModuleUnload, module)
    return arrays


def pool(workers: int) -> Executor:
    """Return processes that emulate and assemble."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("fork"))
