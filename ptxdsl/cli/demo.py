"""The command `ptxdsl demo`: trace a GEMM, assemble it, run it, and compare the result with numpy."""

from __future__ import annotations

import argparse
import time

from ptxdsl import config, driver
from ptxdsl.assemble import assemblers
from ptxdsl.cli.targets import instructions
from ptxdsl.cli.trial import Trial
from ptxdsl.errors import AssembleError, Error
from ptxdsl.kernels.gemm import gemm_kernel
from ptxdsl.runtime.variant import Variant

DESCRIPTION = "Trace, assemble, run and check a GEMM of f16 matrices."
ARCH = "sm_80"
SIZES = (333, 277, 200)  # not multiples of a tile
SHOWN = ("cp.async", "ldmatrix", "mma.sync")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""


def run(options: argparse.Namespace) -> int:
    """Print each step on a line. The last line begins with `ok`, or with `FAILED`, in which case the result is 1."""
    try:
        problems = _run()
    except Error as error:
        problems = [str(error)]
    machines = "the emulator" if driver.why_no_gpu() else "the emulator and the GPU"
    print(f"FAILED: {'; '.join(problems)}" if problems else f"ok: the result of this PTX is correct on {machines}")
    return 1 if problems else 0


def _run() -> list[str]:
    """Run the demo and return a sentence for each error."""
    trial = Trial(*SIZES)
    print(f"f16 GEMM, out = a @ b, {' x '.join(map(str, SIZES))}")
    start = time.perf_counter()
    program = gemm_kernel.variant(ARCH, {"traits": trial.traits()})
    counted = instructions(program.module)
    print(f"traced     {sum(counted.values())} instructions in {time.perf_counter() - start:.2f} s")
    for mnemonic, count in counted.items():
        if mnemonic.startswith(SHOWN):
            print(f"           {count:4} {mnemonic}")
    return [*_assembled(program), *_computed(trial)]


def _assembled(program: Variant) -> list[str]:
    try:
        assemblers.choose(config.current().assembler)
    except AssembleError as missing:
        print(f"skipped    machine code: {missing.message}")
        return []
    start = time.perf_counter()
    cubin = program.cubin
    seconds = time.perf_counter() - start
    print(
        f"assembled  {len(program.text)} bytes of PTX to {len(cubin.image)} of {ARCH} machine code in {seconds:.2f} s"
    )
    for resources in cubin.kernels.values():
        print(f"           {resources}")
    spills = [name for name, resources in cubin.kernels.items() if resources.spill_store_bytes]
    return [*cubin.warnings, *(f"{name} spills registers" for name in spills)]


def _computed(trial: Trial) -> list[str]:
    devices = ["emulator"] if driver.why_no_gpu() else ["emulator", "cuda"]
    outcomes = [trial.run(device) for device in devices]
    for outcome in outcomes:
        print(f"{'emulated ' if outcome.device == 'emulator' else 'launched '}  {outcome.speed} on {outcome.where}")
        print(f"           {outcome.comparison}")
    if reason := driver.why_no_gpu():
        print(f"no launch  {reason}")
    return [f"wrong result on {o.where}: {o.comparison}" for o in outcomes if not o.ok]
